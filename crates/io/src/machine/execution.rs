//! Execution: a vCPU's next piece of work, its cost and its end.

use vcpulab_guest::Next;
use vcpulab_host::{IoKind, Op, Span, VcpuId, WorldContext};

use super::Machine;
use super::work::Work;
use crate::driver_domain::BackendWork;
use crate::ids::{GuestId, GuestVcpu};
use crate::layers::{Layers, Share};
use crate::network::netfront::NetfrontWork;
use crate::path::carry;
use crate::path::route::{Origin, Step};
use crate::storage::blkback::BlkbackWork;
use crate::storage::blkfront::BlkfrontWork;

/// The work of a spinning vCPU: as good as without end, and still counted.
const SPIN: Span = Span::from_ns(i64::MAX - 1);

impl Machine {
    /// Gives a vCPU of a guest its next piece of work.
    #[inline]
    pub(super) fn choose(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, at: GuestVcpu) -> Op {
        let guest = at.guest;
        loop {
            if self.guests.all[guest].may_have_kernel_work()
                && let Some(span) = self.begin_kernel_work(ctx, v, at)
            {
                return Op::Run(span);
            }
            let next = self.guests.all[guest].kernel.next(at.index(), ctx.now());
            self.guests.kick_tasks(ctx, guest);
            let layers = match next {
                Next::Io(task, io) => {
                    self.call(ctx, guest, task, io);
                    continue;
                }
                Next::Run(span) => Some(Layers::application(span)),
                Next::Kernel(span) => Some(Layers::kernel(span, Span::ZERO)),
                Next::Spin => Some(Layers::application(SPIN)),
                Next::Idle => None,
            };
            let write_out = self.storage.next_expiry(ctx.now(), guest, v);
            return self.guests.begin_tasks(ctx, v, layers, write_out);
        }
    }

    /// Begins the next work of a guest's kernel on a vCPU that takes time; `None`: there is none.
    #[inline(never)]
    fn begin_kernel_work(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId, at: GuestVcpu) -> Option<Span> {
        while let Some((work, cost)) = self.kernel_work(ctx, v, at) {
            let all = self.guests.all[at.guest].random.spread(cost.sum(), self.spread_percent);
            self.guests.begin_work(v, work, Share::begun(cost.stretched(all), ctx.now()));
            if ctx.wants_steps() {
                self.report_begin(ctx, at.guest, work);
            }
            if all > Span::ZERO {
                return Some(all);
            }
            if let Some(work) = self.guests.end_work(v, Span::ZERO, ctx.now()) {
                self.finish(ctx, at, work);
            }
        }
        None
    }

    /// The next work of a guest's kernel on a vCPU, and its cost: of its back ends, its network or its disk.
    fn kernel_work(
        &mut self,
        ctx: &mut WorldContext<'_>,
        v: VcpuId,
        at: GuestVcpu,
    ) -> Option<(Work, Layers)> {
        let (from, packet) = 'packet: {
            if let Some(work) = self.drivers.next(ctx, at, &mut self.network, &mut self.storage) {
                let costs = &self.guests.all[at.guest].costs.driver;
                return Some(match work {
                    BackendWork::Upcall => (Work::BackendUpcall, costs.upcall()),
                    BackendWork::Blkback { at, work, cost } => {
                        let emulation = self.storage.blkfronts[work.request().blkfront].emulation_ns;
                        (Work::Blkback(at, work), costs.blkback(&work, cost, emulation))
                    }
                    BackendWork::Packet { from, packet } => break 'packet (from, packet),
                });
            }
            let costs = &self.guests.all[at.guest].costs.network;
            match self.network.next_work(ctx.now(), at) {
                Some(NetfrontWork::Upcall) => return Some((Work::NetfrontUpcall, costs.upcall())),
                Some(NetfrontWork::Packet { from, packet }) => break 'packet (from, packet),
                None => {}
            }
            if let Some((work, cost)) = self.storage.next_work(ctx.now(), at.guest, v) {
                let upcall = costs.hypervisor_upcall_ns.min(cost);
                let hypervisor = if matches!(work, BlkfrontWork::Upcall) { upcall } else { Span::ZERO };
                return Some((Work::Blkfront(work), Layers::kernel(cost, hypervisor)));
            }
            (Origin::Loopback, self.guests.all[at.guest].take_loopback()?)
        };
        let costs = &self.guests.all[at.guest].costs;
        let (step, cost) = carry::begin(&mut self.network, ctx.now(), at, v, from, packet, costs);
        Some((Work::Packet(step), cost))
    }

    /// Ends a piece of work: what follows from it happens.
    #[inline]
    pub(super) fn finish(&mut self, ctx: &mut WorldContext<'_>, at: GuestVcpu, work: Work) {
        match work {
            Work::Packet(step) => {
                let arrived = carry::carry(ctx, &mut self.network, &mut self.drivers, at, step);
                if let Some(packet) = arrived {
                    self.arrive(ctx, packet);
                }
                if step.from.is_backend() {
                    self.drivers.pass_turn(ctx, at);
                }
            }
            Work::Blkback(at, work) => self.storage.finish_back(ctx, at, work),
            Work::Blkfront(work) => {
                if let Some(netback) = self.storage.finish(ctx, at.guest, work) {
                    self.drivers.kick(ctx, netback);
                }
                self.resume_disk_tasks(ctx, at.guest);
            }
            Work::Tasks(span) => self.guests.all[at.guest].kernel.computed(at.index(), span),
            Work::BackendUpcall | Work::NetfrontUpcall | Work::Poll => {}
        }
    }

    /// Lets the tasks of a guest continue whose accesses to the disk are complete.
    pub(super) fn resume_disk_tasks(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId) {
        while let Some(task) = self.storage.take_resumed(guest) {
            self.guests.resume(ctx, guest, task);
        }
    }

    /// Reports a packet or request that leaves a ring with the begin of a piece of work, for recordings of the run.
    #[cold]
    fn report_begin(&self, ctx: &mut WorldContext<'_>, guest: GuestId, work: Work) {
        match work {
            Work::Packet(Step {
                from: Origin::RingOut(netfront) | Origin::RingIn(netfront), packet, ..
            }) => {
                self.network.report_ring(ctx, IoKind::LeaveRing, netfront, packet);
            }
            Work::Blkback(_, BlkbackWork::Request(request)) => {
                self.storage.report_ring(ctx, IoKind::LeaveRing, request.blkfront, request.bytes);
            }
            Work::Blkfront(BlkfrontWork::Response(_)) => {
                if let Some(blkfront) = self.storage.of_guest(guest) {
                    self.storage.report_ring(ctx, IoKind::LeaveRing, blkfront, 0);
                }
            }
            _ => {}
        }
    }
}
