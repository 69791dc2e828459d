"""A hardware profile of the machine at hand: measured where it can be, for the rest as in another profile."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from vcpulab import _engine
from vcpulab.scenario.catalogue import Constant, Profile

_BESIDE = {"l2_miss_ps": (min, "at most", "l3_miss_ps"), "l3_miss_ps": (max, "at least", "l2_miss_ps")}
"""Constants that must be at most or at least another constant, even if only the other was measured."""

PCPUS_MAX = 512
"""Most pCPUs that a host can have: as many as the engine takes."""


@dataclass(frozen=True)
class Measured:
    """A measured profile."""

    text: str
    """The profile, as a file."""
    constants: Mapping[str, Mapping[str, Any]]
    """The measurements by constant: `value`, the quartiles `low` and `high`, `samples`, `how`."""
    missing: Mapping[str, str]
    """The reasons why constants could not be measured; `smt_*_percent` are all of threads that share a core."""


def measure(base: Profile) -> Measured:
    """Measures this machine, in a few seconds.

    Args:
        base: the profile that provides the constants that are not measured.

    Raises:
        ScenarioError: what was measured does not fit together; measure again.
    """
    measurement = json.loads(_engine.measure())
    constants, missing, machine = measurement["constants"], measurement["missing"], measurement["machine"]
    day = datetime.now(UTC).date().isoformat()
    doc = f"{machine}, measured on {day}; what could not be measured is as in profile `{base.name}`."
    lines = [f"doc = {_string(doc)}"]
    pcpus = min(os.cpu_count() or 1, PCPUS_MAX)
    lines.append(_constant("pcpus", pcpus, "measured", "as the system says"))
    places = measurement["places"]
    if places is not None and places["sockets"] * places["cores"] * places["threads"] == pcpus:
        fields = ", ".join(f"{kind} = {_value(count)}" for kind, count in places.items())
        lines.append(f"topology = {{ {fields} }}")
    lines += ["", "[constants]"]
    for name in {**base.constants, **constants}:
        measured = constants.get(name)
        if measured is not None:
            lines.append(_constant(name, measured["value"], "measured", _source(measured, machine, day)))
        else:
            lines.append(_assumed(base.constants[name], constants, base.name, missing.get(name)))
    text = "\n".join(lines) + "\n"
    _engine.parse_profile(text, "<measured>")
    return Measured(text, constants, missing)


def _source(measured: Mapping[str, Any], machine: str, day: str) -> str:
    source = f"{machine}, {day}: {measured['how']}"
    if measured["samples"] == 1:
        return source
    return f"{source}; median of {measured['samples']}, quartiles {measured['low']} and {measured['high']}"


def _assumed(constant: Constant, measured: Mapping[str, Any], base: str, missing: str | None) -> str:
    name, value = constant.name, constant.value
    source = f"as in profile `{base}` ({constant.source})"
    bound, word, related = _BESIDE.get(name, (max, "", name))
    if related in measured:
        value = bound(value, measured[related]["value"])
        source += f", but {word} `{related}`"
    reason = f"; not measured: {missing}" if missing else ""
    return _constant(name, value, "assumed", f"assumption: {source}{reason}")


def _constant(name: str, value: int, kind: str, source: str) -> str:
    return f"{name} = {{ value = {value}, kind = {_string(kind)}, source = {_string(source)} }}"


def _value(value: int | str) -> str:
    return _string(value) if isinstance(value, str) else str(value)


def _string(text: str) -> str:
    # A string of JSON is one of TOML, but for a character that neither writes out.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
