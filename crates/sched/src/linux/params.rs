//! Parameters of both policies, their defaults by the number of CPUs, and the commands that set them.

use vcpulab_host::{GroupConfig, Params, Scope, Span};

use super::eevdf::CgroupMode;
use super::idle_scan::SelectCpu;
use super::newidle::BalanceRules;
use super::preempt::{Preempt, PreemptModels};
use super::realtime::RtRule;
use super::task_group::Bandwidth;
use super::{Cfs, Eevdf, Flavor, Settings, cfs, eevdf};
use crate::param_spec::{ParamKind, ParamSpec};
use crate::params::{US, global};
use crate::policy::Generation;
use crate::proposal::{Proposal, Refusal};
use crate::role::{Part, Role};
use crate::toolstack::{Set, Toolstack};

/// Value that stands for the kernel's own default, which depends on the number of CPUs.
const BY_CPUS: i64 = -1;

/// Value that stands for no limit.
const NONE: i64 = -1;

/// The shortest quota and period.
const LEAST: Span = Span::from_ms(1);

/// The greatest weight, in units of `cpu.weight`: `cpu.shares` of 262144, which control groups of version 1 take.
const WEIGHT_MAX: i64 = 25_600;

/// The longest quota and burst that the kernel takes, in µs.
const LONGEST: i64 = (1 << 44) - 1;

/// A flavor in the registry.
pub trait Tuned: Flavor + 'static {
    /// Rules in which releases of the kernel differ.
    type Rules: Copy + std::fmt::Debug + 'static;
    /// Name of the policy in scenarios.
    const NAME: &'static str;
    /// Sentence on what the policy does.
    const DOC: &'static str;
    /// Releases of the kernel with equal rules, oldest first.
    const GENERATIONS: &'static [(Generation, Self::Rules)];

    /// Choice of a CPU for a waking thread.
    fn select_cpu(_rules: &Self::Rules) -> SelectCpu {
        SelectCpu::UTIL
    }

    /// Balancing of threads among CPUs.
    fn balance(rules: &Self::Rules) -> BalanceRules;

    /// The rule that leaves fair threads time beside real-time threads.
    fn rt_rule(rules: Self::Rules) -> RtRule;

    /// The preemption models of the kernel.
    fn preempt_models(rules: Self::Rules) -> PreemptModels;

    /// The tunables on a host with this number of CPUs: given values, else the kernel's defaults.
    fn new(rules: Self::Rules, given: &Params, cpus: u32) -> Self;
}

// ---- of the whole host ----

const HZ_LEAST: i64 = 100;
const HZ_MOST: i64 = 1000;

const HZ: ParamSpec = global(
    "hz",
    "Hz",
    ParamKind::int(HZ_LEAST, HZ_MOST),
    250,
    "Ticks in a second on each busy CPU, as the kernel was built (CONFIG_HZ: 100, 250, 300 or 1000).",
);
const RESCHED: ParamSpec = global(
    "resched_ns",
    "ns",
    ParamKind::int(1, 1_000_000),
    2_000,
    "The time from an event that asks a busy CPU to decide, a tick as a rule, to the decision; who runs is charged for it.",
);
const BANDWIDTH_SLICE: ParamSpec = global(
    "bandwidth_slice_us",
    "us",
    ParamKind::int(1, 1_000_000),
    5_000,
    "What a CPU takes from the quota of a group at a time.",
);
const MIGRATION_COST: ParamSpec = global(
    "migration_cost_us",
    "us",
    ParamKind::int(0, 1_000_000),
    500,
    "Who ran less than this ago is not moved to another CPU by balancing.",
);
const LATENCY: ParamSpec = global(
    "latency_us",
    "us",
    ParamKind::Int { min: 100, max: 1_000_000, also: &[BY_CPUS] },
    BY_CPUS,
    "The period in which each runnable thread should run once (-1: 6 ms, times 2 from 2 CPUs on, 3 from 4, 4 from 8).",
);
const MIN_GRANULARITY: ParamSpec = global(
    "min_granularity_us",
    "us",
    ParamKind::Int { min: 100, max: 1_000_000, also: &[BY_CPUS] },
    BY_CPUS,
    "The least slice (-1: 0.75 ms, times 2 from 2 CPUs on, 3 from 4, 4 from 8).",
);
const WAKEUP_GRANULARITY: ParamSpec = global(
    "wakeup_granularity_us",
    "us",
    ParamKind::Int { min: 0, max: 1_000_000, also: &[BY_CPUS] },
    BY_CPUS,
    "How far behind a waking thread must be to preempt (-1: 1 ms, times 2 from 2 CPUs on, 3 from 4, 4 from 8).",
);
const BASE_SLICE: ParamSpec = global(
    "base_slice_us",
    "us",
    ParamKind::Int { min: 100, max: 1_000_000, also: &[BY_CPUS] },
    BY_CPUS,
    "The length of each thread's requests (-1: 0.7 ms, in 6.6 0.75 ms, times 2 from 2 CPUs on, 3 from 4, 4 from 8).",
);
/// The parameter for one of these preemption models.
const fn preempt(models: PreemptModels) -> ParamSpec {
    global(
        PREEMPT,
        "",
        ParamKind::Choice(models.names()),
        models.default(),
        "Preemption model of the kernel: under lazy the thread that runs keeps the CPU for `resched_ns` after a wake-up that preempts it, \
         and in the kernel until the next tick; under the others the decision is taken at the wake-up.",
    )
}
const PREEMPT: &str = "preempt";
/// The file that sets the preemption model.
const PREEMPT_FILE: &str = "/sys/kernel/debug/sched/preempt";
const CGROUP_MODE: ParamSpec = ParamSpec {
    name: "cgroup_mode",
    scope: Scope::Global,
    role: Role::GroupWeightMode(&CgroupMode::GROUP_WEIGHTS),
    unit: "",
    kind: ParamKind::Choice(&CgroupMode::NAMES),
    default: CgroupMode::Concur as i64,
    doc: "Weight of a group whose threads run on several CPUs: its weight on every CPU (up), divided among them (smp, as before 7.3), or \
     divided after it is multiplied by the number of its runnable threads up to the number of CPUs (concur), by the number of CPUs \
     (max), or by the number of runnable threads (tasks).",
};

const LLC_BALANCING: ParamSpec = global(
    "llc_balancing",
    "",
    ParamKind::Flag,
    1,
    "1: balancing keeps the threads of a VM in one last-level cache, where a host's only node has several.",
);
const RT_RUNTIME: ParamSpec = global(
    "rt_runtime_us",
    "us",
    ParamKind::Int { min: 0, max: RT_PERIOD_MOST, also: &[NONE] },
    950_000,
    "CPU time of the real-time threads (SCHED_FIFO, SCHED_RR) of each CPU in each `rt_period_us`, whether others wait or not (-1: no limit).",
);
const RT_PERIOD: ParamSpec = global(
    "rt_period_us",
    "us",
    ParamKind::int(1_000, RT_PERIOD_MOST),
    1_000_000,
    "The period of `rt_runtime_us`.",
);
const FAIR_SERVER_RUNTIME: ParamSpec = global(
    "fair_server_runtime_us",
    "us",
    ParamKind::int(0, FAIR_SERVER_PERIOD_MOST),
    50_000,
    "CPU time of the fair threads of each CPU in each `fair_server_period_us` if real-time threads leave them nothing (0: nothing).",
);
const FAIR_SERVER_PERIOD: ParamSpec = global(
    "fair_server_period_us",
    "us",
    ParamKind::int(100, FAIR_SERVER_PERIOD_MOST),
    1_000_000,
    "The period of `fair_server_runtime_us`.",
);

/// The longest period of real-time throttling, µs.
const RT_PERIOD_MOST: i64 = i32::MAX as i64;

/// The longest period of a fair server, µs.
const FAIR_SERVER_PERIOD_MOST: i64 = 1 << 22;

// ---- of a domain ----

const fn domain(
    name: &'static str,
    role: Role,
    unit: &'static str,
    kind: ParamKind,
    default: i64,
    doc: &'static str,
) -> ParamSpec {
    ParamSpec { name, scope: Scope::Domain, role, unit, kind, default, doc }
}

const fn quota(part: Part, name: &'static str, doc: &'static str) -> ParamSpec {
    domain(
        name,
        Role::GroupQuota(part),
        "us",
        ParamKind::Int { min: 1_000, max: LONGEST, also: &[NONE] },
        NONE,
        doc,
    )
}

const fn period(part: Part, name: &'static str, doc: &'static str) -> ParamSpec {
    domain(name, Role::GroupPeriod(part), "us", ParamKind::int(1_000, 1_000_000), 100_000, doc)
}

const WEIGHT: ParamSpec = domain(
    "weight",
    Role::GroupWeight,
    "",
    ParamKind::int(1, WEIGHT_MAX),
    100,
    "cpu.weight: share of CPU time among the groups beside this one. From 7.3 on it counts once per busy vCPU by default (`cgroup_mode`).",
);
const SLICE: ParamSpec = domain(
    "slice_us",
    Role::Plain,
    "us",
    ParamKind::Int { min: 100, max: 100_000, also: &[BY_CPUS] },
    BY_CPUS,
    "The length of the requests of its vCPUs, or of a daemon's threads (sched_setattr; -1: `base_slice_us`).",
);
const IDLE: ParamSpec = domain(
    "idle",
    Role::GroupIdle,
    "",
    ParamKind::Flag,
    0,
    "1: the VM runs when nothing else is runnable, otherwise almost never (cpu.idle).",
);
const GLOBAL_BURST: ParamSpec = domain(
    "global_burst_us",
    Role::Plain,
    "us",
    ParamKind::int(0, LONGEST),
    0,
    "Quota of the whole domain not used in earlier periods that it may use later (cpu.max.burst).",
);

/// Parameters that limit a part of a domain.
#[derive(Clone, Copy)]
struct LimitParams {
    part: Part,
    quota: ParamSpec,
    period: ParamSpec,
    burst: Option<ParamSpec>,
}

const WHOLE: LimitParams = LimitParams {
    part: Part::Whole,
    quota: quota(
        Part::Whole,
        "global_quota_us",
        "CPU time of all its threads together in each period (-1: no limit).",
    ),
    period: period(Part::Whole, "global_period_us", "The period of `global_quota_us`."),
    burst: Some(GLOBAL_BURST),
};
const VCPU: LimitParams = LimitParams {
    part: Part::Vcpu,
    quota: quota(Part::Vcpu, "vcpu_quota_us", "CPU time of each vCPU in each period (-1: no limit)."),
    period: period(Part::Vcpu, "vcpu_period_us", "The period of `vcpu_quota_us`."),
    burst: None,
};
const EMULATOR: LimitParams = LimitParams {
    part: Part::Emulator,
    quota: quota(
        Part::Emulator,
        "emulator_quota_us",
        "CPU time of the emulator's own threads in each period (-1: no limit).",
    ),
    period: period(Part::Emulator, "emulator_period_us", "The period of `emulator_quota_us`."),
    burst: None,
};
const IO_THREAD: LimitParams = LimitParams {
    part: Part::IoThread,
    quota: quota(
        Part::IoThread,
        "iothread_quota_us",
        "CPU time of each I/O thread in each period (-1: no limit).",
    ),
    period: period(Part::IoThread, "iothread_period_us", "The period of `iothread_quota_us`."),
    burst: None,
};

/// The limits of all parts, in the order of [`Part::ALL`].
const LIMITS: [LimitParams; 4] = [WHOLE, VCPU, EMULATOR, IO_THREAD];

/// Control-group parameters of a domain.
#[derive(Clone, Copy, Debug)]
pub struct Controls {
    pub weight: u32,
    pub idle: bool,
    /// Length of the requests of the domain's threads; `None`: the kernel's.
    pub slice: Option<Span>,
    /// Limits of the domain's parts, in the order of [`LIMITS`].
    limits: [Limits; 4],
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    quota: Option<Span>,
    period: Span,
    burst: Span,
}

impl Controls {
    /// The parameters of a new domain, with the weight and limits of its groups' configuration.
    pub fn new(groups: impl Iterator<Item = (Part, GroupConfig)>) -> Self {
        let GroupConfig { period, .. } = GroupConfig::NEW;
        let none = Limits { quota: None, period, burst: Span::ZERO };
        let mut controls =
            Controls { weight: GroupConfig::NEW.weight, idle: false, slice: None, limits: [none; 4] };
        for (part, GroupConfig { weight, quota, period, burst, idle, .. }) in groups {
            if part == Part::Whole {
                (controls.weight, controls.idle) = (weight, idle);
            }
            controls.limits[part as usize] = Limits { quota, period, burst };
        }
        controls
    }

    /// The controls with the given parameters changed.
    ///
    /// # Errors
    /// [`Refusal`]: a burst is longer than its quota, or a quota or period too short.
    pub fn adjusted(mut self, params: &Params) -> Result<Self, Refusal> {
        if let Some(weight) = params.int(WEIGHT.name) {
            let refusal = |_| Refusal::new([WEIGHT.name], WEIGHT.kind.allowed());
            self.weight = u32::try_from(weight).map_err(refusal)?;
        }
        self.idle = params.int(IDLE.name).map_or(self.idle, |idle| idle != 0);
        if let Some(slice) = params.int(SLICE.name) {
            self.slice = Some(slice).filter(|&us| us != BY_CPUS).map(|us| US.saturating_mul(us));
        }
        for (limits, LimitParams { quota, period, burst, .. }) in self.limits.iter_mut().zip(&LIMITS) {
            let us = |spec: &ParamSpec| params.int(spec.name).map(|us| US.saturating_mul(us));
            if let Some(quota) = us(quota) {
                limits.quota = (!quota.is_negative()).then_some(quota);
            }
            limits.period = us(period).unwrap_or(limits.period);
            limits.burst = burst.as_ref().and_then(us).unwrap_or(limits.burst);
            if limits.period < LEAST || limits.quota.is_some_and(|quota| quota < LEAST) {
                return Err(Refusal::new(
                    [quota.name, period.name],
                    "a quota and a period of at least 1000 us",
                ));
            }
            if let (Some(burst), false) = (burst, GroupConfig::takes_burst(limits.quota, limits.burst)) {
                return Err(Refusal::new([burst.name, quota.name], "a burst of at most the quota"));
            }
        }
        Ok(self)
    }

    /// The limit of a part.
    pub fn bandwidth(&self, part: Part) -> Option<Bandwidth> {
        let Limits { quota, period, burst } = self.limits[part as usize];
        quota.map(|quota| Bandwidth { quota, period, burst })
    }
}

/// Checks the parameters of a host, or of a domain whose groups are made with nothing else set.
pub fn check(proposal: &Proposal<'_>) -> Result<(), Refusal> {
    match proposal.scope {
        Scope::Global if proposal.is_new() => check_rt_limit(&proposal.kept_and_given()),
        Scope::Global => {
            check_rt_limit(&proposal.kept_and_given())?;
            let present = proposal.present.map(Common::new);
            match present.is_none_or(|present| present.takes(proposal.given)) {
                true => Ok(()),
                false => {
                    Err(Refusal::new([HZ.name], "the present value: it is the kernel's, as it was built"))
                }
            }
        }
        Scope::Domain => {
            let controls = Controls::new(std::iter::empty()).adjusted(&proposal.kept_and_given())?;
            let Limits { quota, burst, .. } = controls.limits[Part::Whole as usize];
            if proposal.is_new() && quota.is_none() && burst > Span::ZERO {
                return Err(Refusal::new([GLOBAL_BURST.name, WHOLE.quota.name], "a quota beside the burst"));
            }
            Ok(())
        }
    }
}

/// Checks that no runtime is longer than its period.
///
/// # Errors
/// [`Refusal`]: a runtime is longer.
pub fn check_rt_limit(params: &Params) -> Result<(), Refusal> {
    let value = |spec: &ParamSpec| params.int(spec.name).unwrap_or(spec.default);
    for (runtime, period) in [(&RT_RUNTIME, &RT_PERIOD), (&FAIR_SERVER_RUNTIME, &FAIR_SERVER_PERIOD)] {
        if value(runtime) > value(period) {
            return Err(Refusal::new([runtime.name, period.name], "a runtime of at most the period"));
        }
    }
    Ok(())
}

/// The preemption model among those of a kernel.
pub fn preempt_model(models: PreemptModels, given: &Params) -> Preempt {
    models.at(preempt(models).number_in(given))
}

/// The limit of real-time threads under a rule: its runtime (`None`: no limit) and its period.
pub fn rt_limit(rule: RtRule, given: &Params) -> (Option<Span>, Span) {
    let us = |spec: &ParamSpec| US.saturating_mul(given.int(spec.name).unwrap_or(spec.default));
    match rule {
        RtRule::Throttling => {
            (Some(us(&RT_RUNTIME)).filter(|runtime| !runtime.is_negative()), us(&RT_PERIOD))
        }
        RtRule::FairServer => {
            (Some(us(&FAIR_SERVER_RUNTIME)).filter(|runtime| !runtime.is_zero()), us(&FAIR_SERVER_PERIOD))
        }
    }
}

/// The part of a domain that a parameter limits; `None`: the parameter is no limit.
pub fn limited_part(param: &str) -> Option<Part> {
    let limits = |LimitParams { quota, period, burst, .. }: &&LimitParams| {
        [Some(quota), Some(period), burst.as_ref()].into_iter().flatten().any(|spec| spec.name == param)
    };
    LIMITS.iter().find(limits).map(|params| params.part)
}

/// Files of control groups that not every kernel has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupFiles {
    /// `cpu.idle`.
    pub idle: bool,
    /// `cpu.max.burst`.
    pub burst: bool,
}

impl GroupFiles {
    /// The files of a generation's kernels: those that set its parameters.
    pub fn of(generation: &Generation) -> Self {
        let has = |spec: &ParamSpec| generation.params.iter().any(|param| param.name == spec.name);
        GroupFiles { idle: has(&IDLE), burst: has(&GLOBAL_BURST) }
    }
}

/// Parameters that CFS and EEVDF share.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    pub hz: i64,
    pub resched: Span,
    pub migration_cost: Span,
    bandwidth_slice: Span,
    /// Whether balancing keeps the threads of a VM in one last-level cache, if the release can.
    pub llc_balancing: bool,
}

impl Common {
    /// The parameters of a host, given or default.
    pub fn new(given: &Params) -> Self {
        let value = |spec: &ParamSpec| given.int(spec.name).unwrap_or(spec.default).max(0);
        Common {
            hz: value(&HZ).clamp(HZ_LEAST, HZ_MOST),
            resched: Span::from_ns(value(&RESCHED)),
            migration_cost: US.saturating_mul(value(&MIGRATION_COST)),
            bandwidth_slice: US.saturating_mul(value(&BANDWIDTH_SLICE)),
            llc_balancing: value(&LLC_BALANCING) != 0,
        }
    }

    /// Whether the host can take the parameters while it runs.
    pub fn takes(&self, params: &Params) -> bool {
        params.int(HZ.name).is_none_or(|hz| hz == self.hz)
    }

    pub fn settings(&self) -> Settings {
        Settings { tick: self.tick(), bandwidth_slice: self.bandwidth_slice }
    }

    /// The time between two ticks, as the kernel rounds it.
    pub fn tick(&self) -> Span {
        Span::from_ns((1_000_000_000 + self.hz / 2) / self.hz)
    }
}

/// Factor by which the kernel scales its tunables with the number of CPUs.
fn factor(cpus: u32) -> i64 {
    1 + i64::from(cpus.clamp(1, 8).ilog2())
}

/// The value of a tunable: given, or the kernel's default.
fn tunable(given: &Params, spec: &ParamSpec, own: Span) -> Span {
    given.int(spec.name).filter(|&us| us != BY_CPUS).map_or(own, |us| US.saturating_mul(us.max(0)))
}

/// A generation of one of the policies, with the tunables in which generations differ and the files or sysctls that set them.
/// `preempt`: the preemption models, and the file that sets one if there is such a file. `slice`: the parameter for own slices,
/// `idle`, `burst`: the parameters for `cpu.idle` and `cpu.max.burst`, if the kernel has them.
///
/// Parameters of a domain are set by libvirt or by files of control groups. (`hz` is chosen when a kernel is built;
/// `resched_ns` is the duration of the kernel's code.)
macro_rules! generation {
    (
        $name:literal, since $since:expr, preempt $preempt:ident [$($preempt_file:expr)?],
        slice [$($slice:expr)?], idle [$($idle:expr)?], burst [$($burst:expr)?],
        $($tunable:expr => $set:literal),*
    ) => {
        Generation {
            name: $name,
            since: $since,
            params: &[
                HZ, RESCHED, preempt(PreemptModels::$preempt), BANDWIDTH_SLICE, $($tunable,)*
                WEIGHT, $($idle,)? $($slice,)?
                WHOLE.quota, WHOLE.period, $($burst,)? VCPU.quota, VCPU.period, EMULATOR.quota, EMULATOR.period,
                IO_THREAD.quota, IO_THREAD.period,
            ],
            work_conserving: false,
            hard_affinity: true,
            toolstack: Toolstack {
                set: &[
                    $((PREEMPT, Set::Host($preempt_file)),)?
                    $(($tunable.name, Set::Host($set)),)*
                    (BANDWIDTH_SLICE.name, Set::Host("sysctl kernel.sched_cfs_bandwidth_slice_us=")),
                    (WEIGHT.name, Set::Host("virsh schedinfo DOM --set cpu_shares=")),
                    $(($idle.name, Set::Host("cpu.idle")),)?
                    $(($slice.name, Set::Host("chrt --sched-runtime")),)?
                    $(($burst.name, Set::Host("cpu.max.burst")),)?
                    (WHOLE.quota.name, Set::Host("virsh schedinfo DOM --set global_quota=")),
                    (WHOLE.period.name, Set::Host("virsh schedinfo DOM --set global_period=")),
                    (VCPU.quota.name, Set::Host("virsh schedinfo DOM --set vcpu_quota=")),
                    (VCPU.period.name, Set::Host("virsh schedinfo DOM --set vcpu_period=")),
                    (EMULATOR.quota.name, Set::Host("virsh schedinfo DOM --set emulator_quota=")),
                    (EMULATOR.period.name, Set::Host("virsh schedinfo DOM --set emulator_period=")),
                    (IO_THREAD.quota.name, Set::Host("virsh schedinfo DOM --set iothread_quota=")),
                    (IO_THREAD.period.name, Set::Host("virsh schedinfo DOM --set iothread_period=")),
                ],
                ..Toolstack::NONE
            },
        }
    };
}

/// A generation of CFS whose tunables are files.
macro_rules! cfs {
    ($name:literal, since $since:expr) => {
        generation!(
            $name, since $since, preempt WITHOUT_LAZY [PREEMPT_FILE], slice [], idle [IDLE], burst [GLOBAL_BURST],
            MIGRATION_COST => "/sys/kernel/debug/sched/migration_cost_ns",
            LATENCY => "/sys/kernel/debug/sched/latency_ns",
            MIN_GRANULARITY => "/sys/kernel/debug/sched/min_granularity_ns",
            WAKEUP_GRANULARITY => "/sys/kernel/debug/sched/wakeup_granularity_ns",
            RT_RUNTIME => "sysctl kernel.sched_rt_runtime_us=",
            RT_PERIOD => "sysctl kernel.sched_rt_period_us="
        )
    };
}

/// CFS of 5.10, whose tunables are sysctls.
const CFS_5_10: Generation = generation!(
    "5.10", since &[("5.10", 0), ("5.11", 0), ("5.12", 0), ("5.13", 0)], preempt WITHOUT_LAZY [], slice [],
    idle [], burst [],
    MIGRATION_COST => "sysctl kernel.sched_migration_cost_ns=",
    LATENCY => "sysctl kernel.sched_latency_ns=",
    MIN_GRANULARITY => "sysctl kernel.sched_min_granularity_ns=",
    WAKEUP_GRANULARITY => "sysctl kernel.sched_wakeup_granularity_ns=",
    RT_RUNTIME => "sysctl kernel.sched_rt_runtime_us=",
    RT_PERIOD => "sysctl kernel.sched_rt_period_us="
);

const CFS_5_15: Generation = {
    const SINCE: &[(&str, u32)] =
        &[("5.14", 0), ("5.15", 0), ("5.16", 0), ("5.17", 0), ("5.18", 0), ("5.19", 0), ("6.0", 0)];
    cfs!("5.15", since SINCE)
};

const CFS_6_1: Generation = cfs!("6.1", since & [("6.1", 0), ("6.2", 0), ("6.3", 0), ("6.4", 0), ("6.5", 0)]);

/// A generation of EEVDF.
macro_rules! eevdf {
    ($name:literal with throttling, since $since:expr) => {
        generation!(
            $name, since $since, preempt WITHOUT_LAZY [PREEMPT_FILE], slice [], idle [IDLE], burst [GLOBAL_BURST],
            MIGRATION_COST => "/sys/kernel/debug/sched/migration_cost_ns",
            BASE_SLICE => "/sys/kernel/debug/sched/base_slice_ns",
            RT_RUNTIME => "sysctl kernel.sched_rt_runtime_us=",
            RT_PERIOD => "sysctl kernel.sched_rt_period_us="
        )
    };
    ($name:literal, since $since:expr, preempt $preempt:ident $(, $own:expr => $own_file:literal)*) => {
        generation!(
            $name, since $since, preempt $preempt [PREEMPT_FILE], slice [SLICE], idle [IDLE], burst [GLOBAL_BURST],
            MIGRATION_COST => "/sys/kernel/debug/sched/migration_cost_ns",
            BASE_SLICE => "/sys/kernel/debug/sched/base_slice_ns",
            $($own => $own_file,)*
            FAIR_SERVER_RUNTIME => "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
            FAIR_SERVER_PERIOD => "/sys/kernel/debug/sched/fair_server/cpu*/period"
        )
    };
}

impl Tuned for Cfs {
    type Rules = cfs::Rules;
    const NAME: &'static str = "linux-cfs";
    const DOC: &'static str = "Linux's completely fair scheduler: the least virtual run time runs; who wakes after a sleep preempts.";
    const GENERATIONS: &'static [(Generation, cfs::Rules)] =
        &[(CFS_5_10, cfs::Rules::V5_10), (CFS_5_15, cfs::Rules::V5_15), (CFS_6_1, cfs::Rules::V6_1)];

    fn select_cpu(rules: &cfs::Rules) -> SelectCpu {
        rules.select_cpu
    }

    fn balance(rules: &cfs::Rules) -> BalanceRules {
        rules.balance
    }

    fn rt_rule(_rules: cfs::Rules) -> RtRule {
        RtRule::Throttling
    }

    fn preempt_models(_rules: cfs::Rules) -> PreemptModels {
        PreemptModels::WITHOUT_LAZY
    }

    fn new(rules: cfs::Rules, given: &Params, cpus: u32) -> Self {
        let own = Cfs::scaled(rules, factor(cpus));
        Cfs {
            latency: tunable(given, &LATENCY, own.latency),
            min_granularity: tunable(given, &MIN_GRANULARITY, own.min_granularity),
            wakeup_granularity: tunable(given, &WAKEUP_GRANULARITY, own.wakeup_granularity),
            ..own
        }
    }
}

impl Tuned for Eevdf {
    type Rules = eevdf::Rules;
    const NAME: &'static str = "linux-eevdf";
    const DOC: &'static str = "Linux's earliest eligible virtual deadline first: of those that had no more than their share, the earliest \
         deadline runs.";
    const GENERATIONS: &'static [(Generation, eevdf::Rules)] = &[
        (
            eevdf!("6.6" with throttling, since & [("6.6", 0), ("6.7", 0), ("6.8", 0), ("6.9", 0), ("6.10", 0), ("6.11", 0)]),
            eevdf::Rules::V6_6,
        ),
        (
            eevdf!("6.12", since & [("6.12", 0), ("6.13", 0), ("6.14", 0), ("6.15", 0), ("6.16", 0)], preempt WITH_LAZY),
            eevdf::Rules::V6_12,
        ),
        (eevdf!("6.17", since & [("6.17", 0)], preempt LAZY_BY_DEFAULT), eevdf::Rules::V6_17),
        (eevdf!("6.18", since & [("6.18", 0), ("6.19", 0)], preempt LAZY_BY_DEFAULT), eevdf::Rules::V6_18),
        (eevdf!("7.0", since & [("7.0", 0), ("6.19", 1)], preempt FULL_OR_LAZY), eevdf::Rules::V7_0),
        (eevdf!("7.1", since & [("7.1", 0)], preempt FULL_OR_LAZY), eevdf::Rules::V7_1),
        (
            eevdf!(
                "7.2", since & [("7.2", 0)], preempt FULL_OR_LAZY,
                LLC_BALANCING => "/sys/kernel/debug/sched/llc_balancing/enabled"
            ),
            eevdf::Rules::V7_2,
        ),
        (
            eevdf!(
                "7.3", since & [("7.3", 0)], preempt FULL_OR_LAZY,
                CGROUP_MODE => "/sys/kernel/debug/sched/cgroup_mode",
                LLC_BALANCING => "/sys/kernel/debug/sched/llc_balancing/enabled"
            ),
            eevdf::Rules::V7_3,
        ),
    ];

    fn balance(rules: &eevdf::Rules) -> BalanceRules {
        rules.balance
    }

    fn rt_rule(rules: eevdf::Rules) -> RtRule {
        rules.rt_rule
    }

    fn preempt_models(rules: eevdf::Rules) -> PreemptModels {
        rules.preempt
    }

    fn new(rules: eevdf::Rules, given: &Params, cpus: u32) -> Self {
        let base_slice = tunable(given, &BASE_SLICE, factor(cpus) * rules.base_slice);
        let mode = usize::try_from(CGROUP_MODE.number_in(given)).ok();
        let cgroup_mode =
            mode.and_then(|mode| CgroupMode::ALL.get(mode).copied()).unwrap_or(CgroupMode::Concur);
        Eevdf { cgroup_mode, ..Eevdf::with_base_slice(rules, base_slice) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's documentation has a table by CPUs.
    #[test]
    fn tunables_grow_with_the_number_of_cpus() {
        let slices = [1, 2, 3, 4, 7, 8, 64]
            .map(|cpus| <Eevdf as Tuned>::new(eevdf::Rules::V6_12, &Params::new(), cpus).base_slice / US);
        assert_eq!(slices, [700, 1400, 1400, 2100, 2100, 2800, 2800]);
        let cfs = Cfs::new(cfs::Rules::V6_1, &Params::new(), 8);
        let of = [cfs.latency, cfs.min_granularity, cfs.wakeup_granularity].map(|span| span / US);
        assert_eq!(of, [24_000, 3_000, 4_000]);
    }

    /// A generation has the parameters of its rule for real-time threads.
    #[test]
    fn the_limit_of_real_time_threads_is_that_of_the_release() {
        let rules = Cfs::GENERATIONS.iter().map(|(generation, rules)| (generation, Cfs::rt_rule(*rules)));
        let rules = rules.chain(Eevdf::GENERATIONS.iter().map(|(g, rules)| (g, Eevdf::rt_rule(*rules))));
        for (generation, rule) in rules {
            let has = |spec: &ParamSpec| generation.params.iter().any(|param| param.name == spec.name);
            let throttles = rule == RtRule::Throttling;
            assert_eq!([has(&RT_RUNTIME), has(&RT_PERIOD)], [throttles; 2], "{}", generation.name);
            assert_eq!([has(&FAIR_SERVER_RUNTIME), has(&FAIR_SERVER_PERIOD)], [!throttles; 2]);
        }
    }

    #[test]
    fn groups_have_a_mode_from_7_3_on() {
        let with_mode =
            |(generation, _): &&(Generation, eevdf::Rules)| generation.params.contains(&CGROUP_MODE);
        let names: Vec<_> = Eevdf::GENERATIONS.iter().filter(with_mode).map(|(of, _)| of.name).collect();
        assert_eq!(names, ["7.3"]);
    }

    #[test]
    fn ticks_are_the_kernels() {
        let tick = |hz: i64| Common::new(&Params::new().with("hz", hz)).tick().ns();
        assert_eq!([100, 250, 300, 1000].map(tick), [10_000_000, 4_000_000, 3_333_333, 1_000_000]);
    }

    #[test]
    fn a_burst_is_no_longer_than_its_quota() {
        let controls = Controls::new(std::iter::empty());
        let burst = |burst: i64| {
            controls.adjusted(&Params::new().with("global_quota_us", 50_000).with("global_burst_us", burst))
        };
        assert!(burst(50_000).is_ok() && burst(50_001).is_err());
        let unlimited = burst(50_000).unwrap().adjusted(&Params::new().with("global_quota_us", -1)).unwrap();
        assert_eq!(unlimited.bandwidth(Part::Whole), None);
    }
}
