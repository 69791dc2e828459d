"""The path of a single request: its places and waits, from its begin to its answer, without a gap."""

from collections.abc import Container, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import polars as pl

from vcpulab import _engine
from vcpulab._work.progress import Progress
from vcpulab.results.addresses import Address, apps
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.threads import HOST, HostThread, host_threads, quota

MEDIAN = 0.5
KINDS = (
    "with the client",
    "on a link",
    "worked at",
    "waits for a pCPU",
    "withheld from the pCPUs",
    "waits its turn",
    "waits for something else",
)
"""The states of a request at a place; something else is a device, a lock, another service, or a time."""

_PLACES: Mapping[str, tuple[str, str, str]] = {
    "client": ("client", KINDS[0], "with the client"),
    "failed-try": ("client", KINDS[6], "tries that failed"),
    "link-in": ("link", KINDS[1], "on the link to the host"),
    "link-out": ("link", KINDS[1], "on the link from the host"),
    "nic": ("NIC", KINDS[5], "{domain} works at what came before"),
    "netback": ("", KINDS[2], "{domain} passes it on (netback)"),
    "thread": ("", KINDS[5], "{domain} works at what came before"),
    "poll": ("", KINDS[5], "{domain} ends its poll (netback), then notifies the guest"),
    "ring-in": ("", KINDS[5], "{domain} works at what came before"),
    "receive": ("", KINDS[2], "{domain} receives it (netfront, network stack)"),
    "backlog": ("", KINDS[5], "in the backlog of {domain}"),
    "service": ("", KINDS[5], "{domain} serves requests before it"),
    "ready": ("", KINDS[5], "{domain} works at other things"),
    "task": ("", KINDS[2], "{domain} serves it"),
    "spin": ("", KINDS[2], "{domain} spins for a lock"),
    "lock": ("", KINDS[6], "{domain} waits for a lock, or for another task"),
    "sleep": ("", KINDS[6], "{domain} sleeps"),
    "event": ("", KINDS[6], "{domain} waits for an event"),
    "call": ("", KINDS[6], "{domain} waits for another service"),
    "disk": ("", KINDS[6], "{domain} waits for its disk"),
    "send-queue": ("", KINDS[5], "{domain} works at what came before"),
    "send": ("", KINDS[2], "{domain} sends it (network stack, netfront)"),
    "ring-out": ("", KINDS[5], "{domain} works at what came before"),
    "loopback": ("", KINDS[5], "{domain} works at what came before"),
    "lost": ("network", KINDS[6], "lost, until it is sent again"),
    "delayed-ack": ("network", KINDS[6], "until a delayed acknowledgement"),
}
"""The engine's places of a request: where that is (``: in the domain), the kind of the leg, and the leg in words."""


class Line(NamedTuple):
    """Consecutive legs that share a line; times in ms from the begin of the request."""

    begin_ms: float
    end_ms: float
    text: str


@dataclass(frozen=True)
class Path:
    """The path of the request of a client at a quantile of its response times."""

    client: str
    quantile: float
    replication: int
    legs: pl.DataFrame
    """The engine's table `paths` without its first two columns, and for each leg

    where: the place: the client, the link, a NIC, a vCPU, a domain
    kind: the state of the request there, one of `KINDS`
    said: the leg in words, with the vCPU that has the pCPU meanwhile
    """

    @property
    def begin_ns(self) -> int:
        """The begin of the request, ns since the host started."""
        return int(self.legs["begin_ns"][0])

    @property
    def response_ns(self) -> int:
        """The response time: the legs sum to it."""
        return int(self.legs["end_ns"][-1]) - self.begin_ns

    def as_data(self) -> dict[str, object]:
        """The request and its legs as data."""
        request = {"client": self.client, "quantile": self.quantile, "replication": self.replication}
        return {**request, "begin_ns": self.begin_ns, "response_ns": self.response_ns, "legs": self.legs.to_dicts()}

    @property
    def title(self) -> str:
        """The request in words."""
        request = "median request" if self.quantile == MEDIAN else f"request at p{100 * self.quantile:g}"
        return f"{request} of {self.client}"

    def lines(self, most: int) -> list[Line]:
        """The path in at most `most` lines: consecutive short legs share a line."""
        legs = zip(*(self.legs[column].to_list() for column in ("begin_ns", "end_ns", "said")), strict=True)
        merged = [_line(self.begin_ns, list(group)) for _, group in groupby(legs, key=lambda leg: leg[2])]
        longest = sorted(range(len(merged)), key=lambda place: merged[place].begin_ms - merged[place].end_ms)
        lines = merged
        for kept in range(min(most, len(merged)), 0, -1):
            if len(lines) <= most:
                break
            lines = list(_folded(merged, set(longest[:kept])))
        return lines

    def sums(self) -> pl.DataFrame:
        """The total time of legs with the same words: columns `said` and `ms`, the longest first."""
        ms = ((pl.col("end_ns") - pl.col("begin_ns")) / 1e6).sum().alias("ms")
        return self.legs.group_by("said", maintain_order=True).agg(ms).sort("ms", descending=True, maintain_order=True)


def _line(begin_ns: int, legs: Sequence[tuple[int, int, str]]) -> Line:
    return Line((legs[0][0] - begin_ns) / 1e6, (legs[-1][1] - begin_ns) / 1e6, legs[0][2])


def _folded(lines: Sequence[Line], kept: AbstractSet[int]) -> Iterator[Line]:
    """Lines, where neighbors that are not kept share a line."""
    for alone, group in groupby(range(len(lines)), key=lambda place: place in kept):
        short_legs = [lines[place] for place in group]
        if alone or len(short_legs) == 1:
            yield from short_legs
        else:
            most = max(short_legs, key=lambda line: sum(_ms(leg) for leg in short_legs if leg.text == line.text))
            summary = f"{len(short_legs)} short legs, mostly: {most.text}"
            yield Line(short_legs[0].begin_ms, short_legs[-1].end_ms, summary)


def _ms(line: Line) -> float:
    return line.end_ms - line.begin_ms


def is_followed(scenario: Scenario, address: Address) -> bool:
    """Whether an address is a percentile of a client's response times, so that a request can be followed."""
    return _client(scenario, address) is not None and address.metric.is_response


def _client(scenario: Scenario, address: Address) -> str | None:
    return next((app.client for app in apps(scenario) if address.kind == "app" and app.name == address.thing), None)


def paths(
    scenario: Scenario,
    address: Address,
    replication: int = 0,
    *,
    progress: Progress | None = None,
) -> list[Path]:
    """The paths of the request at a percentile of a client's response times, and of the median request.

    The replication is simulated once more for its response times, and once more to follow the two requests.

    Args:
        scenario: the host.
        address: a percentile of the response times of a client, see `is_followed`.
        replication: of the scenario, from 0.
        progress: see `Progress`.

    Returns:
        Two paths (for the median itself, one path); none if nothing was answered.

    Examples:
        >>> from vcpulab.results.addresses import find
        >>> scenario = Scenario.starter().change({"run.duration": "200ms"})
        >>> slow, median = paths(scenario, find(scenario, "http.response_p99"))
        >>> slow.response_ns > median.response_ns
        True
    """
    client = _client(scenario, address)
    assert client is not None, "there is a request to follow"
    assert address.metric.percentile is not None, "the address is a percentile"
    quantile = address.metric.percentile / 100
    quantiles = list(dict.fromkeys((quantile, MEDIAN)))
    frame = pl.DataFrame(
        _engine.follow(scenario._engine, client, quantiles, replication=replication, progress=progress)
    )
    threads = host_threads(scenario.model)
    limited = {name for name, domain in scenario.domains.items() if quota(domain) is not None}
    places = pl.DataFrame(
        [_place(leg, threads, limited) for leg in frame.iter_rows(named=True)],
        schema={"where": pl.String, "kind": pl.String, "said": pl.String},
        orient="row",
    )
    legs = frame.hstack(places)
    return [
        Path(address.thing, followed, replication, legs.filter(quantile=followed).drop("replication", "quantile"))
        for followed in quantiles
        if not legs.is_empty()
    ]


def _place(leg: Mapping[str, Any], threads: Sequence[HostThread], limited: Container[str]) -> tuple[str, str, str]:
    """The columns `where`, `kind` and `said` of a leg; a KVM host has threads instead of a driver domain.

    A vCPU of a domain with a quota may be throttled, which Linux does not distinguish from waiting for a pCPU.
    """
    where, kind, words = _PLACES[leg["place"]]
    domain, state, by = leg["domain"], leg["state"], leg["by_domain"]
    if domain is not None:
        where = domain if leg["vcpu"] is None else f"{domain} vCPU {leg['vcpu']}"
    if threads:
        words = words.replace(" (netback)", "").replace("netfront", "virtio-net")
        by = "a thread of the host" if by == HOST else by
        if domain == HOST and leg["vcpu"] is not None:
            domain = where = str(threads[leg["vcpu"]])
    if state == "runnable":
        behind = f", {by} runs" if by is not None else ""
        idle = f" while pCPU {leg['pcpu']} idles" if not behind and leg["pcpu"] is not None else ""
        wanted = "its quota or a pCPU" if leg["domain"] in limited else "a pCPU"
        return where, KINDS[3], f"{domain} waits for {wanted}{behind}{idle}"
    if state == "offline":
        return where, KINDS[4], f"{domain} is withheld by its cap, or paused"
    if leg["place"] == "nic" and state != "running":
        return "NIC", KINDS[6], "in the NIC's queue, until it interrupts"
    if leg["place"] == "service" and state != "running":
        return where, kind, f"no task of {domain} is free"
    if state == "blocked":
        return where, KINDS[6], f"{domain} is blocked"
    return where, kind, words.format(domain=domain)


def typical(run: Run, address: Address) -> int:
    """The replication with the value nearest to the mean of a metric; of several the first."""
    values = [(number, value) for number, value in enumerate(run.values([address])[address.name]) if value is not None]
    mean = sum(value for _, value in values) / len(values) if values else 0.0
    return min(values, key=lambda numbered: (abs(numbered[1] - mean), numbered[0]), default=(0, 0.0))[0]
