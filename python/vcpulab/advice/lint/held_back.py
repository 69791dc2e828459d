"""The causes of late services, found by the rules of `causes`.

A service is late by the response times of its clients. Its bottleneck (`capacity.occupancy`) shows where the time goes,
and the settings of the waiting domain show the cause. A host without late services and starved domains has no findings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vcpulab.advice.capacity.occupancy import Station, bottleneck, stations, with_servers
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint import slowed
from vcpulab.advice.lint.causes import CAUSES
from vcpulab.advice.lint.held import GETS_HALF, Held
from vcpulab.advice.lint.host import WAITS, Finding, Host
from vcpulab.scenario.alike import group_of
from vcpulab.scenario.assumed import all_assumed
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import split
from vcpulab.scenario.units import spans

ABOUT = 0.9
"""The utilization, as a fraction of the bottleneck's, from which a station may be the bottleneck as well. Assumed."""


def held_back(host: Host) -> Iterator[Finding]:
    """The causes of late services, of starved domains, and of domains without clients that are clearly held back.

    Each cause has one finding, with all services that it concerns.
    """
    serving = {domain for late in host.late for domain in with_servers(host.scenario.domains, [late.domain])}
    reasons = {domain: reason for domain, reason in host.starved.items() if domain not in serving}
    starved = (Late(name, name, f"{name} wants to run, but {reason}") for name, reason in reasons.items())
    hindered = (Late(name, name, how) for name, how in _hindered(host) if name not in serving and name not in reasons)
    return causes_of(host, [*host.late, *starved, *hindered])


def _hindered(host: Host) -> Iterator[tuple[str, str]]:
    """Domains whose own work is clearly held back, each with a description."""
    for name, domain in host.domains.items():
        if not domain.apps or host.is_held_by_its_settings(name):
            continue
        late = list(host.woken_late(name))
        if late:
            waits = 100 * host.waited(name)
            yield name, f"vCPU {spans(late)} of {name} waits for {waits:.0f} % of the time, once it wakes up"
        elif name in host.controls and host.waited(name) >= WAITS and host.of_wanted(name) < GETS_HALF:
            work = "assumed jobs want" if all_assumed(host.scenario.domains[name]) else "own work wants"
            yield name, f"{name} gets {100 * host.of_wanted(name):.0f} % of the CPU time that its {work}"


def causes_of(host: Host, services: Sequence[Late]) -> Iterator[Finding]:
    """The causes of waiting of some services, late or not: one finding for each cause."""
    alike = group_of(host.scenario)
    causes: dict[tuple[object, ...], list[tuple[Late, Finding]]] = {}
    for service in services:
        near = _nearest_to_full(stations(host.run, [service.domain]))
        first = _cause([Held(host, service, station) for station in near])
        # In addition to any cause of waits, a domain may do less work with its CPU time.
        slow = (finding for finding in slowed.slowed(host, service.domain) if not first or finding.rule != first.rule)
        for finding in (*([first] if first is not None else []), *slow):
            # A device is one cause for all domains that use it, and alike domains have one fix.
            is_device = finding is first and not near[0].domain and not finding.changes
            steps = [near[0].name] if is_device else split(finding.path)
            key = (finding.rule, *(alike.get(step, step) for step in steps))
            causes.setdefault(key, []).append((service, finding))
    for pairs in causes.values():
        concerned, findings = [service for service, _ in pairs], [finding for _, finding in pairs]
        further = "" if len(concerned) == 1 else f" (as {in_short([service.name for service in concerned[1:]])})"
        yield replace(
            findings[0],
            reason=f"{concerned[0].how}{further}: {findings[0].reason}",
            concerned=tuple(service.name for service in concerned),
            changes=_joined(finding.changes for finding in findings),
            otherwise=tuple(map(_joined, zip(*(finding.otherwise for finding in findings), strict=False))),
        )


def _joined(changes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {path: value for change in changes for path, value in change.items()}


def _nearest_to_full(passed: Sequence[Station]) -> list[Station]:
    """The bottleneck; and if it is a vCPU or pCPUs, the vCPUs that are about as full."""
    first = bottleneck(passed)
    if first is None or not (first.domain or first.kind == "pCPUs"):
        return [] if first is None else [first]
    near = [station for station in passed if station.domain and station.used >= ABOUT * first.used]
    return near if first.domain else [first, *near]


def _cause(candidates: Sequence[Held]) -> Finding | None:
    """The first cause of one of the bottlenecks of a service; slow pCPUs come before all other causes."""
    for held in candidates:
        if held.station.domain:
            finding = next(slowed.slowed(held.host, held.domain), None)
            if finding is not None:
                return finding
    for rule in CAUSES:
        for held in candidates:
            finding = rule.check(held)
            if finding is not None:
                return rule.stamped(finding)
    return None
