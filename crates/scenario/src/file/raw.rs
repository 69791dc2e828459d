//! What a scenario file says, field by field, before anything but the types is checked. The documentation comments
//! here are the descriptions in the JSON schema and in the reference.

use toml::de::DeTable;

use vcpulab_spec::limits::{
    APPS_MAX, CONNECTIONS_MAX, DOMAIN_VCPUS_MAX, LINK_RATES, PCPUS_MAX, PROFILER_CYCLES, RATE_PER_S_MAX,
    REPLICATIONS_MAX, RETRIES_MAX, WEIGHT_MAX,
};

use crate::text::problem::Place;
use crate::text::read::{
    At, Field, Kinds, Named, Node, Number, OneOrMany, RawParams, Read, ReadTable, Reader, WordOrList, plain,
    record, tagged,
};
use crate::text::units::{CpuList, Duration, Size};

record! {
    /// A host, the domains on it, what they run, and the clients around it.
    struct RawScenario {
        /// What this is, for people.
        name: String,
        /// Where all random numbers start. The same seed gives the same results, byte for byte.
        #[schemars(range(min = 0))]
        seed: i64,
        /// How long to run, and how often.
        run: RawRun,
        /// The machine and its CPU scheduler.
        host: RawHost,
        /// Network cards, by name. Where none is given, each driver domain (or the hypervisor, or the machine) has one.
        nic: Named<RawNic>,
        /// Disks, by name. Where none is given, each driver domain (or the hypervisor, or the machine) has one.
        disk: Named<RawDisk>,
        /// CPU pools besides `Pool-0`, by name. All other pCPUs are in `Pool-0`, whose scheduler is the host's.
        pool: Named<RawPool>,
        /// The domains (virtual machines) by name. `dom0` is domain number 0; the others are numbered from 1 in the
        /// order of the file.
        domain: Named<RawDomain>,
        /// The clients outside the host, by name.
        client: Named<RawClient>,
        /// The machines that clients run on, by name. A client that names none runs on one that limits nothing.
        client_machine: Named<RawClientMachine>,
        /// What the administrator does while the host runs.
        action: Vec<At<RawAction>>,
    }
    required [host, domain]
}

record! {
    /// How long to run, and how often.
    struct RawRun {
        /// Measured time, after the warm-up.
        duration: Duration,
        /// Time that runs first and is not measured.
        warmup: Duration,
        /// Applications begin up to so much later than they would: by the same random time for all of them, drawn for each
        /// replication. Where in its periods the scheduler is when a workload begins is then left to chance. Default: `0s`.
        start_spread: Duration,
        /// How many independent runs, each with its own random numbers.
        #[schemars(range(min = 1, max = REPLICATIONS_MAX))]
        replications: i64,
        /// Time between two samples of the counters of domains, vCPUs, applications and clients; XenMon and xentop read
        /// them. `0s`: none. Default: `1s`, or none where that makes too many rows.
        sample: Duration,
        /// A profiler that samples what the pCPUs do, as Xenoprof does. Default: none.
        profiler: RawProfiler,
    }
}

record! {
    /// A profiler that samples what the pCPUs do.
    struct RawProfiler {
        /// Busy cycles of a pCPU between two samples. Each costs the profile's `sample_ns`.
        #[schemars(range(min = *PROFILER_CYCLES.start(), max = *PROFILER_CYCLES.end()))]
        cycles: i64,
    }
    required [cycles]
}

record! {
    /// The machine and its CPU scheduler. The scheduler's global parameters stand here too.
    struct RawHost {
        /// The hardware profile: number of pCPUs and what everything costs. In `exact` nothing costs time. A built-in
        /// one by its name, or a file (its path from the folder of the scenario); `custom`: all constants stand here.
        profile: String,
        /// How many pCPUs. Default: the profile's.
        #[schemars(range(min = 1, max = PCPUS_MAX))]
        pcpus: i64,
        /// How many of them share a socket. Default: all.
        #[schemars(range(min = 1, max = PCPUS_MAX))]
        pcpus_per_socket: i64,
        /// The CPU scheduler.
        scheduler: String,
        /// Which release's version of it. Default: the newest.
        generation: String,
        /// Where the drivers of the devices are: in driver domains, or in the hypervisor.
        #[schemars(extend("enum" = ["driver-domain", "hypervisor"]))]
        drivers: String,
        /// No hypervisor: the one domain is the machine's operating system, which has all pCPUs and devices.
        bare_metal: bool,
        /// Constants of the hardware profile to replace.
        costs: Named<i64>,
    }
    required [scheduler]
    params params
}

record! {
    /// A CPU pool: pCPUs with a scheduler of their own. The scheduler's global parameters stand here too.
    struct RawPool {
        /// Its pCPUs, which no other pool has.
        pcpus: CpuList,
        /// Its CPU scheduler.
        scheduler: String,
        /// Which release's version of it. Default: the newest.
        generation: String,
    }
    required [pcpus, scheduler]
    params params
}

record! {
    /// A domain (virtual machine). The scheduler's parameters of a domain stand here too.
    struct RawDomain {
        /// How many vCPUs.
        #[schemars(range(min = 1, max = DOMAIN_VCPUS_MAX))]
        vcpus: i64,
        /// The CPU pool it is created in. Default: `Pool-0`.
        pool: String,
        /// When it is created: time since the host started, warm-up included. Default: it is there from the beginning.
        start: Duration,
        /// The pCPUs it may run on (hard affinity): one set for all vCPUs, or a list with one for each.
        affinity: OneOrMany<CpuList>,
        /// Does it own the devices, and do their work for the other domains?
        driver_domain: bool,
        /// How a driver domain finds where packets go: a bridge, or routing.
        #[schemars(extend("enum" = ["bridge", "routing"]))]
        forwarding: String,
        /// Memory that each vCPU touches whenever it runs: what has to come back into a cold cache. Default: the
        /// profile's.
        working_set: Size,
        /// Its network interface.
        nic: RawNetfront,
        /// Its virtual disk.
        disk: RawVirtualDisk,
        /// Memory for pages of files. Default: the profile's.
        page_cache: Size,
        /// Its memory: when it is destroyed, the hypervisor frees every page; a `web-server` has its files there. Default:
        /// twice the memory for pages of files.
        memory: Size,
        /// How long its guest takes to shut down once it is asked to. Default: the profile's.
        shutdown: Duration,
        /// Its kernel's tick, which is left on when a vCPU goes idle: the next one finds it idle, and only then is it stopped
        /// (as by Linux 6.1). So a vCPU that goes idle wakes once more. Default: the tick is stopped at once.
        idle_tick: Duration,
        /// CPU time of such a tick. Required with `idle_tick`.
        idle_tick_cpu: Duration,
        /// What the toolstack does when its guest has crashed: destroy it, restart it, or leave it as it is.
        #[schemars(extend("enum" = ["destroy", "restart", "preserve"]))]
        on_crash: String,
        /// What it runs.
        app: Vec<At<RawApp>>,
    }
    params params
}

record! {
    /// A domain's network interface.
    struct RawNetfront {
        /// The domain whose back end carries its packets. Required, unless the drivers are elsewhere.
        driver_domain: String,
        /// The card that they leave by. Default: the driver domain's first.
        card: String,
        /// Which vCPU of the domain takes its events.
        #[schemars(range(min = 0, max = DOMAIN_VCPUS_MAX - 1))]
        vcpu: i64,
        /// Which vCPU of the driver domain takes its events.
        #[schemars(range(min = 0, max = DOMAIN_VCPUS_MAX - 1))]
        driver_vcpu: i64,
        /// TCP segmentation offload: does the domain hand over packets of up to 64 KB for the card to cut?
        tso: bool,
        /// Does the card compute checksums? Default: yes. Otherwise each byte costs the domain more.
        checksum_offload: bool,
        /// An emulated card, as a guest without drivers of its own has it (HVM): the driver domain, which may be a stub domain,
        /// emulates it.
        emulated: bool,
    }
}

record! {
    /// A network card.
    struct RawNic {
        /// The driver domain that owns it. Required, unless the drivers are elsewhere.
        driver_domain: String,
        /// Which of its vCPUs takes the interrupts.
        #[schemars(range(min = 0, max = DOMAIN_VCPUS_MAX - 1))]
        vcpu: i64,
    }
}

record! {
    /// A disk.
    struct RawDisk {
        /// The driver domain that owns it. Required, unless the drivers are elsewhere.
        driver_domain: String,
        /// Which of its vCPUs takes the interrupts.
        #[schemars(range(min = 0, max = DOMAIN_VCPUS_MAX - 1))]
        vcpu: i64,
        /// Turning platters, or flash memory. What each can do stands in the hardware profile.
        #[schemars(extend("enum" = ["spindle", "ssd"]))]
        kind: String,
    }
}

record! {
    /// A domain's virtual disk.
    struct RawVirtualDisk {
        /// The domain whose back end serves it. Required, unless the drivers are elsewhere.
        driver_domain: String,
        /// The disk that it is on. Default: the driver domain's first; if the driver domain has a virtual disk itself (a stub
        /// domain), what that is on.
        device: String,
        /// Which vCPU of the domain takes its events.
        #[schemars(range(min = 0, max = DOMAIN_VCPUS_MAX - 1))]
        vcpu: i64,
        /// An emulated disk, as a guest without drivers of its own has it (HVM): the driver domain, which may be a stub domain,
        /// emulates it.
        emulated: bool,
    }
}

record! {
    /// An application in a domain. The parameters of its kind stand here too.
    struct RawApp {
        /// Which kind of application.
        kind: String,
        /// How many of them.
        #[schemars(range(min = 1, max = APPS_MAX))]
        instance: i64,
        /// The phases of a script.
        phase: Vec<At<RawPhase>>,
        /// How many times to go through all phases; -1: without end.
        r#loop: i64,
        /// How long after its domain has started it begins. Default: at once.
        start_delay: Duration,
    }
    required [kind]
    params params
}

record! {
    /// A phase of a script.
    struct RawPhase {
        /// How many times to go through its events.
        r#loop: i64,
        /// Its events.
        event: Vec<At<RawEvent>>,
    }
    required [event]
}

record! {
    /// One event of a phase: exactly one of these.
    struct RawEvent {
        /// Computes for so much CPU time, however long that takes. A list is a distribution: its values are quantiles at equal
        /// distances, and a time is drawn each time.
        run: OneOrMany<Duration>,
        /// Computes until so much time has passed, however much CPU time it gets meanwhile.
        runtime: Duration,
        /// Sleeps for so long from now; or for a time drawn from a distribution, as for `run`.
        sleep: OneOrMany<Duration>,
        /// Sleeps until so long after the last such time was over: keeps a period whatever the events in between take.
        timer: Duration,
        /// Takes a lock; while another task of the domain has it, it sleeps.
        lock: String,
        /// Gives a lock back.
        unlock: String,
        /// Waits until another task of the domain says `resume` or `signal` with the same name.
        suspend: String,
        /// Wakes all who wait by that name. If nobody does, nothing is remembered of it.
        resume: String,
        /// Wakes who has waited longest by that name.
        signal: String,
        /// Waits as `suspend` does, and gives the lock `mutex` back meanwhile.
        wait: String,
        /// The lock that goes with `wait`.
        mutex: String,
        /// Waits until as many tasks have come here as the scripts of the domain name it.
        barrier: String,
        /// Sends an event over a channel of that name; whoever waits there, in whatever domain, goes on. Events that nobody
        /// waits for are pending.
        notify: String,
        /// Takes an event that is pending on a channel of that name, or waits for the next one.
        r#await: String,
        /// A unit of work is complete. In a script that never says so a round of all phases is one.
        done: bool,
    }
}

tagged! {
    /// A client outside the host.
    enum RawClient by "kind" {
        /// Sends requests at a rate that does not depend on the answers.
        "open-loop" => OpenLoop(RawOpenLoop),
        /// So many users; each asks, waits for the answer, thinks, and asks again.
        "closed-loop" => ClosedLoop(RawClosedLoop),
        /// Sends streams of packets.
        "stream" => Stream(RawStream),
    }
}

record! {
    /// Sends requests at a rate that does not depend on the answers.
    struct RawOpenLoop {
        /// The domain with the service.
        server: String,
        /// Which application there, by its kind. Needed only where it runs several services.
        app: String,
        /// The client machine that it runs on. Default: one that limits nothing.
        machine: String,
        /// Requests per second.
        #[schemars(range(min = 0, max = RATE_PER_S_MAX))]
        rate: Number,
        /// At regular intervals? Otherwise at random (a Poisson process).
        regular: bool,
        /// Size of the answer, for requests of the service's first class only.
        file_size: Size,
        /// What to ask for: a list, or `"specweb99"` for the files of that benchmark. Default: all classes of the service, each
        /// as often as its documentation says.
        mix: WordOrList<RawAsk>,
        /// Most requests outstanding at once; what comes on top fails at the client.
        #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
        connections_max: i64,
        /// After how long without an answer a request has failed. Default: never.
        timeout: Duration,
    }
    required [server, rate]
}

record! {
    /// So many users; each asks, waits for the answer, thinks, and asks again.
    struct RawClosedLoop {
        /// The domain with the service.
        server: String,
        /// Which application there, by its kind. Needed only where it runs several services.
        app: String,
        /// The client machine that it runs on. Default: one that limits nothing.
        machine: String,
        /// How many users.
        #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
        users: i64,
        /// Mean time that a user thinks, exponentially distributed. Default: none.
        think: Duration,
        /// Time within which the users begin, one after the other.
        ramp_up: Duration,
        /// Size of the answer, for requests of the service's first class only.
        file_size: Size,
        /// What to ask for: a list, or `"specweb99"` for the files of that benchmark. Default: all classes of the service, each
        /// as often as its documentation says.
        mix: WordOrList<RawAsk>,
        /// Does a user keep its connection from one request to the next? Default: yes.
        keep_alive: bool,
        /// After how long without an answer a request has failed. Default: never.
        timeout: Duration,
        /// How often a request that failed is tried again at once, before the user goes on.
        #[schemars(range(min = 0, max = RETRIES_MAX))]
        retries: i64,
    }
    required [server, users]
}

record! {
    /// Sends streams of packets.
    struct RawStream {
        /// The domain with the receiver.
        server: String,
        /// Which application there, by its kind. Needed only where it runs several services.
        app: String,
        /// The client machine that it runs on. Default: one that limits nothing.
        machine: String,
        /// How many streams.
        #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
        streams: i64,
        /// Data in each packet. What is beyond a segment goes in several.
        packet: Size,
        /// Least time from one packet of a stream to the next. Default: none, as fast as the network takes them.
        gap: Duration,
    }
    required [server]
}

record! {
    /// A machine that clients run on. What it adds to a response time is part of it, as a load generator measures it.
    struct RawClientMachine {
        /// Rate of its link in each direction, bits per second. Default: the card's of the hardware profile.
        #[schemars(range(min = *LINK_RATES.start(), max = *LINK_RATES.end()))]
        bits_per_s: i64,
        /// How many processors.
        #[schemars(range(min = 1, max = PCPUS_MAX))]
        processors: i64,
        /// What a request takes of a processor before it is sent. Default: nothing.
        request_cpu: Duration,
        /// What each packet takes of a processor, sent or received. Default: nothing.
        packet_cpu: Duration,
        /// Most connections of its clients at once (ports, or file descriptors); what comes on top fails there.
        #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
        connections_max: i64,
    }
}

record! {
    /// One kind of requests that a client sends.
    struct RawAsk {
        /// Class of the requests. Default: the service's first.
        class: String,
        /// Size of the answer. Default: the class's.
        file_size: Size,
        /// How often, in proportion to the others.
        #[schemars(range(min = 1, max = WEIGHT_MAX))]
        weight: i64,
    }
}

tagged! {
    /// What an administrator does to the running host.
    enum RawAction by "op" {
        /// Changes parameters of a domain.
        "adjust" => Adjust(RawAdjust),
        /// Changes global parameters of the scheduler.
        "adjust-global" => AdjustGlobal(RawAdjustGlobal),
        /// Pauses a domain.
        "pause" => Pause(RawPause),
        /// Unpauses a domain.
        "unpause" => Unpause(RawPause),
        /// Changes the hard affinity of a domain's vCPUs.
        "affinity" => Affinity(RawAffinity),
        /// Moves a domain to another CPU pool: it has default parameters and no affinity there.
        "move-pool" => MovePool(RawMovePool),
        /// Creates a domain that has shut down or was destroyed, as it stands in the file. (One that is created later for the
        /// first time has a `start`.)
        "create" => Create(RawLife),
        /// Asks a domain to shut down. Its guest does so within its `shutdown` time; then the toolstack destroys the domain.
        "shutdown" => Shutdown(RawLife),
        /// Asks a domain to reboot: it shuts down, is destroyed, and is created anew, as it stands in the file.
        "reboot" => Reboot(RawLife),
        /// A domain's guest crashes. What the toolstack does then its `on_crash` says.
        "crash" => Crash(RawLife),
        /// Destroys a domain without asking its guest; of a saved one, its state.
        "destroy" => Destroy(RawLife),
        /// Takes a domain off the host, its state kept.
        "save" => Save(RawLife),
        /// Puts a saved domain on the host again, with the pool, parameters and affinity that stand in the file; its guest
        /// goes on where it stood.
        "restore" => Restore(RawLife),
        /// Puts a vCPU on line again.
        "plug" => Plug(RawPlug),
        /// Takes a vCPU off line: its guest does without it.
        "unplug" => Unplug(RawPlug),
    }
}

impl RawAction {
    /// When it is due.
    pub(crate) fn at(&self) -> &Field<Duration> {
        match self {
            RawAction::Adjust(raw) => &raw.at,
            RawAction::AdjustGlobal(raw) => &raw.at,
            RawAction::Pause(raw) | RawAction::Unpause(raw) => &raw.at,
            RawAction::Affinity(raw) => &raw.at,
            RawAction::MovePool(raw) => &raw.at,
            RawAction::Create(raw)
            | RawAction::Shutdown(raw)
            | RawAction::Reboot(raw)
            | RawAction::Crash(raw)
            | RawAction::Destroy(raw)
            | RawAction::Save(raw)
            | RawAction::Restore(raw) => &raw.at,
            RawAction::Plug(raw) | RawAction::Unplug(raw) => &raw.at,
        }
    }
}

record! {
    /// Changes parameters of a domain.
    struct RawAdjust {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Which domain.
        domain: String,
    }
    required [at, domain]
    params params
}

record! {
    /// Changes global parameters of the scheduler.
    struct RawAdjustGlobal {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Of which CPU pool. Default: `Pool-0`.
        pool: String,
    }
    required [at]
    params params
}

record! {
    /// Pauses or unpauses a domain.
    struct RawPause {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Which domain.
        domain: String,
    }
    required [at, domain]
}

record! {
    /// Changes the hard affinity of a domain's vCPUs.
    struct RawAffinity {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Which domain.
        domain: String,
        /// Which of its vCPUs, from 0. Default: all.
        #[schemars(range(min = 0, max = DOMAIN_VCPUS_MAX - 1))]
        vcpu: i64,
        /// The pCPUs allowed from now on.
        affinity: CpuList,
    }
    required [at, domain, affinity]
}

record! {
    /// Moves a domain to another CPU pool.
    struct RawMovePool {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Which domain.
        domain: String,
        /// Where to.
        pool: String,
    }
    required [at, domain, pool]
}

record! {
    /// Begins, ends or interrupts a domain's life.
    struct RawLife {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Which domain.
        domain: String,
    }
    required [at, domain]
}

record! {
    /// Takes a vCPU off line or puts it on line again.
    struct RawPlug {
        /// When: time since the host started, warm-up included.
        at: Duration,
        /// Which domain.
        domain: String,
        /// Which of its vCPUs. The first one, 0, is always on line.
        #[schemars(range(min = 1, max = DOMAIN_VCPUS_MAX - 1))]
        vcpu: i64,
    }
    required [at, domain, vcpu]
}

/// A domain and its name.
pub(crate) type NamedDomain = (At<String>, At<RawDomain>);

/// The CPU pools besides `Pool-0`.
pub(crate) fn raw_pools(raw: &RawScenario) -> &[(At<String>, At<RawPool>)] {
    raw.pool.get().map_or(&[][..], |named| &named.0)
}
