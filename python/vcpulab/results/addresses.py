"""Addresses of numbers: `http.response_p99`, `web.wait_p99`, `pcpu.0.idle`, `host.idle`.

An address is the name of a thing and a metric of it. A client has its own name; the first application of the domain
`web` is `web.0`; a domain's name stands for its devices too, and for its only client or application, where it has but
one. Addresses are the same everywhere: in tables, in JSON, in `run["http.response_p99"]`, in options, in messages.
"""

import math
import operator
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from vcpulab.errors import RequestError
from vcpulab.results.metrics import APP, DOMAIN, HOST, IO, PCPU, Better, Metric, ThingKind
from vcpulab.results.statistics import number
from vcpulab.scenario.alike import rows
from vcpulab.scenario.names import did_you_mean, grouped, is_pattern, listed, matching
from vcpulab.scenario.names import in_short as names_in_short
from vcpulab.scenario.scenario import Scenario, join, split


class AddressError(RequestError, KeyError):
    """No number has that address, or the number was never defined."""


class Address(NamedTuple):
    """A metric of a thing."""

    thing: str
    """The name of the measured thing, as in `Run.summary`."""
    kind: ThingKind
    """The kind of thing that is measured."""
    metric: Metric
    domain: str
    """The domain that the metric concerns: a client's server; empty for the host and its pCPUs."""

    @property
    def name(self) -> str:
        """The address as it is typed, such as `web.response_p99`."""
        return f"{self.thing}.{self.metric.name}"

    @property
    def unit(self) -> str:
        """The unit of the metric."""
        return self.metric.unit.text

    @property
    def better(self) -> Better | None:
        """The good direction of the metric; `None`: it has none."""
        return self.metric.better

    @property
    def title(self) -> str:
        """Name and unit, as the title of an axis."""
        return f"{self.name}, {self.unit}"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class App:
    """An application or a client: a row of `Run.df_apps`."""

    name: str
    """The name in addresses and tables."""
    domain: str
    """The domain that runs the application; for a client the domain that serves it."""
    position: int
    """The position in the domain, from 0; clients come after the applications."""
    kind: str
    """The kind, as in a scenario file."""
    client: str | None
    """The client's name; `None`: an application."""
    aliases: tuple[str, ...]
    """Other names that addresses may use."""
    assumed: bool = False
    """`True`: an import assumed the work of the application."""


def apps(scenario: Scenario) -> Sequence[App]:
    """The applications and clients of a scenario, domain by domain.

    Examples:
        >>> [(app.name, app.kind) for app in apps(Scenario.starter())]
        [('web.0', 'web-server'), ('http', 'open-loop'), ('batch', 'hog')]
    """
    return scenario.kept(_apps)


def _apps(scenario: Scenario) -> Sequence[App]:
    return tuple(
        App(name, domain, position, kind, client, tuple(aliases), assumed)
        for name, aliases, domain, position, kind, client, assumed in scenario._engine.apps()
    )


def app_rows(scenario: Scenario, alike: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows of applications and clients with the same position in alike domains."""
    apps_of = grouped(apps(scenario), lambda app: app.domain)
    rows = [row for group in alike for row in zip(*(apps_of.get(domain, []) for domain in group), strict=False)]
    return [[app.name for app in row] for row in rows]


def instance_rows(scenario: Scenario, alike: Sequence[Sequence[str]]) -> list[list[str]]:
    """Rows of the instances of an application, of domains that are like no other.

    Examples:
        >>> scenario = Scenario.starter().change({"domain.batch.vcpus": 2, "domain.batch.app.0.instance": 2})
        >>> instance_rows(scenario, [["web"], ["batch"]])
        [['web.0'], ['batch.0', 'batch.1']]
    """
    apps_of = grouped(apps(scenario), lambda app: app.domain)
    rows = []
    for domain in (group[0] for group in alike if len(group) == 1):
        names = (app.name for app in apps_of.get(domain, []))
        rows += [list(islice(names, app.instance)) for app in scenario.domains[domain].apps]
    return rows


def row_of_things(*scenarios: Scenario) -> dict[str, tuple[str, ...]]:
    """Domains and applications to the things that share a row with them; see `alike.rows`."""
    alike = rows(*scenarios)
    together = [*alike, *app_rows(scenarios[0], alike), *instance_rows(scenarios[0], alike)]
    return {thing: tuple(row) for row in together for thing in row}


_OF_DOMAINS: Mapping[ThingKind, tuple[Metric, ...]] = {"domain": DOMAIN, "io": IO}


def addresses(scenario: Scenario) -> Sequence[Address]:
    """The address of every number in a run of a scenario: of applications and clients, domains, the host, pCPUs.

    Examples:
        >>> [address.name for address in addresses(Scenario.starter()) if address.metric.name == "throughput"]
        ['web.0.throughput', 'http.throughput', 'batch.throughput']
    """
    return scenario.kept(_addresses)


def _addresses(scenario: Scenario) -> Sequence[Address]:
    domains = [(join([name]), name) for name in scenario.domains]
    return (
        *(Address(app.name, "app", metric, app.domain) for app in apps(scenario) for metric in APP),
        *(
            Address(thing, kind, metric, domain)
            for thing, domain in domains
            for kind, metrics in _OF_DOMAINS.items()
            for metric in metrics
        ),
        *(Address("host", "host", metric, "") for metric in HOST),
        *(Address(f"pcpu.{pcpu}", "pcpu", metric, "") for pcpu in range(scenario.host.pcpus) for metric in PCPU),
    )


def _by_name(scenario: Scenario) -> Mapping[str, Address]:
    return {address.name: address for address in addresses(scenario)}


def judged(scenario: Scenario) -> list[Address]:
    """The addresses that owners judge by: judged metrics of all clients, and of applications without a client.

    Examples:
        >>> [address.name for address in judged(Scenario.starter()) if address.metric.name == "throughput"]
        ['http.throughput', 'batch.throughput']
    """
    services = {(client.server, client.app) for client in scenario.clients.values()}
    things = {app.name for app in apps(scenario) if (app.domain, app.kind) not in services}
    return [address for address in addresses(scenario) if address.thing in things and address.metric.judged]


def find(scenario: Scenario, text: str, field: str | None = None) -> Address:
    """The address that a text means.

    Args:
        scenario: the scenario whose addresses are searched.
        text: an address; `web.response_p99` may mean the response time of the only client of `web`.
        field: the argument that the text comes from, for messages.

    Raises:
        AddressError: no number has that address; the message lists the allowed names.

    Examples:
        >>> find(Scenario.starter(), "web.response_p99").name
        'http.response_p99'
    """
    if not isinstance(text, str):
        raise AddressError(field=field or "address", found=reprlib.repr(text), allowed="one text, NAME.METRIC")
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
        # A metric without a name is most likely a client's.
        clients = [app.name for app in apps(scenario) if app.client is not None]
        names = [f"{name}.{last}" for name in (*clients, *things) if f"{name}.{last}" in listed]
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
    # The metrics of a domain's client are meant more often than the metrics of the domain.
    metrics = list(dict.fromkeys(a.metric.name for name in (*meant, thing) for a in listed.values() if a.thing == name))
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
    """The addresses that texts mean; a pattern such as `web*.response_p99` means every address that matches.

    Args:
        scenario: the scenario whose addresses are searched.
        texts: addresses and patterns of addresses; a domain that matches may mean its client, as in `find`.
        field: the argument that the texts come from, for messages.

    Raises:
        AddressError: no number has that address, or nothing matches.

    Examples:
        >>> [address.name for address in find_all(Scenario.starter(), ["*.gotten", "web*.response_p99"])]
        ['dom0.gotten', 'web.gotten', 'batch.gotten', 'web.0.response_p99', 'http.response_p99']
    """
    by_name: dict[str, Address] = {}
    for text in texts:
        for address in _matched(scenario, text, field) if is_pattern(text) else [find(scenario, text, field)]:
            by_name.setdefault(address.name, address)
    return list(by_name.values())


def _matched(scenario: Scenario, text: str, field: str | None) -> list[Address]:
    by_name = scenario.kept(_by_name)
    meant = dict(by_name)
    for app in apps(scenario):
        for alias in app.aliases:
            meant |= {
                f"{alias}.{m.name}": by_name[f"{app.name}.{m.name}"] for m in APP if f"{alias}.{m.name}" not in by_name
            }
    named = [text] if text in meant else matching(text, meant)
    if named:
        return [meant[name] for name in named]
    *steps, last = split(text) or [""]
    thing = join(steps)
    things = list(dict.fromkeys(address.thing for address in by_name.values()))
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
    """The bound in the metric's unit."""
    written: str = ""
    """The bound as the user wrote it, such as `10s`."""

    @property
    def wants(self) -> Better:
        """The direction in which values keep it."""
        return "lower" if self.operator.startswith("<") else "higher"

    def holds(self, value: float | None) -> bool:
        """Whether a value keeps the SLO; an undefined value does not."""
        return value is not None and _OPERATORS[self.operator](value, self.bound)

    def excess(self, value: float | None) -> float:
        """The distance of a value outside the bound, as a fraction of the bound; 0 or less: the SLO is kept."""
        if value is None:
            return float("inf")
        over = value - self.bound if self.operator.startswith("<") else self.bound - value
        return over / abs(self.bound) if self.bound else over

    def __str__(self) -> str:
        return f"{self.address} {self.operator} {self.written or f'{number(self.bound)} {self.address.unit}'}"


def slo(scenario: Scenario, text: str, field: str = "slo") -> Slo:
    """An SLO such as `web.response_p99 < 50ms`.

    Raises:
        RequestError: the text is no SLO.

    Examples:
        >>> print(slo(Scenario.starter(), "web.response_p99<0.05s"))
        http.response_p99 < 0.05s
    """
    name = _matched_slo(text, field)["address"]
    return _slo(find(scenario, name, field), text, field)


def slos(scenario: Scenario, texts: Iterable[str], field: str = "slo") -> list[Slo]:
    """The SLOs that texts mean; a pattern such as `web*.response_p99 < 50ms` is an SLO on every address that matches.

    Raises:
        RequestError: a text is no SLO.

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
    """SLOs with the same bound on the same metric, grouped under one name.

    Args:
        slos: the SLOs.
        rows: things that share a name whatever their bounds; the bounds are shown from the least to the most.

    Examples:
        >>> list(in_short(slos(Scenario.starter(), ["*.gotten > 5", "web.waited < 9"])))
        ['dom0, web, batch.gotten > 5 % of a pCPU', 'web.waited < 9 % of a vCPU']
        >>> list(in_short(slos(Scenario.starter(), ["web.gotten > 5", "batch.gotten > 6"]), [["web", "batch"]]))
        ['web, batch.gotten > 5 to 6 % of a pCPU']
    """
    row_of = {thing: number for number, row in enumerate(rows) if len(row) > 1 for thing in row}

    def key(slo: Slo) -> tuple[str, str, str | int]:
        bound = str(slo).removeprefix(str(slo.address))
        return (slo.address.metric.name, slo.operator, row_of.get(slo.address.thing, bound))

    return {
        f"{names_in_short([slo.address.thing for slo in row])}.{metric}{_bounds(row)}": row
        for (metric, _, _), row in grouped(slos, key).items()
    }


def _bounds(row: Sequence[Slo]) -> str:
    """The bound of SLOs on one metric as text; of different bounds the least and the most."""
    first = row[0]
    if len({(slo.operator, slo.bound) for slo in row}) == 1:
        return str(first).removeprefix(str(first.address))
    least, most = min(slo.bound for slo in row), max(slo.bound for slo in row)
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
    bound_text = match["value"] + (match["unit"] or f" {address.unit}")
    return Slo(address, match["operator"], bound, bound_text.rstrip())
