"""The end of every import of listings: a scenario file with its notes, or an error that names the listings."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcpulab._engine import NAME_CHARS_MAX
from vcpulab.errors import ScenarioError
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.scenario_text import RUN, comment, toml


@dataclass(frozen=True)
class Made:
    """A scenario file."""

    text: str
    notes: list[str]
    """Notes on assumptions and omissions."""
    hint: str | None = None
    """The command to type before the scenario is run; `None`: none."""


def plain_name(name: str) -> str:
    """A host's name of a domain or a pool, as a scenario and every command line take it.

    Examples:
        >>> plain_name("Windows (prod)"), plain_name("--all"), plain_name("")
        ('Windows--prod-', 'vm---all', 'vm')
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
    # A name that begins with a dash would be an option of xl's and virsh's.
    return (f"vm-{plain}" if plain.startswith("-") else plain)[:NAME_CHARS_MAX] or "vm"


def left_out(where: str, field: str, value: object, reason: str, file: Path | str | None = None) -> str:
    """The note on a value of a listing that the scenario does not have.

    Args:
        where: the domain, the pool or the part of the host that has the value.
        field: the value's name in the listing.
        value: the value in the listing.
        reason: why the scenario cannot have it.
        file: the listing; `None`: not known.

    Examples:
        >>> left_out("web", "cap", 150, "at most 100 with 1 vCPU online", Path("sched.txt"))
        'sched.txt: web: cap `150` is left out: at most 100 with 1 vCPU online'
    """
    begins = "" if file is None else f"{file}: "
    return f"{begins}{where}: {field} `{value}` is left out: {reason}"


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
    text = "\n".join([*(head if once else []), f"name = {toml(name)}", "", *RUN, "", *lines, ""])
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
