//! Routes of packets through the host: pure, from how domains are connected. The hop of a packet is decided when a domain
//! takes it to work at, and kept with it until that work is done.

use vcpulab_host::Table;

use crate::ids::{GuestId, GuestVcpu, NetfrontId, NicId, PacketId};

/// The way of a domain's packets out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Uplink {
    /// Through a driver domain, and the number of its vCPU that takes this netfront's events.
    DriverDomain { guest: GuestId, vcpu: u32 },
    /// Through a driver in the hypervisor.
    Hypervisor,
    /// By a NIC of its own.
    OwnNic,
}

impl Uplink {
    /// The vCPU of the driver domain that the netback is on, if it goes through one.
    pub(crate) fn netback(self) -> Option<GuestVcpu> {
        match self {
            Uplink::DriverDomain { guest, vcpu } => Some(GuestVcpu { guest, number: vcpu }),
            Uplink::Hypervisor | Uplink::OwnNic => None,
        }
    }
}

/// The place in a domain from which the domain takes a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The queue of a NIC.
    Nic(NicId),
    /// The queue of the thread of that netfront's netback, where another vCPU of the domain has left the packet.
    Thread(NetfrontId),
    /// The transmit ring of that netfront, whose guest is behind the domain.
    RingOut(NetfrontId),
    /// The receive ring of the domain's own netfront.
    RingIn(NetfrontId),
    /// The send queue of the domain's own netfront.
    SendQueue(NetfrontId),
    /// The queue of packets from one task of the domain to another.
    Loopback,
}

impl Origin {
    /// Whether the domain's back ends take the packet.
    pub fn is_backend(self) -> bool {
        matches!(self, Origin::Nic(_) | Origin::Thread(_) | Origin::RingOut(_))
    }
}

/// The place to which a domain carries a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hop {
    /// No other place: the packet is for the domain itself.
    Here,
    /// The receive ring of that netfront, whose guest is behind the domain.
    RingIn(NetfrontId),
    /// The thread, on another vCPU of the domain, of that netfront's netback, which puts the packet into the receive ring.
    Thread(NetfrontId),
    /// The send queue of the domain's own netfront.
    SendQueue(NetfrontId),
    /// The transmit ring of the domain's own netfront.
    RingOut(NetfrontId),
    /// The link of that NIC, by the domain's driver.
    Link(NicId),
    /// The link of that NIC, by the hypervisor's driver.
    LinkBelow(NicId),
    /// No place: the packet came from outside for a connection that has ended, and is dropped.
    Nowhere,
}

/// A step of a packet: from the place where the domain takes it to the place where the domain carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub from: Origin,
    pub packet: PacketId,
    pub hop: Hop,
}

/// The destination of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Destination {
    /// A guest of this host.
    Guest(GuestId),
    /// A machine outside.
    Outside,
    /// No destination: the connection has ended.
    Ended,
}

/// The connections between domains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    of_guests: Table<GuestId, Option<NetfrontId>>,
    netfronts: Table<NetfrontId, (Uplink, NicId)>,
    /// Whether netbacks are threads.
    threads: bool,
}

impl Routes {
    /// Routes without guests. `threads`: netbacks are threads.
    pub fn new(threads: bool) -> Self {
        Routes { of_guests: Table::new(), netfronts: Table::new(), threads }
    }

    /// Adds the next guest, with the uplink and the NIC of its netfront if it has one.
    pub fn add_guest(&mut self, netfront: Option<(Uplink, NicId)>) {
        let netfront = netfront.map(|netfront| self.netfronts.push(netfront));
        self.of_guests.push(netfront);
    }

    /// The netfront of a guest, if it has one.
    pub fn netfront(&self, guest: GuestId) -> Option<NetfrontId> {
        self.of_guests[guest]
    }

    /// The hop of a packet that a domain takes on a vCPU.
    #[inline]
    pub fn hop(&self, at: GuestVcpu, from: Origin, to: Destination) -> Hop {
        match from {
            Origin::Loopback => Hop::Here,
            Origin::Thread(netfront) if to != Destination::Ended => Hop::RingIn(netfront),
            Origin::Nic(_) | Origin::Thread(_) | Origin::RingIn(_) => self.onward(at, None, to),
            Origin::RingOut(netfront) => self.onward(at, Some(netfront), to),
            Origin::SendQueue(own) => match self.netfronts[own] {
                (Uplink::DriverDomain { .. }, _) => Hop::RingOut(own),
                (Uplink::Hypervisor, nic) => Hop::LinkBelow(nic),
                (Uplink::OwnNic, _) => self.onward(at, Some(own), to),
            },
        }
    }

    /// The hop of a packet that came through the netfront `through` on its way out, or else (`None`) on its way in.
    fn onward(&self, at: GuestVcpu, through: Option<NetfrontId>, to: Destination) -> Hop {
        match to {
            Destination::Guest(guest) if guest == at.guest => Hop::Here,
            Destination::Guest(guest) => match self.behind(at.guest, guest) {
                Some(netfront) => self.ring(at, netfront),
                None => self.out(at.guest, through),
            },
            Destination::Ended if through.is_none() => Hop::Nowhere,
            Destination::Outside | Destination::Ended => self.out(at.guest, through),
        }
    }

    /// The hop into the ring of a netfront: by its netback, which may be a thread on another vCPU.
    fn ring(&self, at: GuestVcpu, netfront: NetfrontId) -> Hop {
        match self.netfronts[netfront].0.netback() {
            Some(netback) if self.threads && netback.number != at.number => Hop::Thread(netfront),
            _ => Hop::RingIn(netfront),
        }
    }

    /// The netfront directly behind guest `at` on the way to `destination`, if that is behind it.
    fn behind(&self, at: GuestId, destination: GuestId) -> Option<NetfrontId> {
        let mut behind = destination;
        loop {
            let netfront = self.of_guests[behind]?;
            match self.netfronts[netfront].0 {
                Uplink::DriverDomain { guest, .. } if guest == at => return Some(netfront),
                Uplink::DriverDomain { guest, .. } => behind = guest,
                Uplink::Hypervisor | Uplink::OwnNic => return None,
            }
        }
    }

    /// The hop out of the host.
    fn out(&self, at: GuestId, through: Option<NetfrontId>) -> Hop {
        let own = self.of_guests[at];
        match own.map(|netfront| (netfront, self.netfronts[netfront].0)) {
            Some((own, Uplink::DriverDomain { .. })) => Hop::SendQueue(own),
            _ => Hop::Link(through.or(own).map_or(NicId(0), |netfront| self.netfronts[netfront].1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Destination::{Ended, Guest, Outside};

    const DOM0: GuestId = GuestId(0);
    const STUB: GuestId = GuestId(3);

    /// Driver domain 0, a domain without a NIC, guest 2 behind stub domain 3, and guest 4 behind the driver domain.
    fn routes(threads: bool) -> Routes {
        let through = |guest| Some((Uplink::DriverDomain { guest, vcpu: 1 }, NicId(1)));
        let mut routes = Routes::new(threads);
        for netfront in [None, None, through(STUB), through(DOM0), through(DOM0)] {
            routes.add_guest(netfront);
        }
        routes
    }

    fn on(guest: GuestId, number: u32) -> GuestVcpu {
        GuestVcpu { guest, number }
    }

    const NIC: Origin = Origin::Nic(NicId(1));

    #[test]
    fn packets_go_down_to_their_guest_through_all_domains_between() {
        let routes = routes(false);
        let [to_guest, to_stub, to_other] = [0, 1, 2].map(NetfrontId);
        let (dom0, stub) = (on(DOM0, 0), on(STUB, 0));
        assert_eq!(routes.hop(dom0, NIC, Guest(GuestId(2))), Hop::RingIn(to_stub));
        assert_eq!(routes.hop(stub, Origin::RingIn(to_stub), Guest(GuestId(2))), Hop::RingIn(to_guest));
        assert_eq!(routes.hop(on(GuestId(2), 0), Origin::RingIn(to_guest), Guest(GuestId(2))), Hop::Here);
        assert_eq!(routes.hop(dom0, Origin::RingOut(to_stub), Guest(GuestId(4))), Hop::RingIn(to_other));
    }

    #[test]
    fn packets_for_others_go_up_and_out() {
        let routes = routes(false);
        let [to_guest, to_stub] = [0, 1].map(NetfrontId);
        let (dom0, stub) = (on(DOM0, 0), on(STUB, 0));
        assert_eq!(routes.hop(stub, Origin::RingOut(to_guest), Guest(GuestId(4))), Hop::SendQueue(to_stub));
        assert_eq!(routes.hop(stub, Origin::RingOut(to_guest), Outside), Hop::SendQueue(to_stub));
        assert_eq!(routes.hop(stub, Origin::SendQueue(to_stub), Outside), Hop::RingOut(to_stub));
        assert_eq!(routes.hop(dom0, Origin::RingOut(to_stub), Outside), Hop::Link(NicId(1)));
        let ended = routes.hop(dom0, Origin::RingOut(to_stub), Ended);
        assert_eq!(ended, Hop::Link(NicId(1)), "the link is where it ends");
        assert_eq!(routes.hop(dom0, NIC, Ended), Hop::Nowhere);
    }

    #[test]
    fn the_thread_of_a_netback_on_another_vcpu_puts_packets_into_its_ring() {
        let routes = routes(true);
        let to_other = NetfrontId(2);
        assert_eq!(routes.hop(on(DOM0, 0), NIC, Guest(GuestId(4))), Hop::Thread(to_other));
        assert_eq!(routes.hop(on(DOM0, 1), NIC, Guest(GuestId(4))), Hop::RingIn(to_other));
        // The vCPU of the thread may be offline: the first one then works for it.
        let left = Origin::Thread(to_other);
        assert_eq!(routes.hop(on(DOM0, 0), left, Guest(GuestId(4))), Hop::RingIn(to_other));
        assert_eq!(routes.hop(on(DOM0, 0), left, Ended), Hop::Nowhere);
    }
}
