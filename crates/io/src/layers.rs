//! CPU time of a domain by layer: application, kernel, hypervisor.

use vcpulab_host::{Span, Time};

/// The part of a domain's software, or of the hypervisor, that executes for it.
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
    /// All layers, in order.
    pub const ALL: [Layer; 3] = [Layer::Application, Layer::Kernel, Layer::Hypervisor];

    /// Name of the layer in results.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Application => "application",
            Layer::Kernel => "kernel",
            Layer::Hypervisor => "hypervisor",
        }
    }
}

/// CPU time by layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layers {
    times: [Span; 3],
}

impl Layers {
    /// Time of tasks.
    pub(crate) fn application(span: Span) -> Self {
        Layers { times: [span, Span::ZERO, Span::ZERO] }
    }

    /// Time of a kernel, of which `hypervisor` is the hypervisor's.
    pub(crate) fn kernel(all: Span, hypervisor: Span) -> Self {
        Layers { times: [Span::ZERO, all - hypervisor, hypervisor] }
    }

    /// The times with `span` added to the application's.
    pub(crate) fn and_application(mut self, span: Span) -> Self {
        self.times[Layer::Application as usize] += span;
        self
    }

    /// Both together.
    pub(crate) fn plus(&self, other: &Layers) -> Layers {
        Layers { times: std::array::from_fn(|layer| self.times[layer] + other.times[layer]) }
    }

    /// Time of a layer.
    pub fn of(&self, layer: Layer) -> Span {
        self.times[layer as usize]
    }

    /// Time of all layers together.
    pub fn sum(&self) -> Span {
        self.times.iter().sum()
    }

    /// The time added since `before`.
    pub fn since(&self, before: &Layers) -> Layers {
        Layers { times: std::array::from_fn(|layer| self.times[layer] - before.times[layer]) }
    }

    /// The times scaled so that their sum is `all`.
    pub(crate) fn stretched(&self, all: Span) -> Layers {
        let sum = self.sum();
        if sum == all {
            return *self;
        }
        let (all_ns, sum_ns) = (all.ns(), sum.ns().max(1));
        let share = |span: Span| match span.ns().checked_mul(all_ns) {
            // As a rule, and it spares a division, or a long one.
            Some(0) => Span::ZERO,
            Some(product) => Span::from_ns(product / sum_ns),
            None => Span::from_ns((i128::from(span.ns()) * i128::from(all_ns) / i128::from(sum_ns)) as i64),
        };
        let (application, hypervisor) = (share(self.times[0]), share(self.times[2]));
        Layers { times: [application, all - application - hypervisor, hypervisor] }
    }

    /// The first `done` of it: a kernel prepares what the hypervisor does at the end.
    fn first(&self, done: Span) -> Layers {
        if done == self.sum() {
            return *self;
        }
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
        let mut end = Span::ZERO;
        let ends = self.times.map(|span| {
            end += span;
            end
        });
        *Layer::ALL.iter().find(|&&layer| done < ends[layer as usize]).unwrap_or(&Layer::Hypervisor)
    }

    pub(crate) fn add(&mut self, other: &Layers) {
        self.times.iter_mut().zip(other.times).for_each(|(time, more)| *time += more);
    }
}

/// The layers of a vCPU's piece of work, begun at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    layers: Layers,
    since: Time,
}

impl Share {
    /// Work begun now.
    pub fn begun(layers: Layers, now: Time) -> Self {
        Share { layers, since: now }
    }

    /// The part of it that is done, `left` not. (A domain that begins anew leaves work undone.)
    pub fn done(&self, left: Span, now: Time) -> Layers {
        self.layers.first(self.done_ns(left, now))
    }

    /// The layer at work when `left` of it is not done.
    pub fn layer_at(&self, left: Span, now: Time) -> Layer {
        self.layers.at(self.done_ns(left, now))
    }

    fn done_ns(&self, left: Span, now: Time) -> Span {
        (self.layers.sum() - left).min(now - self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: i64) -> Span {
        Span::from_ns(ns)
    }

    #[test]
    fn work_is_done_layer_by_layer() {
        let layers = Layers::kernel(ns(100), ns(30)).and_application(ns(50));
        assert_eq!((layers.sum(), layers.of(Layer::Kernel)), (ns(150), ns(70)));
        let done = [0, 49, 50, 119, 120, 149, 150].map(|done| layers.at(ns(done)));
        let [application, kernel, hypervisor] = Layer::ALL;
        assert_eq!(done, [application, application, kernel, kernel, hypervisor, hypervisor, hypervisor]);
        let share = Share::begun(layers, Time::from_ns(1000));
        assert_eq!(share.done(ns(20), Time::from_ns(5000)).times, [50, 70, 10].map(ns));
        let early = share.done(Span::ZERO, Time::from_ns(1060));
        assert_eq!(early.times, [50, 10, 0].map(ns), "no more than there was time for");
    }

    #[test]
    fn a_cost_that_varies_keeps_its_shares() {
        let layers = Layers::kernel(ns(1000), ns(250));
        assert_eq!(layers.stretched(ns(1000)), layers);
        assert_eq!(layers.stretched(ns(1100)).times, [0, 825, 275].map(ns));
        assert_eq!(layers.stretched(ns(7)).sum(), ns(7));
    }
}
