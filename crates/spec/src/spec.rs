//! A checked scenario. Every value is within its limits and every reference leads somewhere.

use vcpulab_guest::IdleTick;
use vcpulab_guest::apps::AppKind;
use vcpulab_host::{CpuMask, Params, Span, Time};
use vcpulab_io::Load;
use vcpulab_sched::{Generation, Policy};

use crate::profile::Constants;

/// What a scenario says once it is checked, with the defaults filled in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Spec {
    /// What it is, for people.
    pub name: String,
    /// Where all random numbers start.
    pub seed: u64,
    /// Measured time, ns.
    pub duration_ns: Span,
    /// Time before that, ns.
    pub warmup_ns: Span,
    /// Applications begin up to so much later, by the same time in a replication, ns.
    pub start_spread_ns: Span,
    /// Number of independent runs.
    pub replications: u32,
    /// Time between two samples of the counters, ns; 0: none are taken.
    pub sample_ns: Span,
    /// Busy cycles between two samples of the profiler; `None`: there is none.
    pub profiler_cycles: Option<i64>,
    /// The machine.
    pub host: HostSpec,
    /// Its network cards.
    pub cards: Vec<DeviceSpec>,
    /// Its disks, each with how it works.
    pub disks: Vec<(DeviceSpec, DiskSpec)>,
    /// Its CPU pools; the first is `Pool-0`.
    pub pools: Vec<PoolSpec>,
    /// The domains in the order of their creation: Dom0 first, the others as in the file.
    pub domains: Vec<DomainSpec>,
    /// The clients outside, as in the file.
    pub clients: Vec<ClientSpec>,
    /// The machines that they run on.
    pub client_machines: Vec<ClientMachineSpec>,
    /// The administrator's actions, as in the file.
    pub actions: Vec<ActionSpec>,
}

impl Spec {
    /// For each action, the pool that its domain is in when it comes (the one it is about, if it is about a scheduler).
    pub fn action_pools(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.actions.len()).collect();
        order.sort_by_key(|&i| self.actions[i].at);
        let mut pools: Vec<usize> = self.domains.iter().map(|domain| domain.pool).collect();
        let mut found = vec![0; self.actions.len()];
        for i in order {
            found[i] = match self.actions[i].change {
                Change::AdjustGlobal(pool, _) => pool,
                Change::Adjust(domain, _)
                | Change::Pause(domain)
                | Change::Unpause(domain)
                | Change::Affinity(domain, ..) => pools[domain],
                Change::MovePool(domain, _) | Change::Life(domain, _) | Change::Plug(domain, ..) => {
                    pools[domain]
                }
            };
            if let Some((domain, pool)) = self.actions[i].change.moves(&self.domains) {
                pools[domain] = pool;
            }
        }
        found
    }
}

/// The machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSpec {
    /// The built-in hardware profile; `custom`: none of them.
    pub profile: String,
    /// Its constants, with the scenario's own in place of some.
    pub constants: Constants,
    /// Number of pCPUs.
    pub pcpus: u32,
    /// pCPUs on one socket.
    pub pcpus_per_socket: u32,
    /// Where the drivers of the devices are.
    pub drivers: Drivers,
}

/// Where the drivers of the devices are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drivers {
    /// In driver domains.
    Domains,
    /// In the hypervisor.
    Hypervisor,
    /// There is no hypervisor: the one domain has them.
    BareMetal,
}

/// How a driver domain finds where packets go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Forwarding {
    /// A bridge, by hardware addresses.
    #[default]
    Bridge,
    /// Routing, by network addresses.
    Routing,
}

/// How a disk works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskSpec {
    /// Turning platters under a head.
    Spindle,
    /// Flash memory.
    Flash,
}

/// A network card, or a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceSpec {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The domain that owns it, as an index into the domains; `None`: the hypervisor.
    pub owner: Option<usize>,
    /// Which of the owner's vCPUs takes the interrupts.
    pub vcpu: u32,
}

/// A domain's network interface.
#[derive(Clone, Debug, PartialEq)]
pub struct NicSpec {
    /// The driver domain that carries its packets, as an index into the domains; `None`: the hypervisor, or itself.
    pub driver: Option<usize>,
    /// The card that they leave by, as an index into the cards.
    pub card: usize,
    /// Which vCPU of the domain takes its events.
    pub vcpu: u32,
    /// Which vCPU of the driver domain takes its events.
    pub driver_vcpu: u32,
    /// TCP segmentation offload.
    pub tso: bool,
    /// Does the card compute checksums?
    pub checksum_offload: bool,
    /// Does the driver domain emulate it?
    pub emulated: bool,
}

/// A domain's virtual disk.
#[derive(Clone, Debug, PartialEq)]
pub struct VirtualDiskSpec {
    /// The driver domain whose back end serves it, as an index into the domains; `None`: the hypervisor, or itself.
    pub driver: Option<usize>,
    /// The disk that it is on, as an index into the disks; `None`: its driver domain is a stub domain, and hands what it is
    /// asked for to its own virtual disk.
    pub disk: Option<usize>,
    /// Which vCPU of the domain takes its events.
    pub vcpu: u32,
    /// Does the driver domain emulate it?
    pub emulated: bool,
}

/// A CPU pool and its scheduler.
#[derive(Clone, Debug)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// Its pCPUs.
    pub pcpus: CpuMask,
    /// The scheduler.
    pub policy: &'static Policy,
    /// Its generation.
    pub generation: &'static Generation,
    /// Its global parameters, those given.
    pub params: Params,
}

impl PartialEq for PoolSpec {
    fn eq(&self, other: &Self) -> bool {
        // Policies are known by their names.
        let key = |pool: &Self| (pool.pcpus, pool.policy.name, pool.generation.name);
        self.name == other.name && key(self) == key(other) && self.params == other.params
    }
}

/// A domain.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainSpec {
    /// Its name.
    pub name: String,
    /// Its number: 0 for `dom0`.
    pub number: i64,
    /// The scheduler's parameters for it, those given.
    pub params: Params,
    /// The CPU pool it is created in, as an index into the pools.
    pub pool: usize,
    /// When it is created, ns since the host started.
    pub start_ns: Time,
    /// Hard affinity for each vCPU; `None`: every pCPU of its pool. Its length is the number of vCPUs.
    pub affinity: Vec<Option<CpuMask>>,
    /// Does it own the devices?
    pub driver_domain: bool,
    /// How it finds where packets go.
    pub forwarding: Forwarding,
    /// Working set of each vCPU, bytes.
    pub working_set_bytes: u64,
    /// Its network interface.
    pub nic: Option<NicSpec>,
    /// Its virtual disk.
    pub disk: Option<VirtualDiskSpec>,
    /// Memory for pages of files, bytes.
    pub page_cache_bytes: u64,
    /// Its memory, bytes.
    pub memory_bytes: u64,
    /// How long its guest takes to shut down, ns.
    pub shutdown_ns: Span,
    /// Its kernel's tick, if that is left on when a vCPU goes idle.
    pub idle_tick: Option<IdleTick>,
    /// What the toolstack does when its guest has crashed.
    pub on_crash: OnCrash,
    /// What it runs.
    pub apps: Vec<AppSpec>,
}

impl DomainSpec {
    /// The driver domain behind its network interface, as an index into the domains.
    pub fn driver(&self) -> Option<usize> {
        self.nic.as_ref().and_then(|nic| nic.driver)
    }

    /// The driver domains behind its network interface and its virtual disk.
    pub fn drivers(&self) -> impl Iterator<Item = usize> {
        self.driver().into_iter().chain(self.disk.as_ref().and_then(|disk| disk.driver))
    }
}

/// An application.
#[derive(Clone, Debug)]
pub enum AppSpec {
    /// One of the kinds.
    Kind {
        /// Which.
        kind: &'static AppKind,
        /// The values of its parameters, in order. A service is meant as [`crate::apps`] says.
        values: Vec<i64>,
        /// How many of them.
        instances: u32,
    },
    /// A script that stands in the scenario.
    Phases {
        /// Its phases.
        phases: Vec<PhaseSpec>,
        /// Times to go through them; `None`: without end.
        rounds: Option<u32>,
        /// How long after its domain has started it begins, ns.
        delay_ns: Span,
        /// How many of them.
        instances: u32,
    },
}

impl PartialEq for AppSpec {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                AppSpec::Phases { phases, rounds, delay_ns, instances },
                AppSpec::Phases { phases: p, rounds: r, delay_ns: d, instances: i },
            ) => (phases, rounds, delay_ns, instances) == (p, r, d, i),
            (
                AppSpec::Kind { kind, values, instances },
                AppSpec::Kind { kind: k, values: v, instances: i },
            ) => {
                // Kinds are known by their names.
                (kind.name, values, instances) == (k.name, v, i)
            }
            _ => false,
        }
    }
}

/// A phase of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSpec {
    /// Times to go through its events.
    pub rounds: u32,
    /// Its events.
    pub events: Vec<EventSpec>,
}

/// An event of a phase: times in ns, and names of what tasks meet at, those of a domain if nothing else is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// Computes: for that time, or for one drawn from the distribution with these quantiles.
    Run(Vec<Span>),
    /// Computes until so much time has passed.
    Runtime(Span),
    /// Sleeps from now, in the same way.
    Sleep(Vec<Span>),
    /// Sleeps until so long after the last timer was due.
    Timer(Span),
    /// Takes a lock.
    Lock(String),
    /// Gives it back.
    Unlock(String),
    /// Waits at a point.
    Suspend(String),
    /// The same, and gives a lock back meanwhile.
    Wait {
        /// The point.
        at: String,
        /// The lock.
        mutex: String,
    },
    /// Wakes all who wait at a point.
    Resume(String),
    /// Wakes the first of them.
    Signal(String),
    /// Waits for all whose scripts name it.
    Barrier(String),
    /// Sends an event over a channel, which is the host's.
    Notify(String),
    /// Takes an event of a channel, or waits for one.
    Await(String),
    /// A unit of work is complete.
    Done,
}

/// A client outside the host.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSpec {
    /// Its name.
    pub name: String,
    /// The service that it asks: a domain, as an index into the domains, and an application there.
    pub service: (usize, usize),
    /// The machine that it runs on, as an index into those; `None`: one that limits nothing.
    pub machine: Option<usize>,
    /// When it asks.
    pub load: Load,
    /// What it asks for.
    pub mix: Vec<AskSpec>,
    /// Most requests outstanding.
    pub connections_max: u32,
    /// Does a user keep its connection from one request to the next?
    pub keep_alive: bool,
    /// After how long without an answer a request has failed, ns.
    pub timeout_ns: Option<Span>,
    /// How often it is tried again then.
    pub retries: u32,
}

/// A machine outside that clients run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMachineSpec {
    /// Its name.
    pub name: String,
    /// Rate of its link in each direction, bits per second.
    pub bits_per_s: i64,
    /// Its processors.
    pub processors: u32,
    /// What a request takes of one before it is sent, ns.
    pub request_ns: Span,
    /// What each packet takes of one, ns.
    pub packet_ns: Span,
    /// Most connections.
    pub connections_max: u32,
}

/// One kind of requests that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskSpec {
    /// Its class, by number.
    pub class: u32,
    /// Size of the answer, bytes.
    pub reply_bytes: u32,
    /// How often, in proportion.
    pub weight: u32,
}

/// One action of the administrator.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionSpec {
    /// When, ns since the host started.
    pub at: Time,
    /// What.
    pub change: Change,
}

/// What an action changes. Domains are indices into the scenario's domains.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A domain's parameters.
    Adjust(usize, Params),
    /// The own parameters of a pool's scheduler.
    AdjustGlobal(usize, Params),
    /// A domain is paused.
    Pause(usize),
    /// A domain is unpaused.
    Unpause(usize),
    /// The hard affinity of one vCPU of a domain, or of all.
    Affinity(usize, Option<u32>, CpuMask),
    /// A domain moves to another pool.
    MovePool(usize, usize),
    /// The life of a domain.
    Life(usize, LifeChange),
    /// A vCPU of a domain is put on line (`true`) or taken off it.
    Plug(usize, u32, bool),
}

impl Change {
    /// The domain that is in another pool afterwards (it may be the one it was in), and that pool.
    pub(crate) fn moves(&self, domains: &[DomainSpec]) -> Option<(usize, usize)> {
        match *self {
            Change::MovePool(domain, pool) => Some((domain, pool)),
            Change::Life(domain, LifeChange::Crash) if domains[domain].on_crash != OnCrash::Restart => None,
            Change::Life(
                domain,
                LifeChange::Create | LifeChange::Reboot | LifeChange::Restore | LifeChange::Crash,
            ) => Some((domain, domains[domain].pool)),
            _ => None,
        }
    }
}

/// What the toolstack does with a domain whose guest has crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrash {
    /// It is destroyed.
    Destroy,
    /// It is destroyed, and created anew.
    Restart,
    /// It stays as it is, until it is destroyed.
    Preserve,
}

/// What can happen to the life of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifeChange {
    /// It is created, after it has been shut down or destroyed.
    Create,
    /// It shuts down.
    Shutdown,
    /// It shuts down, and is created anew.
    Reboot,
    /// Its guest crashes.
    Crash,
    /// It is destroyed.
    Destroy,
    /// It leaves the host, its state kept.
    Save,
    /// It comes back.
    Restore,
}
