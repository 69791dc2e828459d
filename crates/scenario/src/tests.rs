//! Tests of the whole way from text to scenario and back.

mod costs;
mod fields;
mod refused;
pub(crate) mod right;

use proptest::prelude::*;
use vcpulab_host::{CpuMask, Scope};
use vcpulab_sched::policies;

use crate::tests::right::right;
use crate::text::defaults::default_value;
use crate::text::units::CpuList;
use crate::{Outside, Scenario, schema, starter};

/// The smallest scenario, with something put in.
fn with(host: &str, rest: &str) -> String {
    format!(
        "[host]\nprofile = \"exact\"\nscheduler = \"credit\"\n{host}\n[domain.a]\napp = [{{ kind = \"hog\" }}]\n{rest}\n"
    )
}

fn problems(text: &str) -> String {
    Scenario::parse(text, "f.toml").expect_err("something is wrong with it").to_string()
}

#[test]
fn the_starter_is_right_and_has_no_doubts() {
    let scenario = Scenario::parse(starter(), "starter.toml").unwrap_or_else(|problems| panic!("{problems}"));
    assert!(scenario.warnings().is_empty(), "{:?}", scenario.warnings());
    assert_eq!(scenario.domains.iter().map(|d| d.number).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_topology_says_what_is_left_out() {
    let read = |host: &str, rest: &str| Scenario::parse(&with(host, rest), "f.toml");
    let host = |text: &str| read(text, "").unwrap_or_else(|problems| panic!("{problems}")).host.clone();
    let one = host("topology = { cores = 4, threads = 2 }");
    assert_eq!(one.pcpus, 8, "as many pCPUs as the topology has");
    let two = host("pcpus = 16\ntopology = { sockets = 2, threads = 2 }").topology.unwrap();
    assert_eq!((two.cores, two.nodes), (4, 2), "what the pCPUs leave, and a node for each socket");
    assert_eq!(host("pcpus = 16").topology, None);
    let wrong = |text: &str, rest: &str| read(text, rest).unwrap_err().to_string();
    let found = wrong("topology = { sockets = 3, cores = 2, nodes = 2 }", "");
    assert!(found.contains("allowed: a divisor or a multiple of the number of sockets, 3"), "{found}");
    let cores = "topology = { cores = 2, threads = 2 }\nsched_gran = \"core\"";
    let torn = wrong(cores, "[pool.other]\nscheduler = \"credit\"\npcpus = \"1\"");
    assert!(torn.contains("has only some of the pCPUs 0-1, which are scheduled together"), "{torn}");
    assert!(read(cores, "[pool.other]\nscheduler = \"credit\"\npcpus = \"2-3\"").is_ok());
}

#[test]
fn the_comment_on_a_parameter_that_is_left_out_has_the_value_in_force() {
    let written = |param: &str| {
        let text = with("", "").replace("credit", "sedf").replace("app =", &format!("{param}\napp ="));
        let scenario = Scenario::parse(&text, "f.toml").unwrap_or_else(|problems| panic!("{problems}"));
        scenario.to_toml().lines().find(|line| line.starts_with("# extratime")).map(str::to_owned)
    };
    assert_eq!(written("").unwrap(), "# extratime = 1 (default)");
    let beside = written("period = 10000000\nslice = 1000000").unwrap();
    assert_eq!(beside, "# extratime = 0 (left out beside other parameters)");
    assert_eq!(written("weight = 5\nextratime = 1"), None);
}

/// The examples that the documentation uses.
#[test]
fn examples_are_right_and_have_no_doubts() {
    insta::glob!("../../../scenarios", "*.toml", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let scenario =
            Scenario::parse(&text, &path.to_string_lossy()).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(scenario.warnings().is_empty(), "{:?}", scenario.warnings());
        assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario));
    });
}

#[test]
fn what_is_written_is_complete_and_reads_back() {
    let scenario = Scenario::parse(starter(), "starter.toml").unwrap();
    insta::assert_snapshot!(scenario.to_toml());
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario));
}

/// Every file in `bad` has its problems beside it: the page of messages that users see.
#[test]
fn bad_files_are_explained() {
    // The registry grows; what these files are about does not.
    let mut settings = insta::Settings::clone_current();
    settings.add_filter("one of [^\n]*round-robin[^\n]*", "one of [all schedulers]");
    settings.add_filter("parameter of schedulers? [^\n]*, not of", "parameter of [its schedulers], not of");
    let _guard = settings.bind_to_scope();
    insta::glob!("../bad", "*.toml", |path| {
        let text = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy();
        insta::assert_snapshot!(
            Scenario::parse_bytes(&text, &name, Outside::default()).expect_err("it is bad").to_string()
        );
    });
}

#[test]
fn doubtful_files_are_questioned() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/bad/doubtful/all.toml")).unwrap();
    let scenario = Scenario::parse(&text, "all.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let warnings: Vec<String> = scenario.warnings().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"));
}

#[test]
fn names_of_earlier_times_are_read_and_said() {
    let read = |field: &str| {
        let text = format!(
            "[host]\nprofile = \"generic\"\nscheduler = \"credit\"\n[nic.eth0]\ndriver_domain = \"dom0\"\n[nic.eth1]\n\
             driver_domain = \"dom0\"\n[domain.dom0]\ndriver_domain = true\n[domain.web]\n\
             nic = {{ driver_domain = \"dom0\", {field} = \"eth1\" }}\napp = [{{ kind = \"web-server\" }}]\n"
        );
        Scenario::parse(&text, "web.toml").unwrap_or_else(|problems| panic!("{problems}"))
    };
    let [then, now] = ["card", "device"].map(read);
    assert_eq!(then.to_toml(), now.to_toml());
    assert_eq!(then.warnings().len(), now.warnings().len() + 1);
    let said: Vec<String> = then.warnings().iter().map(ToString::to_string).collect();
    assert!(
        said.iter().any(|one| one.contains("nic.card: now called `device`, and read as that")),
        "{said:?}"
    );
}

/// A table with a `count` says what as many tables would.
#[test]
fn copies_are_written_out() {
    let host = "[host]\nprofile = \"exact\"\nscheduler = \"credit\"\n[domain.dom0]\ndriver_domain = true\n";
    let domain = |name: &str, count: &str, weight: u32| {
        format!(
            "[domain.{name}]\n{count}weight = {weight}\nnic = {{ driver_domain = \"dom0\" }}\n\
             app = [{{ kind = \"web-server\" }}]\n"
        )
    };
    let client = |name: &str, server: &str, rate: u32| {
        format!("[client.{name}]\nkind = \"open-loop\"\nserver = \"{server}\"\nrate = {rate}\n")
    };
    let action = |domain: &str| format!("[[action]]\nat = \"1s\"\nop = \"pause\"\ndomain = \"{domain}\"\n");
    let short = [
        host,
        "[domain.web02]\nweight = 9\n[client.users10]\nrate = 7\n",
        &domain("web", "count = 10\n", 5),
        &client("users", "web", 3),
        &client("one", "web04", 1),
        &action("web"),
    ];
    let numbers: Vec<String> = (1..=10).map(|number| format!("{number:02}")).collect();
    let each =
        |table: &dyn Fn(&str) -> String| numbers.iter().map(|number| table(number)).collect::<String>();
    let long = [
        host,
        &each(&|number| domain(&format!("web{number}"), "", if number == "02" { 9 } else { 5 })),
        &each(&|number| {
            client(&format!("users{number}"), &format!("web{number}"), if number == "10" { 7 } else { 3 })
        }),
        &client("one", "web04", 1),
        &each(&|number| action(&format!("web{number}"))),
    ];
    let [short, long] = [short.concat(), long.concat()];
    let [found, expected] = [&short, &long]
        .map(|text| Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}")));
    assert_eq!(found.to_toml(), expected.to_toml());
    assert_eq!(crate::written(&short), crate::written(&long));
    let names = crate::copies(&short)
        .into_iter()
        .map(|(kind, name, copies)| format!("{kind} {name} {}", copies.len()));
    assert_eq!(names.collect::<Vec<_>>(), ["domain web 10", "client users 10"]);
}

/// A file of a few lines must not take the memory of a big one.
#[test]
fn copies_are_counted_before_they_are_made() {
    let rejected = |domain: &str| problems(&with("", &format!("[domain.b]\n{domain}")));
    assert!(rejected("count = 4096").contains("domain.b.count: found 4097 domains in all"));
    // A copy that differs is one of them.
    let differs = with("", "[domain.b]\ncount = 4095\n[domain.b0002]\nweight = 512");
    assert!(Scenario::parse(&differs, "f").is_ok());
    assert!(rejected("count = 4000\nvcpus = 512").contains("found 2048000 vCPUs or more"));
    let events = "{ run = \"1ms\" }, ".repeat(1000);
    let long = format!("count = 4000\napp = [{{ kind = \"phases\", phase = [{{ event = [{events}] }}] }}]");
    assert!(
        rejected(&long).contains("bytes; allowed: at most 4194304 bytes of copies"),
        "{}",
        rejected(&long)
    );
}

/// Parameters of a domain depend on the pool that it is in at that time.
#[test]
fn parameters_are_those_of_the_pool_at_that_time() {
    let pool = "pcpus = 2\n[pool.rt]\npcpus = \"1\"\nscheduler = \"rtds\"";
    let action = |at: u32, what: &str| format!("[[action]]\nat = \"{at}s\"\ndomain = \"a\"\n{what}\n");
    let (budget, weight) =
        (action(3, "op = \"adjust\"\nbudget_us = 2000"), action(1, "op = \"adjust\"\nweight = 9"));
    let moved = action(2, "op = \"move-pool\"\npool = \"rt\"");
    let right = with(pool, &format!("{budget}{moved}{weight}"));
    let scenario = Scenario::parse(&right, "f").unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario));
    let wrong = problems(&with(pool, &format!("{budget}{weight}")));
    assert!(wrong.contains("`budget_us` is a parameter of scheduler `rtds`, not of `credit`"), "{wrong}");
}

#[test]
fn what_is_too_big_is_refused_without_making_it() {
    let huge = "x".repeat(crate::FILE_BYTES_MAX + 1);
    assert!(problems(&huge).contains("allowed: at most 4194304"));
    assert!(problems(&with("pcpus = 9000000000000000000", "")).contains("from 1 to 512"));
    assert!(problems(&with("", "vcpus = 4000000000")).contains("from 1 to 512"));
    let many: String = (0..200).map(|d| format!("[domain.b{d}]\nvcpus = 512\n")).collect();
    assert!(problems(&with("", &many)).contains("at most 65536 vCPUs"));
    let busy: String =
        (0..100).map(|d| format!("[domain.c{d}]\napp = [{{ kind = \"hog\", instance = 256 }}]\n")).collect();
    assert!(problems(&with("", &busy)).contains("found 25601; allowed: 0 to 16384 tasks"));
    let long = "[run]\nreplications = 10000\n[domain.d]\nvcpus = 512\n";
    assert!(problems(&with("", long)).contains("pCPUs and applications (1000000 rows of results)"));
    let crowd = |kind: &str| {
        let server = "[domain.dom0]\ndriver_domain = true\n[domain.s]\nnic.driver_domain = \"dom0\"\napp = [{ kind = \"tcp-receiver\" }, { kind = \"web-server\" }]\n";
        let client = |i: u32| format!("[client.c{i}]\n{kind}\nserver = \"s\"\n");
        with("", &(server.to_owned() + &(0..6).map(client).collect::<String>()))
    };
    let users = problems(&crowd("kind = \"closed-loop\"\nusers = 65536\napp = \"web-server\""));
    assert!(
        users.contains("client.c4: found 327680; allowed: at most 262144 users of all clients together"),
        "{users}"
    );
    assert_eq!(users.matches("of all clients together").count(), 1, "it is said once: {users}");
    let open = crowd("kind = \"open-loop\"\nrate = 1\nconnections_max = 65536\napp = \"web-server\"");
    assert!(Scenario::parse(&open, "f").is_ok(), "what may be outstanding is no user");
    let streams = problems(&crowd("kind = \"stream\"\nstreams = 5000\napp = \"tcp-receiver\""));
    assert!(
        streams.contains("client.c3: found 20000; allowed: at most 16384 streams of all clients together"),
        "{streams}"
    );
    let prose = problems(&"A page of prose.\n".repeat(100));
    assert_eq!(prose.matches("not valid TOML").count(), 8);
    assert!(prose.contains("92 more problems are not shown"), "{prose}");
    assert!(problems(&"[".repeat(100_000)).contains("not valid TOML"));
    assert!(problems(&format!("a = {}", "[".repeat(100_000))).contains("not valid TOML"));
}

/// A file full of mistakes, as large as is allowed: the answer still comes at once.
#[test]
fn a_file_full_of_mistakes_is_answered_quickly() {
    let fill = |head: &str, piece: fn(usize) -> String| {
        let mut text = head.to_owned();
        for index in 0.. {
            let piece = piece(index);
            if text.len() + piece.len() > crate::FILE_BYTES_MAX {
                break;
            }
            text += &piece;
        }
        assert!(problems(&text).contains("more problems are not shown"), "{head}");
    };
    let domains: String = (0..4096).map(|d| format!("[domain.domain-number-{d}]\n")).collect();
    let domains = with("", &domains);
    type Piece = fn(usize) -> String;
    let fills: [(&str, Piece); 5] = [
        ("", |index| format!("a{index}=1\n")),
        ("[host]\nscheduler = \"credit\"\n", |index| format!("a{index}=1\n")),
        ("= 1\n", |_| "=\n".to_owned()),
        ("", |index| format!("[domain.d{index}]\nnic.driver_domain=\"x\"\n")),
        (&domains, |_| "[[action]]\nop=\"pause\"\ndomain=\"domain-number-x\"\n".to_owned()),
    ];
    std::thread::scope(|scope| {
        for (head, piece) in fills {
            scope.spawn(move || fill(head, piece));
        }
    });
}

#[test]
fn dom0_comes_first_wherever_it_stands() {
    let scenario =
        Scenario::parse(&with("", "[domain.dom0]\ndriver_domain = true\n[domain.b]"), "f").unwrap();
    let domains: Vec<(&str, i64)> = scenario.domains.iter().map(|d| (d.name.as_str(), d.number)).collect();
    assert_eq!(domains, [("dom0", 0), ("a", 1), ("b", 2)]);
    let without = Scenario::parse(&with("", "[domain.b]"), "f").unwrap();
    assert_eq!(without.domains.iter().map(|d| d.number).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn seed_and_replications_can_be_replaced_within_limits() {
    let scenario = Scenario::parse(&with("", ""), "f").unwrap();
    let other = scenario.with_run(Some(7), Some(3)).unwrap();
    assert_eq!((other.seed, other.replications), (7, 3));
    assert_ne!(scenario, other);
    assert!(scenario.with_run(None, Some(0)).is_err());
    assert!(scenario.with_run(Some(u64::MAX), None).is_err());
}

/// Each default of each generation of each scheduler may be given explicitly, and no parameter is called like a field.
#[test]
fn every_registered_parameter_is_accepted_with_its_default() {
    for policy in policies() {
        for generation in policy.generations {
            let lines = |scope| {
                let params = generation.params.iter().filter(move |p| p.scope == scope);
                params
                    .filter_map(|p| Some(format!("{} = {}\n", p.name, default_value(p)?)))
                    .collect::<String>()
            };
            let text = format!(
                "[host]\nscheduler = \"{}\"\ngeneration = \"{}\"\n{}\n[domain.a]\n{}",
                policy.name,
                generation.name,
                lines(Scope::Global),
                lines(Scope::Domain)
            );
            let scenario =
                Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
            assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario));
        }
    }
}

/// Weights are in units of `cpu.weight`; how great they may be depends on the version of the host's control groups.
#[test]
fn weights_have_the_range_of_the_hosts_control_groups() {
    let text = |version: &str, weight: u32| {
        format!(
            "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\n{version}\n[cgroup.\"a.slice\"]\nweight = {weight}\n\
             [domain.vm]\nweight = {weight}\n[[action]]\nat = \"1s\"\nop = \"adjust\"\ndomain = \"vm\"\nweight = {weight}\n"
        )
    };
    for (version, most) in [("", 10_000), ("cgroups = 2", 10_000), ("cgroups = 1", 25_600)] {
        for weight in [1, most] {
            let scenario = Scenario::parse(&text(version, weight), "f").unwrap();
            assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario));
        }
        for weight in [0, most + 1] {
            let problems = Scenario::parse(&text(version, weight), "f").unwrap_err();
            let fields: Vec<_> = problems.iter().map(|problem| problem.field.clone().unwrap()).collect();
            assert_eq!(fields, ["cgroup.\"a.slice\".weight", "domain.vm.weight", "action[0].weight"]);
            for problem in problems.iter().map(|problem| problem.to_string()) {
                assert!(problem.contains("1 to 10000") && problem.contains("1 to 25600"), "{problem}");
                assert!(problem.contains(&format!("found `{weight}`; allowed: an integer from 1 to {most}")));
            }
        }
    }
    let problems = |version: &str| Scenario::parse(&text(version, 100), "f").unwrap_err().to_string();
    assert!(problems("cgroups = 3").contains("host.cgroups: found `3`; allowed: an integer from 1 to 2"));
    let xen = Scenario::parse(&with("cgroups = 1", ""), "f").unwrap_err().to_string();
    assert!(xen.contains("only a KVM host has this"), "{xen}");
}

/// Threads that may run everywhere keep off isolated pCPUs, as toolstacks leave them out; an affinity that names them stays.
#[test]
fn isolated_pcpus_are_for_threads_that_name_them() {
    let text = "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\npcpus = 8\nisolated_cpus = \"4-7\"\n\
        [domain.free]\nvcpus = 2\nnic = {}\n[domain.all]\naffinity = \"all\"\n[domain.pinned]\naffinity = \"3-5\"\n\
        [domain.agent]\ndaemon = true\n";
    let scenario = Scenario::parse(text, "f").unwrap();
    let ranges = |mask: &Option<CpuMask>| mask.as_ref().map(|mask| CpuList::from(mask).to_string());
    let affinities: Vec<_> =
        scenario.domains.iter().map(|domain| ranges(&domain.affinity[0]).unwrap()).collect();
    assert_eq!(affinities, ["0-3", "0-3", "3-5", "0-3", "0-3"], "the last is the host's: a vhost thread");
    assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario));
}

#[test]
fn work_that_was_assumed_stays_so_when_written() {
    let with_apps =
        |apps: &str| Scenario::parse(&with("", &format!("[domain.b]\napp = [{apps}]")), "f").unwrap();
    let assumed = "{ kind = \"hog\", assumed = true }, { kind = \"tcp-receiver\", assumed = true }, \
                   { kind = \"phases\", assumed = true, phase = [{ event = [{ run = \"1ms\" }] }] }";
    let scenario = with_apps(assumed);
    let again = Scenario::parse(&scenario.to_toml(), "again").unwrap();
    assert!(again.domains.iter().last().unwrap().apps.iter().all(vcpulab_spec::AppSpec::assumed));
    assert_eq!(again, scenario);
    assert_ne!(with_apps(&assumed.replace("true", "false")), scenario);
}

#[test]
fn the_schema_knows_every_parameter_and_constant() {
    let text = schema().to_string();
    for param in policies().iter().flat_map(|p| p.generations).flat_map(|g| g.params) {
        assert!(text.contains(&format!("\"{}\":", param.name)), "{}", param.name);
    }
    assert!(!text.contains("Raw"), "names in the schema are those of the file");
}

/// Pieces that scenario files are made of, right and wrong ones.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "vcpus",
        "weight",
        "cap",
        "affinity",
        "nic",
        "app",
        "at",
        "op",
        "domain",
        "pcpus",
        "seed",
        "name",
        "rate",
        "kind",
        "scheduler",
        "profile",
        "duration",
        "warmup",
        "costs",
        "driver_domain",
        "wieght",
        "phase",
        "event",
        "server",
        "pool",
    ]);
    let value = prop::sample::select(vec![
        "1",
        "-1",
        "99999999999999999999",
        "0x1F",
        "1.5",
        "nan",
        "inf",
        "true",
        "\"10ms\"",
        "\"all\"",
        "\"0-3\"",
        "\"a\"",
        "[]",
        "[\"0\", \"1\"]",
        "{}",
        "{ driver_domain = \"a\" }",
        "[{ kind = \"hog\" }]",
        "[{ run = \"1ms\" }]",
        "\"credit\"",
        "1979-05-27",
        "\"web-server\"",
        "[[[[1]]]]",
        "\"adjust\"",
        "\"move-pool\"",
        "\"p\"",
    ]);
    let section = prop::sample::select(vec![
        "[host]",
        "[run]",
        "[domain.a]",
        "[domain.dom0]",
        "[[domain.a.app]]",
        "[[domain.a.app.phase]]",
        "[client.c]",
        "[[action]]",
        "[host.costs]",
        "[domain]",
        "[[domain]]",
        "[domain.a.nic]",
        "[pool.p]",
    ]);
    prop_oneof![3 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")), 1 => section.prop_map(str::to_owned)]
}

proptest! {
    #[test]
    fn right_scenarios_read_back_after_being_written(text in right()) {
        let scenario = Scenario::parse(&text, "f").unwrap_or_else(|problems| panic!("{text}\n{problems}"));
        let written = scenario.to_toml();
        let again = Scenario::parse(&written, "again").unwrap_or_else(|problems| panic!("{written}\n{problems}"));
        prop_assert_eq!(&again, &scenario);
        prop_assert_eq!(again.to_toml(), written);
    }

    #[test]
    fn json_tells_apart_what_files_tell_apart(one in right(), other in right()) {
        let parsed = [one, other].map(|text| Scenario::parse(&text, "f").unwrap());
        let [same, other] = parsed.each_ref().map(|scenario| (scenario.to_json(), scenario.to_toml()));
        prop_assert_eq!(Scenario::parse(&same.1, "again").unwrap().to_json(), same.0.as_str());
        prop_assert_eq!(same.0 == other.0, same.1 == other.1);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Scenario::parse_bytes(&bytes, "f", Outside::default()).map_err(|problems| problems.to_string());
    }

    #[test]
    fn any_heap_of_lines_is_read_or_refused(lines in prop::collection::vec(line(), 0..30)) {
        match Scenario::parse(&lines.join("\n"), "f") {
            Ok(scenario) => prop_assert_eq!(Scenario::parse(&scenario.to_toml(), "again"), Ok(scenario)),
            Err(problems) => prop_assert!(!problems.to_string().is_empty()),
        }
    }
}

/// A KVM host with everything that only such a host can say.
const KVM: &str = r#"
[host]
hypervisor = "kvm"
scheduler = "credit2"
profile = "generic"
pcpus = 8
toolstack = "proxmox"
halt_poll_us = 50
polls_recorded = true
isolated_cpus = "6-7"
nohz_full = "5-7"
[cgroup."machine.slice"]
weight = 300
[cgroup."system.slice"]
quota_us = 200_000
period_us = 50_000
burst_us = 10_000
idle = true
cpus = "0-2,5"
[nic.eth0]
[nic.eth1]
pcpu = 1
[disk.ssd]
kind = "ssd"
pcpu = 2
[domain.web]
vcpus = 2
threads_per_core = 2
nic = { device = "eth1" }
disk = {}
emulator_affinity = "0-1"
nice = -5
app = [{ kind = "web-server" }]
[domain.db]
cgroup = "machine.slice/machine-production.slice"
nic = { emulated = true }
disk = {}
iothreads = 1
iothread_affinity = "2"
sched_policy = "fifo"
sched_priority = 50
app = [{ kind = "hog" }]
[domain.old]
disk = { emulated = true }
iothreads = 1
sched_policy = "idle"
app = [{ kind = "hog" }]
[domain.none]
sched_policy = "batch"
app = [{ kind = "hog" }]
[domain.backup]
daemon = true
app = [{ kind = "hog" }]
[client.c]
kind = "open-loop"
server = "web"
rate = 10
"#;

#[test]
fn a_kvm_host_has_the_threads_that_serve_its_vms() {
    let scenario = Scenario::parse(KVM, "kvm.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let warnings: Vec<&str> = scenario.warnings().iter().filter_map(|one| one.field.as_deref()).collect();
    assert_eq!(warnings, ["domain.web.nice"], "its threads are in groups of their own");
    let (own, threads) = scenario.host_threads().unwrap();
    let threads: Vec<_> = threads.iter().map(|thread| (thread.of.0, thread.kind.name())).collect();
    let expected = [(0, "vhost"), (0, "emulator"), (1, "emulator"), (1, "iothread"), (2, "emulator")];
    assert_eq!(threads, expected, "an emulator serves emulated devices, and disks without an I/O thread");
    let host = &scenario.domains[own];
    assert_eq!((host.name.as_str(), host.number, host.vcpus()), ("host", 0, 5));
    let pinned: Vec<_> = host.affinity.iter().map(|mask| mask.map(|mask| mask.to_string())).collect();
    let [two, one, balanced] = ["0-1", "2", "0-5"].map(|cpus| Some(cpus.to_owned()));
    assert_eq!(pinned, [two.clone(), two, balanced.clone(), one, balanced], "not on isolated pCPUs");
    let served = |name: &str| {
        let vm = scenario.domains.iter().find(|domain| domain.name == name).unwrap();
        let nic = vm.nic.as_ref().map(|nic| (nic.driver, nic.driver_vcpu));
        (nic, vm.disk.as_ref().map(|disk| (disk.driver, disk.driver_vcpu)))
    };
    assert_eq!(served("web"), (Some((Some(own), 0)), Some((Some(own), 1))));
    assert_eq!(served("db"), (Some((Some(own), 2)), Some((Some(own), 3))));
    assert_eq!(scenario.domains.iter().map(|d| d.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 0]);
}

#[test]
fn cpusets_are_taken_together_along_the_path() {
    let text = "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\npcpus = 8\n\
        [cgroup.a]\ncpus = \"0-5\"\n[cgroup.\"a/b\"]\ncpus = \"4-7\"\n[cgroup.\"a/b/c\"]\ncpus = \"0-1\"\n\
        [domain.vm]\ncgroup = \"a/b\"\naffinity = \"6-7\"\napp = [{ kind = \"hog\" }]\n";
    let scenario = Scenario::parse(text, "f").unwrap_or_else(|problems| panic!("{problems}"));
    let kvm = scenario.host.platform.kvm().unwrap();
    let left = |path: &str| kvm.cpuset(path).map(|cpus| cpus.to_string());
    let paths = ["a", "a/b", "a/b/c", "a/other", "b", "/"].map(left);
    let [five, two] = ["0-5", "4-5"].map(|cpus| Some(cpus.to_owned()));
    assert_eq!(
        paths,
        [five.clone(), two.clone(), two, five, None, None],
        "none left: those of the group around it"
    );
    let warned: Vec<String> = scenario.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        warned,
        [
            "f:13:12: domain.vm.affinity: found `6-7`, none of which `cpus` of a/b leaves: its threads run on 4-5"
        ]
    );
}

/// A limit or an affinity of a thread that a VM does not have is questioned; of a thread that it has, it is not.
#[test]
fn settings_of_threads_that_are_not_there_are_questioned() {
    let warnings = |fields: &str| -> usize {
        let text = format!(
            "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\npcpus = 4\n[nic.eth0]\n[disk.sda]\n\
             [domain.vm]\napp = [{{ kind = \"hog\" }}]\n{fields}\n"
        );
        let scenario = Scenario::parse(&text, "vm.toml").unwrap_or_else(|problems| panic!("{problems}"));
        scenario.warnings().iter().filter(|one| one.to_string().contains("changes nothing")).count()
    };
    for (part, there, missing) in [
        ("emulator", "nic = {}", ""),
        ("emulator", "disk = {}", "disk = {}\niothreads = 1"),
        ("iothread", "disk = {}\niothreads = 1", "disk = {}"),
        ("iothread", "disk = {}\niothreads = 1", "iothreads = 1"),
    ] {
        for field in [format!("{part}_affinity = \"1\""), format!("{part}_quota_us = 50000")] {
            assert_eq!(warnings(&format!("{there}\n{field}")), 0, "{there} {field}");
            assert_eq!(warnings(&format!("{missing}\n{field}")), 1, "{missing} {field}");
        }
    }
}

#[test]
fn a_kvm_host_reads_back_without_its_own_threads() {
    let scenario = Scenario::parse(KVM, "kvm.toml").unwrap_or_else(|problems| panic!("{problems}"));
    let written = scenario.to_toml();
    assert!(!written.contains("[domain.host]") && !written.contains("driver_domain = \""), "{written}");
    assert_eq!(Scenario::parse(&written, "again").unwrap_or_else(|p| panic!("{p}\n{written}")), scenario);
    let idle =
        "[host]\nhypervisor = \"kvm\"\nscheduler = \"credit\"\n[domain.a]\napp = [{ kind = \"hog\" }]\n";
    let idle = Scenario::parse(idle, "f").unwrap();
    assert_eq!((idle.host_threads(), idle.domains.len()), (None, 1), "nobody needs a thread");
}

#[test]
fn a_domains_own_group_is_set_by_its_fields() {
    let problems_of = |name: &str, cgroup: &str, domain: &str| {
        let text = format!(
            "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\npcpus = 2\n[cgroup.'{cgroup}']\nweight = 300\n\
             [domain.{name}]\n{domain}\napp = [{{ kind = \"hog\" }}]\n"
        );
        Scenario::parse(&text, "f")
            .map(|_| ())
            .map_err(|problems| problems.to_string())
            .err()
            .unwrap_or_default()
    };
    let problems = |cgroup: &str, domain: &str| problems_of("web-1", cgroup, domain);
    for own in [
        "machine.slice/web-1",
        r"machine.slice/machine-qemu\x2d3\x2dweb\x2d1.scope",
        r"machine.slice/machine-qemu\x2d3\x2dweb\x2d1.scope/libvirt/vcpu0",
    ] {
        let found = problems(own, "");
        assert!(found.contains("this is a group of domain `web-1` itself"), "{own}: {found}");
        assert!(found.contains("`vcpu_quota_us` of [domain.web-1]"), "{found}");
    }
    assert!(problems("system.slice/web-1.service", "daemon = true").contains("domain `web-1` itself"));
    for other in ["web-1", "machine.slice/web-2", r"machine.slice/machine-qemu\x2d3\x2dweb.scope"] {
        assert_eq!(problems(other, ""), "");
    }
    assert_eq!(problems("machine.slice/web-1", "cgroup = \"machine.slice/web-1\""), "");
    let in_proxmox = |name, cgroup| problems_of(name, cgroup, "cgroup = \"qemu.slice\"");
    for name in ["vm-101", "101", "qemu_101"] {
        let found = in_proxmox(name, "qemu.slice/101.scope");
        assert!(found.contains(&format!("this is a group of domain `{name}` itself")), "{found}");
    }
    for (name, other) in
        [("vm-101", "qemu.slice/102.scope"), ("web", "qemu.slice/web.scope"), ("101", "101.scope")]
    {
        assert_eq!(in_proxmox(name, other), "");
    }
}

#[test]
fn a_name_that_the_host_takes_is_wrong_once() {
    let text = "[host]\nhypervisor = \"kvm\"\nscheduler = \"linux-eevdf\"\npcpus = 2\n\
        [domain.host]\napp = [{ kind = \"hog\" }]\n[domain.web]\nnic = {}\napp = [{ kind = \"web-server\" }]\n\
        [client.c]\nkind = \"open-loop\"\nserver = \"host\"\nrate = 3\n";
    let found = Scenario::parse(text, "f").unwrap_err().to_string();
    assert!(found.contains("no domain can have this name here"), "{found}");
    assert!(!found.contains("there is no domain"), "{found}");
}
