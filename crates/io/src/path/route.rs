//! Routes of packets through the host: pure, from how domains are connected. The hop of a packet is decided when a domain
//! takes it to work at, and kept with it until that work is done.

use vcpulab_host::Table;

use crate::ids::{GuestId, NetfrontId, NicId};

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

/// The next step of a packet's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hop {
    /// No step: the packet is for the guest it is in.
    Here,
    /// Into the ring of that netfront, whose guest is behind this one.
    Ring(NetfrontId),
    /// To the thread, on another vCPU of this domain, of that netfront's netback, which puts it into the ring.
    Thread(NetfrontId),
    /// On through the guest's own netfront.
    Up(NetfrontId),
    /// Onto that NIC's link.
    Link(NicId),
    /// No step: the packet came from outside for a connection that has ended, and is dropped.
    Nowhere,
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
}

impl Routes {
    /// Adds the next guest, with the uplink and the NIC of its netfront if it has one.
    pub fn add_guest(&mut self, netfront: Option<(Uplink, NicId)>) {
        let netfront = netfront.map(|netfront| self.netfronts.push(netfront));
        self.of_guests.push(netfront);
    }

    /// The netfront of a guest, if it has one.
    pub fn netfront(&self, guest: GuestId) -> Option<NetfrontId> {
        self.of_guests[guest]
    }

    /// The hop from guest `at` of a packet that came through the netfront `from` of a guest behind it, or else (`None`) from a
    /// NIC or through the guest's own netfront.
    pub fn hop(&self, at: GuestId, from: Option<NetfrontId>, to: Destination) -> Hop {
        match to {
            Destination::Guest(guest) if guest == at => Hop::Here,
            Destination::Guest(guest) => self.behind(at, guest).map_or_else(|| self.out(at, from), Hop::Ring),
            Destination::Ended if from.is_none() => Hop::Nowhere,
            Destination::Outside | Destination::Ended => self.out(at, from),
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
    fn out(&self, at: GuestId, from: Option<NetfrontId>) -> Hop {
        let own = self.of_guests[at];
        match own.map(|netfront| (netfront, self.netfronts[netfront].0)) {
            Some((own, Uplink::DriverDomain { .. })) => Hop::Up(own),
            _ => Hop::Link(from.or(own).map_or(NicId(0), |netfront| self.netfronts[netfront].1)),
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
    fn routes() -> Routes {
        let through = |guest| Some((Uplink::DriverDomain { guest, vcpu: 0 }, NicId(1)));
        let mut routes = Routes::default();
        for netfront in [None, None, through(STUB), through(DOM0), through(DOM0)] {
            routes.add_guest(netfront);
        }
        routes
    }

    #[test]
    fn packets_go_down_to_their_guest_through_all_domains_between() {
        let routes = routes();
        let [to_guest, to_stub, to_other] = [0, 1, 2].map(NetfrontId);
        assert_eq!(routes.hop(DOM0, None, Guest(GuestId(2))), Hop::Ring(to_stub));
        assert_eq!(routes.hop(STUB, None, Guest(GuestId(2))), Hop::Ring(to_guest));
        assert_eq!(routes.hop(GuestId(2), None, Guest(GuestId(2))), Hop::Here);
        assert_eq!(routes.hop(DOM0, Some(to_stub), Guest(GuestId(4))), Hop::Ring(to_other));
    }

    #[test]
    fn packets_for_others_go_up_and_out() {
        let routes = routes();
        let [to_guest, to_stub] = [0, 1].map(NetfrontId);
        assert_eq!(routes.hop(STUB, Some(to_guest), Guest(GuestId(4))), Hop::Up(to_stub));
        assert_eq!(routes.hop(STUB, Some(to_guest), Outside), Hop::Up(to_stub));
        assert_eq!(routes.hop(DOM0, Some(to_stub), Outside), Hop::Link(NicId(1)));
        assert_eq!(routes.hop(DOM0, Some(to_stub), Ended), Hop::Link(NicId(1)), "the link is where it ends");
        assert_eq!(routes.hop(DOM0, None, Ended), Hop::Nowhere);
    }
}
