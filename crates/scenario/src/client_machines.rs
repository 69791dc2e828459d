//! The machines outside that clients run on.
//!
//! The defaults are those of a desktop PC as Devine (2010, table 3.2) let one make all the load: two cores at 2 GHz, under
//! Windows XP, which gives out ports 1025 to 5000 (Microsoft, `MaxUserPort`). What a request takes there of a processor is
//! published nowhere, so that the default is none.

use vcpulab_io::ClientMachineConfig;

use crate::check::Checker;
use crate::limits::{CLIENTS_MAX, CONNECTIONS_MAX, PCPUS_MAX, SPAN_NS_MAX};
use crate::problem::Place;
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
            let machine = self.client_machine(value, usual_rate);
            spec.client_machines
                .extend(machine.map(|machine| ClientMachineSpec { name: name.value.clone(), ..machine }));
        }
    }

    fn client_machine(&mut self, raw: &RawClientMachine, usual_rate: i64) -> Option<ClientMachineSpec> {
        let bits_per_s = self.int(&raw.bits_per_s, usual_rate, LINK_RATES);
        let processors = self.int(&raw.processors, PROCESSORS, 1..=PCPUS_MAX.into());
        let request_ns = self.span(&raw.request_cpu, Some(0), 0..=SPAN_NS_MAX);
        let packet_ns = self.span(&raw.packet_cpu, Some(0), 0..=SPAN_NS_MAX);
        let connections_max = self.int(&raw.connections_max, CONNECTIONS, 1..=CONNECTIONS_MAX.into());
        Some(ClientMachineSpec {
            name: String::new(),
            bits_per_s: bits_per_s?,
            processors: processors? as u32,
            request_ns: request_ns?,
            packet_ns: packet_ns?,
            connections_max: connections_max? as u32,
        })
    }

    /// The machine that a client runs on, if it says one; `None` if that is wrong.
    pub(crate) fn machine_of(&mut self, field: &Field<String>, spec: &Spec) -> Option<Option<usize>> {
        if field.is_none() {
            return Some(None);
        }
        let found = self.choice(field, &spec.client_machines, |machine| &machine.name)?;
        Some(spec.client_machines.iter().position(|machine| machine.name == found.name))
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
