//! The result tables of a run: their rows, each declared once, and all of them together.

mod columns;
mod record;
mod results;
mod rows;
mod spool;

pub use columns::Columns;
pub use record::Record;
pub use results::{RejectedAction, Results};
pub use rows::{
    AppRow, AppSampleRow, DomainRow, EventRow, IoRow, PathRow, PcpuRow, PcpuSampleRow, ProfileRow, SampleRow,
    ThreadRow, TraceRow, VcpuRow, VcpuSampleRow, VmRow, WaitRow, WakeUpBucketRow, WakeUpRow,
};
pub use spool::{Part, Spool, Spooled, Spooler, Tabular};
