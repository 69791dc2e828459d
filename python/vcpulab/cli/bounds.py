"""`vcpulab bounds`: limits of a host by queueing analysis, without a simulation or compared with one."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vcpulab import _api
from vcpulab.advice.bounds import Bounds, Checked, check
from vcpulab.cli import files, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import All, Flag, Jobs, Replications, TableOrJson, command
from vcpulab.errors import Interrupted
from vcpulab.results.run import run
from vcpulab.results.statistics import number
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.as_json import as_json

DONE, EXCEEDED = 0, 1


@command("bounds", "vcpulab bounds web.toml", "vcpulab bounds web.toml --check --format json")
def bounds(
    file: Path,
    /,
    *,
    check: Flag = False,
    all: All = False,
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
    result = _api.bounds(scenario)
    checked, interrupted = run_or_partial(_checked, scenario, result, jobs) if check else (None, False)
    if format == "json":
        print(as_json({"interrupted": interrupted, **_as_data(result, checked)}))
    else:
        page.show(result.document(checked), all=all)
    stop(interrupted=interrupted)
    beyond = [] if checked is None else [comparison for comparison in checked if not comparison.holds]
    for comparison in beyond:
        simulated = number(comparison.simulated.mean)
        terminal.error(
            f"{comparison.name}: {comparison.what} {simulated} is beyond its bound of {number(comparison.bound)}"
        )
    return EXCEEDED if beyond else DONE


def _checked(scenario: Scenario, bounds: Bounds, jobs: int) -> list[Checked] | None:
    with terminal.progress(f"running {scenario.name}") as progress:
        try:
            return check(bounds, run(scenario, jobs=jobs, waits=False, progress=progress, keep_finished=True))
        except Interrupted as interrupted:
            raise Interrupted(check(bounds, interrupted.partial), interrupted.extent) from None
        except KeyboardInterrupt:
            # The bounds need no run.
            raise Interrupted(None) from None


def _as_data(bounds: Bounds, checked: Sequence[Checked] | None) -> dict[str, Any]:
    data = {
        "scenario": bounds.scenario,
        "loads": [{**asdict(load), "undefined": load.undefined()} for load in bounds.loads],
        "stations": [asdict(station) for station in bounds.stations],
        "method": bounds.method,
        "not_modelled": list(bounds.not_modelled),
        **({"notes": list(bounds.notes)} if bounds.notes else {}),
    }
    if checked is not None:
        data["check"] = [_row(comparison) for comparison in checked]
    return data


def _row(comparison: Checked) -> dict[str, Any]:
    undefined = {} if comparison.estimate is not None else {"estimate": "there is only a bound on it"}
    return asdict(comparison) | {
        "simulated": comparison.simulated.row(),
        "holds": comparison.holds,
        "undefined": undefined,
    }
