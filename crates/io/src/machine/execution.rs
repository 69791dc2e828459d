//! Execution: a vCPU's next piece of work, its cost and its end.

use vcpulab_guest::Next;
use vcpulab_host::{IoKind, Op, Span, VcpuId, WorldContext};

use super::Machine;
use super::work::{DriverWork, Work};
use crate::ids::GuestId;
use crate::layers::{Layers, Share};
use crate::network::netfront::NetfrontWork;
use crate::path::legs::Place;
use crate::path::route::Hop;
use crate::path::route::Uplink;
use crate::storage::blkback::BlkbackWork;
use crate::storage::blkfront::BlkfrontWork;

/// The work of a spinning vCPU: as good as without end, and still counted.
const SPIN: Span = Span::from_ns(i64::MAX - 1);

impl Machine {
    /// Gives a vCPU of a guest its next piece of work.
    #[inline]
    pub(super) fn choose(
        &mut self,
        ctx: &mut WorldContext<'_>,
        v: VcpuId,
        guest: GuestId,
        number: usize,
    ) -> Op {
        loop {
            if self.guests.all[guest].may_have_kernel_work()
                && let Some(span) = self.begin_kernel_work(ctx, v, guest, number)
            {
                return Op::Run(span);
            }
            let next = self.guests.all[guest].kernel.next(number, ctx.now());
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
    fn begin_kernel_work(
        &mut self,
        ctx: &mut WorldContext<'_>,
        v: VcpuId,
        guest: GuestId,
        number: usize,
    ) -> Option<Span> {
        while let Some((work, cost)) = self.kernel_work(ctx, v, guest, number) {
            let all = self.guests.all[guest].random.spread(cost.sum(), self.spread_percent);
            self.guests.begin_work(v, work, Share::begun(cost.stretched(all), ctx.now()));
            if ctx.wants_steps() {
                self.report_begin(ctx, guest, v);
            }
            if all > Span::ZERO {
                return Some(all);
            }
            if let Some(work) = self.guests.end_work(v, Span::ZERO, ctx.now()) {
                self.finish(ctx, guest, number, work);
            }
        }
        None
    }

    /// The next work of a guest's kernel on a vCPU: of its back ends, its network or its disk.
    fn kernel_work(
        &mut self,
        ctx: &mut WorldContext<'_>,
        v: VcpuId,
        guest: GuestId,
        number: usize,
    ) -> Option<(Work, Layers)> {
        let driver = self.drivers.next(ctx, guest, number, &mut self.network, &mut self.storage);
        if driver.is_some() {
            return driver;
        }
        let netfront = self.netfront_work(ctx, v, guest, number);
        if netfront.is_some() {
            return netfront;
        }
        let inside = &mut self.guests.all[guest];
        if let Some((work, cost)) = self.storage.next_work(ctx.now(), guest, v) {
            let upcall = inside.network.hypervisor_upcall_ns.min(cost);
            let hypervisor = if matches!(work, BlkfrontWork::Upcall) { upcall } else { Span::ZERO };
            return Some((Work::Blkfront(work), Layers::kernel(cost, hypervisor)));
        }
        let packet = inside.take_loopback()?;
        self.network.enters(ctx.now(), packet, Place::Receive, Some(v));
        Some((Work::Loopback(packet), inside.network.loopback(&self.network.packets[packet])))
    }

    /// The next work of a guest's netfront and network stack on a vCPU.
    fn netfront_work(
        &mut self,
        ctx: &WorldContext<'_>,
        v: VcpuId,
        guest: GuestId,
        number: usize,
    ) -> Option<(Work, Layers)> {
        let id = self.network.routes.netfront(guest)?;
        let netfront = &mut self.network.netfronts[id];
        let (uplink, nic) = (netfront.uplink, netfront.nic);
        let through_driver_domain = matches!(uplink, Uplink::DriverDomain { .. });
        let has_room = through_driver_domain || self.network.nics[nic].can_send(ctx.now());
        let work = netfront.next(number, has_room, &self.network.packets)?;
        match work {
            NetfrontWork::Upcall => {}
            NetfrontWork::Receive(packet) => self.network.enters(ctx.now(), packet, Place::Receive, Some(v)),
            NetfrontWork::Send(packet) => self.network.enters(ctx.now(), packet, Place::Send, Some(v)),
        }
        let owns_nic = uplink == Uplink::OwnNic;
        let hop = match (work, uplink) {
            (NetfrontWork::Upcall, _) => Hop::Here,
            (NetfrontWork::Receive(packet), _) => self.network.hop(guest, None, packet),
            (NetfrontWork::Send(packet), Uplink::OwnNic) => self.network.hop(guest, Some(id), packet),
            (NetfrontWork::Send(_), Uplink::DriverDomain { .. }) => Hop::Up(id),
            (NetfrontWork::Send(_), Uplink::Hypervisor) => Hop::Link(nic),
        };
        let hop = match hop {
            Hop::Ring(_) => self.drivers.leaves(guest, hop, number, &self.network),
            _ => hop,
        };
        let driver = self.drivers.costs(guest);
        let nic_send_ns = if owns_nic { driver.nic_send_ns } else { Span::ZERO };
        let own = self.guests.all[guest].network.work(&work, nic_send_ns, &self.network.packets);
        let cost = match hop {
            Hop::Ring(behind) => own.plus(&driver.pass_on(self.network.netfronts[behind].emulation_ns)),
            Hop::Thread(_) => own.plus(&driver.forward()),
            _ => own,
        };
        Some((Work::Netfront(work, hop), cost))
    }

    /// Ends a piece of work: what follows from it happens.
    #[inline]
    pub(super) fn finish(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, number: usize, work: Work) {
        match work {
            Work::Driver(work) => self.finish_driver(ctx, guest, number, work),
            Work::Netfront(work, hop) => self.finish_netfront(ctx, guest, work, hop),
            Work::Blkfront(work) => {
                if let Some(owner) = self.storage.finish(ctx, guest, work) {
                    self.drivers.kick(ctx, owner);
                }
                self.resume_disk_tasks(ctx, guest);
            }
            Work::Loopback(packet) => self.arrive(ctx, packet),
            Work::Tasks(span) => self.guests.all[guest].kernel.computed(number, span),
            Work::Poll => {}
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
    fn report_begin(&self, ctx: &mut WorldContext<'_>, guest: GuestId, v: VcpuId) {
        let Some(work) = self.guests.vcpu(v).and_then(|vcpu| vcpu.work) else { return };
        match work {
            Work::Driver(DriverWork::Send(netfront, packet, _)) => {
                self.network.report_ring(ctx, IoKind::LeaveRing, netfront, packet);
            }
            Work::Netfront(NetfrontWork::Receive(packet), _) => {
                if let Some(netfront) = self.network.routes.netfront(guest) {
                    self.network.report_ring(ctx, IoKind::LeaveRing, netfront, packet);
                }
            }
            Work::Driver(DriverWork::Disk(_, BlkbackWork::Request(request))) => {
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
