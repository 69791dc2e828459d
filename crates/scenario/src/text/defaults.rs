//! Defaults of scheduler parameters as a scenario file has them.

use serde_json::{Value, json};
use vcpulab_host::ParamValue;
use vcpulab_sched::{ParamKind, ParamSpec};

/// A parameter's default as it would be in a file: a number or a word; `None`: no value means the same as leaving it out. The
/// value's `Display` is its text in TOML, too.
pub(crate) fn default_value(param: &ParamSpec) -> Option<Value> {
    if !param.allows(&ParamValue::Int(param.default)) {
        return None;
    }
    Some(match param.kind {
        ParamKind::Choice(words) => json!(words[param.default as usize]),
        _ => json!(param.default),
    })
}
