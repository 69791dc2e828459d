//! The result tables of a run: their rows, each declared once, and all of them together.

mod columns;
mod packed;
mod results;
mod rows;
mod tabular;

pub use columns::Columns;
pub use packed::{Pack, Packed};
pub use results::Results;
pub use rows::{
    AppRow, AppSampleRow, DomainRow, EventRow, IoRow, PathRow, PcpuRow, PcpuSampleRow, ProfileRow, SampleRow,
    TraceRow, VcpuRow, VcpuSampleRow, WaitRow, WakeUpBucketRow, WakeUpRow,
};
pub use tabular::Tabular;
