"""The output of `xl list -l`: the configuration of each domain, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeGuard

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of
from vcpulab.formats.xl_cfg import Value
from vcpulab.scenario.names import in_short

BEGINS = r"\s*\[\s*\{"
"""The beginning of such a list."""
_PARAMS = {"weight": "cpu_weight", "cap": "cap", "period": "period", "budget": "budget", "extratime": "extratime"}

_MASKS = {"vcpu_hard_affinity": "cpus", "vcpu_soft_affinity": "cpus_soft"}
_UNUSED = ("cpumap", "nodemap", "vnuma_nodes")
"""Fields that place a domain, and that are not read."""


@dataclass(frozen=True)
class Config:
    """A domain of it."""

    name: str
    number: int | None
    """The domain's ID; `None`: the domain is off, or its ID is not listed."""
    settings: dict[str, Value]
    """Settings under their names in xl.cfg(5)."""
    omitted: list[str] = field(default_factory=list)
    """Settings that no domain's file has, in words."""


def read_long(path: str | PathLike[str]) -> list[Config]:
    """`xl list -l`.

    Raises:
        RecordingError: the file does not have this format.
    """
    allowed = "a list of objects with `domid` and `config`, as `xl list -l` prints"
    try:
        rows = json.loads(text_of(path))
    except (ValueError, RecursionError) as error:
        raise wrong(str(path), getattr(error, "lineno", None), str(error), "JSON, as `xl list -l` prints") from None
    if not isinstance(rows, list):
        raise wrong(str(path), None, type(rows).__name__, allowed)
    configs = []
    for row in rows:
        domain, config = (row.get("domid"), row.get("config")) if isinstance(row, dict) else (None, None)
        name = _table(config, "c_info").get("name")
        if not _is_number(domain) or not isinstance(name, str):
            raise wrong(str(path), None, row, allowed)
        configs.append(Config(name, domain, _settings(config), _omitted(config)))
    return configs


def _table(value: Any, name: str) -> Mapping[str, Any]:
    table = value.get(name) if isinstance(value, dict) else None
    return table if isinstance(table, dict) else {}


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _omitted(config: Any) -> list[str]:
    """What is said of scheduling and that no domain's file has: parameters that are above 0, and lists of CPUs."""
    built = _table(config, "b_info")
    params = _table(built, "sched_params")
    omitted = [
        f"sched_params {name} = {value}"
        for name, value in params.items()
        if name not in (*_PARAMS, "sched") and _is_number(value) and value > 0
    ]
    return omitted + [
        f"{name} = {in_short([json.dumps(built[name])])}"
        for name in (*_UNUSED, *_MASKS)
        if built.get(name) and (name in _UNUSED or not _are_masks(built[name]))
    ]


def _are_masks(masks: object) -> TypeGuard[list[list[int]]]:
    return isinstance(masks, list) and all(isinstance(mask, list) and all(map(_is_number, mask)) for mask in masks)


def _settings(config: Any) -> dict[str, Value]:
    """The settings of a domain that is running: its vCPUs are those that are online."""
    created, built = _table(config, "c_info"), _table(config, "b_info")
    settings: dict[str, Value] = {}
    online, most = built.get("avail_vcpus"), built.get("max_vcpus")
    if isinstance(online, list) and online:
        settings["vcpus"] = len(online)
    elif _is_number(most):
        settings["vcpus"] = most
    params = _table(built, "sched_params")
    # A parameter that nobody set is -1, or 0 for a weight.
    least = {"weight": 1, "period": 1, "budget": 1}
    settings |= {
        setting: params[name]
        for name, setting in _PARAMS.items()
        if _is_number(params.get(name)) and params[name] >= least.get(name, 0)
    }
    for name, setting in _MASKS.items():
        masks = built.get(name)
        if _are_masks(masks):
            settings[setting] = [",".join(map(str, mask)) or "all" for mask in masks]
    if isinstance(created.get("pool_name"), str):
        settings["pool"] = created["pool_name"]
    return settings
