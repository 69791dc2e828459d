//! Workload managers: they set scheduling parameters during a run, by its last sample.

use vcpulab_host::{DomId, ParamValue, Params, Scope};
use vcpulab_measure::SampleRow;
use vcpulab_sched::{ParamKind, Role};
use vcpulab_spec::Spec;

/// The wishes of a manager: domains, each with values for parameters.
pub type Wanted = Vec<(String, Vec<(String, i64)>)>;

/// A workload manager: looks at a sample of every domain, and answers with the parameters to set.
pub trait Manager {
    /// # Errors
    /// The reason why it gives up, which ends the run.
    fn decide(&mut self, samples: &[SampleRow]) -> Result<Wanted, String>;
}

impl<F: FnMut(&[SampleRow]) -> Result<Wanted, String>> Manager for F {
    fn decide(&mut self, samples: &[SampleRow]) -> Result<Wanted, String> {
        self(samples)
    }
}

/// The wishes of a manager, checked: each domain with its parameters.
pub(crate) fn decided(
    manager: &mut dyn Manager,
    spec: &Spec,
    samples: &[SampleRow],
) -> Result<Vec<(DomId, Params)>, String> {
    let wanted = manager.decide(samples)?;
    wanted.into_iter().map(|(name, values)| checked(spec, &name, &values)).collect()
}

fn checked(spec: &Spec, name: &str, values: &[(String, i64)]) -> Result<(DomId, Params), String> {
    let found = spec.domains.enumerate().find(|(_, domain)| domain.name == name);
    let Some((id, domain)) = found else { return Err(format!("there is no domain `{name}`")) };
    let pool = &spec.pools[domain.pool];
    let mut params = Params::new();
    for &(ref param, value) in values {
        let known = pool.generation.params.iter().filter(|known| known.scope == Scope::Domain);
        let Some(known) = known.clone().find(|known| known.name == param) else {
            let names: Vec<&str> = known.map(|known| known.name).collect();
            let (policy, allowed) = (pool.policy.name, names.join(", "));
            return Err(format!(
                "domain `{name}`: `{policy}` has no parameter `{param}`; allowed: {allowed}"
            ));
        };
        let wanted = ParamValue::Int(value);
        let most = 100 * i64::from(domain.vcpus());
        if !known.allows(&wanted) || matches!(known.kind, ParamKind::Timetable(_)) {
            let allowed = known.kind.allowed();
            return Err(format!("domain `{name}`: {param}: found `{value}`; allowed: {allowed}"));
        }
        if known.role == Role::CapPercent && value > most {
            return Err(format!("domain `{name}`: {param}: found `{value}`; allowed: at most {most}"));
        }
        params.set(known.name, wanted);
    }
    Ok((id, params))
}
