//! Everything around the vCPUs of a host, put together: guest kernels, front and back ends, NICs, clients.
//!
//! What a vCPU does next is, in this order: the back ends, if it is a driver domain's; the network of its own domain;
//! tasks. With nothing left it blocks.

use std::collections::VecDeque;

use vcpulab_guest::kernel::Outcome;
use vcpulab_guest::{AppConfig, AppStats, Kernel, Random};
use vcpulab_host::{NEVER, Op, Span, Time, VcpuId, WakeCause, World, WorldContext};

use crate::client::Client;
use crate::config::MachineConfig;
use crate::connection::{Connection, Connections, Kind, Packet};
use crate::driver::{Driver, DriverWork};
use crate::interface::{Interface, InterfaceCounts, InterfaceWork};
use crate::nic::{Nic, NicCounts};

/// How long a sender waits before it sends a lost packet again, ns (the least retransmission time-out of common TCPs).
const RETRANSMIT_AFTER: Span = 200_000_000;

/// Purposes of random streams. Tasks count from 1.
const COSTS: u64 = 0;
const ARRIVALS: u64 = 1 << 32;

/// A piece of work that a vCPU is at.
#[derive(Clone, Copy, Debug)]
enum Work {
    Driver(DriverWork),
    Interface(InterfaceWork),
    /// Its tasks compute for this long.
    Compute(Span),
}

/// A domain. Its network interface, back ends and server are positions in the machine's lists.
#[derive(Clone, Debug)]
struct Guest {
    first_vcpu: VcpuId,
    kernel: Kernel,
    interface: Option<usize>,
    driver: Option<usize>,
    server: Option<Server>,
    random: Random,
}

/// The web server among a domain's applications.
#[derive(Clone, Copy, Debug)]
struct Server {
    app: usize,
    connections: u32,
    connections_max: u32,
}

/// A vCPU: whose it is, what it is at, and its guest timer.
#[derive(Clone, Debug)]
struct Vcpu {
    guest: usize,
    /// Its number in the domain.
    number: usize,
    working_set_bytes: u64,
    at_work: Option<Work>,
    /// The source of its timer, if its tasks may need one, and what that is set to.
    timer_source: Option<usize>,
    timer: Time,
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
    drivers: Vec<Driver>,
    interfaces: Vec<Interface>,
    clients: Vec<Client>,
    connections: Connections,
    /// Lost packets from clients, and when they are sent again.
    lost: VecDeque<(Time, Packet)>,
    /// By number; those before the first guest's are idle.
    vcpus: Vec<Option<Vcpu>>,
    sources: Vec<Source>,
    spread_percent: i64,
}

/// What a source of events is, by position. A driver's three stand first, then one for each client, then the rest.
#[derive(Clone, Copy, Debug)]
enum Source {
    Interrupt(usize),
    Inbound(usize),
    Outbound(usize),
    Request(usize),
    Lost,
    Timer(VcpuId),
}

const DRIVER_SOURCES: usize = 3;

impl Machine {
    /// A machine at time 0.
    pub fn new(config: &MachineConfig) -> Self {
        let mut machine = Machine {
            guests: Vec::new(),
            drivers: Vec::new(),
            interfaces: Vec::new(),
            clients: Vec::new(),
            connections: Connections::default(),
            lost: VecDeque::new(),
            vcpus: Vec::new(),
            sources: Vec::new(),
            spread_percent: config.spread_percent,
        };
        machine.add_drivers(config);
        for (index, client) in config.clients.iter().enumerate() {
            let random = Random::new(config.seed, index as u64, ARRIVALS);
            machine.clients.push(Client::new(client.clone(), random));
            machine.sources.push(Source::Request(index));
        }
        machine.sources.push(Source::Lost);
        for index in 0..config.guests.len() {
            machine.add_guest(config, index);
        }
        machine
    }

    fn add_drivers(&mut self, config: &MachineConfig) {
        for guest in &config.guests {
            let Some(costs) = guest.driver else { continue };
            let index = self.drivers.len();
            self.drivers.push(Driver::new(Nic::new(config.nic), guest.first_vcpu, costs));
            self.sources.extend([Source::Interrupt(index), Source::Inbound(index), Source::Outbound(index)]);
        }
    }

    fn add_guest(&mut self, config: &MachineConfig, index: usize) {
        let guest = &config.guests[index];
        let position = |of: usize| config.guests[..of].iter().filter(|guest| guest.driver.is_some()).count();
        let interface = guest.nic.map(|driver| {
            assert!(config.guests[driver].driver.is_some(), "an interface leads to a driver domain");
            let slots = config.nic.ring_slots;
            self.interfaces.push(Interface::new(position(driver), guest.first_vcpu, guest.network, slots));
            self.interfaces.len() - 1
        });
        let server = guest.apps.iter().enumerate().find_map(|(app, config)| match *config {
            AppConfig::WebServer { connections_max, .. } => {
                Some(Server { app, connections: 0, connections_max })
            }
            _ => None,
        });
        for number in 0..guest.vcpus as usize {
            let v = guest.first_vcpu.index() + number;
            self.vcpus.resize(self.vcpus.len().max(v + 1), None);
            // Task i runs on vCPU i modulo their number: those beyond have none.
            let timer_source = (number < guest.apps.len()).then_some(self.sources.len());
            if timer_source.is_some() {
                self.sources.push(Source::Timer(VcpuId(v as u32)));
            }
            self.vcpus[v] = Some(Vcpu {
                guest: index,
                number,
                working_set_bytes: guest.working_set_bytes,
                at_work: None,
                timer_source,
                timer: NEVER,
            });
        }
        self.guests.push(Guest {
            first_vcpu: guest.first_vcpu,
            kernel: Kernel::new(guest.vcpus as usize, &guest.apps, config.seed, index as u64),
            interface,
            driver: guest.driver.map(|_| position(index)),
            server,
            random: Random::new(config.seed, index as u64, COSTS),
        });
    }

    // ---- results ----

    /// Forgets what was counted so far.
    pub fn reset_statistics(&mut self) {
        self.guests.iter_mut().flat_map(|guest| guest.kernel.apps_mut()).for_each(|app| app.stats.reset());
        self.clients.iter_mut().for_each(|client| client.stats.reset());
        self.interfaces.iter_mut().for_each(|interface| interface.counts = InterfaceCounts::default());
        self.drivers.iter_mut().for_each(|driver| driver.nic.counts = NicCounts::default());
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
        let through_ring = self.interface_counts(guest).map_or(0, |counts| counts.received + counts.sent);
        let through_nic = self.nic_counts(guest).map_or(0, |counts| counts.received + counts.sent);
        through_ring + 2 * through_nic
    }

    /// What crossed a guest's network interface, if it has one.
    pub fn interface_counts(&self, guest: usize) -> Option<InterfaceCounts> {
        self.guests[guest].interface.map(|interface| self.interfaces[interface].counts)
    }

    /// What crossed a driver domain's NIC, if it is one.
    pub fn nic_counts(&self, guest: usize) -> Option<NicCounts> {
        self.guests[guest].driver.map(|driver| self.drivers[driver].nic.counts)
    }

    /// Packets that found a NIC's queue or a guest's ring full; they are sent again later.
    pub fn lost_packets(&self) -> u64 {
        let at_nics: u64 = self.drivers.iter().map(|driver| driver.nic.counts.dropped).sum();
        let at_rings: u64 = self.interfaces.iter().map(|interface| interface.counts.dropped).sum();
        at_nics + at_rings
    }

    /// Connections that are not over.
    pub fn open_connections(&self) -> usize {
        self.connections.open_count()
    }

    // ---- sources ----

    fn set(&self, ctx: &mut WorldContext<'_>, source: Source, time: Time) {
        let clients = DRIVER_SOURCES * self.drivers.len();
        let number = match source {
            Source::Interrupt(driver) => DRIVER_SOURCES * driver,
            Source::Inbound(driver) => DRIVER_SOURCES * driver + 1,
            Source::Outbound(driver) => DRIVER_SOURCES * driver + 2,
            Source::Request(client) => clients + client,
            Source::Lost => clients + self.clients.len(),
            Source::Timer(v) => match self.vcpus[v.index()].as_ref().and_then(|vcpu| vcpu.timer_source) {
                Some(number) => number,
                None => return,
            },
        };
        ctx.set_source(number, time);
    }

    // ---- outside ----

    fn send_inbound(&mut self, ctx: &mut WorldContext<'_>, packet: Packet) {
        let server = self.connections.get(packet.connection).server;
        let Some(interface) = self.guests[server].interface else { return };
        let driver = self.interfaces[interface].driver;
        let wire = &mut self.drivers[driver].nic.inbound;
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
        self.set_lost(ctx);
    }

    fn set_lost(&self, ctx: &mut WorldContext<'_>) {
        self.set(ctx, Source::Lost, self.lost.front().map_or(NEVER, |&(time, _)| time));
    }

    fn send_lost_again(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(&(time, packet)) = self.lost.front()
            && time <= ctx.now()
        {
            self.lost.pop_front();
            if self.connections.send_again(packet) {
                self.send_inbound(ctx, packet);
            }
        }
        self.set_lost(ctx);
    }

    // ---- inside ----

    fn server_receives(&mut self, ctx: &mut WorldContext<'_>, index: usize, packet: Packet) {
        let number = packet.connection;
        let guest = &mut self.guests[index];
        let Some(server) = &mut guest.server else { return };
        match packet.kind {
            Kind::Syn => {
                let accepted = server.connections < server.connections_max;
                let kind = if accepted { Kind::SynAck } else { Kind::Refused };
                if accepted {
                    server.connections += 1;
                } else if let Some(app) = guest.kernel.apps_mut().nth(server.app) {
                    app.stats.failed += 1;
                }
                self.queue_to_send(index, Connection::packet(number, kind));
            }
            Kind::Get => {
                let woken = guest.kernel.request(server.app, number, ctx.now());
                let first = guest.first_vcpu.0;
                if let Some(vcpu) = woken.filter(|&vcpu| vcpu != 0) {
                    ctx.kick(VcpuId(first + vcpu as u32), WakeCause::Event);
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
        if let Some(interface) = self.guests[index].interface {
            self.interfaces[interface].queue_to_send(packet);
        }
    }

    // ---- work ----

    /// What of a driver's or the network's work a vCPU does next, and what that costs.
    fn kernel_work(
        &mut self,
        ctx: &mut WorldContext<'_>,
        index: usize,
        number: usize,
    ) -> Option<(Work, Span)> {
        let Guest { driver, interface, .. } = self.guests[index];
        if number == 0
            && let Some(driver) = driver
            && let Some((work, cost)) = self.drivers[driver].next(ctx, &mut self.interfaces)
        {
            return Some((Work::Driver(work), cost));
        }
        let (work, cost) = self.interfaces[interface?].next(number == 0)?;
        Some((Work::Interface(work), cost))
    }

    /// A piece of work is done: what follows from it.
    fn finish(&mut self, ctx: &mut WorldContext<'_>, index: usize, number: usize, work: Work) {
        let Guest { driver, interface, .. } = self.guests[index];
        match (work, driver, interface) {
            (Work::Driver(work), Some(driver), _) => self.finish_driver(ctx, driver, work),
            (Work::Interface(work), _, Some(interface)) => self.finish_interface(ctx, index, interface, work),
            (Work::Compute(span), ..) => self.computed(ctx, index, number, span),
            (Work::Driver(_) | Work::Interface(_), ..) => {
                unreachable!("work of what the domain does not have")
            }
        }
    }

    fn finish_driver(&mut self, ctx: &mut WorldContext<'_>, index: usize, work: DriverWork) {
        let driver = &mut self.drivers[index];
        match work {
            DriverWork::Upcall => {}
            DriverWork::Receive(packet) => {
                let server = self.connections.get(packet.connection).server;
                let Some(interface) = self.guests[server].interface else { return };
                if let Err(packet) = driver.hand_over(&mut self.interfaces, interface, packet) {
                    self.lose(ctx, packet);
                }
            }
            DriverWork::Send(packet) => {
                driver.nic.send(ctx.now(), packet);
                let (arrival, interrupt) = (driver.nic.outbound.next_arrival(), driver.nic.next_interrupt());
                self.set(ctx, Source::Outbound(index), arrival);
                self.set(ctx, Source::Interrupt(index), interrupt);
            }
        }
    }

    fn finish_interface(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: usize,
        index: usize,
        work: InterfaceWork,
    ) {
        match work {
            InterfaceWork::Upcall => {}
            InterfaceWork::Receive(packet) => self.server_receives(ctx, guest, packet),
            InterfaceWork::Send(packet) => {
                let interface = &mut self.interfaces[index];
                let first = interface.put(packet);
                self.drivers[interface.driver].ring_filled(ctx, index, first);
            }
        }
    }

    fn computed(&mut self, ctx: &WorldContext<'_>, index: usize, number: usize, span: Span) {
        if let Outcome::Served(connection) = self.guests[index].kernel.computed(number, ctx.now(), span) {
            self.send_segments(index, connection);
        }
    }

    /// Gives a vCPU its next piece of work.
    fn choose(&mut self, ctx: &mut WorldContext<'_>, vcpu: &mut Vcpu) -> Op {
        let (index, number) = (vcpu.guest, vcpu.number);
        while let Some((work, cost)) = self.kernel_work(ctx, index, number) {
            let cost = self.guests[index].random.spread(cost, self.spread_percent);
            if cost > 0 {
                vcpu.at_work = Some(work);
                return Op::Run(cost);
            }
            self.finish(ctx, index, number, work);
        }
        let kernel = &mut self.guests[index].kernel;
        let span = kernel.next(number, ctx.now());
        let timer = kernel.next_timer(number);
        if let Some(source) = vcpu.timer_source
            && timer != vcpu.timer
        {
            vcpu.timer = timer;
            ctx.set_source(source, timer);
        }
        vcpu.at_work = span.map(Work::Compute);
        span.map_or(Op::Block(None), Op::Run)
    }
}

impl World for Machine {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(self.sources.len());
        for (v, vcpu) in self.vcpus.iter().enumerate() {
            if let Some(vcpu) = vcpu {
                ctx.set_working_set(VcpuId(v as u32), vcpu.working_set_bytes);
            }
        }
        for client in 0..self.clients.len() {
            self.set(ctx, Source::Request(client), self.clients[client].next_request());
        }
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let Some(mut vcpu) = self.vcpus.get_mut(v.index()).and_then(Option::take) else {
            return Op::Block(None);
        };
        let op = match vcpu.at_work.take() {
            // Nothing interrupts work of the kernel: it goes on.
            Some(work @ (Work::Driver(_) | Work::Interface(_))) if left > 0 => {
                vcpu.at_work = Some(work);
                Op::Run(left)
            }
            work => {
                match work {
                    Some(Work::Compute(span)) => self.computed(ctx, vcpu.guest, vcpu.number, span - left),
                    Some(work) => self.finish(ctx, vcpu.guest, vcpu.number, work),
                    None => {}
                }
                self.choose(ctx, &mut vcpu)
            }
        };
        self.vcpus[v.index()] = Some(vcpu);
        op
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        let now = ctx.now();
        match self.sources[source] {
            Source::Interrupt(index) => {
                let driver = &mut self.drivers[index];
                driver.interrupt(ctx);
                let next = driver.nic.next_interrupt();
                self.set(ctx, Source::Interrupt(index), next);
            }
            Source::Inbound(index) => {
                while let Some(packet) = self.drivers[index].nic.inbound.take_arrived(now) {
                    if let Err(packet) = self.drivers[index].nic.receive(now, packet) {
                        self.lose(ctx, packet);
                    }
                }
                let nic = &self.drivers[index].nic;
                let (arrival, interrupt) = (nic.inbound.next_arrival(), nic.next_interrupt());
                self.set(ctx, Source::Inbound(index), arrival);
                self.set(ctx, Source::Interrupt(index), interrupt);
            }
            Source::Outbound(index) => {
                while let Some(packet) = self.drivers[index].nic.outbound.take_arrived(now) {
                    self.client_receives(ctx, packet);
                }
                let next = self.drivers[index].nic.outbound.next_arrival();
                self.set(ctx, Source::Outbound(index), next);
            }
            Source::Request(client) => self.begin_request(ctx, client),
            Source::Lost => self.send_lost_again(ctx),
            Source::Timer(v) => {
                if let Some(vcpu) = &mut self.vcpus[v.index()] {
                    vcpu.timer = NEVER;
                }
                ctx.kick(v, WakeCause::Timer);
            }
        }
    }
}
