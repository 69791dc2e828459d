//! Where the domains' CPU time goes by layers: exactly, and as a profiler that samples would see it.
//!
//! The *truth* is kept all the time: every piece of work is told by layer when it is chosen, and counted as far as it was
//! done. The *profiler* does what Xenoprof does: after so many busy cycles of a pCPU its performance counter interrupts
//! (which takes time of the hypervisor), and the sample is put down to whatever is found at work there.

use vcpulab_host::{Context, NEVER, PcpuId, Span, Time, VcpuId, WorldContext};

use super::Machine;
use crate::config::ProfilerConfig;

/// The piece of work that a vCPU is at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    layers: Layers,
    since: Time,
}

impl Share {
    /// Work begun now.
    pub fn begun(layers: Layers, now: Time) -> Self {
        Share { layers, since: now }
    }

    /// What of it was done, `left` not. (A domain that begins anew leaves work undone.)
    pub fn done(&self, left: Span, now: Time) -> Layers {
        self.layers.first(self.done_ns(left, now))
    }

    fn done_ns(&self, left: Span, now: Time) -> Span {
        (self.layers.sum() - left).min(now - self.since)
    }
}

/// What a sample can find.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Domain(usize, Layer),
    /// The hypervisor decides, switches, or takes an interrupt.
    Overhead,
    /// A cold cache is being filled again.
    Refill,
}

/// What the samples found since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Samples {
    /// By domain and layer.
    pub domains: Vec<[u64; 3]>,
    /// The hypervisor's own decisions, switches and interrupts.
    pub overhead: u64,
    /// Cold caches being filled again.
    pub refill: u64,
}

impl Samples {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.domains.iter().flatten().sum::<u64>() + self.overhead + self.refill
    }

    fn add(&mut self, found: Found) {
        match found {
            Found::Domain(guest, layer) => self.domains[guest][layer as usize] += 1,
            Found::Overhead => self.overhead += 1,
            Found::Refill => self.refill += 1,
        }
    }
}

/// The profiler.
#[derive(Clone, Debug)]
pub(super) struct Profiler {
    config: ProfilerConfig,
    /// The source of the first pCPU's counter; those of the others follow.
    first_source: usize,
    /// Busy time at which each pCPU's counter interrupts next, ns.
    next: Vec<Span>,
    samples: Samples,
}

impl Profiler {
    /// Its counters begin at 0.
    pub fn new(config: ProfilerConfig, first_source: usize, guests: usize) -> Self {
        let samples = Samples { domains: vec![[0; 3]; guests], ..Samples::default() };
        Profiler { config, first_source, next: vec![config.period_ns; config.pcpus as usize], samples }
    }
}

impl Machine {
    /// CPU time of a guest by layer since the start, ns: together the time in which its vCPUs made progress.
    pub fn layers(&self, host: &Context, guest: usize) -> Layers {
        let mut layers = self.guests[guest].layers;
        let own = (0..).zip(&self.vcpus).filter_map(|(v, vcpu)| Some((VcpuId(v), vcpu.as_ref()?)));
        for (v, vcpu) in own.filter(|(_, vcpu)| vcpu.guest == guest && vcpu.at_work.is_some()) {
            layers.add(&vcpu.share.done(host.left(v), host.now()));
        }
        layers
    }

    /// What the profiler's samples found since the start, if there is one.
    pub fn samples(&self) -> Option<&Samples> {
        self.profiler.as_ref().map(|profiler| &profiler.samples)
    }

    /// A piece of work is over, `left` of it not done.
    pub(super) fn count_work(&mut self, guest: usize, share: &Share, left: Span, now: Time) {
        self.guests[guest].layers.add(&share.done(left, now));
    }

    /// The counter of a pCPU may have reached its mark.
    pub(super) fn counter_due(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        let found = self.at_work_on(ctx.host(), p);
        self.sample(ctx, p, found);
    }

    /// A pCPU that was idle has something to do: its counter goes on. What it counted meanwhile was the hypervisor.
    pub(super) fn counter_goes_on(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        self.sample(ctx, p, Found::Overhead);
    }

    /// Takes the samples that are due, and sets the counter. It stands still while a sample is taken.
    fn sample(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId, found: Found) {
        let Some(profiler) = &mut self.profiler else { return };
        let (run_ns, _, overhead_ns) = ctx.host().pcpu_times(p);
        let busy_ns = run_ns + overhead_ns;
        let next = &mut profiler.next[p.index()];
        while *next <= busy_ns {
            profiler.samples.add(found);
            ctx.charge(p, profiler.config.sample_ns);
            *next += profiler.config.period_ns + profiler.config.sample_ns;
        }
        let idle = ctx.host().is_idle(ctx.host().current(p));
        let due = if idle { NEVER } else { ctx.now() + *next - busy_ns };
        ctx.set_source(profiler.first_source + p.index(), due);
    }

    fn at_work_on(&self, host: &Context, p: PcpuId) -> Found {
        let v = host.current(p);
        match self.vcpus.get(v.index()) {
            Some(Some(vcpu)) if host.busy_until(p) <= host.now() => {
                let done = vcpu.share.done_ns(host.left(v), host.now());
                Found::Domain(vcpu.guest, vcpu.share.layers.at(done))
            }
            Some(Some(_)) if host.hypervisor_until(p) <= host.now() => Found::Refill,
            _ => Found::Overhead,
        }
    }
}
