//! Run queues, one for each pCPU: its waiting vCPUs, and its idle vCPU while that does not run.

use vcpulab_host::{CpuMask, PcpuId, PolicyContext, VcpuId};

use super::{Credit, Priority};
use crate::list::List;

impl Credit {
    /// Inserts `v` before the first vCPU of lower priority. Priorities change in the queue, so it may not be in order.
    #[inline]
    pub(crate) fn enqueue(&mut self, p: PcpuId, v: VcpuId) {
        let priority = self.vcpus[v].priority;
        let mut lower = self.pcpus[p].queue.first();
        while let Some(u) = lower
            && self.vcpus[u].priority >= priority
        {
            lower = self.queue_links.next(u);
        }
        if self.vcpus[v].yielding
            && let Some(u) = lower
            && self.vcpus[u].priority > Priority::Idle
        {
            let behind = self.queue_links.next(u);
            if behind.is_some() || !self.rules.yield_lasts {
                lower = behind;
            }
        }
        self.queue_links.insert_before(&mut self.pcpus[p].queue, v, lower);
        if priority > Priority::Idle {
            self.at_work.insert(p);
        }
    }

    /// Updates whether a queue starts with work, for pCPUs that steal.
    #[inline]
    pub(super) fn note_head(&mut self, p: PcpuId) {
        let head = self.pcpus[p].queue.first();
        let priority = head.map_or(Priority::Idle, |head| self.vcpus[head].priority);
        self.at_work.put(p, priority > Priority::Idle);
    }

    /// pCPUs whose queue starts with a vCPU of a priority above this one.
    pub(super) fn heads_above(&self, ctx: &PolicyContext, than: Priority) -> CpuMask {
        let above = |p: &PcpuId| {
            let head = self.pcpus[*p].queue.first();
            head.is_some_and(|head| self.vcpus[head].priority > than)
        };
        ctx.pcpus().iter().filter(above).collect()
    }

    #[inline]
    pub(crate) fn dequeue(&mut self, p: PcpuId, v: VcpuId) {
        self.vcpus[v].yielding = false;
        let was_head = self.pcpus[p].queue.first() == Some(v);
        self.queue_links.remove(&mut self.pcpus[p].queue, v);
        if was_head {
            self.note_head(p);
        }
    }

    pub(crate) fn enqueue_first(&mut self, p: PcpuId, v: VcpuId) {
        self.queue_links.push_front(&mut self.pcpus[p].queue, v);
        self.note_head(p);
    }

    pub(crate) fn enqueue_last(&mut self, p: PcpuId, v: VcpuId) {
        self.queue_links.push_back(&mut self.pcpus[p].queue, v);
        self.note_head(p);
    }

    /// vCPUs that wait on `p`, from the head of its queue, without the idle vCPU.
    pub(crate) fn waiting(&self, p: PcpuId) -> impl Iterator<Item = VcpuId> + '_ {
        let waiting = self.queue_links.iter(&self.pcpus[p].queue);
        waiting.filter(|&v| self.vcpus[v].priority != Priority::Idle)
    }

    /// Sorts a queue after an accounting pass: vCPUs with credit come before those without, otherwise the order stays.
    pub(super) fn sort(&mut self, p: PcpuId) {
        let pcpu = &mut self.pcpus[p];
        if pcpu.epoch == self.epoch {
            return;
        }
        pcpu.epoch = self.epoch;
        let mut over = List::default();
        let mut element = pcpu.queue.first();
        while let Some(u) = element {
            element = self.queue_links.next(u);
            if self.vcpus[u].priority < Priority::Under {
                self.queue_links.remove(&mut pcpu.queue, u);
                self.queue_links.push_back(&mut over, u);
            }
        }
        while let Some(u) = over.first() {
            self.queue_links.remove(&mut over, u);
            self.queue_links.push_back(&mut pcpu.queue, u);
        }
        self.note_head(p);
    }
}
