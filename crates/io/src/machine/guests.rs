//! The guests of a machine: their kernels, their vCPUs with their work, and their services.

use std::collections::VecDeque;
use std::sync::Arc;

use vcpulab_guest::{AppId, ConnectionId, Kernel, Random, ServiceId, TaskId};
use vcpulab_host::{HostState, NEVER, Op, SetId, Span, Table, Time, VcpuId, WakeCause, WorldContext};

use super::channels::Channels;
use super::halt_poll::HaltPoll;
use super::work::Work;
use crate::config::GuestConfig;
use crate::ids::{GuestId, GuestVcpu, PacketId, SourceId};
use crate::layers::{Layers, Share};
use crate::network::packets::Packets;
use crate::path::cost::PacketCosts;
use crate::sources::{Source, Sources};

/// The purpose of the random streams of costs. Tasks count from 1.
const COSTS: u64 = 0;

/// The inside of a domain.
#[derive(Clone, Debug)]
pub(crate) struct Guest {
    pub first_vcpu: VcpuId,
    pub kernel: Kernel,
    /// Whether the domain has a device, or serves the devices of others.
    has_devices: bool,
    pub costs: Arc<PacketCosts>,
    /// Exchange of packets and calls among the guest's tasks; `None` until the first.
    exchange: Option<Box<Exchange>>,
    pub random: Random,
    /// If any of its applications has memory worth mentioning.
    sets: Option<Box<AppSets>>,
}

/// Packets and connections between a guest's tasks and services.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange {
    /// Packets from one of its tasks to another.
    pub loopback: VecDeque<PacketId>,
    /// Connections to each service that are kept, and not in use, as far as there were any.
    pub kept: Table<ServiceId, Vec<ConnectionId>>,
}

/// Working sets of the applications' shared memory and of the tasks' own.
#[derive(Clone, Debug)]
struct AppSets {
    apps: Table<AppId, SetId>,
    tasks: Table<TaskId, SetId>,
}

impl Guest {
    /// Whether the kernel may have work of its own, for devices or its network.
    #[inline]
    pub fn may_have_kernel_work(&self) -> bool {
        self.has_devices || self.exchange.as_ref().is_some_and(|exchange| !exchange.loopback.is_empty())
    }

    /// Packets and connections between the guest's tasks and services.
    pub fn exchange(&mut self) -> &mut Exchange {
        self.exchange.get_or_insert_default()
    }

    /// The next packet from one of its tasks to another.
    #[inline]
    pub fn take_loopback(&mut self) -> Option<PacketId> {
        self.exchange.as_mut()?.loopback.pop_front()
    }

    /// Forgets packets and connections between its tasks and services.
    pub fn forget_exchange(&mut self, packets: &mut Packets) {
        if let Some(exchange) = self.exchange.take() {
            packets.remove_all(exchange.loopback);
        }
    }
}

/// A vCPU of a guest.
#[derive(Clone, Debug)]
pub(crate) struct Vcpu {
    pub at: GuestVcpu,
    working_set_bytes: u64,
    /// The working set that it touches whatever it runs.
    own_set: Option<SetId>,
    /// The task whose memory it touches.
    task: Option<TaskId>,
    /// The piece of work at hand.
    pub work: Option<Work>,
    pub share: Share,
    /// CPU time by layer of the work that is done.
    layers: Layers,
    /// Halts of the vCPU, if its thread polls in them.
    pub halts: Option<Box<HaltPoll>>,
    /// The source of its timer, and the time that it is set to.
    timer_source: SourceId,
    timer: Time,
}

impl Vcpu {
    /// Ends the piece of work at hand, `left` of it not done; without the rest of its tasks' work, if it is theirs.
    pub fn end_work(&mut self, left: Span, now: Time) -> Option<Work> {
        let work = self.work.take()?;
        self.layers.add(&self.share.done(left, now));
        Some(match work {
            Work::Tasks(span) => Work::Tasks(span - left),
            work => work,
        })
    }
}

/// All guests, with the state of their vCPUs.
#[derive(Debug)]
pub(crate) struct Guests {
    pub all: Table<GuestId, Guest>,
    /// Guest vCPUs by id; idle vCPUs have no entry.
    vcpus: Table<VcpuId, Option<Vcpu>>,
    pub services: Table<ServiceId, (GuestId, AppId)>,
    pub channels: Channels,
    /// The vCPU whose work is being done, and its guest.
    executing: Option<(VcpuId, GuestId)>,
}

impl Guests {
    /// A machine without guests, with room for this many guests, and vCPUs of the host.
    pub fn new(
        services: Table<ServiceId, (GuestId, AppId)>,
        channels: usize,
        guests: usize,
        vcpus: usize,
    ) -> Self {
        Guests {
            all: Table::with_capacity(guests),
            vcpus: Table::with_capacity(vcpus),
            services,
            channels: Channels::new(channels),
            executing: None,
        }
    }

    /// Adds the next guest.
    pub fn add(&mut self, config: &GuestConfig, seed: u64, sources: &mut Sources) {
        let guest = GuestId(self.all.len() as u32);
        for number in 0..config.kernel.vcpus {
            let v = VcpuId(config.first_vcpu.0 + number);
            *self.vcpus.entry(v) = Some(Vcpu {
                at: GuestVcpu { guest, number },
                working_set_bytes: config.working_set_bytes,
                own_set: None,
                task: None,
                work: None,
                share: Share::default(),
                layers: Layers::default(),
                halts: config.halt_poll.map(|poll| Box::new(HaltPoll::new(poll))),
                timer_source: sources.register(Source::Timer(v)),
                timer: NEVER,
            });
        }
        let last = self.all.iter().next_back();
        let kernel = shared(last.map(|guest| guest.kernel.config()), &config.kernel);
        let costs = PacketCosts { network: config.network, driver: config.driver.unwrap_or_default() };
        let costs = shared(last.map(|guest| &guest.costs), &costs);
        self.all.push(Guest {
            first_vcpu: config.first_vcpu,
            kernel: Kernel::new(&kernel, Time::ZERO, seed, guest.0.into()),
            has_devices: config.netfront.is_some()
                || config.virtual_disk.is_some()
                || config.driver.is_some(),
            costs,
            exchange: None,
            random: Random::new(seed, guest.0.into(), COSTS),
            sets: None,
        });
    }

    /// Makes the working sets of all vCPUs and tasks, if caches cost anything.
    pub fn start(&mut self, ctx: &mut WorldContext<'_>) {
        if !ctx.has_caches() {
            return;
        }
        for (v, vcpu) in self.vcpus.enumerate_mut() {
            if let Some(vcpu) = vcpu {
                let own = ctx.make_set(vcpu.working_set_bytes);
                vcpu.own_set = Some(own);
                ctx.use_sets(v, &[own]);
            }
        }
        for guest in &mut self.all {
            let apps = guest.kernel.apps();
            if apps.iter().any(|app| app.shared_bytes + app.private_bytes > 0) {
                let shared = apps.iter().map(|app| ctx.make_set(app.shared_bytes)).collect();
                let private = apps.iter().flat_map(|app| (0..app.tasks).map(|_| app.private_bytes));
                let tasks = private.map(|bytes| ctx.make_set(bytes)).collect();
                guest.sets = Some(Box::new(AppSets { apps: shared, tasks }));
            }
        }
    }

    /// A vCPU, if it is a guest's.
    #[inline]
    pub fn vcpu(&self, v: VcpuId) -> Option<&Vcpu> {
        self.vcpus.get(v)?.as_ref()
    }

    /// A vCPU, if it is a guest's, to change it.
    pub fn vcpu_mut(&mut self, v: VcpuId) -> Option<&mut Vcpu> {
        self.vcpus.get_mut(v)?.as_mut()
    }

    /// Makes `v` of a guest the vCPU whose work is being done.
    pub fn enter(&mut self, v: VcpuId, guest: GuestId) {
        self.executing = Some((v, guest));
    }

    /// Ends the work of the vCPU whose work is being done.
    pub fn leave(&mut self) {
        self.executing = None;
    }

    /// Begins a piece of work of a vCPU.
    pub fn begin_work(&mut self, v: VcpuId, work: Work, share: Share) {
        if let Some(vcpu) = &mut self.vcpus[v] {
            (vcpu.work, vcpu.share) = (Some(work), share);
        }
    }

    /// Ends the piece of work at hand of a vCPU, `left` of it not done.
    pub fn end_work(&mut self, v: VcpuId, left: Span, now: Time) -> Option<Work> {
        self.vcpu_mut(v)?.end_work(left, now)
    }

    /// Forgets the work of all vCPUs of a guest.
    pub fn forget_work(&mut self, host: &HostState, guest: GuestId, packets: &mut Packets) {
        for (v, vcpu) in self.vcpus.enumerate_mut() {
            let Some(vcpu) = vcpu.as_mut().filter(|vcpu| vcpu.at.guest == guest) else { continue };
            packets.remove_all(vcpu.end_work(host.left(v), host.now()).and_then(Work::packet));
        }
    }

    /// Removes the piece of work at hand of a vCPU if it is its domain's back ends'.
    pub fn take_backend_work(&mut self, host: &HostState, v: VcpuId) -> Option<Work> {
        let vcpu = self.vcpus[v].as_mut().filter(|vcpu| vcpu.work.is_some_and(Work::is_backend))?;
        vcpu.end_work(host.left(v), host.now())
    }

    /// CPU time of a guest by layer since the start.
    pub fn layers(&self, host: &HostState, guest: GuestId) -> Layers {
        let mut layers = Layers::default();
        for v in (self.all[guest].first_vcpu.0..).map(VcpuId) {
            let Some(vcpu) = self.vcpu(v).filter(|vcpu| vcpu.at.guest == guest) else { break };
            layers.add(&vcpu.layers);
            if vcpu.work.is_some() {
                layers.add(&vcpu.share.done(host.left(v), host.now()));
            }
        }
        layers
    }

    // ---- waking up ----

    /// Makes vCPUs of a guest look for work whose tasks can continue.
    #[inline(always)]
    pub fn kick_tasks(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId) {
        while let Some(number) = self.all[guest].kernel.take_kick() {
            let v = VcpuId(self.all[guest].first_vcpu.0 + number as u32);
            if self.executing.is_none_or(|(executing, _)| executing != v) {
                // No vCPU executes: a time has come.
                let cause = if self.executing.is_some() { WakeCause::Event } else { WakeCause::Timer };
                ctx.kick(v, cause);
            }
        }
    }

    /// Lets a waiting task continue.
    pub fn resume(&mut self, ctx: &mut WorldContext<'_>, guest: GuestId, task: TaskId) {
        self.all[guest].kernel.resume(task);
        self.kick_tasks(ctx, guest);
    }

    /// Makes `vcpu` of a guest look for packets to send, unless one of its vCPUs is being executed, which will.
    pub fn kick_network(&self, ctx: &mut WorldContext<'_>, guest: GuestId, vcpu: VcpuId) {
        if self.executing.is_none_or(|(_, executing)| executing != guest) {
            ctx.kick(vcpu, WakeCause::Timer);
        }
    }

    /// The next operation of a vCPU whose thread may poll before it blocks.
    #[inline]
    pub fn halts(&mut self, v: VcpuId, op: Op, now: Time) -> Op {
        let Some(vcpu) = self.vcpus[v].as_mut().filter(|vcpu| vcpu.halts.is_some()) else { return op };
        let op = vcpu.halts.as_mut().map_or(op, |halts| halts.next(op, now));
        if let Op::Poll(span) = op {
            (vcpu.work, vcpu.share) = (Some(Work::Poll), Share::begun(Layers::kernel(span, span), now));
        }
        op
    }

    // ---- timers and memory ----

    /// Notes that the timer of a vCPU has expired.
    #[inline]
    pub fn timer_expired(&mut self, ctx: &mut WorldContext<'_>, v: VcpuId) {
        if let Some(vcpu) = &mut self.vcpus[v] {
            vcpu.timer = NEVER;
        }
        ctx.kick(v, WakeCause::Timer);
    }

    /// Begins the next work of the tasks of a vCPU, by layer (`None`: it blocks). Its timer is set, for its tasks and for
    /// `write_out`, and it touches the memory of the current one.
    pub fn begin_tasks(
        &mut self,
        ctx: &mut WorldContext<'_>,
        v: VcpuId,
        layers: Option<Layers>,
        write_out: Time,
    ) -> Op {
        let Some(vcpu) = &mut self.vcpus[v] else { return Op::Block(None) };
        let guest = &self.all[vcpu.at.guest];
        let timer = guest.kernel.next_timer(vcpu.at.index()).min(write_out);
        if timer != vcpu.timer {
            vcpu.timer = timer;
            vcpu.timer_source.set(ctx, timer);
        }
        if let Some(sets) = &guest.sets {
            touch_task(ctx, v, vcpu, guest, sets);
        }
        let Some(layers) = layers else { return Op::Block(None) };
        let span = layers.sum();
        (vcpu.work, vcpu.share) = (Some(Work::Tasks(span)), Share::begun(layers, ctx.now()));
        Op::Run(span)
    }
}

/// The last guest's, if this one's is equal.
fn shared<T: Clone + PartialEq>(last: Option<&Arc<T>>, own: &T) -> Arc<T> {
    last.filter(|last| ***last == *own).map_or_else(|| Arc::new(own.clone()), Arc::clone)
}

/// Makes a vCPU touch the memory of its current task.
fn touch_task(ctx: &mut WorldContext<'_>, v: VcpuId, vcpu: &mut Vcpu, guest: &Guest, sets: &AppSets) {
    let task = guest.kernel.current(vcpu.at.index());
    if let (Some(task), Some(own)) = (task, vcpu.own_set)
        && vcpu.task != Some(task)
    {
        vcpu.task = Some(task);
        ctx.use_sets(v, &[own, sets.apps[guest.kernel.app_of(task)], sets.tasks[task]]);
    }
}
