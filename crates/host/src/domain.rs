//! A domain as the host keeps it, and the events of its life.

use std::ops::Range;
use std::sync::Arc;

use crate::{DomId, DomainConfig, Params, PoolId, Table, VcpuConfig, VcpuId};

/// A domain.
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// The number an administrator sees.
    pub number: i64,
    pub first_vcpu: u32,
    pub vcpus: u32,
    pub pauses: u32,
    /// The CPU pool it is in.
    pub pool: PoolId,
    pub life: Life,
    /// Id of the domain in its present life.
    pub id: i64,
}

impl Domain {
    /// The numbers of its vCPUs.
    pub fn vcpu_numbers(&self) -> Range<u32> {
        self.first_vcpu..self.first_vcpu + self.vcpus
    }
}

/// Configuration with which a domain begins each of its lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Boot {
    pub pool: PoolId,
    pub params: Params,
    pub vcpus: Vec<VcpuConfig>,
}

impl Boot {
    /// Boot configurations of these domains. Neighbors that are alike share a configuration.
    pub fn of_all(domains: &[DomainConfig]) -> Table<DomId, Arc<Boot>> {
        let mut all: Vec<Arc<Boot>> = Vec::with_capacity(domains.len());
        for DomainConfig { pool, params, vcpus, .. } in domains {
            let boot = Boot { pool: *pool, params: params.clone(), vcpus: vcpus.clone() };
            let last = all.last().filter(|last| ***last == boot);
            all.push(last.map_or_else(|| Arc::new(boot), Arc::clone));
        }
        all.into()
    }
}

/// The stages of a domain's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    /// Not created yet, shut down or destroyed.
    Gone,
    /// On the host.
    There,
    /// On the host, but its guest is no more.
    Over(Over),
    /// Off the host, its state kept.
    Saved,
}

/// The listed state of a domain whose guest is no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Over {
    /// The guest has shut down, by itself or by crashing.
    pub shutdown: bool,
    /// The guest has crashed.
    pub crashed: bool,
    /// The toolstack is destroying the domain.
    pub dying: bool,
}

/// A change that the toolstack made to a guest. The host has done its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifeEvent {
    /// The domain was created: everything in the guest starts from the beginning.
    Booted(DomId),
    /// The guest has shut down or crashed, or the domain is destroyed: nothing of the guest is left.
    Stopped(DomId),
    /// The domain was saved: what reaches its vCPUs now wakes them when it is restored.
    Saved(DomId),
    /// The domain was restored: its vCPUs continue where they stopped.
    Restored(DomId),
    /// The vCPU is on line again, and continues where it stopped.
    VcpuUp(VcpuId),
    /// The vCPU is off line: what reaches it now wakes it when it is back.
    VcpuDown(VcpuId),
}
