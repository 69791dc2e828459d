//! CPU pools: several schedulers on one host, each with pCPUs and domains of its own.

use std::fmt;

use crate::{
    CpuMask, Decision, DomId, HostRules, Params, PcpuId, PolicyContext, PoolId, Rejected, Scheduler, Table,
    VcpuId,
};

/// The schedulers of a host's CPU pools, in the order of [`HostConfig::pools`](crate::HostConfig::pools). To each of them
/// its pool is the whole host.
///
/// A domain that moves to another pool comes there with default parameters, and may run on all its pCPUs, as the toolstack
/// does it. Of the host's own rules those of the pool's scheduler hold for the domains in it.
pub struct Pools<'s> {
    schedulers: Table<PoolId, Box<dyn Scheduler + 's>>,
    pool_of: Table<PcpuId, PoolId>,
}

impl<'s> Pools<'s> {
    /// The schedulers of the pools, put together.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(schedulers: Vec<Box<dyn Scheduler + 's>>) -> Self {
        assert!(!schedulers.is_empty(), "a host has a CPU pool");
        Pools { schedulers: schedulers.into(), pool_of: Table::new() }
    }

    /// Calls a hook of one pool's scheduler, to which the pool is the whole host. Code that executes in another pool is
    /// then taken to execute on its first pCPU.
    #[inline]
    fn within<R>(
        &mut self,
        ctx: &mut PolicyContext,
        pool: PoolId,
        hook: impl FnOnce(&mut (dyn Scheduler + 's), &mut PolicyContext) -> R,
    ) -> R {
        let outside = (ctx.state.enter_pool(pool), ctx.executing());
        if ctx.pool_of_pcpu(ctx.executing()) != pool {
            ctx.state.executing = ctx.first_pcpu();
        }
        let answer = hook(&mut *self.schedulers[pool], ctx);
        (ctx.state.pool, ctx.state.executing) = outside;
        answer
    }
}

fn pool_of(ctx: &PolicyContext, v: VcpuId) -> PoolId {
    if ctx.is_idle(v) { ctx.pool_of_pcpu(PcpuId(v.0)) } else { ctx.pool_of(ctx.dom(v)) }
}

impl Scheduler for Pools<'_> {
    fn rules(&self) -> HostRules {
        self.schedulers[PoolId(0)].rules()
    }

    fn pool_rules(&self) -> Vec<HostRules> {
        self.schedulers.iter().map(|scheduler| scheduler.rules()).collect()
    }

    fn add_pcpu(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        *self.pool_of.entry(p) = ctx.pool_of_pcpu(p);
        self.within(ctx, ctx.pool_of_pcpu(p), |scheduler, ctx| scheduler.add_pcpu(ctx, p));
    }

    fn add_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.within(ctx, ctx.pool_of(d), |scheduler, ctx| scheduler.add_domain(ctx, d));
    }

    fn insert(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.insert(ctx, v));
    }

    fn remove(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.remove(ctx, v));
    }

    fn remove_domain(&mut self, ctx: &mut PolicyContext, d: DomId) {
        self.within(ctx, ctx.pool_of(d), |scheduler, ctx| scheduler.remove_domain(ctx, d));
    }

    fn wake(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.wake(ctx, v));
    }

    fn sleep(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.sleep(ctx, v));
    }

    fn yielded(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.yielded(ctx, v));
    }

    fn schedule(&mut self, ctx: &mut PolicyContext, p: PcpuId) -> Decision {
        self.within(ctx, ctx.pool_of_pcpu(p), |scheduler, ctx| scheduler.schedule(ctx, p))
    }

    fn context_saved(&mut self, ctx: &mut PolicyContext, v: VcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.context_saved(ctx, v));
    }

    fn pick(&mut self, ctx: &mut PolicyContext, v: VcpuId) -> PcpuId {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.pick(ctx, v))
    }

    fn lock(&self, p: PcpuId) -> PcpuId {
        self.schedulers[self.pool_of[p]].lock(p)
    }

    fn contended(&self, ctx: &PolicyContext, p: PcpuId) -> bool {
        self.schedulers[self.pool_of[p]].contended(ctx, p)
    }

    fn migrate(&mut self, ctx: &mut PolicyContext, v: VcpuId, p: PcpuId) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.migrate(ctx, v, p));
    }

    /// The host has entered the pool of the timer.
    fn timer(&mut self, ctx: &mut PolicyContext, token: u32) {
        self.within(ctx, ctx.state.pool, |scheduler, ctx| scheduler.timer(ctx, token));
    }

    fn affinity(&mut self, ctx: &mut PolicyContext, v: VcpuId, mask: &CpuMask) {
        self.within(ctx, pool_of(ctx, v), |scheduler, ctx| scheduler.affinity(ctx, v, mask));
    }

    fn adjust(&mut self, ctx: &mut PolicyContext, d: DomId, params: &Params) -> Result<(), Rejected> {
        self.within(ctx, ctx.pool_of(d), |scheduler, ctx| scheduler.adjust(ctx, d, params))
    }

    /// The host has entered the pool that is meant.
    fn adjust_global(&mut self, ctx: &mut PolicyContext, params: &Params) -> Result<(), Rejected> {
        self.within(ctx, ctx.state.pool, |scheduler, ctx| scheduler.adjust_global(ctx, params))
    }

    fn dump(&self, ctx: &PolicyContext, out: &mut dyn fmt::Write) -> fmt::Result {
        self.schedulers.enumerate().try_for_each(|(pool, scheduler)| {
            let mut inside = ctx.clone();
            inside.state.enter_pool(pool);
            scheduler.dump(&inside, out)
        })
    }

    fn failure(&self) -> Option<(&'static str, String)> {
        self.schedulers.iter().find_map(|scheduler| scheduler.failure())
    }
}
