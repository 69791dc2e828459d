//! The limits of a file's text. Those of what it says are in `vcpulab_spec::limits`.

/// Longest scenario file, bytes: room for 20,000 turns of vCPUs that are replayed.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Problems reported for one file; more are only counted.
pub const PROBLEMS_MAX: usize = 100;
