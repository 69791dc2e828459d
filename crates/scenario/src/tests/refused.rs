//! Values that a scheduler would refuse, and what is given for nothing.

use super::problems;
use crate::Scenario;

/// A scenario with one domain.
fn text(host: &str, domain: &str) -> String {
    format!("[host]\n{host}\n[domain.a]\n{domain}\napp = [{{ kind = \"hog\" }}]\n")
}

/// The problem of a scenario with one domain, which names these.
fn refused(host: &str, domain: &str, named: &[&str]) {
    let problems = problems(&text(host, domain));
    assert!(named.iter().all(|word| problems.contains(word)), "{named:?}: {problems}");
    assert_eq!(problems.lines().filter(|line| !line.starts_with("  hint")).count(), 1, "{problems}");
}

fn accepted(host: &str, domain: &str) -> Scenario {
    Scenario::parse(&text(host, domain), "f.toml").unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn kernels_before_5_14_have_no_idle_groups_and_no_bursts() {
    let kvm = |release: &str| {
        format!("hypervisor = \"kvm\"\nscheduler = \"linux-cfs\"\ngeneration = \"{release}\"")
    };
    let group = |release: &str, fields: &str| {
        format!("{}\n[cgroup.\"machine.slice\"]\nquota_us = 50000\n{fields}", kvm(release))
    };
    refused(
        &group("5.10.223", "burst_us = 10"),
        "",
        &["burst_us", "0: Linux 5.10.223 has no `cpu.max.burst`"],
    );
    refused(&group("5.10", "idle = true"), "", &["idle", "`false`: Linux 5.10 has no `cpu.idle`"]);
    refused(&kvm("5.10"), "idle = 1", &["domain.a.idle"]);
    refused(&kvm("5.13"), "global_quota_us = 50000\nglobal_burst_us = 10", &["domain.a.global_burst_us"]);
    accepted(&group("5.10", "idle = false\nburst_us = 0"), "");
    for release in ["5.15", "6.1"] {
        accepted(&group(release, "idle = true\nburst_us = 10"), "idle = 1");
    }
}

#[test]
fn a_misspelled_hypervisor_is_the_only_problem_of_a_kvm_host() {
    let host =
        "hypervisor = \"kvmm\"\nscheduler = \"linux-eevdf\"\ntoolstack = \"proxmox\"\nhalt_poll_us = 50";
    let domain = "nic = { emulated = true }\niothreads = 1\nsched_policy = \"batch\"\nvcpu_quota_us = 50000";
    refused(
        host,
        domain,
        &["host.hypervisor: found `\"kvmm\"`; allowed: one of xen, kvm", "did you mean `kvm`?"],
    );
    accepted(&host.replace("kvmm", "kvm"), domain);
}

#[test]
fn what_a_scheduler_refuses_at_boot_is_refused_with_the_values_and_what_is_allowed() {
    let kvm = "hypervisor = \"kvm\"\nscheduler = \"linux-cfs\"";
    let quota = "global_quota_us = 50000\nglobal_burst_us";
    refused(
        kvm,
        &format!("{quota} = 50001"),
        &["f.toml:6:", "global_burst_us = 50001", "global_quota_us = 50000"],
    );
    refused(
        kvm,
        "global_burst_us = 10",
        &["global_burst_us = 10", "global_quota_us = -1` (not given)", "a quota"],
    );
    accepted(kvm, &format!("{quota} = 50000"));
    let rtds = "scheduler = \"rtds\"";
    refused(
        rtds,
        "period_us = 2000",
        &["domain.a.period_us", "budget_us = 4000` (not given)", "at most the period"],
    );
    refused(rtds, "budget_us = 10001", &["domain.a.budget_us", "period_us = 10000` (not given)"]);
    accepted(rtds, "period_us = 2000\nbudget_us = 2000");
    for generation in ["xen3.0.2", "xen3.0.3", "xen3.3.0", "xen4.4.1"] {
        let sedf = format!("scheduler = \"sedf\"\ngeneration = \"{generation}\"");
        refused(&sedf, "slice = 1000000", &["slice = 1000000", "period = 0` (not given)"]);
        refused(&sedf, "period = 1000000", &["slice = 0` (not given)"]);
        refused(&sedf, "period = 1000000\nslice = 1000001", &["a slice of at most the period"]);
        refused(&sedf, "extratime = 0", &["domain.a.extratime"]);
        refused(
            &sedf,
            "weight = 5\nslice = 1000000\nperiod = 2000000",
            &["either a period and a slice, or a weight"],
        );
        accepted(&sedf, "period = 1000000\nslice = 1000000");
        accepted(&sedf, "weight = 5\nextratime = 1");
        accepted(&sedf, "extratime = 1");
    }
    for generation in ["xen2.0", "xen2.0-intended"] {
        let atropos = format!("scheduler = \"atropos\"\ngeneration = \"{generation}\"");
        refused(&atropos, "nat_period = 5000000000", &["latency = 10000000000` (not given)"]);
        refused(&atropos, "nat_slice = 10000000001", &["nat_period = 10000000000` (not given)"]);
        accepted(&atropos, "nat_period = 5000000000\nlatency = 5000000000");
    }
    refused(
        "scheduler = \"credit\"\nratelimit_us = 6000\ntslice_ms = 5",
        "",
        &["host.ratelimit_us", "tslice_ms = 5"],
    );
    refused("scheduler = \"credit\"", "weight = 0", &["domain.a.weight", "1 to 65535"]);
    refused("scheduler = \"credit2\"", "weight = 0", &["domain.a.weight", "1 to 65535"]);
    let cores = "scheduler = \"credit2\"\ntopology = { cores = 2, threads = 2 }\nsched_gran = \"core\"";
    refused(cores, "vcpus = 4\ncap = 201", &["cap = 201", "at most 200"]);
    accepted(cores, "vcpus = 4\ncap = 200");
    let arinc = "scheduler = \"arinc653\"\n";
    refused(&format!("{arinc}major_frame_ns = 5"), "", &["major_frame_ns = 5", "both"]);
    let entries = "entries = [{ domain = \"a\", vcpu = 0, runtime = \"2ms\" }]";
    refused(&format!("{arinc}{entries}"), "", &["both", "major_frame_ns = 0` (not given)"]);
    refused(&format!("{arinc}{entries}\nmajor_frame_ns = 1999999"), "", &["2000000 ns"]);
    accepted(&format!("{arinc}{entries}\nmajor_frame_ns = 2000000"), "");
}

#[test]
fn an_action_that_the_scheduler_will_refuse_is_doubtful() {
    let action = "[[action]]\nop = \"adjust\"\nat = \"1s\"\ndomain = \"a\"\n";
    let text = text("scheduler = \"rtds\"", "extratime = 0") + action;
    let warnings = |params: &str| {
        let scenario = Scenario::parse(&(text.clone() + params), "f.toml").unwrap();
        scenario.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let warned = warnings("budget_us = 20000\n");
    assert!(warned.contains("budget_us = 20000") && warned.contains("period_us = 10000"), "{warned}");
    assert_eq!(warnings("period_us = 20000\n"), "");
    let longer = format!("period_us = 20000\n{}budget_us = 20000\n", action.replace("1s", "2s"));
    assert_eq!(warnings(&longer), "", "the period of the first action is in force");
}

#[test]
fn a_scheduler_that_acts_without_end_is_refused_and_one_that_acts_often_doubtful() {
    for generation in ["xen2.0", "xen3.0"] {
        let bvt = |ctx_allow: u32| {
            format!("scheduler = \"bvt\"\ngeneration = \"{generation}\"\nctx_allow = {ctx_allow}")
        };
        refused(&bvt(0), "", &["host.ctx_allow", "at one instant"]);
        // Ten times this is 4 in 32 bits.
        for often in [1, 99_999, 429_496_730] {
            let warnings = accepted(&bvt(often), "").warnings().to_vec();
            assert!(warnings[0].message.contains("very many events"), "{warnings:?}");
        }
        assert!(accepted(&bvt(100_000), "").warnings().is_empty());
    }
}

#[test]
fn limits_of_what_a_daemon_does_not_have_are_refused() {
    let kvm = "hypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"";
    for limit in ["vcpu", "emulator", "iothread"] {
        for param in [format!("{limit}_quota_us = 10000"), format!("{limit}_period_us = 50000")] {
            refused(kvm, &format!("daemon = true\n{param}"), &["nothing of a daemon", "global_quota_us"]);
            accepted(kvm, &param);
        }
    }
    accepted(kvm, "daemon = true\nglobal_quota_us = 10000");
}

#[test]
fn what_sends_to_the_outside_needs_a_network_interface() {
    let domain = |app: &str| {
        let nic = "[domain.dom0]\ndriver_domain = true\n";
        [
            format!("[host]\nscheduler = \"credit\"\n{nic}[domain.a]\napp = [{app}]\n"),
            format!("[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-cfs\"\n[domain.a]\napp = [{app}]\n"),
        ]
    };
    for app in ["kind = \"netperf\"", "kind = \"iperf\"", "kind = \"tcp-sender\""] {
        for text in domain(&format!("{{ {app} }}")) {
            let problems = problems(&text);
            assert!(problems.contains("needs a network interface in its domain"), "{problems}");
            assert!(problems.contains("hint: add `nic = {"), "{problems}");
        }
    }
    for text in domain("{ kind = \"iperf\", direction = \"receive\" }, { kind = \"netperf\", to = \"a\" }") {
        Scenario::parse(&text, "f.toml").unwrap_or_else(|problems| panic!("{problems}"));
    }
}
