//! A domain as the host keeps it, and the events of its life.

use crate::{DomId, PoolId, VcpuId};

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
    /// Its id in its present life.
    pub id: i64,
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
    /// It has crashed.
    pub crashed: bool,
    /// The toolstack is destroying the domain.
    pub dying: bool,
}

/// A change that the toolstack made to a guest. The host has done its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifeEvent {
    /// The domain was created: everything in the guest starts anew.
    Booted(DomId),
    /// The guest has shut down or crashed, or the domain is destroyed: nothing of the guest is left.
    Stopped(DomId),
    /// The domain was saved: what reaches its vCPUs now wakes them when it is restored.
    Saved(DomId),
    /// The domain was restored: its vCPUs go on where they stood.
    Restored(DomId),
    /// The vCPU is on line again, and goes on where it stood.
    VcpuUp(VcpuId),
    /// The vCPU is off line: what reaches it now wakes it when it is back.
    VcpuDown(VcpuId),
}
