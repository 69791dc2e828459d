//! The results of a run.
//!
//! A [`Meter`] listens to a host and counts; it never changes what happens. A [`Sampler`] reads its counters at regular
//! intervals. [`collect()`] reads a meter and its host into [`Results`] at the end of a run: the result tables ([`tables`]),
//! each with its columns, their types, units and documentation declared once. [`trace`] writes every event of a run to a file,
//! [`occupancy`] keeps who ran
//! in spans of time, and [`perfetto`] turns such a file into a trace that Perfetto shows.

pub mod collect;
pub mod counters;
pub mod occupancy;
pub mod perfetto;
pub mod tables;
pub mod trace;
pub mod waits;

pub use collect::{Names, collect};
pub use counters::{Decisions, Keep, Meter, Sampler};
pub use occupancy::{Occupancy, Stretch};
pub use tables::{
    AppRow, AppSampleRow, Columns, DomainRow, EventRow, IoRow, Part, PathRow, PcpuRow, PcpuSampleRow,
    ProfileRow, Record, RejectedAction, Results, SampleRow, Spool, Spooled, Spooler, Tabular, ThreadRow,
    TraceRow, VcpuRow, VcpuSampleRow, VmRow, WaitRow, WakeUpBucketRow, WakeUpRow,
};
pub use trace::{EventFile, Measuring, Recorder, Traced};
pub use waits::NotAttributed;
