//! Guests: their kernels, applications, netfronts and virtual disks.

use vcpulab_guest::{AppConfig, AppId, IdleTick, KernelConfig};
use vcpulab_host::{DomId, Span, Table, VcpuId};
use vcpulab_io::{GuestConfig, HaltPollConfig};
use vcpulab_spec::{DomainSpec, Drivers, Spec};

use crate::assemble::apps::app;
use crate::assemble::disks::virtual_disk;
use crate::assemble::files::served;
use crate::assemble::network::{driver_costs, netfront, network_costs};
use crate::assemble::scripts::{Channels, SyncObjects};
use crate::assemble::services::Services;
use crate::assemble::ticks;

/// The first halt poll (`halt_poll_ns_grow_start`).
const HALT_POLL_START: Span = Span::from_us(10);

/// The guest of a domain with its first vCPU, whose applications begin `delay` later than they would alone.
pub(crate) fn guest(
    (d, first_vcpu): (DomId, VcpuId),
    spec: &Spec,
    services: &Services,
    channels: &Channels<'_>,
    delay: Span,
    replication: u32,
) -> GuestConfig {
    let (domain, drivers, constants) = (&spec.domains[d], spec.host.drivers, &spec.host.constants);
    let mut devices = spec.nics.iter().chain(spec.disks.iter().map(|disk| &disk.device));
    let owns = devices.any(|device| device.owner == Some(d));
    GuestConfig {
        first_vcpu,
        kernel: KernelConfig {
            vcpus: domain.vcpus() as usize,
            apps: apps(d, spec, services, channels, delay),
            slice_ns: Span::from_ns(constants.task_slice_ns),
            idle_tick: domain.idle_tick.map(|tick| {
                let at = tick.at_ns.map_or_else(|| ticks::at(spec, d, &tick, replication), |at| at + delay);
                Box::new(IdleTick { at_ns: Some(at), ..tick })
            }),
            wake_ns: domain.wake_cpu,
            idle_ns: domain.idle_cpu,
            // Guests of KVM have their own page tables (EPT, NPT).
            page_fault_ns: Span::from_ns(match drivers {
                Drivers::BareMetal | Drivers::Kvm => 0,
                Drivers::Domains | Drivers::Hypervisor => constants.page_fault_ns,
            }),
        },
        working_set_bytes: domain.working_set_bytes,
        netfront: netfront(d, spec),
        network: network_costs(domain, drivers, constants),
        virtual_disk: virtual_disk(d, spec),
        files: served(d, spec),
        halt_poll: halt_poll(domain, spec),
        driver: (owns || domain.driver_domain).then(|| driver_costs(domain, drivers, constants)),
    }
}

/// The polling of a VM's threads on a KVM host: kernels before 6.12 gave it up after a long halt.
fn halt_poll(domain: &DomainSpec, spec: &Spec) -> Option<HaltPollConfig> {
    let longest = spec
        .host
        .kvm
        .as_ref()
        .map_or(Span::ZERO, |kvm| if kvm.polls_recorded { Span::ZERO } else { kvm.halt_poll });
    let is_vm = domain.threads.as_ref().is_some_and(|threads| !threads.daemon);
    let halves = spec.kernel().is_none_or(|kernel| kernel >= (6, 12));
    (is_vm && !longest.is_zero()).then_some(HaltPollConfig {
        longest,
        start: HALT_POLL_START.min(longest),
        shrink: if halves { 2 } else { 0 },
    })
}

fn apps(
    d: DomId,
    spec: &Spec,
    services: &Services,
    channels: &Channels<'_>,
    delay: Span,
) -> Table<AppId, AppConfig> {
    let domain = &spec.domains[d];
    let objects = SyncObjects::of(domain);
    let instances = domain.apps.iter().flat_map(|of| {
        let mut config = app(of, services, &objects, channels, &spec.host.constants);
        config.delay_ns += delay;
        std::iter::repeat_n(config, of.instances() as usize)
    });
    instances.collect()
}
