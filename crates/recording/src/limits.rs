//! Limits that keep a reader's memory bounded, whatever a recording holds.

/// pCPUs that a recording may speak of.
pub const PCPUS_MAX: u32 = 4096;
/// vCPUs that are counted one by one; what others do is counted as not shown.
pub const VCPUS_MAX: usize = 4096;
/// Pairs that are counted one by one: of a waker and whom it wakes, of a vCPU and a pCPU that it runs on.
pub const PAIRS_MAX: usize = 1 << 16;
/// Threads of a host that are told by name; what others do is no less counted.
pub const TASKS_MAX: usize = 1 << 16;
