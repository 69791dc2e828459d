"""Fixes of lint's rules as parameters of a search, so that a search tries what `lint` and `explain` recommend."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcpulab.advice.concerning import concerning
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint.host import Host
from vcpulab.advice.tuning.goals import Goal
from vcpulab.advice.tuning.no_change import concerned
from vcpulab.advice.tuning.spaces import Option, Parameter, Space
from vcpulab.advice.tuning.widening import widened
from vcpulab.results.addresses import Slo
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario, join, split
from vcpulab.scenario.table import value_at


def with_fixes(space: Space, goals: Sequence[Goal], missed: Sequence[Slo], *, jobs: int = 0) -> Space:
    """A space with more parameters for the domains of goals and missed SLOs: those of `widened`, and fixes of rules.

    Goals on several domains add nothing. A fix that sets only what the space varies already adds nothing either.

    Args:
        space: the parameters to vary.
        goals: the goals.
        missed: the SLOs that the present setting misses.
        jobs: replications at a time; 0: one for each processor.

    Raises:
        EngineError: the run of the present setting failed.
    """
    own, beyond = concerned(goals), [slo.address for slo in missed]
    wider = widened(space, [*own, *(address.domain for address in beyond)], [address.domain for address in beyond])
    named = [goal.addresses[0] for goal in goals] if own else []
    metrics = [address for address in dict.fromkeys([*named, *beyond]) if address.domain]
    if not metrics:
        return wider
    late = [Late(metric.thing, metric.domain, str(metric)) for metric in metrics]
    host = Host(space.scenario, run(space.scenario, jobs=jobs))
    return Space(space.scenario, (*wider.parameters, *_parameters(host, late, set(_varied(wider)))))


def _parameters(host: Host, late: Sequence[Late], varied: set[str]) -> Iterator[Parameter]:
    for finding in concerning(host, late):
        fixes = [fix for fix in (finding.changes, *finding.otherwise) if fix and not varied.issuperset(fix)]
        path = next((path for fix in fixes for path in fix if path not in varied), None)
        if path is None:
            continue
        options = (Option(_present(host.scenario, path), None), *(Option(_label(path, fix), fix) for fix in fixes))
        yield Parameter(path, options, 0, ordered=False, scheduler=host.scenario.host.scheduler, by_rule=True)
        varied.add(path)


def _varied(space: Space) -> Iterator[str]:
    """The fields that the parameters of the present scheduler set."""
    for parameter in space.active(space.scenario.host.scheduler):
        yield from parameter.paths or (parameter.name,)
        for option in parameter.options:
            yield from option.value if isinstance(option.value, Mapping) else ()


def _present(scenario: Scenario, path: str) -> str:
    value = value_at(scenario.written(), split(path))
    return "its default" if value is None else str(value)


def _label(path: str, fix: Mapping[str, Any]) -> str:
    """The value that a fix gives to a field, and the other fields that it sets."""
    value = fix.get(path)
    fields = [f"{join(split(name)[1:])} {value}" for name, value in fix.items() if name != path and value is not None]
    also = f" with {', '.join(fields)}" if fields else ""
    return f"{'its default' if value is None else value}{also}"
