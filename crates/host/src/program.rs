//! Scripted vCPUs: the programs of the host contract, and the simplest [`World`].

use crate::{LifeEvent, Op, Span, Table, Time, VcpuId, World, WorldContext};

/// An operation of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Use this much CPU time.
    Run(Span),
    /// Run for ever.
    Hog,
    /// Block now, and wake this much later.
    Block(Span),
    /// Yield, and stay runnable.
    Yield,
}

/// The program of a vCPU.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Operations of the program.
    pub steps: Vec<Step>,
    /// Whether the program starts again at its end. If not, the vCPU blocks for ever.
    pub repeat: bool,
}

/// A program, and its next operation.
#[derive(Clone, Debug, Default)]
struct Running {
    program: Program,
    next: usize,
}

/// The programs of all vCPUs of a host. A vCPU without one blocks for ever.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    by_vcpu: Table<VcpuId, Running>,
}

impl Programs {
    /// Gives `v` its program.
    pub fn set(&mut self, v: VcpuId, program: Program) {
        *self.by_vcpu.entry(v) = Running { program, next: 0 };
    }
}

impl World for Programs {
    /// A domain that boots begins all its programs anew. A vCPU that was off line continues where it stopped.
    fn life(&mut self, ctx: &mut WorldContext<'_>, event: LifeEvent) {
        if let LifeEvent::Booted(d) = event {
            for v in ctx.host().all_vcpus_of(d) {
                if let Some(running) = self.by_vcpu.get_mut(v) {
                    running.next = 0;
                }
            }
        }
    }

    #[inline]
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, left: Span) -> Op {
        debug_assert_eq!(left, Span::ZERO, "nothing interrupts a scripted vCPU");
        let Some(running) = self.by_vcpu.get_mut(v) else { return Op::Block(None) };
        let steps = &running.program.steps;
        // A program of nothing but empty runs would go round for ever: one full round is enough to know.
        for _ in 0..=steps.len() {
            if running.next == steps.len() {
                if !running.program.repeat {
                    return Op::Block(None);
                }
                running.next = 0;
            }
            let Some(&step) = steps.get(running.next) else { return Op::Block(None) };
            running.next += 1;
            match step {
                Step::Run(Span::ZERO) => {}
                Step::Run(span) => return Op::Run(span),
                Step::Hog => return Op::HOG,
                Step::Block(span) => return Op::Block(Some(wake_time(ctx.now(), span))),
                Step::Yield => return Op::Yield,
            }
        }
        Op::Block(None)
    }
}

fn wake_time(now: Time, span: Span) -> Time {
    now.saturating_add(span)
}
