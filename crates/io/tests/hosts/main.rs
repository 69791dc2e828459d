//! Machines on hosts under every scheduler, compiled as one.

use vcpulab_guest::{AppConfig, KernelConfig};
use vcpulab_host::Span;

mod guests;
mod machine;
mod stub_domain;

/// The kernel of a guest with one vCPU.
fn kernel(apps: Vec<AppConfig>) -> KernelConfig {
    KernelConfig {
        vcpus: 1,
        apps: apps.into(),
        page_fault_ns: Span::ZERO,
        slice_ns: Span::from_ns(10_000_000),
        idle_tick: None,
        wake_ns: Span::ZERO,
    }
}
