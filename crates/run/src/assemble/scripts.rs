//! Scripts that are in the scenario: events become steps, names become numbers.

use std::collections::{BTreeMap, BTreeSet};

use vcpulab_guest::{ChannelId, Script, Step, Stretches};
use vcpulab_host::{DomId, Table};
use vcpulab_spec::{AppSpec, DomainSpec, EventSpec, PhaseSpec};

/// The kinds of synchronization objects. Each has names of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Lock,
    Point,
    Barrier,
}

/// The synchronization objects that the scripts of a domain name: the number of each in the engine, and the number of tasks
/// that come to it.
#[derive(Default)]
pub(crate) struct SyncObjects<'a>(BTreeMap<(Kind, &'a str), (u32, u32)>);

impl<'a> SyncObjects<'a> {
    pub fn of(domain: &'a DomainSpec) -> Self {
        let mut all = BTreeMap::new();
        for app in &domain.apps {
            let AppSpec::Phases { phases, instances, .. } = app else { continue };
            for event in phases.iter().flat_map(|phase| &phase.events) {
                for object in objects(event).into_iter().flatten() {
                    let number = all.len() as u32;
                    let (_, tasks) = all.entry(object).or_insert((number, 0));
                    *tasks += instances;
                }
            }
        }
        SyncObjects(all)
    }

    fn number(&self, kind: Kind, name: &str) -> u32 {
        self.0[&(kind, name)].0
    }

    /// Number of times that scripts name it: by rt-app's rule the number of tasks that a barrier waits for.
    fn tasks(&self, kind: Kind, name: &str) -> u32 {
        self.0[&(kind, name)].1
    }
}

/// The synchronization objects that an event names.
fn objects(event: &EventSpec) -> [Option<(Kind, &str)>; 2] {
    match event {
        EventSpec::Run(_)
        | EventSpec::Runtime(_)
        | EventSpec::Sleep(_)
        | EventSpec::Timer(_)
        | EventSpec::Ticks(_)
        | EventSpec::Notify(_)
        | EventSpec::Await(_)
        | EventSpec::Done => [None, None],
        EventSpec::Lock(name) | EventSpec::Unlock(name) => [Some((Kind::Lock, name)), None],
        EventSpec::Suspend(name) | EventSpec::Resume(name) | EventSpec::Signal(name) => {
            [Some((Kind::Point, name)), None]
        }
        EventSpec::Wait { at, mutex } => [Some((Kind::Point, at)), Some((Kind::Lock, mutex))],
        EventSpec::Barrier(name) => [Some((Kind::Barrier, name)), None],
    }
}

/// The event channels that the scripts of a host name; their numbers in the engine are their places in alphabetical order.
#[derive(Default)]
pub(crate) struct Channels<'a>(Vec<&'a str>);

impl<'a> Channels<'a> {
    pub fn of(domains: &'a Table<DomId, DomainSpec>) -> Self {
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

    fn number(&self, name: &str) -> ChannelId {
        ChannelId(self.0.partition_point(|known| *known < name) as u32)
    }
}

pub(crate) fn script(
    phases: &[PhaseSpec],
    stretch: Option<u32>,
    rounds: Option<u32>,
    objects: &SyncObjects<'_>,
    channels: &Channels<'_>,
) -> Script {
    let lock = |name: &str| objects.number(Kind::Lock, name);
    let point = |name: &str| objects.number(Kind::Point, name);
    let mut script = Script::default();
    let says_done = phases.iter().any(|phase| phase.events.contains(&EventSpec::Done));
    let mut firsts = Vec::with_capacity(phases.len());
    for phase in phases {
        let from = script.steps.len();
        firsts.push(from as u32);
        for event in &phase.events {
            let step = match event {
                EventSpec::Run(times) => match times[..] {
                    [span] => Step::Compute { span, per_byte_ps: 0 },
                    _ => Step::ComputeDrawn(script.distribution(times)),
                },
                EventSpec::Runtime(span) => Step::Runtime(*span),
                EventSpec::Sleep(times) => match times[..] {
                    [span] => Step::Sleep(span),
                    _ => Step::SleepDrawn(script.distribution(times)),
                },
                EventSpec::Timer(span) => Step::Timer(*span),
                EventSpec::Ticks(ticks) => Step::Ticks(*ticks),
                EventSpec::Lock(name) => Step::Lock(lock(name)),
                EventSpec::Unlock(name) => Step::Unlock(lock(name)),
                EventSpec::Suspend(name) => Step::Wait { at: point(name), unlocks: None },
                EventSpec::Wait { at, mutex } => Step::Wait { at: point(at), unlocks: Some(lock(mutex)) },
                EventSpec::Resume(name) => Step::Wake { at: point(name), all: true },
                EventSpec::Signal(name) => Step::Wake { at: point(name), all: false },
                EventSpec::Barrier(name) => Step::Barrier {
                    at: objects.number(Kind::Barrier, name),
                    tasks: objects.tasks(Kind::Barrier, name),
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
        if stretch.is_some() {
            if !says_done {
                script.steps.push(Step::Done);
            }
            script.steps.push(Step::NextPhase);
        }
    }
    if let Some(mean) = stretch {
        script.stretches = Some(Box::new(Stretches { phases: firsts.into(), mean }));
        return script;
    }
    if !says_done {
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
    use vcpulab_scenario::Scenario;

    use crate::{RunOptions, run};

    /// The rows of a domain's applications, which are in `apps`, after a second: units completed by each.
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
    fn phases_that_come_in_stretches_are_all_gone_through_and_each_is_a_unit() {
        // Sleeps of 1 to 9 ms, of which each comes as often: 5 ms on average.
        let phases: Vec<_> = (1..10).map(|ms| format!("{{ event = [{{ sleep = \"{ms}ms\" }}] }}")).collect();
        let app =
            |stretch: &str| format!("{{ kind = \"phases\", {stretch}phase = [{}] }}", phases.join(", "));
        assert_eq!(completed(1, &app("")), [22], "a round is a unit");
        for mean in [1, 3, 9] {
            let [units] = completed(1, &app(&format!("stretch = {mean}, ")))[..] else {
                panic!("one application")
            };
            assert!((170..230).contains(&units), "{mean}: {units}");
        }
        let text = |app: &str| format!("[host]\nscheduler = \"credit\"\n[domain.a]\napp = [{app}]\n");
        for (stretch, said) in
            [("stretch = 0, ", "1 to 4096"), ("stretch = 2, loop = 3, ", "stretches have none")]
        {
            let problems = Scenario::parse(&text(&app(stretch)), "f").unwrap_err().to_string();
            assert!(problems.contains(said), "{problems}");
        }
    }

    #[test]
    fn ticks_begin_when_it_is_said() {
        let text = |fields: &str| format!("[host]\nscheduler = \"credit\"\n[domain.a]\n{fields}\n");
        let scenario = Scenario::parse(
            &text("idle_tick = \"4ms\"\nidle_tick_cpu = \"9us\"\nidle_tick_at = \"1ms\""),
            "f",
        );
        let scenario = scenario.unwrap_or_else(|problems| panic!("{problems}"));
        assert!(scenario.to_toml().contains("idle_tick_at = \"1ms\""), "{}", scenario.to_toml());
        let problems = Scenario::parse(&text("idle_tick_at = \"1ms\""), "f").unwrap_err().to_string();
        assert!(problems.contains("goes with `idle_tick`"), "{problems}");
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
