//! The fields of a scenario file, before anything but their types is checked. The documentation comments here are the
//! descriptions in the JSON schema and in the reference.

use std::ops::RangeInclusive;

use schemars::Schema;
use serde_json::json;
use vcpulab_host::{Bound, Class, Creation, Governor, Granularity, GroupConfig, Numbering, Span, Time};
use vcpulab_spec::limits::{
    APPS_MAX, CGROUP_PERIODS_US, CGROUP_QUOTAS_US, CGROUP_WEIGHTS, CONNECTIONS_MAX, DOMAIN_VCPUS_MAX,
    DOMAINS_MAX, FILE_SIZE_MAX, HALT_POLLS_US, LINK_RATES, NICES, PCPUS_MAX, PHASES_MAX, PRIORITIES,
    PROFILER_CYCLES, RATES, REPLICATIONS_MAX, RETRIES_MAX, SPANS, SPANS_ABOVE_ZERO, TIMES, VCPU_NUMBERS,
    WEIGHT_MAX,
};
use vcpulab_spec::{Drivers, Forwarding, Medium, OnCrash, Toolstack};

use crate::file::words::Hypervisor;
use crate::text::params::RawParams;
use crate::text::problem::Report;
use crate::text::read::{At, Named, OneOrMany, WordOrList};
use crate::text::record::{record, tagged};
use crate::text::units::{CpuList, Duration, Size};

/// Sizes of answers and packets.
pub(crate) const FILE_SIZES: RangeInclusive<Size> = Size(1)..=Size(FILE_SIZE_MAX as i64);

/// The name of the pool that every host has.
pub(crate) const POOL_0: &str = "Pool-0";

/// The quota of a control group that has none.
pub(crate) const NO_QUOTA: i64 = -1;

record! {
    /// A host, the domains on it, what they run, and the clients around it.
    struct RawScenario {
        /// Title of the scenario, for people.
        name: String = "unnamed".to_owned(),
        /// The seed of all random numbers. The same seed gives the same results, byte for byte.
        seed: i64 = 1; 0..=i64::MAX,
        /// The length of a run, and the number of its replications.
        run: RawRun,
        /// The machine and its CPU scheduler.
        host: RawHost,
        /// NICs, by name. Where none is given, each driver domain (or the hypervisor, or the machine) has one.
        nic: Named<RawNic>,
        /// Disks, by name. Where none is given, each driver domain (or the hypervisor, or the machine) has one.
        disk: Named<RawDisk>,
        /// CPU pools besides `Pool-0`, by name. All other pCPUs are in `Pool-0`, whose scheduler is the host's.
        pool: Named<RawPool>,
        /// The control groups of a KVM host besides those that its VMs and daemons have, by path from the root group. Groups
        /// around them, and those that domains name, need not be given: they are new groups then.
        cgroup: Named<RawCgroup>,
        /// The domains (virtual machines) by name. `dom0` is domain number 0; the others are numbered from 1 in the
        /// order of the file.
        domain: Named<RawDomain>,
        /// The clients outside the host, by name.
        client: Named<RawClient>,
        /// The machines that clients run on, by name. A client that names none runs on one without limits.
        client_machine: Named<RawClientMachine>,
        /// The administrator's actions while the host runs.
        action: Vec<At<RawAction>>,
    }
    required [host, domain]
}

record! {
    /// The length of a run, and the number of its replications.
    struct RawRun {
        /// Measured time, after the warm-up.
        duration: Span = Span::from_secs(10); SPANS_ABOVE_ZERO,
        /// Time before that, which is not measured.
        warmup: Span = Span::from_secs(1); SPANS,
        /// Longest random delay before applications begin: the same for all of them, drawn for each
        /// replication. A workload then begins at a random point in the scheduler's periods.
        start_spread: Span = Span::ZERO; SPANS,
        /// Number of independent runs, each with its own random numbers.
        replications: u32 = 1; 1..=REPLICATIONS_MAX,
        /// Time between two samples of the counters of domains, vCPUs, applications and clients; XenMon and
        /// xentop read them. `0s`: none.
        sample: Span => "`1s`, in runs of more than an hour as many whole seconds as make at most 3,600 samples; none where that makes too many rows"; SPANS,
        /// A profiler that samples the pCPUs, as Xenoprof does.
        profiler: RawProfiler => "none",
    }
}

record! {
    /// A profiler that samples the pCPUs.
    struct RawProfiler {
        /// Busy cycles of a pCPU between two samples. Each costs the profile's `sample_ns`.
        cycles: i64; PROFILER_CYCLES,
    }
    required [cycles]
}

record! {
    /// The machine and its CPU scheduler. The scheduler's global parameters belong here too.
    struct RawHost {
        /// The hypervisor: Xen, or Linux with KVM, whose vCPUs are threads in control groups.
        hypervisor: Hypervisor = Hypervisor::Xen,
        /// The hardware profile: number of pCPUs, and the costs of everything. In `exact` nothing costs time.
        /// A built-in one by its name, or a file (its path from the folder of the scenario); `custom`: all
        /// constants are given here.
        profile: String => "`generic`",
        /// Number of pCPUs.
        pcpus: u32 => "the profile's"; 1..=PCPUS_MAX,
        /// Threads, cores, sockets and nodes of the pCPUs. Default: the profile's, if it has them and `pcpus` is not
        /// given; otherwise each pCPU is a core of its own, and there is one node.
        topology: RawTopology,
        /// Number of pCPUs on one socket, where there is no `topology`.
        pcpus_per_socket: u32 => "all"; 1..=PCPUS_MAX => most,
        /// The CPU scheduler: a built-in one by its name, one that an installed package offers, or a policy in a Python file,
        /// `FILE.py:CLASS` (its path from the folder of the scenario).
        scheduler: String,
        /// The release, of Xen or of Linux, whose version of the scheduler is used.
        generation: String => "`xen4.17`, or the newest where the scheduler has no generation of that name",
        /// The unit of scheduling (Xen's `sched-gran`): each vCPU by itself, or as many vCPUs of a domain as
        /// a core or a socket has threads, which then runs no other domain at the same time.
        sched_gran: Granularity = Granularity::Cpu,
        /// The order in which new vCPUs come to their affinity. `contract`: it is in force from the
        /// beginning. `release`: as on a real Xen, the toolstack sets it when all vCPUs of the domain are
        /// there.
        creation: Creation = Creation::Contract,
        /// Governor that chooses the frequency of each core between the profile's lowest and highest, where
        /// the topology is known: the highest, the lowest, or by the core's utilization.
        governor: Governor = Governor::Performance,
        /// Place of the devices' drivers: in driver domains, or in the hypervisor.
        drivers: Drivers = Drivers::Domains,
        /// No hypervisor: the one domain is the machine's operating system, which has all pCPUs and devices.
        bare_metal: bool = false,
        /// The toolstack in whose commands advice is given; it changes no result. `xl`: Xen's own. `xapi`: of
        /// XCP-ng and XenServer. `libvirt`: of Xen and of KVM. `proxmox`: Proxmox VE, of KVM. `cgroup`: files
        /// of control groups and systemd, on any KVM host.
        toolstack: Toolstack => "`xl`, or `libvirt` on a KVM host",
        /// Longest time, in microseconds, for which the thread of a vCPU of a KVM host polls before it blocks
        /// once its guest has halted (`kvm.halt_poll_ns`); 0: it does not.
        halt_poll_us: i64 = 200; HALT_POLLS_US,
        /// Whether the times that its guests compute contain the polling of their vCPUs, as recorded times
        /// do. Then there is no polling besides, whatever `halt_poll_us` says, which is the real host's.
        polls_recorded: bool = false,
        /// Version of a KVM host's control groups: 1 has `cpu.shares` (2 to 262144) and `cpu.cfs_quota_us`, 2
        /// has `cpu.weight` (1 to 10000) and `cpu.max`. Weights are in units of `cpu.weight` either way: 100
        /// is a `cpu.shares` of 1024.
        cgroups: u32 = 2; 1..=2,
        /// The pCPUs of a KVM host that are in no scheduling domain (`isolcpus=`, or a cpuset with
        /// `cpuset.cpus.partition` `isolated`): balancing neither takes threads from them nor moves threads to
        /// them. A thread runs there only if its affinity names them, and stays on the first of them that it may
        /// run on.
        isolated_cpus: CpuList => "none",
        /// The pCPUs of a KVM host whose tick stops while they have one runnable thread (`nohz_full=`); one tick a
        /// second remains. It does not isolate them: see `isolated_cpus`.
        nohz_full: CpuList => "none",
        /// Constants of the hardware profile to replace.
        costs: Named<i64>,
    }
    required [scheduler]
    params params
}

record! {
    /// The threads, cores, sockets and nodes of a machine.
    struct RawTopology {
        /// Number of sockets.
        sockets: u32 = 1; 1..=PCPUS_MAX,
        /// Number of cores of each socket.
        cores: u32 => "what `pcpus` leaves for each"; 1..=PCPUS_MAX,
        /// Number of threads of each core.
        threads: u32 = 1; 1..=PCPUS_MAX,
        /// Number of NUMA nodes, a divisor or a multiple of the number of sockets.
        nodes: u32 => "one for each socket"; 1..=PCPUS_MAX,
        /// The numbers of the pCPUs: the threads of a core beside each other, or first the first threads of
        /// all cores, then the second ones.
        numbering: Numbering = Numbering::Adjacent,
    }
}

record! {
    /// A CPU pool: pCPUs with a scheduler of their own. The scheduler's global parameters belong here too.
    struct RawPool {
        /// pCPUs of the pool, which no other pool has.
        pcpus: CpuList,
        /// CPU scheduler of the pool, with the names of `[host]`.
        scheduler: String,
        /// The release whose version of the scheduler is used.
        generation: String => "`xen4.17`, or the newest where the scheduler has no generation of that name",
    }
    required [pcpus, scheduler]
    params params
}

record! {
    /// A domain (virtual machine). The scheduler's parameters of a domain belong here too.
    struct RawDomain {
        /// Number of copies of this domain: `count = 12` in `[domain.batch]` makes `batch01` to `batch12`. A
        /// client whose server is `batch`, and an action on `batch`, are then one for each copy; all other
        /// places name a single copy. `[domain.batch03]` has the values in which that copy differs.
        count: u32 => "a single domain, without a number"; 1..=DOMAINS_MAX as u32,
        /// Number of vCPUs.
        vcpus: u32 = 1; 1..=DOMAIN_VCPUS_MAX,
        /// The CPU pool it is created in.
        pool: String = POOL_0.to_owned(),
        /// Time of its creation, since the host started, warm-up included.
        start: Time = Time::ZERO; TIMES,
        /// The pCPUs it may run on (hard affinity): one set for all vCPUs, or a list with one for each.
        affinity: OneOrMany<CpuList> => "all pCPUs, on a KVM host all but `isolated_cpus`",
        /// The pCPUs it prefers among them (soft affinity): one set for all vCPUs, or a list with one for
        /// each.
        soft_affinity: OneOrMany<CpuList> => "none",
        /// Resource that bounds the speed of its work where threads share cores and memory: the core, memory,
        /// or devices.
        bound_by: Bound => "`compute`; of `dom0` and of driver domains `io`",
        /// The NUMA nodes that hold its memory, each as much: a number, or a list.
        memory_nodes: OneOrMany<i64> => "those of the pCPUs that it prefers, or else may run on",
        /// Whether the domain owns the devices, and does their work for the other domains.
        driver_domain: bool = false,
        /// The way in which a driver domain forwards packets: a bridge, or routing.
        forwarding: Forwarding = Forwarding::Bridge,
        /// Memory that each vCPU touches whenever it runs, and that a cold cache has to bring in again.
        working_set: Size => "the profile's"; Size(0)..=Size(1 << 40),
        /// Network interface of the domain.
        nic: RawNetfront,
        /// Virtual disk of the domain.
        disk: RawVirtualDisk,
        /// Memory for pages of files.
        page_cache: Size => "the profile's"; Size(0)..=Size(1 << 50),
        /// Memory of the domain: when it is destroyed, the hypervisor frees every page; a `web-server` has
        /// its files there.
        memory: Size => "twice the memory for pages of files"; Size(0)..=Size(1 << 51),
        /// Time that its guest takes to shut down.
        shutdown: Span => "the profile's"; SPANS,
        /// Period of its kernel's tick, if the tick stays on when a vCPU goes idle, and stops once it finds
        /// the vCPU idle (as in Linux 6.1): a vCPU that goes idle wakes once more. Default: the tick stops at
        /// once.
        idle_tick: Span; SPANS_ABOVE_ZERO,
        /// CPU time of such a tick. Required with `idle_tick`.
        idle_tick_cpu: Span; SPANS_ABOVE_ZERO,
        /// CPU time of a tick that finds the vCPU busy, beside what its applications compute; ticks that come
        /// while it cannot run are one. Goes with `idle_tick`.
        busy_tick_cpu: Span = Span::ZERO; SPANS,
        /// Time of a tick since the start of the run (later by what `start_spread` draws): ticks of several
        /// domains keep their distances. Default: at a random time; replications spread those of the first
        /// four such domains evenly.
        idle_tick_at: Span; SPANS,
        /// CPU time of its kernel each time that an idle vCPU wakes to do something, beside the time of its
        /// applications and devices; events that come together count once. A tick that finds the vCPU idle
        /// has `idle_tick_cpu` instead.
        wake_cpu: Span = Span::ZERO; SPANS,
        /// CPU time of its kernel each time that a woken vCPU goes idle again; its applications have sent
        /// their packets before.
        idle_cpu: Span = Span::ZERO; SPANS,
        /// The toolstack's answer to a crash of its guest: destroy the domain, restart it, or leave it as it
        /// is.
        on_crash: OnCrash = OnCrash::Destroy,
        /// The control group of a KVM host around its own, by its path; `/`: the root group. That of the
        /// emulator of a VM `web` above is `machine.slice/web/libvirt/emulator`.
        cgroup: String => "`machine.slice`, or `system.slice` for a daemon",
        /// Whether the domain is a daemon of a KVM host instead of a VM. Its vCPUs are then threads, which
        /// have their work from its applications; they are in a group of the daemon's own. It has no network
        /// and no disk.
        daemon: bool = false,
        /// The pCPUs that the emulator and vhost threads of a VM of a KVM host may run on (`virsh
        /// emulatorpin`).
        emulator_affinity: CpuList = CpuList::all(),
        /// The pCPUs that its I/O thread may run on (`virsh iothreadpin`).
        iothread_affinity: CpuList = CpuList::all(),
        /// Number of its I/O threads, on a KVM host. 1: it does the work of the disk; 0: the emulator's main
        /// loop does.
        iothreads: u32 = 0; 0..=1,
        /// Number of threads of each core, as the guest of a VM of a KVM host is told (libvirt's `<topology
        /// threads=>`, QEMU's `-smp threads=`). vCPUs with consecutive numbers are threads of one core
        /// then, and the guest's kernel places busy tasks on idle cores first.
        threads_per_core: u32 = 1; 1..=DOMAIN_VCPUS_MAX,
        /// Scheduling policy of its vCPUs' threads, on a KVM host (`SCHED_OTHER` and so on).
        sched_policy: Class = Class::Other,
        /// Priority of its vCPUs' threads under `fifo` and `rr`.
        sched_priority: u8 = 1; PRIORITIES,
        /// Nice value of its vCPUs' threads under `other` and `batch`.
        nice: i8 = 0; NICES,
        /// Applications of the domain.
        app: Vec<At<RawApp>>,
    }
    params params
}

record! {
    /// A control group of a KVM host.
    struct RawCgroup {
        /// Share of the group beside other groups and threads in the group around it, in units of
        /// `cpu.weight`. At most 10000, or 25600 where `host.cgroups` is 1.
        weight: i64 = GroupConfig::NEW.weight.into(); CGROUP_WEIGHTS,
        /// CPU time, in microseconds, that its threads may have together in each period (`cpu.max`); -1: as
        /// much as they get.
        #[schemars(transform = or_no_quota)]
        quota_us: i64 = NO_QUOTA; CGROUP_QUOTAS_US,
        /// Length of the period, in microseconds.
        period_us: i64 = GroupConfig::NEW.period.ns() / 1000; CGROUP_PERIODS_US,
        /// Quota not used, in microseconds, that may be used later (`cpu.max.burst`), at most the quota.
        burst_us: i64 = 0; 0..=*CGROUP_QUOTAS_US.end(),
        /// Whether the group runs only when nothing else wants to (`cpu.idle`).
        idle: bool = false,
        /// The pCPUs that its threads may run on (`cpuset.cpus`), of those that the groups around it leave; a
        /// thread that is pinned to none of them runs on all of them.
        cpus: CpuList => "those of the group around it",
    }
}

/// Adds to the schema of a quota the number that stands for none.
fn or_no_quota(schema: &mut Schema) {
    let quotas = ["minimum", "maximum"].map(|limit| schema.remove(limit));
    schema.insert(
        "anyOf".to_owned(),
        json!([{ "const": NO_QUOTA }, { "minimum": quotas[0], "maximum": quotas[1] }]),
    );
}

record! {
    /// A domain's network interface.
    struct RawNetfront {
        /// The domain whose netback carries its packets. Required, unless the drivers are elsewhere, as on a KVM host.
        driver_domain: String,
        /// The NIC by which its packets leave.
        device: String => "the driver domain's first",
        /// The domain's vCPU that takes its events.
        vcpu: u32 = 0; VCPU_NUMBERS => most,
        /// The driver domain's vCPU that its netback is on: it takes its events, and puts packets into its
        /// ring.
        driver_vcpu: u32 => "the interfaces of a driver domain are on its vCPUs in turn, or all on the first while netbacks are tasklets (the profile's `backend_threads`)"; VCPU_NUMBERS => most,
        /// TCP segmentation offload: whether the domain sends packets of up to 64 KB, which the NIC cuts.
        tso: bool = false,
        /// Whether the NIC computes checksums. If not, each byte costs the domain more.
        checksum_offload: bool = true,
        /// An emulated NIC, for a guest without drivers of its own (HVM): the driver domain, which may be a
        /// stub domain, emulates it.
        emulated: bool = false,
    }
}

record! {
    /// A NIC.
    struct RawNic {
        /// The driver domain that owns it. Required, unless the drivers are elsewhere, as on a KVM host.
        driver_domain: String,
        /// The driver domain's vCPU that takes its interrupts.
        vcpu: u32 = 0; VCPU_NUMBERS => most,
        /// The pCPU of a KVM host that takes its interrupts. Default: it has a queue for each pCPU, and VMs
        /// are on them in turn.
        pcpu: u32; 0..=PCPUS_MAX - 1 => most,
    }
}

record! {
    /// A disk.
    struct RawDisk {
        /// The driver domain that owns it. Required, unless the drivers are elsewhere, as on a KVM host.
        driver_domain: String,
        /// The driver domain's vCPU that takes its interrupts.
        vcpu: u32 = 0; VCPU_NUMBERS => most,
        /// The pCPU of a KVM host that takes its interrupts. Default: that of the thread whose request it
        /// was.
        pcpu: u32; 0..=PCPUS_MAX - 1 => most,
        /// Turning platters, or flash memory. The hardware profile has the speed of each.
        kind: Medium = Medium::Spindle,
    }
}

record! {
    /// A domain's virtual disk.
    struct RawVirtualDisk {
        /// The domain whose blkback serves it. Required, unless the drivers are elsewhere, as on a KVM host.
        driver_domain: String,
        /// The disk it is on.
        device: String => "the driver domain's first; if the driver domain has a virtual disk itself (a stub domain), the disk of that one",
        /// The domain's vCPU that takes its events.
        vcpu: u32 = 0; VCPU_NUMBERS => most,
        /// The driver domain's vCPU that its blkback is on: it takes its events, and passes requests on to
        /// the disk. (Responses are the work of the vCPU that takes the disk's interrupts.)
        driver_vcpu: u32 => "the virtual disks of a driver domain are on its vCPUs in turn, or all on the first where `backend_threads` of the profile is 0, and in a stub domain"; VCPU_NUMBERS => most,
        /// An emulated disk, for a guest without drivers of its own (HVM): the driver domain, which may be a
        /// stub domain, emulates it.
        emulated: bool = false,
    }
}

record! {
    /// An application in a domain. The parameters of its kind belong here too.
    struct RawApp {
        /// Kind of the application.
        kind: String,
        /// Number of instances.
        instance: u32 = 1; 1..=APPS_MAX as u32 => most,
        /// Whether the work is an assumption of an import whose input did not show it, rather than the
        /// user's. It changes no result; advice says so.
        assumed: bool = false,
        /// The phases of a script.
        phase: Vec<At<RawPhase>>,
        /// Number of times to go through all phases; -1: without end.
        r#loop: i64 = -1; -1..=u32::MAX.into(),
        /// Mean number of phases in a stretch, for phases that are samples: after each phase, another stretch
        /// begins at a random phase with a probability of one in this number (stationary bootstrap). So 1 is
        /// any phase after any other. Each phase is a unit of work, unless the script says `done`. Default:
        /// all phases in their order, again and again.
        stretch: u32; 1..=PHASES_MAX as u32,
        /// Time from the start of its domain to its own.
        start_delay: Span = Span::ZERO; SPANS,
        /// Interrupts alone do its work, as Linux's network stack does with packets that no process waits
        /// for: an idle kernel does not start a stopped `idle_tick` for it, and it goes before the work of
        /// other applications.
        softirq: bool = false,
        /// Interrupts do the first part of its work: each awaited event up to the next notification, as in a
        /// driver domain that receives a packet and acknowledges it. That part goes before the work of other
        /// applications. Threads do the rest, a further thread up to each further notification, each behind
        /// all other work.
        softirq_first: bool = false,
    }
    required [kind]
    params params
}

record! {
    /// A phase of a script.
    struct RawPhase {
        /// Number of times to go through its events.
        r#loop: u32 = 1; 1..=u32::MAX,
        /// Events of the phase, in order.
        event: Vec<At<RawEvent>>,
    }
    required [event]
}

record! {
    /// An event of a phase: exactly one of these fields.
    struct RawEvent {
        /// Computes for this CPU time, however long that takes. A list is a distribution: its values are quantiles at equal
        /// distances, and a time is drawn for each event.
        run: OneOrMany<Duration>,
        /// Computes until this time has passed, however much CPU time it gets meanwhile.
        runtime: Span; SPANS_ABOVE_ZERO,
        /// Sleeps for this time from now; or for a time drawn from a distribution, as for `run`.
        sleep: OneOrMany<Duration>,
        /// Sleeps until this time after the end of the last such sleep: keeps a period whatever the events in
        /// between take.
        timer: Span; SPANS_ABOVE_ZERO,
        /// Sleeps until the domain's kernel has had this number of ticks (`idle_tick`), as timeouts of
        /// Linux's kernel do.
        ticks: u32; 1..=u32::MAX,
        /// Takes a lock; sleeps while another task of the domain has it.
        lock: String,
        /// Releases a lock.
        unlock: String,
        /// Waits until another task of the domain says `resume` or `signal` with the same name.
        suspend: String,
        /// Wakes all tasks that wait by that name. Without waiting tasks it has no effect.
        resume: String,
        /// Wakes the task that has waited longest by that name.
        signal: String,
        /// Waits as `suspend` does, and releases the lock `mutex` meanwhile.
        wait: String,
        /// The lock that goes with `wait`.
        mutex: String,
        /// Waits until the number of tasks at this barrier is the number of times that the scripts of the domain name it.
        barrier: String,
        /// Sends an event over a channel of that name, and wakes a task that waits there, in whatever domain. Events without a
        /// waiter are pending.
        notify: String,
        /// Takes a pending event of a channel of that name, or waits for the next one.
        r#await: String,
        /// Completes a unit of work. In a script without it a round of all phases is one unit.
        done: bool,
    }
}

tagged! {
    /// A client outside the host.
    enum RawClient by "kind" {
        /// Requests at a rate that does not depend on the answers.
        "open-loop" => OpenLoop(RawOpenLoop),
        /// Users: each asks, waits for the answer, thinks, and asks again.
        "closed-loop" => ClosedLoop(RawClosedLoop),
        /// Streams of packets.
        "stream" => Stream(RawStream),
    }
}

record! {
    /// Requests at a rate that does not depend on the answers.
    struct RawOpenLoop {
        /// The domain with the service.
        server: String,
        /// The application there, by its kind. Needed only where the domain runs several services.
        app: String,
        /// The client machine it runs on.
        machine: String => "one without limits",
        /// Requests per second.
        rate: f64; RATES,
        /// Whether requests come at regular intervals; if not, they come at random (a Poisson process).
        regular: bool = false,
        /// Size of the answer, for requests of the service's first class only.
        file_size: Size; FILE_SIZES,
        /// The requests: a list of kinds, or `"specweb99"` for the files of that benchmark.
        mix: WordOrList<RawAsk> => "all classes of the service, each as often as its documentation says",
        /// Most requests outstanding at once; further ones fail at the client.
        connections_max: u32 = 64; 1..=CONNECTIONS_MAX,
        /// Time without an answer after which a request has failed. Default: none.
        timeout: Span; SPANS_ABOVE_ZERO,
    }
    required [server, rate]
}

record! {
    /// Users: each asks, waits for the answer, thinks, and asks again.
    struct RawClosedLoop {
        /// The domain with the service.
        server: String,
        /// The application there, by its kind. Needed only where the domain runs several services.
        app: String,
        /// The client machine it runs on.
        machine: String => "one without limits",
        /// Number of users.
        users: u32; 1..=CONNECTIONS_MAX,
        /// Mean think time of a user, exponentially distributed.
        think: Span = Span::ZERO; SPANS,
        /// Time within which the users begin, one after the other.
        ramp_up: Span = Span::ZERO; SPANS,
        /// Size of the answer, for requests of the service's first class only.
        file_size: Size; FILE_SIZES,
        /// The requests: a list of kinds, or `"specweb99"` for the files of that benchmark.
        mix: WordOrList<RawAsk> => "all classes of the service, each as often as its documentation says",
        /// Whether a user keeps its connection from one request to the next.
        keep_alive: bool = true,
        /// Time without an answer after which a request has failed. Default: none.
        timeout: Span; SPANS_ABOVE_ZERO,
        /// Most times that a failed request is tried again at once, before the user continues.
        retries: u32 = 0; 0..=RETRIES_MAX,
    }
    required [server, users]
}

record! {
    /// Streams of packets.
    struct RawStream {
        /// The domain with the receiver.
        server: String,
        /// The application there, by its kind. Needed only where the domain runs several services.
        app: String,
        /// The client machine it runs on.
        machine: String => "one without limits",
        /// Number of streams.
        streams: u32 = 1; 1..=CONNECTIONS_MAX,
        /// Data in each packet; more than a segment is sent in several segments.
        packet: Size = Size(1448); FILE_SIZES,
        /// Least time from one packet of a stream to the next; without it, the network alone decides.
        gap: Span = Span::ZERO; SPANS,
    }
    required [server]
}

// The default processors and connections are those of a desktop PC that made all the load in Devine (2010, table 3.2): two
// cores at 2 GHz, under Windows XP, which gives out ports 1025 to 5000 (Microsoft, `MaxUserPort`). What a request takes there
// of a processor is published nowhere, so that the default is none.
record! {
    /// A machine that clients run on. The time it adds is part of response times, as a load generator measures them.
    struct RawClientMachine {
        /// Rate of its link in each direction, bits per second.
        bits_per_s: i64 => "the NIC's of the hardware profile"; LINK_RATES,
        /// Number of processors.
        processors: u32 = 2; 1..=PCPUS_MAX,
        /// Time of a processor for a request before it is sent.
        request_cpu: Span = Span::ZERO; SPANS,
        /// Time of a processor for each packet, sent or received.
        packet_cpu: Span = Span::ZERO; SPANS,
        /// Most connections of its clients at once (ports, or file descriptors); further ones fail there.
        connections_max: u32 = 5000 - 1025 + 1; 1..=CONNECTIONS_MAX,
    }
}

record! {
    /// A kind of requests that a client sends.
    struct RawAsk {
        /// Class of the requests.
        class: String => "the service's first",
        /// Size of the answer.
        file_size: Size => "the class's"; FILE_SIZES,
        /// Frequency relative to the client's other kinds of requests.
        weight: u32 = 1; 1..=WEIGHT_MAX,
    }
}

tagged! {
    /// An action of the administrator on the running host.
    enum RawAction by "op" {
        /// Changes parameters of a domain.
        "adjust" => Adjust(RawAdjust),
        /// Changes global parameters of the scheduler.
        "adjust-global" => AdjustGlobal(RawAdjustGlobal),
        /// Pauses a domain.
        "pause" => Pause(RawDomainAction),
        /// Unpauses a domain.
        "unpause" => Unpause(RawDomainAction),
        /// Changes the affinity of a domain's vCPUs: hard, soft, or first hard and then soft.
        "affinity" => Affinity(RawAffinity),
        /// Moves a domain to another CPU pool: it has default parameters and no affinity there.
        "move-pool" => MovePool(RawMovePool),
        /// Creates a domain that has shut down or was destroyed, as the file describes it. (One that is created later for the
        /// first time has a `start`.)
        "create" => Create(RawDomainAction),
        /// Asks a domain to shut down. Its guest does so within its `shutdown` time; then the toolstack destroys the domain.
        "shutdown" => Shutdown(RawDomainAction),
        /// Asks a domain to reboot: it shuts down, is destroyed, and is created again, as the file describes it.
        "reboot" => Reboot(RawDomainAction),
        /// Crashes a domain's guest. Its `on_crash` is the toolstack's answer.
        "crash" => Crash(RawDomainAction),
        /// Destroys a domain without asking its guest; of a saved one, its state.
        "destroy" => Destroy(RawDomainAction),
        /// Takes a domain off the host, and keeps its state.
        "save" => Save(RawDomainAction),
        /// Puts a saved domain on the host again, with the pool, parameters and affinity of the file; its guest
        /// continues where it stopped.
        "restore" => Restore(RawDomainAction),
        /// Takes a vCPU online again.
        "online" => Online(RawOnline),
        /// Takes a vCPU offline: its guest does without it.
        "offline" => Offline(RawOnline),
    }
}

impl RawAction {
    /// The time of the action, since the host started.
    pub(crate) fn at(&self, report: &mut Report<'_>) -> Option<Time> {
        match self {
            RawAction::Adjust(raw) => raw.at(report),
            RawAction::AdjustGlobal(raw) => raw.at(report),
            RawAction::Affinity(raw) => raw.at(report),
            RawAction::MovePool(raw) => raw.at(report),
            RawAction::Online(raw) | RawAction::Offline(raw) => raw.at(report),
            RawAction::Pause(raw)
            | RawAction::Unpause(raw)
            | RawAction::Create(raw)
            | RawAction::Shutdown(raw)
            | RawAction::Reboot(raw)
            | RawAction::Crash(raw)
            | RawAction::Destroy(raw)
            | RawAction::Save(raw)
            | RawAction::Restore(raw) => raw.at(report),
        }
    }
}

record! {
    /// Changes parameters of a domain.
    struct RawAdjust {
        /// Time of the action since the host started, warm-up included.
        at: Time; TIMES,
        /// The domain.
        domain: String,
    }
    required [at, domain]
    params params
}

record! {
    /// Changes global parameters of the scheduler.
    struct RawAdjustGlobal {
        /// Time of the action since the host started, warm-up included.
        at: Time; TIMES,
        /// The CPU pool of that scheduler.
        pool: String = POOL_0.to_owned(),
    }
    required [at]
    params params
}

record! {
    /// Pauses or unpauses a domain, or begins, ends or interrupts its life.
    struct RawDomainAction {
        /// Time of the action since the host started, warm-up included.
        at: Time; TIMES,
        /// The domain.
        domain: String,
    }
    required [at, domain]
}

record! {
    /// Changes the affinity of a domain's vCPUs.
    struct RawAffinity {
        /// Time of the action since the host started, warm-up included.
        at: Time; TIMES,
        /// The domain.
        domain: String,
        /// The domain's vCPU, from 0. Default: all.
        vcpu: u32; VCPU_NUMBERS => most,
        /// The pCPUs allowed from now on. Required, unless `soft_affinity` is given.
        affinity: CpuList,
        /// The pCPUs preferred from now on.
        soft_affinity: CpuList,
    }
    required [at, domain]
}

record! {
    /// Moves a domain to another CPU pool.
    struct RawMovePool {
        /// Time of the action since the host started, warm-up included.
        at: Time; TIMES,
        /// The domain.
        domain: String,
        /// The pool it moves to.
        pool: String,
    }
    required [at, domain, pool]
}

record! {
    /// Takes a vCPU offline, or online again.
    struct RawOnline {
        /// Time of the action since the host started, warm-up included.
        at: Time; TIMES,
        /// The domain.
        domain: String,
        /// The domain's vCPU. The first one, 0, is always online.
        vcpu: u32; 1..=DOMAIN_VCPUS_MAX - 1,
    }
    required [at, domain, vcpu]
}

/// A domain and its name.
pub(crate) type NamedDomain = (At<String>, At<RawDomain>);

/// The CPU pools besides `Pool-0`.
pub(crate) fn raw_pools(raw: &RawScenario) -> &[(At<String>, At<RawPool>)] {
    raw.pool.get().map_or(&[][..], |named| &named.0)
}
