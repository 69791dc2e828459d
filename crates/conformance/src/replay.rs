//! Replay of a vector's host under the policy it names: every decision and every value of state is compared.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Serialize;
use vcpulab_host::program::Programs;
use vcpulab_host::{Host, HostState, Observer, Pools, StateRow, Switch, Time, VcpuId};

use crate::recording::{Decision, State};
use crate::vector::Vector;

/// A vector that takes more events than this is stopped.
pub const EVENTS_MAX: u64 = 100_000_000;

/// Decisions before the diverging one that a report shows.
const BEFORE: usize = 10;

/// The first difference between replay and recording. Fields that do not apply are left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Divergence {
    /// The kind of row that differs, or the rule that the run broke, in one sentence.
    pub what: String,
    /// Time of the difference, ns.
    pub time_ns: Option<i64>,
    /// The pCPU's number.
    pub pcpu: Option<i64>,
    /// The row recorded (absent: no more rows).
    pub expected: Option<String>,
    /// The row of the replay (absent: no more rows).
    pub got: Option<String>,
    /// The scheduler's state just before that instant.
    pub state: Vec<String>,
    /// The decisions before it, which agree.
    pub before: Vec<String>,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision { time_ns, pcpu, from_domain, from_vcpu, to_domain, to_vcpu } = self;
        write!(f, "{time_ns} ns pCPU {pcpu}: d{from_domain}v{from_vcpu} -> d{to_domain}v{to_vcpu}")
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let State { time_ns, domain, vcpu, key, value } = self;
        write!(f, "{time_ns} ns d{domain}v{vcpu}: {key} = {value}")
    }
}

/// An observer that compares each row with the recording.
struct Compare<'a> {
    trace: &'a [Decision],
    state: Option<&'a [State]>,
    decisions: usize,
    states: usize,
    /// The first decision that differs, and the first value of state.
    decision: Option<Decision>,
    value: Option<State>,
}

impl Observer for Compare<'_> {
    const WANTS_STATE: bool = true;

    fn switched(&mut self, host: &HostState, switch: Switch) {
        if self.decision.is_some() {
            return;
        }
        let ((from_domain, from_vcpu), (to_domain, to_vcpu)) = (host.name(switch.from), host.name(switch.to));
        let pcpu = i64::from(switch.pcpu.0);
        let got = Decision { time_ns: switch.time.ns(), pcpu, from_domain, from_vcpu, to_domain, to_vcpu };
        if self.trace.get(self.decisions) == Some(&got) {
            self.decisions += 1;
        } else {
            self.decision = Some(got);
        }
    }

    fn state(&mut self, row: StateRow) {
        let Some(expected) = self.state.filter(|_| self.value.is_none()) else { return };
        if expected.get(self.states).is_some_and(|expected| expected.equals(&row)) {
            self.states += 1;
        } else {
            self.value = Some(State::from(&row));
        }
    }
}

/// Runs the vector, and compares it with what was recorded; `None`: all agrees.
pub fn replay(vector: &Vector, trace: &[Decision], state: Option<&[State]>) -> Option<Divergence> {
    let what = match catch_unwind(AssertUnwindSafe(|| compare(vector, trace, state))) {
        Ok(Some(divergence)) => return divergence,
        Ok(None) => "the policy is not implemented".to_owned(),
        Err(panic) => format!("the policy panicked: {}", text_of(&*panic)),
    };
    Some(Divergence { what, ..Divergence::default() })
}

/// The vector's policy, behind a pointer: the host's loop is compiled once for all policies. `None`: no such policy.
fn scheduler(vector: &Vector) -> Option<Pools<'static>> {
    let Vector { scheduler, generation, global, config, .. } = vector;
    Some(Pools::new(vec![vcpulab_sched::boxed(scheduler, generation, global, config.pcpus)?]))
}

/// The programs of the vector's vCPUs.
fn programs(vector: &Vector) -> Programs {
    let mut programs = Programs::default();
    for (i, program) in vector.programs.iter().enumerate() {
        programs.set(VcpuId(vector.config.pcpus + i as u32), program.clone());
    }
    programs
}

/// The message of a panic.
pub(crate) fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// The first difference of a run. The outer `None`: the policy is not implemented.
fn compare(vector: &Vector, trace: &[Decision], state: Option<&[State]>) -> Option<Option<Divergence>> {
    let compare = Compare { trace, state, decisions: 0, states: 0, decision: None, value: None };
    let mut host = match Host::new(&vector.config, scheduler(vector)?, programs(vector), compare) {
        Ok(host) => host,
        Err(broken) => return Some(Some(Divergence { what: broken.to_string(), ..Divergence::default() })),
    };
    host.limit_events(EVENTS_MAX);
    let broken = host.run_until(vector.duration).err();
    let seen = host.observer();
    if let Some(broken) = broken.filter(|_| seen.decision.is_none() && seen.value.is_none()) {
        let before = recent(trace, seen.decisions);
        return Some(Some(Divergence {
            what: broken.to_string(),
            time_ns: Some(broken.time.ns()),
            before,
            ..Divergence::default()
        }));
    }
    let mut divergence = seen.divergence();
    if let Some(divergence) = &mut divergence
        && let Some(time) = divergence.time_ns
    {
        divergence.state = state_before(vector, Time::from_ns(time))?;
    }
    Some(divergence)
}

fn recent(trace: &[Decision], decisions: usize) -> Vec<String> {
    trace[decisions.saturating_sub(BEFORE)..decisions].iter().map(Decision::to_string).collect()
}

impl Compare<'_> {
    /// The first difference in time; a decision before state of the same instant.
    fn divergence(&self) -> Option<Divergence> {
        let expected = self.trace.get(self.decisions);
        let decision = (expected.is_some() || self.decision.is_some()).then(|| {
            let times = [expected.map(|row| row.time_ns), self.decision.map(|row| row.time_ns)];
            Divergence {
                what: "a decision differs".into(),
                time_ns: times.into_iter().flatten().min(),
                pcpu: self.decision.as_ref().or(expected).map(|row| row.pcpu),
                expected: expected.map(Decision::to_string),
                got: self.decision.as_ref().map(Decision::to_string),
                before: recent(self.trace, self.decisions),
                state: Vec::new(),
            }
        });
        let expected = self.state.and_then(|state| state.get(self.states));
        let value = (expected.is_some() || self.value.is_some()).then(|| {
            let times = [expected.map(|row| row.time_ns), self.value.as_ref().map(|row| row.time_ns)];
            let time_ns = times.into_iter().flatten().min();
            let decisions =
                self.trace.partition_point(|row| Some(row.time_ns) <= time_ns).min(self.decisions);
            Divergence {
                what: "a value of the scheduler's state differs".into(),
                time_ns,
                pcpu: None,
                expected: expected.map(State::to_string),
                got: self.value.as_ref().map(State::to_string),
                before: recent(self.trace, decisions),
                state: Vec::new(),
            }
        });
        match (decision, value) {
            (Some(decision), Some(value)) if value.time_ns < decision.time_ns => Some(value),
            (Some(decision), _) => Some(decision),
            (None, value) => value,
        }
    }
}

/// The scheduler's state at an instant, from another run of the vector. `None`: the policy is not implemented.
fn state_before(vector: &Vector, time: Time) -> Option<Vec<String>> {
    let Ok(mut host) = Host::new(&vector.config, scheduler(vector)?, programs(vector), ()) else {
        return Some(Vec::new());
    };
    // The same run reached this time before.
    let _ = host.run_until(time);
    let mut text = String::new();
    let _ = host.dump(&mut text);
    Some(text.lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vcpulab_host::Scope;
    use vcpulab_sched::Generation;
    use vcpulab_sched::{ParamKind, ParamSpec};

    use super::*;
    use crate::vector::read_vector;

    /// A vector under that scheduler with one parameter, of the scheduler or of its domain, set to a value.
    fn with_param(policy: &str, generation: &Generation, param: &ParamSpec, value: i128) -> String {
        let set = format!("{{\"{}\": {value}}}", param.name);
        let (global, domain) = match param.scope {
            Scope::Global => (set.as_str(), "{}"),
            Scope::Domain => ("{}", set.as_str()),
        };
        format!(
            r#"{{"name": "n", "scheduler": "{policy}", "generation": "{}", "params": {global}, "pcpus": 2,
            "duration_ns": 2000000, "domains": [{{"id": 1, "params": {domain}, "vcpus": [
            {{"start_ns": 0, "program": [["run", 3000000], ["block", 700000]], "repeat": true}},
            {{"start_ns": 5, "program": [["hog"]]}}, {{"start_ns": 7, "program": [["yield"], ["run", 9000]], "repeat": true}}]}}],
            "actions": [{{"at_ns": 1000000, "op": "adjust", "domain": 1, "params": {domain}}}]}}"#,
            generation.name
        )
    }

    #[test]
    fn parameters_are_as_wide_as_in_the_interface_of_their_release() {
        let mut widths = BTreeSet::new();
        for policy in vcpulab_sched::policies() {
            for (generation, param) in
                policy.generations.iter().flat_map(|g| g.params.iter().map(move |p| (g, p)))
            {
                if !matches!(param.kind, ParamKind::Int { .. } | ParamKind::Flag) {
                    continue;
                }
                let bits = vcpulab_sched::width(policy.name, generation.name, param.name).bits();
                widths.insert(bits);
                let read = |value| read_vector(with_param(policy.name, generation, param, value).as_bytes());
                let (least, most) = (-(1_i128 << (bits - 1)), (1_i128 << bits) - 1);
                for value in [least, most] {
                    assert!(read(value).is_ok(), "{} {} {value}", policy.name, param.name);
                }
                // JSON has no integers beyond 64 bits.
                for value in [least - 1, most + 1].into_iter().filter(|_| bits < 64) {
                    let refused = read(value).unwrap_err().to_string();
                    let allowed = format!("found `{value}`; allowed: an integer of {bits} bits");
                    assert!(refused.contains(&allowed), "{refused}");
                }
            }
        }
        assert_eq!(widths, BTreeSet::from([16, 32, 64]));
    }

    /// The decisions of a host on which two domains compete, with an adjust of the first, or of the scheduler.
    fn decisions(policy: (&str, &str), global: &str, domain: &str, adjust: &str) -> Vec<Decision> {
        let (policy, generation) = policy;
        let text = format!(
            r#"{{"name": "n", "scheduler": "{policy}", "generation": "{generation}", "params": {global}, "pcpus": 1,
            "duration_ns": 400000000, "domains": [
            {{"id": 1, "params": {domain}, "vcpus": [{{"program": [["hog"]]}}]}},
            {{"id": 2, "params": {domain}, "vcpus": [{{"program": [["hog"]]}}]}}],
            "actions": [{adjust}]}}"#
        );
        let vector = read_vector(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let scheduler = scheduler(&vector).unwrap();
        let mut host = Host::new(&vector.config, scheduler, programs(&vector), Record::default()).unwrap();
        host.run_until(vector.duration).unwrap();
        std::mem::take(&mut host.observe().1.0)
    }

    #[derive(Default)]
    struct Record(Vec<Decision>);

    impl Observer for Record {
        fn switched(&mut self, host: &HostState, switch: Switch) {
            let ((from_domain, from_vcpu), (to_domain, to_vcpu)) =
                (host.name(switch.from), host.name(switch.to));
            let (time_ns, pcpu) = (switch.time.ns(), i64::from(switch.pcpu.0));
            self.0.push(Decision { time_ns, pcpu, from_domain, from_vcpu, to_domain, to_vcpu });
        }
    }

    /// An adjust at a limit of its parameters counts, and an adjust just beyond it changes nothing.
    #[test]
    fn the_scheduler_itself_refuses_values_beyond_its_limits() {
        let adjust = |params: &str| {
            format!(r#"{{"at_ns": 100000000, "op": "adjust", "domain": 1, "params": {{{params}}}}}"#)
        };
        let limits = |scheduler, domain: &str, within: &[&str], beyond: &[&str]| {
            let of = |action: &str| decisions(scheduler, "{}", domain, action);
            // Some releases pause the domain even for an adjust that changes nothing.
            let unchanged = of(&adjust(""));
            for params in within {
                assert!(of(&adjust(params)) != unchanged, "{scheduler:?}: {params} is refused");
            }
            for params in beyond {
                assert!(of(&adjust(params)) == unchanged, "{scheduler:?}: {params} is accepted");
            }
        };
        for generation in ["xen3.0.2", "xen3.0.3", "xen3.3.0", "xen4.4.1"] {
            limits(
                ("sedf", generation),
                r#"{"period": 20000000, "slice": 5000000}"#,
                &[
                    r#""period": 10000000000, "slice": 1000000"#,
                    r#""period": 10000, "slice": 5000"#,
                    r#""period": 1000000, "slice": 1000000"#,
                    r#""weight": 32767"#,
                ],
                &[
                    r#""period": 10001000000, "slice": 1000000"#,
                    r#""period": 10000000001, "slice": 1000000"#,
                    r#""period": 18446744073709551615, "slice": 1000000"#,
                    r#""period": 9999, "slice": 5000"#,
                    r#""period": 10000, "slice": 4999"#,
                    r#""period": 1000000, "slice": 1000001"#,
                    r#""period": 1000000, "slice": 18446744073709551615"#,
                    r#""period": 1000000"#,
                    r#""weight": 65536"#,
                ],
            );
        }
        for generation in ["xen2.0", "xen2.0-intended"] {
            limits(
                ("atropos", generation),
                r#"{"nat_period": 20000000, "nat_slice": 8000000, "latency": 20000000}"#,
                &[r#""xtratime": 0, "nat_slice": 20000000"#],
                &[
                    r#""xtratime": 0, "nat_slice": 20000001"#,
                    r#""xtratime": 0, "nat_slice": 5000000001, "nat_period": 5000000000"#,
                    r#""xtratime": 0, "latency": 20000001"#,
                    r#""xtratime": 0, "latency": 0"#,
                    r#""xtratime": 0, "nat_period": 19999999"#,
                ],
            );
        }
        for generation in ["xen2.0", "xen3.0"] {
            limits(
                ("bvt", generation),
                "{}",
                &[r#""mcu_adv": 40"#, r#""mcu_adv": 40, "warpl": 5000000000"#],
                &[
                    r#""mcu_adv": 0"#,
                    r#""mcu_adv": 40, "warpl": -1"#,
                    r#""mcu_adv": 40, "warpu": -5000000000"#,
                ],
            );
        }
        for generation in ["xen4.17", "xen4.22"] {
            limits(
                ("rtds", generation),
                r#"{"period_us": 10000, "budget_us": 4000, "extratime": 0}"#,
                &[r#""budget_us": 10000"#],
                &[
                    r#""budget_us": 10001"#,
                    r#""budget_us": 4294967295"#,
                    r#""budget_us": 9"#,
                    r#""period_us": 3999"#,
                ],
            );
        }
    }

    #[test]
    fn no_value_of_a_parameter_makes_a_scheduler_panic() {
        let mut panicked = Vec::new();
        for policy in vcpulab_sched::policies() {
            for (generation, param) in
                policy.generations.iter().flat_map(|g| g.params.iter().map(move |p| (g, p)))
            {
                let wide = [i64::MIN.into(), i64::MAX.into(), u64::MAX.into()];
                let narrow = [i32::MIN, -1, i32::MAX].map(i128::from);
                for value in wide.into_iter().chain(narrow).chain([u32::MAX.into()]) {
                    let text = with_param(policy.name, generation, param, value);
                    let Ok(vector) = read_vector(text.as_bytes()) else { continue };
                    let what = replay(&vector, &[], None).map_or(String::new(), |divergence| divergence.what);
                    if what.contains("panicked") {
                        panicked.push(format!(
                            "{} {} {} = {value}: {what}",
                            policy.name, generation.name, param.name
                        ));
                    }
                }
            }
        }
        assert!(panicked.is_empty(), "{panicked:#?}");
    }
}
