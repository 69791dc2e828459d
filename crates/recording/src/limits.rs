//! Limits that keep a reader's memory bounded, whatever a recording holds.

/// pCPUs that a recording may speak of.
pub const PCPUS_MAX: u32 = 4096;
/// vCPUs that are counted one by one; what others do is counted as not shown.
pub const VCPUS_MAX: usize = 4096;
/// Most pairs that are counted one by one: of a waker and a wakee, of a vCPU and a pCPU that it runs on.
pub const PAIRS_MAX: usize = 1 << 16;
/// Most threads of a host that are listed by name; other threads are counted all the same.
pub const TASKS_MAX: usize = 1 << 16;
