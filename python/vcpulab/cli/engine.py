"""`vcpulab schedulers`, `profile`, `schema`, `bench`, `completion`: contents of the engine, its speed, and shells."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab.cli import files, terminal
from vcpulab.cli.options import Force, Out, TableOrJson, command, group, number
from vcpulab.cli.outputs import written
from vcpulab.errors import RequestError
from vcpulab.plugins import offered
from vcpulab.policy import ENTRY_POINTS, OwnPolicy, Policies
from vcpulab.scenario.catalogue import profiles as all_profiles
from vcpulab.scenario.catalogue import schedulers as all_schedulers
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table


@command("schedulers", "vcpulab schedulers", "vcpulab schedulers rtds", "vcpulab schedulers --format json")
def schedulers(name: str | None = None, /, *, format: TableOrJson = "table") -> None:
    """List the schedulers, their generations and parameters.

    Args:
        name: Only this one; it may be a policy in a file, FILE.py:CLASS.
    """
    from vcpulab.cli import views

    listed = all_schedulers()
    if name is not None:
        listed = [scheduler for scheduler in listed if scheduler["name"] == name]
        own = [] if listed else Policies(Path())(name)
        if isinstance(own, OwnPolicy):
            listed = [json.loads(_engine.declare(own))]
        elif not listed:
            names = [*(scheduler["name"] for scheduler in all_schedulers()), *own]
            raise RequestError(found=name, allowed=f"one of {', '.join(names)}, or FILE.py:CLASS")
    if format == "json":
        print(as_json(listed))
    else:
        views.show_schedulers(listed)
        if name is None and (names := offered(ENTRY_POINTS)):
            print(f"offered by installed packages: {', '.join(names)}")


profile = group(
    "profile",
    "Hardware profiles: the cost of everything on a machine, and its source.",
    "vcpulab profile list",
    "vcpulab profile show generic",
)


@command("list", "vcpulab profile list", parent=profile)
def list_profiles(*, format: TableOrJson = "table") -> None:
    """List the built-in profiles; JSON has all constants."""
    from vcpulab.cli import page

    if format == "json":
        print(_engine.profiles())
    else:
        page.show_table(
            Table("", ["profile", "machine"], [[p["name"], p["doc"]] for p in all_profiles()], text_columns=2)
        )


@command("show", "vcpulab profile show lp200r", parent=profile)
def show_profile(name: str, /, *, format: TableOrJson = "table") -> None:
    """Show every constant of a profile: value, kind of evidence, and source.

    Args:
        name: A built-in profile, or a file (*.toml).
    """
    from vcpulab.cli import views

    constants = _profile(name)
    if format == "json":
        print(as_json(constants))
    else:
        views.show_profile(constants)


@command("measure", "vcpulab profile measure --out this-machine.toml", parent=profile)
def measure_profile(*, base: str = "generic", out: Out = None, force: Force = False) -> None:
    """Measure this machine's context switches, caches, shared cores and remote memory, and make a profile of them.

    Args:
        base: The profile to take everything else from: a built-in one, or a file (*.toml).
        out: Write the profile to this file instead of printing it.
    """
    from vcpulab.cli import views
    from vcpulab.scenario.measured import measure

    files.check_new(out, force=force)
    measured = measure(_profile(base))
    for constant, reason in measured.missing.items():
        terminal.warn(f"{constant}: not measured: {reason}")
    if out is None:
        print(measured.text, end="")
        return
    views.show_measured(measured.constants)
    sys.stdout.flush()
    atomic.write(out, measured.text)
    terminal.say(f'written to {out}\n  hint: profile = "{out.name}" in the [host] of a scenario beside it')


def _profile(name: str) -> dict[str, Any]:
    listed = all_profiles()
    profile = next((built_in for built_in in listed if built_in["name"] == name), None)
    if profile is None and not name.endswith(".toml"):
        names = ", ".join(built_in["name"] for built_in in listed)
        raise RequestError(found=name, allowed=f"one of {names}, or a file (`*.toml`)")
    return profile or json.loads(_engine.read_profile(name))


@command("schema", "vcpulab schema")
def schema() -> None:
    """Print the JSON schema of scenario files."""
    print(_engine.schema())


@command("bench", "vcpulab bench --seconds 0.01")
def bench(
    *,
    format: TableOrJson = "table",
    seconds: Annotated[float, number("Time for each number, s.", above=0, most=60)] = 0.5,
    out: Out = None,
) -> None:
    """Measure the engine on this machine, beside a bare event-queue loop.

    First every policy alone, then whole runs from their scenario's text to their result tables, in CPU time. With less
    than 0.5 s for each number, whole runs are shorter.

    Args:
        out: Also write the numbers (JSON) to this file.
    """
    from vcpulab.cli import views

    numbers = json.loads(_engine.bench(seconds)) | _wall_time()
    report = json.dumps(numbers, indent=2)
    if format == "json":
        print(report)
    else:
        views.show_bench(numbers)
    if out is not None:
        with written(out):
            atomic.write(out, report + "\n")


def _wall_time() -> dict[str, float]:
    """Wall-clock seconds for each simulated second of the starter scenario, on one processor."""
    from vcpulab.results.run import run
    from vcpulab.scenario.scenario import Scenario

    scenario = Scenario.starter().with_run(replications=1)
    start = time.perf_counter()
    run(scenario, jobs=1)
    seconds = time.perf_counter() - start
    return {"starter_wall_s_per_simulated_s": seconds * 1e9 / (scenario.warmup_ns + scenario.duration_ns)}


@command(
    "completion",
    "vcpulab completion bash",
)
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print what a shell needs to complete commands, options and their values.

    It belongs into ~/.local/share/bash-completion/completions/vcpulab (bash), ~/.config/fish/completions/vcpulab.fish
    (fish), or `_vcpulab` in a directory of `fpath` (zsh).

    Args:
        shell: Which shell.
    """
    from vcpulab.cli.main import app

    print(app().generate_completion(shell=shell))
