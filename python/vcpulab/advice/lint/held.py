"""A late service with its bottleneck, and the declaration of rules that name a cause."""

from collections.abc import Callable
from dataclasses import dataclass

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station
from vcpulab.advice.lateness import LATE_MS, LATE_TIMES, LOST, Late
from vcpulab.advice.lint.host import FEW_WAITS, WAITS, Finding, Host
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.scenario.names import in_short

NEVER_BLOCKED = 0.05
"""The blocked fraction of the time below which a domain always wants to run. Assumed."""
BEHIND_ITSELF = 50.0
"""The share of a domain's waits behind its own vCPUs, %, from which it waits for itself. Assumed."""
HALF_FULL = 0.5
"""The utilization from which the requests of a device wait for as long as their service takes: M/M/1."""
GETS_HALF = 0.5
"""The fraction of the CPU time that it wants below which a control domain is held back. Assumed."""

LATE_IS = (
    f"above {LATE_MS:g} ms and above {LATE_TIMES:g} times the CPU time of a request, or with more than {LOST:.0%} of "
    "its requests or deadlines lost"
)


@dataclass(frozen=True)
class Held:
    """A late service and its bottleneck."""

    host: Host
    late: Late
    station: Station

    @property
    def domain(self) -> str:
        """The domain whose vCPU is the bottleneck; otherwise the domain of the late service."""
        return self.station.domain or self.late.domain

    @property
    def pool(self) -> str:
        """The pool of that domain."""
        return self.host.domains[self.domain].pool

    @property
    def pcpus(self) -> list[int]:
        """The pCPUs of the pool."""
        return self.host.pcpus_of(self.pool)

    @property
    def waits(self) -> bool:
        """Is the bottleneck a vCPU that waits, for pCPUs or because of a limit, rather than one busy with its work?"""
        if not self.station.domain or self.station.kind in ("guest vCPU", "driver domain", "host thread"):
            return False
        if self.station.used >= NEAR_FULL or self.host.waited(self.domain) >= WAITS:
            return True
        # A vCPU that sleeps most of the time waits for a small part of it, but for longer than it runs.
        return self.station.waited > self.station.used / 2

    @property
    def never_wakes(self) -> bool:
        """Does the domain compute all the time? A driver domain does not: it hardly sleeps because it wakes up late."""
        if self.host.blocked(self.domain) >= NEVER_BLOCKED or self.host.served_by(self.domain):
            return False
        # One vCPU may compute without end while another sleeps, and waits after each wake-up.
        return not any(True for _ in self.host.woken_late(self.domain))

    @property
    def waits_for_itself(self) -> bool:
        """Does the domain wait mostly behind its own vCPUs, so that no weight matters?"""
        return sum(share for name, share in self.host.behind(self.domain) if name == self.domain) >= BEHIND_ITSELF

    @property
    def starves(self) -> bool:
        """Does the domain get almost no CPU time?"""
        return self.domain in self.host.starved

    @property
    def waits_in_words(self) -> str:
        """The waiting thread or domain and its waiting time, in words."""
        own = f"{self.domain} waits for {100 * self.host.waited(self.domain):.0f} % of the time"
        if not self.station.thread:
            return own
        thread = f"the {self.station.thread}"
        return f"{thread}, and {own}" if self.host.waited(self.domain) >= FEW_WAITS else thread

    def behind_in_words(self) -> str:
        """The domains that the domain waits for, in words."""
        behind = [(name, share) for name, share in self.host.behind(self.domain) if share >= 1]
        if not behind:
            return "others"
        return f"{in_short([name for name, _ in behind])} ({sum(share for _, share in behind):.0f} % of its waits)"


cause = Rules[Callable[[Held], Finding | None]](Stands.ALONE)
"""The decorator that declares a cause of lateness; `causes` has the order in which they are checked."""
