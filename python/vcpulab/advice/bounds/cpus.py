"""The CPUs of a host as stations: whom a second of a domain's CPU time is taken of, and how much each can give.

A vCPU serves for a second in a second, but the threads of a core do less together than each alone (`sharing`). A domain
has its vCPUs, as far as its cap lets them run and there are pCPUs that they may run on; a pool has its pCPUs, and so
has each set of pCPUs that domains are pinned to.
"""

from collections.abc import Mapping
from typing import Any

from vcpulab.advice import sharing
from vcpulab.advice.bounds.model import Station
from vcpulab.hypervisors.settings import hypervisor_of
from vcpulab.scenario.threads import PERIOD_US, cpuset, quota
from vcpulab.scenario.units import pcpu_set

_ACCOUNTING_S = 0.03
"""How often the credit scheduler settles accounts, unless told otherwise; caps hold from one such time to another."""
_MOVES = {"affinity", "move-pool"}
"""What an administrator may do so that pools and affinity bound nothing."""


class Cpus:
    """The CPUs of one scenario."""

    def __init__(self, document: Mapping[str, Any], stations: dict[str, Station]) -> None:
        """Reads a scenario's complete tables; stations are added to `stations` when something is taken of them."""
        self._document = document
        self._stations = stations
        actions = document.get("action", [])
        self._adjusted = {action.get("domain") for action in actions if action["op"] == "adjust"}
        # Back ends were tasklets, of which one runs at a time, until well into the days of Xen 4.
        self.in_turn = str(document["host"]["generation"]).startswith(("xen2", "xen3"))
        moves = any(action["op"] in _MOVES for action in actions)
        self._pools = {name: self._pool(name, moves=moves) for name in document["domain"]}
        self._allowed = {name: self._affinity(name, moves=moves) for name in document["domain"]}
        self._sets = sorted({one for sets in self._allowed.values() for one in sets}, key=sorted)
        self._alone = not sharing.known(document["host"]["costs"])
        self._known: dict[tuple[str, int | None, bool], tuple[str, ...]] = {}

    def _pool(self, domain: str, *, moves: bool) -> tuple[str, frozenset[int]]:
        count = self._document["host"]["pcpus"]
        everything = frozenset(range(count))
        if moves or hypervisor_of(self._document) == "kvm":
            return "host", everything
        pools = {name: pcpu_set(table["pcpus"], count) for name, table in self._document.get("pool", {}).items()}
        name = self._document["domain"][domain].get("pool", "Pool-0")
        return name, pools.get(name, everything.difference(*pools.values()))

    def _affinity(self, domain: str, *, moves: bool) -> list[frozenset[int]]:
        """The pCPUs that each vCPU of a domain may run on."""
        table = self._document["domain"][domain]
        _, pool = self._pools[domain]
        given = table["affinity"]
        sets = [given] * table["vcpus"] if isinstance(given, str) else given
        count = self._document["host"]["pcpus"]
        left = pool & cpuset(self._document, domain)
        return [pool if moves else (left & pcpu_set(one, count)) or left for one in sets]

    def pool(self, domain: str) -> tuple[str, ...]:
        """What time of a pCPU of a domain is taken of that no vCPU has."""
        name, pcpus = self._pools[domain]
        return (self._station(Station(f"{name}: pCPUs", "pool", self._work(pcpus))),)

    def taken(self, domain: str, vcpu: int | None = None, *, packet: bool = False) -> tuple[str, ...]:
        """The stations that CPU time of a domain is taken of.

        Args:
            domain: whose.
            vcpu: of this one; `None`: of any.
            packet: is it a back end's work at a packet, which old driver domains do one at a time?
        """
        key = (domain, vcpu, packet)
        if key not in self._known:
            self._known[key] = self._find(domain, vcpu, packet=packet)
        return self._known[key]

    def _find(self, domain: str, vcpu: int | None, *, packet: bool) -> tuple[str, ...]:
        allowed, (_, pool) = self._allowed[domain], self._pools[domain]
        found = [self._station(self._domain(domain)), *self.pool(domain)]
        if len(allowed) > 1 and vcpu is not None:
            found.append(self._station(Station(f"{domain}: vCPU {vcpu}", "vcpu", 1, domain)))
        if len(allowed) > 1 and packet and self.in_turn:
            found.append(self._station(Station(f"{domain}: packets in turn", "in turn", 1, domain)))
        reach = allowed[vcpu] if vcpu is not None else frozenset[int]().union(*allowed)
        # What may run on few pCPUs only takes of every larger set of pCPUs, too.
        larger = [pcpus for pcpus in self._sets if reach <= pcpus < pool]
        return (
            *found,
            *(self._station(Station(f"pCPUs {_said(pcpus)}", "pcpus", self._work(pcpus))) for pcpus in larger),
        )

    def _domain(self, domain: str) -> Station:
        allowed = self._allowed[domain]
        cap = 0 if domain in self._adjusted else self._document["domain"][domain].get("cap", 0)
        most = min(len(allowed), self._work(frozenset[int]().union(*allowed), domain))
        table = self._document["domain"][domain]
        limit = None if domain in self._adjusted else quota(table)
        if limit is not None:
            period_s = max(table.get(f"{part}_period_us", PERIOD_US) for part in ("global", "vcpu")) / 1e6
            burst = 2 * period_s * limit + table.get("global_burst_us", 0) / 1e6
            return Station(f"{domain}: vCPUs", "domain", min(most, limit), domain, burst)
        if not cap:
            return Station(f"{domain}: vCPUs", "domain", most, domain)
        period = max(_ACCOUNTING_S, self._document["host"].get("tslice_ms", 0) * 1e-3)
        return Station(f"{domain}: vCPUs", "domain", min(most, cap / 100), domain, 2 * period * len(allowed))

    def _work(self, pcpus: frozenset[int], domain: str | None = None) -> float:
        """Seconds of service that these give in a second, all to a domain, or to whoever is there."""
        if self._alone:
            return len(pcpus)
        there = None if domain is None else [sharing.kind(self._document, domain)]
        return sharing.cores(self._document, pcpus, there)

    def _station(self, station: Station) -> str:
        self._stations.setdefault(station.name, station)
        return station.name


def _said(pcpus: frozenset[int]) -> str:
    return ",".join(str(pcpu) for pcpu in sorted(pcpus))
