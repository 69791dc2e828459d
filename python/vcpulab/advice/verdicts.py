"""The claims of advice about a missed SLO: proven impossible, possible at others' cost, or no fix found.

`Proven` needs a bound, or a simulation in which the service misses the SLO even alone on the host. `Costly` names a
setting that keeps the SLO and harms others. Everything else is `NotFound`, which names the settings that were tried and
claims nothing about other settings.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vcpulab.scenario.names import grouped, in_short
from vcpulab.scenario.scenario import join, split

NAMED_MAX = 4
"""The largest number of tried parameters that a sentence names."""
_VALUES_MAX = 3
"""The largest number of non-numeric values that a sentence lists."""


@dataclass(frozen=True)
class Proven:
    """The claim that no setting helps, for a simulated or computed reason."""

    reason: str

    def sentence(self, slos: Collection[str]) -> str:
        """The claim about some SLOs, with its proof."""
        return f"{' and '.join(slos)} cannot be kept: {self.reason}"


@dataclass(frozen=True)
class NotFound:
    """The claim that no setting (or load, or placement) that was tried helps; another may."""

    number: int
    """The number of settings that were tried, without the present one."""
    parameters: tuple[str, ...]
    """The parameters and values that were tried, in words; see `in_words`."""
    tried: Literal["setting", "load", "placement"] = "setting"
    """The kind of thing that was tried."""

    def sentence(self, slos: Collection[str]) -> str:
        """The claim about some SLOs, with the parameters that were tried."""
        missed = " and ".join(slos)
        if not self.number:
            return f"Not found: no {self.tried} was tried that may keep {missed}"
        left = len(self.parameters) - NAMED_MAX
        named = ", ".join([*self.parameters[:NAMED_MAX], *([f"{left} more parameters"] if left > 0 else [])])
        if self.number == 1:
            return f"Not found: the {self.tried} tried ({named}) does not keep {missed}"
        return f"Not found: none of the {self.number} {self.tried}s tried ({named}) keeps {missed}"


@dataclass(frozen=True)
class Costly:
    """The claim that some settings help, and each of them harms others."""

    number: int
    """The number of settings that were tried, including those that do not help."""
    setting: str
    """The mildest setting that helps, in words."""
    harm: str
    """The harm of that setting to others, such as `makes batch late`."""

    def sentence(self, slos: Collection[str]) -> str:
        """The claim about some SLOs, with the harm to others."""
        missed, verb = " and ".join(slos), "keeps" if self.number == 1 else "keep"
        tried = f"Of {self.number} settings tried only those" if self.number > 1 else "Only a setting"
        return f"{tried} that harm{'s' if self.number == 1 else ''} others {verb} {missed}: {self.setting} {self.harm}"


Verdict = Proven | NotFound | Costly


def in_words(tried: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """The parameters that some settings change, with their values; parameters with the same values together.

    Args:
        tried: settings, each a path to a value.

    Examples:
        >>> in_words([{"domain.web.weight": 512}, {"domain.web.weight": 4096}, {"host.sched_gran": "core"}])
        ('weight of web 512 to 4096', 'sched_gran core')
    """
    values: dict[str, dict[str, Any]] = {}
    for changes in tried:
        for path, value in changes.items():
            *where, field = split(path)
            # Of a new pool, only its pCPUs are named.
            if where[:1] != ["pool"] or field == "pcpus" or join([*where, "pcpus"]) not in changes:
                values.setdefault(path, {})[str(value)] = value
    alike = grouped(values, lambda path: (split(path)[-1], _values(list(values[path].values()))))
    return tuple(
        f"{field}{_owners(list(map(split, paths)))}{f' {text}' if text else ''}"
        for (field, text), paths in alike.items()
    )


def _owners(paths: Sequence[Sequence[str]]) -> str:
    """The named things that have the fields; empty: the host."""
    names = [steps[1] for steps in paths if len(steps) > 2]
    return f" of {in_short(names)}" if names else ""


def _values(given: Sequence[Any]) -> str:
    """The values of a parameter in words: numbers as a range, other values by name."""
    numbers = [value for value in given if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) == len(given):
        least, most = min(numbers), max(numbers)
        return f"{least:g}" if least == most else f"{least:g} to {most:g}"
    named = ["its default" if value is None else str(value) for value in given]
    return " or ".join(named) if len(named) <= _VALUES_MAX else f"{len(named)} values"
