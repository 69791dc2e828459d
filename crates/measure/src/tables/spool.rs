//! Rows of which there may be many: while they come, and afterwards, most are in a temporary file.

use std::io::{self, BufReader, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};

use crate::tables::Record;

/// Rows of a part of the file: few enough to take little memory, and enough for a part to cost little.
const PART: usize = 4_096;

/// Rows of each table that the replications of a run together keep in memory: runs with few samples write no file.
const IN_MEMORY: usize = 4 * PART;

/// A file without a name in the system's folder of temporary files.
#[cfg(not(target_family = "wasm"))]
mod store {
    pub use std::fs::File as Store;
    pub use tempfile::tempfile as make;
}

/// A browser has no files: the compressed parts stay in memory.
#[cfg(target_family = "wasm")]
mod store {
    pub type Store = std::io::Cursor<Vec<u8>>;

    pub fn make() -> std::io::Result<Store> {
        Ok(Store::default())
    }
}

use store::{Store, make};

/// Store for rows of a run's replications: a temporary file, made at the first write. It is deleted with its last user,
/// or with the process.
#[derive(Clone, Debug)]
pub struct Spool {
    file: Arc<Mutex<Option<Store>>>,
    /// Rows of a table that one replication may leave in memory.
    kept: usize,
}

impl Spool {
    /// A store for a run of this number of replications.
    pub fn new(replications: u32) -> Self {
        Spool { file: Arc::default(), kept: IN_MEMORY / replications as usize }
    }

    fn file(&self) -> MutexGuard<'_, Option<Store>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, batch: &RecordBatch) -> io::Result<Written> {
        let mut made = self.file();
        if made.is_none() {
            *made = Some(make()?);
        }
        let file = made.as_mut().expect("it was just made");
        let start = file.seek(SeekFrom::End(0))?;
        write_stream(file, batch)?;
        Ok(Written { file: Arc::clone(&self.file), start })
    }
}

/// Each part is a stream of its own, so that it can be read by itself.
fn write_stream(file: &mut Store, batch: &RecordBatch) -> io::Result<()> {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME));
    let options = options.map_err(io::Error::other)?;
    let buffered = io::BufWriter::new(file);
    let mut stream =
        StreamWriter::try_new_with_options(buffered, &batch.schema(), options).map_err(io::Error::other)?;
    stream.write(batch).map_err(io::Error::other)?;
    stream.into_inner().map_err(io::Error::other)?.into_inner()?;
    Ok(())
}

/// A part of a table that was written to the file.
#[derive(Clone, Debug)]
pub struct Written {
    file: Arc<Mutex<Option<Store>>>,
    start: u64,
}

impl Written {
    fn read(&self) -> io::Result<RecordBatch> {
        let mut made = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = made.as_mut().expect("it was made to be written to");
        file.seek(SeekFrom::Start(self.start))?;
        let mut stream = StreamReader::try_new(BufReader::new(file), None).map_err(io::Error::other)?;
        stream.next().expect("a part has rows").map_err(io::Error::other)
    }
}

impl PartialEq for Written {
    fn eq(&self, other: &Self) -> bool {
        matches!((self.read(), other.read()), (Ok(mine), Ok(its)) if mine == its)
    }
}

/// A part of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Part<Rows> {
    /// A part in memory.
    Here(Rows),
    /// A part in the file.
    Written(Written),
}

impl Part<RecordBatch> {
    /// The rows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> io::Result<RecordBatch> {
        match self {
            Part::Here(batch) => Ok(batch.clone()),
            Part::Written(written) => written.read(),
        }
    }
}

/// Rows of a table.
pub trait Tabular {
    /// The table, in one part or more.
    fn in_parts(self) -> Vec<Part<RecordBatch>>;
}

impl<Row: Record> Tabular for Vec<Row> {
    fn in_parts(self) -> Vec<Part<RecordBatch>> {
        vec![Part::Here(Row::batch(&self))]
    }
}

/// Takes the rows of one replication as they come.
#[derive(Debug)]
pub struct Spooler<Row> {
    spool: Spool,
    written: Vec<Written>,
    /// Rows that no written part contains yet.
    rows: Vec<Row>,
    /// The error after which nothing is written any more.
    failed: Option<io::Error>,
}

impl<Row: Record> Spooler<Row> {
    /// There are none yet.
    pub fn new(spool: &Spool) -> Self {
        Spooler { spool: spool.clone(), written: Vec::new(), rows: Vec::new(), failed: None }
    }

    /// Adds a row; an error of writing is reported at the end.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() == PART {
            self.write();
        }
    }

    #[cold]
    fn write(&mut self) {
        if self.failed.is_none() {
            match self.spool.write(&Row::batch(&self.rows)) {
                Ok(written) => self.written.push(written),
                Err(error) => self.failed = Some(error),
            }
        }
        self.rows.clear();
    }

    /// All rows.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> io::Result<Spooled<Row>> {
        if self.rows.len() > self.spool.kept {
            self.write();
        }
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let mut parts: Vec<_> = self.written.into_iter().map(Part::Written).collect();
        if !self.rows.is_empty() {
            self.rows.shrink_to_fit();
            parts.push(Part::Here(self.rows));
        }
        Ok(Spooled { parts })
    }
}

/// Rows in order, in parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spooled<Row> {
    /// Parts of the table, none of them empty.
    parts: Vec<Part<Vec<Row>>>,
}

impl<Row> Spooled<Row> {
    /// Moves all rows of another one to the end.
    pub fn append(&mut self, other: &mut Self) {
        for part in other.parts.drain(..) {
            match (self.parts.last_mut(), part) {
                (Some(Part::Here(last)), Part::Here(rows)) if last.len() + rows.len() <= PART => {
                    last.extend(rows);
                }
                (_, part) => self.parts.push(part),
            }
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Rows in memory: all rows, where there are few.
    pub fn in_memory(&self) -> impl Iterator<Item = &Row> {
        self.parts.iter().flat_map(|part| match part {
            Part::Here(rows) => rows.as_slice(),
            Part::Written(_) => &[],
        })
    }
}

impl<Row: Record> Tabular for Spooled<Row> {
    fn in_parts(self) -> Vec<Part<RecordBatch>> {
        if self.is_empty() {
            return vec![Part::Here(Row::batch(&[]))];
        }
        let part = |part: Part<Vec<Row>>| match part {
            Part::Here(rows) => Part::Here(Row::batch(&rows)),
            Part::Written(written) => Part::Written(written),
        };
        self.parts.into_iter().map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tables::AppSampleRow;

    fn row(replication: u32, second: i64) -> AppSampleRow {
        AppSampleRow {
            replication,
            time_ns: second * 1_000_000_000,
            domain: format!("domain {replication}"),
            response_sum_ns: (second % 3 > 0).then_some(second),
            ..AppSampleRow::default()
        }
    }

    fn spooled(spool: &Spool, rows: &[AppSampleRow]) -> Spooled<AppSampleRow> {
        let mut spooler = Spooler::new(spool);
        rows.iter().cloned().for_each(|row| spooler.push(row));
        spooler.finish().unwrap()
    }

    proptest! {
        #[test]
        fn rows_come_back_as_they_were(counts in prop::collection::vec(0..3 * PART as i64, 1..4)) {
            let spool = Spool::new(counts.len() as u32);
            let (mut all, mut expected) = (Spooled::default(), Vec::new());
            for (replication, count) in counts.into_iter().enumerate() {
                let rows: Vec<_> = (0..count).map(|second| row(replication as u32, second)).collect();
                all.append(&mut spooled(&spool, &rows));
                expected.extend(rows);
            }
            prop_assert!(all.in_memory().count() <= IN_MEMORY);
            let mut from = 0;
            for part in all.clone().in_parts() {
                let batch = part.read().unwrap();
                let rows = &expected[from..from + batch.num_rows()];
                prop_assert_eq!(&batch, &AppSampleRow::batch(rows));
                from += rows.len();
            }
            prop_assert_eq!(from, expected.len());
            prop_assert_eq!(&all, &all.clone());
        }
    }

    #[test]
    fn few_rows_make_no_file_and_different_ones_are_different() {
        let rows: Vec<_> = (0..PART as i64).map(|second| row(0, second)).collect();
        let spool = Spool::new(1);
        let few = spooled(&spool, &rows[1..]);
        assert!(spool.file().is_none() && few.in_memory().eq(&rows[1..]));
        let many = spooled(&spool, &rows);
        assert!(spool.file().is_some() && many.in_memory().next().is_none());
        assert_eq!(many, spooled(&Spool::new(1), &rows));
        let others: Vec<_> = (0..PART as i64).map(|second| row(1, second)).collect();
        assert_ne!(many, spooled(&spool, &others));
    }

    #[test]
    fn many_replications_together_keep_few_rows() {
        let spool = Spool::new(100);
        let rows: Vec<_> = (0..PART as i64 / 2).map(|second| row(0, second)).collect();
        let mut all = Spooled::default();
        for _ in 0..100 {
            all.append(&mut spooled(&spool, &rows));
        }
        assert_eq!((all.in_memory().count(), all.in_parts().len()), (0, 100));
    }
}
