//! The JSON schema of scenario files, from the types that read them and the registry's parameter tables.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use vcpulab_guest::apps::{AppDefault, AppParam, AppParamKind, KINDS};
use vcpulab_host::{Scope, Span};
use vcpulab_sched::{ParamKind, policies};
use vcpulab_spec::{CONSTANTS, CUSTOM, ConstantDoc, PHASES};

use crate::file::profile::profile_names;
use crate::file::raw::RawScenario;
use crate::text::defaults::default_value;
use crate::text::params::RawSlot;
use crate::text::units::{Duration, Size};
use crate::text::value::Bounded;

/// The JSON schema (draft 2020-12) of scenario files.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let slot = generator.subschema_for::<RawSlot>().to_value();
    let mut schema = generator.into_root_schema_for::<RawScenario>().to_value();
    schema["title"] = "vcpulab scenario".into();
    let global = params(Scope::Global, &slot);
    let domain = params(Scope::Domain, &slot);
    let definitions = &mut schema["$defs"];
    add(&mut definitions["RawHost"], &global);
    add(&mut definitions["RawPool"], &global);
    add(&mut definitions["RawDomain"], &domain);
    for action in definitions["RawAction"]["oneOf"].as_array_mut().into_iter().flatten() {
        match action["properties"]["op"]["const"].as_str() {
            Some("adjust") => add(action, &domain),
            Some("adjust-global") => add(action, &global),
            _ => {}
        }
    }
    applications(&mut definitions["RawApp"]);
    let schedulers: Value = policies().iter().map(|policy| policy.name).collect();
    // Installed packages offer others.
    let schedulers = json!([{ "enum": schedulers }, { "type": "string", "examples": ["stride.py:Stride"] }]);
    definitions["RawPool"]["properties"]["scheduler"]["anyOf"] = schedulers.clone();
    let host = &mut definitions["RawHost"]["properties"];
    let names: Vec<&str> = profile_names().chain([CUSTOM]).collect();
    host["profile"]["anyOf"] = json!([{ "enum": names }, { "type": "string", "pattern": "\\.toml$" }]);
    host["scheduler"]["anyOf"] = schedulers;
    let constant = |c: &ConstantDoc| {
        let mut schema =
            json!({ "description": c.doc, "type": "integer", "minimum": c.min, "maximum": c.max });
        if let Some(default) = c.default {
            schema["default"] = default.into();
        }
        (c.name.to_owned(), schema)
    };
    host["costs"]["properties"] = Value::Object(CONSTANTS.iter().map(constant).collect());
    host["costs"]["additionalProperties"] = false.into();
    tidied(schema)
}

/// The fields of applications, which depend on their kind.
fn applications(table: &mut Value) {
    let all = table["properties"].take();
    let one = |name: &str, doc: &str, fields: &[&str], required: &[&str], params: &[AppParam]| {
        let mut properties = Map::new();
        properties.insert("kind".into(), json!({ "type": "string", "const": name }));
        for &field in fields {
            properties.insert(field.into(), all[field].clone());
        }
        for param in params {
            properties.insert(param.name.into(), app_param(param));
        }
        let needed =
            params.iter().filter(|param| param.default == AppDefault::Required).map(|param| param.name);
        let required: Vec<&str> =
            ["kind"].into_iter().chain(required.iter().copied()).chain(needed).collect();
        json!({ "type": "object", "additionalProperties": false, "properties": properties, "description": doc,
            "required": required })
    };
    let mut kinds: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            let fields: &[&str] =
                if kind.classes.is_empty() { &["instance", "assumed"] } else { &["assumed"] };
            one(kind.name, kind.doc, fields, &[], kind.params)
        })
        .collect();
    let doc = "Follows a script, in rt-app's words: phases in order, each made of events in order.";
    kinds.push(one(
        PHASES,
        doc,
        &["phase", "loop", "stretch", "start_delay", "softirq", "softirq_first", "instance", "assumed"],
        &["phase"],
        &[],
    ));
    *table = json!({ "oneOf": kinds, "description": table["description"] });
}

fn app_param(param: &AppParam) -> Value {
    let mut schema = match param.kind {
        AppParamKind::Int { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        AppParamKind::Duration { min, max } => limits(Duration(min), Duration(max)),
        AppParamKind::Size { min, max } => limits(Size(min), Size(max)),
        AppParamKind::Percent => json!({ "type": "integer", "minimum": 0, "maximum": 100 }),
        AppParamKind::Flag => json!({ "type": "boolean" }),
        AppParamKind::Choice(words) => json!({ "enum": words }),
        AppParamKind::Service(_) => json!({ "type": "string" }),
    };
    let default = match (param.default, param.kind) {
        (AppDefault::Required | AppDefault::Absent, _) => String::new(),
        (AppDefault::Value(value), AppParamKind::Duration { .. }) => {
            format!(" Default: {}.", Duration(Span::from_ns(value)))
        }
        (AppDefault::Value(value), AppParamKind::Size { .. }) => format!(" Default: {}.", Size(value)),
        (AppDefault::Value(value), AppParamKind::Choice(words)) => {
            format!(" Default: {}.", words[value as usize])
        }
        (AppDefault::Value(value), AppParamKind::Flag) => format!(" Default: {}.", value != 0),
        (AppDefault::Value(value), _) => format!(" Default: {value}."),
        (AppDefault::Kilocycles(cycles), _) => format!(" Default: {cycles} thousand cycles."),
        (AppDefault::Profile(name), _) => format!(" Default: the profile's `{name}`."),
    };
    let of = match param.kind {
        AppParamKind::Service(kinds) => format!(" A domain that runs one {}.", kinds.join(" or ")),
        _ => String::new(),
    };
    schema["description"] = format!("{}{of}{default}", param.doc).into();
    schema
}

fn add(table: &mut Value, params: &Map<String, Value>) {
    let properties = table["properties"].as_object_mut().expect("a table has properties");
    for (name, schema) in params {
        assert!(!properties.contains_key(name), "parameter `{name}` has the name of a field");
        properties.insert(name.clone(), schema.clone());
    }
}

/// The parameters of all schedulers, by name, each with its owners and the values that it takes there.
fn params(scope: Scope, slot: &Value) -> Map<String, Value> {
    let mut all = Map::new();
    for policy in policies() {
        for generation in policy.generations {
            for param in generation.params.iter().filter(|param| param.scope == scope) {
                let default =
                    default_value(param).map_or("no default".into(), |value| format!("default {value}"));
                let text =
                    format!("{}: {} Allowed: {}; {default}.", policy.name, param.doc, param.kind.allowed());
                let values = values(param.kind, slot);
                let known = all.entry(param.name).or_insert_with(
                    || json!({ "description": "", "x-scheduler-parameter": true, "anyOf": [] }),
                );
                let description = known["description"].as_str().unwrap_or_default();
                if !description.contains(&text) {
                    known["description"] = format!("{description} {text}").trim().into();
                }
                let kinds = known["anyOf"].as_array_mut().expect("it was made as a list");
                if !kinds.contains(&values) {
                    kinds.push(values);
                }
            }
        }
    }
    all
}

/// The values of a parameter; `slot` is the schema of an entry of a timetable.
fn values(kind: ParamKind, slot: &Value) -> Value {
    match kind {
        ParamKind::Int { min, max, also: [] } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        ParamKind::Int { min, max, also } => {
            json!({ "type": "integer", "anyOf": [{ "minimum": min, "maximum": max }, { "enum": also }] })
        }
        ParamKind::Flag => json!({ "enum": [0, 1, false, true] }),
        ParamKind::Choice(words) => json!({ "enum": words }),
        ParamKind::Timetable(most) => {
            json!({ "type": "array", "minItems": 1, "maxItems": most, "items": slot })
        }
    }
}

/// The values of a type from `least` to `most`.
fn limits<T: Bounded + JsonSchema>(least: T, most: T) -> Value {
    let mut schema = T::json_schema(&mut SchemaGenerator::default());
    T::limit(&mut schema, least, most);
    schema.to_value()
}

/// The schema tidied for people: `Host` for the type `RawHost`, descriptions without line breaks of the source code,
/// integers without their width in Rust.
fn tidied(schema: Value) -> Value {
    match schema {
        Value::Object(map) => {
            let tidy = |(name, value): (String, Value)| {
                let value = match (name.as_str(), value) {
                    ("description", Value::String(text)) => text.replace('\n', " ").into(),
                    (_, value) => tidied(value),
                };
                (name.strip_prefix("Raw").map_or(name.clone(), str::to_owned), value)
            };
            let relevant = |(name, value): &(String, Value)| name != "format" || value != "int64";
            Value::Object(map.into_iter().filter(relevant).map(tidy).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(tidied).collect()),
        Value::String(text) => Value::String(text.replace("#/$defs/Raw", "#/$defs/")),
        other => other,
    }
}
