"""The parameters in listings of Xen: those that `xl sched-…` prints of a CPU pool's scheduler, and those of domains."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vcpulab.formats.xl_sched import Sched
from vcpulab.hosts.left_out import left_out
from vcpulab.scenario.parameters import Param

_VALUE = re.compile(r"(?P<number>\d{1,12})(?P<unit>us|ms|s|)")
_UNITS_US = {"us": 1, "ms": 1000, "s": 1_000_000}
_COLUMNS = ("weight", "cap")
"""Columns of `xl sched-credit` and `xl sched-credit2`, which are parameters, too."""
_NS_OF_MS = 1_000_000
_SEDF_COLUMNS = {
    "period": ("period", _NS_OF_MS),
    "slice": ("slice", _NS_OF_MS),
    "latency": ("latency", _NS_OF_MS),
    "extra": ("extratime", 1),
    "weight": ("weight", 1),
}
"""Columns of `xl sched-sedf` to parameters, and the number of the parameter's units in the column's unit."""
RTDS_COLUMNS = {"period": "period_us", "budget": "budget_us", "extratime": "extratime"}
"""Columns of `xl sched-rtds` to parameters."""
_VCPUS_SHOWN = 8


def scheduler_params(sched: Sched, scheduler: str, params: Iterable[Param], notes: list[str]) -> dict[str, int]:
    """The parameters of a pool's scheduler as a whole, in the units of a scenario; what is left out is a note.

    Args:
        sched: the pool's listing.
        scheduler: the pool's scheduler in the scenario.
        params: the parameters that the scheduler has in the host's release.
        notes: receives a note for each parameter that is left out.

    Examples:
        >>> from vcpulab.scenario.catalogue import generation_of
        >>> printed = {"tslice": "30ms", "ratelimit": "1ms", "migration-delay": "0us", "mystery": "7us"}
        >>> notes = []
        >>> scheduler_params(Sched("Pool-0", "credit", printed), "credit", generation_of("credit").params, notes)
        {'tslice_ms': 30, 'ratelimit_us': 1000, 'migration_delay_us': 0}
        >>> notes
        ['pool Pool-0: mystery `7us` is left out: credit has no such parameter here']
    """
    owner = f"pool {sched.pool}" if sched.pool else scheduler
    by_printed = {param.name.removesuffix(f"_{param.unit}"): param for param in params if param.scope == "global"}
    values = {}
    for printed, text in sched.parameters.items():
        param = by_printed.get(printed.replace("-", "_"))
        value = None if param is None else _value(text, param.unit)
        if param is None:
            notes.append(left_out(owner, printed, text, f"{scheduler} has no such parameter here"))
        elif value is None:
            notes.append(left_out(owner, printed, text, f"allowed: {param.allowed} {param.unit}".rstrip()))
        else:
            values[param.name] = value
    return values


def _value(text: str, unit: str) -> int | None:
    """A printed number in a parameter's unit, which it has if none is printed; `None`: it cannot be expressed.

    Examples:
        >>> [_value(text, "ms") for text in ("30ms", "30", "30000us", "1s", "1500us", "30 %")]
        [30, 30, 30, 1000, None, None]
    """
    match = _VALUE.fullmatch(text)
    if match is None:
        return None
    number, printed_unit = int(match["number"]), match["unit"] or unit
    if printed_unit == unit:
        return number
    if unit not in _UNITS_US:
        return None
    quotient, rest = divmod(number * _UNITS_US[printed_unit], _UNITS_US[unit])
    return None if rest else quotient


def notes_on_columns(pool: Sched, path: Path) -> Iterator[str]:
    """The notes on columns that a release's listing does not have."""
    if pool.scheduler == "rtds" and pool.domains and not any("extratime" in row for row in pool.domains):
        yield (
            f"{path}: no column Extratime: this release of xl has no such option, and budgets are ceilings "
            "(extratime = 0); in commands for this host leave out `-e`"
        )


def domain_params(
    name: str, scheduler: str, rows: Sequence[Mapping[str, Any]], notes: list[str], path: Path
) -> dict[str, int]:
    """The parameters of a domain.

    Args:
        name: the domain.
        scheduler: the scheduler of its pool; empty: not known.
        rows: the domain's rows in the listing: of RTDS one for each vCPU, else the last one counts.
        notes: receives a note for what is left out.
        path: the listing.
    """
    if scheduler == "rtds":
        return _reservation(name, rows, path, notes)
    if scheduler == "sedf":
        return _sedf_params(rows[-1])
    notes += [
        left_out(name, column, value, f"of {scheduler} only {' and '.join(_COLUMNS)} are taken", path)
        for column, value in rows[-1].items()
        if column not in {"name", "id", *_COLUMNS}
    ]
    return {column: row[column] for row in rows for column in _COLUMNS if column in row}


def accepted(
    name: str,
    values: Mapping[str, int],
    params: Mapping[str, Param],
    vcpus: int,
    *,
    notes: list[str],
    path: Path | None = None,
) -> dict[str, int]:
    """A domain's parameters that its scheduler has, with values that it takes; what is left out is a note.

    Args:
        name: the domain.
        values: the parameters in listings.
        params: the parameters that a domain has under its scheduler, by name.
        vcpus: the number of the domain's vCPUs.
        notes: receives a note for each parameter that is left out.
        path: the listing; `None`: not known.
    """
    taken = {}
    for param, value in values.items():
        if param not in params:
            reason: str | None = "its scheduler has no such parameter"
        elif param == "cap" and value > 100 * vcpus:
            reason = f"it limits nothing with {vcpus} vCPU{'s' * (vcpus > 1)} online"
        else:
            reason = None if params[param].accepts(value) else f"allowed: {params[param].allowed}"
        if reason is None:
            taken[param] = value
        else:
            notes.append(left_out(name, param, value, reason, path))
    return taken


def _reservation(name: str, rows: Sequence[Mapping[str, Any]], path: Path, notes: list[str]) -> dict[str, int]:
    """RTDS's parameters, which each vCPU has; a scenario has them of a domain: of unlike vCPUs, the least."""
    vcpus = [
        {
            to: _flag(row[column]) if column == "extratime" else row[column]
            for column, to in RTDS_COLUMNS.items()
            if column in row
        }
        for row in rows
    ]
    for params in vcpus:
        params.setdefault("extratime", 0)
    least = min(vcpus, key=lambda params: params.get("budget_us", 0) / max(params.get("period_us", 1), 1))
    least = {**least, "extratime": min(params["extratime"] for params in vcpus)}
    if any(params != least for params in vcpus):
        shown = "; ".join(
            f"vCPU {row.get('vcpu', '?')} "
            + " ".join(f"{column} {row[column]}" for column in RTDS_COLUMNS if column in row)
            for row in rows[:_VCPUS_SHOWN]
        ) + ("; …" if len(rows) > _VCPUS_SHOWN else "")
        taken = ", ".join(f"{param} = {value}" for param, value in least.items())
        notes.append(
            f"{path}: {name}: its vCPUs have unlike reservations ({shown}); a scenario has one of each domain: the "
            f"least is assumed for each vCPU ({taken})"
        )
    return least


def _sedf_params(row: Mapping[str, Any]) -> dict[str, int]:
    """SEDF's parameters. Without a slice, or with a weight, a period reserves nothing; 0 is not given.

    Examples:
        >>> _sedf_params({"period": 100, "slice": 20, "latency": 0, "extra": 1, "weight": 0})
        {'period': 100000000, 'slice': 20000000, 'extratime': 1}
        >>> _sedf_params({"period": 100, "slice": 20, "extra": 0, "weight": 2})
        {'extratime': 0, 'weight': 2}
    """
    best_effort = row.get("weight", 0) > 0 or not row.get("slice")
    return {
        param: row[column] * unit
        for column, (param, unit) in _SEDF_COLUMNS.items()
        if column in row
        and (row[column] or param == "extratime")
        and not (best_effort and param in ("period", "slice"))
    }


def _flag(cell: int | str) -> int:
    return int(cell in ("yes", 1))
