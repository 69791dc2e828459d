//! The trace buffers of Xen 4.x as `xentrace` writes them.
//!
//! A file is a sequence of windows. Each was read from one pCPU's buffer and begins with a record that tells the pCPU
//! and the number of bytes that follow. A record is a word (event in 28 bits, number of extra words in 3, "has a counter reading" in
//! 1), the 64-bit reading of the pCPU's counter if it has one, and the extra words, all little-endian. Events are numbered
//! in Xen's public header `trace.h`; of the scheduler's, all that tell which vCPU runs are understood, and those of single policies
//! counted.

use std::collections::BTreeMap;

use crate::clock::{Calibration, ClockReport, Counters, Jump, Scale};
use crate::error::ReadError;
use crate::event::{Event, EventCount, Kind, RunState, Who};
use crate::limits::PCPUS_MAX;
use crate::notes::{Notes, Place};
use crate::order::Order;

/// The first word of the record that begins a window: event `TRC_TRACE_CPU_CHANGE`, two extra words, no reading.
const WINDOW: u32 = 0x2001_f003;
const LOST: u32 = 0x0001_f001;
const WRAP: u32 = 0x0001_f002;
const CPU_CHANGE: u32 = 0x0001_f003;
/// RunStates before and after are in bits 8 and 4 from here on.
const RUNSTATE: u32 = 0x0002_1001;
const CONTINUE: u32 = 0x0002_1002;
const POLICIES: u32 = 0x0002_2000;
const DOMAIN_ADDED: u32 = 0x0002_8001;
const DOMAIN_REMOVED: u32 = 0x0002_8002;
const YIELD: u32 = 0x0002_8005;
const SWITCH_FROM: u32 = 0x0002_800e;
const SWITCH_TO: u32 = 0x0002_800f;
/// Xen's number for the domain of the idle vCPUs.
const IDLE: u32 = 0x7fff;
/// Domains have lower numbers: those from here on mean something else (`DOMID_FIRST_RESERVED` in Xen's public header).
const DOMAINS_END: u32 = 0x7ff0;
/// vCPUs of a domain have lower numbers; more than any Xen gives one.
const VCPUS_END: u32 = 1 << 13;
/// The longest record: word, reading, seven extra words.
const RECORD_BYTES_MAX: usize = 4 + 8 + 7 * 4;
/// Events outside the scheduler's class that are counted one by one.
const OTHERS_MAX: usize = 1024;

/// A reader of a trace, piece by piece.
#[derive(Debug)]
pub struct Xentrace {
    /// The beginning of a record whose end has not come yet.
    carry: Vec<u8>,
    /// Bytes read before.
    offset: u64,
    window: Option<Window>,
    /// Whether bytes are passed over until a window begins.
    astray: bool,
    counters: Counters,
    /// By pCPU: the time of its last record, and whether records after it are missing.
    last: Vec<Option<(i64, bool)>>,
    given_mhz: Option<f64>,
    scale: Option<Scale>,
    used_mhz: Option<f64>,
    calibration: Calibration,
    order: Order,
    emitted_ns: i64,
    counts: Counts,
    notes: Notes,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    pcpu: u32,
    left: u64,
}

/// The place and the time of a record.
#[derive(Clone, Copy)]
struct At {
    pcpu: u32,
    ticks: i64,
}

/// Bytes that were used.
enum Step {
    Used(usize),
    /// More must come first.
    Short,
}

impl Xentrace {
    /// A reader; `mhz`: the counters' frequency, else it is found from the execution times in the recording.
    #[must_use]
    pub fn new(mhz: Option<f64>) -> Self {
        Xentrace {
            carry: Vec::with_capacity(2 * RECORD_BYTES_MAX),
            offset: 0,
            window: None,
            astray: false,
            counters: Counters::default(),
            last: Vec::new(),
            given_mhz: mhz,
            scale: mhz.map(Scale::of),
            used_mhz: mhz,
            calibration: Calibration::default(),
            order: Order::default(),
            emitted_ns: 0,
            counts: Counts::default(),
            notes: Notes::default(),
        }
    }

    /// Takes the next bytes, and emits the events that are in order.
    ///
    /// # Errors
    /// It is no such trace, or its clock's frequency is unknown.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(&Event)) -> Result<(), ReadError> {
        while !self.carry.is_empty() && !bytes.is_empty() {
            let (head, tail) = bytes.split_at(bytes.len().min(RECORD_BYTES_MAX));
            let held = self.carry.len();
            self.carry.extend_from_slice(head);
            let carry = std::mem::take(&mut self.carry);
            let used = self.records(&carry, held, sink)?;
            self.carry = carry;
            if used < held {
                // Not even one record: all of the head is held now.
                bytes = tail;
            } else {
                self.carry.clear();
                bytes = &bytes[used - held..];
            }
        }
        let used = self.records(bytes, usize::MAX, sink)?;
        self.carry.extend_from_slice(&bytes[used..]);
        Ok(())
    }

    /// Reads whole records, until one ends at or after `until`; returns the bytes used.
    fn records(
        &mut self,
        bytes: &[u8],
        until: usize,
        sink: &mut impl FnMut(&Event),
    ) -> Result<usize, ReadError> {
        let mut at = 0;
        while at < bytes.len() && at < until {
            match self.record(&bytes[at..], sink)? {
                Step::Used(used) => {
                    self.offset += used as u64;
                    at += used;
                }
                Step::Short => break,
            }
        }
        Ok(at)
    }

    fn record(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Event)) -> Result<Step, ReadError> {
        let Some(head) = word(bytes, 0) else { return Ok(Step::Short) };
        let Some(window) = self.window else {
            if head != WINDOW {
                return Err(not_xentrace(head));
            }
            return self.begin(bytes, sink);
        };
        if head == WINDOW {
            if window.left > 0 && !self.astray {
                self.damage(window, "windows shorter than they say", || {
                    format!("{} bytes are missing", window.left)
                });
            }
            return self.begin(bytes, sink);
        }
        if self.astray {
            return Ok(Step::Used(4));
        }
        let (event, extra, timed) = (head & 0x0fff_ffff, (head >> 28 & 7) as usize, head >> 31 == 1);
        let first = if timed { 12 } else { 4 };
        let length = first + 4 * extra;
        if event >> 12 == 0 || event == CPU_CHANGE || length as u64 > window.left {
            self.damage(window, "damaged records", || {
                format!(
                    "pCPU {}: the word {head:#010x}, {} bytes before its window's end",
                    window.pcpu, window.left
                )
            });
            self.astray = true;
            return Ok(Step::Used(4));
        }
        if bytes.len() < length {
            return Ok(Step::Short);
        }
        if let Some(window) = &mut self.window {
            window.left -= length as u64;
        }
        let reading = if timed { word(bytes, 4).zip(word(bytes, 8)) } else { None };
        let reading = reading.map(|(low, high)| u64::from(high) << 32 | u64::from(low));
        let mut words = [0; 7];
        for (i, value) in words[..extra].iter_mut().enumerate() {
            *value = word(bytes, first + 4 * i).unwrap_or(0);
        }
        self.understand(event, window.pcpu, reading, &words[..extra]);
        if self.order.full() {
            self.calibrate(true)?;
            let means = "events of different pCPUs may be out of order";
            self.notes.add("long rounds", means, Place::Byte(self.offset), || {
                "more events between two visits of a pCPU's buffer than are held".into()
            });
            let Self { order, scale, emitted_ns, .. } = self;
            emit(order.half(), *scale, emitted_ns, sink);
        }
        Ok(Step::Used(length))
    }

    /// A window begins; with it perhaps a round.
    fn begin(&mut self, bytes: &[u8], sink: &mut impl FnMut(&Event)) -> Result<Step, ReadError> {
        let (Some(pcpu), Some(size)) = (word(bytes, 4), word(bytes, 8)) else { return Ok(Step::Short) };
        if pcpu >= PCPUS_MAX {
            let place = Place::Byte(self.offset);
            let means = "what follows is passed over up to the next window";
            self.notes.add("windows of impossible pCPUs", means, place, || {
                format!("pCPU {pcpu}; allowed: 0 to {}", PCPUS_MAX - 1)
            });
            self.window.get_or_insert(Window { pcpu: 0, left: 0 });
            self.astray = true;
            return Ok(Step::Used(12));
        }
        let alone = self.last.iter().flatten().nth(1).is_none();
        let again = self.window.is_some_and(|before| pcpu < before.pcpu || alone && pcpu == before.pcpu);
        if again && !self.order.full() {
            self.calibrate(false)?;
            if self.scale.is_some() {
                let Self { order, scale, emitted_ns, .. } = self;
                emit(order.round(), *scale, emitted_ns, sink);
            }
        }
        self.window = Some(Window { pcpu, left: u64::from(size) });
        self.astray = false;
        if self.last.len() <= pcpu as usize {
            self.last.resize(pcpu as usize + 1, None);
        }
        Ok(Step::Used(12))
    }

    /// Records of that pCPU are lost from here to the next window.
    fn damage(&mut self, window: Window, what: &'static str, found: impl FnOnce() -> String) {
        let means = "passed over up to the next window; what this pCPU did meanwhile counts as unknown";
        self.notes.add(what, means, Place::Byte(self.offset), found);
        if let Some(Some((_, gap))) = self.last.get_mut(window.pcpu as usize) {
            *gap = true;
        }
        self.calibration.forget(window.pcpu);
    }

    /// Counts a record, and understands it if it is the scheduler's or of a loss.
    fn understand(&mut self, event: u32, pcpu: u32, reading: Option<u64>, words: &[u32]) {
        self.counts.add(event);
        if event == WRAP || event >> 16 != 2 && event != LOST || event & 0xf000 == POLICIES & 0xf000 {
            return;
        }
        let Some(reading) = reading else {
            let means = "they cannot be put in order, and are passed over";
            let place = Place::Byte(self.offset);
            self.notes.add("scheduler records without time", means, place, || format!("event {event:#x}"));
            return;
        };
        let at = At { pcpu, ticks: self.time(pcpu, reading) };
        let before = self.last[pcpu as usize].replace((at.ticks, false));
        if let Some((since_ns, true)) = before {
            self.push(at, Who::Host, Kind::Lost { records: 0, since_ns });
        }
        match (event, words) {
            (LOST, &[records, _, low, high]) => {
                let earliest = before.map_or(0, |(last, _)| last);
                self.lost(at, records, u64::from(high) << 32 | u64::from(low), earliest);
            }
            (SWITCH_FROM | SWITCH_TO, _) => self.switched(at, event, words),
            (_, &[packed]) if is_runstate(event) => self.runstate_changed(at, event, packed),
            _ => self.said(at, event, words),
        }
    }

    /// Records of that pCPU are lost, the first of them with the counter at `first`.
    fn lost(&mut self, at: At, records: u32, first: u64, earliest: i64) {
        let since_ns = self.counters.at(at.pcpu, first).clamp(earliest.min(at.ticks), at.ticks);
        self.push(at, Who::Host, Kind::Lost { records, since_ns });
        self.calibration.forget(at.pcpu);
    }

    /// Handles half of a context switch: the vCPU that stops, with its execution time, or the vCPU that starts, with
    /// its slice.
    fn switched(&mut self, at: At, event: u32, words: &[u32]) {
        match (event, words) {
            (SWITCH_FROM, &[.., ran_ns]) if (2..=3).contains(&words.len()) => {
                self.calibration.left(at.pcpu, at.ticks, ran_ns);
            }
            // A policy without time slices says −1.
            (SWITCH_TO, &[domain, vcpu, _, slice_ns]) if i32::try_from(slice_ns).is_ok_and(|ns| ns > 0) => {
                self.push_for(at, who(domain, vcpu), Kind::Slice(slice_ns));
            }
            // Before Xen 4.9 these had no number of the vCPU; such are passed over.
            _ => {}
        }
    }

    fn runstate_changed(&mut self, at: At, event: u32, packed: u32) {
        if let Some((from, to)) = RunState::of(event >> 8 & 0xf).zip(RunState::of(event >> 4 & 0xf)) {
            self.push_for(at, unpack(packed), Kind::change(from, to));
        }
    }

    /// A record that is an event by itself, or none that metrics are made of.
    fn said(&mut self, at: At, event: u32, words: &[u32]) {
        match (event, words) {
            (CONTINUE, &[packed]) => self.push_for(at, unpack(packed), Kind::Continue),
            (YIELD, &[domain, vcpu]) => self.push_for(at, who(domain, vcpu), Kind::Yield),
            (DOMAIN_ADDED, &[domain]) => self.push_for(at, who(domain, 0), Kind::Added),
            (DOMAIN_REMOVED, &[domain]) => self.push_for(at, who(domain, 0), Kind::Removed),
            _ if known(event).is_some_and(|(_, used)| !used) => {}
            _ => {
                let means = "not understood; the metrics do without them";
                let place = Place::Byte(self.offset);
                self.notes.add("unknown scheduler records", means, place, || {
                    format!("event {event:#x} with {} words", words.len())
                });
            }
        }
    }

    fn push(&mut self, At { pcpu, ticks }: At, who: Who, kind: Kind) {
        self.order.push(Event { time_ns: ticks, pcpu, who, kind });
    }

    /// An event of a vCPU, unless no vCPU can have these numbers.
    fn push_for(&mut self, at: At, who: Result<Who, (u32, u32)>, kind: Kind) {
        match who {
            Ok(who) => self.push(at, who, kind),
            Err((domain, vcpu)) => {
                let means = "damaged, and passed over: the vCPU that runs afterwards may be wrong until the next record of that pCPU";
                self.notes.add("records of impossible vCPUs", means, Place::Byte(self.offset), || {
                    format!(
                        "vCPU {vcpu} of domain {domain}; allowed: 0 to {} of 0 to {}",
                        VCPUS_END - 1,
                        DOMAINS_END - 1
                    )
                });
            }
        }
    }

    /// The time of a reading, in ticks of that pCPU's counter.
    fn time(&mut self, pcpu: u32, reading: u64) -> i64 {
        let (ticks, jump) = self.counters.read(pcpu, reading);
        if let Some(jump) = jump {
            let place = Place::Byte(self.offset);
            match jump {
                Jump::Glitch => {
                    let means = "a record that does not fit its neighbours has the time of the one before";
                    self.notes
                        .add("times out of line", means, place, || format!("pCPU {pcpu}: reading {reading}"));
                }
                Jump::Moved(ahead) => {
                    let means = "the jump is taken out; what passed at that moment is unknown, and waits across it are wrong";
                    self.notes
                        .add("clocks that jump", means, place, || format!("pCPU {pcpu}: by {ahead} ticks"));
                }
            }
            self.calibration.forget(pcpu);
        }
        ticks
    }

    /// Settles how long a tick is, once there is enough to tell, or at the latest now.
    fn calibrate(&mut self, now: bool) -> Result<(), ReadError> {
        if self.scale.is_none() && (now || self.calibration.enough()) {
            let mhz = self.calibration.mhz().ok_or(ReadError::NoFrequency)?;
            (self.used_mhz, self.scale) = (Some(mhz), Some(Scale::of(mhz)));
        }
        Ok(())
    }

    /// The trace ends: emits all events that are left.
    ///
    /// # Errors
    /// It was empty, or its clock's frequency is unknown.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Event)) -> Result<(), ReadError> {
        let Some(window) = self.window else { return Err(ReadError::Empty) };
        let cut = self.carry.len() as u64;
        if cut > 0 || window.left > 0 && !self.astray {
            let means = "the recording was cut off; metrics end with its last whole record";
            self.notes.add("a window without its end", means, Place::Byte(self.offset), || {
                format!("pCPU {}: {} bytes are missing", window.pcpu, window.left)
            });
        }
        let timed = self.last.iter().any(Option::is_some);
        if timed {
            self.calibrate(true)?;
        }
        let end = self.order.latest();
        let Self { order, scale, emitted_ns, .. } = self;
        emit(order.rest(), *scale, emitted_ns, sink);
        let end = Event { time_ns: end, pcpu: 0, who: Who::Host, kind: Kind::End };
        emit([end].into_iter(), *scale, emitted_ns, sink);
        Ok(())
    }

    /// The clock by which times were made.
    #[must_use]
    pub fn clock(&self) -> ClockReport {
        let (by_executions_mhz, executions) = self.calibration.overall();
        let source = if self.given_mhz.is_some() { "given" } else { "calibrated" };
        ClockReport { source, mhz: self.used_mhz, by_executions_mhz, executions }
    }

    /// The records by their kinds.
    #[must_use]
    pub fn records_seen(&self) -> Vec<EventCount> {
        self.counts.list()
    }

    /// Notes on the trace.
    #[must_use]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Bytes read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.offset + self.carry.len() as u64
    }
}

/// The error for a file that begins with another word.
fn not_xentrace(found: u32) -> ReadError {
    let hint = match found {
        _ if found.swap_bytes() == WINDOW => {
            "\n  hint: it was recorded on a big-endian machine; none such is read"
        }
        0x587a_37fd => "\n  hint: it is compressed (xz)",
        _ if found & 0xffff == 0x8b1f => "\n  hint: it is compressed (gzip)",
        _ if found < PCPUS_MAX => "\n  hint: xentrace of Xen 3 wrote files like this; record with Xen 4",
        _ => "",
    };
    ReadError::NotXentrace { found, hint }
}

/// Gives events their times; none is before the one before it.
fn emit(
    events: impl Iterator<Item = Event>,
    scale: Option<Scale>,
    emitted_ns: &mut i64,
    sink: &mut impl FnMut(&Event),
) {
    let Some(scale) = scale else { return };
    for mut event in events {
        event.time_ns = scale.ns(event.time_ns).max(*emitted_ns);
        *emitted_ns = event.time_ns;
        if let Kind::Lost { since_ns, .. } = &mut event.kind {
            *since_ns = scale.ns(*since_ns).min(event.time_ns);
        }
        sink(&event);
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

fn unpack(packed: u32) -> Result<Who, (u32, u32)> {
    who(packed >> 16, packed & 0xffff)
}

/// The vCPU of these numbers; `Err`: none can have them.
fn who(domain: u32, vcpu: u32) -> Result<Who, (u32, u32)> {
    match (domain, vcpu) {
        (IDLE, _) => Ok(Who::Idle),
        (..DOMAINS_END, ..VCPUS_END) => Ok(Who::Vcpu { domain, vcpu }),
        numbers => Err(numbers),
    }
}

#[derive(Debug)]
struct Counts {
    /// The scheduler's class, by the lower half of the number.
    scheduler: Vec<u64>,
    others: BTreeMap<u32, u64>,
    beyond: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts { scheduler: vec![0; 1 << 16], others: BTreeMap::new(), beyond: 0 }
    }
}

impl Counts {
    fn add(&mut self, event: u32) {
        if event >> 16 == 2 {
            self.scheduler[(event & 0xffff) as usize] += 1;
        } else if let Some(count) = self.others.get_mut(&event) {
            *count += 1;
        } else if self.others.len() < OTHERS_MAX {
            self.others.insert(event, 1);
        } else {
            self.beyond += 1;
        }
    }

    fn list(&self) -> Vec<EventCount> {
        let scheduler = (0x2_0000..).zip(&self.scheduler).filter(|(_, count)| **count > 0);
        let all = self.others.iter().map(|(&event, &count)| (event, count));
        let mut list: Vec<_> = all.chain(scheduler.map(|(event, &count)| (event, count))).collect();
        list.sort_unstable();
        let named = |(event, count)| {
            let (name, used) = known(event).unzip();
            EventCount { event: format!("{event:#x}"), name, count, used: used.unwrap_or(false) }
        };
        let mut list: Vec<_> = list.into_iter().map(named).collect();
        if self.beyond > 0 {
            list.push(EventCount { event: "others".into(), name: None, count: self.beyond, used: false });
        }
        list
    }
}

/// The name of an event, and whether metrics are made of it. Numbers of Xen's public header.
fn known(event: u32) -> Option<(&'static str, bool)> {
    Some(match event {
        LOST => ("lost records", true),
        CONTINUE => ("goes on", true),
        DOMAIN_ADDED => ("domain added", true),
        DOMAIN_REMOVED => ("domain removed", true),
        YIELD => ("yield", true),
        SWITCH_FROM => ("switch from, with its execution time", true),
        SWITCH_TO => ("switch to, with its slice", true),
        _ if is_runstate(event) => ("runstate change", true),
        WRAP => ("end of a buffer", false),
        0x2_8003 => ("sleep", false),
        0x2_8004 => ("wake", false),
        0x2_8006 => ("block", false),
        0x2_8007 | 0x2_8010 => ("shutdown", false),
        0x2_8008 => ("control", false),
        0x2_8009 => ("parameters changed", false),
        0x2_800a => ("switch", false),
        0x2_800b..=0x2_800d => ("timer", false),
        0x2_8011 => ("goes on, with its slice", false),
        _ if event & 0xf_f000 == POLICIES => {
            (POLICY.get((event >> 9 & 7) as usize).unwrap_or(&"a policy's own"), false)
        }
        _ if event >> 16 > 2 => ("another class", false),
        _ => return None,
    })
}

fn is_runstate(event: u32) -> bool {
    event & 0xf_f00f == RUNSTATE && event >> 8 & 0xf < 4 && event >> 4 & 0xf < 4
}

/// The policies' own events, by their numbers in the public header.
const POLICY: [&str; 6] =
    ["credit's own", "credit2's own", "sedf's own", "arinc653's own", "rtds's own", "null's own"];
