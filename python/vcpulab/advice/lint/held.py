"""A service that is late with the bottleneck of what serves it, and the rules that name a cause."""

from collections.abc import Callable
from dataclasses import dataclass

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station
from vcpulab.advice.lateness import LATE_MS, LATE_TIMES, LOST, Late
from vcpulab.advice.lint.host import FEW_WAITS, WAITS, Finding, Host
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.scenario.names import in_short

NEVER_BLOCKED = 0.05
"""A domain that is blocked for less than this part of the time always wants to run. Assumed."""
BEHIND_ITSELF = 50.0
"""A domain that waits behind its own vCPUs for this part of its waits, %, waits for itself. Assumed."""
HALF_FULL = 0.5
"""A device that is fuller than this makes its requests wait for as long as they take: M/M/1."""

LATE_IS = (
    f"above {LATE_MS:g} ms and above {LATE_TIMES:g} times the CPU time of a request at the 99th percentile, or more "
    f"than {LOST:.0%} of requests or deadlines lost"
)


@dataclass(frozen=True)
class Held:
    """Somebody who is late, and the bottleneck of what serves him."""

    host: Host
    late: Late
    station: Station

    @property
    def domain(self) -> str:
        """The domain whose vCPU is the bottleneck; otherwise the one that serves him."""
        return self.station.domain or self.late.domain

    @property
    def pool(self) -> str | None:
        """The pool of that domain."""
        pool: str | None = self.host.domains[self.domain].get("pool")
        return pool

    @property
    def pcpus(self) -> list[int]:
        """The pCPUs of that pool."""
        return self.host.pcpus_of(self.pool)

    @property
    def waits(self) -> bool:
        """Is it a vCPU that is held back by others, and not by its own work?"""
        if not self.station.domain or self.station.kind in ("guest vCPU", "driver domain", "host thread"):
            return False
        if self.station.used >= NEAR_FULL or self.host.waited(self.domain) >= WAITS:
            return True
        # Who sleeps most of the time waits for a small part of it, and yet longer than he works.
        return self.station.waited > self.station.used / 2

    @property
    def never_wakes(self) -> bool:
        """Does that domain compute all the time? A driver domain does not: it hardly sleeps where it wakes up late."""
        if self.host.blocked(self.domain) >= NEVER_BLOCKED or self.host.served_by(self.domain):
            return False
        # One vCPU may compute without end while another one sleeps, and waits each time that it wakes up.
        return not any(True for _ in self.host.woken_late(self.domain))

    @property
    def waits_for_itself(self) -> bool:
        """Does that domain wait mostly behind its own vCPUs, so that no weight matters?"""
        return sum(share for one, share in self.host.behind(self.domain) if one == self.domain) >= BEHIND_ITSELF

    @property
    def starves(self) -> bool:
        """Does that domain get almost nothing?"""
        return self.domain in self.host.starved

    @property
    def said_waits(self) -> str:
        """Who waits, and how long, in words."""
        own = f"{self.domain} waits for {100 * self.host.waited(self.domain):.0f} % of the time"
        if not self.station.thread:
            return own
        thread = f"the {self.station.thread}"
        return f"{thread}, and {own}" if self.host.waited(self.domain) >= FEW_WAITS else thread

    def said_behind(self) -> str:
        """Behind whom it waits, in words."""
        behind = [(one, share) for one, share in self.host.behind(self.domain) if share >= 1]
        if not behind:
            return "others"
        return f"{in_short([one for one, _ in behind])} ({sum(share for _, share in behind):.0f} % of its waits)"


cause = Rules[Callable[[Held], Finding | None]](Stands.ALONE)
"""Why somebody is late, in the order in which they are looked for: what only throttles comes before what shares."""
