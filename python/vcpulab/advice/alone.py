"""How good a service would be alone on the host: what no setting of other domains can better by much.

Where not even that keeps an SLO, the cure is outside the scheduler (less load, or more of what its requests wait for),
unless settings of its own hold the service back: a cap, a reservation, pinning, more vCPUs than there are pCPUs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station, bottleneck, stations, with_servers
from vcpulab.advice.reservations import RESERVATIONS
from vcpulab.errors import RequestError
from vcpulab.results.addresses import Slo
from vcpulab.results.run import run
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.settings import change
from vcpulab.scenario.threads import quota
from vcpulab.scenario.units import members

_MORE = {
    "disk": "a faster disk",
    "link": "a faster link",
    "client machine": "a faster line to the clients",
    "connections": "more connections",
    "cap": "a larger cap",
    "quota": "a larger quota",
    "host thread": "more queues of its device",
    "budget": "a larger reservation",
}
"""What there would have to be more of, by kind of bottleneck; of others, CPU time."""


@dataclass(frozen=True)
class Alone:
    """An SLO of a service that has the host, and the domains that serve it, for itself."""

    slo: Slo
    value: float | None
    """Mean of the metric; `None`: it is not defined."""
    others: int
    """As many domains are not there."""
    bottleneck: Station | None
    own: tuple[str, ...] = ()
    """Its own settings that may hold it back, in words."""

    @property
    def kept(self) -> bool:
        """Does it hold then?"""
        return self.slo.holds(self.value)

    def __str__(self) -> str:
        value = "undefined" if self.value is None else f"{number(self.value)} {self.slo.address.unit}"
        without = "other domain" if self.others == 1 else f"{self.others} other domains"
        where = f"lone on the host, without the {without}, {self.slo.address} is {value}"
        if self.kept:
            return f"A{where}: fewer domains beside it, or more pCPUs, would keep {self.slo}."
        if self.own:
            return f"Even a{where}: no other domain keeps it from {self.slo}, but {' and '.join(self.own)} may."
        more = _MORE.get(self.bottleneck.kind if self.bottleneck is not None else "", "faster or more CPUs")
        return f"Even a{where}: no setting of the scheduler keeps {self.slo}; less load or {more} may."


def alone(scenario: Scenario, slo: Slo, *, jobs: int = 0) -> Alone | None:
    """An SLO on the host without the domains that its own does not need; `None`: it is no domain's, or needs them all.

    Raises:
        EngineError: the run failed.
    """
    document = scenario.to_dict()
    needed = with_servers(document["domain"], [slo.address.domain])
    gone = [name for name in document["domain"] if name not in needed]
    clients = [name for name, table in document.get("client", {}).items() if table["server"] in gone]
    if not needed or not gone:
        return None
    try:
        without = [join(["domain", name]) for name in gone] + [join(["client", name]) for name in clients]
        by_itself = run(change(scenario, dict.fromkeys(without)).scenario, jobs=jobs)
    except RequestError:
        # Something else of the scenario, such as an action, is about one of those.
        return None
    found = by_itself.get(slo.address.name)
    value = None if found is None else found.mean
    narrow = bottleneck(stations(by_itself, [slo.address.domain]))
    outside = narrow is not None and narrow.kind in _OUTSIDE and narrow.used >= NEAR_FULL
    own = () if outside else tuple(_own(document, slo.address.domain))
    return Alone(slo, value, len(gone), narrow, own)


_OUTSIDE = ("disk", "link", "client machine")


def _own(document: Mapping[str, Any], name: str) -> Iterator[str]:
    """The settings of a domain that hold it back wherever it is alone."""
    table, host = document["domain"][name], document["host"]
    pool = table.get("pool")
    pcpus = host["pcpus"] if pool is None else len(members(document["pool"][pool]["pcpus"]))
    if table["vcpus"] > pcpus:
        yield f"its {table['vcpus']} vCPUs on {pcpus} pCPUs"
    if table.get("cap"):
        yield f"its cap of {table['cap']} %"
    limit = quota(table)
    if limit is not None and limit < table["vcpus"]:
        yield f"its quota of {number(limit)} pCPUs"
    if table.get("affinity", "all") != "all":
        yield "its pinning"
    reservation = RESERVATIONS.get(host["scheduler"]) if pool is None else None
    if reservation is not None and reservation.share(table) and not table.get(reservation.extra, 1):
        yield "its reservation"
