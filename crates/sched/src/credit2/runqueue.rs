//! Run queues: the pCPUs that share one, the vCPUs assigned to it, and those of them that wait.

use vcpulab_host::{CpuMask, DomId, PcpuId, PolicyContext, VcpuId};

use super::params::ARRANGEMENTS;
use super::{Credit2, LoadAverage, RunQueue, RunQueueId, Vcpu};
use crate::list::List;
use crate::table::put;

impl Credit2 {
    // ---- pCPUs ----

    /// Puts `p` into the smallest run queue that it may share, or into a new one.
    pub(super) fn join_runqueue(&mut self, ctx: &PolicyContext, p: PcpuId) {
        let socket = p.0.checked_div(self.cpus_per_socket).unwrap_or_else(|| ctx.socket(p));
        let pcpus = ctx.pcpus().len();
        let limit = pcpus / ((pcpus - 1) / self.runqueue_max + 1);
        let matches = |runqueue: &RunQueue| match ARRANGEMENTS[self.arrangement as usize] {
            "cpu" | "core" => false,
            "all" => true,
            _ => runqueue.socket == socket,
        };
        let open =
            |&(_, runqueue): &(RunQueueId, &RunQueue)| matches(runqueue) && runqueue.members.len() < limit;
        let smallest =
            self.runqueues.enumerate().filter(open).min_by_key(|(_, runqueue)| runqueue.members.len());
        let r = smallest.map(|(r, _)| r).unwrap_or_else(|| {
            self.runqueues.push(RunQueue {
                socket,
                members: CpuMask::EMPTY,
                idle: CpuMask::EMPTY,
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
        self.runqueues[r].members.insert(p);
        self.runqueues[r].idle.insert(p);
        put(&mut self.runqueue_of, p, r);
    }

    /// Makes `p` decide, and notes that it has been asked.
    pub(super) fn tickle(&mut self, ctx: &mut PolicyContext, p: PcpuId) {
        self.runqueues[self.runqueue_of[p]].tickled.insert(p);
        ctx.raise_reschedule(p);
    }

    /// The next pCPU in turn of a run queue that suits `v`.
    pub(super) fn turn_rotor(&mut self, ctx: &PolicyContext, v: VcpuId, r: RunQueueId) -> Option<PcpuId> {
        let runqueue = &mut self.runqueues[r];
        let next = runqueue.members.and(ctx.affinity(v)).next_after(runqueue.rotor)?;
        runqueue.rotor = next;
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
