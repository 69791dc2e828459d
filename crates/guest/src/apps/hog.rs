//! A CPU hog.

use vcpulab_host::Span;

use super::kind::AppKind;
use super::parts::compute;
use crate::script::{AppConfig, Script, Unit};

/// Length of a step of computing: long, so that a run has few events, but short enough that the count of units does not lag.
const CHUNK: Span = Span::from_ms(10);

pub const KIND: AppKind = AppKind {
    name: "hog",
    doc: "Computes without end. Its units are milliseconds of CPU time.",
    params: &[],
    classes: &[],
    build: |_| AppConfig::new(Script { unit: Unit::CpuMillisecond, ..Script::new(vec![compute(CHUNK)]) }),
};
