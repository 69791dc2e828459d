//! The length of a run, its repetitions, and the samples taken meanwhile.

use vcpulab_host::Span;
use vcpulab_spec::limits::{NAME_CHARS_MAX, RESULT_ROWS_MAX, SAMPLE_ROWS_MAX, SPAN_MAX};
use vcpulab_spec::{DomainSpec, Spec};

use crate::check::fields::Checker;
use crate::file::raw::{RawRun, RawScenario};
use crate::text::problem::{Place, Problem};
use crate::text::read::At;
use crate::text::units::Duration;

/// Time between two samples where the scenario says nothing and lasts no longer than an hour.
const SAMPLE: Span = Span::from_secs(1);

/// In an hour: a longer run has no more, each of as many whole seconds as that takes.
const SAMPLES: i64 = 3_600;

/// Most rows of samples by default.
const ROWS_UNASKED: usize = 1_000_000;

pub(crate) fn name(checker: &mut Checker<'_, '_>, raw: &RawScenario) -> String {
    let name = raw.name(checker.report);
    if let Some(At { value, place }) = &raw.name.0
        && (value.chars().count() > NAME_CHARS_MAX || value.chars().any(char::is_control))
    {
        let allowed = format!("at most {NAME_CHARS_MAX} characters, none of them a control character");
        checker.report.error(place, Problem::not_allowed(allowed));
    }
    name
}

/// Results must fit into memory.
pub(crate) fn rows(checker: &mut Checker<'_, '_>, spec: &Spec, run: &RawRun, place: &Place) {
    let of = |domain: &DomainSpec| 1 + domain.vcpus() as usize + domain.app_kinds().len();
    let rows = spec.domains.iter().map(of).sum::<usize>() + spec.host.pcpus as usize;
    let most = RESULT_ROWS_MAX / rows;
    if spec.replications as usize > most {
        let place = run.replications.0.as_ref().map_or(place, |at| &at.place);
        let allowed = format!(
            "at most {most} with {rows} domains, vCPUs, pCPUs and applications ({RESULT_ROWS_MAX} rows of results)"
        );
        checker.report.error(place, Problem::not_allowed(allowed));
    }
}

/// Time between two samples; zero: none are taken.
pub(crate) fn sample(checker: &mut Checker<'_, '_>, run: &RawRun, spec: &Spec) -> Span {
    let sample = SAMPLE * (1 + spec.duration / (SAMPLE * (SAMPLES + 1)));
    let Some(sample) = run.sample(sample, checker.report) else { return Span::ZERO };
    if sample.is_zero() {
        return Span::ZERO;
    }
    // A domain has a row for itself, for each of its vCPUs and applications, and for each pCPU that it runs on.
    let pcpus = spec.host.pcpus as usize;
    let of = |domain: &DomainSpec| 1 + domain.vcpus() as usize + domain.app_kinds().len() + pcpus;
    let things = spec.clients.len() + spec.domains.iter().map(of).sum::<usize>();
    let at_once = things as i64 * i64::from(spec.replications);
    // The last one is taken at the end.
    let most = |rows: usize| rows as i64 / at_once.max(1) - 1;
    let Some(At { place, .. }) = &run.sample.0 else {
        return if spec.duration / sample <= most(ROWS_UNASKED) { sample } else { Span::ZERO };
    };
    let most = most(SAMPLE_ROWS_MAX);
    if spec.duration / sample <= most {
        return sample;
    }
    let least = Duration(if most > 0 { spec.duration / most + Span::from_ns(1) } else { SPAN_MAX });
    let rows = format!("at least {least} here ({SAMPLE_ROWS_MAX} rows of results), or `0s` for no samples");
    checker.report.error(place, Problem::not_allowed(rows));
    Span::ZERO
}

/// Busy cycles between two samples of the profiler, if there is one.
pub(crate) fn profiler(checker: &mut Checker<'_, '_>, run: &RawRun) -> Option<i64> {
    run.profiler.get()?.cycles(checker.report)
}
