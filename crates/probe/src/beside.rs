//! The speed that work keeps while the other thread of its core is busy.
//!
//! Three kinds of work, each without end, and what they are bound by: arithmetic in registers, steps through memory that no
//! cache holds ([`chase`](crate::chase)), and short calls of the system that copy bytes. Each is timed alone on its core,
//! and again beside each of the three.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::chase::{self, Line};
use crate::pin;

/// The kinds, in the order of [`Shares`].
pub(crate) const KINDS: [&str; 3] = ["compute", "memory", "io"];

/// By kind, and by the kind beside it: the speed kept, per cent, sample by sample.
pub(crate) type Shares = [[Vec<i64>; 3]; 3];

const SAMPLES: usize = 7;
const WINDOW: Duration = Duration::from_millis(10);
/// Most memory that one of the two walks through.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of one call.
const CALL_BYTES: usize = 512;

/// Measures on two threads of a core; `None` once `go_on` says no.
///
/// # Errors
/// A thread cannot be pinned, or there is no pipe.
pub(crate) fn shares(
    cpus: [usize; 2],
    last_level_bytes: usize,
    go_on: &dyn Fn() -> bool,
) -> io::Result<Option<Shares>> {
    let bytes = last_level_bytes.saturating_mul(4).min(BYTES_MAX);
    pin::pin_to(cpus[0])?;
    let mut shares = Shares::default();
    for other in 0..KINDS.len() {
        let mut beside = Work::new(other, bytes)?;
        let (turn, busy, over) = (Barrier::new(2), AtomicBool::new(false), AtomicBool::new(false));
        let measured = thread::scope(|scope| {
            let partner = scope.spawn(|| {
                let pinned = pin::pin_to(cpus[1]);
                loop {
                    turn.wait();
                    if over.load(Ordering::Acquire) {
                        return pinned;
                    }
                    while busy.load(Ordering::Acquire) {
                        beside.round();
                    }
                    turn.wait();
                }
            });
            let sample = |work: &mut Work| {
                let alone = work.rate();
                busy.store(true, Ordering::Release);
                turn.wait();
                let together = work.rate();
                busy.store(false, Ordering::Release);
                turn.wait();
                ((together / alone * 100.0).round() as i64).clamp(1, 100)
            };
            let mut goes_on = true;
            let mut kinds = || {
                for (kind, shares) in shares.iter_mut().enumerate() {
                    let mut work = Work::new(kind, bytes)?;
                    for _ in 0..SAMPLES {
                        goes_on = go_on();
                        if !goes_on {
                            return Ok(());
                        }
                        shares[other].push(sample(&mut work));
                    }
                }
                io::Result::Ok(())
            };
            let done = kinds();
            over.store(true, Ordering::Release);
            turn.wait();
            partner.join().expect("the partner does not panic")?;
            done.map(|()| goes_on)
        })?;
        if !measured {
            return Ok(None);
        }
    }
    Ok(Some(shares))
}

/// Work of one kind, round by round.
enum Work {
    Compute([u64; 4]),
    Memory(Vec<Line>, u32),
    Io(PipeReader, PipeWriter),
}

impl Work {
    fn new(kind: usize, bytes: usize) -> io::Result<Work> {
        Ok(match KINDS[kind] {
            "compute" => Work::Compute([1, 2, 3, 5]),
            "memory" => Work::Memory(chase::one_cycle(bytes / size_of::<Line>()), 0),
            _ => {
                let (from, to) = io::pipe()?;
                Work::Io(from, to)
            }
        })
    }

    /// Some microseconds of it.
    fn round(&mut self) {
        match self {
            Work::Compute(chains) => {
                for _ in 0..1000 {
                    for chain in chains.iter_mut() {
                        *chain ^= chain.wrapping_mul(6_364_136_223_846_793_005).rotate_left(17);
                    }
                }
                black_box(chains);
            }
            Work::Memory(lines, at) => {
                for _ in 0..64 {
                    *at = lines[*at as usize].next;
                }
                black_box(at);
            }
            Work::Io(from, to) => {
                let mut bytes = [0; CALL_BYTES];
                // A pipe of our own that is empty before has room, and then as many bytes.
                let done = to.write_all(&bytes).and_then(|()| from.read_exact(&mut bytes));
                done.expect("both ends of the pipe are open");
            }
        }
    }

    /// Rounds a second, over a window.
    fn rate(&mut self) -> f64 {
        let (start, mut rounds) = (Instant::now(), 0.0);
        loop {
            self.round();
            rounds += 1.0;
            let elapsed = start.elapsed();
            if elapsed >= WINDOW {
                return rounds / elapsed.as_secs_f64();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_measured_beside_each() {
        let allowed = pin::allowed().unwrap();
        // Two CPUs that share nothing, or one that is shared in turns: the order of things is the same.
        let cpus = [allowed[0], *allowed.last().unwrap()];
        let shares = shares(cpus, 1 << 20, &|| true).unwrap().unwrap();
        for samples in shares.iter().flatten() {
            assert_eq!(samples.len(), SAMPLES);
            assert!(samples.iter().all(|percent| (1..=100).contains(percent)), "{samples:?}");
        }
    }

    #[test]
    fn it_ends_when_it_is_told_to() {
        let allowed = pin::allowed().unwrap();
        let start = Instant::now();
        assert!(shares([allowed[0]; 2], 1 << 20, &|| false).unwrap().is_none());
        assert!(start.elapsed() < Duration::from_secs(5));
        assert!(shares([usize::MAX >> 1; 2], 1 << 20, &|| true).is_err(), "there is no such CPU");
    }
}
