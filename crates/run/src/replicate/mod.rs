//! Runs scenarios: replications in parallel, their results in order.

mod app_table;
mod io_table;
pub(crate) mod jtl;
pub(crate) mod live;
pub(crate) mod manager;
mod monitors;
mod overload;
pub mod pace;
pub(crate) mod progress;
mod replication;
pub(crate) mod runs;
pub(crate) mod schedulers;
pub(crate) mod seed;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod thread_table;
mod vm_table;
