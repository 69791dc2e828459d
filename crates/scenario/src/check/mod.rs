//! From what a file says to a scenario that can run. Everything wrong is reported; nothing stops at the first.

use std::ops::RangeInclusive;
use std::path::Path;

use vcpulab_guest::IdleTick;
use vcpulab_host::{CpuMask, Params, Scope, Span};
use vcpulab_sched::{Generation, Policy, policies};

use crate::life::Lives;
use crate::limits::*;
use crate::params::Allowed;
use crate::problem::{Place, Problem, Report, did_you_mean};
use crate::profile::{CONSTANTS, CUSTOM, Constants, Profile, profiles};
use crate::profile_file::{caches_fit, unknown_constant};
use crate::raw::*;
use crate::read::{At, Field, Number, OneOrMany, ReadTable};
use crate::spec::*;
use crate::units::{CpuList, Duration, Size};

/// The domain that has number 0.
const DOM0: &str = "dom0";

/// The pool that every host has.
const POOL_0: &str = "Pool-0";

/// Defaults of what a file may leave out.
const DURATION_NS: Span = 10_000_000_000;
const WARMUP_NS: Span = 1_000_000_000;

pub(crate) struct Checker<'r, 't> {
    pub report: &'r mut Report<'t>,
    /// Where the files are that the scenario names; `None`: it may name none.
    folder: Option<&'r Path>,
}

/// Checks everything. If anything is wrong the report says so, and what is returned is of no use.
pub(crate) fn check(
    raw: &RawScenario,
    place: &Place,
    folder: Option<&Path>,
    report: &mut Report<'_>,
) -> Spec {
    let mut checker = Checker { report, folder };
    let run = raw.run.get().cloned().unwrap_or_default();
    let raw_host = raw.host.get().cloned().unwrap_or_default();
    let host = checker.host(&raw_host);
    let (pools, schedulers_known) = checker.pools(raw, &raw_host, &host, place);
    let mut spec = Spec {
        name: checker.name(&raw.name),
        seed: checker.int(&raw.seed, 1, 0..=i64::MAX).unwrap_or(1) as u64,
        duration_ns: checker.span(&run.duration, Some(DURATION_NS), 1..=SPAN_NS_MAX).unwrap_or(1),
        warmup_ns: checker.span(&run.warmup, Some(WARMUP_NS), 0..=SPAN_NS_MAX).unwrap_or(0),
        start_spread_ns: checker.span(&run.start_spread, Some(0), 0..=SPAN_NS_MAX).unwrap_or(0),
        replications: checker.int(&run.replications, 1, 1..=REPLICATIONS_MAX.into()).unwrap_or(1) as u32,
        sample_ns: 0,
        profiler_cycles: checker.profiler(&run),
        host,
        cards: Vec::new(),
        disks: Vec::new(),
        pools,
        domains: Vec::new(),
        clients: Vec::new(),
        client_machines: Vec::new(),
        actions: Vec::new(),
    };
    let mut raw_domains: Vec<_> = raw.domain.get().into_iter().flat_map(|named| &named.0).collect();
    if let Some(At { place, .. }) = &raw.domain.0 {
        checker.count(raw_domains.len(), 1, DOMAINS_MAX, "domains", place);
    }
    // Dom0 comes first on every host.
    raw_domains.sort_by_key(|(name, _)| name.value != DOM0);
    checker.domains(&mut spec, &raw_domains, place);
    checker.network(&mut spec, raw, &raw_domains, place);
    checker.disks(&mut spec, raw, &raw_domains, place);
    checker.all_apps(&mut spec, &raw_domains);
    checker.rows(&spec, &run, place);
    checker.count(
        Checker::tasks(&spec),
        0,
        TASKS_MAX,
        "tasks in all domains together",
        &place.member("domain"),
    );
    if schedulers_known {
        checker.all_params(&mut spec, raw, &raw_host, &raw_domains);
    } else {
        checker.no_params(raw, &raw_host, &raw_domains);
    }
    checker.client_machines(raw, &mut spec, place);
    checker.clients(raw, &mut spec, place);
    checker.served_files(&spec, &raw_domains);
    spec.sample_ns = checker.sample(&run, &spec);
    checker.actions(raw, &mut spec, &raw_domains, schedulers_known, place);
    crate::lint::lint(&spec, raw, &raw_domains, checker.report);
    spec
}

/// Simple values. Each gives the default when nothing is given, and nothing when what is given is wrong.
impl Checker<'_, '_> {
    pub(crate) fn int(
        &mut self,
        field: &Field<i64>,
        default: i64,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let Some(At { value, place }) = &field.0 else { return Some(default) };
        self.within(*value, &range, place, || format!("an integer from {} to {}", range.start(), range.end()))
    }

    /// Without a default, the reader has already reported that it is missing.
    pub(crate) fn span(
        &mut self,
        field: &Field<Duration>,
        default: Option<Span>,
        range: RangeInclusive<Span>,
    ) -> Option<Span> {
        let Some(At { value, place }) = &field.0 else { return default };
        let allowed =
            || format!("a time span from {} to {}", Duration(*range.start()), Duration(*range.end()));
        self.within(value.0, &range, place, allowed)
    }

    pub(crate) fn size(
        &mut self,
        field: &Field<Size>,
        default: i64,
        range: RangeInclusive<i64>,
    ) -> Option<i64> {
        let Some(At { value, place }) = &field.0 else { return Some(default) };
        let allowed = || format!("a size from {} to {}", Size(*range.start()), Size(*range.end()));
        self.within(value.0, &range, place, allowed)
    }

    pub(crate) fn rate(&mut self, field: &Field<Number>) -> Option<f64> {
        let At { value, place } = field.0.as_ref()?;
        let least = 1.0 / (SPAN_NS_MAX / 1_000_000_000) as f64;
        let allowed = || format!("a number above 0 (at least one a day) up to {RATE_PER_S_MAX} per second");
        self.within(value.0, &(least..=RATE_PER_S_MAX), place, allowed)
    }

    pub(crate) fn within<T: PartialOrd>(
        &mut self,
        value: T,
        range: &RangeInclusive<T>,
        place: &Place,
        allowed: impl FnOnce() -> String,
    ) -> Option<T> {
        if range.contains(&value) {
            return Some(value);
        }
        self.report.error(place, Problem::not_allowed(allowed()));
        None
    }

    pub(crate) fn count(
        &mut self,
        count: usize,
        least: usize,
        most: usize,
        what: &str,
        place: &Place,
    ) -> bool {
        let fits = (least..=most).contains(&count);
        if !fits {
            let problem = Problem::not_allowed(format!("{least} to {most} {what}"));
            self.report.error(place, problem.found(count));
        }
        fits
    }

    /// Results must fit into memory.
    fn rows(&mut self, spec: &Spec, run: &RawRun, place: &Place) {
        let vcpus: usize = spec.domains.iter().map(|domain| domain.affinity.len()).sum();
        let most = ROWS_MAX / vcpus.max(1);
        if spec.replications as usize > most {
            let place = run.replications.0.as_ref().map_or(place, |at| &at.place);
            let allowed = format!("at most {most} with {vcpus} vCPUs ({ROWS_MAX} rows of results)");
            self.report.error(place, Problem::not_allowed(allowed));
        }
    }

    fn name(&mut self, field: &Field<String>) -> String {
        let Some(At { value, place }) = &field.0 else { return "unnamed".into() };
        if value.chars().count() > NAME_CHARS_MAX || value.chars().any(char::is_control) {
            let allowed = format!("at most {NAME_CHARS_MAX} characters, none of them a control character");
            self.report.error(place, Problem::not_allowed(allowed));
        }
        value.clone()
    }

    /// The name of a domain or client: it becomes part of paths, columns and legends.
    pub(crate) fn identifier(&mut self, name: &At<String>) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.value.is_empty()
            || name.value.chars().count() > NAME_CHARS_MAX
            || !name.value.chars().all(plain)
        {
            let allowed = format!("1 to {NAME_CHARS_MAX} letters, digits, `_`, `-` and `.`");
            self.report.error(&name.place, Problem::not_allowed(allowed));
        }
    }

    /// One of these things, by its name.
    pub(crate) fn choice<'a, T>(
        &mut self,
        field: &Field<String>,
        all: &'a [T],
        name: fn(&T) -> &str,
    ) -> Option<&'a T> {
        let At { value, place } = field.0.as_ref()?;
        let found = all.iter().find(|thing| name(thing) == value);
        if found.is_none() {
            let names: Vec<&str> = all.iter().map(name).collect();
            let problem = Problem::not_allowed(format!("one of {}", names.join(", ")));
            self.report.error(place, problem.maybe_hint(did_you_mean(value, names)));
        }
        found
    }

    /// A CPU pool that is referred to, as an index.
    fn pool_named(&mut self, field: &Field<String>, pools: &[PoolSpec]) -> Option<usize> {
        self.choice(field, pools, |pool| &pool.name)
            .and_then(|found| pools.iter().position(|pool| pool.name == found.name))
    }

    /// A domain that is referred to, as an index.
    pub(crate) fn domain(&mut self, field: &Field<String>, domains: &[DomainSpec]) -> Option<usize> {
        let At { value, place } = field.0.as_ref()?;
        let found = domains.iter().position(|domain| domain.name == *value);
        if found.is_none() {
            self.report.error_with(place, || {
                let names = || domains.iter().map(|domain| domain.name.as_str());
                let hint = did_you_mean(value, names()).unwrap_or_else(|| {
                    const SHOWN: usize = 10;
                    let more = if domains.len() > SHOWN { ", ..." } else { "" };
                    format!("domains: {}{more}", names().take(SHOWN).collect::<Vec<_>>().join(", "))
                });
                Problem::says(format!("there is no domain `{value}`")).found(value).hint(hint)
            });
        }
        found
    }
}

/// The machine.
impl Checker<'_, '_> {
    fn host(&mut self, raw: &RawHost) -> HostSpec {
        let own = self.profile_file(&raw.profile);
        let profile = own.as_ref().unwrap_or_else(|| self.built_in(raw).unwrap_or(&profiles()[0]));
        let custom = own.is_some() || raw.profile.get().is_some_and(|name| name == CUSTOM);
        let pcpus =
            self.int(&raw.pcpus, profile.pcpus.value, 1..=PCPUS_MAX.into()).unwrap_or(PCPUS_MAX.into());
        let per_socket = self.int(&raw.pcpus_per_socket, pcpus, 1..=pcpus).unwrap_or(pcpus);
        HostSpec {
            profile: if custom { CUSTOM } else { &profile.name }.to_owned(),
            constants: self.constants(raw, profile),
            pcpus: pcpus as u32,
            pcpus_per_socket: per_socket as u32,
            drivers: self.drivers(raw),
        }
    }

    /// The pools without their schedulers' parameters, and whether all schedulers are known.
    fn pools(
        &mut self,
        raw: &RawScenario,
        raw_host: &RawHost,
        host: &HostSpec,
        place: &Place,
    ) -> (Vec<PoolSpec>, bool) {
        let raw_pools = raw_pools(raw);
        self.count(
            raw_pools.len(),
            0,
            host.pcpus as usize - 1,
            "pools besides Pool-0",
            &place.member("pool"),
        );
        let (mut first, mut known) =
            self.pool(POOL_0, CpuMask::first_n(host.pcpus), &raw_host.scheduler, &raw_host.generation);
        let mut others: Vec<PoolSpec> = Vec::new();
        for (name, At { value: raw, .. }) in raw_pools.iter().take(host.pcpus as usize) {
            self.identifier(name);
            if name.value == POOL_0 {
                let hint = "its scheduler stands in [host], and it has all pCPUs that no other pool has";
                self.report.error(&name.place, Problem::says("`Pool-0` is there already").hint(hint));
            }
            let mask = self.pool_pcpus(&raw.pcpus, host.pcpus, &others);
            let (pool, its_known) = self.pool(&name.value, mask, &raw.scheduler, &raw.generation);
            first.pcpus = first.pcpus.without(&mask);
            others.push(pool);
            known &= its_known;
        }
        if first.pcpus.is_empty() {
            let problem = Problem::says("no pCPU is left for `Pool-0`, which every host has");
            self.report.error(&place.member("pool"), problem.found("all pCPUs in other pools"));
        }
        others.insert(0, first);
        (others, known)
    }

    fn pool(
        &mut self,
        name: &str,
        pcpus: CpuMask,
        scheduler: &Field<String>,
        generation: &Field<String>,
    ) -> (PoolSpec, bool) {
        let policy = self.choice(scheduler, policies(), |policy| policy.name);
        let some_policy = policy.unwrap_or(&policies()[0]);
        let newest = some_policy.default_generation();
        let found = match (policy, generation.is_none()) {
            (Some(policy), false) => self.generation(generation, policy),
            _ => Some(newest),
        };
        let known = policy.is_some() && found.is_some();
        let (policy, generation) = (some_policy, found.unwrap_or(newest));
        (PoolSpec { name: name.to_owned(), pcpus, policy, generation, params: Params::new() }, known)
    }

    fn pool_pcpus(&mut self, field: &Field<CpuList>, pcpus: u32, others: &[PoolSpec]) -> CpuMask {
        let Some(At { value, place }) = &field.0 else { return CpuMask::EMPTY };
        let all = CpuMask::first_n(pcpus);
        let mask = self.cpus(value, place, pcpus, &all, POOL_0).unwrap_or(all);
        if let Some(other) = others.iter().find(|other| !other.pcpus.and(&mask).is_empty()) {
            let shared = CpuList::from(&other.pcpus.and(&mask));
            let problem = Problem::says(format!("pCPU {shared} is in pool `{}` already", other.name));
            self.report.error(place, problem.found(value));
        }
        mask
    }

    fn generation(&mut self, field: &Field<String>, policy: &'static Policy) -> Option<&'static Generation> {
        let At { value, place } = field.0.as_ref()?;
        let found = policy.generation(value);
        if found.is_none() {
            let names: Vec<&str> = policy.generations.iter().map(|generation| generation.name).collect();
            let others: Vec<&str> =
                policies().iter().filter(|p| p.generation(value).is_some()).map(|p| p.name).collect();
            let hint = did_you_mean(value, names.iter().copied()).or_else(|| {
                (!others.is_empty()).then(|| format!("`{value}` is a generation of: {}", others.join(", ")))
            });
            let problem = Problem::not_allowed(format!("one of {} for `{}`", names.join(", "), policy.name));
            self.report.error(place, problem.maybe_hint(hint));
        }
        found
    }

    fn constants(&mut self, raw: &RawHost, profile: &Profile) -> Constants {
        let mut constants = profile.values();
        for (name, At { value, place }) in raw.costs.get().into_iter().flat_map(|named| &named.0) {
            match CONSTANTS.iter().find(|constant| constant.name == name.value) {
                Some(constant) if (constant.min..=constant.max).contains(value) => {
                    constants.set(constant.name, *value);
                }
                Some(constant) => {
                    let allowed = format!("an integer from {} to {}", constant.min, constant.max);
                    self.report.error(place, Problem::not_allowed(allowed));
                }
                None => unknown_constant(name, self.report),
            }
        }
        if let Some(At { place, .. }) = &raw.costs.0 {
            caches_fit(&constants, place, self.report);
        }
        constants
    }

    /// A profile in a file of its own.
    fn profile_file(&mut self, field: &Field<String>) -> Option<Profile> {
        let At { value, place } = field.0.as_ref().filter(|at| is_file(&at.value))?;
        let Some(folder) = self.folder else {
            let problem = Problem::says("a profile file can be named by a scenario file only");
            self.report.error(place, problem.found(value));
            return None;
        };
        match Profile::read(&folder.join(value)) {
            Ok(profile) => Some(profile),
            Err(problems) => {
                self.report.errors_of_file(place, problems);
                None
            }
        }
    }

    /// The built-in profile that is named, if any.
    fn built_in(&mut self, raw: &RawHost) -> Option<&'static Profile> {
        let at = raw.profile.0.as_ref()?;
        if at.value == CUSTOM {
            self.all_given(raw, &at.place);
            return None;
        }
        let found = Profile::find(&at.value);
        if found.is_none() && !is_file(&at.value) {
            let names = || profiles().iter().map(|profile| profile.name.as_str()).chain([CUSTOM]);
            let all = names().collect::<Vec<_>>().join(", ");
            let problem = Problem::not_allowed(format!("one of {all}, or a file (`*.toml`)"));
            self.report.error(&at.place, problem.maybe_hint(did_you_mean(&at.value, names())));
        }
        found
    }

    /// Without a profile nothing has a default.
    fn all_given(&mut self, raw: &RawHost, place: &Place) {
        let given = raw.costs.get().into_iter().flat_map(|named| &named.0);
        let given: Vec<&str> = given.map(|(name, _)| name.value.as_str()).collect();
        let missing = CONSTANTS.iter().filter(|constant| !given.contains(&constant.name));
        let missing = missing.map(|constant| format!("host.costs.{}", constant.name));
        let pcpus = raw.pcpus.is_none().then(|| "host.pcpus".to_owned());
        for field in pcpus.into_iter().chain(missing) {
            let problem = Problem::says(format!("required with the profile `{CUSTOM}`, but not given"));
            self.report.error(&Place { span: place.span.clone(), field }, problem);
        }
    }
}

/// Does a profile's name mean a file?
fn is_file(name: &str) -> bool {
    name.ends_with(".toml")
}

fn raw_pools(raw: &RawScenario) -> &[(At<String>, At<RawPool>)] {
    raw.pool.get().map_or(&[][..], |named| &named.0)
}

pub(crate) type NamedDomain = (At<String>, At<RawDomain>);

/// The domains.
impl Checker<'_, '_> {
    fn domains(&mut self, spec: &mut Spec, raw_domains: &[&NamedDomain], place: &Place) {
        let mut vcpus = 0;
        let has_dom0 = raw_domains.first().is_some_and(|(name, _)| name.value == DOM0);
        for (index, (name, raw)) in raw_domains.iter().enumerate().take(DOMAINS_MAX) {
            self.identifier(name);
            let number = index as i64 + i64::from(!has_dom0);
            let domain = self.domain_alone(name, &raw.value, number, spec);
            vcpus += domain.affinity.len();
            if vcpus > VCPUS_MAX as usize {
                let problem =
                    Problem::not_allowed(format!("at most {VCPUS_MAX} vCPUs in all domains together"));
                self.report.error(&place.member("domain"), problem.found(format!("{vcpus} or more vCPUs")));
                break;
            }
            spec.domains.push(domain);
        }
    }

    /// A domain without what refers to other domains.
    fn domain_alone(&mut self, name: &At<String>, raw: &RawDomain, number: i64, spec: &Spec) -> DomainSpec {
        let host = &spec.host;
        let pool = match raw.pool.is_none() {
            true => 0,
            false => self.pool_named(&raw.pool, &spec.pools).unwrap_or(0),
        };
        let vcpus = self.int(&raw.vcpus, 1, 1..=DOMAIN_VCPUS_MAX.into());
        let driver_domain = raw.driver_domain.get().copied().unwrap_or(false);
        let usual = match driver_domain {
            true => host.constants.driver_working_set_bytes,
            false => host.constants.guest_working_set_bytes,
        };
        let page_cache =
            self.size(&raw.page_cache, host.constants.page_cache_bytes, 0..=1 << 50).unwrap_or(0);
        DomainSpec {
            name: name.value.clone(),
            number,
            params: Params::new(),
            pool,
            start_ns: self.span(&raw.start, Some(0), 0..=2 * SPAN_NS_MAX).unwrap_or(0),
            affinity: self.affinity(&raw.affinity, vcpus.unwrap_or(1) as usize, vcpus.is_some(), spec, pool),
            driver_domain,
            forwarding: self.forwarding(&raw.forwarding),
            working_set_bytes: self.size(&raw.working_set, usual, 0..=1 << 40).unwrap_or(0) as u64,
            nic: None,
            disk: None,
            page_cache_bytes: page_cache as u64,
            memory_bytes: self.size(&raw.memory, 2 * page_cache, 0..=1 << 51).unwrap_or(0) as u64,
            idle_tick: self.idle_tick(raw),
            shutdown_ns: self
                .span(&raw.shutdown, Some(host.constants.shutdown_ns), 0..=SPAN_NS_MAX)
                .unwrap_or(0),
            on_crash: self.on_crash(&raw.on_crash),
            apps: Vec::new(),
        }
    }

    fn idle_tick(&mut self, raw: &RawDomain) -> Option<IdleTick> {
        let (period, cpu) = (&raw.idle_tick, &raw.idle_tick_cpu);
        if let (Some(At { place, .. }), None) | (None, Some(At { place, .. })) = (&period.0, &cpu.0) {
            self.report.error(place, Problem::says("`idle_tick` and `idle_tick_cpu` belong together"));
        }
        let allowed = 1..=SPAN_NS_MAX;
        Some(IdleTick {
            period_ns: self.span(period, None, allowed.clone())?,
            cpu_ns: self.span(cpu, None, allowed)?,
        })
    }

    fn affinity(
        &mut self,
        field: &Field<OneOrMany<CpuList>>,
        vcpus: usize,
        vcpus_known: bool,
        spec: &Spec,
        pool: usize,
    ) -> Vec<Option<CpuMask>> {
        let pool = &spec.pools[pool];
        let mut cpus =
            |list: &CpuList, place: &Place| self.cpus(list, place, spec.host.pcpus, &pool.pcpus, &pool.name);
        match &field.0 {
            None => vec![None; vcpus],
            Some(At { value: OneOrMany::One(list), place }) => vec![cpus(list, place); vcpus],
            Some(At { value: OneOrMany::Many(lists), place }) => {
                let mut masks: Vec<_> = lists.iter().map(|list| cpus(&list.value, &list.place)).collect();
                masks.resize(vcpus, None);
                if lists.len() != vcpus && vcpus_known {
                    let allowed = format!("one set for all vCPUs, or a list of {vcpus}, one for each");
                    let found = format!("a list of {}", lists.len());
                    self.report.error(place, Problem::not_allowed(allowed).found(found));
                }
                masks
            }
        }
    }

    /// What is left of a set in this pool, `None` if that is everything.
    fn cpus(
        &mut self,
        list: &CpuList,
        place: &Place,
        pcpus: u32,
        pool: &CpuMask,
        pool_name: &str,
    ) -> Option<CpuMask> {
        let mask = list.on_host(pcpus).and(pool);
        let host_has = match pcpus {
            _ if pool.len() < pcpus => format!("pool `{pool_name}` has pCPUs {}", CpuList::from(pool)),
            1 => "the host has one pCPU, 0".to_owned(),
            _ => format!("the host has pCPUs 0 to {}", pcpus - 1),
        };
        if mask.is_empty() {
            let problem =
                Problem::says(format!("found `{list}`, which leaves no pCPU to run on; {host_has}"));
            self.report.error(place, problem.found(list));
        } else if list.highest().is_some_and(|highest| highest >= pcpus) {
            let problem = Problem::says(format!("`{list}` names pCPUs that are not there; {host_has}"));
            self.report.warning(place, problem.found(list));
        }
        (mask != *pool).then_some(mask)
    }
}

/// The scheduler's parameters.
impl Checker<'_, '_> {
    fn all_params(
        &mut self,
        spec: &mut Spec,
        raw: &RawScenario,
        raw_host: &RawHost,
        raw_domains: &[&NamedDomain],
    ) {
        let others = raw_pools(raw).iter().map(|(_, raw)| (&raw.value.params, RawPool::FIELDS));
        let all = std::iter::once((&raw_host.params, RawHost::FIELDS)).chain(others);
        let global = |(index, (params, fields))| {
            self.params(params, &allowed(spec, index, Scope::Global, fields, None))
        };
        let global: Vec<Params> = all.enumerate().take(spec.pools.len()).map(global).collect();
        let of_domain = |(index, (_, raw)): (usize, &&NamedDomain)| {
            let pool = spec.domains[index].pool;
            self.params(&raw.value.params, &allowed_for(spec, RawDomain::FIELDS, index, pool))
        };
        let params: Vec<Params> =
            raw_domains.iter().enumerate().take(spec.domains.len()).map(of_domain).collect();
        for (pool, params) in spec.pools.iter_mut().zip(global) {
            pool.params = params;
        }
        for (domain, params) in spec.domains.iter_mut().zip(params) {
            domain.params = params;
        }
    }
}

/// Of an unknown scheduler nothing can be said but what no scheduler has.
impl Checker<'_, '_> {
    fn no_params(&mut self, raw: &RawScenario, raw_host: &RawHost, raw_domains: &[&NamedDomain]) {
        self.names_only(&raw_host.params, RawHost::FIELDS);
        for (_, raw) in raw_pools(raw) {
            self.names_only(&raw.value.params, RawPool::FIELDS);
        }
        for (_, raw) in raw_domains {
            self.names_only(&raw.value.params, RawDomain::FIELDS);
        }
    }
}

fn allowed<'s>(
    spec: &'s Spec,
    pool: usize,
    scope: Scope,
    fields: &'static [&'static str],
    vcpus: Option<usize>,
) -> Allowed<'s> {
    Allowed { pool: &spec.pools[pool], scope, fields, vcpus, domains: &spec.domains }
}

fn allowed_for<'s>(
    spec: &'s Spec,
    fields: &'static [&'static str],
    domain: usize,
    pool: usize,
) -> Allowed<'s> {
    allowed(spec, pool, Scope::Domain, fields, Some(spec.domains[domain].affinity.len()))
}

/// What surrounds the host, and what is done to it.
impl Checker<'_, '_> {
    /// Looked at in the order of time: what is allowed depends on the pools that domains have moved to, and on who is there.
    fn actions(
        &mut self,
        raw: &RawScenario,
        spec: &mut Spec,
        raw_domains: &[&NamedDomain],
        schedulers_known: bool,
        place: &Place,
    ) {
        let actions = raw.action.get().map_or(&[][..], |actions| actions);
        self.count(actions.len(), 0, ACTIONS_MAX, "actions", &place.member("action"));
        let when = |action: &At<RawAction>| self.span(action.value.at(), None, 0..=2 * SPAN_NS_MAX);
        let times: Vec<Option<Span>> = actions.iter().take(ACTIONS_MAX).map(when).collect();
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by_key(|&index| times[index]);
        let mut pools: Vec<usize> = spec.domains.iter().map(|domain| domain.pool).collect();
        let mut checked: Vec<Option<ActionSpec>> = vec![None; times.len()];
        let mut lives = Lives::new(&spec.domains, raw_domains, &spec.host.constants);
        for index in order {
            let At { value, place } = &actions[index];
            let change = self.change(value, spec, schedulers_known, &pools);
            checked[index] = times[index].zip(change).map(|(at, change)| ActionSpec { at, change });
            let Some(action) = &checked[index] else { continue };
            lives.begin_until(action.at, self.report);
            lives.act(action, place, self.report);
            if let Some((domain, pool)) = action.change.moves(&spec.domains) {
                pools[domain] = pool;
            }
        }
        lives.begin_until(Span::MAX, self.report);
        spec.actions = checked.into_iter().flatten().collect();
    }

    fn change(&mut self, raw: &RawAction, spec: &Spec, known: bool, pools: &[usize]) -> Option<Change> {
        match raw {
            RawAction::Adjust(raw) => {
                let domain = self.domain(&raw.domain, &spec.domains)?;
                let allowed = allowed_for(spec, RawAdjust::FIELDS, domain, pools[domain]);
                known.then(|| Change::Adjust(domain, self.params(&raw.params, &allowed)))
            }
            RawAction::AdjustGlobal(raw) => {
                let pool = match raw.pool.is_none() {
                    true => 0,
                    false => self.pool_named(&raw.pool, &spec.pools)?,
                };
                let allowed = allowed(spec, pool, Scope::Global, RawAdjustGlobal::FIELDS, None);
                known.then(|| Change::AdjustGlobal(pool, self.params(&raw.params, &allowed)))
            }
            RawAction::Pause(raw) => self.domain(&raw.domain, &spec.domains).map(Change::Pause),
            RawAction::Unpause(raw) => self.domain(&raw.domain, &spec.domains).map(Change::Unpause),
            RawAction::Affinity(raw) => self.new_affinity(raw, spec, pools),
            RawAction::MovePool(raw) => {
                let domain = self.domain(&raw.domain, &spec.domains);
                let pool = self.pool_named(&raw.pool, &spec.pools);
                Some(Change::MovePool(domain?, pool?))
            }
            RawAction::Create(raw) => self.life(raw, spec, LifeChange::Create),
            RawAction::Shutdown(raw) => self.life(raw, spec, LifeChange::Shutdown),
            RawAction::Reboot(raw) => self.life(raw, spec, LifeChange::Reboot),
            RawAction::Crash(raw) => self.life(raw, spec, LifeChange::Crash),
            RawAction::Destroy(raw) => self.life(raw, spec, LifeChange::Destroy),
            RawAction::Save(raw) => self.life(raw, spec, LifeChange::Save),
            RawAction::Restore(raw) => self.life(raw, spec, LifeChange::Restore),
            RawAction::Plug(raw) => self.plug(raw, spec, true),
            RawAction::Unplug(raw) => self.plug(raw, spec, false),
        }
    }

    fn life(&mut self, raw: &RawLife, spec: &Spec, change: LifeChange) -> Option<Change> {
        self.domain(&raw.domain, &spec.domains).map(|domain| Change::Life(domain, change))
    }

    fn plug(&mut self, raw: &RawPlug, spec: &Spec, on: bool) -> Option<Change> {
        let domain = self.domain(&raw.domain, &spec.domains)?;
        let DomainSpec { name, affinity, .. } = &spec.domains[domain];
        let At { value, place } = raw.vcpu.0.as_ref()?;
        if affinity.len() == 1 {
            let problem = Problem::says(format!("domain `{name}` has one vCPU, which is always on line"));
            self.report.error(place, problem.found(value));
            return None;
        }
        let vcpu = self.within(*value, &(1..=affinity.len() as i64 - 1), place, || {
            format!("an integer from 1 to {} (vCPU 0 is always on line)", affinity.len() - 1)
        })?;
        Some(Change::Plug(domain, vcpu as u32, on))
    }

    fn new_affinity(&mut self, raw: &RawAffinity, spec: &Spec, pools: &[usize]) -> Option<Change> {
        let domain = self.domain(&raw.domain, &spec.domains)?;
        let pool = &spec.pools[pools[domain]];
        let mask = raw.affinity.0.as_ref().map(|At { value, place }| {
            self.cpus(value, place, spec.host.pcpus, &pool.pcpus, &pool.name).unwrap_or(pool.pcpus)
        });
        let last = spec.domains[domain].affinity.len() as i64 - 1;
        let vcpu = match raw.vcpu.is_none() {
            true => None,
            false => Some(self.int(&raw.vcpu, 0, 0..=last)? as u32),
        };
        Some(Change::Affinity(domain, vcpu, mask?))
    }
}
