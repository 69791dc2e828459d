//! What threads of a recording do once they run freely: their steps one after the other, and work that comes at recorded times.

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

/// The source of all events.
const EVENTS: usize = 0;

impl Play {
    /// The events may come in any order.
    pub fn new(players: Table<VcpuId, Player>, mut events: Vec<Event>) -> Self {
        events.sort_by_key(|&(at, ..)| at);
        Play { players, events, next: 0 }
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

impl World for Play {
    fn start(&mut self, ctx: &mut WorldContext<'_>) {
        ctx.make_sources(EVENTS + 1);
        self.wait(ctx);
    }

    fn fire(&mut self, ctx: &mut WorldContext<'_>, _source: usize) {
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
            Span::ZERO if player.begun => player.step(ctx.now()),
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
                    return Op::Block(Some(now.saturating_add(span) + noise));
                }
                Step::Yield => return Op::Yield,
            }
        }
        Op::Block(None)
    }
}

/// What recordings of the same differ by: the phase of threads to each other.
#[derive(Clone)]
pub struct Noise(u64);

/// The most that a sleep is longer, ns.
const NOISE_NS: u64 = 1000;

impl Noise {
    /// None for variant 0.
    pub fn of(variant: u64, place: u64) -> Option<Self> {
        let seed = (variant << 32 | place).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (variant > 0).then_some(Noise(seed))
    }

    /// Marsaglia's xorshift.
    pub fn draw(&mut self) -> Span {
        for shift in [13, -7, 17] {
            self.0 ^= if shift > 0 { self.0 << shift } else { self.0 >> -shift };
        }
        Span::from_ns((self.0 % NOISE_NS).cast_signed())
    }
}
