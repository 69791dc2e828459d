//! The administrator's actions.

use vcpulab_host::{CpuMask, DomId, NEVER, PoolId, Scope, Table, Time};
use vcpulab_spec::limits::ACTIONS_MAX;
use vcpulab_spec::{ActionSpec, Affinity, Change, DomainSpec, LifeChange, POOL_0, Spec};

use crate::check::fields::Checker;
use crate::check::lifecycle::Lives;
use crate::check::params::{allowed, allowed_for, params};
use crate::check::refusals::InForce;
use crate::file::raw::{
    NamedDomain, RawAction, RawAdjust, RawAdjustGlobal, RawAffinity, RawDomainAction, RawOnline, RawScenario,
};
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field, ReadTable as _};
use crate::text::units::CpuList;

/// The actions in the order of time: what is allowed depends on the pools that domains have moved to, and on their lives.
pub(crate) fn check(
    checker: &mut Checker<'_, '_>,
    raw: &RawScenario,
    spec: &mut Spec,
    raw_domains: &[&NamedDomain],
    schedulers_known: bool,
    place: &Place,
) {
    let actions = raw.action.get().map_or(&[][..], |actions| actions);
    checker.count(actions.len(), 0, ACTIONS_MAX, "actions", &place.member("action"));
    let when = |action: &At<RawAction>| action.value.at(checker.report);
    let times: Vec<Option<Time>> = actions.iter().take(ACTIONS_MAX).map(when).collect();
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&index| times[index]);
    let mut pools: Table<DomId, PoolId> = spec.domains.iter().map(|domain| domain.pool).collect();
    let mut checked: Vec<Option<ActionSpec>> = vec![None; times.len()];
    let mut in_force = InForce::of(spec, checker.report);
    let mut lives = Lives::new(&spec.domains, raw_domains, &spec.host.constants);
    for index in order {
        let At { value, place } = &actions[index];
        let change = change(checker, value, spec, schedulers_known, &pools);
        checked[index] = times[index].zip(change).map(|(at, change)| ActionSpec { at, change });
        let Some(action) = &checked[index] else { continue };
        lives.begin_until(action.at, checker.report);
        lives.act(action, place, checker.report);
        in_force.act(spec, &pools, action, place, checker.report);
        if let Some((domain, pool)) = action.change.moves(&spec.domains) {
            pools[domain] = pool;
        }
    }
    lives.begin_until(NEVER, checker.report);
    spec.actions = checked.into_iter().flatten().collect();
}

fn change(
    checker: &mut Checker<'_, '_>,
    raw: &RawAction,
    spec: &Spec,
    known: bool,
    pools: &Table<DomId, PoolId>,
) -> Option<Change> {
    match raw {
        RawAction::Adjust(raw) => {
            let domain = checker.domain(&raw.domain, &spec.domains)?;
            let allowed = allowed_for(spec, RawAdjust::FIELDS, domain, pools[domain]);
            known.then(|| Change::Adjust(domain, params(checker, &raw.params, &allowed)))
        }
        RawAction::AdjustGlobal(raw) => {
            let pool = match raw.pool.is_none() {
                true => POOL_0,
                false => checker.pool_named(&raw.pool, &spec.pools)?,
            };
            let allowed = allowed(spec, pool, Scope::Global, RawAdjustGlobal::FIELDS, None);
            known.then(|| Change::AdjustGlobal(pool, params(checker, &raw.params, &allowed)))
        }
        RawAction::Pause(raw) => checker.domain(&raw.domain, &spec.domains).map(Change::Pause),
        RawAction::Unpause(raw) => checker.domain(&raw.domain, &spec.domains).map(Change::Unpause),
        RawAction::Affinity(raw) => new_affinity(checker, raw, spec, pools),
        RawAction::MovePool(raw) => {
            let domain = checker.domain(&raw.domain, &spec.domains);
            let pool = checker.pool_named(&raw.pool, &spec.pools);
            Some(Change::MovePool(domain?, pool?))
        }
        RawAction::Create(raw) => life(checker, raw, spec, LifeChange::Create),
        RawAction::Shutdown(raw) => life(checker, raw, spec, LifeChange::Shutdown),
        RawAction::Reboot(raw) => life(checker, raw, spec, LifeChange::Reboot),
        RawAction::Crash(raw) => life(checker, raw, spec, LifeChange::Crash),
        RawAction::Destroy(raw) => life(checker, raw, spec, LifeChange::Destroy),
        RawAction::Save(raw) => life(checker, raw, spec, LifeChange::Save),
        RawAction::Restore(raw) => life(checker, raw, spec, LifeChange::Restore),
        RawAction::Online(raw) => online(checker, raw, spec, true),
        RawAction::Offline(raw) => online(checker, raw, spec, false),
    }
}

fn life(
    checker: &mut Checker<'_, '_>,
    raw: &RawDomainAction,
    spec: &Spec,
    change: LifeChange,
) -> Option<Change> {
    checker.domain(&raw.domain, &spec.domains).map(|domain| Change::Life(domain, change))
}

fn online(checker: &mut Checker<'_, '_>, raw: &RawOnline, spec: &Spec, online: bool) -> Option<Change> {
    let domain = checker.domain(&raw.domain, &spec.domains)?;
    let DomainSpec { name, .. } = &spec.domains[domain];
    let vcpus = spec.domains[domain].vcpus();
    let At { value, place } = raw.vcpu.0.as_ref()?;
    if vcpus == 1 {
        let problem = Problem::says(format!("domain `{name}` has one vCPU, which is always online"));
        checker.report.error(place, problem.found(value));
        return None;
    }
    if !(1..i64::from(vcpus)).contains(value) {
        let allowed = format!("an integer from 1 to {} (vCPU 0 is always online)", vcpus - 1);
        checker.report.error(place, Problem::not_allowed(allowed));
        return None;
    }
    Some(Change::Online(domain, *value as u32, online))
}

fn new_affinity(
    checker: &mut Checker<'_, '_>,
    raw: &RawAffinity,
    spec: &Spec,
    pools: &Table<DomId, PoolId>,
) -> Option<Change> {
    let domain = checker.domain(&raw.domain, &spec.domains)?;
    let pool = &spec.pools[pools[domain]];
    let mut mask = |field: &Field<CpuList>| -> Option<CpuMask> {
        let At { value, place } = field.0.as_ref()?;
        Some(checker.cpus(value, place, spec.host.pcpus, &pool.pcpus, &pool.name).unwrap_or(pool.pcpus))
    };
    let affinity = match (mask(&raw.affinity), mask(&raw.soft_affinity)) {
        (Some(hard), None) => Affinity::Hard(hard),
        (None, Some(soft)) => Affinity::Soft(soft),
        (Some(hard), Some(soft)) => Affinity::Both(hard, soft),
        (None, None) => {
            let problem = Problem::says("`affinity` or `soft_affinity` is required, but neither is given");
            checker.report.error(&raw.domain.0.as_ref()?.place, problem);
            return None;
        }
    };
    let vcpu = raw.vcpu(spec.domains[domain].vcpus() - 1, checker.report);
    if vcpu.is_none() && !raw.vcpu.is_none() {
        return None;
    }
    Some(Change::Affinity(domain, vcpu, affinity))
}
