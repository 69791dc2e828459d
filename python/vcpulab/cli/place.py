"""`vcpulab place`: the placement of domains on as few hosts as possible."""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab import _api
from vcpulab._files import atomic
from vcpulab._work.budget import StoppedError
from vcpulab.advice import core_sharing
from vcpulab.advice.capacity.slos import default_slos_in_words, on_assumed
from vcpulab.advice.placing.energy import HOURS_PER_YEAR, Power
from vcpulab.advice.placing.placing import Host, Placement, UnplaceableError
from vcpulab.advice.starvation import in_a_line
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, Budget, Jobs, Memory, Scenarios, Several, Slo, TableOrJson, Words, command
from vcpulab.cli.options import number as an_option
from vcpulab.cli.outputs import Writes
from vcpulab.cli.page import BLANK, Lines, Part
from vcpulab.errors import RequestError
from vcpulab.results.statistics import number as number_said
from vcpulab.scenario.names import listed
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table

DONE, FAILED = 0, 1


@command(
    "place",
    "vcpulab place web.toml --slo 'response_p99 < 50ms'",
    "vcpulab place web.toml --apart web,batch --out out/hosts",
)
def place(
    files_: Scenarios,
    /,
    *,
    slo: Slo = (),
    host: str | None = None,
    apart: Words = (),
    together: Words = (),
    margin: Annotated[float, an_option("Part of each resource to leave free when packing, %.", 0, below=100)] = 0.0,
    memory: Memory = None,
    idle_watts: Annotated[float, an_option("Power of an idle host, W; at most that of a busy one.", 0)] = Power().idle,
    busy_watts: Annotated[float, an_option("Power of a busy host, W.", 0)] = Power().busy,
    replications: Several = None,
    budget: Budget = 600.0,
    all: All = False,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"]), Writes.FOLDER] = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Place domains on as few equal hosts as keep objectives, judged by simulation.

    Args:
        files_: Scenario files; their domains are placed with their clients. dom0 and driver domains are on every host.
        slo: A service-level objective, such as `web.response_p99 < 50ms`, or of every client `response_p99 < 50ms`; may
            be given again. Without any: no failed requests, and a response p99 of at most 10 times that of the domain
            alone.
        host: The hosts: a hardware profile, or a scenario file whose host it is; that of the first file if left out.
        apart: Domains of which no two may be on one host: a,b; may be given again.
        together: Domains that have to be on one host: a,b; may be given again.
        memory: Memory of a host, such as 64GiB; enough for everything if left out.
        out: Write a scenario file for each host to this directory.
    """
    power = _power(idle_watts, busy_watts)
    if out is not None:
        _check_out(out)
    scenarios: dict[str, Scenario] = {}
    for path in files_:
        label = path.stem
        while label in scenarios:
            label += "x"
        scenarios[label] = files.load(path)
    try:
        with terminal.status("placing") as progress:
            placed, interrupted = run_or_partial(
                _api.place,
                scenarios,
                slo=slo,
                host=_host(host),
                together=together,
                apart=apart,
                margin=margin / 100,
                memory=memory,
                replications=replications,
                jobs=jobs,
                seconds=budget,
                progress=progress,
            )
    except (UnplaceableError, StoppedError) as error:
        terminal.error(str(error))
        return FAILED
    for note in placed.fleet.notes:
        terminal.say(note)
    if format == "json":
        print(as_json({"interrupted": interrupted, **placed.document(power)}))
    else:
        page.show(list(_parts(placed, power, _tuned(files_, slo))), all=all)
    if out is not None and placed.not_placed:
        terminal.warn("nothing is written: not everything is placed")
    elif out is not None:
        sys.stdout.flush()
        _write_hosts(placed, out)
    stop(interrupted=interrupted)
    return DONE


def _host(host: str | None) -> Scenario | str | None:
    return files.load(Path(host)) if host is not None and host.endswith(".toml") else host


def _power(idle: float, busy: float) -> Power:
    if not 0 <= idle <= busy < float("inf"):
        raise RequestError(field="idle_watts", found=f"{idle:g}", allowed="from 0, and idle is at most busy")
    return Power(idle, busy)


def _check_out(out: Path) -> None:
    """Makes sure that a directory holds nothing except hosts of an earlier placement."""
    if out.exists() and not (
        out.is_dir() and all(re.fullmatch(r"host-\d+\.toml", path.name) for path in out.iterdir())
    ):
        raise RequestError(f"{out}: there is something else", hint="another directory, or an empty one")


def _write_hosts(placed: Placement, out: Path) -> None:
    names = [f"host-{number}.toml" for number in range(1, len(placed.hosts) + 1)]
    _check_out(out)
    for name, host in zip(names, placed.hosts, strict=True):
        atomic.write(out / name, host.scenario.to_toml())
    for path in out.iterdir():
        if path.name not in names:
            path.unlink()  # of a placement on more hosts
    terminal.say(f"written to {out}: {len(names)} scenario{'s' if len(names) > 1 else ''}")


def _where(host: Host) -> str:
    """The domains of a host, by the nodes that they prefer."""
    on_nodes = {name for names in host.nodes.values() for name in names}
    rest = [name for name in host.domains if name not in on_nodes]
    by_node = [f"node {node}: {', '.join(listed(names))}" for node, names in host.nodes.items()]
    return "; ".join([*by_node, *([", ".join(listed(rest))] if rest else [])])


def _tuned(paths: Sequence[Path], slos: Sequence[str]) -> str:
    """The command that searches for settings with which fewer hosts may be enough."""
    wanted = [word for text in slos for word in ("--slo", text)]
    return shlex.join(["vcpulab", "tune", str(paths[0]), *wanted]) if len(paths) == 1 else "vcpulab tune"


def _parts(placed: Placement, power: Power, tune: str) -> Iterator[Part]:
    starved = [
        in_a_line(host.starved, f"starved on host-{number}")
        for number, host in enumerate(placed.hosts, 1)
        if host.starved
    ]
    domains = sum(len(host.domains) for host in placed.hosts)
    hosts = _count(len(placed.hosts), "host")
    yield page.items([[Lines([line])] for line in starved], "line of who starves", least=1)
    left = [f"not placed: {', '.join(listed(placed.not_placed))}"] if placed.not_placed else []
    yield page.always(
        Lines(
            [
                f"{_count(domains, 'domain')} on {hosts}; one host each would be {len(placed.alone)}",
                *left,
                f"{placed.least}; {_count(placed.runs, 'host')} simulated",
                *([f"before another host, look for other settings: {tune}"] if placed.refused else []),
            ]
        )
    )
    reasons = [f"SLOs, as none were given: {default_slos_in_words('of the domain alone')}"] if placed.by_default else []
    if placed.needs:
        most = ", ".join(f"{name} {total:.2f}" for name, total in list(placed.needs.items())[:3])
        reasons.append(f"all needs together, in hosts: {most}")
    if placed.without_slos:
        names = ", ".join(listed(placed.without_slos))
        reasons.append(f"no SLO is on {names}: no CPU time is kept free for that, it gets what is left of a host")
    for host in placed.hosts:
        reasons += on_assumed(host.scenario, [judged.slo for judged in host.judged])
    reasons += core_sharing.notes(placed.fleet.base.to_dict())
    yield page.items([[Lines([line])] for line in reasons], "line of reasons", rank=1)
    refused = [
        f"not on one host: {', '.join(listed(refused_set.names))}: {refused_set.reason}"
        for refused_set in placed.refused
    ]
    yield page.items([[Lines([line])] for line in refused], "refused set", soon=_REFUSED_SOON, rank=3)
    yield page.always(BLANK)
    rows = [
        [
            f"host-{number}",
            _where(host),
            "–" if host.tightest is None else f"{host.tightest.slo}: {host.tightest.interval}",
            "–" if not host.stations else f"{host.stations[0].name}, {100 * host.stations[0].used:.0f} %",
            number_said(100 * host.used),
            number_said(power.draws(host.used)),
        ]
        for number, host in enumerate(placed.hosts, 1)
    ]
    headings = ["host", "domains", "tightest SLO", "nearest to full", "pCPUs busy, %", "draws, W"]
    below = [[f"{host}: {domains}\n  {slo}\n  {station}", *numbers] for host, domains, slo, station, *numbers in rows]
    narrower = Table("Hosts", ["host: domains, tightest SLO, nearest to full", *headings[4:]], below, together=True)
    yield page.rows(Table("Hosts", headings, rows, text_columns=4, together=True, narrower=narrower), "host")
    watts = placed.watts(power)
    too_few = ", too few as set" if placed.proven and len(placed.today) < len(placed.hosts) else ""
    energy = [
        [label, str(hosts), number_said(watts[key]), number_said(watts[key] * HOURS_PER_YEAR / 1000)]
        for label, key, hosts in (
            ("placed so", "placed", len(placed.hosts)),
            ("one host for each", "alone", len(placed.alone)),
            (f"as the files are{too_few}", "today", len(placed.today)),
        )
        if hosts
    ]
    title = f"Energy, if a host draws {power.idle:g} W idle and {power.busy:g} W busy, and a straight line between"
    yield page.rows(Table(title, ["", "hosts", "W", "kWh/year"], energy), "row of energy", rank=2)


_REFUSED_SOON = 8
"""The number of refused sets that are shown before other parts grow."""


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
