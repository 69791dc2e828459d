//! Properties of the policies, checked on hosts of all kinds.

mod cores;
mod hosts;
mod invariants;
mod linux;
mod pools;
mod promises;
mod topology;
