//! Where the domains' CPU time goes by layers: exactly, and as a profiler that samples would see it.
//!
//! The *truth* is kept all the time: every piece of work is told by layer when it is chosen, and counted as far as it was
//! done. The *profiler* does what Xenoprof does: after so many busy cycles of a pCPU its performance counter interrupts
//! (which takes time of the hypervisor), and the sample is put down to whatever is found at work there.

use vcpulab_host::{HostState, NEVER, PcpuId, Span, Time, VcpuId, WorldContext};

use super::Machine;
use crate::config::ProfilerConfig;

/// Who executes in a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layer {
    /// The domain's tasks, and the emulator of another domain's devices.
    Application,
    /// The domain's kernel: drivers, back ends, front ends, network stack.
    Kernel,
    /// The hypervisor on behalf of the domain: upcalls, exchanges and grants of pages.
    Hypervisor,
}

impl Layer {
    /// All of them.
    pub const ALL: [Layer; 3] = [Layer::Application, Layer::Kernel, Layer::Hypervisor];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Application => "application",
            Layer::Kernel => "kernel",
            Layer::Hypervisor => "hypervisor",
        }
    }
}

/// CPU time by layer, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    times: [Span; 3],
}

impl Layers {
    /// Time of tasks.
    pub(crate) fn application(span: Span) -> Self {
        Layers { times: [span, 0, 0] }
    }

    /// Time of a kernel, of which so much is the hypervisor's.
    pub(crate) fn kernel(all: Span, hypervisor: Span) -> Self {
        Layers { times: [0, all - hypervisor, hypervisor] }
    }

    /// With so much time of an application besides.
    pub(crate) fn and_application(mut self, span: Span) -> Self {
        self.times[Layer::Application as usize] += span;
        self
    }

    /// Both together.
    pub(crate) fn plus(&self, other: &Layers) -> Layers {
        Layers { times: std::array::from_fn(|layer| self.times[layer] + other.times[layer]) }
    }

    /// One layer's time, ns.
    pub fn of(&self, layer: Layer) -> Span {
        self.times[layer as usize]
    }

    /// That of all together, ns.
    pub fn sum(&self) -> Span {
        self.times.iter().sum()
    }

    /// What was added since `before`.
    pub fn since(&self, before: &Layers) -> Layers {
        Layers { times: std::array::from_fn(|layer| self.times[layer] - before.times[layer]) }
    }

    /// The same work where it takes `all` together.
    pub(crate) fn stretched(&self, all: Span) -> Layers {
        let sum = self.sum();
        if sum == all {
            return *self;
        }
        let share = |span: Span| match span.checked_mul(all) {
            // As a rule, and it spares a long division.
            Some(product) => product / sum.max(1),
            None => (i128::from(span) * i128::from(all) / i128::from(sum.max(1))) as Span,
        };
        let [application, _, hypervisor] = self.times.map(share);
        Layers { times: [application, all - application - hypervisor, hypervisor] }
    }

    /// The first `done` of it: a kernel prepares what the hypervisor does at the end.
    fn first(&self, done: Span) -> Layers {
        let mut left = done;
        Layers {
            times: self.times.map(|span| {
                let part = span.min(left);
                left -= part;
                part
            }),
        }
    }

    /// The layer at work after `done` of it.
    fn at(&self, done: Span) -> Layer {
        let mut end = 0;
        let ends = self.times.map(|span| {
            end += span;
            end
        });
        *Layer::ALL.iter().find(|&&layer| done < ends[layer as usize]).unwrap_or(&Layer::Hypervisor)
    }

    fn add(&mut self, other: &Layers) {
        self.times.iter_mut().zip(other.times).for_each(|(time, more)| *time += more);
    }
}

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
    pub fn layers(&self, host: &HostState, guest: usize) -> Layers {
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

    fn at_work_on(&self, host: &HostState, p: PcpuId) -> Found {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_layer_by_layer() {
        let layers = Layers::kernel(100, 30).and_application(50);
        assert_eq!((layers.sum(), layers.of(Layer::Kernel)), (150, 70));
        let done = [0, 49, 50, 119, 120, 149, 150].map(|done| layers.at(done));
        let [application, kernel, hypervisor] = Layer::ALL;
        assert_eq!(done, [application, application, kernel, kernel, hypervisor, hypervisor, hypervisor]);
        let share = Share::begun(layers, 1000);
        assert_eq!(share.done(20, 5000).times, [50, 70, 10]);
        assert_eq!(share.done(0, 1060).times, [50, 10, 0], "no more than there was time for");
    }

    #[test]
    fn a_cost_that_varies_keeps_its_shares() {
        let layers = Layers::kernel(1000, 250);
        assert_eq!(layers.stretched(1000), layers);
        assert_eq!(layers.stretched(1100).times, [0, 825, 275]);
        assert_eq!(layers.stretched(7).sum(), 7);
    }
}
