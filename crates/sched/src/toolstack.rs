//! The commands that set a scheduler's parameters on a real host.
//!
//! Sources: the manual pages of `xl` (4.4, 4.17) and `xm` (3.x), the Xen user manuals of 2.0 and 3.0, the 4.17 page on the
//! hypervisor's command line, and for `load-balance-ratelimit` that of 4.18.

/// Commands that set a generation's parameters on a real host.
#[derive(Clone, Copy, Debug)]
pub struct Toolstack {
    /// The command-line tool, `xl` or `xm`. Empty: no release of Xen has this scheduler.
    pub tool: &'static str,
    /// Name of the scheduler in the boot option `sched=`, and for a CPU pool.
    pub sched: &'static str,
    /// The subcommand for a domain's parameters, up to their options; `DOM` stands for the domain. Empty: there is none.
    pub domain: &'static str,
    /// The subcommand for the scheduler's own parameters. Empty: there is none.
    pub global: &'static str,
    /// The way to set each parameter. A parameter that is not listed cannot be set on a real host.
    pub set: &'static [(&'static str, Set)],
}

/// A way to set a parameter on a real host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Set {
    /// An option of the subcommand.
    Option(&'static str),
    /// An option in a coarser unit; the number is how many units of ours are in one of it.
    OptionPer(&'static str, i64),
    /// An option that must be given whenever another option is given.
    Always(&'static str),
    /// An argument in its place among the others; all of them must be given.
    Place,
    /// An option of the hypervisor's own command line, at boot.
    Boot(&'static str),
    /// A command or file on a host of Linux.
    Host(&'static str),
}

impl Toolstack {
    /// No release of Xen has this scheduler.
    pub const NONE: Toolstack = Toolstack { tool: "", sched: "", domain: "", global: "", set: &[] };
}

#[cfg(test)]
mod tests {
    use super::Set;
    use crate::policies;
    use vcpulab_host::Scope;

    /// A parameter is set by the command that there is for its scope, and no table names one that is not there.
    #[test]
    fn tables_match_the_parameters() {
        for generation in policies().iter().flat_map(|policy| policy.generations) {
            let tools = &generation.toolstack;
            for (name, set) in tools.set {
                let param = generation.params.iter().find(|param| param.name == *name);
                let param = param.unwrap_or_else(|| panic!("{name} is no parameter of {}", generation.name));
                let command = if param.scope == Scope::Domain { tools.domain } else { tools.global };
                assert!(
                    matches!(set, Set::Boot(_) | Set::Host(_)) || !command.is_empty(),
                    "{name}: by which command?"
                );
            }
            assert_eq!(tools.tool.is_empty(), tools.sched.is_empty());
        }
    }
}
