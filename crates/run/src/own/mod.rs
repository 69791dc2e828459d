//! Policies that are written elsewhere, in another language: what they see of the host, and the [`Scheduler`](vcpulab_host::Scheduler) that
//! calls their hooks.

pub mod lent;
mod policy;

pub use lent::Refused;
pub use policy::{Answer, Caller, Elsewhere, Expected, Hook, With};
