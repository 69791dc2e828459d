//! Properties of the policies, checked on hosts of all kinds.

mod hosts;
mod invariants;
mod pools;
mod promises;
