"""What is probably wrong with a host, what it costs, and what mends it."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.lint.catalogue import RULES
from vcpulab.advice.lint.catalogue import findings as findings_on
from vcpulab.advice.lint.foreign import without_foreign
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.errors import RequestError
from vcpulab.hypervisors.xl import Step, new_steps
from vcpulab.results.run import run, run_many
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import change

SHOWN = 4
"""As many effects are told of a mend."""


@dataclass(frozen=True)
class Advice:
    """A finding, what mending it would do, and how."""

    finding: Finding
    effect: list[Comparison] | None
    """As it is against mended; `None`: there is nothing to simulate."""
    steps: list[Step]
    """What to do on a real host."""

    def told(self) -> list[Comparison]:
        """The significant improvements and regressions: those that users see first, then the largest."""
        return sorted(self._seen(), key=lambda one: one.rank)[:SHOWN]

    def _seen(self) -> list[Comparison]:
        found = [c for c in self.effect or () if c.of_consequence]
        asked = {c.address.name for c in found}
        # What clients see says more than what the service behind them does.
        return [c for c in found if c.address.of != "app" or not _hidden(c, asked)]

    @property
    def improves(self) -> bool:
        """Would mending it improve anything, and not only cost those who are served here?"""
        return any(one.verdict == "improves" for one in self._seen()) and not self.makes_worse

    @property
    def makes_worse(self) -> bool:
        """Would mending it only cost those who are served here?"""
        served = {c.verdict for c in self._seen() if c.address.of == "app"}
        return "regresses" in served and "improves" not in served


def _hidden(comparison: Comparison, names: set[str]) -> bool:
    thing, _, metric = comparison.address.name.rpartition(".")
    return "." in thing and any(
        name.endswith(f".{metric}") and name != comparison.address.name and "." not in name.rpartition(".")[0]
        for name in names
    )


def lint(
    path: Path,
    *,
    select: Container[str] = RULES,
    replications: int = 10,
    jobs: int = 0,
    progress: Callable[[float], bool] | None = None,
) -> tuple[Scenario, list[Advice]]:
    """Everything that is probably not meant in a scenario file, each with its effect simulated.

    Parameters that belong to another scheduler, which a scenario may not have, are findings too.

    Args:
        path: the scenario file.
        select: the names of the rules that count.
        replications: of each simulation.
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done; returning `False` cancels.

    Returns:
        The scenario as it can run, and what is wrong with it.

    Raises:
        ScenarioError: what else is wrong with it.
        OSError: it cannot be read.
    """
    scenario, foreign = without_foreign(path)
    return scenario, advise(scenario, foreign, select=select, replications=replications, jobs=jobs, progress=progress)


def advise(
    scenario: Scenario,
    foreign: Sequence[Finding] = (),
    *,
    select: Container[str] = RULES,
    replications: int = 10,
    jobs: int = 0,
    progress: Callable[[float], bool] | None = None,
) -> list[Advice]:
    """Everything that is probably not meant in a scenario, each with its effect simulated.

    Args:
        scenario: as it can run.
        foreign: what was found already, before it could.
        select: the names of the rules that count.
        replications: of each simulation.
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done; returning `False` cancels.
    """
    base = scenario.with_run(replications=max(replications, scenario.replications))
    host = Host(base, run(base, jobs=jobs))
    found = [finding for finding in (*foreign, *findings_on(host)) if finding.rule in select]
    return tried(host, found, jobs=jobs, progress=progress)


def tried(
    host: Host, findings: Sequence[Finding], *, jobs: int = 0, progress: Callable[[float], bool] | None = None
) -> list[Advice]:
    """Findings, each with the effect of its mend, simulated as often as the host was.

    A finding that does not stand by its evidence alone is dropped where its mend improves nothing, or costs those who
    are served more than it gains them: what looks odd is no fault here.
    """
    base = host.scenario
    mends: list[Scenario | None] = []
    for finding in findings:
        try:
            mends.append(change(base, finding.changes).scenario if finding.changes else None)
        except RequestError:
            # What would mend it alone does not go together with the rest; the reason stands.
            mends.append(None)
    there = [mended for mended in mends if mended is not None]
    runs = iter(run_many(there, jobs=jobs, progress=progress)) if there else iter(())
    advice = []
    for finding, mended in zip(findings, mends, strict=True):
        effect = None if mended is None else compare(host.run, next(runs))
        steps = [] if mended is None else new_steps(base, mended)
        advice.append(Advice(finding, effect, steps))
    return [one for one in advice if RULES[one.finding.rule].stands or one.effect is None or one.improves]


def other_warnings(scenario: Scenario, advice: Sequence[Advice]) -> list[Problem]:
    """What else is allowed but probably not meant: warnings on which no rule decides and that none repeats."""
    found = {one.finding.path for one in advice}
    # Whether a driver domain's smaller weight is felt is what `inverted-weights` measures.
    warnings = [w for w in scenario.warnings if "that of its driver domain" not in w["message"]]
    return [w for w in warnings if w["field"] not in found]


def as_data(advice: Sequence[Advice]) -> list[dict[str, object]]:
    """For machines."""
    return [
        {
            "rule": one.finding.rule,
            "field": one.finding.path,
            "reason": one.finding.reason,
            "changes": dict(one.finding.changes),
            "effect": None if one.effect is None else [comparison.row() for comparison in one.effect],
            "commands": [step.text for step in one.steps if step.how == "run"],
        }
        for one in advice
    ]
