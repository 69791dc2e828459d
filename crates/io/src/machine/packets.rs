//! Packets that begin their path at a guest or a client, come off a link, or are sent again.

use vcpulab_host::{WakeCause, WorldContext};

use super::Machine;
use crate::ids::{GuestVcpu, NicId, PacketId};
use crate::interrupts::{InterruptCost, Taken};
use crate::network::client_machine::Job;
use crate::network::nic::NicOwner;
use crate::network::tcp::{Kind, Packet, Side};
use crate::path::carry::carry;
use crate::path::legs::Place;
use crate::path::route::{Destination, Hop, Origin, Step};

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
                let vcpu = self.drivers.interrupt(ctx, GuestVcpu { guest, number: vcpu });
                // A domain that owns the NIC sends again as soon as there is room.
                if self.network.netfront(guest).is_some_and(|own| own.wants_to_send()) {
                    ctx.kick(vcpu, WakeCause::Interrupt);
                }
            }
            NicOwner::Hypervisor { receive_ns } => self.network.hypervisor_receives(ctx, nic, receive_ns),
            NicOwner::Host { guest, receive_ns, interrupts } => {
                let mut taken = Taken::none();
                let at = GuestVcpu { guest, number: 0 };
                let cost = InterruptCost { each: receive_ns, pcpus: interrupts };
                while let Some((id, packet)) = self.network.take_below(ctx, nic, cost, &mut taken) {
                    let step = Step { from: Origin::Nic(nic), packet, hop: Hop::Thread(id) };
                    carry(ctx, &mut self.network, &mut self.drivers, at, step);
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
}
