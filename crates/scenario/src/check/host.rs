//! The machine and its CPU pools.

use vcpulab_host::{CpuMask, Params, PoolId, Table};
use vcpulab_sched::{Generation, Policy, policies};
use vcpulab_spec::limits::PCPUS_MAX;
use vcpulab_spec::{CONSTANTS, CUSTOM, Constants, HostSpec, Platform, PoolSpec, Profile};

use crate::check::fields::Checker;
use crate::check::kvm::ONLY_KVM;
use crate::check::platform::platform;
use crate::check::policy::policy;
use crate::check::topology::host_topology;
use crate::file::profile::{
    caches_fit, clocks_fit, constants_of, default_profile, find_profile, profile_names, read_profile,
    unknown_constant,
};
use crate::file::raw::{POOL_0, RawHost, RawScenario, raw_pools};
use crate::file::words::{Hypervisor, toolstacks};
use crate::text::problem::{Place, Problem, did_you_mean};
use crate::text::read::{At, Field};
use crate::text::units::CpuList;
use crate::text::value::{choice, within};

pub(crate) fn machine(
    checker: &mut Checker<'_, '_>,
    scenario: &RawScenario,
    raw: &RawHost,
    hypervisor: Hypervisor,
) -> HostSpec {
    let own = profile_file(checker, &raw.profile);
    let profile = own.as_ref().unwrap_or_else(|| built_in(checker, raw).unwrap_or_else(default_profile));
    let custom = own.is_some() || raw.profile.get().is_some_and(|name| name == CUSTOM);
    let pcpus = raw.pcpus(profile.pcpus.value as u32, checker.report).unwrap_or(PCPUS_MAX);
    let topology = host_topology(checker, raw, profile.topology, pcpus);
    let pcpus = topology.map_or(pcpus, |topology| topology.pcpus());
    let platform = platform(checker, scenario, raw, hypervisor, pcpus);
    let toolstacks = toolstacks(&platform);
    let toolstack = raw.toolstack.0.as_ref();
    HostSpec {
        profile: if custom { CUSTOM } else { &profile.name }.to_owned(),
        constants: constants(checker, raw, profile, &platform),
        pcpus,
        topology,
        pcpus_per_socket: raw.pcpus_per_socket(pcpus, pcpus, checker.report).unwrap_or(pcpus),
        granularity: raw.sched_gran(checker.report),
        creation: raw.creation(checker.report),
        governor: raw.governor(checker.report),
        toolstack: toolstack
            .and_then(|At { value, place }| choice(&value.text, toolstacks, place, checker.report))
            .unwrap_or(toolstacks[0].1),
        platform,
    }
}

/// The pools without their schedulers' parameters, and whether all schedulers are known.
pub(crate) fn pools(
    checker: &mut Checker<'_, '_>,
    raw: &RawScenario,
    raw_host: &RawHost,
    host: &HostSpec,
    place: &Place,
) -> (Table<PoolId, PoolSpec>, bool) {
    let raw_pools = raw_pools(raw);
    checker.count(raw_pools.len(), 0, host.pcpus as usize - 1, "pools besides Pool-0", &place.member("pool"));
    let (mut first, mut known) =
        pool(checker, POOL_0, CpuMask::first_n(host.pcpus), &raw_host.scheduler, &raw_host.generation);
    let mut others: Vec<PoolSpec> = Vec::new();
    for (name, At { value: raw, .. }) in raw_pools.iter().take(host.pcpus as usize) {
        checker.word_of_commands(name);
        if name.value == POOL_0 {
            let hint = "its scheduler stands in [host], and it has all pCPUs that no other pool has";
            checker.report.error(&name.place, Problem::says("`Pool-0` is there already").hint(hint));
        }
        let mask = pool_pcpus(checker, &raw.pcpus, host.pcpus, &others);
        let (pool, its_known) = pool(checker, &name.value, mask, &raw.scheduler, &raw.generation);
        first.pcpus = first.pcpus.without(&mask);
        others.push(pool);
        known &= its_known;
    }
    if first.pcpus.is_empty() {
        let problem = Problem::says("no pCPU is left for `Pool-0`, which every host has");
        checker.report.error(&place.member("pool"), problem.found("all pCPUs in other pools"));
    }
    others.insert(0, first);
    (others.into(), known)
}

fn pool(
    checker: &mut Checker<'_, '_>,
    name: &str,
    pcpus: CpuMask,
    scheduler: &Field<String>,
    release: &Field<String>,
) -> (PoolSpec, bool) {
    let policy = policy(checker, scheduler);
    let some_policy = policy.unwrap_or(&policies()[0]);
    let usual = some_policy.default_generation();
    let found = match (policy, &release.0) {
        (Some(policy), Some(release)) => generation_of(checker, release, policy),
        _ => Some(usual),
    };
    let release = release.get().filter(|_| found.is_some()).map_or(usual.name, String::as_str);
    let known = policy.is_some() && found.is_some();
    let (policy, generation) = (some_policy, found.unwrap_or(usual));
    let (name, release) = (name.to_owned(), release.to_owned());
    (PoolSpec { name, pcpus, policy, release, generation, params: Params::new() }, known)
}

fn pool_pcpus(
    checker: &mut Checker<'_, '_>,
    field: &Field<CpuList>,
    pcpus: u32,
    others: &[PoolSpec],
) -> CpuMask {
    let Some(At { value, place }) = &field.0 else { return CpuMask::EMPTY };
    let all = CpuMask::first_n(pcpus);
    let mask = checker.cpus(value, place, pcpus, &all, POOL_0).unwrap_or(all);
    if let Some(other) = others.iter().find(|other| !other.pcpus.and(&mask).is_empty()) {
        let shared = CpuList::from(&other.pcpus.and(&mask));
        let problem = Problem::says(format!("pCPU {shared} is in pool `{}` already", other.name));
        checker.report.error(place, problem.found(value));
    }
    mask
}

fn generation_of(
    checker: &mut Checker<'_, '_>,
    At { value, place }: &At<String>,
    policy: &'static Policy,
) -> Option<&'static Generation> {
    let found = policy.generation(value);
    if found.is_none() {
        let names = policy.releases();
        let others: Vec<&str> =
            policies().iter().filter(|p| p.generation(value).is_some()).map(|p| p.name).collect();
        let hint = did_you_mean(value, names.iter().copied()).or_else(|| {
            (!others.is_empty()).then(|| format!("`{value}` is a generation of: {}", others.join(", ")))
        });
        let problem = Problem::not_allowed(format!("one of {} for `{}`", names.join(", "), policy.name));
        checker.report.error(place, problem.maybe_hint(hint));
    }
    found
}

fn constants(
    checker: &mut Checker<'_, '_>,
    raw: &RawHost,
    profile: &Profile,
    platform: &Platform,
) -> Constants {
    let mut constants = constants_of(profile, platform);
    for (name, cost) in raw.costs.get().into_iter().flat_map(|named| &named.0) {
        match CONSTANTS.iter().find(|constant| constant.name == name.value) {
            Some(constant) if !platform.has(constant) => {
                checker.report.error(&cost.place, Problem::not_allowed(ONLY_KVM));
            }
            Some(constant) => {
                let value = within(cost, constant.min..=constant.max, checker.report);
                value.into_iter().for_each(|value| constants.set(constant.name, value));
            }
            None => unknown_constant(name, checker.report),
        }
    }
    if let Some(At { place, .. }) = &raw.costs.0 {
        caches_fit(&constants, place, checker.report);
        clocks_fit(&constants, place, checker.report);
    }
    constants
}

/// A profile in a file of its own.
fn profile_file(checker: &mut Checker<'_, '_>, field: &Field<String>) -> Option<Profile> {
    let At { value, place } = field.0.as_ref().filter(|at| is_file(&at.value))?;
    let Some(folder) = checker.outside.folder else {
        let problem = Problem::says("a profile file can be named by a scenario file only");
        checker.report.error(place, problem.found(value));
        return None;
    };
    match read_profile(&folder.join(value)) {
        Ok(profile) => Some(profile),
        Err(problems) => {
            checker.report.errors_of_file(place, problems);
            None
        }
    }
}

/// The built-in profile that is named, if any.
fn built_in(checker: &mut Checker<'_, '_>, raw: &RawHost) -> Option<&'static Profile> {
    let at = raw.profile.0.as_ref()?;
    if at.value == CUSTOM {
        all_given(checker, raw, &at.place);
        return None;
    }
    let found = find_profile(&at.value);
    if found.is_none() && !is_file(&at.value) {
        let names = || profile_names().chain([CUSTOM]);
        let all = names().collect::<Vec<_>>().join(", ");
        let problem = Problem::not_allowed(format!("one of {all}, or a file (`*.toml`)"));
        checker.report.error(&at.place, problem.maybe_hint(did_you_mean(&at.value, names())));
    }
    found
}

/// Without a profile nothing has a default.
fn all_given(checker: &mut Checker<'_, '_>, raw: &RawHost, place: &Place) {
    let given = raw.costs.get().into_iter().flat_map(|named| &named.0);
    let given: Vec<&str> = given.map(|(name, _)| name.value.as_str()).collect();
    let required = CONSTANTS.iter().filter(|constant| constant.default.is_none());
    let missing = required.filter(|constant| !given.contains(&constant.name));
    let missing = missing.map(|constant| format!("host.costs.{}", constant.name));
    let pcpus = raw.pcpus.is_none().then(|| "host.pcpus".to_owned());
    for field in pcpus.into_iter().chain(missing) {
        let problem = Problem::says(format!("required with the profile `{CUSTOM}`, but not given"));
        checker.report.error(&Place { span: place.span.clone(), field }, problem);
    }
}

/// Whether a profile's name means a file.
fn is_file(name: &str) -> bool {
    name.ends_with(".toml")
}
