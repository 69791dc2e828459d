//! Clients, and the machines that they run on.

use vcpulab_io::{ClientMachineId, Load};
use vcpulab_spec::{AskSpec, ClientMachineSpec, ClientSpec, Spec};

use crate::file::raw::{RawAsk, RawClient, RawClientMachine, RawClosedLoop, RawOpenLoop, RawStream};
use crate::text::read::{Field, Named, WordOrList};
use crate::text::units::Size;

/// A checked client as a file would state it.
pub(crate) fn raw_client(client: &ClientSpec, spec: &Spec) -> RawClient {
    let domain = &spec.domains[client.service.domain];
    let app = &domain.apps[client.service.app];
    let server = || Field::from(domain.name.clone());
    let kind = || Field::from(app.kind().to_owned());
    let classes = app.classes();
    let machine = || raw_machine_of(client.machine, spec);
    let timeout = || Field::from(client.timeout);
    let ask = |ask: &AskSpec| RawAsk {
        class: classes[ask.class as usize].name.to_owned().into(),
        file_size: Size(ask.reply_bytes.into()).into(),
        weight: ask.weight.into(),
    };
    let mix = || Field::from(WordOrList::List(client.mix.iter().map(|one| ask(one).into()).collect()));
    match client.load {
        Load::Open { rate_per_s, regular } => RawClient::OpenLoop(RawOpenLoop {
            server: server(),
            app: kind(),
            machine: machine(),
            rate: rate_per_s.into(),
            regular: regular.into(),
            file_size: Field::default(),
            mix: mix(),
            connections_max: client.connections_max.into(),
            timeout: timeout(),
        }),
        Load::Closed { users, think_ns, ramp_up_ns } => RawClient::ClosedLoop(RawClosedLoop {
            server: server(),
            app: kind(),
            machine: machine(),
            users: users.into(),
            think: think_ns.into(),
            ramp_up: ramp_up_ns.into(),
            file_size: Field::default(),
            mix: mix(),
            keep_alive: client.keep_alive.into(),
            timeout: timeout(),
            retries: client.retries.into(),
        }),
        Load::Stream { streams, packet_bytes, gap_ns } => RawClient::Stream(RawStream {
            server: server(),
            app: kind(),
            machine: machine(),
            streams: streams.into(),
            packet: Size(packet_bytes.into()).into(),
            gap: gap_ns.into(),
        }),
    }
}

/// The client machines of a checked scenario as a file would state them.
pub(crate) fn raw_client_machines(spec: &Spec) -> Field<Named<RawClientMachine>> {
    let raw = |machine: &ClientMachineSpec| RawClientMachine {
        bits_per_s: machine.bits_per_s.into(),
        processors: machine.processors.into(),
        request_cpu: machine.request_cpu.into(),
        packet_cpu: machine.packet_cpu.into(),
        connections_max: machine.connections_max.into(),
    };
    let named = spec.client_machines.iter().map(|machine| (machine.name.clone().into(), raw(machine).into()));
    let named: Vec<_> = named.collect();
    (!named.is_empty()).then_some(Named(named)).into()
}

/// The name of a client's machine as its field says it.
fn raw_machine_of(machine: Option<ClientMachineId>, spec: &Spec) -> Field<String> {
    machine.map(|machine| spec.client_machines[machine].name.clone()).into()
}
