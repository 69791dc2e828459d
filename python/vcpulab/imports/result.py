"""The end of every import of listings: a scenario file with its notes, or an error that names the listings."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcpulab.errors import ScenarioError
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.toml_text import comment, toml

_RUN = ("[run]", 'duration = "2s"', 'warmup = "500ms"', "replications = 5")


@dataclass(frozen=True)
class Made:
    """A scenario file."""

    text: str
    notes: list[str]
    """Notes on assumptions and omissions."""
    hint: str | None = None
    """The command to type before the scenario is run; `None`: none."""


def made(
    command: str,
    name: str,
    lines: Iterable[str],
    notes: Sequence[str],
    *,
    folder: Path | None = None,
    files: Mapping[str, Sequence[Path]] | None = None,
) -> Made:
    """The scenario file.

    Args:
        command: what makes it, such as `vcpulab import xl`.
        name: the scenario's name.
        lines: its tables.
        notes: what is assumed, or left out; a note that occurs twice counts once.
        folder: where the scenario will be, for a profile that is a file.
        files: by domain of the scenario: the listings that name it; by an empty name: those that the host is of.

    Raises:
        ScenarioError: the tables are no scenario; its problems are in the listings, by name and not by line.
    """
    once = list(dict.fromkeys(notes))
    head = [f"# Made by `{command}`. What it could not tell, or say:"]
    head += [line for note in once for line in comment(note, "* ")] + [""]
    text = "\n".join([*(head if once else []), f"name = {toml(name)}", "", *_RUN, "", *lines, ""])
    try:
        return Made(Scenario.from_toml(text, command, folder=folder).text, once)
    except ScenarioError as error:
        raise _of_listings(error.problems, files or {}) from None


def _of_listings(problems: Sequence[Problem], files: Mapping[str, Sequence[Path]]) -> ScenarioError:
    """The problems, each with the listings that name its domain."""
    placed: list[Problem] = []
    texts = []
    for problem in problems:
        sources = files.get(_domain_of(problem["field"] or ""), ())
        file = ", ".join(dict.fromkeys(map(str, sources)))
        placed.append({**problem, "file": file, "line": None, "column": None})
        parts = [part for part in (file, problem["field"], problem["message"]) if part]
        texts.append(": ".join(parts) + (f"\n  hint: {problem['hint']}" if problem["hint"] else ""))
    error = ScenarioError("\n".join(texts))
    error.problems = placed
    return error


def _domain_of(field: str) -> str:
    """The domain of a field's path; empty: it is of no domain.

    Examples:
        >>> _domain_of("domain.web.cap"), _domain_of('domain."a.b".cap'), _domain_of("host.pcpus")
        ('web', 'a.b', '')
    """
    try:
        table = tomllib.loads(f"{field} = 0")
    except tomllib.TOMLDecodeError:
        return ""
    domains = table.get("domain")
    return next(iter(domains), "") if isinstance(domains, dict) else ""
