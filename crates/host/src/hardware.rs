//! Hardware: what threads, nodes and clocks of a machine share. What that does to the speed of work is in [`speed`](crate::speed).

use crate::Span;

/// A kind of work, by what bounds its speed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bound {
    /// The execution units of the core.
    #[default]
    Compute = 0,
    /// Memory.
    Memory = 1,
    /// Devices: short pieces of kernel work.
    Io = 2,
}

impl Bound {
    /// Each with its word, in order.
    pub const ALL: [(&'static str, Bound); KINDS] =
        [("compute", Bound::Compute), ("memory", Bound::Memory), ("io", Bound::Io)];
}

/// The number of kinds of work.
pub(crate) const KINDS: usize = 3;

/// The choice of a core's frequency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Governor {
    /// The highest there is.
    #[default]
    Performance,
    /// The lowest there is.
    Powersave,
    /// The lowest at which the core would not be too busy, by how busy it was (Pallipadi and Starikovskiy, "The Ondemand
    /// Governor", Ottawa Linux Symposium 2006).
    Ondemand,
}

/// Properties of the hardware that decide the speed of pCPUs. Kinds of work are indexed by [`Bound`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hardware {
    /// The speed of a kind of work, in % of its speed alone on the core, beside a kind of work on another thread of it.
    pub beside_percent: [[u32; KINDS]; KINDS],
    /// The part of its time for which a kind of work waits for memory, %.
    pub memory_share_percent: [u32; KINDS],
    /// Memory bandwidth that a thread of each kind of work uses at full speed, MB/s.
    pub bandwidth_mb_per_s: [u32; KINDS],
    /// Memory bandwidth of a node, MB/s (0: unlimited).
    pub node_mb_per_s: u32,
    /// Bandwidth of a node's memory for other nodes, MB/s (0: unlimited).
    pub link_mb_per_s: u32,
    /// The distance of memory on another node (10: as near as the own one's).
    pub numa_distance: u32,
    /// The frequency at which CPU times are given, MHz.
    pub nominal_mhz: u32,
    /// The highest frequency while one core of a socket is active, MHz.
    pub turbo_one_core_mhz: u32,
    /// The highest frequency while all cores of a socket are active, MHz.
    pub turbo_all_cores_mhz: u32,
    /// The lowest frequency, MHz.
    pub min_mhz: u32,
    /// The governor that chooses a frequency between lowest and highest.
    pub governor: Governor,
    /// Time between two choices of the governor.
    pub governor_sample: Span,
    /// Highest utilization of a core, %, above which the governor gives it the highest frequency.
    pub governor_up_percent: u32,
}

impl Hardware {
    /// Every thread is as fast as if it were alone.
    pub const NONE: Hardware = Hardware {
        beside_percent: [[100; KINDS]; KINDS],
        memory_share_percent: [0; KINDS],
        bandwidth_mb_per_s: [0; KINDS],
        node_mb_per_s: 0,
        link_mb_per_s: 0,
        numa_distance: 10,
        nominal_mhz: 1000,
        turbo_one_core_mhz: 1000,
        turbo_all_cores_mhz: 1000,
        min_mhz: 1000,
        governor: Governor::Performance,
        governor_sample: Span::from_ms(10),
        governor_up_percent: 80,
    };
}

impl Default for Hardware {
    fn default() -> Self {
        Hardware::NONE
    }
}
