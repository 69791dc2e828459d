//! The check of values before a run and the scheduler at run time take the same decision.

use proptest::prelude::*;
use vcpulab_host::program::Programs;
use vcpulab_host::{
    Acted, Action, DomId, DomainConfig, Host, HostConfig, HostState, Observer, ParamValue, Params, PoolId,
    Scope, Span, Time, TimedAction, TimetableEntry, VcpuConfig,
};
use vcpulab_sched::{Generation, ParamKind, ParamSpec, Proposal, check, policies};

use crate::alone;

const VCPUS: u32 = 2;

/// The last action's result.
#[derive(Default)]
struct Accepted(Option<bool>);

impl Observer for Accepted {
    fn acted(&mut self, _host: &HostState, acted: Acted) {
        self.0 = Some(acted.accepted);
    }
}

/// A value that a parameter takes by itself. Small values, the limits and the default are frequent.
fn value(spec: &ParamSpec) -> BoxedStrategy<ParamValue> {
    match spec.kind {
        ParamKind::Int { min, max, also } => {
            let special = prop::sample::select([also, &[min, max, spec.default]].concat());
            let ordinary = (0..=(max.abs_diff(min)).ilog2()).prop_flat_map(move |bits| {
                (0..=1_u64 << bits).prop_map(move |above| min.saturating_add_unsigned(above).min(max))
            });
            prop_oneof![1 => special, 3 => ordinary].prop_map(ParamValue::Int).boxed()
        }
        ParamKind::Flag => (0..=1_i64).prop_map(ParamValue::Int).boxed(),
        ParamKind::Choice(words) => (0..words.len() as i64).prop_map(ParamValue::Int).boxed(),
        ParamKind::Timetable(_) => prop::collection::vec(1..20_000_000_i64, 1..4)
            .prop_map(|slots| {
                let entry = |ns: i64| TimetableEntry { domain: 1, vcpu: ns % 2, runtime: Span::from_ns(ns) };
                ParamValue::Timetable(slots.into_iter().map(entry).collect())
            })
            .boxed(),
    }
}

/// Some of the parameters of a generation.
fn params(generation: &'static Generation, scope: Scope) -> impl Strategy<Value = Params> {
    let specs = generation.params.iter().filter(move |spec| spec.scope == scope);
    let each: Vec<_> =
        specs.map(|spec| prop::option::of(value(spec)).prop_map(|value| (spec.name, value))).collect();
    each.prop_map(|values| {
        let mut params = Params::new();
        values
            .into_iter()
            .for_each(|(name, value)| value.into_iter().for_each(|value| params.set(name, value)));
        params
    })
}

/// Parameters of a new scheduler and a new domain, and others that are given to them later.
#[derive(Clone, Debug)]
struct Case {
    policy: &'static str,
    generation: &'static str,
    global: Params,
    domain: Params,
    later: Params,
    later_global: Params,
}

fn case() -> impl Strategy<Value = Case> {
    let all = policies().iter().flat_map(|policy| policy.generations.iter().map(move |g| (policy.name, g)));
    prop::sample::select(all.collect::<Vec<_>>()).prop_flat_map(|(policy, generation)| {
        let of = move |scope| params(generation, scope);
        (of(Scope::Global), of(Scope::Domain), of(Scope::Domain), of(Scope::Global)).prop_map(
            move |(global, domain, later, later_global)| {
                let generation = generation.name;
                Case { policy, generation, global, domain, later, later_global }
            },
        )
    })
}

impl Case {
    fn accepts(&self, scope: Scope, given: &Params, present: Option<&Params>) -> bool {
        check(self.policy, self.generation, &Proposal { scope, given, present, units: VCPUS }).is_ok()
    }

    /// Runs a domain with these parameters and an action; is the boot accepted, and the action?
    fn run(&self, domain: &Params, action: Option<Action>) -> (bool, Option<bool>) {
        let at = Time::from_ns(1000);
        let vcpu = VcpuConfig { start: None, ..VcpuConfig::default() };
        let config = HostConfig {
            pcpus: 2,
            domains: vec![DomainConfig {
                number: 1,
                params: domain.clone(),
                vcpus: vec![vcpu; VCPUS as usize],
                ..DomainConfig::default()
            }],
            actions: action.map(|action| TimedAction { at, action }).into_iter().collect(),
            ..HostConfig::default()
        };
        let policy = alone(self.policy, self.generation, &self.global, config.pcpus);
        let mut host = Host::new(&config, policy, Programs::default(), Accepted::default()).unwrap();
        host.limit_events(100_000);
        // Some of these values stop time.
        let _ = host.run_until(Time::from_ns(2000));
        (host.refused_boot().is_none(), host.observer().0)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn parameters_that_are_accepted_before_a_run_are_accepted_at_boot(case in case()) {
        if case.accepts(Scope::Domain, &case.domain, None) {
            prop_assert!(case.run(&case.domain, None).0);
        }
    }

    #[test]
    fn an_adjust_is_refused_if_and_only_if_the_check_refuses_it(case in case()) {
        let present = if case.accepts(Scope::Domain, &case.domain, None) { &case.domain } else { &Params::new() };
        let (_, accepted) = case.run(present, Some(Action::Adjust(DomId(0), case.later.clone())));
        let expected = case.accepts(Scope::Domain, &case.later, Some(present));
        if accepted.is_some() && !case.later.is_empty() {
            prop_assert_eq!(accepted, Some(expected));
        }
    }

    #[test]
    fn a_global_adjust_is_refused_if_and_only_if_the_check_refuses_it(mut case in case()) {
        if !case.accepts(Scope::Global, &case.global, None) {
            case.global = Params::new();
        }
        let action = Action::AdjustGlobal(PoolId(0), case.later_global.clone());
        let (_, accepted) = case.run(&Params::new(), Some(action));
        if accepted.is_some() && !case.later_global.is_empty() {
            let expected = case.accepts(Scope::Global, &case.later_global, Some(&case.global));
            prop_assert_eq!(accepted, Some(expected));
        }
    }
}
