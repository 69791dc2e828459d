//! The machines outside that clients run on.

use vcpulab_io::ClientMachineId;
use vcpulab_spec::limits::CLIENTS_MAX;
use vcpulab_spec::{ClientMachineSpec, Spec};

use crate::check::fields::Checker;
use crate::file::raw::{RawClientMachine, RawScenario};
use crate::text::problem::{Place, Problem, did_you_mean};
use crate::text::read::{At, Field};

pub(crate) fn check(checker: &mut Checker<'_, '_>, raw: &RawScenario, spec: &mut Spec, place: &Place) {
    let machines = raw.client_machine.get().map_or(&[][..], |named| &named.0);
    checker.count(machines.len(), 0, CLIENTS_MAX, "client machines", &place.member("client_machine"));
    let usual_rate = spec.host.constants.nic_bits_per_s;
    for (name, At { value, .. }) in machines.iter().take(CLIENTS_MAX) {
        checker.identifier(name);
        let machine = client_machine(checker, name.value.clone(), value, usual_rate);
        spec.client_machines.push(machine);
    }
}

/// Checks a machine of clients. A faulty machine is returned too, so that clients can refer to it.
fn client_machine(
    checker: &mut Checker<'_, '_>,
    name: String,
    raw: &RawClientMachine,
    usual_rate: i64,
) -> ClientMachineSpec {
    ClientMachineSpec {
        name,
        bits_per_s: raw.bits_per_s(usual_rate, checker.report).unwrap_or(usual_rate),
        processors: raw.processors(checker.report),
        request_cpu: raw.request_cpu(checker.report),
        packet_cpu: raw.packet_cpu(checker.report),
        connections_max: raw.connections_max(checker.report),
    }
}

/// The machine that a client runs on, if it says one; `None` if that is wrong.
pub(crate) fn machine_of(
    checker: &mut Checker<'_, '_>,
    field: &Field<String>,
    spec: &Spec,
) -> Option<Option<ClientMachineId>> {
    let Some(At { value, place }) = &field.0 else { return Some(None) };
    let names = || spec.client_machines.iter().map(|machine| machine.name.as_str());
    let found = spec.client_machines.ids().find(|&machine| spec.client_machines[machine].name == *value);
    if found.is_none() {
        let hint = did_you_mean(value, names()).unwrap_or_else(|| format!("add [client_machine.{value}]"));
        let problem = Problem::says(format!("there is no client machine `{value}`"));
        checker.report.error(place, problem.found(value).hint(hint));
    }
    found.map(Some)
}
