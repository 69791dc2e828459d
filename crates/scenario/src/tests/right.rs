//! Scenarios that are right, for tests here and of runs.

use proptest::prelude::*;

/// Scenarios that are right, from a few choices.
pub fn right() -> impl Strategy<Value = String> {
    let domain = (
        1..5_u32,
        prop::option::of(1..1000_u32),
        prop::sample::select(vec!["all", "0", "0-1", "1,3"]),
        0..5_u8,
    );
    let domains = prop::collection::vec(domain, 1..6);
    let action = prop::collection::vec((0..5_u32, 0..5_u8), 0..4);
    (any::<u32>(), 4..9_u32, domains, action, 1..100_000_u32).prop_map(|(seed, pcpus, domains, actions, rate)| {
        let mut text = format!(
            "name = \"a \\\"b\\\" é\"\nseed = {seed}\nrun = {{ duration = \"20ms\", warmup = \"5ms\" }}\n[host]\nscheduler = \"credit\"\npcpus = {pcpus}\n\
             [pool.\"p.1\"]\npcpus = \"3\"\nscheduler = \"credit2\"\nratelimit_us = 500\n[domain.dom0]\ndriver_domain = true\n"
        );
        let mut served = None;
        for (index, (vcpus, weight, affinity, app)) in domains.iter().enumerate() {
            text += &format!("[domain.\"d.{index}\"]\nvcpus = {vcpus}\naffinity = \"{affinity}\"\n");
            text += &weight.map(|weight| format!("weight = {weight}\n")).unwrap_or_default();
            text += "nic.driver_domain = \"dom0\"\n";
            text += if affinity.contains('3') { "pool = \"p.1\"\n" } else { "" };
            text += match app {
                0 => "",
                1 => "app = [{ kind = \"hog\" }, { kind = \"periodic\", run = \"1.5ms\", period = \"10ms\" }]\n",
                2 => {
                    "app = [{ kind = \"phases\", loop = 3, phase = [{ loop = 2, event = [{ run = \"1ms\" }, \
                     { runtime = \"3ms\" }, { sleep = \"2ms\" }] }, { event = [{ timer = \"7us\" }] }] }]\n"
                }
                3 => {
                    let load = format!("kind = \"open-loop\"\nrate = {}\n", f64::from(rate) / 7.0);
                    served = Some((index, load));
                    "app = [{ kind = \"web-server\" }]\n"
                }
                _ => {
                    served = Some((index, format!("kind = \"stream\"\nstreams = 2\ngap = \"{rate}us\"\n")));
                    "app = [{ kind = \"tcp-receiver\" }]\n"
                }
            };
        }
        if let Some((index, load)) = served {
            text += &format!("[client.c]\nserver = \"d.{index}\"\n{load}");
        }
        for (at, op) in actions {
            text += &format!("[[action]]\nat = \"{at}.5s\"\n");
            text += match op {
                0 => "op = \"adjust\"\ndomain = \"d.0\"\nweight = 5\n",
                1 => "op = \"pause\"\ndomain = \"d.0\"\n",
                2 => "op = \"adjust-global\"\npool = \"p.1\"\nratelimit_us = 100\n",
                3 => "op = \"move-pool\"\ndomain = \"d.0\"\npool = \"p.1\"\n",
                _ => "op = \"affinity\"\ndomain = \"d.0\"\nvcpu = 0\naffinity = \"1-3\"\n",
            };
        }
        text
    })
}
