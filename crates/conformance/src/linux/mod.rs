//! Recordings of a Linux kernel, replayed decision by decision.
//!
//! A recording is a folder: [`folder`] reads what was set up, [`trace`] the events, and [`steps`] feeds them at their times
//! into a scheduler of the fair class ([`Steps`]), compares each flag and choice with the kernel's, then adopts the kernel's.

mod error;
mod fair;
pub mod folder;
mod judged;
pub mod steps;
mod timers;
pub mod trace;

pub use error::LinuxError;
pub use fair::replay_fair;
pub use folder::{Recording, Setup, Texts};
pub use judged::{Judged, judged};
pub use steps::{Outcome, Steps, replay};
