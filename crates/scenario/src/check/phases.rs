//! Applications whose script stands in the scenario, in rt-app's words: checked, written back, and as the engine takes
//! them.

use std::collections::{BTreeMap, BTreeSet};

use vcpulab_guest::{Script, Step};
use vcpulab_host::Span;

use crate::check::Checker;
use crate::limits::{APPS_MAX, EVENTS_MAX, PHASES_MAX, QUANTILES_MAX, SPAN_NS_MAX};
use crate::problem::{Place, Problem};
use crate::raw::{RawApp, RawEvent, RawPhase};
use crate::read::{At, Field, OneOrMany, ReadTable as _};
use crate::spec::{AppSpec, DomainSpec, EventSpec, PhaseSpec};
use crate::units::Duration;

// ---- checking ----

impl Checker<'_, '_> {
    pub(crate) fn phases_app(&mut self, raw: &RawApp, place: &Place) -> Option<AppSpec> {
        if raw.phase.is_none() {
            self.report.error(&place.member("phase"), Problem::says("required, but not given"));
        }
        let phases = self.phases(&raw.phase);
        let rounds = match self.int(&raw.r#loop, -1, -1..=u32::MAX.into())? {
            -1 => None,
            rounds => Some(rounds as u32),
        };
        let instances = self.int(&raw.instance, 1, 1..=APPS_MAX as i64)? as u32;
        let delay_ns = self.span(&raw.start_delay, Some(0), 0..=SPAN_NS_MAX)?;
        Some(AppSpec::Phases { phases: phases?, rounds, delay_ns, instances })
    }

    fn phases(&mut self, field: &Field<Vec<At<RawPhase>>>) -> Option<Vec<PhaseSpec>> {
        let At { value: raw, place } = field.0.as_ref()?;
        if !self.count(raw.len(), 1, PHASES_MAX, "phases", place) {
            return None;
        }
        let phases: Vec<Option<PhaseSpec>> = raw.iter().map(|phase| self.phase(phase)).collect();
        phases.into_iter().collect()
    }

    fn phase(&mut self, phase: &At<RawPhase>) -> Option<PhaseSpec> {
        let rounds = self.int(&phase.value.r#loop, 1, 1..=u32::MAX.into());
        let At { value: raw, place } = phase.value.event.0.as_ref()?;
        if !self.count(raw.len(), 1, EVENTS_MAX, "events", place) {
            return None;
        }
        let events: Vec<Option<EventSpec>> = raw.iter().map(|event| self.event(event)).collect();
        Some(PhaseSpec { rounds: rounds? as u32, events: events.into_iter().collect::<Option<_>>()? })
    }

    fn event(&mut self, event: &At<RawEvent>) -> Option<EventSpec> {
        let raw = &event.value;
        let drawn = [(&raw.run, EventSpec::Run as fn(Vec<i64>) -> EventSpec), (&raw.sleep, EventSpec::Sleep)];
        let spans =
            [(&raw.runtime, EventSpec::Runtime as fn(i64) -> EventSpec), (&raw.timer, EventSpec::Timer)];
        let names = [
            (&raw.lock, EventSpec::Lock as fn(String) -> EventSpec),
            (&raw.unlock, EventSpec::Unlock),
            (&raw.suspend, EventSpec::Suspend),
            (&raw.resume, EventSpec::Resume),
            (&raw.signal, EventSpec::Signal),
            (&raw.barrier, EventSpec::Barrier),
            (&raw.notify, EventSpec::Notify),
            (&raw.r#await, EventSpec::Await),
        ];
        let mut draw = drawn.iter().filter(|(field, _)| !field.is_none());
        let mut span = spans.iter().filter(|(field, _)| !field.is_none());
        let mut name = names.iter().filter(|(field, _)| !field.is_none());
        let given = [draw.clone().count(), span.clone().count(), name.clone().count()];
        let done = raw.done.get().copied().unwrap_or(false);
        if given.iter().sum::<usize>() + usize::from(!raw.wait.is_none()) + usize::from(done) != 1 {
            let words: Vec<&str> =
                RawEvent::FIELDS.iter().copied().filter(|field| *field != "mutex").collect();
            let allowed = format!("exactly one of {}", words.join(", "));
            self.report.error(&event.place, Problem::not_allowed(allowed));
            return None;
        }
        if raw.wait.is_none() != raw.mutex.is_none() {
            let problem = Problem::says("`wait` and `mutex` belong together");
            let hint = "who waits without a lock to give back meanwhile says `suspend`";
            self.report.error(&event.place, problem.hint(hint));
            return None;
        }
        if let Some((field, make)) = draw.next() {
            return self.quantiles(field).map(make);
        }
        if let Some((field, make)) = span.next() {
            return self.span(field, None, 1..=SPAN_NS_MAX).map(make);
        }
        if let Some((field, make)) = name.next() {
            return self.meeting(field).map(make);
        }
        if done {
            return Some(EventSpec::Done);
        }
        Some(EventSpec::Wait { at: self.meeting(&raw.wait)?, mutex: self.meeting(&raw.mutex)? })
    }

    /// A time, or the quantiles of a distribution of times.
    fn quantiles(&mut self, field: &Field<OneOrMany<Duration>>) -> Option<Vec<Span>> {
        let At { value, place } = field.0.as_ref()?;
        match value {
            OneOrMany::One(span) => self.time(*span, place, 1).map(|span| vec![span]),
            OneOrMany::Many(spans) => {
                if !self.count(spans.len(), 2, QUANTILES_MAX, "quantiles", place) {
                    return None;
                }
                let read: Vec<_> = spans.iter().map(|span| self.time(span.value, &span.place, 0)).collect();
                let quantiles: Vec<Span> = read.into_iter().collect::<Option<_>>()?;
                if let Some(index) =
                    (1..quantiles.len()).find(|&index| quantiles[index] < quantiles[index - 1])
                {
                    let allowed = format!(
                        "quantiles in ascending order, from {} on here",
                        Duration(quantiles[index - 1])
                    );
                    self.report.error(&spans[index].place, Problem::not_allowed(allowed));
                    return None;
                }
                Some(quantiles)
            }
        }
    }

    fn time(&mut self, span: Duration, place: &Place, least: Span) -> Option<Span> {
        let allowed = || format!("a time span from {} to {}", Duration(least), Duration(SPAN_NS_MAX));
        self.within(span.0, &(least..=SPAN_NS_MAX), place, allowed)
    }

    fn meeting(&mut self, field: &Field<String>) -> Option<String> {
        let name = field.0.as_ref()?;
        self.identifier(name);
        Some(name.value.clone())
    }
}

// ---- writing ----

pub(crate) fn raw_phase(phase: &PhaseSpec) -> RawPhase {
    let none = RawEvent::default;
    let event = |event: &EventSpec| match event.clone() {
        EventSpec::Run(times) => RawEvent { run: raw_times(&times).into(), ..none() },
        EventSpec::Runtime(span) => RawEvent { runtime: Duration(span).into(), ..none() },
        EventSpec::Sleep(times) => RawEvent { sleep: raw_times(&times).into(), ..none() },
        EventSpec::Timer(span) => RawEvent { timer: Duration(span).into(), ..none() },
        EventSpec::Lock(name) => RawEvent { lock: name.into(), ..none() },
        EventSpec::Unlock(name) => RawEvent { unlock: name.into(), ..none() },
        EventSpec::Suspend(name) => RawEvent { suspend: name.into(), ..none() },
        EventSpec::Wait { at, mutex } => RawEvent { wait: at.into(), mutex: mutex.into(), ..none() },
        EventSpec::Resume(name) => RawEvent { resume: name.into(), ..none() },
        EventSpec::Signal(name) => RawEvent { signal: name.into(), ..none() },
        EventSpec::Barrier(name) => RawEvent { barrier: name.into(), ..none() },
        EventSpec::Notify(name) => RawEvent { notify: name.into(), ..none() },
        EventSpec::Await(name) => RawEvent { r#await: name.into(), ..none() },
        EventSpec::Done => RawEvent { done: true.into(), ..none() },
    };
    let events = phase.events.iter().map(|e| event(e).into()).collect::<Vec<_>>();
    RawPhase { r#loop: i64::from(phase.rounds).into(), event: events.into() }
}

fn raw_times(times: &[Span]) -> OneOrMany<Duration> {
    match times {
        [span] => OneOrMany::One(Duration(*span)),
        quantiles => OneOrMany::Many(quantiles.iter().map(|&span| Duration(span).into()).collect()),
    }
}

// ---- running ----

/// What tasks meet at. Names of one sort mean nothing to the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Sort {
    Lock,
    Point,
    Barrier,
}

/// The locks, points and barriers that the scripts of a domain name: the number of each in the engine, and how many
/// tasks come there.
#[derive(Default)]
pub(crate) struct Meetings<'a>(BTreeMap<(Sort, &'a str), (u32, u32)>);

impl<'a> Meetings<'a> {
    pub fn of(domain: &'a DomainSpec) -> Self {
        let mut all = BTreeMap::new();
        for app in &domain.apps {
            let AppSpec::Phases { phases, instances, .. } = app else { continue };
            for event in phases.iter().flat_map(|phase| &phase.events) {
                for place in places(event).into_iter().flatten() {
                    let number = all.len() as u32;
                    let (_, tasks) = all.entry(place).or_insert((number, 0));
                    *tasks += instances;
                }
            }
        }
        Meetings(all)
    }

    fn number(&self, sort: Sort, name: &str) -> u32 {
        self.0[&(sort, name)].0
    }

    /// How often scripts name it: rt-app's rule for how many tasks a barrier waits for.
    fn tasks(&self, sort: Sort, name: &str) -> u32 {
        self.0[&(sort, name)].1
    }
}

/// What an event refers to.
fn places(event: &EventSpec) -> [Option<(Sort, &str)>; 2] {
    match event {
        EventSpec::Run(_)
        | EventSpec::Runtime(_)
        | EventSpec::Sleep(_)
        | EventSpec::Timer(_)
        | EventSpec::Notify(_)
        | EventSpec::Await(_)
        | EventSpec::Done => [None, None],
        EventSpec::Lock(name) | EventSpec::Unlock(name) => [Some((Sort::Lock, name)), None],
        EventSpec::Suspend(name) | EventSpec::Resume(name) | EventSpec::Signal(name) => {
            [Some((Sort::Point, name)), None]
        }
        EventSpec::Wait { at, mutex } => [Some((Sort::Point, at)), Some((Sort::Lock, mutex))],
        EventSpec::Barrier(name) => [Some((Sort::Barrier, name)), None],
    }
}

/// The event channels that the scripts of a host name; their numbers in the engine are their places in alphabetical order.
#[derive(Default)]
pub(crate) struct Channels<'a>(Vec<&'a str>);

impl<'a> Channels<'a> {
    pub fn of(domains: &'a [DomainSpec]) -> Self {
        let apps = domains.iter().flat_map(|domain| &domain.apps);
        let phases = apps.filter_map(|app| match app {
            AppSpec::Phases { phases, .. } => Some(phases),
            AppSpec::Kind { .. } => None,
        });
        let names = phases.flatten().flat_map(|phase| &phase.events).filter_map(|event| match event {
            EventSpec::Notify(name) | EventSpec::Await(name) => Some(name.as_str()),
            _ => None,
        });
        Channels(names.collect::<BTreeSet<_>>().into_iter().collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn number(&self, name: &str) -> u32 {
        self.0.partition_point(|known| *known < name) as u32
    }
}

pub(crate) fn script(
    phases: &[PhaseSpec],
    rounds: Option<u32>,
    meetings: &Meetings<'_>,
    channels: &Channels<'_>,
) -> Script {
    let lock = |name: &str| meetings.number(Sort::Lock, name);
    let point = |name: &str| meetings.number(Sort::Point, name);
    let mut script = Script::default();
    for phase in phases {
        let from = script.steps.len();
        for event in &phase.events {
            let step = match event {
                EventSpec::Run(times) => match times[..] {
                    [ns] => Step::Compute { ns, per_byte_ps: 0 },
                    _ => Step::ComputeDrawn(script.distribution(times)),
                },
                EventSpec::Runtime(ns) => Step::Runtime(*ns),
                EventSpec::Sleep(times) => match times[..] {
                    [ns] => Step::Sleep(ns),
                    _ => Step::SleepDrawn(script.distribution(times)),
                },
                EventSpec::Timer(ns) => Step::Timer(*ns),
                EventSpec::Lock(name) => Step::Lock(lock(name)),
                EventSpec::Unlock(name) => Step::Unlock(lock(name)),
                EventSpec::Suspend(name) => Step::Wait { at: point(name), unlocks: None },
                EventSpec::Wait { at, mutex } => Step::Wait { at: point(at), unlocks: Some(lock(mutex)) },
                EventSpec::Resume(name) => Step::Wake { at: point(name), all: true },
                EventSpec::Signal(name) => Step::Wake { at: point(name), all: false },
                EventSpec::Barrier(name) => Step::Barrier {
                    at: meetings.number(Sort::Barrier, name),
                    tasks: meetings.tasks(Sort::Barrier, name),
                },
                EventSpec::Notify(name) => Step::Notify(channels.number(name)),
                EventSpec::Await(name) => Step::AwaitEvent(channels.number(name)),
                EventSpec::Done => Step::Done,
            };
            script.steps.push(step);
            if let EventSpec::Wait { mutex, .. } = event {
                script.steps.push(Step::Lock(lock(mutex)));
            }
        }
        if phase.rounds > 1 {
            script.repeat(from, phase.rounds);
        }
    }
    if !script.steps.contains(&Step::Done) {
        script.steps.push(Step::Done);
    }
    match rounds {
        Some(0) => script.steps = vec![Step::Stop],
        Some(rounds) => {
            if rounds > 1 {
                script.repeat(0, rounds);
            }
            script.steps.push(Step::Stop);
        }
        None => {}
    }
    script
}

#[cfg(test)]
mod tests {
    use crate::{RunOptions, Scenario, run};

    /// The rows of a domain's applications, which stand in `apps`, after a second: units completed by each.
    fn completed(vcpus: u32, apps: &str) -> Vec<u64> {
        let text = format!(
            "[run]\nduration = \"1s\"\nwarmup = \"0s\"\n[host]\nprofile = \"exact\"\nscheduler = \"round-robin\"\npcpus = {vcpus}\n\
             [domain.a]\nvcpus = {vcpus}\napp = [{apps}]\n"
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again").as_ref(), Ok(&scenario));
        let results = run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
        assert!(results.apps.iter().all(|app| app.last_completed_ns.is_some() == (app.completed > 0)));
        results.apps.iter().map(|app| app.completed).collect()
    }

    #[test]
    fn two_that_resume_each_other_take_turns() {
        // The second one waits first, so that it is there to be resumed.
        let one = "{ kind = \"phases\", start_delay = \"1ms\", phase = [{ event = [{ run = \"10ms\" }, { resume = \"b\" }, { suspend = \"a\" }] }] }";
        let other = "{ kind = \"phases\", phase = [{ event = [{ suspend = \"b\" }, { run = \"10ms\" }, { resume = \"a\" }] }] }";
        for vcpus in [1, 2] {
            assert_eq!(completed(vcpus, &format!("{one}, {other}")), [49, 49]);
        }
    }

    #[test]
    fn a_lock_is_all_instances_and_applications_of_the_domain_have() {
        let app = "{ kind = \"phases\", instance = 2, phase = [{ event = [{ lock = \"l\" }, { sleep = \"10ms\" }, { unlock = \"l\" }] }] }";
        let sections: u64 = completed(2, &format!("{app}, {app}")).iter().sum();
        assert!((98..=100).contains(&sections), "{sections}");
    }

    #[test]
    fn who_waits_gives_the_lock_back_meanwhile_and_takes_it_again() {
        let waits = "{ kind = \"phases\", phase = [{ event = [{ lock = \"m\" }, { wait = \"q\", mutex = \"m\" }, { unlock = \"m\" }] }] }";
        let wakes = "{ kind = \"phases\", start_delay = \"5ms\", phase = [{ event = [{ lock = \"m\" }, { signal = \"q\" }, { unlock = \"m\" }, { timer = \"10ms\" }] }] }";
        let completed = completed(1, &format!("{waits}, {waits}, {wakes}"));
        assert!(completed[..2].iter().all(|woken| [49, 50].contains(woken)), "by turns: {completed:?}");
    }

    #[test]
    fn a_barrier_waits_for_all_who_name_it() {
        let app = |instances, run| {
            format!(
                "{{ kind = \"phases\", instance = {instances}, phase = [{{ event = [{{ run = \"{run}\" }}, {{ barrier = \"b\" }}] }}] }}"
            )
        };
        assert_eq!(completed(4, &format!("{}, {}", app(3, "2ms"), app(1, "20ms"))), [49; 4]);
    }

    #[test]
    fn events_cross_from_domain_to_domain_and_none_is_lost() {
        // The client sends two events in a row; the server, which takes 2 ms for each, answers once for both.
        let text = "[run]\nduration = \"1s\"\nwarmup = \"0s\"\n[host]\nprofile = \"exact\"\nscheduler = \"round-robin\"\n\
                    [domain.client]\napp = [{ kind = \"phases\", phase = [{ event = [{ run = \"1ms\" }, { notify = \"ask\" }, \
                    { notify = \"ask\" }, { await = \"answer\" }] }] }]\n\
                    [domain.server]\napp = [{ kind = \"phases\", phase = [{ loop = 2, event = [{ await = \"ask\" }, { run = \"2ms\" }] }, \
                    { event = [{ notify = \"answer\" }] }] }]\n";
        let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again").as_ref(), Ok(&scenario));
        let results =
            run(&scenario, &RunOptions { jobs: 1, waits: true, ..RunOptions::default() }, &|_| true).unwrap();
        let completed: Vec<u64> = results.apps.iter().map(|app| app.completed).collect();
        assert_eq!(completed, [199; 2], "a round takes 5 ms of one pCPU; the last one ends with the run");
        let woken_by: Vec<_> = results
            .wakeups
            .iter()
            .filter(|wakeups| wakeups.cause != "start")
            .map(|wakeups| (wakeups.domain.as_str(), wakeups.cause.as_str()))
            .collect();
        assert_eq!(woken_by, [("client", "event from server"), ("server", "event from client")]);
    }

    #[test]
    fn a_script_that_never_computes_lets_time_pass() {
        let app = "{ kind = \"phases\", phase = [{ loop = 1000, event = [{ lock = \"l\" }, { unlock = \"l\" }] }] }";
        assert!(completed(1, app)[0] > 0);
    }

    #[test]
    fn times_are_drawn_from_quantiles() {
        let app = "{ kind = \"phases\", phase = [{ event = [{ run = [\"1ms\", \"1ms\", \"5ms\"] }, { sleep = [\"0ns\", \"4ms\"] }] }] }";
        // Means of 2 ms and 2 ms.
        let rounds = completed(1, app)[0];
        assert!((225..275).contains(&rounds), "{rounds}");
        let text = |run: &str| {
            format!(
                "[run]\nduration = \"1s\"\n[host]\nscheduler = \"credit\"\n[domain.a]\napp = [{{ kind = \"phases\", phase = [{{ event = [{{ run = {run} }}] }}] }}]\n"
            )
        };
        for (run, said) in [
            ("[\"2ms\", \"1ms\"]", "ascending order, from 2ms on"),
            ("[\"2ms\"]", "2 to 1024 quantiles"),
            ("[]", "2 to 1024 quantiles"),
            ("[\"1ms\", \"-1ms\"]", "run"),
            ("[\"1ms\", 5]", "run"),
        ] {
            let problems = Scenario::parse(&text(run), "f").unwrap_err().to_string();
            assert!(problems.contains(said), "{problems}");
        }
    }

    #[test]
    fn who_is_gone_awaits_nothing_and_begins_anew_when_it_boots() {
        let text = |op: &str| {
            format!(
                "[run]\nduration = \"1s\"\nwarmup = \"0s\"\n[host]\nprofile = \"exact\"\nscheduler = \"credit2\"\n\
                 [domain.client]\napp = [{{ kind = \"phases\", phase = [{{ event = [{{ sleep = \"10ms\" }}, {{ notify = \"ask\" }}] }}] }}]\n\
                 [domain.server]\nshutdown = \"0s\"\napp = [{{ kind = \"phases\", phase = [{{ event = [{{ await = \"ask\" }}, {{ run = \"1ms\" }}] }}] }}]\n\
                 [[action]]\nat = \"505ms\"\nop = \"{op}\"\ndomain = \"server\"\n"
            )
        };
        let completed = |op: &str| {
            let scenario = Scenario::parse(&text(op), "f").unwrap_or_else(|problems| panic!("{problems}"));
            let results =
                run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
            results.apps.iter().map(|app| app.completed).collect::<Vec<_>>()
        };
        assert_eq!(completed("destroy"), [99, 50]);
        let [99, server] = completed("reboot")[..] else { panic!("the client goes on") };
        assert!((90..=99).contains(&server), "events wait while it boots: {server}");
    }

    #[test]
    fn all_begin_later_by_the_same_random_time() {
        let text = "[run]\nduration = \"1s\"\nwarmup = \"0s\"\nreplications = 20\nstart_spread = \"100ms\"\n\
                    [host]\nprofile = \"exact\"\nscheduler = \"round-robin\"\npcpus = 2\n\
                    [domain.a]\napp = [{ kind = \"phases\", loop = 1, phase = [{ event = [{ run = \"50ms\" }] }] }]\n\
                    [domain.b]\napp = [{ kind = \"phases\", loop = 1, start_delay = \"5ms\", phase = [{ event = [{ run = \"50ms\" }] }] }]\n";
        let scenario = Scenario::parse(text, "f").unwrap();
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again").as_ref(), Ok(&scenario));
        let results = run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
        let ends: Vec<i64> = results.apps.iter().map(|app| app.last_completed_ns.unwrap()).collect();
        let pairs: Vec<(i64, i64)> = ends.chunks(2).map(|pair| (pair[0], pair[1] - pair[0])).collect();
        assert!(
            pairs
                .iter()
                .all(|&(first, later)| later == 5_000_000 && (50_000_000..=150_000_000).contains(&first))
        );
        let firsts: std::collections::BTreeSet<_> = pairs.iter().map(|pair| pair.0 / 20_000_000).collect();
        assert!(firsts.len() >= 4, "spread over the time allowed: {pairs:?}");
    }

    #[test]
    fn a_script_may_say_what_a_unit_of_work_is() {
        let events = "{ run = \"10ms\" }, { done = true }, { run = \"30ms\" }, { done = true }";
        let app = format!("{{ kind = \"phases\", phase = [{{ event = [{events}] }}] }}");
        assert_eq!(completed(1, &app), [49]);
        let text = "[host]\nscheduler = \"credit\"\n[domain.a]\napp = [{ kind = \"phases\", phase = [{ event = [{ done = false }] }] }]\n";
        let problems = Scenario::parse(text, "f").unwrap_err().to_string();
        assert!(problems.contains("allowed: exactly one of"), "{problems}");
    }

    #[test]
    fn a_program_that_ends_says_when() {
        let text = "[run]\nduration = \"1s\"\nwarmup = \"0s\"\n[host]\nprofile = \"exact\"\nscheduler = \"round-robin\"\n\
                    [domain.a]\napp = [{ kind = \"phases\", loop = 3, phase = [{ event = [{ run = \"50ms\" }] }] }, \
                    { kind = \"phases\", loop = 0, phase = [{ event = [{ run = \"50ms\" }] }] }]\n";
        let results = run(
            &Scenario::parse(text, "f").unwrap(),
            &RunOptions { jobs: 1, ..RunOptions::default() },
            &|_| true,
        );
        let ends: Vec<_> = results.unwrap().apps.iter().map(|app| app.last_completed_ns).collect();
        assert_eq!(ends, [Some(150_000_000), None]);
    }
}
