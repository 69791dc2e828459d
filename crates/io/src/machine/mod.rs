//! The surroundings of a host's vCPUs, put together: guests, their network and storage, driver domains, clients.
//!
//! A vCPU's next work is, in this order: the back ends', if it is a driver domain's; the network's and the disk's of its own
//! domain; its tasks'. With nothing left it blocks, or polls first.

mod calls;
mod channels;
mod connections;
mod execution;
mod following;
mod guests;
pub(crate) mod halt_poll;
mod lifecycle;
mod packets;
mod profiler;
pub(crate) mod readings;
pub(crate) mod results;
mod users;
mod work;

use vcpulab_host::{Id, LifeEvent, Op, PcpuId, Span, VcpuId, World, WorldContext};

use crate::config::MachineConfig;
use crate::driver_domain::DriverDomains;
use crate::ids::{BlkfrontId, GuestId, GuestVcpu, SourceId};
use crate::network::Network;
use crate::network::clients::Clients;
use crate::network::nic::NicOwner;
use crate::network::tcp_timers::TcpTimers;
use crate::path::route::Uplink;
use crate::sources::{Source, Sources};
use crate::storage::Storage;
use guests::Guests;
use profiler::Profiler;
use work::Work;

pub use profiler::Samples;

/// The world of a host.
#[derive(Debug)]
pub struct Machine {
    guests: Guests,
    network: Network,
    storage: Storage,
    drivers: DriverDomains,
    clients: Clients,
    profiler: Option<Profiler>,
    sources: Sources,
    /// Spread of each cost, percent to both sides.
    spread_percent: i64,
    seed: u64,
}

impl Machine {
    /// A machine at time 0.
    ///
    /// # Panics
    /// If a device or a netfront leads to a guest that is no driver domain.
    pub fn new(config: &MachineConfig) -> Self {
        // Simultaneous events happen in the order in which their sources are registered here.
        let mut sources = Sources::default();
        let nics = crate::network::nics(&config.nics, &mut sources);
        let clients = Clients::new(&config.clients, &config.client_machines, config.seed, &mut sources);
        let timers = TcpTimers::new(&mut sources);
        let storage =
            Storage::new(&config.disks, virtual_disks(config, None), config.seed, &mut sources, |stub| {
                assert!(config.guests[stub].virtual_disk.is_some(), "a stub domain has a virtual disk");
                BlkfrontId(virtual_disks(config, Some(stub)))
            });
        let last = config.guests.iter().last();
        let vcpus = last.map_or(0, |guest| guest.first_vcpu.index() + guest.kernel.vcpus as usize);
        let mut machine = Machine {
            guests: Guests::new(config.services.clone(), config.channels, config.guests.len(), vcpus),
            network: Network::new(nics, config.netbacks, timers, config.initial_segments),
            storage,
            drivers: DriverDomains::new(config.netbacks),
            clients,
            profiler: None,
            sources,
            spread_percent: config.spread_percent,
            seed: config.seed,
        };
        machine.add_guests(config);
        machine.connect(config);
        let sources = &mut machine.sources;
        machine.profiler =
            config.profiler.map(|profiler| Profiler::new(profiler, config.guests.len(), sources));
        machine.clients.register_machines(sources);
        machine
    }

    fn add_guests(&mut self, config: &MachineConfig) {
        for guest in &config.guests {
            let (first, seed) = (guest.first_vcpu, config.seed);
            self.network.add_guest(guest.netfront.as_ref(), first);
            self.storage.add_guest(guest.virtual_disk.as_ref(), guest.files.as_ref(), first, seed);
            match guest.driver {
                Some(costs) => {
                    let vcpus = (0..guest.kernel.vcpus).map(|number| VcpuId(first.0 + number));
                    self.drivers.add_driver_domain(vcpus, costs.kick_ns);
                }
                None => self.drivers.add_guest(),
            }
            self.guests.add(guest, seed, &mut self.sources);
        }
        self.storage.number_rings(self.network.netfronts.len());
    }

    /// Connects devices and netfronts to their driver domains.
    fn connect(&mut self, config: &MachineConfig) {
        for (id, nic) in config.nics.enumerate() {
            if let NicOwner::Guest { guest, vcpu } = nic.owner {
                self.drivers.add_nic(GuestVcpu { guest, number: vcpu }, id);
            }
        }
        for (owner, at) in self.storage.backs() {
            self.drivers.add_blkbacks(owner, at);
        }
        for netfront in &self.network.netfronts {
            if let Uplink::DriverDomain { guest, .. } = netfront.uplink {
                assert!(self.drivers.contains(guest), "a netfront leads to a driver domain");
            }
        }
    }
}

/// Number of virtual disks of the guests before that one, or of all.
fn virtual_disks(config: &MachineConfig, before: Option<GuestId>) -> u32 {
    let guests = config.guests.enumerate().take_while(|(id, _)| Some(*id) != before);
    guests.filter(|(_, guest)| guest.virtual_disk.is_some()).count() as u32
}

impl World for Machine {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(self.sources.count());
        self.guests.start(ctx);
        self.clients.start(ctx);
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let Some(vcpu) = self.guests.vcpu_mut(v) else { return Op::Block(None) };
        let at = vcpu.at;
        // Nothing interrupts work of the kernel: it goes on.
        if left > Span::ZERO && vcpu.work.is_some_and(|work| !matches!(work, Work::Tasks(_) | Work::Poll)) {
            return Op::Run(left);
        }
        if let Some(halts) = &mut vcpu.halts {
            halts.resumes(ctx.now());
        }
        let work = vcpu.end_work(left, ctx.now());
        self.guests.enter(v, at.guest);
        if let Some(work) = work {
            self.finish(ctx, at, work);
        }
        let op = self.choose(ctx, v, at);
        let op = self.guests.halts(v, op, ctx.now());
        self.guests.leave();
        if self.network.paths.is_some() {
            self.look_at_served(ctx);
        }
        op
    }

    fn life(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        self.follow(ctx, event);
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        self.network.source_due(ctx.now(), SourceId::from_index(source));
        match self.sources.of(source) {
            Source::Interrupt(nic) => self.interrupt(ctx, nic),
            Source::Inbound(nic) => self.network.arrive_at(ctx, nic),
            Source::Outbound(nic) => self.arrive_at_switch(ctx, nic),
            Source::User(client) => self.users_act(ctx, client),
            Source::Timeout(client) => self.time_out(ctx, client),
            Source::Retransmission => self.retransmit(ctx),
            Source::DelayedAck => self.send_delayed_acks(ctx),
            Source::SynRetransmission => self.retransmit_syns(ctx),
            Source::Disk(disk) => {
                if self.storage.complete(ctx, disk) {
                    if let Some(owner) = self.storage.interrupted(disk) {
                        self.drivers.interrupt(ctx, owner);
                    }
                    for at in self.storage.waiting_backs(disk) {
                        self.drivers.send_event(ctx, at);
                    }
                }
                self.storage.arm(ctx, disk);
            }
            Source::ClientMachine(machine) => self.client_machine_acts(ctx, machine),
            Source::Timer(v) => self.guests.timer_expired(ctx, v),
            Source::Counter(p) => {
                if let Some(profiler) = &mut self.profiler {
                    profiler.counter_due(ctx, p, &self.guests);
                }
            }
        }
        if self.network.paths.is_some() {
            self.look_at_served(ctx);
        }
    }

    fn resumed(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        if let Some(profiler) = &mut self.profiler {
            profiler.counter_goes_on(ctx, p);
        }
    }
}
