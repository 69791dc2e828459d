//! The policy that a scenario names: one of the registry, or one from outside it.

use vcpulab_host::Scope;
use vcpulab_sched::{Policy, policies};

use crate::check::fields::Checker;
use crate::file::raw::{RawAdjust, RawAdjustGlobal, RawDomain, RawHost, RawPool};
use crate::outside::FoundPolicy;
use crate::text::problem::{Place, Problem, did_you_mean};
use crate::text::read::{At, Field, ReadTable as _};

/// The policy of that name. `None`: there is none, which is reported.
pub(crate) fn policy(checker: &mut Checker<'_, '_>, field: &Field<String>) -> Option<&'static Policy> {
    let At { value, place } = field.0.as_ref()?;
    if let Some(built_in) = vcpulab_sched::find(value) {
        return Some(built_in);
    }
    let found = checker.outside.policies.map_or(FoundPolicy::Unknown(Vec::new()), |find| find(value));
    match found {
        FoundPolicy::Found(policy) => fitting(checker, policy, place).then_some(policy),
        FoundPolicy::Unknown(offered) => {
            let names =
                || policies().iter().map(|policy| policy.name).chain(offered.iter().map(String::as_str));
            let all = names().collect::<Vec<_>>().join(", ");
            let problem = Problem::not_allowed(format!("one of {all}, or FILE.py:CLASS"));
            checker.report.error(place, problem.maybe_hint(did_you_mean(value, names())));
            None
        }
        FoundPolicy::Unusable(reason, hint) => {
            checker.report.error(place, Problem::says(reason).found(value).maybe_hint(hint));
            None
        }
    }
}

/// Whether the names of a policy's parameters differ from the fields of the tables that contain them.
fn fitting(checker: &mut Checker<'_, '_>, policy: &Policy, place: &Place) -> bool {
    let taken = |scope, name: &str| match scope {
        Scope::Global => [RawHost::FIELDS, RawPool::FIELDS, RawAdjustGlobal::FIELDS].concat().contains(&name),
        Scope::Domain => [RawDomain::FIELDS, RawAdjust::FIELDS].concat().contains(&name),
    };
    let params = policy.generations.iter().flat_map(|generation| generation.params);
    let strangers: Vec<&str> =
        params.filter(|param| taken(param.scope, param.name)).map(|param| param.name).collect();
    for name in &strangers {
        let message = format!("its parameter `{name}` has the name of a field that is there already");
        checker.report.error(place, Problem::says(message).found(policy.name));
    }
    strangers.is_empty()
}
