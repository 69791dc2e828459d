//! Properties that hold for both policies, for any sequence of events.

use proptest::prelude::*;
use vcpulab_host::{Class, GroupConfig, GroupId, PcpuId, Span, Time};

use super::{Cfs, Eevdf, Fair, Flavor, Settings, TaskId, Tuned, cfs, eevdf};

const CPU: PcpuId = PcpuId(0);

#[derive(Clone, Copy, Debug)]
enum Event {
    Wake(usize),
    Block,
    Yield,
    Nothing,
}

fn event() -> impl Strategy<Value = (i64, Event)> {
    let kind = prop_oneof![
        (0usize..7).prop_map(Event::Wake),
        Just(Event::Block),
        Just(Event::Yield),
        Just(Event::Nothing)
    ];
    (0..3_000_000i64, kind)
}

/// A host of one CPU, driven by its own ticks and refills and by given events.
struct Driven<F: Flavor> {
    fair: Fair<F>,
    now: Time,
    tick: Time,
    limited: GroupId,
    tasks: Vec<TaskId>,
    awake: Vec<bool>,
    ran: Vec<Span>,
}

/// The tasks in the limited group are the last ones.
const FIRST_LIMITED: usize = 5;

const QUOTA: Span = Span::from_ms(10);
const PERIOD: Span = Span::from_ms(50);

impl<F: Flavor> Driven<F> {
    fn new(flavor: F) -> Self {
        let mut fair = Fair::new(flavor, 1, Settings::DEFAULT);
        let outer = fair.add_group(&GroupConfig { weight: 200, ..GroupConfig::NEW });
        let inner = fair.add_group(&GroupConfig { parent: Some(outer), ..GroupConfig::NEW });
        let limit =
            GroupConfig { parent: Some(outer), quota: Some(QUOTA), period: PERIOD, ..GroupConfig::NEW };
        let limited = fair.add_group(&limit);
        let of = [(None, 0), (None, 5), (Some(outer), 0), (Some(inner), -5), (Some(inner), 0)];
        let of = of.into_iter().chain([(Some(limited), 0), (Some(limited), 0)]);
        let tasks: Vec<_> = of.map(|(group, nice)| fair.add_task(CPU, group, Class::Other, nice)).collect();
        let (now, tick, count) = (Time::ZERO, Time::ZERO + Settings::DEFAULT.tick, tasks.len());
        Driven { fair, now, tick, limited, tasks, awake: vec![false; count], ran: vec![Span::ZERO; count] }
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
            None => assert!(!self.awake[..FIRST_LIMITED].contains(&true), "nobody waits beside an idle CPU"),
        }
        assert_eq!(self.running(), chosen);
    }

    fn advance(&mut self, by: Span) {
        let end = self.now + by;
        loop {
            let refill = self.fair.period_timer_at(self.limited);
            let request_end = self.fair.hrtick_at(CPU);
            let timers = [refill, request_end].into_iter().flatten();
            let next = timers.fold(self.tick, Time::min).max(self.now);
            if next > end {
                break;
            }
            self.pass(next);
            if refill == Some(next) {
                self.fair.period_timer(next, self.limited);
            } else if request_end == Some(next) {
                self.fair.hrtick(next, CPU);
            } else {
                self.tick += Settings::DEFAULT.tick;
                self.fair.task_tick(next, CPU);
            }
            if self.fair.need_resched(CPU) {
                self.decide();
            }
        }
        self.pass(end);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Wake(task) if !self.awake[task] => {
                self.awake[task] = true;
                self.fair.wake(self.now, CPU, self.tasks[task]);
                if self.fair.need_resched(CPU) {
                    self.decide();
                }
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
            _ => {}
        }
    }
}

fn holds<F: Flavor>(flavor: F, events: &[(i64, Event)]) {
    let mut host = Driven::new(flavor);
    for &(after, event) in events {
        host.advance(Span::from_ns(after));
        host.happens(event);
    }
    let limited: Span = host.ran[FIRST_LIMITED..].iter().fold(Span::ZERO, |sum, &ran| sum + ran);
    let periods = (host.now - Time::ZERO) / PERIOD + 2;
    // What is used beyond the quota, up to a tick, is owed.
    assert!(limited <= periods * QUOTA + Settings::DEFAULT.tick, "{limited:?} in {periods} periods");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_waits_beside_an_idle_cpu_and_limits_hold(events in prop::collection::vec(event(), 1..300)) {
        for &(_, rules) in Cfs::GENERATIONS {
            holds(Cfs::scaled(rules, 1), &events);
        }
        for &(_, rules) in Eevdf::GENERATIONS {
            holds(Eevdf { base_slice: Span::from_us(700), rules }, &events);
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
        shares(Eevdf { base_slice: Span::from_us(700), rules });
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
            preempts(Eevdf { base_slice: Span::from_ms(3), rules: eevdf::Rules::V6_12 }, running, woken)
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
