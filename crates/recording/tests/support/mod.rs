//! Recordings to test with.

#![allow(dead_code, reason = "each user needs a part of it")]

use std::fmt::Write as _;

use vcpulab_recording::Threads;

/// As `perf sched script` writes it: QEMU is process 2345, its vCPU threads are 2350 and 2351.
pub const PERF: &str = include_str!("../../../../examples/perf-sched.txt");
/// In perf's short form.
pub const SHORT: &str = include_str!("../../../../fuzz/seeds/sched_text/perf.txt");
/// The same as ftrace writes it, in the short form, with what a file of its kind begins with.
pub const FTRACE: &str = include_str!("../../../../fuzz/seeds/sched_text/ftrace.txt");

/// The first windows of real traces: Xen 4.17, one pCPU, Dom0, two hogs and three guests that sleep and compute.
pub const CREDIT: &[u8] = include_bytes!("../../testdata/xen4.17-credit.bin");
pub const CREDIT2: &[u8] = include_bytes!("../../testdata/xen4.17-credit2.bin");

pub const WINDOW: u32 = 0x2001_f003;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Where records begin, whether they have a reading, and their lengths.
pub fn layout(bytes: &[u8]) -> impl Iterator<Item = (usize, bool, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let head = bytes.get(at..at + 4).map(|_| word(bytes, at))?;
        let timed = head >> 31 == 1;
        let length = 4 + if timed { 8 } else { 0 } + 4 * (head >> 28 & 7) as usize;
        at += length;
        Some((at - length, timed, length))
    })
}

pub fn records(bytes: &[u8]) -> usize {
    layout(bytes).count()
}

/// The same trace over and over, each time later.
pub struct Repeated {
    bytes: Vec<u8>,
    readings: Vec<usize>,
    lasts: u64,
}

impl Repeated {
    pub fn of(bytes: &[u8]) -> Self {
        let readings: Vec<usize> =
            layout(bytes).filter(|(_, timed, _)| *timed).map(|(at, ..)| at + 4).collect();
        let at = |i: usize| u64::from_le_bytes(bytes[i..i + 8].try_into().expect("eight bytes"));
        let lasts = at(readings[readings.len() - 1]) - at(readings[0]) + 1000;
        Repeated { bytes: bytes.to_vec(), readings, lasts }
    }
}

impl Iterator for Repeated {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let now = self.bytes.clone();
        for &at in &self.readings {
            let reading = u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"));
            self.bytes[at..at + 8].copy_from_slice(&(reading + self.lasts).to_le_bytes());
        }
        Some(now)
    }
}

/// Writes windows and records.
#[derive(Default)]
pub struct Maker {
    pub bytes: Vec<u8>,
    begun: Option<usize>,
}

impl Maker {
    pub fn window(mut self, pcpu: u32) -> Self {
        self.close();
        self.begun = Some(self.bytes.len());
        self.words(&[WINDOW, pcpu, 0]);
        self
    }

    pub fn record(mut self, event: u32, reading: u64, words: &[u32]) -> Self {
        self.words(&[1 << 31 | (words.len() as u32) << 28 | event, reading as u32, (reading >> 32) as u32]);
        self.words(words);
        self
    }

    /// Someone of a domain's vCPU 0 changes its runstate.
    pub fn change(self, reading: u64, domain: u32, from: u32, to: u32) -> Self {
        self.record(0x2_1001 | from << 8 | to << 4, reading, &[domain << 16])
    }

    fn words(&mut self, words: &[u32]) {
        self.bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    fn close(&mut self) {
        if let Some(begun) = self.begun {
            let size = (self.bytes.len() - begun - 12) as u32;
            self.bytes[begun + 8..begun + 12].copy_from_slice(&size.to_le_bytes());
        }
    }

    pub fn done(mut self) -> Vec<u8> {
        self.close();
        self.bytes
    }
}

/// Rounds of a host where on each pCPU vCPUs take turns, 1 ms each at 1 GHz.
pub fn crowd(pcpus: u32, vcpus: u32) -> impl Iterator<Item = Vec<u8>> {
    let each = vcpus / pcpus;
    (0u64..).map(move |round| {
        let mut trace = Maker::default();
        for p in 0..pcpus {
            trace = trace.window(p);
            for turn in 0..10 {
                let at = (round * 10 + turn) * 1_000_000 + u64::from(p);
                let turn = (round * 10 + turn) as u32;
                let [from, to] = [turn, turn + 1].map(|turn| 1 + p * each + turn % each);
                trace = trace
                    .record(0x2_800e, at, &[from, 0, 1_000_000])
                    .record(0x2_800f, at + 500, &[to, 0, 1_000_000, 30_000_000])
                    .change(at + 1000, from, 0, 1)
                    .change(at + 2000, to, 1, 0);
            }
        }
        trace.done()
    })
}

/// Lines of ftrace in which two vCPUs of one VM take turns on a CPU with its idle task, and these vCPUs.
pub fn switches(lines: usize) -> (String, Threads) {
    let names = [("CPU 0/KVM", 2350), ("swapper/3", 0), ("CPU 1/KVM", 2351), ("swapper/3", 0)];
    let mut text = String::new();
    for line in 0..lines {
        let ((from, thread), (to, next)) = (names[line % 4], names[(line + 1) % 4]);
        let at = 1_000_000 + 250 * line as u64;
        let (whole, part) = (at / 1_000_000, at % 1_000_000);
        writeln!(
            text,
            "{from}-{thread} [003] d..2. {whole}.{part:06}: sched_switch: prev_comm={from} prev_pid={thread} \
             prev_prio=120 prev_state=S ==> next_comm={to} next_pid={next} next_prio=120"
        )
        .expect("a string takes all text");
    }
    (text, [(2350, (1, 0)), (2351, (1, 1))].into())
}

/// The same text over and over, each time later. Times have six decimals.
pub struct RepeatedText {
    /// The text before the time of a line, that time in us, and the text after it.
    lines: Vec<(&'static str, u64, &'static str)>,
    later: u64,
}

impl RepeatedText {
    pub fn of(text: &'static str) -> Self {
        let timed = |line: &'static str| {
            let (before, event) = line.split_at(line.find(": sched")?);
            let begins = before.rfind(' ')? + 1;
            let at = before[begins..].replace('.', "").parse().expect("a time");
            Some((&before[..begins], at, event))
        };
        RepeatedText { lines: text.lines().filter_map(timed).collect(), later: 0 }
    }
}

impl Iterator for RepeatedText {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut text = String::new();
        for (before, at, event) in &self.lines {
            let at = at + self.later;
            writeln!(text, "{before}{}.{:06}{event}", at / 1_000_000, at % 1_000_000)
                .expect("a string takes all text");
        }
        self.later += self.lines[self.lines.len() - 1].1 - self.lines[0].1 + 100;
        Some(text)
    }
}
