"""Addresses of numbers: `http.response_p99`, `web.wait_p99`, `pcpu.0.idle`, `host.idle`.

An address is the name of a thing and a metric of it. A client has its own name; the first application of the domain
`web` is `web.0`; a domain's name stands for its devices too, and for its only client or application, where it has but
one. Addresses are the same everywhere: in tables, in JSON, in `run["http.response_p99"]`, in options, in messages.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vcpulab.errors import RequestError
from vcpulab.results.metrics import APP, DOMAIN, HOST, IO, PCPU, Better, Metric, Of
from vcpulab.results.statistics import number
from vcpulab.scenario.assumed import is_assumed
from vcpulab.scenario.names import did_you_mean, is_pattern, listed, matching
from vcpulab.scenario.names import in_short as names_in_short
from vcpulab.scenario.scenario import Scenario, join, split


class AddressError(RequestError, KeyError):
    """There is no number of that address, or it was never defined."""


class Address(NamedTuple):
    """A metric of a thing."""

    thing: str
    """What it is of, as in `Run.summary`."""
    of: Of
    """The kind of thing."""
    metric: Metric
    domain: str
    """The domain that it concerns; for a client the one that it asks, for the host and its pCPUs nothing."""

    @property
    def name(self) -> str:
        """As people type it, such as `web.response_p99`."""
        return f"{self.thing}.{self.metric.name}"

    @property
    def unit(self) -> str:
        """The unit of the metric."""
        return self.metric.unit.text

    @property
    def better(self) -> Better | None:
        """The good direction; `None`: there is none."""
        return self.metric.better

    @property
    def title(self) -> str:
        """Its name and unit, as for an axis."""
        return f"{self.name}, {self.unit}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class App:
    """An application or a client: a row of `Run.df_apps`."""

    name: str
    """What it is called in addresses and tables."""
    domain: str
    """Where it runs; for a client the domain that it asks."""
    position: int
    """In its domain, from 0; clients come after the applications."""
    kind: str
    """As in a scenario file."""
    client: str | None
    """The client's name; `None`: an application."""
    aliases: tuple[str, ...]
    """What else it may be called."""
    assumed: bool = False
    """Did an import assume its work?"""


def apps(scenario: Scenario) -> Sequence[App]:
    """The applications and clients of a scenario, domain by domain.

    Examples:
        >>> [(app.name, app.kind) for app in apps(Scenario.starter())]
        [('web.0', 'web-server'), ('http', 'open-loop'), ('batch', 'hog')]
    """
    return scenario.kept(_apps)


def _apps(scenario: Scenario) -> Sequence[App]:
    document = scenario.to_dict()
    clients: dict[str, list[tuple[str, str]]] = {}
    for name, client in document.get("client", {}).items():
        clients.setdefault(client["server"], []).append((name, str(client["kind"])))
    found: list[App] = []
    for domain, table in document["domain"].items():
        running = [app for app in table.get("app", []) for _ in range(app.get("instance", 1))]
        asking = clients.get(domain, [])
        rows = [*((None, str(app["kind"]), is_assumed(app)) for app in running), *((*one, False) for one in asking)]
        for position, (client, kind, assumed) in enumerate(rows):
            names = [join([domain, str(position)])]
            if client is not None and client not in document["domain"]:
                names.insert(0, join([client]))
            # The domain's name is its only client's, or its only application's.
            if (client is not None and len(asking) == 1) or (not asking and len(running) == 1):
                names.insert(0 if client is None or client == domain else 1, join([domain]))
            name, *aliases = dict.fromkeys(names)
            found.append(App(name, domain, position, kind, client, tuple(aliases), assumed))
    return tuple(found)


def app_rows(scenario: Scenario, alike: Sequence[Sequence[str]]) -> list[list[str]]:
    """The applications and clients of alike domains that have the same place in them."""
    of_domain: dict[str, list[str]] = {}
    for app in apps(scenario):
        of_domain.setdefault(app.domain, []).append(app.name)
    return [list(row) for group in alike for row in zip(*(of_domain.get(one, []) for one in group), strict=False)]


_OF_DOMAINS: Mapping[Of, tuple[Metric, ...]] = {"domain": DOMAIN, "io": IO}


def addresses(scenario: Scenario) -> Sequence[Address]:
    """The address of every number that runs of a scenario have: of applications and clients, domains, the host, pCPUs.

    Examples:
        >>> [address.name for address in addresses(Scenario.starter()) if address.metric.name == "throughput"]
        ['web.0.throughput', 'http.throughput', 'batch.throughput']
    """
    return scenario.kept(_addresses)


def _addresses(scenario: Scenario) -> Sequence[Address]:
    document = scenario.to_dict()
    domains = [(join([name]), name) for name in document["domain"]]
    return (
        *(Address(app.name, "app", one, app.domain) for app in apps(scenario) for one in APP),
        *(
            Address(thing, of, one, domain)
            for thing, domain in domains
            for of, metrics in _OF_DOMAINS.items()
            for one in metrics
        ),
        *(Address("host", "host", one, "") for one in HOST),
        *(Address(f"pcpu.{pcpu}", "pcpu", one, "") for pcpu in range(document["host"]["pcpus"]) for one in PCPU),
    )


def _by_name(scenario: Scenario) -> Mapping[str, Address]:
    return {address.name: address for address in addresses(scenario)}


JUDGED_BY = ("throughput", "failed", "response_p99")
"""The metrics that owners judge clients and applications by."""


def judged(scenario: Scenario) -> list[Address]:
    """What owners judge by: `JUDGED_BY` of all clients, and of the applications that no client asks.

    Examples:
        >>> [address.name for address in judged(Scenario.starter()) if address.metric.name == "throughput"]
        ['http.throughput', 'batch.throughput']
    """
    services = {(client["server"], client.get("app")) for client in scenario.to_dict().get("client", {}).values()}
    things = {app.name for app in apps(scenario) if (app.domain, app.kind) not in services}
    return [one for one in addresses(scenario) if one.thing in things and one.metric.name in JUDGED_BY]


def find(scenario: Scenario, text: str, field: str | None = None) -> Address:
    """The address that a text means.

    Args:
        scenario: what it is an address in.
        text: an address; `web.response_p99` may stand for that of the only client of `web`.
        field: the argument that it comes from, for messages.

    Raises:
        AddressError: there is none; the text says which there are.

    Examples:
        >>> find(Scenario.starter(), "web.response_p99").name
        'http.response_p99'
    """
    listed = scenario.kept(_by_name)
    if text in listed:
        return listed[text]
    *steps, last = split(text) or [""]
    thing = join(steps)
    meant = [app.name for app in apps(scenario) if thing in app.aliases]
    for name in meant:
        if f"{name}.{last}" in listed:
            return listed[f"{name}.{last}"]
    things = list(dict.fromkeys(address.thing for address in listed.values()))
    if not steps:
        # Whose it is, clients say best.
        clients = [app.name for app in apps(scenario) if app.client is not None]
        names = [f"{one}.{last}" for one in (*clients, *things) if f"{one}.{last}" in listed]
        raise AddressError(
            "it does not say of what",
            field=field,
            found=text,
            allowed=f"NAME.METRIC, where NAME is one of {_things(things)}",
            hint=f"did you mean `{names[0]}`?" if names else None,
        )
    if thing not in things and not meant:
        raise AddressError(
            f"there is no `{thing}`",
            field=field,
            found=text,
            allowed=_things(things),
            hint=did_you_mean(thing, things),
        )
    # What a domain's client has is meant more often than what the domain has itself.
    metrics = list(dict.fromkeys(a.metric.name for one in (*meant, thing) for a in listed.values() if a.thing == one))
    raise AddressError(
        f"`{thing}` has no metric `{last}`",
        field=field,
        found=text,
        allowed=", ".join(metrics),
        hint=did_you_mean(last, metrics),
    )


def _things(names: Iterable[str]) -> str:
    return ", ".join(listed(sorted(name for name in names if not name.startswith("pcpu."))))


def find_all(scenario: Scenario, texts: Iterable[str], field: str | None = None) -> list[Address]:
    """The addresses that texts mean, where `web*.response_p99` means that of everything whose name matches.

    Args:
        scenario: what they are addresses in.
        texts: addresses, and patterns of them; a domain that matches stands for its client as in `find`.
        field: the argument that they come from, for messages.

    Raises:
        AddressError: there is none of that name, or nothing matches.

    Examples:
        >>> [address.name for address in find_all(Scenario.starter(), ["*.gotten", "web*.response_p99"])]
        ['dom0.gotten', 'web.gotten', 'batch.gotten', 'web.0.response_p99', 'http.response_p99']
    """
    found: dict[str, Address] = {}
    for text in texts:
        for address in _matched(scenario, text, field) if is_pattern(text) else [find(scenario, text, field)]:
            found.setdefault(address.name, address)
    return list(found.values())


def _matched(scenario: Scenario, text: str, field: str | None) -> list[Address]:
    known = scenario.kept(_by_name)
    meant = dict(known)
    for app in apps(scenario):
        for alias in app.aliases:
            meant |= {
                f"{alias}.{m.name}": known[f"{app.name}.{m.name}"] for m in APP if f"{alias}.{m.name}" not in known
            }
    named = [text] if text in meant else matching(text, meant)
    if named:
        return [meant[name] for name in named]
    *steps, last = split(text) or [""]
    thing = join(steps)
    things = list(dict.fromkeys(address.thing for address in known.values()))
    if matching(thing, (name.rpartition(".")[0] for name in meant)):
        metrics = list(dict.fromkeys(n.rpartition(".")[2] for n in meant if matching(thing, [n.rpartition(".")[0]])))
        reason, allowed, hint = f"`{thing}` has no metric `{last}`", ", ".join(metrics), did_you_mean(last, metrics)
    else:
        reason, allowed, hint = f"nothing matches `{thing}`", _things(things), did_you_mean(thing, things)
    raise AddressError(reason, field=field, found=text, allowed=allowed, hint=hint)


# ---- SLOs ----

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SLO = re.compile(r"\s*(?P<address>[^<>=\s]+)\s*(?P<operator><=|>=|<|>)\s*(?P<value>[-+.0-9eE]+)\s*(?P<unit>\S*)\s*")


class Slo(NamedTuple):
    """A bound on a metric of a thing."""

    address: Address
    operator: str
    bound: float
    """In the metric's unit."""
    written: str = ""
    """The bound as somebody wrote it, such as `10s`."""

    @property
    def wants(self) -> Better:
        """The direction in which values keep it."""
        return "lower" if self.operator.startswith("<") else "higher"

    def holds(self, value: float | None) -> bool:
        """Does it hold of this value? Not of one that is not defined."""
        return value is not None and _OPERATORS[self.operator](value, self.bound)

    def excess(self, value: float | None) -> float:
        """How far a value is beyond the bound, as a fraction of it; 0 or less: it keeps it."""
        if value is None:
            return float("inf")
        over = value - self.bound if self.operator.startswith("<") else self.bound - value
        return over / abs(self.bound) if self.bound else over

    def __str__(self) -> str:
        return f"{self.address} {self.operator} {self.written or f'{number(self.bound)} {self.address.unit}'}"


def slo(scenario: Scenario, text: str, field: str = "slo") -> Slo:
    """An SLO such as `web.response_p99 < 50ms`.

    Raises:
        RequestError: it cannot be understood.

    Examples:
        >>> print(slo(Scenario.starter(), "web.response_p99<0.05s"))
        http.response_p99 < 0.05s
    """
    name = _matched_slo(text, field)["address"]
    return _slo(find(scenario, name, field), text, field)


def slos(scenario: Scenario, texts: Iterable[str], field: str = "slo") -> list[Slo]:
    """The SLOs that texts mean, where `web*.response_p99 < 50ms` is one on everything whose name matches.

    Raises:
        RequestError: one cannot be understood.

    Examples:
        >>> print(*slos(Scenario.starter(), ["*.gotten > 5"]), sep=", ")
        dom0.gotten > 5 % of a pCPU, web.gotten > 5 % of a pCPU, batch.gotten > 5 % of a pCPU
    """
    return [
        _slo(address, text, field)
        for text in texts
        for address in find_all(scenario, [_matched_slo(text, field)["address"]], field)
    ]


def in_short(slos: Iterable[Slo], rows: Iterable[Sequence[str]] = ()) -> dict[str, list[Slo]]:
    """SLOs of the same bound on the same metric, under one name.

    Args:
        slos: the SLOs.
        rows: the things that share a name whatever their bounds, which are shown from the least to the most.

    Examples:
        >>> list(in_short(slos(Scenario.starter(), ["*.gotten > 5", "web.waited < 9"])))
        ['dom0, web, batch.gotten > 5 % of a pCPU', 'web.waited < 9 % of a vCPU']
        >>> list(in_short(slos(Scenario.starter(), ["web.gotten > 5", "batch.gotten > 6"]), [["web", "batch"]]))
        ['web, batch.gotten > 5 to 6 % of a pCPU']
    """
    row_of = {thing: number for number, row in enumerate(rows) if len(row) > 1 for thing in row}
    alike: dict[tuple[str, str, str | int], list[Slo]] = {}
    for one in slos:
        bound = str(one).removeprefix(str(one.address))
        key = (one.address.metric.name, one.operator, row_of.get(one.address.thing, bound))
        alike.setdefault(key, []).append(one)
    return {
        f"{names_in_short([one.address.thing for one in row])}.{metric}{_bounds(row)}": row
        for (metric, _, _), row in alike.items()
    }


def _bounds(row: Sequence[Slo]) -> str:
    """The bound of SLOs on one metric, or the least and the most of them."""
    first = row[0]
    if len({(one.operator, one.bound) for one in row}) == 1:
        return str(first).removeprefix(str(first.address))
    least, most = min(one.bound for one in row), max(one.bound for one in row)
    return f" {first.operator} {least:g} to {most:g} {first.address.unit}"


def _matched_slo(text: str, field: str) -> re.Match[str]:
    match = _SLO.fullmatch(text)
    if match is None:
        allowed = "METRIC < VALUE, such as `web.response_p99 < 50ms`"
        raise RequestError(field=field, found=text, allowed=allowed)
    return match


def _slo(address: Address, text: str, field: str) -> Slo:
    match = _matched_slo(text, field)
    written = address.metric.unit.written
    try:
        bound = float(match["value"]) * written[match["unit"]]
    except (ValueError, KeyError):
        bound = math.nan
    if not math.isfinite(bound):
        units = ", ".join(unit for unit in written if unit) or "none"
        allowed = f"a number, with one of the units {units} or none"
        raise RequestError(field=field, found=text, allowed=allowed)
    said = match["value"] + (match["unit"] or f" {address.unit}")
    return Slo(address, match["operator"], bound, said.rstrip())
