//! The urgency of a vCPU: its level, then its deadline.

use vcpulab_host::Time;

/// A place in the order of urgency: the least is the most urgent. In one integer, which compares without branches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(i128);

impl Key {
    /// Before the key of any vCPU.
    pub const LEAST: Key = Key(i128::MIN);

    /// After the key of any vCPU.
    pub const GREATEST: Key = Key(i128::MAX);

    #[inline(always)]
    pub fn new(level: u32, deadline: Time) -> Self {
        Key((i128::from(level) << 64) + i128::from(deadline.ns()))
    }

    /// The key just before this one.
    #[inline(always)]
    pub fn before(self) -> Self {
        Key(self.0.saturating_sub(1))
    }
}
