//! Things outside the program that a scenario may name: files, and policies.

use std::path::Path;

use vcpulab_sched::Policy;

/// The things that a scenario may name though they are not built in.
#[derive(Clone, Copy, Default)]
pub struct Outside<'a> {
    /// The folder of the files that it names; `None`: it may name none.
    pub folder: Option<&'a Path>,
    /// Finds a policy that is not in the registry; `None`: there are no others.
    pub policies: Option<&'a dyn Fn(&str) -> FoundPolicy>,
}

/// The outcome of a search for a policy.
#[derive(Clone, Debug)]
pub enum FoundPolicy {
    /// The policy that was found.
    Found(&'static Policy),
    /// There is none of that name, but there are these.
    Unknown(Vec<String>),
    /// There is one, but something is wrong with it: the reason, and a hint.
    Unusable(String, Option<String>),
}
