//! The simulated host.
//!
//! A host has pCPUs, domains and their vCPUs, one queue of events in simulated time, and one CPU scheduler that
//! decides which vCPU runs on which pCPU and for how long. Three things are put into it, each behind one trait:
//!
//! * [`Scheduler`]: the policy. It sees the host only through a [`PolicyContext`].
//! * [`World`]: the programs of the vCPUs, and the surroundings of the host (devices, networks, clients).
//!   [`program::Programs`], the scripted vCPUs of the host contract, is the simplest one.
//! * [`Observer`]: the counters and traces of a run. `()` observes nothing.
//!
//! [`Host`] is generic over all three, so a run pays no dynamic dispatch. With [`Costs::ZERO`] nothing but vCPU
//! programs takes time (*exact mode*, the host contract); with a hardware profile's costs, decisions, switches,
//! interrupts and cold caches do (*physical mode*). It is the same host.
//!
//! Start reading at [`scheduler`], the seam of the project; then [`views`], what each of the three sees; [`host`], the
//! engine; [`accounting`], where each nanosecond goes; and [`speed`],
//! how much work is done in it.
//! A policy of its own, for a host with as many vCPUs as pCPUs, each on its own:
//!
//! ```
//! use vcpulab_host::program::{Program, Programs, Step};
//! use vcpulab_host::*;
//!
//! struct OneByOne;
//!
//! impl Scheduler for OneByOne {
//!     fn rules(&self) -> HostRules {
//!         HostRules::XEN_4_17
//!     }
//!     fn add_pcpu(&mut self, _: &mut PolicyContext, _: PcpuId) {}
//!     fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
//!         let p = self.pick(ctx, v);
//!         ctx.set_processor(v, p);
//!     }
//!     fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
//!         ctx.raise_reschedule(ctx.processor(v));
//!     }
//!     fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
//!         ctx.raise_reschedule(ctx.processor(v));
//!     }
//!     fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
//!         let its = ctx.pool_vcpus().find(|&v| ctx.runnable(v) && ctx.processor(v) == p);
//!         Decision { next: its.unwrap_or(ctx.idle(p)), slice: Slice::Unlimited }
//!     }
//!     fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
//!         PcpuId(v.0 - ctx.pcpu_count())
//!     }
//! }
//!
//! let vcpu = VcpuConfig { start: Some(Span::ZERO), ..VcpuConfig::default() };
//! let domain = DomainConfig { vcpus: vec![vcpu; 2], ..DomainConfig::default() };
//! let config = HostConfig { pcpus: 2, domains: vec![domain], ..HostConfig::default() };
//! let mut programs = Programs::default();
//! let half = vec![Step::Run(Span::from_ms(1)), Step::Block(Span::from_ms(1))];
//! programs.set(VcpuId(2), Program { steps: vec![Step::Hog], repeat: true });
//! programs.set(VcpuId(3), Program { steps: half, repeat: true });
//!
//! let mut host = Host::new(&config, OneByOne, programs, ())?;
//! host.run_until(Time::ZERO + Span::from_ms(10))?;
//! let running = [VcpuId(2), VcpuId(3)].map(|v| host.context().run_times(v).running_ns);
//! assert_eq!(running, [Span::from_ms(10), Span::from_ms(5)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod accounting;
mod accounts;
pub mod action;
mod affinities;
mod broken;
pub mod cache;
mod config;
pub mod core_scheduling;
pub mod costs;
mod domain;
pub mod groups;
pub mod hardware;
pub mod host;
pub mod ids;
pub mod lifecycle;
pub mod listing;
mod locks;
pub mod mask;
pub mod observer;
mod outbox;
pub mod params;
pub mod placement;
pub mod pools;
pub mod program;
pub mod queue;
pub mod report;
pub mod scheduler;
pub mod speed;
pub mod state;
pub mod table;
pub mod time;
pub mod toolstack;
pub mod topology;
pub mod units;
mod vcpu;
pub mod views;
pub mod world;

pub use action::{Acted, Action, TimedAction};
pub use broken::Broken;
pub use cache::{CacheCounts, SetId};
pub use config::{Creation, DomainConfig, Granularity, HostConfig, Numbering, TopologyConfig, VcpuConfig};
pub use costs::Costs;
pub use domain::LifeEvent;
pub use groups::{Class, GroupConfig, Isolation, Membership, ThreadConfig, ThreadMode, Throttling};
pub use hardware::{Bound, Governor, Hardware};
pub use host::{Busiest, Host};
pub use ids::{DomId, GroupId, PartId, PcpuId, PoolId, TimerId, VcpuId};
pub use listing::{DomainState, VcpuState};
pub use mask::{CpuMask, PCPUS_MAX};
pub use observer::{Observer, Switch};
pub use params::{ParamValue, Params, Scope, TimetableEntry};
pub use pools::Pools;
pub use report::{IoKind, IoStep, StateRow};
pub use scheduler::{AffinityRule, Decision, HostRules, PauseRule, Placement, Rejected, Scheduler, Slice};
pub use speed::Slowed;
pub use state::{HostState, Work};
pub use table::{Id, Table};
pub use time::{NEVER, Span, Time};
pub use vcpu::{RunState, RunTimes, WakeCause};
pub use views::policy::PolicyContext;
pub use views::world::WorldContext;
pub use world::{Op, World};
