//! Packets on their way: from a guest or a client through NICs and driver domains to their destination.

use vcpulab_host::{IoKind, WakeCause, WorldContext};

use super::Machine;
use super::work::DriverWork;
use crate::ids::{GuestId, NetfrontId, NicId, PacketId};
use crate::interrupts::Taken;
use crate::network::client_machine::Job;
use crate::network::netfront::NetfrontWork;
use crate::network::nic::NicOwner;
use crate::network::tcp::{Kind, Packet, Side};
use crate::path::legs::Place;
use crate::path::route::Uplink;
use crate::path::route::{Destination, Hop};

impl Machine {
    /// Sends a packet from its sender.
    pub(super) fn transmit(&mut self, ctx: &mut WorldContext<'_>, mut packet: Packet) {
        if let Some(paths) = &self.network.paths {
            packet.leg = paths.cause_of(&packet);
        }
        let from = packet.to.other() as usize;
        let Some(connection) = self.network.connections.get(packet.connection) else { return };
        let [from, to] = [connection.parties[from], connection.parties[packet.to as usize]];
        let machine = connection.machine;
        let packet = self.network.packets.add(packet);
        let Some(guest) = from.guest() else {
            self.network.enters(ctx.now(), packet, Place::Client, None);
            return match machine {
                Some(machine) => self.clients.begin_job(ctx, machine, Job::Send(packet)),
                None => self.network.send_inbound(ctx, packet),
            };
        };
        let vcpu = if Some(guest) == to.guest() {
            self.network.enters(ctx.now(), packet, Place::Loopback, None);
            self.guests.all[guest].exchange().loopback.push_back(packet);
            self.network.netfront(guest).map_or(self.guests.all[guest].first_vcpu, |netfront| netfront.vcpu)
        } else {
            let Some(netfront) = self.network.routes.netfront(guest) else {
                self.network.packets.remove(packet);
                return;
            };
            self.network.enters(ctx.now(), packet, Place::SendQueue, None);
            self.network.netfronts[netfront].enqueue(packet);
            self.network.netfronts[netfront].vcpu
        };
        self.guests.kick_network(ctx, guest, vcpu);
    }

    /// Passes the packets of a NIC on that have arrived at the switch.
    pub(super) fn arrive_at_switch(&mut self, ctx: &mut WorldContext<'_>, nic: NicId) {
        while let Some(packet) = self.network.nics[nic].outbound.take_arrived(ctx.now()) {
            match self.network.destination(packet) {
                // It is for a guest behind another NIC.
                Destination::Guest(_) => self.network.send_inbound(ctx, packet),
                Destination::Outside | Destination::Ended => self.arrive_outside(ctx, packet),
            }
        }
        self.network.nics[nic].arm_outbound(ctx);
    }

    fn arrive_outside(&mut self, ctx: &mut WorldContext<'_>, packet: PacketId) {
        self.network.enters(ctx.now(), packet, Place::Client, None);
        let connection = self.network.connections.get(self.network.packets[packet].connection);
        match connection.and_then(|connection| connection.machine) {
            Some(machine) => self.clients.receive(ctx, machine, packet, &self.network.packets),
            None => self.arrive(ctx, packet),
        }
    }

    /// Takes the interrupt of a NIC.
    pub(super) fn interrupt(&mut self, ctx: &mut WorldContext<'_>, nic: NicId) {
        self.network.interrupt(ctx, nic);
        match self.network.nics[nic].config.owner {
            NicOwner::Guest { guest, vcpu } => {
                let vcpu = self.drivers.interrupt(ctx, (guest, vcpu));
                // A domain that owns the NIC sends again as soon as there is room.
                if self.network.netfront(guest).is_some_and(|own| own.wants_to_send()) {
                    ctx.kick(vcpu, WakeCause::Interrupt);
                }
            }
            NicOwner::Hypervisor { receive_ns } => self.network.hypervisor_receives(ctx, nic, receive_ns),
            NicOwner::Host { guest, receive_ns, interrupts } => {
                let mut taken = Taken::none();
                while let Some((id, packet)) =
                    self.network.take_below(ctx, nic, (receive_ns, interrupts), &mut taken)
                {
                    self.pass_on(ctx, guest, 0, packet, Hop::Thread(id));
                }
                self.drivers.room(ctx, guest);
            }
        }
        self.network.nics[nic].arm_interrupt(ctx);
    }

    /// Sends lost packets again whose time has come, or gives their connections up.
    #[cold]
    pub(super) fn retransmit(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(lost) = self.network.timers.take_lost(ctx.now()) {
            let Some(connection) = self.network.connections.get(lost.connection) else { continue };
            let forgotten = connection.abandoned && lost.to == Side::Called;
            match lost.again() {
                // The service, too, has waited long enough for a caller that is gone.
                _ if lost.kind == Kind::Reset && connection.lacks_request() => {
                    self.break_off(ctx, lost.connection);
                }
                _ if forgotten => {}
                Some(packet) => {
                    self.network.count_retransmission(&packet);
                    self.transmit(ctx, packet);
                }
                None => self.break_off(ctx, lost.connection),
            }
        }
        self.network.timers.arm_retransmission(ctx);
    }

    // ---- ends of work ----

    /// Ends a driver domain's piece of work on vCPU `number`.
    pub(super) fn finish_driver(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        number: usize,
        work: DriverWork,
    ) {
        match work {
            DriverWork::Upcall => {}
            DriverWork::Disk(at, work) => self.storage.finish_back(ctx, at, work),
            DriverWork::Receive(nic, packet, hop) => {
                let hop = self.network.confirm(hop, guest, None, packet);
                self.network.nics[nic].counts.strays += u64::from(hop == Hop::Nowhere);
                self.pass_on(ctx, guest, number, packet, hop);
                self.drivers.pass_turn(ctx, guest, number);
            }
            DriverWork::Deliver(netfront, packet) => {
                self.network.netfronts[netfront].take_left();
                let hop = self.network.confirm(Hop::Ring(netfront), guest, None, packet);
                self.pass_on(ctx, guest, number, packet, hop);
            }
            DriverWork::Send(netfront, packet, hop) => {
                let hop = self.network.confirm(hop, guest, Some(netfront), packet);
                self.pass_on(ctx, guest, number, packet, hop);
                self.drivers.pass_turn(ctx, guest, number);
            }
        }
    }

    /// Ends a piece of work of a guest's netfront and network stack.
    pub(super) fn finish_netfront(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        work: NetfrontWork,
        hop: Hop,
    ) {
        let Some(id) = self.network.routes.netfront(guest) else { return };
        match work {
            NetfrontWork::Upcall => {}
            NetfrontWork::Receive(packet) => {
                let hop = self.network.confirm(hop, guest, None, packet);
                self.pass_on_own(ctx, guest, id, packet, hop);
            }
            NetfrontWork::Send(packet) => {
                let netfront = &mut self.network.netfronts[id];
                match netfront.uplink {
                    Uplink::DriverDomain { guest: driver, vcpu } => {
                        self.network.enters(ctx.now(), packet, Place::RingOut, None);
                        let first = self.network.netfronts[id].put(packet, &self.network.packets);
                        self.network.report_ring(ctx, IoKind::EnterRing, id, packet);
                        self.drivers.ring_filled(ctx, (driver, vcpu), id, first);
                    }
                    Uplink::Hypervisor => {
                        let nic = netfront.nic;
                        netfront.sent_directly(packet, &self.network.packets);
                        self.network.put_on_link(ctx, nic, packet);
                    }
                    Uplink::OwnNic => {
                        netfront.sent_directly(packet, &self.network.packets);
                        let hop = self.network.confirm(hop, guest, Some(id), packet);
                        self.pass_on_own(ctx, guest, id, packet, hop);
                    }
                }
            }
        }
    }

    /// Passes a packet of a guest's own netfront on. Its next guest is notified at once: there is no poll at whose end it would
    /// be.
    fn pass_on_own(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        own: NetfrontId,
        packet: PacketId,
        hop: Hop,
    ) {
        let number = self.network.netfronts[own].vcpu_number;
        self.pass_on(ctx, guest, number, packet, hop);
        if let Hop::Ring(behind) = hop {
            self.network.netfronts[behind].send_event(ctx);
        }
    }

    /// Passes a packet on from a guest, on its vCPU `number`.
    fn pass_on(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        number: usize,
        packet: PacketId,
        hop: Hop,
    ) {
        match hop {
            Hop::Here => self.arrive(ctx, packet),
            Hop::Nowhere => _ = self.network.packets.remove(packet),
            Hop::Up(netfront) => {
                self.network.enters(ctx.now(), packet, Place::SendQueue, None);
                self.network.netfronts[netfront].enqueue(packet);
            }
            Hop::Link(nic) => self.network.put_on_link(ctx, nic, packet),
            Hop::Thread(netfront) => {
                self.network.enters(ctx.now(), packet, Place::Thread, None);
                let front = &mut self.network.netfronts[netfront];
                let Uplink::DriverDomain { vcpu, .. } = front.uplink else { return };
                match front.leave(packet) {
                    Err(packet) => self.network.lose(ctx, packet),
                    Ok(packet) => self.drivers.leave(ctx, (guest, vcpu), netfront, packet),
                }
            }
            Hop::Ring(netfront) => {
                self.network.enters(ctx.now(), packet, Place::RingIn, None);
                match self.network.netfronts[netfront].deliver(packet) {
                    Err(packet) => self.network.lose(ctx, packet),
                    Ok(notify) => {
                        self.network.report_ring(ctx, IoKind::EnterRing, netfront, packet);
                        if notify {
                            self.drivers.notify_later(guest, number, netfront);
                        }
                    }
                }
            }
        }
    }
}
