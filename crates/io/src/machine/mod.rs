//! Everything around the vCPUs of a host, put together: guest kernels, front and back ends, cards, clients.
//!
//! What a vCPU does next is, in this order: the back ends, if it is a driver domain's; the network of its own domain;
//! tasks. With nothing left it blocks.

mod calls;
mod channels;
mod connections;
mod counts;
mod disks;
mod life;
mod profiler;
mod routes;
mod steps;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use vcpulab_guest::{AppStats, Kernel, Next, Random};
use vcpulab_host::{LifeEvent, NEVER, Op, PcpuId, SetId, Span, Time, VcpuId, WakeCause, World, WorldContext};

use crate::block::{Block, BlockCounts, BlockWork};
use crate::blockback::{BlockBack, Store};
use crate::client::{Client, ClientSample};
use crate::client_machine::ClientMachine;
use crate::config::{DiskUnitConfig, DriverCosts, Link, Load, MachineConfig, NetworkCosts, Owner};
use crate::disk::{Disk, DiskCounts};
use crate::driver::{Backend, Devices, DiskUnit, DriverWork};
use crate::interface::{Interface, InterfaceCounts, InterfaceWork};
use crate::nic::{Nic, NicCounts};
use crate::tcp::{ConnectionId, Connections, Packet, Side};

use channels::Channel;
pub use counts::IoCounts;
pub use profiler::{Layer, Layers, Samples};
use profiler::{Profiler, Share};

/// Purposes of random streams. Tasks count from 1.
const COSTS: u64 = 0;
const ARRIVALS: u64 = 1 << 32;
const DISKS: u64 = 2 << 32;
const FILES: u64 = 3 << 32;
const SERVED_FILES: u64 = 4 << 32;

/// What a spinning vCPU is given to do: as good as for ever, and still counted.
const SPIN: Span = Span::MAX - 1;

/// A piece of work that a vCPU is at.
#[derive(Clone, Copy, Debug)]
enum Work {
    Driver(DriverWork),
    Interface(InterfaceWork),
    /// Its virtual disk.
    Block(BlockWork),
    /// A packet from one task of the guest to another.
    Loopback(Packet),
    /// Its tasks compute, or spin, for this long.
    Tasks(Span),
}

/// A domain. Its network interface and back ends are positions in the machine's lists.
#[derive(Clone, Debug)]
struct Guest {
    first_vcpu: VcpuId,
    kernel: Kernel,
    interface: Option<usize>,
    block: Option<usize>,
    /// Of its first vCPU, if it is a driver domain; those of the others follow.
    first_backend: Option<usize>,
    /// Which of its vCPUs is at a packet of others, if they take turns.
    turn: Option<usize>,
    network: NetworkCosts,
    driver: DriverCosts,
    loopback: VecDeque<Packet>,
    /// Connections to services that are kept, by service, and not in use.
    kept: Vec<Vec<ConnectionId>>,
    random: Random,
    /// Packets to it or from it that were lost and sent again.
    retransmissions: u64,
    /// What each application's tasks touch together, and each task for itself, if any of them has memory worth mentioning.
    app_sets: Vec<SetId>,
    task_sets: Vec<SetId>,
    /// CPU time by layer of the work that is over.
    layers: Layers,
}

/// A vCPU: whose it is, what it is at, and its guest timer.
#[derive(Clone, Debug)]
struct Vcpu {
    guest: usize,
    /// Its number in the domain.
    number: usize,
    working_set_bytes: u64,
    /// What it touches whatever it runs.
    own_set: Option<SetId>,
    /// The task whose memory it touches.
    task: Option<usize>,
    at_work: Option<Work>,
    share: Share,
    /// The source of its timer, and what that is set to.
    timer_source: usize,
    timer: Time,
}

/// What an application achieved since the last reset.
#[derive(Clone, Debug)]
pub struct AppResult<'a> {
    /// The domain's index.
    pub guest: usize,
    /// Its position in the domain; clients of a domain's services follow its applications.
    pub app: usize,
    /// The client whose view it is, from outside, if it is one.
    pub client: Option<usize>,
    /// Counts and response times.
    pub stats: &'a AppStats,
}

/// What hears of every request of a client that is over.
struct RequestLog(Box<dyn FnMut(&ClientSample)>);

impl std::fmt::Debug for RequestLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestLog")
    }
}

/// The world of a host.
#[derive(Debug)]
pub struct Machine {
    guests: Vec<Guest>,
    backends: Vec<Backend>,
    interfaces: Vec<Interface>,
    nics: Vec<Nic>,
    disks: Vec<DiskUnit>,
    blocks: Vec<Block>,
    /// By virtual disk.
    disk_of: Vec<usize>,
    clients: Vec<Client>,
    client_machines: Vec<ClientMachine>,
    /// Where the source of the first of those is; the others' follow.
    client_machine_sources: usize,
    log: Option<RequestLog>,
    /// By number: guest and application.
    services: Vec<(usize, usize)>,
    channels: Vec<Channel>,
    connections: Connections,
    /// Connections that users of clients keep, by client and user.
    users: Vec<Vec<Option<ConnectionId>>>,
    /// Their streams, by client and number.
    streams: Vec<Vec<Option<ConnectionId>>>,
    /// What is to happen to connections, each list in the order of time.
    lost: VecDeque<(Time, Packet)>,
    lost_soon: VecDeque<(Time, Packet)>,
    acks: VecDeque<(Time, ConnectionId, Side)>,
    /// Calls that were not answered, by when they are made again.
    calls: BinaryHeap<Reverse<(Time, ConnectionId)>>,
    timeouts: Vec<VecDeque<(Time, ConnectionId, Time)>>,
    /// By number; those before the first guest's are idle.
    vcpus: Vec<Option<Vcpu>>,
    sources: Vec<Source>,
    packets_in_turn: bool,
    spread_percent: i64,
    seed: u64,
    /// The vCPU whose work is being done, and the guest that it is in.
    executing: Option<(VcpuId, usize)>,
    profiler: Option<Profiler>,
}

/// What a source of events is, by position: three for each card, two for each client, then the rest.
#[derive(Clone, Copy, Debug)]
enum Source {
    Interrupt(usize),
    Inbound(usize),
    Outbound(usize),
    User(usize),
    Timeout(usize),
    Lost,
    LostSoon,
    Ack,
    Calls,
    Disk(usize),
    Timer(VcpuId),
    Counter(PcpuId),
    ClientMachine(usize),
}

const NIC_SOURCES: usize = 3;
const CLIENT_SOURCES: usize = 2;

impl Machine {
    /// A machine at time 0.
    pub fn new(config: &MachineConfig) -> Self {
        let mut machine = Machine {
            guests: Vec::new(),
            backends: Vec::new(),
            interfaces: Vec::new(),
            nics: config.nics.iter().map(|&nic| Nic::new(nic)).collect(),
            disks: Vec::new(),
            blocks: Vec::new(),
            disk_of: Vec::new(),
            clients: Vec::new(),
            client_machines: config
                .client_machines
                .iter()
                .map(|&machine| ClientMachine::new(machine))
                .collect(),
            client_machine_sources: 0,
            log: None,
            services: config.services.clone(),
            channels: vec![Channel::default(); config.channels],
            connections: Connections::new(config.initial_segments),
            users: Vec::new(),
            streams: Vec::new(),
            lost: VecDeque::new(),
            lost_soon: VecDeque::new(),
            acks: VecDeque::new(),
            calls: BinaryHeap::new(),
            timeouts: Vec::new(),
            vcpus: Vec::new(),
            sources: Vec::new(),
            packets_in_turn: config.packets_in_turn,
            spread_percent: config.spread_percent,
            seed: config.seed,
            executing: None,
            profiler: None,
        };
        for nic in 0..config.nics.len() {
            machine.sources.extend([Source::Interrupt(nic), Source::Inbound(nic), Source::Outbound(nic)]);
        }
        for (index, client) in config.clients.iter().enumerate() {
            let random = Random::new(config.seed, index as u64, ARRIVALS);
            let (users, streams) = match client.load {
                Load::Open { .. } => (0, 0),
                Load::Closed { users, .. } => (users, 0),
                Load::Stream { streams, .. } => (0, streams),
            };
            machine.users.push(vec![None; users as usize]);
            machine.streams.push(vec![None; streams as usize]);
            machine.timeouts.push(VecDeque::new());
            machine.clients.push(Client::new(client.clone(), random));
            machine.sources.extend([Source::User(index), Source::Timeout(index)]);
        }
        machine.sources.extend([Source::Lost, Source::LostSoon, Source::Ack, Source::Calls]);
        machine.add_disks(config);
        for index in 0..config.guests.len() {
            machine.add_guest(config, index);
        }
        machine.connect_back_ends(config);
        if let Some(profiler) = config.profiler {
            machine.profiler = Some(Profiler::new(profiler, machine.sources.len(), config.guests.len()));
            machine.sources.extend((0..profiler.pcpus).map(|p| Source::Counter(PcpuId(p))));
        }
        machine.client_machine_sources = machine.sources.len();
        machine.sources.extend((0..config.client_machines.len()).map(Source::ClientMachine));
        machine
    }

    fn add_disks(&mut self, config: &MachineConfig) {
        // Each virtual disk has an area of its own on its disk.
        let areas = config.guests.iter().filter(|guest| guest.block.is_some()).count() as u32;
        for (number, unit) in config.disks.iter().enumerate() {
            let random = Random::new(config.seed, number as u64, DISKS);
            let store = match unit.disk {
                Some(disk) => Store::Disk(Box::new(Disk::new(disk, areas.max(1), random))),
                None => Store::Front(number_of_block(config, unit)),
            };
            self.disks.push(DiskUnit { store, back: BlockBack::new(unit.costs), owner: unit.owner });
            self.sources.push(Source::Disk(number));
        }
    }

    fn add_guest(&mut self, config: &MachineConfig, index: usize) {
        let guest = &config.guests[index];
        let interface = guest.interface.as_ref().map(|interface| {
            self.interfaces.push(Interface::new(interface, guest.first_vcpu));
            self.interfaces.len() - 1
        });
        let block = guest.block.as_ref().map(|virtual_disk| {
            let area = self.blocks.len();
            let random = Random::new(config.seed, area as u64, FILES);
            let vcpu = VcpuId(guest.first_vcpu.0 + virtual_disk.vcpu);
            let mut block = Block::new(virtual_disk.block, area as u32, vcpu, random);
            block.emulation_ns = virtual_disk.emulation_ns;
            if let Some(files) = &guest.files {
                block.serve_files(files, Random::new(config.seed, area as u64, SERVED_FILES));
            }
            self.blocks.push(block);
            self.disk_of.push(virtual_disk.disk);
            area
        });
        let first_backend = guest.driver.map(|_| self.backends.len());
        for number in 0..guest.kernel.vcpus {
            let v = VcpuId(guest.first_vcpu.0 + number as u32);
            if first_backend.is_some() {
                self.backends.push(Backend::new(v, config.guests.len()));
            }
            self.vcpus.resize(self.vcpus.len().max(v.index() + 1), None);
            self.vcpus[v.index()] = Some(Vcpu {
                guest: index,
                number,
                working_set_bytes: guest.working_set_bytes,
                own_set: None,
                task: None,
                at_work: None,
                share: Share::default(),
                timer_source: self.sources.len(),
                timer: NEVER,
            });
            self.sources.push(Source::Timer(v));
        }
        self.guests.push(Guest {
            first_vcpu: guest.first_vcpu,
            kernel: Kernel::new(&guest.kernel, 0, config.seed, index as u64),
            interface,
            block,
            first_backend,
            turn: None,
            network: guest.network,
            driver: guest.driver.unwrap_or_default(),
            loopback: VecDeque::new(),
            kept: vec![Vec::new(); config.services.len()],
            random: Random::new(config.seed, index as u64, COSTS),
            retransmissions: 0,
            app_sets: Vec::new(),
            task_sets: Vec::new(),
            layers: Layers::default(),
        });
    }

    fn connect_back_ends(&mut self, config: &MachineConfig) {
        for (nic, config) in config.nics.iter().enumerate() {
            if let Owner::Guest { guest, vcpu } = config.owner {
                let backend = self.backend(guest, vcpu).expect("a card belongs to a driver domain");
                self.backends[backend].nics.push(nic);
            }
        }
        for (number, unit) in config.disks.iter().enumerate() {
            if let Some((guest, vcpu)) = unit.owner {
                let backend = self.backend(guest, vcpu).expect("a disk belongs to a driver domain");
                self.backends[backend].disks.push(number);
            }
        }
        for interface in &self.interfaces {
            if let Link::Driver { guest, vcpu } = interface.link {
                assert!(self.backend(guest, vcpu).is_some(), "an interface leads to a driver domain");
            }
        }
    }

    fn backend(&self, guest: usize, vcpu: u32) -> Option<usize> {
        self.guests[guest].first_backend.map(|first| first + vcpu as usize)
    }

    // ---- results ----

    /// Tells somebody of every request of a client from now on, as soon as it is over.
    pub fn log_requests(&mut self, log: impl FnMut(&ClientSample) + 'static) {
        self.log = Some(RequestLog(Box::new(log)));
    }

    /// Forgets what was counted so far.
    pub fn reset_statistics(&mut self) {
        for guest in &mut self.guests {
            guest.kernel.reset_stats();
            guest.retransmissions = 0;
        }
        self.clients.iter_mut().for_each(|client| client.stats.reset());
        self.interfaces.iter_mut().for_each(|interface| interface.counts = InterfaceCounts::default());
        self.nics.iter_mut().for_each(|nic| nic.counts = NicCounts::default());
        let disks = self.disks.iter_mut().filter_map(|unit| unit.store.disk_mut());
        disks.for_each(|disk| disk.counts = DiskCounts::default());
        self.blocks.iter_mut().for_each(|block| block.counts = BlockCounts::default());
    }

    /// What applications and clients achieved, by domain.
    pub fn results(&self) -> Vec<AppResult<'_>> {
        let mut results = Vec::new();
        for (index, guest) in self.guests.iter().enumerate() {
            let stats = guest.kernel.stats();
            for (app, stats) in stats.iter().enumerate() {
                results.push(AppResult { guest: index, app, client: None, stats });
            }
            let clients = self.clients.iter().enumerate();
            let clients = clients.filter(|(_, client)| self.services[client.config.service].0 == index);
            for (i, (number, client)) in clients.enumerate() {
                let app = stats.len() + i;
                results.push(AppResult { guest: index, app, client: Some(number), stats: &client.stats });
            }
        }
        results
    }

    /// XenMon's I/O count of a domain: packets and requests, once for each end of a ring, and once for a card, that it handles.
    pub fn io_count(&self, guest: usize) -> u64 {
        let own_packets = self.interface_counts(guest).map_or(0, |counts| counts.received + counts.sent);
        let own_requests = self.block_counts(guest).map_or(0, |counts| counts.requests);
        let cards = self.nic_counts(guest);
        // Of those behind it, the driver domain's side of their rings.
        let behind = |interface: &&Interface| matches!(interface.link, Link::Driver { guest: driver, .. } if driver == guest);
        let handed = |interface: &Interface| interface.counts.page_exchanges + interface.counts.sent;
        let packets: u64 = self.interfaces.iter().filter(behind).map(handed).sum();
        let serves = |disk: usize| self.disks[disk].owner.is_some_and(|(owner, _)| owner == guest);
        let others = |block: &usize| serves(self.disk_of[*block]) && self.guests[guest].block != Some(*block);
        let requests: u64 =
            (0..self.blocks.len()).filter(others).map(|block| self.blocks[block].counts.requests).sum();
        own_packets + own_requests + cards.received + cards.sent + packets + requests
    }

    /// What went through a guest's virtual disk, if it has one.
    pub fn block_counts(&self, guest: usize) -> Option<BlockCounts> {
        self.guests[guest].block.map(|block| self.blocks[block].counts)
    }

    /// What crossed a guest's network interface, if it has one.
    pub fn interface_counts(&self, guest: usize) -> Option<InterfaceCounts> {
        self.guests[guest].interface.map(|interface| self.interfaces[interface].counts)
    }

    /// What crossed the cards of a driver domain.
    pub fn nic_counts(&self, guest: usize) -> NicCounts {
        let owns =
            |nic: &&Nic| matches!(nic.config.owner, Owner::Guest { guest: owner, .. } if owner == guest);
        self.nics.iter().filter(owns).fold(NicCounts::default(), |sum, nic| NicCounts {
            interrupts: sum.interrupts + nic.counts.interrupts,
            received: sum.received + nic.counts.received,
            strays: sum.strays + nic.counts.strays,
            sent: sum.sent + nic.counts.sent,
            dropped: sum.dropped + nic.counts.dropped,
        })
    }

    /// CPU time that a guest's tasks burnt waiting for locks, ns.
    pub fn spin_ns(&self, guest: usize) -> Span {
        self.guests[guest].kernel.spin_ns()
    }

    /// Packets that found a card's queue or a guest's ring full; they are sent again later.
    pub fn lost_packets(&self) -> u64 {
        let at_nics: u64 = self.nics.iter().map(|nic| nic.counts.dropped).sum();
        let at_rings: u64 = self.interfaces.iter().map(|interface| interface.counts.dropped).sum();
        at_nics + at_rings
    }

    /// Connections that are not over.
    pub fn open_connections(&self) -> usize {
        self.connections.open_count()
    }

    // ---- sources ----

    fn set(&self, ctx: &mut WorldContext<'_>, source: Source, time: Time) {
        let clients = NIC_SOURCES * self.nics.len();
        let others = clients + CLIENT_SOURCES * self.clients.len();
        let number = match source {
            Source::Interrupt(nic) => NIC_SOURCES * nic,
            Source::Inbound(nic) => NIC_SOURCES * nic + 1,
            Source::Outbound(nic) => NIC_SOURCES * nic + 2,
            Source::User(client) => clients + CLIENT_SOURCES * client,
            Source::Timeout(client) => clients + CLIENT_SOURCES * client + 1,
            Source::Lost => others,
            Source::LostSoon => others + 1,
            Source::Ack => others + 2,
            Source::Calls => others + 3,
            Source::Disk(disk) => others + 4 + disk,
            Source::Timer(v) => match &self.vcpus[v.index()] {
                Some(vcpu) => vcpu.timer_source,
                None => return,
            },
            Source::Counter(_) => return,
            Source::ClientMachine(machine) => self.client_machine_sources + machine,
        };
        ctx.set_source(number, time);
    }

    /// vCPUs of a guest whose tasks can go on look for them.
    fn kick_tasks(&mut self, ctx: &mut WorldContext<'_>, guest: usize) {
        while let Some(number) = self.guests[guest].kernel.take_kick() {
            let v = VcpuId(self.guests[guest].first_vcpu.0 + number as u32);
            if self.executing.is_none_or(|(executing, _)| executing != v) {
                // Nobody executes: a time has come.
                let cause = if self.executing.is_some() { WakeCause::Event } else { WakeCause::Timer };
                ctx.kick(v, cause);
            }
        }
    }

    // ---- work ----

    /// What of a driver's or the network's work a vCPU does next, and what that costs.
    fn kernel_work(
        &mut self,
        ctx: &mut WorldContext<'_>,
        index: usize,
        number: usize,
    ) -> Option<(Work, Layers)> {
        if let Some(first) = self.guests[index].first_backend {
            let turn = self.guests[index].turn;
            let mut devices = Devices {
                nics: &mut self.nics,
                interfaces: &mut self.interfaces,
                disks: &mut self.disks,
                blocks: &mut self.blocks,
            };
            let may = turn.is_none_or(|turn| turn == number);
            match self.backends[first + number].next(ctx, &mut devices, may) {
                Some(work) => {
                    if self.packets_in_turn && matches!(work, DriverWork::Receive(..) | DriverWork::Send(..))
                    {
                        self.guests[index].turn = Some(number);
                    }
                    let cost = self.driver_cost(index, first + number, &work);
                    return Some((Work::Driver(work), cost));
                }
                // It has nothing to take, though it is its turn.
                None if turn == Some(number) => self.pass_turn(ctx, index, number),
                None => {}
            }
        }
        let guest = &mut self.guests[index];
        if let Some(interface) = guest.interface {
            let interface = &mut self.interfaces[interface];
            let costs = guest.network;
            let takes =
                matches!(interface.link, Link::Driver { .. }) || self.nics[interface.nic].can_send(ctx.now());
            let owns = matches!(interface.link, Link::Owner);
            if let Some(work) = interface.next(number, takes) {
                let bytes = |packet: &Packet| i64::from(packet.bytes) * costs.byte_ps / 1000;
                let hypervisor = match work {
                    InterfaceWork::Upcall => costs.hypervisor_upcall_ns,
                    InterfaceWork::Receive(_) => 0,
                    InterfaceWork::Send(_) => costs.hypervisor_send_ns,
                };
                let cost = match &work {
                    InterfaceWork::Upcall => costs.upcall_ns,
                    InterfaceWork::Receive(packet) => costs.receive_ns + bytes(packet),
                    InterfaceWork::Send(packet) if owns => {
                        costs.send_ns + guest.driver.nic_send_ns + bytes(packet)
                    }
                    InterfaceWork::Send(packet) => costs.send_ns + bytes(packet),
                };
                let carries = guest.first_backend.is_some();
                let onward = if carries { self.handing_on_own(index, &work) } else { Layers::default() };
                return Some((Work::Interface(work), Layers::kernel(cost, hypervisor).plus(&onward)));
            }
        }
        if let Some(block) = self.guests[index].block
            && let Some((work, cost)) = self.block_work(ctx, index, number, block)
        {
            let upcall = self.guests[index].network.hypervisor_upcall_ns.min(cost);
            let hypervisor = if matches!(work, BlockWork::Upcall) { upcall } else { 0 };
            return Some((Work::Block(work), Layers::kernel(cost, hypervisor)));
        }
        let guest = &mut self.guests[index];
        let packet = guest.loopback.pop_front()?;
        let cost = guest.network.loopback_ns + i64::from(packet.bytes) * guest.network.byte_ps / 1000;
        Some((Work::Loopback(packet), Layers::kernel(cost, 0)))
    }

    /// A piece of work is done: what follows from it.
    fn finish(&mut self, ctx: &mut WorldContext<'_>, index: usize, number: usize, work: Work) {
        match work {
            Work::Driver(work) => self.finish_driver(ctx, index, number, work),
            Work::Interface(work) => self.finish_interface(ctx, index, work),
            Work::Block(work) => self.finish_block(ctx, index, work),
            Work::Loopback(packet) => self.arrive(ctx, packet),
            Work::Tasks(span) => self.guests[index].kernel.computed(number, span),
        }
    }

    /// Gives a vCPU of a guest its next piece of work.
    fn choose(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, index: usize, number: usize) -> Op {
        loop {
            while let Some((work, cost)) = self.kernel_work(ctx, index, number) {
                self.step_begins(ctx, index, &work);
                let all = self.guests[index].random.spread(cost.sum(), self.spread_percent);
                if all > 0 {
                    self.begin_work(v, work, Share::begun(cost.stretched(all), ctx.now()));
                    return Op::Run(all);
                }
                self.finish(ctx, index, number, work);
            }
            let next = self.guests[index].kernel.next(number, ctx.now());
            self.kick_tasks(ctx, index);
            let op = match next {
                Next::Io(task, io) => {
                    self.call(ctx, index, task, io);
                    continue;
                }
                Next::Run(span) | Next::Tick(span) => Op::Run(span),
                Next::Spin => Op::Run(SPIN),
                Next::Idle => Op::Block(None),
            };
            let disk_timer = self.disk_timer(ctx.now(), index, number);
            let timer = self.guests[index].kernel.next_timer(number).min(disk_timer);
            if let Some(vcpu) = &mut self.vcpus[v.index()]
                && timer != vcpu.timer
            {
                vcpu.timer = timer;
                ctx.set_source(vcpu.timer_source, timer);
            }
            self.touch_task(ctx, v);
            if let Op::Run(span) = op {
                let layers = match next {
                    Next::Tick(_) => Layers::kernel(span, 0),
                    _ => Layers::application(span),
                };
                self.begin_work(v, Work::Tasks(span), Share::begun(layers, ctx.now()));
            }
            return op;
        }
    }

    /// A vCPU is at a piece of work from now on.
    fn begin_work(&mut self, v: VcpuId, work: Work, share: Share) {
        if let Some(vcpu) = &mut self.vcpus[v.index()] {
            (vcpu.at_work, vcpu.share) = (Some(work), share);
        }
    }

    /// A vCPU touches the memory of the task that it is at.
    fn touch_task(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId) {
        let Some(vcpu) = &mut self.vcpus[v.index()] else { return };
        let guest = &self.guests[vcpu.guest];
        if guest.task_sets.is_empty() {
            return;
        }
        let task = guest.kernel.current(vcpu.number);
        if let (Some(task), Some(own)) = (task, vcpu.own_set)
            && vcpu.task != Some(task)
        {
            vcpu.task = Some(task);
            ctx.use_sets(v, &[own, guest.app_sets[guest.kernel.app_of(task)], guest.task_sets[task]]);
        }
    }
}

/// The virtual disk of a stub domain. They are numbered in the order of their domains.
fn number_of_block(config: &MachineConfig, unit: &DiskUnitConfig) -> usize {
    let (stub, _) = unit.owner.expect("a stub domain has an owner's place");
    assert!(config.guests[stub].block.is_some(), "a stub domain has a virtual disk");
    config.guests[..stub].iter().filter(|guest| guest.block.is_some()).count()
}

impl World for Machine {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(self.sources.len());
        for (v, vcpu) in self.vcpus.iter_mut().enumerate() {
            if let Some(vcpu) = vcpu {
                let own = ctx.make_set(vcpu.working_set_bytes);
                vcpu.own_set = Some(own);
                ctx.use_sets(VcpuId(v as u32), &[own]);
            }
        }
        for guest in &mut self.guests {
            let apps = guest.kernel.apps();
            if apps.iter().any(|app| app.shared_bytes + app.private_bytes > 0) {
                guest.app_sets = apps.iter().map(|app| ctx.make_set(app.shared_bytes)).collect();
                let private = apps.iter().flat_map(|app| (0..app.tasks).map(|_| app.private_bytes));
                guest.task_sets = private.map(|bytes| ctx.make_set(bytes)).collect();
            }
        }
        for client in 0..self.clients.len() {
            self.set(ctx, Source::User(client), self.clients[client].next_event());
        }
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let Some(Some(vcpu)) = self.vcpus.get_mut(v.index()) else { return Op::Block(None) };
        let (guest, number) = (vcpu.guest, vcpu.number);
        let (work, share) = (vcpu.at_work, vcpu.share);
        let work = match work {
            Some(Work::Tasks(span)) => Some(Work::Tasks(span - left)),
            // Nothing interrupts work of the kernel: it goes on.
            Some(_) if left > 0 => return Op::Run(left),
            work => work,
        };
        vcpu.at_work = None;
        self.executing = Some((v, guest));
        if let Some(work) = work {
            self.count_work(guest, &share, left, ctx.now());
            self.finish(ctx, guest, number, work);
        }
        let op = self.choose(ctx, v, guest, number);
        self.executing = None;
        op
    }

    fn life(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        self.lives(ctx, event);
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        let now = ctx.now();
        match self.sources[source] {
            Source::Interrupt(nic) => self.interrupt(ctx, nic),
            Source::Inbound(nic) => {
                while let Some(packet) = self.nics[nic].inbound.take_arrived(now) {
                    if let Err(packet) = self.nics[nic].receive(now, packet) {
                        self.lose(ctx, packet);
                    }
                }
                self.set_card(ctx, nic);
            }
            Source::Outbound(nic) => {
                while let Some(packet) = self.nics[nic].outbound.take_arrived(now) {
                    self.leave(ctx, packet);
                }
                let next = self.nics[nic].outbound.next_arrival();
                self.set(ctx, Source::Outbound(nic), next);
            }
            Source::User(client) => self.users_act(ctx, client),
            Source::Timeout(client) => self.give_up(ctx, client),
            Source::Lost | Source::LostSoon => self.send_lost_again(ctx),
            Source::Ack => self.send_held_acks(ctx),
            Source::Calls => self.call_again(ctx),
            Source::Disk(disk) => self.disk_completes(ctx, disk),
            Source::ClientMachine(machine) => self.client_machine_acts(ctx, machine),
            Source::Timer(v) => {
                if let Some(vcpu) = &mut self.vcpus[v.index()] {
                    vcpu.timer = NEVER;
                }
                ctx.kick(v, WakeCause::Timer);
            }
            Source::Counter(p) => self.counter_due(ctx, p),
        }
    }

    fn resumed(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        self.counter_goes_on(ctx, p);
    }
}
