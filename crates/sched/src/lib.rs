//! CPU scheduling policies, and the registry that everything else finds them in.
//!
//! A short policy is a file, a long one a folder whose `mod.rs` opens with the algorithm. A new policy implements
//! [`Scheduler`](vcpulab_host::Scheduler) and [`Registered`], and has an entry in `registry.rs`. A new generation of a
//! policy is one line of its `GENERATIONS`: its parameters, and the rules in which it differs from the others.
//! Parameter checks, help, schema and documentation follow from the [`ParamSpec`] tables.
//! ```
//! use vcpulab_host::program::{Program, Programs, Step};
//! use vcpulab_host::{DomainConfig, Host, HostConfig, Params, Pools, Span, Time, VcpuConfig, VcpuId};
//!
//! let vcpu = VcpuConfig { start: Some(Span::ZERO), ..VcpuConfig::default() };
//! let domain = |number| DomainConfig { number, vcpus: vec![vcpu.clone()], ..DomainConfig::default() };
//! let config = HostConfig { pcpus: 1, domains: vec![domain(1), domain(2)], ..HostConfig::default() };
//! let guests = [VcpuId(1), VcpuId(2)]; // after the idle vCPU of the pCPU
//! let mut programs = Programs::default();
//! for v in guests {
//!     programs.set(v, Program { steps: vec![Step::Hog], repeat: true });
//! }
//! let credit = vcpulab_sched::boxed("credit", "xen4.17", &Params::new(), 1).ok_or("no such policy")?;
//! let mut host = Host::new(&config, Pools::new(vec![credit]), programs, ())?;
//! host.run_until(Time::ZERO + Span::from_ms(45))?;
//! // Slices of 30 ms: the second runs now.
//! assert_eq!(guests.map(|v| host.context().is_executing(v)), [false, true]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod declared;
pub mod linux;
pub mod param_spec;
pub mod policy;
pub mod proposal;
pub mod registry;
pub mod role;
pub mod roles;
pub mod round_robin;
pub mod toolstack;
pub mod width;
pub mod xen;

mod list;
mod params;
mod table;

pub use declared::{Declaration, DeclaredParam, declare, declared};
pub use param_spec::{ParamKind, ParamSpec};
pub use policy::{Generation, Policy, Registered};
pub use proposal::{Proposal, Refusal};
pub use registry::{Runner, boxed, check, find, host_rules, policies, shortest_interval, width, with};
pub use role::{GroupWeight, Part, Per, ReservationPart, ReservedOn, Role};
pub use roles::{Member, fair_shares};
pub use toolstack::{Set, Toolstack};
pub use width::Width;
