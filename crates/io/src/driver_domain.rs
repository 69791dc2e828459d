//! Driver domains: each of their vCPUs has the NICs, disks and netfronts whose interrupts and events it takes.
//!
//! Once such a vCPU runs it takes everything that is there, in polls; guests are notified at the end of a poll. With
//! nothing left it sleeps.

use vcpulab_host::{IoKind, IoStep, Span, Table, VcpuId, WakeCause, WorldContext};

use crate::ids::{BackendId, GuestId, NetfrontId, NicId, PacketId};
use crate::layers::Layers;
use crate::machine::work::{DriverWork, Work};
use crate::network::Network;
use crate::network::netback::{Netback, Netbacks, Polled};
use crate::network::nic::NicOwner;
use crate::path::cost::DriverCosts;
use crate::path::legs::Place;
use crate::path::route::Hop;
use crate::path::route::Uplink;
use crate::storage::blkback::BlkbackWork;
use crate::storage::{BlkbackAt, Storage};

/// The back ends on one vCPU of a driver domain.
#[derive(Clone, Debug)]
struct Backend {
    /// The domain, and the vCPU that takes interrupts and events, with its number there.
    guest: GuestId,
    vcpu: VcpuId,
    number: usize,
    netback: Netback,
    /// The blkbacks on it, with the disks whose interrupts it takes.
    blkbacks: Vec<BlkbackAt>,
    /// Whether the vCPU is online; while it is not, the first one of the domain does its work.
    online: bool,
    /// Whether packets wait until another vCPU of the driver domain is done with one.
    waits_for_turn: bool,
    /// Whether the back ends of this vCPU are at work, or have been notified of work.
    awake: bool,
    /// Whether there is a notification that it has not taken yet.
    notified: bool,
    /// Whether a poll has begun that has not ended yet. Notifications meanwhile do not make it longer: guests that are
    /// notified at its end would wait for as long as interrupts come faster than polls end.
    in_poll: bool,
}

impl Backend {
    /// Back ends with nothing to do.
    fn new(guest: GuestId, (number, vcpu): (usize, VcpuId)) -> Self {
        Backend {
            guest,
            vcpu,
            number,
            netback: Netback::default(),
            blkbacks: Vec::new(),
            online: true,
            waits_for_turn: false,
            awake: false,
            notified: false,
            in_poll: false,
        }
    }

    fn notify(&mut self, ctx: &mut WorldContext<'_>, cause: WakeCause) {
        self.notified = true;
        if !std::mem::replace(&mut self.awake, true) {
            if cause == WakeCause::Event {
                let domain = ctx.host().dom(self.vcpu);
                let value = self.netback.senders() as i64;
                ctx.step(IoStep { kind: IoKind::EventSent, domain, id: 0, value });
            }
            ctx.kick(self.vcpu, cause);
        }
    }

    /// Takes the next piece of work; `None`: there is none. `turn`: it may take packets, no other vCPU is at one.
    fn next(
        &mut self,
        ctx: &mut WorldContext<'_>,
        network: &mut Network,
        storage: &mut Storage,
        (costs, turn): (&DriverDomain, bool),
    ) -> Option<(DriverWork, Layers)> {
        for &nic in &self.netback.nics {
            network.take_arrived(ctx, nic);
        }
        loop {
            if std::mem::take(&mut self.notified) {
                if !self.in_poll {
                    self.begin_poll(network, storage);
                }
                return Some((DriverWork::Upcall, costs.packets.upcall()));
            }
            for &at in &self.blkbacks {
                if let Some((work, cost)) = storage.next_back_work(at) {
                    return Some((DriverWork::Disk(at, work), costs.disk_work(&work, cost, storage)));
                }
            }
            if !turn && self.netback.has_packets(&network.nics) {
                self.waits_for_turn = true;
                return None;
            }
            let polled = self.netback.poll(ctx.now(), &mut network.nics, &mut network.netfronts);
            match polled {
                Polled::Nic(nic, packet) => {
                    network.enters(ctx.now(), packet, Place::Netback, Some(self.vcpu));
                    let hop = costs.leaves(network.hop(self.guest, None, packet), self.number, network);
                    let cost = costs.receive(nic, hop, self.vcpu, network);
                    return Some((DriverWork::Receive(nic, packet, hop), cost));
                }
                Polled::Left(netfront, packet) => {
                    network.enters(ctx.now(), packet, Place::Netback, Some(self.vcpu));
                    let emulation_ns = network.netfronts[netfront].emulation_ns;
                    let cost = costs.packets.deliver_from_afar(&network.packets[packet], emulation_ns);
                    return Some((DriverWork::Deliver(netfront, packet), cost));
                }
                Polled::Ring(netfront, packet) => {
                    network.enters(ctx.now(), packet, Place::Netback, Some(self.vcpu));
                    let hop = network.hop(self.guest, Some(netfront), packet);
                    let hop = costs.leaves(hop, self.number, network);
                    let cost = costs.send(netfront, packet, hop, self.vcpu, network);
                    return Some((DriverWork::Send(netfront, packet, hop), cost));
                }
                Polled::BudgetUsed | Polled::Empty => {}
            }
            self.netback.end_poll(ctx, &mut network.netfronts);
            let mut more = matches!(polled, Polled::BudgetUsed);
            for &at in &self.blkbacks {
                more |= storage.end_poll(ctx, at);
            }
            if !more && self.netback.waiting(&network.nics) == 0 {
                (self.awake, self.in_poll) = (false, false);
                return None;
            }
            self.begin_poll(network, storage);
        }
    }

    fn begin_poll(&mut self, network: &Network, storage: &mut Storage) {
        self.in_poll = true;
        self.netback.begin_poll(&network.nics);
        for &at in &self.blkbacks {
            storage.begin_poll(at);
        }
    }
}

/// A driver domain, or one that owns its devices itself.
#[derive(Clone, Debug)]
struct DriverDomain {
    /// The back ends on its first vCPU; those on the others follow.
    first: BackendId,
    vcpus: usize,
    packets: DriverCosts,
    /// CPU time for a packet in the domain's own network stack, ns.
    receive_ns: Span,
    /// Whether the netbacks are threads.
    threads: bool,
    /// The number of its vCPU that is at a packet, if they take turns.
    turn: Option<usize>,
}

impl DriverDomain {
    /// The hop of a packet that is on vCPU `number`: what is for a guest whose netback is a thread on another one is left to
    /// that.
    fn leaves(&self, hop: Hop, number: usize, network: &Network) -> Hop {
        if self.threads
            && let Hop::Ring(netfront) = hop
            && let Uplink::DriverDomain { vcpu, .. } = network.netfronts[netfront].uplink
            && vcpu as usize != number
        {
            return Hop::Thread(netfront);
        }
        hop
    }

    /// The cost of a packet taken from a NIC, at which `vcpu` works from now on.
    fn receive(&self, nic: NicId, hop: Hop, vcpu: VcpuId, network: &mut Network) -> Layers {
        let bounced = network.nics[nic].touch(vcpu);
        let emulation_ns = match hop {
            Hop::Ring(netfront) => network.netfronts[netfront].emulation_ns,
            _ => Span::ZERO,
        };
        self.packets.receive(hop, bounced, emulation_ns, self.receive_ns)
    }

    /// The cost of a packet taken from a netfront's ring, at which, and at the NIC it goes to, `vcpu` works from now on.
    fn send(
        &self,
        netfront: NetfrontId,
        packet: PacketId,
        hop: Hop,
        vcpu: VcpuId,
        network: &mut Network,
    ) -> Layers {
        let netfront = &mut network.netfronts[netfront];
        let emulation_ns = netfront.emulation_ns;
        let mut bounces = i64::from(netfront.touch(vcpu));
        if let Hop::Link(nic) = hop {
            bounces += i64::from(network.nics[nic].touch(vcpu));
        }
        self.packets.send(&network.packets[packet], hop, bounces, (emulation_ns, self.receive_ns))
    }

    /// The layers of a piece of work of the blkbacks.
    fn disk_work(&self, work: &BlkbackWork, cost: Span, storage: &Storage) -> Layers {
        match work {
            BlkbackWork::Request(request) => {
                // A page of a disk's is granted as one of a packet's is.
                let grants = Storage::pages(request) * self.packets.hypervisor_send_ns;
                let emulation_ns = storage.blkfronts[request.blkfront].emulation_ns;
                Layers::kernel(cost, grants.min(cost)).and_application(emulation_ns)
            }
            BlkbackWork::Response(_) => Layers::kernel(cost, Span::ZERO),
        }
    }
}

/// All driver domains, with the state of their back ends.
#[derive(Debug)]
pub(crate) struct DriverDomains {
    backends: Table<BackendId, Backend>,
    /// Most guests are none.
    of_guests: Table<GuestId, Option<Box<DriverDomain>>>,
    netbacks: Netbacks,
}

impl DriverDomains {
    /// A machine without driver domains.
    pub fn new(netbacks: Netbacks) -> Self {
        DriverDomains { backends: Table::new(), of_guests: Table::new(), netbacks }
    }

    /// Adds the next guest, which is none of them.
    pub fn add_guest(&mut self) {
        self.of_guests.push(None);
    }

    /// Adds the next guest, with these vCPUs, as a driver domain.
    pub fn add_driver_domain(
        &mut self,
        vcpus: impl ExactSizeIterator<Item = VcpuId>,
        packets: DriverCosts,
        receive_ns: Span,
    ) {
        let guest = GuestId(self.of_guests.len() as u32);
        let domain = DriverDomain {
            first: BackendId(self.backends.len() as u32),
            vcpus: vcpus.len(),
            packets,
            receive_ns,
            threads: self.netbacks == Netbacks::Threads,
            turn: None,
        };
        vcpus.enumerate().for_each(|vcpu| _ = self.backends.push(Backend::new(guest, vcpu)));
        self.of_guests.push(Some(Box::new(domain)));
    }

    /// Gives a vCPU of a driver domain the interrupts of a NIC.
    pub fn add_nic(&mut self, at: (GuestId, u32), nic: NicId) {
        self.backend(at).netback.nics.push(nic);
    }

    /// Gives a vCPU of a driver domain blkbacks, and the interrupts of their disk if those go to it.
    pub fn add_blkbacks(&mut self, owner: GuestId, at: BlkbackAt) {
        self.backend((owner, at.vcpu)).blkbacks.push(at);
    }

    /// Whether a guest is a driver domain.
    pub fn contains(&self, guest: GuestId) -> bool {
        self.of_guests[guest].is_some()
    }

    /// Costs of packets in a guest; zero if it is no driver domain.
    pub fn costs(&self, guest: GuestId) -> DriverCosts {
        self.of_guests[guest].as_ref().map_or_else(DriverCosts::default, |domain| domain.packets)
    }

    /// The back ends on that vCPU of a driver domain; while it is offline, those on the first.
    fn backend(&mut self, (guest, vcpu): (GuestId, u32)) -> &mut Backend {
        let domain = self.of_guests[guest].as_ref().expect("devices and netfronts lead to driver domains");
        let given = BackendId(domain.first.0 + vcpu);
        let at = if self.backends[given].online { given } else { domain.first };
        &mut self.backends[at]
    }

    /// Lets the first vCPU of a driver domain take what vCPU `number` has, which goes offline.
    pub fn take_offline(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, number: usize) {
        let Some(domain) = &self.of_guests[guest] else { return };
        let left = &mut self.backends[BackendId(domain.first.0 + number as u32)];
        left.online = false;
        let (mut netback, blkbacks) = (std::mem::take(&mut left.netback), std::mem::take(&mut left.blkbacks));
        let first = self.backend((guest, 0));
        first.netback.append(&mut netback);
        first.blkbacks.extend(blkbacks);
        first.notify(ctx, WakeCause::Event);
    }

    /// Gives vCPU `number` of a driver domain, which comes online, its devices back.
    pub fn bring_online(&mut self, guest: GuestId, number: usize, network: &Network) {
        if !self.contains(guest) {
            return;
        }
        let at = (guest, number as u32);
        let own = NicOwner::Guest { guest, vcpu: at.1 };
        let first = self.backend((guest, 0));
        let nics: Vec<NicId> =
            first.netback.nics.extract_if(.., |&mut nic| network.nics[nic].config.owner == own).collect();
        let blkbacks: Vec<BlkbackAt> = first.blkbacks.extract_if(.., |of| of.vcpu == at.1).collect();
        let domain = self.of_guests[guest].as_ref().expect("it is one");
        let back = &mut self.backends[BackendId(domain.first.0 + at.1)];
        back.online = true;
        back.netback.nics = nics;
        back.blkbacks = blkbacks;
    }

    /// Interrupts a vCPU of a driver domain. The vCPU is returned.
    pub fn interrupt(&mut self, ctx: &mut WorldContext<'_>, at: (GuestId, u32)) -> VcpuId {
        let backend = self.backend(at);
        ctx.interrupt(ctx.host().processor(backend.vcpu));
        let domain = ctx.host().dom(backend.vcpu);
        ctx.step(IoStep { kind: IoKind::Interrupt, domain, id: 0, value: 0 });
        backend.notify(ctx, WakeCause::Interrupt);
        let vcpu = backend.vcpu;
        self.room(ctx, at.0);
        vcpu
    }

    /// There may be room in the NICs of a driver domain again, for which netbacks wait.
    pub fn room(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId) {
        let domain = self.of_guests[guest].as_ref().expect("devices lead to driver domains");
        for number in 0..domain.vcpus as u32 {
            let other = &mut self.backends[BackendId(domain.first.0 + number)];
            if !other.awake && other.netback.waits_for_room() {
                other.notify(ctx, WakeCause::Event);
            }
        }
    }

    /// The vCPU of a guest that is at work notifies a vCPU of a driver domain: it has put something into a ring.
    pub fn kick(&mut self, ctx: &mut WorldContext<'_>, at: (GuestId, u32)) {
        let kick_ns = self.costs(at.0).kick_ns;
        if !kick_ns.is_zero() && !self.backend(at).awake {
            ctx.charge(ctx.host().executing(), kick_ns);
        }
        self.send_event(ctx, at);
    }

    /// Sends an event to a vCPU of a driver domain: there is something for it. One that is at work anyway need not be
    /// notified.
    pub fn send_event(&mut self, ctx: &mut WorldContext<'_>, at: (GuestId, u32)) {
        let backend = self.backend(at);
        if !backend.awake {
            backend.notify(ctx, WakeCause::Event);
        }
    }

    /// Notes that a guest has put a packet into the ring of a netfront (`first`: the only one there).
    pub fn ring_filled(
        &mut self,
        ctx: &mut WorldContext<'_>,
        at: (GuestId, u32),
        netfront: NetfrontId,
        first: bool,
    ) {
        if first {
            self.backend(at).netback.ring_filled(netfront);
        }
        self.kick(ctx, at);
    }

    /// The hop of a packet in a guest, on its vCPU `number`: as told, or to the netback's thread on another vCPU.
    pub fn leaves(&self, guest: GuestId, hop: Hop, number: usize, network: &Network) -> Hop {
        self.of_guests[guest].as_ref().map_or(hop, |domain| domain.leaves(hop, number, network))
    }

    /// Leaves a packet for a guest to the thread of its netback, on that vCPU of a driver domain.
    pub fn leave(
        &mut self,
        ctx: &mut WorldContext<'_>,
        at: (GuestId, u32),
        netfront: NetfrontId,
        packet: PacketId,
    ) {
        self.backend(at).netback.leave(netfront, packet);
        self.send_event(ctx, at);
    }

    /// Has the guest of a netfront notified at the end of the poll of vCPU `number` of a driver domain.
    pub fn notify_later(&mut self, guest: GuestId, number: usize, netfront: NetfrontId) {
        if self.contains(guest) {
            self.backend((guest, number as u32)).netback.notify_later(netfront);
        }
    }

    /// Takes the next piece of work of a guest's back ends on vCPU `number`, with its cost.
    pub fn next(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        number: usize,
        network: &mut Network,
        storage: &mut Storage,
    ) -> Option<(Work, Layers)> {
        let domain = self.of_guests[guest].as_mut()?;
        let backend = &mut self.backends[BackendId(domain.first.0 + number as u32)];
        let may = domain.turn.is_none_or(|turn| turn == number);
        let next = backend.next(ctx, network, storage, (domain, may));
        match next {
            Some((DriverWork::Receive(..) | DriverWork::Send(..), _))
                if self.netbacks == Netbacks::Tasklet =>
            {
                domain.turn = Some(number);
            }
            // It has nothing to take, though it is its turn.
            None if domain.turn == Some(number) => self.pass_turn(ctx, guest, number),
            _ => {}
        }
        next.map(|(work, cost)| (Work::Driver(work), cost))
    }

    /// Gives the turn of vCPU `number` to the next one of its driver domain that waits for it.
    #[inline]
    pub fn pass_turn(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, number: usize) {
        if self.netbacks != Netbacks::Tasklet {
            return;
        }
        let Some(domain) = &mut self.of_guests[guest] else { return };
        domain.turn = None;
        for next in (1..domain.vcpus).map(|step| (number + step) % domain.vcpus) {
            let backend = &mut self.backends[BackendId(domain.first.0 + next as u32)];
            if std::mem::take(&mut backend.waits_for_turn) {
                domain.turn = Some(next);
                return ctx.kick(backend.vcpu, WakeCause::Event);
            }
        }
    }

    /// Resets the turns of vCPUs, because the domain starts again.
    pub fn reboot(&mut self, guest: GuestId) {
        if let Some(domain) = &mut self.of_guests[guest] {
            domain.turn = None;
        }
    }
}
