//! The events of `trace.txt`, as ftrace writes them.

use vcpulab_recording::sched_line;

use super::error::{At, LinuxError};

/// Priority of nice 0, as the kernel numbers them.
pub const PRIO_NICE_0: i32 = 120;
/// Threads with lower priorities are not of the fair class.
pub const PRIO_FAIR: i32 = 100;

/// The latest time, ns, and the longest charge: no sum of what a trace holds overflows.
const TIME_MAX: i64 = 1_000_000_000_000_000_000;
const CHARGE_MAX: i64 = 1_000_000_000_000;

/// A line that was understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Number of the line, from 1.
    pub number: usize,
    /// The CPU.
    pub pcpu: u32,
    /// The time.
    pub time_ns: i64,
    /// The thread that ran.
    pub thread: u32,
    /// Whether the CPU was flagged (`N`).
    pub flagged: bool,
    /// Whether the flag is a lazy one alone (`l`, `L`): the decision that follows reads the clock again.
    pub lazy: bool,
    /// Whether an interrupt was handled.
    pub interrupt: bool,
    /// Preemption count: the number of nested sections that disable preemption.
    pub depth: u8,
    /// Virtual run time of the charged thread, after the charge. (Traces of EEVDF do not have it.)
    pub virtual_time: Option<u64>,
    /// The host's monotonic clock, ns: timers that expire tell it.
    pub monotonic_ns: Option<i64>,
    /// The event.
    pub event: Event,
}

/// An event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The tick.
    Tick,
    /// The end of the running thread's request, by a timer (`hrtick`).
    RequestEnd,
    /// A `cpu.max` period timer, by its address.
    Refill(String),
    /// A thread with this priority is being woken: it is about to be put on a queue.
    Waking(u32, i32),
    /// The thread is awake: the preemption test is done.
    Wakeup(u32),
    /// A thread was charged with these ns.
    Charge(u32, i64),
    /// A switch.
    Switch {
        /// The thread that ran, and its priority.
        from: (u32, i32),
        /// Whether the thread that ran could continue.
        runnable: bool,
        /// Whether the thread was switched out within the kernel (`R+`).
        in_kernel: bool,
        /// The thread that runs, and its priority.
        to: (u32, i32),
    },
    /// A thread moved to this CPU.
    Migrate(u32, u32),
    /// An event of another kind, such as another timer.
    Other,
}

/// Reads the lines of a trace.
///
/// # Errors
///
/// A line is not understood.
pub fn read(text: &str) -> Result<Vec<Line>, LinuxError> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let at = At { file: "trace.txt", line: index + 1 };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(read) = one(at.line, line) else {
            return at.error(
                "line",
                line,
                "TASK-PID (TGID) [CPU] FLAGS TIME: EVENT: its fields, as ftrace writes",
            );
        };
        lines.push(read);
    }
    Ok(lines)
}

fn one(number: usize, line: &str) -> Option<Line> {
    let bytes = line.as_bytes();
    let (end, prefix) =
        line.match_indices(':').find_map(|(at, _)| Some((at, sched_line::prefix(bytes.get(..=at)?)?)))?;
    let flags = sched_line::flags(&bytes[..end])?;
    let (name, fields) = line.get(end + 1..)?.trim_start().split_once(": ")?;
    let time_ns = i64::try_from(prefix.time_ns).ok().filter(|&time| time <= TIME_MAX)?;
    Some(Line {
        number,
        pcpu: prefix.pcpu,
        time_ns,
        thread: prefix.thread,
        flagged: sched_line::is_flagged(flags),
        lazy: matches!(flags.get(1), Some(b'l' | b'L')),
        interrupt: flags.get(2)? != &b'.',
        depth: flags.get(3).filter(|depth| depth.is_ascii_digit()).map_or(0, |depth| depth - b'0'),
        virtual_time: value(fields, " vruntime=").and_then(|time| time.parse().ok()),
        monotonic_ns: value(fields, " now=")
            .and_then(|now| now.parse().ok())
            .filter(|now| (0..=TIME_MAX).contains(now)),
        event: event(name, fields)?,
    })
}

fn event(name: &str, fields: &str) -> Option<Event> {
    Some(match name {
        "hrtimer_expire_entry" => match value(fields, "function=")? {
            "tick_sched_timer" | "tick_nohz_handler" => Event::Tick,
            "hrtick" => Event::RequestEnd,
            "sched_cfs_period_timer" => Event::Refill(value(fields, "hrtimer=")?.to_owned()),
            _ => Event::Other,
        },
        "sched_waking" => {
            Event::Waking(value(fields, " pid=")?.parse().ok()?, value(fields, " prio=")?.parse().ok()?)
        }
        "sched_wakeup" | "sched_wakeup_new" => Event::Wakeup(value(fields, " pid=")?.parse().ok()?),
        "sched_stat_runtime" => {
            let runtime = value(fields, " runtime=")?
                .parse()
                .ok()
                .filter(|runtime| (0..=CHARGE_MAX).contains(runtime))?;
            Event::Charge(value(fields, " pid=")?.parse().ok()?, runtime)
        }
        "sched_switch" => {
            let (from, state, to) = sched_line::switch(fields.as_bytes())?;
            Event::Switch {
                from: (from.thread, value(fields, " prev_prio=")?.parse().ok()?),
                runnable: state == b'R',
                in_kernel: value(fields, " prev_state=") == Some("R+"),
                to: (to.thread, value(fields, " next_prio=")?.parse().ok()?),
            }
        }
        "sched_migrate_task" => {
            Event::Migrate(value(fields, " pid=")?.parse().ok()?, value(fields, " dest_cpu=")?.parse().ok()?)
        }
        _ => Event::Other,
    })
}

/// The value behind the last `name`: names of tasks, which may hold anything, come first.
fn value<'a>(fields: &'a str, name: &str) -> Option<&'a str> {
    fields.rsplit_once(name)?.1.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let text = "# tracer: nop\n\
            \x20 CPU 0/KVM-86      (     80) [000] dNh2.   7.000000010: sched_waking: comm=a pid=1 pid=85 prio=115 target_cpu=000\n\
            \x20 CPU 0/KVM-86      (     80) [000] d..2.   7.5: sched_switch: prev_comm=x prev_pid=86 prev_prio=120 prev_state=R+ ==> next_comm=swapper/0 next_pid=0 next_prio=120\n\
            \x20 CPU 0/KVM-86      (     80) [000] d.h..   8.000000000: hrtimer_expire_entry: hrtimer=00ab function=sched_cfs_period_timer now=5\n\
            \x20 <idle>-0       (-------) [000] d.h1.   8.000000000: hrtimer_expire_entry: hrtimer=00ab function=tick_nohz_handler now=5\n";
        let lines = read(text).unwrap();
        assert_eq!(lines[0].event, Event::Waking(85, 115));
        assert_eq!((lines[0].time_ns, lines[0].thread, lines[0].number), (7_000_000_010, 86, 2));
        assert!(lines[0].flagged && lines[0].interrupt && lines[0].depth == 2);
        assert_eq!(
            lines[1].event,
            Event::Switch { from: (86, 120), runnable: true, in_kernel: true, to: (0, 120) }
        );
        assert!(!lines[1].flagged && !lines[1].interrupt);
        assert_eq!(lines[2].event, Event::Refill("00ab".to_owned()));
        assert_eq!((&lines[3].event, lines[3].monotonic_ns), (&Event::Tick, Some(5)));
        assert_eq!(lines[3].thread, 0);
        for (letter, flagged) in
            [('.', false), ('p', false), ('n', true), ('l', true), ('L', true), ('b', true), ('B', true)]
        {
            let lines = read(&text.replace("dNh2.", &format!("d{letter}h2."))).unwrap();
            assert_eq!(lines[0].flagged, flagged, "{letter}");
            assert_eq!(lines[0].lazy, letter.eq_ignore_ascii_case(&'l'), "{letter}");
        }
    }

    #[test]
    fn ends_of_requests_are_read() {
        let text =
            " v-5 (5) [000] d.h.. 7.000701000: hrtimer_expire_entry: hrtimer=01 function=hrtick now=9\n";
        assert_eq!(read(text).unwrap()[0].event, Event::RequestEnd);
    }

    #[test]
    fn errors_name_the_line() {
        let found =
            read("#\n x-1 (1) [000] d..2. 1.000000001: sched_waking: comm=a pid=x prio=120\n").unwrap_err();
        assert_eq!((found.file, found.line), ("trace.txt", 2));
        let charge = |ns: i64| {
            read(&format!(" x-1 (1) [000] d..2. 1.0: sched_stat_runtime: comm=x pid=1 runtime={ns} [ns]"))
        };
        assert!(charge(CHARGE_MAX).is_ok() && charge(CHARGE_MAX + 1).is_err() && charge(-1).is_err());
    }
}
