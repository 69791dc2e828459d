//! A recording of any kind, and what is made of it.

use serde::Serialize;
use thiserror::Error;

use crate::clock::{ClockReport, MHZ};
use crate::event::{Event, Kind};
use crate::notes::{Note, Place};
use crate::sched_text::{SchedText, Thread, Threads};
use crate::summary::{Counter, Summary};
use crate::xentrace::{EventCount, Xentrace};

/// What a recording is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Xen's trace buffers, as `xentrace` writes them.
    Xentrace,
    /// The text of `perf sched script` or `perf script`, or of ftrace.
    SchedText,
}

/// How to read a recording.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Frequency of the counter in Xen's traces, MHz; `None`: found from the execution times in the recording.
    pub cpu_mhz: Option<f64>,
    /// In text: which threads are vCPUs; none: those that are called so, each in the domain of its process's number, or, if
    /// that is not known or has the vCPU twice, of its own.
    pub threads: Threads,
    /// Only what happens from one time to before another, ns since the first record; times then count from the first.
    pub window_ns: Option<(i64, i64)>,
}

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReadError {
    /// Nothing is there.
    #[error("is empty; allowed: a recording")]
    Empty,
    /// It begins otherwise.
    #[error(
        "byte 0: found the word {found:#010x}; allowed: 0x2001f003, with which xentrace's files of Xen 4 begin{hint}"
    )]
    NotXentrace {
        /// The first word.
        found: u32,
        /// What it may be instead.
        hint: &'static str,
    },
    /// Nothing tells how long a tick is.
    #[error(
        "no execution times of 0.1 ms or more to find the counter's frequency from\n  hint: --cpu-mhz; `xl info` shows it"
    )]
    NoFrequency,
    /// An option.
    #[error("--cpu-mhz: found `{0}`; allowed: 1 to 100000")]
    Mhz(f64),
    /// No line is one of the scheduler's.
    #[error(
        "none of {lines} lines is a sched_switch, sched_wakeup or sched_waking event as `perf sched script` or ftrace writes them; the first: `{first}`"
    )]
    NotSchedText {
        /// Lines read.
        lines: u64,
        /// The first, cut short.
        first: String,
    },
}

impl ReadError {
    pub(crate) fn not_xentrace(found: u32) -> Self {
        let hint = match found {
            _ if found.swap_bytes() == crate::xentrace::WINDOW => {
                "\n  hint: it was recorded on a big-endian machine; none such is read"
            }
            0x587a_37fd => "\n  hint: it is compressed (xz)",
            _ if found & 0xffff == 0x8b1f => "\n  hint: it is compressed (gzip)",
            _ if found < crate::PCPUS_MAX => {
                "\n  hint: xentrace of Xen 3 wrote files like this; record with Xen 4"
            }
            _ => "",
        };
        ReadError::NotXentrace { found, hint }
    }
}

#[derive(Debug)]
enum Reader {
    Xentrace(Box<Xentrace>),
    SchedText(Box<SchedText>),
}

/// Reads a recording as it comes.
#[derive(Debug)]
pub struct Recording {
    reader: Reader,
    counter: Counter,
    window_ns: Option<(i64, i64)>,
}

/// All there is to say of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What it is written in.
    pub format: Format,
    /// Bytes read.
    pub bytes: u64,
    /// How times were made.
    pub clock: ClockReport,
    /// Which records there were.
    pub records: Vec<EventCount>,
    /// What must be known about it.
    pub notes: Vec<Note>,
    /// Threads that look like vCPUs, or were said to be.
    pub threads: Vec<Thread>,
    /// What it holds.
    pub summary: Summary,
}

impl Recording {
    /// A reader.
    ///
    /// # Errors
    /// An option is not allowed.
    pub fn new(format: Format, options: Options) -> Result<Self, ReadError> {
        if let Some(mhz) = options.cpu_mhz.filter(|mhz| !MHZ.contains(mhz)) {
            return Err(ReadError::Mhz(mhz));
        }
        let reader = match format {
            Format::Xentrace => Reader::Xentrace(Box::new(Xentrace::new(options.cpu_mhz))),
            Format::SchedText => Reader::SchedText(Box::new(SchedText::new(options.threads))),
        };
        Ok(Recording { reader, counter: Counter::default(), window_ns: options.window_ns })
    }

    /// Takes the next bytes; `each` gets the events that are complete with them, in order of time.
    ///
    /// # Errors
    /// It is no such recording, or its times cannot be told.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&Event)) -> Result<(), ReadError> {
        let Self { reader, counter, window_ns } = self;
        let mut sink = |event: &Event| {
            if let Some(event) = within(event, *window_ns) {
                counter.count(&event);
                each(&event);
            }
        };
        match reader {
            Reader::Xentrace(reader) => reader.feed(bytes, &mut sink),
            Reader::SchedText(reader) => {
                reader.feed(bytes, &mut sink);
                Ok(())
            }
        }
    }

    /// The recording ends; `each` gets the rest of its events.
    ///
    /// # Errors
    /// It was no recording, or its times cannot be told.
    pub fn finish(self, mut each: impl FnMut(&Event)) -> Result<Report, ReadError> {
        let Self { mut reader, mut counter, window_ns } = self;
        let mut sink = |event: &Event| {
            if let Some(event) = within(event, window_ns) {
                counter.count(&event);
                each(&event);
            }
        };
        let (format, bytes, clock, records, mut notes, threads) = match &mut reader {
            Reader::Xentrace(reader) => {
                reader.finish(&mut sink)?;
                let records = reader.records_seen();
                (
                    Format::Xentrace,
                    reader.bytes(),
                    reader.clock(),
                    records,
                    reader.notes().clone(),
                    Vec::new(),
                )
            }
            Reader::SchedText(reader) => {
                reader.finish(&mut sink)?;
                counter.rename_domains(&reader.processes());
                let notes = reader.notes().clone();
                (
                    Format::SchedText,
                    reader.bytes(),
                    SchedText::clock(),
                    reader.records_seen(),
                    notes,
                    reader.threads(),
                )
            }
        };
        let end = Place::Byte(bytes);
        let (summary, own) = counter.finish();
        for (what, count, means) in own {
            notes.more(count, what, means, end, || "seen over the whole recording".into());
        }
        if let (Some(used), Some(told)) = (clock.mhz, clock.by_executions_mhz)
            && (used / told - 1.0).abs() > 0.01
        {
            let means =
                "all times are wrong by that much, unless the counter's pace changed or records are missing";
            notes.add("a frequency that does not fit", means, end, || {
                format!("{used} MHz was used; the execution times in the recording say {told:.3} MHz")
            });
        }
        let notes = notes.iter().cloned().collect();
        Ok(Report { format, bytes, clock, records, notes, threads, summary })
    }
}

/// An event as the window shows it; the end of the recording is that of the window.
fn within(event: &Event, window_ns: Option<(i64, i64)>) -> Option<Event> {
    let Some((from, to)) = window_ns else { return Some(*event) };
    let ends = event.kind == Kind::End;
    if !ends && !(from..to).contains(&event.time_ns) {
        return None;
    }
    let kind = match event.kind {
        Kind::Lost { records, since_ns } => Kind::Lost { records, since_ns: (since_ns - from).max(0) },
        kind => kind,
    };
    Some(Event { time_ns: event.time_ns.clamp(from, to) - from, kind, ..*event })
}
