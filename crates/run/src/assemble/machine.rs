//! The machine around the host: guests, devices and clients.

use vcpulab_guest::Random;
use vcpulab_host::Span;
use vcpulab_io::MachineConfig;
use vcpulab_spec::Spec;

use crate::assemble::clients::{client, client_machine};
use crate::assemble::disks::disks;
use crate::assemble::guests::guest;
use crate::assemble::host::first_vcpus;
use crate::assemble::network::nics;
use crate::assemble::profiler::profiler;
use crate::assemble::scripts::Channels;
use crate::assemble::services::Services;
use crate::replicate::seed::replication_seed;

/// The purpose of the random number that says when applications begin: others' are in `vcpulab-io` (up to `4 << 32`) and in
/// [`ticks`](crate::assemble::ticks) (`5 << 32`).
const START: u64 = 6 << 32;

/// The machine around the host in one replication.
pub fn machine_config(spec: &Spec, replication: u32) -> MachineConfig {
    let seed = replication_seed(spec.seed, replication);
    let constants = &spec.host.constants;
    let services = Services::of(spec);
    let channels = Channels::of(&spec.domains);
    let delay = Random::new(seed, 0, START).below(spec.start_spread.ns() as u64 + 1);
    let delay = Span::from_ns(delay as i64);
    let domains = spec.domains.ids().zip(first_vcpus(spec));
    let clients = spec.clients.iter();
    MachineConfig {
        seed,
        guests: domains.map(|domain| guest(domain, spec, &services, &channels, delay, replication)).collect(),
        nics: nics(spec),
        disks: disks(spec),
        services: services.positions(spec),
        channels: channels.len(),
        netbacks: spec.netbacks(),
        initial_segments: constants.tcp_initial_segments as u32,
        spread_percent: constants.cost_spread_percent,
        clients: clients.map(|one| client(one, services.number(one.service), spec)).collect(),
        client_machines: spec.client_machines.iter().map(client_machine).collect(),
        profiler: profiler(spec),
    }
}
