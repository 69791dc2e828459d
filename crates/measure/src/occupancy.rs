//! Occupants of each pCPU, and the runstate of each vCPU, in spans of time chosen beforehand.

use vcpulab_host::{HostState, Observer, PcpuId, RunState, Switch, Table, Time, VcpuId};

/// A part of a vCPU's time in which nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Start of the stretch.
    pub begins: Time,
    /// End of the stretch.
    pub ends: Time,
    /// The runstate of the vCPU.
    pub state: RunState,
    /// Of a wait for a pCPU: the pCPU that the vCPU got at last, and the vCPU (perhaps the idle one) that had it meanwhile.
    pub behind: Option<(PcpuId, VcpuId)>,
}

/// Values, each from a time on.
type History<T> = Vec<(Time, T)>;

/// Keeps what happens in spans of time.
#[derive(Clone, Debug)]
pub struct Occupancy {
    spans: Vec<(Time, Time)>,
    states: Table<VcpuId, History<RunState>>,
    occupants: Table<PcpuId, History<VcpuId>>,
}

impl Occupancy {
    /// An observer of these spans; events at both ends of a span are part of it.
    pub fn of(spans: Vec<(Time, Time)>) -> Self {
        Occupancy { spans, states: Table::new(), occupants: Table::new() }
    }

    /// The time of a vCPU between two times of a span, without a gap.
    pub fn stretches(&self, v: VcpuId, begins: Time, ends: Time) -> Vec<Stretch> {
        let mut all = Vec::new();
        let states = self.states.get(v).map_or(&[][..], Vec::as_slice);
        for (begins, ends, state) in parts(states, RunState::Blocked, begins, ends) {
            let got = if state == RunState::Runnable { self.got(v, ends) } else { None };
            let Some(p) = got else {
                all.push(Stretch { begins, ends, state, behind: None });
                continue;
            };
            let idle = VcpuId(p.0);
            let occupants = parts(&self.occupants[p], idle, begins, ends);
            let behind = |(begins, ends, by)| Stretch { begins, ends, state, behind: Some((p, by)) };
            all.extend(occupants.into_iter().map(behind));
        }
        all
    }

    /// The pCPU that a vCPU is given first, from a time on.
    fn got(&self, v: VcpuId, from: Time) -> Option<PcpuId> {
        let first = |history: &History<VcpuId>| {
            let later = &history[history.partition_point(|&(time, _)| time < from)..];
            later.iter().find(|&&(_, occupant)| occupant == v).map(|&(time, _)| time)
        };
        let given = self.occupants.enumerate().filter_map(|(p, history)| Some((first(history)?, p)));
        given.min().map(|(_, p)| p)
    }
}

/// The parts of a time in which a value stays the same.
fn parts<T: Copy>(history: &[(Time, T)], first: T, begins: Time, ends: Time) -> Vec<(Time, Time, T)> {
    let next = history.partition_point(|&(time, _)| time <= begins);
    let before = if next == 0 { first } else { history[next - 1].1 };
    let changes = history[next..].iter().take_while(|&&(time, _)| time < ends);
    let mut all = Vec::new();
    let (mut since, mut value) = (begins, before);
    for &(time, changed) in changes {
        all.push((since, time, value));
        (since, value) = (time, changed);
    }
    all.push((since, ends, value));
    all.retain(|&(begins, ends, _)| begins < ends);
    all
}

/// Adds a value to a history. One that ended before any of the spans began, or began after, gives way.
fn note<T: Copy + PartialEq>(spans: &[(Time, Time)], history: &mut History<T>, now: Time, value: T) {
    match history.last_mut() {
        Some((_, last)) if *last == value => {}
        Some((since, last)) if !spans.iter().any(|&(begins, ends)| *since <= ends && begins <= now) => {
            (*since, *last) = (now, value);
        }
        _ => history.push((now, value)),
    }
}

impl Observer for Occupancy {
    fn wanted_runstates(&self) -> &[RunState] {
        &[RunState::Running, RunState::Blocked, RunState::Offline, RunState::Runnable]
    }

    fn switched(&mut self, _host: &HostState, switch: Switch) {
        note(&self.spans, self.occupants.entry(switch.pcpu), switch.time, switch.to);
    }

    fn runstate_changed(&mut self, host: &HostState, v: VcpuId) {
        note(&self.spans, self.states.entry(v), host.now(), host.runstate(v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: i64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn a_wait_is_behind_those_that_had_the_pcpu_it_ended_on() {
        let mut kept = Occupancy::of(vec![(at(100), at(200))]);
        let [zero, one, idle, v] = [VcpuId(2), VcpuId(3), VcpuId(1), VcpuId(4)];
        let p = PcpuId(1);
        for (time, state) in [(10, RunState::Running), (20, RunState::Blocked), (110, RunState::Runnable)] {
            note(&kept.spans, kept.states.entry(v), at(time), state);
        }
        note(&kept.spans, kept.states.entry(v), at(150), RunState::Running);
        for (time, occupant) in [(5, zero), (50, one), (120, zero), (130, idle), (150, v)] {
            note(&kept.spans, kept.occupants.entry(p), at(time), occupant);
        }
        let found: Vec<_> =
            kept.stretches(v, at(100), at(160)).iter().map(|s| (s.ends.ns(), s.behind)).collect();
        let expected =
            [(110, None), (120, Some((p, one))), (130, Some((p, zero))), (150, Some((p, idle))), (160, None)];
        assert_eq!(found, expected);
        assert_eq!(kept.states[v].len(), 3, "what was before the span is kept once");
        let first = kept.stretches(VcpuId(9), at(100), at(160))[0];
        assert_eq!((first.state, first.ends), (RunState::Blocked, at(160)), "one that never did anything");
    }
}
