"""`vcpulab place`: the placement of domains on as few hosts as possible."""

import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab import _api
from vcpulab._files import atomic
from vcpulab._work.budget import StoppedError
from vcpulab.advice.placing.energy import Power
from vcpulab.advice.placing.placing import Placement, UnplaceableError
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, Budget, Jobs, Memory, Scenarios, Several, Slo, TableOrJson, Words, command, number
from vcpulab.cli.outputs import Writes
from vcpulab.errors import RequestError
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.as_json import as_json
from vcpulab.show.document import count

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
    margin: Annotated[float, number("Part of each resource to leave free when packing, %.", 0, below=100)] = 0.0,
    memory: Memory = None,
    idle_watts: Annotated[float, number("Power of an idle host, W; at most that of a busy one.", 0)] = Power().idle,
    busy_watts: Annotated[float, number("Power of a busy host, W.", 0)] = Power().busy,
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
        print(as_json({"interrupted": interrupted, **placed.as_data(power)}))
    else:
        page.show(placed.document(power, _tuned(files_, slo)), all=all)
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
    terminal.say(f"written to {out}: {count(len(names), 'scenario')}")


def _tuned(paths: Sequence[Path], slos: Sequence[str]) -> str:
    """The command that searches for settings with which fewer hosts may be enough."""
    wanted = [word for text in slos for word in ("--slo", text)]
    return shlex.join(["vcpulab", "tune", str(paths[0]), *wanted]) if len(paths) == 1 else "vcpulab tune"
