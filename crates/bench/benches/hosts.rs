//! Whole hosts, a simulated second each, set-up included: `cargo bench -p vcpulab-bench --bench hosts`.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::fmt::Write as _;

use criterion::{Criterion, criterion_group, criterion_main};
use vcpulab_run::{RunOptions, run};
use vcpulab_scenario::Scenario;

const RUN: &str = "[run]\nduration = \"1s\"\nwarmup = \"0s\"\n";

/// A web server at saturation and its driver domain on one pCPU.
fn web() -> String {
    format!(
        "{RUN}[host]\nprofile = \"lp200r\"\nscheduler = \"credit\"\n[domain.dom0]\ndriver_domain = true\n\
         [domain.web]\nnic.driver_domain = \"dom0\"\napp = [{{ kind = \"web-server\" }}]\n\
         [client.c]\nkind = \"open-loop\"\nserver = \"web\"\nrate = 1100\n"
    )
}

/// 64 guests on 16 pCPUs: a third each of web servers with users, of disk readers, and of hogs beside periodic jobs.
fn crowd() -> String {
    let mut text = format!(
        "{RUN}[host]\nprofile = \"generic\"\nscheduler = \"credit2\"\n[domain.dom0]\ndriver_domain = true\nvcpus = 4\n\
         [disk.ssd]\ndriver_domain = \"dom0\"\nkind = \"ssd\"\n"
    );
    for guest in 0..64 {
        let devices = "nic.driver_domain = \"dom0\"\ndisk.driver_domain = \"dom0\"";
        let apps = match guest % 3 {
            0 => "{ kind = \"web-server\" }",
            1 => "{ kind = \"iozone\", operation = \"random-read\" }",
            _ => "{ kind = \"hog\" }, { kind = \"periodic\", run = \"1ms\", period = \"10ms\" }",
        };
        writeln!(text, "[domain.g{guest}]\n{devices}\napp = [{apps}]").expect("a string takes all text");
        if guest % 3 == 0 {
            writeln!(text, "[client.c{guest}]\nkind = \"closed-loop\"\nserver = \"g{guest}\"\nusers = 10\nthink = \"10ms\"")
                .expect("a string takes all text");
        }
    }
    text
}

fn hosts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a simulated second");
    group.sample_size(20);
    for (name, text) in [("web server, 1 pCPU", web()), ("64 guests, 16 pCPUs", crowd())] {
        let scenario = Scenario::parse(&text, name).unwrap_or_else(|problems| panic!("{problems}"));
        let options = RunOptions { jobs: 1, ..RunOptions::default() };
        group.bench_function(name, |b| {
            b.iter(|| run(&scenario, &options, &|_| true).expect("it runs"));
        });
    }
    group.finish();
}

criterion_group!(benches, hosts);
criterion_main!(benches);
