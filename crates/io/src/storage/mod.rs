//! The storage of the host: disks, virtual disks and the blkbacks between them.

mod accesses;
pub(crate) mod blkback;
pub(crate) mod blkfront;
pub(crate) mod disk;
pub(crate) mod elevator;
pub(crate) mod file_set;
pub(crate) mod page_cache;
mod requests;
pub(crate) mod stretch;
#[cfg(test)]
mod tests;
mod write_back;

use std::collections::BTreeSet;

use vcpulab_guest::{Random, TaskId};
use vcpulab_host::{DomId, IoKind, IoStep, NEVER, Span, Table, Time, VcpuId, WakeCause, WorldContext};

use crate::ids::{BlkfrontId, DiskId, GuestId, GuestVcpu, SourceId};
use crate::interrupts::{InterruptCost, Interrupts, Taken};
use crate::sources::{Source, Sources};
use blkback::{Blkback, BlkbackCosts, BlkbackWork, Store};
use blkfront::{Blkfront, BlkfrontConfig, BlkfrontWork, Submitted};
use disk::{Disk, DiskConfig, DiskCounts, DiskRequest};
use file_set::FileSetConfig;

/// Purposes of random streams.
const DISKS: u64 = 2 << 32;
const FILES: u64 = 3 << 32;
const SERVED_FILES: u64 = 4 << 32;

/// A domain's virtual disk, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualDiskConfig {
    /// Block layer of the domain: through a ring, unless the domain owns the disk.
    pub blkfront: BlkfrontConfig,
    /// The disk that it is on, or the stand-in for one in the stub domain that it goes through.
    pub disk: DiskId,
    /// Number of the domain's vCPU that takes its events.
    pub vcpu: u32,
    /// Number of the driver domain's vCPU that its blkback is on.
    pub driver_vcpu: u32,
    /// Emulation of a disk, ns of CPU time for each request in the domain that emulates it.
    pub emulation_ns: Span,
}

/// A disk and its blkbacks, as configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskUnitConfig {
    /// The disk; `None`: the owner is a stub domain, and requests continue through its own virtual disk.
    pub disk: Option<DiskConfig>,
    /// Owner of the disk.
    pub owner: DiskOwner,
    /// Costs of the blkbacks.
    pub costs: BlkbackCosts,
}

/// The owner of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant says what its fields are")]
pub enum DiskOwner {
    /// A guest, whose blkbacks serve it, and the number of its vCPU that takes its interrupts.
    Guest { guest: GuestId, vcpu: u32 },
    /// The hypervisor.
    Hypervisor,
    /// The kernel of a host whose own threads, the blkbacks, are the vCPUs of this domain: its cost of a request that is complete, ns,
    /// and the pCPUs that take the disk's interrupts. It leaves each to the thread whose request it was.
    Host { guest: GuestId, complete_ns: Span, interrupts: Interrupts },
}

impl DiskOwner {
    /// The guest whose blkbacks serve the disk, if any do.
    fn guest(self) -> Option<GuestId> {
        match self {
            DiskOwner::Guest { guest, .. } | DiskOwner::Host { guest, .. } => Some(guest),
            DiskOwner::Hypervisor => None,
        }
    }

    /// The number of that guest's vCPU that takes its interrupts, if one does.
    fn vcpu(self) -> Option<u32> {
        match self {
            DiskOwner::Guest { vcpu, .. } => Some(vcpu),
            DiskOwner::Hypervisor | DiskOwner::Host { .. } => None,
        }
    }
}

/// The blkbacks of the virtual disks on one disk that are on one vCPU of its driver domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlkbackAt {
    pub disk: DiskId,
    pub vcpu: u32,
}

/// A disk, or the stand-in for one in a stub domain, and its blkbacks.
#[derive(Clone, Debug)]
pub(crate) struct DiskUnit {
    store: Store,
    /// The blkbacks on each vCPU of the owner, as far as there are any.
    backs: Vec<Blkback>,
    costs: BlkbackCosts,
    owner: DiskOwner,
    source: SourceId,
}

/// Disks and virtual disks, with their state.
#[derive(Debug)]
pub(crate) struct Storage {
    pub disks: Table<DiskId, DiskUnit>,
    pub blkfronts: Table<BlkfrontId, Blkfront>,
    disk_of: Table<BlkfrontId, DiskId>,
    /// The vCPU of its driver domain that each one's blkback is on.
    back_of: Table<BlkfrontId, u32>,
    of_guests: Table<GuestId, Option<BlkfrontId>>,
    /// The number of the first virtual disk's ring: those of network interfaces come before.
    first_ring: u64,
}

impl DiskUnit {
    /// Adds what is missing of the blkbacks on the owner's vCPUs up to that one.
    fn add_backs(&mut self, vcpu: u32) {
        for vcpu in self.backs.len() as u32..=vcpu {
            let completes = self.owner.vcpu() == Some(vcpu);
            self.backs.push(Blkback::new(self.costs, completes));
        }
    }
}

impl Storage {
    /// Disks without guests. `areas` is the number of virtual disks to come, each with an area of its own on its disk;
    /// `own_blkfront` names that of a stub domain.
    pub fn new(
        configs: &Table<DiskId, DiskUnitConfig>,
        areas: u32,
        seed: u64,
        sources: &mut Sources,
        own_blkfront: impl Fn(GuestId) -> BlkfrontId,
    ) -> Self {
        let unit = |(id, config): (DiskId, &DiskUnitConfig)| {
            let random = Random::new(seed, id.0.into(), DISKS);
            let store = match config.disk {
                Some(disk) => Store::Disk(Box::new(Disk::new(disk, areas.max(1), random))),
                None => {
                    let stub = config.owner.guest().expect("a stub domain has an owner's place");
                    Store::Front(own_blkfront(stub))
                }
            };
            let source = sources.register(Source::Disk(id));
            let mut unit =
                DiskUnit { store, backs: Vec::new(), costs: config.costs, owner: config.owner, source };
            unit.add_backs(config.owner.vcpu().unwrap_or(0));
            unit
        };
        Storage {
            disks: configs.enumerate().map(unit).collect(),
            blkfronts: Table::new(),
            disk_of: Table::new(),
            back_of: Table::new(),
            of_guests: Table::new(),
            first_ring: 0,
        }
    }

    /// Numbers the rings from `first` on.
    pub fn number_rings(&mut self, first: usize) {
        self.first_ring = first as u64;
    }

    /// Adds the next guest, with its virtual disk if it has one, and the files on it that it serves.
    pub fn add_guest(
        &mut self,
        virtual_disk: Option<&VirtualDiskConfig>,
        files: Option<&FileSetConfig>,
        first_vcpu: VcpuId,
        seed: u64,
    ) {
        let blkfront = virtual_disk.map(|config| {
            let id = BlkfrontId(self.blkfronts.len() as u32);
            let random = |purpose| Random::new(seed, id.0.into(), purpose);
            let vcpu = VcpuId(first_vcpu.0 + config.vcpu);
            let mut blkfront = Blkfront::new(config.blkfront, id, vcpu, random(FILES));
            blkfront.emulation_ns = config.emulation_ns;
            if let Some(files) = files {
                blkfront.serve_files(files, random(SERVED_FILES));
            }
            self.disks[config.disk].add_backs(config.driver_vcpu);
            self.disk_of.push(config.disk);
            self.back_of.push(config.driver_vcpu);
            self.blkfronts.push(blkfront)
        });
        self.of_guests.push(blkfront);
    }

    /// The identity of a guest's virtual disk, if it has one.
    pub fn of_guest(&self, guest: GuestId) -> Option<BlkfrontId> {
        self.of_guests[guest]
    }

    /// The virtual disk of a guest, if it has one.
    pub fn blkfront(&self, guest: GuestId) -> Option<&Blkfront> {
        self.of_guests[guest].map(|blkfront| &self.blkfronts[blkfront])
    }

    /// The virtual disk of a guest, if it has one, to change it.
    pub fn blkfront_mut(&mut self, guest: GuestId) -> Option<&mut Blkfront> {
        self.of_guests[guest].map(|blkfront| &mut self.blkfronts[blkfront])
    }

    // ---- guests ----

    /// The next work of a guest's block layer on vCPU `v`, with its cost.
    pub fn next_work(&mut self, now: Time, guest: GuestId, v: VcpuId) -> Option<(BlkfrontWork, Span)> {
        let id = self.of_guests[guest]?;
        let room = self.disks[self.disk_of[id]].store.can_submit();
        let blkfront = &mut self.blkfronts[id];
        blkfront.next_work(now, blkfront.vcpu == v, room)
    }

    /// Ends a piece of work of a guest's block layer. The driver domain's vCPU that is to be notified of it, if any.
    pub fn finish(
        &mut self,
        ctx: &mut WorldContext<'_>,
        guest: GuestId,
        work: BlkfrontWork,
    ) -> Option<GuestVcpu> {
        let id = self.of_guests[guest]?;
        let disk = self.disk_of[id];
        match self.blkfronts[id].finish(ctx.now(), work)? {
            Submitted::Disk(request) => {
                self.submit(ctx.now(), disk, request);
                self.arm(ctx, disk);
                None
            }
            Submitted::Ring { first } => {
                self.report_ring(ctx, IoKind::EnterRing, id, 0);
                let unit = &mut self.disks[disk];
                let Some(owner) = unit.owner.guest() else {
                    self.hypervisor_submits(ctx, disk, id);
                    return None;
                };
                let vcpu = self.back_of[id];
                if first {
                    unit.backs[vcpu as usize].ring_filled(id);
                }
                Some(GuestVcpu { guest: owner, number: vcpu })
            }
        }
    }

    /// Removes a task of a guest whose access is complete.
    pub fn take_resumed(&mut self, guest: GuestId) -> Option<TaskId> {
        self.blkfront_mut(guest)?.take_resumed()
    }

    /// The time at which vCPU `v` is to look for dirty memory to write out (`NEVER`: there is none). What is due already waits
    /// for room.
    pub fn next_expiry(&self, now: Time, guest: GuestId, v: VcpuId) -> Time {
        let own = self.blkfront(guest).filter(|blkfront| blkfront.vcpu == v);
        own.map(Blkfront::next_expiry).filter(|&expiry| expiry > now).unwrap_or(NEVER)
    }

    // ---- the hypervisor's own driver ----

    /// Takes requests from a ring, as far as the disk has room.
    fn hypervisor_submits(&mut self, ctx: &mut WorldContext<'_>, disk: DiskId, blkfront: BlkfrontId) {
        while self.disks[disk].store.can_submit()
            && let Some(request) = self.blkfronts[blkfront].take_request()
        {
            self.submit(ctx.now(), disk, request);
        }
        self.arm(ctx, disk);
    }

    fn hypervisor_completes(&mut self, ctx: &mut WorldContext<'_>, disk: DiskId) {
        let mut first = true;
        while let Some(request) = self.disks[disk].store.disk_mut().and_then(Disk::take_completed) {
            let blkfront = &mut self.blkfronts[request.blkfront];
            if std::mem::take(&mut first) {
                ctx.interrupt(ctx.host().processor(blkfront.vcpu));
            }
            if blkfront.respond(request.tag) && blkfront.send_event() {
                ctx.kick(blkfront.vcpu, WakeCause::Interrupt);
            }
        }
        for blkfront in self.blkfronts.ids() {
            if self.disk_of[blkfront] == disk && self.blkfronts[blkfront].has_requests() {
                self.hypervisor_submits(ctx, disk, blkfront);
            }
        }
    }

    // ---- disks ----

    fn submit(&mut self, now: Time, disk: DiskId, request: DiskRequest) {
        if let Some(disk) = self.disks[disk].store.disk_mut() {
            disk.submit(now, request);
        }
    }

    /// Completes the requests of a disk that are due. Whether it interrupts then.
    pub fn complete(&mut self, ctx: &mut WorldContext<'_>, disk: DiskId) -> bool {
        let unit = &mut self.disks[disk];
        let interrupts = unit.store.disk_mut().is_some_and(|disk| disk.complete(ctx.now()));
        if interrupts {
            match unit.owner {
                DiskOwner::Guest { .. } => {}
                DiskOwner::Hypervisor => self.hypervisor_completes(ctx, disk),
                DiskOwner::Host { guest, complete_ns, interrupts } => {
                    let cost = InterruptCost { each: complete_ns, pcpus: interrupts };
                    self.host_completes(ctx, disk, guest, cost);
                }
            }
        }
        interrupts
    }

    /// The driver domain's vCPU that a disk interrupts, if it does that.
    pub fn interrupted(&self, disk: DiskId) -> Option<GuestVcpu> {
        let owner = self.disks[disk].owner;
        Some(GuestVcpu { guest: owner.guest()?, number: owner.vcpu()? })
    }

    /// Leaves what a disk has completed to the threads whose requests they were, in the interrupt.
    fn host_completes(
        &mut self,
        ctx: &mut WorldContext<'_>,
        disk: DiskId,
        guest: GuestId,
        cost: InterruptCost,
    ) {
        let mut taken = Taken::none();
        let unit = &mut self.disks[disk];
        while let Some(request) = unit.store.disk_mut().and_then(Disk::take_completed) {
            let thread = self.back_of[request.blkfront];
            let receiver = ctx.host().vcpu_of(DomId(guest.0), thread);
            let p = cost.pcpus.pcpu(ctx, receiver, request.blkfront.index());
            taken.on(ctx, p);
            if let Interrupts::Pcpu(p) = cost.pcpus {
                ctx.interrupted_on(p);
            }
            ctx.charge(p, cost.each);
            unit.backs[thread as usize].leave(request);
        }
    }

    /// Sets the timer of a disk.
    pub fn arm(&self, ctx: &mut WorldContext<'_>, disk: DiskId) {
        let unit = &self.disks[disk];
        if let Some(disk) = unit.store.disk() {
            unit.source.set(ctx, disk.next_completion());
        }
    }

    // ---- blkbacks ----

    /// The blkbacks on all vCPUs of driver domains, each once, and the domains. A disk without virtual disks has none.
    pub fn backs(&self) -> impl Iterator<Item = (GuestId, BlkbackAt)> {
        self.disks.enumerate().flat_map(|(disk, unit)| {
            let of_fronts = self.disk_of.iter().zip(self.back_of.iter()).filter(move |(on, _)| **on == disk);
            let mut vcpus: BTreeSet<u32> = of_fronts.map(|(_, &vcpu)| vcpu).collect();
            if !vcpus.is_empty() {
                vcpus.extend(unit.owner.vcpu());
            }
            let at = move |owner| vcpus.into_iter().map(move |vcpu| (owner, BlkbackAt { disk, vcpu }));
            unit.owner.guest().map(at).into_iter().flatten()
        })
    }

    /// The blkbacks that wait for room in a disk, or that completions are left to, but for those on the vCPU that takes its
    /// interrupts, and their domain.
    pub fn waiting_backs(&self, disk: DiskId) -> impl Iterator<Item = GuestVcpu> {
        let unit = &self.disks[disk];
        let waits = move |&vcpu: &u32| {
            let back = &unit.backs[vcpu as usize];
            unit.owner.vcpu() != Some(vcpu) && (back.has_requests() || back.has_left())
        };
        let vcpus = (0..unit.backs.len() as u32).filter(waits);
        vcpus.filter_map(|number| Some(GuestVcpu { guest: unit.owner.guest()?, number }))
    }

    fn back(&mut self, at: BlkbackAt) -> (&mut Blkback, &mut Store, &mut Table<BlkfrontId, Blkfront>) {
        let unit = &mut self.disks[at.disk];
        (&mut unit.backs[at.vcpu as usize], &mut unit.store, &mut self.blkfronts)
    }

    /// Begins a poll of blkbacks.
    pub fn begin_poll(&mut self, at: BlkbackAt) {
        self.back(at).0.begin_poll();
    }

    /// The next work of blkbacks in this poll, with its cost.
    #[inline]
    pub fn next_back_work(&mut self, at: BlkbackAt) -> Option<(BlkbackWork, Span)> {
        let (back, store, blkfronts) = self.back(at);
        // As a rule there is none: driver domains ask between any two packets.
        if back.has_work(blkfronts, store) { back.next_work(blkfronts, store) } else { None }
    }

    /// Ends a piece of work of blkbacks.
    pub fn finish_back(&mut self, ctx: &mut WorldContext<'_>, at: BlkbackAt, work: BlkbackWork) {
        let (back, store, blkfronts) = self.back(at);
        back.finish(ctx.now(), work, blkfronts, store);
        if let BlkbackWork::Response(request) = work {
            self.report_ring(ctx, IoKind::EnterRing, request.blkfront, request.bytes);
        }
        self.arm(ctx, at.disk);
    }

    /// Ends a poll of blkbacks: notifies guests. Whether there is something for another poll.
    pub fn end_poll(&mut self, ctx: &mut WorldContext<'_>, at: BlkbackAt) -> bool {
        let (back, store, blkfronts) = self.back(at);
        while let Some(blkfront) = back.take_to_notify() {
            let blkfront = &mut blkfronts[blkfront];
            if blkfront.send_event() {
                ctx.kick(blkfront.vcpu, WakeCause::Event);
            }
        }
        back.has_work(blkfronts, store)
    }

    // ---- results ----

    /// Requests of other guests that a guest's blkbacks have handled.
    pub fn requests_behind(&self, guest: GuestId) -> u64 {
        let serves = |disk: DiskId| self.disks[disk].owner.guest() == Some(guest);
        let others = |id: &BlkfrontId| serves(self.disk_of[*id]) && self.of_guests[guest] != Some(*id);
        self.blkfronts.ids().filter(others).map(|id| self.blkfronts[id].counts().requests).sum()
    }

    /// Work of the disks that a guest owns, together; `None`: it owns none.
    pub fn disk_counts(&self, guest: GuestId) -> Option<DiskCounts> {
        let owned = self.disks.iter().filter(|unit| unit.owner.guest() == Some(guest));
        owned.filter_map(|unit| Some(unit.store.disk()?.counts)).reduce(|sum, one| DiskCounts {
            requests: sum.requests + one.requests,
            merges: sum.merges + one.merges,
            read_bytes: sum.read_bytes + one.read_bytes,
            written_bytes: sum.written_bytes + one.written_bytes,
            seeks: sum.seeks + one.seeks,
            interrupts: sum.interrupts + one.interrupts,
            busy_ns: sum.busy_ns + one.busy_ns,
        })
    }

    /// Sets all counts to zero.
    pub fn reset_counts(&mut self) {
        let disks = self.disks.iter_mut().filter_map(|unit| unit.store.disk_mut());
        disks.for_each(|disk| disk.counts = DiskCounts::default());
        self.blkfronts.iter_mut().for_each(Blkfront::reset_counts);
    }

    /// Reports a request or a response that enters or leaves the ring of a virtual disk.
    #[inline]
    pub fn report_ring(&self, ctx: &mut WorldContext<'_>, kind: IoKind, id: BlkfrontId, bytes: u32) {
        if !ctx.wants_steps() {
            return;
        }
        let front = &self.blkfronts[id];
        if front.is_split() {
            let domain = ctx.host().dom(front.vcpu);
            ctx.step(IoStep { kind, domain, id: self.first_ring + u64::from(id.0), value: bytes.into() });
        }
    }
}
