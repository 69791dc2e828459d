//! From a file's fields to a scenario that can run. Every problem is reported; only an unknown hypervisor ends the check,
//! because it decides what other fields may be.

mod actions;
mod apps;
mod client_machines;
mod clients;
mod devices;
mod disks;
mod domains;
mod fields;
mod files;
mod host;
mod kvm;
mod lifecycle;
mod lint;
mod network;
mod params;
mod phases;
mod platform;
mod policy;
mod refusals;
mod run;
mod topology;

use vcpulab_host::{Span, Table};
use vcpulab_spec::Spec;
use vcpulab_spec::limits::DOMAINS_MAX;

use crate::check::fields::Checker;
use crate::file::raw::RawScenario;
use crate::file::words::DOM0;
use crate::outside::Outside;
use crate::text::problem::{Place, Report};
use crate::text::read::At;

/// Checks everything. If the report has errors, the spec is of no use. `None`: the hypervisor is unknown.
pub(crate) fn check(
    raw: &RawScenario,
    place: &Place,
    outside: Outside<'_>,
    report: &mut Report<'_>,
) -> Option<Spec> {
    let checker = &mut Checker::new(report, outside);
    let run = raw.run.get().cloned().unwrap_or_default();
    let raw_host = raw.host.get().cloned().unwrap_or_default();
    let hypervisor = platform::hypervisor(checker, &raw_host)?;
    let host = host::machine(checker, raw, &raw_host, hypervisor);
    let (pools, schedulers_known) = host::pools(checker, raw, &raw_host, &host, place);
    topology::granularity(checker, &raw_host, &host, pools.iter());
    let mut spec = Spec {
        name: run::name(checker, raw),
        seed: raw.seed(checker.report) as u64,
        duration: run.duration(checker.report),
        warmup: run.warmup(checker.report),
        start_spread: run.start_spread(checker.report),
        replications: run.replications(checker.report),
        sample: Span::ZERO,
        profiler_cycles: run::profiler(checker, &run),
        host,
        nics: Table::new(),
        disks: Table::new(),
        pools,
        domains: Table::new(),
        clients: Table::new(),
        client_machines: Table::new(),
        actions: Vec::new(),
    };
    let mut raw_domains: Vec<_> = raw.domain.get().into_iter().flat_map(|named| &named.0).collect();
    if let Some(At { place, .. }) = &raw.domain.0 {
        checker.count(raw_domains.len(), 1, DOMAINS_MAX, "domains", place);
    }
    // Dom0 comes first on every host.
    raw_domains.sort_by_key(|(name, _)| name.value != DOM0);
    domains::check(checker, &mut spec, &raw_domains, place);
    network::check(checker, &mut spec, raw, &raw_domains, place);
    disks::check(checker, &mut spec, raw, &raw_domains, place);
    kvm::own_groups(checker, raw, &spec);
    kvm::group_files(checker, raw, &spec);
    kvm::leave_out_isolated(&mut spec);
    kvm::host_domain(checker, &mut spec);
    apps::check(checker, &mut spec, &raw_domains, place);
    run::rows(checker, &spec, &run, place);
    if schedulers_known {
        params::check(checker, &mut spec, raw, &raw_host, &raw_domains);
    } else {
        params::check_names(checker, raw, &raw_host, &raw_domains);
    }
    client_machines::check(checker, raw, &mut spec, place);
    clients::check(checker, raw, &mut spec, place);
    files::check(checker, &spec, &raw_domains);
    spec.sample = run::sample(checker, &run, &spec);
    actions::check(checker, raw, &mut spec, &raw_domains, schedulers_known, place);
    lint::lint(&spec, raw, &raw_domains, checker.report);
    Some(spec)
}
