//! A policy as the registry knows it: its name, its generations, and how it is made.

use vcpulab_host::{Params, Scheduler, Scope, Span};

use crate::param_spec::ParamSpec;
use crate::proposal::{Proposal, Refusal};
use crate::toolstack::Toolstack;
use crate::width::Width;

/// The default releases, of Xen and of Linux with EEVDF: those that most hosts run (XCP-ng 8.3, Debian 12; Debian 13, RHEL 10).
const DEFAULT_RELEASES: [&str; 2] = ["xen4.17", "6.12"];

/// A scheduling policy in the registry.
#[derive(Debug)]
pub struct Policy {
    /// Name of the policy in scenarios and vectors.
    pub name: &'static str,
    /// Sentence on what the policy does.
    pub doc: &'static str,
    /// Whether each vCPU keeps the pCPU that it is given: nothing schedules.
    pub leaves_in_place: bool,
    /// The constant of hardware profiles with the time that decisions take, in % of the time under Credit; `None`: as under Credit.
    pub decision_cost: Option<&'static str>,
    /// Generations of the policy, oldest first.
    pub generations: &'static [Generation],
}

/// A generation of a policy: the rules as one or more releases of the hypervisor shipped them.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// Name of the generation, such as `xen4.17`: the newest release that has it, or the release that it was read from.
    pub name: &'static str,
    /// The first point release of each series that has the generation, up to the next generation: `("xen4.19", 3)` is
    /// 4.19.3. Empty where the name alone means it.
    pub since: &'static [(&'static str, u32)],
    /// Parameters of the generation, global and per domain.
    pub params: &'static [ParamSpec],
    /// Whether the policy never leaves a pCPU idle while a vCPU that may run there waits (uncapped, and one decision later).
    pub work_conserving: bool,
    /// Whether the policy honors hard affinity; some releases do not look at it.
    pub hard_affinity: bool,
    /// The commands that set its parameters on a real host.
    pub toolstack: Toolstack,
}

impl Policy {
    /// The generation of a release: `xen4.19.1`, or the last point release of a series, `xen4.19`.
    pub fn generation(&self, release: &str) -> Option<&'static Generation> {
        generation_of(self.generations.iter(), release).map(|position| &self.generations[position])
    }

    /// The names under which the policy's generations are found, without point releases.
    pub fn releases(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for generation in self.generations {
            let series = generation.since.iter().map(|&(series, _)| series);
            for name in series.chain([generation.name]) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    /// The releases in which one of its generations holds, in words: `xen4.19.0 to xen4.19.2`.
    pub fn releases_of(&self, generation: &Generation) -> Vec<String> {
        let range = |&(series, first): &(&str, u32)| {
            let firsts = self.generations.iter().filter_map(|g| g.first_in(series));
            let next = firsts.filter(|&other| other > first).min();
            match (first, next.map(|next| next - 1)) {
                (0, None) => series.to_owned(),
                (_, None) => format!("{series}.{first} and later"),
                (_, Some(last)) if last == first => format!("{series}.{first}"),
                (_, Some(last)) => format!("{series}.{first} to {series}.{last}"),
            }
        };
        match generation.since {
            [] => vec![generation.name.to_owned()],
            since => since.iter().map(range).collect(),
        }
    }

    /// The default generation: that of one of [`DEFAULT_RELEASES`], or else the newest, of Xen if there is one.
    pub fn default_generation(&self) -> &'static Generation {
        let of_xen = || self.generations.iter().rfind(|generation| generation.name.starts_with("xen"));
        let newest = || self.generations.last().expect("a policy has a generation");
        DEFAULT_RELEASES
            .iter()
            .find_map(|release| self.generation(release))
            .or_else(of_xen)
            .unwrap_or_else(newest)
    }
}

impl Generation {
    /// The first point release of a series that has the generation.
    fn first_in(&self, series: &str) -> Option<u32> {
        self.since.iter().find(|(name, _)| *name == series).map(|&(_, first)| first)
    }
}

/// The position of a release's generation in a list: the generation with its name, or the newest of its series that is
/// not after it.
pub(crate) fn generation_of<'g>(
    generations: impl Iterator<Item = &'g Generation> + Clone,
    release: &str,
) -> Option<usize> {
    let by_name = generations.clone().position(|g| g.name == release);
    let holds = |(position, generation): (usize, &'g Generation)| {
        let firsts =
            generation.since.iter().filter(|(series, first)| Some(*first) <= point_of(release, series));
        firsts.map(|&(_, first)| (first, position)).max()
    };
    by_name.or_else(|| generations.enumerate().filter_map(holds).max().map(|(_, position)| position))
}

/// The number of a point release in its series; of the series itself, the number of its last point release.
fn point_of(release: &str, series: &str) -> Option<u32> {
    match release.strip_prefix(series)? {
        "" => Some(u32::MAX),
        rest => {
            let point = rest.strip_prefix('.')?.parse().ok()?;
            (rest == format!(".{point}")).then_some(point)
        }
    }
}

/// A scheduler that the registry can make.
pub trait Registered: Scheduler + Sized {
    /// The rules in which generations differ, as constants: the policy reads them where it decides, and never asks for
    /// the generation itself. `()`: nothing differs.
    type Rules: Copy + 'static;

    /// Name of the policy in scenarios and vectors.
    const NAME: &'static str;

    /// Sentence on what the policy does.
    const DOC: &'static str;

    /// Whether each vCPU keeps the pCPU that it is given: nothing schedules.
    const LEAVES_IN_PLACE: bool = false;

    /// The constant of hardware profiles with the time that decisions take, in % of the time under Credit; `None`: as under Credit.
    const DECISION_COST: Option<&'static str> = None;

    /// Generations of the policy, oldest first, each with its rules.
    const GENERATIONS: &'static [(Generation, Self::Rules)];

    /// Checks that values, each of which its parameter allows, go together.
    ///
    /// # Errors
    /// [`Refusal`]: [`Scheduler::adjust`] or [`Scheduler::adjust_global`] refuses them, or nothing of them would be in force in a new
    /// domain or scheduler.
    fn check(_rules: Self::Rules, _proposal: &Proposal<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// The given parameter that makes the policy act most often while no other event happens, and the time from one act
    /// to the next. `None`: none of the given parameters does.
    fn shortest_interval(
        _rules: Self::Rules,
        _scope: Scope,
        _given: &Params,
    ) -> Option<(&'static str, Span)> {
        None
    }

    /// The width of a parameter in the interface of the release.
    fn width(_rules: Self::Rules, _param: &str) -> Width {
        Width::Bits32
    }

    /// Makes the scheduler for a host with `pcpus` pCPUs. `global` holds the global parameters that were given.
    fn new(rules: Self::Rules, global: &Params, pcpus: u32) -> Self;
}

/// Puts generations, without their rules, into an array from a position on; the answer has the position after them.
pub const fn put_generations<R, const N: usize>(
    mut all: [Generation; N],
    from: usize,
    generations: &[(Generation, R)],
) -> ([Generation; N], usize) {
    let mut i = 0;
    while i < generations.len() {
        all[from + i] = generations[i].0;
        i += 1;
    }
    (all, from + generations.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn generation(name: &'static str, since: &'static [(&'static str, u32)]) -> Generation {
        let (params, toolstack) = (&[], Toolstack::NONE);
        Generation { name, since, params, work_conserving: false, hard_affinity: false, toolstack }
    }

    const POLICY: Policy = Policy {
        name: "p",
        doc: "",
        leaves_in_place: false,
        decision_cost: None,
        generations: &[
            generation("xen4.4.1", &[]),
            generation("xen4.17", &[("xen4.17", 0), ("xen4.18", 0), ("xen4.19", 0), ("xen4.20", 0)]),
            generation("xen4.22", &[("xen4.19", 3), ("xen4.20", 1), ("xen4.22", 0)]),
        ],
    };

    #[test]
    fn a_release_has_the_rules_of_the_last_change_before_it() {
        let rules = |release| POLICY.generation(release).map(|generation| generation.name);
        for old in ["xen4.17", "xen4.17.0", "xen4.17.7", "xen4.18", "xen4.19.0", "xen4.19.2", "xen4.20.0"] {
            assert_eq!(rules(old), Some("xen4.17"), "{old}");
        }
        for new in ["xen4.19", "xen4.19.3", "xen4.19.10", "xen4.20", "xen4.20.1", "xen4.22", "xen4.22.0"] {
            assert_eq!(rules(new), Some("xen4.22"), "{new}");
        }
        assert_eq!(rules("xen4.4.1"), Some("xen4.4.1"));
        for none in
            ["xen4.4", "xen4.4.2", "xen4.1", "xen4.21", "xen4.19.", "xen4.19.03", "xen4.19.+3", "4.19", ""]
        {
            assert_eq!(rules(none), None, "{none}");
        }
    }

    #[test]
    fn the_releases_of_each_generation_are_said_in_words() {
        let said: Vec<String> = POLICY.generations.iter().map(|g| POLICY.releases_of(g).join(", ")).collect();
        assert_eq!(said[0], "xen4.4.1");
        assert_eq!(said[1], "xen4.17, xen4.18, xen4.19.0 to xen4.19.2, xen4.20.0");
        assert_eq!(said[2], "xen4.19.3 and later, xen4.20.1 and later, xen4.22");
        assert_eq!(POLICY.releases(), ["xen4.4.1", "xen4.17", "xen4.18", "xen4.19", "xen4.20", "xen4.22"]);
    }
}
