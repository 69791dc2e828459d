"""Fixes applied to a scenario one after another, each simulated with the earlier fixes in place."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpulab._work.progress import Progress
from vcpulab.advice.answers import Differences
from vcpulab.advice.compare import compare
from vcpulab.advice.lint.catalogue import RULES, findings
from vcpulab.advice.lint.document import of_fixes
from vcpulab.advice.lint.foreign import without_foreign
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.lint import Advice, as_data, tried
from vcpulab.errors import Interrupted
from vcpulab.hypervisors import Toolstack
from vcpulab.results.run import Run, run, run_many
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import change
from vcpulab.show.document import Document


@dataclass(frozen=True)
class Fixed:
    """A scenario with its fixes, and the findings that remain."""

    scenario: Scenario
    """The scenario with all fixes; the rest of the user's file is unchanged."""
    taken_out: tuple[Finding, ...]
    """Parameters of other schedulers, which were removed."""
    made: tuple[Advice, ...]
    """The fixes, each with its effect on the host with the earlier fixes."""
    left: tuple[tuple[Advice, str], ...]
    """The remaining findings, each with the reason why it is not fixed."""
    measured: Differences
    """The comparison of the host without fixes and with all of them."""

    @property
    def number(self) -> int:
        """The number of fixed findings."""
        return len(self.made) + len(self.taken_out)

    def document(self, label: str) -> Document:
        """The fixes as a document.

        Args:
            label: the name of the scenario file.
        """
        return of_fixes(self, label)

    def as_data(self, toolstack: Toolstack | None = None) -> dict[str, object]:
        """The fixes as data: the findings, and every metric before and after.

        Args:
            toolstack: the toolstack of the commands; `None`: that of the scenario's host.
        """
        return {
            "starved": self.measured.starved,
            "taken_out": [
                {"rule": finding.rule, "field": finding.path, "reason": finding.reason} for finding in self.taken_out
            ],
            "fixed": as_data(self.made, toolstack),
            "left": [
                {**row, "not_fixed": reason} for advice, reason in self.left for row in as_data([advice], toolstack)
            ],
            "metrics": [comparison.row() for comparison in self.measured],
        }


def fix(
    path: Path,
    *,
    select: Container[str] = RULES,
    replications: int = 10,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Fixed:
    """Applies the fixes of all findings that help and harm nobody; writes no file.

    A fix is applied if its simulation improves a metric, starves no domain, makes no application late and improves more
    than it regresses, and if no earlier fix set the same field to another value.

    Args:
        path: the scenario file.
        select: the names of the rules to apply.
        replications: the replications of each simulation.
        jobs: replications at a time; 0: one for each processor.
        progress: see `Progress`.

    Raises:
        ScenarioError: the file has faults other than parameters of other schedulers.
        OSError: the file cannot be read.
        Interrupted: the work was cancelled; it holds the fixes that were made by then.
    """
    scenario, foreign = without_foreign(path)
    base = scenario.with_run(replications=max(replications, scenario.replications))
    before = run(base, jobs=jobs)
    host = Host(base, before)
    made: list[Advice] = []
    while True:
        selected = [finding for finding in findings(host) if finding.rule in select]
        try:
            advice = tried(host, selected, jobs=jobs, progress=progress)
        except KeyboardInterrupt:
            measured = Differences(before, host.run, tuple(compare(before, host.run)))
            raise Interrupted(
                Fixed(scenario, tuple(foreign), tuple(made), (), measured), "nothing is written"
            ) from None
        left = [(fix, why_not(fix, made)) for fix in advice]
        now = next((fix for fix, reason in left if not reason and fix.after is not None), None)
        if now is None or now.after is None:
            measured = _measured(before, host.run, made, jobs)
            return Fixed(scenario, tuple(foreign), tuple(made), tuple(left), measured)
        scenario = change(scenario, now.finding.changes).scenario
        host = Host(now.after.scenario, now.after)
        made.append(now)


def _measured(before: Run, after: Run, made: Sequence[Advice], jobs: int) -> Differences:
    """The comparison of both runs, with the replications of the fix that needed the most."""
    looked_at = [
        comparison.before.n for advice in made for comparison in advice.effect or () if comparison.before is not None
    ]
    most = max(looked_at, default=0)
    if most > before.scenario.replications:
        scenarios = (run.scenario.with_run(replications=most) for run in (before, after))
        before, after = run_many(list(scenarios), jobs=jobs)
    return Differences(before, after, tuple(compare(before, after)))


def why_not(advice: Advice, made: Sequence[Advice]) -> str:
    """The reason why a fix is not made; empty: it is made."""
    changes = advice.finding.changes
    if not changes:
        return "it comes with no setting"
    if advice.effect is None:
        return "the fix conflicts with other settings"
    if advice.harm:
        return advice.harm
    set_already: dict[str, tuple[Any, str]] = {
        path: (value, fix.finding.rule) for fix in made for path, value in fix.finding.changes.items()
    }
    for path in changes:
        if path in set_already:
            value, rule = set_already[path]
            return f"the fix sets {path}, which `{rule}` has set to {value} already"
    return "" if advice.improves else "the fix improves nothing significantly"
