//! Properties that hold for both policies, for any sequence of events.

use proptest::prelude::*;
use vcpulab_host::{Class, GroupConfig, GroupId, PcpuId, Span, Time};

use super::cfs_rq::Kind;
use super::task_group::Throttle;
use super::{Bandwidth, Cfs, Eevdf, Fair, Flavor, Settings, TaskId, Tuned, cfs, eevdf};

const CPU: PcpuId = PcpuId(0);

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(usize),
    Block,
    Yield,
    Nothing,
    /// A waiting task is paused.
    Pause(usize),
    /// A task joins the group at this place, or the root group.
    Join(usize, usize),
    /// A limit is taken away, or comes back.
    Lift(usize),
    Limit(usize),
}

fn event() -> impl Strategy<Value = (i64, Event)> {
    let kind = prop_oneof![
        (0usize..8).prop_map(Event::Wake),
        Just(Event::Block),
        Just(Event::Yield),
        Just(Event::Nothing)
    ];
    (0..3_000_000i64, kind)
}

/// Events that also change groups and limits.
fn change() -> impl Strategy<Value = (i64, Event)> {
    let kind = prop_oneof![
        (0usize..8).prop_map(Event::Wake),
        (0usize..8).prop_map(Event::Wake),
        Just(Event::Block),
        (0usize..8).prop_map(Event::Pause),
        (0usize..8, 0usize..4).prop_map(|(task, group)| Event::Join(task, group)),
        (0usize..2).prop_map(Event::Lift),
        (0usize..2).prop_map(Event::Limit),
        (0usize..2).prop_map(Event::Limit),
    ];
    (0..6_000_000i64, kind)
}

/// A host of one CPU, driven by its own ticks and refills and by given events.
struct Driven<F: Flavor> {
    fair: Fair<F>,
    now: Time,
    tick: Time,
    /// The groups with a limit, the second one in the first.
    limited: [GroupId; 2],
    /// Time at which the running task returns to user mode, where a limit stops it.
    returns: Option<Time>,
    tasks: Vec<TaskId>,
    awake: Vec<bool>,
    ran: Vec<Span>,
}

/// The tasks in the limited group are the last ones.
const FIRST_LIMITED: usize = 5;

const QUOTA: Span = Span::from_ms(10);
const PERIOD: Span = Span::from_ms(50);

/// Time that a chosen task takes to return to user mode.
const RETURN: Span = Span::from_us(3);

/// The limits of the outer and the inner limited group.
const LIMITS: [Bandwidth; 2] = [
    Bandwidth { quota: QUOTA, period: PERIOD, burst: Span::ZERO },
    Bandwidth { quota: Span::from_ms(5), period: Span::from_ms(30), burst: Span::ZERO },
];

impl<F: Flavor> Driven<F> {
    fn new(flavor: F) -> Self {
        let mut fair = Fair::new(flavor, 1, Settings::DEFAULT);
        let outer = fair.add_group(&GroupConfig { weight: 200, ..GroupConfig::NEW });
        let inner = fair.add_group(&GroupConfig { parent: Some(outer), ..GroupConfig::NEW });
        let mut parent = outer;
        let limited = LIMITS.map(|Bandwidth { quota, period, .. }| {
            let config = GroupConfig { parent: Some(parent), quota: Some(quota), period, ..GroupConfig::NEW };
            parent = fair.add_group(&config);
            parent
        });
        let of = [(None, 0), (None, 5), (Some(outer), 0), (Some(inner), -5), (Some(inner), 0)];
        let of = of.into_iter().chain([0, 0, 1].map(|place| (Some(limited[place]), 0)));
        let tasks: Vec<_> = of.map(|(group, nice)| fair.add_task(CPU, group, Class::Other, nice)).collect();
        let (now, tick, count) = (Time::ZERO, Time::ZERO + Settings::DEFAULT.tick, tasks.len());
        let (awake, ran) = (vec![false; count], vec![Span::ZERO; count]);
        Driven { fair, now, tick, limited, returns: None, tasks, awake, ran }
    }

    fn running(&self) -> Option<usize> {
        self.fair.curr(CPU).map(|task| self.tasks.iter().position(|&t| t == task).expect("one of them"))
    }

    /// Lets time pass, up to the next tick, refill or end of a request at most.
    fn pass(&mut self, until: Time) {
        if let Some(running) = self.running() {
            self.ran[running] += until - self.now;
        }
        self.now = until;
    }

    fn decide(&mut self) {
        let chosen = self.fair.pick_next_task(self.now, CPU);
        let chosen = chosen.map(|task| self.tasks.iter().position(|&t| t == task).expect("one of them"));
        match chosen {
            Some(task) => assert!(self.awake[task], "what sleeps is not run"),
            None => {
                let group = |task: TaskId| self.fair.tasks[task].group;
                let limited = |task| group(task).is_some_and(|group| self.limited.contains(&group));
                let mut waiting = self.tasks.iter().zip(&self.awake).filter(|(_, awake)| **awake);
                assert!(waiting.all(|(&task, _)| limited(task)), "nobody waits beside an idle CPU");
            }
        }
        assert_eq!(self.running(), chosen);
    }

    /// Takes the decision that an event asked for, and notes whether a limit will stop the running task.
    fn serve(&mut self) {
        if self.fair.need_resched(CPU) {
            self.returns = None;
            self.decide();
        }
        let stops = self.fair.throttle_work_cpus().contains(CPU);
        self.returns = stops.then(|| self.returns.unwrap_or(self.now + RETURN));
    }

    fn advance(&mut self, by: Span) {
        let end = self.now + by;
        loop {
            let refill = |group| self.fair.period_timer_at(group).map(|at| (at, group));
            let refill = self.limited.into_iter().filter_map(refill).min();
            let request_end = self.fair.hrtick_at(CPU);
            let timers = [refill.map(|(at, _)| at), self.returns, request_end];
            let next = timers.into_iter().flatten().fold(self.tick, Time::min).max(self.now);
            if next > end {
                break;
            }
            self.pass(next);
            match refill {
                Some((at, group)) if at == next => self.fair.period_timer(next, group),
                _ if self.returns == Some(next) => {
                    self.returns = None;
                    if self.fair.throttle_task(next, CPU) {
                        self.decide();
                    }
                }
                _ if request_end == Some(next) => self.fair.hrtick(next, CPU),
                _ => {
                    self.tick += Settings::DEFAULT.tick;
                    self.fair.task_tick(next, CPU);
                }
            }
            self.serve();
        }
        self.pass(end);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Wake(task) if !self.awake[task] => {
                self.awake[task] = true;
                self.fair.wake(self.now, CPU, self.tasks[task]);
            }
            Event::Block => {
                if let Some(running) = self.running() {
                    self.awake[running] = false;
                    self.fair.block(self.now, CPU);
                    self.decide();
                }
            }
            Event::Yield if self.running().is_some() => {
                self.fair.yield_task(self.now, CPU);
                self.decide();
            }
            Event::Pause(task) if self.awake[task] && self.running() != Some(task) => {
                self.awake[task] = false;
                self.fair.dequeue_task(self.now, self.tasks[task], true);
            }
            Event::Join(task, place) => {
                self.fair.move_to_group(self.now, self.tasks[task], self.limited.get(place).copied());
            }
            Event::Lift(place) => self.fair.set_bandwidth(self.now, self.limited[place], None),
            Event::Limit(place) => {
                self.fair.set_bandwidth(self.now, self.limited[place], Some(LIMITS[place]));
            }
            _ => {}
        }
        self.serve();
    }

    /// Checks counts, sums and lists of all queues against the state of tasks.
    fn check(&self) {
        let fair = &self.fair;
        let has_left = |q| fair.cfs_rqs[q].throttled && fair.flavor.throttle() == Throttle::Queue;
        for q in fair.cfs_rqs.ids() {
            let cfs_rq = &fair.cfs_rqs[q];
            let queued = || fair.entities.iter().filter(|entity| entity.cfs_rq == q && entity.on_rq);
            assert_eq!(cfs_rq.nr_running as usize, queued().count());
            assert_eq!(cfs_rq.load, queued().map(|entity| entity.load.weight).sum::<u64>());
            let below = |entity: &super::cfs_rq::Entity<F::Entity>| match entity.kind {
                Kind::Task(_) => 1,
                Kind::Group(own) if has_left(own) => 0,
                Kind::Group(own) => fair.cfs_rqs[own].h_nr_running,
            };
            assert_eq!(cfs_rq.h_nr_running, queued().map(below).sum::<u32>());
            let above = cfs_rq.group.map(|(_, entity)| fair.entities[entity].cfs_rq);
            let around = above.map_or(0, |above| fair.cfs_rqs[above].throttle_count);
            assert_eq!(cfs_rq.throttle_count, around + u32::from(cfs_rq.throttled));
            assert!(cfs_rq.throttle_count > 0 || cfs_rq.throttled_limbo.is_empty());
            let waiting = cfs_rq.group.and_then(|(group, _)| fair.groups[group].cfs_bandwidth.as_ref());
            let listed = waiting.is_some_and(|limit| limit.throttled_cfs_rqs.contains(&q));
            assert_eq!(cfs_rq.throttled, listed);
        }
        for (&task, &awake) in self.tasks.iter().zip(&self.awake) {
            let super::cfs_rq::Task { entity, throttled, .. } = fair.tasks[task];
            let entity = &fair.entities[entity];
            assert_eq!(fair.is_queued(task), awake);
            assert_eq!(fair.cfs_rqs[entity.cfs_rq].throttled_limbo.contains(&task), throttled);
            assert!(!(throttled && entity.on_rq));
        }
    }
}

fn holds<F: Flavor>(flavor: F, events: &[(i64, Event)]) {
    let mut host = Driven::new(flavor);
    for &(after, event) in events {
        host.advance(Span::from_ns(after));
        host.happens(event);
        host.check();
    }
    for (of, Bandwidth { quota, period, .. }) in [FIRST_LIMITED, FIRST_LIMITED + 2].into_iter().zip(LIMITS) {
        let limited: Span = host.ran[of..].iter().fold(Span::ZERO, |sum, &ran| sum + ran);
        let periods = (host.now - Time::ZERO) / period + 2;
        // What is used beyond the quota, up to a tick and until each task has left the kernel, is owed.
        let overrun = Settings::DEFAULT.tick + 3 * RETURN;
        assert!(limited <= periods * quota + overrun, "{limited:?} in {periods} periods");
    }
}

/// Groups and limits change; at the end every task that is awake gets CPU time.
fn survives<F: Flavor + std::fmt::Debug>(flavor: F, events: &[(i64, Event)]) {
    let mut host = Driven::new(flavor.clone());
    for &(after, event) in events {
        host.advance(Span::from_ns(after));
        host.happens(event);
        host.check();
    }
    let before = host.ran.clone();
    host.advance(Span::from_secs(2));
    host.check();
    for (task, before) in before.into_iter().enumerate() {
        assert_eq!(host.ran[task] > before, host.awake[task], "task {task} under {flavor:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits_beside_an_idle_cpu_and_limits_hold(events in prop::collection::vec(event(), 1..300)) {
        for &(_, rules) in Cfs::GENERATIONS {
            holds(Cfs::scaled(rules, 1), &events);
        }
        for &(_, rules) in Eevdf::GENERATIONS {
            holds(Eevdf::with_base_slice(rules, Span::from_us(700)), &events);
        }
    }

    #[test]
    fn nobody_is_forgotten_when_groups_and_limits_change(events in prop::collection::vec(change(), 1..100)) {
        for &(_, rules) in Cfs::GENERATIONS {
            survives(Cfs::scaled(rules, 1), &events);
        }
        for &(_, rules) in Eevdf::GENERATIONS {
            survives(Eevdf::with_base_slice(rules, Span::from_us(700)), &events);
        }
    }
}

/// Hogs get CPU time by the weights of their groups.
#[test]
fn shares_follow_weights() {
    fn shares<F: Flavor>(flavor: F) {
        let mut host = Driven::new(flavor);
        for task in [0, 1, 3, 4] {
            host.happens(Event::Wake(task));
        }
        host.advance(Span::from_secs(20));
        // The root: 1024 and 335 and the group's 2048. In the group: 3121 and 1024.
        let parts = [1024.0, 335.0, 2048.0 * 3121.0 / 4145.0, 2048.0 * 1024.0 / 4145.0];
        for (task, part) in [0, 1, 3, 4].into_iter().zip(parts) {
            let share = host.ran[task].ns() as f64 / 20e9;
            let expected = part / (1024.0 + 335.0 + 2048.0);
            assert!((share - expected).abs() < 0.005, "task {task}: {share} instead of {expected}");
        }
    }
    shares(Cfs::scaled(cfs::Rules::V6_1, 1));
    for &(_, rules) in Eevdf::GENERATIONS {
        shares(Eevdf::with_base_slice(rules, Span::from_us(700)));
    }
}

/// `SCHED_IDLE` gives way at once, and `SCHED_BATCH` preempts nobody as it wakes.
#[test]
fn classes_decide_who_preempts() {
    fn preempts<F: Flavor>(flavor: F, running: Class, woken: Class) -> bool {
        let mut fair = Fair::new(flavor, 1, Settings::DEFAULT);
        let [first, second] = [running, woken].map(|class| fair.add_task(CPU, None, class, 0));
        fair.wake(Time::ZERO, CPU, first);
        assert_eq!(fair.pick_next_task(Time::ZERO, CPU), Some(first));
        let soon = Time::ZERO + Span::from_us(3900);
        fair.wake(soon, CPU, second);
        let flagged = fair.need_resched(CPU);
        flagged && fair.pick_next_task(soon, CPU) == Some(second)
    }
    for preempts in [
        |running, woken| preempts(Cfs::scaled(cfs::Rules::V6_1, 1), running, woken),
        |running, woken| {
            preempts(Eevdf::with_base_slice(eevdf::Rules::V6_12, Span::from_ms(3)), running, woken)
        },
    ] {
        assert!(preempts(Class::Idle, Class::Other));
        assert!(!preempts(Class::Other, Class::Idle));
    }
    assert!(
        preempts(Cfs::scaled(cfs::Rules::V6_1, 1), Class::Other, Class::Other),
        "it is behind by more than the granularity"
    );
    assert!(!preempts(Cfs::scaled(cfs::Rules::V6_1, 1), Class::Other, Class::Batch));
}

/// The group of a vCPU that was never on a CPU has no queue there; the VM's group may have one that is throttled.
#[test]
fn no_task_is_moved_to_a_cpu_on_which_its_vm_is_throttled() {
    let flavor = Eevdf::with_base_slice(eevdf::Rules::V6_12, Span::from_us(1400));
    let other = PcpuId(1);
    let mut fair = Fair::new(flavor, 2, Settings::DEFAULT);
    let limit = GroupConfig { quota: Some(QUOTA), period: PERIOD, ..GroupConfig::NEW };
    let vm = fair.add_group(&limit);
    let vcpus = [CPU, other].map(|cpu| {
        let group = fair.add_group(&GroupConfig { parent: Some(vm), ..GroupConfig::NEW });
        fair.add_task(cpu, Some(group), Class::Other, 0)
    });
    fair.wake(Time::ZERO, other, vcpus[1]);
    assert_eq!(fair.pick_next_task(Time::ZERO, other), Some(vcpus[1]));
    // The second vCPU takes almost all of the quota, and the first one what is left.
    let soon = Time::ZERO + QUOTA - Span::from_us(100);
    fair.wake(soon, CPU, vcpus[0]);
    assert!(fair.can_migrate(vcpus[0], other));
    let late = Time::ZERO + QUOTA + Span::from_ms(1);
    assert_eq!(fair.pick_next_task(late, other), None, "its VM is throttled there");
    assert!(!fair.is_throttled(vcpus[0]) && fair.is_throttled(vcpus[1]));
    assert!(!fair.can_migrate(vcpus[0], other));
}

const OTHER: PcpuId = PcpuId(1);

/// Two CPUs: the first task of the first CPU has run for longer than the second; the third task is on the other CPU.
fn one_ahead(rules: eevdf::Rules) -> (Fair<Eevdf>, [TaskId; 3]) {
    let mut fair = Fair::new(Eevdf::with_base_slice(rules, Span::from_us(1400)), 2, Settings::DEFAULT);
    let tasks = [CPU, CPU, OTHER].map(|cpu| fair.add_task(cpu, None, Class::Other, 0));
    tasks[..2].iter().for_each(|&task| fair.wake(Time::ZERO, CPU, task));
    assert_eq!(fair.pick_next_task(Time::ZERO, CPU), Some(tasks[0]));
    fair.task_tick(Time::ZERO + Span::from_ms(1), CPU);
    (fair, tasks)
}

#[test]
fn a_task_that_is_not_eligible_stays_if_others_are_queued_on_the_other_cpu() {
    for rules in [eevdf::Rules::V6_17, eevdf::Rules::V7_3] {
        let (mut fair, [ahead, behind, third]) = one_ahead(rules);
        let kept = |fair: &Fair<Eevdf>| [ahead, behind].map(|task| fair.is_kept(task, OTHER));
        assert_eq!(kept(&fair), [false; 2], "nothing is queued there");
        fair.wake(Time::ZERO + Span::from_ms(1), OTHER, third);
        assert_eq!(kept(&fair), [true, false], "{rules:?}");
    }
}

/// The group of a libvirt vCPU has one thread, which is always eligible there. From 7.3 on all threads are on one queue.
#[test]
fn a_vcpu_is_eligible_in_its_own_group() {
    for (rules, kept) in [(eevdf::Rules::V7_2, false), (eevdf::Rules::V7_3, true)] {
        let mut fair = Fair::new(Eevdf::with_base_slice(rules, Span::from_us(1400)), 2, Settings::DEFAULT);
        let vcpus = [CPU, CPU, OTHER].map(|cpu| {
            let group = fair.add_group(&GroupConfig::NEW);
            fair.add_task(cpu, Some(group), Class::Other, 0)
        });
        vcpus[..2].iter().for_each(|&task| fair.wake(Time::ZERO, CPU, task));
        fair.pick_next_task(Time::ZERO, CPU);
        fair.task_tick(Time::ZERO + Span::from_ms(1), CPU);
        fair.wake(Time::ZERO + Span::from_ms(1), OTHER, vcpus[2]);
        assert_eq!(fair.is_kept(vcpus[0], OTHER), kept, "{rules:?}");
    }
}

#[test]
fn a_task_that_blocked_and_still_competes_does_so_on_the_cpu_it_is_moved_to() {
    for rules in [eevdf::Rules::V6_12, eevdf::Rules::V7_2, eevdf::Rules::V7_3] {
        let (mut fair, [ahead, behind, third]) = one_ahead(rules);
        let now = Time::ZERO + Span::from_ms(1);
        fair.wake(now, OTHER, third);
        assert_eq!(fair.pick_next_task(now, OTHER), Some(third));
        fair.block(now, CPU);
        assert!(fair.is_delayed(ahead), "{rules:?}");
        assert_eq!(fair.pick_next_task(now, CPU), Some(behind));
        fair.move_delayed(now, OTHER, ahead);
        assert!(fair.is_delayed(ahead) && !fair.is_queued(ahead));
        assert_eq!([CPU, OTHER].map(|cpu| fair.h_nr_running(cpu)), [1, 2]);
        assert_eq!(fair.task_cpu(ahead), OTHER);
        assert!(fair.finished_delays.is_empty());
        // Nobody else is left there: the decision ends the delay.
        fair.block(now, OTHER);
        assert_eq!(fair.pick_next_task(now, OTHER), None, "{rules:?}");
        assert!(!fair.is_delayed(ahead) && fair.finished_delays.contains(&ahead));
    }
}
