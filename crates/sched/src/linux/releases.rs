//! The generation of the fair class that a kernel has, by its release and by what it shows in `/sys/kernel/debug/sched`.

use super::params::Tuned;
use super::{Cfs, Eevdf};
use crate::policy::Generation;

/// A release of the kernel: `7.2.13`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KernelRelease {
    /// First number of the series.
    pub major: u32,
    /// Second number of the series.
    pub minor: u32,
    /// Number of the stable release; `u32::MAX` if only the series is known.
    pub point: u32,
}

impl KernelRelease {
    /// Reads the release at the start of a kernel's name, as `uname -r` prints it: `6.8.12-4-pve`.
    pub fn of(name: &str) -> Option<Self> {
        let end = name.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(name.len());
        let mut numbers = name[..end].split('.').filter(|number| !number.is_empty()).map(str::parse);
        let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(KernelRelease { major, minor, point: numbers.next().map_or(Some(u32::MAX), Result::ok)? })
    }
}

/// Facts about a kernel from which its generation follows.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KernelFacts {
    /// Release of the kernel, as `uname -r` begins.
    pub release: Option<KernelRelease>,
    /// Whether the file `base_slice_ns` exists, which only EEVDF has.
    pub base_slice: Option<bool>,
    /// Whether the feature `HRTICK` is on, as it is by default from 7.1 on.
    pub hrtick: Option<bool>,
    /// Whether the file `cgroup_mode` exists, as it does from 7.3 on.
    pub cgroup_mode: Option<bool>,
}

/// The evidence for a generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Evidence {
    /// The generation was read from the release's own series.
    Release,
    /// The release is between two known ones: the older one's generation.
    Between,
    /// The release is newer than all known ones: the newest generation.
    Newer,
    /// The release is older than all known ones: the oldest generation.
    Older,
    /// Files in `/sys/kernel/debug/sched` decide: no release is given, or the release would have another generation.
    Files,
    /// No evidence: the default generation.
    Nothing,
}

impl Evidence {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Evidence::Release => "release",
            Evidence::Between => "between",
            Evidence::Newer => "newer",
            Evidence::Older => "older",
            Evidence::Files => "files",
            Evidence::Nothing => "nothing",
        }
    }
}

/// The rules of a kernel's fair class.
#[derive(Clone, Copy, Debug)]
pub struct KernelRules {
    /// Name of the policy.
    pub policy: &'static str,
    /// Generation of the policy.
    pub generation: &'static Generation,
    /// Evidence for the generation.
    pub evidence: Evidence,
}

impl KernelFacts {
    /// The policy and generation of the kernel.
    pub fn rules(&self) -> KernelRules {
        let all = generations();
        let position = |name: &str| all.iter().position(|(_, generation)| generation.name == name);
        let (first, last) = (0, all.len() - 1);
        let by_release = self.release.map(|release| by_release(&all, release));
        let default = position(DEFAULT_GENERATION).unwrap_or(last);
        let (from, evidence) = by_release.unwrap_or((default, Evidence::Nothing));
        // Each file says that the kernel has at least, or at most, a generation.
        let signs = [
            (self.base_slice, all.iter().position(|(policy, _)| *policy == Eevdf::NAME)),
            (self.hrtick.filter(|&on| on), position("7.1")),
            (self.cgroup_mode, position("7.3")),
        ];
        let (mut least, mut most) = (first, last);
        for (present, since) in signs {
            match (present, since) {
                (Some(true), Some(since)) => least = least.max(since),
                (Some(false), Some(since)) => most = most.min(since.saturating_sub(1)),
                _ => {}
            }
        }
        let position = from.min(most).max(least);
        let signed = signs.iter().any(|(present, _)| present.is_some());
        let evidence = match evidence {
            _ if position != from => Evidence::Files,
            Evidence::Nothing if signed => Evidence::Files,
            evidence => evidence,
        };
        let (policy, generation) = all[position];
        KernelRules { policy, generation, evidence }
    }
}

/// The generation of a kernel about which nothing is known.
const DEFAULT_GENERATION: &str = "6.12";

/// All generations of the fair class, oldest first, each with its policy.
fn generations() -> Vec<(&'static str, &'static Generation)> {
    let cfs = Cfs::GENERATIONS.iter().map(|(generation, _)| (Cfs::NAME, generation));
    let eevdf = Eevdf::GENERATIONS.iter().map(|(generation, _)| (Eevdf::NAME, generation));
    cfs.chain(eevdf).collect()
}

/// The position of a release's generation.
fn by_release(all: &[(&'static str, &'static Generation)], release: KernelRelease) -> (usize, Evidence) {
    let first_of = |name: &str, point| KernelRelease::of(name).map(|of| KernelRelease { point, ..of });
    let mut firsts: Vec<(KernelRelease, usize)> = all
        .iter()
        .zip(0..)
        .flat_map(|((_, generation), position)| {
            generation.since.iter().filter_map(move |&(name, point)| Some((first_of(name, point)?, position)))
        })
        .collect();
    firsts.sort_unstable();
    let series = |of: &KernelRelease| (of.major, of.minor);
    let own = firsts.iter().any(|(first, _)| series(first) == series(&release));
    let newest_before = firsts.iter().rev().find(|(first, _)| *first <= release);
    let newer = firsts.last().is_some_and(|(newest, _)| series(&release) > series(newest));
    match newest_before {
        None => (0, Evidence::Older),
        Some(&(_, position)) if own => (position, Evidence::Release),
        Some(&(_, position)) if newer => (position, Evidence::Newer),
        Some(&(_, position)) => (position, Evidence::Between),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_from_names_of_kernels() {
        let of = |name| KernelRelease::of(name).map(|release| (release.major, release.minor, release.point));
        assert_eq!(of("6.8.12-4-pve"), Some((6, 8, 12)));
        assert_eq!(of("6.12.48+deb13-amd64"), Some((6, 12, 48)));
        assert_eq!(of("5.14.0-427.13.1.el9_4.x86_64"), Some((5, 14, 0)));
        assert_eq!(of("7.1-rc3"), Some((7, 1, u32::MAX)));
        assert_eq!(of("6"), None);
        assert_eq!(of("generic"), None);
        assert_eq!(of("99999999999.1.1"), None);
    }

    #[test]
    fn files_decide_where_they_contradict_the_release() {
        let newer = KernelFacts {
            release: KernelRelease::of("6.12.1"),
            base_slice: Some(false),
            ..KernelFacts::default()
        };
        let rules = newer.rules();
        assert_eq!((rules.policy, rules.evidence), ("linux-cfs", Evidence::Files));
        let nothing = KernelFacts::default().rules();
        assert_eq!((nothing.generation.name, nothing.evidence), ("6.12", Evidence::Nothing));
    }
}
