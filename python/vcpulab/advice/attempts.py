"""Settings that are tried if no rule's fix keeps an SLO: the first settings that a search would try."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from vcpulab._work.progress import Progress
from vcpulab.advice.capacity.occupancy import bottleneck, stations
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.lint import Advice, simulated
from vcpulab.advice.tuning.leads import leads
from vcpulab.advice.tuning.parameters import space
from vcpulab.advice.tuning.widening import widened
from vcpulab.errors import RequestError
from vcpulab.results.addresses import Slo, in_short
from vcpulab.results.run import Run, run_many
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import change

RULE = "tried"
"""The rule's name in findings that come from trying settings."""
MOST = 24
"""The largest number of settings that are tried."""
LOOK = 2
"""Replications of each setting; settings that keep the SLOs run again, with the replications of the host's run."""
_FINALISTS = 3
"""The number of settings that run together with the replications of the host's run."""


@dataclass(frozen=True)
class Attempts:
    """The settings that were tried, and the ones worth a recommendation."""

    settings: tuple[Mapping[str, Any], ...]
    """Each setting: path to value."""
    advice: tuple[Advice, ...]
    """The mildest setting that keeps the SLOs without harm to other domains; else one that keeps them with harm, or
    the nearest."""


NOTHING = Attempts((), ())


def attempts(
    host: Host,
    missed: Sequence[Slo],
    slos: Sequence[Slo],
    done: Iterable[Mapping[str, Any]],
    *,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Attempts:
    """Tries settings for SLOs that are missed.

    Args:
        host: the host, with its run.
        missed: the SLOs that are missed.
        slos: all SLOs.
        done: settings that were tried already.
        jobs: replications at a time; 0: one for each processor.
        progress: see `Progress`.

    Raises:
        EngineError: a run failed.
    """
    settings: list[dict[str, Any]] = []
    scenarios: list[Scenario] = []
    tried = [dict(changes) for changes in done]
    for changes in _first(host, missed):
        if not changes or changes in tried or len(settings) == MOST:
            continue
        try:
            scenarios.append(change(host.scenario, changes).scenario.with_run(replications=LOOK))
        except RequestError:
            # The setting contradicts the rest of the scenario.
            continue
        settings.append(changes)
        tried.append(changes)
    if not settings:
        return NOTHING
    looks = run_many(scenarios, jobs=jobs, progress=progress)
    beyond = [_beyond(run, missed) for run in looks]
    keeping = [index for index, excess in enumerate(beyond) if excess == 0]
    finalists = keeping or [min(range(len(settings)), key=beyond.__getitem__)]
    wanted = " and ".join(in_short(missed))
    findings = [
        Finding(
            next(iter(settings[index])),
            f"of {len(settings)} settings tried where no rule's fix is enough",
            settings[index],
            RULE,
            concerned=tuple(dict.fromkeys(slo.address.thing for slo in missed)),
        )
        for index in finalists
    ]
    best = [_named(fix, wanted) for fix in _best(host, findings, slos, jobs)]
    return Attempts(tuple(settings), tuple(best))


def _named(fix: Advice, wanted: str) -> Advice:
    """A fix whose reason says whether it keeps the SLOs, by the runs with the replications of the host's run."""
    verb = "keeps" if fix.keeps else "comes nearest to"
    return replace(fix, finding=replace(fix.finding, reason=f"{fix.finding.reason}, this {verb} {wanted}"))


def _best(host: Host, findings: Sequence[Finding], slos: Sequence[Slo], jobs: int) -> list[Advice]:
    """The mildest fix that keeps the SLOs without harm; else one that keeps them with harm, or the nearest."""
    helping: list[Advice] = []
    costly: list[Advice] = []
    for begin in range(0, len(findings), _FINALISTS):
        advice = simulated(host, findings[begin : begin + _FINALISTS], slos, jobs=jobs)
        helping += [each for each in advice if each.helps]
        costly += [each for each in advice if each.keeps and not each.helps]
        best = next((each for each in helping if not each.misses), None)
        if best is not None:
            return [best]
    nearest = sorted(helping, key=lambda each: (len(each.misses), sum(each.left)))
    return [*sorted(costly, key=lambda fix: bool(fix.starves))[:1], *nearest][:1]


def _first(host: Host, missed: Sequence[Slo]) -> list[dict[str, Any]]:
    """The settings that a search for these SLOs tries first, under the present scheduler."""
    domains = [name for name in dict.fromkeys(slo.address.domain for slo in missed) if name]
    if not domains:
        return []
    try:
        searched = widened(space(host.scenario), domains, domains)
    except RequestError:
        return []
    picks = leads(searched, host.run, domains, bottleneck(stations(host.run, domains)))
    return [searched.changes(candidate) for candidate in picks]


def _beyond(run: Run, missed: Sequence[Slo]) -> float:
    """The sum of the amounts by which SLOs are missed; 0: they are kept."""
    values = [(slo, run.get(slo.address.name)) for slo in missed]
    return sum(max(slo.excess(None if value is None else value.mean), 0.0) for slo, value in values)
