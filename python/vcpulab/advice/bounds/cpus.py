"""The CPUs of a host as stations, with the stations that serve a domain's CPU time and the capacity of each.

A vCPU serves for a second in a second, but the threads of a core do less together than each alone (`sharing`). The
capacity of a domain is its vCPUs, limited by its cap and its affinity. The capacity of a pool is its pCPUs, and each
set of pCPUs that domains are pinned to is a station too.
"""

from vcpulab.advice import core_sharing
from vcpulab.advice.bounds.model import Station
from vcpulab.scenario.model import AdjustAction, AffinityAction, Model, MovePoolAction
from vcpulab.scenario.threads import PERIOD_US, cpuset, quota
from vcpulab.scenario.units import pcpu_set

_ACCOUNTING_S = 0.03
"""Accounting period of the credit scheduler by default; caps hold from one accounting to the next."""


class Cpus:
    """The CPUs of one scenario."""

    def __init__(self, scenario: Model, stations: dict[str, Station]) -> None:
        """Reads a scenario; `stations` gets each station when it is first used."""
        self._scenario = scenario
        self._stations = stations
        self._adjusted = {action.domain for action in scenario.actions if isinstance(action, AdjustAction)}
        # Back ends of Xen 2 and 3 are tasklets, one of which runs at a time.
        self.in_turn = scenario.host.generation.startswith(("xen2", "xen3"))
        # After these, pools and affinity no longer bound a domain.
        moves = any(isinstance(action, AffinityAction | MovePoolAction) for action in scenario.actions)
        self._pools = {name: self._pool(name, moves=moves) for name in scenario.domains}
        self._allowed = {name: self._affinity(name, moves=moves) for name in scenario.domains}
        self._sets = sorted({pcpus for sets in self._allowed.values() for pcpus in sets}, key=sorted)
        self._alone = not core_sharing.has_sibling_costs(scenario.host.costs)
        self._stations_by_use: dict[tuple[str, int | None, bool], tuple[str, ...]] = {}

    def _pool(self, domain: str, *, moves: bool) -> tuple[str, frozenset[int]]:
        host = self._scenario.host
        everything = frozenset(range(host.pcpus))
        if moves or host.hypervisor == "kvm":
            return "host", everything
        pools = {name: pcpu_set(pool.pcpus, host.pcpus) for name, pool in self._scenario.pools.items()}
        name = self._scenario.domains[domain].pool
        return name, pools.get(name, everything.difference(*pools.values()))

    def _affinity(self, domain: str, *, moves: bool) -> list[frozenset[int]]:
        """The pCPUs that each vCPU of a domain may run on."""
        _, pool = self._pools[domain]
        given = self._scenario.domains[domain].affinity
        sets = [given] * self._scenario.domains[domain].vcpus if isinstance(given, str) else given
        count = self._scenario.host.pcpus
        left = pool & cpuset(self._scenario, domain)
        return [pool if moves else (left & pcpu_set(mask, count)) or left for mask in sets]

    def pool(self, domain: str) -> tuple[str, ...]:
        """The stations of a domain's pCPU time that no vCPU uses."""
        name, pcpus = self._pools[domain]
        return (self._station(Station(f"{name}: pCPUs", "pool", self._work(pcpus))),)

    def stations(self, domain: str, vcpu: int | None = None, *, packet: bool = False) -> tuple[str, ...]:
        """The stations that serve a domain's CPU time.

        Args:
            domain: the domain's name.
            vcpu: the vCPU that does the work; `None`: any.
            packet: is the work a back end's at a packet, which old driver domains do one at a time?
        """
        key = (domain, vcpu, packet)
        if key not in self._stations_by_use:
            self._stations_by_use[key] = self._stations_for(domain, vcpu, packet=packet)
        return self._stations_by_use[key]

    def _stations_for(self, domain: str, vcpu: int | None, *, packet: bool) -> tuple[str, ...]:
        allowed, (_, pool) = self._allowed[domain], self._pools[domain]
        names = [self._station(self._domain(domain)), *self.pool(domain)]
        if len(allowed) > 1 and vcpu is not None:
            names.append(self._station(Station(f"{domain}: vCPU {vcpu}", "vcpu", 1, domain)))
        if len(allowed) > 1 and packet and self.in_turn:
            names.append(self._station(Station(f"{domain}: packets in turn", "in turn", 1, domain)))
        reach = allowed[vcpu] if vcpu is not None else frozenset[int]().union(*allowed)
        # Work that may run on a few pCPUs only also uses every larger set that contains them.
        larger = [pcpus for pcpus in self._sets if reach <= pcpus < pool]
        return (
            *names,
            *(self._station(Station(f"pCPUs {_joined(pcpus)}", "pcpus", self._work(pcpus))) for pcpus in larger),
        )

    def _domain(self, domain: str) -> Station:
        allowed, params = self._allowed[domain], self._scenario.domains[domain].params
        cap = 0 if domain in self._adjusted else params.get("cap", 0)
        most = min(len(allowed), self._work(frozenset[int]().union(*allowed), domain))
        limit = None if domain in self._adjusted else quota(self._scenario.domains[domain])
        if limit is not None:
            period_s = max(params.get(f"{part}_period_us", PERIOD_US) for part in ("global", "vcpu")) / 1e6
            burst = 2 * period_s * limit + params.get("global_burst_us", 0) / 1e6
            return Station(f"{domain}: vCPUs", "domain", min(most, limit), domain, burst)
        if not cap:
            return Station(f"{domain}: vCPUs", "domain", most, domain)
        period = max(_ACCOUNTING_S, self._scenario.host.params.get("tslice_ms", 0) * 1e-3)
        return Station(f"{domain}: vCPUs", "domain", min(most, cap / 100), domain, 2 * period * len(allowed))

    def _work(self, pcpus: frozenset[int], domain: str | None = None) -> float:
        """Seconds of service that these pCPUs give in a second, all to one domain, or to all domains."""
        if self._alone:
            return len(pcpus)
        threads = None if domain is None else [core_sharing.kind(self._scenario, domain)]
        return core_sharing.cores(self._scenario, pcpus, threads)

    def _station(self, station: Station) -> str:
        self._stations.setdefault(station.name, station)
        return station.name


def _joined(pcpus: frozenset[int]) -> str:
    return ",".join(str(pcpu) for pcpu in sorted(pcpus))
