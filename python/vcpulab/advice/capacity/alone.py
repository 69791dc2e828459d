"""A service alone on the host, without limits of its own: the proof that no setting keeps an SLO, or that others do.

Every domain that the service does not need is left out, and caps, quotas, pinning, pools and budgets of those that it
needs are lifted. If that run still misses the SLO, a setting could only help where a vCPU waits for a pCPU, or runs in
the wrong place. If neither is so, or the service itself fills a device or all pCPUs, it is proven that the SLO cannot
be kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station, bottleneck, stations, with_servers
from vcpulab.advice.reservations import RESERVATIONS
from vcpulab.advice.runstates import lost, shares
from vcpulab.advice.verdicts import Proven
from vcpulab.errors import RequestError
from vcpulab.results.addresses import Address, Slo
from vcpulab.results.metrics import Better
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
"""What there would have to be more of, by kind of bottleneck; of others, CPU time."""
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
    *(name for one in RESERVATIONS.values() for name in (one.amount, one.period)),
)
"""Fields that may keep a domain from pCPUs; by default they do not."""
_WAITS = 0.005
"""A vCPU that waits for less than this part of the time has nothing to gain from a scheduler. Assumed."""
_LOSES = 0.1
"""A domain that loses less than this part of its CPU time to where it runs is in the right place. Assumed."""
_BUSY = 0.5
"""A vCPU that is busier than this may be too few, where there are more pCPUs. Assumed."""
_ALL = 0.95
"""pCPUs that are busier than this are full."""


@dataclass(frozen=True)
class Alone:
    """A number of a service that has the host, and the domains that serve it, for itself, with its limits lifted."""

    address: Address
    value: float | None
    """Mean of the metric; `None`: it is not defined."""
    others: int
    """As many domains are left out."""
    lifted: tuple[str, ...]
    """The fields that were set to their default, such as `cap`."""
    bottleneck: Station | None
    reason: str
    """Why no setting betters the number; empty: one may."""
    own: tuple[str, ...] = ()
    """What of the service and its host may hold it back still, in words."""

    @property
    def where(self) -> str:
        """The circumstances, in words."""
        without = "other domain" if self.others == 1 else f"{self.others} other domains"
        place = f"alone on the host, without the {without}" if self.others else "with nothing else on the host"
        return f"{place} and without its {in_short(self.lifted)}" if self.lifted else place

    @property
    def said(self) -> str:
        """The number in these circumstances, in words."""
        value = "undefined" if self.value is None else f"{number(self.value)} {self.address.unit}"
        return f"{self.where}, {self.address} is {value}"

    def is_extreme(self, direction: Better) -> bool:
        """Does a service that is alone have most of it in this direction?

        Its owner's good direction, and CPU time: a ceiling for what it does is kept by a limit, not by more room.
        """
        return direction == (self.address.better or ("higher" if self.address.metric.name == "gotten" else None))

    def proof(self, slo: Slo) -> Proven | None:
        """The proof that no setting keeps an SLO; `None`: there is none."""
        if slo.holds(self.value) or not self.reason or not self.is_extreme(slo.wants):
            return None
        more = _MORE.get(self.bottleneck.kind if self.bottleneck is not None else "", "faster or more CPUs")
        return Proven(f"even {self.said}: {self.reason}; less load or {more} may help")

    def about(self, slo: Slo) -> str:
        """What the number says about an SLO, in a sentence."""
        proven = self.proof(slo)
        if proven is not None:
            return f"{_capital(proven.reason)}."
        if not self.is_extreme(slo.wants):
            return f"{_capital(self.said)}."
        if not slo.holds(self.value):
            may = f" {_capital(' and '.join(self.own))} may hold it back." if self.own else ""
            return f"Even {self.said}.{may}"
        holds = ["the other domains"] if self.others else []
        holds += [f"its {in_short(self.lifted)}"] if self.lifted else []
        return f"{_capital(self.said)}: {' and '.join(holds) or 'chance'} may hold it back."


def alone(scenario: Scenario, address: Address, *, jobs: int = 0) -> Alone | None:
    """A number on the host without the domains that its own does not need; `None`: it is no domain's, or cannot be had.

    Raises:
        EngineError: the run failed.
    """
    document = scenario.to_dict()
    needed = with_servers(document["domain"], [address.domain])
    gone = [name for name in document["domain"] if name not in needed]
    clients = [name for name, table in document.get("client", {}).items() if table["server"] in gone]
    if not needed:
        return None
    written = scenario.written()["domain"]
    lifts = [join(["domain", name, field]) for name in needed for field in _LIMITS if field in written.get(name, {})]
    without = [join(["domain", name]) for name in gone] + [join(["client", name]) for name in clients]
    try:
        by_itself = run(change(scenario, dict.fromkeys([*without, *lifts])).scenario, jobs=jobs)
    except RequestError:
        # Another part of the scenario, such as an action, is about a domain that is left out.
        return None
    mean = by_itself.get(address.name)
    lifted = tuple(dict.fromkeys(split(path)[-1].replace("_", " ") for path in lifts))
    passed = stations(by_itself, [address.domain])
    own = tuple(_own(by_itself, needed))
    reason = _reason(by_itself, address, needed, passed, own)
    return Alone(address, None if mean is None else mean.mean, len(gone), lifted, bottleneck(passed), reason, own)


_OUTSIDE = ("disk", "link", "client machine")


def _reason(by_itself: Run, address: Address, needed: list[str], passed: list[Station], own: tuple[str, ...]) -> str:
    """Why no setting betters a number of a service that is alone; empty: one may."""
    narrow = bottleneck(passed)
    if narrow is not None and narrow.kind in _OUTSIDE and narrow.used >= NEAR_FULL:
        return f"the {narrow.name.removeprefix('the ')} is {100 * narrow.used:.0f} % used"
    domains = by_itself.scenario.to_dict()["domain"]
    if any(len(domains[name].get("app", [])) > (name == address.domain) for name in needed):
        # Where several applications share vCPUs or pCPUs, a setting may favor one of them.
        return ""
    full = next((one for one in passed if one.kind == "pCPUs" and one.used >= _ALL), None)
    crowded = any(domains[name]["vcpus"] > by_itself.scenario.to_dict()["host"]["pcpus"] for name in needed)
    if full is not None and not crowded:
        return f"the {full.name} are {100 * full.used:.0f} % used by its own work"
    misplaced = any(lost(by_itself, name, to) > _LOSES for name in needed for to in ("threads", "memory", "frequency"))
    return "" if own or misplaced else _reason_of_vcpus(by_itself, address.domain, needed, narrow)


def _reason_of_vcpus(by_itself: Run, domain: str, needed: list[str], narrow: Station | None) -> str:
    """Why no setting betters what the vCPUs of a domain, and of those that serve it, do; empty: one may."""
    busy = max(shares(by_itself, domain, "running"), default=0.0)
    if busy >= _ALL:
        return f"a vCPU of {domain} computes for {100 * busy:.0f} % of the time then"
    waits = max(max(shares(by_itself, name, "runnable"), default=0.0) for name in needed)
    saturated = narrow is not None and narrow.used >= NEAR_FULL
    return "" if waits > _WAITS or saturated else "no vCPU waits for a pCPU then"


def _own(by_itself: Run, needed: list[str]) -> Iterator[str]:
    """What holds domains back that are alone and without limits of their own."""
    document: Mapping[str, Any] = by_itself.scenario.to_dict()
    pcpus = document["host"]["pcpus"]
    for name in needed:
        table = document["domain"][name]
        if table["vcpus"] < pcpus and max(shares(by_itself, name, "running"), default=0.0) > _BUSY:
            yield f"the {table['vcpus']} vCPU{'' if table['vcpus'] == 1 else 's'} of {name}"
        if table["vcpus"] > pcpus:
            yield f"the {table['vcpus']} vCPUs of {name} on {pcpus} pCPU{'' if pcpus == 1 else 's'}"
        left = cpuset(document, name)
        if len(left) < pcpus:
            yield f"the {len(left)} pCPUs of the control group of {name}"
        if quota(table) is not None:
            yield f"the quota of {name}"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
