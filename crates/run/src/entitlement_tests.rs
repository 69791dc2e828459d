//! Tests of entitlements: busy domains of Linux hosts get the CPU time that they are entitled to.

use proptest::prelude::*;
use vcpulab_scenario::Scenario;
use vcpulab_spec::entitlements;

use crate::{RunOptions, run};

/// Settings of a host: generations, with the modes of control groups.
const KERNELS: [&str; 6] = [
    "generation = \"6.12\"",
    "generation = \"7.3\"\ncgroup_mode = \"up\"",
    "generation = \"7.3\"\ncgroup_mode = \"smp\"",
    "generation = \"7.3\"\ncgroup_mode = \"concur\"",
    "generation = \"7.3\"\ncgroup_mode = \"max\"",
    "generation = \"7.3\"\ncgroup_mode = \"tasks\"",
];

/// Greatest difference between the CPU time that a domain gets and its entitlement, as a fraction of the host. `concur` rounds the
/// average number of busy threads down, and so may count one thread less: 7 % of four pCPUs for a VM of four beside four of one vCPU.
const TOLERANCE: f64 = 0.08;

/// A domain whose vCPUs all compute.
fn busy(name: &str, vcpus: u32, settings: &str) -> String {
    format!(
        "[domain.{name}]\nvcpus = {vcpus}\n{settings}\napp = [{{ kind = \"hog\", instance = {vcpus} }}]\n"
    )
}

/// CPU time that each domain gets in ten seconds, and that it is entitled to, in pCPUs.
fn gotten_and_entitled(host: &str, domains: &str) -> (Vec<f64>, Vec<f64>) {
    let text = format!(
        "run = {{ duration = \"10s\", warmup = \"2s\" }}\n[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\n\
         profile = \"exact\"\n{host}\n{domains}"
    );
    let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
    let entitled = entitlements(&scenario).into_iter().map(Option::unwrap).collect();
    let results = run(&scenario, &RunOptions { jobs: 1, ..RunOptions::default() }, &|_| true).unwrap();
    let gotten = results.domains.iter().map(|row| row.running_ns as f64 / row.elapsed_ns as f64).collect();
    (gotten, entitled)
}

fn small_vms(count: u32) -> String {
    (0..count).map(|vm| busy(&format!("small{vm}"), 1, "")).collect()
}

/// Checks that no domain's CPU time differs much from its entitlement.
fn check(host: &str, domains: &str) {
    let (gotten, entitled) = gotten_and_entitled(host, domains);
    let all: f64 = gotten.iter().sum();
    for (got, due) in gotten.iter().zip(&entitled) {
        assert!((got - due).abs() <= TOLERANCE * all, "{host}: {gotten:.2?}, entitled to {entitled:.2?}");
    }
}

prop_compose! {
    /// A host with a large VM, perhaps limited, and VMs of one vCPU. Balancing moves whole threads: it can spread them evenly, as the
    /// large VM and the small ones have one or two vCPUs for each pCPU.
    fn hosts()(pcpus in 4_u32..=8)(
        pcpus in Just(pcpus),
        kernel in prop::sample::select(&KERNELS[..]),
        large in (1_u32..=2).prop_map(move |each| each * pcpus),
        small in (1_u32..=2).prop_map(move |each| each * pcpus),
        weight in prop::sample::select(vec![50, 100, 200]),
        half_pcpus in prop::option::of(1..=pcpus),
    ) -> (String, String) {
        let quota = half_pcpus.map_or(String::new(), |half| format!("global_quota_us = {}", half * 50_000));
        let large = busy("large", large, &format!("weight = {weight}\n{quota}"));
        (format!("pcpus = {pcpus}\n{kernel}"), large + &small_vms(small))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn busy_vms_get_their_entitlements((host, domains) in hosts()) {
        check(&host, &domains);
    }
}

/// Modes count the busy threads of slices as they count those of VMs. (Entitlements with `up` are unknown beside other slices.)
#[test]
fn busy_slices_get_their_entitlements() {
    let domains = busy("large", 8, "") + &small_vms(8) + &busy("daemon", 4, "daemon = true");
    for kernel in KERNELS.iter().filter(|kernel| !kernel.contains("\"up\"")) {
        check(&format!("pcpus = 8\n{kernel}"), &domains);
    }
}

/// A weight so large that the limit of `max` decides.
#[test]
fn busy_heavy_vms_get_their_entitlements() {
    let domains = busy("one", 1, "weight = 10000")
        + &busy("three", 3, "weight = 10000")
        + &busy("four", 4, "weight = 1000");
    KERNELS.iter().for_each(|kernel| check(&format!("pcpus = 4\n{kernel}"), &domains));
}
