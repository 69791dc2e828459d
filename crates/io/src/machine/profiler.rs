//! CPU time of the domains by layer as a profiler that samples sees it.
//!
//! The *truth* is kept all the time: every piece of work has its [layers](crate::layers), which are counted as far as it was
//! done. The *profiler* does what Xenoprof does: after a number of busy cycles of a pCPU its performance counter interrupts
//! (which takes time of the hypervisor), and the sample is put down to whatever is found at work there.

use vcpulab_host::{HostState, NEVER, PcpuId, Span, Table, WorldContext};

use super::guests::Guests;
use crate::config::ProfilerConfig;
use crate::ids::{GuestId, SourceId};
use crate::layers::Layer;
use crate::sources::{Source, Sources};

/// The finding of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Domain(GuestId, Layer),
    /// The hypervisor decides, switches, or takes an interrupt.
    Overhead,
    /// A cold cache is being filled again.
    Refill,
}

/// The findings of all samples since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Samples {
    /// By domain and layer.
    pub domains: Table<GuestId, [u64; 3]>,
    /// The hypervisor's own decisions, switches and interrupts.
    pub overhead: u64,
    /// Cold caches being filled again.
    pub refill: u64,
}

impl Samples {
    /// Number of samples.
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

/// The performance counter of a pCPU.
#[derive(Clone, Copy, Debug)]
struct Counter {
    source: SourceId,
    /// Busy time of the pCPU at which it interrupts next, ns.
    next: Span,
}

/// The profiler.
#[derive(Clone, Debug)]
pub(crate) struct Profiler {
    config: ProfilerConfig,
    counters: Table<PcpuId, Counter>,
    pub samples: Samples,
}

impl Profiler {
    /// A profiler of this number of guests. Its counters begin at 0.
    pub fn new(config: ProfilerConfig, guests: usize, sources: &mut Sources) -> Self {
        let counter = |p| {
            let source = sources.register(Source::Counter(PcpuId(p)));
            Counter { source, next: config.period_ns }
        };
        let samples = Samples { domains: Table::filled(guests, [0; 3]), ..Samples::default() };
        Profiler { config, counters: (0..config.pcpus).map(counter).collect(), samples }
    }

    /// Takes the samples that are due when the counter of a pCPU may have overflowed.
    #[cold]
    pub fn counter_due(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId, guests: &Guests) {
        let found = at_work_on(ctx.host(), p, guests);
        self.sample(ctx, p, found);
    }

    /// Lets the counter of a pCPU continue that was idle and has something to do. It counted the hypervisor meanwhile.
    #[cold]
    pub fn counter_goes_on(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId) {
        self.sample(ctx, p, Found::Overhead);
    }

    /// Takes the samples that are due, and sets the counter. It stands still while a sample is taken.
    fn sample(&mut self, ctx: &mut WorldContext<'_>, p: PcpuId, found: Found) {
        let (run_ns, _, overhead_ns) = ctx.host().pcpu_times(p);
        let busy_ns = run_ns + overhead_ns;
        let Counter { source, next } = &mut self.counters[p];
        while *next <= busy_ns {
            self.samples.add(found);
            ctx.charge(p, self.config.sample_ns);
            *next += self.config.period_ns + self.config.sample_ns;
        }
        let idle = ctx.host().is_idle(ctx.host().executes(p));
        let due = if idle { NEVER } else { ctx.now() + *next - busy_ns };
        source.set(ctx, due);
    }
}

fn at_work_on(host: &HostState, p: PcpuId, guests: &Guests) -> Found {
    let v = host.executes(p);
    match guests.vcpu(v) {
        Some(vcpu) if host.busy_until(p) <= host.now() => {
            Found::Domain(vcpu.at.guest, vcpu.share.layer_at(host.left(v), host.now()))
        }
        Some(_) if host.hypervisor_until(p) <= host.now() => Found::Refill,
        _ => Found::Overhead,
    }
}
