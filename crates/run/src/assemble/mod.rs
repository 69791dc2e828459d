//! From a checked scenario to the configurations of a host and of the machine around it.

mod apps;
mod clients;
mod disks;
mod endings;
mod files;
mod groups;
mod guests;
pub(crate) mod host;
pub(crate) mod machine;
mod network;
pub(crate) mod profiler;
mod scripts;
mod services;
mod ticks;
