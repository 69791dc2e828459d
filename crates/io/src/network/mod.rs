//! The network of the host: NICs and their links, virtual network interfaces, routes and connections.

pub(crate) mod client;
pub(crate) mod client_machine;
pub(crate) mod clients;
pub(crate) mod connections;
pub(crate) mod link;
pub(crate) mod netback;
pub(crate) mod netfront;
pub(crate) mod nic;
pub(crate) mod packets;
pub(crate) mod tcp;
pub(crate) mod tcp_timers;

use vcpulab_guest::ConnectionId;
use vcpulab_host::{IoKind, IoStep, Span, Table, Time, VcpuId, WakeCause, WorldContext};

use crate::ids::{GuestId, GuestVcpu, NetfrontId, NicId, PacketId, SourceId};
use crate::interrupts::{InterruptCost, Interrupts, Taken};
use crate::path::legs::{Paths, Place};
use crate::path::route::{Destination, Hop, Routes, Step, Uplink};
use crate::sources::{Source, Sources};
use connections::Connections;
use netback::Netbacks;
use netfront::{Netfront, NetfrontConfig, NetfrontCounts, NetfrontWork};
use nic::{Nic, NicConfig, NicCounts, NicOwner, NicSources};
use packets::Packets;
use tcp::{Kind, Packet, REQUEST_TIMEOUT};
use tcp_timers::TcpTimers;

/// The network, with the state of all its devices and connections.
#[derive(Debug)]
pub(crate) struct Network {
    pub nics: Table<NicId, Nic>,
    pub netfronts: Table<NetfrontId, Netfront>,
    pub routes: Routes,
    pub connections: Connections,
    pub packets: Packets,
    pub timers: TcpTimers,
    /// Packets to or from each guest that were lost and sent again.
    pub retransmissions: Table<GuestId, u64>,
    /// The paths of single requests, if some are followed.
    pub paths: Option<Box<Paths>>,
    /// The last instant at which a source of events was due, and the last in order of those due then.
    last_due: (Time, SourceId),
}

/// NICs with nothing to do.
pub(crate) fn nics(configs: &Table<NicId, NicConfig>, sources: &mut Sources) -> Table<NicId, Nic> {
    let nic = |(nic, &config): (NicId, &NicConfig)| {
        let sources = NicSources {
            interrupt: sources.register(Source::Interrupt(nic)),
            inbound: sources.register(Source::Inbound(nic)),
            outbound: sources.register(Source::Outbound(nic)),
        };
        Nic::new(config, sources)
    };
    configs.enumerate().map(nic).collect()
}

impl Network {
    /// The network of these NICs, without guests.
    pub fn new(
        nics: Table<NicId, Nic>,
        netbacks: Netbacks,
        timers: TcpTimers,
        initial_segments: u32,
    ) -> Self {
        Network {
            nics,
            netfronts: Table::new(),
            routes: Routes::new(netbacks == Netbacks::Threads),
            connections: Connections::new(initial_segments),
            packets: Packets::default(),
            timers,
            retransmissions: Table::new(),
            paths: None,
            last_due: (Time::ZERO, SourceId(0)),
        }
    }

    /// Adds the next guest, with its netfront if it has one.
    pub fn add_guest(&mut self, netfront: Option<&NetfrontConfig>, first_vcpu: VcpuId) {
        self.retransmissions.push(0);
        self.routes.add_guest(netfront.map(|config| (config.uplink, config.nic)));
        if let Some(config) = netfront {
            let id = NetfrontId(self.netfronts.len() as u32);
            self.netfronts.push(Netfront::new(id, config, first_vcpu));
        }
    }

    /// The netfront of a guest, if it has one.
    pub fn netfront(&self, guest: GuestId) -> Option<&Netfront> {
        self.routes.netfront(guest).map(|netfront| &self.netfronts[netfront])
    }

    /// The destination of a packet.
    #[inline]
    pub fn destination(&self, packet: PacketId) -> Destination {
        let packet = &self.packets[packet];
        match self.connections.get(packet.connection) {
            None => Destination::Ended,
            Some(connection) => match connection.parties[packet.to as usize].guest() {
                Some(guest) => Destination::Guest(guest),
                None => Destination::Outside,
            },
        }
    }

    /// The hop that was decided for a packet, unless its connection has ended meanwhile.
    #[inline]
    pub fn confirm(&self, at: GuestVcpu, step: Step) -> Hop {
        match self.connections.get(self.packets[step.packet].connection) {
            Some(_) => step.hop,
            None => self.routes.hop(at, step.from, Destination::Ended),
        }
    }

    /// The next work of a guest's netfront and network stack on a vCPU.
    pub fn next_work(&mut self, now: Time, at: GuestVcpu) -> Option<NetfrontWork> {
        let netfront = &mut self.netfronts[self.routes.netfront(at.guest)?];
        let through_driver_domain = matches!(netfront.uplink, Uplink::DriverDomain { .. });
        let has_room = through_driver_domain || self.nics[netfront.nic].can_send(now);
        netfront.next(at.number, has_room, &self.packets)
    }

    /// Notes that a packet comes to a place of its path, where `vcpu` works at it.
    #[inline]
    pub fn enters(&mut self, now: Time, packet: PacketId, place: Place, vcpu: Option<VcpuId>) {
        if let Some(paths) = &mut self.paths {
            let leg = &mut self.packets[packet].leg;
            *leg = leg.map(|leg| paths.begin(leg, place, now, vcpu));
        }
    }

    /// Sends a packet by a NIC.
    pub fn put_on_link(&mut self, ctx: &mut WorldContext<'_>, nic: NicId, packet: PacketId) {
        self.enters(ctx.now(), packet, Place::LinkOut(nic), None);
        let nic = &mut self.nics[nic];
        if nic.send(ctx.now(), packet, &self.packets) {
            nic.arm_interrupt(ctx);
        }
        if nic.outbound.packets() == 1 {
            nic.arm_outbound(ctx);
        }
    }

    /// The netfront of the guest that a packet is for; one that is for none is removed.
    fn receiver(&mut self, packet: PacketId) -> Option<NetfrontId> {
        let netfront = match self.destination(packet) {
            Destination::Guest(guest) => self.routes.netfront(guest),
            Destination::Outside | Destination::Ended => None,
        };
        if netfront.is_none() {
            self.packets.remove(packet);
        }
        netfront
    }

    /// Sends a packet from outside, or from another NIC, to the NIC of the guest that it is for.
    pub fn send_inbound(&mut self, ctx: &mut WorldContext<'_>, packet: PacketId) {
        let Some(netfront) = self.receiver(packet) else { return };
        let nic = self.netfronts[netfront].nic;
        self.enters(ctx.now(), packet, Place::LinkIn(nic), None);
        let first = self.nics[nic].send_inbound(ctx.now(), packet, &self.packets);
        if self.nics[nic].may_lose() {
            self.arrive_at(ctx, nic);
        } else if first {
            self.nics[nic].arm_interrupt(ctx);
        }
    }

    /// Notes that a source of events is due.
    pub fn source_due(&mut self, now: Time, source: SourceId) {
        self.last_due = self.last_due.max((now, source));
    }

    /// Takes the packets into the queue of a NIC that have arrived by now: those that arrive at this very instant if their turn
    /// has come in the order of simultaneous events. To be called before anybody looks at the queue.
    #[inline(always)]
    pub fn take_arrived(&mut self, ctx: &mut WorldContext<'_>, nic: NicId) {
        // As a rule none has arrived: a driver looks before each packet that it handles.
        if self.nics[nic].next_arrival() <= ctx.now() {
            self.receive(ctx, nic);
        }
    }

    #[inline(never)]
    fn receive(&mut self, ctx: &mut WorldContext<'_>, nic: NicId) {
        let turn_is_over = self.last_due >= (ctx.now(), self.nics[nic].arrivals());
        let end = ctx.now() + if turn_is_over { Span::from_ns(1) } else { Span::ZERO };
        while let Some((arrival, packet)) = self.nics[nic].take_before(end) {
            self.enters(arrival, packet, Place::Nic(nic), None);
            if let Err(packet) = self.nics[nic].receive(arrival, packet) {
                debug_assert_eq!(arrival, ctx.now(), "a packet is lost when it arrives");
                self.lose(ctx, packet);
            }
        }
    }

    /// Takes the packets that have arrived at a NIC into its queue, and sets its timers anew.
    pub fn arrive_at(&mut self, ctx: &mut WorldContext<'_>, nic: NicId) {
        self.take_arrived(ctx, nic);
        self.nics[nic].arm_inbound(ctx);
        self.nics[nic].arm_interrupt(ctx);
    }

    /// Has a NIC interrupt now: for what has happened before, or else for packets that arrive at this very instant.
    pub fn interrupt(&mut self, ctx: &mut WorldContext<'_>, nic: NicId) {
        self.take_arrived(ctx, nic);
        if !self.nics[nic].interrupts(ctx.now()) {
            self.source_due(ctx.now(), self.nics[nic].arrivals());
            self.take_arrived(ctx, nic);
        }
        self.nics[nic].interrupted(ctx.now());
    }

    /// Loses a packet that finds no room. Its sender sends it again, soon if the answers to later packets tell of it; a SYN,
    /// about which nothing does, only after seconds. A lost acknowledgement comes when the data are sent again that it was for.
    #[cold]
    pub fn lose(&mut self, ctx: &mut WorldContext<'_>, packet: PacketId) {
        self.enters(ctx.now(), packet, Place::Lost, None);
        let packet = self.packets.remove(packet);
        match packet.kind {
            Kind::Syn | Kind::Refused => {
                if let Some(paths) = &mut self.paths {
                    paths.cause = packet.leg;
                }
                return self.lose_syn(ctx, packet.connection);
            }
            Kind::Reset => return self.lose_reset(ctx, packet),
            _ => {}
        }
        let Some(connection) = self.connections.get_mut(packet.connection) else { return };
        let soon = packet.bytes > 0 && connection.shrink(packet.to.other());
        self.timers.keep_lost(ctx, packet, soon);
    }

    /// Loses the SYN of a connection, or the refusal of it.
    #[cold]
    pub fn lose_syn(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.abandoned {
            return self.connections.close(id);
        }
        self.timers.keep_syn(ctx, id, connection.syns_lost);
        connection.syns_lost += 1;
        connection.syn_waits = true;
        if let Some(paths) = &mut self.paths {
            paths.wait(id, Place::Lost, ctx.now());
        }
    }

    /// Loses the reset of a connection. No reset is ever sent again (RFC 9293, section 3.5.2): the called end hears of it when
    /// it next sends anything by itself, by its timers at the latest.
    fn lose_reset(&mut self, ctx: &mut WorldContext<'_>, reset: Packet) {
        let Some(connection) = self.connections.get_mut(reset.connection) else { return };
        match connection.unacknowledged(reset.connection, reset.retransmissions) {
            Some(packet) => self.timers.keep_lost(ctx, packet, false),
            None if connection.lacks_request() => {
                self.timers.keep_lost_for(ctx, reset, REQUEST_TIMEOUT);
            }
            None => {}
        }
    }

    /// Sets the timer of delayed acknowledgements, but not for connections that are over meanwhile.
    pub fn arm_acks(&mut self, ctx: &mut WorldContext<'_>) {
        let connections = &self.connections;
        self.timers.arm_acks(ctx, |id| connections.get(id).is_some());
    }

    /// Counts a lost packet that is sent again, for the guests at its ends.
    pub fn count_retransmission(&mut self, packet: &Packet) {
        let Some(connection) = self.connections.get(packet.connection) else { return };
        let [one, other] = connection.parties.map(|party| party.guest());
        for guest in one.into_iter().chain(other.filter(|_| other != one)) {
            self.retransmissions[guest] += 1;
        }
    }

    /// Takes the next packet of a NIC that is for a guest by a driver in the kernel below, at whose cost.
    pub fn take_below(
        &mut self,
        ctx: &mut WorldContext<'_>,
        nic: NicId,
        cost: InterruptCost,
        taken: &mut Taken,
    ) -> Option<(NetfrontId, PacketId)> {
        loop {
            let packet = self.nics[nic].take_received()?;
            let Some(id) = self.receiver(packet) else { continue };
            let p = cost.pcpus.pcpu(ctx, self.netfronts[id].vcpu, id.index());
            match cost.pcpus {
                Interrupts::OfReceiver => taken.once(ctx, p),
                Interrupts::Pcpu(_) | Interrupts::Spread(_) => {
                    taken.on(ctx, p);
                    ctx.interrupted_on(p);
                }
            }
            ctx.charge(p, cost.each);
            return Some((id, packet));
        }
    }

    /// Takes the packets of a NIC into the rings of their guests by the hypervisor's own driver, on the pCPU of the guest of
    /// the first one.
    pub fn hypervisor_receives(&mut self, ctx: &mut WorldContext<'_>, nic: NicId, receive_ns: Span) {
        let mut taken = Taken::none();
        let cost = InterruptCost { each: receive_ns, pcpus: Interrupts::OfReceiver };
        while let Some((id, packet)) = self.take_below(ctx, nic, cost, &mut taken) {
            self.enters(ctx.now(), packet, Place::RingIn, None);
            let netfront = &mut self.netfronts[id];
            match netfront.deliver(packet) {
                Ok(_) => netfront.send_event(ctx),
                Err(packet) => self.lose(ctx, packet),
            }
        }
        // Those that wait for room on the link look again.
        for netfront in
            self.netfronts.iter().filter(|netfront| netfront.nic == nic && netfront.wants_to_send())
        {
            ctx.kick(netfront.vcpu, WakeCause::Interrupt);
        }
    }

    /// Traffic of the NICs of a driver domain, together; `None`: it has none.
    pub fn nic_counts(&self, guest: GuestId) -> Option<NicCounts> {
        let owns = |nic: &&Nic| matches!(nic.config.owner, NicOwner::Guest { guest: owner, .. } | NicOwner::Host { guest: owner, .. } if owner == guest);
        self.nics.iter().filter(owns).map(|nic| nic.counts).reduce(|sum, one| NicCounts {
            interrupts: sum.interrupts + one.interrupts,
            received: sum.received + one.received,
            strays: sum.strays + one.strays,
            sent: sum.sent + one.sent,
            dropped: sum.dropped + one.dropped,
        })
    }

    /// Sets all counts to zero.
    pub fn reset_counts(&mut self) {
        self.retransmissions.iter_mut().for_each(|count| *count = 0);
        self.netfronts.iter_mut().for_each(|netfront| netfront.counts = NetfrontCounts::default());
        self.nics.iter_mut().for_each(|nic| nic.counts = NicCounts::default());
    }

    /// Reports a packet that enters or leaves the rings of a netfront. Rings have the numbers of their netfronts.
    #[inline]
    pub fn report_ring(
        &self,
        ctx: &mut WorldContext<'_>,
        kind: IoKind,
        netfront: NetfrontId,
        packet: PacketId,
    ) {
        if !ctx.wants_steps() {
            return;
        }
        let bytes = self.packets[packet].bytes;
        let front = &self.netfronts[netfront];
        if front.uplink != Uplink::OwnNic {
            let domain = ctx.host().dom(front.vcpu);
            ctx.step(IoStep { kind, domain, id: netfront.0.into(), value: bytes.into() });
        }
    }
}
