//! The steps of packets and requests on their way, for those who record a run. Rings are numbered: those of network interfaces
//! first, then those of virtual disks; the domain of a step is the guest whose ring it is.

use vcpulab_host::{IoKind, IoStep, WorldContext};

use super::{Machine, Work};
use crate::block::BlockWork;
use crate::blockback::BlockBackWork;
use crate::config::Link;
use crate::driver::DriverWork;
use crate::interface::InterfaceWork;

impl Machine {
    /// A vCPU of a guest begins a piece of work: did something leave a ring for it?
    pub(super) fn step_begins(&self, ctx: &mut WorldContext<'_>, guest: usize, work: &Work) {
        match *work {
            Work::Driver(DriverWork::Send(interface, packet)) => {
                self.network_step(ctx, IoKind::LeaveRing, interface, packet.bytes);
            }
            Work::Interface(InterfaceWork::Receive(packet)) => {
                let interface = self.guests[guest].interface;
                if let Some(interface) = interface {
                    self.network_step(ctx, IoKind::LeaveRing, interface, packet.bytes);
                }
            }
            Work::Driver(DriverWork::Disk(_, BlockBackWork::Request(request), _)) => {
                self.disk_step(ctx, IoKind::LeaveRing, request.block as usize, request.bytes);
            }
            Work::Block(BlockWork::Response(_)) => {
                if let Some(block) = self.guests[guest].block {
                    self.disk_step(ctx, IoKind::LeaveRing, block, 0);
                }
            }
            _ => {}
        }
    }

    /// A packet enters or leaves the rings of an interface.
    pub(super) fn network_step(
        &self,
        ctx: &mut WorldContext<'_>,
        kind: IoKind,
        interface: usize,
        bytes: u32,
    ) {
        let front = &self.interfaces[interface];
        if !matches!(front.link, Link::Owner) {
            let domain = ctx.host().dom(front.vcpu);
            ctx.step(IoStep { kind, domain, id: interface as u64, value: bytes.into() });
        }
    }

    /// A request or a response enters or leaves the ring of a virtual disk.
    pub(super) fn disk_step(&self, ctx: &mut WorldContext<'_>, kind: IoKind, block: usize, bytes: u32) {
        let front = &self.blocks[block];
        if front.is_split() {
            let domain = ctx.host().dom(front.vcpu);
            let id = (self.interfaces.len() + block) as u64;
            ctx.step(IoStep { kind, domain, id, value: bytes.into() });
        }
    }
}
