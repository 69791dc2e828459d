//! The applications: each is a task that says, one step at a time, what it wants to do next.
//!
//! Phase scripts use the words of rt-app: `run` is work and `runtime` is time; `sleep` counts from now, `timer` from when
//! the last timer was due, whatever the events in between took.

use std::collections::VecDeque;

use vcpulab_host::{Span, Time};

use crate::{AppStats, Random};

/// An application as configured.
#[derive(Clone, PartialEq, Debug)]
pub enum AppConfig {
    /// Computes without end.
    Hog,
    /// Computes for `run_ns` in every `period_ns`.
    Periodic {
        /// CPU time of each job, ns.
        run_ns: Span,
        /// Time between releases of jobs, ns; also their deadline.
        period_ns: Span,
    },
    /// Follows a script.
    Phases {
        /// Its phases, in order.
        phases: Vec<Phase>,
        /// Times to go through them; `None`: without end.
        rounds: Option<u32>,
    },
    /// Serves requests that come over the network.
    WebServer {
        /// CPU time for each request, ns, without the network's.
        request_ns: Span,
        /// How far it varies, percent to both sides.
        spread_percent: i64,
        /// Most requests in the server at once; more are refused.
        connections_max: u32,
    },
}

/// A phase of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// Times to go through its events.
    pub rounds: u32,
    /// Its events, in order.
    pub events: Vec<PhaseEvent>,
}

/// An event of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhaseEvent {
    /// Computes: so much CPU time, ns, however long that takes.
    Run(Span),
    /// Computes until so much time has passed, ns, however much CPU time it gets meanwhile.
    Runtime(Span),
    /// Sleeps for this long from now, ns.
    Sleep(Span),
    /// Sleeps until this long after the last timer was due, ns.
    Timer(Span),
}

/// What a task wants to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demand {
    /// Compute for this long, ns (more than 0).
    Compute(Span),
    /// Sleep until then.
    Sleep(Time),
    /// Wait until there is a request.
    Wait,
}

/// How long a hog computes at a time: long, so that it costs few events, but its count must not lag far behind.
const HOG_CHUNK: Span = 10_000_000;

/// How often a `runtime` event looks at the clock, ns of CPU time. (rt-app's own busy loop works 32 us between two looks.)
const RUNTIME_STEP: Span = 32_000;

/// A script that goes round without computing or sleeping would never end: after this many events it must.
const IDLE_EVENTS_MAX: u32 = 10_000;

/// A running application.
#[derive(Clone, Debug)]
pub struct App {
    behaviour: Behaviour,
    /// What it achieved.
    pub stats: AppStats,
    random: Random,
}

#[derive(Clone, Debug)]
enum Behaviour {
    Hog { computed: Span },
    Periodic { run: Span, period: Span, release: Time },
    Phases { phases: Vec<Phase>, rounds: Option<u32>, at: Position, timer: Time, busy_until: Time },
    WebServer { request: Span, spread: i64, requests: VecDeque<(u32, Time)> },
}

/// Where a script stands: phase, its round, event.
#[derive(Clone, Copy, Default, Debug)]
struct Position {
    phase: usize,
    round: u32,
    event: usize,
}

impl App {
    /// Starts an application at time 0, with its own random stream.
    pub fn new(config: &AppConfig, mut random: Random) -> Self {
        let behaviour = match *config {
            AppConfig::Hog => Behaviour::Hog { computed: 0 },
            AppConfig::Periodic { run_ns: run, period_ns: period } => {
                // Releases of different tasks and replications are not in step.
                let release = random.below(period as u64) as Time;
                Behaviour::Periodic { run, period, release }
            }
            AppConfig::Phases { ref phases, rounds } => {
                let phases = phases.clone();
                Behaviour::Phases { phases, rounds, at: Position::default(), timer: 0, busy_until: 0 }
            }
            AppConfig::WebServer { request_ns: request, spread_percent: spread, connections_max } => {
                // A limit that is never reached must not cost memory.
                let requests = VecDeque::with_capacity(connections_max.min(1024) as usize);
                Behaviour::WebServer { request, spread, requests }
            }
        };
        App { behaviour, stats: AppStats::default(), random }
    }

    /// What it wants to do next; it has done all it wanted before.
    pub fn next(&mut self, now: Time) -> Demand {
        match &mut self.behaviour {
            Behaviour::Hog { .. } => Demand::Compute(HOG_CHUNK),
            Behaviour::Periodic { run, release, .. } => {
                if *release > now {
                    Demand::Sleep(*release)
                } else {
                    Demand::Compute(*run)
                }
            }
            Behaviour::Phases { phases, rounds, at, timer, busy_until } => {
                if *busy_until > now {
                    return Demand::Compute((*busy_until - now).min(RUNTIME_STEP));
                }
                for _ in 0..IDLE_EVENTS_MAX {
                    if at.phase == phases.len() {
                        self.stats.completed += 1;
                        *at = Position::default();
                        *rounds = rounds.map(|rounds| rounds.saturating_sub(1));
                    }
                    if *rounds == Some(0) {
                        return Demand::Wait;
                    }
                    let Some(event) = at.take(phases) else { continue };
                    match event {
                        PhaseEvent::Run(span) if span > 0 => return Demand::Compute(span),
                        PhaseEvent::Runtime(span) if span > 0 => {
                            *busy_until = now + span;
                            return Demand::Compute(span.min(RUNTIME_STEP));
                        }
                        PhaseEvent::Sleep(span) if span > 0 => return Demand::Sleep(now + span),
                        PhaseEvent::Timer(span) => {
                            *timer += span;
                            if *timer > now {
                                return Demand::Sleep(*timer);
                            }
                            // Late: the period starts anew, as rt-app's does.
                            *timer = now;
                        }
                        PhaseEvent::Run(_) | PhaseEvent::Runtime(_) | PhaseEvent::Sleep(_) => {}
                    }
                }
                Demand::Wait
            }
            Behaviour::WebServer { request, spread, requests } => {
                if requests.is_empty() {
                    return Demand::Wait;
                }
                Demand::Compute(self.random.spread(*request, *spread).max(1))
            }
        }
    }

    /// It has computed for this long.
    pub fn computed(&mut self, span: Span) {
        if let Behaviour::Hog { computed } = &mut self.behaviour {
            // Counted in ms, so that it is a count like the others'.
            *computed += span;
            self.stats.completed += (*computed / 1_000_000) as u64;
            *computed %= 1_000_000;
        }
    }

    /// A request has come.
    pub fn request(&mut self, connection: u32, now: Time) {
        if let Behaviour::WebServer { requests, .. } = &mut self.behaviour {
            requests.push_back((connection, now));
        }
    }

    /// What it wanted to compute is complete; the connection of the request that is thereby served, if it was one.
    pub fn finished(&mut self, now: Time) -> Option<u32> {
        match &mut self.behaviour {
            Behaviour::Periodic { period, release, .. } => {
                self.stats.complete(now - *release);
                self.stats.failed += u64::from(now - *release > *period);
                *release += *period;
                None
            }
            Behaviour::WebServer { requests, .. } => {
                let (connection, since) = requests.pop_front()?;
                self.stats.complete(now - since);
                Some(connection)
            }
            Behaviour::Hog { .. } | Behaviour::Phases { .. } => None,
        }
    }
}

impl Position {
    /// The event it stands at, and steps on; `None` between phases.
    fn take(&mut self, phases: &[Phase]) -> Option<PhaseEvent> {
        let phase = phases.get(self.phase)?;
        if self.event == phase.events.len() {
            self.event = 0;
            self.round += 1;
        }
        if self.round >= phase.rounds || phase.events.is_empty() {
            *self = Position { phase: self.phase + 1, round: 0, event: 0 };
            return None;
        }
        self.event += 1;
        Some(phase.events[self.event - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(config: AppConfig) -> App {
        App::new(&config, Random::new(1, 0, 0))
    }

    #[test]
    fn a_periodic_task_keeps_its_releases_and_counts_late_jobs() {
        let mut app = app(AppConfig::Periodic { run_ns: 3, period_ns: 10 });
        let Demand::Sleep(first) = app.next(-1) else { panic!("it waits for its first release") };
        assert_eq!(app.next(first), Demand::Compute(3));
        app.finished(first + 4);
        assert_eq!(app.next(first + 4), Demand::Sleep(first + 10));
        assert_eq!(app.next(first + 10), Demand::Compute(3));
        app.finished(first + 25);
        assert_eq!(app.next(first + 25), Demand::Compute(3), "the next job is overdue already");
        assert_eq!((app.stats.completed, app.stats.failed), (2, 1));
        assert_eq!(app.stats.responses().unwrap().max(), 15);
    }

    #[test]
    fn a_script_goes_through_its_phases_and_ends() {
        use PhaseEvent::{Run, Sleep, Timer};
        let phases = vec![
            Phase { rounds: 2, events: vec![Run(5), Sleep(7)] },
            Phase { rounds: 1, events: vec![Timer(100), Run(1), Timer(100)] },
        ];
        let mut app = app(AppConfig::Phases { phases, rounds: Some(1) });
        let demands = [(0, Demand::Compute(5)), (5, Demand::Sleep(12)), (12, Demand::Compute(5))];
        for (now, demand) in demands {
            assert_eq!(app.next(now), demand);
        }
        assert_eq!(app.next(17), Demand::Sleep(24));
        assert_eq!(app.next(24), Demand::Sleep(100), "the first timer counts from the start");
        assert_eq!(app.next(100), Demand::Compute(1));
        assert_eq!(app.next(150), Demand::Sleep(200), "a timer counts from the last one, not from now");
        assert_eq!(app.next(200), Demand::Wait);
        assert_eq!(app.stats.completed, 1);
    }

    #[test]
    fn a_script_that_does_nothing_does_not_hang() {
        let phases = vec![Phase { rounds: 1, events: vec![PhaseEvent::Run(0)] }];
        assert_eq!(app(AppConfig::Phases { phases, rounds: None }).next(0), Demand::Wait);
    }

    #[test]
    fn a_server_serves_in_order_of_arrival() {
        let mut app = app(AppConfig::WebServer { request_ns: 50, spread_percent: 0, connections_max: 8 });
        assert_eq!(app.next(0), Demand::Wait);
        app.request(4, 0);
        app.request(2, 0);
        assert_eq!((app.next(0), app.finished(50)), (Demand::Compute(50), Some(4)));
        assert_eq!((app.next(50), app.finished(100)), (Demand::Compute(50), Some(2)));
        assert_eq!(app.next(100), Demand::Wait);
        assert_eq!((app.stats.completed, app.stats.responses().unwrap().max()), (2, 100));
    }

    #[test]
    fn runtime_ends_by_the_clock_and_run_by_the_work_done() {
        use PhaseEvent::{Run, Runtime};
        let phases = vec![Phase { rounds: 1, events: vec![Runtime(80_000), Run(80_000)] }];
        let mut app = app(AppConfig::Phases { phases, rounds: Some(1) });
        assert_eq!(app.next(0), Demand::Compute(32_000));
        // It was kept from computing for 40 us meanwhile.
        assert_eq!(app.next(72_000), Demand::Compute(8_000));
        assert_eq!(app.next(80_000), Demand::Compute(80_000));
        assert_eq!(app.next(500_000), Demand::Wait);
        assert_eq!(app.stats.completed, 1);
    }
}
