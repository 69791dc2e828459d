//! Ranks of threads by class: real-time threads come before fair ones.

use vcpulab_host::Class;

/// Rank of a CPU's current thread: −1 for none, 0 for a fair one, or a real-time priority from 1 to 99.
pub type Rank = i16;

/// The rank of a CPU that runs nothing.
pub const IDLE: Rank = -1;

/// The rank of fair threads.
pub const FAIR: Rank = 0;

/// The rank of a class.
pub fn rank(class: Class) -> Rank {
    match class {
        Class::Fifo(priority) | Class::RoundRobin(priority) => priority.max(1).into(),
        Class::Other | Class::Batch | Class::Idle => FAIR,
    }
}
