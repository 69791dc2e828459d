"""The answer of a search in plain words: p99 of shop 157 → 55 ms by weight 1024; batch -6 %; no restart."""

from collections.abc import Container, Sequence

from vcpulab.advice.compare import Comparison
from vcpulab.advice.lateness import LATE_MS
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.spaces import Space
from vcpulab.hypervisors.commands import new_steps
from vcpulab.results.addresses import apps, judged
from vcpulab.results.statistics import number
from vcpulab.scenario.alike import groups
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario, split

_NAMES = {"response_p50": "median of", "response_p95": "p95 of", "response_p99": "p99 of"}
_LOSERS = 3
"""As many who pay are named."""


def in_words(space: Space, candidate: Candidate) -> str:
    """The parameters that a setting changes, as `weight of web 256 → 1024`."""
    changed = [(one, candidate.picks.get(one.key, one.now)) for one in space.parameters]
    words = [
        f"{_parameter(one.name)} {one.options[one.now].label} → {one.options[pick].label}"
        for one, pick in changed
        if pick != one.now
    ]
    return ", ".join(words) or "as it is"


def headline(search: Search, best: Candidate, confirmed: Confirmation) -> str:
    """What becomes of the goals, by what, what others pay, and whether it takes a restart.

    Args:
        search: what was wanted.
        best: the setting found.
        confirmed: it, against the present one.
    """
    before = search.space.scenario
    found = {one.address.name: one for one in confirmed.comparisons}
    goals = [
        _goal(found[goal.addresses[0].name])
        if len(goal.addresses) == 1 and goal.addresses[0].name in found
        else f"{goal.name} better by {number(goal.percent(confirmed.gains[goal.name].mean))} %"
        for goal in search.goals
        if len(goal.addresses) == 1 or confirmed.gains[goal.name].mean > 0
    ]
    own = {address.name for goal in search.goals for address in goal.addresses if len(goal.addresses) == 1}
    said = f"{', '.join(goals)} by {in_words(search.space, best)}"
    return f"{said}; {paid(before, found, own)}; {_restart(before, best.scenario)}."


def _goal(one: Comparison) -> str:
    name = f"{_NAMES.get(one.address.metric.name, one.address.metric.name + ' of')} {one.address.thing}"
    was, now = (number(side.mean) if side is not None else "undefined" for side in (one.before, one.after))
    percent = "" if one.percent is None or abs(one.percent) > 1000 else f" ({_signed(one.percent)} %)"
    return f"{name} {was} → {now} {one.address.unit}{percent}"


def _parameter(name: str) -> str:
    """`domain.web.weight` as `weight of web`."""
    *where, field = split(name)
    return field if where == ["host"] else f"{field} of {where[-1]}"


def paid(scenario: Scenario, found: dict[str, Comparison], own: set[str]) -> str:
    """Who loses significantly, of what owners judge by, those who are alike together; the most first.

    Where nobody does it is said whose response times rise by what nobody feels.
    """
    row_of = {name: row[0] for row in groups(scenario) for name in row}
    clients = {app.name for app in apps(scenario) if app.client is not None}
    assumed = {app.name for app in apps(scenario) if app.assumed}
    rows: dict[tuple[str, bool, str], list[Comparison]] = {}
    unfelt: list[str] = []
    uncertain = 0
    for address in judged(scenario):
        one = found.get(address.name)
        if one is None or address.name in own:
            continue
        if _unfelt(one):
            unfelt += [address.thing if address.thing in clients else address.domain] * (one.verdict == "regresses")
            continue
        uncertain += one.may_regress
        if one.verdict == "regresses" and one.of_consequence:
            key = (row_of[address.domain], address.thing in clients, address.metric.name)
            rows.setdefault(key, []).append(one)
    told = sorted(
        rows.values(),
        key=lambda row: (row[0].address.thing in assumed, -max(abs(one.percent or 0) for one in row)),
    )
    words = [f"{'assumed jobs of ' * (row[0].address.thing in assumed)}{_loss(row, clients)}" for row in told[:_LOSERS]]
    words += [f"{len(told) - _LOSERS} others lose, too"] if len(told) > _LOSERS else []
    words += [f"uncertain for {uncertain} metric{'' if uncertain == 1 else 's'} of others"] if uncertain else []
    if words:
        return ", ".join(words)
    rises = f" (p99 of {in_short(list(dict.fromkeys(unfelt)))} rises, and stays below {LATE_MS:g} ms)" if unfelt else ""
    return f"nobody pays significantly{rises}"


def _unfelt(one: Comparison) -> bool:
    """Is it a response time that nobody feels, however it changes?"""
    means = [side.mean for side in (one.before, one.after) if side is not None]
    return one.address.metric.name == "response_p99" and len(means) == 2 and max(means) <= LATE_MS


def _loss(row: Sequence[Comparison], clients: Container[str]) -> str:
    names = (one.address.thing if one.address.thing in clients else one.address.domain for one in row)
    name, metric = in_short(list(dict.fromkeys(names))), row[0].address.metric.name
    percents = [one.percent for one in row if one.percent is not None]
    change = f" {_signed(sum(percents) / len(percents))} %" if percents else " worse"
    return f"{name}{'' if metric == 'throughput' else f' {metric}'}{change}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '-'}{number(abs(value))}"


def _restart(before: Scenario, after: Scenario) -> str:
    boot = any(step.how == "boot" for step in new_steps(before, after))
    return "the host must be restarted" if boot else "no restart of the host"
