//! The CPU test of an isolation benchmark.

use super::kind::{AppKind, AppParam};
use super::parts::{script, work};
use crate::script::{AppConfig, Step};

/// Size of its few variables and its loop in a cache, bytes.
const WORKING_SET: u64 = 4096;

pub const KIND: AppKind = AppKind {
    name: "cpu-stress",
    doc: "Integer and floating-point arithmetic without end. Its units are batches of both.",
    params: &[
        AppParam::count(
            "threads",
            "How many do so at once.",
            (1, 4096),
            1,
            "Isolation Benchmark Suite: one process",
        ),
        AppParam::cpu(
            "integer_cpu",
            "CPU time of the integer part of a batch.",
            10_000,
            "assumption: milliseconds, so that a batch costs few events and counts are fine enough",
        ),
        AppParam::cpu(
            "float_cpu",
            "CPU time of the floating-point part of a batch.",
            10_000,
            "assumption: as much as the integer part",
        ),
    ],
    classes: &[],
    build: |args| {
        let steps = vec![work(args.span("integer_cpu")), work(args.span("float_cpu")), Step::Done];
        AppConfig {
            tasks: args.get_u32("threads"),
            private_bytes: WORKING_SET,
            ..AppConfig::new(script(args, steps))
        }
    },
};
