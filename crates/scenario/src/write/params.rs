//! Scheduler parameters.

use vcpulab_host::{ParamValue, Params, TimetableEntry};
use vcpulab_sched::ParamKind;
use vcpulab_spec::{PoolSpec, Spec};

use crate::text::params::{RawParam, RawParams, RawSlot};
use crate::text::read::{Named, named};

pub(crate) fn raw_params(params: &Params, pool: &PoolSpec, spec: &Spec) -> RawParams {
    let raw = |(name, value): (&str, &ParamValue)| {
        let kind = pool.generation.params.iter().find(|param| param.name == name).map(|param| param.kind);
        let value = match (value, kind) {
            (ParamValue::Int(index), Some(ParamKind::Choice(words))) => {
                RawParam::Word(words[*index as usize].to_owned())
            }
            (ParamValue::Int(value), _) => RawParam::Int(*value),
            (ParamValue::Timetable(slots), _) => {
                let slot = |slot: &TimetableEntry| RawSlot {
                    domain: domain_numbered(slot.domain, spec).to_owned().into(),
                    vcpu: slot.vcpu.into(),
                    runtime: slot.runtime.into(),
                };
                RawParam::Timetable(slots.iter().map(|entry| slot(entry).into()).collect())
            }
        };
        named(name, value)
    };
    Named(params.iter().map(raw).collect())
}

fn domain_numbered(number: i64, spec: &Spec) -> &str {
    let domain = spec.domains.iter().find(|domain| domain.number == number);
    &domain.expect("a timetable names domains that are there").name
}
