//! Free execution of a recording's threads: their steps one after the other, and work that arrives at recorded times,
//! delayed by the kernel's ticks and wake-ups. (Switches are a cost of the host.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcpulab_host::program::Step;
use vcpulab_host::{Op, PcpuId, Span, Table, Time, VcpuId, WakeCause, World, WorldContext};

use super::overheads::Overheads;

/// A thread has this work more; `None`: it begins with its steps.
pub type Event = (Time, VcpuId, Option<Span>);

/// The threads and their work.
pub struct Play {
    players: Table<VcpuId, Player>,
    /// In the order of their times.
    events: Vec<Event>,
    next: usize,
    /// Sleeping threads by the times at which their timers expire.
    asleep: BinaryHeap<Reverse<(Time, VcpuId)>>,
    overheads: Overheads,
    tick: Span,
}

/// A thread.
#[derive(Clone, Default)]
pub struct Player {
    /// Work that came and was not done yet.
    owed: Span,
    begun: bool,
    steps: Vec<Step>,
    next: usize,
    noise: Option<Noise>,
}

/// The only CPU.
const CPU: PcpuId = PcpuId(0);

/// The sources of events, of the ends of sleeps, and of ticks.
const EVENTS: usize = 0;
const TIMERS: usize = 1;
const TICKS: usize = 2;

impl Play {
    /// Threads with these events, in any order, overheads of the kernel, and time between two ticks.
    pub fn new(
        players: Table<VcpuId, Player>,
        mut events: Vec<Event>,
        overheads: Overheads,
        tick: Span,
    ) -> Self {
        events.sort_by_key(|&(at, ..)| at);
        Play { players, events, next: 0, asleep: BinaryHeap::new(), overheads, tick }
    }

    /// The number of vCPUs, with the idle one.
    pub fn len(&self) -> usize {
        self.players.len()
    }

    fn wait(&self, ctx: &mut WorldContext<'_>) {
        if let Some(&(at, ..)) = self.events.get(self.next) {
            ctx.set_source(EVENTS, at);
        }
    }
}

impl Play {
    /// The next interrupt of timers ends as the last of those that it handles wakes its thread: the first that expires, and all
    /// that do while it handles others.
    fn set_timers(&self, ctx: &mut WorldContext<'_>) {
        let Some(&Reverse((first, _))) = self.asleep.peek() else { return };
        let mut due: Vec<Time> = self.asleep.iter().map(|Reverse((at, _))| *at).collect();
        due.sort_unstable();
        let mut last = first;
        for &at in due.get(1..).unwrap_or_default() {
            if at > last + self.overheads.timer {
                break;
            }
            last = at;
        }
        ctx.set_source(TIMERS, last);
    }

    /// Wakes the threads whose timers have expired; the running thread pays for it.
    fn expire(&mut self, ctx: &mut WorldContext<'_>) {
        let on = ctx.host().hypervisor_until(CPU);
        if on > ctx.now() {
            // Interrupts are off.
            return ctx.set_source(TIMERS, on);
        }
        while let Some(&Reverse((at, v))) = self.asleep.peek()
            && at <= ctx.now()
        {
            self.asleep.pop();
            ctx.charge(CPU, self.overheads.interrupt());
            ctx.kick(v, WakeCause::Timer);
        }
        self.set_timers(ctx);
    }

    fn begin(&mut self, ctx: &mut WorldContext<'_>) {
        while let Some(&(_, v, work)) = self.events.get(self.next).filter(|(at, ..)| *at <= ctx.now()) {
            let player = &mut self.players[v];
            match work {
                Some(work) => player.owed += work,
                None => player.begun = true,
            }
            self.next += 1;
            ctx.kick(v, WakeCause::Timer);
        }
        self.wait(ctx);
    }

    /// A tick of a CPU that is not idle takes its time.
    fn tick(&self, ctx: &mut WorldContext<'_>) {
        if !ctx.host().is_idle(ctx.host().executes(CPU)) {
            ctx.charge(CPU, self.overheads.tick);
        }
        ctx.set_source(TICKS, ctx.now() + self.tick);
    }
}

impl World for Play {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(TICKS + 1);
        ctx.set_source(TICKS, Time::ZERO + self.tick);
        self.wait(ctx);
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        match source {
            TIMERS => self.expire(ctx),
            TICKS => self.tick(ctx),
            _ => self.begin(ctx),
        }
    }

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let player = &mut self.players[v];
        match left.saturating_add(std::mem::take(&mut player.owed)) {
            Span::ZERO if player.begun => match player.step(ctx.now()) {
                Op::Block(Some(until)) => {
                    self.asleep.push(Reverse((until, v)));
                    self.set_timers(ctx);
                    Op::Block(None)
                }
                op => op,
            },
            Span::ZERO => Op::Block(None),
            work => Op::Run(work),
        }
    }
}

impl Player {
    /// A thread that repeats these steps once it has begun.
    pub fn new(steps: Vec<Step>, noise: Option<Noise>) -> Self {
        Player { steps, noise, ..Player::default() }
    }

    fn step(&mut self, now: Time) -> Op {
        for _ in 0..=self.steps.len() {
            let Some(&step) = self.steps.get(self.next) else {
                self.next = 0;
                continue;
            };
            self.next += 1;
            match step {
                Step::Run(Span::ZERO) => {}
                Step::Run(span) => return Op::Run(span),
                Step::Hog => return Op::HOG,
                Step::Block(span) => {
                    let noise = self.noise.as_mut().map_or(Span::ZERO, Noise::draw);
                    return Op::Block(Some(now.max(now.saturating_add(span) + noise)));
                }
                Step::Yield => return Op::Yield,
            }
        }
        Op::Block(None)
    }
}

/// Random part of a sleep, which the demands of a recording do not contain: duration of an interrupt, and of the time
/// with interrupts off as the sleep ended. Each sleep is longer or shorter by up to half an interrupt.
#[derive(Clone)]
pub struct Noise {
    state: u64,
    interrupt: Span,
}

impl Noise {
    /// The noise of a variant; variant 0 has no noise.
    pub fn of(variant: u64, place: u64, interrupt: Span) -> Option<Self> {
        let state = (variant << 32 | place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (variant > 0).then_some(Noise { state, interrupt })
    }

    /// Marsaglia's xorshift.
    pub fn draw(&mut self) -> Span {
        for shift in [13, -7, 17] {
            self.state ^= if shift > 0 { self.state << shift } else { self.state >> -shift };
        }
        let all = self.interrupt.ns().unsigned_abs() + 1;
        Span::from_ns((self.state % all).cast_signed()) - self.interrupt / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcpulab_host::{
        Costs, DomainConfig, Host, HostConfig, HostState, Observer, Params, Pools, Switch, VcpuConfig,
    };

    /// Times at which a hog was switched out and in, and at which other threads woke.
    #[derive(Default)]
    struct Hog([Vec<Time>; 3]);

    impl Observer for Hog {
        fn woke(&mut self, host: &HostState, _: VcpuId, _: WakeCause, _: Option<VcpuId>) {
            self.0[2].push(host.now());
        }

        fn switched(&mut self, _host: &HostState, switch: Switch) {
            for (times, v) in self.0.iter_mut().zip([switch.from, switch.to]) {
                if v == VcpuId(1) {
                    times.push(switch.time);
                }
            }
        }
    }

    /// Times at which a hog under CFS is preempted and continues beside two sleepers, and at which the sleepers wake:
    /// µs after 13 ms. Their timers expire at 13 ms and `apart` µs later. `overheads` are the µs of wake-ups, switches,
    /// timers and ticks (where switches take time, the one sleep begins that much later, the other twice as much).
    fn hog(apart: i64, overheads: [i64; 4]) -> [Vec<i64>; 3] {
        let overheads = Overheads::with_us(overheads);
        let config = HostConfig {
            pcpus: 1,
            costs: Costs { context_switch_ns: overheads.switch, ..Costs::ZERO },
            domains: vec![DomainConfig { vcpus: vec![VcpuConfig::default(); 3], ..DomainConfig::default() }],
            ..HostConfig::default()
        };
        let player = |steps: &[Step]| Player::new(steps.to_vec(), None);
        let works = Step::Run(Span::from_us(100));
        let players = [
            Player::default(),
            player(&[Step::Hog]),
            player(&[Step::Block(Span::from_ms(13)), works]),
            player(&[Step::Block(Span::from_us(13_000 + apart)), works]),
        ];
        let begin = [2, 3, 1].map(|v| (Time::ZERO, VcpuId(v), None)).to_vec();
        let play = Play::new(players.into_iter().collect(), begin, overheads, Span::from_ms(4));
        let policy = vcpulab_sched::boxed("linux-cfs", "6.1", &Params::new(), 1).expect("it is there");
        let mut host =
            Host::new(&config, Pools::new(vec![policy]), play, Hog::default()).expect("it is sound");
        host.run_until(Time::ZERO + Span::from_ms(17)).expect("it goes well");
        let (_, _, _, watch) = host.into_parts();
        let after = |times: Vec<Time>| {
            let us = times.into_iter().map(|at| (at - Time::ZERO).ns() / 1000 - 13_000);
            us.filter(|&us| us >= 0).collect()
        };
        watch.0.map(after)
    }

    #[test]
    fn what_expires_during_an_interrupt_is_awake_before_the_decision() {
        let preempted = |apart| hog(apart, [0, 0, 10, 0])[0].clone();
        assert_eq!(preempted(8), [8]);
        assert_eq!(preempted(300), [0, 300]);
        assert_eq!(preempted(12)[0], 0);
    }

    #[test]
    fn who_runs_pays_for_the_interrupt_that_wakes_another() {
        let goes_on = |overheads| hog(50, overheads)[1].clone();
        assert_eq!(goes_on([0, 0, 10, 0]), [200]);
        // A wake-up that preempts, an interrupt during the first run, a switch.
        assert_eq!(goes_on([15, 9, 10, 0]), [9 + 15 + 100 + 6 + 9 + 100]);
    }

    #[test]
    fn a_timer_that_expires_while_interrupts_are_off_wakes_once_they_are_on() {
        // The first wake-up and its switch are done at 24 µs.
        for (apart, wakes) in [(3, [9, 24]), (5, [9, 24]), (6, [9, 24]), (7, [9, 25]), (0, [18, 18])] {
            assert_eq!(hog(apart, [15, 9, 10, 0])[2], wakes, "{apart}");
        }
    }

    #[test]
    fn ticks_take_time() {
        let [_, without, _] = hog(3_000 - 60, [0, 0, 10, 0]);
        let [_, with, _] = hog(3_000 - 60, [0, 0, 10, 8]);
        // One at 16 ms is in the second run.
        assert_eq!((without, with), (vec![100, 3_040], vec![100, 3_048]));
    }

    #[test]
    fn noise_is_half_an_interrupt_either_way_at_most() {
        assert!(Noise::of(0, 1, Span::from_us(10)).is_none());
        let mut noise = Noise::of(3, 1, Span::from_us(10)).expect("a variant");
        let drawn: Vec<i64> = (0..1000).map(|_| noise.draw().ns()).collect();
        assert!(drawn.iter().all(|ns| ns.abs() <= 5000));
        assert!(drawn.iter().any(|&ns| ns < -4500) && drawn.iter().any(|&ns| ns > 4500));
        assert!(drawn.iter().sum::<i64>().abs() < 1000 * 400);
    }
}
