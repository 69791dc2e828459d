//! Rows that many are kept of, in few bytes: most numbers of a sample are small, and many are zero or not there.

use std::fmt;
use std::marker::PhantomData;

use arrow_array::RecordBatch;

use crate::tables::tabular::Tabular;

/// Rows of a part: few enough to be written out as columns, and enough for a part to cost nothing.
const PART: usize = 16_384;

/// A value of a column, as bytes.
pub trait Pack: Sized {
    /// Adds its bytes.
    fn pack(&self, bytes: &mut Vec<u8>);

    /// The value that the next bytes are.
    fn unpack(bytes: &mut &[u8]) -> Self;
}

impl Pack for u64 {
    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn pack(&self, bytes: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }

    fn unpack(bytes: &mut &[u8]) -> Self {
        let mut value = 0;
        for shift in (0..Self::BITS).step_by(7) {
            let byte = next(bytes);
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
}

impl Pack for u32 {
    fn pack(&self, bytes: &mut Vec<u8>) {
        u64::from(*self).pack(bytes);
    }

    fn unpack(bytes: &mut &[u8]) -> Self {
        u64::unpack(bytes) as u32
    }
}

impl Pack for i64 {
    /// The sign is the lowest bit.
    fn pack(&self, bytes: &mut Vec<u8>) {
        (((self << 1) ^ (self >> 63)) as u64).pack(bytes);
    }

    fn unpack(bytes: &mut &[u8]) -> Self {
        let value = u64::unpack(bytes);
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }
}

impl Pack for String {
    fn pack(&self, bytes: &mut Vec<u8>) {
        (self.len() as u64).pack(bytes);
        bytes.extend_from_slice(self.as_bytes());
    }

    fn unpack(bytes: &mut &[u8]) -> Self {
        let length = u64::unpack(bytes) as usize;
        let (text, rest) = bytes.split_at(length);
        *bytes = rest;
        String::from_utf8(text.to_vec()).expect("it was text when it was packed")
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.pack(bytes);
        }
    }

    fn unpack(bytes: &mut &[u8]) -> Self {
        (next(bytes) == 1).then(|| T::unpack(bytes))
    }
}

fn next(bytes: &mut &[u8]) -> u8 {
    let (first, rest) = bytes.split_first().expect("a value ends where it was packed to");
    *bytes = rest;
    *first
}

/// Rows in order, each as the bytes of its values.
#[derive(Clone, PartialEq)]
pub struct Packed<Row> {
    parts: Vec<Part>,
    row: PhantomData<Row>,
}

#[derive(Clone, Default, PartialEq)]
struct Part {
    rows: usize,
    bytes: Vec<u8>,
}

impl<Row> Default for Packed<Row> {
    fn default() -> Self {
        Packed { parts: Vec::new(), row: PhantomData }
    }
}

impl<Row: Pack> Packed<Row> {
    /// Adds a row.
    pub fn push(&mut self, row: &Row) {
        if self.parts.last().is_none_or(|part| part.rows == PART) {
            // About as many bytes as the part before; of the first one nothing is known.
            let bytes = self.parts.last().map_or(0, |part| part.bytes.len());
            self.parts.push(Part { rows: 0, bytes: Vec::with_capacity(bytes) });
        }
        let part = self.parts.last_mut().expect("there is one by now");
        row.pack(&mut part.bytes);
        part.rows += 1;
    }

    /// Moves all rows of another one to the end.
    pub fn append(&mut self, other: &mut Self) {
        for part in std::mem::take(&mut other.parts) {
            match self.parts.last_mut() {
                Some(last) if last.rows + part.rows <= PART => {
                    last.rows += part.rows;
                    last.bytes.extend(part.bytes);
                }
                _ => self.parts.push(part),
            }
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The rows.
    pub fn iter(&self) -> impl Iterator<Item = Row> {
        self.parts.iter().flat_map(Part::unpack)
    }
}

impl<Row: Pack> Tabular for Packed<Row>
where
    Vec<Row>: Tabular,
{
    /// In parts. Bytes are given back as they are used.
    fn into_batches(self) -> Vec<RecordBatch> {
        if self.is_empty() {
            return Vec::new().into_batches();
        }
        self.parts.into_iter().flat_map(|part| part.unpack().collect::<Vec<Row>>().into_batches()).collect()
    }
}

impl Part {
    fn unpack<Row: Pack>(&self) -> impl Iterator<Item = Row> {
        let mut bytes = &self.bytes[..];
        (0..self.rows).map(move |_| Row::unpack(&mut bytes))
    }
}

impl<Row: Pack + fmt::Debug> fmt::Debug for Packed<Row> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tables::AppSampleRow;

    fn row() -> impl Strategy<Value = AppSampleRow> {
        (any::<u32>(), any::<i64>(), ".{0,4}", any::<u64>(), any::<Option<i64>>()).prop_map(
            |(replication, time_ns, domain, completed, response_sum_ns)| AppSampleRow {
                replication,
                time_ns,
                domain,
                completed,
                response_sum_ns,
                ..AppSampleRow::default()
            },
        )
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(rows in prop::collection::vec(row(), 0..20), cut in 0..20_usize) {
            let (mut packed, mut rest) = (Packed::default(), Packed::default());
            for (index, row) in rows.iter().enumerate() {
                if index < cut { packed.push(row) } else { rest.push(row) }
            }
            packed.append(&mut rest);
            prop_assert_eq!((packed.len(), rest.len()), (rows.len(), 0));
            prop_assert!(packed.iter().eq(rows.iter().cloned()));
            prop_assert_eq!(packed.into_batches(), vec![AppSampleRow::batch(&rows)]);
        }
    }

    #[test]
    fn many_rows_take_few_bytes_and_several_parts() {
        let mut packed = Packed::default();
        for second in 1..=2 * PART as i64 {
            packed.push(&AppSampleRow {
                time_ns: second * 1_000_000_000,
                completed: 20,
                ..AppSampleRow::default()
            });
        }
        let bytes: usize = packed.parts.iter().map(|part| part.bytes.len()).sum();
        assert!(bytes < 20 * packed.len(), "{bytes} bytes");
        let heights: Vec<usize> = packed.into_batches().iter().map(RecordBatch::num_rows).collect();
        assert_eq!(heights, [PART, PART]);
    }
}
