//! Clients, and the machines that they run on.

use vcpulab_guest::ServiceId;
use vcpulab_io::{Ask, ClientConfig, ClientMachineConfig};
use vcpulab_spec::{AskSpec, ClientMachineSpec, ClientSpec, Spec};

/// A client, which asks this service.
pub(crate) fn client(client: &ClientSpec, service: ServiceId, spec: &Spec) -> ClientConfig {
    let classes = spec.domains[client.service.domain].apps[client.service.app].classes();
    let ask = |ask: &AskSpec| Ask {
        class: ask.class,
        request_bytes: classes[ask.class as usize].request_bytes,
        reply_bytes: ask.reply_bytes,
        weight: ask.weight,
    };
    ClientConfig {
        machine: client.machine,
        service,
        load: client.load,
        mix: client.mix.iter().map(ask).collect(),
        connections_max: client.connections_max,
        keep_alive: client.keep_alive,
        timeout_ns: client.timeout,
        retries: client.retries,
    }
}

/// A client machine.
pub(crate) fn client_machine(machine: &ClientMachineSpec) -> ClientMachineConfig {
    ClientMachineConfig {
        bits_per_s: Some(machine.bits_per_s),
        processors: machine.processors,
        request_ns: machine.request_cpu,
        packet_ns: machine.packet_cpu,
        connections_max: machine.connections_max,
    }
}
