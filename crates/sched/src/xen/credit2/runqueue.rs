//! Run queues: the pCPUs that share a queue, the vCPUs assigned to it, and the waiting ones among them.

use vcpulab_host::{CpuMask, DomId, PcpuId, PolicyContext, VcpuId};

use super::params::ARRANGEMENTS;
use super::{Credit2, LoadAverage, RunQueue, RunQueueId, Vcpu};
use crate::list::List;
use crate::table::put;

impl Credit2 {
    // ---- pCPUs ----

    /// Adds `p` to the run queue of its core, or to the smallest one that it may share, or to a new one.
    pub(super) fn join_runqueue(&mut self, ctx: &PolicyContext, p: PcpuId) {
        let place = self.place(ctx, p);
        let r = self.shared_runqueue(ctx, p, place).unwrap_or_else(|| {
            self.runqueues.push(RunQueue {
                place,
                cores: 0,
                members: CpuMask::EMPTY,
                idle: CpuMask::EMPTY,
                idle_cores: CpuMask::EMPTY,
                tickled: CpuMask::EMPTY,
                waiting: List::default(),
                assigned: List::default(),
                max_weight: 1,
                runnable: 0,
                load: LoadAverage::default(),
                balance_load: 0,
                rotor: p,
            })
        });
        let runqueue = &mut self.runqueues[r];
        runqueue.cores += u32::from(!runqueue.members.meets(ctx.siblings(p)));
        for set in [&mut runqueue.members, &mut runqueue.idle, &mut runqueue.idle_cores] {
            set.insert(p);
        }
        put(&mut self.runqueue_of, p, r);
    }

    /// The number of the core, socket or node that the members of a run queue share, by the arrangement.
    fn place(&self, ctx: &PolicyContext, p: PcpuId) -> u32 {
        let of_socket = |number| p.0.checked_div(self.cpus_per_socket).unwrap_or(number);
        match self.arrangement() {
            "cpu" => p.0,
            "core" => ctx.core(p),
            "node" => of_socket(ctx.node(p)),
            "all" => 0,
            _ => of_socket(ctx.socket(p)),
        }
    }

    /// The run queue of the same core, socket or node that has a sibling of `p`; else the smallest one with room, for
    /// whole cores.
    fn shared_runqueue(&self, ctx: &PolicyContext, p: PcpuId, place: u32) -> Option<RunQueueId> {
        let (threads, siblings) = (ctx.threads_per_core(), ctx.siblings(p));
        let pcpus = ctx.pcpus().len() * ctx.unit_size();
        let limit = pcpus / ((pcpus - 1) / self.runqueue_max + 1);
        let for_all = self.rules.all_takes_threads && self.arrangement() == "all";
        let takes_threads = for_all || ctx.unit_size() > 1;
        let has_room = |runqueue: &RunQueue| {
            runqueue.members.len() < limit && (takes_threads || threads * (runqueue.cores + 1) <= limit)
        };
        let matching = || self.runqueues.enumerate().filter(|(_, runqueue)| runqueue.place == place);
        let of_core = matching().find(|(_, runqueue)| runqueue.members.meets(siblings));
        let smallest = || {
            let with_room = matching().filter(|(_, runqueue)| has_room(runqueue));
            with_room.min_by_key(|(_, runqueue)| runqueue.members.len())
        };
        of_core.or_else(smallest).map(|(r, _)| r)
    }

    fn arrangement(&self) -> &'static str {
        ARRANGEMENTS[self.arrangement as usize]
    }

    /// Tickles `p`: asks it to decide, and notes that it has been asked.
    pub(super) fn tickle(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        let runqueue = &mut self.runqueues[self.runqueue_of[p]];
        runqueue.tickled.insert(p);
        if self.has_threads {
            runqueue.core_works(ctx, p);
        }
        ctx.raise_reschedule(p);
    }

    /// Notes that `p` decides; it may have been tickled.
    pub(super) fn untickle(&mut self, ctx: &PolicyContext, r: RunQueueId, p: PcpuId) {
        let runqueue = &mut self.runqueues[r];
        if self.has_threads && runqueue.tickled.contains(p) {
            runqueue.tickled.remove(p);
            runqueue.core_idles(ctx, p);
        }
        runqueue.tickled.remove(p);
    }

    /// Notes that `p` idles.
    pub(super) fn begin_idling(&mut self, ctx: &PolicyContext, r: RunQueueId, p: PcpuId) {
        let runqueue = &mut self.runqueues[r];
        if self.has_threads && !runqueue.idle.contains(p) {
            runqueue.idle.insert(p);
            runqueue.core_idles(ctx, p);
        }
        runqueue.idle.insert(p);
    }

    /// Notes that `p` does not idle.
    pub(super) fn end_idling(&mut self, ctx: &PolicyContext, r: RunQueueId, p: PcpuId) {
        let runqueue = &mut self.runqueues[r];
        if self.has_threads && runqueue.idle.contains(p) {
            runqueue.idle.remove(p);
            runqueue.core_works(ctx, p);
        }
        runqueue.idle.remove(p);
    }

    /// The next pCPU of a run queue in turn, among those that suit `v`.
    pub(super) fn turn_rotor(&mut self, ctx: &PolicyContext, v: VcpuId, r: RunQueueId) -> Option<PcpuId> {
        let among = self.runqueues[r].members.and(ctx.affinity(v));
        self.turn_rotor_among(r, &among)
    }

    /// The next pCPU in turn among some, which may be of another run queue.
    pub(super) fn turn_rotor_among(&mut self, r: RunQueueId, among: &CpuMask) -> Option<PcpuId> {
        let rotor = &mut self.runqueues[r].rotor;
        let next = among.next_after(*rotor)?;
        *rotor = next;
        Some(next)
    }

    // ---- vCPUs ----

    pub(super) fn assign(&mut self, v: VcpuId, r: RunQueueId) {
        self.vcpus[v].runqueue = r;
        self.assigned_links.push_back(&mut self.runqueues[r].assigned, v);
        let Vcpu { weight, load, .. } = self.vcpus[v];
        self.update_max_weight(r, weight, 0);
        self.runqueues[r].balance_load += load.value;
    }

    pub(super) fn unassign(&mut self, v: VcpuId) {
        let Vcpu { runqueue: r, weight, load, .. } = self.vcpus[v];
        self.assigned_links.remove(&mut self.runqueues[r].assigned, v);
        self.update_max_weight(r, 0, weight);
        self.runqueues[r].balance_load = self.without(self.runqueues[r].balance_load, load);
    }

    pub(super) fn set_weight(&mut self, ctx: &PolicyContext, d: DomId, weight: i32) {
        let old = std::mem::replace(&mut self.domains[d].weight, weight);
        for v in ctx.vcpus_of(d) {
            self.vcpus[v].weight = weight;
            self.update_max_weight(self.vcpus[v].runqueue, weight, old);
        }
    }

    fn update_max_weight(&mut self, r: RunQueueId, new: i32, old: i32) {
        let runqueue = &self.runqueues[r];
        let max = if new > runqueue.max_weight {
            new
        } else if old == runqueue.max_weight {
            let weights = self.assigned_links.iter(&runqueue.assigned).map(|u| self.vcpus[u].weight);
            weights.max().unwrap_or(1).max(1)
        } else {
            return;
        };
        self.runqueues[r].max_weight = max;
    }

    // ---- vCPUs that wait ----

    pub(super) fn enqueue(&mut self, v: VcpuId) {
        let Vcpu { credit, runqueue: r, .. } = self.vcpus[v];
        let queue = &mut self.runqueues[r].waiting;
        let before = self.waiting_links.iter(queue).find(|&u| self.vcpus[u].credit < credit);
        self.waiting_links.insert_before(queue, v, before);
    }

    pub(super) fn dequeue(&mut self, v: VcpuId) {
        let r = self.vcpus[v].runqueue;
        self.waiting_links.remove(&mut self.runqueues[r].waiting, v);
    }

    pub(super) fn waits(&self, v: VcpuId) -> bool {
        self.waiting_links.listed(v)
    }
}

impl RunQueue {
    /// Threads of a member's core that are members, too.
    fn core_of(&self, ctx: &PolicyContext, p: PcpuId) -> CpuMask {
        self.members.and(ctx.siblings(p))
    }

    /// Notes that a member's core is not wholly idle, if it was.
    fn core_works(&mut self, ctx: &PolicyContext, p: PcpuId) {
        let core = self.core_of(ctx, p);
        if self.idle_cores.contains_all(&core) {
            self.idle_cores = self.idle_cores.without(&core);
        }
        debug_assert_eq!(self.idle_cores, self.wholly_idle(ctx));
    }

    /// The pCPUs of wholly idle cores, computed from scratch.
    fn wholly_idle(&self, ctx: &PolicyContext) -> CpuMask {
        let idle = self.idle.without(&self.tickled);
        self.members.iter().filter(|&p| idle.contains_all(&self.core_of(ctx, p))).collect()
    }

    /// Notes that a member's core is wholly idle, if it is.
    fn core_idles(&mut self, ctx: &PolicyContext, p: PcpuId) {
        let core = self.core_of(ctx, p);
        if self.idle.without(&self.tickled).contains_all(&core) {
            self.idle_cores = self.idle_cores.or(&core);
        }
        debug_assert_eq!(self.idle_cores, self.wholly_idle(ctx));
    }
}

#[cfg(test)]
mod tests {
    use vcpulab_host::program::Programs;
    use vcpulab_host::{Host, HostConfig, Numbering, Params, TopologyConfig};

    use super::super::params::{RUNQUEUE, RUNQUEUE_MAX};
    use super::super::{Credit2, rules};
    use super::ARRANGEMENTS;
    use crate::policy::Registered;

    /// The members of each run queue, on a host of two nodes a socket.
    fn members(
        release: &str,
        arrangement: &str,
        most: i64,
        [sockets, cores, threads]: [u32; 3],
    ) -> Vec<String> {
        let rules = rules::GENERATIONS.iter().find(|(generation, _)| generation.name == release).unwrap().1;
        let arrangement = ARRANGEMENTS.iter().position(|&name| name == arrangement).unwrap() as i64;
        let params = Params::new().with(RUNQUEUE.name, arrangement).with(RUNQUEUE_MAX.name, most);
        let numbering = Numbering::Adjacent;
        let topology = TopologyConfig { sockets, cores, threads, nodes: 2 * sockets, numbering };
        let pcpus = topology.pcpus();
        let config = HostConfig { pcpus, topology: Some(topology), ..HostConfig::default() };
        let credit2 = Credit2::new(rules, &params, pcpus);
        let host = Host::new(&config, credit2, Programs::default(), ()).unwrap();
        host.policy().runqueues.iter().map(|runqueue| runqueue.members.to_string()).collect()
    }

    #[test]
    fn run_queues_are_arranged_by_what_their_pcpus_share() {
        let by = |arrangement| members("xen4.17", arrangement, 16, [2, 2, 2]);
        assert_eq!(by("cpu"), ["0", "1", "2", "3", "4", "5", "6", "7"]);
        assert_eq!(by("core"), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!(by("socket"), ["0-3", "4-7"]);
        assert_eq!(by("node"), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!(by("all"), ["0-7"]);
    }

    #[test]
    fn a_limited_run_queue_takes_whole_cores() {
        let limited = |most, places| members("xen4.17", "socket", most, places);
        assert_eq!(limited(5, [2, 6, 2]), ["0-3", "4-7", "8-11", "12-15", "16-19", "20-23"]);
        assert_eq!(limited(3, [1, 4, 4]), ["0-3", "4-7", "8-11", "12-15"], "a core is more than the limit");
        // The limit is 5: two cores of two have room, and a third would not have room for both its threads.
        assert_eq!(limited(5, [1, 5, 2]), ["0-3", "4-7", "8-9"]);
    }

    #[test]
    fn one_run_queue_for_all_needs_no_room_for_whole_cores_after_4_17_0() {
        let limited = |release| members(release, "all", 5, [1, 5, 2]);
        assert_eq!(limited("xen4.17.0"), ["0-3", "4-7", "8-9"]);
        assert_eq!(limited("xen4.17"), ["0-5", "6-9"]);
    }
}
