//! Runs that execute while the results of others are looked at.

use std::any::Any;
use std::collections::VecDeque;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use vcpulab_measure::Results;
use vcpulab_spec::Spec;

use crate::error::RunError;
use crate::options::RunOptions;
use crate::replicate::runs::run;

/// The outcome of a run; the outer error is a panic.
pub type Outcome = Result<Result<Results, RunError>, Box<dyn Any + Send>>;

/// Runs of scenarios on threads of their own, in the order in which the runs were begun.
///
/// The results of each equal those of [`run`]. A run whose results are no longer needed is called off: it ends soon, or never
/// starts. When the stream is dropped, all runs are called off.
pub struct Stream<S> {
    shared: Arc<Shared<S>>,
    threads: usize,
}

struct Shared<S> {
    waits: bool,
    state: Mutex<State<S>>,
    /// Signals that there is a run to take, or the end.
    begun: Condvar,
    /// Signals a new outcome.
    over: Condvar,
}

struct State<S> {
    /// Runs that no thread has taken yet: their numbers and their scenarios.
    to_do: VecDeque<(usize, S)>,
    /// Flags of runs that are called off, by run.
    off: Vec<Arc<AtomicBool>>,
    /// Outcomes by run; `None` before a run is over, and after its outcome was taken.
    outcomes: Vec<Option<Outcome>>,
    ended: bool,
}

impl<S: Deref<Target = Spec> + Send + Sync + 'static> Stream<S> {
    /// A stream on `jobs` threads (0: one for each processor); `waits`: attribute waits?
    ///
    /// # Errors
    /// [`RunError::Threads`].
    pub fn start(jobs: usize, waits: bool) -> Result<Self, RunError> {
        let state = State { to_do: VecDeque::new(), off: Vec::new(), outcomes: Vec::new(), ended: false };
        let shared = Shared { waits, state: Mutex::new(state), begun: Condvar::new(), over: Condvar::new() };
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        let stream =
            Stream { shared: Arc::new(shared), threads: if jobs == 0 { processors() } else { jobs } };
        for _ in 0..stream.threads {
            let shared = Arc::clone(&stream.shared);
            let started = thread::Builder::new().spawn(move || shared.work());
            started.map_err(|error| RunError::Threads(error.to_string()))?;
        }
        Ok(stream)
    }
}

impl<S> Stream<S> {
    /// Number of runs that execute at a time.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Begins a run, and numbers it, from 0.
    pub fn begin(&self, scenario: S) -> usize {
        let mut state = self.shared.state();
        let number = state.outcomes.len();
        state.to_do.push_back((number, scenario));
        state.off.push(Arc::default());
        state.outcomes.push(None);
        self.shared.begun.notify_one();
        number
    }

    /// Calls a run off. Its outcome is [`RunError::Cancelled`], unless it was over before.
    pub fn call_off(&self, number: usize) {
        self.shared.state().off[number].store(true, Ordering::Relaxed);
    }

    /// Takes the outcome of a run, which can be done once; `None` if the run is not over within this time.
    pub fn take(&self, number: usize, patience: Duration) -> Option<Outcome> {
        let over = &self.shared.over;
        let waited =
            over.wait_timeout_while(self.shared.state(), patience, |state| state.outcomes[number].is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.outcomes[number].take()
    }
}

impl<S> Drop for Stream<S> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.ended = true;
        state.to_do.clear();
        state.off.iter().for_each(|off| off.store(true, Ordering::Relaxed));
        self.shared.begun.notify_all();
    }
}

impl<S> Shared<S> {
    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run to do, once there is one; `None` at the end.
    fn next(&self) -> Option<(usize, S, Arc<AtomicBool>)> {
        let idle = |state: &mut State<S>| state.to_do.is_empty() && !state.ended;
        let mut state = self.begun.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner);
        let (number, scenario) = state.to_do.pop_front()?;
        Some((number, scenario, Arc::clone(&state.off[number])))
    }
}

impl<S: Deref<Target = Spec>> Shared<S> {
    fn work(&self) {
        let options = RunOptions { jobs: 1, waits: self.waits, ..RunOptions::default() };
        while let Some((number, scenario, off)) = self.next() {
            let wanted = || !off.load(Ordering::Relaxed);
            let one =
                || if wanted() { run(&scenario, &options, &|_| wanted()) } else { Err(RunError::Cancelled) };
            let outcome = catch_unwind(AssertUnwindSafe(one));
            self.state().outcomes[number] = Some(outcome);
            self.over.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_scenario::Scenario;

    use super::*;

    const SOON: Duration = Duration::from_secs(60);

    fn scenario(duration: &str) -> Scenario {
        let text = format!(
            "run.duration = '{duration}'\nrun.warmup = '0s'\nrun.sample = '0s'\nhost.scheduler = 'credit'\nhost.profile = 'exact'\n\
             domain.a.app = [{{ kind = 'periodic', run = '1us', period = '4us' }}]"
        );
        Scenario::parse(&text, "f").unwrap()
    }

    fn taken(stream: &Stream<Scenario>, number: usize) -> Result<Results, RunError> {
        stream.take(number, SOON).expect("it is over soon").expect("nothing panics")
    }

    #[test]
    fn each_run_is_what_it_is_by_itself() {
        let scenarios: Vec<Scenario> =
            (0..5).map(|seed| scenario("1ms").with_run(Some(seed), Some(2)).unwrap()).collect();
        for jobs in [0, 1, 3] {
            let stream = Stream::start(jobs, true).unwrap();
            assert_eq!(
                scenarios.iter().map(|one| stream.begin(one.clone())).collect::<Vec<_>>(),
                [0, 1, 2, 3, 4]
            );
            for number in [4, 0, 1, 2, 3] {
                let alone = RunOptions { waits: true, ..RunOptions::default() };
                assert_eq!(taken(&stream, number), run(&scenarios[number], &alone, &|_| true));
            }
            assert!(stream.take(0, Duration::ZERO).is_none(), "it was taken");
        }
    }

    #[test]
    fn a_run_that_was_called_off_ends_and_makes_room() {
        let stream = Stream::start(1, false).unwrap();
        // It takes minutes, and one step of it is a million events.
        let (under_way, waiting) = (stream.begin(scenario("1000s")), stream.begin(scenario("1000s")));
        let next = stream.begin(scenario("1ms"));
        assert!(stream.take(next, Duration::from_millis(5)).is_none(), "the first has the only thread");
        stream.call_off(under_way);
        stream.call_off(waiting);
        assert!(taken(&stream, next).is_ok());
        assert_eq!(taken(&stream, under_way), Err(RunError::Cancelled));
        assert_eq!(taken(&stream, waiting), Err(RunError::Cancelled));
    }

    #[test]
    fn what_is_left_behind_ends() {
        let stream = Stream::start(2, false).unwrap();
        stream.begin(scenario("1000s"));
        let shared = Arc::downgrade(&stream.shared);
        drop(stream);
        let threads_are_there = || shared.upgrade().is_some();
        assert!((0..6000).any(|_| {
            thread::sleep(Duration::from_millis(10));
            !threads_are_there()
        }));
    }
}
