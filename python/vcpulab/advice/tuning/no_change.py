"""Reasons to leave a host as it is: it is good enough, or no setting helps, with proof.

A response time is good enough if users do not notice a better one. Assumed: a 99th percentile under 20 ms is good
enough (a tenth of a second is the limit of what feels instantaneous: Miller 1968, and a page is made of several
requests), if it is also within 20 times the CPU time that the service itself takes for a request, and, for periodic
work, within the period. An SLO on the goal takes precedence.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station
from vcpulab.advice.capacity.service_alone import alone
from vcpulab.advice.tuning.goals import Goal, Row, excess
from vcpulab.advice.verdicts import Proven
from vcpulab.results.addresses import Address, Slo, app_rows, apps, judged
from vcpulab.results.metrics import Quantity
from vcpulab.results.statistics import number
from vcpulab.scenario.alike import groups
from vcpulab.scenario.names import grouped
from vcpulab.scenario.scenario import Scenario

LEAST_GAIN = 0.1
"""Least gain in a response time that users notice: about 10 %."""
_ALL_OF_IT = 0.95
"""Fraction of the pCPUs above which a service's use counts as all of them."""


def concerned(goals: Sequence[Goal]) -> list[str]:
    """The domains of the goals, if each goal has one metric of one domain; otherwise none."""
    single = [goal.addresses[0] for goal in goals if len(goal.addresses) == 1]
    names = list(dict.fromkeys(address.domain for address in single))
    return names if len(single) == len(goals) and all(names) else []


def bystanders(scenario: Scenario, goals: Sequence[Goal]) -> list[list[Address]]:
    """Throughput and response times that no goal names: the metrics by which other services may lose.

    Metrics of alike domains are in one list.
    """
    own = {goal.addresses[0].thing for goal in goals if len(goal.addresses) == 1}
    row_of = {thing: row[0] for row in app_rows(scenario, groups(scenario)) for thing in row}
    unnamed = (
        address
        for address in judged(scenario)
        if address.thing not in own and address.metric.quantity is not Quantity.FAILURES
    )
    rows = grouped(unnamed, lambda address: (row_of.get(address.thing, address.thing), address.metric.name))
    return list(rows.values())


def bystander_responses(scenario: Scenario, goals: Sequence[Goal]) -> list[Address]:
    """The response times of clients that no goal names, if the goals name single domains."""
    clients = {app.name for app in apps(scenario) if app.client is not None} if concerned(goals) else set()
    listed = (address for row in bystanders(scenario, goals) for address in row)
    return [address for address in listed if address.thing in clients and address.metric.is_judged_response]


def on_the_goal(goal: Goal, slos: Sequence[Slo]) -> list[Slo]:
    """The SLOs on a goal's own metric and direction."""
    names = [address.name for address in goal.addresses]
    return [slo for slo in slos if slo.address.name in names and slo.operator.startswith(">") == goal.higher]


def good_enough(goals: Sequence[Goal], slos: Sequence[Slo], rows: Sequence[Row], felt: Mapping[str, float]) -> str:
    """The reason why the present setting is good enough; empty: it is not.

    Args:
        goals: the goals.
        slos: the SLOs.
        rows: the measured metrics of the present setting, by replication.
        felt: address to `felt_ms`.
    """
    if any(excess(slo, rows) > 0 for slo in slos) or not goals:
        return ""
    reasons = []
    for goal in goals:
        own_slos = on_the_goal(goal, slos)
        if own_slos:
            reasons.append(f"{' and '.join(map(str, own_slos))} is kept as it is")
            continue
        name = goal.addresses[0].name
        values = [row[name] for row in rows]
        defined = [value for value in values if value is not None]
        if len(goal.addresses) > 1 or name not in felt or len(defined) < len(values):
            return ""
        mean = sum(defined) / len(defined)
        if mean > felt[name]:
            return ""
        reasons.append(
            f"{name} is {mean:.2g} ms, and users notice no difference below {felt[name]:.2g} ms (assumed; "
            "an SLO sets another limit)"
        )
    return "; ".join(dict.fromkeys(reasons))


def bounded(goal: Goal, slos: Sequence[Slo], felt: Mapping[str, float], rows: Sequence[Row]) -> Goal:
    """A goal with its floor, below which users notice no gain, and the limit above which it is late.

    An SLO on the goal sets both. A response time that users already do not notice gets neither: the user asked for it.

    Args:
        goal: a goal with one metric.
        slos: the SLOs.
        felt: address to `felt_ms`.
        rows: the measured metrics of the present setting, by replication.
    """
    name, own_slos = goal.addresses[0].name, on_the_goal(goal, slos)
    if name not in felt or (not own_slos and all((row[name] or math.inf) <= felt[name] for row in rows)):
        return goal
    floor = min([felt[name], *(slo.bound for slo in own_slos)]) / 2
    return replace(goal, floor=floor, felt=None if own_slos else felt[name])


def out_of_reach(
    goals: Sequence[Goal], stations: Sequence[Station], scenario: Scenario, rows: Sequence[Row], *, jobs: int = 0
) -> Proven | None:
    """The proof that no setting helps: no goal's service gains anything even alone on the host; `None`: no proof.

    Args:
        goals: the goals.
        stations: the stations that the work of the goals' domains passes.
        scenario: the present setting.
        rows: the measured metrics of the present setting, by replication.
        jobs: replications at a time; 0: one for each processor.

    Raises:
        EngineError: a run failed.
    """
    if not concerned(goals) or not all(_is_service(goal.addresses[0]) for goal in goals) or not _full(stations):
        return None
    reasons = []
    for goal in goals:
        address = goal.addresses[0]
        by_itself = alone(scenario, address, jobs=jobs)
        present = [value for row in rows if (value := row[address.name]) is not None]
        if by_itself is None or not by_itself.reason or not present:
            return None
        if not by_itself.is_extreme("higher" if goal.higher else "lower"):
            return None
        now = math.fsum(present) / len(present)
        if goal.gain({address.name: by_itself.value}, {address.name: now}) >= LEAST_GAIN:
            return None
        reasons.append(f"even {by_itself.sentence}, where it is {number(now)} now: {by_itself.reason}")
    return Proven("; ".join(reasons))


def _full(stations: Sequence[Station]) -> bool:
    """Does the work of some domains fill a device, or the pCPUs?"""
    outside = any(
        station.kind in ("disk", "link", "client machine") and station.used >= NEAR_FULL for station in stations
    )
    return outside or any(
        station.kind == "pCPUs" and station.used >= _ALL_OF_IT and station.reason.startswith("busy")
        for station in stations
    )


def _is_service(address: Address) -> bool:
    return address.metric.is_response or address.metric.quantity in (Quantity.THROUGHPUT, Quantity.FAILURES)
