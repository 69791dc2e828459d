//! NICs, the domains' interfaces to them, and the costs of packets.

use vcpulab_host::{DomId, Span, Table};
use vcpulab_io::{DriverCosts, GuestId, NetfrontConfig, NetworkCosts, NicConfig, NicId, NicOwner, Uplink};
use vcpulab_spec::{Constants, DeviceSpec, DomainSpec, Drivers, Forwarding, NetfrontSpec, Spec};

/// Segments in a packet of 64 KB, the largest that IP has.
const TSO_SEGMENTS: u32 = 44;

/// The NICs.
pub(crate) fn nics(spec: &Spec) -> Table<NicId, NicConfig> {
    let constants = &spec.host.constants;
    let config = |nic: &DeviceSpec| NicConfig {
        owner: match nic.owner {
            Some(guest) => NicOwner::Guest { guest: guest.into(), vcpu: nic.vcpu },
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
    let own = spec.nics.ids().find(|&nic| spec.nics[nic].owner == Some(domain));
    match (&spec.domains[domain].nic, own) {
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
pub(crate) fn network_costs(domain: &DomainSpec, drivers: Drivers, constants: &Constants) -> NetworkCosts {
    let owns = drivers == Drivers::BareMetal || (domain.driver_domain && domain.nic.is_none());
    // The hypervisor's own driver is called for each packet sent.
    let sends = if drivers == Drivers::Hypervisor { constants.nic_send_ns + constants.grant_ns } else { 0 };
    let offloads = domain.nic.as_ref().is_none_or(|nic| nic.checksum_offload);
    let front =
        if owns { (0, 0) } else { (constants.frontend_receive_ns, constants.frontend_send_ns + sends) };
    NetworkCosts {
        upcall_ns: Span::from_ns(constants.guest_upcall_ns),
        receive_ns: Span::from_ns(constants.stack_receive_ns + front.0),
        send_ns: Span::from_ns(constants.stack_send_ns + front.1),
        byte_ps: constants.network_byte_ps + if offloads { 0 } else { constants.checksum_byte_ps },
        loopback_ns: Span::from_ns(constants.stack_receive_ns + constants.stack_send_ns),
        hypervisor_upcall_ns: Span::from_ns(if drivers == Drivers::BareMetal {
            0
        } else {
            constants.guest_upcall_ns
        }),
        hypervisor_send_ns: Span::from_ns(if owns { 0 } else { sends }),
    }
}

/// The costs of the back ends in a domain that owns NICs.
pub(crate) fn driver_costs(domain: &DomainSpec, drivers: Drivers, constants: &Constants) -> DriverCosts {
    let bare = drivers == Drivers::BareMetal;
    DriverCosts {
        upcall_ns: Span::from_ns(if bare {
            constants.native_interrupt_ns
        } else {
            constants.driver_upcall_ns
        }),
        nic_receive_ns: Span::from_ns(constants.nic_receive_ns),
        nic_send_ns: Span::from_ns(constants.nic_send_ns),
        bridge_ns: match domain.forwarding {
            Forwarding::Bridge => Span::from_ns(constants.bridge_ns),
            Forwarding::Routing => Span::from_ns(constants.route_ns),
        },
        backend_receive_ns: Span::from_ns(constants.backend_receive_ns + constants.page_exchange_ns),
        backend_send_ns: Span::from_ns(constants.backend_send_ns + constants.grant_ns),
        bounce_ns: Span::from_ns(constants.bounce_ns),
        hypervisor_upcall_ns: Span::from_ns(if bare { 0 } else { constants.driver_upcall_ns }),
        hypervisor_receive_ns: Span::from_ns(constants.page_exchange_ns),
        hypervisor_send_ns: Span::from_ns(constants.grant_ns),
    }
}
