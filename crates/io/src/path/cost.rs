//! CPU time of packets: in a guest's network stack, and in a driver domain, whose bridge passes them on.

use vcpulab_host::Span;

use super::route::Hop;
use crate::layers::Layers;
use crate::network::netfront::NetfrontWork;
use crate::network::packets::Packets;
use crate::network::tcp::Packet;

/// Costs of packets inside a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkCosts {
    /// Taking one event, whatever came with it.
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

impl NetworkCosts {
    /// A piece of work of the guest's network. On a NIC of its own, `nic_send_ns` for its driver comes on top of sending.
    pub(crate) fn work(&self, work: &NetfrontWork, nic_send_ns: Span, packets: &Packets) -> Layers {
        match *work {
            NetfrontWork::Upcall => Layers::kernel(self.upcall_ns, self.hypervisor_upcall_ns),
            NetfrontWork::Receive(packet) => {
                Layers::kernel(self.receive_ns + self.bytes(&packets[packet]), Span::ZERO)
            }
            NetfrontWork::Send(packet) => {
                let all = self.send_ns + nic_send_ns + self.bytes(&packets[packet]);
                Layers::kernel(all, self.hypervisor_send_ns)
            }
        }
    }

    /// A packet from one task of the guest to another.
    pub(crate) fn loopback(&self, packet: &Packet) -> Layers {
        Layers::kernel(self.loopback_ns + self.bytes(packet), Span::ZERO)
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

    /// A packet taken from a NIC for this hop. `bounced`: another vCPU worked at the NIC before. `emulation_ns` is that of
    /// the netfront into whose ring it goes, `receive_ns` that of the domain's own network stack.
    pub(crate) fn receive(&self, hop: Hop, bounced: bool, emulation_ns: Span, receive_ns: Span) -> Layers {
        let onward = match hop {
            Hop::Ring(_) => self.pass_on(emulation_ns),
            Hop::Here => Layers::kernel(receive_ns, Span::ZERO),
            Hop::Thread(_) | Hop::Up(_) | Hop::Link(_) | Hop::Nowhere => self.forward(),
        };
        let bounce_ns = if bounced { self.bounce_ns } else { Span::ZERO };
        Layers::kernel(self.nic_receive_ns + bounce_ns, Span::ZERO).plus(&onward)
    }

    /// A packet taken from a netfront's ring for this hop. `bounces` is the number of devices that another vCPU worked at
    /// before, `emulation_ns` that of the netfront, `receive_ns` that of the domain's own network stack.
    pub(crate) fn send(
        &self,
        packet: &Packet,
        hop: Hop,
        bounces: i64,
        (emulation_ns, receive_ns): (Span, Span),
    ) -> Layers {
        let onward = match hop {
            Hop::Link(_) => self.nic_send_ns,
            Hop::Ring(_) => self.backend_receive_ns,
            Hop::Here => receive_ns,
            // The domain's own netfront, or the netback's thread, takes its time when it comes to it.
            Hop::Up(_) | Hop::Thread(_) | Hop::Nowhere => Span::ZERO,
        };
        let exchange = if matches!(hop, Hop::Ring(_)) { self.hypervisor_receive_ns } else { Span::ZERO };
        let copied = self.bytes(packet);
        let all = self.backend_send_ns + copied + self.bridge_ns + onward + bounces * self.bounce_ns;
        Layers::kernel(all, self.hypervisor_send_ns + exchange).and_application(emulation_ns)
    }

    /// Finding the way of a packet, and no more.
    pub(crate) fn forward(&self) -> Layers {
        Layers::kernel(self.bridge_ns, Span::ZERO)
    }

    /// A packet put into the ring of a guest behind the domain: the bridge, the exchange of a page, and the emulation of the
    /// guest's NIC if it is an emulated one.
    pub(crate) fn pass_on(&self, emulation_ns: Span) -> Layers {
        self.forward().plus(&self.deliver(Span::ZERO, emulation_ns))
    }

    /// A packet that another vCPU has left to the netback's thread, put into the guest's ring: its cache lines have to come
    /// over.
    pub(crate) fn deliver_from_afar(&self, packet: &Packet, emulation_ns: Span) -> Layers {
        self.deliver(self.bounce_ns + self.bytes(packet), emulation_ns)
    }

    fn bytes(&self, packet: &Packet) -> Span {
        Span::from_ns(i64::from(packet.bytes) * self.byte_ps / 1000)
    }

    fn deliver(&self, besides: Span, emulation_ns: Span) -> Layers {
        let all = self.backend_receive_ns + besides;
        Layers::kernel(all, self.hypervisor_receive_ns).and_application(emulation_ns)
    }
}
