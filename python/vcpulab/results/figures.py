"""The figures read off a run: what each is, in which unit, and its mean with a confidence interval.

Every figure is first taken for each replication by itself; replications are independent, so the interval of the mean
over them is Student's: mean ± t(0.975, n-1) s/√n (Student 1908, "The probable error of a mean").
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

CONFIDENCE = 0.95


class Interval(NamedTuple):
    """A mean over replications and half the width of its confidence interval."""

    mean: float
    half_width: float | None
    """`None`: one value alone has no interval."""
    n: int
    """Number of replications it was taken from."""

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Interval | None":
        """The mean of these values with its 95 % confidence interval; missing values do not count.

        Returns:
            `None` if there is no value at all.

        Examples:
            >>> Interval.of([10.0, 12.0, 14.0])
            Interval(mean=12.0, half_width=4.96..., n=3)
        """
        present = [value for value in values if value is not None]
        n = len(present)
        if n == 0:
            return None
        # From the first value on, so that equal values have no width at all.
        mean = present[0] + math.fsum(value - present[0] for value in present) / n
        if n == 1:
            return cls(mean, None, 1)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in present) / (n - 1))
        return cls(mean, _t_quantile(n - 1) * deviation / math.sqrt(n), n)

    def __str__(self) -> str:
        if self.half_width is None:
            return number(self.mean)
        if self.half_width == 0:
            return f"{number(self.mean)} ± 0"
        decimals = min(_decimals(self.half_width, 2), _decimals(self.mean, 5))
        return f"{self.mean:.{decimals}f} ± {self.half_width:.{decimals}f}"


def _t_quantile(degrees: int) -> float:
    # Only this corner of scipy: the whole of scipy.stats takes half a second to import.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2))


def number(value: float) -> str:
    """The value with three significant digits.

    Examples:
        >>> number(1234.5678), number(0.0123456), number(0.0)
        ('1235', '0.0123', '0')
    """
    return f"{value:.{_decimals(value, 3)}f}" if value else "0"


def _decimals(value: float, digits: int) -> int:
    """Decimals that show so many significant digits of the value, at most 6."""
    if value == 0:
        return 6
    return max(0, min(6, digits - 1 - math.floor(math.log10(abs(value)))))


@dataclass(frozen=True)
class Figure:
    """Something read off one row of a table."""

    name: str
    unit: str
    meaning: str
    value: pl.Expr


def _share(column: str) -> pl.Expr:
    return 100 * pl.col(column) / pl.col("elapsed_ns")


def _rate(column: str) -> pl.Expr:
    return 1e9 * pl.col(column) / pl.col("elapsed_ns")


def _per(column: str, base: pl.Expr) -> pl.Expr:
    return pl.when(base != 0).then(pl.col(column) / base)


DOMAIN_FIGURES = (
    Figure("gotten", "% of a pCPU", "time running (XenMon: gotten)", _share("running_ns")),
    Figure("blocked", "% of elapsed", "time blocked, over all its vCPUs", _share("blocked_ns")),
    Figure("waited", "% of elapsed", "time runnable but waiting, over all its vCPUs", _share("runnable_ns")),
    Figure(
        "entitlement",
        "% of a pCPU",
        "CPU time it is entitled to when every domain wants all it can get",
        100 * pl.col("entitlement"),
    ),
    Figure(
        "of_entitlement",
        "%",
        "CPU time gotten, of its entitlement",
        _per("running_ns", pl.col("entitlement") * pl.col("elapsed_ns")) * 100,
    ),
    Figure("executions", "1/s", "times a vCPU of it was switched in", _rate("executions")),
    Figure("io_per_execution", "count", "I/O count of one execution", _per("io_count", pl.col("executions"))),
    Figure("context_switches", "1/s", "times a vCPU of it was switched out", _rate("context_switches")),
    Figure("migrations", "1/s", "times a vCPU of it changed its pCPU", _rate("migrations")),
    Figure("wait_p50", "µs", "wait for a pCPU at one execution, median", pl.col("wait_p50_ns") / 1e3),
    Figure("wait_p99", "µs", "the same, 99th percentile", pl.col("wait_p99_ns") / 1e3),
)

APP_FIGURES = (
    Figure("throughput", "1/s", "units of work completed", pl.col("throughput_per_s")),
    Figure("failed", "count", "units of work refused, dropped or late", pl.col("failed").cast(pl.Float64)),
    Figure("response_p50", "ms", "response time, median", pl.col("response_p50_ns") / 1e6),
    Figure("response_p95", "ms", "response time, 95th percentile", pl.col("response_p95_ns") / 1e6),
    Figure("response_p99", "ms", "response time, 99th percentile", pl.col("response_p99_ns") / 1e6),
)

PCPU_FIGURES = (
    Figure("run", "% of elapsed", "time in which vCPUs made progress", _share("run_ns")),
    Figure("idle", "% of elapsed", "time idle", _share("idle_ns")),
    Figure("overhead", "% of elapsed", "decisions, switches, interrupts, cold caches", _share("overhead_ns")),
    Figure("decisions", "1/s", "decisions taken", _rate("decisions")),
    Figure("switches", "1/s", "decisions that changed what it runs", _rate("switches")),
)

IO_FIGURES = (
    Figure("received", "packets/s", "packets taken from the network interface", _rate("packets_received")),
    Figure("sent", "packets/s", "packets sent through it", _rate("packets_sent")),
    Figure("bytes_received", "KB/s", "what was received, on the line", _rate("bytes_received") / 1e3),
    Figure("bytes_sent", "KB/s", "what was sent, on the line", _rate("bytes_sent") / 1e3),
    Figure("page_exchanges", "1/s", "pages that changed owner", _rate("page_exchanges")),
    Figure("page_grants", "1/s", "pages granted with packets sent", _rate("page_grants")),
    Figure("events", "1/s", "events sent to the network interface", _rate("events")),
    Figure("ring_drops", "1/s", "packets that found the ring full", _rate("ring_drops")),
    Figure("retransmissions", "1/s", "packets to it or from it that were sent again", _rate("retransmissions")),
    Figure("nic_received", "packets/s", "packets taken from its network cards", _rate("nic_received")),
    Figure("nic_sent", "packets/s", "packets put on their lines", _rate("nic_sent")),
    Figure("nic_interrupts", "1/s", "interrupts that they raised", _rate("nic_interrupts")),
    Figure("nic_drops", "1/s", "packets that found a card's queue full", _rate("nic_drops")),
    Figure("disk_requests", "1/s", "requests to the virtual disk", _rate("disk_requests")),
    Figure("disk_read", "KB/s", "what was read from it", _rate("disk_read_bytes") / 1e3),
    Figure("disk_written", "KB/s", "what was written to it", _rate("disk_written_bytes") / 1e3),
    Figure("disk_grants", "1/s", "pages granted for it", _rate("disk_grants")),
    Figure("disk_events", "1/s", "events sent to it", _rate("disk_events")),
    Figure("device_requests", "1/s", "requests to its disks", _rate("device_requests")),
    Figure("device_merges", "1/s", "those that joined one that waited", _rate("device_merges")),
    Figure("device_seeks", "1/s", "movements of their heads", _rate("device_seeks")),
    Figure("device_interrupts", "1/s", "interrupts that they raised", _rate("device_interrupts")),
    Figure("device_busy", "% of elapsed", "time in which they had something to serve", _share("device_busy_ns")),
)

_APP = pl.format("{} {} {}", "domain", "app", "kind")
KINDS = (
    ("domain", "domains", pl.col("domain"), DOMAIN_FIGURES),
    ("app", "apps", _APP, APP_FIGURES),
    ("pcpu", "pcpus", pl.col("pcpu").cast(pl.String), PCPU_FIGURES),
    ("io", "io", pl.col("domain"), IO_FIGURES),
)
"""What figures are of: kind, table, name of the thing, and its figures."""

_SUMMARY_SCHEMA = pl.Schema(
    {
        "of": pl.String,
        "name": pl.String,
        "figure": pl.String,
        "unit": pl.String,
        "mean": pl.Float64,
        "half_width": pl.Float64,
        "n": pl.UInt32,
    }
)


def summarise(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Every figure of every thing over the replications; columns as in `Run.summary`."""
    # A run saved by an earlier version may lack a table.
    there = [kind for kind in KINDS if kind[1] in tables]
    summary = pl.concat([summary_of(tables[table], of, name, figures) for of, table, name, figures in there])
    # Most domains have few devices.
    return summary.filter((pl.col("of") != "io") | pl.col("mean").is_not_null())


def summary_of(table: pl.DataFrame, of: str, name: pl.Expr, figures: Iterable[Figure]) -> pl.DataFrame:
    """These figures of every thing in a table over the replications; columns as in `Run.summary`."""
    figures = tuple(figures)
    rows = []
    values = table.select(name.alias("name"), *(f.value.alias(f.name) for f in figures))
    for (thing,), replications in values.group_by(["name"], maintain_order=True):
        for figure in figures:
            interval = Interval.of(replications.get_column(figure.name)) or (None, None, 0)
            rows.append((of, thing, figure.name, figure.unit, *interval))
    return pl.DataFrame(rows, _SUMMARY_SCHEMA, orient="row")


def waits(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Who made whom wait; columns as in `Run.waits`. What a domain never waited for in any replication is left out."""
    domains = tables["domains"].select("replication", "domain", "elapsed_ns", "runnable_ns")
    pairs = tables["waits"].select("domain", "by").unique(maintain_order=True)
    # In a replication without the pair it waited 0.
    each = (
        domains.join(pairs, on="domain", maintain_order="left")
        .join(tables["waits"], on=["replication", "domain", "by"], how="left")
        .with_columns(pl.col("wait_ns").fill_null(0))
    )
    rows = []
    for (domain, by), group in each.group_by(["domain", "by"], maintain_order=True):
        interval = Interval.of(group.select(_share("wait_ns")).to_series())
        of_wait = Interval.of(group.select(100 * _per("wait_ns", pl.col("runnable_ns"))).to_series())
        if interval is not None:
            rows.append((domain, by, interval.mean, of_wait and of_wait.mean, interval.half_width))
    schema = {"domain": pl.String, "by": pl.String} | dict.fromkeys(("of_elapsed", "of_wait", "half_width"), pl.Float64)
    return pl.DataFrame(rows, schema, orient="row")


def wakeups(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Waits after wake-ups over all replications: domain, cause, count per second, mean and percentiles in µs.

    Percentiles are means of those of the replications.
    """
    quantiles = ("mean", "p50", "p90", "p95", "p99")
    elapsed = tables["domains"].select("replication", "domain", "elapsed_ns")
    return (
        tables["wakeups"]
        .join(elapsed, on=["replication", "domain"], maintain_order="left")
        .group_by("domain", "cause", maintain_order=True)
        .agg(
            (1e9 * pl.col("count").sum() / pl.col("elapsed_ns").sum()).alias("per_s"),
            *((pl.col(f"{name}_ns").mean() / 1e3).alias(f"{name}_us") for name in quantiles),
            (pl.col("max_ns").max() / 1e3).alias("max_us"),
        )
        .sort("domain", maintain_order=True)
    )
