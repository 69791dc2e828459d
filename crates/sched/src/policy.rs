//! A policy as the registry knows it: its name, its generations, and how it is made.

use vcpulab_host::{ParamSpec, Params, Scheduler};

use crate::toolstack::Toolstack;

/// The release meant where none is named: the one that most hosts run (XCP-ng 8.3, Debian 12).
pub const DEFAULT_RELEASE: &str = "xen4.17";

/// One policy.
#[derive(Debug)]
pub struct Policy {
    /// Its name in scenarios and vectors.
    pub name: &'static str,
    /// One sentence on what it does.
    pub doc: &'static str,
    /// Its generations, oldest first.
    pub generations: &'static [Generation],
}

/// One generation of a policy, as one release of the hypervisor shipped it.
#[derive(Clone, Copy, Debug)]
pub struct Generation {
    /// Its name, such as `xen4.17`.
    pub name: &'static str,
    /// Its parameters, global and per domain.
    pub params: &'static [ParamSpec],
    /// Whether it never leaves a pCPU idle while a vCPU that may run there waits (uncapped, and one decision later).
    pub work_conserving: bool,
    /// Whether it honours hard affinity. (Some releases do not look at it.)
    pub hard_affinity: bool,
    /// The commands that set its parameters on a real host.
    pub toolstack: Toolstack,
}

impl Policy {
    /// The generation of that name.
    pub fn generation(&self, name: &str) -> Option<&'static Generation> {
        self.generations.iter().find(|g| g.name == name)
    }

    /// The generation used when none is named: that of [`DEFAULT_RELEASE`], or else the newest.
    pub fn default_generation(&self) -> &'static Generation {
        let newest = || self.generations.last().expect("a policy has a generation");
        self.generation(DEFAULT_RELEASE).unwrap_or_else(newest)
    }
}

/// A scheduler that the registry can make.
pub trait Registered: Scheduler + Sized {
    /// The rules in which generations differ, as constants: the policy reads them where it decides, and never asks for
    /// the generation itself. `()`: nothing differs.
    type Rules: Copy + 'static;

    /// Its name in scenarios and vectors.
    const NAME: &'static str;

    /// One sentence on what it does.
    const DOC: &'static str;

    /// Its generations, oldest first, each with its rules.
    const GENERATIONS: &'static [(Generation, Self::Rules)];

    /// Makes it for a host with `pcpus` pCPUs. `global` holds those of its global parameters that were given.
    fn new(rules: Self::Rules, global: &Params, pcpus: u32) -> Self;
}

/// The generations without their rules.
pub const fn without_rules<R, const N: usize>(generations: &[(Generation, R)]) -> [Generation; N] {
    let mut bare = [generations[0].0; N];
    let mut i = 1;
    while i < N {
        bare[i] = generations[i].0;
        i += 1;
    }
    bare
}
