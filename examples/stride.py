"""Stride scheduling (Waldspurger and Weihl, 1995): the vCPU with the least CPU time for its weight runs."""

from vcpulab import Param, Policy


class Stride(Policy):
    """Stride scheduling: the vCPU with the least CPU time for its weight runs."""

    parameters = (
        Param(name="weight", default=256, least=1, most=65535, doc="Share of CPU time under contention."),
        Param(name="quantum_us", of="host", default=10_000, least=100, most=1_000_000, unit="us", doc="Longest run."),
    )

    def __init__(self, params, seed):
        self.quantum_ns = 1000 * params["quantum_us"]
        self.weight = {}  # of each domain
        self.passed = {}  # of each vCPU: CPU time for its weight, times 2**20
        self.counted = {}  # of each vCPU: the CPU time in it

    def adjust(self, ctx, d, params):
        self.weight[d] = params["weight"]

    def insert(self, ctx, v):
        super().insert(ctx, v)
        self.passed[v], self.counted[v] = 0, ctx.running_ns(v)

    def remove(self, ctx, v):
        del self.passed[v]

    def count(self, ctx, v):
        ran = ctx.running_ns(v)
        self.passed[v] += ((ran - self.counted[v]) << 20) // self.weight[ctx.dom(v)]
        self.counted[v] = ran

    def wake(self, ctx, v):
        # Who slept saves up nothing.
        others = [self.passed[u] for u in self.passed if u != v and ctx.runnable(u)]
        self.passed[v] = max(self.passed[v], min(others, default=0))
        self.offer(ctx, v)

    def offer(self, ctx, v):
        for p in ctx.affinity(v):
            if ctx.is_idle(ctx.current(p)):
                ctx.raise_reschedule(p)
                return

    def sleep(self, ctx, v):
        if ctx.is_current(v):
            ctx.raise_reschedule(ctx.processor(v))

    def schedule(self, ctx, p):
        current = ctx.current(p)
        if not ctx.is_idle(current):
            self.count(ctx, current)
        ready = [v for v in self.passed if ctx.runnable(v) and p in ctx.affinity(v)]
        ready = [v for v in ready if v == current or not ctx.is_current(v)]
        if not ready:
            return ctx.idle(p), -1
        first = min(ready, key=lambda v: (self.passed[v], v))
        if first != current and current in ready:
            self.offer(ctx, current)
        ctx.set_processor(first, p)
        return first, self.quantum_ns
