//! Scripts that are in the scenario.

use vcpulab_host::Span;
use vcpulab_spec::{EventSpec, PhaseSpec};

use crate::file::raw::{RawEvent, RawPhase};
use crate::text::read::OneOrMany;
use crate::text::units::Duration;

pub(crate) fn raw_phase(phase: &PhaseSpec) -> RawPhase {
    let none = RawEvent::default;
    let event = |event: &EventSpec| match event.clone() {
        EventSpec::Run(times) => RawEvent { run: raw_times(&times).into(), ..none() },
        EventSpec::Runtime(span) => RawEvent { runtime: span.into(), ..none() },
        EventSpec::Sleep(times) => RawEvent { sleep: raw_times(&times).into(), ..none() },
        EventSpec::Timer(span) => RawEvent { timer: span.into(), ..none() },
        EventSpec::Ticks(ticks) => RawEvent { ticks: ticks.into(), ..none() },
        EventSpec::Lock(name) => RawEvent { lock: name.into(), ..none() },
        EventSpec::Unlock(name) => RawEvent { unlock: name.into(), ..none() },
        EventSpec::Suspend(name) => RawEvent { suspend: name.into(), ..none() },
        EventSpec::Wait { at, mutex } => RawEvent { wait: at.into(), mutex: mutex.into(), ..none() },
        EventSpec::Resume(name) => RawEvent { resume: name.into(), ..none() },
        EventSpec::Signal(name) => RawEvent { signal: name.into(), ..none() },
        EventSpec::Barrier(name) => RawEvent { barrier: name.into(), ..none() },
        EventSpec::Notify(name) => RawEvent { notify: name.into(), ..none() },
        EventSpec::Await(name) => RawEvent { r#await: name.into(), ..none() },
        EventSpec::Done => RawEvent { done: true.into(), ..none() },
    };
    let events = phase.events.iter().map(|e| event(e).into()).collect::<Vec<_>>();
    RawPhase { r#loop: phase.rounds.into(), event: events.into() }
}

fn raw_times(times: &[Span]) -> OneOrMany<Duration> {
    match times {
        [span] => OneOrMany::One(Duration(*span)),
        quantiles => OneOrMany::Many(quantiles.iter().map(|&span| Duration(span).into()).collect()),
    }
}
