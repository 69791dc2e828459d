//! Recordings of real hosts.
//!
//! A [`Recording`] is fed with bytes as they come, from [`xentrace`] or as the text of `perf sched script` or ftrace
//! ([`sched_text`]). It turns them into [`Event`]s in order of time, emits each, and counts them into a [`Summary`].
//! Memory is bounded by the numbers of vCPUs, threads and pCPUs, not by the length of the recording.
//!
//! Recordings are not trusted: records that were not understood, are missing or contradict each other are reported as
//! [`Notes`], with the consequence for the metrics.

#![forbid(unsafe_code)]

mod clock;
mod error;
pub mod event;
mod histogram;
mod limits;
mod notes;
mod order;
pub mod recording;
pub mod sched_line;
pub mod sched_text;
pub mod summary;
mod tasks;
mod text_order;
pub mod xentrace;

pub use clock::{ClockReport, MHZ};
pub use error::ReadError;
pub use event::{Event, EventCount, Kind, RunState, Who};
pub use histogram::Spread;
pub use limits::{PCPUS_MAX, VCPUS_MAX};
pub use notes::{Note, Notes, Place};
pub use recording::{Format, Options, Recording, Report};
pub use sched_text::Threads;
pub use summary::Summary;
pub use tasks::Thread;
