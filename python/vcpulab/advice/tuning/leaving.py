"""When a host is left as it is: where it is good enough, or where it is proven that no setting helps.

A response time is good enough where nobody feels a better one. Assumed: a 99th percentile under 20 ms is one of them
(a tenth of a second is the limit of what feels instantaneous: Miller 1968, and a page is made of several requests), if
it is also within 20 times the CPU time that the service itself takes for a request, and, of what is done once a
period, within the period. An SLO on the goal goes before this.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vcpulab.advice.capacity.alone import alone
from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station
from vcpulab.advice.tuning.goals import Goal, Row, excess
from vcpulab.advice.verdicts import Proven
from vcpulab.results.addresses import Address, Slo, app_rows, apps, judged
from vcpulab.results.statistics import number
from vcpulab.scenario.alike import groups
from vcpulab.scenario.scenario import Scenario

LEAST_GAIN = 0.1
"""A smaller gain in a response time is not felt: about 10 %."""
_ALL_OF_IT = 0.95
"""Who uses more than this part of what there is has all of it."""


def concerned(goals: Sequence[Goal]) -> list[str]:
    """The domains that goals are about, if each goal is about something of one domain; otherwise none."""
    single = [goal.addresses[0] for goal in goals if len(goal.addresses) == 1]
    names = list(dict.fromkeys(address.domain for address in single))
    return names if len(single) == len(goals) and all(names) else []


def bystanders(scenario: Scenario, goals: Sequence[Goal]) -> list[list[Address]]:
    """What others are judged by, who may pay: throughput and response times that goals of single things are not about.

    Those of alike domains are together.
    """
    own = {goal.addresses[0].thing for goal in goals if len(goal.addresses) == 1}
    row_of = {thing: row[0] for row in app_rows(scenario, groups(scenario)) for thing in row}
    rows: dict[tuple[str, str], list[Address]] = {}
    for one in judged(scenario):
        if one.thing not in own and one.metric.name != "failed":
            rows.setdefault((row_of.get(one.thing, one.thing), one.metric.name), []).append(one)
    return list(rows.values())


def others(scenario: Scenario, goals: Sequence[Goal]) -> list[Address]:
    """The response times of clients that goals of single domains are not about."""
    clients = {app.name for app in apps(scenario) if app.client is not None} if concerned(goals) else set()
    listed = (one for row in bystanders(scenario, goals) for one in row)
    return [one for one in listed if one.thing in clients and one.metric.name == "response_p99"]


def on_the_goal(goal: Goal, slos: Sequence[Slo]) -> list[Slo]:
    """The SLOs that say how good a goal must be."""
    names = [address.name for address in goal.addresses]
    return [slo for slo in slos if slo.address.name in names and slo.operator.startswith(">") == goal.higher]


def good_enough(goals: Sequence[Goal], slos: Sequence[Slo], rows: Sequence[Row], felt: Mapping[str, float]) -> str:
    """Why the present setting is good enough; nothing: it is not.

    Args:
        goals: what is wanted.
        slos: what must hold.
        rows: what was measured under the present setting.
        felt: address to `felt_ms`.
    """
    if any(excess(slo, rows) > 0 for slo in slos) or not goals:
        return ""
    reasons = []
    for goal in goals:
        mine = on_the_goal(goal, slos)
        if mine:
            reasons.append(f"{' and '.join(map(str, mine))} is kept as it is")
            continue
        name = goal.addresses[0].name
        values = [row[name] for row in rows]
        known = [value for value in values if value is not None]
        if len(goal.addresses) > 1 or name not in felt or len(known) < len(values):
            return ""
        mean = sum(known) / len(known)
        if mean > felt[name]:
            return ""
        reasons.append(
            f"{name} is {mean:.2g} ms, and nobody feels what is below {felt[name]:.2g} ms (assumed: an SLO "
            "says how low it is to be)"
        )
    return "; ".join(dict.fromkeys(reasons))


def bounded(goal: Goal, slos: Sequence[Slo], felt: Mapping[str, float], rows: Sequence[Row]) -> Goal:
    """A goal with the bound below which nobody gains and that above which somebody is late, or its SLO's.

    A response time that nobody feels as it is has none: whoever asks for less means it.

    Args:
        goal: one that is about one metric.
        slos: what must hold.
        felt: address to `felt_ms`.
        rows: what was measured under the present setting.
    """
    name, mine = goal.addresses[0].name, on_the_goal(goal, slos)
    if name not in felt or (not mine and all((row[name] or math.inf) <= felt[name] for row in rows)):
        return goal
    floor = min([felt[name], *(slo.bound for slo in mine)]) / 2
    return replace(goal, floor=floor, felt=None if mine else felt[name])


def out_of_reach(
    goals: Sequence[Goal], found: Sequence[Station], scenario: Scenario, rows: Sequence[Row], *, jobs: int = 0
) -> Proven | None:
    """The proof that no setting helps: every goal's service gains nothing even alone on the host; `None`: one may help.

    Args:
        goals: what is wanted.
        found: what the work of the goals' domains passes.
        scenario: the host as it is.
        rows: what was measured of it.
        jobs: replications at a time; 0: one for each processor.

    Raises:
        EngineError: a run failed.
    """
    if not concerned(goals) or not all(_is_service(goal.addresses[0]) for goal in goals) or not _full(found):
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


def _full(found: Sequence[Station]) -> bool:
    """Does the work of some domains fill a device, or the pCPUs?"""
    outside = any(one.kind in ("disk", "link", "client machine") and one.used >= NEAR_FULL for one in found)
    return outside or any(
        one.kind == "pCPUs" and one.used >= _ALL_OF_IT and one.reason.startswith("busy") for one in found
    )


def _is_service(address: Address) -> bool:
    return address.metric.name.startswith("response_") or address.metric.name in ("throughput", "failed")
