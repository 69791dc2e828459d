//! CPU scheduling policies, and the registry that everything else finds them in.
//!
//! A short policy is a file, a long one a folder whose `mod.rs` opens with the algorithm. A new policy implements
//! [`Scheduler`](vcpulab_host::Scheduler) and [`Registered`], and is one line in `registry.rs`. A new generation of a
//! policy is one line of its `GENERATIONS`: its parameters, and the rules in which it differs from the others.
//! Parameter checks, help, schema and documentation follow from the [`ParamSpec`](vcpulab_host::ParamSpec) tables.

pub mod arinc653;
pub mod atropos;
pub mod bvt;
pub mod credit;
pub mod credit2;
pub mod declared;
pub mod enhanced;
pub mod fair;
pub mod null;
pub mod policy;
pub mod registry;
pub mod round_robin;
pub mod rtds;
pub mod sedf;
pub mod toolstack;

mod list;
mod params;
mod table;

pub use declared::{Declaration, DeclaredParam, declare, declared};
pub use policy::{Generation, Policy, Registered};
pub use registry::{Runner, boxed, find, host_rules, policies, with};
pub use toolstack::{Set, Toolstack};
