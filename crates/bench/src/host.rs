//! The host that is measured.

use vcpulab_host::{DomainConfig, Host, HostConfig, Scheduler, Span, VcpuConfig};
use vcpulab_measure::{Keep, Meter};

use crate::size::Size;
use crate::workload::RunAndBlock;

/// A host of that size, its vCPUs all started at 0, in exact mode and with statistics.
pub fn host<S: Scheduler>(size: Size, scheduler: S) -> Host<S, RunAndBlock, Meter> {
    let domain = |number| DomainConfig {
        number,
        vcpus: vec![
            VcpuConfig { start: Some(Span::ZERO), affinity: None, ..VcpuConfig::default() };
            size.vcpus_each as usize
        ],
        ..DomainConfig::default()
    };
    let config = HostConfig {
        pcpus: size.pcpus,
        domains: (1..=i64::from(size.vcpus / size.vcpus_each)).map(domain).collect(),
        ..HostConfig::default()
    };
    let world = RunAndBlock::new(size.pcpus, size.vcpus);
    let mut host = Host::new(&config, scheduler, world, Meter::new(Keep::default(), None))
        .expect("the policy keeps the rules");
    let (context, meter) = host.observe();
    meter.reset(context);
    host
}
