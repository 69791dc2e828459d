//! A web server behind a driver domain on one pCPU, under each policy: `cargo run --release -p vcpulab-io --example web`.

#![allow(clippy::print_stdout, reason = "an example speaks to its reader")]

use vcpulab_guest::AppConfig;
use vcpulab_host::{Costs, DomainConfig, Host, HostConfig, Params, Scheduler, VcpuConfig, VcpuId};
use vcpulab_io::{ClientConfig, DriverCosts, GuestConfig, Machine, MachineConfig, NetworkCosts, NicConfig};
use vcpulab_measure::{Meter, collect};
use vcpulab_sched::Runner;

fn machine() -> MachineConfig {
    let guest = |vcpu, apps, nic, driver| GuestConfig {
        first_vcpu: VcpuId(vcpu),
        vcpus: 1,
        working_set_bytes: 135_872,
        apps,
        nic,
        network: NetworkCosts { upcall_ns: 2_000, receive_ns: 18_000, send_ns: 18_000 },
        driver,
    };
    let driver = DriverCosts { upcall_ns: 9_000, receive_ns: 22_000, send_ns: 22_000 };
    let server = AppConfig::WebServer { request_ns: 445_000, spread_percent: 15, connections_max: 512 };
    MachineConfig {
        seed: 1,
        guests: vec![guest(1, vec![], None, Some(driver)), guest(2, vec![server], Some(0), None)],
        nic: NicConfig {
            bits_per_s: 1_000_000_000,
            interrupt_gap_ns: 250_000,
            latency_ns: 30_000,
            ring_slots: 256,
        },
        spread_percent: 15,
        clients: vec![ClientConfig {
            server: 1,
            rate_per_s: 1100.0,
            file_bytes: 10_000,
            connections_max: 64,
        }],
    }
}

struct Run;

impl Runner for Run {
    type Out = String;

    fn run<S: Scheduler>(self, scheduler: S) -> String {
        let costs = Costs {
            decision_ns: 500,
            context_switch_ns: 4_000,
            interrupt_ns: 1_000,
            cache_bytes: 262_144,
            cache_line_bytes: 32,
            cache_miss_ps: 100_000,
        };
        let domain = |number| DomainConfig {
            number, pool: 0,
            params: Params::new(),
            vcpus: vec![VcpuConfig { start: Some(0), affinity: None }],
        };
        let domains = vec![domain(0), domain(1)];
        let config = HostConfig { pcpus: 1, costs, domains, ..HostConfig::default() };
        let mut host = Host::new(&config, scheduler, Machine::new(&machine()), Meter::new(false)).unwrap();
        for end in [1_000_000_000, 11_000_000_000] {
            let (context, meter) = host.observe();
            meter.reset(context);
            host.world_mut().reset_statistics();
            host.run_until(end).unwrap();
        }
        let measured = collect(0, &["dom0".into(), "web".into()], host.context(), host.observer());
        let client = host.world().results().into_iter().find(|result| result.client).unwrap().stats.clone();
        let (dom0, web, pcpu) = (&measured.domains[0], &measured.domains[1], &measured.pcpus[0]);
        let percent = |ns: i64| ns as f64 * 100.0 / dom0.elapsed_ns as f64;
        format!(
            "{:6.0} req/s  p50 {:5.1} ms  dom0 {:4.1} %  web {:4.1} %  idle {:4.1} %  {:6.0} executions/s  {:5.1} I/O each",
            client.completed as f64 / 10.0,
            client.responses().map_or(0, |times| times.value_at_quantile(0.5)) as f64 / 1e6,
            percent(dom0.running_ns),
            percent(web.running_ns),
            percent(pcpu.idle_ns),
            dom0.executions as f64 / 10.0,
            host.world().io_count(0) as f64 / dom0.executions.max(1) as f64,
        )
    }
}

fn main() {
    for policy in vcpulab_sched::policies() {
        for generation in policy.generations {
            let figures = vcpulab_sched::with(policy.name, generation.name, &Params::new(), 1, Run).unwrap();
            println!("{:12} {:16} {figures}", policy.name, generation.name);
        }
    }
}
