//! The I/O path, and with it everything around the vCPUs of a host.
//!
//! A packet from a client crosses a link to a NIC, waits there until the driver domain's vCPU has been given a pCPU and has
//! taken the interrupt, is put into the finite ring of a guest's netfront, and an event channel wakes the guest; answers go
//! the other way. The `network` has all of that, with TCP and the clients that begin conversations; the `storage` has
//! virtual disks and disks, whose requests take a way like that of packets. [`Machine`] puts both together with the guest
//! kernels as the [`World`](vcpulab_host::World) of a host.
//!
//! The effects of batching, wake-ups and cold caches on throughput come out of this; nothing here knows a scheduler.
//!
//! Not modelled: errors on the link, packets that arrive out of order, time-outs that grow, congestion control beyond slow
//! start and halving.

mod config;
mod driver_domain;
mod ids;
mod interrupts;
mod layers;
mod machine;
mod network;
mod path;
mod sources;
mod storage;

pub use config::{GuestConfig, MachineConfig, ProfilerConfig};
pub use ids::{BlkfrontId, ClientId, ClientMachineId, DiskId, GuestId, NetfrontId, NicId};
pub use interrupts::Interrupts;
pub use layers::{Layer, Layers};
pub use machine::halt_poll::HaltPollConfig;
pub use machine::readings::Owner;
pub use machine::results::{AppResult, IoCounts};
pub use machine::{Machine, Samples};
pub use network::client::{Ask, ClientConfig, ClientSample, Load, Outcome};
pub use network::client_machine::ClientMachineConfig;
pub use network::netback::Netbacks;
pub use network::netfront::{NetfrontConfig, NetfrontCounts};
pub use network::nic::{NicConfig, NicCounts, NicOwner};
pub use path::cost::{DriverCosts, NetworkCosts};
pub use path::legs::{Followed, Leg, Place};
pub use path::route::Uplink;
pub use storage::blkback::BlkbackCosts;
pub use storage::blkfront::{BlkfrontConfig, BlkfrontCosts, BlkfrontCounts};
pub use storage::disk::{DiskConfig, DiskCounts, DiskKind};
pub use storage::elevator::ElevatorConfig;
pub use storage::file_set::FileSetConfig;
pub use storage::page_cache::CacheConfig;
pub use storage::{DiskOwner, DiskUnitConfig, VirtualDiskConfig};
