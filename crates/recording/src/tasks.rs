//! The threads of a Linux host, as its events name them, and the pace of its ticks.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::limits::TASKS_MAX;
use crate::sched_line::{self, Task, Ticks};

/// vCPUs of a VM have lower numbers; more than any KVM gives one.
const VCPUS_END: u32 = 1 << 13;
/// Ticks a second that kernels are built for.
const RATES_HZ: [u32; 4] = [100, 250, 300, 1000];
/// Tolerance of the distance of two ticks of a rate: one part in this many.
const PACE_OFF: u64 = 20;
/// Fewer ticks tell no rate.
const TICKS_FEWEST: u64 = 8;

/// A thread of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// The thread's number, as ps shows it (TID).
    pub thread: u32,
    /// Process of the thread, which for a vCPU is the VM's; `None`: the recording does not have it.
    pub process: Option<u32>,
    /// The thread's name, the last that it had.
    pub name: String,
    /// The vCPU's number, if the thread is called like one.
    pub vcpu: Option<u32>,
    /// Priority of the thread as the kernel counts: 100 to 139 are nice values -20 to 19, lower numbers are real-time
    /// priorities.
    pub priority: Option<u32>,
    /// Time running in the whole recording.
    pub running_ns: i64,
    /// Times that it was put on a pCPU.
    pub executions: u64,
    /// The pCPU that it runs on.
    #[serde(skip)]
    pcpu: Option<u32>,
}

/// A thread of which a record is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecorded {
    /// The thread.
    pub thread: u32,
    /// The pCPU that the record would be of.
    pub pcpu: u32,
    /// The time of the record before it, ns.
    pub since_ns: i64,
}

/// All threads seen.
#[derive(Debug, Default)]
pub struct Tasks {
    threads: BTreeMap<u32, Thread>,
    /// By pCPU: the thread that runs, if that is known, and the time of the last record of it.
    current: Vec<Option<(Option<u32>, i64)>>,
    by_timer: Pace,
    by_charges: Pace,
}

/// Distances of ticks, as evidence for a rate.
#[derive(Debug, Default)]
struct Pace {
    /// By pCPU: the time of its last tick.
    last: Vec<Option<u64>>,
    /// By rate: pairs of ticks that are apart as it says.
    pairs: [u64; RATES_HZ.len()],
}

impl Pace {
    fn tick(&mut self, pcpu: u32, time_ns: u64) {
        let pcpu = pcpu as usize;
        if self.last.len() <= pcpu {
            self.last.resize(pcpu + 1, None);
        }
        let Some(before) = self.last[pcpu].replace(time_ns) else { return };
        let apart = time_ns.wrapping_sub(before).cast_signed();
        for (rate, count) in RATES_HZ.iter().zip(&mut self.pairs) {
            let period = 1_000_000_000 / i64::from(*rate);
            *count +=
                u64::from(apart.saturating_sub(period).unsigned_abs() <= period.unsigned_abs() / PACE_OFF);
        }
    }

    fn hz(&self) -> Option<u32> {
        let (rate, count) = RATES_HZ.iter().zip(self.pairs).max_by_key(|(_, count)| *count)?;
        (count >= TICKS_FEWEST).then_some(*rate)
    }
}

impl Tasks {
    /// Notes what a line says of a thread; the number of the vCPU if that is how the thread is called, and new.
    pub fn learn(&mut self, task: &Task<'_>) -> Option<u32> {
        if task.thread == 0 {
            return None;
        }
        if let Some(known) = self.threads.get_mut(&task.thread) {
            known.priority = task.priority.or(known.priority);
            if known.name.as_bytes() == task.name {
                return None;
            }
            known.name = String::from_utf8_lossy(task.name).into_owned();
            // QEMU names its threads after they began.
            let before = known.vcpu;
            known.vcpu = known.vcpu.or(vcpu(task.name));
            return known.vcpu.filter(|_| before.is_none());
        }
        if self.threads.len() == TASKS_MAX {
            return None;
        }
        let name = String::from_utf8_lossy(task.name).into_owned();
        let (thread, vcpu, priority) = (task.thread, vcpu(task.name), task.priority);
        let new =
            Thread { thread, process: None, name, vcpu, priority, running_ns: 0, executions: 0, pcpu: None };
        self.threads.insert(task.thread, new);
        vcpu
    }

    /// Whether a line named this thread.
    pub fn has(&self, thread: u32) -> bool {
        self.threads.contains_key(&thread)
    }

    /// A line tells the process of a thread.
    pub fn belongs(&mut self, thread: u32, process: Option<u32>) {
        if let (Some(process), Some(known)) = (process, self.threads.get_mut(&thread)) {
            known.process = known.process.or(Some(process));
        }
    }

    /// A pCPU switches from a thread to another. If the one that stops is not the one that started there, or one of them
    /// started elsewhere and never stopped, records between are missing: nobody is charged for that time.
    pub fn switch(&mut self, pcpu: u32, from: u32, to: u32, now: i64) -> [Option<Unrecorded>; 3] {
        let mut missing = [None; 3];
        match self.take(pcpu) {
            Some((current, since_ns)) if current != Some(from) => {
                missing[0] = current.map(|thread| Unrecorded { thread, pcpu, since_ns });
                let elsewhere = self.take_from_elsewhere(from, pcpu);
                missing[1] = elsewhere.or(Some(Unrecorded { thread: from, pcpu, since_ns }));
            }
            Some((_, since_ns)) => self.charge(from, now - since_ns),
            None => missing[1] = self.take_from_elsewhere(from, pcpu),
        }
        missing[2] = self.take_from_elsewhere(to, pcpu);
        if let Some(known) = self.threads.get_mut(&to) {
            known.executions += 1;
            known.pcpu = Some(pcpu);
        }
        self.current[pcpu as usize] = Some((Some(to), now));
        missing
    }

    /// The thread that ran on a pCPU stops, or what it does later is not known.
    pub fn stop(&mut self, pcpu: u32, now: i64) {
        if let Some((Some(thread), since_ns)) = self.take(pcpu) {
            self.charge(thread, now - since_ns);
        }
    }

    /// The thread that ran on a pCPU, if that is known, and since when.
    fn take(&mut self, pcpu: u32) -> Option<(Option<u32>, i64)> {
        let p = pcpu as usize;
        if self.current.len() <= p {
            self.current.resize(p + 1, None);
        }
        let (thread, since_ns) = self.current[p].take()?;
        if let Some(known) = thread.and_then(|thread| self.threads.get_mut(&thread)) {
            known.pcpu = None;
        }
        Some((thread, since_ns))
    }

    /// A thread is on this pCPU although it was not seen to stop on another.
    fn take_from_elsewhere(&mut self, thread: u32, here: u32) -> Option<Unrecorded> {
        let pcpu = self.threads.get(&thread)?.pcpu.filter(|&pcpu| pcpu != here)?;
        let (_, since_ns) = self.take(pcpu)?;
        self.current[pcpu as usize] = Some((None, since_ns));
        Some(Unrecorded { thread, pcpu, since_ns })
    }

    fn charge(&mut self, thread: u32, ns: i64) {
        if let Some(known) = self.threads.get_mut(&thread) {
            known.running_ns = known.running_ns.saturating_add(ns);
        }
    }

    /// A pCPU ticks, or may.
    pub fn tick(&mut self, ticks: Ticks, pcpu: u32, time_ns: u64) {
        match ticks {
            Ticks::Timer => self.by_timer.tick(pcpu, time_ns),
            Ticks::Charge => self.by_charges.tick(pcpu, time_ns),
        }
    }

    /// The rate of the host's ticks; `None`: no line tells it.
    #[must_use]
    pub fn hz(&self) -> Option<u32> {
        self.by_timer.hz().or_else(|| self.by_charges.hz())
    }

    /// The threads by number, those that run yet until the end.
    pub fn finish(&mut self, now: i64) {
        for pcpu in 0..self.current.len() {
            self.stop(u32::try_from(pcpu).unwrap_or(u32::MAX), now);
        }
    }

    /// By number.
    pub fn iter(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values()
    }
}

/// The number of the vCPU in a thread's name.
fn vcpu(name: &[u8]) -> Option<u32> {
    let number = name.strip_prefix(b"CPU ")?.strip_suffix(b"/KVM").and_then(sched_line::whole)?;
    Some(number).filter(|&vcpu| vcpu < VCPUS_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, thread: u32) -> Task<'_> {
        Task { name: name.as_bytes(), thread, priority: Some(120) }
    }

    #[test]
    fn a_thread_runs_from_one_switch_to_the_next_and_has_its_last_name() {
        let mut tasks = Tasks::default();
        assert_eq!(tasks.learn(&task("qemu-system-x86", 7)), None);
        assert_eq!(tasks.learn(&task("CPU 3/KVM", 7)), Some(3));
        assert_eq!(tasks.learn(&task("CPU 3/KVM", 7)), None, "it is known");
        tasks.belongs(7, Some(5));
        tasks.switch(1, 0, 7, 100);
        tasks.switch(1, 7, 0, 250);
        tasks.switch(0, 0, 7, 300);
        tasks.finish(310);
        let thread = tasks.iter().next().unwrap();
        assert_eq!((thread.process, thread.name.as_str(), thread.vcpu), (Some(5), "CPU 3/KVM", Some(3)));
        assert_eq!((thread.running_ns, thread.executions), (160, 2));
    }

    #[test]
    fn time_before_a_stop_without_a_start_is_nobody_s() {
        let mut tasks = Tasks::default();
        for thread in [7, 8] {
            tasks.learn(&task("a", thread));
        }
        assert_eq!(tasks.switch(0, 0, 7, 100), [None; 3]);
        let missing = |thread, pcpu, since_ns| Some(Unrecorded { thread, pcpu, since_ns });
        assert_eq!(tasks.switch(0, 8, 0, 200), [missing(7, 0, 100), missing(8, 0, 100), None]);
        tasks.switch(0, 0, 7, 300);
        assert_eq!(tasks.switch(1, 0, 7, 400), [None, None, missing(7, 0, 300)]);
        assert_eq!(tasks.switch(1, 7, 0, 450), [None; 3]);
        tasks.finish(500);
        let ran: Vec<_> = tasks.iter().map(|thread| thread.running_ns).collect();
        assert_eq!(ran, [50, 0]);
    }

    #[test]
    fn the_rate_of_ticks_is_that_of_most() {
        let mut tasks = Tasks::default();
        let mut now = 0;
        for number in 0..20 {
            // Every fifth tick comes after an idle time.
            now += if number % 5 == 0 { 52_000_000 } else { 4_000_000 + number * 1000 };
            tasks.tick(Ticks::Timer, 0, now);
            assert_eq!(tasks.hz().is_some(), number >= 9);
        }
        assert_eq!(tasks.hz(), Some(250));
    }
}
