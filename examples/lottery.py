"""Lottery scheduling (Waldspurger and Weihl, 1994): a decision draws a ticket, and the domain that holds it runs."""

import random

from vcpulab import Policy

SLICE_NS = 10_000_000


class Lottery(Policy):
    def __init__(self, params, seed):
        self.random = random.Random(seed)
        self.tickets = {}  # of each domain
        self.waiting = []  # runnable vCPUs that do not run, longest wait first

    def add_domain(self, ctx, d):
        self.tickets[d] = 256

    def adjust(self, ctx, d, params):
        self.tickets[d] = params.get("weight") or self.tickets[d]

    def wake(self, ctx, v):
        if not ctx.is_current(v) and v not in self.waiting:
            self.wait(ctx, v)

    def wait(self, ctx, v):
        self.waiting.append(v)
        for p in ctx.affinity(v):
            if ctx.is_idle(ctx.current(p)):
                ctx.flag(p)

    def sleep(self, ctx, v):
        if ctx.is_current(v):
            ctx.flag(ctx.home(v))
        elif v in self.waiting:
            self.waiting.remove(v)

    def schedule(self, ctx, p):
        current = ctx.current(p)
        if not ctx.is_idle(current) and ctx.runnable(current):
            self.wait(ctx, current)
        first = {}  # of each domain, the vCPU that has waited longest for this pCPU
        for v in self.waiting:
            if p in ctx.affinity(v):
                first.setdefault(ctx.dom(v), v)
        if not first:
            return ctx.idle(p), -1
        (drawn,) = self.random.sample(list(first), 1, counts=[self.tickets[d] for d in first])
        winner = first[drawn]
        self.waiting.remove(winner)
        ctx.set_home(winner, p)
        return winner, SLICE_NS
