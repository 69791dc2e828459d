//! The registry and the profiles as data, for front ends and documentation.

use serde_json::{Value, json};
use vcpulab_host::{ParamSpec, Scope};
use vcpulab_sched::{Generation, policies};

use crate::profile::{CONSTANTS, Profile, profiles};
use crate::write::default_value;

/// All schedulers: `[{name, doc, generations: [{name, work_conserving, params: [{name, scope, unit, allowed, default,
/// doc}]}]}]`. A default is as it would stand in a scenario; null if leaving the parameter out is not the same as any value.
pub fn schedulers_json() -> Value {
    let param = |param: &ParamSpec| {
        json!({
            "name": param.name,
            "scope": match param.scope { Scope::Global => "global", Scope::Domain => "domain" },
            "unit": param.unit,
            "allowed": param.allowed(),
            "default": default_value(param),
            "doc": param.doc,
        })
    };
    let generation = |generation: &Generation| {
        json!({
            "name": generation.name,
            "work_conserving": generation.work_conserving,
            "params": generation.params.iter().map(param).collect::<Vec<_>>(),
        })
    };
    let policies = policies().iter().map(|policy| {
        json!({
            "name": policy.name,
            "doc": policy.doc,
            "generations": policy.generations.iter().map(generation).collect::<Vec<_>>(),
        })
    });
    policies.collect()
}

/// All hardware profiles: `[{name, doc, pcpus: {value, source}, constants: [{name, doc, min, max, value, source}]}]`.
pub fn profiles_json() -> Value {
    let profile = |profile: &Profile| {
        let constants = CONSTANTS.iter().map(|constant| {
            let sourced = &profile.constants[constant.name];
            json!({
                "name": constant.name,
                "doc": constant.doc,
                "min": constant.min,
                "max": constant.max,
                "value": sourced.value,
                "source": sourced.source,
            })
        });
        json!({
            "name": profile.name,
            "doc": profile.doc,
            "pcpus": profile.pcpus,
            "constants": constants.collect::<Vec<_>>(),
        })
    };
    profiles().iter().map(profile).collect()
}
