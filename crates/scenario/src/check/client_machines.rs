//! The machines outside that clients run on.
//!
//! The defaults are those of a desktop PC as Devine (2010, table 3.2) let one make all the load: two cores at 2 GHz, under
//! Windows XP, which gives out ports 1025 to 5000 (Microsoft, `MaxUserPort`). What a request takes there of a processor is
//! published nowhere, so that the default is none.

use vcpulab_host::Span;
use vcpulab_io::ClientMachineId;
use vcpulab_spec::limits::{CLIENTS_MAX, CONNECTIONS_MAX, LINK_RATES, PCPUS_MAX, SPANS};
use vcpulab_spec::{ClientMachineSpec, Spec};

use crate::check::fields::Checker;
use crate::file::raw::{RawClientMachine, RawScenario};
use crate::text::problem::{Place, Problem, did_you_mean};
use crate::text::read::{At, Field};

const PROCESSORS: i64 = 2;
const CONNECTIONS: i64 = 5000 - 1025 + 1;

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
        bits_per_s: checker.int(&raw.bits_per_s, usual_rate, LINK_RATES).unwrap_or(usual_rate),
        processors: checker.int(&raw.processors, PROCESSORS, 1..=PCPUS_MAX.into()).unwrap_or(1) as u32,
        request_cpu: checker.span(&raw.request_cpu, Some(Span::ZERO), SPANS).unwrap_or(Span::ZERO),
        packet_cpu: checker.span(&raw.packet_cpu, Some(Span::ZERO), SPANS).unwrap_or(Span::ZERO),
        connections_max: checker
            .int(&raw.connections_max, CONNECTIONS, 1..=CONNECTIONS_MAX.into())
            .unwrap_or(CONNECTIONS) as u32,
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
