"""A load that can grow: a number of the scenario, such as a client's rate, or copies of a domain with its clients."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.advice.capacity.search import Range
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.results.addresses import Address, Slo
from vcpulab.scenario.names import did_you_mean, listed
from vcpulab.scenario.scenario import Scenario, join, split, tables
from vcpulab.scenario.settings import COUNT, resolve_all
from vcpulab.scenario.table import value_at

REQUESTS_MIN = 100
"""The requests in the measured time at the lowest rate: a 99th percentile needs that many."""

_COPIES = "copies:"
_NO_LOAD = ("name", "seed", "run")


@dataclass(frozen=True)
class Growth:
    """A load that grows, and its scenarios."""

    name: str
    """As in a scenario file, or `copies of NAME`."""
    within: Range
    present: float
    """The value in the file."""
    at: Callable[[float], Scenario]
    """Value to the scenario with that value."""
    copies: Callable[[float], list[dict[str, str]]] = lambda _value: []
    """Value to the copies in its scenario, each as name of a domain or client to the name of its copy."""

    def spread(self, slo: Slo, value: float) -> list[Slo]:
        """An SLO, and the same SLO for every copy of its domain."""
        copied = [
            slo._replace(address=_of_copy(slo.address, names))
            for names in self.copies(value)
            if slo.address.domain in names
        ]
        return [slo, *copied]

    def format(self, value: float) -> str:
        """A value in the form of a scenario file."""
        return f"{value:.0f}" if self.within.whole else f"{value:g}"


def growth(scenario: Scenario, word: str, *, lowest: float | None = None, highest: float | None = None) -> Growth:
    """A load that grows.

    Args:
        scenario: the scenario in which it grows.
        word: a path, such as `web.users`; a pattern of paths, which grow together; `copies:web`; or the `batch.count`
            of a `batch` that has one.
        lowest: the lowest value; the default is 1, or the rate of `REQUESTS_MIN` requests in a replication.
        highest: the highest value; by default the largest that makes a valid scenario.

    Raises:
        RequestError: the word names nothing that can grow.

    Examples:
        >>> users = growth(Scenario.starter(), "http.rate")
        >>> users.name, users.present
        ('client.http.rate', 350.0)
    """
    if word.startswith(_COPIES):
        return _copies(scenario, word.removeprefix(_COPIES), lowest, highest)
    paths = resolve_all(scenario, word, "vary")
    path = paths[0] if len(paths) == 1 else word
    if split(paths[0])[0] in _NO_LOAD:
        raise RequestError(f"`{path}` loads nothing", field="vary", found=word, allowed=_allowed(scenario))
    # The complete scenario has the copies instead of their number.
    counted = tables(scenario.text) if split(path)[-1] == COUNT else scenario.model.fields
    present, *further = (value_at(counted, split(name)) for name in paths)
    if any(value != present for value in further):
        values = ", ".join(dict.fromkeys(map(str, (present, *further))))
        raise RequestError(f"they have different values, {values}", field="vary", found=word, allowed="one path")
    if isinstance(present, bool) or not isinstance(present, int | float):
        value_found = "is not set" if present is None else f"is `{present}`"
        raise RequestError(f"`{path}` {value_found}", field="vary", found=word, allowed=_allowed(scenario))
    # The engine writes a rate without a fraction as an integer.
    whole = isinstance(present, int) and not path.endswith(".rate")

    def at(value: float) -> Scenario:
        return scenario.change(dict.fromkeys(paths, int(value) if whole else value))

    least = 1.0 if whole else min(float(present), REQUESTS_MIN / (scenario.duration_ns / 1e9))
    within = _within(whole, least, lowest, highest, lambda value: _valid(at, value))
    return Growth(path, within, float(present), at)


def _copies(scenario: Scenario, name: str, lowest: float | None, highest: float | None) -> Growth:
    document = scenario.written()
    domains = [domain for domain, table in scenario.domains.items() if not table.driver_domain]
    if name not in domains:
        allowed = f"one of {', '.join(listed(domains))}" if domains else "none, all domains are driver domains"
        counted = name in scenario.copies().get("domain", {})
        hint = f"its own number grows as {name}.{COUNT}" if counted else did_you_mean(name, domains)
        raise RequestError(
            f"there is no domain `{name}` to copy",
            field="vary",
            found=f"{_COPIES}{name}",
            allowed=allowed,
            hint=hint,
        )

    def at(value: float) -> Scenario:
        changes: dict[str, Any] = {}
        for number in range(2, int(value) + 1):
            changes |= _copy(scenario, document, name, number)
        actions = [dict(action) for action in document.get("action", [])]
        actions += [
            {**action, "domain": _named(document, "domain", name, number)}
            for number in range(2, int(value) + 1)
            for action in actions
            if action.get("domain") == name
        ]
        if actions:
            changes["action"] = actions
        return scenario.change(changes)

    clients = [client for client, table in scenario.clients.items() if table.server == name]

    def copies(value: float) -> list[dict[str, str]]:
        return [
            {
                name: _named(document, "domain", name, number),
                **{client: _named(document, "client", client, number) for client in clients},
            }
            for number in range(2, int(value) + 1)
        ]

    within = _within(True, 1.0, lowest, highest, lambda value: _valid(at, value))
    return Growth(f"copies of {name}", within, 1.0, at, copies)


def _copy(scenario: Scenario, document: Mapping[str, Any], name: str, number: int) -> dict[str, Any]:
    """The changes that add a copy of a domain, with its own clients and client machines."""
    copy = _named(document, "domain", name, number)
    changes: dict[str, Any] = {join(["domain", copy]): document["domain"][name]}
    for client, table in scenario.clients.items():
        if table.server != name:
            continue
        fields = {**document["client"][client], "server": copy}
        if table.machine is not None:
            fields["machine"] = _named(document, "client_machine", table.machine, number)
            changes[join(["client_machine", fields["machine"]])] = document["client_machine"][table.machine]
        changes[join(["client", _named(document, "client", client, number)])] = fields
    return changes


def _named(document: Mapping[str, Any], kind: str, name: str, number: int) -> str:
    """A name for a copy that is free in the file."""
    copy = f"{name}-{number}"
    while copy in document.get(kind, {}):
        copy += "x"
    return copy


def _of_copy(address: Address, names: Mapping[str, str]) -> Address:
    """The address in a copy that corresponds to an address in the original."""
    first, *rest = split(address.thing)
    return address._replace(thing=join([names.get(first, first), *rest]), domain=names[address.domain])


def _within(
    whole: bool, least: float, lowest: float | None, highest: float | None, valid: Callable[[float], bool]
) -> Range:
    for field, value in (("lowest", lowest), ("highest", highest)):
        if value is None:
            continue
        if not math.isfinite(value):
            raise RequestError(field=field, found=f"{value:g}", allowed="a finite number")
        if whole and value != int(value):
            raise RequestError(field=field, found=f"{value:g}", allowed="an integer")
        if not valid(value):
            raise RequestError("makes no valid scenario", field=field, found=f"{value:g}")
    start = least if lowest is None else lowest
    if not valid(start):
        raise RequestError(f"{start:g} makes no valid scenario", field="vary", hint="give the lowest value, too")
    end = math.inf if highest is None else highest
    if end < start:
        raise RequestError(field="highest", found=f"{end:g}", allowed=f"at least the lowest value, {start:g}")
    return Range(start, end, whole, valid)


def _valid(at: Callable[[float], Scenario], value: float) -> bool:
    try:
        at(value)
    except (ScenarioError, OverflowError):
        return False
    return True


def _allowed(scenario: Scenario) -> str:
    """The loads that may grow, in words: numbers of a scenario's clients, and copies."""
    loads = [
        join(["client", name, field])
        for name, client in scenario.clients.items()
        for field in ("users", "rate", "streams")
        if hasattr(client, field)
    ]
    return f"a number, such as {', '.join([*loads, f'{_COPIES}NAME'])}"
