//! Waits for a pCPU: the domains that made other domains wait, and the lengths of waits by the event they began with.

mod attribution;
mod by_origin;

pub use attribution::{Charged, NotAttributed, Waits};
pub(crate) use by_origin::{Sender, WaitsByOrigin, steps};
