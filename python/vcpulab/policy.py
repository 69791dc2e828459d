"""Your own scheduler: the hooks of a policy, and finding one by name.

The hooks are those of the engine's own schedulers (`crates/host/src/scheduler.rs`), under the same names. pCPUs, vCPUs,
domains and timers are integers, numbered from 0 over the whole host; times are ns of simulated time.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from vcpulab import plugins
from vcpulab._engine import Context, Rejected

__all__ = ["Context", "MakePolicy", "Params", "Policy", "Rejected", "load"]

ENTRY_POINTS = "vcpulab.policies"
"""The entry point group in which installed packages offer policies."""

Params = Mapping[str, int]
"""Scheduler parameters by name: those given, as the scenario's scheduler declares them."""


class Policy(ABC):
    """A CPU scheduler. One object serves one host for one replication.

    A policy never switches vCPUs itself: it asks a pCPU to reschedule (`ctx.raise_reschedule`), and the host calls
    `schedule` there once the event at hand has been handled. `ctx` is there during a hook only. Whatever a policy draws
    must come from `seed`: then the same scenario gives the same results.

    Args:
        params: those of the scenario's global parameters that are given.
        seed: of this replication; no other random numbers depend on it.
    """

    def __init__(self, params: Params, seed: int) -> None:
        """Prepares nothing."""

    @abstractmethod
    def wake(self, ctx: Context, v: int) -> None:
        """The vCPU is runnable now; it may be current still, where no decision was taken since it blocked."""

    @abstractmethod
    def sleep(self, ctx: Context, v: int) -> None:
        """The vCPU is not runnable any more, for another reason than blocking by itself."""

    @abstractmethod
    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        """Decides what runs next on a pCPU.

        Returns:
            A vCPU that is runnable and assigned to this pCPU, or the pCPU's idle vCPU; and its slice in ns (negative:
            no limit).
        """

    def add_pcpu(self, ctx: Context, p: int) -> None:
        """A pCPU comes up, before any domain exists. Its timers are created here."""

    def add_domain(self, ctx: Context, d: int) -> None:
        """A domain was created, or came from another CPU pool; its vCPUs follow."""

    def insert(self, ctx: Context, v: int) -> None:
        """A vCPU was created, blocked; its pCPU is chosen here (`ctx.set_processor`), by default as `pick` says."""
        ctx.set_processor(v, self.pick(ctx, v))

    def remove(self, ctx: Context, v: int) -> None:
        """The vCPU leaves this scheduler, not current anywhere. If the policy parked it, it unparks it here."""

    def remove_domain(self, ctx: Context, d: int) -> None:
        """The domain leaves this scheduler for another CPU pool; its vCPUs have done so."""

    def yielded(self, ctx: Context, v: int) -> None:
        """The running vCPU yields. Its pCPU reschedules in any case."""

    def context_saved(self, ctx: Context, v: int) -> None:
        """The outgoing vCPU, which may be an idle one, runs nowhere now."""

    def pick(self, ctx: Context, v: int) -> int:
        """The pCPU that a vCPU should go to: by default its own, if it may run there, or the next one allowed."""
        own, allowed = ctx.processor(v), ctx.affinity(v)
        return own if own in allowed else min((p for p in allowed if p > own), default=allowed[0])

    def migrate(self, ctx: Context, v: int, p: int) -> None:
        """Moves a vCPU, not current anywhere, to the pCPU picked."""
        ctx.set_processor(v, p)

    def timer(self, ctx: Context, token: int) -> None:
        """A timer made with `ctx.new_timer(p, token)` is due; it is stopped now."""

    def affinity(self, ctx: Context, v: int, pcpus: tuple[int, ...]) -> None:
        """The pCPUs that a vCPU may run on are about to become these."""

    def adjust(self, ctx: Context, d: int, params: Params) -> None:
        """Changes a domain's parameters: those that the scenario gives it, or an action later.

        Raises:
            Rejected: the values are refused, and nothing changed.
        """
        raise Rejected

    def adjust_global(self, ctx: Context, params: Params) -> None:
        """Changes the scheduler's own parameters.

        Raises:
            Rejected: the values are refused, and nothing changed.
        """
        raise Rejected

    def dump(self, ctx: Context) -> str:
        """The present state for people to read."""
        return ""


class MakePolicy(Protocol):
    """A policy class, or whatever else makes a policy: called once for each replication."""

    def __call__(self, params: Params, seed: int, /) -> Policy:
        """Makes the policy of one replication."""


def load(reference: str) -> type[Policy]:
    """Finds a policy: `file.py:Class`, or the name under which an installed package offers one.

    Raises:
        PluginError: there is none.
    """
    return plugins.load(reference, Policy, ENTRY_POINTS, "policy")  # type: ignore[type-abstract]  # it is checked there
