//! Disks, and the domains' virtual disks on them.

use std::collections::BTreeSet;

use vcpulab_host::{DomId, Id, PcpuId, Span, Table};
use vcpulab_io::{
    BlkbackCosts, BlkfrontConfig, BlkfrontCosts, CacheConfig, DiskConfig, DiskId, DiskKind, DiskOwner,
    DiskUnitConfig, ElevatorConfig, Interrupts, VirtualDiskConfig,
};
use vcpulab_spec::{Constants, DeviceSpec, DiskSpec, DomainSpec, Guest, Medium, Platform, Spec};

/// The disks, and the stub domains that virtual disks go through.
pub(crate) fn disks(spec: &Spec) -> Table<DiskId, DiskUnitConfig> {
    let constants = &spec.host.constants;
    let costs = match spec.host.platform {
        Platform::Kvm(_) => BlkbackCosts {
            request_ns: Span::from_ns(constants.kvm_disk_request_ns),
            grant_ns: Span::ZERO,
            response_ns: Span::from_ns(constants.kvm_disk_response_ns),
        },
        Platform::Xen(_) | Platform::BareMetal => BlkbackCosts {
            request_ns: Span::from_ns(constants.blockback_request_ns),
            grant_ns: Span::from_ns(constants.grant_ns),
            response_ns: Span::from_ns(constants.blockback_response_ns),
        },
    };
    let unit = |of: &DiskSpec| DiskUnitConfig {
        disk: Some(disk(of.medium, constants)),
        owner: owner(&of.device, spec),
        costs,
    };
    // A stub domain has no driver of a disk: a request goes on through its blkfront, which costs that.
    let stub = |stub: DomId| DiskUnitConfig {
        disk: None,
        owner: DiskOwner::Guest { guest: stub.into(), vcpu: stub_vcpu(stub, spec) },
        costs: BlkbackCosts { request_ns: Span::ZERO, ..costs },
    };
    spec.disks.iter().map(unit).chain(stubs(spec).map(stub)).collect()
}

fn owner(device: &DeviceSpec, spec: &Spec) -> DiskOwner {
    let Some(owner) = device.owner else { return DiskOwner::Hypervisor };
    match spec.domains[owner].guest {
        Guest::HostThreads(_) => DiskOwner::Host {
            guest: owner.into(),
            complete_ns: Span::from_ns(spec.host.constants.kvm_disk_complete_ns),
            interrupts: device.pcpu.map_or(Interrupts::OfReceiver, |p| Interrupts::Pcpu(PcpuId(p))),
        },
        _ => DiskOwner::Guest { guest: owner.into(), vcpu: device.vcpu },
    }
}

/// The vCPU of a stub domain that takes the events of its own virtual disk.
fn stub_vcpu(stub: DomId, spec: &Spec) -> u32 {
    spec.domains[stub].disk.as_ref().map_or(0, |disk| disk.vcpu)
}

/// The stub domains that virtual disks go through, each once, in order.
fn stubs(spec: &Spec) -> impl Iterator<Item = DomId> {
    let through = |domain: &DomainSpec| domain.disk.as_ref().filter(|disk| disk.disk.is_none())?.driver;
    let stubs: BTreeSet<DomId> = spec.domains.iter().filter_map(through).collect();
    stubs.into_iter()
}

fn disk(medium: Medium, constants: &Constants) -> DiskConfig {
    DiskConfig {
        kind: match medium {
            Medium::Spindle => DiskKind::Spindle {
                bytes_per_s: constants.disk_bytes_per_s,
                track_seek_ns: Span::from_ns(constants.disk_track_seek_ns),
                average_seek_ns: Span::from_ns(constants.disk_average_seek_ns),
                rotations_per_min: constants.disk_rotations_per_min,
                write_cache: constants.disk_write_cache == 1,
            },
            Medium::Flash => DiskKind::Flash {
                latency_ns: Span::from_ns(constants.ssd_latency_ns),
                bytes_per_s: constants.ssd_bytes_per_s,
                channels: constants.ssd_channels as usize,
            },
        },
        capacity_bytes: constants.disk_capacity_bytes as u64,
        queue_depth: constants.disk_queue_depth as usize,
        elevator: ElevatorConfig::LINUX,
    }
}

/// A domain's virtual disk. A domain that owns a disk and has no virtual one has it straight on that.
pub(crate) fn virtual_disk(domain: DomId, spec: &Spec) -> Option<VirtualDiskConfig> {
    let constants = &spec.host.constants;
    let own = spec.own_disk(domain);
    let domain = &spec.domains[domain];
    let exit = if domain.guest.threads().is_some() { constants.kvm_exit_ns } else { 0 };
    let costs = BlkfrontCosts {
        upcall_ns: Span::from_ns(constants.guest_upcall_ns + exit),
        request_ns: Span::from_ns(constants.block_request_ns),
        response_ns: Span::from_ns(constants.block_response_ns),
        copy_ps_per_byte: constants.copy_byte_ps,
    };
    let cache = CacheConfig::linux(domain.page_cache_bytes);
    match (&domain.disk, own) {
        (Some(disk), _) if spec.host.platform != Platform::BareMetal => Some(VirtualDiskConfig {
            blkfront: BlkfrontConfig::split(costs, cache),
            disk: disk.disk.unwrap_or_else(|| {
                let before = stubs(spec).take_while(|&stub| Some(stub) != disk.driver).count();
                DiskId::from_index(spec.disks.len() + before)
            }),
            vcpu: disk.vcpu,
            // A stub domain's blkback is where the requests go on from.
            driver_vcpu: match (disk.disk, disk.driver) {
                (None, Some(stub)) => stub_vcpu(stub, spec),
                _ => disk.driver_vcpu,
            },
            emulation_ns: Span::from_ns(if disk.emulated { constants.emulation_ns } else { 0 }),
        }),
        (given, Some(own)) => Some(VirtualDiskConfig {
            blkfront: BlkfrontConfig::straight(costs, cache),
            disk: own,
            driver_vcpu: spec.disks[own].device.vcpu,
            vcpu: given.as_ref().map_or(spec.disks[own].device.vcpu, |disk| disk.vcpu),
            emulation_ns: Span::ZERO,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_scenario::Scenario;

    use crate::{RunOptions, run};

    /// The share of the time, percent, for which each vCPU of a Dom0 with two is busy that serves the virtual disks of two
    /// guests, and what each of these reads. `second` is what the second one's disk says besides.
    fn busy(profile: &str, second: &str, actions: &str) -> ([i64; 2], [u64; 2]) {
        let guest = |name: &str, disk: &str| {
            format!(
                "[domain.{name}]\ndisk = {{ driver_domain = \"dom0\"{disk} }}\n\
                 app = [{{ kind = \"iozone\", operation = \"read\", direct = true, record_size = \"4KiB\" }}]\n"
            )
        };
        let text = format!(
            "[run]\nduration = \"50ms\"\nwarmup = \"20ms\"\n[host]\npcpus = 4\nscheduler = \"credit\"\n\
             profile = \"{profile}\"\n[disk.ssd]\ndriver_domain = \"dom0\"\nkind = \"ssd\"\n\
             [domain.dom0]\ndriver_domain = true\nvcpus = 2\n{}{}{actions}",
            guest("a", ""),
            guest("b", second)
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
        let of_dom0 = results.vcpus.iter().filter(|row| row.domain == "dom0");
        let shares: Vec<_> = of_dom0.map(|row| 100 * row.running_ns / row.elapsed_ns).collect();
        let read: Vec<_> = results.apps.iter().map(|row| row.completed).collect();
        (shares.try_into().unwrap(), read.try_into().unwrap())
    }

    #[test]
    fn blkbacks_are_spread_but_what_the_disk_completes_stays() {
        let ([first, second], _) = busy("generic", "", "");
        assert!(first > second && second > 3, "{first} % and {second} %");
        let ([all, none], _) = busy("generic", ", driver_vcpu = 0", "");
        assert!(all > first && none == 0, "{all} % and {none} %");
    }

    #[test]
    fn in_old_kernels_blkbacks_are_on_the_first_vcpu_unless_told_otherwise() {
        let ([_, none], _) = busy("dl360", "", "");
        let ([_, some], _) = busy("dl360", ", driver_vcpu = 1", "");
        assert!(none == 0 && some > 3, "{none} % and {some} %");
    }

    #[test]
    fn a_vcpu_that_goes_offline_leaves_its_blkbacks_to_the_first() {
        let offline = "[[action]]\nat = \"20ms\"\nop = \"offline\"\ndomain = \"dom0\"\nvcpu = 1\n";
        let ([_, second], read) = busy("generic", "", offline);
        assert_eq!(second, 0);
        assert!(read.iter().all(|&records| records > 350), "{read:?}");
    }
}
