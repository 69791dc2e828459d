//! A checked scenario: types only. Every value is within its [`limits`], and every reference leads somewhere.
//!
//! `vcpulab-scenario` makes a [`Spec`] of a text and a text of a [`Spec`]; `vcpulab-run` runs one. Neither knows of the
//! other.
//! ```
//! use vcpulab_scenario::Scenario;
//! use vcpulab_spec::entitlements;
//!
//! let text = "
//!     host = { pcpus = 1, scheduler = 'credit' }
//!     domain.web = { weight = 768, app = [{ kind = 'hog' }] }
//!     domain.batch = { app = [{ kind = 'hog' }] }
//! ";
//! let scenario = Scenario::parse(text, "two.toml")?;
//! let spec: &vcpulab_spec::Spec = &scenario;
//! assert_eq!(spec.host.pcpus, 1);
//! assert_eq!(entitlements(spec), [Some(0.75), Some(0.25)]); // pCPUs
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod action;
mod addresses;
mod app;
mod client;
mod device;
mod domain;
mod ending;
mod entitlement;
mod group_shares;
mod host;
mod kvm;
pub mod limits;
mod platform;
mod profile;
mod spec;

pub use action::{ActionSpec, Affinity, Change, LifeChange};
pub use addresses::{AppName, Work, app_names};
pub use app::{AppSpec, AppValue, EventSpec, PHASES, PhaseSpec, Service};
pub use client::{AskSpec, ClientMachineSpec, ClientSpec};
pub use device::{BlkfrontSpec, DeviceSpec, DiskSpec, Forwarding, Medium, NetfrontSpec};
pub use domain::{DomainSpec, OnCrash};
pub use ending::Ending;
pub use entitlement::entitlements;
pub use host::{HostSpec, POOL_0, PoolSpec, Toolstack};
pub use kvm::{
    CgroupSpec, Cgroups, DAEMONS, HOST, KvmSpec, MACHINES, ROOT, SLICES, ServiceThread, ThreadKind,
    ThreadsSpec, within,
};
pub use platform::{Drivers, Guest, Platform, VmSpec, XenDomain};
pub use profile::{CONSTANTS, CUSTOM, ConstantDoc, Constants, Profile, SourceKind, Sourced};
pub use spec::Spec;
