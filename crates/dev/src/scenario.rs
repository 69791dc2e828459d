//! The page on scenario files, from their schema, the profiles and the limits.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use vcpulab_host::Span;
use vcpulab_scenario::{FILE_BYTES_MAX, profiles, schema, starter};
use vcpulab_spec::{CONSTANTS, Sourced, limits};

use crate::markdown::table;

/// The tables of a scenario in the order of the page: title, and name of the definition.
const SECTIONS: [(&str, &str); 19] = [
    ("`[run]`", "Run"),
    ("`[run.profiler]`", "Profiler"),
    ("`[host]`", "Host"),
    ("`[host.topology]`", "Topology"),
    ("`[nic.NAME]`", "Nic"),
    ("`[disk.NAME]`", "Disk"),
    ("`[pool.NAME]`", "Pool"),
    ("`[cgroup.\"PATH\"]`", "Cgroup"),
    ("`[domain.NAME]`", "Domain"),
    ("`[domain.NAME.nic]`", "Netfront"),
    ("`[domain.NAME.disk]`", "VirtualDisk"),
    ("`[[domain.NAME.app]]`", "App"),
    ("`[[domain.NAME.app.phase]]`", "Phase"),
    ("`event` of a phase", "Event"),
    ("`[client.NAME]`", "Client"),
    ("One of a client's `mix`", "Ask"),
    ("`[client_machine.NAME]`", "ClientMachine"),
    ("`[[action]]`", "Action"),
    ("A slot of a timetable", "Slot"),
];

pub fn page() -> String {
    let schema = schema();
    let mut page = String::from(
        "# Scenario files\n\n\
         Generated from the types that read them. A scenario is a TOML file; `vcpulab check FILE` reports everything wrong \
         with one, `vcpulab init` writes the one at the end of this page. Fields in **bold** are required. The schema for \
         editors is `schema/scenario.schema.json` (`vcpulab schema`).\n\n\
         ## At the top\n\n",
    );
    page += &fields(&schema);
    for (title, name) in SECTIONS {
        let Some(definition) = schema["$defs"].get(name) else { continue };
        write!(page, "\n## {title}\n\n{}\n", description(definition)).expect("a string takes all text");
        match definition["oneOf"].as_array() {
            None => page += &format!("\n{}", fields(definition)),
            Some(kinds) => kinds.iter().for_each(|kind| page += &one_kind(kind)),
        }
    }
    page += &constants();
    page += &limits_table();
    write!(page, "\n## The starter\n\n```toml\n{}```\n", starter()).expect("a string takes all text");
    page
}

fn one_kind(kind: &Value) -> String {
    let properties = kind["properties"].as_object().into_iter().flatten();
    let tag = properties.filter_map(|(name, field)| Some((name, field.get("const")?.as_str()?))).next();
    let (tag, word) = tag.expect("each kind says which it is");
    format!("\n### `{tag} = \"{word}\"`\n\n{}\n\n{}", description(kind), fields(kind))
}

/// The fields of one table; where the scheduler's parameters may stand, one line for all of them.
fn fields(definition: &Value) -> String {
    let none = Map::new();
    let properties = definition["properties"].as_object().unwrap_or(&none);
    let required =
        |name: &str| definition["required"].as_array().is_some_and(|r| r.iter().any(|r| r == name));
    let is_param = |field: &Value| field.get("x-scheduler-parameter").is_some();
    let own = properties.iter().filter(|(_, field)| !is_param(field) && field.get("const").is_none());
    let rows = own.map(|(name, field)| {
        let mark = if required(name) { "**" } else { "" };
        [format!("{mark}`{name}`{mark}"), kind(field), description(field).to_owned()]
    });
    let params = properties.values().any(is_param).then(|| {
        [
            "(parameters)".to_owned(),
            String::new(),
            "The scheduler's parameters, see [schedulers](schedulers.md).".to_owned(),
        ]
    });
    let rows: Vec<_> = rows.chain(params).collect();
    if rows.is_empty() {
        "It has no further fields.\n".into()
    } else {
        table(["field", "type", "what it is"], rows)
    }
}

fn description(value: &Value) -> &str {
    value["description"].as_str().unwrap_or_default()
}

/// A field's type in words.
fn kind(field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        return words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(name) = field["$ref"].as_str() {
        return format!("table {}", name.trim_start_matches("#/$defs/"));
    }
    let limits = |of: &Value| match (&of["minimum"], &of["maximum"]) {
        (Value::Null, Value::Null) => String::new(),
        (least, Value::Null) => format!(", at least {least}"),
        (least, most) => format!(", {least} to {most}"),
    };
    let bounds = match field["anyOf"].as_array().map(Vec::as_slice) {
        Some([also, range]) if also.get("const").is_some() => {
            format!("{}, or {}", limits(range), also["const"])
        }
        _ => limits(field),
    };
    match (field["format"].as_str(), field["type"].as_str()) {
        (Some("time-span"), _) => "time span (`\"10ms\"`)".into(),
        (Some("size"), _) => "size (`\"10KB\"`)".into(),
        (Some("pcpu-set"), _) => "pCPUs (`\"0-3,5\"`)".into(),
        (_, Some("array")) => format!("list of {}", kind(&field["items"])),
        (_, Some("object")) => "table by name".into(),
        (_, Some("boolean")) => "`true` or `false`".into(),
        (_, Some(name)) => format!("{name}{bounds}"),
        (_, None) => {
            let any = field["anyOf"].as_array().into_iter().flatten();
            any.map(kind).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn constants() -> String {
    let mut text = String::from(
        "\n## Hardware profiles\n\n\
         What things cost. `[host.costs]` replaces constants of the profile by name.\n\n",
    );
    text += &table(
        ["constant", "allowed", "where a profile gives none", "what it is"],
        CONSTANTS.iter().map(|c| {
            let usual = c.default.map_or_else(|| "required".to_owned(), |usual| usual.to_string());
            [format!("`{}`", c.name), format!("{} to {}", c.min, c.max), usual, c.doc.to_owned()]
        }),
    );
    for profile in profiles() {
        let row = |name: String, Sourced { value, kind, source }: &Sourced| {
            [name, value.to_string(), kind.word().to_owned(), source.clone()]
        };
        let rows = CONSTANTS.iter().filter_map(|constant| {
            Some(row(format!("`{}`", constant.name), profile.constants.get(constant.name)?))
        });
        let pcpus = row("(pCPUs)".to_owned(), &profile.pcpus);
        write!(text, "\n### `{}`\n\n{}\n\n", profile.name, profile.doc).expect("a string takes all text");
        text += &table(["constant", "value", "known", "source"], std::iter::once(pcpus).chain(rows));
    }
    text
}

fn limits_table() -> String {
    let limits = [
        ("bytes of a file", FILE_BYTES_MAX.to_string()),
        ("pCPUs", limits::PCPUS_MAX.to_string()),
        ("domains", limits::DOMAINS_MAX.to_string()),
        ("vCPUs of a domain", limits::DOMAIN_VCPUS_MAX.to_string()),
        ("vCPUs of all domains", limits::VCPUS_MAX.to_string()),
        ("applications of a domain", limits::APPS_MAX.to_string()),
        ("applications of all domains, with instances", limits::TASKS_MAX.to_string()),
        ("phases of a script", limits::PHASES_MAX.to_string()),
        ("events of a phase", limits::EVENTS_MAX.to_string()),
        ("clients", limits::CLIENTS_MAX.to_string()),
        ("connections of a client or server", limits::CONNECTIONS_MAX.to_string()),
        ("actions", limits::ACTIONS_MAX.to_string()),
        ("replications", limits::REPLICATIONS_MAX.to_string()),
        ("seconds of any time span", (limits::SPAN_MAX / Span::from_secs(1)).to_string()),
        ("bytes of a served file", limits::FILE_SIZE_MAX.to_string()),
        ("characters of a name", limits::NAME_CHARS_MAX.to_string()),
    ];
    "\n## Limits\n\n".to_owned()
        + &table(["of", "at most"], limits.map(|(what, most)| [what.to_owned(), most]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_of_the_schema_has_a_section() {
        let schema = schema();
        let mut tables: Vec<&str> = schema["$defs"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut sections: Vec<&str> = SECTIONS.iter().map(|(_, name)| *name).collect();
        tables.sort_unstable();
        sections.sort_unstable();
        assert_eq!(sections, tables);
    }
}
