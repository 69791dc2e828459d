//! What holds for every policy, on random hosts: the same suite runs on all that are registered.

use proptest::prelude::*;
use vcpulab_host::program::{Program, Programs, Step};
use vcpulab_host::{
    Action, Context, Costs, CpuMask, DomId, DomainConfig, Host, HostConfig, Observer, Op, ParamKind, Params,
    PcpuId, RunState, Scheduler, Scope, Span, Switch, Time, TimedAction, VcpuConfig, VcpuId, World,
    WorldContext,
};
use vcpulab_sched::{Generation, Runner, policies};

const MS: Span = 1_000_000;
const END: Time = 700 * MS;

/// A random host, but for the policy.
#[derive(Clone, Debug)]
struct Case {
    config: HostConfig,
    /// By vCPU, the idle ones not counted.
    programs: Vec<Program>,
    end: Time,
    /// Which of its own choices the policy makes.
    choice: u64,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..20_000i64).prop_map(|us| Step::Run(us * 1_000)),
        1 => (1..50i64).prop_map(Step::Run),
        1 => Just(Step::Yield),
        3 => (1..30_000i64).prop_map(|us| Step::Block(us * 1_000)),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    prop_oneof![
        2 => Just(Program { steps: vec![Step::Hog], repeat: false }),
        5 => (prop::collection::vec(step(), 0..6), 100_000..9 * MS, any::<bool>()).prop_map(|(mut steps, run, repeat)| {
            // A program of nothing but yields would stop time.
            steps.insert(0, Step::Run(run));
            Program { steps, repeat }
        }),
    ]
}

fn mask(pcpus: u32) -> impl Strategy<Value = CpuMask> {
    prop::collection::vec(0..pcpus, 1..=pcpus as usize).prop_map(|members| {
        let mut mask = CpuMask::EMPTY;
        members.into_iter().for_each(|p| mask.insert(PcpuId(p)));
        mask
    })
}

/// Which disturbances a case may hold.
#[derive(Clone, Copy)]
struct Allow {
    affinity: bool,
    actions: bool,
    costs: bool,
}

fn case(allow: Allow) -> impl Strategy<Value = Case> {
    let domain = move |pcpus: u32| {
        let affinity =
            if allow.affinity { prop::option::of(mask(pcpus)).boxed() } else { Just(None).boxed() };
        prop::collection::vec((program(), 0..50 * MS, affinity), 1..4)
    };
    (1..5u32)
        .prop_flat_map(move |pcpus| {
            let domains = prop::collection::vec(domain(pcpus), 1..5);
            let actions = prop::collection::vec((0..END, 0..4u8, 0..64usize, mask(pcpus)), 0..8);
            (Just(pcpus), domains, actions, 0..3000i64, any::<u64>())
        })
        .prop_map(move |(pcpus, domains, actions, cost, choice)| {
            let programs: Vec<Program> =
                domains.iter().flatten().map(|(program, ..)| program.clone()).collect();
            let action = |(at, kind, which, mask): (Time, u8, usize, CpuMask)| {
                let domain = DomId((which % domains.len()) as u32);
                let vcpu = VcpuId(pcpus + (which % programs.len()) as u32);
                let action = match kind {
                    0 => Action::Adjust(domain, Params::new()),
                    1 => Action::Pause(domain),
                    2 => Action::Unpause(domain),
                    _ => Action::Affinity(vcpu, mask),
                };
                TimedAction { at, action }
            };
            let actions = if allow.actions { actions.into_iter().map(action).collect() } else { Vec::new() };
            let configs = domains.iter().enumerate().map(|(i, vcpus)| DomainConfig {
                number: i as i64 + 1,
                params: Params::new(),
                vcpus: vcpus
                    .iter()
                    .map(|&(_, start, affinity)| VcpuConfig { start: Some(start), affinity })
                    .collect(),
            });
            let costs = if allow.costs {
                Costs { decision_ns: cost, context_switch_ns: 2 * cost, interrupt_ns: cost, ..Costs::ZERO }
            } else {
                Costs::ZERO
            };
            let config =
                HostConfig { pcpus, pcpus_per_socket: 0, costs, domains: configs.collect(), actions };
            Case { config, programs, end: END, choice }
        })
}

/// The scripted vCPUs, counting the wake-ups they ask for.
struct Counting {
    programs: Programs,
    wakes_due: u64,
    end: Time,
}

impl World for Counting {
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let op = self.programs.next_op(ctx, v, left);
        if let Op::Block(Some(at)) = op {
            self.wakes_due += u64::from(at < self.end);
        }
        op
    }
}

/// Rebuilds from the switches alone what runs where.
struct Watch {
    running: Vec<Option<VcpuId>>,
    last: Time,
    woken: u64,
    /// Time in which each vCPU was switched in, ns, and since when.
    gotten: Vec<Span>,
    since: Vec<Time>,
    bytes: Vec<u8>,
    /// Does the policy honour hard affinity?
    affinity: bool,
}

impl Observer for Watch {
    fn switched(&mut self, host: &Context, switch: Switch) {
        assert!(switch.time >= self.last, "time runs forward");
        self.last = switch.time;
        let p = switch.pcpu.index();
        let real = |v: VcpuId| (!host.is_idle(v)).then_some(v);
        assert_eq!(self.running[p], real(switch.from), "a switch leaves what the one before chose");
        if let Some(v) = real(switch.to) {
            assert!(!self.running.contains(&Some(v)), "one vCPU on one pCPU at a time");
            assert!(!self.affinity || host.affinity(v).contains(switch.pcpu), "hard affinity holds");
            self.since[v.index()] = switch.time;
        }
        if let Some(v) = real(switch.from) {
            self.gotten[v.index()] += switch.time - self.since[v.index()];
        }
        self.running[p] = real(switch.to);
        self.bytes.extend(switch.time.to_le_bytes());
        self.bytes.extend([switch.pcpu.0 as u8, switch.from.0 as u8, switch.to.0 as u8]);
    }

    fn woke(&mut self, _host: &Context, _v: VcpuId, _by: Option<VcpuId>) {
        self.woken += 1;
    }
}

/// Runs a case in steps, and checks at each step what must always hold; returns the trace as bytes.
struct Check<'a> {
    case: &'a Case,
    /// Also: no pCPU idles while a vCPU waits that may run there.
    work_conserving: bool,
    affinity: bool,
}

impl Runner for Check<'_> {
    type Out = Vec<u8>;

    fn run<S: Scheduler>(self, scheduler: S) -> Vec<u8> {
        let Case { config, programs, end, .. } = self.case;
        let mut scripts = Programs::default();
        for (i, program) in programs.iter().enumerate() {
            scripts.set(VcpuId(config.pcpus + i as u32), program.clone());
        }
        let count = config.pcpus as usize + programs.len();
        let watch = Watch {
            running: vec![None; config.pcpus as usize],
            last: 0,
            woken: 0,
            gotten: vec![0; count],
            since: vec![0; count],
            bytes: Vec::new(),
            affinity: self.affinity,
        };
        let world = Counting { programs: scripts, wakes_due: 0, end: *end };
        let mut host = Host::new(config, scheduler, world, watch).unwrap();
        let mut now = 0;
        while now < *end {
            now = (now + 1_234_567).min(*end);
            host.run_until(now).unwrap();
            check_times(host.context(), host.observer());
            if self.work_conserving {
                check_work_conserved(host.context());
            }
        }
        let starts =
            config.domains.iter().flat_map(|d| &d.vcpus).filter(|v| v.start.is_some_and(|at| at < *end));
        assert_eq!(
            host.observer().woken,
            host.world().wakes_due + starts.count() as u64,
            "no wake-up is lost"
        );
        host.into_parts().3.bytes
    }
}

fn check_times(host: &Context, watch: &Watch) {
    let now = host.now();
    for v in host.guest_vcpus() {
        let times = host.run_times(v);
        let sum = times.running_ns + times.runnable_ns + times.blocked_ns + times.offline_ns;
        assert_eq!(sum, now, "runstates sum to the time elapsed");
        let still = if host.is_current(v) { now - watch.since[v.index()] } else { 0 };
        assert_eq!(
            times.running_ns,
            watch.gotten[v.index()] + still,
            "the trace tells the same running time"
        );
    }
    let (mut total, mut idle_total) = (0, 0);
    for p in (0..host.pcpu_count()).map(PcpuId) {
        let (run, idle, overhead) = host.pcpu_times(p);
        assert_eq!(run + idle + overhead, now, "run, idle and overhead sum to the time elapsed");
        assert!(run >= 0 && idle >= 0 && overhead >= 0);
        total += run;
        idle_total += idle;
    }
    let running: Span = host.guest_vcpus().map(|v| host.run_times(v).running_ns).sum();
    assert!(running >= total, "vCPUs that make progress are running");
    assert!(running <= Span::from(host.pcpu_count()) * now - idle_total, "no vCPU runs on an idle pCPU");
}

fn check_work_conserved(host: &Context) {
    for v in host.guest_vcpus().filter(|&v| host.runstate(v) == RunState::Runnable) {
        let idle = host.affinity(v).iter().find(|&p| host.is_idle(host.current(p)));
        assert_eq!(
            idle,
            None,
            "at {} ns {:?} waits while a pCPU that it may use idles",
            host.now(),
            host.name(v)
        );
    }
}

fn on_every_policy(mut check: impl FnMut(&'static str, &'static Generation)) {
    for policy in policies() {
        policy.generations.iter().for_each(|generation| check(policy.name, generation));
    }
}

/// The policy's own choices, made by the digits of `choice`.
fn global_choices(generation: &Generation, mut choice: u64) -> Params {
    let mut params = Params::new();
    for spec in generation.params.iter().filter(|spec| spec.scope == Scope::Global) {
        if let ParamKind::Choice(words) = spec.kind {
            params.set(spec.name, ((choice % words.len() as u64) as i64).into());
            choice /= words.len() as u64;
        }
    }
    params
}

fn run(policy: &str, generation: &Generation, case: &Case, work_conserving: bool) -> Vec<u8> {
    let check = Check { case, work_conserving, affinity: generation.hard_affinity };
    let global = global_choices(generation, case.choice);
    vcpulab_sched::with(policy, generation.name, &global, case.config.pcpus, check).expect("it is registered")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Time is conserved, nobody runs twice, no wake-up is lost, and a second run gives the same bytes.
    #[test]
    fn time_is_conserved_and_runs_repeat(case in case(Allow { affinity: true, actions: true, costs: true })) {
        on_every_policy(|policy, generation| {
            let trace = run(policy, generation, &case, false);
            assert_eq!(trace, run(policy, generation, &case, false), "{policy} {}: same bytes", generation.name);
        });
    }

    /// Uncapped and unpinned, no pCPU idles while a vCPU waits.
    #[test]
    fn work_is_conserved(case in case(Allow { affinity: false, actions: false, costs: false })) {
        on_every_policy(|policy, generation| {
            if generation.work_conserving {
                run(policy, generation, &case, true);
            }
        });
    }
}

/// A vCPU whose slice is over has to go on elsewhere if another one can run nowhere but here.
#[test]
fn round_robin_makes_room_for_a_pinned_vcpu() {
    let hog = Program { steps: vec![Step::Hog], repeat: false };
    let vcpu = |affinity| VcpuConfig { start: Some(0), affinity };
    let vcpus = vec![vcpu(None), vcpu(Some(CpuMask::only(PcpuId(0))))];
    let domains = vec![DomainConfig { number: 1, params: Params::new(), vcpus }];
    let config = HostConfig { pcpus: 2, domains, ..HostConfig::default() };
    // From the end of the first slice on: until then the free one runs where the pinned one waits.
    let case = Case { config, programs: vec![hog.clone(), hog], end: END, choice: 0 };
    let (policy, generation) =
        ("round-robin", &policies().iter().find(|p| p.name == "round-robin").unwrap().generations[0]);
    let trace = run(policy, generation, &case, true);
    assert_eq!(trace.len(), 3 * 11, "three switches: the free one starts, makes room, and goes on elsewhere");
}

/// Runs hogs under given domain parameters and returns what each domain got in each window, ns.
struct Shares<'a> {
    params: &'a [Params],
    pcpus: u32,
    vcpus_each: usize,
    window: Span,
    windows: usize,
}

impl Runner for Shares<'_> {
    type Out = Vec<Vec<Span>>;

    fn run<S: Scheduler>(self, scheduler: S) -> Self::Out {
        let mut programs = Programs::default();
        let count = self.params.len() * self.vcpus_each;
        for i in 0..count {
            programs.set(VcpuId(self.pcpus + i as u32), Program { steps: vec![Step::Hog], repeat: false });
        }
        let domains = self.params.iter().enumerate().map(|(i, params)| DomainConfig {
            number: i as i64 + 1,
            params: params.clone(),
            vcpus: vec![VcpuConfig { start: Some(0), affinity: None }; self.vcpus_each],
        });
        let config = HostConfig { pcpus: self.pcpus, domains: domains.collect(), ..HostConfig::default() };
        let mut host = Host::new(&config, scheduler, programs, ()).unwrap();
        let gotten = |host: &Context| -> Vec<Span> {
            let of = |d| host.vcpus_of(DomId(d)).map(|v| host.run_times(v).running_ns).sum();
            (0..host.domain_count() as u32).map(of).collect()
        };
        let mut before = vec![0; self.params.len()];
        (1..=self.windows as i64)
            .map(|k| {
                host.run_until(k * self.window).unwrap();
                let now = gotten(host.context());
                let got = now.iter().zip(&before).map(|(now, before)| now - before).collect();
                before = now;
                got
            })
            .collect()
    }
}

fn has(generation: &Generation, name: &str) -> bool {
    generation.params.iter().any(|spec| spec.scope == Scope::Domain && spec.name == name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(25))]

    /// A domain never gets more than its cap in any window of a second, but for what it had saved and what runs on
    /// until the accounting notices (one period of credits saved and one overrun for each vCPU), and for rounding up to
    /// whole credits, of 1 ms at most, in each of the 34 periods of 30 ms that the second touches.
    #[test]
    fn caps_hold(caps in prop::collection::vec(5..95i64, 1..4), pcpus in 1..3u32, vcpus_each in 1..3usize) {
        on_every_policy(|policy, generation| {
            let Some(spec) = generation.params.iter().find(|spec| spec.name == "cap") else { return };
            assert!(matches!(spec.kind, ParamKind::Int { .. }) && spec.scope == Scope::Domain);
            let params: Vec<Params> = caps.iter().map(|&cap| Params::new().with("cap", cap)).collect();
            let shares = Shares { params: &params, pcpus, vcpus_each, window: 1000 * MS, windows: 5 };
            let windows = vcpulab_sched::with(policy, generation.name, &Params::new(), pcpus, shares).unwrap();
            for got in windows {
                for (&cap, got) in caps.iter().zip(got) {
                    let most = cap * 10 * MS + vcpus_each as i64 * (2 * 30 + 34) * MS;
                    assert!(got <= most, "{policy} {}: cap {cap} % got {got} ns in a second", generation.name);
                }
            }
        });
    }

    /// Hogs on one pCPU share it by weight, within a twentieth of it over twenty seconds. Not where a release samples
    /// who runs at each tick instead of measuring time: there more weight can even mean less time.
    #[test]
    fn weights_divide_a_pcpu(weights in prop::collection::vec(64..1024i64, 2..4)) {
        on_every_policy(|policy, generation| {
            // SEDF's weight is of another kind: its reservations by weight leave a fixed part of each pCPU free.
            let samples = policy == "credit" && generation.name.starts_with("xen3");
            if samples || policy == "sedf" || !has(generation, "weight") {
                return;
            }
            let params: Vec<Params> = weights.iter().map(|&weight| Params::new().with("weight", weight)).collect();
            let shares = Shares { params: &params, pcpus: 1, vcpus_each: 1, window: 20_000 * MS, windows: 2 };
            let windows = vcpulab_sched::with(policy, generation.name, &Params::new(), 1, shares).unwrap();
            let (all, weight_sum) = (windows[1].iter().sum::<i64>() as f64, weights.iter().sum::<i64>() as f64);
            for (&weight, &got) in weights.iter().zip(&windows[1]) {
                let (share, fair) = (got as f64 / all, weight as f64 / weight_sum);
                let fits = (share - fair).abs() < 0.05;
                assert!(fits, "{policy} {}: {weights:?}: {share:.3} for {fair:.3}", generation.name);
            }
        });
    }
}
