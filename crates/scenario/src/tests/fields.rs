//! The schema and the checks agree about every field: each value that a schema allows is accepted, and each value beside its
//! limits or its words is refused.

use serde_json::{Value as Json, json};
use toml::{Table, Value};

use crate::text::problem::join;
use crate::text::units::{Duration, Size};
use crate::{Scenario, schema};
use vcpulab_host::Span;

/// Hosts with everything that fields may refer to. The limits of some fields depend on other fields, which are as large as they
/// may be here; `small` is for the number of copies of a domain.
const HOSTS: [(&str, &str); 4] = [("big", BIG), ("small", SMALL), ("kvm", KVM), ("real-time", REAL_TIME)];
const BIG: &str = r#"
[host]
scheduler = "credit"
profile = "exact"
pcpus = 512
costs = { turbo_one_core_mhz = 100_000 }
[pool.x]
scheduler = "credit"
pcpus = "511"
[nic.x]
driver_domain = "dom0"
[disk.x]
driver_domain = "dom0"
[domain.dom0]
driver_domain = true
vcpus = 512
[domain.x]
vcpus = 512
nic = { driver_domain = "dom0" }
disk = { driver_domain = "dom0" }
idle_tick = "1ms"
idle_tick_cpu = "1us"
app = [{ kind = "web-server" }]
[client_machine.x]
"#;
const SMALL: &str = r#"
[host]
scheduler = "credit"
profile = "exact"
[domain.x]
"#;
const KVM: &str = r#"
[host]
hypervisor = "kvm"
scheduler = "linux-eevdf"
profile = "exact"
pcpus = 512
cgroups = 1
[cgroup.x]
quota_us = 10_000_000_000
[nic.x]
[disk.x]
[domain.x]
nic = {}
disk = {}
app = [{ kind = "web-server" }]
"#;
const REAL_TIME: &str = r#"
[host]
hypervisor = "kvm"
scheduler = "linux-eevdf"
[domain.x]
sched_policy = "fifo"
"#;

/// A step on the way to a field.
#[derive(Clone, Debug)]
enum Step {
    Key(String),
    /// The first item of a list.
    First,
}

/// A field: its way from the root, its schema, and the tables on the way whose kind it depends on.
struct Field {
    way: Vec<Step>,
    schema: Json,
    kinds: Vec<(Vec<Step>, String)>,
}

/// All fields of a schema. A table by name gets the name `x`.
fn fields(root: &Json, schema: &Json, way: &[Step], kinds: &[(Vec<Step>, String)], all: &mut Vec<Field>) {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = root.pointer(name.trim_start_matches('#')).expect("the schema defines its tables");
        return fields(root, definition, way, kinds, all);
    }
    let within = |step: Step| [way, &[step]].concat();
    for kind in ["oneOf", "anyOf"].iter().filter_map(|any| schema[any].as_array()).flatten() {
        if kind["type"] == "object" || kind["type"] == "array" || kind.get("$ref").is_some() {
            fields(root, kind, way, kinds, all);
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let tag = properties.iter().find_map(|(name, field)| Some((name, field["const"].as_str()?)));
        let tag = tag.map(|(name, word)| (within(Step::Key(name.clone())), word.to_owned()));
        let kinds: Vec<_> = kinds.iter().cloned().chain(tag).collect();
        let stated = properties.iter().filter(|(_, field)| field.get("x-scheduler-parameter").is_none());
        for (name, field) in stated {
            fields(root, field, &within(Step::Key(name.clone())), &kinds, all);
        }
    }
    if schema["additionalProperties"].is_object() {
        fields(root, &schema["additionalProperties"], &within(Step::Key("x".to_owned())), kinds, all);
    }
    if schema["items"].is_object() {
        fields(root, &schema["items"], &within(Step::First), kinds, all);
    }
    all.push(Field { way: way.to_vec(), schema: schema.clone(), kinds: kinds.to_vec() });
}

/// The values at the limits of a field, and those beside its limits.
fn values(schema: &Json) -> (Vec<Value>, Vec<Value>) {
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().map(|word| Value::from(word.as_str().expect("words are texts")));
        return (words.collect(), vec!["nonsense".into()]);
    }
    if let [Some(least), Some(most)] = ["formatMinimum", "formatMaximum"].map(|limit| schema[limit].as_str())
    {
        let text = |step: i64, limit: &str| match schema["format"] == "size" {
            true => Size(Size::parse(limit).unwrap().0 + step).to_string(),
            false => Duration(Duration::parse(limit).unwrap().0 + Span::from_ns(step)).to_string(),
        };
        return around(|step| text(step, least).into(), |step| text(step, most).into());
    }
    let also = schema["anyOf"].as_array().into_iter().flatten();
    let (also, limits): (Vec<_>, Vec<_>) = also.partition(|any| any.get("const").is_some());
    let limits = *limits.first().unwrap_or(&schema);
    match [&limits["minimum"], &limits["maximum"]] {
        [Json::Number(least), Json::Number(most)] if schema["type"] == "number" => {
            let [least, most] = [least, most].map(|limit| limit.as_f64().unwrap());
            around(|step| (least * (1.0 + step as f64 / 1e6)).into(), |step| (most + step as f64).into())
        }
        [Json::Number(least), Json::Number(most)] => {
            let [least, most] = [least, most].map(|limit| limit.as_i64().unwrap());
            // No integer of TOML is greater than the greatest.
            let (mut good, bad) =
                around(|step| (least + step).into(), |step| most.saturating_add(step).into());
            let bad = bad.into_iter().filter(|value| !good.contains(value)).collect();
            good.extend(also.iter().map(|any| Value::from(any["const"].as_i64().unwrap())));
            (good, bad)
        }
        _ => (Vec::new(), Vec::new()),
    }
}

fn around(least: impl Fn(i64) -> Value, most: impl Fn(i64) -> Value) -> (Vec<Value>, Vec<Value>) {
    (vec![least(0), most(0)], vec![least(-1), most(1)])
}

/// Sets a value in a scenario; what else stands in lists on the way is left out.
fn set(at: &mut Value, way: &[Step], value: Value) {
    match way {
        [] => *at = value,
        [Step::Key(name), rest @ ..] => {
            if !at.is_table() {
                *at = Table::new().into();
            }
            let table = at.as_table_mut().unwrap();
            set(table.entry(name.as_str()).or_insert(Value::Boolean(false)), rest, value);
        }
        [Step::First, rest @ ..] => {
            let first = at.as_array_mut().filter(|items| items.len() == 1 && items[0].is_table());
            match first {
                Some(items) => set(&mut items[0], rest, value),
                None => {
                    let mut first = Value::Boolean(false);
                    set(&mut first, rest, value);
                    *at = Value::Array(vec![first]);
                }
            }
        }
    }
}

/// Whether a host accepts the value of a field, whatever it thinks of other fields.
fn accepts(host: &str, field: &Field, value: &Value) -> bool {
    let mut scenario = Value::Table(host.parse().unwrap());
    if let [.., Step::Key(app), Step::First, _] = &field.way[..]
        && app == "app"
    {
        set(&mut scenario, &field.way[..field.way.len() - 2], Value::Array(Vec::new()));
    }
    for (way, word) in &field.kinds {
        set(&mut scenario, way, word.as_str().into());
        let table = &way[..way.len() - 1];
        for (name, other) in [("server", "x"), ("domain", "x"), ("at", "1s"), ("affinity", "all")] {
            let other_way = [table, &[Step::Key(name.to_owned())]].concat();
            set(&mut scenario, &other_way, other.into());
        }
    }
    set(&mut scenario, &field.way, value.clone());
    let text = toml::to_string(&scenario).unwrap();
    let problems = Scenario::parse(&text, "f").err().into_iter().flatten();
    let path = path(&field.way);
    problems.filter(|problem| problem.field.as_ref() == Some(&path)).count() == 0
}

fn path(way: &[Step]) -> String {
    way.iter().fold(String::new(), |path, step| match step {
        Step::Key(name) => join(&path, name),
        Step::First => format!("{path}[0]"),
    })
}

#[test]
fn the_checks_accept_exactly_the_values_that_the_schema_allows() {
    let schema = schema();
    let mut all = Vec::new();
    fields(&schema, &schema, &[], &[], &mut all);
    let mut compared = 0;
    let mut wrong = Vec::new();
    for field in &all {
        let (good, bad) = values(&field.schema);
        compared += usize::from(!bad.is_empty());
        // A host that refuses none of the wrong values does not look at the field.
        let checks = |host: &&(&str, &str)| bad.iter().all(|value| !accepts(host.1, field, value));
        let hosts: Vec<_> = HOSTS.iter().filter(checks).collect();
        let refused = good.iter().filter(|good| !hosts.iter().any(|host| accepts(host.1, field, good)));
        let refused: Vec<&Value> = refused.collect();
        if !refused.is_empty() {
            let hosts: Vec<&str> = hosts.iter().map(|(name, _)| *name).collect();
            wrong.push(json!({ "field": path(&field.way), "schema": field.schema, "hosts": hosts, "refused": refused }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.iter().map(|line| format!("{line}\n")).collect::<String>());
    assert!(compared > 250, "{compared} fields have limits or words");
}
