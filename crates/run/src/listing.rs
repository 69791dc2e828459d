//! The domains on the host at one time of a run, as the toolstack's lists show them.

use serde_json::{Value, json};
use vcpulab_host::{CpuMask, DomId, Host, HostState, Span, Time, VcpuId};
use vcpulab_io::Machine;
use vcpulab_spec::Spec;

use crate::assemble::host::host_config;
use crate::assemble::machine::machine_config;
use crate::error::RunError;
use crate::replicate::progress::run_to;
use crate::replicate::schedulers::{MakeScheduler, pools_of};

/// The domains on the host at a time of the first replication of a scenario, in the order of the toolstack's ids:
/// `{at_ns, domains: [{name, id, state, time_ns, vcpus: [{vcpu, pcpu, state, time_ns, affinity, soft_affinity}]}]}`. States are in the
/// letters of `xl list` and `xl vcpu-list`; times are CPU time since the domain was created, rebooted or restored; a vCPU
/// that is offline has no pCPU. `progress` gets the fraction done; if it answers `false` the run stops. `make` makes the
/// schedulers that are not in the registry.
///
/// # Errors
/// See [`RunError`].
pub fn listing_json(
    spec: &Spec,
    at: Time,
    progress: &dyn Fn(f64) -> bool,
    make: MakeScheduler<'_, '_>,
) -> Result<Value, RunError> {
    let machine = Machine::new(&machine_config(spec, 0));
    let broken = |broken| RunError::Broken { replication: 0, broken };
    let mut host = Host::new(&host_config(spec), pools_of(spec, 0, make), machine, ()).map_err(broken)?;
    run_to(&mut host, at, 0, progress)?;
    Ok(listed(spec, host.context()))
}

fn listed(spec: &Spec, host: &HostState) -> Value {
    let ids = (0..host.domain_count() as u32).map(DomId);
    let mut present: Vec<(i64, DomId)> = ids.filter_map(|d| Some((host.toolstack_id(d)?, d))).collect();
    present.sort_unstable_by_key(|&(id, _)| id);
    let domains: Vec<Value> = present.into_iter().map(|(id, d)| domain(spec, host, id, d)).collect();
    json!({ "at_ns": host.now().ns(), "domains": domains })
}

fn domain(spec: &Spec, host: &HostState, id: i64, d: DomId) -> Value {
    json!({
        "name": spec.domains[d].name,
        "id": id,
        "state": host.domain_state(d).map(|state| state.to_string()),
        "time_ns": host.all_vcpus_of(d).map(|v| host.cpu_time(v)).sum::<Span>().ns(),
        "vcpus": host.all_vcpus_of(d).map(|v| vcpu(spec, host, v)).collect::<Vec<_>>(),
    })
}

fn vcpu(spec: &Spec, host: &HostState, v: VcpuId) -> Value {
    let state = host.vcpu_state(v);
    let pool = &spec.pools[host.pool_of(host.dom(v))].pcpus;
    let written = |mask: &CpuMask| if mask.contains_all(pool) { "all".to_owned() } else { mask.to_string() };
    json!({
        "vcpu": host.name(v).1,
        "pcpu": state.filter(|state| !state.offline).map(|_| host.processor(v).0),
        "state": state.map(|state| state.to_string()),
        "time_ns": host.cpu_time(v).ns(),
        "affinity": written(host.affinity(v)),
        "soft_affinity": host.soft_affinity(v).map_or_else(|| "all".to_owned(), written),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use vcpulab_scenario::Scenario;

    use super::*;
    use crate::none_to_make;

    #[test]
    fn lists_who_is_there_as_the_toolstack_does() {
        let text = "run = { duration = \"9s\", warmup = \"0s\" }\n\
            [host]\nprofile = \"exact\"\npcpus = 2\nscheduler = \"credit2\"\n\
            [domain.dom0]\n[domain.late]\nstart = \"2s\"\napp = [{ kind = \"hog\" }]\n\
            [domain.a]\nvcpus = 2\naffinity = [\"1\", \"all\"]\napp = [{ kind = \"hog\" }]\n\
            [[action]]\nat = \"1s\"\nop = \"offline\"\ndomain = \"a\"\nvcpu = 1\n\
            [[action]]\nat = \"4s\"\nop = \"reboot\"\ndomain = \"a\"\n\
            [[action]]\nat = \"6s\"\nop = \"save\"\ndomain = \"late\"\n";
        let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
        let at = |seconds: i64| {
            listing_json(&scenario, Time::ZERO + Span::from_secs(seconds), &|_| true, &mut none_to_make)
                .unwrap()
        };
        let rows = |listing: &Value| -> Vec<String> {
            let row = |d: &Value| format!("{} {} {} {}", d["name"], d["id"], d["state"], d["time_ns"]);
            listing["domains"].as_array().unwrap().iter().map(row).collect()
        };
        assert_eq!(rows(&at(2)), ["\"dom0\" 0 \"-b----\" 0", "\"a\" 1 \"r-----\" 2000000000"]);
        let a = |listing: &Value, v: usize| listing["domains"][1]["vcpus"][v].clone();
        let off = json!({ "vcpu": 1, "pcpu": null, "state": "--p", "time_ns": 0, "affinity": "all", "soft_affinity": "all" });
        assert_eq!(a(&at(2), 1), off);
        assert_eq!(
            a(&at(2), 0),
            json!({ "vcpu": 0, "pcpu": 1, "state": "r--", "time_ns": 2_000_000_000_i64, "affinity": "1", "soft_affinity": "all" })
        );
        // The second to come has the next id, and a reboot is a new domain.
        let (late, a) = ("\"late\" 2 \"r-----\" 3000000000", "\"a\" 3 \"r-----\" 1000000000");
        assert_eq!(rows(&at(5))[1..], [late, a]);
        assert_eq!(rows(&at(9))[1..], ["\"a\" 3 \"r-----\" 5000000000"]);
        assert_eq!(
            listing_json(&scenario, Time::from_ns(9), &|_| false, &mut none_to_make),
            Err(RunError::Cancelled)
        );
    }

    #[test]
    fn it_ends_soon_after_nobody_wants_it() {
        // One step of the hundred has a million events.
        let text = "run.duration = '100s'\n[host]\npcpus = 1\nscheduler = 'credit'\nprofile = 'exact'\n\
            [domain.a]\napp = [{ kind = 'periodic', run = '1us', period = '4us' }]\n";
        let scenario = Scenario::parse(text, "f").unwrap();
        let asked = Cell::new(0);
        let progress = |done: f64| {
            assert_eq!(done, 0.0, "the first step is not over");
            asked.set(asked.get() + 1);
            asked.get() < 3
        };
        let listed = listing_json(&scenario, Time::ZERO + scenario.duration, &progress, &mut none_to_make);
        assert_eq!((listed, asked.get()), (Err(RunError::Cancelled), 3));
    }
}
