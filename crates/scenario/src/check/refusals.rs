//! Parameters that a scheduler would refuse, by the rule of its policy, and those that make it act without end.

use vcpulab_host::{DomId, Granularity, HostConfig, ParamValue, Params, PoolId, Scope, Span, Table};
use vcpulab_sched::{ParamKind, ParamSpec, Proposal, Refusal, check, shortest_interval};
use vcpulab_spec::{ActionSpec, Change, HostSpec, PoolSpec, Spec};

use crate::check::fields::Checker;
use crate::text::params::RawParams;
use crate::text::problem::{Place, Problem, Report};
use crate::text::units::Duration;

/// The least interval of repeated events: shorter ones make runs slow, with more than a hundred thousand events a second.
pub(crate) const HASTY: Span = Span::from_us(10);

/// Checks the parameters of a new scheduler, or of a new domain, each of which is among the values that it takes. The answer is
/// those that the scheduler is to be given.
pub(crate) fn new(
    checker: &mut Checker<'_, '_>,
    pool: &PoolSpec,
    scope: Scope,
    units: u32,
    given: Params,
    raw: &RawParams,
) -> Params {
    // A scheduler is given nothing where nothing is given here, and what is given wrongly has been reported.
    if given.is_empty() || given.iter().count() != raw.0.len() {
        return given;
    }
    let proposal = Proposal { scope, given: &given, present: None, units };
    if let Some(refusal) = refused(pool, &proposal) {
        if are_defaults(pool, &given) {
            // They are in force anyway.
            return Params::new();
        }
        if let Some(place) = place_of(raw, &refusal.params) {
            checker.report.error(place, problem(pool, &refusal, &proposal));
        }
        return given;
    }
    let shortest = shortest_interval(pool.policy.name, pool.generation.name, scope, &given);
    if let Some((param, Span::ZERO)) = shortest
        && let Some(place) = place_of(raw, &[param.to_owned()])
    {
        let allowed =
            format!("a larger value: `{}` would act again and again at one instant", pool.policy.name);
        checker.report.error(place, Problem::not_allowed(allowed));
    }
    given
}

/// Whether all given values are those of a new domain or scheduler.
fn are_defaults(pool: &PoolSpec, given: &Params) -> bool {
    given.iter().all(|(name, value)| {
        pool.generation.params.iter().any(|spec| spec.name == name && *value == ParamValue::Int(spec.default))
    })
}

/// Warns of parameters that make a scheduler act very often.
pub(crate) fn hasty(report: &mut Report<'_>, pool: &PoolSpec, scope: Scope, given: &Params, raw: &RawParams) {
    let shortest = shortest_interval(pool.policy.name, pool.generation.name, scope, given);
    let Some((param, interval)) = shortest.filter(|&(_, interval)| interval < 10 * HASTY) else { return };
    if let Some(place) = place_of(raw, &[param.to_owned()]) {
        let message = format!(
            "`{param}` makes `{}` act every {}: a simulated second has very many events",
            pool.policy.name,
            Duration(interval)
        );
        report.warning(place, Problem::says(message));
    }
}

/// The parameters that are in force while actions change them.
pub(crate) struct InForce {
    pools: Table<PoolId, Params>,
    domains: Table<DomId, Params>,
    units: Units,
}

impl InForce {
    /// The parameters of a host before its first action.
    pub fn of(spec: &Spec, report: &Report<'_>) -> Self {
        InForce {
            units: Units::on(spec, report),
            pools: spec.pools.iter().map(|pool| pool.params.clone()).collect(),
            domains: spec.domains.iter().map(|domain| domain.params.clone()).collect(),
        }
    }

    /// Carries out an action; warns of one that the scheduler refuses. `pools` are those that the domains are in.
    pub fn act(
        &mut self,
        spec: &Spec,
        pools: &Table<DomId, PoolId>,
        action: &ActionSpec,
        place: &Place,
        report: &mut Report<'_>,
    ) {
        let (pool, present, scope, given, units) = match &action.change {
            Change::Adjust(d, given) => {
                let units = self.units.of(spec, *d);
                (pools[*d], &mut self.domains[*d], Scope::Domain, given, units)
            }
            Change::AdjustGlobal(pool, given) => (*pool, &mut self.pools[*pool], Scope::Global, given, 0),
            Change::MovePool(d, _) => return self.domains[*d] = Params::new(),
            change => {
                // A new guest has the parameters of the file.
                if let Some((d, _)) = change.moves(&spec.domains) {
                    self.domains[d] = spec.domains[d].params.clone();
                }
                return;
            }
        };
        let pool = &spec.pools[pool];
        let proposal = Proposal { scope, given, present: Some(&*present), units };
        match refused(pool, &proposal) {
            Some(refusal) => {
                let problem = problem(pool, &refusal, &proposal);
                report.warning(place, problem.hint("the run goes on, and the parameters stay as they are"));
            }
            None => given.iter().for_each(|(name, value)| present.set(name, value.clone())),
        }
    }
}

/// The units that the vCPUs of domains are scheduled in.
#[derive(Clone, Copy)]
pub(crate) struct Units {
    /// vCPUs in each.
    size: u32,
}

impl Units {
    /// The units on the host of a scenario that has no errors so far. (With errors, each vCPU is one.)
    pub fn on(spec: &Spec, report: &Report<'_>) -> Self {
        let &HostSpec { pcpus, topology, pcpus_per_socket, granularity, .. } = &spec.host;
        if granularity == Granularity::Cpu || report.has_errors() {
            return Units { size: 1 };
        }
        let config = HostConfig { pcpus, topology, pcpus_per_socket, granularity, ..HostConfig::default() };
        Units { size: config.unit_size() }
    }

    /// The number of units of a domain.
    pub fn of(self, spec: &Spec, domain: DomId) -> u32 {
        spec.domains[domain].vcpus().div_ceil(self.size)
    }
}

fn refused(pool: &PoolSpec, proposal: &Proposal<'_>) -> Option<Refusal> {
    check(pool.policy.name, pool.generation.name, proposal).err()
}

fn problem(pool: &PoolSpec, refusal: &Refusal, proposal: &Proposal<'_>) -> Problem {
    let specs =
        pool.generation.params.iter().filter(|spec| refusal.params.iter().any(|name| name == spec.name));
    let values: Vec<String> = specs.map(|spec| value(spec, proposal)).collect();
    let scheduler = pool.policy.name;
    Problem::not_allowed(format!("{} (`{scheduler}` refuses the others)", refusal.allowed))
        .found(values.join(", "))
}

/// The value of a parameter as its policy would have it.
fn value(spec: &ParamSpec, proposal: &Proposal<'_>) -> String {
    let given = proposal.given.get(spec.name);
    let present = proposal.present.and_then(|present| present.get(spec.name));
    let (value, note) = match (given, present) {
        (Some(value), _) => (value.clone(), ""),
        (None, Some(value)) => (value.clone(), " (as it is)"),
        (None, None) => (spec.default.into(), " (not given)"),
    };
    let name = spec.name;
    match (value, spec.kind) {
        (_, ParamKind::Timetable(_)) if given.is_none() => format!("no `{name}`"),
        (ParamValue::Int(index), ParamKind::Choice(words)) => {
            format!("`{name} = \"{}\"`{note}", words.get(index as usize).unwrap_or(&""))
        }
        (value, ParamKind::Timetable(_)) => format!("{value} in `{name}`"),
        (value, _) => format!("`{name} = {value}`{note}"),
    }
}

/// The place of the first of these parameters that is given, or else of any that is.
fn place_of<'r>(raw: &'r RawParams, params: &[String]) -> Option<&'r Place> {
    let given = |param: &String| raw.0.iter().find(|(name, _)| name.value == *param);
    params.iter().find_map(given).or(raw.0.first()).map(|(_, at)| &at.place)
}
