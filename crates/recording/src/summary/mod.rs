//! A recording's summary: who ran where, waited, woke whom.

mod counter;
mod finish;
mod pcpu;
mod types;

pub use counter::Counter;
pub use types::{Domain, Pcpu, Share, Summary, Vcpu, Waking};
