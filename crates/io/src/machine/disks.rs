//! Virtual disks: the guests' block layers, the back ends and the disks.

use vcpulab_host::{IoKind, NEVER, Span, Time, WakeCause, WorldContext};

use super::{Guest, Machine, Source};
use crate::block::{Block, BlockWork, Submitted};
use crate::disk::{Disk, DiskRequest};

impl Machine {
    /// What a guest's block layer does next on that vCPU, and what that costs.
    pub(super) fn block_work(
        &mut self,
        ctx: &WorldContext<'_>,
        guest: usize,
        number: usize,
        block: usize,
    ) -> Option<(BlockWork, Span)> {
        let first = self.guests[guest].first_vcpu;
        let block_layer = &mut self.blocks[block];
        let takes_events = block_layer.vcpu.0 == first.0 + number as u32;
        let room = self.disks[self.disk_of[block]].store.can_submit();
        block_layer.next_work(ctx.now(), takes_events, room)
    }

    pub(super) fn finish_block(&mut self, ctx: &mut WorldContext<'_>, guest: usize, work: BlockWork) {
        let Some(block) = self.guests[guest].block else { return };
        let disk = self.disk_of[block];
        match self.blocks[block].finish(ctx.now(), work) {
            None => {}
            Some(Submitted::Disk(request)) => {
                self.submit(ctx, disk, request);
                self.set_disk(ctx, disk);
            }
            Some(Submitted::Ring { first }) => {
                self.disk_step(ctx, IoKind::EnterRing, block, 0);
                match self.disks[disk].owner {
                    Some((owner, vcpu)) => {
                        self.disks[disk].back.ring_filled(block, first);
                        let backend = self.backend(owner, vcpu).expect("checked when the machine was made");
                        self.backends[backend].told(ctx);
                    }
                    None => self.hypervisor_submits(ctx, disk, block),
                }
            }
        }
        self.resume_disk_tasks(ctx, guest);
    }

    /// The hypervisor's own driver takes what is in a ring, as far as the disk has room.
    fn hypervisor_submits(&mut self, ctx: &mut WorldContext<'_>, disk: usize, block: usize) {
        while self.disks[disk].store.can_submit()
            && let Some(request) = self.blocks[block].take_request()
        {
            self.submit(ctx, disk, request);
        }
        self.set_disk(ctx, disk);
    }

    fn submit(&mut self, ctx: &WorldContext<'_>, disk: usize, request: DiskRequest) {
        if let Some(disk) = self.disks[disk].store.disk_mut() {
            disk.submit(ctx.now(), request);
        }
    }

    /// Tasks whose accesses are complete go on.
    pub(super) fn resume_disk_tasks(&mut self, ctx: &mut WorldContext<'_>, guest: usize) {
        let Some(block) = self.guests[guest].block else { return };
        while let Some(task) = self.blocks[block].take_resumed() {
            self.resume(ctx, guest, task);
        }
    }

    pub(super) fn set_disk(&self, ctx: &mut WorldContext<'_>, disk: usize) {
        if let Some(real) = self.disks[disk].store.disk() {
            self.set(ctx, Source::Disk(disk), real.next_completion());
        }
    }

    /// The time has come at which a disk completes something.
    pub(super) fn disk_completes(&mut self, ctx: &mut WorldContext<'_>, disk: usize) {
        let real = self.disks[disk].store.disk_mut();
        if real.is_some_and(|disk| disk.complete(ctx.now())) {
            match self.disks[disk].owner {
                Some((owner, vcpu)) => {
                    let backend = self.backend(owner, vcpu).expect("checked when the machine was made");
                    self.backends[backend].interrupted(ctx);
                }
                None => self.hypervisor_completes(ctx, disk),
            }
        }
        self.set_disk(ctx, disk);
    }

    fn hypervisor_completes(&mut self, ctx: &mut WorldContext<'_>, disk: usize) {
        let mut first = true;
        while let Some(request) = self.disks[disk].store.disk_mut().and_then(Disk::take_completed) {
            let block = &mut self.blocks[request.block as usize];
            if std::mem::take(&mut first) {
                ctx.interrupt(ctx.host().processor(block.vcpu));
            }
            if block.respond(request.tag) && block.send_event() {
                ctx.kick(block.vcpu, WakeCause::Interrupt);
            }
        }
        for block in 0..self.blocks.len() {
            if self.disk_of[block] == disk && self.blocks[block].has_requests() {
                self.hypervisor_submits(ctx, disk, block);
            }
        }
    }

    /// When a vCPU is to look for what is to be written back (`NEVER`: nothing). What is due already waits for room.
    pub(super) fn disk_timer(&self, now: Time, guest: usize, number: usize) -> Time {
        let Guest { block, first_vcpu, .. } = self.guests[guest];
        let block = block.map(|block| &self.blocks[block]);
        let own = block.filter(|block| block.vcpu.0 == first_vcpu.0 + number as u32);
        own.map(Block::next_expiry).filter(|&expiry| expiry > now).unwrap_or(NEVER)
    }
}
