//! The costs of the hypervisor's own work: the difference between exact and physical mode.

use crate::Span;

/// Time that the hypervisor and the caches take from a pCPU, for one hardware profile. While it is taken no vCPU makes
/// progress on that pCPU (it counts as *overhead*, see [`accounting`](crate::accounting)).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Costs {
    /// Time for one scheduling decision.
    pub decision_ns: Span,
    /// Time for one context switch between different vCPUs (or to or from idle), without cold caches.
    pub context_switch_ns: Span,
    /// Time until a vCPU that was preempted is where it was: its caches, and what its kernel does about the time it has missed.
    pub resume_ns: Span,
    /// CPU time of a vCPU for each time that it blocks, in which the hypervisor decides who is next. It is charged as the vCPU
    /// wakes, before anything else that it does.
    pub block_ns: Span,
    /// CPU time of a vCPU for each other one that it wakes; and the time from what asks a pCPU for a decision until it decides.
    /// The pCPU continues to execute its vCPU meanwhile, if it can.
    pub wake_ns: Span,
    /// Delay with which an expired timer is handled. A timer that its handler sets again slips by as much.
    pub timer_ns: Span,
    /// Time for one physical interrupt taken by the hypervisor.
    pub interrupt_ns: Span,
    /// Time until an interprocessor interrupt is taken, which asks another pCPU to decide.
    pub ipi_ns: Span,
    /// Time in which the lock of a run queue comes from the pCPU that had it last, without waiting for it (0: locks cost nothing).
    pub lock_ns: Span,
    /// Size of each core's own cache, bytes (0: no cache model).
    pub l2_bytes: u64,
    /// Size of each shared cache, bytes: at least that of a private one (0: there is none).
    pub l3_bytes: u64,
    /// The number of pCPUs of a socket that share one (0: all).
    pub l3_pcpus: u32,
    /// Bytes brought in by one miss.
    pub cache_line_bytes: u64,
    /// Time for a line that comes from L3, picoseconds (a miss costs a few tens of ns; fractions add up over thousands of lines).
    pub l2_miss_ps: i64,
    /// Time for a line that comes from memory (of the own node), picoseconds.
    pub l3_miss_ps: i64,
}

impl Costs {
    /// Costs of zero: exact mode, the host contract.
    pub const ZERO: Costs = Costs {
        decision_ns: Span::ZERO,
        context_switch_ns: Span::ZERO,
        resume_ns: Span::ZERO,
        block_ns: Span::ZERO,
        wake_ns: Span::ZERO,
        timer_ns: Span::ZERO,
        interrupt_ns: Span::ZERO,
        ipi_ns: Span::ZERO,
        lock_ns: Span::ZERO,
        l2_bytes: 0,
        l3_bytes: 0,
        l3_pcpus: 0,
        cache_line_bytes: 64,
        l2_miss_ps: 0,
        l3_miss_ps: 0,
    };
}
