//! Scripts of steps, of which every application is made, whatever it is called.
//!
//! Those of rt-app keep their meaning: a `Compute` is work and a `Runtime` is time; `Sleep` counts from now, `Timer` from
//! when the last timer was due, whatever the steps in between took.

use vcpulab_host::Span;

use crate::ids::{ChannelId, ServiceId};

/// A step of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Step {
    /// Computes for this CPU time, and a further one for each byte that the request at hand asks for, ps.
    Compute { span: Span, per_byte_ps: i64 },
    /// Takes this number of page faults, each at its cost beyond that without a hypervisor.
    PageFaults(u32),
    /// Computes until this time has passed, whatever CPU time it gets meanwhile.
    Runtime(Span),
    /// Computes for a CPU time drawn from that one of the script's distributions.
    ComputeDrawn(u32),
    /// Sleeps for this long from now.
    Sleep(Span),
    /// Sleeps for a time drawn from that one of the script's distributions.
    SleepDrawn(u32),
    /// Sleeps until this long after the last timer was due.
    Timer(Span),
    /// Sleeps until the kernel has had this number of ticks, at least 1.
    Ticks(u32),
    /// Sleeps for a random time, exponentially distributed with this mean.
    Think(Span),
    /// Waits for the next release of a job with this period; the first one is at a random time.
    Release(Span),
    /// Takes a lock; while another task has it, it spins or sleeps, as its application's locks do.
    Lock(u32),
    /// Gives a lock back.
    Unlock(u32),
    /// Waits until another task wakes those that wait at this point, and gives a lock back for it (to take it again is a
    /// step of its own).
    Wait { at: u32, unlocks: Option<u32> },
    /// Wakes the tasks that wait at this point: all, or the first. Without waiting tasks it has no effect.
    Wake { at: u32, all: bool },
    /// Waits at this point until this number of tasks has come there.
    Barrier { at: u32, tasks: u32 },
    /// Sends an event over a channel: the task that waits for one at its other end continues, or the next that does.
    Notify(ChannelId),
    /// Waits for an event of a channel, unless one is pending, and takes it.
    AwaitEvent(ChannelId),
    /// Waits for a request to the service that the task belongs to, and continues at the steps for its class.
    Await,
    /// Answers the request: with this number of bytes, or with that asked for.
    Reply(Option<u32>),
    /// Asks a service, and waits for the answer.
    Call(Call),
    /// Opens a stream to a peer, unless it has one.
    Connect(Peer),
    /// Enqueues bytes for its stream, and waits only while too many are under way. Pushed, they travel as a packet of
    /// their own (Nagle's algorithm is off); otherwise whole segments are filled.
    Send { bytes: u32, push: bool },
    /// Waits until this number of bytes has come on its stream, and takes them.
    Receive(u32),
    /// Reads from or writes to its domain's disk.
    Disk(DiskAccess),
    /// Reads the file that the request at hand asks for, of those that its application serves; waits if it is not in memory.
    ReadAsked,
    /// Waits until all data that the task wrote is on the disk.
    Sync,
    /// A unit of work is complete. Its response time counts from the request, the release or the last unit.
    Done,
    /// A unit of work is complete, and late if it took longer than this.
    Deadline(Span),
    /// Continues with the next step with this probability, in millionths; otherwise skips `skip` steps.
    Chance { ppm: u32, skip: u32 },
    /// Goes back to step `from` until this one has been reached `times` times; `counter` is its own among the script's.
    Repeat { from: u32, times: u32, counter: u32 },
    /// Continues at the next phase of the script's stretches, or begins another stretch.
    NextPhase,
    /// Begins again at the first step.
    Restart,
    /// Ends for good.
    Stop,
}

/// A request to a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// The service.
    pub service: ServiceId,
    /// The class of the request.
    pub class: u32,
    /// Size of the request, bytes.
    pub request: u32,
    /// Size of the answer, bytes.
    pub reply: u32,
    /// Whether the call opens and closes a connection of its own; otherwise it uses a connection that is kept.
    pub connects: bool,
}

/// The peer of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A machine outside that takes everything.
    Outside,
    /// A service.
    Service(ServiceId),
}

/// An access to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskAccess {
    /// Size of the access, bytes.
    pub bytes: u32,
    /// Whether the access writes; otherwise it reads.
    pub write: bool,
    /// Whether the access goes to a random place of the file; otherwise it begins at the end of the last access.
    pub random: bool,
    /// Whether the access bypasses the page cache, and so waits for the disk.
    pub direct: bool,
    /// Size of the file, bytes: sequential accesses begin again at its end.
    pub file_bytes: u64,
}

/// A unit of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// A `Done` or `Deadline` of the script.
    #[default]
    Done,
    /// A millisecond of CPU time.
    CpuMillisecond,
}

/// Phases of a script that are gone through in stretches of their order, each of which begins at a random one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stretches {
    /// The first step of each phase, at least one; each ends with a `NextPhase`.
    pub phases: Box<[u32]>,
    /// Mean number of phases in a stretch, at least 1.
    pub mean: u32,
}

/// The script of each task of an application.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    /// Steps of the script. After the last step it starts again.
    pub steps: Vec<Step>,
    /// The first step for each class of requests.
    pub classes: Vec<u32>,
    /// Number of counters that its repetitions use.
    pub counters: u32,
    /// Distributions of times, each as its quantiles at equal distances, at least two and ascending.
    pub distributions: Vec<Box<[Span]>>,
    /// The stretches of its phases, unless they come in their order: most scripts have none.
    pub stretches: Option<Box<Stretches>>,
    /// Spread of each computation, percent to both sides.
    pub spread_percent: i64,
    /// Unit of work of the script.
    pub unit: Unit,
}

impl Script {
    /// A script that repeats these steps.
    pub fn new(steps: Vec<Step>) -> Self {
        Script { steps, ..Script::default() }
    }

    /// Adds a distribution; its number.
    pub fn distribution(&mut self, quantiles: &[Span]) -> u32 {
        self.distributions.push(quantiles.into());
        self.distributions.len() as u32 - 1
    }

    /// Repeats the steps from `from` on until they have been gone through `times` times.
    pub fn repeat(&mut self, from: usize, times: u32) {
        let counter = self.counters;
        self.counters += 1;
        self.steps.push(Step::Repeat { from: from as u32, times, counter });
    }
}

/// A service: it takes requests over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceConfig {
    /// Most connections that are served at once.
    pub connections_max: u32,
    /// Most connections beyond that which wait until one of those ends; further ones are refused.
    pub backlog: u32,
    /// Whether a further connection is left without an answer rather than refused, as Linux does. Callers try again.
    pub ignores: bool,
    /// Most connections whose set-up is under way (the SYN queue); a further SYN is lost.
    pub syn_queue: u32,
    /// Requests after which a connection is closed; 0: never.
    pub requests_max: u32,
}

impl ServiceConfig {
    /// Half-open connections of a service: Linux's `tcp_max_syn_backlog` where there is memory enough (tcp(7)).
    pub const SYN_QUEUE: u32 = 1024;

    /// A service of this number of connections for as long as they last; it refuses all others.
    pub fn of(connections_max: u32) -> Self {
        ServiceConfig {
            connections_max,
            backlog: 0,
            ignores: false,
            syn_queue: Self::SYN_QUEUE,
            requests_max: 0,
        }
    }
}

/// The files that a service answers with, where they need not all fit into its domain's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilesConfig {
    /// Number of files of each size that clients ask for.
    pub per_size: u32,
    /// Memory that the process of each connection has for itself while the connection lasts, bytes.
    pub process_bytes: u64,
    /// Memory of the domain's kernel and of its other programs, bytes.
    pub system_bytes: u64,
}

/// An application as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppConfig {
    /// Number of tasks, which all do the same.
    pub tasks: u32,
    /// Time from the boot of the kernel until they begin.
    pub delay_ns: Span,
    /// The script of each.
    pub script: Script,
    /// The service that its tasks answer for, if any.
    pub service: Option<ServiceConfig>,
    /// The files that it serves, unless all are in memory.
    pub files: Option<Box<FilesConfig>>,
    /// Send buffer of a socket of its streams, bytes; `None`: the operating system's default.
    pub send_buffer: Option<u32>,
    /// Memory that all its tasks touch together whenever one of them runs (its program), bytes.
    pub shared_bytes: u64,
    /// Memory that each task touches for itself whenever it runs, bytes.
    pub private_bytes: u64,
    /// Whether a task that waits for a lock spins, as kernels do for short sections; otherwise it sleeps.
    pub spins: bool,
    /// Whether the application shares its synchronization objects with all applications of the domain that do;
    /// otherwise it has its own.
    pub shares_sync_objects: bool,
    /// The part of the application's work that interrupts do.
    pub softirq: Softirq,
}

/// The part of an application's work that interrupts do (Linux's softirq), before the work of any process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Softirq {
    /// No part: processes do all the work.
    #[default]
    Nothing,
    /// The work for an awaited event, until the task notifies another one. Threads do the rest: a further thread up to
    /// each further notification, behind the work of other threads.
    First,
    /// All work: an idle kernel does not start its tick for it.
    All,
}

impl AppConfig {
    /// An application with a single task, without a service and with negligible memory, whose locks are its own and let
    /// it sleep.
    pub fn new(script: Script) -> Self {
        AppConfig {
            tasks: 1,
            delay_ns: Span::ZERO,
            script,
            service: None,
            files: None,
            send_buffer: None,
            shared_bytes: 0,
            private_bytes: 0,
            spins: false,
            shares_sync_objects: false,
            softirq: Softirq::Nothing,
        }
    }
}
