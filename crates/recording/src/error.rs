//! Errors of reading.

use thiserror::Error;

/// The reason why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReadError {
    /// The input is empty.
    #[error("is empty; allowed: a recording")]
    Empty,
    /// The input does not begin like a file of `xentrace`.
    #[error(
        "byte 0: found the word {found:#010x}; allowed: 0x2001f003, with which xentrace's files of Xen 4 begin{hint}"
    )]
    NotXentrace {
        /// The first word.
        found: u32,
        /// A hint at its format.
        hint: &'static str,
    },
    /// The frequency of the counter is unknown.
    #[error(
        "no execution times of 0.1 ms or more to find the counter's frequency from\n  hint: --cpu-mhz; `xl info` shows it"
    )]
    NoFrequency,
    /// A frequency that is not allowed.
    #[error("--cpu-mhz: found `{0}`; allowed: 1 to 100000")]
    Mhz(f64),
    /// No line is one of the scheduler's.
    #[error(
        "none of {lines} lines is a sched_switch, sched_wakeup or sched_waking event as `perf sched script` or ftrace writes them; line {line}: `{text}`{hint}"
    )]
    NotSchedText {
        /// Lines read.
        lines: u64,
        /// The first line that names such an event, or the first of all.
        line: u64,
        /// The text of the line, cut short.
        text: String,
        /// The command that records a readable text, or empty.
        hint: String,
    },
    /// Times are differences between lines.
    #[error(
        "line {line}: found a time before that of the line before, as in {back} of {lines} lines: either these are times between lines, as `perf script --deltatime` prints, or lines of several clocks are mixed; allowed: times since a common begin\n  hint: perf script -i perf.data --guest-code --ns -F +pid > trace.txt"
    )]
    Differences {
        /// The first line whose time is before the line's before.
        line: u64,
        /// Lines whose time is before that of the line before of the same CPU.
        back: u64,
        /// Lines of the scheduler.
        lines: u64,
    },
}
