"""Lottery scheduling (Waldspurger and Weihl, 1994): a decision draws a ticket, and the domain that holds it runs."""

import random

from vcpulab import Param, Policy


class Lottery(Policy):
    """Lottery scheduling: a decision draws a ticket, and the domain that holds it runs."""

    parameters = (Param(name="weight", default=256, least=1, most=65535, doc="Its tickets."),)

    def __init__(self, params, seed):
        self.random = random.Random(seed)
        self.tickets = {}  # of each domain

    def adjust(self, ctx, d, params):
        self.tickets[d] = params["weight"]

    def wake(self, ctx, v):
        for p in ctx.affinity(v):
            if ctx.is_idle(ctx.current(p)):
                ctx.raise_reschedule(p)

    def sleep(self, ctx, v):
        if ctx.is_current(v):
            ctx.raise_reschedule(ctx.processor(v))

    def schedule(self, ctx, p):
        current = ctx.current(p)
        first = {}  # of each domain, the vCPU that has run least
        for v in sorted(filter(ctx.runnable, ctx.guest_vcpus), key=ctx.running_ns):
            if p in ctx.affinity(v) and (v == current or not ctx.is_current(v)):
                first.setdefault(ctx.dom(v), v)
        if not first:
            return ctx.idle(p), -1
        (winner,) = self.random.sample(list(first.values()), 1, counts=[self.tickets[d] for d in first])
        if winner != current and ctx.runnable(current) and not ctx.is_idle(current):
            self.wake(ctx, current)
        ctx.set_processor(winner, p)
        return winner, 10_000_000
