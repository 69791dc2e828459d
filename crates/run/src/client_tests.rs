//! Tests of clients on a whole host: what users do, and that none of them is ever lost.

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use vcpulab_host::{Host, HostConfig, Params, Pools, Span, Time};
use vcpulab_io::{ClientSample, GuestId, Machine, MachineConfig, Outcome};
use vcpulab_scenario::Scenario;

use crate::{host_config, machine_config};

const SECOND: Span = Span::from_secs(1);
const MS: Span = Span::from_ms(1);

/// A web server behind a driver domain, each with a pCPU, for ten seconds.
fn scenario(server: &str, client: &str, rest: &str) -> Scenario {
    let text = format!(
        "[run]\nduration = \"10s\"\nwarmup = \"0s\"\n[host]\nscheduler = \"credit\"\nprofile = \"generic\"\npcpus = 2\n\
         [domain.dom0]\ndriver_domain = true\naffinity = \"0\"\n\
         [domain.web]\nnic.driver_domain = \"dom0\"\naffinity = \"1\"\nshutdown = \"0s\"\nmemory = \"1MiB\"\n\
         app = [{{ kind = \"web-server\", {server} }}]\n[client.c]\nserver = \"web\"\n{client}\n{rest}\n"
    );
    Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

struct Run {
    host: HostConfig,
    machine: MachineConfig,
    end: Time,
}

/// Every request that was over by the end, and the world then.
type Ended = (Vec<ClientSample>, Machine);

impl Run {
    fn run(self, scheduler: Pools) -> Ended {
        let samples = Rc::new(RefCell::new(Vec::new()));
        let mut machine = Machine::new(&self.machine);
        let kept = samples.clone();
        machine.log_requests(move |sample| kept.borrow_mut().push(*sample));
        let mut host = Host::new(&self.host, scheduler, machine, ()).unwrap();
        host.run_until(self.end).unwrap();
        (samples.take(), host.into_parts().2)
    }
}

fn samples(scenario: &Scenario) -> Vec<ClientSample> {
    ended(scenario).0
}

fn ended(scenario: &Scenario) -> Ended {
    let run = Run { host: host_config(scenario), machine: machine_config(scenario, 0), end: scenario.end() };
    run.run(Pools::new(vec![vcpulab_sched::boxed("credit", "xen4.17", &Params::new(), 2).unwrap()]))
}

fn elapsed(sample: &ClientSample) -> f64 {
    (sample.ended - sample.begun).ns() as f64
}

fn median_ms(samples: &[ClientSample]) -> f64 {
    let mut times: Vec<i64> = samples.iter().map(|sample| (sample.ended - sample.begun).ns()).collect();
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e6
}

fn count(samples: &[ClientSample], outcome: Outcome) -> usize {
    samples.iter().filter(|sample| sample.outcome == outcome).count()
}

/// Each user does one thing after another, and there are no more users than there should be.
fn users_take_turns(samples: &[ClientSample], users: u32) {
    let mut free_at = vec![Time::ZERO; users as usize];
    for sample in samples {
        let free_at = &mut free_at[sample.user as usize];
        assert!(sample.begun >= *free_at, "{sample:?} begins before {free_at}");
        assert!(sample.active <= users && sample.connect_ns <= sample.ended - sample.begun, "{sample:?}");
        *free_at = sample.ended;
    }
}

#[test]
fn a_client_machine_is_part_of_the_response_time() {
    let client = "kind = \"closed-loop\"\nusers = 1\nthink = \"20ms\"\n";
    let alone = median_ms(&samples(&scenario("", client, "")));
    let on = |machine: &str| {
        let rest = format!("[client_machine.pc]\n{machine}");
        median_ms(&samples(&scenario("", &format!("{client}machine = \"pc\""), &rest)))
    };
    let cpu = on("request_cpu = \"5ms\"");
    assert!((4.99..5.2).contains(&(cpu - alone)), "{alone} {cpu}");
    // A kept connection: a request out, 7 segments in, and the acknowledgements in between.
    let packets = on("processors = 1\npacket_cpu = \"1ms\"");
    assert!((7.9..11.1).contains(&(packets - alone)), "{alone} {packets}");
    let shared = on("packet_cpu = \"1ms\"");
    assert!((4.9..6.1).contains(&(shared - alone)), "two processors, the segments by twos: {alone} {shared}");
    // 10 KB and 7 headers at 10 Mbit/s take 8.4 ms, the request 0.3 ms.
    let link = on("bits_per_s = 10_000_000");
    assert!((8.0..9.2).contains(&(link - alone)), "{alone} {link}");
}

#[test]
fn users_share_the_processors_of_their_machine() {
    let client = "kind = \"closed-loop\"\nusers = 10\nmachine = \"pc\"\n";
    let machine = "[client_machine.pc]\nprocessors = 2\nrequest_cpu = \"10ms\"";
    let samples = samples(&scenario("", client, machine));
    // Two processors make 200 requests a second, and the ten users spend what is left of 50 ms with the server.
    assert!((1_980..=2_000).contains(&samples.len()), "{}", samples.len());
    assert!((48.0..50.5).contains(&median_ms(&samples)), "{}", median_ms(&samples));
}

#[test]
fn a_machine_without_a_connection_left_fails_at_once_and_time_goes_on() {
    let client = "kind = \"closed-loop\"\nusers = 10\nmachine = \"pc\"\n";
    let samples = samples(&scenario("", client, "[client_machine.pc]\nconnections_max = 4"));
    let served: std::collections::BTreeSet<u32> = samples
        .iter()
        .filter(|sample| sample.outcome == Outcome::Answered)
        .map(|sample| sample.user)
        .collect();
    assert_eq!(served.len(), 4, "who has a connection keeps it");
    let turned_away = count(&samples, Outcome::NoConnection);
    assert!((59_000..=60_000).contains(&turned_away), "six users, once a millisecond: {turned_away}");
}

#[test]
fn an_open_loop_logs_what_it_turns_away() {
    let client = "kind = \"open-loop\"\nrate = 2000\nconnections_max = 2\n";
    let samples = samples(&scenario("request_cpu = \"5ms\"", client, ""));
    assert!(count(&samples, Outcome::NoConnection) > 10_000);
    assert!((1_000..=2_000).contains(&count(&samples, Outcome::Answered)));
    assert!(samples.iter().all(|sample| sample.active <= 2));
}

#[test]
fn a_request_tried_again_is_one_request_since_its_first_try() {
    let client = "kind = \"closed-loop\"\nusers = 2\ntimeout = \"30ms\"\nretries = 2\n";
    let samples = samples(&scenario("request_cpu = \"100ms\"", client, ""));
    assert!(!samples.is_empty());
    for sample in samples {
        assert_eq!((sample.outcome, sample.ended - sample.begun), (Outcome::TimedOut, 90 * MS));
    }
}

#[test]
fn requests_given_up_leave_nothing_behind() {
    let text = "[run]\nduration = \"4s\"\nwarmup = \"0s\"\n[host]\nscheduler = \"credit\"\nprofile = \"lp200r\"\npcpus = 2\n\
         [domain.dom0]\ndriver_domain = true\n[domain.web]\nnic.driver_domain = \"dom0\"\n\
         app = [{ kind = \"web-server\" }]\n[client.c]\nserver = \"web\"\nkind = \"closed-loop\"\nusers = 500\n\
         timeout = \"10ms\"\nretries = 3\n";
    let (samples, machine) = ended(&Scenario::parse(text, "f").unwrap());
    let given_up = count(&samples, Outcome::TimedOut);
    assert!(given_up > 10_000 && machine.lost_packets() > 10_000, "{given_up}");
    let retransmissions = machine.io_counts(GuestId(1)).retransmissions;
    // The users' own, those that the server holds, and SYNs on their way through queues that are full.
    assert!(machine.open_connections() < 2_000, "{} of {given_up}", machine.open_connections());
    assert!(retransmissions < 1_000, "resets are not sent again: {retransmissions}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Little's law: requests per second times the time from one to the next is the number of users.
    #[test]
    fn throughput_times_cycle_is_the_number_of_users(
        users in 1..80u32,
        think_ms in 0..300i64,
        ramp_up_ms in 0..1000i64,
        keep_alive in any::<bool>(),
        machine in any::<bool>(),
    ) {
        let on = if machine { "machine = \"pc\"\n" } else { "" };
        let client = format!(
            "kind = \"closed-loop\"\nusers = {users}\nthink = \"{think_ms}ms\"\nramp_up = \"{ramp_up_ms}ms\"\n\
             keep_alive = {keep_alive}\n{on}"
        );
        let rest = if machine { "[client_machine.pc]\nrequest_cpu = \"1ms\"\npacket_cpu = \"20us\"" } else { "" };
        let all = samples(&scenario("", &client, rest));
        users_take_turns(&all, users);
        let steady: Vec<_> = all.into_iter().filter(|sample| sample.ended > Time::ZERO + 3 * SECOND).collect();
        let n = steady.len() as f64;
        let response = steady.iter().map(elapsed).sum::<f64>() / n;
        let law = n / (7 * SECOND).ns() as f64 * (response + (think_ms * MS).ns() as f64);
        // Times to think are drawn, so that their mean over n of them varies.
        let within = 0.02 + 4.0 / n.sqrt();
        prop_assert!((law / f64::from(users) - 1.0).abs() < within, "{law} of {users} users, {n} requests");
    }

    /// No user is lost, whatever goes wrong: every user continues.
    #[test]
    fn nobody_is_lost(
        users in 1..60u32,
        request_cpu_us in 100..20_000u32,
        connections_max in 1..60u32,
        timeout_ms in prop::option::of(5..400i64),
        retries in 0..3i64,
        keep_alive in any::<bool>(),
        machine_connections in prop::option::of(1..60u32),
        (down_ms, what) in (1000..5000u32, 0..4usize),
    ) {
        let timeout = timeout_ms.map_or_else(String::new, |ms| format!("timeout = \"{ms}ms\"\n"));
        let on = if machine_connections.is_some() { "machine = \"pc\"\n" } else { "" };
        let client = format!(
            "kind = \"closed-loop\"\nusers = {users}\nthink = \"20ms\"\nkeep_alive = {keep_alive}\n\
             retries = {retries}\n{timeout}{on}"
        );
        let server = format!("request_cpu = \"{request_cpu_us}us\", connections_max = {connections_max}");
        let action = |at: u32, op: &str| {
            format!("[[action]]\nat = \"{at}ms\"\nop = \"{op}\"\ndomain = \"web\"\n")
        };
        let up_ms = down_ms + 700;
        let mut rest = match what {
            0 => action(down_ms, "reboot"),
            1 => action(down_ms, "shutdown") + &action(up_ms, "create"),
            2 => action(down_ms, "save") + &action(up_ms, "restore"),
            _ => action(down_ms, "pause") + &action(up_ms, "unpause"),
        };
        if let Some(most) = machine_connections {
            rest += &format!("[client_machine.pc]\nrequest_cpu = \"100us\"\nconnections_max = {most}\n");
        }
        let all = samples(&scenario(&server, &client, &rest));
        users_take_turns(&all, users);
        // From a second after it is back every user asks again, and what is asked ends: at most all users wait in line.
        let slowest = 2 * SECOND + i64::from(users) * i64::from(request_cpu_us) * Span::from_us(2);
        let mut last = vec![Time::ZERO; users as usize];
        for sample in &all {
            last[sample.user as usize] = sample.ended;
            if let (Some(ms), Outcome::Answered) = (timeout_ms, sample.outcome) {
                let most = ms * MS * (retries + 1) + i64::from(users) * MS;
                prop_assert!(sample.ended - sample.begun <= most, "a late answer counted: {sample:?}");
            }
        }
        let lost: Vec<_> = last.iter().enumerate().filter(|&(_, &time)| time < Time::ZERO + 10 * SECOND - slowest).collect();
        prop_assert!(lost.is_empty(), "{lost:?} of {users}, {} requests", all.len());
    }
}
