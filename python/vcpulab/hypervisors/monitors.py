"""Output of a Xen host's monitors for a run: XenMon's logs, xencpu and Xenoprof.

Numbers of equations are those of Benevenuto 2006 (MSc dissertation, UFMG), Section 4.3.
"""

from os import PathLike
from pathlib import Path

import polars as pl

from vcpulab._files import atomic
from vcpulab.errors import RequestError
from vcpulab.formats.xenmon import COLUMNS
from vcpulab.results.run import Run
from vcpulab.scenario.scenario import Scenario

_GROUP = ("replication", "domain")

_NO_SAMPLES = 'the run has no samples\n  hint: say `sample = "1s"` in [run] and run it again'


class NotRecordedError(RequestError):
    """A run without the samples that a monitor reads; the text names the setting to change."""


# ---- equations ----


def per_exchange(driver_ns: float, exchanges: int) -> float:
    """Time of the driver domain for one page exchange, ns: b = B(0) / N (4.6); 0 if there was none.

    Examples:
        >>> per_exchange(18e9, 9_000_000)
        2000.0
    """
    return driver_ns / exchanges if exchanges else 0.0


def utilisation(busy_ns: float, attributed_ns: float, elapsed_ns: float) -> float:
    """CPUs that a domain uses with its share of the driver domain: U(i) = (B(i) + B0(i)) / T (4.8).

    Examples:
        The worked example: 30 s of the VM and 18 s of Dom0 for it in 60 s.

        >>> utilisation(30e9, 18e9, 60e9)
        0.8
    """
    return (busy_ns + attributed_ns) / elapsed_ns


def sampled_busy_s(samples: int, cycles: int, hz: float) -> float:
    """Busy time from the samples of a hardware counter, s: B(i) = s(i) C / F (4.9).

    Examples:
        The worked example: 1000 and 500 samples at 2 GHz, 10^8 cycles apart, in 100 s.

        >>> busy = [sampled_busy_s(samples, 10**8, 2e9) for samples in (1000, 500)]
        >>> busy, sum(busy) / 100
        ([50.0, 25.0], 0.75)
    """
    return samples * cycles / hz


# ---- XenMon ----


def xenmon(run: Run, directory: str | PathLike[str], *, replication: int = 0, prefix: str = "log") -> list[Path]:
    """Writes one log file for each domain in XenMon's columns; `passed` is in ms, other times are in ns.

    As XenMon does it has a row for each sample and each pCPU that the domain ran on. A vCPU that does not run counts
    where it is assigned. Packets and requests of a domain that ran on several pCPUs are shared among these by CPU time.

    Returns:
        The files written, `PREFIX-domN.log` each.

    Raises:
        NotRecordedError: there are no samples of that replication.
        OSError: they cannot be written.
    """
    taken = samples(run, replication).with_columns(began_ns=pl.col("time_ns").min() - pl.col("elapsed_ns").first())
    on_pcpus = run.df_pcpu_samples().filter(replication=replication)
    # Of the domain as a whole XenMon needs only these.
    rows_of = on_pcpus.join(
        taken.select("time_ns", "number", "began_ns", "elapsed_ns", "io_count", all_ns="running_ns"),
        on=["time_ns", "number"],
        maintain_order="left",
    )
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for number in taken.get_column("number").unique(maintain_order=True):
        rows = rows_of.filter(number=number)
        log = directory / f"{prefix}-dom{number}.log"
        lines = (" ".join(_xenmon_cell(cell) for cell in row) for row in _xenmon_rows(rows).iter_rows())
        atomic.write(log, "# " + "\n".join([" ".join(COLUMNS), *lines]) + "\n")
        written.append(log)
    return written


def _xenmon_rows(taken: pl.DataFrame) -> pl.DataFrame:
    """The samples of one domain as XenMon logs them; per execution and per I/O is 0 where there was none."""
    elapsed = pl.col("elapsed_ns")
    taken = taken.with_columns(io=pl.col("io_count") * pl.col("running_ns") / pl.col("all_ns"))

    def per(column: str, divisor: str) -> pl.Expr:
        return pl.when(pl.col(divisor) > 0).then(pl.col(column) / pl.col(divisor)).otherwise(0.0)

    def percent(column: str) -> pl.Expr:
        return 100 * pl.col(column) / elapsed

    columns = [
        (pl.col("time_ns") - pl.col("began_ns")) / 1e6,
        pl.col("pcpu"),
        pl.col("number"),
        pl.col("running_ns").cast(pl.Float64),
        percent("running_ns"),
        per("running_ns", "executions"),
        per("allocated_ns", "executions"),
        pl.col("blocked_ns").cast(pl.Float64),
        percent("blocked_ns"),
        per("blocked_ns", "io"),
        pl.col("runnable_ns").cast(pl.Float64),
        percent("runnable_ns"),
        per("runnable_ns", "executions"),
        1e9 * pl.col("executions") / elapsed,
        pl.col("io"),
        per("io", "executions"),
    ]
    return taken.select(column.alias(name) for name, column in zip(COLUMNS, columns, strict=True))


def _xenmon_cell(cell: float) -> str:
    return str(cell) if isinstance(cell, int) else f"{cell:.3f}"


# ---- xencpu ----


def xencpu(run: Run) -> pl.DataFrame:
    """CPU used by each domain, with the time of its driver domain put down to it by page exchanges (4.5 to 4.8).

    Columns:
        replication: from 0.
        domain: the domain's name.
        busy_s: CPU time it got, B(i).
        exchanges: pages exchanged with it, N(i).
        attributed_s: time of its driver domain put down to it, B0(i); for a driver domain, what was taken from it so.
        utilisation: CPUs used with that, U(i). Its sum over the domains is that of the machine (4.4).

    Raises:
        NotRecordedError: the run has no samples.
    """
    total = samples(run).group_by(_GROUP, maintain_order=True)
    busy = total.agg(
        pl.col("running_ns").sum(), pl.col("elapsed_ns").sum(), pl.col("page_exchanges").sum().alias("exchanges")
    )
    drivers = _drivers(run)
    rows = []
    for (replication,), domains in busy.group_by("replication", maintain_order=True):
        busy_ns = dict(domains.select("domain", "running_ns").iter_rows())
        exchanges = dict(domains.select("domain", "exchanges").iter_rows())
        behind = {driver: [guest for guest in drivers if drivers[guest] == driver] for driver in drivers.values()}
        attributed = dict.fromkeys(busy_ns, 0.0)
        for driver, guests in behind.items():
            price = per_exchange(busy_ns[driver], sum(exchanges[guest] for guest in guests))
            for guest in guests:
                attributed[guest] += exchanges[guest] * price
                attributed[driver] -= exchanges[guest] * price
        for domain, elapsed_ns in domains.select("domain", "elapsed_ns").iter_rows():
            used = utilisation(busy_ns[domain], attributed[domain], elapsed_ns)
            rows.append((replication, domain, busy_ns[domain] / 1e9, exchanges[domain], attributed[domain] / 1e9, used))
    columns = ["replication", "domain", "busy_s", "exchanges", "attributed_s", "utilisation"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _drivers(run: Run) -> dict[str, str]:
    """The driver domain of each domain that has one."""
    nics = ((name, domain.nic) for name, domain in run.scenario.domains.items())
    return {name: nic.driver_domain for name, nic in nics if nic is not None and nic.driver_domain is not None}


# ---- Xenoprof ----


def xenoprof(run: Run) -> pl.DataFrame:
    """Busy time by domain and layer, by the profiler's samples and exactly, over all replications together.

    Columns:
        domain: the domain's name; null: the hypervisor's own.
        layer: as in `Run.df_profile`.
        samples: how many found it at work; null: no profiler looked.
        estimated: its share of the samples, %; null where there are none.
        exact: its share of the busy time but the profiler's own, %; the profiler's own in proportion to that; null on
            a host that was never busy.
        error: estimated less exact, of exact, %; null where there was nothing.
    """
    profile = run.df_profile()
    rows = profile.group_by("domain", "layer", maintain_order=True).agg(
        pl.when(pl.col("samples").null_count() == 0).then(pl.col("samples").sum()).alias("samples"),
        pl.col("exact_ns").sum(),
    )
    busy = pl.col("exact_ns").filter(pl.col("layer") != "profiler").sum()
    return rows.select(
        "domain",
        "layer",
        "samples",
        estimated=_percent(pl.col("samples"), pl.col("samples").sum()),
        exact=_percent(pl.col("exact_ns"), busy),
    ).with_columns(
        error=pl.when(pl.col("exact") > 0).then(100 * (pl.col("estimated") - pl.col("exact")) / pl.col("exact"))
    )


def _percent(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """A part in % of a whole; null where the whole is nothing."""
    return pl.when(whole > 0).then(100 * part / whole)


def samples(run: Run, replication: int | None = None) -> pl.DataFrame:
    """The samples of a run, or of one replication: see `Run.df_samples`.

    Raises:
        NotRecordedError: there are none.
    """
    taken = run.df_samples()
    if taken.is_empty():
        raise NotRecordedError(_NO_SAMPLES)
    if replication is None:
        return taken
    check_sampled(run.scenario, replication)
    return taken.filter(replication=replication)


def check_sampled(scenario: Scenario, replication: int) -> None:
    """Checks that a run of the scenario has samples of a replication.

    Raises:
        NotRecordedError: the run has no samples of the replication.
    """
    if scenario.model.run.sample.ns == 0:
        raise NotRecordedError(_NO_SAMPLES)
    if not 0 <= replication < scenario.replications:
        last = scenario.replications - 1
        raise NotRecordedError(f"found replication `{replication}`; allowed: an integer from 0 to {last}")
