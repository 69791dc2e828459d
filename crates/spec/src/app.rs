//! Applications.

use vcpulab_guest::apps::{AppKind, Args, RequestClass};
use vcpulab_guest::{AppConfig, Script, ServiceId, Softirq};
use vcpulab_host::{DomId, Span};

/// The kind whose script is in the scenario itself.
pub const PHASES: &str = "phases";

/// An application that answers requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The domain of the application.
    pub domain: DomId,
    /// Position of the application in the domain's list of applications.
    pub app: usize,
}

/// The value of an application's parameter, which names a service by its domain and its application.
pub type AppValue = vcpulab_guest::apps::AppValue<Service>;

/// An application.
#[derive(Clone, Debug)]
pub enum AppSpec {
    /// An application of a built-in kind.
    Kind {
        /// The kind of the application.
        kind: &'static AppKind,
        /// The values of the kind's parameters, in order.
        values: Vec<AppValue>,
        /// The number of its instances.
        instances: u32,
        /// Whether the work is an assumption of an import, rather than the user's.
        assumed: bool,
    },
    /// A script that is in the scenario.
    Phases {
        /// The phases of the script.
        phases: Vec<PhaseSpec>,
        /// Mean number of phases in a stretch; `None`: they come in their order.
        stretch: Option<u32>,
        /// Number of times to go through them; `None`: without end.
        rounds: Option<u32>,
        /// Time from the start of its domain to its own.
        delay: Span,
        /// The part of the work that interrupts do.
        softirq: Softirq,
        /// The number of its instances.
        instances: u32,
        /// Whether the work is an assumption of an import, rather than the user's.
        assumed: bool,
    },
}

impl AppSpec {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            AppSpec::Kind { kind, .. } => kind.name,
            AppSpec::Phases { .. } => PHASES,
        }
    }

    /// The number of its instances.
    pub fn instances(&self) -> u32 {
        match self {
            AppSpec::Kind { instances, .. } | AppSpec::Phases { instances, .. } => *instances,
        }
    }

    /// The number that a parameter is set to; `None` where the kind has no such parameter or it has no number.
    pub fn get(&self, name: &str) -> Option<i64> {
        let AppSpec::Kind { kind, values, .. } = self else { return None };
        let position = kind.params.iter().position(|param| param.name == name)?;
        match values[position] {
            AppValue::Number(value) => Some(value),
            AppValue::Absent | AppValue::Service(_) => None,
        }
    }

    /// The application for the engine, as far as it depends on nothing else in the scenario.
    pub fn alone(&self) -> AppConfig {
        match self {
            AppSpec::Kind { kind, values, .. } => {
                let values: Vec<_> = values.iter().map(|value| value.map_service(|_| ServiceId(0))).collect();
                (kind.build)(&Args { kind, values: &values, spread_percent: 0 })
            }
            AppSpec::Phases { .. } => AppConfig::new(Script::default()),
        }
    }

    /// Whether the application answers requests. (Some kinds do so or not as their parameters say.)
    pub fn serves(&self) -> bool {
        matches!(self, AppSpec::Kind { kind, .. } if !kind.classes.is_empty())
            && self.alone().service.is_some()
    }

    /// Whether the work is an assumption of an import, rather than the user's.
    pub fn assumed(&self) -> bool {
        match self {
            AppSpec::Kind { assumed, .. } | AppSpec::Phases { assumed, .. } => *assumed,
        }
    }

    /// The number of tasks of all its instances.
    pub fn tasks(&self) -> usize {
        self.alone().tasks as usize * self.instances() as usize
    }

    /// The classes of requests that its kind answers.
    pub fn classes(&self) -> &'static [RequestClass] {
        match self {
            AppSpec::Kind { kind, .. } => kind.classes,
            AppSpec::Phases { .. } => &[],
        }
    }

    /// The services it asks.
    pub fn asks(&self) -> impl Iterator<Item = Service> {
        let values: &[AppValue] = match self {
            AppSpec::Kind { values, .. } => values,
            AppSpec::Phases { .. } => &[],
        };
        values.iter().filter_map(|value| match value {
            AppValue::Service(service) => Some(*service),
            AppValue::Number(_) | AppValue::Absent => None,
        })
    }
}

impl PartialEq for AppSpec {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                AppSpec::Phases { phases, stretch, rounds, delay, softirq, instances, assumed },
                AppSpec::Phases {
                    phases: p,
                    stretch: s,
                    rounds: r,
                    delay: d,
                    softirq: q,
                    instances: i,
                    assumed: a,
                },
            ) => (phases, stretch, rounds, delay, softirq, instances, assumed) == (p, s, r, d, q, i, a),
            (
                AppSpec::Kind { kind, values, instances, assumed },
                AppSpec::Kind { kind: k, values: v, instances: i, assumed: a },
            ) => {
                // The name of a kind is its identity.
                (kind.name, values, instances, assumed) == (k.name, v, i, a)
            }
            _ => false,
        }
    }
}

/// A phase of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSpec {
    /// Number of times to go through its events.
    pub rounds: u32,
    /// Events of the phase.
    pub events: Vec<EventSpec>,
}

/// An event of a phase. Names of synchronization objects are shared within a domain, unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSpec {
    /// Computes for that time, or for one drawn from the distribution with these quantiles.
    Run(Vec<Span>),
    /// Computes until that time has passed.
    Runtime(Span),
    /// Sleeps from now, for a time given as for `Run`.
    Sleep(Vec<Span>),
    /// Sleeps until that long after the last timer was due.
    Timer(Span),
    /// Sleeps until the domain's kernel has had this number of ticks, at least 1.
    Ticks(u32),
    /// Takes a lock.
    Lock(String),
    /// Releases a lock.
    Unlock(String),
    /// Waits at a point.
    Suspend(String),
    /// Waits at a point, and releases a lock meanwhile.
    Wait {
        /// The point.
        at: String,
        /// The lock.
        mutex: String,
    },
    /// Wakes all tasks that wait at a point.
    Resume(String),
    /// Wakes the first task that waits at a point.
    Signal(String),
    /// Waits for all tasks whose scripts name it.
    Barrier(String),
    /// Sends an event over a channel of the host.
    Notify(String),
    /// Takes an event of a channel of the host, or waits for one.
    Await(String),
    /// Completes a unit of work.
    Done,
}
