"""Parameters to vary: policies, their parameters from the registry, driver domains' vCPUs and pinning.

Each parameter has a few options with round values. The present setting is always an option.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from vcpulab.advice.tuning.by_hand import check_typed, for_schedulers, parsed, pattern_of
from vcpulab.advice.tuning.registry import choice_of, registry_parameters
from vcpulab.advice.tuning.spaces import SCHEDULER, Space
from vcpulab.errors import RequestError
from vcpulab.scenario.scenario import Scenario


def space(scenario: Scenario, by_hand: Iterable[str] = (), only: Iterable[str] = ()) -> Space:
    """The space of the parameters to vary.

    Args:
        scenario: the scenario.
        by_hand: `PATH=LOW..HIGH` or `PATH=a,b,c`.
        only: names of parameters of the registry, or patterns such as `domain.*.weight`.
            Without `by_hand` and `only`, the default parameters: policies, weights or reservations, slices and rate
            limits, vCPUs and pinning of driver domains.

    Raises:
        RequestError: no parameter has more than one value, or a text is malformed.

    Examples:
        >>> weights = space(Scenario.starter(), ["host.scheduler=credit,credit2"], ["dom0.weight"])
        >>> [parameter.key for parameter in weights.parameters]
        ['host.scheduler', 'domain.dom0.weight (credit)', 'domain.dom0.weight (credit2)']
    """
    by_hand, only = list(by_hand), list(only)
    stated = [parsed(scenario, word) for word in by_hand]
    every = [path for request in stated for path in request.paths or (request.path,)]
    twice = {path for path in every if every.count(path) > 1}
    if twice:
        raise RequestError(f"`{min(twice)}` is stated twice", field="vary")
    chosen = [choice_of(scenario, request.values, request.word) for request in stated if request.path == SCHEDULER]
    by_default = not by_hand and not only
    patterns = [pattern_of(scenario, word) for word in only]
    registered = registry_parameters(scenario, chosen[0] if chosen else None)
    if not chosen and not by_default and not any(fnmatchcase(SCHEDULER, pattern) for pattern in patterns):
        # The request names no other policy, so the scheduler is fixed.
        present = scenario.host.scheduler
        registered = [k for k in registered if k.name != SCHEDULER and k.scheduler in (None, present)]
    for pattern, word in zip(patterns, only, strict=True):
        if not any(fnmatchcase(parameter.name, pattern) for parameter in registered):
            raise RequestError(field="only", found=word, allowed=_some({parameter.name for parameter in registered}))
    parameters = [
        parameter
        for parameter in registered
        if (by_default and parameter.by_default)
        or any(fnmatchcase(parameter.name, pattern) for pattern in patterns)
        or (chosen and parameter.name == SCHEDULER)
    ]
    names = {parameter.scheduler for parameter in registered} | {scenario.host.scheduler}
    for request in stated:
        if request.path != SCHEDULER:
            check_typed(scenario, request, [name for name in names if name])
            parameters = [parameter for parameter in parameters if parameter.name not in (request.path, *request.paths)]
            by_scheduler = for_schedulers(
                scenario, request.path, request.values, request.word, [name for name in names if name]
            )
            parameters += map(request.whole, by_scheduler)
    parameters = [parameter for parameter in parameters if len(parameter.options) > 1]
    if not parameters:
        hint = "state a parameter and its range, PATH=LOW..HIGH"
        raise RequestError("nothing is free to be tuned: no parameter has more than one value", field="vary", hint=hint)
    return Space(scenario, tuple(parameters))


def _some(names: set[str]) -> str:
    if not names:
        return "none of this scenario: its scheduler has no parameter that is tuned"
    listed = sorted(names)
    return ", ".join(listed if len(listed) <= 24 else [*listed[:24], "…"])
