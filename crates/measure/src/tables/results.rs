//! All result tables of a run.

use crate::tables::{Columns, Spooled};
use crate::waits::NotAttributed;

/// Calls a macro with the result tables of a run: the documentation, the name, and how rows of which type are kept of each. This is
/// the only list of them.
#[macro_export]
macro_rules! each_table {
    ($call:ident) => {
        $call! {
            /// CPU time, waits and switches of each domain.
            domains: Vec<$crate::tables::DomainRow>,
            /// CPU time, waits and switches of each vCPU.
            vcpus: Vec<$crate::tables::VcpuRow>,
            /// The time of each pCPU.
            pcpus: Vec<$crate::tables::PcpuRow>,
            /// Work completed by each application and client.
            apps: Vec<$crate::tables::AppRow>,
            /// Traffic of each domain's devices.
            io: Vec<$crate::tables::IoRow>,
            /// Threads of a KVM host that serve its VMs.
            threads: Vec<$crate::tables::ThreadRow>,
            /// VMs and daemons of a KVM host: what each costs, and what limits did to it.
            vms: Vec<$crate::tables::VmRow>,
            /// Waits for a pCPU, by the domain that had it meanwhile.
            waits: Vec<$crate::tables::WaitRow>,
            /// Waits after wake-ups, by domain and cause.
            wakeups: Vec<$crate::tables::WakeUpRow>,
            /// Histograms of the waits after wake-ups.
            wakeup_buckets: Vec<$crate::tables::WakeUpBucketRow>,
            /// Samples of domains, in order of time.
            samples: Spooled<$crate::tables::SampleRow>,
            /// Samples of vCPUs.
            vcpu_samples: Spooled<$crate::tables::VcpuSampleRow>,
            /// Samples of applications and clients.
            app_samples: Spooled<$crate::tables::AppSampleRow>,
            /// Samples of domains on the pCPUs that they ran on.
            pcpu_samples: Spooled<$crate::tables::PcpuSampleRow>,
            /// Busy time by layers.
            profile: Vec<$crate::tables::ProfileRow>,
            /// Decisions that changed what a pCPU runs, if they were to be kept.
            trace: Spooled<$crate::tables::TraceRow>,
        }
    };
}

/// An action that was refused: it was not possible, or the scheduler did not accept its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RejectedAction {
    /// The time since the start of the run, its warm-up included.
    pub time_ns: i64,
    /// The action's name.
    pub action: &'static str,
    /// Domain of the action, if it has one.
    pub domain: Option<String>,
}

macro_rules! results {
    ($($(#[doc = $doc:literal])* $table:ident: $kept:ident<$row:ty>,)*) => {
        /// The result tables of a run, each ordered by replication.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Results {
            $($(#[doc = $doc])* pub $table: $kept<$row>,)*
            /// The reason why `waits` is empty, if it was not measured.
            pub not_attributed: Option<NotAttributed>,
            /// Decisions for which the trace had no room.
            pub untraced: u64,
            /// Actions that were refused, those in the warm-up included.
            pub rejected_actions: u64,
            /// The first of them, each once.
            pub rejected: Vec<RejectedAction>,
        }

        impl Results {
            /// The columns of all tables, in the order in which they are documented.
            pub const TABLES: &'static [Columns] = &[$(<$row>::COLUMNS),*];

            /// Adds the rows of the next replication.
            pub fn append(&mut self, mut next: Results) {
                $(self.$table.append(&mut next.$table);)*
                self.not_attributed = self.not_attributed.or(next.not_attributed);
                self.untraced += next.untraced;
                self.rejected_actions += next.rejected_actions;
                let known = self.rejected.len();
                let new = |action: &RejectedAction| !self.rejected[..known].contains(action);
                let new: Vec<RejectedAction> = next.rejected.into_iter().filter(new).collect();
                self.rejected.extend(new);
            }
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($table)),*];
    };
}
each_table!(results);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_called_as_their_row_types_say() {
        let declared: Vec<&str> = Results::TABLES.iter().map(|columns| columns.table).collect();
        assert_eq!(declared, NAMES);
    }

    #[test]
    fn results_of_replications_are_put_one_after_the_other() {
        let of = |replication, not_attributed| Results {
            vcpus: vec![crate::VcpuRow { replication, ..Default::default() }],
            not_attributed,
            untraced: 2,
            rejected_actions: 3,
            ..Results::default()
        };
        let mut all = of(0, None);
        all.append(of(1, Some(NotAttributed::Long)));
        all.append(of(2, Some(NotAttributed::Rows)));
        assert_eq!(all.vcpus.iter().map(|row| row.replication).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(
            (all.not_attributed, all.untraced, all.rejected_actions),
            (Some(NotAttributed::Long), 6, 9)
        );
    }
}
