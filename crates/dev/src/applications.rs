//! The page on applications and their parameters, from the registry.

use std::fmt::Write as _;

use vcpulab_guest::apps::{AppDefault, AppParam, AppParamKind, KINDS};

use crate::markdown::table;

pub fn page() -> String {
    let mut page = String::from(
        "# Applications\n\n\
         Generated from the registry. An application stands in `[[domain.NAME.app]]` of a scenario with its `kind` and \
         parameters. A default in cycles is a CPU time that scales with the machine's clock. What each application does, \
         step by step, is in [its page](../applications/README.md).\n",
    );
    for kind in KINDS {
        write!(page, "\n## `{}`\n\n{}\n\n", kind.name, kind.doc).expect("a string takes all text");
        if kind.params.is_empty() {
            page += "It has no parameters.\n";
        } else {
            page += &table(
                ["parameter", "what it is", "allowed", "default", "where the default is from"],
                kind.params.iter().map(|param| {
                    let AppParam { name, doc, .. } = param;
                    [
                        format!("`{name}`"),
                        (*doc).into(),
                        allowed(param.kind),
                        default(param),
                        param.source.into(),
                    ]
                }),
            );
        }
        if kind.classes.is_empty() {
            continue;
        }
        page += "\nIt answers requests:\n\n";
        page += &table(
            ["class", "request, bytes", "answer, bytes", "weight", "where these are from"],
            kind.classes.iter().map(|class| {
                let [request, reply, weight] =
                    [class.request_bytes, class.reply_bytes, class.weight].map(|number| number.to_string());
                [format!("`{}`", class.name), request, reply, weight, class.source.into()]
            }),
        );
    }
    page
}

fn allowed(kind: AppParamKind) -> String {
    let quoted = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let range = |min, max| format!("{} to {}", value(kind, min), value(kind, max));
    match kind {
        AppParamKind::Duration { min, max } => range(min.ns(), max.ns()),
        AppParamKind::Size { min, max } => range(min, max),
        AppParamKind::Percent => range(0, 100),
        AppParamKind::Int { min, max } => format!("{min} to {max}"),
        AppParamKind::Choice(words) => quoted(words),
        AppParamKind::Flag => "`true`, `false`".into(),
        AppParamKind::Service(kinds) => format!("a domain with {}", quoted(kinds)),
    }
}

fn default(param: &AppParam) -> String {
    match param.default {
        AppDefault::Required => "**required**".into(),
        AppDefault::Value(number) => value(param.kind, number),
        AppDefault::Kilocycles(number) if number % 1000 == 0 => format!("{} million cycles", number / 1000),
        AppDefault::Kilocycles(number) => format!("{number} thousand cycles"),
        AppDefault::Profile(constant) => format!("`{constant}` of the machine"),
        AppDefault::Absent => "none".into(),
    }
}

/// A value with its unit, the largest in which it is a whole number.
fn value(kind: AppParamKind, number: i64) -> String {
    let whole = |units: &[(i64, &str)]| {
        let unit = units.iter().find(|(unit, _)| number != 0 && number % unit == 0);
        unit.map_or_else(|| number.to_string(), |(unit, name)| format!("{} {name}", number / unit))
    };
    match kind {
        AppParamKind::Duration { .. } => {
            whole(&[(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")])
        }
        AppParamKind::Size { .. } => {
            whole(&[(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")])
        }
        AppParamKind::Percent => format!("{number} %"),
        AppParamKind::Choice(words) => format!("`{}`", words[number as usize]),
        AppParamKind::Flag => format!("`{}`", number == 1),
        AppParamKind::Int { .. } | AppParamKind::Service(_) => number.to_string(),
    }
}
