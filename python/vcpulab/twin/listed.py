"""From what `xl` and xentop print of a host to a scenario: its domains, their parameters, and work of the same load."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tomli_w

from vcpulab.errors import RequestError
from vcpulab.formats.kinds import Kind, Read
from vcpulab.formats.xentop import NAME_MOST, Usage
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario

KINDS: tuple[Kind, ...] = ("xl-list", "xl-vcpu-list", "xl-sched", "xl-info", "xentop")
"""What is understood."""
PERIOD_MS = 10
"""CPU use becomes jobs with this period: nobody prints how it was spread."""
IDLE_PERCENT = 0.1
"""Who used no more of a pCPU has no work."""
_MOST = 0.99
"""The largest part of a period that a job takes."""
_SAME = 1.2
"""Numbered domains with the same settings are alike if the busiest uses so many times what the least busy one does."""
_DRIVER_DOMAIN = "Domain-0"
_PERCENT = "% of a pCPU"
_RUN = ("[run]", 'duration = "2s"', 'warmup = "500ms"', "replications = 5")


@dataclass(frozen=True)
class Made:
    """A scenario file."""

    text: str
    notes: list[str]
    """What is assumed, or left out."""


@dataclass
class _Domain:
    vcpus: int = 1
    affinity: list[str] = field(default_factory=list)
    params: dict[str, int] = field(default_factory=dict)
    used: float | None = None
    """% of a pCPU; `None`: not known."""


def scenario_of(found: Iterable[Read]) -> Made:
    """The host that listings are of.

    Args:
        found: what `recordings.read` made of them; of two of a kind the later one counts.

    Raises:
        RequestError: no listing names a domain.
    """
    holds: dict[str, Any] = {one.kind: one.holds for one in found}
    domains, notes = _domains(holds)
    if not domains:
        allowed = "among them what `xl list`, `xl vcpu-list` or `xl sched-credit` prints"
        raise RequestError("no file says which domains there are", allowed=allowed)
    pcpus = _pcpus(holds, notes)
    scheduler, params = _scheduler(holds, notes)
    known = {one["name"] for one in (generation_of(scheduler) or {"params": []})["params"]}
    _add_use(holds, domains, notes)
    lines = [
        'name = "a host as xl lists it"',
        "",
        *_RUN,
        "",
        "[host]",
        'profile = "generic"       # assumed: xl does not say what things cost on this machine',
        f"pcpus = {pcpus}",
        f"scheduler = {json.dumps(scheduler)}",
        *(f"{name} = {value}" for name, value in params.items() if name in known),
    ]
    for name, domain, count in _alike(domains, notes):
        lines += ["", *_table(name, domain, known, pcpus, count)]
    return Made(Scenario.from_toml("\n".join(lines) + "\n", "<xl>").text, notes)


def _domains(holds: Mapping[str, Any]) -> tuple[dict[str, _Domain], list[str]]:
    domains: dict[str, _Domain] = {}
    notes: list[str] = []
    for one in holds.get("xl-list", []):
        if one.vcpus:
            domains[one.name] = _Domain(one.vcpus)
    online: dict[str, list[str]] = {}
    for vcpu in holds.get("xl-vcpu-list", []):
        if vcpu.pcpu is not None:
            online.setdefault(vcpu.name, []).append(vcpu.hard)
    for name, affinity in online.items():
        domain = domains.setdefault(name, _Domain())
        domain.vcpus, domain.affinity = len(affinity), affinity
    pools = holds.get("xl-sched", [])
    for pool in pools:
        for row in pool.domains:
            domain = domains.setdefault(str(row["name"]), _Domain())
            given = {"weight": "weight", "cap": "cap", "period": "period_us", "budget": "budget_us"}
            if pool is pools[0]:
                domain.params = {to: row[column] for column, to in given.items() if isinstance(row.get(column), int)}
        if pool is not pools[0]:
            notes.append(
                f"pool {pool.pool}: its pCPUs are not listed; its domains are put with those of {pools[0].pool}"
            )
    return domains, notes


def _pcpus(holds: Mapping[str, Any], notes: list[str]) -> int:
    named = [0]
    for vcpu in holds.get("xl-vcpu-list", []):
        named += [int(number) for number in re.findall(r"\d+", vcpu.hard)] + [vcpu.pcpu or 0]
    info = holds.get("xl-info", {})
    said, threads = info.get("nr_cpus", ""), info.get("threads_per_core", "1")
    if threads not in ("", "1"):
        notes.append(f"threads_per_core = {threads}: each is a whole core here, and the host stronger than it is")
    if said.isdecimal() and int(said):
        return max(int(said), 1)
    notes.append(f"pcpus = {max(named) + 1}: no `xl info` says how many; the most that the other listings name")
    return max(named) + 1


def _scheduler(holds: Mapping[str, Any], notes: list[str]) -> tuple[str, dict[str, int]]:
    pools = holds.get("xl-sched", [])
    if not pools:
        said = holds.get("xl-info", {}).get("xen_scheduler", "")
        if generation_of(said) is None:
            notes.append("scheduler = credit2: no listing says which; it is Xen's default")
            said = "credit2"
        return said, {}
    # `tslice=30ms` is `tslice_ms = 30`.
    params = {}
    for name, value in pools[0].parameters.items():
        match = re.fullmatch(r"(\d+)(ms|us)", value)
        if match is not None:
            params[f"{name.replace('-', '_')}_{match[2]}"] = int(match[1])
    return pools[0].scheduler, params


def _add_use(holds: Mapping[str, Any], domains: Mapping[str, _Domain], notes: list[str]) -> None:
    """CPU use of the later updates, their mean: the first says 0 of all."""
    rows: Sequence[Usage] = [one for one in holds.get("xentop", []) if one.update]
    if not rows:
        notes.append("nothing runs in the domains: no `xentop -b -i 2`, whose second update has their CPU use")
        return
    used: dict[str, list[float]] = {}
    for row in rows:
        used.setdefault(row.name, []).append(row.cpu_percent)
    for name, domain in domains.items():
        cut = [other for other in domains if other[:NAME_MOST] == name[:NAME_MOST]]
        values = used.get(name) or (used.get(name[:NAME_MOST]) if len(cut) == 1 else None)
        if values is None:
            notes.append(
                f"domain {name}: xentop does not list it, or cuts its name; nothing runs in it (-f: full names)"
            )
        else:
            domain.used = math.fsum(values) / len(values)


def _alike(domains: Mapping[str, _Domain], notes: list[str]) -> Iterator[tuple[str, _Domain, int]]:
    """The domains, numbered ones that are alike as one, each with how many it stands for."""
    rows: dict[str, list[str]] = {}
    for name in domains:
        rows.setdefault(name.rstrip("0123456789"), []).append(name)
    for stem, names in rows.items():
        count = len(names)
        numbered = [f"{stem}{number:0{len(str(count))}}" for number in range(1, count + 1)]
        row = [domains[name] for name in names]
        if count == 1 or not stem or sorted(names) != numbered or not _same(row):
            yield from ((name, domains[name], 1) for name in names)
            continue
        used = [one.used for one in row if one.used is not None]
        mean = math.fsum(used) / count if used else None
        if len(set(used)) > 1:
            notes.append(f"{in_short(numbered)}: {min(used):.4g} to {max(used):.4g} {_PERCENT}; all get the mean")
        yield stem, replace(row[0], used=mean), count


def _same(domains: Sequence[_Domain]) -> bool:
    """Have they the same settings, and about the same use?"""
    first, used = domains[0], [one.used or 0.0 for one in domains]
    return all(replace(one, used=first.used) == first for one in domains) and max(used) <= (
        IDLE_PERCENT if min(used) <= IDLE_PERCENT else _SAME * min(used)
    )


def _table(name: str, domain: _Domain, known: set[str], pcpus: int, count: int) -> list[str]:
    key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
    lines = [f"[domain.{key}]", *([f"count = {count}"] if count > 1 else []), f"vcpus = {domain.vcpus}"]
    if name == _DRIVER_DOMAIN:
        lines.append("driver_domain = true")
    lines += [f"{param} = {value}" for param, value in domain.params.items() if param in known]
    affinity = [_on_the_host(one, pcpus) for one in domain.affinity]
    if set(affinity) - {"all"}:
        same = len(set(affinity)) == 1
        lines.append(tomli_w.dumps({"affinity": affinity[0] if same else affinity}).rstrip("\n"))
    if domain.used is not None and domain.used > IDLE_PERCENT:
        # A job has one vCPU at a time.
        instances = min(max(1, math.ceil(domain.used / (100 * _MOST))), domain.vcpus)
        run_us = min(round(10 * PERIOD_MS * domain.used / instances), round(1000 * PERIOD_MS * _MOST))
        lines += [
            f"# assumed: {domain.used:.4g} {_PERCENT}, as xentop measured, in periods of {PERIOD_MS} ms",
            f"[[domain.{key}.app]]",
            'kind = "periodic"',
            *([f"instance = {instances}"] if instances > 1 else []),
            f'run = "{run_us}us"',
            f'period = "{PERIOD_MS}ms"',
        ]
    return lines


def _on_the_host(affinity: str, pcpus: int) -> str:
    """A set that has all pCPUs is `all`."""
    return "all" if affinity == f"0-{pcpus - 1}" else affinity
