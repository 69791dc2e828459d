//! What tasks do, as scripts of steps: every application, whatever it is called, is made of these words.
//!
//! Those of rt-app keep their meaning: a `Compute` is work and a `Runtime` is time; `Sleep` counts from now, `Timer` from
//! when the last timer was due, whatever the steps in between took.

use vcpulab_host::Span;

/// One step of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum Step {
    /// Computes for so much CPU time, ns, and so much more for each byte that the request at hand asks for, ps.
    Compute { ns: Span, per_byte_ps: i64 },
    /// Takes so many page faults: what each costs more in a domain than without a hypervisor.
    PageFaults(u32),
    /// Computes until so much time has passed, ns, however much CPU time it gets meanwhile.
    Runtime(Span),
    /// Computes for a CPU time drawn from that one of the script's distributions.
    ComputeDrawn(u32),
    /// Sleeps for this long from now, ns.
    Sleep(Span),
    /// Sleeps for a time drawn from that one of the script's distributions.
    SleepDrawn(u32),
    /// Sleeps until this long after the last timer was due, ns.
    Timer(Span),
    /// Sleeps for a random time, exponentially distributed with this mean, ns.
    Think(Span),
    /// Waits for the next release of a job with this period, ns; the first one is at a random time.
    Release(Span),
    /// Takes a lock; while another task has it, it spins or sleeps, as its application's locks do.
    Lock(u32),
    /// Gives it back.
    Unlock(u32),
    /// Waits until another task wakes those that wait at this point, and gives a lock back for it (to take it again is a
    /// step of its own).
    Wait { at: u32, unlocks: Option<u32> },
    /// Wakes who waits at this point: all, or the first. If nobody does, nothing is remembered of it.
    Wake { at: u32, all: bool },
    /// Waits at this point until so many tasks have come there.
    Barrier { at: u32, tasks: u32 },
    /// Sends an event over that channel of the machine: who waits for one at its other end goes on, or the next who does.
    Notify(u32),
    /// Waits for an event of that channel, unless one is pending, and takes it.
    AwaitEvent(u32),
    /// Waits for a request to the service that the task belongs to, and goes on at the steps for its class.
    Await,
    /// Answers the request: with so many bytes, or with what it asks for.
    Reply(Option<u32>),
    /// Asks a service, and waits for the answer.
    Call(Call),
    /// Opens a stream to a peer, unless it has one.
    Connect(Peer),
    /// Hands over bytes for its stream, and waits only while too many are under way. Pushed, they travel as a packet of
    /// their own (Nagle's algorithm is off); otherwise whole segments are filled.
    Send { bytes: u32, push: bool },
    /// Waits until so many bytes have come on its stream, and takes them.
    Receive(u32),
    /// Reads from or writes to its domain's disk.
    Disk(DiskAccess),
    /// Reads the file that the request at hand asks for, of those that its application serves; waits if it is not in memory.
    ReadAsked,
    /// Waits until all it wrote is on the disk.
    Sync,
    /// A unit of work is complete. Its response time counts from the request, the release or the last unit.
    Done,
    /// The same, but it is late if it took longer than this, ns.
    Deadline(Span),
    /// Goes on with the next step with this probability, in millionths; otherwise skips so many steps.
    Chance { ppm: u32, skip: u32 },
    /// Goes back to a step until this one has been reached so many times; `counter` is its own among the script's.
    Repeat { from: u32, times: u32, counter: u32 },
    /// Begins again at the first step.
    Restart,
    /// Ends for good.
    Stop,
}

/// A request to a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Which service, by its number in the machine.
    pub service: u32,
    /// Which class of requests.
    pub class: u32,
    /// Size of the request, bytes.
    pub request: u32,
    /// Size of the answer, bytes.
    pub reply: u32,
    /// Over a connection of its own, opened and closed for it? Otherwise over one that is kept.
    pub connects: bool,
}

/// Where a stream leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// A machine outside that takes everything.
    Outside,
    /// A service, by its number in the machine.
    Service(u32),
}

/// An access to a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskAccess {
    /// How much, bytes.
    pub bytes: u32,
    /// Written or read?
    pub write: bool,
    /// At a random place within the file, or where the last access ended?
    pub random: bool,
    /// Past the page cache: each access waits for the disk.
    pub direct: bool,
    /// Size of the file, bytes: sequential accesses begin again at its end.
    pub file_bytes: u64,
}

/// What counts as a unit of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unit {
    /// What the script says is done.
    #[default]
    Done,
    /// A millisecond of CPU time.
    CpuMillisecond,
}

/// What each task of an application does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    /// Its steps. After the last it begins again.
    pub steps: Vec<Step>,
    /// Where the steps for each class of requests begin.
    pub classes: Vec<u32>,
    /// How many counters its repetitions use.
    pub counters: u32,
    /// Distributions of times, each as its quantiles at equal distances, at least two and ascending, ns.
    pub distributions: Vec<Box<[Span]>>,
    /// How far each computation varies, percent to both sides.
    pub spread_percent: i64,
    /// What counts.
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

    /// Repeats the steps from `from` on until they have been gone through so many times.
    pub fn repeat(&mut self, from: usize, times: u32) {
        let counter = self.counters;
        self.counters += 1;
        self.steps.push(Step::Repeat { from: from as u32, times, counter });
    }
}

/// A service: what takes requests over the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceConfig {
    /// Most connections that are served at once.
    pub connections_max: u32,
    /// Most connections beyond that which wait until one of those ends; what comes on top is refused.
    pub backlog: u32,
    /// Is what comes on top not refused but left without an answer, as Linux does? Callers try again.
    pub ignores: bool,
    /// Most connections whose set-up is under way (the SYN queue); a call on top is lost.
    pub syn_queue: u32,
    /// A connection is closed after so many requests; 0: never.
    pub requests_max: u32,
}

impl ServiceConfig {
    /// Half-open connections of a service: Linux's `tcp_max_syn_backlog` where there is memory enough (tcp(7)).
    pub const SYN_QUEUE: u32 = 1024;

    /// One that serves so many connections for as long as they last, and refuses all others.
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
    /// How many there are of each size that clients ask for.
    pub per_size: u32,
    /// Memory that the process of each connection has for itself while the connection lasts, bytes.
    pub process_bytes: u64,
    /// Memory of the domain's kernel and of its other programs, bytes.
    pub system_bytes: u64,
}

/// An application as configured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppConfig {
    /// How many tasks do the same.
    pub tasks: u32,
    /// How long after the kernel has booted they begin, ns.
    pub delay: Span,
    /// What each does.
    pub script: Script,
    /// The service that its tasks answer for, if any.
    pub service: Option<ServiceConfig>,
    /// The files that it serves, unless all are in memory.
    pub files: Option<FilesConfig>,
    /// What a socket of its streams keeps at most until it is acknowledged, bytes; `None`: the operating system's default.
    pub send_buffer: Option<u32>,
    /// Memory that all its tasks touch together whenever one of them runs (its program), bytes.
    pub shared_bytes: u64,
    /// Memory that each task touches for itself whenever it runs, bytes.
    pub private_bytes: u64,
    /// Does a task that waits for a lock spin, as kernels do for short sections? Otherwise it sleeps.
    pub spins: bool,
    /// Are locks and points to wait at those of all applications in the domain that say so? Otherwise they are its own.
    pub meets_others: bool,
}

impl AppConfig {
    /// One task, without a service or memory worth mentioning, whose locks are its own and let it sleep.
    pub fn new(script: Script) -> Self {
        AppConfig {
            tasks: 1,
            delay: 0,
            script,
            service: None,
            files: None,
            send_buffer: None,
            shared_bytes: 0,
            private_bytes: 0,
            spins: false,
            meets_others: false,
        }
    }
}
