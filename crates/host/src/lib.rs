//! The simulated host.
//!
//! A host has pCPUs, domains and their vCPUs, one queue of events in simulated time, and one CPU scheduler that
//! decides which vCPU runs on which pCPU and for how long. Three things plug into it, each behind one trait:
//!
//! * [`Scheduler`]: the policy. It sees the host only through [`PolicyContext`].
//! * [`World`]: what the vCPUs execute and what surrounds the host (devices, networks, clients).
//!   [`program::Programs`], the scripted vCPUs of the host contract, is the simplest one.
//! * [`Observer`]: who listens (counters, traces). `()` listens to nothing.
//!
//! [`Host`] is generic over all three, so a run pays no dynamic dispatch. With [`Costs::ZERO`] nothing but vCPU
//! programs takes time (*exact mode*, the host contract); with a hardware profile's costs, decisions, switches,
//! interrupts and cold caches do (*physical mode*). It is the same host.
//!
//! Start reading at [`scheduler`], the seam of the project; then [`host`], the engine.

pub mod action;
pub mod cache;
pub mod context;
pub mod costs;
pub mod host;
pub mod ids;
pub mod life;
pub mod mask;
pub mod observer;
pub mod params;
pub mod pools;
pub mod program;
pub mod queue;
pub mod scheduler;
pub mod table;
pub mod time;
pub mod world;

pub use action::{Action, TimedAction};
pub use cache::{CacheCounts, SetId};
pub use context::{HostState, PolicyContext, RunState, RunTimes, Work};
pub use costs::Costs;
pub use host::{Broken, DomainConfig, Host, HostConfig, VcpuConfig};
pub use ids::{DomId, PcpuId, TimerId, VcpuId};
pub use life::{DomainState, LifeEvent, VcpuState};
pub use mask::{CpuMask, PCPUS_MAX};
pub use observer::{IoKind, IoStep, Observer, StateRow, Switch, WakeCause};
pub use params::{ParamKind, ParamSpec, ParamValue, Params, Scope, TimetableEntry};
pub use pools::Pools;
pub use scheduler::{AffinityRule, Decision, HostRules, PauseRule, Placement, Rejected, Scheduler};
pub use table::{Id, Table};
pub use time::{NEVER, Span, Time};
pub use world::{Op, World, WorldContext};
