"""The document of a run: the metrics of domains, applications and pCPUs, and who made whom wait."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import polars as pl

from vcpulab.advice.shared_parts import caution_part
from vcpulab.advice.starvation import in_a_line, starved
from vcpulab.hypervisors.counters import COUNTERS, Tool, counted
from vcpulab.results.metrics import IO, Metric, Width, summarise
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.topology import Topology
from vcpulab.show.document import BLANK, Block, Lines, Part, Version, count
from vcpulab.show.folded import View, folded_table, things
from vcpulab.show.table import Table

_WAITS_SHORT = 6
"""The largest number of domains for which the table of waits is shown by default, if the page has room."""


def document(
    run: Run, tool: Tool | None = None, waits: bool | None = None, *, io: bool = False, view: View = View()
) -> Iterator[Part]:
    """The document of a run: all metrics, or the most important ones that fit on a page.

    Args:
        run: the run.
        tool: the tool whose counters are also shown.
        waits: whether to show the table of waits; `None`: if it is short and the page has room.
        io: whether to show the traffic of the domains' devices.
        view: the domains and metrics to show.
    """
    starving = starved(run)
    yield Part.always(*_heading(run), *([Lines([in_a_line(starving)]), BLANK] if starving else []))
    shown, hint = _tables(run, view)
    for thing, table in shown.items():
        yield Part.rows(table, _CALLED[thing], rounds=(0, _ROWS_SOON))
    yield Part(lambda _, width: Version([Lines([hint(width)])] if hint(width) else []), page=())
    yield caution_part(run.scenario)
    if io:
        yield _requested(_io(run, view), "row of I/O")
    if tool is not None:
        counters = COUNTERS[tool]
        values = summarise(_in_counters(run, counters), "domain", counters)
        title = f"Domains, in the counters of {tool}"
        table = folded_table(run.scenario, values, title, counters, view).stacked()
        yield _requested(table, f"row of {tool}'s counters")
    few = run.df_domains()["domain"].n_unique() <= _WAITS_SHORT
    if waits or (waits is None and few):
        for table in (*_waits(run), *_wakeups(run)):
            # Without the option, the table is shown if the page has room for all of it.
            yield _requested(table, "row of waits") if waits else Part.alternatives(Version(), Version([table]))


_CALLED = {"domain": "domain", "app": "application", "pcpu": "pCPU"}


def _requested(table: Table, called: str) -> Part:
    """A table that an option asks for: its first rows come before all other parts."""
    return Part.rows(table, called, rounds=(0, _ROWS_SOON), rank=-1)


_ROWS_SOON = 8
"""The number of rows of each table of a run that are shown before more rows of any, or more columns."""


def _heading(run: Run) -> list[Block]:
    """Lines on the scenario of a run."""
    scenario = run.scenario
    host = scenario.host
    topology, replications = Topology.from_host(host), count(scenario.replications, "replication")
    pcpus = count(host.pcpus, "pCPU") if topology.is_flat else str(topology)
    scheduler = f"{host.scheduler} {host.generation}"
    pools = "".join(
        f", {pool.scheduler} {pool.generation} in {name} ({pool.pcpus})" for name, pool in scenario.pools.items()
    )
    lines = [
        f"{scenario.name}: {scheduler}{pools}, {pcpus}, profile {host.profile}",
        f"{scenario.length_in_words}, {replications}, seed {scenario.seed}; mean ± 95 % confidence interval",
    ]
    return [Lines(lines), BLANK]


def _tables(run: Run, view: View) -> tuple[dict[str, Table], Callable[[int], str]]:
    """The tables of a run, narrower ones with fewer metrics, and the hint that shows the rest in a terminal's width."""
    kinds = list(things(run, view))
    widths = [Width.FULL] if view.all or view.only is not None else list(Width)
    shown: dict[str, Table] = {}
    for kind in kinds:
        table = None
        for width in widths:
            table = replace(kind.table(width).stacked(), narrower=table)
        if table is not None:
            shown[kind.heading] = table

    def hint(width: int) -> str:
        if any(kind.folded for kind in kinds):
            return "Every one: --all; some of them: --only 'GLOB'; the most first: --sort METRIC"
        return "Every metric: --all" if any(table.suited(width) is not table for table in shown.values()) else ""

    return shown, hint


def _io(run: Run, view: View) -> Table:
    """The table of I/O, without metrics that are 0 for all domains."""
    io = run.summary().filter(of="io")
    seen = set(io.filter(pl.col("mean") != 0)["metric"])
    metrics = [metric for metric in IO if metric.name in seen]
    return folded_table(run.scenario, io, "I/O", metrics, view).stacked()


def _in_counters(run: Run, counters: Sequence[Metric]) -> pl.DataFrame:
    """The counters of another tool for each domain and replication."""
    return counted(run).select(
        pl.col("domain").alias("thing"), *(counter.expression.alias(counter.name) for counter in counters)
    )


def _waits(run: Run) -> Iterator[Table]:
    """A row for each domain that waited, a column for each thing it waited for."""
    if run.not_attributed is not None or (frame := run.df_wait_shares()).is_empty():
        return
    order = [*run.df_domains()["domain"].unique(maintain_order=True), "idle", "hypervisor"]
    by = [name for name in order if name in frame["by"]]
    cells = {
        (row["domain"], row["by"]): str(Interval(row["of_elapsed"], row["half_width"], run.scenario.replications))
        for row in frame.iter_rows(named=True)
    }
    rows = [
        [domain, *(cells.get((domain, cause), "–") for cause in by)] for domain in order if domain in frame["domain"]
    ]
    yield Table("Who made whom wait: wait of the domain by what ran, % of elapsed", ["domain", *by], rows)


def _wakeups(run: Run) -> Iterator[Table]:
    frame = run.df_wakeup_means()
    if frame.is_empty():
        return
    headings = [
        "domain",
        "woken by",
        *(name.replace("_us", ", µs").replace("per_s", "1/s") for name in frame.columns[2:]),
    ]
    rows = [[domain, cause, *map(number, values)] for domain, cause, *values in frame.iter_rows()]
    yield Table("Wait for a pCPU after waking up", headings, rows, 2).stacked()
