//! What packets mean to those at the ends of connections: services, tasks that ask them, and clients outside.

use std::cmp::Reverse;

use vcpulab_guest::{Called, Request};
use vcpulab_host::{NEVER, Span, Time, WorldContext};

use super::{Machine, Source};
use crate::client::{Asking, Client, ClientSample, Failed, Outcome};
use crate::client_machine::Job;
use crate::config::{Ask, Load};
use crate::tcp::{
    CALL_AGAIN, CALLS_MAX, Connection, ConnectionId, DELAYED_ACK, Kind, Packet, Party, Side, Stage,
};

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
        if side == Side::Called
            && connection.stage == Stage::HalfOpen
            && matches!(packet.kind, Kind::Ack | Kind::Data)
        {
            self.connected(ctx, id, party);
        }
        match packet.kind {
            Kind::Syn => self.called(ctx, &packet, party),
            Kind::SynAck => self.opened(ctx, id, party),
            Kind::Refused => {
                let Some(&mut over) = self.connections.get(id) else { return };
                self.connections.close(id);
                self.failed(ctx, &over, Outcome::Refused);
            }
            Kind::Ack => self.send_on(ctx, id, side),
            Kind::Data => self.receive(ctx, &packet, party),
            Kind::Fin => {
                self.disconnect(ctx, id, party);
                self.send_plain(ctx, id, side, Kind::FinAck);
            }
            Kind::FinAck => self.connections.close(id),
            Kind::Reset => {
                self.disconnect(ctx, id, party);
                self.connections.close(id);
            }
        }
    }

    /// The service of a connection counts it no more. If it was served, the next one that waits is.
    pub(super) fn disconnect(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else { return };
        let Some(connection) = self.connections.get(id) else { return };
        let kernel = &mut self.guests[guest].kernel;
        match std::mem::replace(&mut connection.stage, Stage::Called) {
            Stage::Called => {}
            Stage::HalfOpen => kernel.give_up_call(app),
            Stage::Waiting => kernel.stop_waiting(app, id),
            Stage::Served => {
                if let Some(next) = kernel.disconnect(app) {
                    self.serve(ctx, next, party);
                }
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
    fn called(&mut self, ctx: &mut WorldContext<'_>, packet: &Packet, party: Party) {
        let id = packet.connection;
        let Party::Service { guest, app } = party else {
            return self.send_plain(ctx, id, Side::Called, Kind::SynAck);
        };
        let kernel = &mut self.guests[guest].kernel;
        match kernel.call(app) {
            Called::Answered => {
                if let Some(connection) = self.connections.get(id) {
                    connection.stage = Stage::HalfOpen;
                }
                self.send_plain(ctx, id, Side::Called, Kind::SynAck);
            }
            Called::Lost => self.call_again_later(ctx, id),
            Called::Refused => {
                kernel.count_failure(app);
                self.send_plain(ctx, id, Side::Called, Kind::Refused);
            }
        }
    }

    /// The set-up of a connection to a service is complete.
    fn connected(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Party::Service { guest, app } = party else { return };
        match self.guests[guest].kernel.connect(app, id) {
            true => self.serve(ctx, id, party),
            false => {
                if let Some(connection) = self.connections.get(id) {
                    connection.stage = Stage::Waiting;
                }
            }
        }
    }

    /// A connection is served from now on.
    fn serve(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        let Some(connection) = self.connections.get(id) else { return };
        connection.stage = Stage::Served;
        // A stream is there for its service at once; of exchanges it hears when a request is complete.
        if std::mem::take(&mut connection.asked) || connection.streams {
            self.hand_request(ctx, id, party);
        }
    }

    /// A call is not answered.
    pub(super) fn call_again_later(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId) {
        let Some(connection) = self.connections.get(id) else { return };
        let again = ctx.now() + (CALL_AGAIN << connection.calls);
        connection.calls += 1;
        self.calls.push(Reverse((again, id)));
        self.set_calls(ctx);
    }

    fn set_calls(&self, ctx: &mut WorldContext<'_>) {
        self.set(ctx, Source::Calls, self.calls.peek().map_or(NEVER, |&Reverse((time, _))| time));
    }

    /// Those whose calls were not answered call again, or give up.
    pub(super) fn call_again(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(&Reverse((time, id))) = self.calls.peek()
            && time <= ctx.now()
        {
            self.calls.pop();
            let Some(connection) = self.connections.get(id) else { continue };
            if connection.calls < CALLS_MAX {
                self.send_plain(ctx, id, Side::Caller, Kind::Syn);
            } else {
                let over = *connection;
                self.connections.close(id);
                self.failed(ctx, &over, Outcome::TimedOut);
            }
        }
        self.set_calls(ctx);
    }

    /// A call was accepted.
    fn opened(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, party: Party) {
        self.send_plain(ctx, id, Side::Caller, Kind::Ack);
        let Some(connection) = self.connections.get(id) else { return };
        connection.connect_ns = Some(ctx.now() - connection.asked_at);
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

    /// The request of a connection did not come through.
    pub(super) fn failed(&mut self, ctx: &mut WorldContext<'_>, over: &Connection, why: Outcome) {
        match over.parties[Side::Caller as usize] {
            Party::Task { guest, task } => {
                let kernel = &mut self.guests[guest].kernel;
                kernel.count_failure(kernel.app_of(task));
                self.resume(ctx, guest, task);
            }
            Party::Client { client, user } => {
                if let Some(kept) = self.users[client].get_mut(user as usize) {
                    *kept = None;
                }
                match self.clients[client].failed(user, ctx.now()) {
                    Failed::Retry => {
                        let (class, request_bytes, reply_bytes) = (over.class, over.request_bytes, over.asks);
                        let ask = Ask { class, request_bytes, reply_bytes, weight: 0 };
                        self.make_request(ctx, client, Asking { user, ask, begun: over.asked_at });
                    }
                    Failed::GiveUp => {
                        self.log_request(ctx.now(), over, why);
                        self.set_user(ctx, client);
                    }
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
        if connection.streams && connection.outstanding(from) <= connection.send_buffer(from) / 2 {
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
        if side == Side::Caller {
            connection.latency_ns.get_or_insert(ctx.now() - connection.asked_at);
        }
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
        if connection.stage == Stage::Waiting {
            connection.asked = true;
            return;
        }
        let (class, asks) = (connection.class, connection.asks);
        connection.requests += 1;
        connection.closes |= connection.requests == self.guests[guest].kernel.requests_max(app);
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
                let over = *connection;
                if closes && let Some(kept) = self.users[client].get_mut(user as usize) {
                    *kept = None;
                }
                self.clients[client].answered(user, ctx.now() - asked_at, ctx.now());
                self.log_request(ctx.now(), &over, Outcome::Answered);
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
                Load::Open { .. } | Load::Closed { .. } => self.user_begins(ctx, client, user),
            }
        }
        self.set_user(ctx, client);
    }

    fn user_begins(&mut self, ctx: &mut WorldContext<'_>, client: usize, user: u32) {
        let begun = ctx.now();
        match self.clients[client].ask() {
            Some(ask) => self.make_request(ctx, client, Asking { user, ask, begun }),
            None => {
                let ask = self.clients[client].config.mix[0];
                self.log_no_connection(begun, client, Asking { user, ask, begun });
            }
        }
    }

    /// A request is made, as soon as the client's machine has a processor for it.
    fn make_request(&mut self, ctx: &mut WorldContext<'_>, client: usize, asking: Asking) {
        match self.clients[client].config.machine {
            Some(machine) => self.client_machine_begins(ctx, machine, Job::Ask(client, asking)),
            None => self.user_asks(ctx, client, asking),
        }
    }

    /// A connection for a user of a client, or for one of its streams.
    fn call_service(&mut self, now: Time, client: usize, user: u32) -> Option<ConnectionId> {
        let config = &self.clients[client].config;
        let (guest, app) = self.services[config.service];
        let parties = [Party::Client { client, user }, Party::Service { guest, app }];
        match config.machine {
            None => Some(self.connections.open(parties, now)),
            Some(machine) => {
                let most = self.client_machines[machine].config.connections_max;
                let room = self.connections.of_machine(machine) < most;
                room.then(|| self.connections.open_from(machine, parties, now))
            }
        }
    }

    pub(super) fn user_asks(&mut self, ctx: &mut WorldContext<'_>, client: usize, asking: Asking) {
        let Asking { user, ask, begun } = asking;
        let config = &self.clients[client].config;
        let (keep_alive, timeout) = (config.keep_alive, config.timeout_ns);
        let kept = self.users[client].get_mut(user as usize).and_then(Option::take);
        let kept = kept.filter(|&id| self.connections.get(id).is_some());
        let Some(id) = kept.or_else(|| self.call_service(begun, client, user)) else {
            self.clients[client].turned_away(user, ctx.now());
            self.log_no_connection(ctx.now(), client, asking);
            return self.set_user(ctx, client);
        };
        if keep_alive && let Some(slot) = self.users[client].get_mut(user as usize) {
            *slot = Some(id);
        }
        if let Some(timeout) = timeout {
            self.timeouts[client].push_back((ctx.now() + timeout, id, begun));
            if self.timeouts[client].len() == 1 {
                self.set(ctx, Source::Timeout(client), ctx.now() + timeout);
            }
        }
        let Some(connection) = self.connections.get(id) else { return };
        connection.asked_at = begun;
        (connection.connect_ns, connection.latency_ns) = (kept.map(|_| 0), None);
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
            // The answer may be here, and the connection about to close, or in use for the next one.
            if connection.asked_at != asked_at || connection.is_answered() {
                continue;
            }
            let over = *connection;
            let reset = connection.packet(id, Side::Caller, Kind::Reset);
            connection.parties[Side::Caller as usize] = Party::Outside;
            self.transmit(ctx, reset);
            self.failed(ctx, &over, Outcome::TimedOut);
        }
        let next = self.timeouts[client].front().map_or(NEVER, |&(time, ..)| time);
        self.set(ctx, Source::Timeout(client), next);
    }

    /// A stream's next packet is due.
    fn user_streams(&mut self, ctx: &mut WorldContext<'_>, client: usize, user: u32) {
        match self.streams[client].get(user as usize).copied().flatten() {
            Some(id) => self.stream_on(ctx, client, user, id),
            None => {
                let Some(id) = self.call_service(ctx.now(), client, user) else {
                    self.clients[client].stats.failed += 1;
                    return;
                };
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
            while connection.outstanding(Side::Caller) < connection.send_buffer(Side::Caller) {
                connection.hand_over(Side::Caller, packet_bytes);
                self.clients[client].stats.count(1, ctx.now());
            }
        }
        if gap_ns > 0 && connection.outstanding(Side::Caller) < connection.send_buffer(Side::Caller) {
            self.clients[client].set_due(user, ctx.now() + gap_ns);
            self.set_user(ctx, client);
        } else {
            // It goes on when there is room again.
            connection.senders[Side::Caller as usize] = Some(user as usize);
        }
        self.send_on(ctx, id, Side::Caller);
    }

    /// Tells whoever keeps a log that a client's request is over.
    fn log_request(&mut self, now: Time, over: &Connection, outcome: Outcome) {
        let Party::Client { client, user } = over.parties[Side::Caller as usize] else { return };
        let Some(log) = &mut self.log else { return };
        let machine = self.clients[client].config.machine;
        let beside = self.clients.iter().filter(|other| other.config.machine == machine);
        let elapsed = now - over.asked_at;
        log.0(&ClientSample {
            client,
            user,
            class: over.class,
            begun: over.asked_at,
            ended: now,
            outcome,
            connect_ns: over.connect_ns.unwrap_or(elapsed),
            latency_ns: over.latency_ns.unwrap_or(0),
            sent_bytes: over.connect_ns.map_or(0, |_| over.request_bytes),
            received_bytes: if outcome == Outcome::Answered { over.asks } else { 0 },
            active: self.clients[client].active(),
            active_all: beside.map(Client::active).sum(),
        });
    }

    fn log_no_connection(&mut self, now: Time, client: usize, Asking { user, ask, begun }: Asking) {
        let mut over = Connection::new([Party::Client { client, user }, Party::Outside], begun, 0);
        over.class = ask.class;
        self.log_request(now, &over, Outcome::NoConnection);
    }

    // ---- client machines ----

    fn client_machine_begins(&mut self, ctx: &mut WorldContext<'_>, machine: usize, job: Job) {
        self.client_machines[machine].begin(ctx.now(), job);
        self.set_client_machine(ctx, machine);
    }

    fn set_client_machine(&self, ctx: &mut WorldContext<'_>, machine: usize) {
        self.set(ctx, Source::ClientMachine(machine), self.client_machines[machine].next_event());
    }

    /// A client machine has done something.
    pub(super) fn client_machine_acts(&mut self, ctx: &mut WorldContext<'_>, machine: usize) {
        while let Some(done) = self.client_machines[machine].take_done(ctx.now()) {
            match done {
                Job::Ask(client, asking) => self.user_asks(ctx, client, asking),
                Job::Send(packet) => self.send_inbound(ctx, packet),
                Job::Take(packet) => self.arrive(ctx, packet),
            }
        }
        self.set_client_machine(ctx, machine);
    }

    /// A packet sets out from outside the host.
    pub(super) fn leave_client(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        match self.connections.get(packet.connection).and_then(|connection| connection.machine) {
            Some(machine) => self.client_machine_begins(ctx, machine, Job::Send(packet)),
            None => self.send_inbound(ctx, packet),
        }
    }

    /// A packet for somebody outside has crossed the switch.
    pub(super) fn reach_client(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        match self.connections.get(packet.connection).and_then(|connection| connection.machine) {
            Some(machine) => {
                self.client_machines[machine].receive(ctx.now(), packet);
                self.set_client_machine(ctx, machine);
            }
            None => self.arrive(ctx, packet),
        }
    }
}
