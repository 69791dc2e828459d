//! Tasks that run and sleep for times of their own, always the same: work that other programs can do too, to the nanosecond and
//! without the same random numbers.

use vcpulab_host::{Span, Time};

use crate::floor::{Floor, Lengths};

/// pCPUs of the tasks.
pub const PCPUS: u32 = 4;

/// The longest that a task runs while others wait, ms.
pub const SLICE_MS: u32 = 1;

/// The golden ratio's and the square root of two's fractions, in 2^-32: multiples of them are spread evenly.
const GOLDEN: u32 = 0x9E37_79B9;
const ROOT: u32 = 0x6A09_E667;

/// A task: it sleeps `delay_ns` once, and from then on runs `run_ns` and sleeps `sleep_ns` by turns.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Time before it runs first, ns: anywhere in its period.
    pub delay_ns: u64,
    /// CPU time that it needs each time, ns: from 1 to 3 ms.
    pub run_ns: u64,
    /// Length of each sleep, ns: all tasks together ask for four fifths of the CPU time.
    pub sleep_ns: u64,
}

/// `count` tasks.
pub fn tasks(count: u32) -> impl Iterator<Item = Task> {
    (1..=count).map(move |number| {
        let part = |of: u64, step: u32| (of * u64::from(number.wrapping_mul(step))) >> 32;
        let run_ns = 1_000_000 + part(2_000_000, GOLDEN);
        let period_ns = run_ns * u64::from(count) * 5 / (4 * u64::from(PCPUS));
        Task { delay_ns: 1 + part(period_ns, ROOT), run_ns, sleep_ns: period_ns - run_ns }
    })
}

/// The bare loop that does the work of `count` tasks.
pub fn floor(count: u32) -> Floor<Vec<Task>> {
    Floor::new(PCPUS as usize, count as usize, tasks(count).collect())
}

impl Lengths for Vec<Task> {
    const SLICE: Option<Span> = Some(Span::from_ms(SLICE_MS as i64));

    fn start(&self, vcpu: usize) -> Time {
        Time::from_ns(self[vcpu].delay_ns as i64)
    }

    fn run(&mut self, vcpu: usize) -> Span {
        Span::from_ns(self[vcpu].run_ns as i64)
    }

    fn block(&mut self, vcpu: usize) -> Span {
        Span::from_ns(self[vcpu].sleep_ns as i64)
    }
}
