//! A checked scenario as a file again.

mod actions;
mod apps;
mod clients;
mod devices;
mod domains;
mod host;
mod kvm;
mod params;
mod phases;
mod usual;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toml::{Table, Value};
use vcpulab_host::Scope;
use vcpulab_sched::{ParamSpec, ReservationPart, Role};
use vcpulab_spec::{DomainSpec, POOL_0, Spec};

use crate::file::raw::{RawProfiler, RawRun, RawScenario};
use crate::text::defaults::default_value;
use crate::text::problem::join;
use crate::text::read::{Named, named};
use crate::write::actions::raw_action;
use crate::write::clients::{raw_client, raw_client_machines};
use crate::write::devices::{raw_disks, raw_nics};
use crate::write::domains::raw_domain;
use crate::write::host::{raw_host, raw_pool};
use crate::write::kvm::raw_cgroups;
use crate::write::usual::leave_out_usual;

/// The scenario as a file for people, which leaves out what is usual in most files; comments show the defaults of parameters.
pub(crate) fn to_toml(spec: &Spec) -> String {
    let mut table = Table::try_from(raw(spec)).expect("a scenario is made of what TOML has");
    leave_out_usual(&mut table, spec);
    let domains = spec.domains.iter().map(|domain| (domain.name.as_str(), domain)).collect();
    let mut text = String::new();
    write_table(&mut text, "", &table, &DomainIndex { spec, domains });
    text
}

/// All fields that the scenario can have, with their values, as JSON.
pub(crate) fn to_json(spec: &Spec) -> String {
    serde_json::to_string(&raw(spec)).expect("a scenario is made of what JSON has")
}

/// A scenario with an index of its domains by name; there may be thousands of domains.
struct DomainIndex<'a> {
    spec: &'a Spec,
    domains: BTreeMap<&'a str, &'a DomainSpec>,
}

/// Values first, then the tables inside. Parameters left out follow as comments.
fn write_table(text: &mut String, path: &str, table: &Table, index: &DomainIndex<'_>) {
    let (tables, values): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| is_section(value));
    for (name, value) in values {
        writeln!(text, "{} = {value}", join("", name)).expect("a string takes all text");
    }
    for (param, default) in left_out(path, index) {
        writeln!(text, "# {} = {default}", param.name).expect("a string takes all text");
    }
    for (name, value) in tables {
        let path = join(path, name);
        let mut section = |header: String, table: &Table| {
            // A table with nothing but tables in it needs no header of its own.
            if table.is_empty() || !table.values().all(is_section) || !left_out(&path, index).is_empty() {
                writeln!(text, "\n{header}").expect("a string takes all text");
            }
            write_table(text, &path, table, index);
        };
        match value {
            Value::Table(table) => section(format!("[{path}]"), table),
            Value::Array(items) => {
                items
                    .iter()
                    .filter_map(Value::as_table)
                    .for_each(|table| section(format!("[[{path}]]"), table));
            }
            _ => {}
        }
    }
}

/// Whether a value gets a section of its own. Lists of tables with one value each (events) are short enough to stand inline.
fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(items) => items.iter().any(|item| {
            item.as_table().is_some_and(|table| table.len() != 1 || table.values().any(is_section))
        }),
        _ => false,
    }
}

/// The scheduler's parameters that could be in this section but were not given, with their defaults.
fn left_out(path: &str, index: &DomainIndex<'_>) -> Vec<(&'static ParamSpec, String)> {
    let DomainIndex { spec, domains } = index;
    let pool = |key| spec.pools.iter().find(|pool| name_of(key) == Some(&pool.name));
    let domain = |key| name_of(key).and_then(|name| domains.get(name));
    let (scope, pool, given) = match path.split_once('.') {
        None if path == "host" => (Scope::Global, &spec.pools[POOL_0], &spec.pools[POOL_0].params),
        Some(("pool", key)) if let Some(pool) = pool(key) => (Scope::Global, pool, &pool.params),
        Some(("domain", key)) if let Some(domain) = domain(key) => {
            (Scope::Domain, &spec.pools[domain.pool], &domain.params)
        }
        _ => return Vec::new(),
    };
    let params = || pool.generation.params.iter().filter(|param| param.scope == scope);
    let some_given = params().any(|param| given.get(param.name).is_some());
    params()
        .filter(|param| given.get(param.name).is_none())
        .map(|param| match (param.role, default_value(param)) {
            (Role::Reserved(ReservationPart::Extra { by_default: false }, _), _) if some_given => {
                (param, "0 (left out beside other parameters)".to_owned())
            }
            (_, Some(value)) => (param, format!("{value} (default)")),
            (_, None) => (param, "... (not given)".to_owned()),
        })
        .collect()
}

/// The name that a key stands for, if it is no more than a name (in quotes, if there are dots in it).
fn name_of(key: &str) -> Option<&str> {
    let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    quoted.or(Some(key).filter(|key| !key.contains('.')))
}

fn raw(spec: &Spec) -> RawScenario {
    let domains = spec.stated_domains().iter();
    let domains = domains.map(|domain| named(&domain.name, raw_domain(domain, spec))).collect();
    let clients: Vec<_> =
        spec.clients.iter().map(|client| named(&client.name, raw_client(client, spec))).collect();
    let pools: Vec<_> =
        spec.pools.iter().skip(1).map(|pool| named(&pool.name, raw_pool(pool, spec))).collect();
    let actions = spec.actions.iter().zip(spec.action_pools());
    let actions: Vec<_> = actions.map(|(action, pool)| raw_action(action, pool, spec).into()).collect();
    RawScenario {
        name: spec.name.clone().into(),
        seed: (spec.seed as i64).into(),
        run: RawRun {
            duration: spec.duration.into(),
            warmup: spec.warmup.into(),
            start_spread: spec.start_spread.into(),
            replications: spec.replications.into(),
            sample: spec.sample.into(),
            profiler: spec.profiler_cycles.map(|cycles| RawProfiler { cycles: cycles.into() }).into(),
        }
        .into(),
        host: raw_host(spec).into(),
        nic: raw_nics(spec),
        disk: raw_disks(spec),
        pool: (!pools.is_empty()).then_some(Named(pools)).into(),
        cgroup: raw_cgroups(spec),
        domain: Named(domains).into(),
        client: (!clients.is_empty()).then_some(Named(clients)).into(),
        client_machine: raw_client_machines(spec),
        action: (!actions.is_empty()).then_some(actions).into(),
    }
}
