//! Packets at the ends of connections: services, tasks that ask them, and clients outside.

use vcpulab_guest::{ConnectionId, Request, Service, SynAnswer};
use vcpulab_host::WorldContext;

use super::Machine;
use crate::ids::PacketId;
use crate::network::client::{Ask, Asking, Failed, Outcome};
use crate::network::tcp::{Connection, Kind, Packet, Party, SYNS_MAX, Sender, Side, Stage};
use crate::path::legs::Place;

impl Machine {
    /// Takes a packet that has come to its destination.
    pub(super) fn arrive(&mut self, ctx: &mut WorldContext<'_>, packet: PacketId) {
        let packet = self.network.packets.remove(packet);
        let (id, side) = (packet.connection, packet.to);
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        if connection.abandoned && side == Side::Caller && packet.kind != Kind::Refused {
            return self.reset(ctx, &packet);
        }
        let party = connection.parties[side as usize];
        if let Some(paths) = &mut self.network.paths {
            paths.cause = packet.leg;
        }
        if packet.acknowledges > 0 || packet.kind == Kind::Ack {
            connection.acknowledged(side, &packet);
        }
        if side == Side::Called
            && connection.stage == Stage::HalfOpen
            && matches!(packet.kind, Kind::Ack | Kind::Data)
        {
            self.complete_set_up(ctx, id, party);
        }
        match packet.kind {
            Kind::Syn => self.receive_syn(ctx, id, party),
            Kind::SynAck => self.receive_syn_ack(ctx, id, party),
            Kind::Refused => {
                let Some(&mut over) = self.network.connections.get_mut(id) else { return };
                self.network.connections.close(id);
                self.failed(ctx, &over, Outcome::Refused);
            }
            Kind::Ack => self.send_queued(ctx, id, side),
            Kind::Data => self.receive_data(ctx, &packet, party),
            Kind::Fin => {
                self.disconnect(ctx, id, party);
                self.send_plain(ctx, id, side, Kind::FinAck);
            }
            Kind::FinAck => self.network.connections.close(id),
            Kind::Reset => {
                self.disconnect(ctx, id, party);
                self.network.connections.close(id);
            }
        }
        if let Some(paths) = &mut self.network.paths {
            paths.cause = None;
        }
    }

    /// Ends a connection at its service. If it was served, the next one of the backlog is.
    pub(super) fn disconnect(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else { return };
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let stage = std::mem::replace(&mut connection.stage, Stage::Closed);
        let Some(service) = self.guests.all[guest].kernel.service_mut(app) else { return };
        match stage {
            Stage::Closed => {}
            Stage::HalfOpen => service.give_up_set_up(),
            Stage::Backlog => service.leave_backlog(id),
            Stage::Served => {
                if let Some(next) = service.disconnect() {
                    self.serve(ctx, next, party);
                }
            }
        }
    }

    /// Sends a packet without data.
    pub(super) fn send_plain(
        &mut self,
        ctx: &mut WorldContext<'_>,
        id: ConnectionId,
        from: Side,
        kind: Kind,
    ) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let packet = connection.packet(id, from, kind);
        self.transmit(ctx, packet);
    }

    /// Answers a packet for a connection that its caller has forgotten (RFC 9293, section 3.10.7.1).
    #[cold]
    fn reset(&mut self, ctx: &mut WorldContext<'_>, answered: &Packet) {
        let Some(connection) = self.network.connections.get_mut(answered.connection) else { return };
        let reset = connection.packet(answered.connection, Side::Caller, Kind::Reset);
        self.transmit(ctx, Packet { retransmissions: answered.retransmissions, ..reset });
    }

    /// Breaks a connection off at both ends.
    pub(super) fn break_off(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId) {
        let Some(&over) = self.network.connections.get(id) else { return };
        self.disconnect(ctx, id, over.parties[Side::Called as usize]);
        self.network.connections.close(id);
        if !over.is_answered() && !over.streams {
            self.failed(ctx, &over, Outcome::TimedOut);
        }
    }

    // ---- set-up and teardown ----

    /// Takes a SYN.
    fn receive_syn(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else {
            return self.send_plain(ctx, id, Side::Called, Kind::SynAck);
        };
        let kernel = &mut self.guests.all[guest].kernel;
        match kernel.service_mut(app).map_or(SynAnswer::Refused, Service::syn) {
            SynAnswer::Accepted => {
                if let Some(connection) = self.network.connections.get_mut(id) {
                    connection.stage = Stage::HalfOpen;
                }
                self.send_plain(ctx, id, Side::Called, Kind::SynAck);
            }
            SynAnswer::Dropped => self.network.lose_syn(ctx, id),
            SynAnswer::Refused => {
                kernel.count_failure(app);
                self.send_plain(ctx, id, Side::Called, Kind::Refused);
            }
        }
    }

    /// Completes the set-up of a connection to a service.
    fn complete_set_up(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else { return };
        let service = self.guests.all[guest].kernel.service_mut(app);
        match service.is_some_and(|service| service.connect(id)) {
            true => self.serve(ctx, id, party),
            false => {
                if let Some(connection) = self.network.connections.get_mut(id) {
                    connection.stage = Stage::Backlog;
                }
            }
        }
    }

    /// Begins to serve a connection.
    fn serve(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        connection.stage = Stage::Served;
        // A stream is there for its service at once, an exchange when its request is complete.
        if std::mem::take(&mut connection.asked) || connection.streams {
            self.deliver_request(ctx, id, party);
        }
    }

    /// Sends lost SYNs again whose time has come, or gives their connections up.
    #[cold]
    pub(super) fn retransmit_syns(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(id) = self.network.timers.take_syn(ctx.now()) {
            let Some(connection) = self.network.connections.get_mut(id) else { continue };
            connection.syn_waits = false;
            let over = *connection;
            if over.syns_lost < SYNS_MAX {
                self.send_plain(ctx, id, Side::Caller, Kind::Syn);
            } else {
                self.network.connections.close(id);
                self.failed(ctx, &over, Outcome::TimedOut);
            }
        }
        self.network.timers.arm_syns(ctx);
    }

    /// Takes the answer to a SYN.
    fn receive_syn_ack(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        self.send_plain(ctx, id, Side::Caller, Kind::Ack);
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        connection.connect_ns = Some(ctx.now() - connection.asked_at);
        if !connection.streams {
            return self.ask(ctx, id);
        }
        match party {
            Party::Task { guest, task } => {
                self.guests.all[guest].kernel.set_stream(task, id);
                self.goes_on(guest, task);
                self.guests.resume(ctx, guest, task);
            }
            Party::Client { client, user } => self.continue_stream(ctx, client, user, id),
            Party::Outside | Party::Service { .. } => {}
        }
    }

    /// Ends the request of a connection that did not come through.
    pub(super) fn failed(&mut self, ctx: &mut WorldContext<'_>, over: &Connection, why: Outcome) {
        match over.parties[Side::Caller as usize] {
            Party::Task { guest, task } => {
                let kernel = &mut self.guests.all[guest].kernel;
                kernel.count_failure(kernel.app_of(task));
                self.guests.resume(ctx, guest, task);
            }
            Party::Client { client, user } => {
                self.clients.all[client].take_kept(user);
                match self.clients.all[client].failed(user, ctx.now()) {
                    Failed::Retry => {
                        let (class, request_bytes, reply_bytes) = (over.class, over.request_bytes, over.asks);
                        let ask = Ask { class, request_bytes, reply_bytes, weight: 0 };
                        self.make_request(ctx, client, Asking { user, ask, begun: over.asked_at });
                    }
                    Failed::GiveUp => {
                        self.clients.log_request(ctx.now(), over, why);
                        self.clients.arm_user(ctx, client);
                    }
                }
            }
            Party::Outside | Party::Service { .. } => {}
        }
    }

    // ---- requests and answers ----

    /// Sends the request of a connection from its caller.
    pub(super) fn ask(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        connection.expect(Side::Called, connection.request_bytes.into());
        connection.enqueue(Side::Caller, connection.request_bytes);
        self.send_queued(ctx, id, Side::Caller);
    }

    /// Sends the answer of a connection's service.
    pub(super) fn answer(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, bytes: u32) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        connection.expect(Side::Caller, bytes.into());
        connection.enqueue(Side::Called, bytes);
        self.send_queued(ctx, id, Side::Called);
    }

    /// Sends the packets that the windows let an end send. With room again, its sender continues.
    pub(super) fn send_queued(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, from: Side) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let party = connection.parties[from as usize];
        let netfront = party.guest().and_then(|guest| self.network.netfront(guest));
        let segments_max = netfront.map_or(1, |netfront| netfront.segments_max);
        while let Some(packet) = self
            .network
            .connections
            .get_mut(id)
            .and_then(|connection| connection.next_data(id, from, segments_max))
        {
            self.transmit(ctx, packet);
        }
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        if connection.streams && connection.outstanding(from) <= connection.send_buffer(from) / 2 {
            let waiting = connection.senders[from as usize].take();
            match (party, waiting) {
                (Party::Task { guest, .. } | Party::Service { guest, .. }, Some(Sender::Task(task))) => {
                    self.guests.resume(ctx, guest, task);
                }
                (Party::Client { client, user }, Some(Sender::User)) => {
                    self.continue_stream(ctx, client, user, id);
                }
                _ => {}
            }
        }
    }

    /// Takes a packet with data.
    fn receive_data(&mut self, ctx: &mut WorldContext<'_>, packet: &Packet, party: Party) {
        let (id, side) = (packet.connection, packet.to);
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let mut arrival = connection.receive(side, packet);
        if side == Side::Caller {
            connection.latency_ns.get_or_insert(ctx.now() - connection.asked_at);
        }
        if connection.streams && party.guest().is_none() {
            arrival.acknowledge |= connection.read(side, packet.bytes);
        }
        if arrival.complete {
            // A packet that closes it acknowledges it too.
            arrival.acknowledge &= side == Side::Called || !connection.closes;
        }
        if arrival.acknowledge {
            self.send_plain(ctx, id, side, Kind::Ack);
        }
        if arrival.complete {
            match side {
                Side::Called => self.deliver_request(ctx, id, party),
                Side::Caller => self.answered(ctx, id, party),
            }
        }
        if arrival.acknowledge_later {
            if let Some(paths) = &mut self.network.paths {
                paths.wait(id, Place::DelayedAck, ctx.now());
            }
            self.network.timers.delay_ack(ctx, id, side);
        }
        self.wake_reader(ctx, id, side, party);
        if packet.acknowledges > 0 {
            self.send_queued(ctx, id, side);
        }
    }

    /// Lets a task continue that waits for data that have come.
    fn wake_reader(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, side: Side, party: Party) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let Some((task, bytes)) = connection.readers[side as usize] else { return };
        if connection.unread(side) >= bytes
            && let Some(guest) = party.guest()
        {
            connection.readers[side as usize] = None;
            self.goes_on(guest, task);
            self.take_from_stream(ctx, id, side, bytes);
            self.guests.resume(ctx, guest, task);
        }
    }

    /// Takes bytes off a stream for an application.
    pub(super) fn take_from_stream(
        &mut self,
        ctx: &mut WorldContext<'_>,
        id: ConnectionId,
        side: Side,
        bytes: u32,
    ) {
        if self.network.connections.get_mut(id).is_some_and(|connection| connection.read(side, bytes)) {
            self.send_plain(ctx, id, side, Kind::Ack);
        }
    }

    /// Sends delayed acknowledgements whose time has come.
    pub(super) fn send_delayed_acks(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some((id, side)) = self.network.timers.take_ack(ctx.now()) {
            if self.network.connections.get_mut(id).is_some_and(|connection| connection.ack_is_due(side)) {
                self.send_plain(ctx, id, side, Kind::Ack);
            }
        }
        self.network.arm_acks(ctx);
    }

    /// Delivers a complete request to its service.
    fn deliver_request(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else { return };
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let (class, asks) = (connection.class, connection.asks);
        let backlog = connection.stage == Stage::Backlog;
        let request = Request { connection: id, class, asks, since: ctx.now() };
        if let Some(paths) = &mut self.network.paths {
            paths.reached(id, guest, app, (!backlog).then_some(request), ctx.now());
        }
        if backlog {
            connection.asked = true;
            return;
        }
        connection.requests += 1;
        let kernel = &mut self.guests.all[guest].kernel;
        connection.closes |= connection.requests == kernel.service(app).map_or(0, Service::requests_max);
        kernel.request(app, request);
        self.guests.kick_tasks(ctx, guest);
    }

    /// Takes a complete answer.
    fn answered(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        let (closes, asked_at) = (connection.closes, connection.asked_at);
        let called = connection.parties[Side::Called as usize];
        match party {
            Party::Client { client, user } => {
                let over = *connection;
                if let Some(paths) = &mut self.network.paths {
                    paths.answered(id, client, user, asked_at);
                }
                if closes {
                    self.clients.all[client].take_kept(user);
                }
                self.clients.all[client].answered(user, ctx.now() - asked_at, ctx.now());
                self.clients.log_request(ctx.now(), &over, Outcome::Answered);
                self.clients.arm_user(ctx, client);
            }
            Party::Task { guest, task } => {
                if !closes && let Party::Service { guest: of, app } = called {
                    let services = &mut self.guests.services.enumerate();
                    if let Some((service, _)) = services.find(|(_, known)| **known == (of, app)) {
                        self.guests.all[guest].exchange().kept.entry(service).push(id);
                    }
                }
                self.goes_on(guest, task);
                self.guests.resume(ctx, guest, task);
            }
            Party::Outside | Party::Service { .. } => {}
        }
        if closes {
            self.send_plain(ctx, id, Side::Caller, Kind::Fin);
        }
    }
}
