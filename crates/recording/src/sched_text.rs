//! Text of the Linux scheduler's events: of `perf sched script` and `perf script`, and of ftrace (`trace`, `trace-cmd report`).
//!
//! A vCPU of a KVM guest is a thread; QEMU calls it `CPU n/KVM`.

use std::collections::BTreeMap;

use memchr::memchr;

use crate::clock::{ClockReport, Counters, Jump};
use crate::error::ReadError;
use crate::event::{Event, EventCount, Kind, RunState, Who};
use crate::limits::VCPUS_MAX;
use crate::notes::{Notes, Place};
use crate::sched_line::{self, Prefix, Task, Which};
use crate::tasks::{Tasks, Thread, Unrecorded};
use crate::text_order::TextOrder;

/// Longer lines are passed over.
const LINE_BYTES_MAX: usize = 4096;
/// Characters of a line that a message shows.
const SHOWN_MAX: usize = 120;

/// vCPUs by their threads: domain and number of each.
pub type Threads = BTreeMap<u32, (u32, u32)>;

/// A reader of such text, piece by piece.
#[derive(Debug)]
pub struct SchedText {
    /// By thread: its vCPU, and the runstate if that is known.
    vcpus: BTreeMap<u32, (Who, Option<RunState>)>,
    /// Whether vCPUs are found by the names of threads: none were given.
    finds: bool,
    tasks: Tasks,
    /// The beginning of a line.
    carry: Vec<u8>,
    /// Whether the rest of this line is passed over.
    overlong: bool,
    bytes: u64,
    line: u64,
    example: Example,
    order: TextOrder,
    counters: Counters,
    /// By pCPU: its last time.
    last: Vec<i64>,
    /// Lost records: their pCPU, if the text tells it, and their number. They end with the next line of that pCPU.
    lost: Option<(Option<u32>, u32)>,
    emitted_ns: i64,
    counts: [u64; 6],
    notes: Notes,
}

/// The line that an error shows: the first that names an event of the scheduler but is not read, or else the first of all.
#[derive(Debug, Default)]
struct Example {
    line: u64,
    text: String,
    names_event: bool,
    /// The command that records readable lines.
    advice: Option<&'static str>,
}

/// Kinds of lines; the first three are understood.
const LINES: [&str; 6] =
    ["sched_switch", "sched_wakeup", "sched_waking", "of vCPUs awake already", "lost records", "other lines"];
const AWAKE: usize = 3;
const LOST: usize = 4;
const OTHER: usize = 5;

impl SchedText {
    /// A reader of these vCPUs. If none are given it takes the threads that are called like vCPUs, each at first in a domain
    /// of its own, with the thread's number ([`Self::processes`]).
    #[must_use]
    pub fn new(threads: Threads) -> Self {
        let finds = threads.is_empty();
        let vcpu = |(thread, (domain, vcpu))| (thread, (Who::Vcpu { domain, vcpu }, None));
        let vcpus = threads.into_iter().map(vcpu).collect();
        SchedText {
            vcpus,
            finds,
            tasks: Tasks::default(),
            carry: Vec::new(),
            overlong: false,
            bytes: 0,
            line: 0,
            example: Example::default(),
            order: TextOrder::default(),
            counters: Counters::default(),
            last: Vec::new(),
            lost: None,
            emitted_ns: 0,
            counts: [0; 6],
            notes: Notes::default(),
        }
    }

    /// Takes the next bytes, and emits the events of the lines that end there.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(&Event)) {
        self.bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let end = memchr(b'\n', bytes);
            let (piece, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            bytes = rest;
            if end.is_some() && self.carry.is_empty() && !self.overlong && piece.len() <= LINE_BYTES_MAX {
                self.one(piece, sink);
                continue;
            }
            if self.carry.len() + piece.len() <= LINE_BYTES_MAX && !self.overlong {
                self.carry.extend_from_slice(piece);
            } else {
                self.overlong = true;
                self.carry.clear();
            }
            if end.is_some() {
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
            let means =
                "passed over: if the scheduler wrote them, the task that runs afterwards may be wrong";
            self.notes.add("overlong lines", means, place, found);
        } else {
            let line = std::mem::take(&mut self.carry);
            self.one(&line, sink);
            self.carry = line;
            self.carry.clear();
        }
    }

    fn one(&mut self, line: &[u8], sink: &mut impl FnMut(&Event)) {
        self.line += 1;
        let line = line.trim_ascii_end();
        if self.line == 1 {
            self.example = Example { line: 1, text: shown(line), ..Example::default() };
        }
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        let Some((which, prefix, fields)) = sched_line::event(line) else {
            match sched_line::lost(line) {
                Some(lost) => {
                    self.counts[LOST] += 1;
                    self.lost = Some(lost);
                }
                None => {
                    self.counts[OTHER] += 1;
                    if let Some((ticks, prefix)) = sched_line::tick(line)
                        && let Some(at) = sched_line::prefix(prefix)
                    {
                        self.tasks.tick(ticks, at.pcpu, at.time_ns);
                    }
                }
            }
            return;
        };
        let Some(()) = self.event(which, prefix, fields, sink) else {
            let means =
                "passed over: the task that runs afterwards may be wrong until the next line of that CPU";
            let place = Place::Line(self.line);
            self.notes.add("lines of the scheduler not understood", means, place, || shown(line));
            if !self.example.names_event {
                let advice = sched_line::advice(prefix);
                self.example = Example { line: self.line, text: shown(line), names_event: true, advice };
            }
            return;
        };
        self.counts[which as usize] += 1;
    }

    fn event(
        &mut self,
        which: Which,
        prefix: &[u8],
        fields: &[u8],
        sink: &mut impl FnMut(&Event),
    ) -> Option<()> {
        let at = sched_line::prefix(prefix)?;
        self.order.take(self.line, at.pcpu, at.time_ns);
        match which {
            Which::Switch => {
                let (from, state, to) = sched_line::switch(fields)?;
                self.switch(&at, &from, state, &to, sink);
            }
            Which::Wakeup | Which::Waking => self.wake(&at, &sched_line::woken(fields)?, sink),
        }
        Some(())
    }

    fn switch(
        &mut self,
        at: &Prefix,
        from: &Task<'_>,
        state: u8,
        to: &Task<'_>,
        sink: &mut impl FnMut(&Event),
    ) {
        self.learn(from);
        self.learn(to);
        self.tasks.belongs(at.thread, at.process);
        let time_ns = self.time(at, sink);
        for missing in self.tasks.switch(at.pcpu, from.thread, to.thread, time_ns).into_iter().flatten() {
            self.missing(missing, time_ns, sink);
        }
        let stops = match state {
            b'R' => RunState::Runnable,
            b'X' | b'Z' | b'x' => RunState::Offline,
            _ => RunState::Blocked,
        };
        let (who, _) = self.becomes(from.thread, stops);
        sink(&Event { time_ns, pcpu: at.pcpu, who, kind: Kind::change(RunState::Running, stops) });
        let (who, before) = self.becomes(to.thread, RunState::Running);
        if before == Some(RunState::Blocked) {
            let means = "the time since blocking counts as unknown; record `sched_wakeup`, and give `perf script` the option \
                         `--guest-code`: without it perf leaves out what interrupts did while a guest was running";
            let found =
                || format!("{}, thread {}, runs after blocking", String::from_utf8_lossy(to.name), to.thread);
            self.notes.add("wake-ups that are missing", means, Place::Line(self.line), found);
        }
        // A task that runs could run before. If it still runs elsewhere, the record of its stop is missing.
        let could = before.filter(|&state| state != RunState::Running).map(|_| RunState::Runnable);
        sink(&Event { time_ns, pcpu: at.pcpu, who, kind: Kind::Run(could) });
    }

    /// A record of a thread is missing: what it did since the one before is unknown.
    fn missing(&mut self, of: Unrecorded, time_ns: i64, sink: &mut impl FnMut(&Event)) {
        let who = match self.vcpus.get_mut(&of.thread) {
            _ if of.thread == 0 => Who::Idle,
            Some((who, state)) => {
                *state = None;
                *who
            }
            None => Who::Host,
        };
        sink(&Event { time_ns, pcpu: of.pcpu, who, kind: Kind::Unknown { since_ns: of.since_ns } });
    }

    fn wake(&mut self, at: &Prefix, task: &Task<'_>, sink: &mut impl FnMut(&Event)) {
        // A thread that no line named before slept, or began only now.
        let asleep = (!self.tasks.has(task.thread)).then_some(RunState::Blocked);
        self.learn(task);
        self.tasks.belongs(at.thread, at.process);
        let time_ns = self.time(at, sink);
        match self.vcpus.get(&task.thread) {
            None => return,
            Some((_, Some(RunState::Running | RunState::Runnable))) => {
                self.counts[AWAKE] += 1;
                return;
            }
            Some(_) => {}
        }
        let (who, before) = self.becomes(task.thread, RunState::Runnable);
        sink(&Event { time_ns, pcpu: at.pcpu, who, kind: Kind::Wake(before.or(asleep)) });
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
            self.tasks.stop(at.pcpu, since_ns);
            for (_, state) in self.vcpus.values_mut() {
                *state = None; // It may have changed unseen.
            }
            sink(&Event { time_ns, pcpu: at.pcpu, who: Who::Host, kind });
        }
        time_ns
    }

    /// The vCPU of a thread, if it is one; sets its runstate and returns the one before.
    fn becomes(&mut self, thread: u32, state: RunState) -> (Who, Option<RunState>) {
        match self.vcpus.get_mut(&thread) {
            _ if thread == 0 => (Who::Idle, None),
            Some((who, at)) => (*who, at.replace(state)),
            None => (Who::Host, None),
        }
    }

    /// Notes a thread; one that is called like a vCPU is one from now on.
    fn learn(&mut self, task: &Task<'_>) {
        if let Some(vcpu) = self.tasks.learn(task)
            && self.finds
            && self.vcpus.len() < VCPUS_MAX
        {
            self.vcpus.insert(task.thread, (Who::Vcpu { domain: task.thread, vcpu }, None));
        }
    }

    /// The text ends: emits the events that are left.
    ///
    /// # Errors
    /// No line of it was the scheduler's, or times are differences between lines.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Event)) -> Result<(), ReadError> {
        if !self.carry.is_empty() || self.overlong {
            self.held(sink);
        }
        if self.bytes == 0 {
            return Err(ReadError::Empty);
        }
        if self.counts[..AWAKE].iter().sum::<u64>() == 0 {
            let Example { line, ref text, advice, .. } = self.example;
            let hint = advice.map(|advice| format!("\n  hint: {advice}")).unwrap_or_default();
            return Err(ReadError::NotSchedText { lines: self.line, line, text: text.clone(), hint });
        }
        self.order.check()?;
        let switches = self.counts[Which::Switch as usize];
        let wakes = self.counts[Which::Wakeup as usize] + self.counts[Which::Waking as usize];
        for (count, what, means) in [
            (
                switches,
                "no sched_switch",
                "the tasks that run, and their times, are not known: record sched_switch too",
            ),
            (
                wakes,
                "no sched_wakeup nor sched_waking",
                "wake-ups, and CPU time between waking and blocking, are not known: record sched_waking too",
            ),
        ] {
            if count == 0 {
                self.notes
                    .add(what, means, Place::Line(self.line), || "seen over the whole recording".into());
            }
        }
        self.tasks.finish(self.emitted_ns);
        sink(&Event { time_ns: self.emitted_ns, pcpu: 0, who: Who::Host, kind: Kind::End });
        Ok(())
    }

    /// The clock by which times were made.
    #[must_use]
    pub fn clock() -> ClockReport {
        ClockReport { source: "text", mhz: None, by_executions_mhz: None, executions: 0 }
    }

    /// The threads of the host, by number.
    #[must_use]
    pub fn threads(&self) -> Vec<Thread> {
        self.tasks.iter().cloned().collect()
    }

    /// The rate of the host's ticks; `None`: the text does not tell.
    #[must_use]
    pub fn hz(&self) -> Option<u32> {
        self.tasks.hz()
    }

    /// The process, which is the VM, of each vCPU found by its thread's name, by thread; those that the text does not tell are left out.
    pub fn processes(&self) -> BTreeMap<u32, u32> {
        let found = self.tasks.iter().filter(|thread| self.finds && thread.vcpu.is_some());
        found.filter_map(|thread| Some((thread.thread, thread.process?))).collect()
    }

    /// The lines by their kinds.
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

    /// Notes on the text.
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

/// The beginning of a line, for a message.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line).chars().take(SHOWN_MAX).collect()
}
