"""The end of every import of listings: a scenario file with its notes, or an error that names the listings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcpulab.errors import ScenarioError
from vcpulab.scenario.problems import without_lines
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
        raise without_lines(error.problems, files or {}) from None
