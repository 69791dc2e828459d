//! NICs, the domains' interfaces to them, and the costs of packets.

use vcpulab_host::{DomId, PcpuId, Span, Table};
use vcpulab_io::{
    DriverCosts, GuestId, Interrupts, NetfrontConfig, NetworkCosts, NicConfig, NicId, NicOwner, Uplink,
};
use vcpulab_spec::{
    Constants, DeviceSpec, DomainSpec, Drivers, Forwarding, Guest, NetfrontSpec, Platform, Spec,
};

/// Segments in a packet of 64 KB, the largest that IP has.
const TSO_SEGMENTS: u32 = 44;

/// The NICs.
pub(crate) fn nics(spec: &Spec) -> Table<NicId, NicConfig> {
    let constants = &spec.host.constants;
    let config = |nic: &DeviceSpec| NicConfig {
        owner: match nic.owner.map(|owner| (owner, &spec.domains[owner].guest)) {
            Some((owner, Guest::HostThreads(_))) => NicOwner::Host {
                guest: owner.into(),
                receive_ns: Span::from_ns(
                    constants.nic_receive_ns + constants.bridge_ns + constants.kvm_tap_ns,
                ),
                interrupts: nic
                    .pcpu
                    .map_or(Interrupts::Spread(spec.host.pcpus), |p| Interrupts::Pcpu(PcpuId(p))),
            },
            Some((owner, _)) => NicOwner::Guest { guest: owner.into(), vcpu: nic.vcpu },
            None => NicOwner::Hypervisor {
                receive_ns: Span::from_ns(
                    constants.nic_receive_ns + constants.bridge_ns + constants.page_exchange_ns,
                ),
            },
        },
        bits_per_s: constants.nic_bits_per_s,
        interrupt_gap_ns: Span::from_ns(constants.nic_interrupt_gap_ns),
        latency_ns: Span::from_ns(constants.link_latency_ns),
        ring_slots: constants.ring_slots as usize,
    };
    spec.nics.iter().map(config).collect()
}

/// A domain's interface. A domain that owns a NIC and has no other interface has one to that.
pub(crate) fn netfront(domain: DomId, spec: &Spec) -> Option<NetfrontConfig> {
    let ring_slots = spec.host.constants.ring_slots as usize;
    let config = |netfront: &NetfrontSpec, uplink| NetfrontConfig {
        uplink,
        nic: netfront.nic,
        vcpu: netfront.vcpu,
        ring_slots,
        segments_max: if netfront.tso { TSO_SEGMENTS } else { 1 },
        emulation_ns: Span::from_ns(if netfront.emulated { spec.host.constants.emulation_ns } else { 0 }),
    };
    match (&spec.domains[domain].nic, spec.own_nic(domain)) {
        (Some(netfront), _) if netfront.driver.is_some() => {
            let guest = GuestId::from(netfront.driver?);
            Some(config(netfront, Uplink::DriverDomain { guest, vcpu: netfront.driver_vcpu }))
        }
        (Some(netfront), Some(_)) => Some(config(netfront, Uplink::OwnNic)),
        (Some(netfront), None) => Some(config(netfront, Uplink::Hypervisor)),
        (None, Some(nic)) => {
            let own = NetfrontSpec {
                driver: None,
                nic,
                vcpu: spec.nics[nic].vcpu,
                driver_vcpu: 0,
                tso: false,
                checksum_offload: true,
                emulated: false,
            };
            Some(config(&own, Uplink::OwnNic))
        }
        (None, None) => None,
    }
}

/// The costs of the network inside a domain.
pub(crate) fn network_costs(domain: &DomainSpec, platform: &Platform, constants: &Constants) -> NetworkCosts {
    let owns = *platform == Platform::BareMetal || (domain.has_back_ends() && domain.nic.is_none());
    // The hypervisor's own driver is called for each packet sent.
    let sends = match platform {
        Platform::Xen(Drivers::Hypervisor) => constants.nic_send_ns + constants.grant_ns,
        Platform::Xen(Drivers::Domains) | Platform::Kvm(_) | Platform::BareMetal => 0,
    };
    let offloads = domain.nic.as_ref().is_none_or(|nic| nic.checksum_offload);
    let front =
        if owns { (0, 0) } else { (constants.frontend_receive_ns, constants.frontend_send_ns + sends) };
    // On a KVM host the guest takes its interrupts itself, after an exit.
    let (exit, hypervisor_upcall) = match platform {
        Platform::Kvm(_) if domain.guest.threads().is_some() => {
            (constants.kvm_exit_ns, constants.kvm_exit_ns)
        }
        Platform::Kvm(_) | Platform::BareMetal => (0, 0),
        Platform::Xen(_) => (0, constants.guest_upcall_ns),
    };
    NetworkCosts {
        upcall_ns: Span::from_ns(constants.guest_upcall_ns + exit),
        receive_ns: Span::from_ns(constants.stack_receive_ns + front.0),
        send_ns: Span::from_ns(constants.stack_send_ns + front.1),
        byte_ps: constants.network_byte_ps + if offloads { 0 } else { constants.checksum_byte_ps },
        loopback_ns: Span::from_ns(constants.stack_receive_ns + constants.stack_send_ns),
        hypervisor_upcall_ns: Span::from_ns(hypervisor_upcall),
        hypervisor_send_ns: Span::from_ns(if owns { 0 } else { sends }),
    }
}

/// The costs of the back ends in a domain that owns NICs.
pub(crate) fn driver_costs(
    forwarding: Forwarding,
    platform: &Platform,
    constants: &Constants,
) -> DriverCosts {
    let bare = *platform == Platform::BareMetal;
    DriverCosts {
        upcall_ns: Span::from_ns(if bare {
            constants.native_interrupt_ns
        } else {
            constants.driver_upcall_ns
        }),
        nic_receive_ns: Span::from_ns(constants.nic_receive_ns),
        nic_send_ns: Span::from_ns(constants.nic_send_ns),
        bridge_ns: match forwarding {
            Forwarding::Bridge => Span::from_ns(constants.bridge_ns),
            Forwarding::Routing => Span::from_ns(constants.route_ns),
        },
        backend_receive_ns: Span::from_ns(constants.backend_receive_ns + constants.page_exchange_ns),
        backend_send_ns: Span::from_ns(constants.backend_send_ns + constants.grant_ns),
        bounce_ns: Span::from_ns(constants.bounce_ns),
        byte_ps: 0,
        kick_ns: Span::ZERO,
        hypervisor_upcall_ns: Span::from_ns(if bare { 0 } else { constants.driver_upcall_ns }),
        hypervisor_receive_ns: Span::from_ns(constants.page_exchange_ns),
        hypervisor_send_ns: Span::from_ns(constants.grant_ns),
    }
}

/// The costs of the threads that serve VMs of a KVM host: all of it is the host's kernel.
pub(crate) fn thread_costs(constants: &Constants) -> DriverCosts {
    DriverCosts {
        upcall_ns: Span::from_ns(constants.kvm_thread_wake_ns),
        nic_receive_ns: Span::from_ns(constants.nic_receive_ns),
        nic_send_ns: Span::from_ns(constants.nic_send_ns),
        bridge_ns: Span::from_ns(constants.bridge_ns),
        backend_receive_ns: Span::from_ns(constants.kvm_vhost_receive_ns),
        backend_send_ns: Span::from_ns(constants.kvm_vhost_send_ns),
        // A NIC has a queue for each pCPU.
        bounce_ns: Span::ZERO,
        byte_ps: constants.copy_byte_ps,
        kick_ns: Span::from_ns(constants.kvm_exit_ns),
        ..DriverCosts::default()
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_scenario::Scenario;

    use crate::{RunOptions, run};

    const SENDERS: &str = "tcp-sender\", delay = \"5us";
    const RECEIVERS: &str = "tcp-receiver";

    /// The share of the time, percent, for which each vCPU of a Dom0 with two is busy that serves two guests with this
    /// application. `second` is what the second one's interface says besides.
    fn busy(host: &str, app: &str, second: &str) -> [i64; 2] {
        busy_while(host, app, second, "")
    }

    /// Busy time of each vCPU of the Dom0, as from `busy`, while these actions happen.
    fn busy_while(host: &str, app: &str, second: &str, actions: &str) -> [i64; 2] {
        let guest = |name: &str, nic: &str| {
            format!(
                "[domain.{name}]\nnic = {{ driver_domain = \"dom0\"{nic} }}\napp = [{{ kind = \"{app}\" }}]\n"
            )
        };
        let stream = |to: &str| match app {
            RECEIVERS => {
                format!("[client.to-{to}]\nkind = \"stream\"\nserver = \"{to}\"\ngap = \"20us\"\n")
            }
            _ => String::new(),
        };
        let text = format!(
            "[run]\nduration = \"50ms\"\nwarmup = \"20ms\"\n[host]\npcpus = 4\nscheduler = \"credit\"\n{host}\n\
             [domain.dom0]\ndriver_domain = true\nvcpus = 2\n{}{}{}{}{actions}",
            guest("a", ""),
            guest("b", second),
            stream("a"),
            stream("b")
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
        let of_dom0 = results.vcpus.iter().filter(|row| row.domain == "dom0");
        let shares: Vec<_> = of_dom0.map(|row| 100 * row.running_ns / row.elapsed_ns).collect();
        shares.try_into().unwrap()
    }

    const THREADS: &str = "profile = \"generic\"";
    const OLD_MACHINE: &str = "profile = \"dl360\"";
    const OLD_RELEASE: &str = "profile = \"generic\"\ngeneration = \"xen3.3.0\"";

    #[test]
    fn netbacks_are_spread_over_the_vcpus_of_their_driver_domain() {
        for app in [SENDERS, RECEIVERS] {
            let [first, second] = busy(THREADS, app, "");
            assert!(first > 15 && second > 15, "{app}: {first} % and {second} %");
        }
    }

    #[test]
    fn a_netback_is_where_its_interface_says() {
        for app in [SENDERS, RECEIVERS] {
            let [first, second] = busy(THREADS, app, ", driver_vcpu = 0");
            assert!(first > 30 && second == 0, "{app}: {first} % and {second} %");
        }
    }

    #[test]
    fn a_thread_takes_its_part_of_receiving_from_the_vcpu_of_the_interrupt() {
        let [alone, _] = busy(THREADS, RECEIVERS, ", driver_vcpu = 0");
        let [beside, _] = busy(THREADS, RECEIVERS, "");
        assert!(beside < alone - 5, "{beside} % beside a thread on the other vCPU, {alone} % without");
    }

    #[test]
    fn a_vcpu_that_goes_offline_leaves_its_netbacks_to_the_first() {
        let offline = "[[action]]\nat = \"20ms\"\nop = \"offline\"\ndomain = \"dom0\"\nvcpu = 1\n";
        let online = offline.replace("off", "on").replace("20ms", "45ms");
        for app in [SENDERS, RECEIVERS] {
            let [alone, _] = busy(THREADS, app, ", driver_vcpu = 0");
            let [first, second] = busy_while(THREADS, app, "", offline);
            assert!(first > alone - 8 && second == 0, "{app}: {first} % and {second} %");
            let [_, second] = busy_while(THREADS, app, "", &format!("{offline}{online}"));
            assert!(second > 10, "{app}: it has them back: {second} %");
        }
    }

    #[test]
    fn a_netback_that_waits_for_room_in_the_nic_of_another_vcpu_goes_on() {
        let pair = |name: &str, vcpu: u32| {
            format!(
                "[domain.{name}]\nnic = {{ driver_domain = \"dom0\", driver_vcpu = {vcpu} }}\n\
                 app = [{{ kind = \"web-server\" }}]\n[client.of-{name}]\nkind = \"closed-loop\"\n\
                 server = \"{name}\"\nusers = 40\nthink = \"1ms\"\nfile_size = \"20KB\"\n"
            )
        };
        let text = format!(
            "[run]\nduration = \"1s\"\nwarmup = \"500ms\"\n[host]\npcpus = 4\nscheduler = \"credit\"\n\
             profile = \"generic\"\ncosts = {{ nic_bits_per_s = 10_000_000, ring_slots = 32 }}\n\
             [domain.dom0]\ndriver_domain = true\nvcpus = 2\n{}{}",
            pair("a", 0),
            pair("b", 1)
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
        let completed = |domain| results.apps.iter().find(|row| row.domain == domain).unwrap().completed;
        let [a, b] = [completed("a"), completed("b")];
        assert!(2 * b > a, "of a: {a}, of b: {b}");
    }

    #[test]
    fn tasklets_are_all_on_the_first_vcpu_with_all_that_is_received() {
        for host in [OLD_MACHINE, OLD_RELEASE] {
            let [first, second] = busy(host, SENDERS, "");
            assert!(first > 30 && second == 0, "{host}: {first} % and {second} %");
        }
        let [_, sends] = busy(OLD_MACHINE, SENDERS, ", driver_vcpu = 1");
        let [_, receives] = busy(OLD_MACHINE, RECEIVERS, ", driver_vcpu = 1");
        assert!(
            4 * receives < 3 * sends,
            "what is received stays: {receives} %, of what is sent {sends} % are there"
        );
    }
}
