//! Users of clients outside: their requests and their streams.

use vcpulab_guest::ConnectionId;
use vcpulab_host::{Span, Time, WorldContext};

use super::Machine;
use crate::ids::{ClientId, ClientMachineId};
use crate::network::client::{Asking, Load, Outcome};
use crate::network::client_machine::Job;
use crate::network::tcp::{Connection, Kind, Party, Sender, Side};

impl Machine {
    /// Lets the users of a client act whose time has come.
    pub(super) fn users_act(&mut self, ctx: &mut WorldContext<'_>, client: ClientId) {
        while let Some(user) = self.clients.all[client].take_due(ctx.now()) {
            match self.clients.all[client].config.load {
                Load::Stream { .. } => self.user_streams(ctx, client, user),
                Load::Open { .. } | Load::Closed { .. } => self.user_begins(ctx, client, user),
            }
        }
        self.clients.arm_user(ctx, client);
    }

    /// Begins a request of a user.
    fn user_begins(&mut self, ctx: &mut WorldContext<'_>, client: ClientId, user: u32) {
        let begun = ctx.now();
        match self.clients.all[client].ask() {
            Some(ask) => self.make_request(ctx, client, Asking { user, ask, begun }),
            None => {
                let ask = self.clients.all[client].config.mix[0];
                self.clients.log_no_connection(begun, client, Asking { user, ask, begun });
            }
        }
    }

    /// Makes a request, as soon as the client's machine has a processor for it.
    pub(super) fn make_request(&mut self, ctx: &mut WorldContext<'_>, client: ClientId, asking: Asking) {
        if let Some(paths) = &mut self.network.paths {
            paths.asked(client, &asking, ctx.now());
        }
        match self.clients.all[client].config.machine {
            Some(machine) => self.clients.begin_job(ctx, machine, Job::Ask(client, asking)),
            None => self.user_asks(ctx, client, asking),
        }
    }

    /// Opens a connection for a user of a client, or for one of its streams, if its machine can have one more.
    fn call_service(&mut self, now: Time, client: ClientId, user: u32) -> Option<ConnectionId> {
        let config = &self.clients.all[client].config;
        let (guest, app) = self.guests.services[config.service];
        let parties = [Party::Client { client, user }, Party::Service { guest, app }];
        match config.machine {
            None => Some(self.network.connections.open(parties, now)),
            Some(machine) => {
                let connections = &mut self.network.connections;
                let room = self.clients.has_room(machine, connections.of_machine(machine));
                room.then(|| connections.open_from(machine, parties, now))
            }
        }
    }

    /// Sends a request of a user.
    fn user_asks(&mut self, ctx: &mut WorldContext<'_>, client: ClientId, asking: Asking) {
        let Asking { user, ask, begun } = asking;
        let config = &self.clients.all[client].config;
        let (keep_alive, timeout) = (config.keep_alive, config.timeout_ns);
        let kept = self.clients.all[client].take_kept(user);
        let kept = kept.filter(|&id| self.network.connections.get(id).is_some());
        let Some(id) = kept.or_else(|| self.call_service(begun, client, user)) else {
            self.clients.all[client].turned_away(user, ctx.now());
            self.clients.log_no_connection(ctx.now(), client, asking);
            return self.clients.arm_user(ctx, client);
        };
        if keep_alive {
            self.clients.all[client].keep(user, id);
        }
        if let Some(timeout) = timeout
            && self.clients.all[client].time_out_at(ctx.now() + timeout, id, begun)
        {
            self.clients.arm_timeout(ctx, client);
        }
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        connection.asked_at = begun;
        (connection.connect_ns, connection.latency_ns) = (kept.map(|_| Span::ZERO), None);
        connection.closes = !keep_alive;
        (connection.class, connection.asks) = (ask.class, ask.reply_bytes);
        connection.request_bytes = ask.request_bytes;
        if let Some(paths) = &mut self.network.paths {
            paths.cause = paths.of_user(client, &asking);
        }
        match kept {
            Some(_) => self.ask(ctx, id),
            None => self.send_plain(ctx, id, Side::Caller, Kind::Syn),
        }
        if let Some(paths) = &mut self.network.paths {
            paths.cause = None;
        }
    }

    /// Gives up requests that have not been answered in time.
    #[cold]
    pub(super) fn time_out(&mut self, ctx: &mut WorldContext<'_>, client: ClientId) {
        while let Some((id, asked_at)) = self.clients.all[client].take_timeout(ctx.now()) {
            let Some(connection) = self.network.connections.get_mut(id) else { continue };
            // The answer may be here, and the connection about to close, or in use for the next one.
            if connection.asked_at != asked_at || connection.is_answered() {
                continue;
            }
            let over = *connection;
            self.give_up(ctx, id, &over);
            self.failed(ctx, &over, Outcome::TimedOut);
        }
        self.clients.arm_timeout(ctx, client);
    }

    /// Makes the caller of a connection give it up. What it has not set up yet it forgets without a word (RFC 9293, section
    /// 3.10.5: ABORT in state SYN-SENT).
    fn give_up(&mut self, ctx: &mut WorldContext<'_>, id: ConnectionId, over: &Connection) {
        if over.syn_waits {
            return self.network.connections.close(id);
        }
        self.network.connections.abandon(id);
        if over.connect_ns.is_some() {
            self.send_plain(ctx, id, Side::Caller, Kind::Reset);
        }
    }

    /// Sends a stream's next packet, over a new connection if it has none.
    fn user_streams(&mut self, ctx: &mut WorldContext<'_>, client: ClientId, user: u32) {
        match self.clients.all[client].stream(user) {
            Some(id) => self.continue_stream(ctx, client, user, id),
            None => {
                let Some(id) = self.call_service(ctx.now(), client, user) else {
                    self.clients.all[client].stats.failed += 1;
                    return;
                };
                if let Some(connection) = self.network.connections.get_mut(id) {
                    connection.streams = true;
                }
                self.clients.all[client].set_stream(user, id);
                self.send_plain(ctx, id, Side::Caller, Kind::Syn);
            }
        }
    }

    /// Continues a client's stream: its next packet, and the time of the one after that.
    pub(super) fn continue_stream(
        &mut self,
        ctx: &mut WorldContext<'_>,
        client: ClientId,
        user: u32,
        id: ConnectionId,
    ) {
        let Load::Stream { packet_bytes, gap_ns, .. } = self.clients.all[client].config.load else { return };
        let Some(connection) = self.network.connections.get_mut(id) else { return };
        if gap_ns > Span::ZERO {
            connection.enqueue(Side::Caller, packet_bytes);
            self.clients.all[client].stats.count(1, ctx.now());
        } else {
            while connection.outstanding(Side::Caller) < connection.send_buffer(Side::Caller) {
                connection.enqueue(Side::Caller, packet_bytes);
                self.clients.all[client].stats.count(1, ctx.now());
            }
        }
        if gap_ns > Span::ZERO && connection.outstanding(Side::Caller) < connection.send_buffer(Side::Caller)
        {
            self.clients.all[client].set_due(user, ctx.now() + gap_ns);
            self.clients.arm_user(ctx, client);
        } else {
            // It goes on when there is room again.
            connection.senders[Side::Caller as usize] = Some(Sender::User);
        }
        self.send_queued(ctx, id, Side::Caller);
    }

    /// Goes on with the jobs that a client machine has done.
    pub(super) fn client_machine_acts(&mut self, ctx: &mut WorldContext<'_>, machine: ClientMachineId) {
        while let Some(done) = self.clients.take_done(machine, ctx.now(), &self.network.packets) {
            match done {
                Job::Ask(client, asking) => self.user_asks(ctx, client, asking),
                Job::Send(packet) => self.network.send_inbound(ctx, packet),
                Job::Take(packet) => self.arrive(ctx, packet),
            }
        }
        self.clients.arm_machine(ctx, machine);
    }
}
