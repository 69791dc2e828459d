"""Options that several commands have, each declared once: its names, its help, its range, how it is read.

An option has the name of the argument that a library's `RequestError` blames: `slo` is `--slo`.
"""

import re
from collections.abc import Callable, Sequence
from operator import ge, gt, le, lt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, ParamSpec

from cyclopts import App, Parameter

from vcpulab.cli.outputs import Writes
from vcpulab.errors import RequestError
from vcpulab.hypervisors import Toolstack
from vcpulab.scenario.units import duration_s, size_bytes

if TYPE_CHECKING:
    from cyclopts import Token

P = ParamSpec("P")
_HOLDS = {"at least": ge, "above": gt, "at most": le, "below": lt}
_CONTINUED = re.compile(r"(?<=\S)\n(?: {4}| {12})(?=\S)")
"""A line break within a paragraph of a docstring, or within the description of an argument."""
BUDGET_S_MAX = 30 * 86_400
SEED_MAX = 2**63 - 1


def examples(*lines: str) -> str:
    """The end of a command's help: examples that run."""
    return "Examples:\n\n" + "\n".join(f"    $ {line}" for line in lines)


def group(name: str, summary: str, *shown: str) -> App:
    """A command with subcommands, and a help that ends with examples."""
    return App(name=name, help=summary, help_epilogue=examples(*shown), help_format="plaintext")


def command(name: str, *shown: str, parent: App | None = None) -> Callable[[Callable[P, int | None]], App]:
    """Makes a function a command, of a group if `parent` is given, with a help that ends with examples."""

    def made(function: Callable[P, int | None]) -> App:
        # As the terminal wraps the lines of a description, the source must not.
        function.__doc__ = _CONTINUED.sub(" ", function.__doc__ or "")
        app = App(name=name, help_epilogue=examples(*shown), help_format="plaintext")
        app.default(function)
        if parent is not None:
            parent.command(app)
        return app

    return made


class Range:
    """A reader of numbers in a range; its text describes the range."""

    def __init__(
        self,
        least: float | None = None,
        most: float | None = None,
        *,
        above: float | None = None,
        below: float | None = None,
    ) -> None:
        self._bounds = {"at least": least, "above": above, "at most": most, "below": below}

    def __str__(self) -> str:
        least, most, below = (self._bounds[word] for word in ("at least", "at most", "below"))
        if least is not None and (most is not None or below is not None):
            return f"{least} to {most}" if below is None else f"{least} to less than {below}"
        return ", ".join(f"{word} {bound}" for word, bound in self._bounds.items() if bound is not None)

    def __call__(self, kind: type[int] | type[float], tokens: Sequence["Token"]) -> float:
        """Reads a number.

        Raises:
            RequestError: the text is not a number, or out of range.
        """
        text = tokens[0].value
        try:
            value = kind(text)
            if all(bound is None or _HOLDS[word](value, bound) for word, bound in self._bounds.items()):
                return value
        except ValueError:
            pass
        whole = f"an integer {'from ' if str(self)[0].isdigit() else ''}{self}"
        raise RequestError(found=text, allowed=whole if kind is int else str(self))


def number(
    help: str,
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    name: Sequence[str] | None = None,
) -> Parameter:
    """An option that takes a number, with its range in its help."""
    within = Range(least, most, above=above, below=below)
    return Parameter(name=name, help=f"{help} Allowed: {within}.", converter=within)


def _read_duration(_kind: object, tokens: Sequence["Token"]) -> float:
    allowed = f"a time such as 90s, 10m or 2h, at most {BUDGET_S_MAX // 3600}h"
    try:
        seconds = duration_s(tokens[0].value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= BUDGET_S_MAX:
        raise RequestError(found=tokens[0].value, allowed=allowed)
    return seconds


def _read_percentage(_kind: object, tokens: Sequence["Token"]) -> float:
    text = tokens[0].value
    try:
        value = float(text.removesuffix("%")) if text.endswith("%") else 0.0
    except ValueError:
        value = 0.0
    if not 0 < value <= 100:
        raise RequestError(found=text, allowed="more than 0%, at most 100%, such as 2%")
    return value / 100


def _read_size(_kind: object, tokens: Sequence["Token"]) -> int:
    try:
        size = size_bytes(tokens[0].value)
    except ValueError:
        size = 0
    if size <= 0:
        raise RequestError(found=tokens[0].value, allowed="a size such as 64GiB")
    return size


def duration(help: str) -> Parameter:
    """An option that takes a time with its unit; the command gets seconds."""
    return Parameter(
        help=f"{help} A number with a unit: ms, s, m or min, h.",
        metavar="TIME",
        converter=_read_duration,
        show_default=_duration_text,
    )


def percentage(help: str) -> Parameter:
    """An option that takes a percentage; the command gets a fraction."""
    return Parameter(
        help=f"{help} Allowed: more than 0%, at most 100%.",
        metavar="PERCENT",
        converter=_read_percentage,
        show_default=lambda value: None if value is None else f"{100 * value:g}%",
    )


def _duration_text(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    unit, length = next(
        ((unit, length) for unit, length in (("h", 3600), ("m", 60)) if seconds % length == 0), ("s", 1)
    )
    return f"{seconds / length:g}{unit}"


Jobs = Annotated[
    int,
    number(
        "Replications at a time; 0: one for each processor. It never changes the results.",
        0,
        1024,
        name=["--jobs", "-j"],
    ),
]
Seed = Annotated[int | None, number("Seed of the random numbers; the scenario's if left out.", 0, SEED_MAX)]
Replications = Annotated[int | None, number("Replications; the scenario's if left out.", 1, 10_000)]
Pairs = Annotated[
    int | None,
    number(
        "Replications of each side, and no more; if left out the scenario's, at least 10, and more where a large harm "
        "is uncertain.",
        2,
        10_000,
    ),
]
Several = Annotated[
    int | None,
    number(
        "Replications of each load, four times as many near an objective; the scenario's, and 5 or more, if left out.",
        2,
        1000,
    ),
]
Replication = Annotated[int, number("Replication to take, from 0.", 0)]
Budget = Annotated[float, duration("Time after which to stop and report what was found.")]
Precision = Annotated[
    float,
    percentage(
        "Half-width of the confidence intervals that decide, relative to the mean; replications are added until they "
        "are as narrow."
    ),
]
HarmPrecision = Annotated[
    float | None,
    percentage(
        "Half-width of the interval that decides a large uncertain harm, relative to the value; replications are added "
        "until it is as narrow. 10% if left out."
    ),
]
HarmBudget = Annotated[
    float | None,
    duration("Time in which replications are added; four times as many at most if left out."),
]
Memory = Annotated[int | None, Parameter(metavar="SIZE", converter=_read_size)]
Words = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False, consume_multiple=False)]
Slo = Words
Flag = Annotated[bool, Parameter(negative=())]
All = Annotated[bool, Parameter(negative=(), help="Show everything; by default, what fits on a page.")]
Force = Annotated[bool, Parameter(negative=(), help="Replace what is there.")]
Out = Annotated[Path | None, Parameter(name=["--out", "-o"]), Writes.FILE]
OutFolder = Annotated[Path | None, Parameter(name=["--out", "-o"]), Writes.WHOLE_FOLDER]
Report = Annotated[Path | None, Parameter(help="Also write a report with charts (HTML) to this file."), Writes.FILE]
TableOrJson = Annotated[Literal["table", "json"], Parameter(help="How to print.")]
TableOrCsv = Annotated[Literal["table", "csv"], Parameter(help="How to print.")]
AnyFormat = Annotated[Literal["table", "json", "csv"], Parameter(help="How to print.")]
Scenarios = Annotated[tuple[Path, ...], Parameter(name="FILE", negative=(), show_default=False)]
CpuMhz = Annotated[
    float | None,
    number("Frequency of the counter in Xen's traces (`xl info` shows it), MHz; from the trace if left out.", above=0),
]
TypedFor = Annotated[
    Toolstack | None,
    Parameter(
        name="--toolstack",
        help="Toolstack whose commands are printed. Of Xen hosts: xl; xapi, of XCP-ng and XenServer. Of KVM hosts: "
        "libvirt; proxmox, of Proxmox VE; cgroup: systemd and files of control groups. The scenario's host.toolstack "
        "if left out.",
    ),
]
Profile = Annotated[
    str | None,
    Parameter(
        help="Hardware profile of the host (`vcpulab profile list`), or a file of your own; generic if left out."
    ),
]
Threads = Annotated[Path | None, Parameter(help="For KVM: a file with a line `thread name vcpu` for each vCPU.")]
