//! Defaults of scheduler parameters as text.

use vcpulab_host::{ParamKind, ParamSpec, ParamValue};

/// A parameter's default as it would be in a file; `None`: no value means the same as leaving it out.
pub(crate) fn default_value(param: &ParamSpec) -> Option<String> {
    if !param.allows(&ParamValue::Int(param.default)) {
        return None;
    }
    Some(match param.kind {
        ParamKind::Choice(words) => format!("{:?}", words[param.default as usize]),
        _ => param.default.to_string(),
    })
}
