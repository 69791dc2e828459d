"""Mends that are made: one after the other, each simulated on the host as the ones before it left it."""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcpulab.advice.answers import Differences
from vcpulab.advice.compare import compare
from vcpulab.advice.lint.catalogue import RULES, findings
from vcpulab.advice.lint.foreign import without_foreign
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.lint import Advice, as_data, tried
from vcpulab.errors import Interrupted
from vcpulab.hypervisors import Toolstack
from vcpulab.results.run import Run, run, run_many
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import change


@dataclass(frozen=True)
class Fixed:
    """What was mended in a scenario, and what was not."""

    scenario: Scenario
    """With all mends, in the user's own words but for these."""
    taken_out: tuple[Finding, ...]
    """Parameters of other schedulers: they are no longer in it."""
    made: tuple[Advice, ...]
    """Each with its effect on the host as those before it left it."""
    left: tuple[tuple[Advice, str], ...]
    """What is found still, each with the reason why it is not mended."""
    measured: Differences
    """The host as it was, and with all mends."""

    def as_data(self, toolstack: Toolstack | None = None) -> dict[str, object]:
        """For machines: the findings, and every metric as it was and is.

        Args:
            toolstack: whose commands; `None`: those of the scenario's host.
        """
        return {
            "starved": self.measured.starved,
            "taken_out": [{"rule": one.rule, "field": one.path, "reason": one.reason} for one in self.taken_out],
            "fixed": as_data(self.made, toolstack),
            "left": [{**row, "not_fixed": why} for one, why in self.left for row in as_data([one], toolstack)],
            "metrics": [one.row() for one in self.measured],
        }


def fix(
    path: Path,
    *,
    select: Container[str] = RULES,
    replications: int = 10,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> Fixed:
    """Makes the mends of all findings that help and harm nobody; writes nothing.

    A mend is made if its simulation improves something, starves nobody, makes nobody late, and improves more than it
    regresses, and if none that was made before set the same to another value.

    Args:
        path: the scenario file.
        select: the names of the rules that count.
        replications: of each simulation.
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done; returning `False` cancels.

    Raises:
        ScenarioError: what else is wrong with it than parameters of other schedulers.
        OSError: it cannot be read.
        Interrupted: it was cancelled, with the mends that were made by then.
    """
    scenario, foreign = without_foreign(path)
    base = scenario.with_run(replications=max(replications, scenario.replications))
    before = run(base, jobs=jobs)
    host = Host(base, before)
    made: list[Advice] = []
    while True:
        found = [finding for finding in findings(host) if finding.rule in select]
        try:
            advice = tried(host, found, jobs=jobs, progress=progress)
        except KeyboardInterrupt:
            measured = Differences(before, host.run, tuple(compare(before, host.run)))
            raise Interrupted(
                Fixed(scenario, tuple(foreign), tuple(made), (), measured), "nothing is written"
            ) from None
        left = [(one, why_not(one, made)) for one in advice]
        now = next((one for one, why in left if not why and one.after is not None), None)
        if now is None or now.after is None:
            measured = _measured(before, host.run, made, jobs)
            return Fixed(scenario, tuple(foreign), tuple(made), tuple(left), measured)
        scenario = change(scenario, now.finding.changes).scenario
        host = Host(now.after.scenario, now.after)
        made.append(now)


def _measured(before: Run, after: Run, made: Sequence[Advice], jobs: int) -> Differences:
    """Before and after, with as many replications as the mend that was looked at most."""
    looked_at = [one.before.n for advice in made for one in advice.effect or () if one.before is not None]
    most = max(looked_at, default=0)
    if most > before.scenario.replications:
        both = (one.scenario.with_run(replications=most) for one in (before, after))
        before, after = run_many(list(both), jobs=jobs)
    return Differences(before, after, tuple(compare(before, after)))


def why_not(advice: Advice, made: Sequence[Advice]) -> str:
    """Why a mend is not made; nothing: it is."""
    changes = advice.finding.changes
    if not changes:
        return "it comes with no setting"
    if advice.effect is None:
        return "the mend does not go together with other settings"
    if advice.harm:
        return advice.harm
    set_already: dict[str, tuple[Any, str]] = {
        path: (value, one.finding.rule) for one in made for path, value in one.finding.changes.items()
    }
    for path in changes:
        if path in set_already:
            value, rule = set_already[path]
            return f"the mend sets {path}, which `{rule}` has set to {value} already"
    return "" if advice.improves else "the mend improves nothing significantly"
