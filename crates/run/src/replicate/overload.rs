//! Runs that would take more time or memory than a run may, and the part of the scenario that causes it.

use vcpulab_host::{Broken, Busiest, DomId, Params};
use vcpulab_io::{Load, Machine, Owner};
use vcpulab_spec::limits::CONNECTIONS_IN_BEING_MAX;
use vcpulab_spec::{ClientSpec, DomainSpec, PoolSpec, Spec};

use crate::replicate::progress::EVENTS_BETWEEN_ASKING;

/// The error of a run, with the cause of most of the events at which time does not advance.
pub(crate) fn blame(broken: Broken, busiest: Busiest, spec: &Spec, machine: &Machine) -> Broken {
    let cause = called(busiest, spec, machine);
    Broken { what: format!("{}; most of them are of {cause}", broken.what), ..broken }
}

/// The cause of events, in the words of the scenario.
pub(crate) fn called(busiest: Busiest, spec: &Spec, machine: &Machine) -> String {
    let domain = |id: DomId| {
        let DomainSpec { name, apps, .. } = &spec.domains[id];
        let mut kinds: Vec<&str> = apps.iter().map(|app| app.kind()).collect();
        kinds.dedup();
        match kinds.is_empty() {
            true => format!("domain `{name}`"),
            false => format!("domain `{name}` (its `{}`)", kinds.join("`, `")),
        }
    };
    match busiest {
        Busiest::Domain(id) => domain(id),
        Busiest::Pool(id) => scheduler(&spec.pools[id], spec),
        Busiest::Source(source) => match machine.owner_of(source) {
            Owner::Client(id) => format!("client `{}`", spec.clients[id].name),
            Owner::Guest(id) => domain(DomId(id.0)),
            Owner::Disks => "the disks".into(),
            Owner::Network => "the network".into(),
            Owner::Profiler => "the profiler".into(),
        },
    }
}

/// A scheduler, with the shortest of its times that the scenario gives.
fn scheduler(pool: &PoolSpec, spec: &Spec) -> String {
    let name = pool.policy.name;
    let given = spec.domains.iter().map(|domain| &domain.params).chain([&pool.params]);
    let times = pool.generation.params.iter().filter(|param| ["ns", "us", "ms"].contains(&param.unit));
    let shortest = |name: &str| given.clone().filter_map(|params: &Params| params.int(name)).min();
    let times = times.filter_map(|param| Some((shortest(param.name)?, param.name)));
    match times.min() {
        Some((value, param)) => format!("scheduler `{name}` (its `{param} = {value}`)"),
        None => format!("scheduler `{name}`"),
    }
}

/// The number of events between two checks of the open connections: fewer where each event may begin many, as with many
/// users.
pub(crate) fn events_between_looks(spec: &Spec) -> u64 {
    let users = |client: &ClientSpec| match client.load {
        Load::Closed { users, .. } => u64::from(users),
        Load::Open { .. } | Load::Stream { .. } => 0,
    };
    let users: u64 = spec.clients.iter().map(users).sum();
    (EVENTS_BETWEEN_ASKING / (1 + users / 64)).max(64)
}

/// The number of open connections, if it exceeds the limit.
pub(crate) fn too_many_connections(spec: &Spec, machine: &Machine) -> Option<String> {
    let open = machine.open_connections();
    if open <= CONNECTIONS_IN_BEING_MAX {
        return None;
    }
    let failing = machine.most_failing_client().map_or(String::new(), |client| {
        format!("; client `{}` gives up most of its requests", spec.clients[client].name)
    });
    Some(format!("{open} connections are in being, at most {CONNECTIONS_IN_BEING_MAX} may be{failing}"))
}

#[cfg(test)]
mod tests {
    use vcpulab_scenario::Scenario;
    use vcpulab_spec::limits::CONNECTIONS_IN_BEING_MAX;

    use crate::{RunError, RunOptions, run};

    /// The error of a run whose time does not advance.
    fn ends_with(domains: &str, scheduler: &str) -> String {
        let text = format!(
            "[run]\nduration = '1s'\nwarmup = '0s'\n[host]\npcpus = 1\nscheduler = '{scheduler}'\nprofile = 'exact'\n{domains}"
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
        run(&scenario, &RunOptions::default(), &|_| true).unwrap_err().to_string()
    }

    fn script(name: &str, events: &str) -> String {
        format!("[domain.{name}]\napp = [{{ kind = 'phases', phase = [{{ event = [{events}] }}] }}]\n")
    }

    #[test]
    fn a_run_whose_time_hardly_goes_on_ends_and_names_who_holds_it() {
        let quiet = "[domain.quiet]\napp = [{ kind = 'periodic', run = '1ms', period = '10ms' }]\n";
        for events in ["{ sleep = '1ns' }", "{ run = '1ns' }"] {
            let error = ends_with(&(quiet.to_owned() + &script("hasty", events)), "credit");
            assert!(error.contains("time hardly goes on: 4194304 events in "), "{error}");
            assert!(error.ends_with("most of them are of domain `hasty` (its `phases`)"), "{error}");
        }
        let one = script("one", "{ notify = 'x' }, { await = 'y' }");
        let error = ends_with(&(one + &script("other", "{ await = 'x' }, { notify = 'y' }")), "credit");
        assert!(error.contains("most of them are of domain `o"), "{error}");
    }

    #[test]
    fn more_connections_than_may_be_end_the_run() {
        let text = "[run]\nduration = '100s'\nwarmup = '0s'\nsample = '0s'\n[host]\npcpus = 2\nscheduler = 'credit'\n\
            profile = 'lp200r'\n[domain.dom0]\ndriver_domain = true\n[domain.web]\nnic.driver_domain = 'dom0'\n\
            app = [{ kind = 'web-server' }]\n[client.crowd]\nkind = 'closed-loop'\nserver = 'web'\nusers = 50\n\
            timeout = '1us'\nkeep_alive = false\n";
        let scenario = Scenario::parse(text, "f").unwrap();
        let error = run(&scenario, &RunOptions::default(), &|_| true).unwrap_err();
        assert!(matches!(error, RunError::Limit { .. }), "{error}");
        assert!(error.to_string().contains("client `crowd` gives up"), "{error}");
    }

    #[test]
    fn connections_are_looked_at_before_many_more_than_may_be_are_there() {
        let text = "[run]\nduration = '1s'\nwarmup = '0s'\n[host]\npcpus = 2\nscheduler = 'credit'\nprofile = 'lp200r'\n\
            [domain.dom0]\ndriver_domain = true\n[domain.web]\nnic.driver_domain = 'dom0'\napp = [{ kind = 'web-server' }]\n\
            [client.crowd]\nkind = 'closed-loop'\nserver = 'web'\nusers = 65536\ntimeout = '1ns'\nretries = 1000\n";
        let scenario = Scenario::parse(text, "f").unwrap();
        let error = run(&scenario, &RunOptions::default(), &|_| true).unwrap_err();
        let RunError::Limit { what, .. } = error else { panic!("{error}") };
        let open: usize = what.split(' ').next().unwrap().parse().unwrap();
        assert!(open < CONNECTIONS_IN_BEING_MAX * 5 / 4, "{what}");
    }
}
