//! Conformance: every decision of a policy compared with those recorded of the release that it is named after.
//!
//! A *vector* is a scripted host (`NAME.json`), the decisions recorded on it (`NAME.trace.csv.gz`) and, where the
//! scheduler's specification lists state to compare, that state (`NAME.state.csv.gz`). [`vector`] reads the first,
//! [`recording`] the others, [`replay`] runs the host and compares row by row, [`report`] does so for folders.
//! [`linux`] does the like with recordings of a kernel's own scheduler.

pub mod linux;
pub mod recording;
pub mod replay;
pub mod report;
pub mod vector;

pub use report::{Report, run_paths};
pub use vector::{Vector, VectorError, read_vector};
