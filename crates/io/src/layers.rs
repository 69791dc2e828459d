//! CPU time of a domain by layer: application, kernel, hypervisor.

use vcpulab_host::Span;

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
    pub(crate) fn first(&self, done: Span) -> Layers {
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
    pub(crate) fn at(&self, done: Span) -> Layer {
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
