//! Guests: their kernels, applications, netfronts and virtual disks.

use vcpulab_guest::{AppConfig, AppId, IdleTick, KernelConfig};
use vcpulab_host::{DomId, Span, Table, VcpuId};
use vcpulab_io::{GuestConfig, HaltPollConfig};
use vcpulab_spec::{DomainSpec, Guest, Platform, Spec};

use crate::assemble::apps::app;
use crate::assemble::disks::virtual_disk;
use crate::assemble::files::served;
use crate::assemble::network::{driver_costs, netfront, network_costs, thread_costs};
use crate::assemble::scripts::{Channels, SyncObjects};
use crate::assemble::services::Services;
use crate::assemble::ticks;

/// The first series of Linux in which a long halt halves the next poll (`halt_poll_ns_shrink`); before, it ended polling.
const HALT_POLL_HALVES_SINCE: (u32, u32) = (6, 12);

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
    let (domain, platform, constants) = (&spec.domains[d], &spec.host.platform, &spec.host.constants);
    let owns = spec.own_nic(d).is_some() || spec.own_disk(d).is_some();
    GuestConfig {
        first_vcpu,
        kernel: KernelConfig {
            vcpus: domain.vcpus(),
            threads_per_core: match &domain.guest {
                Guest::Vm(vm) => vm.threads_per_core,
                Guest::XenDomain(_) | Guest::Daemon(_) | Guest::HostThreads(_) => 1,
            },
            apps: apps(d, spec, services, channels, delay),
            slice_ns: Span::from_ns(constants.task_slice_ns),
            idle_tick: domain.idle_tick.map(|tick| {
                let at = tick.at_ns.map_or_else(|| ticks::at(spec, d, &tick, replication), |at| at + delay);
                Box::new(IdleTick { at_ns: Some(at), ..tick })
            }),
            wake_ns: domain.wake_cpu,
            idle_ns: domain.idle_cpu,
            // Guests of KVM have their own page tables (EPT, NPT).
            page_fault_ns: Span::from_ns(match platform {
                Platform::BareMetal | Platform::Kvm(_) => 0,
                Platform::Xen(_) => constants.page_fault_ns,
            }),
        },
        working_set_bytes: domain.working_set_bytes,
        netfront: netfront(d, spec),
        network: network_costs(domain, platform, constants),
        virtual_disk: virtual_disk(d, spec),
        files: served(d, spec),
        halt_poll: halt_poll(domain, spec),
        driver: match &domain.guest {
            Guest::HostThreads(_) => Some(thread_costs(constants)),
            Guest::XenDomain(xen) if owns || xen.driver_domain => {
                Some(driver_costs(xen.forwarding, platform, constants))
            }
            Guest::XenDomain(_) | Guest::Vm(_) | Guest::Daemon(_) => None,
        },
    }
}

/// The polling of a VM's threads on a KVM host.
fn halt_poll(domain: &DomainSpec, spec: &Spec) -> Option<HaltPollConfig> {
    let (Platform::Kvm(kvm), Guest::Vm(_)) = (&spec.host.platform, &domain.guest) else { return None };
    let longest = kvm.halt_poll;
    let halves = spec.kernel().is_none_or(|kernel| (kernel.major, kernel.minor) >= HALT_POLL_HALVES_SINCE);
    (!kvm.polls_recorded && !longest.is_zero()).then_some(HaltPollConfig {
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

#[cfg(test)]
mod tests {
    use vcpulab_scenario::Scenario;

    use super::*;

    #[test]
    fn a_long_halt_ends_polling_before_6_12_and_halves_it_since() {
        let shrink = |scheduler: &str, release: &str| {
            let text = format!(
                "[host]\nhypervisor = \"kvm\"\nscheduler = \"{scheduler}\"\ngeneration = \"{release}\"\n\
                 [domain.a]\napp = [{{ kind = \"hog\" }}]\n"
            );
            let scenario =
                Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
            halt_poll(&scenario.domains[DomId(0)], &scenario).map(|poll| poll.shrink)
        };
        for release in ["5.10", "5.10.223", "5.15", "6.0", "6.1", "6.1.192", "6.5"] {
            assert_eq!(shrink("linux-cfs", release), Some(0), "{release}");
        }
        for (release, divisor) in [("6.6", 0), ("6.8.12", 0), ("6.12", 2), ("6.12.48", 2), ("7.1", 2)] {
            assert_eq!(shrink("linux-eevdf", release), Some(divisor), "{release}");
        }
    }
}
