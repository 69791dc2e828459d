//! Durations of the kernel's own work on the machine of a recording, measured in the recording.

use vcpulab_host::Span;

use super::clock::{Clock, median};
use super::trace::{Event, Line};

/// Durations of the kernel's own work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Overheads {
    /// From a tick that asks for a decision to the decision: each that was recorded, sorted. Softirqs may come between.
    resched: Vec<i64>,
    /// From a wake-up that preempts at once to the switch: the median.
    pub wake: Span,
    /// From a decision to the switch: the median.
    pub switch: Span,
    /// From a timer's wake-up, which asked for a decision, to that of another timer which still came before it: the longest.
    pub timer: Span,
    /// Duration of a tick: the median time from a tick to the decision that it asks for.
    pub tick: Span,
}

/// From a tick to the decision, on that machine.
const RESCHED_KNOWN: Span = Span::from_ns(5_200);

impl Overheads {
    /// Overheads of the machine that made the recordings that come with the package (QEMU's emulation with `-icount
    /// shift=1`, Debian's kernels 6.1.192 and 6.12.117): for a recording that shows none.
    pub const KNOWN: Overheads = Overheads {
        resched: Vec::new(),
        wake: Span::from_ns(14_000),
        switch: Span::from_ns(9_000),
        timer: Span::from_ns(10_000),
        tick: Span::from_ns(8_000),
    };

    /// Overheads of wake-ups, switches, timers and ticks, µs.
    #[cfg(test)]
    pub fn with_us([wake, switch, timer, tick]: [i64; 4]) -> Self {
        let [wake, switch, timer, tick] = [wake, switch, timer, tick].map(Span::from_us);
        Overheads { resched: Vec::new(), wake, switch, timer, tick }
    }

    /// Duration of the interrupt of a timer that wakes a thread: a wake-up that preempts, without the switch.
    pub fn interrupt(&self) -> Span {
        (self.wake - self.switch).max(Span::ZERO)
    }

    /// The time from a tick to the decision in variant number `variant`; all variants together have the recorded distribution.
    pub fn resched(&self, variant: u64, variants: u64) -> Span {
        let place = (2 * variant + 1) * self.resched.len() as u64 / (2 * variants.max(1));
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        self.resched.get(place).map_or(RESCHED_KNOWN, |&ns| Span::from_ns(ns))
    }

    /// Overheads measured in a recording.
    pub fn of(lines: &[Line], clock: &Clock) -> Self {
        let (mut resched, mut wake, mut switch) = (Vec::new(), Vec::new(), Vec::new());
        let mut ticks = Vec::new();
        let mut timer: Option<i64> = None;
        for (index, part) in lines.windows(4).enumerate() {
            let [first, second, third, fourth] = part else { continue };
            match [&first.event, &second.event, &third.event, &fourth.event] {
                [Event::Tick, Event::Charge(at_tick, _), Event::Charge(then, ran), Event::Switch { .. }]
                    if at_tick == then && third.flagged =>
                {
                    resched.push(*ran);
                    ticks.push(third.time_ns - clock.written_after(third, index + 2) - first.time_ns);
                    switch.push(clock.written_after(fourth, index + 3));
                }
                [
                    Event::Waking(woken, _),
                    Event::Wakeup(awake),
                    Event::Charge(..),
                    Event::Switch { to, .. },
                ] if woken == awake && *awake == to.0 && second.flagged => {
                    wake.push(fourth.time_ns - first.time_ns);
                }
                [Event::Waking(..), Event::Wakeup(_), Event::Other, Event::Waking(..)]
                    if second.flagged && third.flagged && third.monotonic_ns.is_some() =>
                {
                    let apart = fourth.time_ns - first.time_ns;
                    timer = Some(timer.map_or(apart, |most| most.max(apart)));
                }
                _ => {}
            }
        }
        resched.sort_unstable();
        let or = |of, known| median(of).map_or(known, |ns| Span::from_ns(ns.max(0)));
        Overheads {
            resched,
            wake: or(wake, Self::KNOWN.wake),
            switch: or(switch, Self::KNOWN.switch),
            tick: or(ticks, Self::KNOWN.tick),
            timer: or(timer.into_iter().collect(), Self::KNOWN.timer),
        }
    }
}
