//! Scheduler parameters: checked against the registry's tables, which also say to which scheduler an unknown one belongs.

use vcpulab_host::{DomId, ParamValue, Params, PoolId, Scope, Table, TimetableEntry};
use vcpulab_sched::{ParamKind, ParamSpec, Role, policies};
use vcpulab_spec::{Cgroups, DomainSpec, PoolSpec, Spec};

use crate::check::fields::Checker;
use crate::check::kvm::weight_fits;
use crate::check::refusals::{self, Units};
use crate::file::raw::{NamedDomain, RawDomain, RawHost, RawPool, RawScenario, raw_pools};
use crate::text::params::{RawParam, RawParams, RawSlot};
use crate::text::problem::{Problem, did_you_mean};
use crate::text::read::{At, ReadTable as _};

/// The parameters of all schedulers and domains.
pub(crate) fn check(
    checker: &mut Checker<'_, '_>,
    spec: &mut Spec,
    raw: &RawScenario,
    raw_host: &RawHost,
    raw_domains: &[&NamedDomain],
) {
    let others = raw_pools(raw).iter().map(|(_, raw)| (&raw.value.params, RawPool::FIELDS));
    let all = std::iter::once((&raw_host.params, RawHost::FIELDS)).chain(others);
    let global =
        |(pool, (given, fields))| params(checker, given, &allowed(spec, pool, Scope::Global, fields, None));
    let global: Vec<Params> = spec.pools.ids().zip(all).map(global).collect();
    let of_domain = |(domain, (_, raw)): (DomId, &&NamedDomain)| {
        let pool = spec.domains[domain].pool;
        params(checker, &raw.value.params, &allowed_for(spec, RawDomain::FIELDS, domain, pool))
    };
    let params: Vec<Params> = spec.domains.ids().zip(raw_domains).map(of_domain).collect();
    let units = Units::on(spec, checker.report);
    let raw_global =
        std::iter::once(&raw_host.params).chain(raw_pools(raw).iter().map(|(_, raw)| &raw.value.params));
    for ((pool, params), raw) in spec.pools.iter_mut().zip(global).zip(raw_global) {
        pool.params = refusals::new(checker, pool, Scope::Global, 0, params, raw);
    }
    for ((domain, params), (_, raw)) in spec.domains.ids().zip(params).zip(raw_domains) {
        let pool = &spec.pools[spec.domains[domain].pool];
        let units = units.of(spec, domain);
        let params = refusals::new(checker, pool, Scope::Domain, units, params, &raw.value.params);
        spec.domains[domain].params = params;
    }
}

/// The parameters of unknown schedulers: are they of any?
pub(crate) fn check_names(
    checker: &mut Checker<'_, '_>,
    raw: &RawScenario,
    raw_host: &RawHost,
    raw_domains: &[&NamedDomain],
) {
    names_only(checker, &raw_host.params, RawHost::FIELDS);
    for (_, raw) in raw_pools(raw) {
        names_only(checker, &raw.value.params, RawPool::FIELDS);
    }
    for (_, raw) in raw_domains {
        names_only(checker, &raw.value.params, RawDomain::FIELDS);
    }
}

pub(crate) fn allowed<'s>(
    spec: &'s Spec,
    pool: PoolId,
    scope: Scope,
    fields: &'static [&'static str],
    vcpus: Option<u32>,
) -> Allowed<'s> {
    let cgroups = spec.host.platform.kvm().map(|kvm| kvm.version);
    Allowed { pool: &spec.pools[pool], scope, fields, vcpus, cgroups, domains: &spec.domains }
}

pub(crate) fn allowed_for<'s>(
    spec: &'s Spec,
    fields: &'static [&'static str],
    domain: DomId,
    pool: PoolId,
) -> Allowed<'s> {
    allowed(spec, pool, Scope::Domain, fields, Some(spec.domains[domain].vcpus()))
}

/// The parameters and other fields that may be in one table.
pub(crate) struct Allowed<'a> {
    pub pool: &'a PoolSpec,
    pub scope: Scope,
    /// The table's own fields, for suggestions.
    pub fields: &'static [&'static str],
    /// Number of vCPUs of the domain they are for.
    pub vcpus: Option<u32>,
    /// The version of the host's control groups, if it has some.
    pub cgroups: Option<Cgroups>,
    /// All domains, for timetables.
    pub domains: &'a Table<DomId, DomainSpec>,
}

impl Allowed<'_> {
    fn specs(&self) -> impl Iterator<Item = &'static ParamSpec> + use<> {
        let scope = self.scope;
        self.pool.generation.params.iter().filter(move |spec| spec.scope == scope)
    }

    /// The problem of a parameter name that does not exist in this place.
    fn stranger(&self, name: &str) -> Problem {
        let PoolSpec { policy, generation, .. } = self.pool;
        let here: Vec<&str> = self.specs().map(|spec| spec.name).collect();
        let has = match (self.scope, here.join(", ")) {
            (Scope::Domain, list) if list.is_empty() => "takes no parameters for a domain".to_owned(),
            (Scope::Global, list) if list.is_empty() => "takes no global parameters".to_owned(),
            (_, list) => format!("takes here: {list}"),
        };
        let has = format!("`{}` ({}) {has}", policy.name, generation.name);
        if generation.params.iter().any(|spec| spec.name == name) {
            let (what, place) = match self.scope {
                Scope::Domain => ("the whole scheduler", "[host] or an `adjust-global` action"),
                Scope::Global => ("a domain", "[domain.NAME] or an `adjust` action"),
            };
            return Problem::says(format!("`{name}` is a parameter of {what}"))
                .hint(format!("set it in {place}"));
        }
        let owners = policies().iter().flat_map(|policy| policy.generations.iter().map(move |g| (policy, g)));
        let owners: Vec<_> = owners.filter(|(_, g)| g.params.iter().any(|spec| spec.name == name)).collect();
        if owners.is_empty() {
            let known = here.iter().chain(self.fields).copied();
            let hint = did_you_mean(name, known).unwrap_or_else(|| match self.fields {
                [] => has,
                fields => format!("known here: {}; {has}", fields.join(", ")),
            });
            return Problem::says("unknown field").found(name).hint(hint);
        }
        let own: Vec<&str> =
            owners.iter().filter(|(p, _)| p.name == policy.name).map(|(_, g)| g.name).collect();
        if own.is_empty() {
            let mut whose: Vec<String> = owners.iter().map(|(p, _)| format!("`{}`", p.name)).collect();
            whose.dedup();
            let s = if whose.len() == 1 { "" } else { "s" };
            Problem::says(format!(
                "`{name}` is a parameter of scheduler{s} {}, not of `{}`",
                whose.join(", "),
                policy.name
            ))
        } else {
            let message = format!(
                "`{name}` is a parameter of `{}` in generation {}, not in {}",
                policy.name,
                own.join(", "),
                generation.name
            );
            Problem::says(message)
        }
        .found(name)
        .hint(has)
    }
}

/// Without knowing the scheduler: is each of these a parameter of any?
fn names_only(checker: &mut Checker<'_, '_>, given: &RawParams, fields: &'static [&'static str]) {
    let all = policies().iter().flat_map(|policy| policy.generations).flat_map(|g| g.params);
    for (name, _) in &given.0 {
        if !all.clone().any(|spec| spec.name == name.value) {
            checker.report.error_with(&name.place, || {
                let known = fields.iter().copied().chain(all.clone().map(|spec| spec.name));
                let hint = did_you_mean(&name.value, known);
                let hint = hint.unwrap_or_else(|| format!("known here: {}", fields.join(", ")));
                Problem::says("unknown field").found(&name.value).hint(hint)
            });
        }
    }
}

/// The scheduler's parameters given in one table.
pub(crate) fn params(checker: &mut Checker<'_, '_>, given: &RawParams, allowed: &Allowed<'_>) -> Params {
    let mut params = Params::new();
    for (name, raw) in &given.0 {
        match allowed.specs().find(|spec| spec.name == name.value) {
            Some(spec) => {
                if let Some(value) = param(checker, raw, spec, allowed) {
                    params.set(spec.name, value);
                }
            }
            None => checker.report.error_with(&name.place, || allowed.stranger(&name.value)),
        }
    }
    params
}

fn param(
    checker: &mut Checker<'_, '_>,
    raw: &At<RawParam>,
    spec: &ParamSpec,
    allowed: &Allowed<'_>,
) -> Option<ParamValue> {
    let mut hint = None;
    let value = match (&raw.value, spec.kind) {
        (RawParam::Int(value), ParamKind::Int { .. } | ParamKind::Flag) => Some(ParamValue::Int(*value)),
        (RawParam::Flag(value), ParamKind::Flag) => Some(ParamValue::Int((*value).into())),
        (RawParam::Word(word), ParamKind::Choice(words)) => {
            hint = did_you_mean(word, words.iter().copied());
            words.iter().position(|w| w == word).map(|index| ParamValue::Int(index as i64))
        }
        (RawParam::Timetable(slots), ParamKind::Timetable(most)) if (1..=most).contains(&slots.len()) => {
            return timetable(checker, slots, allowed.domains);
        }
        _ => None,
    };
    if let (Some(version), Role::GroupWeight, Some(ParamValue::Int(weight))) =
        (allowed.cgroups, spec.role, &value)
        && !weight_fits(checker, *weight, &raw.place, version)
    {
        return None;
    }
    let Some(value) = value.filter(|value| spec.allows(value)) else {
        let unit = if spec.unit.is_empty() { String::new() } else { format!(" ({})", spec.unit) };
        let problem = Problem::not_allowed(spec.kind.allowed() + &unit);
        let problem = match raw.value {
            RawParam::Timetable(_) => problem.found("a list"),
            _ => problem,
        };
        checker.report.error(&raw.place, problem.maybe_hint(hint));
        return None;
    };
    if let (Role::CapPercent, Some(vcpus), ParamValue::Int(percent)) = (spec.role, allowed.vcpus, &value) {
        let most = 100 * i64::from(vcpus);
        if *percent > most {
            let s = if vcpus == 1 { "" } else { "s" };
            let problem = Problem::not_allowed(format!("at most {most} ({vcpus} vCPU{s} of 100 % each)"));
            checker.report.error(&raw.place, problem);
            return None;
        }
    }
    Some(value)
}

fn timetable(
    checker: &mut Checker<'_, '_>,
    slots: &[At<RawSlot>],
    domains: &Table<DomId, DomainSpec>,
) -> Option<ParamValue> {
    let entry = |slot: &At<RawSlot>| {
        let domain = checker.domain(&slot.value.domain, domains)?;
        let vcpu = slot.value.vcpu(domains[domain].vcpus() - 1, checker.report);
        let runtime = slot.value.runtime(checker.report)?;
        Some(TimetableEntry { domain: domains[domain].number, vcpu: vcpu.into(), runtime })
    };
    // Every slot is looked at before any is found missing.
    let entries: Vec<Option<TimetableEntry>> = slots.iter().map(entry).collect();
    entries.into_iter().collect::<Option<_>>().map(ParamValue::Timetable)
}
