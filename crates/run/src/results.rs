//! The results of a run.

use vcpulab_measure::{NotAttributed, TRACE_ROWS_MAX};
use vcpulab_spec::limits::ROWS_MAX;

/// Every result table once: hands the tables, each with its documentation, name and type of rows, to the macro `$with`.
#[macro_export]
macro_rules! for_each_table {
    ($with:ident) => {
        $with! {
            /// One row for each domain.
            domains: vcpulab_measure::DomainRow,
            /// One row for each vCPU.
            vcpus: vcpulab_measure::VcpuRow,
            /// One row for each pCPU.
            pcpus: vcpulab_measure::PcpuRow,
            /// One row for each application and client.
            apps: vcpulab_measure::AppRow,
            /// One row for each domain's I/O.
            io: vcpulab_measure::IoRow,
            /// Who made whom wait.
            waits: vcpulab_measure::WaitRow,
            /// One row for each domain and cause of wake-ups.
            wakeups: vcpulab_measure::WakeUpRow,
            /// Their histograms.
            wakeup_buckets: vcpulab_measure::WakeUpBucketRow,
            /// One row for each sample of a domain, in order of time.
            samples: vcpulab_measure::SampleRow,
            /// One row for each sample of a vCPU.
            vcpu_samples: vcpulab_measure::VcpuSampleRow,
            /// One row for each sample of an application or client.
            app_samples: vcpulab_measure::AppSampleRow,
            /// One row for each sample of a domain on a pCPU that it ran on.
            pcpu_samples: vcpulab_measure::PcpuSampleRow,
            /// Busy time by layers.
            profile: vcpulab_measure::ProfileRow,
            /// One row for each decision, if they were to be kept.
            trace: vcpulab_measure::TraceRow,
        }
    };
}

macro_rules! results {
    ($($(#[$doc:meta])* $table:ident: $row:ty,)*) => {
        /// The result tables of a run, each ordered by replication.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Results {
            $($(#[$doc])* pub $table: Vec<$row>,)*
            /// The reason why `waits` is empty, if it was not measured.
            pub not_attributed: Option<String>,
            /// Decisions for which the trace had no room.
            pub untraced: u64,
            /// Actions whose values the scheduler refused.
            pub rejected_actions: u64,
        }

        impl Results {
            /// Appends the results of the next replication.
            pub(crate) fn append(&mut self, mut next: Results) {
                $(self.$table.append(&mut next.$table);)*
                self.not_attributed = self.not_attributed.take().or(next.not_attributed);
                self.untraced += next.untraced;
                self.rejected_actions += next.rejected_actions;
            }
        }
    };
}

for_each_table!(results);

impl Results {
    /// Limits those of one replication to its share of what all of them may keep together.
    pub(crate) fn limit_to_share(&mut self, replications: usize) {
        let traced = TRACE_ROWS_MAX / replications;
        self.untraced += self.trace.len().saturating_sub(traced) as u64;
        self.trace.truncate(traced);
        self.trace.shrink_to_fit();
        // All replications of a run have the same number of domains.
        if self.waits.len() > ROWS_MAX / replications {
            self.waits = Vec::new();
            self.not_attributed = Some(NotAttributed::Rows.to_string());
        }
    }
}
