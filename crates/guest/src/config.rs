//! What a domain runs: plain data, made from a scenario.

use vcpulab_host::Span;

/// A domain as seen from inside.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GuestConfig {
    /// How many vCPUs it has, at least 1; as many as on the host.
    pub vcpus: u32,
    /// What each of its vCPUs touches whenever it runs, bytes (for the host's cache model).
    pub working_set_bytes: u64,
    /// Its applications. Application i runs on vCPU i modulo the number of vCPUs.
    pub apps: Vec<AppConfig>,
}

/// An application. All CPU times are those of the application alone: interrupts and the network come on top.
#[derive(Clone, PartialEq, Debug)]
pub enum AppConfig {
    /// Computes without end.
    Hog,
    /// Computes for `run_ns` in every `period_ns`.
    Periodic {
        /// CPU time of each job, ns.
        run_ns: Span,
        /// Time between releases of jobs, ns; also their deadline.
        period_ns: Span,
    },
    /// Follows a script.
    Phases {
        /// Its phases, in order.
        phases: Vec<Phase>,
        /// Times to go through them; `None`: without end.
        rounds: Option<u32>,
    },
    /// Serves requests that come over the network.
    WebServer {
        /// CPU time for each request, ns, without the network's.
        request_ns: Span,
        /// How far it varies, percent to both sides.
        spread_percent: i64,
        /// Most connections in the server at once; more are refused.
        connections_max: u32,
    },
}

/// A phase of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Times to go through its events (rt-app's `loop`).
    pub rounds: u32,
    /// Its events, in order.
    pub events: Vec<PhaseEvent>,
}

/// An event of a phase, in rt-app's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhaseEvent {
    /// Computes: so much CPU time, ns, however long that takes.
    Run(Span),
    /// Computes until so much time has passed, ns, however much CPU time it gets meanwhile.
    Runtime(Span),
    /// Sleeps for so long from now, ns.
    Sleep(Span),
    /// Sleeps until so long after the last timer was due, ns.
    Timer(Span),
}
