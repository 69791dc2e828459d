//! Setup of a recording: `experiment.txt`, `threads.txt` and `tunables.txt`.

use std::collections::BTreeMap;

use vcpulab_host::{Class, GroupConfig, GroupId, Span};
use vcpulab_sched::ParamKind;
use vcpulab_sched::linux::{KernelFacts, KernelRelease, Preempt};

use super::clock::Clock;
use super::error::{At, LinuxError};
use super::trace::{self, Event, Line};

/// The files of a folder, as text (`trace.txt.xz` decompressed).
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    /// `experiment.txt`.
    pub experiment: &'a str,
    /// `threads.txt`.
    pub threads: &'a str,
    /// `tunables.txt`.
    pub tunables: &'a str,
    /// `trace.txt`.
    pub trace: &'a str,
    /// `expected.txt`, which need not be there.
    pub expected: Option<&'a str>,
}

/// A recording that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The setup.
    pub setup: Setup,
    /// The events.
    pub lines: Vec<Line>,
    /// The number of decisions that are known to differ.
    pub expected: Option<u64>,
}

impl Recording {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// A line is not understood: its file, number, field, the value found and those allowed.
    pub fn read(texts: &Texts<'_>) -> Result<Self, LinuxError> {
        let expected = texts.expected.map(expected).transpose()?;
        Ok(Recording { setup: read(texts)?, lines: trace::read(texts.trace)?, expected })
    }

    /// The reason why it can be neither replayed nor run: it is of several CPUs.
    pub fn refusal(&self) -> Option<LinuxError> {
        let line = self.lines.iter().find(|line| line.pcpu != 0)?;
        let at = At { file: "trace.txt", line: line.number };
        at.error::<()>("CPU", &line.pcpu.to_string(), "0: recordings of one CPU").err()
    }

    /// The kernel's clock at its events.
    pub fn clock(&self) -> Clock {
        Clock::of(&self.lines, Span::from_ns(SECOND_NS / self.hz()))
    }

    /// Ticks in a second: the frequency that kernels are built with to which the nearest two come closest.
    pub fn hz(&self) -> i64 {
        let ticks = self.lines.iter().filter(|line| line.event == Event::Tick).map(|line| line.time_ns);
        let mut before = None;
        let gaps = ticks.filter_map(|tick| Some(tick - before.replace(tick)?));
        let gap = gaps.filter(|&gap| gap > 0).min().unwrap_or(SECOND_NS / HZ_DEFAULT);
        HZ.into_iter().min_by_key(|hz| (SECOND_NS / hz - gap).abs()).unwrap_or(HZ_DEFAULT)
    }
}

/// The frequencies of the tick that kernels are built with, and the usual one.
const HZ: [i64; 4] = [100, 250, 300, 1000];
const HZ_DEFAULT: i64 = 250;
const SECOND_NS: i64 = 1_000_000_000;

/// A thread of a VM.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Thread {
    /// The VM's name.
    pub vm: String,
    /// Number of the thread in its VM.
    pub vcpu: u32,
    /// Work of the thread as the experiment states it, without the words of its setting.
    pub work: Vec<String>,
    /// Group of the thread (`None`: the root group).
    pub group: Option<GroupId>,
    /// Policy of the thread within the fair class.
    pub class: Class,
    /// Nice value of the thread.
    pub nice: i8,
    /// Whether the thread yields.
    pub yields: bool,
}

/// The kernel's tunables; those that the kernel does not have are absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tunables {
    /// CFS: `latency_ns`.
    pub latency: Option<Span>,
    /// CFS: `min_granularity_ns`.
    pub min_granularity: Option<Span>,
    /// CFS: `wakeup_granularity_ns`.
    pub wakeup_granularity: Option<Span>,
    /// EEVDF: `base_slice_ns`.
    pub base_slice: Option<Span>,
    /// `sched_cfs_bandwidth_slice_us`.
    pub bandwidth_slice: Option<Span>,
    /// Preemption model.
    pub preempt: Option<Preempt>,
    /// Release and features of the kernel.
    pub kernel: KernelFacts,
}

/// A setup, as it was made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    /// The control groups, in order.
    pub groups: Vec<GroupConfig>,
    /// Paths of the groups.
    pub paths: Vec<String>,
    /// The threads of VMs, by number.
    pub threads: BTreeMap<u32, Thread>,
    /// The tunables.
    pub tunables: Tunables,
}

impl Setup {
    /// The policy of the kernel, and its generation.
    pub fn scheduler(&self) -> (&'static str, &'static str) {
        let rules = self.tunables.kernel.rules();
        (rules.policy, rules.generation.name)
    }

    /// The place of the kernel's preemption model among those of its generation.
    pub fn preempt(&self) -> Option<i64> {
        let model = self.tunables.preempt?.name();
        let params = self.tunables.kernel.rules().generation.params;
        let names = params.iter().find_map(|param| match param.kind {
            ParamKind::Choice(names) if param.name == "preempt" => Some(names),
            _ => None,
        })?;
        (0..).zip(names).find_map(|(place, &name)| (name == model).then_some(place))
    }

    /// The threads and what they do, but not their settings: the same for recordings that differ in settings alone.
    pub fn work(&self) -> Vec<(&str, u32, &[String])> {
        let threads = self.threads.values();
        let mut work: Vec<_> =
            threads.map(|made| (made.vm.as_str(), made.vcpu, made.work.as_slice())).collect();
        work.sort_unstable();
        work
    }

    /// Whether only hogs run, and not all at one weight.
    pub fn is_hogs_of_weights(&self) -> bool {
        let hog = |made: &Thread| !made.yields && !made.work.iter().any(|word| word.starts_with("sl="));
        let set = |made: &Thread| {
            let group = made.group.and_then(|group| self.groups.get(group.index()));
            (made.class, made.nice, group.map(|group| (group.weight, group.parent)))
        };
        let mut sets = self.threads.values().map(set);
        let first = sets.next();
        self.threads.values().all(hog) && sets.any(|other| Some(other) != first)
    }
}

/// Reads the setup.
///
/// # Errors
///
/// A line is not understood: its file, number, field, the value found and those allowed.
pub fn read(texts: &Texts<'_>) -> Result<Setup, LinuxError> {
    let mut setup = Setup { tunables: tunables(texts.tunables)?, ..Setup::default() };
    let vms = experiment(texts.experiment, &mut setup)?;
    for (at, line) in lines("threads.txt", texts.threads) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[thread, vm, vcpu] = words.as_slice() else {
            return at.error("line", line, "THREAD VM VCPU");
        };
        let thread = whole(at, "thread", thread)?;
        let Some((_, of)) = vms.iter().find(|(name, _)| *name == vm) else {
            return at.error("VM", vm, "a VM of experiment.txt");
        };
        let number = whole(at, "vCPU", vcpu)?;
        let Some(made) = of.get(number as usize) else {
            return at.error("vCPU", vcpu, "a thread of that VM in experiment.txt, counted from 0");
        };
        if setup.threads.values().any(|known| known == made) {
            return at.error("vCPU", vcpu, "each thread of a VM once");
        }
        if setup.threads.insert(thread, made.clone()).is_some() {
            return at.error("thread", &thread.to_string(), "each thread once");
        }
    }
    Ok(setup)
}

/// The VMs and their threads, in order; groups go into the setup.
fn experiment<'a>(text: &'a str, setup: &mut Setup) -> Result<Vec<(&'a str, Vec<Thread>)>, LinuxError> {
    let mut vms: Vec<(&str, Vec<Thread>)> = Vec::new();
    let mut around = None;
    for (at, line) in lines("experiment.txt", text) {
        let mut words = line.split_whitespace();
        match words.next().unwrap_or_default() {
            "set" => {} // tunables.txt tells the values.
            "cg" => {
                let Some(path) = words.next() else {
                    return at.error(
                        "cg",
                        line,
                        "cg PATH [weight=N max=QUOTA,PERIOD burst=N idle=N threaded]",
                    );
                };
                let config = group(at, setup, path, words)?;
                setup.groups.push(config);
                setup.paths.push(path.to_owned());
            }
            "vm" => {
                let Some(name) = words.next() else { return at.error("vm", line, "vm NAME [GROUP]") };
                if vms.iter().any(|(known, _)| *known == name) {
                    return at.error("vm", name, "each VM once");
                }
                around = words.next().map(|path| find(at, setup, "vm", path)).transpose()?;
                vms.push((name, Vec::new()));
            }
            "th" => {
                let made = thread(at, setup, around, words)?;
                let Some((vm, threads)) = vms.last_mut() else {
                    return at.error("th", line, "after a line `vm`");
                };
                let vcpu = u32::try_from(threads.len()).unwrap_or(u32::MAX);
                threads.push(Thread { vm: (*vm).to_owned(), vcpu, ..made });
            }
            other => return at.error("first word", other, "cg, vm, th, set"),
        }
    }
    Ok(vms)
}

fn group<'a>(
    at: At,
    setup: &Setup,
    path: &str,
    words: impl Iterator<Item = &'a str>,
) -> Result<GroupConfig, LinuxError> {
    if setup.paths.iter().any(|known| known == path) {
        return at.error("cg", path, "each group once");
    }
    let mut config = GroupConfig::NEW;
    if let Some((parent, _)) = path.rsplit_once('/') {
        config.parent = Some(find(at, setup, "cg", parent)?);
    }
    let us = |field, value: &str, least| at.number(field, value, least, 1_000_000_000).map(Span::from_us);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("weight", value) => {
                let weight = at.number("weight", value, 1, 10_000)?;
                config.weight = u32::try_from(weight).unwrap_or(GroupConfig::NEW.weight);
            }
            ("max", value) => {
                let Some((quota, period)) = value.split_once(',') else {
                    return at.error("max", value, "QUOTA,PERIOD in µs");
                };
                config.quota = if quota == "max" { None } else { Some(us("max quota", quota, 1000)?) };
                config.period = Span::from_us(at.number("max period", period, 1000, 1_000_000)?);
            }
            ("burst", value) => config.burst = us("burst", value, 0)?,
            ("idle", value) => config.idle = at.number("idle", value, 0, 1)? == 1,
            ("threaded", "") => {}
            (other, _) => return at.error("cg", other, "weight, max, burst, idle, threaded"),
        }
    }
    Ok(config)
}

fn thread<'a>(
    at: At,
    setup: &Setup,
    around: Option<GroupId>,
    words: impl Iterator<Item = &'a str>,
) -> Result<Thread, LinuxError> {
    let mut made = Thread { group: around, ..Thread::default() };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("wk" | "sl" | "jit", value) => {
                at.number("wk, sl, jit", value, 0, i64::MAX)?;
                made.work.push(word.to_owned());
            }
            ("nice", value) => made.nice = i8::try_from(at.number("nice", value, -20, 19)?).unwrap_or(0),
            ("policy", "other") => made.class = Class::Other,
            ("policy", "batch") => made.class = Class::Batch,
            ("policy", "idle") => made.class = Class::Idle,
            ("policy", value) => return at.error("policy", value, "other, batch, idle"),
            ("yield", value) => {
                made.yields = at.number("yield", value, 0, i64::MAX)? > 0;
                made.work.push(word.to_owned());
            }
            ("cg", path) => made.group = Some(find(at, setup, "cg", path)?),
            (other, _) => return at.error("th", other, "wk, sl, jit, nice, policy, yield, cg"),
        }
    }
    Ok(made)
}

fn tunables(text: &str) -> Result<Tunables, LinuxError> {
    let mut all = Tunables::default();
    for (at, line) in lines("tunables.txt", text) {
        let Some((path, value)) = line.split_once(": ") else { continue };
        let name = path.rsplit('/').next().unwrap_or(path);
        let tunable = match name {
            "version" => {
                let kernel = value.trim().trim_start_matches("Linux ");
                all.kernel.release = KernelRelease::of(kernel);
                if all.kernel.release.is_none() {
                    return at.error("version", value.trim(), "Linux and a release, such as Linux 6.12.117");
                }
                continue;
            }
            "features" | "sched_features" => {
                all.kernel.hrtick = Some(value.split_whitespace().any(|feature| feature == "HRTICK"));
                continue;
            }
            "preempt" => {
                // The model in force is in parentheses if the file lists several.
                let words: Vec<&str> = value.split_whitespace().collect();
                let in_force = match *words {
                    [word] => Some(word),
                    _ => words.iter().find_map(|word| word.strip_prefix('(')?.strip_suffix(')')),
                };
                all.preempt = in_force.and_then(Preempt::of);
                continue;
            }
            "cgroup_mode" => {
                all.kernel.cgroup_mode = Some(true);
                continue;
            }
            // Before 5.13 these were sysctls, with a prefix.
            "latency_ns" | "sched_latency_ns" => &mut all.latency,
            "min_granularity_ns" | "sched_min_granularity_ns" => &mut all.min_granularity,
            "wakeup_granularity_ns" | "sched_wakeup_granularity_ns" => &mut all.wakeup_granularity,
            "base_slice_ns" => &mut all.base_slice,
            "sched_cfs_bandwidth_slice_us" => {
                let slice = at.number(name, value.trim(), 1, 1_000_000_000)?;
                all.bandwidth_slice = Some(Span::from_us(slice));
                continue;
            }
            _ => continue,
        };
        *tunable = Some(Span::from_ns(at.number(name, value.trim(), 0, 1_000_000_000_000)?));
    }
    all.kernel.base_slice = match (all.base_slice, all.latency) {
        (Some(_), _) => Some(true),
        (None, Some(_)) => Some(false),
        (None, None) => None,
    };
    Ok(all)
}

fn expected(text: &str) -> Result<u64, LinuxError> {
    let mut expected = None;
    for (at, line) in lines("expected.txt", text) {
        let Some(number) = line.strip_prefix("differing ") else {
            return at.error("line", line, "differing N, and lines that begin with #");
        };
        expected = Some(at.number("differing", number.trim(), 0, i64::MAX)?.unsigned_abs());
    }
    let missing = || At { file: "expected.txt", line: 1 }.error("line", "nothing", "differing N");
    expected.map_or_else(missing, Ok)
}

fn find(at: At, setup: &Setup, field: &str, path: &str) -> Result<GroupId, LinuxError> {
    let place = setup.paths.iter().position(|known| known == path);
    match place.and_then(|place| u32::try_from(place).ok()) {
        Some(place) => Ok(GroupId(place)),
        None => at.error(field, path, "a group of a line `cg` before"),
    }
}

fn whole(at: At, field: &str, found: &str) -> Result<u32, LinuxError> {
    let number = at.number(field, found, 0, i64::from(u32::MAX))?;
    Ok(u32::try_from(number).unwrap_or(u32::MAX))
}

/// The lines that say something.
fn lines<'a>(file: &'static str, text: &'a str) -> impl Iterator<Item = (At, &'a str)> {
    let all =
        text.lines().enumerate().map(move |(number, line)| (At { file, line: number + 1 }, line.trim()));
    all.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(experiment: &'a str, threads: &'a str) -> Texts<'a> {
        let tunables =
            "/proc/x/sched_cfs_bandwidth_slice_us: 5000\n/d/latency_ns: 6000000\n/d/preempt: none\n";
        Texts { experiment, threads, tunables, trace: "", expected: None }
    }

    #[test]
    fn a_setup_is_read() {
        let experiment = "cg a weight=200 max=40000,100000 burst=5 idle=1\ncg a/b threaded\nvm x a\nth\n\
                          th cg=a/b nice=-5 yield=3\nvm y\nth sl=10 wk=7 jit=30 policy=idle\n";
        let setup = read(&texts(experiment, "# thread VM vCPU\n7 x 1\n8 y 0\n")).unwrap();
        assert_eq!(setup.groups[0].weight, 200);
        assert_eq!(setup.groups[0].quota, Some(Span::from_ms(40)));
        assert_eq!((setup.groups[0].burst, setup.groups[0].idle), (Span::from_us(5), true));
        assert_eq!(setup.groups[1].parent, Some(GroupId(0)));
        let thread = |vm: &str, vcpu, work: &[&str]| Thread {
            vm: vm.to_owned(),
            vcpu,
            work: work.iter().map(|&word| word.to_owned()).collect(),
            ..Thread::default()
        };
        let seventh =
            Thread { group: Some(GroupId(1)), nice: -5, yields: true, ..thread("x", 1, &["yield=3"]) };
        assert_eq!(setup.threads[&7], seventh);
        let eighth = Thread { class: Class::Idle, ..thread("y", 0, &["sl=10", "wk=7", "jit=30"]) };
        assert_eq!(setup.threads[&8], eighth);
        assert_eq!(setup.tunables.latency, Some(Span::from_ms(6)));
        assert_eq!(setup.tunables.base_slice, None);
        assert_eq!(setup.tunables.bandwidth_slice, Some(Span::from_ms(5)));
    }

    #[test]
    fn the_number_of_known_differences_is_read() {
        let mut texts = texts("", "");
        let mut read = |expected| {
            texts.expected = expected;
            Recording::read(&texts).map(|recording| recording.expected).map_err(|error| error.to_string())
        };
        assert_eq!(read(None), Ok(None));
        assert_eq!(read(Some("# why\ndiffering 7\n")), Ok(Some(7)));
        let found = read(Some("differing -1")).unwrap_err();
        assert!(found.starts_with("expected.txt, line 1: differing: found `-1`"), "{found}");
        assert!(read(Some("# why\n")).unwrap_err().contains("allowed: differing N"));
    }

    #[test]
    fn errors_name_the_place() {
        let message = |experiment, threads| read(&texts(experiment, threads)).unwrap_err().to_string();
        let found = message("cg a\ncg b weight=0\n", "");
        assert_eq!(
            found,
            "experiment.txt, line 2: weight: found `0`, allowed: a whole number from 1 to 10000"
        );
        assert!(message("cg a/b\n", "").starts_with("experiment.txt, line 1: cg: found `a`"));
        assert!(message("th\n", "").contains("after a line `vm`"));
        assert!(message("vm a\nth\n", "\n5 b 0").starts_with("threads.txt, line 2: VM: found `b`"));
        assert!(message("vm a\nth\n", "5 a 1").starts_with("threads.txt, line 1: vCPU: found `1`"));
        assert!(message("vm a\nth nice=20\n", "").contains("from -20 to 19"));
        assert!(
            message("vm a\nth policy=fifo\n", "")
                .contains("policy: found `fifo`, allowed: other, batch, idle")
        );
        assert!(message("vm a\nvm a\n", "").contains("each VM once"));
        assert!(message("vm a\nth\n", "5 a 0\n6 a 0\n").contains("each thread of a VM once"));
    }
}
