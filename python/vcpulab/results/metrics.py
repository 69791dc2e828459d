"""The metrics, each declared once.

A metric has a name, a description, a unit, a good direction, a range of possible values, and an expression over the
tables of a run. Tables, charts, SLOs, goals, comparisons, sweeps and messages use these declarations.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum, auto
from typing import Literal, TypeVar

import polars as pl

from vcpulab.results.statistics import Interval

Better = Literal["higher", "lower"]
ThingKind = Literal["domain", "app", "pcpu", "io", "host", "controller", "wakeup"]
"""The kind of a measured thing; `app`: an application or a client, `io`: devices of a domain, `wakeup`: wake-ups."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


@dataclass(frozen=True)
class Unit:
    """A unit of measurement."""

    text: str
    """The unit as it is shown."""
    written: Mapping[str, float] = field(default_factory=lambda: {"": 1.0})
    """The suffixes of values that users write, each with its factor; a value without a suffix is in this unit."""
    whole: float | None = None
    """The whole that differences are a fraction of: 100 for percentages, 1 for an index; `None`: the value itself."""

    def __str__(self) -> str:
        return self.text


def _percent(base: str = "") -> Unit:
    return Unit(f"% {base}".rstrip(), {"": 1.0, "%": 1.0}, whole=100.0)


OF_A_PCPU = _percent("of a pCPU")
OF_A_VCPU = _percent("of a vCPU")
"""Percent of the time of one vCPU: a domain with several vCPUs may have more than 100."""
OF_ELAPSED = _percent("of elapsed")
PERCENT = _percent()
MICROSECONDS = Unit("µs", {"": 1.0, "ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6})
MILLISECONDS = Unit("ms", {"": 1.0, "ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3})
PER_SECOND = Unit("1/s", {"": 1.0, "/s": 1.0, "1/s": 1.0, "req/s": 1.0})
PACKETS_PER_SECOND = Unit("packets/s")
KILOBYTES_PER_SECOND = Unit("KB/s")
COUNT = Unit("count")
INDEX = Unit("index", whole=1.0)


class Quantity(Enum):
    """The quantity that a metric measures, where advice and defaults depend on it."""

    OTHER = auto()
    CPU_TIME = auto()
    SPEED = auto()
    """The work that is done in CPU time, and what is lost; undefined where nothing makes the host slower."""
    WAITING_TIME = auto()
    FAIRNESS = auto()
    THROUGHPUT = auto()
    FAILURES = auto()
    RESPONSE_TIME = auto()


class Width(IntEnum):
    """The width of a table of metrics; wider tables have more of them."""

    NARROWEST = auto()
    NARROW = auto()
    FULL = auto()


@dataclass(frozen=True, eq=False)
class Metric:
    """A number that is measured for each thing of a kind, in each replication."""

    name: str
    unit: Unit
    doc: str
    """The description, a phrase."""
    expression: pl.Expr
    """The value, computed from a row of the table of the kind; for the host, from all rows."""
    better: Better | None = None
    """The good direction; `None`: it has none, such as CPU time."""
    bounds: tuple[float, float] = (0.0, math.inf)
    """The range of possible values, both ends included."""
    undefined_is: str = "nothing was measured"
    """The reason for a missing value."""
    undefined_is_worst: bool = False
    """`True`: a missing value is worse than any value, such as the wait of a vCPU that never runs."""
    accumulates: bool = False
    """`True`: the value grows with the measured time."""
    quantity: Quantity = Quantity.OTHER
    percentile: int | None = None
    """The percentile of a distribution; `None`: not a percentile."""
    judged: bool = False
    """`True`: owners judge their clients and applications by it."""
    shown_from: Width = Width.FULL
    """The narrowest tables that have the metric."""

    def per_second(self) -> "Metric":
        """An accumulating metric per second, to compare runs of different lengths."""
        return replace(self, unit=PER_SECOND, doc=f"{self.doc}, a second", accumulates=False)

    @property
    def title(self) -> str:
        """Name and unit, as the title of an axis."""
        return f"{self.name}, {self.unit}"

    @property
    def is_response(self) -> bool:
        """Whether the metric is a response time."""
        return self.quantity is Quantity.RESPONSE_TIME

    @property
    def is_judged_response(self) -> bool:
        """Whether the metric is the response time that owners judge by: users notice when it is long."""
        return self.judged and self.is_response

    def possible(self, value: float) -> float:
        """The value clamped to the possible values, as the end of an interval."""
        return min(max(value, self.bounds[0]), self.bounds[1])


def _share(column: str) -> pl.Expr:
    return 100 * pl.col(column) / pl.col("elapsed_ns")


def _rate(column: str) -> pl.Expr:
    return 1e9 * pl.col(column) / pl.col("elapsed_ns")


def _per(column: str, base: pl.Expr) -> pl.Expr:
    return pl.when(base != 0).then(pl.col(column) / base)


_NO_ENTITLEMENT = "neither weights nor reservations decide alone"
_NOT_RUN = "it was never switched in"
# A domain that was neither switched in nor waited had nothing to wait for: its wait is 0.
_SWITCHED_IN = (pl.col("executions") > 0) | (pl.col("runnable_ns") == 0)


def _wait(percentile: int, statistic: str, shown_from: Width = Width.FULL) -> Metric:
    return Metric(
        f"wait_p{percentile}",
        MICROSECONDS,
        f"wait for a pCPU at one execution, {statistic}",
        pl.when(_SWITCHED_IN).then(pl.col(f"wait_p{percentile}_ns") / 1e3),
        "lower",
        undefined_is="it waited and was never switched in",
        undefined_is_worst=True,
        percentile=percentile,
        shown_from=shown_from,
    )


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
        quantity=Quantity.SPEED,
    )


DOMAIN = (
    Metric(
        "gotten",
        OF_A_PCPU,
        "time running (XenMon: gotten)",
        _share("running_ns"),
        quantity=Quantity.CPU_TIME,
        shown_from=Width.NARROW,
    ),
    Metric(
        "work",
        OF_A_PCPU,
        "work done: the time gotten, less what is lost to shared cores, far memory and low clock rates",
        pl.when(_IS_SLOWED).then(_share("work_ns")),
        undefined_is=_NOT_SLOWED,
        quantity=Quantity.SPEED,
        shown_from=Width.NARROW,
    ),
    _slowed("threads", "lost to busy threads of the same core"),
    _slowed("memory", "lost to memory on other nodes, or crowded"),
    _slowed("frequency", "lost to clock rates below the profile's (below 0: won by higher ones)"),
    Metric("blocked", OF_A_VCPU, "time blocked, summed over its vCPUs", _share("blocked_ns")),
    Metric(
        "waited",
        OF_A_VCPU,
        "time runnable but waiting, summed over its vCPUs",
        _share("runnable_ns"),
        "lower",
        quantity=Quantity.WAITING_TIME,
        shown_from=Width.NARROWEST,
    ),
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
    _wait(99, "99th percentile", Width.NARROWEST),
)
"""The metrics of a domain."""


def _response(percentile: int, statistic: str, *, judged: bool = False) -> Metric:
    return Metric(
        f"response_p{percentile}",
        MILLISECONDS,
        f"response time, {statistic}",
        pl.col(f"response_p{percentile}_ns") / 1e6,
        "lower",
        undefined_is="nothing was completed, or it has no response time",
        undefined_is_worst=True,
        quantity=Quantity.RESPONSE_TIME,
        percentile=percentile,
        judged=judged,
        shown_from=Width.NARROWEST if judged else Width.FULL,
    )


APP = (
    Metric(
        "throughput",
        PER_SECOND,
        "units of work completed",
        pl.col("throughput_per_s"),
        "higher",
        quantity=Quantity.THROUGHPUT,
        judged=True,
        shown_from=Width.NARROWEST,
    ),
    Metric(
        "failed",
        COUNT,
        "units of work refused, dropped or late",
        pl.col("failed").cast(pl.Float64),
        "lower",
        accumulates=True,
        quantity=Quantity.FAILURES,
        judged=True,
        shown_from=Width.NARROW,
    ),
    _response(50, "median"),
    _response(95, "95th percentile"),
    _response(99, "99th percentile", judged=True),
)
"""The metrics of an application or a client."""

PCPU = (
    Metric(
        "run",
        OF_ELAPSED,
        "time in which vCPUs made progress",
        _share("run_ns"),
        bounds=(0.0, 100.0),
        shown_from=Width.NARROWEST,
    ),
    Metric("idle", OF_ELAPSED, "time idle", _share("idle_ns"), bounds=(0.0, 100.0), shown_from=Width.NARROWEST),
    Metric(
        "overhead",
        OF_ELAPSED,
        "decisions, switches, interrupts, cold caches",
        _share("overhead_ns"),
        "lower",
        bounds=(0.0, 100.0),
        shown_from=Width.NARROW,
    ),
    Metric("decisions", PER_SECOND, "decisions taken", _rate("decisions")),
    Metric("switches", PER_SECOND, "decisions that changed what it runs", _rate("switches")),
)
"""The metrics of a pCPU."""


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
"""The metrics of the devices of a domain."""

_WANTED = pl.col("running_ns") + pl.col("runnable_ns")
_MET = pl.when(_WANTED > 0).then(pl.col("running_ns") / _WANTED)

_HOST_OF_PCPUS = tuple(
    Metric(pcpu.name, pcpu.unit, f"{pcpu.doc}, mean over the pCPUs", pcpu.expression.mean(), pcpu.better, pcpu.bounds)
    for pcpu in PCPU
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
        quantity=Quantity.FAIRNESS,
    ),
)
HOST = (*_HOST_OF_PCPUS, *_HOST_OF_DOMAINS)
"""The metrics of the whole host."""

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
"""The metrics of the controller of a managed domain."""


def _wakeup(percentile: int, statistic: str) -> Metric:
    return Metric(
        f"wake_p{percentile}",
        MICROSECONDS,
        f"wait for a pCPU after waking up, {statistic}",
        pl.col(f"wake_p{percentile}_ns") / 1e3,
        "lower",
        undefined_is="it was never woken up",
        percentile=percentile,
    )


WAKEUP = (_wakeup(50, "median"), _wakeup(90, "90th percentile"))
"""The metrics of the wake-ups of a domain, where a recording has them too."""

METRICS: Mapping[ThingKind, tuple[Metric, ...]] = {
    "domain": DOMAIN,
    "app": APP,
    "pcpu": PCPU,
    "io": IO,
    "host": HOST,
    "controller": CONTROLLER,
    "wakeup": WAKEUP,
}
"""The registry: every metric by the kind of thing it measures."""


def metric(kind: ThingKind, name: str) -> Metric:
    """The metric with a name, of a kind of thing.

    Examples:
        >>> metric("domain", "gotten").title
        'gotten, % of a pCPU'
    """
    return next(entry for entry in METRICS[kind] if entry.name == name)


RUN_KINDS: tuple[ThingKind, ...] = ("domain", "app", "pcpu", "io", "host")
"""The kinds of things with metrics in every run."""


# Names with dots are quoted, as in paths.
_DOMAIN = (
    pl.when(pl.col("domain").str.contains(".", literal=True))
    .then(pl.format('"{}"', "domain"))
    .otherwise(pl.col("domain"))
)
_SOURCES: Mapping[ThingKind, tuple[str, pl.Expr]] = {
    "domain": ("domains", _DOMAIN),
    "app": ("apps", pl.col("name")),
    "pcpu": ("pcpus", pl.format("pcpu.{}", "pcpu")),
    "io": ("io", _DOMAIN),
}
"""The table of each kind, and the name of a row's thing in addresses."""


def measured(tables: Mapping[str, Frame], kind: ThingKind, by: str = "replication") -> Frame:
    """The metrics of all things of a kind, a row for each thing and each value of `by`.

    Args:
        tables: the tables of a run, or of several runs.
        kind: the kind of thing.
        by: the column that distinguishes rows of the same thing.

    Returns:
        `by`, `thing` as in addresses, and a column for each metric.
    """
    if kind == "host":
        pcpus, domains = (
            tables[table].group_by(by).agg(metric.expression.alias(metric.name) for metric in metrics)
            for table, metrics in (("pcpus", _HOST_OF_PCPUS), ("domains", _HOST_OF_DOMAINS))
        )
        names = [metric.name for metric in HOST]
        return pcpus.join(domains, on=by).sort(by).select(by, pl.lit("host").alias("thing"), *names)
    table, thing = _SOURCES[kind]
    values = (metric.expression.cast(pl.Float64).alias(metric.name) for metric in METRICS[kind])
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


def summarise(values: pl.DataFrame, kind: ThingKind, metrics: Iterable[Metric]) -> pl.DataFrame:
    """The mean of each metric of each thing over the replications.

    Args:
        values: `thing`, and a column for each metric; a row for each replication.
        kind: the kind of thing.
        metrics: the metrics.

    Returns:
        Columns as in `Run.summary`.
    """
    metrics = tuple(metrics)
    rows = []
    of_things = values.group_by("thing", maintain_order=True).agg(metric.name for metric in metrics)
    for thing, *replications in of_things.iter_rows():
        for metric, per_replication in zip(metrics, replications, strict=True):
            interval = Interval.from_values(per_replication)
            mean = interval[:3] if interval else (None, None, 0)
            rows.append((f"{thing}.{metric.name}", kind, thing, metric.name, metric.unit.text, *mean))
    return pl.DataFrame(rows, SUMMARY, orient="row")


def markdown() -> str:
    """The registry as a table for the documentation."""
    rows = [
        f"| {kind} | `{metric.name}` | {metric.unit} | {metric.better or '–'} | {metric.doc} |"
        for kind, metrics in METRICS.items()
        for metric in metrics
    ]
    return "\n".join(["| of | metric | unit | better if | what it is |", "|---|---|---|---|---|", *rows])
