"""How good a service would be alone on the host: what no setting of a scheduler can better by much.

Where not even that keeps an SLO, the cure is outside the scheduler: less load, or more of what its requests wait for.
"""

from dataclasses import dataclass

from vcpulab.advice.capacity.occupancy import Station, bottleneck, stations, with_servers
from vcpulab.errors import RequestError
from vcpulab.results.addresses import Slo
from vcpulab.results.run import run
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.settings import change

_MORE = {
    "disk": "a faster disk",
    "link": "a faster link",
    "client machine": "a faster line to the clients",
    "connections": "more connections",
    "cap": "a larger cap",
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

    @property
    def kept(self) -> bool:
        """Does it hold then?"""
        return self.slo.holds(self.value)

    def __str__(self) -> str:
        value = "undefined" if self.value is None else f"{number(self.value)} {self.slo.address.unit}"
        where = f"lone on the host, without the {self.others} other domains, {self.slo.address} is {value}"
        if self.kept:
            return f"A{where}: fewer domains beside it, or more pCPUs, would keep {self.slo}."
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
    return Alone(slo, value, len(gone), bottleneck(stations(by_itself, [slo.address.domain])))
