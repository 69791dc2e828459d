//! The I/O path, and with it everything around the vCPUs of a host.
//!
//! A packet from a client crosses a [`wire`] to the [`nic`], waits there until the `driver` domain's vCPU has been given
//! a pCPU and has taken the interrupt, is handed to the guest through the finite ring of its `interface`, and an event
//! channel wakes the guest; answers go the other way. [`tcp`] is the conversation itself, [`client`] who begins
//! it. [`machine`] puts all of it together with the guest kernels as the [`World`](vcpulab_host::World) of a host.
//!
//! What batching, wake-ups and cold caches do to throughput comes out of this; nothing here knows a scheduler.
//!
//! Not modelled: errors on the line, packets that arrive out of order, time-outs that grow, congestion control beyond slow
//! start and halving.

pub mod block;
#[cfg(test)]
mod block_tests;
pub mod blockback;
pub mod client;
pub mod client_machine;
pub mod config;
pub mod disk;
mod driver;
pub mod elevator;
pub mod file_set;
mod interface;
pub mod machine;
pub mod nic;
pub mod page_cache;
pub mod tcp;
pub mod wire;
mod write_back;

pub use block::BlockCounts;
pub use client::{ClientSample, Outcome};
pub use config::{
    Ask, ClientConfig, ClientMachineConfig, DiskUnitConfig, DriverCosts, GuestConfig, InterfaceConfig, Link,
    Load, MachineConfig, NetworkCosts, NicConfig, Owner, ProfilerConfig, VirtualDiskConfig,
};
pub use file_set::FileSetConfig;
pub use interface::InterfaceCounts;
pub use machine::{AppResult, IoCounts, Layer, Layers, Machine, Samples};
pub use nic::NicCounts;
