//! The meaning of a parameter for the CPU time that domains are entitled to.

use vcpulab_host::{PartId, Span};

/// The owner of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Per {
    /// All vCPUs of a domain have it together.
    Domain,
    /// Each vCPU of a domain has it, beside all vCPUs of the pool.
    Vcpu,
    /// Each vCPU of a domain has it, beside those that belong to the same pCPU: nothing balances pCPUs.
    VcpuOfPcpu,
}

/// The number of times that the weight of a control group counts beside its siblings, all CPUs together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupWeight {
    /// Once: the CPUs divide the weight.
    Once,
    /// Once on each CPU that a busy thread of the group is on.
    Undivided,
    /// Once for each busy thread, at most once for each CPU.
    PerBusyThreadUpToCpus,
    /// Once for each busy thread.
    PerBusyThread,
    /// Once for each CPU of the host; together at most this weight.
    PerCpu(i64),
}

impl GroupWeight {
    /// The weight of a group on all CPUs together, if this many of its threads are always busy.
    pub fn total(self, weight: f64, threads: u32, cpus: u32) -> f64 {
        let times = |count: u32| weight * f64::from(count.max(1));
        match self {
            GroupWeight::Once => weight,
            // Balancing spreads busy threads over the CPUs.
            GroupWeight::Undivided | GroupWeight::PerBusyThreadUpToCpus => times(threads.min(cpus)),
            GroupWeight::PerBusyThread => times(threads),
            GroupWeight::PerCpu(most) => times(cpus).min(most as f64),
        }
    }
}

/// The part of a reservation that a parameter is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReservationPart {
    /// The CPU time of each vCPU in each period; 0: none is reserved.
    Time {
        /// Unit of the value.
        unit: Span,
    },
    /// The period; 0: none is reserved.
    Period {
        /// Unit of the value: that of the time.
        unit: Span,
    },
    /// A weight: where it is not 0, it decides in place of the time; with extra time and a period of 0 it shares extra time only.
    Weight,
    /// 1: each vCPU may use time beside the reservation that nobody has reserved.
    Extra {
        /// The value where time and period are given and this parameter is left out.
        by_default: bool,
    },
    /// The time within which a vCPU runs after a long block, in the unit of the period, which it may not exceed.
    Latency,
}

/// The pCPUs on which CPU time is reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReservedOn {
    /// Any pCPU of the pool.
    Pool,
    /// The pCPU that a vCPU belongs to: nothing balances pCPUs.
    OwnPcpu,
    /// No pCPU: the generation does not keep what is reserved.
    Nothing,
}

/// The meaning of a parameter for the CPU time that domains are entitled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// No meaning that follows from the parameter's value alone.
    Plain,
    /// A share in proportion to it.
    Weight(Per),
    /// A share in inverse proportion to it.
    InverseWeight(Per),
    /// Most CPU time of a domain, in percent of one pCPU; 0: no limit.
    CapPercent,
    /// A part of a reservation of CPU time.
    Reserved(ReservationPart, ReservedOn),
    /// A timetable of the whole pool.
    Timetable,
    /// The time after which the timetable repeats.
    Frame,
    /// The weight of a domain's control group beside the groups in the same group.
    GroupWeight,
    /// The number of times that weights of control groups count, by the value of the parameter; without one, once.
    GroupWeightMode(&'static [GroupWeight]),
    /// 1: a domain's control group runs when nothing else wants to.
    GroupIdle,
    /// CPU time that a part of a domain may have in each period; negative: no limit.
    GroupQuota(Part),
    /// The period of that quota.
    GroupPeriod(Part),
}

/// A part of a domain that has a control group of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// All threads of the domain.
    Whole,
    /// A single vCPU.
    Vcpu,
    /// The emulator's own threads.
    Emulator,
    /// A thread for input and output.
    IoThread,
}

impl Part {
    /// All parts, in the order of their ids.
    pub const ALL: [Part; 4] = [Part::Whole, Part::Vcpu, Part::Emulator, Part::IoThread];

    /// The number of the part for the host, to which it means nothing.
    pub const fn id(self) -> PartId {
        PartId(self as u32)
    }
}
