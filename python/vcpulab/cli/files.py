"""Files that a command line names: read and written, with one line for each problem."""

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vcpulab._files import atomic, safe_open
from vcpulab.cli import terminal
from vcpulab.cli.streams import printing_aside
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.problems import in_short
from vcpulab.scenario.scenario import Scenario

if TYPE_CHECKING:
    from vcpulab.hypervisors import Toolstack
    from vcpulab.results.run import Run


def word(path: Path) -> str:
    """A path as a shell and every command take it.

    Examples:
        >>> word(Path("my host.toml")), word(Path("-x.toml")), word(Path("/tmp/a.toml"))
        ("'my host.toml'", './-x.toml', '/tmp/a.toml')
    """
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def load(path: Path, toolstack: "Toolstack | None" = None) -> Scenario:
    """A scenario file; its warnings are printed.

    Args:
        path: the file.
        toolstack: the toolstack whose commands will be printed.

    Raises:
        ScenarioError: all errors of the scenario.
        RequestError: the file cannot be read, or the host does not have the toolstack.
    """
    scenario = _read(path)
    if toolstack is not None:
        _check(scenario, toolstack)
    for line in in_short(scenario.warnings):
        terminal.warn(line)
    return scenario


def check_toolstack(path: Path, toolstack: "Toolstack") -> None:
    """Makes sure that the host of a scenario file has a toolstack.

    Raises:
        ScenarioError: all errors of the scenario.
        RequestError: the file cannot be read, or the host does not have the toolstack.
    """
    _check(_read(path), toolstack)


def check_xen(scenario: Scenario, instead: str) -> None:
    """Makes sure that the host is a Xen host, because the command imitates a monitor of Xen.

    Args:
        scenario: the host.
        instead: the command for KVM hosts.

    Raises:
        RequestError: the host is not a Xen host.
    """
    if scenario.host.hypervisor != "xen":
        reason = "that is a monitor of Xen's, and the host is a KVM host (host.hypervisor)"
        raise RequestError(reason, field="source", found=scenario.name, hint=instead)


def _read(path: Path) -> Scenario:
    try:
        with printing_aside():
            return Scenario.load(path)
    except OSError as error:
        raise RequestError(f"{path}: {reason(error)}") from None


def _check(scenario: Scenario, toolstack: "Toolstack") -> None:
    from vcpulab.hypervisors.commands import check

    check(scenario, toolstack)


def run_of(source: Path, fits: Callable[[Scenario], None] | None = None) -> "Run":
    """The run in a directory, or a new run of a scenario file.

    Args:
        source: the directory or file.
        fits: a check of the scenario, before it runs.

    Raises:
        ScenarioError: all errors of the scenario.
        RequestError: the file cannot be read, or the directory holds no run.
    """
    from vcpulab.results.run import Run
    from vcpulab.results.run import run as run_scenario

    if not source.is_dir():
        scenario = load(source)
        if fits is not None:
            fits(scenario)
        with terminal.progress(f"running {scenario.name}") as progress:
            return run_scenario(scenario, progress=progress)
    try:
        run = Run.load(source)
    except FileNotFoundError as error:
        raise RequestError(str(error)) from None
    if fits is not None:
        fits(run.scenario)
    return run


def with_run(scenario: Scenario, *, seed: int | None = None, replications: int | None = None) -> Scenario:
    """The scenario with another seed and number of replications, where given.

    Raises:
        RequestError: a value is not allowed.
    """
    try:
        return scenario.with_run(seed=seed, replications=replications)
    except ScenarioError as error:
        first = error.problems[0]
        field = (first["field"] or "").removeprefix("run.")
        raise RequestError(first["message"], field=field, hint=first["hint"]) from None


def check_readable(path: Path) -> None:
    """Makes sure that a file can be read.

    Raises:
        RequestError: the file cannot be read, or is a device or a pipe.
    """
    try:
        with safe_open.opened(path):
            pass
    except OSError as error:
        raise RequestError(f"{path}: {reason(error)}") from None


def exists_already(path: Path) -> RequestError:
    """The refusal to replace a file."""
    return RequestError(f"{path}: exists already", hint="--force replaces it")


def check_new(path: Path | None, *, force: bool) -> None:
    """Makes sure that no existing file is replaced without `force`.

    Raises:
        RequestError: the file exists.
    """
    if path is not None and path.exists() and not force:
        raise exists_already(path)


def print_or_write(text: str, notes: Iterable[str], out: Path | None, hint: str | None = None) -> None:
    """Prints a scenario that was made, or writes it to a file; before that, notes on it as warnings.

    Args:
        text: the scenario.
        notes: what was assumed, or left out.
        out: the file; `None`: the scenario is printed.
        hint: the next command; `None`: the one that runs the scenario.
    """
    for note in notes:
        terminal.warn(note)
    if out is None:
        print(text, end="")
        return
    atomic.write(out, text)
    terminal.say(f"written to {out}\n  hint: {hint or f'vcpulab run {word(out)}'}")


def reason(error: OSError) -> str:
    """The reason of the operating system, in lower case."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
