//! Tests of whole runs.

#[path = "../../scenario/src/tests/right.rs"]
mod right;

use proptest::prelude::*;
use vcpulab_scenario::Scenario;
use vcpulab_sched::policies;
use vcpulab_spec::entitlements;

use crate::tests::right::right;
use crate::{RunOptions, run};

/// Each pool has its own scheduler: a weight decides in one, a budget in the other.
#[test]
fn pools_run_side_by_side() {
    let text = "run = { duration = \"1s\", warmup = \"0s\" }\n\
        [host]\nprofile = \"exact\"\npcpus = 2\nscheduler = \"credit2\"\n\
        [pool.rt]\npcpus = \"1\"\nscheduler = \"rtds\"\n\
        [domain.a]\nweight = 512\napp = [{ kind = \"hog\" }]\n[domain.b]\napp = [{ kind = \"hog\" }]\n\
        [domain.c]\npool = \"rt\"\nextratime = 0\napp = [{ kind = \"hog\" }]\n";
    let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
    let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
    let share = |name: &str| {
        let row = results.domains.iter().find(|row| row.domain == name).unwrap();
        (row.pool.clone(), (row.running_ns as f64 / 1e7).round())
    };
    assert_eq!(share("a"), ("Pool-0".into(), 67.0));
    assert_eq!(share("b"), ("Pool-0".into(), 33.0));
    assert_eq!(share("c"), ("rt".into(), 40.0), "RTDS's default is 4 ms in each 10 ms");
    assert_eq!(results.pcpus.iter().map(|row| row.pool.as_str()).collect::<Vec<_>>(), ["Pool-0", "rt"]);
}

/// On two pCPUs, with two hogs of weight 256 (of which one is offline for a second), one of 512 that is saved for three
/// seconds and paused for the last, and one of 256 that is there from 2 s to 10 s and again from 11 s on.
#[test]
fn domains_come_and_go() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/life-cycle.toml"));
    let scenario = Scenario::parse(&text.unwrap(), "f").unwrap_or_else(|problems| panic!("{problems}"));
    assert!(entitlements(&scenario).iter().all(Option::is_none), "who is there changes");
    let results = run(&scenario, &RunOptions::default(), &|_| true).unwrap();
    assert_eq!(results.rejected_actions, 0);
    let offline: Vec<i64> = results.vcpus.iter().map(|row| row.offline_ns / 1_000_000).collect();
    assert_eq!(offline, [0, 1_000, 3_000 + 1_000, 2_000 + 1_000]);
    for row in &results.vcpus {
        let sum = row.running_ns + row.runnable_ns + row.blocked_ns + row.offline_ns;
        assert_eq!(sum, 12_000_000_000, "{} {}", row.domain, row.vcpu);
    }
    let states: Vec<Option<&str>> = results.domains.iter().map(|row| row.state.as_deref()).collect();
    assert_eq!(
        states,
        [Some("r-----"), Some("--p---"), Some("------")],
        "one runs, one is paused, one waits"
    );
    // Nobody blocks, and there are always two vCPUs or more.
    let running: i64 = results.vcpus.iter().map(|row| row.running_ns).sum();
    assert_eq!(running, 2 * 12_000_000_000);
}

#[test]
fn every_generation_of_every_scheduler_runs() {
    for policy in policies() {
        for generation in policy.generations {
            let text = format!(
                "run = {{ duration = \"50ms\", warmup = \"10ms\" }}\n[host]\nscheduler = \"{}\"\ngeneration = \"{}\"\npcpus = 2\n\
                 [domain.a]\napp = [{{ kind = \"hog\" }}]\n[domain.b]\napp = [{{ kind = \"periodic\", run = \"1ms\", period = \"5ms\" }}]\n",
                policy.name, generation.name
            );
            let scenario = Scenario::parse(&text, "f").unwrap();
            let results = run(&scenario, &RunOptions::default(), &|_| true);
            let results =
                results.unwrap_or_else(|error| panic!("{} {}: {error}", policy.name, generation.name));
            assert_eq!(results.domains.len(), 2);
        }
    }
}

/// A guest with such a tick, alone on a host for 2 s.
fn ticking(tick: &str, apps: &str) -> String {
    format!(
        "[run]\nduration = \"2s\"\nwarmup = \"0s\"\n[host]\nprofile = \"exact\"\nscheduler = \"credit2\"\n\
         [domain.a]\n{tick}\napp = [{apps}]\n"
    )
}

/// Executions of the first vCPU, its CPU time (ns) and completed units of the first application; the scenario written
/// again is the same.
fn executed(text: &str) -> (u64, i64, u64) {
    let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again").as_ref(), Ok(&scenario));
    let results = run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
    (results.vcpus[0].executions, results.vcpus[0].running_ns, results.apps[0].completed)
}

#[test]
fn a_guest_that_leaves_its_tick_on_wakes_twice_for_a_sleep() {
    let text = |tick: &str| {
        ticking(tick, r#"{ kind = "phases", phase = [{ event = [{ run = "1ms" }, { sleep = "19ms" }] }] }"#)
    };
    let of = |tick: &str| executed(&text(tick));
    assert_eq!(of(""), (100, 100_000_000, 99));
    assert_eq!(of("idle_tick = \"4ms\"\nidle_tick_cpu = \"50us\""), (200, 105_000_000, 99));
    // Who sleeps for less than a tick meets it in some sleeps only.
    let (executions, ..) = of("idle_tick = \"40ms\"\nidle_tick_cpu = \"50us\"");
    assert!((140..=160).contains(&executions), "{executions}");
    // Waking takes time, and going idle, in which its task already sleeps, once each: a tick that finds it idle has its own.
    let waking = |tick: &str| of(&format!("{tick}\nwake_cpu = \"150us\"\nidle_cpu = \"50us\""));
    assert_eq!(waking(""), (100, 119_800_000, 99));
    // A tick in the middle of what it computes makes it 10 us longer, until after 50 of them it begins later than its ticks.
    let busy =
        "idle_tick = \"4ms\"\nidle_tick_cpu = \"50us\"\nbusy_tick_cpu = \"10us\"\nidle_tick_at = \"500us\"";
    assert_eq!(of(busy), (200, 105_500_000, 99));
    let refused = |tick: &str| Scenario::parse(&text(tick), "f").unwrap_err().to_string();
    let alone = refused("idle_tick = \"4ms\"");
    assert!(alone.contains("`idle_tick` and `idle_tick_cpu` belong together"), "{alone}");
    let without = refused("busy_tick_cpu = \"10us\"");
    assert!(without.contains("`busy_tick_cpu` goes with `idle_tick`"), "{without}");
}

#[test]
fn who_is_preempted_pays_when_it_goes_on() {
    let text = |resume_us: u32| {
        format!(
            "[run]\nduration = \"2s\"\nwarmup = \"0s\"\n[host]\nprofile = \"exact\"\nscheduler = \"credit2\"\n\
             ratelimit_us = 0\n[host.costs]\nresume_ns = {}\n[domain.a]\napp = [{{ kind = \"hog\" }}]\n\
             [domain.b]\napp = [{{ kind = \"phases\", phase = [{{ event = [{{ sleep = \"9ms\" }}, {{ run = \"1ms\" }}] }}] }}]\n",
            1000 * resume_us
        )
    };
    let of = |resume_us: u32| {
        let scenario = Scenario::parse(&text(resume_us), "f").unwrap_or_else(|problems| panic!("{problems}"));
        let results = run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
        let (hog, sleeper) = (&results.vcpus[0], &results.vcpus[1]);
        (hog.running_ns, hog.preemptions, sleeper.running_ns, results.apps[0].completed)
    };
    // The sleeper preempts it every 10 ms, and is not preempted itself.
    assert_eq!(of(0), (1_801_000_000, 199, 199_000_000, 1800));
    // Each time, and at first, when the sleeper looked for something to do: a tenth of a millisecond. The sleeper: nothing.
    assert_eq!(of(100), (1_801_000_000, 199, 199_000_000, 1780));
}

#[test]
fn deciding_takes_time_of_who_blocks_and_who_wakes_another_and_until_it_is_done() {
    let text = |scheduler: &str, costs: &str| {
        format!(
            "[run]\nduration = \"19ms\"\nwarmup = \"1ms\"\n[host]\nprofile = \"exact\"\nscheduler = \"{scheduler}\"\n\
             [host.costs]\n{costs}\n[domain.a]\napp = [{{ kind = \"phases\", phase = [{{ event = [{{ sleep = \"9ms\" }}, \
             {{ run = \"900us\" }}, {{ notify = \"b\" }}, {{ run = \"500us\" }}, {{ sleep = \"1s\" }}] }}] }}]\n\
             [domain.b]\napp = [{{ kind = \"phases\", phase = [{{ event = [{{ await = \"b\" }}, {{ run = \"1ms\" }}] }}] }}]\n"
        )
    };
    let of = |scheduler: &str, costs: &str| {
        let scenario =
            Scenario::parse(&text(scheduler, costs), "f").unwrap_or_else(|problems| panic!("{problems}"));
        let results = run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
        [0, 1].map(|d| (results.vcpus[d].runnable_ns / 1000, results.vcpus[d].running_ns / 1000))
    };
    // Within the rate limit the one that is woken waits until the other blocks.
    for scheduler in ["credit", "credit2"] {
        assert_eq!(of(scheduler, ""), [(0, 1400), (500, 1000)]);
    }
    let costs = "block_ns = 20000\nwake_ns = 30000\ncredit2_percent = 200";
    // 30 us until the idle pCPU decides; 20 us, and 30 us for the wake-up, which the other waits for, too.
    assert_eq!(of("credit", costs), [(30, 1450), (530, 1020)]);
    assert_eq!(of("credit2", costs), [(60, 1500), (560, 1040)]);
}

#[test]
fn what_interrupts_alone_deal_with_leaves_a_stopped_tick_alone() {
    let tick =
        "idle_tick = \"4ms\"\nidle_tick_cpu = \"50us\"\nbusy_tick_cpu = \"10us\"\nidle_tick_at = \"500us\"";
    let of = |apps: &[&str]| executed(&ticking(tick, &apps.join(", ")));
    let packets =
        r#"{ kind = "phases", softirq = true, phase = [{ event = [{ run = "1ms" }, { sleep = "19ms" }] }] }"#;
    let process = packets.replace("softirq = true, ", "");
    // The tick that the boot left on finds it busy, the next one idle, and no other comes.
    assert_eq!(of(&[packets]), (101, 100_060_000, 99));
    assert_eq!(of(&[&process]).0, 200);
    // After each of its five turns a process leaves the tick on once.
    let rare = process.replace("phases\",", "phases\", start_delay = \"5ms\",").replace("19ms", "399ms");
    assert_eq!(of(&[packets, &rare]).0, 101 + 5 + 5);
    let error = Scenario::parse(&ticking("", packets), "f").unwrap_err().to_string();
    assert!(error.contains("`softirq` goes with the domain's `idle_tick`, and it has none"), "{error}");
}

#[test]
fn a_timeout_ends_at_a_tick_of_the_guests() {
    let text = |tick: &str, ticks: u32| {
        let events = format!("{{ run = \"1ms\" }}, {{ ticks = {ticks} }}");
        ticking(tick, &format!("{{ kind = \"phases\", phase = [{{ event = [{events}] }}] }}"))
    };
    let tick = "idle_tick = \"4ms\"\nidle_tick_cpu = \"50us\"\nidle_tick_at = \"0s\"";
    let of = |ticks: u32| executed(&text(tick, ticks));
    // Every 20 ms, whatever it computes; the first of the five ticks wakes it for its own sake.
    assert_eq!(of(5), (200, 105_000_000, 99));
    // The tick that ends its sleep is in what it computes.
    assert_eq!(of(1), (500, 500_000_000, 499));
    let refused = |tick: &str, ticks| Scenario::parse(&text(tick, ticks), "f").unwrap_err().to_string();
    assert!(refused("", 5).contains("`ticks` goes with the domain's `idle_tick`, and it has none"));
    assert!(refused(tick, 0).contains("1 to 4294967295"));
}

proptest! {
    #[test]
    fn right_scenarios_run(text in right()) {
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
        let results = run(&scenario, &RunOptions { jobs: 1, trace: true, ..RunOptions::default() }, &|_| true);
        let results = results.unwrap_or_else(|error| panic!("{text}\n{error}"));
        prop_assert_eq!(results.domains.len(), scenario.domains.len());
        for pcpu in &results.pcpus {
            prop_assert_eq!(pcpu.run_ns + pcpu.idle_ns + pcpu.overhead_ns, scenario.duration.ns());
        }
    }
}
