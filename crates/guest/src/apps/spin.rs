//! A parallel program with a lock.

use vcpulab_host::Span;

use super::kind::{AppDefault, AppKind, AppParam, AppParamKind, SPAN_MAX};
use super::parts::{script, work};
use crate::script::{AppConfig, Step};

/// The lock that its threads share.
const LOCK: u32 = 0;

const fn span(name: &'static str, doc: &'static str, source: &'static str) -> AppParam {
    let kind = AppParamKind::Duration { min: Span::ZERO, max: SPAN_MAX };
    AppParam { name, doc, kind, default: AppDefault::Value(0), source }
}

pub const KIND: AppKind = AppKind {
    name: "spin",
    doc: "Threads that take turns at one lock. Its units are critical sections.",
    params: &[
        AppParam::count(
            "threads",
            "How many threads; as many as vCPUs, for one on each.",
            (1, 4096),
            2,
            "two: the fewest that can be in each other's way",
        ),
        AppParam::cpu(
            "section",
            "CPU time of a critical section.",
            10,
            "assumption: microseconds, as kernels keep the sections that they guard with spin locks",
        ),
        span(
            "hold",
            "Time that it waits while it has the lock, on top.",
            "none: who has a spin lock does not wait",
        ),
        AppParam::cpu(
            "work",
            "CPU time between two critical sections.",
            90,
            "assumption: nine times the section, so that two threads are rarely in each other's way by chance",
        ),
        span(
            "think",
            "Mean time that it sleeps between two critical sections.",
            "none: a parallel computation",
        ),
    ],
    classes: &[],
    build: |args| {
        let (hold, think) = (args.span("hold"), args.span("think"));
        let mut steps = vec![work(args.span("work")), Step::Lock(LOCK), work(args.span("section"))];
        if hold > Span::ZERO {
            steps.push(Step::Sleep(hold));
        }
        steps.extend([Step::Unlock(LOCK), Step::Done]);
        if think > Span::ZERO {
            steps.push(Step::Think(think));
        }
        AppConfig { tasks: args.get_u32("threads"), spins: true, ..AppConfig::new(script(args, steps)) }
    },
};
