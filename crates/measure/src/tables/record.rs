//! Rows as a table.

use arrow_array::RecordBatch;

/// A row of a table.
pub trait Record: Sized {
    /// The table with these rows.
    fn batch(rows: &[Self]) -> RecordBatch;
}
