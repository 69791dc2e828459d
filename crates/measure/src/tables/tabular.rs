//! Rows as a table, however they are kept.

use arrow_array::RecordBatch;

use crate::tables::Part;

/// A row of a table.
pub trait Record: Sized {
    /// The table with these rows.
    fn batch(rows: &[Self]) -> RecordBatch;
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
