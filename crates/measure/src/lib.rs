//! What a run leaves behind.
//!
//! [`Meter`] listens to a host and counts; it never changes what happens. [`tables`] declares every result table once:
//! columns, types, units and documentation, and turns rows into Arrow record batches. [`collect()`] reads a meter and
//! its host into rows at the end of a run.

mod by_pcpu;
pub mod collect;
pub mod columns;
pub mod meter;
pub mod perfetto;
pub mod record;
pub mod samples;
pub mod tables;
pub mod waits;
pub mod wakeups;

pub use collect::{Measured, Names, collect};
pub use meter::{Keep, Meter, TRACE_ROWS_MAX};
pub use record::{EventFile, Measuring, Recorder, Traced};
pub use samples::Sampler;
pub use tables::{
    AppRow, AppSampleRow, DomainRow, EventRow, IoRow, PcpuRow, PcpuSampleRow, ProfileRow, SampleRow,
    TraceRow, VcpuRow, VcpuSampleRow, WaitRow, WakeUpBucketRow, WakeUpRow,
};
pub use waits::NotAttributed;
