"""The answer of a search in plain words: p99 of shop 157 → 55 ms by weight 1024; batch -6 %; no restart."""

from collections.abc import Container, Sequence

from vcpulab.advice.compare import Comparison
from vcpulab.advice.lateness import LATE_MS
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.prices import ISOLATION
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.spaces import Space
from vcpulab.hypervisors.commands import new_steps
from vcpulab.results.addresses import apps, judged
from vcpulab.results.metrics import Quantity
from vcpulab.results.statistics import number
from vcpulab.scenario.alike import group_of
from vcpulab.scenario.names import grouped, in_short
from vcpulab.scenario.scenario import Scenario, split

_LOSERS = 3
"""Most losing services that are named."""


def in_words(space: Space, candidate: Candidate) -> str:
    """The parameters that a setting changes, as `weight of web 256 → 1024`."""
    changed = [(parameter, candidate.picks.get(parameter.key, parameter.now)) for parameter in space.parameters]
    words = [
        f"{_parameter(parameter.name)} {parameter.options[parameter.now].label} → {parameter.options[pick].label}"
        for parameter, pick in changed
        if pick != parameter.now
    ]
    return ", ".join(words) or "as it is"


def headline(search: Search, best: Candidate, confirmed: Confirmation) -> str:
    """The change of the goals, the parameters, the losses of other services, and whether a restart is needed.

    Args:
        search: the search.
        best: the advised setting.
        confirmed: its comparison with the present setting.
    """
    before = search.space.scenario
    by_name = {comparison.address.name: comparison for comparison in confirmed.comparisons}
    goals = [
        _goal(by_name[goal.addresses[0].name])
        if len(goal.addresses) == 1 and goal.addresses[0].name in by_name
        else f"{goal.name} better by {number(goal.percent(confirmed.gains[goal.name].mean))} %"
        for goal in search.goals
        if len(goal.addresses) == 1 or confirmed.gains[goal.name].mean > 0
    ]
    own = {address.name for goal in search.goals for address in goal.addresses if len(goal.addresses) == 1}
    gains = f"{', '.join(goals)} by {in_words(search.space, best)}"
    restart = "the host must be restarted" if needs_restart(before, best.scenario) else "no restart of the host"
    return f"{gains}; {losses_of_others(before, by_name, own)}; {restart}."


def _goal(comparison: Comparison) -> str:
    metric = comparison.address.metric
    percentile = "median" if metric.percentile == 50 else f"p{metric.percentile}"
    name = f"{percentile if metric.is_response else metric.name} of {comparison.address.thing}"
    was, now = (
        number(side.mean) if side is not None else "undefined" for side in (comparison.before, comparison.after)
    )
    percent = (
        "" if comparison.percent is None or abs(comparison.percent) > 1000 else f" ({_signed(comparison.percent)} %)"
    )
    return f"{name} {was} → {now} {comparison.address.unit}{percent}"


def _parameter(name: str) -> str:
    """`domain.web.weight` as `weight of web`."""
    *where, field = split(name)
    return field if where == ["host"] else f"{field} of {where[-1]}"


def losses_of_others(scenario: Scenario, comparisons: dict[str, Comparison], own: set[str]) -> str:
    """The significant losses of other services in throughput and response times, alike ones together, largest first.

    Without a loss, the services are named whose response times rise but stay short.
    """
    alike = group_of(scenario)
    clients = {app.name for app in apps(scenario) if app.client is not None}
    assumed = {app.name for app in apps(scenario) if app.assumed}
    losses: list[Comparison] = []
    unnoticed: list[str] = []
    uncertain = 0
    for address in judged(scenario):
        comparison = comparisons.get(address.name)
        if comparison is None or address.name in own:
            continue
        if _is_unnoticed(comparison):
            unnoticed += [address.thing if address.thing in clients else address.domain] * (
                comparison.verdict == "regresses"
            )
            continue
        uncertain += comparison.may_regress
        if comparison.verdict == "regresses" and comparison.of_consequence:
            losses.append(comparison)

    def row_of(comparison: Comparison) -> tuple[object, ...]:
        address = comparison.address
        return alike[address.domain], address.thing in clients, address.metric.name

    losers = sorted(
        grouped(losses, row_of).values(),
        key=lambda row: (row[0].address.thing in assumed, -max(abs(comparison.percent or 0) for comparison in row)),
    )
    words = [
        f"{'assumed jobs of ' * (row[0].address.thing in assumed)}{_loss(row, clients)}" for row in losers[:_LOSERS]
    ]
    words += [f"{len(losers) - _LOSERS} other services lose, too"] if len(losers) > _LOSERS else []
    words += [f"uncertain: {uncertain} metric{'' if uncertain == 1 else 's'} of other services"] if uncertain else []
    if words:
        return ", ".join(words)
    rises = (
        f" (p99 of {in_short(list(dict.fromkeys(unnoticed)))} rises, and stays below {LATE_MS:g} ms)"
        if unnoticed
        else ""
    )
    return f"no other service loses significantly{rises}"


def _is_unnoticed(comparison: Comparison) -> bool:
    """Whether this is a response time so short that users notice no change."""
    means = [side.mean for side in (comparison.before, comparison.after) if side is not None]
    return comparison.address.metric.is_judged_response and len(means) == 2 and max(means) <= LATE_MS


def _loss(row: Sequence[Comparison], clients: Container[str]) -> str:
    names = (
        comparison.address.thing if comparison.address.thing in clients else comparison.address.domain
        for comparison in row
    )
    name, metric = in_short(list(dict.fromkeys(names))), row[0].address.metric
    percents = [comparison.percent for comparison in row if comparison.percent is not None]
    change = f" {_signed(sum(percents) / len(percents))} %" if percents else " worse"
    return f"{name}{'' if metric.quantity is Quantity.THROUGHPUT else f' {metric.name}'}{change}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '-'}{number(abs(value))}"


def needs_restart(before: Scenario, after: Scenario) -> bool:
    """Whether the host must restart for a change."""
    boot = any(step.how == "boot" for step in new_steps(before, after))
    # No command takes an option out of the kernel's command line.
    return boot or any(getattr(before.host, field) != getattr(after.host, field) for field in ISOLATION)
