//! Memory that a vCPU takes: host, scheduler, statistics, all of it.

use vcpulab_host::{Params, Scheduler, Time};
use vcpulab_sched::Runner;

use crate::host::host;
use crate::size::Size;

/// Sizes whose difference is measured: large enough for pages not to matter.
const FEW: u32 = 4_096;
const MANY: u32 = 65_536;

/// Memory that one vCPU takes under Credit, in domains of 64, bytes; `None` where the system does not tell.
pub fn bytes_per_vcpu() -> Option<f64> {
    let before = resident_bytes()?;
    let few = kept(FEW);
    let between = resident_bytes()?;
    let many = kept(MANY);
    let after = resident_bytes()?;
    drop((few, many));
    Some(((after - between) - (between - before)) / f64::from(MANY - FEW))
}

/// A host of that many vCPUs that has run for a while, kept in memory.
fn kept(vcpus: u32) -> Box<dyn std::any::Any> {
    vcpulab_sched::with("credit", "xen4.17", &Params::new(), 64, Keep(vcpus)).expect("Credit is registered")
}

struct Keep(u32);

impl Runner for Keep {
    type Out = Box<dyn std::any::Any>;

    fn run<S: Scheduler>(self, scheduler: S) -> Self::Out {
        let mut host = host(Size { pcpus: 64, vcpus: self.0, vcpus_each: 64 }, scheduler);
        host.run_until(Time::from_ns(50_000_000)).expect("the policy keeps the rules");
        // Only what it holds matters, so its type may be forgotten.
        let (context, _, world, meter) = host.into_parts();
        Box::new((context, world, meter))
    }
}

/// Resident memory of this process, bytes (Linux).
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024.0)
}
