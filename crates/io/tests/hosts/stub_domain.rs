//! A stub domain between a guest and the driver domain: its work is the same wherever it stands among the domains.

use vcpulab_guest::{AppConfig, AppId, Script, ServiceConfig, ServiceId, Step};
use vcpulab_host::{
    Costs, CpuMask, DomainConfig, Host, HostConfig, PcpuId, Pools, Span, Time, VcpuConfig, VcpuId,
};
use vcpulab_io::{
    Ask, ClientConfig, DriverCosts, GuestConfig, GuestId, Layers, Load, Machine, MachineConfig, Netbacks,
    NetfrontConfig, NetworkCosts, NicConfig, NicId, NicOwner, Uplink,
};

const SECOND: Span = Span::from_secs(1);
const EMULATION: Span = Span::from_us(7);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Dom0,
    /// It computes, and has no NIC.
    Hog,
    /// It serves requests, behind the stub domain.
    Guest,
    Stub,
}

/// Domains in this order, each on a pCPU of its own.
struct Domains(&'static [Role]);

impl Domains {
    fn id(&self, role: Role) -> GuestId {
        GuestId(self.0.iter().position(|&other| other == role).expect("the domain is there") as u32)
    }

    fn guest(&self, index: usize) -> GuestConfig {
        let role = self.0[index];
        let steps = vec![
            Step::Await,
            Step::Compute { span: Span::from_ns(100_000), per_byte_ps: 0 },
            Step::Reply(None),
            Step::Done,
        ];
        let server = AppConfig { service: Some(ServiceConfig::of(64)), ..AppConfig::new(Script::new(steps)) };
        let hog = AppConfig::new(Script::new(vec![Step::Compute {
            span: Span::from_ns(10_000_000),
            per_byte_ps: 0,
        }]));
        let netfront = |uplink, emulation_ns| NetfrontConfig {
            uplink,
            nic: NicId(0),
            vcpu: 0,
            ring_slots: 256,
            segments_max: 1,
            emulation_ns,
        };
        let through = |role| Uplink::DriverDomain { guest: self.id(role), vcpu: 0 };
        let driver = DriverCosts {
            upcall_ns: Span::from_ns(1_000),
            bridge_ns: Span::from_ns(2_000),
            backend_receive_ns: Span::from_ns(3_000),
            backend_send_ns: Span::from_ns(4_000),
            ..DriverCosts::default()
        };
        GuestConfig {
            first_vcpu: VcpuId((self.0.len() + index) as u32),
            kernel: crate::kernel(match role {
                Role::Hog => vec![hog],
                Role::Guest => vec![server],
                Role::Dom0 | Role::Stub => vec![],
            }),
            working_set_bytes: 0,
            netfront: match role {
                Role::Dom0 => Some(netfront(Uplink::OwnNic, Span::ZERO)),
                Role::Hog => None,
                Role::Guest => Some(netfront(through(Role::Stub), EMULATION)),
                Role::Stub => Some(netfront(through(Role::Dom0), Span::ZERO)),
            },
            network: NetworkCosts {
                receive_ns: Span::from_ns(5_000),
                send_ns: Span::from_ns(6_000),
                ..NetworkCosts::default()
            },
            virtual_disk: None,
            files: None,
            halt_poll: None,
            driver: matches!(role, Role::Dom0 | Role::Stub).then_some(driver),
        }
    }

    fn machine(&self) -> Machine {
        Machine::new(&MachineConfig {
            seed: 1,
            guests: (0..self.0.len()).map(|index| self.guest(index)).collect(),
            nics: vec![NicConfig {
                owner: NicOwner::Guest { guest: self.id(Role::Dom0), vcpu: 0 },
                bits_per_s: 1_000_000_000,
                interrupt_gap_ns: Span::ZERO,
                latency_ns: Span::from_ns(20_000),
                ring_slots: 256,
            }]
            .into(),
            disks: vec![].into(),
            channels: 0,
            services: vec![(self.id(Role::Guest), AppId(0))].into(),
            netbacks: Netbacks::Tasklets,
            initial_segments: 4,
            spread_percent: 0,
            profiler: None,
            clients: vec![ClientConfig {
                machine: None,
                service: ServiceId(0),
                load: Load::Open { rate_per_s: 500.0, regular: true },
                mix: vec![Ask { class: 0, request_bytes: 300, reply_bytes: 10_000, weight: 1 }],
                connections_max: 64,
                keep_alive: false,
                timeout_ns: None,
                retries: 0,
            }]
            .into(),
            client_machines: vec![].into(),
        })
    }

    /// CPU time of the stub domain by layer, and packets that the guest received.
    fn run(self, scheduler: Pools) -> (Layers, u64) {
        let domain = |index: usize| DomainConfig {
            number: index as i64,
            vcpus: vec![VcpuConfig {
                start: Some(Span::ZERO),
                affinity: Some(CpuMask::only(PcpuId(index as u32))),
                ..VcpuConfig::default()
            }],
            ..DomainConfig::default()
        };
        let config = HostConfig {
            pcpus: self.0.len() as u32,
            costs: Costs::ZERO,
            domains: (0..self.0.len()).map(domain).collect(),
            ..HostConfig::default()
        };
        let mut host = Host::new(&config, scheduler, self.machine(), ()).unwrap();
        host.run_until(Time::ZERO + SECOND).unwrap();
        let machine = host.world();
        let received = machine.netfront_counts(self.id(Role::Guest)).unwrap().received;
        (machine.layers(host.context(), self.id(Role::Stub)), received)
    }
}

fn run(order: &'static [Role]) -> (Layers, u64) {
    let pcpus = order.len() as u32;
    Domains(order).run(crate::alone("round-robin", "v1", pcpus))
}

/// The place of an interface among interfaces was once taken for its domain's place among domains: behind a domain
/// without a NIC, a stub domain received packets for its guest at no cost for the bridge, the ring and the emulation.
#[test]
fn a_domain_without_a_nic_changes_nothing_in_a_stub_domain() {
    use Role::{Dom0, Guest, Hog, Stub};
    let (last, received) = run(&[Dom0, Guest, Stub, Hog]);
    assert!(received > 3_000, "{received}");
    assert_eq!(run(&[Dom0, Hog, Guest, Stub]), (last, received));
    assert_eq!(run(&[Dom0, Guest, Hog, Stub]), (last, received));
}
