//! Tests of what the weights of a scenario promise.

use vcpulab_scenario::Scenario;
use vcpulab_spec::entitlements;

fn of(host: &str, domains: &str) -> Vec<Option<f64>> {
    let text = format!("[host]\nscheduler = \"credit\"\nprofile = \"exact\"\n{host}\n{domains}");
    entitlements(&Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}")))
}

#[test]
fn weights_decide_up_to_what_a_domain_can_use() {
    assert_eq!(of("", "[domain.a]\nweight = 512"), [Some(1.0)]);
    assert_eq!(
        of("pcpus = 3", "[domain.a]\nvcpus = 4\nweight = 512\n[domain.b]\nvcpus = 4"),
        [Some(2.0), Some(1.0)]
    );
    // One vCPU uses no more than one pCPU; a cap holds too; the others share the rest.
    let three = "[domain.a]\nweight = 60000\n[domain.b]\nvcpus = 4\ncap = 50\n[domain.c]\nvcpus = 4";
    assert_eq!(of("pcpus = 4", three), [Some(1.0), Some(0.5), Some(2.5)]);
}

#[test]
fn each_pool_is_shared_by_the_domains_in_it() {
    let pool = "pcpus = 3\n[pool.rest]\npcpus = \"1-2\"\nscheduler = \"credit2\"";
    let domains = "[domain.a]\n[domain.b]\nweight = 768\n[domain.c]\npool = \"rest\"\nvcpus = 2";
    assert_eq!(of(pool, domains), [Some(0.25), Some(0.75), Some(2.0)]);
}

#[test]
fn nothing_is_said_where_weights_do_not_decide() {
    assert_eq!(of("pcpus = 2", "[domain.a]\naffinity = \"0\""), [None]);
    assert_eq!(of("", "[domain.a]\n[[action]]\nat = \"1s\"\nop = \"pause\"\ndomain = \"a\""), [None]);
}

fn of_kvm(rest: &str) -> Vec<Option<f64>> {
    let text = format!(
        "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\nprofile = \"exact\"\npcpus = 2\n{rest}"
    );
    entitlements(&Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}")))
}

#[test]
fn groups_share_level_by_level() {
    let vms = "[domain.a]\nvcpus = 2\n[domain.b]\nvcpus = 2\nweight = 300\n";
    assert_eq!(of_kvm(vms), [Some(0.5), Some(1.5)]);
    let daemon = format!("{vms}[domain.d]\ndaemon = true\n");
    assert_eq!(
        of_kvm(&daemon),
        [Some(0.25), Some(0.75), Some(1.0)],
        "a slice weighs as much as the other one"
    );
    let limited = format!("{daemon}[cgroup.\"machine.slice\"]\nquota_us = 40000\n");
    assert_eq!(of_kvm(&limited), [Some(0.1), Some(0.3), Some(1.0)]);
    let heavy = format!("{daemon}[cgroup.\"machine.slice/gold\"]\nweight = 700\n")
        .replace("[domain.a]", "[domain.a]\ncgroup = \"machine.slice/gold\"");
    assert_eq!(of_kvm(&heavy), [Some(0.7), Some(0.3), Some(1.0)]);
}

#[test]
fn limits_of_a_vm_and_of_its_vcpus_hold() {
    let limit = |limit: &str| of_kvm(&format!("[domain.a]\nvcpus = 2\n{limit}\n[domain.b]\nvcpus = 2\n"));
    assert_eq!(limit("vcpu_quota_us = 20000"), [Some(0.4), Some(1.6)]);
    assert_eq!(limit("global_quota_us = 5000\nglobal_period_us = 10000"), [Some(0.5), Some(1.5)]);
}

#[test]
fn what_serves_a_vm_is_a_part_of_it() {
    let vhost = "[domain.a]\nvcpus = 2\n[domain.vhost]\ndaemon = true\ncgroup = \"machine.slice/a/libvirt/emulator\"\n";
    assert_eq!(of_kvm(vhost), [Some(2.0), None]);
    let threads = of_kvm("[domain.a]\nvcpus = 2\ndisk = {}\n[disk.ssd]\nkind = \"ssd\"\n");
    assert_eq!(threads, [Some(2.0), None], "and so are the host's own threads");
}

#[test]
fn nothing_is_said_where_groups_do_not_decide_alone() {
    for special in ["affinity = \"0\"", "sched_policy = \"fifo\"", "idle = 1", "sched_policy = \"idle\""] {
        assert_eq!(of_kvm(&format!("[domain.a]\n[domain.b]\n{special}\n")), [None, None], "{special}");
    }
    for group in ["cpus = \"1\"", "idle = true"] {
        assert_eq!(of_kvm(&format!("[cgroup.\"machine.slice\"]\n{group}\n[domain.a]\n")), [None], "{group}");
    }
}
