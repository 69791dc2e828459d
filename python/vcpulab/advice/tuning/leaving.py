"""When a host is left as it is: where it is good enough, or where no setting of a scheduler helps.

A response time is good enough where nobody feels a better one. Assumed: a 99th percentile under 20 ms is one of them
(a tenth of a second is the limit of what feels instantaneous: Miller 1968, and a page is made of several requests), if
it is also within 20 times the CPU time that the service itself takes for a request, and, of what is done once a
period, within the period. An SLO on the goal goes before this.
"""

from collections.abc import Mapping, Sequence

from vcpulab.advice.capacity.occupancy import NEAR_FULL, Station
from vcpulab.advice.tuning.goals import Goal, Row, excess
from vcpulab.results.addresses import Address, Slo, app_rows, apps, judged
from vcpulab.results.run import Run
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
        reasons.append(f"{name} is {mean:.2g} ms, and nobody feels what is below {felt[name]:.2g} ms")
    return "; ".join(dict.fromkeys(reasons))


def out_of_reach(goals: Sequence[Goal], found: Sequence[Station], run: Run) -> str:
    """Why no setting of a scheduler helps; nothing: one may."""
    if not concerned(goals) or not all(_is_service(goal.addresses[0]) for goal in goals) or not found:
        return ""
    fullest = max(found, key=lambda one: one.used)
    beyond = "no setting of the scheduler changes that"
    if fullest.kind in ("disk", "link", "client machine") and fullest.used >= NEAR_FULL:
        return f"{fullest.name} is the bottleneck ({100 * fullest.used:.0f} % used): {beyond}"
    for one in found:
        own = one.kind == "pCPUs" and one.used >= _ALL_OF_IT and one.why.startswith("busy")
        if own and not run.scenario.to_dict().get("pool"):
            return f"the goal's own domains use {100 * one.used:.0f} % of the {one.name}: {beyond}"
    return ""


def _is_service(address: Address) -> bool:
    return address.metric.name.startswith("response_") or address.metric.name in ("throughput", "failed")
