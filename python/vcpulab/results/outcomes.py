"""What a run is judged by: metrics with names, units and directions, and limits on them.

`httperf.response_p99` is a figure of a client, `web.gotten` one of a domain, `web.0.throughput` one of the first
application in a domain, `host.idle` one of the whole host. What a domain's only client or application achieves may be
asked for by the domain's name: `web.throughput`.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl

from vcpulab.errors import RequestError
from vcpulab.results.figures import APP_FIGURES, DOMAIN_FIGURES, IO_FIGURES, PCPU_FIGURES, Figure, number
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario, join, split

Better = Literal["higher", "lower"]
Of = Literal["app", "domain", "io", "host"]

BETTER: Mapping[str, Better] = {
    "throughput": "higher",
    "failed": "lower",
    "response_p50": "lower",
    "response_p95": "lower",
    "response_p99": "lower",
    "waited": "lower",
    "wait_p50": "lower",
    "wait_p99": "lower",
    "overhead": "lower",
    "fairness": "higher",
    "ring_drops": "lower",
    "nic_drops": "lower",
    "retransmissions": "lower",
}
"""Figures with a good and a bad direction; others, such as CPU time gotten, only tell what happened."""

_WANTED = pl.col("running_ns") + pl.col("runnable_ns")
_MET = pl.when(_WANTED > 0).then(pl.col("running_ns") / _WANTED)

HOST_FIGURES = (
    *PCPU_FIGURES,
    Figure(
        "fairness",
        "index",
        "how evenly waiting is shared: Jain's index over domains of running / (running + waiting); 1: all alike",
        # Jain, Chiu, Hawe 1984, "A quantitative measure of fairness and discrimination": (sum x)^2 / (n sum x^2).
        pl.when(_MET.sum() > 0).then(_MET.sum() ** 2 / (_MET.count() * (_MET**2).sum())),
    ),
)
"""Figures of the whole host: means over its pCPUs, and fairness over its domains."""


class Metric(NamedTuple):
    """Something that a run is judged by."""

    name: str
    """As people type it, such as `web.response_p99`."""
    of: Of
    thing: str
    """What it is of, as in `Run.summary`; nothing for the host."""
    figure: str
    unit: str
    domain: str
    """The domain it concerns; for a client the one that it asks, for the host nothing."""

    @property
    def better(self) -> Better | None:
        """Which direction is good; `None`: neither."""
        return BETTER.get(self.figure)

    def said(self) -> str:
        """Its name and unit."""
        return f"{self.name}, {self.unit}"


@dataclass(frozen=True)
class Who:
    """A client or application: a row of `df_apps`."""

    thing: str
    domain: str
    names: tuple[str, ...]
    """How it may be called; the first is its name in tables."""


def people(scenario: Scenario) -> list[Who]:
    """The clients and applications of a scenario, domain by domain."""
    document = scenario.to_dict()
    clients = document.get("client", {})
    found: list[Who] = []
    for domain, table in document["domain"].items():
        apps = [str(app["kind"]) for app in table.get("app", []) for _ in range(app.get("instance", 1))]
        asking = [(name, str(client["kind"])) for name, client in clients.items() if client["server"] == domain]
        rows = [*((None, kind) for kind in apps), *asking]
        for position, (client, kind) in enumerate(rows):
            names = [join([domain, str(position)])]
            if client is not None and client not in document["domain"]:
                names.insert(0, join([client]))
            # The domain's name is its only client's, or its only application's.
            if (client is not None and len(asking) == 1) or (not asking and len(apps) == 1):
                names.insert(0 if client is None or client == domain else 1, join([domain]))
            found.append(Who(f"{domain} {position} {kind}", domain, tuple(dict.fromkeys(names))))
    return found


def metrics(scenario: Scenario) -> list[Metric]:
    """Everything that runs of this scenario can be judged by: of clients and applications, domains, the host.

    Examples:
        >>> [metric.name for metric in metrics(Scenario.starter()) if metric.figure == "throughput"]
        ['web.0.throughput', 'http.throughput', 'batch.throughput']
    """
    everybody = people(scenario)
    apps = [
        Metric(f"{who.names[0]}.{figure.name}", "app", who.thing, figure.name, figure.unit, who.domain)
        for who in everybody
        for figure in APP_FIGURES
    ]
    domains = scenario.to_dict()["domain"]
    kinds: tuple[tuple[Of, tuple[Figure, ...]], ...] = (("domain", DOMAIN_FIGURES), ("io", IO_FIGURES))
    of_domains = [
        Metric(f"{join([domain])}.{figure.name}", of, domain, figure.name, figure.unit, domain)
        for domain in domains
        for of, figures in kinds
        for figure in figures
    ]
    of_host = [Metric(f"host.{figure.name}", "host", "", figure.name, figure.unit, "") for figure in HOST_FIGURES]
    return [*apps, *of_domains, *of_host]


def metric(scenario: Scenario, name: str, blame: str = "metric") -> Metric:
    """The metric of that name.

    Raises:
        RequestError: there is none; the text says which there are.

    Examples:
        >>> metric(Scenario.starter(), "web.response_p99").name
        'http.response_p99'
    """
    listed = {found.name: found for found in metrics(scenario)}
    if name in listed:
        return listed[name]
    *who, figure = split(name) or [""]
    for person in people(scenario):
        if join(who) in person.names and f"{person.names[0]}.{figure}" in listed:
            return listed[f"{person.names[0]}.{figure}"]
    things = sorted({found.name.rpartition(".")[0] for found in listed.values()})
    if join(who) not in things:
        raise RequestError(f"{blame}: there is no `{join(who)}` in `{name}`; allowed: {', '.join(things)}")
    figures = [found.figure for found in listed.values() if found.name.rpartition(".")[0] == join(who)]
    raise RequestError(f"{blame}: `{join(who)}` has no figure `{figure}`; allowed: {', '.join(figures)}")


def values(run: Run, asked: Iterable[Metric]) -> dict[str, list[float | None]]:
    """The metrics of a run: name to a value for each replication, `None` where it is not defined."""
    frames: dict[str, pl.DataFrame] = {}
    found = {}
    for one in asked:
        if one.of not in frames:
            frames[one.of] = _frame(run, one.of)
        found[one.name] = frames[one.of].filter(pl.col("thing") == one.thing)[one.figure].to_list()
    return found


def _frame(run: Run, of: str) -> pl.DataFrame:
    """Figures of every replication and thing."""
    if of == "host":
        return _of_host(run)
    table, thing, figures = {
        "app": (run.df_apps, pl.format("{} {} {}", "domain", "app", "kind"), APP_FIGURES),
        "domain": (run.df_domains, pl.col("domain"), DOMAIN_FIGURES),
        "io": (run.df_io, pl.col("domain"), IO_FIGURES),
    }[of]
    chosen = (figure.value.cast(pl.Float64).alias(figure.name) for figure in figures)
    return table().sort("replication", maintain_order=True).select("replication", thing.alias("thing"), *chosen)


def _of_host(run: Run) -> pl.DataFrame:
    means = [figure.value.mean().alias(figure.name) for figure in PCPU_FIGURES]
    pcpus = run.df_pcpus().group_by("replication").agg(means)
    fairness = HOST_FIGURES[-1]
    domains = run.df_domains().group_by("replication").agg(fairness.value.alias(fairness.name))
    return pcpus.join(domains, on="replication").sort("replication").with_columns(pl.lit("").alias("thing"))


# ---- limits ----

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_LIMIT = re.compile(r"\s*(?P<metric>[^<>=\s]+)\s*(?P<operator><=|>=|<|>)\s*(?P<value>[-+.0-9eE]+)\s*(?P<unit>\S*)\s*")
_SCALES: Mapping[str, Mapping[str, float]] = {
    "µs": {"": 1, "ns": 1e-3, "us": 1, "µs": 1, "ms": 1e3, "s": 1e6},
    "ms": {"": 1, "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1, "s": 1e3},
    "1/s": {"": 1, "/s": 1, "1/s": 1, "req/s": 1},
    "%": {"": 1, "%": 1},
}


class Limit(NamedTuple):
    """What must hold of a metric."""

    metric: Metric
    operator: str
    bound: float
    """In the metric's unit."""

    def holds(self, value: float | None) -> bool:
        """Does it hold of this value? Not of one that is not defined."""
        return value is not None and _OPERATORS[self.operator](value, self.bound)

    def excess(self, value: float | None) -> float:
        """How far a value is beyond the bound, as a fraction of it; 0 or less: it keeps it."""
        if value is None:
            return float("inf")
        over = value - self.bound if self.operator.startswith("<") else self.bound - value
        return over / abs(self.bound) if self.bound else over

    def __str__(self) -> str:
        return f"{self.metric.name} {self.operator} {number(self.bound)} {self.metric.unit}"


def limit(scenario: Scenario, text: str, option: str = "--limit") -> Limit:
    """A limit such as `web.response_p99 < 50ms`.

    Raises:
        RequestError: it cannot be understood.

    Examples:
        >>> print(limit(Scenario.starter(), "web.response_p99<0.05s"))
        http.response_p99 < 50.0 ms
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise RequestError(f"{option}: found `{text}`; allowed: METRIC < VALUE, such as `web.response_p99 < 50ms`")
    found = metric(scenario, match["metric"], option)
    scales = _SCALES.get(found.unit, _SCALES["%"] if found.unit.startswith("%") else {"": 1})
    try:
        bound = float(match["value"]) * scales[match["unit"]]
    except (ValueError, KeyError):
        units = ", ".join(unit for unit in scales if unit) or "none"
        allowed = f"a number, with one of the units {units} or none"
        raise RequestError(f"{option}: found `{text}`; allowed: {allowed}") from None
    return Limit(found, match["operator"], bound)
