//! The registry and the profiles as data, for front ends and documentation.

use serde_json::{Map, Value, json};
use vcpulab_host::Scope;
use vcpulab_sched::{
    Generation, ParamKind, ParamSpec, Part, Policy, ReservationPart, Role, Set, Toolstack, policies,
};
use vcpulab_spec::{CONSTANTS, Profile};

use crate::file::profile::profiles;
use crate::text::defaults::default_value;

/// All schedulers: `[{name, doc, generations: [{name, releases, default, work_conserving, toolstack: {tool, sched, domain, global, set},
/// params: [{name, scope, role, unit, kind, allowed, default, doc}]}]}]`. `set` says by parameter how it is given on a real host: as an
/// `option` (whose unit is this number of ours), by its `place`, or at `boot`. `allowed` describes the values in words for people.
/// By `kind` there are: for an `int` its `min`, its `max`, and the values outside of these that are accepted `also`; for a `choice`
/// its `choices`. `role` is the meaning of the value for the CPU time of domains, null without one. A default is the value that would be in a scenario; null if leaving the parameter out is not the same as any value.
pub fn schedulers_json() -> Value {
    policies().iter().map(policy_json).collect()
}

/// A scheduler as an item of [`schedulers_json`], also one from outside the registry.
pub fn policy_json(policy: &Policy) -> Value {
    let set = |(name, set): &(&'static str, Set)| {
        let how = match *set {
            Set::Option(flag) => json!({ "by": "option", "name": flag, "unit": 1 }),
            Set::OptionPer(flag, unit) => json!({ "by": "option", "name": flag, "unit": unit }),
            Set::Always(flag) => json!({ "by": "option", "name": flag, "unit": 1, "always": true }),
            Set::Place => json!({ "by": "place", "always": true }),
            Set::Boot(option) => json!({ "by": "boot", "name": option }),
            Set::Host(how) => json!({ "by": "host", "name": how }),
        };
        ((*name).to_owned(), how)
    };
    let toolstack = |toolstack: &Toolstack| {
        let Toolstack { tool, sched, domain, global, .. } = toolstack;
        let set: Map<String, Value> = toolstack.set.iter().map(set).collect();
        json!({ "tool": tool, "sched": sched, "domain": domain, "global": global, "set": set })
    };
    let generation = |generation: &Generation| {
        json!({
            "name": generation.name,
            "releases": policy.releases_of(generation),
            "default": generation.name == policy.default_generation().name,
            "work_conserving": generation.work_conserving,
            "toolstack": toolstack(&generation.toolstack),
            "params": generation.params.iter().map(param_json).collect::<Vec<_>>(),
        })
    };
    json!({
        "name": policy.name,
        "doc": policy.doc,
        "generations": policy.generations.iter().map(generation).collect::<Vec<_>>(),
    })
}

/// A parameter of a generation.
fn param_json(param: &ParamSpec) -> Value {
    let mut fields = json!({
        "name": param.name,
        "scope": match param.scope { Scope::Global => "global", Scope::Domain => "domain" },
        "unit": param.unit,
        "role": role_json(param.role),
        "kind": param.kind.name(),
        "allowed": param.kind.allowed(),
        "default": default_value(param),
        "doc": param.doc,
    });
    match param.kind {
        ParamKind::Int { min, max, also } => {
            fields["min"] = json!(min);
            fields["max"] = json!(max);
            fields["also"] = json!(also);
        }
        ParamKind::Choice(words) => fields["choices"] = json!(words),
        _ => {}
    }
    fields
}

/// The meaning of a parameter for the CPU time of domains.
fn role_json(role: Role) -> Value {
    let part = |part: Part| match part {
        Part::Whole => "domain",
        Part::Vcpu => "vcpu",
        Part::Emulator => "emulator",
        Part::IoThread => "iothread",
    };
    match role {
        Role::Plain => Value::Null,
        Role::Weight(_) => json!({ "name": "weight" }),
        Role::InverseWeight(_) => json!({ "name": "inverse-weight" }),
        Role::CapPercent => json!({ "name": "cap-percent" }),
        Role::Reserved(ReservationPart::Time { unit }, _) => {
            json!({ "name": "reserved-time", "unit_ns": unit.ns() })
        }
        Role::Reserved(ReservationPart::Period { unit }, _) => {
            json!({ "name": "reserved-period", "unit_ns": unit.ns() })
        }
        Role::Reserved(ReservationPart::Weight, _) => json!({ "name": "reserved-weight" }),
        Role::Reserved(ReservationPart::Extra { by_default }, _) => {
            json!({ "name": "extra-time", "by_default": by_default })
        }
        Role::Reserved(ReservationPart::Latency, _) => json!({ "name": "reserved-latency" }),
        Role::Timetable => json!({ "name": "timetable" }),
        Role::Frame => json!({ "name": "frame" }),
        Role::GroupWeight => json!({ "name": "group-weight" }),
        Role::GroupWeightMode(_) => json!({ "name": "group-weight-mode" }),
        Role::GroupIdle => json!({ "name": "group-idle" }),
        Role::GroupQuota(of) => json!({ "name": "group-quota", "part": part(of) }),
        Role::GroupPeriod(of) => json!({ "name": "group-period", "part": part(of) }),
    }
}

/// All hardware profiles: `[{name, doc, pcpus: {value, kind, source}, constants: [{name, doc, min, max, value, kind,
/// source}]}]`.
pub fn profiles_json() -> Value {
    profiles().map(profile_json).collect()
}

/// A profile as an item of [`profiles_json`], also one from a file.
pub fn profile_json(profile: &Profile) -> Value {
    let constants = CONSTANTS.iter().filter_map(|constant| {
        let sourced = profile.constants.get(constant.name)?;
        Some(json!({
            "name": constant.name,
            "doc": constant.doc,
            "min": constant.min,
            "max": constant.max,
            "value": sourced.value,
            "kind": sourced.kind,
            "source": sourced.source,
        }))
    });
    json!({
        "name": profile.name,
        "doc": profile.doc,
        "pcpus": profile.pcpus,
        "constants": constants.collect::<Vec<_>>(),
    })
}
