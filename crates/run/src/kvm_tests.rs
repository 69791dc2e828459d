//! Tests of KVM hosts: the threads that do the work of a VM's packets and requests, and its costs.

use proptest::prelude::*;
use vcpulab_host::{CpuMask, PcpuId};
use vcpulab_measure::{IoRow, Results, VcpuRow};
use vcpulab_scenario::Scenario;

use crate::{RunOptions, run};

fn run_of(text: &str) -> Results {
    let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
    run(&scenario, &RunOptions::default(), &|_| true).unwrap()
}

/// A KVM host under EEVDF for 200 ms; `host` is what it says besides.
fn kvm(host: &str, rest: &str) -> Results {
    run_of(&format!(
        "[run]\nduration = \"200ms\"\nwarmup = \"50ms\"\n[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\n\
         profile = \"generic\"\n{host}\n{rest}"
    ))
}

const SERVER: &str = "app = [{ kind = \"web-server\", request_cpu = \"100us\" }]\n";
const USERS: &str =
    "[client.c]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 2000\nregular = true\nfile_size = \"1KB\"\n";
const READER: &str = "app = [{ kind = \"iozone\", operation = \"read\", direct = true, record_size = \"4KiB\" }]\n[disk.ssd]\nkind = \"ssd\"\n";

fn thread(results: &Results, name: &str) -> i64 {
    let found = results.threads.iter().find(|row| row.thread == name);
    found.unwrap_or_else(|| panic!("{name}: {:?}", results.threads)).running_ns
}

fn io<'r>(results: &'r Results, domain: &str) -> &'r IoRow {
    results.io.iter().find(|row| row.domain == domain).unwrap()
}

fn vcpu<'r>(results: &'r Results, domain: &str, vcpu: u32) -> &'r VcpuRow {
    results.vcpus.iter().find(|row| row.domain == domain && row.vcpu == vcpu).unwrap()
}

fn overheads(results: &Results) -> Vec<i64> {
    results.pcpus.iter().map(|row| row.overhead_ns).collect()
}

#[test]
fn packets_go_through_the_vms_vhost_thread() {
    let results = kvm("pcpus = 4", &format!("[domain.web]\nnic = {{}}\n{SERVER}{USERS}"));
    let names: Vec<_> = results.threads.iter().map(|row| (row.thread.as_str(), row.vcpu)).collect();
    assert_eq!(names, [("vhost-web", 0)]);
    assert_eq!(thread(&results, "vhost-web"), vcpu(&results, "host", 0).running_ns);
    let answered = results.apps.iter().find(|row| row.kind == "open-loop").unwrap().completed;
    assert!((399..=401).contains(&answered), "{answered}");
    let (web, host) = (io(&results, "web"), io(&results, "host"));
    assert!(web.packets_received.unwrap() > 1_000 && web.page_grants.is_some());
    assert_eq!(host.nic_received, web.packets_received, "the NIC is the host's");
    // Each packet costs the thread 0.7 µs or more, one way or the other.
    let packets = (web.packets_received.unwrap() + web.packets_sent.unwrap()) as i64;
    assert!(thread(&results, "vhost-web") > packets * 700, "{packets}: {:?}", results.threads);
    let kernel =
        results.profile.iter().find(|row| row.domain.as_deref() == Some("host") && row.layer == "kernel");
    assert!(kernel.unwrap().exact_ns > packets * 700, "its work is the kernel's");
}

#[test]
fn a_nics_interrupts_are_charged_to_the_pcpu_that_takes_them() {
    let vms =
        format!("[domain.web]\naffinity = \"0\"\nemulator_affinity = \"0\"\nnic = {{}}\n{SERVER}{USERS}");
    let fixed = overheads(&kvm("pcpus = 4", &format!("[nic.eth0]\npcpu = 3\n{vms}")));
    assert!(fixed[3] > 1_000_000 && fixed[1] == 0 && fixed[2] == 0, "{fixed:?}");
    // Of two VMs each has a queue, and a pCPU.
    let two = format!(
        "{vms}[domain.b]\naffinity = \"0\"\nemulator_affinity = \"0\"\nnic = {{}}\n{SERVER}{}",
        USERS.replace("web", "b").replace(".c]", ".d]")
    );
    let spread = overheads(&kvm("pcpus = 4", &two));
    assert!(spread[1] > 1_000_000 && spread[2] == 0 && spread[3] == 0, "{spread:?}");
}

#[test]
fn what_vms_say_to_each_other_goes_through_both_threads_and_no_nic() {
    let vms = "[domain.a]\nnic = {}\napp = [{ kind = \"tcp-sender\", delay = \"20us\", to = \"b\" }]\n[domain.b]\nnic = {}\napp = [{ kind = \"tcp-receiver\" }]\n";
    let results = kvm("pcpus = 4", vms);
    assert!(io(&results, "b").packets_received.unwrap() > 1_000);
    assert_eq!((io(&results, "host").nic_received, io(&results, "host").nic_sent), (Some(0), Some(0)));
    let [from, to] = ["vhost-a", "vhost-b"].map(|name| thread(&results, name));
    assert!(from > 1_000_000 && to > 1_000_000, "{from} {to}");
}

#[test]
fn a_disk_is_the_work_of_the_emulator_or_of_an_io_thread() {
    let read = |disk: &str| {
        let results = kvm("pcpus = 2", &format!("[domain.db]\ndisk = {{}}\n{disk}\n{READER}"));
        let names: Vec<String> = results.threads.iter().map(|row| row.thread.clone()).collect();
        assert_eq!(names.len(), 1);
        let requests = io(&results, "db").disk_requests.unwrap() as i64;
        assert!(requests > 1_000, "{requests}");
        let interrupts = io(&results, "host").device_interrupts.unwrap();
        assert!(interrupts > 1_000, "{interrupts}");
        // 6 µs to submit, 3 µs to complete, two notifications, and two switches to it with what is cold then.
        let each = thread(&results, &names[0]) / requests;
        assert!((12_000..22_000).contains(&each), "{each}");
        names[0].clone()
    };
    assert_eq!(read(""), "emulator-db");
    assert_eq!(read("iothreads = 1"), "iothread-db");
}

#[test]
fn a_disks_interrupts_are_taken_where_its_thread_runs_unless_it_is_said_otherwise() {
    let vm = "[domain.db]\ndisk = {}\naffinity = \"1\"\nemulator_affinity = \"0\"\n";
    let near = overheads(&kvm("pcpus = 4", &format!("{vm}{READER}")));
    assert!(near[0] > near[1] && near[2] == 0 && near[3] == 0, "{near:?}");
    let far = overheads(&kvm("pcpus = 4", &format!("{vm}{READER}pcpu = 3\n")));
    assert!(far[3] > 1_000_000 && far[2] == 0, "{far:?}");
}

#[test]
fn an_emulated_interface_is_the_emulators() {
    let vm = |nic: &str| kvm("pcpus = 4", &format!("[domain.web]\nnic = {{ {nic} }}\n{SERVER}{USERS}"));
    let (vhost, emulated) = (vm(""), vm("emulated = true"));
    let [fast, slow] = [thread(&vhost, "vhost-web"), thread(&emulated, "emulator-web")];
    assert!(slow > 2 * fast, "{fast} {slow}");
}

#[test]
fn service_threads_keep_to_their_pcpus() {
    let pinned = "[domain.web]\nvcpus = 2\naffinity = \"2-3\"\nemulator_affinity = \"1\"\nnic = {}\n";
    let results = kvm("pcpus = 4", &format!("{pinned}{SERVER}{USERS}"));
    let busy: Vec<i64> = results.pcpus.iter().map(|row| row.run_ns).collect();
    let thread = thread(&results, "vhost-web");
    assert!(busy[0] == 0 && busy[1] <= thread && busy[1] > thread / 2, "{busy:?} {thread}");
}

/// A VM that is asked something often, and those beside it: how long it was running, and its switches.
fn polled(halt_poll_us: u32, beside: &str) -> (i64, u64) {
    let host = format!("pcpus = 2\nhalt_poll_us = {halt_poll_us}");
    let vm =
        "[domain.a]\naffinity = \"0\"\napp = [{ kind = \"periodic\", run = \"20us\", period = \"100us\" }]\n";
    let results = kvm(&host, &format!("{vm}{beside}"));
    let row = vcpu(&results, "a", 0);
    (row.running_ns, row.context_switches)
}

#[test]
fn a_vcpu_polls_between_short_halts_only_while_nobody_else_wants_its_pcpu() {
    let (without, blocks) = polled(0, "");
    let (with, stays) = polled(200, "");
    assert!((40_000_000..60_000_000).contains(&without) && blocks > 1_900, "{without} {blocks}");
    assert!(with > 195_000_000 && stays < 10, "it is running all the time: {with} {stays}");
    let hog = "[domain.b]\naffinity = \"0\"\napp = [{ kind = \"hog\" }]\n";
    let [(idle, _), (full, _)] = [polled(0, hog), polled(200, hog)];
    assert_eq!(idle, full, "nothing is polled beside a hog");
    let elsewhere = hog.replace("\"0\"", "\"1\"");
    assert!(polled(200, &elsewhere).0 > 195_000_000, "a hog on another pCPU is no matter");
}

#[test]
fn the_quota_of_a_slice_holds_for_all_vms_in_it_and_their_threads() {
    let vms = "[domain.a]\nvcpus = 2\napp = [{ kind = \"hog\", instance = 2 }]\n[domain.b]\nvcpus = 2\napp = [{ kind = \"hog\", instance = 2 }]\n";
    let shares = |cgroup: &str| -> Vec<i64> {
        let results = kvm("pcpus = 4", &format!("{cgroup}{vms}"));
        results.domains.iter().map(|row| 100 * row.running_ns / row.elapsed_ns).collect()
    };
    assert_eq!(shares(""), [200, 200]);
    let half = shares("[cgroup.\"machine.slice\"]\nquota_us = 20_000\nperiod_us = 10_000\n");
    let all: i64 = half.iter().sum();
    assert!((180..=215).contains(&all), "two of four pCPUs: {half:?}");
}

#[test]
fn a_daemon_is_beside_all_vms_together() {
    let hog = |name: &str, what: &str| format!("[domain.{name}]\n{what}app = [{{ kind = \"hog\" }}]\n");
    let vms: String = ["a", "b", "c"].map(|name| hog(name, "")).concat();
    let results = kvm("pcpus = 1", &(vms + &hog("backup", "daemon = true\n")));
    let share = |name: &str| {
        let row = results.domains.iter().find(|row| row.domain == name).unwrap();
        100 * row.running_ns / row.elapsed_ns
    };
    assert!((45..=55).contains(&share("backup")), "system.slice against machine.slice: {}", share("backup"));
    assert!((14..=19).contains(&share("a")), "{}", share("a"));
}

/// VMs that run on a host of Xen and on a host of KVM.
#[test]
fn the_same_vms_run_under_xen_and_under_kvm() {
    let vms = |nic: &str| {
        format!(
            "[domain.web]\nvcpus = 2\nnic = {nic}\ndisk = {nic}\n{SERVER}\
             [domain.batch]\nvcpus = 4\napp = [{{ kind = \"hog\", instance = 4 }}]\n{USERS}"
        )
    };
    let run = "[run]\nduration = \"200ms\"\nwarmup = \"50ms\"\n[host]\nprofile = \"generic\"\npcpus = 4\n";
    let xen = "scheduler = \"credit2\"\n[domain.dom0]\ndriver_domain = true\nvcpus = 2\n";
    let xen = run_of(&format!("{run}{xen}{}", vms("{ driver_domain = \"dom0\" }")));
    for scheduler in ["linux-eevdf", "linux-cfs", "credit2", "null"] {
        let pcpus = if scheduler == "null" { run.replace("pcpus = 4", "pcpus = 8") } else { run.to_owned() };
        let kvm = run_of(&format!("{pcpus}hypervisor = \"kvm\"\nscheduler = \"{scheduler}\"\n{}", vms("{}")));
        let answered =
            |results: &Results| results.apps.iter().find(|row| row.kind == "open-loop").unwrap().completed;
        assert!(
            answered(&xen) > 390 && answered(&kvm) > 390,
            "{scheduler}: {} {}",
            answered(&xen),
            answered(&kvm)
        );
        assert_eq!((xen.threads.len(), kvm.threads.len()), (0, 2), "{scheduler}");
    }
}

#[test]
fn forty_vms_run_on_sixteen_threads() {
    let vm = "[domain.vm]\ncount = 40\nvcpus = 2\nnic = {}\ndisk = {}\niothreads = 1\napp = [{ kind = \"web-server\", request_cpu = \"300us\" }]\n\
              [client.c]\nkind = \"open-loop\"\nserver = \"vm\"\nrate = 300\nfile_size = \"10KB\"\n";
    let results = kvm("topology = { cores = 8, threads = 2 }", vm);
    assert_eq!((results.threads.len(), results.domains.len()), (80, 41));
    let completed: u64 =
        results.apps.iter().filter(|row| row.kind == "open-loop").map(|row| row.completed).sum();
    assert!(completed > 1_500, "{completed}");
    let host = results.domains.iter().find(|row| row.domain == "host").unwrap();
    let threads: i64 = results.threads.iter().map(|row| row.running_ns).sum();
    assert_eq!(host.running_ns, threads);
}

#[test]
fn results_tell_what_a_vm_costs_and_what_its_limits_deny_it() {
    let vms = format!(
        "[domain.web]\nnic = {{}}\n{SERVER}[domain.b]\nvcpu_quota_us = 5000\nvcpu_period_us = 10_000\n\
         app = [{{ kind = \"hog\" }}]\n{USERS}"
    );
    let results = kvm("pcpus = 4", &vms);
    let [web, b] = &results.vms[..] else { panic!("{:?}", results.vms) };
    assert_eq!((web.domain.as_str(), b.domain.as_str()), ("web", "b"));
    assert_eq!(web.threads_ns, thread(&results, "vhost-web"));
    assert_eq!((web.periods, b.threads_ns), (0, 0), "one has no limit, the other no thread");
    // 200 ms have 20 periods, each exhausted half-way.
    assert!((19..=21).contains(&b.periods) && b.throttled_periods >= 19, "{b:?}");
    assert!((80_000_000..=120_000_000).contains(&b.throttled_ns), "{b:?}");
    assert!((80_000_000..=120_000_000).contains(&b.steal_ns), "{b:?}");
    assert!((80_000_000..=120_000_000).contains(&b.vcpus_ns), "{b:?}");
}

fn cpus() -> impl Strategy<Value = String> {
    (0..4u32, 0..4u32).prop_map(|(one, other)| format!("\"{}-{}\"", one.min(other), one.max(other)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No thread runs outside the cpuset of its groups, whatever its own affinity is or becomes; what is left of its
    /// affinity counts.
    #[test]
    fn no_thread_runs_outside_its_cpuset(
        scheduler in prop::sample::select(vec!["linux-cfs", "linux-eevdf", "credit2"]),
        (outer, inner) in (cpus(), cpus()),
        (own, later, emulator) in (prop::option::of(cpus()), prop::option::of(cpus()), prop::option::of(cpus())),
    ) {
        let field = |name: &str, value: &Option<String>| value.as_ref().map_or(String::new(), |v| format!("{name} = {v}\n"));
        let action = later.as_ref().map_or(String::new(), |to| {
            format!("[[action]]\nat = \"100ms\"\nop = \"affinity\"\ndomain = \"web\"\naffinity = {to}\n")
        });
        let text = format!(
            "[run]\nduration = \"200ms\"\nwarmup = \"0s\"\n[host]\nhypervisor = \"kvm\"\nscheduler = \"{scheduler}\"\n\
             profile = \"generic\"\npcpus = 4\n[cgroup.a]\ncpus = {outer}\n[cgroup.\"a/b\"]\ncpus = {inner}\n\
             [domain.web]\nvcpus = 3\ncgroup = \"a/b\"\nnic = {{}}\n{}{}{SERVER}[domain.free]\nvcpus = 4\n\
             app = [{{ kind = \"hog\" }}]\n{action}{USERS}",
            field("affinity", &own), field("emulator_affinity", &emulator),
        );
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
        let options = RunOptions { trace: true, jobs: 1, ..RunOptions::default() };
        let results = run(&scenario, &options, &|_| true).unwrap();
        let d = |name: &str| scenario.domains.enumerate().find(|(_, one)| one.name == name).unwrap().0;
        let cpuset = scenario.cpuset(d("web"), 0).unwrap_or(CpuMask::first_n(4));
        prop_assert_eq!(scenario.cpuset(d("host"), 0).unwrap_or(CpuMask::first_n(4)), cpuset);
        let ran: Vec<_> = results.trace.in_memory().filter(|row| row.to_domain == 1 || row.to_domain == 0).collect();
        prop_assert!(!ran.is_empty());
        for row in ran {
            prop_assert!(cpuset.contains(PcpuId(row.pcpu)), "{text}{row:?}");
        }
    }
}
