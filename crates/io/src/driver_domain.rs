//! Driver domains: each of their vCPUs has the NICs, disks and netfronts whose interrupts and events it takes.
//!
//! Once such a vCPU runs it takes everything that is there, in polls; guests are notified at the end of a poll. With
//! nothing left it sleeps.

use vcpulab_host::{IoKind, IoStep, Span, Table, VcpuId, WakeCause, WorldContext};

use crate::ids::{BackendId, GuestId, GuestVcpu, NetfrontId, NicId, PacketId};
use crate::network::Network;
use crate::network::netback::{Netback, Netbacks, Polled};
use crate::network::nic::NicOwner;
use crate::path::route::Origin;
use crate::storage::blkback::BlkbackWork;
use crate::storage::{BlkbackAt, Storage};

/// The back ends on one vCPU of a driver domain.
#[derive(Clone, Debug)]
struct Backend {
    /// The vCPU that takes interrupts and events.
    vcpu: VcpuId,
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
    fn new(vcpu: VcpuId) -> Self {
        Backend {
            vcpu,
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

    /// Takes the next piece of work; `None`: there is none. `may_poll`: it may take packets, no other vCPU is at one.
    fn next(
        &mut self,
        ctx: &mut WorldContext<'_>,
        network: &mut Network,
        storage: &mut Storage,
        may_poll: bool,
    ) -> Option<BackendWork> {
        for &nic in &self.netback.nics {
            network.take_arrived(ctx, nic);
        }
        loop {
            if std::mem::take(&mut self.notified) {
                if !self.in_poll {
                    self.begin_poll(network, storage);
                }
                return Some(BackendWork::Upcall);
            }
            for &at in &self.blkbacks {
                if let Some((work, cost)) = storage.next_back_work(at) {
                    return Some(BackendWork::Blkback { at, work, cost });
                }
            }
            if !may_poll && self.netback.has_packets(&network.nics) {
                self.waits_for_turn = true;
                return None;
            }
            let polled = self.netback.poll(ctx.now(), &mut network.nics, &mut network.netfronts);
            if let Polled::Packet { from, packet } = polled {
                return Some(BackendWork::Packet { from, packet });
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

/// A piece of work of the back ends on a vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BackendWork {
    /// Taking the notifications that are pending.
    Upcall,
    /// Working at a packet.
    Packet { from: Origin, packet: PacketId },
    /// Serving virtual disks; its cost.
    Blkback { at: BlkbackAt, work: BlkbackWork, cost: Span },
}

/// A driver domain, or one that owns its devices itself.
#[derive(Clone, Debug)]
struct DriverDomain {
    /// The back ends on its first vCPU; those on the others follow.
    first: BackendId,
    vcpus: u32,
    /// CPU time of a guest's notification, on the pCPU of the guest.
    kick_ns: Span,
    /// The number of its vCPU that is at a packet, if they take turns.
    turn: Option<u32>,
}

impl DriverDomain {
    /// The back ends on one of its vCPUs.
    fn backend(&self, number: u32) -> BackendId {
        BackendId(self.first.0 + number)
    }
}

/// All driver domains, with the state of their back ends.
#[derive(Debug)]
pub(crate) struct DriverDomains {
    backends: Table<BackendId, Backend>,
    /// The driver domain of each guest that is one.
    of_guests: Table<GuestId, Option<Box<DriverDomain>>>,
    /// Whether only one vCPU of a driver domain at a time handles packets.
    take_turns: bool,
}

impl DriverDomains {
    /// A machine without driver domains.
    pub fn new(netbacks: Netbacks) -> Self {
        let take_turns = netbacks == Netbacks::Tasklet;
        DriverDomains { backends: Table::new(), of_guests: Table::new(), take_turns }
    }

    /// Adds a guest that is no driver domain.
    pub fn add_guest(&mut self) {
        self.of_guests.push(None);
    }

    /// Adds the next guest, with these vCPUs, as a driver domain.
    pub fn add_driver_domain(&mut self, vcpus: impl ExactSizeIterator<Item = VcpuId>, kick_ns: Span) {
        let first = BackendId(self.backends.len() as u32);
        let domain = DriverDomain { first, vcpus: vcpus.len() as u32, kick_ns, turn: None };
        vcpus.for_each(|vcpu| _ = self.backends.push(Backend::new(vcpu)));
        self.of_guests.push(Some(Box::new(domain)));
    }

    /// Gives a vCPU of a driver domain the interrupts of a NIC.
    pub fn add_nic(&mut self, at: GuestVcpu, nic: NicId) {
        self.backend(at).netback.nics.push(nic);
    }

    /// Gives a vCPU of a driver domain blkbacks, and the interrupts of their disk if those go to it.
    pub fn add_blkbacks(&mut self, owner: GuestId, at: BlkbackAt) {
        self.backend(GuestVcpu { guest: owner, number: at.vcpu }).blkbacks.push(at);
    }

    /// Whether a guest is a driver domain.
    pub fn contains(&self, guest: GuestId) -> bool {
        self.of_guests[guest].is_some()
    }

    fn domain(&self, guest: GuestId) -> &DriverDomain {
        self.of_guests[guest].as_ref().expect("devices and netfronts lead to driver domains")
    }

    /// The back ends on that vCPU of a driver domain; while it is offline, those on the first.
    fn backend(&mut self, at: GuestVcpu) -> &mut Backend {
        let domain = self.domain(at.guest);
        let (first, given) = (domain.first, domain.backend(at.number));
        let online = self.backends[given].online;
        &mut self.backends[if online { given } else { first }]
    }

    /// Lets the first vCPU of a driver domain take the devices of a vCPU that goes offline.
    pub fn take_offline(&mut self, ctx: &mut WorldContext<'_>, at: GuestVcpu) {
        let Some(domain) = &self.of_guests[at.guest] else { return };
        let left = &mut self.backends[domain.backend(at.number)];
        left.online = false;
        let (mut netback, blkbacks) = (std::mem::take(&mut left.netback), std::mem::take(&mut left.blkbacks));
        let first = self.backend(GuestVcpu { number: 0, ..at });
        first.netback.append(&mut netback);
        first.blkbacks.extend(blkbacks);
        first.notify(ctx, WakeCause::Event);
    }

    /// Gives a vCPU of a driver domain, which comes online, its devices back.
    pub fn bring_online(&mut self, at: GuestVcpu, network: &Network) {
        if !self.contains(at.guest) {
            return;
        }
        let own = NicOwner::Guest { guest: at.guest, vcpu: at.number };
        let first = self.backend(GuestVcpu { number: 0, ..at });
        let nics: Vec<NicId> =
            first.netback.nics.extract_if(.., |&mut nic| network.nics[nic].config.owner == own).collect();
        let blkbacks: Vec<BlkbackAt> = first.blkbacks.extract_if(.., |of| of.vcpu == at.number).collect();
        let back = self.domain(at.guest).backend(at.number);
        let back = &mut self.backends[back];
        back.online = true;
        back.netback.nics = nics;
        back.blkbacks = blkbacks;
    }

    /// Interrupts a vCPU of a driver domain. The vCPU is returned.
    pub fn interrupt(&mut self, ctx: &mut WorldContext<'_>, at: GuestVcpu) -> VcpuId {
        let backend = self.backend(at);
        ctx.interrupt(ctx.host().processor(backend.vcpu));
        let domain = ctx.host().dom(backend.vcpu);
        ctx.step(IoStep { kind: IoKind::Interrupt, domain, id: 0, value: 0 });
        backend.notify(ctx, WakeCause::Interrupt);
        let vcpu = backend.vcpu;
        self.room(ctx, at.guest);
        vcpu
    }

    /// There may be room in the NICs of a driver domain again, for which netbacks wait.
    pub fn room(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId) {
        let domain = self.domain(guest);
        let (first, vcpus) = (domain.first.0, domain.vcpus);
        for id in (first..first + vcpus).map(BackendId) {
            let backend = &mut self.backends[id];
            if !backend.awake && backend.netback.waits_for_room() {
                backend.notify(ctx, WakeCause::Event);
            }
        }
    }

    /// The vCPU of a guest that is at work notifies a vCPU of a driver domain: it has put something into a ring.
    pub fn kick(&mut self, ctx: &mut WorldContext<'_>, at: GuestVcpu) {
        let kick_ns = self.domain(at.guest).kick_ns;
        if !kick_ns.is_zero() && !self.backend(at).awake {
            ctx.charge(ctx.host().executing(), kick_ns);
        }
        self.send_event(ctx, at);
    }

    /// Sends an event to a vCPU of a driver domain: there is something for it. One that is at work anyway need not be
    /// notified.
    pub fn send_event(&mut self, ctx: &mut WorldContext<'_>, at: GuestVcpu) {
        let backend = self.backend(at);
        if !backend.awake {
            backend.notify(ctx, WakeCause::Event);
        }
    }

    /// Notes that a guest has put a packet into the ring of a netfront (`first`: the only one there).
    pub fn ring_filled(
        &mut self,
        ctx: &mut WorldContext<'_>,
        at: GuestVcpu,
        netfront: NetfrontId,
        first: bool,
    ) {
        if first {
            self.backend(at).netback.ring_filled(netfront);
        }
        self.kick(ctx, at);
    }

    /// Leaves a packet for a guest to the thread of its netback, on that vCPU of a driver domain.
    pub fn leave(
        &mut self,
        ctx: &mut WorldContext<'_>,
        at: GuestVcpu,
        netfront: NetfrontId,
        packet: PacketId,
    ) {
        self.backend(at).netback.leave(netfront, packet);
        self.send_event(ctx, at);
    }

    /// Has the guest of a netfront notified at the end of the poll of a vCPU of a driver domain.
    pub fn notify_later(&mut self, at: GuestVcpu, netfront: NetfrontId) {
        if self.contains(at.guest) {
            self.backend(at).netback.notify_later(netfront);
        }
    }

    /// Takes the next piece of work of the back ends on a vCPU.
    pub fn next(
        &mut self,
        ctx: &mut WorldContext<'_>,
        at: GuestVcpu,
        network: &mut Network,
        storage: &mut Storage,
    ) -> Option<BackendWork> {
        let domain = self.of_guests[at.guest].as_mut()?;
        let backend = &mut self.backends[domain.backend(at.number)];
        let may_poll = domain.turn.is_none_or(|turn| turn == at.number);
        let next = backend.next(ctx, network, storage, may_poll);
        match next {
            Some(BackendWork::Packet { .. }) if self.take_turns => domain.turn = Some(at.number),
            // It has nothing to take, though it is its turn.
            None if domain.turn == Some(at.number) => self.pass_turn(ctx, at),
            _ => {}
        }
        next
    }

    /// Gives the turn of a vCPU to the next one of its driver domain that waits for it.
    #[inline]
    pub fn pass_turn(&mut self, ctx: &mut WorldContext<'_>, at: GuestVcpu) {
        if !self.take_turns {
            return;
        }
        let Some(domain) = &mut self.of_guests[at.guest] else { return };
        domain.turn = None;
        for next in (1..domain.vcpus).map(|step| (at.number + step) % domain.vcpus) {
            let backend = &mut self.backends[domain.backend(next)];
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
