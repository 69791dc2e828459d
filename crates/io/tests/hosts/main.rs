//! Machines on hosts under every scheduler, compiled as one.

use vcpulab_guest::{AppConfig, KernelConfig};
use vcpulab_host::{Params, Pools, Span};

mod guests;
mod machine;
mod stub_domain;

/// A policy that has the whole host, behind a pointer: compiled once for all policies.
fn alone(policy: &str, generation: &str, pcpus: u32) -> Pools<'static> {
    Pools::new(vec![
        vcpulab_sched::boxed(policy, generation, &Params::new(), pcpus).expect("it is registered"),
    ])
}

/// The kernel of a guest with one vCPU.
fn kernel(apps: Vec<AppConfig>) -> KernelConfig {
    KernelConfig {
        vcpus: 1,
        threads_per_core: 1,
        apps: apps.into(),
        page_fault_ns: Span::ZERO,
        slice_ns: Span::from_ns(10_000_000),
        idle_tick: None,
        wake_ns: Span::ZERO,
        idle_ns: Span::ZERO,
    }
}
