"""Files that a command line names: read, written, and what is wrong with them said in one line."""

from pathlib import Path

from vcpulab import views
from vcpulab.problems import Problem
from vcpulab.runs import Run
from vcpulab.runs import run as run_scenario
from vcpulab.scenario import Scenario
from vcpulab.usage import UsageError


def load(path: Path) -> Scenario:
    """A scenario file; its warnings are said.

    Raises:
        ScenarioError: everything that is wrong with it.
        UsageError: it cannot be read.
    """
    try:
        scenario = Scenario.load(path)
    except OSError as error:
        raise UsageError(f"{path}: {reason(error)}") from None
    for warning in scenario.warnings:
        views.warn(line_of(warning))
    return scenario


def run_of(source: Path) -> Run:
    """The run in a directory, or that of a scenario file.

    Raises:
        ScenarioError: everything that is wrong with the scenario.
        UsageError: it cannot be read, or holds no run.
    """
    if not source.is_dir():
        scenario = load(source)
        with views.progress(f"running {scenario.name}") as progress:
            return run_scenario(scenario, progress=progress)
    try:
        return Run.load(source)
    except FileNotFoundError as error:
        raise UsageError(str(error)) from None


def write(path: Path, text: str) -> None:
    """Writes a text file.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {reason(error)}") from None


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
