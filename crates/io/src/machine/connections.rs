//! What packets mean to those at the ends of connections: services, tasks that ask them, and clients outside.

use vcpulab_guest::Request;
use vcpulab_host::{NEVER, Span, WorldContext};

use super::{Machine, Source};
use crate::client::Failed;
use crate::config::Load;
use crate::tcp::{ConnectionId, DELAYED_ACK, Kind, Packet, Party, SEND_BUFFER, Side};

/// How long a sender waits before it sends a lost packet again, ns (the least retransmission time-out of common TCPs).
pub(super) const RETRANSMIT_AFTER: Span = 200_000_000;
/// The same where acknowledgements of later segments tell of the loss (fast retransmit): about a round trip, ns.
pub(super) const RETRANSMIT_SOON: Span = 1_000_000;

impl Machine {
    /// A packet has come to the one that it is for.
    pub(super) fn arrive(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        let (id, side) = (packet.connection, packet.to);
        let Some(connection) = self.connections.get(id) else { return };
        let party = connection.parties[side as usize];
        if packet.acknowledges > 0 || packet.kind == Kind::Ack {
            connection.acknowledged(side, &packet);
        }
        match packet.kind {
            Kind::Syn => self.called(ctx, id, party),
            Kind::SynAck => self.opened(ctx, id, party),
            Kind::Refused => {
                self.connections.close(id);
                self.failed(ctx, party);
            }
            Kind::Ack => self.send_on(ctx, id, side),
            Kind::Data => self.receive(ctx, &packet, party),
            Kind::Fin => {
                if let Party::Service { guest, app } = party {
                    self.guests[guest].kernel.disconnect(app);
                }
                self.send_plain(ctx, id, side, Kind::FinAck);
            }
            Kind::FinAck => self.connections.close(id),
            Kind::Reset => {
                if let Party::Service { guest, app } = party {
                    self.guests[guest].kernel.disconnect(app);
                }
                self.connections.close(id);
            }
        }
    }

    fn send_plain(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, from: Side, kind: Kind) {
        let Some(connection) = self.connections.get(id) else { return };
        let packet = connection.packet(id, from, kind);
        self.transmit(ctx, packet);
    }

    // ---- set-up and teardown ----

    /// Somebody calls.
    fn called(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let accepts = match party {
            Party::Service { guest, app } => {
                let kernel = &mut self.guests[guest].kernel;
                let accepts = kernel.connect(app);
                if !accepts {
                    kernel.count_failure(app);
                }
                accepts
            }
            _ => true,
        };
        self.send_plain(ctx, id, Side::Called, if accepts { Kind::SynAck } else { Kind::Refused });
        // A stream is there for its service from now on; of exchanges it hears when a request is complete.
        if let Some(connection) = self.connections.get(id)
            && accepts
            && connection.streams
        {
            self.hand_request(ctx, id, party);
        }
    }

    /// A call was accepted.
    fn opened(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        self.send_plain(ctx, id, Side::Caller, Kind::Ack);
        let Some(connection) = self.connections.get(id) else { return };
        if !connection.streams {
            return self.ask(ctx, id);
        }
        match party {
            Party::Task { guest, task } => {
                self.guests[guest].kernel.set_stream(task, id);
                self.resume(ctx, guest, task);
            }
            Party::Client { client, user } => self.stream_on(ctx, client, user, id),
            Party::Outside | Party::Service { .. } => {}
        }
    }

    /// A request did not come through.
    pub(super) fn failed(&mut self, ctx: &mut WorldContext<'_>, party: Party) {
        match party {
            Party::Task { guest, task } => {
                let kernel = &mut self.guests[guest].kernel;
                kernel.count_failure(kernel.app_of(task));
                self.resume(ctx, guest, task);
            }
            Party::Client { client, user } => {
                let failed = self.clients[client].failed(user, ctx.now());
                if let Some(kept) = self.users[client].get_mut(user as usize) {
                    *kept = None;
                }
                match failed {
                    Failed::Retry => self.user_asks(ctx, client, user, true),
                    Failed::GiveUp => self.set_user(ctx, client),
                }
            }
            Party::Outside | Party::Service { .. } => {}
        }
    }

    // ---- requests and answers ----

    /// The caller sends the request of a connection.
    pub(super) fn ask(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else { return };
        connection.expect(Side::Called, connection.request_bytes.into());
        connection.hand_over(Side::Caller, connection.request_bytes);
        self.send_on(ctx, id, Side::Caller);
    }

    /// The service of a connection answers.
    pub(super) fn answer(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, bytes: u32) {
        let Some(connection) = self.connections.get(id) else { return };
        connection.expect(Side::Caller, bytes.into());
        connection.hand_over(Side::Called, bytes);
        self.send_on(ctx, id, Side::Called);
    }

    /// Sends what the windows let an end send.
    pub(super) fn send_on(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, from: Side) {
        let Some(connection) = self.connections.get(id) else { return };
        let party = connection.parties[from as usize];
        let interface = party.guest().and_then(|guest| self.guests[guest].interface);
        let segments_max = interface.map_or(1, |interface| self.interfaces[interface].segments_max);
        while let Some(packet) =
            self.connections.get(id).and_then(|connection| connection.next_data(id, from, segments_max))
        {
            self.transmit(ctx, packet);
        }
        let Some(connection) = self.connections.get(id) else { return };
        if connection.streams && connection.outstanding(from) <= SEND_BUFFER / 2 {
            let waiting = connection.senders[from as usize].take();
            match party {
                Party::Task { guest, .. } | Party::Service { guest, .. } => {
                    if let Some(task) = waiting {
                        self.resume(ctx, guest, task);
                    }
                }
                Party::Client { client, user } if waiting.is_some() => self.stream_on(ctx, client, user, id),
                Party::Client { .. } | Party::Outside => {}
            }
        }
    }

    fn receive(&mut self, ctx: &mut WorldContext<'_>, packet: &Packet, party: Party) {
        let (id, side) = (packet.connection, packet.to);
        let Some(connection) = self.connections.get(id) else { return };
        let mut arrival = connection.receive(side, packet);
        if connection.streams && Self::is_outside(party) {
            arrival.acknowledge |= connection.read(side, packet.bytes);
        }
        if arrival.complete {
            // What closes it acknowledges it too.
            arrival.acknowledge &= side == Side::Called || !connection.closes;
        }
        if arrival.acknowledge {
            self.send_plain(ctx, id, side, Kind::Ack);
        }
        if arrival.complete {
            match side {
                Side::Called => self.hand_request(ctx, id, party),
                Side::Caller => self.answered(ctx, id, party),
            }
        }
        if arrival.acknowledge_later {
            self.acks.push_back((ctx.now() + DELAYED_ACK, id, side));
            if self.acks.len() == 1 {
                self.set(ctx, Source::Ack, ctx.now() + DELAYED_ACK);
            }
        }
        self.wake_reader(ctx, id, side, party);
        if packet.acknowledges > 0 {
            self.send_on(ctx, id, side);
        }
    }

    fn wake_reader(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, side: Side, party: Party) {
        let Some(connection) = self.connections.get(id) else { return };
        let Some((task, bytes)) = connection.readers[side as usize] else { return };
        if connection.unread(side) >= bytes
            && let Some(guest) = party.guest()
        {
            connection.readers[side as usize] = None;
            self.take_from_stream(ctx, id, side, bytes);
            self.resume(ctx, guest, task);
        }
    }

    /// An application takes bytes off a stream.
    pub(super) fn take_from_stream(
        &mut self,
        ctx: &mut WorldContext<'_>,
        id: ConnectionId,
        side: Side,
        bytes: u32,
    ) {
        if self.connections.get(id).is_some_and(|connection| connection.read(side, bytes)) {
            self.send_plain(ctx, id, side, Kind::Ack);
        }
    }

    pub(super) fn send_held_acks(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(&(time, id, side)) = self.acks.front()
            && time <= ctx.now()
        {
            self.acks.pop_front();
            if self.connections.get(id).is_some_and(|connection| connection.ack_is_due(side)) {
                self.send_plain(ctx, id, side, Kind::Ack);
            }
        }
        self.set(ctx, Source::Ack, self.acks.front().map_or(NEVER, |&(time, ..)| time));
    }

    /// A request is complete: the service has it.
    fn hand_request(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else { return };
        let Some(connection) = self.connections.get(id) else { return };
        let (class, asks) = (connection.class, connection.asks);
        self.guests[guest].kernel.request(app, Request { connection: id, class, asks, since: ctx.now() });
        self.kick_tasks(ctx, guest);
    }

    /// An answer is complete.
    fn answered(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Some(connection) = self.connections.get(id) else { return };
        let (closes, asked_at) = (connection.closes, connection.asked_at);
        let called = connection.parties[Side::Called as usize];
        match party {
            Party::Client { client, user } => {
                self.clients[client].answered(user, ctx.now() - asked_at, ctx.now());
                self.set_user(ctx, client);
            }
            Party::Task { guest, task } => {
                if !closes && let Party::Service { guest: of, app } = called {
                    let service = self.services.iter().position(|&service| service == (of, app));
                    if let Some(service) = service {
                        self.guests[guest].kept[service].push(id);
                    }
                }
                self.resume(ctx, guest, task);
            }
            Party::Outside | Party::Service { .. } => {}
        }
        if closes {
            self.send_plain(ctx, id, Side::Caller, Kind::Fin);
        }
    }

    pub(super) fn resume(&mut self, ctx: &mut WorldContext<'_>, guest: usize, task: usize) {
        self.guests[guest].kernel.resume(task);
        self.kick_tasks(ctx, guest);
    }

    // ---- clients ----

    fn set_user(&self, ctx: &mut WorldContext<'_>, client: usize) {
        self.set(ctx, Source::User(client), self.clients[client].next_event());
    }

    pub(super) fn users_act(&mut self, ctx: &mut WorldContext<'_>, client: usize) {
        while let Some(user) = self.clients[client].take_due(ctx.now()) {
            match self.clients[client].config.load {
                Load::Stream { .. } => self.user_streams(ctx, client, user),
                Load::Open { .. } | Load::Closed { .. } => self.user_asks(ctx, client, user, false),
            }
        }
        self.set_user(ctx, client);
    }

    fn user_asks(&mut self, ctx: &mut WorldContext<'_>, client: usize, user: u32, again: bool) {
        let Some(ask) = self.clients[client].ask(again) else { return };
        let config = &self.clients[client].config;
        let (keep_alive, timeout, service) = (config.keep_alive, config.timeout_ns, config.service);
        let (guest, app) = self.services[service];
        let kept = self.users[client].get_mut(user as usize).and_then(Option::take);
        let kept = kept.filter(|&id| self.connections.get(id).is_some());
        let id = kept.unwrap_or_else(|| {
            let parties = [Party::Client { client, user }, Party::Service { guest, app }];
            self.connections.open(parties, ctx.now())
        });
        if keep_alive && let Some(slot) = self.users[client].get_mut(user as usize) {
            *slot = Some(id);
        }
        if let Some(timeout) = timeout {
            self.timeouts[client].push_back((ctx.now() + timeout, id, ctx.now()));
            if self.timeouts[client].len() == 1 {
                self.set(ctx, Source::Timeout(client), ctx.now() + timeout);
            }
        }
        let Some(connection) = self.connections.get(id) else { return };
        connection.asked_at = ctx.now();
        connection.closes = !keep_alive;
        (connection.class, connection.asks) = (ask.class, ask.reply_bytes);
        connection.request_bytes = ask.request_bytes;
        match kept {
            Some(_) => self.ask(ctx, id),
            None => self.send_plain(ctx, id, Side::Caller, Kind::Syn),
        }
    }

    /// Requests that have not been answered in time are given up.
    pub(super) fn give_up(&mut self, ctx: &mut WorldContext<'_>, client: usize) {
        while let Some(&(time, id, asked_at)) = self.timeouts[client].front()
            && time <= ctx.now()
        {
            self.timeouts[client].pop_front();
            let Some(connection) = self.connections.get(id) else { continue };
            let party = connection.parties[Side::Caller as usize];
            // The answer may be here, and the connection about to close, or in use for the next one.
            if connection.asked_at != asked_at || connection.is_answered() {
                continue;
            }
            let reset = connection.packet(id, Side::Caller, Kind::Reset);
            connection.parties[Side::Caller as usize] = Party::Outside;
            self.transmit(ctx, reset);
            self.failed(ctx, party);
        }
        let next = self.timeouts[client].front().map_or(NEVER, |&(time, ..)| time);
        self.set(ctx, Source::Timeout(client), next);
    }

    /// A stream's next packet is due.
    fn user_streams(&mut self, ctx: &mut WorldContext<'_>, client: usize, user: u32) {
        match self.streams[client].get(user as usize).copied().flatten() {
            Some(id) => self.stream_on(ctx, client, user, id),
            None => {
                let (guest, app) = self.services[self.clients[client].config.service];
                let parties = [Party::Client { client, user }, Party::Service { guest, app }];
                let id = self.connections.open(parties, ctx.now());
                if let Some(connection) = self.connections.get(id) {
                    connection.streams = true;
                }
                self.streams[client][user as usize] = Some(id);
                self.send_plain(ctx, id, Side::Caller, Kind::Syn);
            }
        }
    }

    /// A client's stream goes on: its next packet, and the time of the one after that.
    fn stream_on(&mut self, ctx: &mut WorldContext<'_>, client: usize, user: u32, id: ConnectionId) {
        let Load::Stream { packet_bytes, gap_ns, .. } = self.clients[client].config.load else { return };
        let Some(connection) = self.connections.get(id) else { return };
        if gap_ns > 0 {
            connection.hand_over(Side::Caller, packet_bytes);
            self.clients[client].stats.count(1, ctx.now());
        } else {
            while connection.outstanding(Side::Caller) < SEND_BUFFER {
                connection.hand_over(Side::Caller, packet_bytes);
                self.clients[client].stats.count(1, ctx.now());
            }
        }
        if gap_ns > 0 && connection.outstanding(Side::Caller) < SEND_BUFFER {
            self.clients[client].set_due(user, ctx.now() + gap_ns);
            self.set_user(ctx, client);
        } else {
            // It goes on when there is room again.
            connection.senders[Side::Caller as usize] = Some(user as usize);
        }
        self.send_on(ctx, id, Side::Caller);
    }
}
