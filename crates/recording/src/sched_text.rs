//! Text of the Linux scheduler's events: of `perf sched script` and `perf script`, and of ftrace (`trace`, `trace-cmd report`).
//!
//! A line is a task's name, its thread (perf: after its process), the CPU in brackets, flags perhaps, the time in seconds,
//! the event, and its fields:
//!
//! ```text
//! CPU 0/KVM  2345/2350  [003]  81.250114: sched:sched_switch: prev_comm=CPU 0/KVM prev_pid=2350 prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120
//!  CPU 0/KVM-2350  (   2345) [003] d..2.  81.250114: sched_switch: CPU 0/KVM:2350 [120] S ==> swapper/3:0 [120]
//! ```
//!
//! A vCPU of a KVM guest is a thread; QEMU calls it `CPU n/KVM`.

use std::collections::BTreeMap;

use memchr::{memchr_iter, memrchr_iter};
use serde::Serialize;

use crate::clock::{ClockReport, Counters, Jump};
use crate::event::{Event, Kind, Runstate, Who};
use crate::notes::{Notes, Place};
use crate::recording::ReadError;
use crate::xentrace::EventCount;
use crate::{PCPUS_MAX, VCPUS_MAX};

/// Longer lines are passed over.
const LINE_BYTES_MAX: usize = 4096;
/// Characters of a line that a message shows.
const SHOWN_MAX: usize = 120;

/// vCPUs by their threads: domain and number of each.
pub type Threads = BTreeMap<u32, (u32, u32)>;

/// A thread that is a vCPU, or looks like one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its number, as ps shows it (TID).
    pub thread: u32,
    /// Its process, which is the VM's; `None`: the recording does not say.
    pub process: Option<u32>,
    /// What it is called.
    pub name: String,
    /// The vCPU's number that its name tells.
    pub vcpu: u32,
}

/// Reads such text as it comes.
#[derive(Debug)]
pub struct SchedText {
    /// By thread: which vCPU it is, and what it is at if that is known.
    vcpus: BTreeMap<u32, (Who, Option<Runstate>)>,
    /// Threads called like vCPUs: process, name, number.
    found: BTreeMap<u32, (Option<u32>, String, u32)>,
    /// The beginning of a line.
    carry: Vec<u8>,
    /// The rest of this line is passed over.
    overlong: bool,
    bytes: u64,
    line: u64,
    first_line: String,
    counters: Counters,
    /// By pCPU: its last time.
    last: Vec<i64>,
    /// Records lost, and of which pCPU if that was said, until the next line of it tells when they end.
    lost: Option<(Option<u32>, u32)>,
    emitted_ns: i64,
    counts: [u64; 6],
    notes: Notes,
}

/// What lines are counted as; the first three are understood.
const LINES: [&str; 6] =
    ["sched_switch", "sched_wakeup", "sched_waking", "of vCPUs awake already", "lost records", "other lines"];
const SWITCH: usize = 0;
const WAKEUP: usize = 1;
const WAKING: usize = 2;
const AWAKE: usize = 3;
const LOST: usize = 4;
const OTHER: usize = 5;

/// The part of a line before the event.
struct Prefix {
    thread: u32,
    process: Option<u32>,
    pcpu: u32,
    time_ns: u64,
}

/// A task as events name it.
struct Task<'a> {
    name: &'a str,
    thread: u32,
}

impl SchedText {
    /// A reader that knows these vCPUs.
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        let vcpu = |(thread, (domain, vcpu))| (thread, (Who::Vcpu { domain, vcpu }, None));
        let vcpus = threads.into_iter().map(vcpu).collect();
        SchedText {
            vcpus,
            found: BTreeMap::new(),
            carry: Vec::new(),
            overlong: false,
            bytes: 0,
            line: 0,
            first_line: String::new(),
            counters: Counters::default(),
            last: Vec::new(),
            lost: None,
            emitted_ns: 0,
            counts: [0; 6],
            notes: Notes::default(),
        }
    }

    /// Takes the next bytes, and hands on the events of the lines that end there.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Event)) {
        self.bytes += bytes.len() as u64;
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let ends = piece.ends_with(b"\n");
            if ends && self.carry.is_empty() && !self.overlong && piece.len() <= LINE_BYTES_MAX {
                self.one(piece, sink);
                continue;
            }
            if self.carry.len() + piece.len() <= LINE_BYTES_MAX && !self.overlong {
                self.carry.extend_from_slice(piece);
            } else {
                self.overlong = true;
                self.carry.clear();
            }
            if ends {
                self.held(sink);
            }
        }
    }

    /// The line that was held has ended.
    fn held(&mut self, sink: &mut impl FnMut(&Event)) {
        if std::mem::take(&mut self.overlong) {
            self.line += 1;
            let place = Place::Line(self.line);
            let found = || format!("more than {LINE_BYTES_MAX} bytes");
            self.notes.add("overlong lines", "passed over", place, found);
        } else {
            let line = std::mem::take(&mut self.carry);
            self.one(&line, sink);
            self.carry = line;
            self.carry.clear();
        }
    }

    fn one(&mut self, line: &[u8], sink: &mut impl FnMut(&Event)) {
        self.line += 1;
        let line = String::from_utf8_lossy(line);
        let line = line.trim_ascii_end();
        if self.line == 1 {
            self.first_line = line.chars().take(SHOWN_MAX).collect();
        }
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        let event = event_of(line);
        let Some((which, prefix, fields)) = event else {
            match lost(line) {
                Some(lost) => {
                    self.counts[LOST] += 1;
                    self.lost = Some(lost);
                }
                None => self.counts[OTHER] += 1,
            }
            return;
        };
        let understood = match (which, prefix_of(prefix)) {
            (_, None) => false,
            (SWITCH, Some(at)) => match switch(fields) {
                Some((from, state, to)) => {
                    self.switch(&at, &from, state, &to, sink);
                    true
                }
                None => false,
            },
            (_, Some(at)) => match woken(fields) {
                Some(task) => {
                    self.wake(&at, &task, sink);
                    true
                }
                None => false,
            },
        };
        if understood {
            self.counts[which] += 1;
        } else {
            let means = "passed over: who runs afterwards may be wrong until the next line of that CPU";
            self.notes.add("lines of the scheduler not understood", means, Place::Line(self.line), || {
                line.chars().take(SHOWN_MAX).collect()
            });
        }
    }

    fn switch(
        &mut self,
        at: &Prefix,
        from: &Task<'_>,
        state: char,
        to: &Task<'_>,
        sink: &mut impl FnMut(&Event),
    ) {
        let process = (at.thread == from.thread).then_some(at.process).flatten();
        self.learn(from, process);
        self.learn(to, None);
        let time_ns = self.time(at, sink);
        let stops = match state {
            'R' => Runstate::Runnable,
            'X' | 'Z' | 'x' => Runstate::Offline,
            _ => Runstate::Blocked,
        };
        let (who, _) = self.becomes(from.thread, stops);
        sink(&Event { time_ns, pcpu: at.pcpu, who, kind: Kind::change(Runstate::Running, stops) });
        let (who, before) = self.becomes(to.thread, Runstate::Running);
        // Said to run elsewhere: that it stopped there is missing.
        sink(&Event {
            time_ns,
            pcpu: at.pcpu,
            who,
            kind: Kind::Run(before.filter(|&s| s != Runstate::Running)),
        });
    }

    fn wake(&mut self, at: &Prefix, task: &Task<'_>, sink: &mut impl FnMut(&Event)) {
        self.learn(task, None);
        let time_ns = self.time(at, sink);
        match self.vcpus.get(&task.thread) {
            None => return,
            Some((_, Some(Runstate::Running | Runstate::Runnable))) => {
                self.counts[AWAKE] += 1;
                return;
            }
            Some(_) => {}
        }
        let (who, before) = self.becomes(task.thread, Runstate::Runnable);
        sink(&Event { time_ns, pcpu: at.pcpu, who, kind: Kind::Wake(before) });
    }

    fn time(&mut self, at: &Prefix, sink: &mut impl FnMut(&Event)) -> i64 {
        let (time_ns, jump) = self.counters.read(at.pcpu, at.time_ns);
        if let Some(jump) = jump {
            let means = "the time of the line before is taken, and what follows goes on from there";
            let what = match jump {
                Jump::Glitch => "times out of line",
                Jump::Moved(_) => "clocks that jump",
            };
            self.notes.add(what, means, Place::Line(self.line), || {
                format!("CPU {}: {}.{:09} s", at.pcpu, at.time_ns / 1_000_000_000, at.time_ns % 1_000_000_000)
            });
        } else if time_ns < self.emitted_ns {
            let means = "they count as if they came with the line before";
            let early = self.emitted_ns - time_ns;
            self.notes
                .add("lines out of order", means, Place::Line(self.line), || format!("{early} ns early"));
        }
        let time_ns = time_ns.max(self.emitted_ns);
        self.emitted_ns = time_ns;
        let p = at.pcpu as usize;
        if self.last.len() <= p {
            self.last.resize(p + 1, 0);
        }
        let since_ns = std::mem::replace(&mut self.last[p], time_ns);
        if let Some((_, records)) = self.lost.take_if(|(pcpu, _)| pcpu.is_none_or(|pcpu| pcpu == at.pcpu)) {
            let kind = Kind::Lost { records, since_ns };
            sink(&Event { time_ns, pcpu: at.pcpu, who: Who::Host, kind });
        }
        time_ns
    }

    /// Who a thread is; of a vCPU, notes what it is at from now on, and answers with that before.
    fn becomes(&mut self, thread: u32, state: Runstate) -> (Who, Option<Runstate>) {
        match self.vcpus.get_mut(&thread) {
            _ if thread == 0 => (Who::Idle, None),
            Some((who, at)) => (*who, at.replace(state)),
            None => (Who::Host, None),
        }
    }

    /// Is it called like a vCPU?
    fn learn(&mut self, task: &Task<'_>, process: Option<u32>) {
        let Some(rest) = task.name.strip_prefix("CPU ") else { return };
        if let Some((known, ..)) = self.found.get_mut(&task.thread) {
            *known = known.or(process);
            return;
        }
        if let Some(vcpu) = rest.strip_suffix("/KVM").and_then(|number| number.parse().ok())
            && self.found.len() < VCPUS_MAX
        {
            self.found.insert(task.thread, (process, task.name.to_owned(), vcpu));
        }
    }

    /// The text ends: hands on what is left.
    ///
    /// # Errors
    /// Nothing of it was the scheduler's.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Event)) -> Result<(), ReadError> {
        if !self.carry.is_empty() || self.overlong {
            self.held(sink);
        }
        if self.bytes == 0 {
            return Err(ReadError::Empty);
        }
        if self.counts[..=WAKING].iter().sum::<u64>() == 0 {
            return Err(ReadError::NotSchedText { lines: self.line, first: self.first_line.clone() });
        }
        sink(&Event { time_ns: self.emitted_ns, pcpu: 0, who: Who::Host, kind: Kind::End });
        Ok(())
    }

    /// How times were made.
    #[must_use]
    pub fn clock() -> ClockReport {
        ClockReport { source: "text", mhz: None, by_executions_mhz: None, executions: 0 }
    }

    /// Threads called like vCPUs, by number.
    #[must_use]
    pub fn threads(&self) -> Vec<Thread> {
        let thread = |(&thread, (process, name, vcpu)): (&u32, &(Option<u32>, String, u32))| Thread {
            thread,
            process: *process,
            name: name.clone(),
            vcpu: *vcpu,
        };
        self.found.iter().map(thread).collect()
    }

    /// Which lines there were.
    #[must_use]
    pub fn records_seen(&self) -> Vec<EventCount> {
        let seen = LINES.iter().zip(self.counts).filter(|(_, count)| *count > 0);
        seen.map(|(&name, count)| EventCount {
            event: name.to_owned(),
            name: Some(name),
            count,
            used: !matches!(name, "other lines" | "of vCPUs awake already"),
        })
        .collect()
    }

    /// What there is to say of the text.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Bytes read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Which event, what stands before it, its fields. (Searching for single characters is several times as fast as for texts.)
fn event_of(line: &str) -> Option<(usize, &str, &str)> {
    memchr_iter(b':', line.as_bytes()).find_map(|at| {
        let before = &line[..at];
        let named = |which: usize| Some((which, before.strip_suffix(LINES[which])?));
        let (which, prefix) = [SWITCH, WAKEUP, WAKING].into_iter().find_map(named)?;
        Some((which, prefix.strip_suffix("sched:").unwrap_or(prefix), line[at + 1..].strip_prefix(' ')?))
    })
}

/// What stands before and after the last ` name=`.
fn field<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    memrchr_iter(b'=', text.as_bytes()).find_map(|at| {
        let before = text[..at].strip_suffix(name)?.strip_suffix(' ')?;
        Some((before, &text[at + 1..]))
    })
}

/// Task, thread, CPU, flags, time.
fn prefix_of(text: &str) -> Option<Prefix> {
    let text = text.trim_ascii_end().strip_suffix(':')?;
    let (before, after) = text.rsplit_once('[')?;
    let (pcpu, rest) = after.split_once(']')?;
    let pcpu = pcpu.trim().parse().ok().filter(|&pcpu| pcpu < PCPUS_MAX)?;
    let time_ns = seconds(rest.rsplit(' ').next()?)?;
    let mut before = before.trim_ascii_end();
    let mut process = None;
    if let Some(inside) = before.strip_suffix(')') {
        let (task, number) = inside.rsplit_once('(')?;
        (before, process) = (task.trim_ascii_end(), number.trim().parse().ok());
    }
    let last = before.rsplit(' ').next()?;
    let thread = match last.split_once('/') {
        Some((of, thread)) if of.parse::<u32>().is_ok() && thread.parse::<u32>().is_ok() => {
            process = of.parse().ok();
            thread
        }
        _ => last.rsplit('-').next()?,
    };
    Some(Prefix { thread: thread.parse().ok()?, process, pcpu, time_ns })
}

/// Seconds with up to nine decimals, as ns.
fn seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.')?;
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let scale = 10u64.pow(9 - part.len() as u32);
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part.parse::<u64>().ok()? * scale)
}

/// From whom, in which state it stops, to whom.
fn switch(fields: &str) -> Option<(Task<'_>, char, Task<'_>)> {
    let arrow = |at: usize| Some((fields[..at].strip_suffix(" ==")?, fields[at + 1..].strip_prefix(' ')?));
    let (from, to) = memrchr_iter(b'>', fields.as_bytes()).find_map(arrow)?;
    if let Some(from) = from.strip_prefix("prev_comm=") {
        let (name, rest) = field(from, "prev_pid")?;
        let state = field(rest, "prev_state")?.1.chars().next()?;
        let (next, rest_of_next) = field(to.strip_prefix("next_comm=")?, "next_pid")?;
        let from = Task { name, thread: number(rest)? };
        return Some((from, state, Task { name: next, thread: number(rest_of_next)? }));
    }
    let (from, state) = from.rsplit_once(' ')?;
    Some((short(from)?, state.chars().next()?, short(to)?))
}

/// Who is woken.
fn woken(fields: &str) -> Option<Task<'_>> {
    if let Some(task) = fields.strip_prefix("comm=") {
        let (name, rest) = field(task, "pid")?;
        return Some(Task { name, thread: number(rest)? });
    }
    short(fields)
}

/// `name:thread [priority]`, whatever follows.
fn short(text: &str) -> Option<Task<'_>> {
    let (task, _) = text.split_once(" [")?;
    let (name, thread) = task.rsplit_once(':')?;
    Some(Task { name, thread: number(thread)? })
}

/// The digits at the beginning.
fn number(text: &str) -> Option<u32> {
    text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())].parse().ok()
}

/// Of which CPU, if that is said, and how many records were lost: `CPU:3 [LOST 12 EVENTS]`, or perf's `LOST 12` lines.
fn lost(line: &str) -> Option<(Option<u32>, u32)> {
    if let Some((before, after)) = line.split_once("[LOST ") {
        let pcpu = before.trim().strip_prefix("CPU:").and_then(|cpu| cpu.trim().parse().ok());
        return Some((pcpu, number(after).unwrap_or(0)));
    }
    let (_, after) = line.split_once("PERF_RECORD_LOST")?;
    let digits = after.trim_start_matches(|c: char| !c.is_ascii_digit());
    Some((None, number(digits).unwrap_or(0)))
}
