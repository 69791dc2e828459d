//! Fields that a file for people omits because they have the default.

use toml::{Table, Value};
use vcpulab_spec::{CONSTANTS, DomainSpec, POOL_0, Spec};

use crate::file::profile::{constants_of, default_profile, find_profile};

/// Fields of domains that are usually left to their defaults.
const OF_DOMAINS: [(&str, &str); 6] = [
    ("start", "0ns"),
    ("busy_tick_cpu", "0ns"),
    ("wake_cpu", "0ns"),
    ("idle_cpu", "0ns"),
    ("emulator_affinity", "all"),
    ("iothread_affinity", "all"),
];
/// Fields of applications that are usually false.
const OF_APPS: [&str; 3] = ["assumed", "softirq", "softirq_first"];

pub(super) fn leave_out_usual(file: &mut Table, spec: &Spec) {
    if let Some(run) = table(file, "run") {
        leave_out(run, "start_spread", "0ns");
    }
    if let Some(costs) = table(file, "host").and_then(|host| table(host, "costs")) {
        leave_out_costs(costs, spec);
    }
    let pool_0 = spec.pools[POOL_0].name.as_str();
    for action in items(file, "action") {
        // A domain moves to a pool that the action names.
        if !action.contains_key("domain") {
            leave_out(action, "pool", pool_0);
        }
    }
    let Some(domains) = table(file, "domain") else { return };
    for domain in spec.stated_domains() {
        let Some(fields) = table(domains, &domain.name) else { continue };
        leave_out(fields, "pool", pool_0);
        OF_DOMAINS.iter().for_each(|(field, usual)| leave_out(fields, field, *usual));
        if domain.bound == DomainSpec::usual_bound(domain.number, domain.is_driver_domain()) {
            fields.remove("bound_by");
        }
        for app in items(fields, "app") {
            OF_APPS.iter().for_each(|field| leave_out(app, field, false));
        }
    }
}

/// Leaves out the constants that have their default both here and in the profile.
fn leave_out_costs(costs: &mut Table, spec: &Spec) {
    let host = &spec.host;
    let profile = find_profile(&host.profile).unwrap_or_else(default_profile);
    let of_profile = constants_of(profile, &host.platform);
    for doc in CONSTANTS {
        let values = [host.constants.get(doc.name), of_profile.get(doc.name)];
        if doc.default.is_some() && values.iter().all(|value| *value == doc.default) {
            costs.remove(doc.name);
        }
    }
}

fn leave_out(table: &mut Table, field: &str, usual: impl Into<Value>) {
    if table.get(field) == Some(&usual.into()) {
        table.remove(field);
    }
}

fn table<'a>(within: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    within.get_mut(name)?.as_table_mut()
}

fn items<'a>(within: &'a mut Table, name: &str) -> impl Iterator<Item = &'a mut Table> {
    let items = within.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_table_mut)
}
