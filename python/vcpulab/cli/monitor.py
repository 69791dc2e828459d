"""`vcpulab monitor` and `vcpulab top`: a run as the monitors of a Xen host show it."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from vcpulab.cli import files, page, terminal
from vcpulab.cli.options import Flag, Replication, TableOrCsv, command, group, number
from vcpulab.cli.outputs import Writes
from vcpulab.results.statistics import Interval
from vcpulab.results.statistics import number as number_text
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.table import Table

if TYPE_CHECKING:
    import polars as pl

    from vcpulab.results.run import Run

Source = Annotated[Path, Parameter(help="A run that `vcpulab run --out` wrote, or a scenario file to run now.")]


def _of_xen(source: Path) -> Callable[[Scenario], None]:
    """A check that refuses scenarios of KVM hosts."""
    file = source / "scenario.toml" if source.is_dir() else source
    instead = f"vcpulab run {files.word(file)} --counters kvm"
    return lambda scenario: files.check_xen(scenario, instead)


monitor = group("monitor", "Show a run as the monitors of a Xen host would have.", "vcpulab monitor xencpu web.toml")


@command("xenmon", "vcpulab monitor xenmon web.toml --out out/xenmon", parent=monitor)
def xenmon(
    source: Source, /, *, out: Annotated[Path, Writes.FOLDER], replication: Replication = 0, prefix: str = "log"
) -> None:
    """Write XenMon's log files of a run, PREFIX-domN.log for each domain.

    Where busy siblings, far memory or low clock rates make CPU time worth less, the work done is printed beside it.

    Args:
        out: Directory to write to; files of the same names are replaced.
        prefix: First part of the files' names.
    """
    from vcpulab.hypervisors import monitors

    run = files.run_of(source, _of_xen(source))
    paths = monitors.xenmon(run, out, replication=replication, prefix=prefix)
    _show_gotten_and_work(run)
    for path in paths:
        terminal.say(f"written to {path}")


@command("xencpu", "vcpulab monitor xencpu web.toml", parent=monitor)
def xencpu(source: Source, /, *, format: TableOrCsv = "table") -> None:
    """Print CPU used by each domain, the time of its driver domain put down to it by page exchanges.

    CSV has a row for each replication.
    """
    from vcpulab.hypervisors import monitors
    from vcpulab.show.csv import csv

    used = monitors.xencpu(files.run_of(source, _of_xen(source)))
    if format == "csv":
        print(csv(used), end="")
    else:
        _show_xencpu(used)


@command("xenoprof", "vcpulab monitor xenoprof web.toml", parent=monitor)
def xenoprof(source: Source, /, *, format: TableOrCsv = "table") -> None:
    """Print busy time by domain and layer: by the profiler's samples, and in truth."""
    from vcpulab.hypervisors import monitors
    from vcpulab.show.csv import csv

    profile = monitors.xenoprof(files.run_of(source, _of_xen(source)))
    if format == "csv":
        print(csv(profile), end="")
    else:
        _show_xenoprof(profile)


@command("top", "vcpulab top web.toml --batch", "vcpulab top web.toml -b -i 2 -n -v")
def top(
    source: Source,
    /,
    *,
    batch: Annotated[Flag, Parameter(name=["--batch", "-b"])] = False,
    iterations: Annotated[
        int | None, number("Most updates to print; all if left out.", 1, name=["--iterations", "-i"])
    ] = None,
    delay: Annotated[
        float, number("Seconds between updates, of simulated time too.", 0.01, 3600, name=["--delay", "-d"])
    ] = 1.0,
    networks: Annotated[Flag, Parameter(name=["--networks", "-n"])] = False,
    vbds: Annotated[Flag, Parameter(name=["--vbds", "-x"])] = False,
    vcpus: Annotated[Flag, Parameter(name=["--vcpus", "-v"])] = False,
    repeat_header: Annotated[Flag, Parameter(name=["--repeat-header", "-r"])] = False,
    full_name: Annotated[Flag, Parameter(name=["--full-name", "-f"])] = False,
    replication: Replication = 0,
) -> None:
    """Show a run as xentop does, with its options and keys, at the pace of its own time.

    A scenario file is shown while it runs.

    Args:
        batch: Print the updates instead, one after the other.
        networks: Show the traffic of each network interface.
        vbds: Show block devices.
        vcpus: Show the CPU time of each vCPU.
        repeat_header: Repeat the headings before each domain.
        full_name: Do not cut long names.
    """
    from vcpulab._extras import require
    from vcpulab.hypervisors import xentop

    extras: dict[xentop.Extra, bool] = {
        "networks": networks,
        "vbds": vbds,
        "vcpus": vcpus,
        "repeat_header": repeat_header,
    }
    options = xentop.Options(frozenset(extra for extra, wanted in extras.items() if wanted), full_name)
    if batch:
        updates = xentop.updates(files.run_of(source, _of_xen(source)), delay_s=delay, replication=replication)
        for update in islice(updates, iterations):
            print("\n".join(xentop.table(update, options)))
        return
    require("textual", "top")
    from vcpulab.cli.top import Top

    shown = files.run_of(source) if source.is_dir() else files.load(source)
    _of_xen(source)(shown if isinstance(shown, Scenario) else shown.scenario)
    screen = Top(shown, delay_s=delay, replication=replication, options=options)
    screen.run()
    if screen.failed is not None:
        raise screen.failed


def _show_gotten_and_work(run: "Run") -> None:
    """Prints the time gotten, as XenMon counts it, next to the work done in it; nothing if both are equal."""
    import polars as pl

    from vcpulab.results.metrics import DOMAIN, Quantity
    from vcpulab.show.folded import View, folded_table

    shown = [metric for metric in DOMAIN if metric.quantity in (Quantity.CPU_TIME, Quantity.SPEED)]
    frame = run.summary().filter(pl.col("of") == "domain", pl.col("metric").is_in([metric.name for metric in shown]))
    if frame.filter(pl.col("metric") == "work")["mean"].is_not_null().any():
        title = "Time gotten, which XenMon counts, and the work done in it, which it does not see"
        page.show_table(folded_table(run.scenario, frame, title, shown, View()))


def _show_xencpu(used: "pl.DataFrame") -> None:
    """Prints the CPU time of each domain, with its share of the driver domain's."""

    def mean(domain: str, column: str, scale: float) -> str:
        return str(Interval.from_values((scale * used.filter(domain=domain)[column]).to_list()) or "–")

    columns = {"busy_s": 1, "exchanges": 1, "attributed_s": 1, "utilisation": 100}
    domains = used["domain"].unique(maintain_order=True)
    rows = [[domain, *(mean(domain, column, scale) for column, scale in columns.items())] for domain in domains]
    headings = ["domain", "busy, s", "page exchanges", "of the driver domain, s", "used, % of a pCPU"]
    page.show_table(Table("CPU used, with the driver domain's part by page exchanges", headings, rows))


def _show_xenoprof(profile: "pl.DataFrame") -> None:
    """Prints busy time by domain and layer."""

    def shown(value: float | None) -> str:
        return "–" if value is None else number_text(value)

    rows = [
        [row["domain"] or "(hypervisor)", row["layer"], *(shown(row[column]) for column in profile.columns[2:])]
        for row in profile.iter_rows(named=True)
    ]
    headings = ["domain", "layer", "samples", "estimated, %", "exact, %", "error, %"]
    page.show_table(Table("Busy time by domain and layer", headings, rows, text_columns=2))
