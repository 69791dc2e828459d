//! Tests of runs: whole, in parts, in parallel, stopped and failed.

use std::sync::Mutex;

use vcpulab_host::{Broken, Time};
use vcpulab_measure::{Results, SampleRow};
use vcpulab_scenario::Scenario;

use crate::error::RunError;
use crate::options::RunOptions;
use crate::replicate::runs::{Own, Part, Ran, Runs, run};
use crate::replicate::schedulers::none_to_make;

fn scenario() -> Scenario {
    let text = "[run]\nduration = \"100ms\"\nwarmup = \"30ms\"\nreplications = 5\n[host]\nscheduler = \"credit\"\n\
         profile = \"generic\"\npcpus = 2\n[domain.a]\nvcpus = 3\nweight = 512\napp = [{ kind = \"hog\", instance = 3 }]\n\
         [domain.b]\nvcpus = 2\napp = [{ kind = \"periodic\", run = \"1ms\", period = \"3ms\", instance = 2 }]\n";
    Scenario::parse(text, "f").unwrap()
}

fn run_with(jobs: usize, trace: bool, progress: &(dyn Fn(f64) -> bool + Sync)) -> Result<Results, RunError> {
    run(&scenario(), &RunOptions { jobs, trace, ..RunOptions::default() }, progress)
}

fn start(parts: Vec<Part<'_>>, options: &RunOptions, progress: &(dyn Fn(f64) -> bool + Sync)) -> Ran {
    Runs { parts, options, progress, own: None }.start()
}

#[test]
fn the_number_of_threads_never_changes_the_results() {
    let results = run_with(1, true, &|_| true).unwrap();
    assert_eq!(results, run_with(4, true, &|_| true).unwrap());
    let order: Vec<u32> = results.domains.iter().map(|row| row.replication).collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert_ne!(
        results.domains[0].running_ns, results.domains[2].running_ns,
        "each has its own random numbers"
    );
    assert_eq!(results.domains[0].entitlement, Some(1.5), "a weight counts for each vCPU");
    assert!(!results.trace.is_empty() && results.trace.in_memory().all(|row| row.time_ns >= 30_000_000));
}

#[test]
fn replications_run_one_by_one_are_those_of_the_whole_run() {
    let (spec, options) = (scenario(), RunOptions { trace: true, ..RunOptions::default() });
    let mut all = Results::default();
    let parts = [0..2, 2..3, 3..5].map(|replications| Part { spec: &spec, replications });
    let ran = start(parts.to_vec(), &options, &|_| true);
    assert_eq!(ran.so_far.iter().map(|part| part.replications).collect::<Vec<_>>(), [2, 1, 2]);
    ran.results().unwrap().into_iter().for_each(|results| all.append(results));
    assert_eq!(all, run_with(2, true, &|_| true).unwrap());
}

#[test]
fn what_is_measured_begins_after_the_warm_up() {
    let results = run_with(1, false, &|_| true).unwrap();
    assert!(results.trace.is_empty());
    for row in &results.domains {
        assert_eq!(row.elapsed_ns, 100_000_000);
        let sum = row.running_ns + row.runnable_ns + row.blocked_ns + row.offline_ns;
        assert_eq!(sum, row.elapsed_ns * i64::from(row.vcpus));
    }
    let kinds: Vec<&str> = results.apps.iter().take(5).map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds, ["hog", "hog", "hog", "periodic", "periodic"]);
    for row in results.apps.iter().filter(|row| row.kind == "periodic") {
        assert!(
            (1..=36).contains(&row.completed),
            "at most one job every 3 ms for 100 ms: {}",
            row.completed
        );
        assert!(row.response_p50_ns.is_some());
    }
}

#[test]
fn a_web_server_serves_what_it_is_asked_for() {
    for profile in ["exact", "generic", "lp200r"] {
        let text = format!(
            "[run]\nduration = \"1s\"\n[host]\nscheduler = \"credit\"\nprofile = \"{profile}\"\npcpus = 1\n\
             [domain.dom0]\ndriver_domain = true\n\
             [domain.web]\nnic.driver_domain = \"dom0\"\napp = [{{ kind = \"web-server\" }}]\n\
             [client.c]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 200\n"
        );
        let scenario = Scenario::parse(&text, "f").unwrap();
        let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
        let client = results.apps.iter().find(|row| row.kind == "open-loop").unwrap();
        assert!((150..=250).contains(&client.completed), "{profile}: {client:?}");
        assert!(results.domains.iter().all(|row| row.io_count > 0), "{profile}");
    }
}

#[test]
fn progress_rises_to_one_and_can_stop_the_run() {
    let seen = Mutex::new(vec![0.0]);
    run_with(2, false, &|fraction| {
        seen.lock().unwrap().push(fraction);
        true
    })
    .unwrap();
    let seen = seen.into_inner().unwrap();
    assert!(seen.is_sorted() && *seen.last().unwrap() == 1.0, "{seen:?}");
    assert_eq!(run_with(2, false, &|fraction| fraction < 0.3), Err(RunError::Cancelled));
}

#[test]
fn a_run_that_is_stopped_has_its_first_replications() {
    let (first, second) = (scenario(), scenario().with_run(Some(7), None).unwrap());
    for jobs in [1, 3] {
        let options = RunOptions { jobs, ..RunOptions::default() };
        let stopped = start(vec![Part::whole(&first), Part::whole(&second)], &options, &|done| done < 0.65);
        assert!(matches!(stopped.failure, Some((_, RunError::Cancelled))));
        let stopped = stopped.so_far;
        let counts: Vec<u32> = stopped.iter().map(|so_far| so_far.replications).collect();
        // Of several threads any may be the last.
        assert!(if jobs == 1 { counts == [3, 3] } else { counts.iter().sum::<u32>() < 10 }, "{counts:?}");
        for (scenario, so_far) in
            [&first, &second].into_iter().zip(stopped).filter(|(_, so_far)| so_far.replications > 0)
        {
            let as_many = scenario.with_run(None, Some(so_far.replications)).unwrap();
            assert_eq!(run(&as_many, &RunOptions::default(), &|_| true), Ok(so_far.results));
        }
    }
}

#[test]
fn many_scenarios_have_the_results_of_each_in_their_order() {
    let other = scenario().with_run(Some(7), Some(2)).unwrap();
    let each = |scenario: &Scenario| run(scenario, &RunOptions::default(), &|_| true).unwrap();
    let expected = vec![each(&scenario()), each(&other), each(&scenario())];
    let scenarios = [scenario(), other, scenario()];
    let parts: Vec<Part<'_>> = scenarios.iter().map(|scenario| Part::whole(scenario)).collect();
    let options = |jobs| RunOptions { jobs, ..RunOptions::default() };
    for jobs in [1, 4] {
        assert_eq!(start(parts.clone(), &options(jobs), &|_| true).results(), Ok(expected.clone()));
    }
    assert_eq!(start(Vec::new(), &options(0), &|_| true).results(), Ok(Vec::new()));
    let stopped = start(parts, &options(2), &|fraction| fraction < 0.5);
    assert_eq!(stopped.results(), Err(RunError::Cancelled));
}

#[test]
fn of_many_scenarios_the_first_that_fails_is_named() {
    let why = Broken { time: Time::from_ns(5), hook: None, what: "so it is".into() };
    let error = RunError::Broken { replication: 2, broken: why };
    let error = RunError::OneOf { index: 1, error: Box::new(error) };
    assert_eq!(error.to_string(), "scenario 1: replication 2: at 5 ns: so it is");
}

#[test]
fn a_run_ends_soon_after_nobody_wants_it() {
    // One step of the hundred has a million events.
    let text = "[run]\nduration = '100s'\nwarmup = '0s'\nsample = '0s'\n[host]\npcpus = 1\nscheduler = 'credit'\n\
        profile = 'exact'\n[domain.a]\napp = [{ kind = 'periodic', run = '1us', period = '4us' }]\n";
    let scenario = Scenario::parse(text, "f").unwrap();
    let calls = Mutex::new(0);
    let progress = |done: f64| {
        assert_eq!(done, 0.0, "the first step is not over");
        *calls.lock().unwrap() += 1;
        *calls.lock().unwrap() < 3
    };
    assert_eq!(run(&scenario, &RunOptions::default(), &progress), Err(RunError::Cancelled));
    assert_eq!(*calls.lock().unwrap(), 3, "nothing is asked any more");
}

#[test]
fn a_manager_sets_parameters_at_each_sample() {
    let text = "[run]\nduration = '3s'\nwarmup = '500ms'\nsample = '1s'\nreplications = 2\n[host]\npcpus = 1\n\
         scheduler = 'credit'\nprofile = 'exact'\n[domain.a]\napp = [{ kind = 'hog' }]\n";
    let scenario = Scenario::parse(text, "f").unwrap();
    let managed = |cap: i64| {
        let mut seen = Vec::new();
        let mut manager = |samples: &[SampleRow]| {
            seen.push((samples[0].replication, samples[0].time_ns, samples[0].running_ns));
            Ok(vec![("a".to_owned(), vec![("cap".to_owned(), cap)])])
        };
        let results = {
            let own = Some(Own { scheduler: &mut none_to_make, manager: Some(&mut manager) });
            let parts = vec![Part::whole(&scenario)];
            Runs { parts, options: &RunOptions::default(), progress: &|_| true, own }.start().results()
        };
        (results, seen)
    };
    let (results, seen) = managed(20);
    let times: Vec<(u32, i64)> = seen.iter().map(|&(replication, time, _)| (replication, time)).collect();
    let (first, second) = (1_500_000_000, 2_500_000_000);
    assert_eq!(times, [(0, first), (0, second), (1, first), (1, second)]);
    assert_eq!(seen[0].2, 1_000_000_000, "there is no cap yet");
    let running = results.unwrap()[0].domains[0].running_ns;
    assert!((1_350_000_000..1_500_000_000).contains(&running), "{running}");
    let (refused, _) = managed(1_000);
    assert!(refused.unwrap_err().to_string().contains("cap"), "a domain with one vCPU cannot use ten");
}
