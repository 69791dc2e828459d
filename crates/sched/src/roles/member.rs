//! A domain of a pool, as promises to it depend on it.

use vcpulab_host::Params;

/// A domain of a pool: what a promise to it depends on.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Number of the domain as an administrator sees it.
    pub number: i64,
    /// Number of its vCPUs.
    pub vcpus: u32,
    /// True: some vCPU of the domain may not run on every pCPU of the pool.
    pub pinned: bool,
    /// The scheduler's parameters for it, those given.
    pub params: &'a Params,
}
