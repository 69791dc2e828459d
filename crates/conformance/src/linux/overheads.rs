//! What the kernel's own work takes on the machine of a recording, as the recording tells it.

use vcpulab_host::Span;

use super::trace::{Event, Line};

/// What the kernel's own work takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overheads {
    /// From a tick that asks for a decision to the decision.
    pub resched: Span,
    /// From a wake-up that preempts at once to the switch.
    pub wake: Span,
    /// From a decision to the switch.
    pub switch: Span,
}

impl Overheads {
    /// Of the machine that made the recordings that come with the package (QEMU's emulation with `-icount shift=1`, Debian's
    /// kernels 6.1.192 and 6.12.117), as their specification gives the first two; the last is from the recordings. For a
    /// recording in which nothing of the kind happens.
    const KNOWN: Overheads =
        Overheads { resched: Span::from_ns(5_200), wake: Span::from_ns(14_000), switch: Span::from_ns(7_000) };

    /// The medians of a recording.
    pub fn of(lines: &[Line]) -> Self {
        let (mut resched, mut wake, mut switch) = (Vec::new(), Vec::new(), Vec::new());
        for part in lines.windows(4) {
            let [first, second, third, fourth] = part else { continue };
            match [&first.event, &second.event, &third.event, &fourth.event] {
                [Event::Tick, Event::Charge(at_tick, _), Event::Charge(then, ran), Event::Switch { .. }]
                    if at_tick == then && third.flagged =>
                {
                    resched.push(*ran);
                    switch.push(fourth.time_ns - (second.time_ns + ran));
                }
                [Event::Waking(woken, _), Event::Wakeup(awake), Event::Charge(..), Event::Switch { to, .. }]
                    if woken == awake && *awake == to.0 && second.flagged =>
                {
                    wake.push(fourth.time_ns - first.time_ns);
                }
                _ => {}
            }
        }
        Overheads {
            resched: median(resched).unwrap_or(Self::KNOWN.resched),
            wake: median(wake).unwrap_or(Self::KNOWN.wake),
            switch: median(switch).unwrap_or(Self::KNOWN.switch),
        }
    }
}

fn median(mut of: Vec<i64>) -> Option<Span> {
    of.sort_unstable();
    of.get(of.len() / 2).map(|&ns| Span::from_ns(ns.max(0)))
}
