"""The metrics: all that has a value people judge by, each declared once.

A metric says what it is, in which unit, which direction is good, which values are possible, and how it is read off the
tables of a run. Tables, charts, SLOs, goals, comparisons, sweeps and messages ask here, and nowhere else.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import polars as pl

from vcpulab.results.statistics import Interval

Better = Literal["higher", "lower"]
Of = Literal["domain", "app", "pcpu", "io", "host", "controller", "wakeup"]
"""What metrics are of: `app` is an application or a client, `io` the devices of a domain, `wakeup` its wake-ups."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


@dataclass(frozen=True)
class Unit:
    """A unit of measurement."""

    text: str
    """As it is shown."""
    written: Mapping[str, float] = field(default_factory=lambda: {"": 1.0})
    """How a value may be written where one is given: suffix to factor; without a suffix it is in this unit."""
    whole: float | None = None
    """What differences are a part of: 100 for percentages, 1 for an index; `None`: only of the values themselves."""

    def __str__(self) -> str:
        return self.text


def _percent(of: str = "") -> Unit:
    return Unit(f"% {of}".rstrip(), {"": 1.0, "%": 1.0}, whole=100.0)


OF_A_PCPU = _percent("of a pCPU")
OF_A_VCPU = _percent("of a vCPU")
"""Of what one vCPU could do all the time: domains of several may have more than 100."""
OF_ELAPSED = _percent("of elapsed")
PERCENT = _percent()
MICROSECONDS = Unit("µs", {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6})
MILLISECONDS = Unit("ms", {"": 1.0, "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3})
PER_SECOND = Unit("1/s", {"": 1.0, "/s": 1.0, "1/s": 1.0, "req/s": 1.0})
PACKETS_PER_SECOND = Unit("packets/s")
KILOBYTES_PER_SECOND = Unit("KB/s")
COUNT = Unit("count")
INDEX = Unit("index", whole=1.0)


@dataclass(frozen=True, eq=False)
class Metric:
    """Something that is measured of each thing of a kind, in each replication."""

    name: str
    unit: Unit
    doc: str
    """What it is, in a phrase."""
    expression: pl.Expr
    """Its value, from a row of the table of its kind; of the host, from all rows."""
    better: Better | None = None
    """The good direction; `None`: it has none, as CPU time, which tells only what happened."""
    bounds: tuple[float, float] = (0.0, math.inf)
    """The values that are possible, both ends included."""
    undefined_is: str = "nothing was measured"
    """What it means where it has no value."""
    undefined_is_worst: bool = False
    """Is having no value worse than any value, as of the wait of what waits and never runs?"""
    accumulates: bool = False
    """Does it grow with the time that is measured?"""

    def per_second(self) -> "Metric":
        """The same of each second, of what accumulates: for runs of different lengths."""
        return replace(self, unit=PER_SECOND, doc=f"{self.doc}, a second", accumulates=False)

    @property
    def title(self) -> str:
        """Its name and unit, as for an axis."""
        return f"{self.name}, {self.unit}"

    def possible(self, value: float) -> float:
        """The value, or the nearest one that is possible: where an interval ends."""
        return min(max(value, self.bounds[0]), self.bounds[1])


def _share(column: str) -> pl.Expr:
    return 100 * pl.col(column) / pl.col("elapsed_ns")


def _rate(column: str) -> pl.Expr:
    return 1e9 * pl.col(column) / pl.col("elapsed_ns")


def _per(column: str, base: pl.Expr) -> pl.Expr:
    return pl.when(base != 0).then(pl.col(column) / base)


_NO_ENTITLEMENT = "neither weights nor reservations decide alone"
_NOT_RUN = "it was never switched in"
# What was neither switched in nor waited had nothing to wait for: its wait is 0.
_SWITCHED_IN = (pl.col("executions") > 0) | (pl.col("runnable_ns") == 0)


def _wait(percentile: int, said: str) -> Metric:
    return Metric(
        f"wait_p{percentile}",
        MICROSECONDS,
        f"wait for a pCPU at one execution, {said}",
        pl.when(_SWITCHED_IN).then(pl.col(f"wait_p{percentile}_ns") / 1e3),
        "lower",
        undefined_is="it waited and was never switched in",
        undefined_is_worst=True,
    )


SPEED = ("work", "slowed_threads", "slowed_memory", "slowed_frequency")
"""Metrics of domains that say what their CPU time was worth: where nothing makes a host slower, there are none."""
_IS_SLOWED = pl.col("running_ns") != pl.col("work_ns")
_NOT_SLOWED = "nothing on this host makes it slower: all time gotten is work"


def _slowed(by: str, doc: str) -> Metric:
    lost = 100 * _per(f"slowed_{by}_ns", pl.col("running_ns"))
    return Metric(
        f"slowed_{by}",
        PERCENT,
        f"{doc}, of the time gotten",
        pl.when(_IS_SLOWED).then(lost),
        "lower",
        undefined_is=_NOT_SLOWED,
    )


DOMAIN = (
    Metric("gotten", OF_A_PCPU, "time running (XenMon: gotten)", _share("running_ns")),
    Metric(
        "work",
        OF_A_PCPU,
        "work done: the time gotten, less what is lost to shared cores, far memory and low clock rates",
        pl.when(_IS_SLOWED).then(_share("work_ns")),
        undefined_is=_NOT_SLOWED,
    ),
    _slowed("threads", "lost to busy threads of the same core"),
    _slowed("memory", "lost to memory on other nodes, or crowded"),
    _slowed("frequency", "lost to clock rates below the profile's (below 0: won by higher ones)"),
    Metric("blocked", OF_A_VCPU, "time blocked, summed over its vCPUs", _share("blocked_ns")),
    Metric("waited", OF_A_VCPU, "time runnable but waiting, summed over its vCPUs", _share("runnable_ns"), "lower"),
    Metric(
        "entitlement",
        OF_A_PCPU,
        "CPU time it is entitled to when every domain wants all it can get",
        100 * pl.col("entitlement"),
        undefined_is=_NO_ENTITLEMENT,
    ),
    Metric(
        "of_entitlement",
        PERCENT,
        "CPU time gotten, of its entitlement",
        _per("running_ns", pl.col("entitlement") * pl.col("elapsed_ns")) * 100,
        undefined_is=_NO_ENTITLEMENT,
    ),
    Metric("executions", PER_SECOND, "times a vCPU of it was switched in", _rate("executions")),
    Metric(
        "io_per_execution",
        COUNT,
        "I/O count of one execution",
        _per("io_count", pl.col("executions")),
        undefined_is=_NOT_RUN,
    ),
    Metric("context_switches", PER_SECOND, "times a vCPU of it was switched out", _rate("context_switches")),
    Metric("migrations", PER_SECOND, "times a vCPU of it changed its pCPU", _rate("migrations")),
    _wait(50, "median"),
    _wait(99, "99th percentile"),
)
"""Of a domain."""


def _response(percentile: int, said: str) -> Metric:
    return Metric(
        f"response_p{percentile}",
        MILLISECONDS,
        f"response time, {said}",
        pl.col(f"response_p{percentile}_ns") / 1e6,
        "lower",
        undefined_is="nothing was completed, or it has no response time",
        undefined_is_worst=True,
    )


APP = (
    Metric("throughput", PER_SECOND, "units of work completed", pl.col("throughput_per_s"), "higher"),
    Metric(
        "failed",
        COUNT,
        "units of work refused, dropped or late",
        pl.col("failed").cast(pl.Float64),
        "lower",
        accumulates=True,
    ),
    _response(50, "median"),
    _response(95, "95th percentile"),
    _response(99, "99th percentile"),
)
"""Of an application or a client."""

PCPU = (
    Metric("run", OF_ELAPSED, "time in which vCPUs made progress", _share("run_ns"), bounds=(0.0, 100.0)),
    Metric("idle", OF_ELAPSED, "time idle", _share("idle_ns"), bounds=(0.0, 100.0)),
    Metric(
        "overhead",
        OF_ELAPSED,
        "decisions, switches, interrupts, cold caches",
        _share("overhead_ns"),
        "lower",
        bounds=(0.0, 100.0),
    ),
    Metric("decisions", PER_SECOND, "decisions taken", _rate("decisions")),
    Metric("switches", PER_SECOND, "decisions that changed what it runs", _rate("switches")),
)
"""Of a pCPU."""


def _device(name: str, unit: Unit, doc: str, expression: pl.Expr, better: Better | None = None) -> Metric:
    return Metric(name, unit, doc, expression, better, undefined_is="it has no such device")


IO = (
    _device("received", PACKETS_PER_SECOND, "packets taken from the network interface", _rate("packets_received")),
    _device("sent", PACKETS_PER_SECOND, "packets sent through it", _rate("packets_sent")),
    _device("bytes_received", KILOBYTES_PER_SECOND, "what was received, on the link", _rate("bytes_received") / 1e3),
    _device("bytes_sent", KILOBYTES_PER_SECOND, "what was sent, on the link", _rate("bytes_sent") / 1e3),
    _device("page_exchanges", PER_SECOND, "pages that changed owner", _rate("page_exchanges")),
    _device("page_grants", PER_SECOND, "pages granted with packets sent", _rate("page_grants")),
    _device("events", PER_SECOND, "events sent to the network interface", _rate("events")),
    _device("ring_drops", PER_SECOND, "packets that found the ring full", _rate("ring_drops"), "lower"),
    _device(
        "retransmissions",
        PER_SECOND,
        "packets to it or from it that were sent again",
        _rate("retransmissions"),
        "lower",
    ),
    _device("nic_received", PACKETS_PER_SECOND, "packets taken from its NICs", _rate("nic_received")),
    _device("nic_sent", PACKETS_PER_SECOND, "packets put on their links", _rate("nic_sent")),
    _device("nic_interrupts", PER_SECOND, "interrupts that they raised", _rate("nic_interrupts")),
    _device("nic_drops", PER_SECOND, "packets that found a NIC's queue full", _rate("nic_drops"), "lower"),
    _device("disk_requests", PER_SECOND, "requests to the virtual disk", _rate("disk_requests")),
    _device("disk_read", KILOBYTES_PER_SECOND, "what was read from it", _rate("disk_read_bytes") / 1e3),
    _device("disk_written", KILOBYTES_PER_SECOND, "what was written to it", _rate("disk_written_bytes") / 1e3),
    _device("disk_grants", PER_SECOND, "pages granted for it", _rate("disk_grants")),
    _device("disk_events", PER_SECOND, "events sent to it", _rate("disk_events")),
    _device("device_requests", PER_SECOND, "requests to its disks", _rate("device_requests")),
    _device("device_merges", PER_SECOND, "those that joined one that waited", _rate("device_merges")),
    _device("device_seeks", PER_SECOND, "movements of their heads", _rate("device_seeks")),
    _device("device_interrupts", PER_SECOND, "interrupts that they raised", _rate("device_interrupts")),
    _device("device_busy", OF_ELAPSED, "time in which they had something to serve", _share("device_busy_ns")),
)
"""Of the devices of a domain."""

_WANTED = pl.col("running_ns") + pl.col("runnable_ns")
_MET = pl.when(_WANTED > 0).then(pl.col("running_ns") / _WANTED)

_HOST_OF_PCPUS = tuple(
    Metric(one.name, one.unit, f"{one.doc}, mean over the pCPUs", one.expression.mean(), one.better, one.bounds)
    for one in PCPU
)
_HOST_OF_DOMAINS = (
    Metric(
        "fairness",
        INDEX,
        "how evenly waiting is shared: Jain's index over domains of running / (running + waiting); 1: all alike",
        # Jain, Chiu, Hawe 1984, "A quantitative measure of fairness and discrimination": (sum x)^2 / (n sum x^2).
        pl.when(_MET.sum() > 0).then(_MET.sum() ** 2 / (_MET.count() * (_MET**2).sum())),
        "higher",
        bounds=(0.0, 1.0),
        undefined_is="no domain wanted to run",
    ),
)
HOST = (*_HOST_OF_PCPUS, *_HOST_OF_DOMAINS)
"""Of the whole host."""

CONTROLLER = (
    Metric("allocated", OF_A_PCPU, "mean allocation", pl.col("allocated")),
    Metric("used", OF_A_PCPU, "mean use", pl.col("used")),
    Metric("step", OF_A_PCPU, "mean change of the allocation from one interval to the next", pl.col("step"), "lower"),
    Metric("spread", PERCENT, "standard deviation of the allocation, of its mean", pl.col("spread"), "lower"),
    Metric(
        "error",
        PERCENT,
        "the scheduler's allocation error, where the domain always wants more: mean |used / allocated - 1|",
        pl.col("error"),
        "lower",
    ),
    Metric(
        "over",
        _percent("of intervals"),
        "intervals in which it used more than it was allocated",
        pl.col("over"),
        "lower",
        bounds=(0.0, 100.0),
    ),
)
"""Of the controller of a managed domain."""


def _wakeup(percentile: int, said: str) -> Metric:
    return Metric(
        f"wake_p{percentile}",
        MICROSECONDS,
        f"wait for a pCPU after waking up, {said}",
        pl.col(f"wake_p{percentile}_ns") / 1e3,
        "lower",
        undefined_is="it was never woken up",
    )


WAKEUP = (_wakeup(50, "median"), _wakeup(90, "90th percentile"))
"""Of the wake-ups of a domain, where a recording has them too."""

METRICS: Mapping[Of, tuple[Metric, ...]] = {
    "domain": DOMAIN,
    "app": APP,
    "pcpu": PCPU,
    "io": IO,
    "host": HOST,
    "controller": CONTROLLER,
    "wakeup": WAKEUP,
}
"""The registry: every metric by what it is of."""


def metric(of: Of, name: str) -> Metric:
    """The metric of that name.

    Examples:
        >>> metric("domain", "gotten").title
        'gotten, % of a pCPU'
    """
    return next(one for one in METRICS[of] if one.name == name)


RUN_KINDS: tuple[Of, ...] = ("domain", "app", "pcpu", "io", "host")
"""The kinds of things that every run has metrics of."""


# Names with dots are quoted, as in paths.
_DOMAIN = (
    pl.when(pl.col("domain").str.contains(".", literal=True))
    .then(pl.format('"{}"', "domain"))
    .otherwise(pl.col("domain"))
)
_SOURCES: Mapping[Of, tuple[str, pl.Expr]] = {
    "domain": ("domains", _DOMAIN),
    "app": ("apps", pl.col("name")),
    "pcpu": ("pcpus", pl.format("pcpu.{}", "pcpu")),
    "io": ("io", _DOMAIN),
}
"""Kind to its table, and what the thing of a row is called in addresses."""


def measured(tables: Mapping[str, Frame], of: Of, by: str = "replication") -> Frame:
    """The metrics of all things of a kind, a row for each of them and for each value of `by`.

    Args:
        tables: those of a run, or of several.
        of: the kind of thing.
        by: the column that tells rows of the same thing apart.

    Returns:
        `by`, `thing` as in addresses, and a column for each metric.
    """
    if of == "host":
        pcpus, domains = (
            tables[table].group_by(by).agg(one.expression.alias(one.name) for one in these)
            for table, these in (("pcpus", _HOST_OF_PCPUS), ("domains", _HOST_OF_DOMAINS))
        )
        names = [one.name for one in HOST]
        return pcpus.join(domains, on=by).sort(by).select(by, pl.lit("host").alias("thing"), *names)
    table, thing = _SOURCES[of]
    values = (one.expression.cast(pl.Float64).alias(one.name) for one in METRICS[of])
    return tables[table].select(by, thing.alias("thing"), *values)


SUMMARY = pl.Schema(
    {
        "address": pl.String,
        "of": pl.String,
        "thing": pl.String,
        "metric": pl.String,
        "unit": pl.String,
        "mean": pl.Float64,
        "half_width": pl.Float64,
        "n": pl.UInt32,
    }
)
"""The columns of `Run.summary`."""


def summarise(values: pl.DataFrame, of: Of, metrics: Iterable[Metric]) -> pl.DataFrame:
    """The mean of each metric of each thing over the replications.

    Args:
        values: `thing`, and a column for each metric; a row for each replication.
        of: the kind of thing.
        metrics: the metrics.

    Returns:
        Columns as in `Run.summary`.
    """
    metrics = tuple(metrics)
    rows = []
    of_things = values.group_by("thing", maintain_order=True).agg(one.name for one in metrics)
    for thing, *replications in of_things.iter_rows():
        for one, its in zip(metrics, replications, strict=True):
            interval = Interval.of(its)
            mean = interval[:3] if interval else (None, None, 0)
            rows.append((f"{thing}.{one.name}", of, thing, one.name, one.unit.text, *mean))
    return pl.DataFrame(rows, SUMMARY, orient="row")


def markdown() -> str:
    """The registry as a table for the documentation."""
    rows = [
        f"| {of} | `{one.name}` | {one.unit} | {one.better or '–'} | {one.doc} |"
        for of, metrics in METRICS.items()
        for one in metrics
    ]
    return "\n".join(["| of | metric | unit | better if | what it is |", "|---|---|---|---|---|", *rows])
