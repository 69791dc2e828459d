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

    /// Time of a kernel, of which `hypervisor` is the hypervisor's.
    pub(crate) fn kernel(all: Span, hypervisor: Span) -> Self {
        Layers { times: [0, all - hypervisor, hypervisor] }
    }

    /// The same with time of an application besides.
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
