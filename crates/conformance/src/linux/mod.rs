//! Recordings of a Linux kernel, replayed decision by decision, and predicted.
//!
//! A recording is a folder: [`folder`] reads what was set up, [`trace`] the events. [`steps`] feeds them at their times
//! into a scheduler of the fair class ([`Steps`]), compares each flag and choice with the kernel's, then adopts the kernel's.
//! [`compared`] takes what threads demand alone ([`Demands`]), lets them run freely on a host ([`Free`]), and holds what comes
//! of it against what was recorded ([`Measured`]).

mod before;
mod beginning;
mod clock;
mod compared;
mod demand;
mod error;
mod fair;
pub mod folder;
mod free;
mod judged;
mod measured;
mod outcome;
mod overheads;
mod play;
pub mod steps;
mod timers;
pub mod trace;

pub use compared::{Cell, Comparison, Metric, compared};
pub use demand::Demands;
pub use error::LinuxError;
pub use fair::replay_fair;
pub use folder::{Recording, Setup, Texts};
pub use free::{Free, RunError};
pub use judged::{Judged, judged};
pub use measured::Measured;
pub use outcome::{Beginning, Difference, Outcome};
pub use overheads::Overheads;
pub use steps::{Steps, replay};
