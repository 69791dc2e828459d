//! The I/O path, and with it everything around the vCPUs of a host.
//!
//! A packet from a client crosses a [`wire`] to the [`nic`], waits there until the `driver` domain's vCPU has been given
//! a pCPU and has taken the interrupt, is handed to the guest through the finite ring of its `interface`, and an event
//! channel wakes the guest; answers go the other way. [`connection`] is the conversation itself, [`client`] who begins
//! it. [`machine`] puts all of it together with the guest kernels as the [`World`](vcpulab_host::World) of a host.
//!
//! What batching, wake-ups and cold caches do to throughput comes out of this; nothing here knows a scheduler.
//!
//! Not modelled: errors on the line, time-outs other than the one retransmission time, congestion control beyond slow
//! start and a fixed receive window, the driver domain's own programs, the clients' processing time.

pub mod client;
pub mod config;
pub mod connection;
mod driver;
mod interface;
pub mod machine;
pub mod nic;
pub mod wire;

pub use config::{ClientConfig, DriverCosts, GuestConfig, MachineConfig, NetworkCosts, NicConfig};
pub use interface::InterfaceCounts;
pub use machine::{AppResult, Machine};
pub use nic::NicCounts;
