"""A service alone on the host and without its own limits: a miss there may prove that no setting keeps its SLO.

The run leaves out every domain that the service does not need, and lifts the caps, quotas, pinning, pools and budgets
of the domains that it needs. If this run misses the SLO, a setting can help only where a vCPU waits for a pCPU or runs
in the wrong place. If neither is the case, or if the service itself fills a device or all pCPUs, the miss proves that
no setting keeps the SLO.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station, bottleneck, stations, with_servers
from vcpulab.advice.reservations import reservations
from vcpulab.advice.runstates import lost, shares
from vcpulab.advice.verdicts import Proven
from vcpulab.errors import RequestError
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.metrics import Better, Quantity
from vcpulab.results.run import Run, run
from vcpulab.results.statistics import number
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario, join, split
from vcpulab.scenario.settings import change
from vcpulab.scenario.threads import cpuset, quota

_MORE = {
    "disk": "a faster disk",
    "link": "a faster link",
    "client machine": "a faster line to the clients",
}
"""The resource to add, by kind of bottleneck; CPU time for the kinds that are not listed."""
_LIMITS = (
    "affinity",
    "soft_affinity",
    "emulator_affinity",
    "iothread_affinity",
    "cap",
    "vcpu_quota_us",
    "global_quota_us",
    "pool",
    "idle",
)
"""Fields that may keep a domain from pCPUs; their defaults do not."""
_WAITS = 0.005
"""The fraction of the time below which a vCPU's waiting leaves nothing for a scheduler to gain. Assumed."""
_LOSES = 0.1
"""The fraction of CPU time lost to slow threads, memory or frequency below which a domain is well placed. Assumed."""
_BUSY = 0.5
"""The busy fraction of a vCPU above which its domain may have too few vCPUs, if the host has more pCPUs. Assumed."""
_ALL = 0.95
"""The busy fraction above which pCPUs and vCPUs are full."""


@dataclass(frozen=True)
class Alone:
    """A metric of a service that is alone on the host with the domains that serve it, all limits lifted."""

    address: Address
    value: float | None
    """Mean of the metric; `None`: the metric is undefined."""
    domains_left_out: int
    """The number of domains that are left out."""
    lifted: tuple[str, ...]
    """The fields that were set to their default, such as `cap`."""
    bottleneck: Station | None
    reason: str
    """The reason why no setting improves the metric; empty: a setting may improve it."""
    own: tuple[str, ...] = ()
    """Remaining limits of the service and its host, in words."""

    @property
    def where(self) -> str:
        """The circumstances, in words."""
        count = self.domains_left_out
        without = "other domain" if count == 1 else f"{count} other domains"
        place = f"alone on the host, without the {without}" if count else "with nothing else on the host"
        return f"{place} and without its {in_short(self.lifted)}" if self.lifted else place

    @property
    def sentence(self) -> str:
        """The metric's value in these circumstances, as a sentence without capital and full stop."""
        value = "undefined" if self.value is None else f"{number(self.value)} {self.address.unit}"
        return f"{self.where}, {self.address} is {value}"

    def is_extreme(self, direction: Better) -> bool:
        """Is the service's value when it is alone the extreme of the metric in this direction?

        Yes for the metric's good direction, and for more CPU time. Not for an SLO that caps the work a service does:
        a limit keeps such an SLO, not more room.
        """
        metric = self.address.metric
        return direction == (metric.better or ("higher" if metric.quantity is Quantity.CPU_TIME else None))

    def proof(self, slo: Slo) -> Proven | None:
        """The proof that no setting keeps an SLO; `None`: no proof."""
        if slo.holds(self.value) or not self.reason or not self.is_extreme(slo.wants):
            return None
        more = _MORE.get(self.bottleneck.kind if self.bottleneck is not None else "", "faster or more CPUs")
        return Proven(f"even {self.sentence}: {self.reason}; less load or {more} may help")

    def about(self, slo: Slo) -> str:
        """The consequence of the value for an SLO, in a sentence."""
        proven = self.proof(slo)
        if proven is not None:
            return f"{_capital(proven.reason)}."
        if not self.is_extreme(slo.wants):
            return f"{_capital(self.sentence)}."
        if not slo.holds(self.value):
            may = f" {_capital(' and '.join(self.own))} may hold it back." if self.own else ""
            return f"Even {self.sentence}.{may}"
        holds = ["the other domains"] if self.domains_left_out else []
        holds += [f"its {in_short(self.lifted)}"] if self.lifted else []
        return f"{_capital(self.sentence)}: {' and '.join(holds) or 'chance'} may hold it back."


def alone(scenario: Scenario, address: Address, *, jobs: int = 0) -> Alone | None:
    """A metric of a service alone on the host with the domains it needs; `None`: no domain's metric, or no valid run.

    Raises:
        EngineError: the run failed.
    """
    needed = with_servers(scenario.domains, [address.domain])
    gone = [name for name in scenario.domains if name not in needed]
    clients = [name for name, client in scenario.clients.items() if client.server in gone]
    if not needed:
        return None
    reserving = (field for reservation in reservations().values() for field in (reservation.amount, reservation.period))
    limits = (*_LIMITS, *reserving)
    stated = {name: scenario.stated("domain", name) for name in needed}
    lifts = [join(["domain", name, field]) for name in needed for field in limits if field in stated[name]]
    without = [join(["domain", name]) for name in gone] + [join(["client", name]) for name in clients]
    try:
        by_itself = run(change(scenario, dict.fromkeys([*without, *lifts])).scenario, jobs=jobs)
    except RequestError:
        # Another part of the scenario, such as an action, names a domain that is left out.
        return None
    mean = by_itself.get(address.name)
    lifted = tuple(dict.fromkeys(split(path)[-1].replace("_", " ") for path in lifts))
    passed = stations(by_itself, [address.domain])
    own = tuple(_own(by_itself, needed))
    reason = _reason(by_itself, address, needed, passed, own)
    return Alone(address, None if mean is None else mean.mean, len(gone), lifted, bottleneck(passed), reason, own)


_OUTSIDE = ("disk", "link", "client machine")


def _reason(by_itself: Run, address: Address, needed: list[str], passed: list[Station], own: tuple[str, ...]) -> str:
    """The reason why no setting improves a metric of a service that is alone; empty: a setting may."""
    narrow = bottleneck(passed)
    if narrow is not None and narrow.kind in _OUTSIDE and narrow.used >= NEAR_FULL:
        return f"the {narrow.name.removeprefix('the ')} is {100 * narrow.used:.0f} % used"
    domains = by_itself.scenario.domains
    if any(len(domains[name].apps) > (name == address.domain) for name in needed):
        # Where several applications share vCPUs or pCPUs, a setting may favor one of them.
        return ""
    full = next((station for station in passed if station.kind == "pCPUs" and station.used >= _ALL), None)
    crowded = any(domains[name].vcpus > by_itself.scenario.host.pcpus for name in needed)
    if full is not None and not crowded:
        return f"the {full.name} are {100 * full.used:.0f} % used by its own work"
    misplaced = any(lost(by_itself, name, to) > _LOSES for name in needed for to in ("threads", "memory", "frequency"))
    return "" if own or misplaced else _reason_of_vcpus(by_itself, address.domain, needed, narrow)


def _reason_of_vcpus(by_itself: Run, domain: str, needed: list[str], narrow: Station | None) -> str:
    """The reason why no setting lets a domain's vCPUs, or those of its servers, do more; empty: a setting may."""
    busy = max(shares(by_itself, domain, "running"), default=0.0)
    if busy >= _ALL:
        return f"a vCPU of {domain} computes for {100 * busy:.0f} % of the time then"
    waits = max(max(shares(by_itself, name, "runnable"), default=0.0) for name in needed)
    saturated = narrow is not None and narrow.used >= NEAR_FULL
    return "" if waits > _WAITS or saturated else "no vCPU waits for a pCPU then"


def _own(by_itself: Run, needed: list[str]) -> Iterator[str]:
    """The remaining limits of domains that are alone and whose own limits are lifted."""
    scenario = by_itself.scenario.model
    pcpus = scenario.host.pcpus
    for name in needed:
        vcpus = scenario.domains[name].vcpus
        if vcpus < pcpus and max(shares(by_itself, name, "running"), default=0.0) > _BUSY:
            yield f"the {vcpus} vCPU{'' if vcpus == 1 else 's'} of {name}"
        if vcpus > pcpus:
            yield f"the {vcpus} vCPUs of {name} on {pcpus} pCPU{'' if pcpus == 1 else 's'}"
        left = cpuset(scenario, name)
        if len(left) < pcpus:
            yield f"the {len(left)} pCPUs of the control group of {name}"
        if quota(scenario.domains[name]) is not None:
            yield f"the quota of {name}"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
