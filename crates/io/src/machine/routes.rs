//! Where packets go: from a guest through its driver domain to the line or to another guest, and back.

use std::collections::VecDeque;

use vcpulab_host::{IoKind, NEVER, Span, Time, WakeCause, WorldContext};

use super::{Layers, Machine, Source};
use crate::block::PAGE_BYTES;
use crate::blockback::BlockBackWork;
use crate::config::{Link, Owner};
use crate::driver::DriverWork;
use crate::interface::InterfaceWork;
use crate::tcp::{Kind, Packet, Party};

/// The next step of a packet's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hop {
    /// It is for the guest it is in.
    Here,
    /// Into the ring of that interface, whose guest is behind this one.
    Ring(usize),
    /// On through the guest's own interface.
    Up(usize),
    /// Onto that card's line.
    Line(usize),
    /// It came from outside for a connection that has ended: it is dropped.
    Nowhere,
}

impl Machine {
    /// The guest that a packet is for; none: a machine outside.
    fn destination(&mut self, packet: &Packet) -> Option<usize> {
        let to = packet.to as usize;
        self.connections.get(packet.connection).and_then(|connection| connection.parties[to].guest())
    }

    /// The way on from a guest for a packet that came through the interface of a guest behind it, or else from a card or
    /// the guest's own interface.
    fn hop(&mut self, at: usize, from: Option<usize>, packet: &Packet) -> Hop {
        if let Some(destination) = self.destination(packet) {
            if destination == at {
                return Hop::Here;
            }
            // From the destination up to this guest, if it is behind it.
            let mut behind = destination;
            while let Some(interface) = self.guests[behind].interface {
                match self.interfaces[interface].link {
                    Link::Driver { guest, .. } if guest == at => return Hop::Ring(interface),
                    Link::Driver { guest, .. } => behind = guest,
                    Link::Hypervisor | Link::Owner => break,
                }
            }
        } else if from.is_none() && self.connections.get(packet.connection).is_none() {
            return Hop::Nowhere;
        }
        let own = self.guests[at].interface;
        match own.map(|interface| self.interfaces[interface].link) {
            Some(Link::Driver { .. }) => Hop::Up(own.expect("it was just looked at")),
            _ => {
                let interface = from.or(own);
                Hop::Line(interface.map_or(0, |interface| self.interfaces[interface].nic))
            }
        }
    }

    /// What a piece of a driver domain's work costs.
    pub(super) fn driver_cost(&mut self, guest: usize, backend: usize, work: &DriverWork) -> Layers {
        let costs = self.guests[guest].driver;
        let vcpu = self.backends[backend].vcpu;
        match work {
            DriverWork::Upcall => Layers::kernel(costs.upcall_ns, costs.hypervisor_upcall_ns),
            DriverWork::Disk(_, BlockBackWork::Request(request), cost) => {
                // A page of a disk's is granted as one of a packet's is.
                let pages = u64::from(request.bytes).div_ceil(PAGE_BYTES) as i64;
                let emulation = self.blocks[request.block as usize].emulation_ns;
                Layers::kernel(*cost, (pages * costs.hypervisor_send_ns).min(*cost))
                    .and_application(emulation)
            }
            DriverWork::Disk(_, BlockBackWork::Response(_), cost) => Layers::kernel(*cost, 0),
            DriverWork::Receive(nic, packet) => {
                let moved = self.nics[*nic].touched_by.replace(vcpu).is_some_and(|last| last != vcpu);
                let hop = self.hop(guest, None, packet);
                let onward = match hop {
                    Hop::Ring(interface) => self.handing_on(guest, interface),
                    Hop::Here => Layers::kernel(self.guests[guest].network.receive_ns, 0),
                    Hop::Up(_) | Hop::Line(_) | Hop::Nowhere => Layers::kernel(costs.bridge_ns, 0),
                };
                let driver = costs.nic_receive_ns + if moved { costs.bounce_ns } else { 0 };
                Layers::kernel(driver, 0).plus(&onward)
            }
            DriverWork::Send(interface, packet) => {
                let hop = self.hop(guest, Some(*interface), packet);
                let interface = &mut self.interfaces[*interface];
                let moved = interface.touched_by.replace(vcpu).is_some_and(|last| last != vcpu);
                let emulation = interface.emulation_ns;
                let (onward, card_moved) = match hop {
                    Hop::Line(nic) => {
                        let last = self.nics[nic].touched_by.replace(vcpu);
                        (costs.nic_send_ns, last.is_some_and(|last| last != vcpu))
                    }
                    Hop::Ring(_) => (costs.backend_receive_ns, false),
                    Hop::Here => (self.guests[guest].network.receive_ns, false),
                    // The guest's own interface takes its time to send when it comes to it.
                    Hop::Up(_) | Hop::Nowhere => (0, false),
                };
                let bounces = i64::from(moved) + i64::from(card_moved);
                let exchange = if matches!(hop, Hop::Ring(_)) { costs.hypervisor_receive_ns } else { 0 };
                let all = costs.backend_send_ns + costs.bridge_ns + onward + bounces * costs.bounce_ns;
                Layers::kernel(all, costs.hypervisor_send_ns + exchange).and_application(emulation)
            }
        }
    }

    /// What it costs a guest to put a packet into the ring of an interface behind it: the bridge, the exchange of a page,
    /// and emulating the card if it is an emulated one.
    fn handing_on(&self, guest: usize, interface: usize) -> Layers {
        let costs = self.guests[guest].driver;
        let all = costs.bridge_ns + costs.backend_receive_ns;
        let emulation = self.interfaces[interface].emulation_ns;
        Layers::kernel(all, costs.hypervisor_receive_ns).and_application(emulation)
    }

    /// The same for a packet that its own interface has received or sends, if it is for a guest behind.
    pub(super) fn handing_on_own(&mut self, guest: usize, work: &InterfaceWork) -> Layers {
        let packet = match work {
            InterfaceWork::Receive(packet) => packet,
            InterfaceWork::Send(packet) if self.owns_card(guest) => packet,
            InterfaceWork::Upcall | InterfaceWork::Send(_) => return Layers::default(),
        };
        match self.hop(guest, None, packet) {
            Hop::Ring(interface) => self.handing_on(guest, interface),
            Hop::Here | Hop::Up(_) | Hop::Line(_) | Hop::Nowhere => Layers::default(),
        }
    }

    fn owns_card(&self, guest: usize) -> bool {
        let own = self.guests[guest].interface;
        own.is_some_and(|own| matches!(self.interfaces[own].link, Link::Owner))
    }

    pub(super) fn finish_driver(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: usize,
        number: usize,
        work: DriverWork,
    ) {
        let (from, packet) = match work {
            DriverWork::Upcall => return,
            DriverWork::Disk(number, work, _) => {
                let unit = &mut self.disks[number];
                unit.back.finish(ctx.now(), work, &mut self.blocks, &mut unit.store);
                if let BlockBackWork::Response(request) = work {
                    self.disk_step(ctx, IoKind::EnterRing, request.block as usize, request.bytes);
                }
                return self.set_disk(ctx, number);
            }
            DriverWork::Receive(nic, packet) => {
                let stray = self.hop(guest, None, &packet) == Hop::Nowhere;
                self.nics[nic].counts.strays += u64::from(stray);
                (None, packet)
            }
            DriverWork::Send(interface, packet) => (Some(interface), packet),
        };
        self.forward(ctx, guest, number, from, packet);
        self.pass_turn(ctx, guest, number);
    }

    /// Another vCPU of a driver domain that waits for its turn has it now.
    pub(super) fn pass_turn(&mut self, ctx: &mut WorldContext<'_>, guest: usize, number: usize) {
        let Some(first) = self.guests[guest].first_backend else { return };
        self.guests[guest].turn = None;
        if !self.packets_in_turn {
            return;
        }
        let vcpus = self.guests[guest].kernel.vcpus();
        for next in (1..vcpus).map(|step| (number + step) % vcpus) {
            let backend = &mut self.backends[first + next];
            if std::mem::take(&mut backend.waits_for_turn) {
                self.guests[guest].turn = Some(next);
                return ctx.kick(backend.vcpu, WakeCause::Event);
            }
        }
    }

    /// A packet goes on from a guest.
    fn forward(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: usize,
        number: usize,
        from: Option<usize>,
        packet: Packet,
    ) {
        match self.hop(guest, from, &packet) {
            Hop::Here => self.arrive(ctx, packet),
            Hop::Nowhere => {}
            Hop::Up(interface) => self.interfaces[interface].queue_to_send(packet),
            Hop::Line(nic) => self.put_on_line(ctx, nic, packet),
            Hop::Ring(interface) => match self.interfaces[interface].hand_over(packet) {
                Err(packet) => self.lose(ctx, packet),
                Ok(tell) => {
                    self.network_step(ctx, IoKind::EnterRing, interface, packet.bytes);
                    if tell && let Some(backend) = self.backend(guest, number as u32) {
                        self.backends[backend].tell(interface);
                    }
                }
            },
        }
    }

    fn put_on_line(&mut self, ctx: &mut WorldContext<'_>, nic: usize, packet: Packet) {
        self.nics[nic].send(ctx.now(), packet);
        let arrival = self.nics[nic].outbound.next_arrival();
        self.set(ctx, Source::Outbound(nic), arrival);
        self.set_interrupt(ctx, nic);
    }

    pub(super) fn finish_interface(&mut self, ctx: &mut WorldContext<'_>, guest: usize, work: InterfaceWork) {
        let Some(index) = self.guests[guest].interface else { return };
        match work {
            InterfaceWork::Upcall => {}
            InterfaceWork::Receive(packet) => match self.destination(&packet) {
                Some(destination) if destination != guest => {
                    let number = self.interfaces[index].vcpu_number;
                    self.forward(ctx, guest, number, None, packet);
                    // What was handed on is announced at once: this domain has no rounds of its own for it.
                    if let Hop::Ring(behind) = self.hop(guest, None, &packet) {
                        self.interfaces[behind].send_event(ctx);
                    }
                }
                _ => self.arrive(ctx, packet),
            },
            InterfaceWork::Send(packet) => {
                let interface = &mut self.interfaces[index];
                match interface.link {
                    Link::Driver { guest: driver, vcpu } => {
                        let first = interface.put(packet);
                        self.network_step(ctx, IoKind::EnterRing, index, packet.bytes);
                        let backend = self.backend(driver, vcpu).expect("checked when the machine was made");
                        self.backends[backend].ring_filled(ctx, index, first);
                    }
                    Link::Hypervisor => {
                        let nic = interface.nic;
                        interface.sent_directly(&packet);
                        self.put_on_line(ctx, nic, packet);
                    }
                    Link::Owner => {
                        let number = interface.vcpu_number;
                        interface.sent_directly(&packet);
                        self.forward(ctx, guest, number, Some(index), packet);
                        if let Hop::Ring(behind) = self.hop(guest, Some(index), &packet) {
                            self.interfaces[behind].send_event(ctx);
                        }
                    }
                }
            }
        }
    }

    // ---- cards and lines ----

    pub(super) fn set_interrupt(&self, ctx: &mut WorldContext<'_>, nic: usize) {
        self.set(ctx, Source::Interrupt(nic), self.nics[nic].next_interrupt());
    }

    pub(super) fn set_card(&self, ctx: &mut WorldContext<'_>, nic: usize) {
        self.set(ctx, Source::Inbound(nic), self.nics[nic].inbound.next_arrival());
        self.set_interrupt(ctx, nic);
    }

    pub(super) fn interrupt(&mut self, ctx: &mut WorldContext<'_>, nic: usize) {
        match self.nics[nic].config.owner {
            Owner::Guest { guest, vcpu } => {
                let backend = self.backend(guest, vcpu).expect("checked when the machine was made");
                self.backends[backend].interrupt(ctx, &mut self.nics[nic]);
                // A domain that owns the card sends again as soon as there is room.
                let own = self.guests[guest].interface;
                if own.is_some_and(|own| self.interfaces[own].wants_to_send()) {
                    ctx.kick(self.backends[backend].vcpu, WakeCause::Interrupt);
                }
            }
            Owner::Hypervisor { receive_ns } => self.hypervisor_receives(ctx, nic, receive_ns),
        }
        self.set_interrupt(ctx, nic);
    }

    /// The hypervisor's own driver takes all packets, on the pCPU of the guest that the first one is for.
    fn hypervisor_receives(&mut self, ctx: &mut WorldContext<'_>, nic: usize, receive_ns: Span) {
        self.nics[nic].interrupted(ctx.now());
        let mut first = true;
        while let Some(packet) = self.nics[nic].take_received() {
            let interface = self.destination(&packet).and_then(|guest| self.guests[guest].interface);
            let Some(interface) = interface else { continue };
            let home = ctx.host().processor(self.interfaces[interface].vcpu);
            if std::mem::take(&mut first) {
                ctx.interrupt(home);
            }
            ctx.charge(home, receive_ns);
            match self.interfaces[interface].hand_over(packet) {
                Ok(_) => self.interfaces[interface].send_event(ctx),
                Err(packet) => self.lose(ctx, packet),
            }
        }
        // Those that wait for room on the line look again.
        for index in 0..self.interfaces.len() {
            let interface = &self.interfaces[index];
            if interface.nic == nic && interface.wants_to_send() {
                ctx.kick(interface.vcpu, WakeCause::Interrupt);
            }
        }
    }

    /// A packet has come to the end of a card's line.
    pub(super) fn leave(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        match self.destination(&packet) {
            // For a guest behind another card: the switch passes it on.
            Some(_) => self.send_inbound(ctx, packet),
            None => self.reach_client(ctx, packet),
        }
    }

    /// A packet from outside, or from another card, goes to the card of the guest that it is for.
    pub(super) fn send_inbound(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        let interface = self.destination(&packet).and_then(|guest| self.guests[guest].interface);
        let Some(interface) = interface else { return };
        let nic = self.interfaces[interface].nic;
        let wire = &mut self.nics[nic].inbound;
        wire.send(ctx.now(), packet);
        let arrival = wire.next_arrival();
        self.set(ctx, Source::Inbound(nic), arrival);
    }

    /// A packet sets out from whoever sends it.
    pub(super) fn transmit(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        let from = packet.to.other() as usize;
        let Some(connection) = self.connections.get(packet.connection) else { return };
        let [from, to] = [connection.parties[from], connection.parties[packet.to as usize]];
        let Some(guest) = from.guest() else { return self.leave_client(ctx, packet) };
        if Some(guest) == to.guest() {
            self.guests[guest].loopback.push_back(packet);
            self.kick_network(ctx, guest);
        } else if let Some(interface) = self.guests[guest].interface {
            self.interfaces[interface].queue_to_send(packet);
            self.kick_network(ctx, guest);
        }
    }

    /// If none of a guest's vCPUs is just at work for what is to be sent, one must be told.
    fn kick_network(&mut self, ctx: &mut WorldContext<'_>, guest: usize) {
        if self.executing.is_none_or(|(_, executing)| executing != guest) {
            let first = self.guests[guest].first_vcpu;
            let vcpu =
                self.guests[guest].interface.map_or(first, |interface| self.interfaces[interface].vcpu);
            ctx.kick(vcpu, WakeCause::Timer);
        }
    }

    // ---- losses ----

    /// A packet found no room: whoever sent it sends it again, soon if the answers to what follows tell of it; a call, of
    /// which nothing is known yet, only after seconds.
    pub(super) fn lose(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        if packet.kind == Kind::Syn {
            return self.call_again_later(ctx, packet.connection);
        }
        let from = packet.to.other();
        let Some(connection) = self.connections.get(packet.connection) else { return };
        let soon = packet.bytes > 0 && connection.shrink(from);
        let (list, delay) = match soon {
            true => (&mut self.lost_soon, super::connections::RETRANSMIT_SOON),
            false => (&mut self.lost, super::connections::RETRANSMIT_AFTER),
        };
        list.push_back((ctx.now() + delay, packet));
        self.set_lost(ctx);
    }

    fn set_lost(&self, ctx: &mut WorldContext<'_>) {
        let first = |list: &VecDeque<(Time, Packet)>| list.front().map_or(NEVER, |&(time, _)| time);
        self.set(ctx, Source::Lost, first(&self.lost));
        self.set(ctx, Source::LostSoon, first(&self.lost_soon));
    }

    pub(super) fn send_lost_again(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(packet) = take_due(&mut self.lost, ctx.now()) {
            self.send_again(ctx, packet);
        }
        while let Some(packet) = take_due(&mut self.lost_soon, ctx.now()) {
            self.send_again(ctx, packet);
        }
        self.set_lost(ctx);
    }

    fn send_again(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        self.count_retransmission(&packet);
        self.transmit(ctx, packet);
    }

    /// Is that end of a connection outside the host?
    pub(super) fn is_outside(party: Party) -> bool {
        party.guest().is_none()
    }
}

/// The first of a list in the order of time, if its time has come.
fn take_due(list: &mut VecDeque<(Time, Packet)>, now: Time) -> Option<Packet> {
    let &(_, packet) = list.front().filter(|&&(time, _)| time <= now)?;
    list.pop_front();
    Some(packet)
}
