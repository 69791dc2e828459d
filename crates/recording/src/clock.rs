//! Conversion of a pCPU's counter to nanoseconds.

use serde::Serialize;

/// Frequencies that are allowed.
pub const MHZ: std::ops::RangeInclusive<f64> = 1.0..=100_000.0;

/// Lead over all earlier readings above which a counter has jumped: 1.5 minutes at 3 GHz. (A single pCPU may be silent
/// for longer, but not all of them.)
const AHEAD_MAX: i64 = 1 << 38;
/// Times stay below this, ns, so that sums cannot overflow.
const NS_MAX: i128 = 1 << 61;
/// Executions to calibrate by, ns: shorter ones are too inexact, longer ones overflow in the records.
const CALIBRATING_NS: std::ops::RangeInclusive<u32> = 100_000..=1_000_000_000;
/// Executions by which the clock is calibrated.
pub const ENOUGH: usize = 1024;
/// Fewest executions by which it can be calibrated.
const FEWEST: usize = 3;

/// A counter that jumped.
pub enum Jump {
    /// A jump of a single record, which keeps the time of the record before.
    Glitch,
    /// A jump of the counter, which continues this number of ticks ahead (or, negative, behind): taken out.
    Moved(i64),
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    /// Last accepted time of the counter, and the shift that is added to its readings.
    last: i64,
    shift: i64,
    /// A reading that does not fit, until the next tells whether the counter or that record is wrong.
    suspect: Option<i64>,
}

/// The counters of all pCPUs, on one scale that begins with the first reading; each never goes back.
#[derive(Debug, Default)]
pub struct Counters {
    base: Option<u64>,
    counters: Vec<Option<Counter>>,
    latest: i64,
}

impl Counters {
    /// The time of a reading of a pCPU, unchecked.
    pub fn at(&self, pcpu: u32, raw: u64) -> i64 {
        let shift = self.counters.get(pcpu as usize).copied().flatten().map_or(0, |counter| counter.shift);
        (raw.wrapping_sub(self.base.unwrap_or(raw)) as i64).wrapping_add(shift)
    }

    /// The time of a reading, in ticks since the first reading of all.
    pub fn read(&mut self, pcpu: u32, raw: u64) -> (i64, Option<Jump>) {
        let plain = raw.wrapping_sub(*self.base.get_or_insert(raw)) as i64;
        let pcpu = pcpu as usize;
        if self.counters.len() <= pcpu {
            self.counters.resize(pcpu + 1, None);
        }
        let latest = self.latest;
        let first = Counter { last: latest.saturating_sub(AHEAD_MAX), shift: 0, suspect: None };
        let counter = self.counters[pcpu].get_or_insert(first);
        let ticks = plain.wrapping_add(counter.shift);
        if counter.last <= ticks && ticks <= counter.last.max(latest).saturating_add(AHEAD_MAX) {
            (counter.last, counter.suspect) = (ticks, None);
            self.latest = latest.max(ticks);
            return (ticks, None);
        }
        let moved = counter.suspect.filter(|&suspect| {
            suspect <= plain && plain.checked_sub(suspect).is_some_and(|apart| apart <= AHEAD_MAX)
        });
        let Some(from) = moved else {
            counter.suspect = Some(plain);
            return (counter.last.max(latest.saturating_sub(AHEAD_MAX)), Some(Jump::Glitch));
        };
        let ahead = from.wrapping_add(counter.shift).saturating_sub(counter.last);
        // A counter that was never right begins where the others are.
        let resume = if counter.last == first.last { latest } else { counter.last };
        counter.shift = resume.wrapping_sub(from);
        counter.suspect = None;
        counter.last = plain.wrapping_add(counter.shift).max(resume);
        self.latest = latest.max(counter.last);
        (counter.last, Some(Jump::Moved(ahead)))
    }
}

/// Ticks to nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// ns of a tick, times 2³².
    factor: i128,
}

impl Scale {
    pub fn of(mhz: f64) -> Self {
        Scale { factor: (1000.0 * (1u64 << 32) as f64 / mhz).round() as i128 }
    }

    pub fn ns(self, ticks: i64) -> i64 {
        let ns = (i128::from(ticks) * self.factor) >> 32;
        ns.clamp(-NS_MAX, NS_MAX) as i64
    }
}

/// Calibration: execution times that Xen measured itself, compared with its counter.
#[derive(Debug, Default)]
pub struct Calibration {
    /// Start of the present execution on each pCPU.
    started: Vec<Option<i64>>,
    ratios: Vec<f64>,
    ticks: i128,
    ns: i128,
    executions: u64,
}

impl Calibration {
    /// An execution on a pCPU ends, `ran_ns` long.
    pub fn left(&mut self, pcpu: u32, ticks: i64, ran_ns: u32) {
        let pcpu = pcpu as usize;
        if self.started.len() <= pcpu {
            self.started.resize(pcpu + 1, None);
        }
        let Some(started) = self.started[pcpu].replace(ticks) else { return };
        let passed = ticks - started;
        if passed <= 0 || !CALIBRATING_NS.contains(&ran_ns) {
            return;
        }
        self.ticks += i128::from(passed);
        self.ns += i128::from(ran_ns);
        self.executions += 1;
        if self.ratios.len() < ENOUGH {
            self.ratios.push(1000.0 * passed as f64 / f64::from(ran_ns));
        }
    }

    /// Records of a pCPU are missing: the start of its execution is not known.
    pub fn forget(&mut self, pcpu: u32) {
        if let Some(started) = self.started.get_mut(pcpu as usize) {
            *started = None;
        }
    }

    pub fn enough(&self) -> bool {
        self.ratios.len() == ENOUGH
    }

    /// MHz, by the median of the executions seen so far.
    pub fn mhz(&self) -> Option<f64> {
        let mut ratios = self.ratios.clone();
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2).copied().filter(|mhz| MHZ.contains(mhz));
        median.filter(|_| ratios.len() >= FEWEST)
    }

    /// MHz by all executions together, and their number.
    pub fn overall(&self) -> (Option<f64>, u64) {
        let mhz = 1000.0 * self.ticks as f64 / self.ns as f64;
        ((self.executions > 0).then_some(mhz), self.executions)
    }
}

/// The clock that gave a recording its times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockReport {
    /// Kind of the clock: `given`, `calibrated`, or `text` where the recording has seconds.
    pub source: &'static str,
    /// The frequency of the clock.
    pub mhz: Option<f64>,
    /// The frequency by all execution times in the recording.
    pub by_executions_mhz: Option<f64>,
    /// Number of these executions.
    pub executions: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(counters: &mut Counters, raw: u64) -> i64 {
        counters.read(0, raw).0
    }

    #[test]
    fn one_record_with_a_wrong_time_keeps_the_time_before() {
        let mut counters = Counters::default();
        assert_eq!(read(&mut counters, 1000), 0);
        assert_eq!(read(&mut counters, 1500), 500);
        assert_eq!(read(&mut counters, 1 << 60), 500);
        assert_eq!(read(&mut counters, 1600), 600);
        assert_eq!(read(&mut counters, 3), 600);
        assert_eq!(read(&mut counters, 1700), 700);
    }

    #[test]
    fn a_counter_that_moved_goes_on_from_where_it_was() {
        let mut counters = Counters::default();
        read(&mut counters, 1 << 50);
        assert_eq!(read(&mut counters, (1 << 50) + 9), 9);
        assert_eq!(read(&mut counters, 10), 9);
        assert!(matches!(counters.read(0, 30), (29, Some(Jump::Moved(ahead))) if ahead < 0));
        assert_eq!(read(&mut counters, 31), 30);
    }

    #[test]
    fn a_pcpu_that_was_silent_for_long_has_not_jumped() {
        let mut counters = Counters::default();
        read(&mut counters, 0);
        for minute in 1..10 {
            assert!(counters.read(1, minute << 37).1.is_none());
        }
        assert!(counters.read(0, 9 << 37).1.is_none());
    }

    #[test]
    fn a_pcpu_whose_counter_is_far_from_the_others_begins_where_they_are() {
        let mut counters = Counters::default();
        read(&mut counters, 1 << 60);
        read(&mut counters, (1 << 60) + 100);
        assert!(matches!(counters.read(1, 500).1, Some(Jump::Glitch)));
        assert!(matches!(counters.read(1, 600), (200, Some(Jump::Moved(_)))));
        assert_eq!(counters.read(1, 610).0, 210);
    }

    #[test]
    fn executions_calibrate_by_their_median() {
        let mut calibration = Calibration::default();
        for at in 0..10 {
            let wrong = if at == 5 { 77 } else { 0 };
            calibration.left(0, at * 2_400_000 + wrong * 1_000_000, 1_000_000);
        }
        assert_eq!(calibration.mhz(), Some(2400.0));
        assert_eq!(Scale::of(2400.0).ns(2_400_000), 1_000_000);
    }
}
