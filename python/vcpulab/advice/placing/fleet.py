"""Scenarios split into the items that can be placed, domains with their clients, and the host to place them on.

Driver domains that own NICs and disks, and `dom0`, are on every host. Domains that use each other's services stay
together, and so do a stub domain and the domains that it serves.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tomli_w

from vcpulab.advice.capacity.occupancy import serving
from vcpulab.advice.placing.nodes import soft
from vcpulab.errors import RequestError
from vcpulab.hypervisors.commands import HYPERVISORS
from vcpulab.scenario.catalogue import profiles
from vcpulab.scenario.model import Domain
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.settings import change
from vcpulab.scenario.topology import Topology

Tables = dict[str, dict[str, Any]]
"""Kind of table (`domain`, `client`, `client_machine`) to name to fields."""

_NAME_LONG = 32
"""The number of characters of an item's name that a scenario's name has room for."""

_KINDS = ("domain", "client", "client_machine")
_REFERENCES = {"server": "domain", "machine": "client_machine", "driver_domain": "domain"}
_REFERENCES |= dict.fromkeys(("to", "database", "directory", "files"), "domain")


@dataclass(frozen=True)
class Item:
    """The unit of placement: a domain, or several that belong together, with their clients."""

    tables: Tables
    actions: list[dict[str, Any]]

    @property
    def domains(self) -> list[str]:
        """The item's domains."""
        return list(self.tables["domain"])

    @property
    def name(self) -> str:
        """The names of the item's domains, joined."""
        return "+".join(self.domains)

    @property
    def names(self) -> set[str]:
        """The names of the item's domains and clients."""
        return {*self.tables["domain"], *self.tables["client"]}

    @property
    def kind(self) -> str:
        """A key that is equal for items that differ only in their names."""
        names = {kind: {name: f"#{index}" for index, name in enumerate(self.tables[kind])} for kind in _KINDS}
        tables, actions = _renamed(self.tables, self.actions, names)
        return json.dumps([tables, actions], sort_keys=True)


@dataclass(frozen=True)
class Fleet:
    """Items, and the host to place them on."""

    items: list[Item]
    host: dict[str, Any]
    """A scenario without the items."""
    base: Scenario
    """The scenario that the host is from."""
    given: list[Scenario]
    """The scenarios that were split."""
    notes: list[str]
    """The changes made to place domains of several files on one kind of host."""
    busy: dict[str, float] = field(default_factory=dict)
    """Domain to the number of pCPUs it keeps busy, if measured."""

    def scenario(self, items: Sequence[Item]) -> Scenario:
        """The scenario of a host with some items; if it has several nodes, each domain prefers one: see `nodes.soft`.

        Raises:
            ScenarioError: the items cannot be on the host.
        """
        document = {key: dict(value) if isinstance(value, Mapping) else value for key, value in self.host.items()}
        actions = list(self.host.get("action", []))
        for item in items:
            for kind in _KINDS:
                if item.tables[kind]:
                    document[kind] = {**document.get(kind, {}), **item.tables[kind]}
            actions += item.actions
        if actions:
            document["action"] = actions
        if items:
            more = f" and {len(items) - 1} more" if len(items) > 1 else ""
            document["name"] = f"host with {items[0].name[:_NAME_LONG]}{more}"
        made = Scenario.from_toml(tomli_w.dumps(document), "<host>", folder=self.base.folder)
        prefers = soft(made.model, self.busy)
        if not prefers:
            return made
        return made.change({join(["domain", name, "soft_affinity"]): mask for name, mask in prefers.items()})

    @property
    def common(self) -> set[str]:
        """The domains that are on every host."""
        return set(self.host.get("domain", {}))


def host_of(scenarios: Mapping[str, Scenario], name: str) -> Scenario:
    """The first scenario on the hardware of a profile; for a name that ends in `.toml`, the scenario in that file.

    Raises:
        RequestError: no profile has that name.
    """
    if name.endswith(".toml"):
        return Scenario.load(name)
    names = [profile.name for profile in profiles()]
    if name not in names:
        raise RequestError(field="host", found=name, allowed=f"a scenario file (*.toml), or one of {', '.join(names)}")
    first = next(iter(scenarios.values()))
    own = [
        f"host.{field}" for field in ("pcpus", "pcpus_per_socket", "topology", "costs") if field in first.stated("host")
    ]
    return first.change({**dict.fromkeys(own), "host.profile": name})


def group(names: Sequence[str], field: str) -> Sequence[str]:
    """The names of a group of domains, `apart` or `together`.

    Raises:
        RequestError: the names are no group.
    """
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        allowed = "two or more names of domains, such as web,batch"
        raise RequestError(field=field, found=",".join(names), allowed=allowed)
    return names


def fleet(
    scenarios: Mapping[str, Scenario], *, host: Scenario | None = None, together: Iterable[Sequence[str]] = ()
) -> Fleet:
    """Splits scenarios into a host and the items to place.

    Args:
        scenarios: label (such as the file's name) to scenario.
        host: the scenario with the host to place domains on; by default the first scenario.
        together: names of domains that have to be on one host.

    Raises:
        RequestError: no domain can be placed, or one needs a driver domain that the host does not have.

    Examples:
        >>> taken = fleet({"starter": Scenario.starter()})
        >>> [item.name for item in taken.items], sorted(taken.common)
        (['web', 'batch'], ['dom0'])
    """
    base = host or next(iter(scenarios.values()))
    document = base.written()
    common = _common(base)
    stays = {key: value for key, value in document.items() if key not in (*_KINDS, "action")}
    stays["domain"] = {name: document["domain"][name] for name in common}
    actions = [action for action in document.get("action", []) if action.get("domain") in (None, *common)]
    if actions:
        stays["action"] = actions
    notes: list[str] = []
    taken: dict[str, set[str]] = {kind: set() for kind in _KINDS}
    taken["domain"] |= set(common)
    items: list[Item] = []
    for label, scenario in scenarios.items():
        items += _items(label, scenario, base, taken, notes)
    items = _merged(items, [group(names, "together") for names in together])
    if not items:
        raise RequestError("there is nothing to place: all domains are driver domains, dom0 or daemons")
    return Fleet(items, stays, base, list(scenarios.values()), notes)


def _common(scenario: Scenario) -> list[str]:
    """The domains that every host has."""
    return [
        name
        for name, domain in scenario.domains.items()
        if name == "dom0" or domain.daemon or (domain.driver_domain and not serving(domain))
    ]


def _items(
    label: str, scenario: Scenario, base: Scenario, taken: dict[str, set[str]], notes: list[str]
) -> Iterator[Item]:
    """The items of one file, under names that are unique in the fleet."""
    own_host, wanted = scenario.host, base.host
    hypervisors = [HYPERVISORS[host.hypervisor] for host in (own_host, wanted)]
    if hypervisors[0] != hypervisors[1]:
        raise RequestError(
            f"{label}: its host is a {hypervisors[0]} host, and the hosts to place it on are {hypervisors[1]} hosts"
        )
    if any(getattr(own_host, field) != getattr(wanted, field) for field in ("profile", "pcpus", "costs", "drivers")):
        notes.append(
            f"{label}: its own host differs; placed on hosts of {wanted.pcpus} pCPUs, profile {wanted.profile}"
        )
    if (own_host.scheduler, own_host.generation) != (wanted.scheduler, wanted.generation):
        stated = base.stated("host")
        changed = change(scenario, {f"host.{field}": stated.get(field) for field in ("scheduler", "generation")})
        scenario = changed.scenario
        notes.append(f"{label}: placed under {wanted.scheduler} {wanted.generation}")
        notes += [f"{label}: {path} is left out, the scheduler has no such parameter" for path in changed.left_out]
    document = scenario.written()
    domains = document["domain"]
    topologies_differ = Topology.from_host(own_host) != Topology.from_host(wanted)
    if topologies_differ and (own_host.topology or wanted.topology):
        # The numbers of pCPUs mean other places in another topology.
        notes += [
            f"{label}: {field} of {name} is left out, the hosts have another topology"
            for name, table in domains.items()
            for field in ("affinity", "soft_affinity")
            if table.pop(field, None) is not None
        ]
    common = _common(scenario)
    names = {kind: _free(label, document.get(kind, {}), taken[kind], common) for kind in _KINDS}
    notes += [
        f"{label}: {kind.replace('_', ' ')} `{old}` is called `{new}`"
        for kind, renamed in names.items()
        for old, new in renamed.items()
        if old != new
    ]
    host_common = _common(base)
    for name in common:
        users = [user for user, domain in scenario.domains.items() if name in serving(domain)]
        if users and name not in host_common:
            reason = f"{label}: domain `{users[0]}` needs the driver domain `{name}`"
            raise RequestError(f"{reason}; the host has {', '.join(host_common) or 'none'}")
    for group in _groups(scenario.domains, common):
        asking = {name: client for name, client in scenario.clients.items() if client.server in group}
        machines = {client.machine for client in asking.values()}
        tables = {
            "domain": {name: domains[name] for name in group},
            "client": {name: document["client"][name] for name in asking},
            "client_machine": {
                machine: table for machine, table in document.get("client_machine", {}).items() if machine in machines
            },
        }
        actions = [action for action in document.get("action", []) if action.get("domain") in group]
        yield Item(*_renamed(tables, actions, names))


def _free(label: str, tables: Mapping[str, Any], taken: set[str], common: Sequence[str]) -> dict[str, str]:
    """Name to a name that is free in the fleet."""
    names = {}
    for name in tables:
        if name in common:
            continue
        free, number = name, 1
        while free in taken:
            free = f"{label}-{name}" if number == 1 else f"{label}-{name}-{number}"
            number += 1
        taken.add(free)
        names[name] = free
    return names


def _groups(domains: Mapping[str, Domain], common: Sequence[str]) -> list[list[str]]:
    """Groups of domains that use each other, in the order of the file."""
    group = {name: [name] for name in domains if name not in common}
    for name in list(group):
        for server in serving(domains[name]):
            if server in group and group[server] is not group[name]:
                joined = [domain for domain in domains if domain in group[name] or domain in group[server]]
                group |= dict.fromkeys(joined, joined)
    return [members for name, members in group.items() if members[0] == name]


def _renamed(
    tables: Mapping[str, Mapping[str, Any]],
    actions: Iterable[Mapping[str, Any]],
    names: Mapping[str, Mapping[str, str]],
) -> tuple[Tables, list[dict[str, Any]]]:
    """Tables and actions with domains, clients and machines renamed, also in references."""

    def walk(value: Any, field: str = "") -> Any:
        if isinstance(value, Mapping):
            return {key: walk(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, field) for inner in value]
        if isinstance(value, str) and field in _REFERENCES:
            return names[_REFERENCES[field]].get(value, value)
        return value

    new = {kind: {names[kind].get(name, name): walk(table) for name, table in tables[kind].items()} for kind in _KINDS}
    moved = [{**action, "domain": names["domain"].get(action["domain"], action["domain"])} for action in actions]
    return new, moved


def _merged(items: list[Item], together: Iterable[Sequence[str]]) -> list[Item]:
    """Items after merging those that have to be on one host."""
    for names in together:
        chosen = []
        for name in names:
            item = item_of(items, name, "together")
            if item not in chosen:
                chosen.append(item)
        merged = Item(
            {kind: {k: v for item in chosen for k, v in item.tables[kind].items()} for kind in _KINDS},
            [action for item in chosen for action in item.actions],
        )
        position = min(items.index(item) for item in chosen)
        items = [
            *(item for item in items[:position]),
            merged,
            *(item for item in items[position:] if item not in chosen),
        ]
    return items


def item_of(items: Iterable[Item], name: str, field: str) -> Item:
    """The item that has a domain.

    Raises:
        RequestError: no item has the domain.
    """
    for item in items:
        if name in item.domains:
            return item
    placeable = ", ".join(domain for item in items for domain in item.domains)
    raise RequestError(f"there is no domain `{name}` to place", field=field, allowed=placeable)
