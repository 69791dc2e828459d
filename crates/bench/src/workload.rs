//! The benchmark's workload: every vCPU alternately runs about 2 ms and blocks, so that the host is just saturated.

use vcpulab_host::{Op, Span, Time, VcpuId, World, WorldContext};

use crate::floor::{Floor, Lengths};
use crate::size::Size;

/// Mean length of an execution, ns.
pub const RUN_MEAN_NS: u64 = 2_000_000;

/// Mean length of a block at which all pCPUs are just saturated, ns; where there is a vCPU for each pCPU, that of an execution.
pub fn block_mean_ns(pcpus: u32, vcpus: u32) -> u64 {
    RUN_MEAN_NS * (u64::from(vcpus) / u64::from(pcpus) - 1).max(1)
}

/// A small generator of its own (xorshift64*): the draws should cost next to nothing.
#[derive(Clone, Debug)]
pub struct Draws(u64);

impl Draws {
    /// A generator for one entity.
    pub fn new(entity: u64) -> Self {
        Draws((entity + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A span between half and one and a half times `mean`, ns.
    #[inline]
    pub fn around(&mut self, mean: u64) -> Span {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let random = ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) * mean) >> 32;
        Span::from_ns((mean / 2 + random) as i64)
    }
}

/// The world in which each vCPU runs and blocks by turns.
#[derive(Clone, Debug)]
pub struct RunAndBlock {
    draws: Vec<Draws>,
    blocks_next: Vec<bool>,
    block_mean_ns: u64,
}

impl RunAndBlock {
    /// The world of a host of `pcpus` and `vcpus`, with blocks such that all pCPUs are just saturated.
    pub fn new(pcpus: u32, vcpus: u32) -> Self {
        let all = (pcpus + vcpus) as usize;
        RunAndBlock {
            draws: (0..all as u64).map(Draws::new).collect(),
            blocks_next: vec![false; all],
            block_mean_ns: block_mean_ns(pcpus, vcpus),
        }
    }
}

impl World for RunAndBlock {
    #[inline]
    fn next_op(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, _left: Span) -> Op {
        let i = v.index();
        let blocks = self.blocks_next[i];
        self.blocks_next[i] = !blocks;
        if blocks {
            Op::Block(Some(ctx.now() + self.draws[i].around(self.block_mean_ns)))
        } else {
            Op::Run(self.draws[i].around(RUN_MEAN_NS))
        }
    }
}

/// Lengths drawn as in the host's workload, for the bare loop, in which no vCPU is preempted.
pub struct Drawn {
    draws: Vec<Draws>,
    block_mean_ns: u64,
}

impl Drawn {
    /// The bare loop of that size, with all vCPUs about to wake.
    pub fn floor(size: Size) -> Floor<Drawn> {
        let draws = (0..u64::from(size.vcpus)).map(Draws::new).collect();
        let lengths = Drawn { draws, block_mean_ns: block_mean_ns(size.pcpus, size.vcpus) };
        Floor::new(size.pcpus as usize, size.vcpus as usize, lengths)
    }
}

impl Lengths for Drawn {
    const SLICE: Option<Span> = None;

    fn start(&self, vcpu: usize) -> Time {
        Time::from_ns(vcpu as i64)
    }

    fn run(&mut self, vcpu: usize) -> Span {
        self.draws[vcpu].around(RUN_MEAN_NS)
    }

    fn block(&mut self, vcpu: usize) -> Span {
        self.draws[vcpu].around(self.block_mean_ns)
    }
}
