//! The clients outside the host, and the machines that they run on.

use vcpulab_guest::Random;
use vcpulab_host::{Span, Table, Time, WorldContext};

use super::client::{Asking, Client, ClientConfig, ClientSample, Outcome};
use super::client_machine::{ClientMachine, ClientMachineConfig, Job};
use super::packets::Packets;
use super::tcp::{Connection, Party, Side};
use crate::ids::{ClientId, ClientMachineId, PacketId, SourceId};
use crate::sources::{Source, Sources};

/// The purpose of clients' random streams.
const ARRIVALS: u64 = 1 << 32;

/// The listener to every request that is over.
struct RequestLog(Box<dyn FnMut(&ClientSample)>);

impl std::fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestLog")
    }
}

/// The sources of a client's events.
#[derive(Clone, Copy, Debug)]
struct ClientSources {
    user: SourceId,
    timeout: SourceId,
}

/// All clients and their machines.
#[derive(Debug)]
pub(crate) struct Clients {
    pub all: Table<ClientId, Client>,
    sources: Table<ClientId, ClientSources>,
    machines: Table<ClientMachineId, ClientMachine>,
    machine_sources: Table<ClientMachineId, SourceId>,
    log: Option<RequestLog>,
}

impl Clients {
    /// Clients at time 0, and their machines, whose sources are registered later.
    pub fn new(
        clients: &Table<ClientId, ClientConfig>,
        machines: &Table<ClientMachineId, ClientMachineConfig>,
        seed: u64,
        sources: &mut Sources,
    ) -> Self {
        let all: Table<ClientId, Client> = clients
            .enumerate()
            .map(|(id, client)| Client::new(client.clone(), Random::new(seed, id.0.into(), ARRIVALS)))
            .collect();
        let register = |client| ClientSources {
            user: sources.register(Source::User(client)),
            timeout: sources.register(Source::Timeout(client)),
        };
        Clients {
            sources: all.ids().map(register).collect(),
            all,
            machines: machines.iter().map(|&machine| ClientMachine::new(machine)).collect(),
            machine_sources: Table::new(),
            log: None,
        }
    }

    /// Registers the sources of the machines.
    pub fn register_machines(&mut self, sources: &mut Sources) {
        let register = |machine| sources.register(Source::ClientMachine(machine));
        self.machine_sources = self.machines.ids().map(register).collect();
    }

    /// Sets the timers of all users.
    pub fn start(&self, ctx: &mut WorldContext<'_>) {
        for client in self.all.ids() {
            self.arm_user(ctx, client);
        }
    }

    /// Sets the timer of a client's users.
    pub fn arm_user(&self, ctx: &mut WorldContext<'_>, client: ClientId) {
        self.sources[client].user.set(ctx, self.all[client].next_event());
    }

    /// Sets the timer of a client's time-outs.
    pub fn arm_timeout(&self, ctx: &mut WorldContext<'_>, client: ClientId) {
        self.sources[client].timeout.set(ctx, self.all[client].next_timeout());
    }

    /// Whether a machine can have one more connection than `connections`.
    pub fn has_room(&self, machine: ClientMachineId, connections: u32) -> bool {
        connections < self.machines[machine].config.connections_max
    }

    /// Gives a machine a job.
    pub fn begin_job(&mut self, ctx: &mut WorldContext<'_>, machine: ClientMachineId, job: Job) {
        self.machines[machine].begin(ctx.now(), job);
        self.arm_machine(ctx, machine);
    }

    /// Gives a machine a packet from the switch.
    pub fn receive(
        &mut self,
        ctx: &mut WorldContext<'_>,
        machine: ClientMachineId,
        packet: PacketId,
        packets: &Packets,
    ) {
        self.machines[machine].receive(ctx.now(), packet, packets);
        self.arm_machine(ctx, machine);
    }

    /// Removes a job that a machine has done by now.
    pub fn take_done(&mut self, machine: ClientMachineId, now: Time, packets: &Packets) -> Option<Job> {
        self.machines[machine].take_done(now, packets)
    }

    /// Sets the timer of a machine.
    pub fn arm_machine(&self, ctx: &mut WorldContext<'_>, machine: ClientMachineId) {
        self.machine_sources[machine].set(ctx, self.machines[machine].next_event());
    }

    /// Sets the listener to every request that is over.
    pub fn set_log(&mut self, log: impl FnMut(&ClientSample) + 'static) {
        self.log = Some(RequestLog(Box::new(log)));
    }

    /// Logs a request that is over, if it is a client's.
    pub fn log_request(&mut self, now: Time, over: &Connection, outcome: Outcome) {
        let Party::Client { client, user } = over.parties[Side::Caller as usize] else { return };
        let Some(log) = &mut self.log else { return };
        let machine = self.all[client].config.machine;
        let beside = self.all.iter().filter(|other| other.config.machine == machine);
        let elapsed = now - over.asked_at;
        log.0(&ClientSample {
            client,
            user,
            class: over.class,
            begun: over.asked_at,
            ended: now,
            outcome,
            connect_ns: over.connect_ns.unwrap_or(elapsed),
            latency_ns: over.latency_ns.unwrap_or(Span::ZERO),
            sent_bytes: over.connect_ns.map_or(0, |_| over.request_bytes),
            received_bytes: if outcome == Outcome::Answered { over.asks } else { 0 },
            active: self.all[client].active(),
            active_all: beside.map(Client::active).sum(),
        });
    }

    /// Logs a request that found no connection.
    pub fn log_no_connection(&mut self, now: Time, client: ClientId, asking: Asking) {
        let Asking { user, ask, begun } = asking;
        let mut over = Connection::new([Party::Client { client, user }, Party::Outside], begun, 0);
        over.class = ask.class;
        self.log_request(now, &over, Outcome::NoConnection);
    }
}
