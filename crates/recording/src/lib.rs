//! Recordings of real hosts.
//!
//! A [`Recording`] is fed with bytes as they come, from [`xentrace`] or as the text of `perf sched script` or ftrace
//! ([`sched_text`]). It turns them into [`Event`]s in order of time, hands each on, and counts them into a [`Summary`].
//! Memory is bounded by the numbers of vCPUs and pCPUs, not by the length of the recording.
//!
//! Recordings are not trusted: what was not understood, was missing or contradicts itself is told in [`Notes`], with what
//! that means for the figures.

#![forbid(unsafe_code)]

mod clock;
pub mod event;
mod histogram;
mod notes;
mod order;
pub mod recording;
mod sched_line;
pub mod sched_text;
pub mod summary;
pub mod xentrace;

pub use clock::{ClockReport, MHZ};
pub use event::{Event, Kind, Runstate, Who};
pub use histogram::Spread;
pub use notes::{Note, Notes, Place};
pub use recording::{Format, Options, ReadError, Recording, Report};
pub use sched_text::{Thread, Threads};
pub use summary::Summary;

/// pCPUs that a recording may speak of.
pub const PCPUS_MAX: u32 = 4096;
/// vCPUs that are told apart; what others do is counted as not shown.
pub const VCPUS_MAX: usize = 4096;
