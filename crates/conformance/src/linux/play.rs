//! What threads of a recording do once they run freely: their steps one after the other, and work that comes at recorded times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use vcpulab_host::program::Step;
use vcpulab_host::{Op, Span, Table, Time, VcpuId, WakeCause, World, WorldContext};

/// A thread has this work more; `None`: it begins with its steps.
pub type Event = (Time, VcpuId, Option<Span>);

/// What the threads do.
pub struct Play {
    players: Table<VcpuId, Player>,
    /// In the order of their times.
    events: Vec<Event>,
    next: usize,
    /// Those that sleep, and when their timers expire.
    asleep: BinaryHeap<Reverse<(Time, VcpuId)>>,
    /// How long a timer's interrupt takes: what expires meanwhile is awake, too, before anything is decided.
    interrupt: Span,
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

/// The sources of events, and of the ends of sleeps.
const EVENTS: usize = 0;
const TIMERS: usize = 1;

impl Play {
    /// The events may come in any order.
    pub fn new(players: Table<VcpuId, Player>, mut events: Vec<Event>, interrupt: Span) -> Self {
        events.sort_by_key(|&(at, ..)| at);
        Play { players, events, next: 0, asleep: BinaryHeap::new(), interrupt }
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
            if at > last + self.interrupt {
                break;
            }
            last = at;
        }
        ctx.set_source(TIMERS, last);
    }
}

impl World for Play {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(TIMERS + 1);
        self.wait(ctx);
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, source: usize) {
        if source == TIMERS {
            while let Some(&Reverse((at, v))) = self.asleep.peek()
                && at <= ctx.now()
            {
                self.asleep.pop();
                ctx.kick(v, WakeCause::Timer);
            }
            return self.set_timers(ctx);
        }
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

    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        let player = &mut self.players[v];
        match left + std::mem::take(&mut player.owed) {
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
    /// One that does these steps over and over, once it has begun.
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

/// What the demands of a recording do not tell: whether an interrupt fell into a run, which is longer by it. Each sleep is longer or
/// shorter by up to half of one.
#[derive(Clone)]
pub struct Noise {
    state: u64,
    interrupt: Span,
}

impl Noise {
    /// None for variant 0.
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
        DomainConfig, Host, HostConfig, HostState, Observer, Params, Pools, Switch, VcpuConfig,
    };

    /// When a hog was switched out.
    struct Preempted(Vec<Time>);

    impl Observer for Preempted {
        fn switched(&mut self, _host: &HostState, switch: Switch) {
            if switch.from == VcpuId(1) {
                self.0.push(switch.time);
            }
        }
    }

    /// When a hog is preempted that runs under CFS beside two sleepers whose timers expire at 13 ms, and so many µs later.
    fn preempted(apart: i64) -> Vec<i64> {
        let config = HostConfig {
            pcpus: 1,
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
        let play = Play::new(players.into_iter().collect(), begin, Span::from_us(10));
        let policy = vcpulab_sched::boxed("linux-cfs", "6.1", &Params::new(), 1).expect("it is there");
        let mut host =
            Host::new(&config, Pools::new(vec![policy]), play, Preempted(Vec::new())).expect("it is sound");
        host.run_until(Time::ZERO + Span::from_ms(14)).expect("it goes well");
        let (_, _, _, watch) = host.into_parts();
        watch.0.iter().map(|&at| (at - Time::ZERO).ns() / 1000).filter(|&us| us >= 13_000).collect()
    }

    #[test]
    fn what_expires_during_an_interrupt_is_awake_before_the_decision() {
        assert_eq!(preempted(8), [13_008]);
        assert_eq!(preempted(300), [13_000, 13_300]);
        assert_eq!(preempted(12)[0], 13_000);
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
