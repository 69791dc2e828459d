//! The domains.

use vcpulab_guest::IdleTick;
use vcpulab_host::{CpuMask, Params, Span};
use vcpulab_spec::limits::{DOMAINS_MAX, VCPUS_MAX};
use vcpulab_spec::{DomainSpec, Guest, POOL_0, Platform, PoolSpec, Spec, XenDomain};

use crate::check::fields::Checker;
use crate::check::kvm;
use crate::file::raw::{NamedDomain, RawDomain};
use crate::file::words::DOM0;
use crate::text::problem::{Place, Problem, Report};
use crate::text::read::{At, Field, OneOrMany};
use crate::text::units::{CpuList, Size};
use crate::text::value::{scalar, within};

pub(crate) fn check(
    checker: &mut Checker<'_, '_>,
    spec: &mut Spec,
    raw_domains: &[&NamedDomain],
    place: &Place,
) {
    let mut vcpus = 0;
    let has_dom0 = raw_domains.first().is_some_and(|(name, _)| name.value == DOM0);
    for (index, (name, raw)) in raw_domains.iter().enumerate().take(DOMAINS_MAX) {
        checker.word_of_commands(name);
        let number = index as i64 + i64::from(!has_dom0);
        let domain = domain_alone(checker, name, &raw.value, number, spec);
        vcpus += domain.vcpus();
        if vcpus > VCPUS_MAX {
            let problem = Problem::not_allowed(format!("at most {VCPUS_MAX} vCPUs in all domains together"));
            checker.report.error(&place.member("domain"), problem.found(format!("{vcpus} or more vCPUs")));
            break;
        }
        spec.domains.push(domain);
    }
}

/// A domain without what refers to other domains.
fn domain_alone(
    checker: &mut Checker<'_, '_>,
    name: &At<String>,
    raw: &RawDomain,
    number: i64,
    spec: &Spec,
) -> DomainSpec {
    let host = &spec.host;
    let pool = match raw.pool.is_none() {
        true => POOL_0,
        false => checker.pool_named(&raw.pool, &spec.pools).unwrap_or(POOL_0),
    };
    let vcpus = raw.vcpus(checker.report);
    let vcpus_known = raw.vcpus.is_or_none(vcpus);
    let driver_domain = raw.driver_domain(checker.report);
    let usual = match driver_domain {
        true => host.constants.driver_working_set_bytes,
        false => host.constants.guest_working_set_bytes,
    };
    let count = vcpus as usize;
    let masks = |checker: &mut Checker<'_, '_>, field| {
        affinity(checker, field, count, vcpus_known, host.pcpus, &spec.pools[pool])
    };
    let page_cache = raw.page_cache(Size(host.constants.page_cache_bytes), checker.report).unwrap_or(Size(0));
    DomainSpec {
        name: name.value.clone(),
        number,
        params: Params::new(),
        pool,
        start: raw.start(checker.report),
        affinity: masks(checker, &raw.affinity).unwrap_or_else(|| vec![None; count]),
        soft_affinity: masks(checker, &raw.soft_affinity).unwrap_or_default(),
        bound: scalar(&raw.bound_by, checker.report)
            .unwrap_or(DomainSpec::usual_bound(number, driver_domain)),
        memory_nodes: memory_nodes(
            checker,
            &raw.memory_nodes,
            host.topology.map_or(1, |topology| topology.nodes),
        ),
        working_set_bytes: raw.working_set(Size(usual), checker.report).map_or(0, |size| size.0 as u64),
        nic: None,
        disk: None,
        page_cache_bytes: page_cache.0 as u64,
        memory_bytes: raw.memory(Size(2 * page_cache.0), checker.report).map_or(0, |size| size.0 as u64),
        idle_tick: idle_tick(checker.report, raw),
        wake_cpu: raw.wake_cpu(checker.report),
        idle_cpu: raw.idle_cpu(checker.report),
        shutdown: raw
            .shutdown(Span::from_ns(host.constants.shutdown_ns), checker.report)
            .unwrap_or(Span::ZERO),
        on_crash: raw.on_crash(checker.report),
        apps: Vec::new(),
        guest: match host.platform {
            Platform::Kvm(_) => kvm::guest(checker, name, raw, host.pcpus),
            Platform::Xen(_) | Platform::BareMetal => {
                kvm::refuse_in_domain(checker, raw);
                Guest::XenDomain(XenDomain { driver_domain, forwarding: raw.forwarding(checker.report) })
            }
        },
    }
}

fn memory_nodes(checker: &mut Checker<'_, '_>, field: &Field<OneOrMany<i64>>, nodes: u32) -> Vec<u32> {
    let Some(At { value, place }) = &field.0 else { return Vec::new() };
    let given = match value {
        OneOrMany::One(node) => vec![At { value: *node, place: place.clone() }],
        OneOrMany::Many(nodes) => nodes.clone(),
    };
    if given.is_empty() {
        let problem = Problem::not_allowed("at least one node").found("an empty list");
        checker.report.error(place, problem);
    }
    let mut valid: Vec<u32> =
        given.iter().filter_map(|node| within(node, 0..=nodes - 1, checker.report)).collect();
    valid.sort_unstable();
    valid.dedup();
    valid
}

fn idle_tick(report: &mut Report<'_>, raw: &RawDomain) -> Option<IdleTick> {
    let (period, cpu) = (&raw.idle_tick, &raw.idle_tick_cpu);
    for (field, name) in [(&raw.idle_tick_at, "idle_tick_at"), (&raw.busy_tick_cpu, "busy_tick_cpu")] {
        if let (Some(At { place, .. }), None) = (&field.0, &period.0) {
            report.error(place, Problem::says(format!("`{name}` goes with `idle_tick`")));
        }
    }
    if let (Some(At { place, .. }), None) | (None, Some(At { place, .. })) = (&period.0, &cpu.0) {
        report.error(place, Problem::says("`idle_tick` and `idle_tick_cpu` belong together"));
    }
    Some(IdleTick {
        period_ns: raw.idle_tick(report)?,
        cpu_ns: raw.idle_tick_cpu(report)?,
        busy_ns: raw.busy_tick_cpu(report),
        at_ns: raw.idle_tick_at(report),
    })
}

/// Affinities of vCPUs: a set for all, or a set for each; empty where the scenario gives none.
fn affinity(
    checker: &mut Checker<'_, '_>,
    field: &Field<OneOrMany<CpuList>>,
    vcpus: usize,
    vcpus_known: bool,
    pcpus: u32,
    pool: &PoolSpec,
) -> Option<Vec<Option<CpuMask>>> {
    let mut cpus = |list: &CpuList, place: &Place| checker.cpus(list, place, pcpus, &pool.pcpus, &pool.name);
    let At { value, place } = field.0.as_ref()?;
    Some(match value {
        OneOrMany::One(list) => vec![cpus(list, place); vcpus],
        OneOrMany::Many(lists) => {
            let mut masks: Vec<_> = lists.iter().map(|list| cpus(&list.value, &list.place)).collect();
            masks.resize(vcpus, None);
            if lists.len() != vcpus && vcpus_known {
                let allowed = format!("one set for all vCPUs, or a list of {vcpus}, one for each");
                let found = format!("a list of {}", lists.len());
                checker.report.error(place, Problem::not_allowed(allowed).found(found));
            }
            masks
        }
    })
}
