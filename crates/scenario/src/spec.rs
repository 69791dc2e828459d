//! A checked scenario. Every value is within its limits and every reference leads somewhere.

use vcpulab_host::{CpuMask, Params, Span, Time};
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
    /// Number of independent runs.
    pub replications: u32,
    /// The machine.
    pub host: HostSpec,
    /// Its CPU pools; the first is `Pool-0`.
    pub pools: Vec<PoolSpec>,
    /// The domains in the order of their creation: Dom0 first, the others as in the file.
    pub domains: Vec<DomainSpec>,
    /// The clients outside, as in the file.
    pub clients: Vec<ClientSpec>,
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
    /// Working set of each vCPU, bytes.
    pub working_set_bytes: u64,
    /// The driver domain of its network interface, as an index into the domains; `None`: it has no interface.
    pub nic: Option<usize>,
    /// What it runs.
    pub apps: Vec<AppSpec>,
}

/// An application.
#[derive(Clone, Debug, PartialEq)]
pub enum AppSpec {
    /// Computes without end.
    Hog {
        /// How many of them.
        instances: u32,
    },
    /// Computes for `run_ns` in every `period_ns`.
    Periodic {
        /// CPU time in each period, ns.
        run_ns: Span,
        /// Length of a period, ns.
        period_ns: Span,
        /// How many of them.
        instances: u32,
    },
    /// Follows a script.
    Phases {
        /// Its phases.
        phases: Vec<PhaseSpec>,
        /// Times to go through them; `None`: without end.
        rounds: Option<u32>,
        /// How many of them.
        instances: u32,
    },
    /// Serves files over HTTP.
    WebServer {
        /// CPU time for each request, ns.
        request_ns: Span,
        /// Most requests in the server at once.
        connections_max: u32,
    },
}

/// A phase of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSpec {
    /// Times to go through its events.
    pub rounds: u32,
    /// Its events.
    pub events: Vec<EventSpec>,
}

/// An event of a phase, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// Computes.
    Run(Span),
    /// Computes until so much time has passed.
    Runtime(Span),
    /// Sleeps from now.
    Sleep(Span),
    /// Sleeps until so long after the last timer was due.
    Timer(Span),
}

/// A client outside the host: an open loop of HTTP requests.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientSpec {
    /// Its name.
    pub name: String,
    /// The domain with the web server, as an index into the domains.
    pub server: usize,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Size of the file asked for, bytes.
    pub file_bytes: u64,
    /// Most requests outstanding.
    pub connections_max: u32,
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
            Change::Life(domain, LifeChange::Create | LifeChange::Reboot | LifeChange::Restore) => {
                Some((domain, domains[domain].pool))
            }
            _ => None,
        }
    }
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
    /// It is destroyed.
    Destroy,
    /// It leaves the host, its state kept.
    Save,
    /// It comes back.
    Restore,
}
