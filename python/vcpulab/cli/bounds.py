"""`vcpulab bounds`: limits of a host by queueing analysis, without a simulation or compared with one."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vcpulab import verbs
from vcpulab.advice.bounds import Bounds, Checked, check
from vcpulab.cli import files, terminal, views
from vcpulab.cli.interrupting import so_far, stop
from vcpulab.cli.options import Flag, Jobs, Replications, TableOrJson, command
from vcpulab.errors import Interrupted
from vcpulab.results.run import run
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.table import Table

DONE, EXCEEDED = 0, 1
_LOADS_WIDE = 4
"""Most loads that have a column each in the table of stations."""


@command("bounds", "vcpulab bounds web.toml", "vcpulab bounds web.toml --check --format json")
def bounds(
    file: Path,
    /,
    *,
    check: Flag = False,
    replications: Replications = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Bound the load that a host can carry, by queueing analysis, and name the bottleneck.

    Bounds hold whatever the scheduler does; estimates are those of a host without overhead that shares its CPUs evenly.

    Args:
        file: Scenario file.
        check: Also run the scenario, and fail if a result is beyond a bound.
    """
    scenario = files.with_run(files.load(file), replications=replications)
    found = verbs.bounds(scenario)
    checked, interrupted = so_far(_checked, scenario, found, jobs) if check else (None, False)
    if format == "json":
        print(json.dumps(_document(found, checked), indent=2))
    else:
        _tables(found, checked)
    stop(interrupted=interrupted)
    beyond = [] if checked is None else [one for one in checked if not one.holds]
    for one in beyond:
        simulated = number(one.simulated.mean)
        terminal.error(f"{one.name}: {one.what} {simulated} is beyond its bound of {number(one.bound)}")
    return EXCEEDED if beyond else DONE


def _checked(scenario: Scenario, found: Bounds, jobs: int) -> list[Checked] | None:
    with terminal.progress(f"running {scenario.name}") as progress:
        try:
            return check(found, run(scenario, jobs=jobs, waits=False, progress=progress, so_far=True))
        except Interrupted as interrupted:
            raise Interrupted(check(found, interrupted.so_far), interrupted.said) from None
        except KeyboardInterrupt:
            # The bounds need no run.
            raise Interrupted(None) from None


# ---- JSON ----


def _document(found: Bounds, checked: Sequence[Checked] | None) -> dict[str, Any]:
    document = {
        "scenario": found.scenario,
        "loads": [asdict(one) for one in found.loads],
        "stations": [asdict(one) for one in found.stations],
        "method": found.method,
        "not_modelled": list(found.not_modelled),
    }
    if checked is not None:
        document["check"] = [asdict(one) | {"simulated": one.simulated.row(), "holds": one.holds} for one in checked]
    finite: dict[str, Any] = _finite(document)
    return finite


def _finite(value: Any) -> Any:
    """JSON knows no infinity: what has no end is `null`."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---- tables ----

_LIMITED = {"rate": "nothing: all is served", "customers": "its own users, or tasks"}


def _tables(found: Bounds, checked: Sequence[Checked] | None) -> None:
    if found.loads:
        print(f"{found.scenario}: bounds, and estimates by {found.method}\n")
        _show_loads(found)
        _show_stations(found)
    else:
        print(f"{found.scenario}: nothing in it makes work that can be bounded\n")
    if checked:
        _show_check(checked)
    print("Not modelled:")
    for what in found.not_modelled:
        print(f"  {what}")


def _show_loads(found: Bounds) -> None:
    rows = [
        [
            one.name,
            _LIMITED.get(one.bottleneck, one.bottleneck),
            number(one.throughput_max),
            number(one.throughput),
            _ms(one.response_min_s),
            _ms(one.response_s),
        ]
        for one in found.loads
    ]
    headings = ["load", "limited by", "at most,\n1/s", "estimate,\n1/s", "response,\nat least, ms", "estimate,\nms"]
    views.show_table(Table("Loads: bounds, and estimates", headings, rows, text_columns=2))


def _show_stations(found: Bounds) -> None:
    wide = found.loads[:_LOADS_WIDE]
    rows = [
        [
            one.name,
            f"{one.servers:g}",
            *(_us(load.demands.get(one.name)) for load in wide),
            f"{100 * one.asked:.1f}",
        ]
        for one in found.stations
        if one.asked > 0
    ]
    headings = ["station", "servers", *(f"{load.name},\nµs" for load in wide), "busy,\n%"]
    views.show_table(Table("Stations: least service of one unit of work", headings, rows))
    busiest = found.stations[0].asked
    if busiest > 1 + 1e-9:
        print("More than 100 %: the loads cannot all have their bounds at once;", end=" ")
        print(f"in these proportions, at most {100 / busiest:.1f} % of them.\n")


_CHECKED = {"throughput": ("throughput, 1/s", 1.0), "response": ("response, ms", 1e3), "busy": ("busy, %", 100.0)}


def _show_check(checked: Sequence[Checked]) -> None:
    rows = []
    for one in checked:
        what, scale = _CHECKED[one.what]
        interval = one.simulated
        half_width = None if interval.half_width is None else scale * interval.half_width
        shown = interval._replace(mean=scale * interval.mean, half_width=half_width)
        side = ">=" if one.what == "response" else "<="
        estimate = "" if one.estimate is None else _finite_number(scale * one.estimate)
        verdict = "holds" if one.holds else "exceeded"
        rows.append([one.name, what, str(shown), f"{side} {number(scale * one.bound)}", estimate, verdict])
    headings = ["", "what", "simulated", "bound", "estimate", ""]
    views.show_table(Table("Simulated, beside bound and estimate", headings, rows, text_columns=2, together=True))


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else _finite_number(1e3 * seconds)


def _us(seconds: float | None) -> str:
    return "–" if seconds is None else number(1e6 * seconds)


def _finite_number(value: float) -> str:
    return number(value) if math.isfinite(value) else "grows"
