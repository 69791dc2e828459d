//! A recording's summary: CPU time, waits, wake-ups and switches of domains, vCPUs and pCPUs.

mod counter;
mod finish;
mod pcpu;
mod types;

pub use counter::Counter;
pub use types::{Domain, Pcpu, Share, Summary, Vcpu, Waking};
