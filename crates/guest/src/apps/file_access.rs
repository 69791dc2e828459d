//! Common parts of programs that go through a file piece by piece.

use super::kind::{AppDefault, AppParam, AppParamKind, Args};
use super::parts::{copying, script, work};
use crate::script::{AppConfig, DiskAccess, Step};

pub const CALL_CPU: AppParam = AppParam::cpu(
    "call_cpu",
    "CPU time of the system calls for each piece, without the driver's own work.",
    4,
    "assumption: two calls of some two thousand cycles each",
);

pub const RUNS: AppParam = AppParam {
    name: "runs",
    doc: "How many times it goes through the file before it ends; 0: without end.",
    kind: AppParamKind::Int { min: 0, max: 1_000_000 },
    default: AppDefault::Value(0),
    source: "without end, so that there is something to measure for as long as the run lasts",
};

pub const fn direct(default: i64, source: &'static str) -> AppParam {
    AppParam {
        name: "direct",
        doc: "Past the page cache, so that each piece waits for the disk?",
        kind: AppParamKind::Flag,
        default: AppDefault::Value(default),
        source,
    }
}

/// Accesses a file of `count` pieces, again and again.
pub fn pieces(args: &Args<'_>, access: DiskAccess, count: i64) -> AppConfig {
    let bytes = i64::from(access.bytes);
    let access = DiskAccess { direct: args.get("direct") == 1, file_bytes: (bytes * count) as u64, ..access };
    let span = args.span("call_cpu") + copying(args.span("kilobyte_cpu"), bytes);
    let mut script = script(args, vec![Step::Disk(access), work(span), Step::Done]);
    let runs = args.get_u32("runs");
    if runs > 0 {
        script.repeat(0, count as u32);
        script.repeat(0, runs);
        script.steps.push(Step::Stop);
    }
    AppConfig::new(script)
}
