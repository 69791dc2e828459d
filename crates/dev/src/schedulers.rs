//! The page on schedulers and their parameters, from the registry.

use std::fmt::Write as _;

use serde_json::Value;
use vcpulab_scenario::schedulers_json;

use crate::markdown::table;

pub fn page() -> String {
    let mut page = String::from(
        "# Schedulers\n\n\
         Generated from the registry. Global parameters stand in `[host]` of a scenario, those of a domain in \
         `[domain.NAME]`; timed actions change both (`adjust-global`, `adjust`). The last column says how the parameter is set on a real host; `vcpulab xl commands` \
         writes the commands for a scenario. `vcpulab schedulers` prints the rest of this.\n",
    );
    for policy in list(&schedulers_json()) {
        write!(page, "\n## `{}`\n\n{}\n", text(policy, "name"), text(policy, "doc"))
            .expect("a string takes all text");
        let generations = list(&policy["generations"]);
        for generation in generations {
            let usual = if generation["default"] == true { " (the default)" } else { "" };
            let releases: Vec<&str> =
                list(&generation["releases"]).iter().filter_map(Value::as_str).collect();
            let releases = match releases[..] {
                [only] if only == text(generation, "name") => String::new(),
                _ => format!("In {}. ", releases.join(", ")),
            };
            let conserving = match generation["work_conserving"].as_bool() {
                Some(true) => "Work-conserving.",
                _ => "Not work-conserving: a pCPU may idle while a vCPU waits.",
            };
            write!(
                page,
                "\n### `{}` {}{usual}\n\n{releases}{conserving}\n",
                text(policy, "name"),
                text(generation, "name")
            )
            .expect("a string takes all text");
            let params = list(&generation["params"]);
            if params.is_empty() {
                page += "It has no parameters.\n";
                continue;
            }
            page += "\n";
            page += &table(
                ["parameter", "of", "allowed", "unit", "default", "what it does", "set by"],
                params.iter().map(|param| {
                    [
                        format!("`{}`", text(param, "name")),
                        match text(param, "scope") {
                            "global" => "the scheduler".into(),
                            scope => format!("each {scope}"),
                        },
                        text(param, "allowed").to_owned(),
                        text(param, "unit").to_owned(),
                        match &param["default"] {
                            Value::Null => "none".to_owned(),
                            default => default.to_string(),
                        },
                        text(param, "doc").to_owned(),
                        set_by(param, &generation["toolstack"]),
                    ]
                }),
            );
        }
    }
    page
}

/// The command, file or boot option that sets a parameter on a real host.
fn set_by(param: &Value, toolstack: &Value) -> String {
    let how = &toolstack["set"][text(param, "name")];
    let command = format!("{} {}", text(toolstack, "tool"), text(toolstack, text(param, "scope")));
    match how["by"].as_str() {
        Some("option") => format!("`{command} {}`", text(how, "name")),
        Some("place") => format!("`{command} ...`"),
        Some("boot") => format!("boot option `{}=`", text(how, "name")),
        Some("host") => format!("`{}`", text(how, "name")),
        _ => "nothing".into(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
