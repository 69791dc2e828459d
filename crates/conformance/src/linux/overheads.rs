//! What the kernel's own work takes on the machine of a recording, as the recording tells it.

use vcpulab_host::Span;

use super::clock::{Clock, median};
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
        Overheads { resched: Span::from_ns(5_200), wake: Span::from_ns(14_000), switch: Span::from_ns(9_000) };

    /// The medians of a recording.
    pub fn of(lines: &[Line], clock: &Clock) -> Self {
        let (mut resched, mut wake, mut switch) = (Vec::new(), Vec::new(), Vec::new());
        for (index, part) in lines.windows(4).enumerate() {
            let [first, second, third, fourth] = part else { continue };
            match [&first.event, &second.event, &third.event, &fourth.event] {
                [Event::Tick, Event::Charge(at_tick, _), Event::Charge(then, ran), Event::Switch { .. }]
                    if at_tick == then && third.flagged =>
                {
                    resched.push(*ran);
                    switch.push(clock.written_after(fourth, index + 3));
                }
                [Event::Waking(woken, _), Event::Wakeup(awake), Event::Charge(..), Event::Switch { to, .. }]
                    if woken == awake && *awake == to.0 && second.flagged =>
                {
                    wake.push(fourth.time_ns - first.time_ns);
                }
                _ => {}
            }
        }
        let or = |of, known| median(of).map_or(known, |ns| Span::from_ns(ns.max(0)));
        Overheads {
            resched: or(resched, Self::KNOWN.resched),
            wake: or(wake, Self::KNOWN.wake),
            switch: or(switch, Self::KNOWN.switch),
        }
    }
}
