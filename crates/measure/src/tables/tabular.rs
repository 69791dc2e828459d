//! Rows as a table, however they are kept.

use arrow_array::RecordBatch;

/// Rows of a table.
pub trait Tabular {
    /// The table, in one part or more.
    fn into_batches(self) -> Vec<RecordBatch>;
}
