//! A recording of any kind: from bytes to events and a report.

use serde::Serialize;

use crate::clock::{ClockReport, MHZ};
use crate::error::ReadError;
use crate::event::{Event, EventCount, Kind};
use crate::notes::{Note, Place};
use crate::sched_text::{SchedText, Threads};
use crate::summary::{Counter, Summary};
use crate::tasks::Thread;
use crate::xentrace::Xentrace;

/// The format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Xen's trace buffers, as `xentrace` writes them.
    Xentrace,
    /// The text of `perf sched script` or `perf script`, or of ftrace.
    SchedText,
}

/// Options of reading.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Frequency of the counter in Xen's traces, MHz; `None`: found from the execution times in the recording.
    pub cpu_mhz: Option<f64>,
    /// In text: the threads that are vCPUs; none: those that are called so, each in the domain of its process's number, or, if
    /// that is not known or has the vCPU twice, of its own.
    pub threads: Threads,
    /// Only events from one time to before another, ns since the first record; times then count from the first.
    pub window_ns: Option<(i64, i64)>,
}

#[derive(Debug)]
enum Reader {
    Xentrace(Box<Xentrace>),
    SchedText(Box<SchedText>),
}

/// A reader of a recording, piece by piece.
#[derive(Debug)]
pub struct Recording {
    reader: Reader,
    counter: Counter,
    window_ns: Option<(i64, i64)>,
}

/// The report on a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Format of the recording.
    pub format: Format,
    /// Bytes read.
    pub bytes: u64,
    /// The clock by which times were made.
    pub clock: ClockReport,
    /// The records by their kinds.
    pub records: Vec<EventCount>,
    /// Notes on missing, damaged and contradictory records.
    pub notes: Vec<Note>,
    /// Of Linux: the threads of the host.
    pub threads: Vec<Thread>,
    /// Of Linux: ticks a second; `None`: it does not tell.
    pub hz: Option<u32>,
    /// CPU time, waits, wake-ups and switches.
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
    /// It is no such recording, or its clock's frequency is unknown.
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
    /// It was no such recording, or its clock's frequency is unknown.
    pub fn finish(self, mut each: impl FnMut(&Event)) -> Result<Report, ReadError> {
        let Self { mut reader, mut counter, window_ns } = self;
        let mut sink = |event: &Event| {
            if let Some(event) = within(event, window_ns) {
                counter.count(&event);
                each(&event);
            }
        };
        let (format, bytes, clock, records, mut notes, threads, hz) = match &mut reader {
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
                    None,
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
                    reader.hz(),
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
        Ok(Report { format, bytes, clock, records, notes, threads, hz, summary })
    }
}

/// An event as the window shows it; the end of the recording is that of the window.
fn within(event: &Event, window_ns: Option<(i64, i64)>) -> Option<Event> {
    let Some((from, to)) = window_ns else { return Some(*event) };
    // What comes to light later may be unknown within the window already.
    let shows = match event.kind {
        Kind::End => true,
        Kind::Lost { since_ns, .. } | Kind::Unknown { since_ns } => since_ns < to && event.time_ns >= from,
        _ => (from..to).contains(&event.time_ns),
    };
    if !shows {
        return None;
    }
    let kind = match event.kind {
        Kind::Lost { records, since_ns } => Kind::Lost { records, since_ns: (since_ns - from).max(0) },
        Kind::Unknown { since_ns } => Kind::Unknown { since_ns: (since_ns - from).max(0) },
        kind => kind,
    };
    Some(Event { time_ns: event.time_ns.clamp(from, to) - from, kind, ..*event })
}
