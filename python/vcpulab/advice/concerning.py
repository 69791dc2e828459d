"""The findings of lint that concern some services: their own faults, faults on their path, and faults around them."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from vcpulab.advice.capacity.occupancy import with_servers
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint import drivers, rules
from vcpulab.advice.lint.catalogue import first_by_path, settings
from vcpulab.advice.lint.held_back import causes_of
from vcpulab.advice.lint.host import FEW_WAITS, OF_WAITS, Finding, Host, of_pool
from vcpulab.scenario.scenario import split
from vcpulab.scenario.threads import HOST


def concerning(host: Host, late_apps: Sequence[Late]) -> list[Finding]:
    """The findings on the domains of late applications: their own faults, causes of delay, and faults on the path."""
    if not late_apps:
        return []
    domains = {late_app.domain for late_app in late_apps}
    way = set(with_servers(host.scenario.domains, domains))
    # A fault of a pool is a fault of the domains in it.
    pools = {host.domains[domain].pool for domain in way}
    places = [["domain", domain] for domain in domains] + [split(of_pool(pool, "scheduler"))[:-1] for pool in pools]
    themselves = (
        finding
        for finding in settings(host, rules.rule)
        if any(split(finding.path)[: len(place)] == place for place in places)
    )
    serving = (finding for finding in settings(host, drivers.rule) if _domain_of(finding.path) in way)
    rest = (
        finding
        for finding in settings(host)
        if any(_domain_of(path) in way for path in (finding.path, *finding.changes))
    )
    return first_by_path(themselves, serving, causes_of(host, late_apps), rest, _around(host, way, late_apps))


def _around(host: Host, way: Collection[str], late_apps: Sequence[Late]) -> Iterator[Finding]:
    """The findings on the host, its control groups, and the domains that late applications wait for.

    They concern the late applications: a fix that improves nothing for these is no fix of theirs.
    """
    waited_for = set(_blocking(host, [*way, *([HOST] if host.is_kvm else [])]))
    services = tuple(dict.fromkeys(late_app.name for late_app in late_apps))
    for finding in settings(host):
        if split(finding.path)[0] in ("host", "cgroup") or _domain_of(finding.path) in waited_for:
            yield replace(finding, concerned=services)


def _blocking(host: Host, names: Iterable[str]) -> Iterator[str]:
    """The domains that some domains or threads wait for, if they wait for more than `FEW_WAITS` of the time."""
    for name in names:
        if name == HOST or host.waited(name) >= FEW_WAITS:
            yield from (by for by, share in host.behind(name) if share >= OF_WAITS)


def _domain_of(path: str) -> str | None:
    """The domain of a path; `None`: the path is not of a domain."""
    kind, *name = split(path)[:2]
    return name[0] if kind == "domain" and name else None
