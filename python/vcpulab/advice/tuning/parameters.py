"""Parameters that may be changed: policies, their parameters from the registry, driver domains' vCPUs and pinning.

Each has a short list of options: few enough to be tried, round enough to be typed. The present setting is always
one of them.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from vcpulab.advice.tuning.by_hand import check_typed, of_schedulers, parsed, pattern_of
from vcpulab.advice.tuning.known import choice_of, known_parameters
from vcpulab.advice.tuning.spaces import SCHEDULER, Space
from vcpulab.errors import RequestError
from vcpulab.scenario.scenario import Scenario


def space(scenario: Scenario, by_hand: Iterable[str] = (), only: Iterable[str] = ()) -> Space:
    """The parameters that may be changed.

    Args:
        scenario: whose parameters.
        by_hand: `PATH=LOW..HIGH` or `PATH=a,b,c`.
        only: names of parameters that the registry knows, or patterns such as `domain.*.weight`.
            With neither, those that are sensible to search: policies, weights or reservations, slices and rate limits,
            vCPUs and pinning of driver domains.

    Raises:
        RequestError: there is nothing to change, or it cannot be understood.

    Examples:
        >>> found = space(Scenario.starter(), ["host.scheduler=credit,credit2"], ["dom0.weight"])
        >>> [parameter.key for parameter in found.parameters]
        ['host.scheduler', 'domain.dom0.weight (credit)', 'domain.dom0.weight (credit2)']
    """
    by_hand, only = list(by_hand), list(only)
    document = scenario.to_dict()
    stated = [parsed(scenario, word, document) for word in by_hand]
    every = [path for one in stated for path in one.paths or (one.path,)]
    twice = {path for path in every if every.count(path) > 1}
    if twice:
        raise RequestError(f"`{min(twice)}` is stated twice", field="vary")
    chosen = [choice_of(scenario, one.values, one.word) for one in stated if one.path == SCHEDULER]
    unasked = not by_hand and not only
    patterns = [pattern_of(scenario, word, document) for word in only]
    known = known_parameters(scenario, chosen[0] if chosen else None)
    if not chosen and not unasked and not any(fnmatchcase(SCHEDULER, pattern) for pattern in patterns):
        # Nobody wants another policy.
        present = document["host"]["scheduler"]
        known = [k for k in known if k.name != SCHEDULER and k.scheduler in (None, present)]
    for pattern, word in zip(patterns, only, strict=True):
        if not any(fnmatchcase(parameter.name, pattern) for parameter in known):
            raise RequestError(field="only", found=word, allowed=_some({parameter.name for parameter in known}))
    parameters = [
        parameter
        for parameter in known
        if (unasked and parameter.unasked)
        or any(fnmatchcase(parameter.name, pattern) for pattern in patterns)
        or (chosen and parameter.name == SCHEDULER)
    ]
    names = {parameter.scheduler for parameter in known} | {document["host"]["scheduler"]}
    for one in stated:
        if one.path != SCHEDULER:
            check_typed(one, document, [name for name in names if name])
            parameters = [parameter for parameter in parameters if parameter.name not in (one.path, *one.paths)]
            by_scheduler = of_schedulers(scenario, one.path, one.values, one.word, [name for name in names if name])
            parameters += map(one.whole, by_scheduler)
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
