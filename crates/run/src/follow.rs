//! The paths of single requests: a replication run once for its response times, and once more with some of its requests
//! followed. Both runs are the same to the nanosecond.

use std::cell::RefCell;
use std::rc::Rc;

use vcpulab_host::{DomId, Host, HostState, Observer, RunState, Time, VcpuId};
use vcpulab_io::{ClientId, ClientSample, Followed, Leg, Machine, Outcome};
use vcpulab_measure::{Occupancy, PathRow, Stretch};
use vcpulab_spec::Spec;

use crate::assemble::host::host_config;
use crate::assemble::machine::machine_config;
use crate::error::RunError;
use crate::replicate::progress::run_to;
use crate::replicate::schedulers::{MakeScheduler, pools_of};

/// The paths of the requests of a client at these quantiles of its response times (the nearest rank; of equally slow ones the
/// earliest), in one replication of a scenario. No rows: none was answered after the warm-up. `progress` gets the fraction
/// done; if it answers `false` the runs stop. `make` makes the schedulers that are not in the registry.
///
/// # Errors
/// See [`RunError`].
pub fn follow(
    spec: &Spec,
    (client, quantiles, replication): (ClientId, &[f64], u32),
    progress: &dyn Fn(f64) -> bool,
    make: MakeScheduler<'_, '_>,
) -> Result<Vec<PathRow>, RunError> {
    let (samples, ..) = run(spec, replication, &[], (), &|done| progress(done / 2.0), make)?;
    let begin = Time::ZERO + spec.warmup;
    let mut answered: Vec<ClientSample> = samples
        .into_iter()
        .filter(|one| one.client == client && one.outcome == Outcome::Answered && one.ended >= begin)
        .collect();
    answered.sort_by_key(|one| (one.ended - one.begun, one.begun, one.user));
    if answered.is_empty() {
        return Ok(Vec::new());
    }
    let chosen: Vec<ClientSample> = quantiles.iter().map(|&q| answered[rank(q, answered.len())]).collect();
    let (_, host, paths, occupancy) = run(
        spec,
        replication,
        &chosen.iter().map(|one| Followed { client, user: one.user, begun: one.begun }).collect::<Vec<_>>(),
        Occupancy::of(chosen.iter().map(|one| (one.begun, one.ended)).collect()),
        &|done| progress(0.5 + done / 2.0),
        make,
    )?;
    let rows = quantiles.iter().zip(&chosen).zip(&paths).flat_map(|((&quantile, one), path)| {
        let row = PathRow { replication, quantile, ..PathRow::default() };
        rows(spec, &host, &occupancy, path, one.ended, &row)
    });
    Ok(rows.collect())
}

/// The index of a quantile in this number of values in order.
fn rank(quantile: f64, count: usize) -> usize {
    ((quantile * count as f64).ceil() as usize).clamp(1, count) - 1
}

type Ran<O> = (Vec<ClientSample>, HostState, Vec<Vec<Leg>>, O);

/// Runs a replication: every request that was over by the end, the state of the host, and the paths of those followed.
fn run<O: Observer>(
    spec: &Spec,
    replication: u32,
    followed: &[Followed],
    observer: O,
    progress: &dyn Fn(f64) -> bool,
    make: MakeScheduler<'_, '_>,
) -> Result<Ran<O>, RunError> {
    let samples = Rc::new(RefCell::new(Vec::new()));
    let mut machine = Machine::new(&machine_config(spec, replication));
    let kept = samples.clone();
    machine.log_requests(move |sample| kept.borrow_mut().push(*sample));
    if !followed.is_empty() {
        machine.follow_requests(followed);
    }
    let broken = |broken| RunError::Broken { replication, broken };
    let mut host = Host::new(&host_config(spec), pools_of(spec, replication, make), machine, observer)
        .map_err(broken)?;
    run_to(&mut host, spec.end(), replication, progress)?;
    let paths = host.world().paths();
    let (state, _, _, observer) = host.into_parts();
    Ok((samples.take(), state, paths, observer))
}

/// The legs of a path, each cut where its vCPU changed its runstate, or lost its pCPU to another.
fn rows(
    spec: &Spec,
    host: &HostState,
    occupancy: &Occupancy,
    path: &[Leg],
    ended: Time,
    row: &PathRow,
) -> Vec<PathRow> {
    let ends = path.iter().skip(1).map(|leg| leg.begins).chain([ended]);
    let mut rows = Vec::new();
    for (leg, end) in path.iter().zip(ends).filter(|(leg, end)| leg.begins < *end) {
        let nic = leg.place.nic().map(|nic| spec.nics[nic].name.clone().unwrap_or_else(|| nic.0.to_string()));
        let domain = leg.place.guest().map(|guest| spec.domains[DomId(guest.0)].name.clone());
        let at = PathRow { place: leg.place.name(), nic, domain, ..row.clone() };
        let Some(v) = leg.vcpu else {
            rows.push(PathRow { begin_ns: leg.begins.ns(), end_ns: end.ns(), ..at });
            continue;
        };
        for stretch in occupancy.stretches(v, leg.begins, end) {
            // A sleeping vCPU is not notified yet; the vCPU that notifies it may wait for a pCPU itself.
            let told_by = leg.notifier.filter(|_| stretch.state == RunState::Blocked);
            match told_by {
                Some(teller) => {
                    let its = occupancy.stretches(teller, stretch.begins, stretch.ends);
                    let at = PathRow { place: "poll", ..at.clone() };
                    rows.extend(its.iter().map(|part| of_vcpu(spec, host, &at, teller, part)));
                }
                None => rows.push(of_vcpu(spec, host, &at, v, &stretch)),
            }
        }
    }
    rows
}

fn of_vcpu(spec: &Spec, host: &HostState, at: &PathRow, v: VcpuId, stretch: &Stretch) -> PathRow {
    let name = |v| (spec.domains[host.dom(v)].name.clone(), host.name(v).1 as u32);
    let (domain, vcpu) = name(v);
    let by = stretch.behind.map(|(_, by)| by).filter(|&by| !host.is_idle(by)).map(name);
    let (by_domain, by_vcpu) = by.unzip();
    PathRow {
        begin_ns: stretch.begins.ns(),
        end_ns: stretch.ends.ns(),
        domain: Some(domain),
        vcpu: Some(vcpu),
        state: Some(stretch.state.name()),
        pcpu: stretch.behind.map(|(p, _)| p.0),
        by_domain,
        by_vcpu,
        ..at.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use vcpulab_scenario::Scenario;

    use crate::replicate::schedulers::none_to_make;

    /// A service behind a driver domain that shares its pCPUs with a domain that always computes.
    fn scenario(host: &str, web: &str, client: &str, rest: &str) -> Scenario {
        let text = format!(
            "[run]\nduration = '500ms'\nwarmup = '100ms'\nreplications = 2\n[host]\nprofile = 'generic'\n{host}\n\
             [domain.dom0]\ndriver_domain = true\n[domain.web]\nnic.driver_domain = 'dom0'\n{web}\n\
             [domain.batch]\napp = [{{ kind = 'hog' }}]\n[client.c]\nserver = 'web'\n{client}\n{rest}\n"
        );
        Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"))
    }

    /// Checks that the paths of requests tile their response times, and that following them changed nothing.
    fn check(scenario: &Scenario) -> BTreeSet<(&'static str, Option<&'static str>)> {
        let (mut seen, make) = (BTreeSet::new(), &mut none_to_make);
        let quantiles = [0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0];
        for replication in 0..scenario.replications {
            let all = follow(scenario, (ClientId(0), &quantiles, replication), &|_| true, make).unwrap();
            let (samples, ..) = run(scenario, replication, &[], (), &|_| true, make).unwrap();
            let begin = (Time::ZERO + scenario.warmup).ns();
            let mut times: Vec<i64> = samples
                .iter()
                .filter(|one| {
                    one.outcome == Outcome::Answered && one.ended.ns() >= begin && one.client.0 == 0
                })
                .map(|one| (one.ended - one.begun).ns())
                .collect();
            times.sort_unstable();
            for quantile in quantiles {
                let rows: Vec<&PathRow> = all.iter().filter(|row| row.quantile == quantile).collect();
                assert!(rows.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns), "no gap");
                assert!(rows.iter().all(|row| row.begin_ns < row.end_ns));
                let sum: i64 = rows.iter().map(|row| row.end_ns - row.begin_ns).sum();
                assert_eq!(sum, times[rank(quantile, times.len())], "{quantile} of {replication}");
                seen.extend(rows.iter().map(|row| (row.place, row.state)));
            }
            let first = samples.iter().find(|one| one.outcome == Outcome::Answered).unwrap();
            let follow = [Followed { client: first.client, user: first.user, begun: first.begun }];
            let (same, ..) = run(scenario, replication, &follow, (), &|_| true, make).unwrap();
            assert_eq!(same, samples, "who is followed is served as before");
        }
        seen
    }

    const WEB: &str = "app = [{ kind = 'web-server' }]";
    const USERS: &str = "kind = 'closed-loop'\nusers = 20\nthink = '20ms'";

    fn places(seen: &BTreeSet<(&'static str, Option<&'static str>)>) -> BTreeSet<&'static str> {
        seen.iter().map(|&(place, _)| place).collect()
    }

    #[test]
    fn a_path_goes_from_the_client_to_the_service_and_back() {
        let seen = check(&scenario("scheduler = 'credit'\npcpus = 1", WEB, USERS, ""));
        let there = ["link-in", "nic", "netback", "ring-in", "receive", "task"];
        let back = ["send-queue", "send", "ring-out", "link-out"];
        assert!(places(&seen).is_superset(&there.into_iter().chain(back).collect()), "{seen:?}");
        assert!(seen.contains(&("nic", Some("runnable"))), "dom0 waits for the pCPU: {seen:?}");
        assert!(seen.contains(&("ready", Some("running"))), "other tasks go before: {seen:?}");
    }

    #[test]
    fn a_path_through_a_full_service_has_its_backlog_and_the_tries_that_failed() {
        let web = "app = [{ kind = 'web-server', request_cpu = '4ms', connections_max = 2, backlog = 3 }]";
        let users = "kind = 'closed-loop'\nusers = 9\nthink = '10ms'\nkeep_alive = false\nretries = 1000";
        let seen = check(&scenario("scheduler = 'credit2'\npcpus = 2", web, users, ""));
        assert!(places(&seen).is_superset(&["backlog", "failed-try"].into()), "{seen:?}");
    }

    #[test]
    fn a_path_through_other_services_is_theirs_meanwhile() {
        let web = "disk.driver_domain = 'dom0'\napp = [{ kind = 'php-web', database = 'db', workers = 4, scripts = 0 }]";
        let db = "[disk.d]\ndriver_domain = 'dom0'\n[domain.db]\nnic.driver_domain = 'dom0'\n\
                  disk.driver_domain = 'dom0'\napp = [{ kind = 'mysql', cached = 0 }]";
        let users = "kind = 'closed-loop'\nusers = 3";
        let seen = check(&scenario("scheduler = 'credit'\npcpus = 2", web, users, db));
        assert!(places(&seen).contains("disk"), "{seen:?}");
        assert!(!places(&seen).contains("call"), "the legs of the query are known: {seen:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

        #[test]
        fn a_path_tiles_the_response_time(
            scheduler in prop::sample::select(vec!["credit", "credit2", "rtds", "round-robin"]),
            pcpus in 1..4_u32,
            web in prop::sample::select(vec!["", "vcpus = 2\ncap = 40", "vcpus = 3"]),
            keep_alive in any::<bool>(),
            rate in 20..300_u32,
            seed in any::<u32>(),
        ) {
            let web = if scheduler.starts_with("credit") { web } else { "vcpus = 2" };
            let client = format!("kind = 'closed-loop'\nusers = 8\nthink = '10ms'\nkeep_alive = {keep_alive}");
            let rest = format!("[client.d]\nkind = 'open-loop'\nserver = 'web'\nrate = {rate}");
            let host = format!("scheduler = '{scheduler}'\npcpus = {pcpus}");
            let scenario = scenario(&host, &format!("{web}\n{WEB}"), &client, &rest);
            check(&scenario.with_run(Some(seed.into()), None).unwrap());
        }
    }
}
