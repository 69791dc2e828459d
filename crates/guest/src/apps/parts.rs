//! Parameters and steps that several applications have in common.

use vcpulab_host::Span;

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, Args, RequestClass};
use crate::ids::ServiceId;
use crate::script::{AppConfig, Call, DiskAccess, Script, ServiceConfig, Step};

/// CPU time that grows with the bytes copied. Bounded so that no product with a size overflows.
pub(super) const KILOBYTE_CPU: AppParam = AppParam {
    name: "kilobyte_cpu",
    doc: "CPU time for each KiB that it copies between itself and the kernel.",
    kind: AppParamKind::Duration { min: Span::ZERO, max: Span::from_ms(1) },
    default: AppDefault::Kilocycles(1),
    source: "assumption: one copy at a byte a cycle, as where the data come from memory",
};

/// Half-open connections of a server.
pub(super) const SYN_QUEUE: AppParam = AppParam::count(
    "syn_queue",
    "Connections whose set-up is under way at once; a call on top is lost, and made again later.",
    (1, 1_000_000),
    ServiceConfig::SYN_QUEUE as i64,
    "tcp(7): tcp_max_syn_backlog is 1024 with 128 MB of memory or more",
);

/// CPU time to copy `bytes`, at `kilobyte` for each KiB.
pub(super) const fn copying(kilobyte: Span, bytes: i64) -> Span {
    Span::from_ns(kilobyte.ns() * bytes / 1024)
}

/// A step that computes for this time.
pub(super) const fn compute(span: Span) -> Step {
    Step::Compute { span, per_byte_ps: 0 }
}

/// A step that computes for this time, and for 1 ns at least: a script that goes round in no time would never let anything
/// else happen.
pub(super) const fn work(span: Span) -> Step {
    work_and_copy(span, Span::ZERO)
}

/// A step that computes for this time, and copies the answer of the request at `kilobyte` for each KiB.
pub(super) const fn work_and_copy(span: Span, kilobyte: Span) -> Step {
    let span = if span.ns() > 0 { span } else { Span::from_ns(1) };
    Step::Compute { span, per_byte_ps: kilobyte.ns() * 1000 / 1024 }
}

/// The steps, executed in `ppm` of a million cases.
pub(super) fn perhaps(ppm: i64, steps: &[Step]) -> Vec<Step> {
    if ppm <= 0 {
        return Vec::new();
    }
    let chance = Step::Chance { ppm: ppm.min(1_000_000) as u32, skip: steps.len() as u32 };
    [&[chance], steps].concat()
}

/// The cases out of a million that a cache with this hit rate misses.
pub(super) const fn misses(hit_percent: i64) -> i64 {
    (100 - hit_percent) * 10_000
}

/// An access to a disk to start from: a sequential read through the page cache.
pub(super) const READ: DiskAccess =
    DiskAccess { bytes: 0, write: false, random: false, direct: false, file_bytes: 0 };

/// A read of this number of bytes at a random place in a file of that size.
pub(super) fn random_read(bytes: u32, file_bytes: i64) -> Step {
    let file_bytes = (file_bytes as u64).max(bytes.into());
    Step::Disk(DiskAccess { bytes, random: true, file_bytes, ..READ })
}

/// A script whose computations vary as the scenario says.
pub(super) fn script(args: &Args<'_>, steps: Vec<Step>) -> Script {
    Script { spread_percent: args.spread_percent, ..Script::new(steps) }
}

/// The application that answers requests, with the steps of each class before the answer.
pub(super) fn service(
    args: &Args<'_>,
    workers: u32,
    config: ServiceConfig,
    classes: &[Vec<Step>],
) -> AppConfig {
    let mut script = script(args, vec![Step::Await]);
    for steps in classes {
        script.classes.push(script.steps.len() as u32);
        script.steps.extend(steps);
        script.steps.extend([Step::Reply(None), Step::Done, Step::Restart]);
    }
    AppConfig { tasks: workers, service: Some(config), ..AppConfig::new(script) }
}

/// A request of that class to a service of that kind, over a connection that is kept.
///
/// # Panics
/// If the kind has no such class.
pub(super) fn request(kind: &AppKind, class: &str, service: ServiceId) -> Call {
    let position = kind.classes.iter().position(|known| known.name == class);
    let position = position.expect("an application asks for known classes only");
    let RequestClass { request_bytes: request, reply_bytes: reply, .. } = kind.classes[position];
    Call { service, class: position as u32, request, reply, connects: false }
}
