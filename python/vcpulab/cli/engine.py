"""`vcpulab schedulers`, `profile`, `schema`, `bench`, `completion`: contents of the engine, its speed, and shells."""

import json
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from vcpulab import _engine
from vcpulab._files import atomic
from vcpulab.cli import files, page, terminal
from vcpulab.cli.options import Force, Out, TableOrJson, command, group, number
from vcpulab.cli.outputs import written
from vcpulab.errors import RequestError
from vcpulab.plugins import offered
from vcpulab.policy import ENTRY_POINTS, OwnPolicy, Policies
from vcpulab.results.statistics import number as number_text
from vcpulab.scenario.catalogue import Profile
from vcpulab.scenario.catalogue import profiles as all_profiles
from vcpulab.scenario.catalogue import schedulers as all_schedulers
from vcpulab.scenario.parameters import Param, RegisteredScheduler
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table


@command("schedulers", "vcpulab schedulers", "vcpulab schedulers rtds", "vcpulab schedulers --format json")
def schedulers(name: str | None = None, /, *, format: TableOrJson = "table") -> None:
    """List the schedulers, their generations and parameters.

    Args:
        name: Only this one; it may be a policy in a file, FILE.py:CLASS.
    """
    listed: list[dict[str, Any]] = json.loads(_engine.schedulers())
    if name is not None:
        listed = [scheduler for scheduler in listed if scheduler["name"] == name]
        own = [] if listed else Policies(Path())(name)
        if isinstance(own, OwnPolicy):
            listed = [json.loads(_engine.declare(own))]
        elif not listed:
            names = [*(scheduler.name for scheduler in all_schedulers()), *own]
            raise RequestError(found=name, allowed=f"one of {', '.join(names)}, or FILE.py:CLASS")
    if format == "json":
        print(as_json(listed))
    else:
        _show_schedulers(map(RegisteredScheduler.from_data, listed))
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
    if format == "json":
        print(_engine.profiles())
    else:
        page.show_table(Table("", ["profile", "machine"], [[p.name, p.doc] for p in all_profiles()], text_columns=2))


@command("show", "vcpulab profile show lp200r", parent=profile)
def show_profile(name: str, /, *, format: TableOrJson = "table") -> None:
    """Show every constant of a profile: value, kind of evidence, and source.

    Args:
        name: A built-in profile, or a file (*.toml).
    """
    constants = _profile(name)
    if format == "json":
        print(as_json(constants))
    else:
        _show_profile(Profile.from_data(constants))


@command("measure", "vcpulab profile measure --out this-machine.toml", parent=profile)
def measure_profile(*, base: str = "generic", out: Out = None, force: Force = False) -> None:
    """Measure this machine's context switches, caches, shared cores and remote memory, and make a profile of them.

    Args:
        base: The profile to take everything else from: a built-in one, or a file (*.toml).
        out: Write the profile to this file instead of printing it.
    """
    from vcpulab.scenario.measured import measure

    files.check_new(out, force=force)
    measured = measure(Profile.from_data(_profile(base)))
    for constant, reason in measured.missing.items():
        terminal.warn(f"{constant}: not measured: {reason}")
    if out is None:
        print(measured.text, end="")
        return
    _show_measured(measured.constants)
    sys.stdout.flush()
    atomic.write(out, measured.text)
    terminal.say(f'written to {out}\n  hint: profile = "{out.name}" in the [host] of a scenario beside it')


def _profile(name: str) -> dict[str, Any]:
    """A profile as the engine lists it."""
    listed: list[dict[str, Any]] = json.loads(_engine.profiles())
    profile = next((built_in for built_in in listed if built_in["name"] == name), None)
    if profile is None and not name.endswith(".toml"):
        names = ", ".join(built_in.name for built_in in all_profiles())
        raise RequestError(found=name, allowed=f"one of {names}, or a file (`*.toml`)")
    if profile is None:
        profile = json.loads(_engine.read_profile(name))
    return profile


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
    numbers = json.loads(_engine.bench(seconds)) | _wall_time()
    report = json.dumps(numbers, indent=2)
    if format == "json":
        print(report)
    else:
        _show_bench(numbers)
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


def _show_schedulers(schedulers: Iterable[RegisteredScheduler]) -> None:
    """Prints each scheduler with its parameters, and the generations of parameters that not all generations have."""
    for scheduler in schedulers:
        generations = [generation.name for generation in scheduler.generations]
        print(f"{scheduler.name}: {scheduler.doc}")
        print(f"  generations: {', '.join(generations)} (default: {scheduler.default.name})")
        for generation in scheduler.generations:
            if generation.releases != (generation.name,):
                print(f"    {generation.name}: {', '.join(generation.releases)}")
        owners: dict[str, list[str]] = {}
        for generation in scheduler.generations:
            for param in sorted(generation.params, key=lambda param: param.scope != "global"):
                owners.setdefault(_param(param), []).append(generation.name)
        for text, names in owners.items():
            print(text + ("" if names == generations else f"\n      only: {', '.join(names)}"))
        print()


def _param(param: Param) -> str:
    default = "no default" if param.default is None else f"default {json.dumps(param.default)}"
    unit = f" {param.unit}" if param.unit else ""
    scope = "per domain" if param.scope == "domain" else param.scope
    return f"  {param.name}: {scope}, {default}{unit}; allowed: {param.allowed}\n      {param.doc}"


def _show_profile(profile: Profile) -> None:
    """Prints a hardware profile with its constants."""
    print(f"{profile.name}: {profile.doc}\n")
    for constant in (profile.pcpus, *profile.constants.values()):
        print(f"  {constant.name} = {constant.value}")
        print(f"      {constant.doc}")
        print(f"      {constant.kind}: {constant.source}")


def _show_measured(constants: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the measured constants of a hardware profile with their spread."""
    rows = [
        [name, *(str(constant[key]) for key in ("value", "low", "high", "samples"))]
        for name, constant in constants.items()
    ]
    page.show_table(Table("", ["constant", "median", "lower quartile", "upper quartile", "samples"], rows))


_DECISIONS = re.compile(r"decisions_per_s_(?P<key>(?P<size>\d+x\d+)(_(?P<policy>.+))?)")
_OF_A_POLICY = ("decisions_per_s_", "events_per_s_", "schedule_calls_per_s_")


_WHOLE = re.compile(r"whole_(?P<key>.+)_of_floor")


def _show_bench(metrics: Mapping[str, float]) -> None:
    """Prints decisions and events per second of each policy, whole runs next to the bare loop, and other numbers."""
    rows = []
    for match in filter(None, map(_DECISIONS.fullmatch, metrics)):
        rates = [metrics[f"{rate}{match['key']}"] / 1e6 for rate in _OF_A_POLICY]
        share = 100 * metrics[f"events_per_s_{match['key']}_of_floor"]
        policy = match["policy"] or "credit, default generation"
        rows.append([match["size"], policy, *(f"{rate:.1f}" for rate in rates), f"{share:.0f} %"])
    headings = ["pCPUs x vCPUs", "policy", "decisions", "events", "schedule calls", "events,\nof the bare loop"]
    page.show_table(Table("Million per second", headings, rows, 2))
    page.show_table(_whole_runs(metrics))
    shown = (*_OF_A_POLICY, "whole_")
    rest = [[name, number_text(value)] for name, value in metrics.items() if not name.startswith(shown)]
    page.show_table(Table("", ["measure", "value"], rest))


def _whole_runs(metrics: Mapping[str, float]) -> Table:
    """The table of whole runs, part by part from text to tables."""
    rows = []
    keys = [match["key"].split("_") for match in map(_WHOLE.fullmatch, metrics) if match]
    for words in sorted(keys, key=lambda words: [word.zfill(8) if word.isdigit() else word for word in words]):

        def value(metric: str, key: str = "_".join(words)) -> float:
            return metrics[f"whole_{key}_{metric}"]

        times = [value("read_ms") + value("build_ms"), value("run_ms"), value("rows_ms") + value("tables_ms")]
        per_dispatch = [value("ns_per_dispatch"), value("floor_ns_per_event"), value("of_floor")]
        speed = value("simulated_ms") / value("run_ms")
        rows.append(["-".join(words), *map(number_text, [*times, speed, *per_dispatch])])
    headings = ["whole run", "set-up, ms", "run, ms", "tables, ms", "times\nreal time"]
    headings += ["ns for each\ndispatch", "bare loop, ns\nfor each event", "ratio"]
    return Table("From a scenario's text to its tables", headings, rows, 1)
