//! A periodic job with a deadline.

use vcpulab_host::Span;

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, SPAN_MAX};
use super::parts::compute;
use crate::script::{AppConfig, Script, Step};

pub const KIND: AppKind = AppKind {
    name: "periodic",
    doc: "Computes for some time in every period. Its units are jobs; one that is not complete by the end of its period is late.",
    params: &[
        AppParam {
            name: "run",
            doc: "CPU time in each period.",
            kind: AppParamKind::Duration { min: Span::from_ns(1), max: SPAN_MAX },
            default: AppDefault::Required,
            source: "",
        },
        AppParam {
            name: "period",
            doc: "Length of a period.",
            kind: AppParamKind::Duration { min: Span::from_ns(1), max: SPAN_MAX },
            default: AppDefault::Required,
            source: "",
        },
    ],
    classes: &[],
    build: |args| {
        let (run, period) = (args.span("run"), args.span("period"));
        AppConfig::new(Script::new(vec![Step::Release(period), compute(run), Step::Deadline(period)]))
    },
};
