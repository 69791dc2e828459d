//! Waits for a pCPU: who made whom wait, and how long waits were by what they began with.

mod attribution;
mod by_origin;

pub use attribution::{Charged, NotAttributed, Waits};
pub(crate) use by_origin::{Sender, WaitsByOrigin, steps};
