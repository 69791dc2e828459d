//! Lottery scheduling (Waldspurger and Weihl, 1994): a decision draws a ticket, and the domain that holds it runs.

use vcpulab_host::{
    Decision, DomId, HostRules, Params, PcpuId, PolicyContext, Rejected, Scheduler, Slice, Span, Table,
    VcpuId,
};

const SLICE: Span = Span::from_ms(10);

/// The policy.
#[derive(Clone, Debug)]
pub struct Lottery {
    random: SplitMix64,
    tickets: Table<DomId, u64>,
}

impl Lottery {
    /// The same seed draws the same tickets.
    pub fn new(seed: u64) -> Self {
        Lottery { random: SplitMix64(seed), tickets: Table::new() }
    }
}

impl Scheduler for Lottery {
    fn rules(&self) -> HostRules {
        HostRules::XEN_4_17
    }

    fn add_pcpu(&mut self, _ctx: &mut PolicyContext, _p: PcpuId) {}

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.tickets.resize(ctx.domain_count(), 256);
        self.tickets[d] = 256;
    }

    fn adjust(&mut self, _ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        match params.int("weight") {
            Some(weight) if weight < 0 => return Err(Rejected),
            Some(0) | None => {}
            Some(weight) => self.tickets[d] = weight as u64,
        }
        Ok(())
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let home = self.pick(ctx, v);
        ctx.set_processor(v, home);
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        let (home, allowed) = (ctx.processor(v), ctx.affinity(v));
        if allowed.contains(home) { home } else { allowed.first().expect("affinity is never empty") }
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        let allowed = *ctx.affinity(v);
        for p in allowed.iter() {
            if ctx.is_idle(ctx.current(p)) {
                ctx.raise_reschedule(p);
            }
        }
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        if ctx.is_current(v) {
            ctx.raise_reschedule(ctx.processor(v));
        }
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        let current = ctx.current(p);
        let mut ready: Vec<VcpuId> = ctx.pool_vcpus().filter(|&v| ctx.runnable(v)).collect();
        ready.sort_by_key(|&v| ctx.run_times(v).running_ns);
        // Of each domain, the vCPU that has run least.
        let mut first: Vec<VcpuId> = Vec::new();
        for v in ready {
            let may_run_here = ctx.affinity(v).contains(p) && (v == current || !ctx.is_current(v));
            if may_run_here && !first.iter().any(|&other| ctx.dom(other) == ctx.dom(v)) {
                first.push(v);
            }
        }
        let tickets = |v: VcpuId| self.tickets[ctx.dom(v)];
        let all: u64 = first.iter().map(|&v| tickets(v)).sum();
        if all == 0 {
            return Decision { next: ctx.idle(p), slice: Slice::Unlimited };
        }
        let mut ticket = self.random.below(all);
        let mut holders = first.into_iter();
        let winner = loop {
            let v = holders.next().expect("every ticket is somebody's");
            match ticket.checked_sub(tickets(v)) {
                Some(left) => ticket = left,
                None => break v,
            }
        };
        if winner != current && ctx.runnable(current) && !ctx.is_idle(current) {
            self.wake(ctx, current);
        }
        ctx.set_processor(winner, p);
        Decision { next: winner, slice: Slice::For(SLICE) }
    }
}

/// Random numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). A policy has its own
/// generator, so that a seed and a scenario say all that happens.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// An integer from 0 to `below` − 1.
    fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }
}
