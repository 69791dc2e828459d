//! Tests of what the parameters of a scenario promise.

use vcpulab_scenario::Scenario;
use vcpulab_sched::policies;
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

/// The modes of 7.3: the number of times that the weight of a group counts.
#[test]
fn weights_of_groups_count_by_their_mode() {
    let of = |mode: &str, pcpus: u32, rest: &str| {
        let text = format!(
            "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\ngeneration = \"7.3\"\nprofile = \"exact\"\npcpus = {pcpus}\n\
             {mode}\n[domain.a]\nvcpus = 8\n[domain.b]\nvcpus = 2\n{rest}"
        );
        entitlements(&Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{problems}")))
    };
    let mode = |name: &str| format!("cgroup_mode = \"{name}\"");
    let both = |name: &str, rest: &str| of(&mode(name), 4, rest);
    assert_eq!(both("smp", ""), [Some(2.0); 2]);
    assert_eq!(both("max", ""), [Some(2.0); 2]);
    let by_cpus = [Some(4.0 * 4.0 / 6.0), Some(4.0 * 2.0 / 6.0)];
    assert_eq!(both("up", ""), by_cpus);
    assert_eq!(both("concur", ""), by_cpus);
    assert_eq!(of("", 4, ""), by_cpus, "concur is the default");
    assert_eq!(both("tasks", ""), [Some(4.0 * 8.0 / 10.0), Some(4.0 * 2.0 / 10.0)]);
    assert_eq!(of(&mode("tasks"), 1, ""), [Some(0.8), Some(0.2)]);
    assert_eq!(of(&mode("concur"), 1, ""), [Some(0.5); 2]);

    // Ten threads in machine.slice on four pCPUs, beside one in system.slice.
    let daemon = "[domain.d]\ndaemon = true\n";
    let of_daemon = |name: &str| both(name, daemon)[2];
    assert_eq!(of_daemon("smp"), Some(1.0));
    assert_eq!(of_daemon("concur"), Some(4.0 / 5.0));
    assert_eq!(of_daemon("tasks"), Some(4.0 / 11.0));
    assert_eq!(both("up", daemon), [None; 3], "the threads of a slice may all be on one pCPU");
    assert_eq!(of(&mode("up"), 1, daemon)[2], Some(0.5));

    // In `max` a group has at most the weight of nice -20, 8668 of 100 for nice 0.
    let heavy = both("max", "weight = 10000\n");
    assert_eq!(heavy, [Some(4.0 - 2.0), Some(2.0)]);
    let heavy = of(&mode("max"), 2, "weight = 10000\n");
    assert_eq!(heavy, [Some(2.0 * 200.0 / 8868.0), Some(2.0 * 8668.0 / 8868.0)]);

    let adjusted =
        |param: &str| both("smp", &format!("[[action]]\nat = \"1s\"\nop = \"adjust-global\"\n{param}\n"));
    assert_eq!(adjusted("cgroup_mode = \"concur\""), [None; 2], "the mode changes");
    assert_eq!(adjusted("migration_cost_us = 100"), [Some(2.0); 2]);
}

/// `a` has one vCPU, and `b` two.
fn on(policy: &str, generation: &str, host: &str, a: &str, b: &str) -> [Option<f64>; 2] {
    let text = format!(
        "[host]\nscheduler = \"{policy}\"\ngeneration = \"{generation}\"\nprofile = \"exact\"\n{host}\n[domain.a]\n{a}\n\
         [domain.b]\nvcpus = 2\n{b}\n"
    );
    let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
    entitlements(&scenario).try_into().unwrap()
}

#[test]
fn every_generation_promises_what_its_parameters_mean() {
    const THIRDS: [Option<f64>; 2] = [Some(1.0 / 3.0), Some(2.0 / 3.0)];
    for policy in policies() {
        for generation in policy.generations {
            let on = |host: &str, a: &str, b: &str| on(policy.name, generation.name, host, a, b);
            let alike = on("pcpus = 1", "", "");
            match (policy.name, generation.name) {
                ("credit", "xen3.0.3" | "xen3.3.0") => {
                    assert_eq!(alike, [Some(0.5); 2], "a weight counts once for a domain");
                    assert_eq!(on("pcpus = 1", "weight = 768", ""), [Some(0.75), Some(0.25)]);
                }
                ("credit" | "credit2" | "enhanced", name) => {
                    assert_eq!(alike, THIRDS, "{name}: a weight counts for each vCPU");
                    assert_eq!(on("pcpus = 1", "weight = 512", ""), [Some(0.5); 2]);
                    // The first releases of Credit2 have no caps.
                    if generation.params.iter().any(|param| param.name == "cap") {
                        assert_eq!(on("pcpus = 1", "cap = 10", ""), [Some(0.1), Some(0.9)]);
                    }
                }
                ("bvt", name) => {
                    assert_eq!(alike, THIRDS);
                    let half =
                        if name == "acrn3" { ["weight = 64", "weight = 32"] } else { ["", "mcu_adv = 20"] };
                    assert_eq!(on("pcpus = 1", half[0], half[1]), [Some(0.5); 2]);
                    assert_eq!(on("pcpus = 2", "", ""), [None; 2], "nothing balances pCPUs");
                }
                ("sedf", _) => {
                    let slice = |percent: u32| format!("period = 20000000\nslice = {}", percent * 200_000);
                    assert_eq!(alike, [None; 2]);
                    assert_eq!(on("pcpus = 1", "weight = 9", "extratime = 1\nweight = 3"), [None; 2]);
                    assert_eq!(on("pcpus = 1", &slice(30), ""), [Some(0.3), None]);
                    assert_eq!(on("pcpus = 2", &slice(30), &slice(35)), [Some(0.3), Some(0.7)]);
                    assert_eq!(on("pcpus = 4", &slice(30), &slice(40)), [None; 2], "all may be on one pCPU");
                    assert_eq!(on("pcpus = 1", "weight = 7", &slice(20)), [None, Some(0.4)]);
                }
                ("atropos", "xen2.0") => assert_eq!(alike, [None; 2], "its guarantees fade away"),
                ("atropos", _) => {
                    assert_eq!(alike, [Some(0.001), Some(0.002)]);
                    let slice = "nat_period = 20000000\nlatency = 20000000\nnat_slice = 5000000";
                    assert_eq!(on("pcpus = 1", slice, ""), [Some(0.25), Some(0.002)]);
                }
                ("rtds", _) => {
                    assert_eq!(alike, [None; 2], "4 ms in 10 for each of three is more than there is");
                    assert_eq!(on("pcpus = 2", "", ""), [Some(0.4), Some(0.8)]);
                    assert_eq!(on("pcpus = 2", "budget_us = 6000", ""), [Some(0.6), Some(0.8)]);
                    assert_eq!(
                        on("pcpus = 2", "budget_us = 9000", ""),
                        [None; 2],
                        "two of 4 ms may be first"
                    );
                    assert_eq!(on("pcpus = 2", "affinity = \"0\"", ""), [None; 2]);
                }
                ("arinc653", _) => {
                    assert_eq!(alike, [None; 2]);
                    let slot =
                        |domain: &str, ms: u32| format!("{{ domain = \"{domain}\", runtime = \"{ms}ms\" }}");
                    let entries = [slot("a", 2), slot("b", 5), slot("a", 1)].join(", ");
                    let host = format!("pcpus = 1\nmajor_frame_ns = 10000000\nentries = [{entries}]");
                    assert_eq!(on(&host, "", ""), [Some(0.3), Some(0.5)]);
                }
                ("linux-cfs" | "linux-eevdf", _) => {
                    assert_eq!(alike, [Some(0.5); 2], "each domain is a group");
                    let expected = if generation.name == "7.3" {
                        [Some(2.0 / 3.0), Some(4.0 / 3.0)]
                    } else {
                        [Some(1.0); 2]
                    };
                    assert_eq!(on("pcpus = 2", "", ""), expected, "{}", generation.name);
                    assert_eq!(on("pcpus = 1", "weight = 300", ""), [Some(0.75), Some(0.25)]);
                    assert_eq!(on("pcpus = 1", "vcpu_quota_us = 10000", ""), [Some(0.1), Some(0.9)]);
                    // The first releases have no idle groups.
                    if generation.params.iter().any(|param| param.name == "idle") {
                        assert_eq!(on("pcpus = 1", "idle = 1", ""), [None; 2]);
                    }
                }
                ("null" | "round-robin", _) => assert_eq!(alike, [None; 2], "no parameter of a domain"),
                (name, generation) => panic!("what does {name} of {generation} promise?"),
            }
        }
    }
}
