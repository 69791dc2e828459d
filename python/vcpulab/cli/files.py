"""Files that a command line names: read, written, and what is wrong with them said in one line."""

from pathlib import Path

from vcpulab.cli import views
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.results.run import Run
from vcpulab.results.run import run as run_scenario
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario


def load(path: Path) -> Scenario:
    """A scenario file; its warnings are said.

    Raises:
        ScenarioError: everything that is wrong with it.
        RequestError: it cannot be read.
    """
    try:
        scenario = Scenario.load(path)
    except OSError as error:
        raise RequestError(f"{path}: {reason(error)}") from None
    for warning in scenario.warnings:
        views.warn(line_of(warning))
    return scenario


def run_of(source: Path) -> Run:
    """The run in a directory, or that of a scenario file.

    Raises:
        ScenarioError: everything that is wrong with the scenario.
        RequestError: it cannot be read, or holds no run.
    """
    if not source.is_dir():
        scenario = load(source)
        with views.progress(f"running {scenario.name}") as progress:
            return run_scenario(scenario, progress=progress)
    try:
        return Run.load(source)
    except FileNotFoundError as error:
        raise RequestError(str(error)) from None


def with_run(scenario: Scenario, *, seed: int | None = None, replications: int | None = None) -> Scenario:
    """The scenario with `--seed` and `--replications`, where given.

    Raises:
        RequestError: a value is not allowed.
    """
    try:
        return scenario.with_run(seed=seed, replications=replications)
    except ScenarioError as error:
        lines = (f"--{str(p['field']).removeprefix('run.')}: {p['message']}" for p in error.problems)
        raise RequestError("\n".join(lines)) from None
    except ValueError as error:
        raise RequestError(str(error)) from None


def at_least_zero(option: str, value: int) -> int:
    """The value of an option such as `--jobs`.

    Raises:
        RequestError: it is not allowed.
    """
    if not 0 <= value <= 1024:
        raise RequestError(f"{option}: found `{value}`; allowed: an integer from 0 to 1024")
    return value


def write(path: Path, text: str) -> None:
    """Writes a text file.

    Raises:
        RequestError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"{path}: {reason(error)}") from None


def line_of(problem: Problem) -> str:
    """What is wrong, after where."""
    place = problem["file"]
    if problem["line"] is not None:
        place += f":{problem['line']}:{problem['column']}"
    if problem["field"] is not None:
        place += f": {problem['field']}"
    hint = f"\n  hint: {problem['hint']}" if problem["hint"] else ""
    return f"{place}: {problem['message']}{hint}"


def reason(error: OSError) -> str:
    """Why the system would not."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
