//! Applications whose script is in the scenario, in rt-app's words.

use vcpulab_guest::Softirq;
use vcpulab_host::Span;
use vcpulab_spec::limits::{APPS_MAX, EVENTS_MAX, PHASES_MAX, QUANTILES_MAX, SPANS, SPANS_ABOVE_ZERO};
use vcpulab_spec::{AppSpec, EventSpec, PhaseSpec};

use crate::check::fields::Checker;
use crate::file::raw::{RawApp, RawEvent, RawPhase};
use crate::text::problem::{Place, Problem};
use crate::text::read::{At, Field, OneOrMany, ReadTable as _};
use crate::text::units::Duration;
use crate::text::value::within;

pub(crate) fn phases_app(checker: &mut Checker<'_, '_>, raw: &RawApp, place: &Place) -> Option<AppSpec> {
    if raw.phase.is_none() {
        checker.report.error(&place.member("phase"), Problem::says("required, but not given"));
    }
    let phases = phases(checker, &raw.phase);
    let rounds = match raw.r#loop(checker.report) {
        -1 => None,
        rounds => Some(rounds as u32),
    };
    let instances = raw.instance(APPS_MAX as u32, checker.report);
    let delay = raw.start_delay(checker.report);
    let stretch = stretch(checker, raw)?;
    let softirq = softirq(checker, raw)?;
    Some(AppSpec::Phases {
        phases: phases?,
        stretch,
        rounds,
        delay,
        softirq,
        instances,
        assumed: raw.assumed(checker.report),
    })
}

/// The part of an application's work that interrupts do.
fn softirq(checker: &mut Checker<'_, '_>, raw: &RawApp) -> Option<Softirq> {
    match (raw.softirq(checker.report), raw.softirq_first(checker.report)) {
        (false, false) => Some(Softirq::Nothing),
        (false, true) => Some(Softirq::First),
        (true, false) => Some(Softirq::All),
        (true, true) => {
            let At { place, .. } = raw.softirq_first.0.as_ref()?;
            checker
                .report
                .error(place, Problem::says("`softirq` is all of its work, and `softirq_first` is not"));
            None
        }
    }
}

/// Mean number of phases in a stretch; `Some(None)`: they come in their order.
fn stretch(checker: &mut Checker<'_, '_>, raw: &RawApp) -> Option<Option<u32>> {
    let Some(At { place, .. }) = &raw.stretch.0 else { return Some(None) };
    if !raw.r#loop.is_none() {
        checker.report.error(place, Problem::says("`loop` counts rounds, and stretches have none"));
        return None;
    }
    raw.stretch(checker.report).map(Some)
}

fn phases(checker: &mut Checker<'_, '_>, field: &Field<Vec<At<RawPhase>>>) -> Option<Vec<PhaseSpec>> {
    let At { value: raw, place } = field.0.as_ref()?;
    if !checker.count(raw.len(), 1, PHASES_MAX, "phases", place) {
        return None;
    }
    let phases: Vec<Option<PhaseSpec>> = raw.iter().map(|raw| phase(checker, raw)).collect();
    phases.into_iter().collect()
}

fn phase(checker: &mut Checker<'_, '_>, phase: &At<RawPhase>) -> Option<PhaseSpec> {
    let rounds = phase.value.r#loop(checker.report);
    let At { value: raw, place } = phase.value.event.0.as_ref()?;
    if !checker.count(raw.len(), 1, EVENTS_MAX, "events", place) {
        return None;
    }
    let events: Vec<Option<EventSpec>> = raw.iter().map(|raw| event(checker, raw)).collect();
    Some(PhaseSpec { rounds, events: events.into_iter().collect::<Option<_>>()? })
}

fn event(checker: &mut Checker<'_, '_>, event: &At<RawEvent>) -> Option<EventSpec> {
    let raw = &event.value;
    let drawn = [(&raw.run, EventSpec::Run as fn(Vec<Span>) -> EventSpec), (&raw.sleep, EventSpec::Sleep)];
    let spans = [&raw.runtime, &raw.timer];
    let names = [
        (&raw.lock, EventSpec::Lock as fn(String) -> EventSpec),
        (&raw.unlock, EventSpec::Unlock),
        (&raw.suspend, EventSpec::Suspend),
        (&raw.resume, EventSpec::Resume),
        (&raw.signal, EventSpec::Signal),
        (&raw.barrier, EventSpec::Barrier),
        (&raw.notify, EventSpec::Notify),
        (&raw.r#await, EventSpec::Await),
    ];
    let ticks = usize::from(!raw.ticks.is_none());
    let mut draw = drawn.iter().filter(|(field, _)| !field.is_none());
    let span = spans.iter().filter(|field| !field.is_none());
    let mut name = names.iter().filter(|(field, _)| !field.is_none());
    let given = [draw.clone().count(), span.count(), name.clone().count()];
    let done = raw.done.get().copied().unwrap_or(false);
    if given.iter().sum::<usize>() + ticks + usize::from(!raw.wait.is_none()) + usize::from(done) != 1 {
        let words: Vec<&str> = RawEvent::FIELDS.iter().copied().filter(|field| *field != "mutex").collect();
        let allowed = format!("exactly one of {}", words.join(", "));
        checker.report.error(&event.place, Problem::not_allowed(allowed));
        return None;
    }
    if raw.wait.is_none() != raw.mutex.is_none() {
        let problem = Problem::says("`wait` and `mutex` belong together");
        let hint = "who waits without a lock to give back meanwhile says `suspend`";
        checker.report.error(&event.place, problem.hint(hint));
        return None;
    }
    if let Some((field, make)) = draw.next() {
        return quantiles(checker, field).map(make);
    }
    if !raw.runtime.is_none() {
        return raw.runtime(checker.report).map(EventSpec::Runtime);
    }
    if !raw.timer.is_none() {
        return raw.timer(checker.report).map(EventSpec::Timer);
    }
    if let Some((field, make)) = name.next() {
        return object(checker, field).map(make);
    }
    if done {
        return Some(EventSpec::Done);
    }
    if ticks > 0 {
        return raw.ticks(checker.report).map(EventSpec::Ticks);
    }
    Some(EventSpec::Wait { at: object(checker, &raw.wait)?, mutex: object(checker, &raw.mutex)? })
}

/// The first field of an application, if any, that has no meaning in a domain without ticks.
pub(crate) fn needs_tick(app: &AppSpec) -> Option<&'static str> {
    let AppSpec::Phases { phases, softirq, .. } = app else { return None };
    let mut events = phases.iter().flat_map(|phase| &phase.events);
    let counts = events.any(|event| matches!(event, EventSpec::Ticks(_)));
    counts.then_some("ticks").or((*softirq == Softirq::All).then_some("softirq"))
}

/// A time, or the quantiles of a distribution of times.
fn quantiles(checker: &mut Checker<'_, '_>, field: &Field<OneOrMany<Duration>>) -> Option<Vec<Span>> {
    let At { value, place } = field.0.as_ref()?;
    match value {
        OneOrMany::One(span) => {
            let span = At { value: *span, place: place.clone() };
            within(&span, SPANS_ABOVE_ZERO, checker.report).map(|span| vec![span])
        }
        OneOrMany::Many(spans) => {
            if !checker.count(spans.len(), 2, QUANTILES_MAX, "quantiles", place) {
                return None;
            }
            let read: Vec<_> = spans.iter().map(|span| within(span, SPANS, checker.report)).collect();
            let quantiles: Vec<Span> = read.into_iter().collect::<Option<_>>()?;
            if let Some(index) = (1..quantiles.len()).find(|&index| quantiles[index] < quantiles[index - 1]) {
                let allowed =
                    format!("quantiles in ascending order, from {} on here", Duration(quantiles[index - 1]));
                checker.report.error(&spans[index].place, Problem::not_allowed(allowed));
                return None;
            }
            Some(quantiles)
        }
    }
}

/// The name of a synchronization object or of a channel.
fn object(checker: &mut Checker<'_, '_>, field: &Field<String>) -> Option<String> {
    let name = field.0.as_ref()?;
    checker.identifier(name);
    Some(name.value.clone())
}
