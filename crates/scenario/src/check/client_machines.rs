//! The machines outside that clients run on.
//!
//! The defaults are those of a desktop PC as Devine (2010, table 3.2) let one make all the load: two cores at 2 GHz, under
//! Windows XP, which gives out ports 1025 to 5000 (Microsoft, `MaxUserPort`). What a request takes there of a processor is
//! published nowhere, so that the default is none.

use vcpulab_io::ClientMachineConfig;

use crate::check::Checker;
use crate::limits::{CLIENTS_MAX, CONNECTIONS_MAX, PCPUS_MAX, SPAN_NS_MAX};
use crate::problem::{Place, Problem, did_you_mean};
use crate::raw::{RawClientMachine, RawScenario};
use crate::read::{At, Field, Named};
use crate::spec::{ClientMachineSpec, Spec};
use crate::units::Duration;

const PROCESSORS: i64 = 2;
const CONNECTIONS: i64 = 5000 - 1025 + 1;
/// Rates of a link, bits per second.
pub(crate) const LINK_RATES: std::ops::RangeInclusive<i64> = 1_000..=10_000_000_000_000;

impl Checker<'_, '_> {
    pub(crate) fn client_machines(&mut self, raw: &RawScenario, spec: &mut Spec, place: &Place) {
        let machines = raw.client_machine.get().map_or(&[][..], |named| &named.0);
        self.count(machines.len(), 0, CLIENTS_MAX, "client machines", &place.member("client_machine"));
        let usual_rate = spec.host.constants.nic_bits_per_s;
        for (name, At { value, .. }) in machines.iter().take(CLIENTS_MAX) {
            self.identifier(name);
            let machine = self.client_machine(name.value.clone(), value, usual_rate);
            spec.client_machines.push(machine);
        }
    }

    /// It is there whatever is wrong with it, so that clients can refer to it.
    fn client_machine(&mut self, name: String, raw: &RawClientMachine, usual_rate: i64) -> ClientMachineSpec {
        ClientMachineSpec {
            name,
            bits_per_s: self.int(&raw.bits_per_s, usual_rate, LINK_RATES).unwrap_or(usual_rate),
            processors: self.int(&raw.processors, PROCESSORS, 1..=PCPUS_MAX.into()).unwrap_or(1) as u32,
            request_ns: self.span(&raw.request_cpu, Some(0), 0..=SPAN_NS_MAX).unwrap_or(0),
            packet_ns: self.span(&raw.packet_cpu, Some(0), 0..=SPAN_NS_MAX).unwrap_or(0),
            connections_max: self
                .int(&raw.connections_max, CONNECTIONS, 1..=CONNECTIONS_MAX.into())
                .unwrap_or(CONNECTIONS) as u32,
        }
    }

    /// The machine that a client runs on, if it says one; `None` if that is wrong.
    pub(crate) fn machine_of(&mut self, field: &Field<String>, spec: &Spec) -> Option<Option<usize>> {
        let Some(At { value, place }) = &field.0 else { return Some(None) };
        let names = || spec.client_machines.iter().map(|machine| machine.name.as_str());
        let found = names().position(|name| name == value);
        if found.is_none() {
            let hint =
                did_you_mean(value, names()).unwrap_or_else(|| format!("add [client_machine.{value}]"));
            let problem = Problem::says(format!("there is no client machine `{value}`"));
            self.report.error(place, problem.found(value).hint(hint));
        }
        found.map(Some)
    }
}

/// Those of a checked scenario as a file would say them.
pub(crate) fn raw_client_machines(spec: &Spec) -> Field<Named<RawClientMachine>> {
    let raw = |machine: &ClientMachineSpec| RawClientMachine {
        bits_per_s: machine.bits_per_s.into(),
        processors: i64::from(machine.processors).into(),
        request_cpu: Duration(machine.request_ns).into(),
        packet_cpu: Duration(machine.packet_ns).into(),
        connections_max: i64::from(machine.connections_max).into(),
    };
    let named = spec.client_machines.iter().map(|machine| (machine.name.clone().into(), raw(machine).into()));
    let named: Vec<_> = named.collect();
    if named.is_empty() { Field::default() } else { Named(named).into() }
}

/// The name of a client's machine as its field says it.
pub(crate) fn raw_machine_of(machine: Option<usize>, spec: &Spec) -> Field<String> {
    machine.map_or_else(Field::default, |machine| spec.client_machines[machine].name.clone().into())
}

/// One as the engine takes it.
pub(crate) fn config(machine: &ClientMachineSpec) -> ClientMachineConfig {
    ClientMachineConfig {
        bits_per_s: Some(machine.bits_per_s),
        processors: machine.processors,
        request_ns: machine.request_ns,
        packet_ns: machine.packet_ns,
        connections_max: machine.connections_max,
    }
}
