//! Starving domains of a run, by its scenario and rows of its tables; [`vcpulab_judge::starvation`] has the rules.

use std::collections::BTreeMap;

use serde::Deserialize;
use vcpulab_host::{CpuMask, DomId};
use vcpulab_judge::starvation::{App, Domain, HostThreads, Pcpus, Run, Starved, Starving, Thread, Vcpu};
use vcpulab_spec::{AppName, Guest, POOL_0, Spec, Work, app_names, entitlements};

/// Columns of the tables of all replications of a run, each a list of values.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Columns {
    /// Columns of the vCPU table.
    pub vcpus: VcpuColumns,
    /// Columns of the domain table.
    pub domains: DomainColumns,
    /// Columns of the application table.
    pub apps: AppColumns,
}

/// Columns of the table of vCPUs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct VcpuColumns {
    /// Name of the domain.
    pub domain: Vec<String>,
    /// Number of the vCPU.
    pub vcpu: Vec<u32>,
    /// Time in all runstates.
    pub elapsed_ns: Vec<i64>,
    /// Time running.
    pub running_ns: Vec<i64>,
    /// Time runnable.
    pub runnable_ns: Vec<i64>,
    /// Time offline.
    pub offline_ns: Vec<i64>,
}

/// Columns of the table of domains.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DomainColumns {
    /// Name of the domain.
    pub domain: Vec<String>,
    /// Name of the pool that it is in at the end.
    pub pool: Vec<String>,
}

/// Columns of the table of applications.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AppColumns {
    /// Name of the domain.
    pub domain: Vec<String>,
    /// Position in the domain.
    pub app: Vec<u32>,
    /// Units of work completed, per second.
    pub throughput_per_s: Vec<f64>,
    /// Units of work completed.
    pub completed: Vec<u64>,
}

/// A run to test for starvation.
#[derive(Clone, Debug)]
pub struct Observed {
    run: Run,
    apps: BTreeMap<String, AppName>,
    work: BTreeMap<String, Work>,
}

impl Observed {
    /// The run of a scenario with these results.
    pub fn new(spec: &Spec, columns: Columns) -> Self {
        let apps = app_names(spec);
        let work = spec.domains.enumerate().map(|(id, domain)| (domain.name.clone(), Work::of(spec, id)));
        let run = Run {
            domains: domains(spec, columns.domains),
            threads: threads(spec),
            vcpus: vcpus(columns.vcpus),
            apps: done(&apps, columns.apps),
        };
        Observed {
            run,
            work: work.collect(),
            apps: apps.into_iter().map(|app| (app.name.clone(), app)).collect(),
        }
    }

    /// The domains that starve, each with the reason.
    pub fn starved(&self) -> Vec<Starved> {
        self.run.starved()
    }

    /// The domains that starve in this run, in another run after it, or in both.
    pub fn compare_with(&self, after: &Observed) -> Starving {
        let has_same_work = |name: &str| {
            let Some(app) = self.apps.get(name) else { return false };
            after.apps.get(name) == Some(app) && self.work.get(&app.domain) == after.work.get(&app.domain)
        };
        Starving::between(&self.run, &after.run, has_same_work)
    }
}

fn vcpus(columns: VcpuColumns) -> Vec<Vcpu> {
    let VcpuColumns { domain, vcpu, elapsed_ns, running_ns, runnable_ns, offline_ns } = columns;
    let times = elapsed_ns.into_iter().zip(running_ns).zip(runnable_ns).zip(offline_ns);
    let rows = domain.into_iter().zip(vcpu).zip(times);
    let vcpu = |((domain, number), (((elapsed, running), runnable), offline))| Vcpu {
        domain,
        number,
        elapsed,
        running,
        runnable,
        offline,
    };
    rows.map(vcpu).collect()
}

fn done(apps: &[AppName], columns: AppColumns) -> Vec<App> {
    let names: BTreeMap<(&str, u32), &str> =
        apps.iter().map(|app| ((app.domain.as_str(), app.position), app.name.as_str())).collect();
    let AppColumns { domain, app, throughput_per_s, completed } = columns;
    let rows = domain.into_iter().zip(app).zip(throughput_per_s.into_iter().zip(completed));
    let app = |((domain, position), (throughput, completed)): ((String, u32), (f64, u64))| {
        let name = (*names.get(&(domain.as_str(), position))?).to_owned();
        Some(App { name, domain, throughput, completed })
    };
    rows.filter_map(app).collect()
}

fn threads(spec: &Spec) -> Option<HostThreads> {
    let (domain, threads) = spec.host_threads()?;
    let thread = |thread: &vcpulab_spec::ServiceThread| Thread {
        serves: spec.domains[thread.of].name.clone(),
        kind: thread.kind.name(),
    };
    let threads = threads.iter().map(thread).collect();
    Some(HostThreads { domain: spec.domains[domain].name.clone(), threads })
}

fn domains(spec: &Spec, columns: DomainColumns) -> Vec<Domain> {
    // Of several replications the last one counts.
    let last: BTreeMap<String, String> = columns.domain.into_iter().zip(columns.pool).collect();
    let entitlements = entitlements(spec);
    let domain = |(id, entitlement): (DomId, Option<f64>)| {
        let name = &spec.domains[id].name;
        let (cpu_limit, vcpu_limit) = spec.limits(id);
        // A weight of 0 promises nothing, and extra time is shared equally.
        let by_weight = entitlement.filter(|share| *share > 0.0).unwrap_or(f64::INFINITY);
        Domain {
            name: name.clone(),
            reach: reach(spec, id, last.get(name).map(String::as_str)),
            cpu_limit: by_weight.min(cpu_limit),
            vcpu_limit,
        }
    };
    spec.domains.ids().zip(entitlements).map(domain).collect()
}

/// The pCPUs that each vCPU of a domain may run on, by the scenario and the pool that it is in.
fn reach(spec: &Spec, id: DomId, pool: Option<&str>) -> Vec<Pcpus> {
    let domain = &spec.domains[id];
    let all = CpuMask::first_n(spec.host.pcpus);
    let pool =
        spec.pools.iter().find(|known| Some(known.name.as_str()) == pool).unwrap_or(&spec.pools[POOL_0]);
    let affinity = |vcpu: usize| match &domain.guest {
        Guest::HostThreads(threads) => match &spec.domains[threads[vcpu].of].guest {
            Guest::Vm(vm) => vm.affinity_of(threads[vcpu].kind),
            _ => None,
        },
        _ => domain.affinity[vcpu],
    };
    let some_of = |mask: CpuMask, otherwise: CpuMask| if mask.is_empty() { otherwise } else { mask };
    let reach = |vcpu: usize| {
        let pool = spec.cpuset(id, vcpu as u32).map_or(pool.pcpus, |cpuset| pool.pcpus.and(&cpuset));
        let own = affinity(vcpu).map_or(pool, |own| some_of(pool.and(&own), pool));
        some_of(own, all).iter().map(|pcpu| pcpu.0).collect()
    };
    (0..domain.affinity.len()).map(reach).collect()
}
