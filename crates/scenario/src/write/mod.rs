//! A checked scenario as a file again.

use std::fmt::Write as _;

use toml::{Table, Value};
use vcpulab_host::{ParamKind, ParamSpec, ParamValue, Params, Scope};

use crate::apps::raw_app;
use crate::client_machines::raw_client_machines;
use crate::clients::raw_client;
use crate::disks::{raw_disks, raw_virtual_disk};
use crate::network::{raw_cards, raw_drivers, raw_forwarding, raw_nic};
use crate::problem::join;
use crate::profile::CONSTANTS;
use crate::raw::*;
use crate::read::{At, Field, Named, OneOrMany, RawParam, RawParams, RawSlot};
use crate::spec::*;
use crate::units::{CpuList, Duration, Size};

pub(crate) fn to_toml(spec: &Spec) -> String {
    let table = Table::try_from(raw(spec)).expect("a scenario is made of what TOML has");
    let mut text = String::new();
    write_table(&mut text, "", &table, spec);
    text
}

/// Values first, then the tables inside. Parameters left out follow as comments.
fn write_table(text: &mut String, path: &str, table: &Table, spec: &Spec) {
    let (tables, values): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| is_section(value));
    for (name, value) in values {
        writeln!(text, "{} = {value}", join("", name)).expect("a string takes all text");
    }
    for (param, default) in left_out(path, spec) {
        writeln!(text, "# {} = {default}", param.name).expect("a string takes all text");
    }
    for (name, value) in tables {
        let path = join(path, name);
        let mut section = |header: String, table: &Table| {
            // A table with nothing but tables in it needs no header of its own.
            if table.is_empty() || !table.values().all(is_section) || !left_out(&path, spec).is_empty() {
                writeln!(text, "\n{header}").expect("a string takes all text");
            }
            write_table(text, &path, table, spec);
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

/// Does it get a section of its own? Lists of tables with one value each (events) are short enough to stand inline.
fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::Array(items) => items.iter().any(|item| {
            item.as_table().is_some_and(|table| table.len() != 1 || table.values().any(is_section))
        }),
        _ => false,
    }
}

/// The scheduler's parameters that could stand in this section but were not given, with their defaults.
fn left_out(path: &str, spec: &Spec) -> Vec<(&'static ParamSpec, String)> {
    let pool = |key| spec.pools.iter().find(|pool| name_of(key) == Some(&pool.name));
    let domain = |key| spec.domains.iter().find(|domain| name_of(key) == Some(&domain.name));
    let (scope, pool, given) = match path.split_once('.') {
        None if path == "host" => (Scope::Global, &spec.pools[0], &spec.pools[0].params),
        Some(("pool", key)) if let Some(pool) = pool(key) => (Scope::Global, pool, &pool.params),
        Some(("domain", key)) if let Some(domain) = domain(key) => {
            (Scope::Domain, &spec.pools[domain.pool], &domain.params)
        }
        _ => return Vec::new(),
    };
    let params = pool.generation.params.iter();
    params
        .filter(|param| param.scope == scope && given.get(param.name).is_none())
        .map(|param| match default_value(param) {
            Some(value) => (param, format!("{value} (default)")),
            None => (param, "... (not given)".to_owned()),
        })
        .collect()
}

/// The name that a key stands for, if it is no more than a name (in quotes, if there are dots in it).
fn name_of(key: &str) -> Option<&str> {
    let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
    quoted.or(Some(key).filter(|key| !key.contains('.')))
}

/// A parameter's default as it would stand in a file; `None` if there is no such value.
pub(crate) fn default_value(param: &ParamSpec) -> Option<String> {
    if !param.allows(&ParamValue::Int(param.default)) {
        return None;
    }
    Some(match param.kind {
        ParamKind::Choice(words) => format!("{:?}", words[param.default as usize]),
        _ => param.default.to_string(),
    })
}

fn raw(spec: &Spec) -> RawScenario {
    let domains = spec.domains.iter().map(|domain| named(&domain.name, raw_domain(domain, spec))).collect();
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
            duration: Duration(spec.duration_ns).into(),
            warmup: Duration(spec.warmup_ns).into(),
            start_spread: if spec.start_spread_ns == 0 {
                Field::default()
            } else {
                Duration(spec.start_spread_ns).into()
            },
            replications: i64::from(spec.replications).into(),
            sample: Duration(spec.sample_ns).into(),
            profiler: crate::monitors::raw_profiler(spec),
        }
        .into(),
        host: raw_host(spec).into(),
        nic: raw_cards(spec),
        disk: raw_disks(spec),
        pool: if pools.is_empty() { Field::default() } else { Named(pools).into() },
        domain: Named(domains).into(),
        client: if clients.is_empty() { Field::default() } else { Named(clients).into() },
        client_machine: raw_client_machines(spec),
        action: if actions.is_empty() { Field::default() } else { actions.into() },
    }
}

fn named<T>(name: &str, value: T) -> (At<String>, At<T>) {
    (name.to_owned().into(), value.into())
}

fn raw_host(spec: &Spec) -> RawHost {
    let (host, pool) = (&spec.host, &spec.pools[0]);
    let constant =
        |name: &str| named(name, host.constants.get(name).expect("it is in the list of constants"));
    let (drivers, bare_metal) = raw_drivers(host.drivers);
    RawHost {
        drivers,
        bare_metal,
        profile: host.profile.clone().into(),
        pcpus: i64::from(host.pcpus).into(),
        pcpus_per_socket: i64::from(host.pcpus_per_socket).into(),
        scheduler: pool.policy.name.to_owned().into(),
        generation: pool.generation.name.to_owned().into(),
        costs: Named(CONSTANTS.iter().map(|doc| constant(doc.name)).collect()).into(),
        params: raw_params(&pool.params, pool, spec),
    }
}

fn raw_pool(pool: &PoolSpec, spec: &Spec) -> RawPool {
    RawPool {
        pcpus: CpuList::from(&pool.pcpus).into(),
        scheduler: pool.policy.name.to_owned().into(),
        generation: pool.generation.name.to_owned().into(),
        params: raw_params(&pool.params, pool, spec),
    }
}

fn raw_params(params: &Params, pool: &PoolSpec, spec: &Spec) -> RawParams {
    let raw = |(name, value): (&str, &ParamValue)| {
        let kind = pool.generation.params.iter().find(|param| param.name == name).map(|param| param.kind);
        let value = match (value, kind) {
            (ParamValue::Int(index), Some(ParamKind::Choice(words))) => {
                RawParam::Word(words[*index as usize].to_owned())
            }
            (ParamValue::Int(value), _) => RawParam::Int(*value),
            (ParamValue::Timetable(slots), _) => {
                let slot = |slot: &vcpulab_host::TimetableEntry| RawSlot {
                    domain: domain_numbered(slot.domain, spec).to_owned().into(),
                    vcpu: slot.vcpu.into(),
                    runtime: Duration(slot.runtime_ns).into(),
                };
                RawParam::Timetable(slots.iter().map(|entry| slot(entry).into()).collect())
            }
        };
        named(name, value)
    };
    RawParams(params.iter().map(raw).collect())
}

fn domain_numbered(number: i64, spec: &Spec) -> &str {
    let domain = spec.domains.iter().find(|domain| domain.number == number);
    &domain.expect("a timetable names domains that are there").name
}

fn raw_domain(domain: &DomainSpec, spec: &Spec) -> RawDomain {
    let list = |mask: &Option<_>| match mask {
        Some(mask) => CpuList::from(mask),
        None => CpuList::parse("all").expect("`all` is a set of pCPUs"),
    };
    let first = &domain.affinity[0];
    let affinity = match domain.affinity.iter().all(|mask| mask == first) {
        true => OneOrMany::One(list(first)),
        false => OneOrMany::Many(domain.affinity.iter().map(|mask| list(mask).into()).collect()),
    };
    let apps: Vec<At<RawApp>> = domain.apps.iter().map(|app| raw_app(app, spec).into()).collect();
    let nic = domain.nic.as_ref().map(|nic| raw_nic(nic, spec));
    let disk = domain.disk.as_ref().map(|disk| raw_virtual_disk(disk, spec));
    RawDomain {
        vcpus: (domain.affinity.len() as i64).into(),
        pool: pool_name(domain.pool, spec),
        start: if domain.start_ns == 0 { Field::default() } else { Duration(domain.start_ns).into() },
        affinity: affinity.into(),
        driver_domain: domain.driver_domain.into(),
        forwarding: raw_forwarding(domain.forwarding),
        working_set: Size(domain.working_set_bytes as i64).into(),
        nic: nic.map_or_else(Field::default, Field::from),
        disk: disk.map_or_else(Field::default, Field::from),
        page_cache: Size(domain.page_cache_bytes as i64).into(),
        memory: Size(domain.memory_bytes as i64).into(),
        shutdown: Duration(domain.shutdown_ns).into(),
        idle_tick: domain.idle_tick.map_or_else(Field::default, |tick| Duration(tick.period_ns).into()),
        idle_tick_cpu: domain.idle_tick.map_or_else(Field::default, |tick| Duration(tick.cpu_ns).into()),
        on_crash: crate::life::raw_on_crash(domain.on_crash),
        app: if apps.is_empty() { Field::default() } else { apps.into() },
        params: raw_params(&domain.params, &spec.pools[domain.pool], spec),
    }
}

/// Not said where it is the host's own.
fn pool_name(pool: usize, spec: &Spec) -> Field<String> {
    if pool == 0 { Field::default() } else { spec.pools[pool].name.clone().into() }
}

/// `pool` is the one that its domain is in then.
fn raw_action(action: &ActionSpec, pool: usize, spec: &Spec) -> RawAction {
    let at = || Field::from(Duration(action.at));
    let domain = |index: &usize| Field::from(spec.domains[*index].name.clone());
    match &action.change {
        Change::Adjust(index, params) => {
            let params = raw_params(params, &spec.pools[pool], spec);
            RawAction::Adjust(RawAdjust { at: at(), domain: domain(index), params })
        }
        Change::AdjustGlobal(pool, params) => RawAction::AdjustGlobal(RawAdjustGlobal {
            at: at(),
            pool: pool_name(*pool, spec),
            params: raw_params(params, &spec.pools[*pool], spec),
        }),
        Change::Pause(index) => RawAction::Pause(RawPause { at: at(), domain: domain(index) }),
        Change::Unpause(index) => RawAction::Unpause(RawPause { at: at(), domain: domain(index) }),
        Change::Affinity(index, vcpu, mask) => RawAction::Affinity(RawAffinity {
            at: at(),
            domain: domain(index),
            vcpu: vcpu.map_or_else(Field::default, |vcpu| i64::from(vcpu).into()),
            affinity: CpuList::from(mask).into(),
        }),
        Change::MovePool(index, pool) => RawAction::MovePool(RawMovePool {
            at: at(),
            domain: domain(index),
            pool: spec.pools[*pool].name.clone().into(),
        }),
        Change::Life(index, change) => {
            let raw = match change {
                LifeChange::Create => RawAction::Create,
                LifeChange::Shutdown => RawAction::Shutdown,
                LifeChange::Reboot => RawAction::Reboot,
                LifeChange::Crash => RawAction::Crash,
                LifeChange::Destroy => RawAction::Destroy,
                LifeChange::Save => RawAction::Save,
                LifeChange::Restore => RawAction::Restore,
            };
            raw(RawLife { at: at(), domain: domain(index) })
        }
        Change::Plug(index, vcpu, on) => {
            let raw = if *on { RawAction::Plug } else { RawAction::Unplug };
            raw(RawPlug { at: at(), domain: domain(index), vcpu: i64::from(*vcpu).into() })
        }
    }
}
