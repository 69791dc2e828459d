//! Progress of the runs of this process, for those who wait for them. Runs write it and never read it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vcpulab_host::{Busiest, Time};

static EVENTS: AtomicU64 = AtomicU64::new(0);
static SIMULATED_NS: AtomicU64 = AtomicU64::new(0);
static BUSIEST: Mutex<String> = Mutex::new(String::new());

/// Number of samples of the next event's cause after which the most frequent cause is published: some tenths of a second.
const LOOKS: u32 = 64;

/// Progress of all runs of this process together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Events that were handled.
    pub events: u64,
    /// Simulated time, ns, of all replications together.
    pub simulated_ns: u64,
    /// The cause of most events of late; empty: not known yet.
    pub busiest: String,
}

/// The progress of the runs of this process until now.
pub fn pace() -> Pace {
    Pace {
        events: EVENTS.load(Ordering::Relaxed),
        simulated_ns: SIMULATED_NS.load(Ordering::Relaxed),
        busiest: busiest().clone(),
    }
}

fn busiest() -> MutexGuard<'static, String> {
    BUSIEST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A replication's part in the progress of all runs.
#[derive(Default)]
pub(crate) struct Getting {
    events: u64,
    now_ns: u64,
    causes: BTreeMap<Busiest, u32>,
    looks: u32,
}

impl Getting {
    /// Adds the progress of the replication up to `events` and `now`; `next` causes its next event.
    pub fn on(
        &mut self,
        events: u64,
        now: Time,
        next: Option<Busiest>,
        called: impl FnOnce(Busiest) -> String,
    ) {
        let now_ns = now.ns() as u64;
        EVENTS.fetch_add(events - self.events, Ordering::Relaxed);
        SIMULATED_NS.fetch_add(now_ns - self.now_ns, Ordering::Relaxed);
        (self.events, self.now_ns) = (events, now_ns);
        let Some(next) = next else { return };
        *self.causes.entry(next).or_default() += 1;
        self.looks += 1;
        if self.looks == LOOKS {
            // Of equals the first.
            let most = std::mem::take(&mut self.causes).into_iter().rev().max_by_key(|&(_, count)| count);
            if let Some((cause, _)) = most {
                *busiest() = called(cause);
            }
            self.looks = 0;
        }
    }
}
