//! A line of the Linux scheduler's events: a task's name, its thread (perf: after its process), the CPU in brackets,
//! flags perhaps, the time in seconds, the event, and its fields.
//!
//! ```text
//! CPU 0/KVM  2345/2350  [003]  81.250114: sched:sched_switch: prev_comm=CPU 0/KVM prev_pid=2350 prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120
//!  CPU 0/KVM-2350  (   2345) [003] d..2.  81.250114: sched_switch: CPU 0/KVM:2350 [120] S ==> swapper/3:0 [120]
//! ```
//!
//! Names of tasks may hold anything, so what follows one is looked for from the end. Bytes are as they come: all that is
//! looked for is ASCII. (Searching for single characters is several times as fast as for texts.)

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use crate::limits::PCPUS_MAX;

/// The beginning of a line: CPU, time, and the task that ran.
pub struct Prefix {
    /// The task that ran.
    pub thread: u32,
    /// Process of the thread, if the line has it.
    pub process: Option<u32>,
    /// The CPU.
    pub pcpu: u32,
    /// The time.
    pub time_ns: u64,
}

/// A task as events name it.
pub struct Task<'a> {
    /// Name of the task.
    pub name: &'a [u8],
    /// Thread id of the task.
    pub thread: u32,
    /// Priority of the task as the kernel counts, if the event has it.
    pub priority: Option<u32>,
}

/// The events that are understood.
#[derive(Clone, Copy)]
pub enum Which {
    /// `sched_switch`.
    Switch,
    /// `sched_wakeup` or `sched_wakeup_new`.
    Wakeup,
    /// `sched_waking`.
    Waking,
}

/// The event of a line, the text before it, and its fields. `trace-cmd report` pads the event's name to a column: any number of
/// blanks follow its colon.
#[must_use]
pub fn event(line: &[u8]) -> Option<(Which, &[u8], &[u8])> {
    memchr_iter(b':', line).find_map(|at| {
        let (before, fields) = (&line[..at], line[at + 1..].strip_prefix(b" ")?.trim_ascii_start());
        let (which, prefix) = if let Some(prefix) = before.strip_suffix(b"sched_switch") {
            (Which::Switch, prefix)
        } else if let Some(prefix) =
            before.strip_suffix(b"_new").unwrap_or(before).strip_suffix(b"sched_wakeup")
        {
            (Which::Wakeup, prefix)
        } else {
            (Which::Waking, before.strip_suffix(b"sched_waking")?)
        };
        Some((which, prefix.strip_suffix(b"sched:").unwrap_or(prefix), fields))
    })
}

/// The command that records readable lines, if the form of the text before an event shows which; `None`: it does not.
#[must_use]
pub fn advice(text: &[u8]) -> Option<&'static str> {
    let text = text.trim_ascii_end();
    let text = text.strip_suffix(b":").unwrap_or(text).trim_ascii_end();
    let last = last_after(b' ', text);
    if last.ends_with(b"]") || memchr(b'[', last).is_some() {
        return Some(
            "perf script -i perf.data --guest-code --ns -F +pid,+time > trace.txt: the lines have no times",
        );
    }
    let (_, rest) = digits(last)?;
    match rest {
        b"" => Some(
            "echo mono > /sys/kernel/tracing/trace_clock, and record again: the times have no decimal point, as those of the \
             clocks x86-tsc and counter, which do not count seconds",
        ),
        [b'u', b's', ..] => Some(
            "echo 0 > /sys/kernel/tracing/options/latency-format, and read `trace` again: this is ftrace's latency format",
        ),
        _ => None,
    }
}

/// Reads the text before the event.
#[must_use]
pub fn prefix(text: &[u8]) -> Option<Prefix> {
    let text = text.trim_ascii_end().strip_suffix(b":")?;
    let (before, after) = around(text, memrchr(b'[', text)?);
    let (pcpu, rest) = around(after, memchr(b']', after)?);
    let pcpu = whole(pcpu.trim_ascii()).filter(|&pcpu| pcpu < PCPUS_MAX)?;
    let time_ns = seconds(last_after(b' ', rest))?;
    let mut before = before.trim_ascii_end();
    let mut process = None;
    if let Some(inside) = before.strip_suffix(b")") {
        let (task, number) = around(inside, memrchr(b'(', inside)?);
        (before, process) = (task.trim_ascii_end(), whole(number.trim_ascii()));
    }
    let last = last_after(b' ', before);
    let pair = memchr(b'/', last).and_then(|at| {
        let (of, thread) = around(last, at);
        whole(of).zip(whole(thread))
    });
    let thread = match pair {
        Some((of, thread)) => {
            process = Some(of);
            thread
        }
        None => whole(last_after(b'-', last))?,
    };
    Some(Prefix { thread, process, pcpu, time_ns })
}

/// The task that stops, its state then, and the task that starts.
#[must_use]
pub fn switch(fields: &[u8]) -> Option<(Task<'_>, u8, Task<'_>)> {
    let arrow = |at: usize| Some((fields[..at].strip_suffix(b" ==")?, fields[at + 1..].strip_prefix(b" ")?));
    let (from, to) = memrchr_iter(b'>', fields).find_map(arrow)?;
    if let Some(from) = from.strip_prefix(b"prev_comm=") {
        let (rest, state) = field(from, b" prev_state")?;
        return Some((
            task(rest, b" prev_pid")?,
            *state.first()?,
            task(to.strip_prefix(b"next_comm=")?, b" next_pid")?,
        ));
    }
    let (from, state) = around(from, memrchr(b' ', from)?);
    Some((short(from)?, *state.first()?, short(to)?))
}

/// The task that is woken.
#[must_use]
pub fn woken(fields: &[u8]) -> Option<Task<'_>> {
    match fields.strip_prefix(b"comm=") {
        Some(long) => task(long, b" pid"),
        None => short(fields),
    }
}

/// Kind of line that shows a CPU's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticks {
    /// The timer itself: `hrtimer_expire_entry: hrtimer=0xffff8881 function=tick_nohz_handler now=5904000552`.
    Timer,
    /// `sched_stat_runtime`: whoever runs is charged, as at each tick, but not then alone.
    Charge,
}

/// The text before an event that tells of ticks.
#[must_use]
pub fn tick(line: &[u8]) -> Option<(Ticks, &[u8])> {
    let (ticks, prefix) = memchr_iter(b':', line).find_map(|at| {
        let before = &line[..at];
        if let Some(prefix) = before.strip_suffix(b"sched_stat_runtime") {
            return Some((Ticks::Charge, prefix.strip_suffix(b"sched:").unwrap_or(prefix)));
        }
        let prefix = before.strip_suffix(b"hrtimer_expire_entry")?;
        Some((Ticks::Timer, prefix.strip_suffix(b"timer:").unwrap_or(prefix)))
    })?;
    let function = |at: usize| line[..at].ends_with(b" function") && line[at + 1..].starts_with(b"tick_");
    (ticks == Ticks::Charge || memchr_iter(b'=', line).any(function)).then_some((ticks, prefix))
}

/// The CPU, if the line tells it, and the number of lost records: `CPU:3 [LOST 12 EVENTS]`, or perf's `LOST 12` lines.
#[must_use]
pub fn lost(line: &[u8]) -> Option<(Option<u32>, u32)> {
    memchr_iter(b'L', line).find_map(|at| {
        let (before, after) = (&line[..at], line[at..].strip_prefix(b"LOST")?);
        if before.ends_with(b"PERF_RECORD_") {
            let digits = after.iter().position(u8::is_ascii_digit).map_or(&[][..], |first| &after[first..]);
            return Some((None, number(digits).unwrap_or(0)));
        }
        let (before, after) = (before.strip_suffix(b"[")?, after.strip_prefix(b" ")?);
        let pcpu = before.trim_ascii().strip_prefix(b"CPU:").and_then(|cpu| whole(cpu.trim_ascii()));
        Some((pcpu, number(after).unwrap_or(0)))
    })
}

/// The text before and after a separator.
fn around(text: &[u8], at: usize) -> (&[u8], &[u8]) {
    (&text[..at], &text[at + 1..])
}

fn last_after(separator: u8, text: &[u8]) -> &[u8] {
    memrchr(separator, text).map_or(text, |at| &text[at + 1..])
}

/// The text before and after the last ` name=`.
fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    memrchr_iter(b'=', text).find_map(|at| Some((text[..at].strip_suffix(name)?, &text[at + 1..])))
}

/// `name pid=thread prio=priority`, whatever follows.
fn task<'a>(text: &'a [u8], pid: &[u8]) -> Option<Task<'a>> {
    let (name, thread) = field(text, pid)?;
    let (thread, rest) = digits(thread)?;
    let priority = memchr(b'=', rest).and_then(|at| number(&rest[at + 1..]));
    Some(Task { name, thread: u32::try_from(thread).ok()?, priority })
}

/// `name:thread [priority]`, whatever follows.
fn short(text: &[u8]) -> Option<Task<'_>> {
    let (task, rest) =
        memrchr_iter(b'[', text).find_map(|at| Some((text[..at].strip_suffix(b" ")?, &text[at + 1..])))?;
    let (name, thread) = around(task, memrchr(b':', task)?);
    Some(Task { name, thread: number(thread)?, priority: number(rest) })
}

/// Seconds with up to nine decimals, as ns.
fn seconds(text: &[u8]) -> Option<u64> {
    let (seconds, rest) = digits(text)?;
    let decimals = rest.strip_prefix(b".")?;
    let (part, []) = digits(decimals)? else { return None };
    let scale = 10u64.pow(9u32.checked_sub(u32::try_from(decimals.len()).ok()?)?);
    seconds.checked_mul(1_000_000_000)?.checked_add(part * scale)
}

/// Ftrace's letters between the CPU and the time, such as `dNh3.` (interrupts off, need-resched, hard interrupt, depth 3).
#[must_use]
pub fn flags(text: &[u8]) -> Option<&[u8]> {
    let (_, after) = around(text, memrchr(b']', text)?);
    let after = after.trim_ascii_start();
    Some(around(after, memchr(b' ', after)?).0)
}

/// Whether ftrace's letters tell that the running task is to be preempted: `n` and `N`, and from Linux 6.13 on `l`, `L`, `b`
/// and `B`, where the preemption is lazy, or both.
#[must_use]
pub fn is_flagged(flags: &[u8]) -> bool {
    flags.get(1).is_some_and(|flag| b"nNlLbB".contains(flag))
}

/// Digits and nothing else.
#[must_use]
pub fn whole(text: &[u8]) -> Option<u32> {
    let (value, []) = digits(text)? else { return None };
    u32::try_from(value).ok()
}

/// The digits at the beginning.
fn number(text: &[u8]) -> Option<u32> {
    u32::try_from(digits(text)?.0).ok()
}

/// The number at the beginning, and what follows.
fn digits(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(length);
    let more = |value: u64, digit: &u8| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    let value = digits.iter().try_fold(0, more)?;
    (length > 0).then_some((value, rest))
}
