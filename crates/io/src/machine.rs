//! Everything around the vCPUs of a host, put together: guest kernels, front and back ends, NICs, clients.
//!
//! What a vCPU does next is, in this order: as driver domain, everything that is pending for the NIC and the guests'
//! rings, in rounds, and an event to each guest at the end of a round; as guest, the event, packets received, packets
//! to send; then tasks. With nothing left it blocks. So a driver domain that is given the pCPU late finds more to do at
//! once: batching is not a parameter here.

use std::collections::VecDeque;

use vcpulab_guest::kernel::Outcome;
use vcpulab_guest::{AppConfig, AppStats, Kernel, Random};
use vcpulab_host::{NEVER, Op, Span, Time, VcpuId, World, WorldContext};

use crate::client::Client;
use crate::config::{DriverCosts, GuestConfig, MachineConfig, NetworkCosts};
use crate::connection::{Connection, Connections, Kind, Packet};
use crate::nic::Nic;

/// Packets of one direction that a driver domain takes in one round, before it looks at the other direction (the usual
/// budget of a network driver's polling loop).
const ROUND: usize = 64;

/// How long a sender waits before it sends a lost packet again, ns (the least retransmission time-out of common TCPs).
const RETRANSMIT_AFTER: Span = 200_000_000;

/// Purposes of random streams. Tasks count from 1.
const COSTS: u64 = 0;
const ARRIVALS: u64 = 1 << 32;

/// A piece of work that a vCPU is at.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// A driver domain takes notifications, receives a packet for a guest, sends one for a guest.
    DriverUpcall,
    DriverReceive(Packet),
    DriverSend(Packet),
    /// A guest takes an event, receives a packet, sends one.
    Upcall,
    Receive(Packet),
    Send(Packet),
    /// Its tasks compute for this long.
    Compute(Span),
}

/// The back ends of a driver domain.
#[derive(Clone, Debug)]
struct Driver {
    costs: DriverCosts,
    nic: Nic,
    /// Is it at work, or has it been told that there is some?
    awake: bool,
    /// Has it been told something that it has not taken yet?
    notified: bool,
    /// What is left of the round in each direction.
    receives: usize,
    sends: usize,
    /// Guests behind it, and whose ring is looked at next.
    guests: Vec<usize>,
    turn: usize,
}

/// The network interface of a guest: what is in its rings, and whether an event is pending.
#[derive(Clone, Debug)]
struct Interface {
    driver: usize,
    slots: usize,
    /// Packets that wait for room in the ring.
    to_send: VecDeque<Packet>,
    transmit_ring: VecDeque<Packet>,
    receive_ring: VecDeque<Packet>,
    /// An event has been sent that the guest has not taken yet.
    event_pending: bool,
    /// An event is due at the end of the driver's round.
    event_due: bool,
}

/// A domain.
#[derive(Clone, Debug)]
struct Guest {
    first_vcpu: VcpuId,
    kernel: Kernel,
    network: NetworkCosts,
    interface: Option<Interface>,
    driver: Option<Driver>,
    server: Option<Server>,
    random: Random,
    io_count: u64,
}

/// The web server among a domain's applications.
#[derive(Clone, Copy, Debug)]
struct Server {
    app: usize,
    connections: u32,
    connections_max: u32,
}

/// What an application achieved since the last reset.
#[derive(Clone, Debug)]
pub struct AppResult<'a> {
    /// The domain's index.
    pub guest: usize,
    /// Its position in the domain; clients of a domain's server follow its applications.
    pub app: usize,
    /// Is it a client's view, from outside?
    pub client: bool,
    /// Counts and response times.
    pub stats: &'a AppStats,
}

/// The world of a host.
#[derive(Clone, Debug)]
pub struct Machine {
    guests: Vec<Guest>,
    clients: Vec<Client>,
    connections: Connections,
    /// Lost packets from clients, and when they are sent again.
    lost: VecDeque<(Time, Packet)>,
    /// Which domain and which of its vCPUs a vCPU is.
    owners: Vec<(usize, usize)>,
    working_sets: Vec<u64>,
    at_work: Vec<Option<Work>>,
    /// What each vCPU's guest timer is set to.
    timers: Vec<Time>,
    spread_percent: i64,
}

/// What a source of events is.
enum Source {
    Interrupt(usize),
    Inbound(usize),
    Outbound(usize),
    Request(usize),
    Lost,
    Timer(VcpuId),
}

impl Machine {
    /// A machine at time 0.
    pub fn new(config: &MachineConfig) -> Self {
        let count = config.guests.iter().map(|guest| guest.first_vcpu.index() + guest.vcpus as usize).max();
        let count = count.unwrap_or(0);
        let mut machine = Machine {
            guests: Vec::new(),
            clients: Vec::new(),
            connections: Connections::default(),
            lost: VecDeque::new(),
            owners: vec![(usize::MAX, 0); count],
            working_sets: vec![0; count],
            at_work: vec![None; count],
            timers: vec![NEVER; count],
            spread_percent: config.spread_percent,
        };
        for (index, guest) in config.guests.iter().enumerate() {
            for vcpu in 0..guest.vcpus as usize {
                let v = guest.first_vcpu.index() + vcpu;
                machine.owners[v] = (index, vcpu);
                machine.working_sets[v] = guest.working_set_bytes;
            }
            machine.guests.push(Guest::new(config, index, guest));
        }
        for (index, client) in config.clients.iter().enumerate() {
            let random = Random::new(config.seed, index as u64, ARRIVALS);
            machine.clients.push(Client::new(client.clone(), random));
        }
        machine
    }

    /// Forgets what was counted so far.
    pub fn reset_statistics(&mut self) {
        for guest in &mut self.guests {
            guest.kernel.apps_mut().for_each(|app| app.stats.reset());
            guest.io_count = 0;
        }
        self.clients.iter_mut().for_each(|client| client.stats.reset());
    }

    /// What applications and clients achieved, by domain.
    pub fn results(&self) -> Vec<AppResult<'_>> {
        let mut results = Vec::new();
        for (index, guest) in self.guests.iter().enumerate() {
            let count = guest.kernel.apps().count();
            for (app, running) in guest.kernel.apps().enumerate() {
                results.push(AppResult { guest: index, app, client: false, stats: &running.stats });
            }
            let clients = self.clients.iter().filter(|client| client.config.server == index);
            for (i, client) in clients.enumerate() {
                results.push(AppResult { guest: index, app: count + i, client: true, stats: &client.stats });
            }
        }
        results
    }

    /// XenMon's I/O count of a domain: packets through its ring; twice for a driver domain, which handles both sides.
    pub fn io_count(&self, guest: usize) -> u64 {
        self.guests[guest].io_count
    }

    /// Packets that found a NIC's queue or a guest's ring full, and were sent again later.
    pub fn lost_packets(&self) -> u64 {
        self.guests.iter().flat_map(|guest| &guest.driver).map(|driver| driver.nic.dropped).sum()
    }

    /// Connections that are not over.
    pub fn open_connections(&self) -> usize {
        self.connections.open_count()
    }

    // ---- sources ----

    fn sources(&self) -> usize {
        3 * self.guests.len() + self.clients.len() + 1 + self.owners.len()
    }

    fn number(&self, source: &Source) -> usize {
        let (guests, clients) = (3 * self.guests.len(), self.clients.len());
        match *source {
            Source::Interrupt(driver) => 3 * driver,
            Source::Inbound(driver) => 3 * driver + 1,
            Source::Outbound(driver) => 3 * driver + 2,
            Source::Request(client) => guests + client,
            Source::Lost => guests + clients,
            Source::Timer(v) => guests + clients + 1 + v.index(),
        }
    }

    fn source(&self, number: usize) -> Source {
        let (guests, clients) = (3 * self.guests.len(), self.clients.len());
        match number {
            n if n < guests => match n % 3 {
                0 => Source::Interrupt(n / 3),
                1 => Source::Inbound(n / 3),
                _ => Source::Outbound(n / 3),
            },
            n if n < guests + clients => Source::Request(n - guests),
            n if n == guests + clients => Source::Lost,
            n => VcpuId((n - guests - clients - 1) as u32).into(),
        }
    }

    fn set(&self, ctx: &mut WorldContext<'_>, source: Source, time: Time) {
        ctx.set_source(self.number(&source), time);
    }

    fn driver(&mut self, guest: usize) -> &mut Driver {
        self.guests[guest].driver.as_mut().expect("interfaces lead to driver domains")
    }

    // ---- outside ----

    fn send_inbound(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        let server = self.connections.get(packet.connection).server;
        let Some(driver) = self.guests[server].interface.as_ref().map(|interface| interface.driver) else {
            return;
        };
        let wire = &mut self.driver(driver).nic.inbound;
        wire.send(ctx.now(), packet);
        let arrival = wire.next_arrival();
        self.set(ctx, Source::Inbound(driver), arrival);
    }

    fn begin_request(&mut self, ctx: &mut WorldContext<'_>, index: usize) {
        let client = &mut self.clients[index];
        let begins = client.begin(ctx.now());
        let next = client.next_request();
        let (server, file_bytes) = (client.config.server, client.config.file_bytes);
        self.set(ctx, Source::Request(index), next);
        if begins {
            let number = self.connections.open(Connection::new(index, server, file_bytes, ctx.now()));
            self.send_inbound(ctx, Connection::packet(number, Kind::Syn));
        }
    }

    fn client_receives(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        let number = packet.connection;
        let connection = self.connections.get(number);
        let client = connection.client;
        match packet.kind {
            Kind::SynAck => {
                self.send_inbound(ctx, Connection::packet(number, Kind::Ack));
                self.send_inbound(ctx, Connection::packet(number, Kind::Get));
            }
            Kind::Data => {
                let (answer, started) = (connection.receive_segment(), connection.started);
                if answer == Some(Kind::Fin) {
                    self.clients[client].answered(started, ctx.now());
                }
                if let Some(kind) = answer {
                    self.send_inbound(ctx, Connection::packet(number, kind));
                }
            }
            Kind::Refused => {
                self.clients[client].refused();
                self.connections.close(number);
            }
            Kind::FinAck => self.connections.close(number),
            Kind::Syn | Kind::Ack | Kind::Get | Kind::DataAck | Kind::Fin => {
                debug_assert!(false, "only a client sends these");
            }
        }
    }

    /// A packet from a client found no room: it is sent again later.
    fn lose(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        self.connections.lose(packet.connection);
        self.lost.push_back((ctx.now() + RETRANSMIT_AFTER, packet));
        let next = self.lost.front().map_or(NEVER, |&(time, _)| time);
        self.set(ctx, Source::Lost, next);
    }

    // ---- driver domains ----

    /// The NIC has something to tell its driver domain.
    fn interrupt(&mut self, ctx: &mut WorldContext<'_>, driver: usize) {
        let v = self.guests[driver].first_vcpu;
        ctx.interrupt(ctx.host().home(v));
        let now = ctx.now();
        self.driver(driver).nic.interrupted(now);
        self.notify_driver(ctx, driver);
    }

    fn notify_driver(&mut self, ctx: &mut WorldContext<'_>, driver: usize) {
        let v = self.guests[driver].first_vcpu;
        let driver = self.driver(driver);
        driver.notified = true;
        if !driver.awake {
            driver.awake = true;
            ctx.kick(v);
        }
    }

    fn set_interrupt(&mut self, ctx: &mut WorldContext<'_>, driver: usize) {
        let time = self.driver(driver).nic.next_interrupt();
        self.set(ctx, Source::Interrupt(driver), time);
    }

    /// What a driver domain does next, and what it costs; `None`: there is nothing.
    fn driver_work(&mut self, ctx: &mut WorldContext<'_>, index: usize) -> Option<(Work, Span)> {
        loop {
            let now = ctx.now();
            let driver = self.guests[index].driver.as_mut()?;
            let costs = driver.costs;
            if std::mem::take(&mut driver.notified) {
                return Some((Work::DriverUpcall, costs.upcall_ns));
            }
            if driver.receives > 0
                && let Some(packet) = driver.nic.take_received()
            {
                driver.receives -= 1;
                return Some((Work::DriverReceive(packet), costs.receive_ns));
            }
            if driver.sends > 0 && driver.nic.can_send(now) {
                driver.sends -= 1;
                if let Some(packet) = self.take_transmit(index) {
                    return Some((Work::DriverSend(packet), costs.send_ns));
                }
            }
            // The round is over: the guests hear of it, and another one begins if there is more.
            self.send_events(ctx, index);
            let more = self.anything_to_transmit(index);
            let driver = self.guests[index].driver.as_mut()?;
            let waiting = driver.nic.waiting();
            if waiting == 0 && !(more && driver.nic.can_send(now)) {
                driver.awake = false;
                return None;
            }
            (driver.receives, driver.sends) = (waiting.min(ROUND), ROUND);
        }
    }

    /// The next packet from the guests' rings, each guest in turn.
    fn take_transmit(&mut self, index: usize) -> Option<Packet> {
        let count = self.driver(index).guests.len();
        for _ in 0..count {
            let driver = self.driver(index);
            let guest = driver.guests[driver.turn];
            driver.turn = (driver.turn + 1) % count;
            let Some(interface) = &mut self.guests[guest].interface else { continue };
            if let Some(packet) = interface.transmit_ring.pop_front() {
                // A guest that waits for room is told at the end of the round.
                interface.event_due |= !interface.to_send.is_empty();
                return Some(packet);
            }
        }
        None
    }

    fn anything_to_transmit(&mut self, index: usize) -> bool {
        let Some(driver) = &self.guests[index].driver else { return false };
        let ring =
            |&guest: &usize| self.guests[guest].interface.as_ref().map(|interface| &interface.transmit_ring);
        driver.guests.iter().filter_map(ring).any(|ring| !ring.is_empty())
    }

    /// Sends the events that are due over the event channels.
    fn send_events(&mut self, ctx: &mut WorldContext<'_>, index: usize) {
        for i in 0..self.driver(index).guests.len() {
            let guest = self.driver(index).guests[i];
            let v = self.guests[guest].first_vcpu;
            let Some(interface) = &mut self.guests[guest].interface else { continue };
            if std::mem::take(&mut interface.event_due) && !interface.event_pending {
                interface.event_pending = true;
                ctx.kick(v);
            }
        }
    }

    // ---- guests ----

    /// What a guest's network stack does next on one of its vCPUs. Receiving is bound to the first one.
    fn network_work(&mut self, index: usize, vcpu: usize) -> Option<(Work, Span)> {
        let guest = &mut self.guests[index];
        let (interface, costs) = (guest.interface.as_mut()?, guest.network);
        if vcpu == 0 {
            if std::mem::take(&mut interface.event_pending) {
                return Some((Work::Upcall, costs.upcall_ns));
            }
            if let Some(packet) = interface.receive_ring.pop_front() {
                return Some((Work::Receive(packet), costs.receive_ns));
            }
        }
        if interface.transmit_ring.len() == interface.slots {
            return None;
        }
        let packet = interface.to_send.pop_front()?;
        Some((Work::Send(packet), costs.send_ns))
    }

    fn server_receives(&mut self, ctx: &mut WorldContext<'_>, index: usize, packet: Packet) {
        let number = packet.connection;
        let guest = &mut self.guests[index];
        let Some(server) = &mut guest.server else { return };
        match packet.kind {
            Kind::Syn => {
                let accepted = server.connections < server.connections_max;
                server.connections += u32::from(accepted);
                let kind = if accepted { Kind::SynAck } else { Kind::Refused };
                self.queue_to_send(index, Connection::packet(number, kind));
            }
            Kind::Get => {
                let woken = guest.kernel.request(server.app, number);
                let first = guest.first_vcpu.0;
                if let Some(vcpu) = woken.filter(|&vcpu| vcpu != 0) {
                    ctx.kick(VcpuId(first + vcpu as u32));
                }
            }
            Kind::DataAck => {
                self.connections.get(number).acknowledge();
                self.send_segments(index, number);
            }
            Kind::Fin => {
                server.connections -= 1;
                self.queue_to_send(index, Connection::packet(number, Kind::FinAck));
            }
            Kind::Ack => {}
            Kind::SynAck | Kind::Refused | Kind::Data | Kind::FinAck => {
                debug_assert!(false, "only a server sends these");
            }
        }
    }

    fn send_segments(&mut self, index: usize, number: u32) {
        while let Some(packet) = self.connections.get(number).next_segment(number) {
            self.queue_to_send(index, packet);
        }
    }

    fn queue_to_send(&mut self, index: usize, packet: Packet) {
        if let Some(interface) = &mut self.guests[index].interface {
            interface.to_send.push_back(packet);
        }
    }

    // ---- work ----

    /// A piece of work is done: what follows from it.
    fn finish(&mut self, ctx: &mut WorldContext<'_>, index: usize, vcpu: usize, work: Work) {
        match work {
            Work::DriverUpcall => {
                let driver = self.driver(index);
                (driver.receives, driver.sends) = (driver.nic.waiting().min(ROUND), ROUND);
            }
            Work::DriverReceive(packet) => self.hand_to_guest(ctx, index, packet),
            Work::DriverSend(packet) => {
                self.guests[index].io_count += 2;
                let now = ctx.now();
                let nic = &mut self.driver(index).nic;
                nic.send(now, packet);
                let arrival = nic.outbound.next_arrival();
                self.set(ctx, Source::Outbound(index), arrival);
                self.set_interrupt(ctx, index);
            }
            Work::Upcall => {}
            Work::Receive(packet) => {
                self.guests[index].io_count += 1;
                self.server_receives(ctx, index, packet);
            }
            Work::Send(packet) => {
                let guest = &mut self.guests[index];
                guest.io_count += 1;
                if let Some(interface) = &mut guest.interface {
                    interface.transmit_ring.push_back(packet);
                    let driver = interface.driver;
                    if !self.driver(driver).awake {
                        self.notify_driver(ctx, driver);
                    }
                }
            }
            Work::Compute(span) => self.computed(ctx, index, vcpu, span),
        }
    }

    fn computed(&mut self, ctx: &WorldContext<'_>, index: usize, vcpu: usize, span: Span) {
        if let Outcome::Served(number) = self.guests[index].kernel.computed(vcpu, ctx.now(), span) {
            self.send_segments(index, number);
        }
    }

    fn hand_to_guest(&mut self, ctx: &mut WorldContext<'_>, index: usize, packet: Packet) {
        self.guests[index].io_count += 2;
        let server = self.connections.get(packet.connection).server;
        let Some(interface) = &mut self.guests[server].interface else { return };
        if interface.receive_ring.len() < interface.slots {
            interface.receive_ring.push_back(packet);
            interface.event_due = true;
        } else {
            self.driver(index).nic.dropped += 1;
            self.lose(ctx, packet);
        }
    }

    /// Gives `v` its next piece of work.
    fn choose(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId) -> Op {
        let (index, vcpu) = self.owners[v.index()];
        loop {
            let driver_work = if vcpu == 0 { self.driver_work(ctx, index) } else { None };
            let Some((work, cost)) = driver_work.or_else(|| self.network_work(index, vcpu)) else { break };
            let cost = self.guests[index].random.spread(cost, self.spread_percent);
            if cost > 0 {
                self.at_work[v.index()] = Some(work);
                return Op::Run(cost);
            }
            self.finish(ctx, index, vcpu, work);
        }
        let kernel = &mut self.guests[index].kernel;
        let span = kernel.next(vcpu, ctx.now());
        let timer = kernel.next_timer(vcpu);
        if timer != self.timers[v.index()] {
            self.timers[v.index()] = timer;
            self.set(ctx, Source::Timer(v), timer);
        }
        match span {
            Some(span) => {
                self.at_work[v.index()] = Some(Work::Compute(span));
                Op::Run(span)
            }
            None => Op::Block(None),
        }
    }
}

impl From<VcpuId> for Source {
    fn from(v: VcpuId) -> Self {
        Source::Timer(v)
    }
}

impl Guest {
    fn new(config: &MachineConfig, index: usize, guest: &GuestConfig) -> Self {
        let slots = config.nic.ring_slots;
        let interface = guest.nic.map(|driver| Interface {
            driver,
            slots,
            to_send: VecDeque::with_capacity(1024),
            transmit_ring: VecDeque::with_capacity(slots),
            receive_ring: VecDeque::with_capacity(slots),
            event_pending: false,
            event_due: false,
        });
        let behind = |&(_, other): &(usize, &GuestConfig)| other.nic == Some(index);
        let driver = guest.driver.map(|costs| Driver {
            costs,
            nic: Nic::new(config.nic),
            awake: false,
            notified: false,
            receives: 0,
            sends: 0,
            guests: config.guests.iter().enumerate().filter(behind).map(|(i, _)| i).collect(),
            turn: 0,
        });
        let server = guest.apps.iter().enumerate().find_map(|(app, config)| match *config {
            AppConfig::WebServer { connections_max, .. } => {
                Some(Server { app, connections: 0, connections_max })
            }
            _ => None,
        });
        Guest {
            first_vcpu: guest.first_vcpu,
            kernel: Kernel::new(guest.vcpus as usize, &guest.apps, config.seed, index as u64),
            network: guest.network,
            interface,
            driver,
            server,
            random: Random::new(config.seed, index as u64, COSTS),
            io_count: 0,
        }
    }
}

impl World for Machine {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(self.sources());
        for (v, &bytes) in self.working_sets.iter().enumerate() {
            ctx.set_working_set(VcpuId(v as u32), bytes);
        }
        for client in 0..self.clients.len() {
            self.set(ctx, Source::Request(client), self.clients[client].next_request());
        }
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let Some(&(index, vcpu)) = self.owners.get(v.index()) else { return Op::Block(None) };
        match self.at_work[v.index()].take() {
            Some(Work::Compute(span)) => self.computed(ctx, index, vcpu, span - left),
            // Nothing interrupts work of the kernel: it goes on.
            work @ Some(_) if left > 0 => {
                self.at_work[v.index()] = work;
                return Op::Run(left);
            }
            Some(work) => self.finish(ctx, index, vcpu, work),
            None => {}
        }
        self.choose(ctx, v)
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        let now = ctx.now();
        match self.source(source) {
            Source::Interrupt(driver) => self.interrupt(ctx, driver),
            Source::Inbound(driver) => {
                while let Some(packet) = self.driver(driver).nic.inbound.take_arrived(now) {
                    if let Err(packet) = self.driver(driver).nic.receive(now, packet) {
                        self.lose(ctx, packet);
                    }
                }
                let next = self.driver(driver).nic.inbound.next_arrival();
                self.set(ctx, Source::Inbound(driver), next);
                self.set_interrupt(ctx, driver);
            }
            Source::Outbound(driver) => {
                while let Some(packet) = self.driver(driver).nic.outbound.take_arrived(now) {
                    self.client_receives(ctx, packet);
                }
                let next = self.driver(driver).nic.outbound.next_arrival();
                self.set(ctx, Source::Outbound(driver), next);
            }
            Source::Request(client) => self.begin_request(ctx, client),
            Source::Lost => {
                while let Some(&(time, packet)) = self.lost.front()
                    && time <= now
                {
                    self.lost.pop_front();
                    if self.connections.send_again(packet.connection) {
                        self.send_inbound(ctx, packet);
                    }
                }
                let next = self.lost.front().map_or(NEVER, |&(time, _)| time);
                self.set(ctx, Source::Lost, next);
            }
            Source::Timer(v) => {
                self.timers[v.index()] = NEVER;
                ctx.kick(v);
            }
        }
    }
}
