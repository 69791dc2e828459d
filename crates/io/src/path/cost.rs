//! CPU time of packets: in a guest's network stack, and in a driver domain, whose bridge passes them on.

use vcpulab_host::Span;

use super::route::{Hop, Origin, Step};
use crate::layers::Layers;
use crate::network::tcp::Packet;
use crate::storage::blkback::BlkbackWork;

/// Costs of packets inside a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCosts {
    /// Taking one event, however many packets came with it.
    pub upcall_ns: Span,
    /// Receiving a packet: netfront and network stack.
    pub receive_ns: Span,
    /// Sending a packet.
    pub send_ns: Span,
    /// Each byte received or sent: copies, and checksums that no NIC computes, ps.
    pub byte_ps: i64,
    /// Passing a packet between two tasks of the guest.
    pub loopback_ns: Span,
    /// The hypervisor's part of `upcall_ns`.
    pub hypervisor_upcall_ns: Span,
    /// The hypervisor's part of `send_ns`.
    pub hypervisor_send_ns: Span,
}

/// Costs of packets in a driver domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverCosts {
    /// Taking the notifications that are pending, from NICs and from guests.
    pub upcall_ns: Span,
    /// Taking a packet from a NIC: its driver.
    pub nic_receive_ns: Span,
    /// Giving a packet to a NIC: its driver.
    pub nic_send_ns: Span,
    /// Finding the way of a packet: bridge, or route.
    pub bridge_ns: Span,
    /// Putting a packet into a guest's ring, the exchange of its page included.
    pub backend_receive_ns: Span,
    /// Taking a packet from a guest's ring, the grant of its page included.
    pub backend_send_ns: Span,
    /// Moving the cache lines of a packet whose NIC or ring another vCPU of the driver domain worked at before.
    pub bounce_ns: Span,
    /// Each byte copied between a guest's memory and the domain's, ps.
    pub byte_ps: i64,
    /// A guest's notification, on the pCPU of the guest: what the hypervisor does of it.
    pub kick_ns: Span,
    /// The hypervisor's part of `upcall_ns`.
    pub hypervisor_upcall_ns: Span,
    /// The hypervisor's part of `backend_receive_ns`.
    pub hypervisor_receive_ns: Span,
    /// The hypervisor's part of `backend_send_ns`.
    pub hypervisor_send_ns: Span,
}

/// Costs of packets in a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketCosts {
    /// In its netfront and network stack.
    pub network: NetworkCosts,
    /// In its back ends; zero if it has none.
    pub driver: DriverCosts,
}

/// The contribution of the devices on a step to its cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceCosts {
    /// Number of devices that another vCPU of the domain worked at before.
    pub bounces: i64,
    /// Emulation of the NIC of the guest whose packet the domain takes, or puts into a ring.
    pub emulation: Span,
}

impl PacketCosts {
    /// CPU time of a step in the domain.
    #[inline]
    pub fn step(&self, step: &Step, packet: &Packet, devices: DeviceCosts) -> Layers {
        let PacketCosts { network, driver } = self;
        match step.from {
            Origin::Nic(_) => driver.receive(step.hop, network.receive_ns, devices),
            Origin::Thread(_) => driver.deliver(driver.bounce_ns + driver.bytes(packet), devices.emulation),
            Origin::RingOut(_) => driver.send(step.hop, packet, network.receive_ns, devices),
            Origin::RingIn(_) => driver.pass_on(network.receive(packet), step.hop, devices.emulation),
            Origin::SendQueue(_) => {
                let nic = match step.hop {
                    Hop::RingOut(_) | Hop::LinkBelow(_) => Span::ZERO,
                    _ => driver.nic_send_ns,
                };
                driver.pass_on(network.send(packet, nic), step.hop, devices.emulation)
            }
            Origin::Loopback => Layers::kernel(network.loopback_ns + network.bytes(packet), Span::ZERO),
        }
    }
}

impl NetworkCosts {
    /// Taking one event.
    pub(crate) fn upcall(&self) -> Layers {
        Layers::kernel(self.upcall_ns, self.hypervisor_upcall_ns)
    }

    fn receive(&self, packet: &Packet) -> Layers {
        Layers::kernel(self.receive_ns + self.bytes(packet), Span::ZERO)
    }

    /// Sending a packet; `nic` is for the driver of a NIC of the guest's own.
    fn send(&self, packet: &Packet, nic: Span) -> Layers {
        Layers::kernel(self.send_ns + nic + self.bytes(packet), self.hypervisor_send_ns)
    }

    fn bytes(&self, packet: &Packet) -> Span {
        Span::from_ns(i64::from(packet.bytes) * self.byte_ps / 1000)
    }
}

impl DriverCosts {
    /// Taking the pending notifications.
    pub(crate) fn upcall(&self) -> Layers {
        Layers::kernel(self.upcall_ns, self.hypervisor_upcall_ns)
    }

    /// A piece of work of the blkbacks: a page of a disk's is granted as a page of a packet's is. `emulation` is for the disk
    /// of the guest.
    pub(crate) fn blkback(&self, work: &BlkbackWork, cost: Span, emulation: Span) -> Layers {
        match work {
            BlkbackWork::Request(request) => {
                let grants = request.pages() * self.hypervisor_send_ns;
                Layers::kernel(cost, grants.min(cost)).and_application(emulation)
            }
            BlkbackWork::Response(_) => Layers::kernel(cost, Span::ZERO),
        }
    }

    /// A packet taken from a NIC. `stack` is for the domain's own network stack.
    fn receive(&self, hop: Hop, stack: Span, devices: DeviceCosts) -> Layers {
        let taken = Layers::kernel(self.nic_receive_ns + devices.bounces * self.bounce_ns, Span::ZERO);
        match hop {
            Hop::RingIn(_) => self.pass_on(taken, hop, devices.emulation),
            Hop::Here => taken.plus(&Layers::kernel(stack, Span::ZERO)),
            _ => taken.plus(&self.forward()),
        }
    }

    /// A packet taken from a netfront's ring. `stack` is for the domain's own network stack.
    fn send(&self, hop: Hop, packet: &Packet, stack: Span, devices: DeviceCosts) -> Layers {
        let (onward, exchange) = match hop {
            Hop::Link(_) => (self.nic_send_ns, Span::ZERO),
            Hop::RingIn(_) => (self.backend_receive_ns, self.hypervisor_receive_ns),
            Hop::Here => (stack, Span::ZERO),
            // The domain's own netfront, or the netback's thread, takes its time when it comes to it.
            _ => (Span::ZERO, Span::ZERO),
        };
        let bounces = devices.bounces * self.bounce_ns;
        let all = self.backend_send_ns + self.bytes(packet) + self.bridge_ns + onward + bounces;
        Layers::kernel(all, self.hypervisor_send_ns + exchange).and_application(devices.emulation)
    }

    /// A packet that has cost `taken` until now, and goes to a guest behind the domain: the bridge, and for the guest's ring
    /// the exchange of a page and the emulation of an emulated NIC.
    fn pass_on(&self, taken: Layers, hop: Hop, emulation: Span) -> Layers {
        match hop {
            Hop::RingIn(_) => taken.plus(&self.forward()).plus(&self.deliver(Span::ZERO, emulation)),
            Hop::Thread(_) => taken.plus(&self.forward()),
            _ => taken,
        }
    }

    /// The way of a packet through the bridge.
    fn forward(&self) -> Layers {
        Layers::kernel(self.bridge_ns, Span::ZERO)
    }

    /// A packet put into the ring of a guest. `cache_lines` is for a packet that another vCPU has taken.
    fn deliver(&self, cache_lines: Span, emulation: Span) -> Layers {
        let all = self.backend_receive_ns + cache_lines;
        Layers::kernel(all, self.hypervisor_receive_ns).and_application(emulation)
    }

    fn bytes(&self, packet: &Packet) -> Span {
        Span::from_ns(i64::from(packet.bytes) * self.byte_ps / 1000)
    }
}
