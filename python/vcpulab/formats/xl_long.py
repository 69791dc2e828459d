"""The output of `xl list -l`: the configuration of each domain, as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeGuard

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of
from vcpulab.formats.xl_cfg import Value

BEGINS = r"\s*\[\s*\{"
"""The beginning of such a list."""
_PARAMS = {"weight": "cpu_weight", "cap": "cap", "period": "period", "budget": "budget", "extratime": "extratime"}


@dataclass(frozen=True)
class Config:
    """A domain of it."""

    name: str
    number: int
    settings: dict[str, Value]
    """Settings under their names in xl.cfg(5)."""


def read_long(path: str | PathLike[str]) -> list[Config]:
    """`xl list -l`.

    Raises:
        RecordingError: it is something else.
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
        configs.append(Config(name, domain, _settings(config)))
    return configs


def _table(value: Any, name: str) -> Mapping[str, Any]:
    table = value.get(name) if isinstance(value, dict) else None
    return table if isinstance(table, dict) else {}


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


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
    for name, setting in (("vcpu_hard_affinity", "cpus"), ("vcpu_soft_affinity", "cpus_soft")):
        masks = built.get(name)
        if isinstance(masks, list) and all(isinstance(mask, list) and all(map(_is_number, mask)) for mask in masks):
            settings[setting] = [",".join(map(str, mask)) or "all" for mask in masks]
    if isinstance(created.get("pool_name"), str):
        settings["pool"] = created["pool_name"]
    return settings
