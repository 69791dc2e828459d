//! Load averages of run queues and vCPUs.

use vcpulab_host::{PolicyContext, VcpuId};

use super::{Credit2, LoadAverage, RunQueue, RunQueueId};

impl Credit2 {
    /// An average after the time from `since` to `now` (in units of 1024 ns) with `load` runnable; `load` alone if that
    /// is longer than the window.
    fn decay(&self, average: i64, load: i64, since: i64, now: i64) -> i64 {
        let (window, full) = (self.window_shift, load << self.scale_shift);
        if since + (1 << window) < now {
            return full;
        }
        let span = now - since;
        if self.rules.signed_loads {
            return average + ((span * full) >> window) - ((span * average) >> window);
        }
        let old = ((1i64 << window) - span).wrapping_mul(average) as u64;
        ((span.wrapping_mul(full) as u64).wrapping_add(old) >> window) as i64
    }

    pub(super) fn update_runqueue_load(&mut self, ctx: &PolicyContext, r: RunQueueId, change: i64) {
        let now = ctx.now().ns() >> 10;
        let RunQueue { runnable, load, balance_load, .. } = self.runqueues[r];
        let value = self.decay(load.value, runnable, load.time, now);
        let balance_load = self.decay(balance_load, runnable, load.time, now);
        let runqueue = &mut self.runqueues[r];
        runqueue.load = LoadAverage { value, time: now };
        runqueue.balance_load = balance_load;
        runqueue.runnable = runnable + change;
    }

    pub(super) fn update_vcpu_load(&mut self, ctx: &PolicyContext, v: VcpuId, change: i64) {
        let now = ctx.now().ns() >> 10;
        // The state that has held until now.
        let runnable = match change {
            0 => i64::from(ctx.runnable(v)),
            change => i64::from(change < 0),
        };
        let load = self.vcpus[v].load;
        let value = self.decay(load.value, runnable, load.time, now);
        self.vcpus[v].load = LoadAverage { value, time: now };
    }

    pub(super) fn update_load(&mut self, ctx: &PolicyContext, v: VcpuId, change: i64) {
        self.update_runqueue_load(ctx, self.vcpus[v].runqueue, change);
        self.update_vcpu_load(ctx, v, change);
    }

    /// A run queue's balance load without the part of one vCPU.
    pub(super) fn without(&self, balance_load: i64, vcpu: LoadAverage) -> i64 {
        let rest = balance_load - vcpu.value;
        if self.rules.signed_loads { rest.max(0) } else { rest }
    }
}
