//! A walk through memory in random order, each step to where the last one said: neither prefetching nor parallel
//! misses help, so the time of a step is that of the cache, or memory, which holds it all. (After the memory latency test of
//! McVoy and Staelin, "lmbench: portable tools for performance analysis", USENIX 1996.) One page is walked through before the
//! next, so that translating addresses, which is slow on a virtual machine, counts little.

use std::hint::black_box;
use std::time::Instant;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

const SAMPLES: usize = 11;
const STEPS_PER_SAMPLE: usize = 1 << 18;
const BYTES_MIN: usize = 32 << 10;
const PAGE_LINES: usize = 4096 / size_of::<Line>();
/// Most memory that is taken, for caches of any size.
pub(crate) const BYTES_MAX: usize = 256 << 20;

/// A cache line that says where to go next.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Line {
    pub next: u32,
}

/// The steps of one walk.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// Memory that it goes through, bytes.
    pub bytes: usize,
    /// Time of a step, picoseconds, sample by sample, in order of size.
    pub samples_ps: Vec<i64>,
}

impl Step {
    /// The median of the samples.
    pub fn median_ps(&self) -> i64 {
        self.samples_ps[self.samples_ps.len() / 2]
    }
}

/// Walks through ever more memory, doubling it, until four times the last level of cache, or until `go_on` says no.
pub(crate) fn walk(last_level_bytes: usize, go_on: &dyn Fn() -> bool) -> Vec<Step> {
    let most = last_level_bytes.saturating_mul(4).min(BYTES_MAX);
    let sizes = std::iter::successors(Some(BYTES_MIN), |bytes| Some(bytes * 2));
    sizes.take_while(|&bytes| bytes <= most && go_on()).map(step).collect()
}

/// The walk through the most memory within these bounds.
pub(crate) fn within(steps: &[Step], least: usize, most: usize) -> Option<&Step> {
    steps.iter().rev().find(|step| (least..=most).contains(&step.bytes))
}

fn step(bytes: usize) -> Step {
    step_through(&one_cycle(bytes / size_of::<Line>()))
}

/// A walk through these lines.
pub(crate) fn step_through(lines: &[Line]) -> Step {
    let mut at = 0;
    let mut go = |steps: usize| {
        let start = Instant::now();
        for _ in 0..steps {
            at = lines[at as usize].next;
        }
        black_box(at);
        start.elapsed()
    };
    go(lines.len());
    let sample = |_| (go(STEPS_PER_SAMPLE).as_nanos() * 1000 / STEPS_PER_SAMPLE as u128) as i64;
    let mut samples_ps: Vec<i64> = (0..SAMPLES).map(sample).collect();
    samples_ps.sort_unstable();
    Step { bytes: size_of_val(lines), samples_ps }
}

/// Lines that lead through all of them and back: page by page in random order, and so in each page.
pub(crate) fn one_cycle(count: usize) -> Vec<Line> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let all: Vec<u32> = (0..count as u32).collect();
    let mut pages: Vec<Vec<u32>> = all.chunks(PAGE_LINES).map(<[u32]>::to_vec).collect();
    shuffle(&mut pages, &mut random);
    pages.iter_mut().for_each(|page| shuffle(page, &mut random));
    let order = pages.concat();
    let mut lines = vec![Line { next: 0 }; count];
    for (at, next) in order.iter().zip(order.iter().cycle().skip(1)) {
        lines[*at as usize].next = *next;
    }
    lines
}

/// Fisher and Yates' shuffle.
fn shuffle<T>(items: &mut [T], random: &mut impl Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_comes_by_every_line_before_it_returns() {
        let lines = one_cycle(1000);
        let (mut at, mut steps) = (0, 0);
        loop {
            at = lines[at as usize].next;
            steps += 1;
            if at == 0 {
                break;
            }
        }
        assert_eq!(steps, 1000);
    }

    #[test]
    fn the_longest_walk_within_bounds_is_found() {
        let steps = [32, 64, 128].map(|bytes| Step { bytes, samples_ps: vec![1, 2, 9] });
        assert_eq!(within(&steps, 0, 100).map(|step| (step.bytes, step.median_ps())), Some((64, 2)));
        assert_eq!(within(&steps, 65, 127), None);
    }
}
