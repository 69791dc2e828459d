"""What is probably wrong with a host, what it costs, and what mends it."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import log
from pathlib import Path
from typing import Any

from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.compare import change as said
from vcpulab.advice.deciding import PRECISION, uncertain_harm
from vcpulab.advice.lateness import Late, late
from vcpulab.advice.lint.catalogue import RULES
from vcpulab.advice.lint.catalogue import findings as findings_on
from vcpulab.advice.lint.catalogue import notes as notes_on
from vcpulab.advice.lint.foreign import without_foreign
from vcpulab.advice.lint.host import Finding, Host, measured
from vcpulab.advice.lint.rule import Stands
from vcpulab.advice.starving import newly_starved, rows
from vcpulab.errors import Interrupted, RequestError
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.commands import typed
from vcpulab.hypervisors.settings import Change, difference
from vcpulab.hypervisors.steps import Step
from vcpulab.results.addresses import Slo, apps
from vcpulab.results.addresses import in_short as slos_in_short
from vcpulab.results.run import Run, run_many
from vcpulab.results.statistics import Interval, least_to_most
from vcpulab.scenario.assumed import all_assumed
from vcpulab.scenario.names import in_short
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.scenario import Scenario, split
from vcpulab.scenario.settings import change

SHOWN = 4
"""As many effects are told of a mend."""
MORE = 4
"""Where a large gain is uncertain, both sides run again with this many times the replications."""
LOOKS = 2
"""So often the two sides are looked at, at most."""
RATIO_MAX = 10.0
"""A metric that gets better or worse by more than this counts as one that does so by this."""


@dataclass(frozen=True)
class Advice:
    """A finding, what mending it would do, and how."""

    finding: Finding
    effect: list[Comparison] | None
    """As it is against mended; `None`: there is nothing to simulate."""
    change: Change | None
    """What it sets on a real host; `None`: there is nothing to set."""
    after: Run | None = None
    """The host with the mend."""
    starves: Mapping[str, str] = field(default_factory=dict)
    """Who starves with the mend and does not without it, and why."""
    delays: tuple[str, ...] = ()
    """Who is late with the mend and is not without it."""
    slos: tuple[Slo, ...] = ()
    """What was asked to hold."""
    breaks: tuple[Slo, ...] = ()
    """What of that does not hold with the mend and does without it."""
    whom: frozenset[str] = frozenset()
    """Those who are late without the mend, and should not be with it."""
    still_late: tuple[Late, ...] = ()
    """Those whom the finding is about and who are late with the mend."""

    doubts: tuple[Comparison, ...] = ()
    """What others may lose much of by the fix, and what more replications would have to decide."""

    def steps(self, toolstack: Toolstack | None = None) -> list[Step]:
        """What to do on a real host.

        Args:
            toolstack: whose commands; `None`: those of the scenario's host.
        """
        return [] if self.change is None else typed(self.change, toolstack)

    def told(self) -> list[Comparison]:
        """The significant improvements and regressions: of those whom it is about first, then the largest.

        What others gain and what they pay most is added, where it is not among them.
        """
        about = {*self.finding.concerned, *split(self.finding.path)[1:2]}

        def others(one: Comparison) -> tuple[bool, bool]:
            address = one.address
            return address.kind != "app" or not about & {address.thing, address.domain}, address.thing not in self.whom

        seen = sorted(self._seen(), key=lambda one: (*others(one), one.rank))
        told = seen[:SHOWN]
        for verdict in ("improves", "regresses"):
            most = next((one for one in seen if one.verdict == verdict), None)
            told += [] if most is None or most in told else [most]
        return told

    @property
    def is_noted(self) -> bool:
        """Is it no fault, and only good to know?"""
        rule = RULES.get(self.finding.rule)
        return rule is not None and rule.stands is Stands.NOTED

    @property
    def misses(self) -> list[Slo]:
        """The SLOs that the mend does not keep."""
        return [one for one in self.slos if not one.holds(self._with(one))]

    @property
    def left(self) -> list[float]:
        """How far each SLO is missed that is not kept; where there is no SLO, how late each is who should not be."""
        if self.slos:
            return [one.excess(self._with(one)) for one in self.misses]
        return [one.excess for one in self.still_late]

    def leaves_less(self, other: "Advice") -> bool:
        """Does it leave fewer SLOs missed or people late than another mend, or as many by less than half as much?"""
        if len(self.left) != len(other.left):
            return len(self.left) < len(other.left)
        return sum(self.left) < sum(other.left) / 2

    def kept(self) -> list[str]:
        """Which of the SLOs hold with the mend, in words; those of the same bound on the same metric together.

        Where there are none, who is late with it still. And what it may cost others, where that is uncertain.
        """
        cost = [f"may cost others: {in_short([str(one.address) for one in self.doubts])}"] if self.doubts else []
        if not self.slos:
            late = [f"late still: {in_short([one.name for one in self.still_late])}"] if self.still_late else []
            return [*late, *cost]
        kept = [one for one in self.slos if one not in self.misses]
        return [*self._said("keeps", kept), *self._said("does not keep", self.misses), *cost]

    def _said(self, verb: str, those: Sequence[Slo]) -> list[str]:
        said = []
        for name, row in slos_in_short(those).items():
            values = [value for one in row if (value := self._with(one)) is not None]
            ends = f"{least_to_most(values)} {row[0].address.unit}" if values else "undefined"
            doubt = "" if all(map(self._surely, row)) else " on average, not for sure"
            said.append(f"{verb} {name}: {ends}{doubt}")
        return said

    def _interval_with(self, slo: Slo) -> Interval | None:
        """The metric of an SLO with the fix; `None`: not simulated, or undefined."""
        return None if self.after is None else self.after.get(slo.address.name)

    def _surely(self, slo: Slo) -> bool:
        """Whether the metric of an SLO is on one side of the bound over its whole interval."""
        interval = self._interval_with(slo)
        if interval is None or interval.half_width is None:
            return True
        ends = {slo.holds(interval.mean + sign * interval.half_width) for sign in (-1, 1)}
        return len(ends) == 1

    def _with(self, slo: Slo) -> float | None:
        """The metric of an SLO with the mend."""
        interval = self._interval_with(slo)
        return None if interval is None else interval.mean

    @property
    def does(self) -> str:
        """What the mend does, in words."""
        told = "; ".join(f"{said(one)} ({one.verdict})" for one in self.told())
        return told or "no significant difference"

    def _seen(self) -> list[Comparison]:
        return [one for one in self.effect or () if one.of_consequence and one.address.thing not in self._answering]

    @cached_property
    def _answering(self) -> frozenset[str]:
        """The applications that clients ask: what these see says more than what those do."""
        if self.after is None:
            return frozenset()
        clients = self.after.scenario.to_dict().get("client", {}).values()
        asked = [(client["server"], client.get("app")) for client in clients]
        return frozenset(
            app.name
            for app in apps(self.after.scenario)
            if app.client is None and any(app.domain == server and kind in (None, app.kind) for server, kind in asked)
        )

    @cached_property
    def _assumed(self) -> frozenset[str]:
        """The applications whose work an import assumed."""
        if self.after is None:
            return frozenset()
        return frozenset(app.name for app in apps(self.after.scenario) if app.assumed)

    @property
    def improves(self) -> bool:
        """Would mending it improve anything for those whom it is about, and not only cost those who are served here?"""
        about = self.finding.concerned
        gains = [one.address for one in self._seen() if one.verdict == "improves"]
        return any(not about or one.thing in about or one.domain in about for one in gains) and not self.makes_worse

    @property
    def may_improve(self) -> bool:
        """Would it perhaps improve much for those who are late, though nothing as large is certain?"""
        late = [one for one in self.effect or () if one.address.thing in self.whom]
        certain = any(one.verdict == "improves" and one.large for one in late)
        return not certain and any(one.may_improve for one in late)

    @property
    def keeps(self) -> bool:
        """Does the fix keep every SLO that was asked for?"""
        return bool(self.slos) and self.after is not None and not self.misses

    @property
    def helps(self) -> bool:
        """May it be mended so?"""
        return (self.improves or self.keeps) and not self.harm

    @property
    def harm(self) -> str:
        """What speaks against mending it, in words; nothing: it may be mended."""
        if self.starves:
            return f"the mend starves {in_short(list(self.starves))}"
        if self.breaks:
            return f"the mend breaks {', '.join(map(str, self.breaks))}"
        if self.delays:
            return f"the mend makes {in_short(self.delays)} late"
        return "the mend regresses more than it improves" if self.makes_worse else ""

    @property
    def against(self) -> str:
        """Why it is not recommended, in a sentence; nothing: it is, or there is nothing to recommend."""
        if self.effect is None or self.helps:
            return ""
        return f"{self.harm or 'it improves nothing that matters significantly'}: better leave it as it is"

    @property
    def makes_worse(self) -> bool:
        """Would mending it only cost those who are served here, or take from some clients what it gives to others?"""
        seen = [comparison for comparison in self._seen() if comparison.address.kind == "app"]
        # What jobs that an import assumed gain is no reason to take from anybody.
        served = [comparison for comparison in seen if comparison.address.thing not in self._assumed] or seen
        clients = {app.name for app in apps(self.after.scenario) if app.client is not None} if self.after else set()
        asked = [comparison for comparison in served if comparison.address.thing in clients]
        verdicts, of_clients = ({comparison.verdict for comparison in comparisons} for comparisons in (served, asked))
        if {"improves", "regresses"} <= of_clients:
            return sum(map(_gain, asked)) <= 0
        return "regresses" in verdicts and "improves" not in verdicts


def _gain(one: Comparison) -> float:
    """What a metric gains, as the logarithm of a ratio, so that twice and half are the same; at most `RATIO_MAX`."""
    values = [abs(value.mean) for value in (one.before, one.after) if value is not None and value.mean]
    size = abs(log(values[1] / values[0])) if len(values) == 2 else log(RATIO_MAX)
    return min(size, log(RATIO_MAX)) * (1 if one.verdict == "improves" else -1)


def lint(
    path: Path,
    *,
    select: Container[str] = RULES,
    replications: int = 10,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
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
        Interrupted: as of `advise`.
    """
    scenario, foreign = without_foreign(path)
    effort: dict[str, Any] = {"replications": replications, "jobs": jobs, "progress": progress}
    try:
        return scenario, advise(scenario, foreign, select=select, **effort)
    except Interrupted as interrupted:
        raise Interrupted((scenario, interrupted.partial), interrupted.extent) from None


def advise(
    scenario: Scenario,
    foreign: Sequence[Finding] = (),
    *,
    select: Container[str] = RULES,
    replications: int = 10,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> list[Advice]:
    """Everything that is probably not meant in a scenario, each with its effect simulated, and what is good to know.

    Args:
        scenario: as it can run.
        foreign: what was found already, before it could.
        select: the names of the rules that count.
        replications: of each simulation.
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done; returning `False` cancels.

    Raises:
        Interrupted: it was cancelled when the host was run at least once; then no mend is tried.
    """
    host, stopped = measured(scenario.with_run(replications=max(replications, scenario.replications)), jobs)
    found = [finding for finding in (*foreign, *findings_on(host)) if finding.rule in select]
    try:
        if stopped is not None:
            raise stopped
        noted = [one for one in notes_on(host) if one.rule in select]
        advice = tried(host, found, jobs=jobs, progress=progress)
        # What is about jobs that an import assumed comes after all else.
        advice.sort(key=lambda one: not _is_real(one, host.run))
        return [*advice, *_noted(host, noted, jobs=jobs)]
    except KeyboardInterrupt:
        extent = "findings whose mends are not tried" + ("" if stopped is None else f", from {stopped.extent}")
        raise Interrupted([Advice(finding, None, None) for finding in found], extent) from None


def tried(
    host: Host,
    findings: Sequence[Finding],
    slos: Sequence[Slo] = (),
    *,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> list[Advice]:
    """Findings, each with the effect of its mend, simulated as often as the host was.

    Those whose mend does not help are dropped, unless they stand nevertheless: see `Stands`.
    """
    advice = simulated(host, findings, slos, jobs=jobs, progress=progress)
    good = [one for one in advice if one.improves or one.keeps]
    allowed = {Stands.ALWAYS} if good else {Stands.ALWAYS, Stands.ALONE}
    return [one for one in advice if one.effect is None or one in good or RULES[one.finding.rule].stands in allowed]


def simulated(
    host: Host,
    findings: Sequence[Finding],
    slos: Sequence[Slo] = (),
    *,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> list[Advice]:
    """Findings, each with the effect of the first of its mends that helps; whether any does or not."""
    first = _all_tried(host, findings, slos, jobs=jobs, progress=progress)
    return [_or_otherwise(host, one, jobs=jobs) for one in _decided(host, first, jobs=jobs)]


def _noted(host: Host, findings: Sequence[Finding], *, jobs: int) -> list[Advice]:
    """What is no fault, with the effect of the other setting, where this host can have it."""
    return [one for one in _all_tried(host, findings, (), jobs=jobs) if one.effect is not None]


def _decided(host: Host, advice: Sequence[Advice], *, jobs: int) -> list[Advice]:
    """The same; of mends whose gain is large and uncertain, after `MORE` times the replications."""
    doubt = [one for one in advice if one.may_improve and one.after is not None]
    if not doubt:
        return list(advice)
    both = [host.scenario, *(one.after.scenario for one in doubt if one.after is not None)]
    before, *afters = run_many([one.with_run(replications=MORE * one.replications) for one in both], jobs=jobs)
    seen = {id(one): _judged(one, before, after) for one, after in zip(doubt, afters, strict=True)}
    return [seen.get(id(one), one) for one in advice]


def _or_otherwise(host: Host, advice: Advice, *, jobs: int) -> Advice:
    """The same, or another mend if its own does not help, harms somebody, misses SLOs, or leaves people late.

    The first that helps is taken, unless one after it leaves less of that.
    """
    for changes in advice.finding.otherwise:
        if advice.helps and not advice.left:
            break
        tried = _all_tried(host, [replace(advice.finding, changes=changes)], advice.slos, jobs=jobs)
        (other,) = _decided(host, tried, jobs=jobs)
        if other.helps and (not advice.helps or other.leaves_less(advice)):
            advice = other
    return advice


def _all_tried(
    host: Host,
    findings: Sequence[Finding],
    slos: Sequence[Slo],
    *,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> list[Advice]:
    """Findings, each with the effect of its first mend."""
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
        if mended is None:
            advice.append(Advice(finding, None, None))
            continue
        after = next(runs)
        whom = frozenset(finding.concerned or (one.name for one in host.late))
        tried = Advice(finding, None, difference(base, mended), after, slos=tuple(slos), whom=whom)
        advice.append(_judged(tried, host.run, after))
    return advice


def _judged(advice: Advice, before: Run, after: Run) -> Advice:
    """What a mend does, between two runs."""
    effect = compare(before, after, looks=LOOKS)
    late_before, late_after = late(before), late(after)
    regressing = {one.address.thing for one in effect if one.verdict == "regresses"}
    delayed = regressing - {one.name for one in late_before}
    # A fix for a client is not refused for jobs that an import assumed.
    harmed = [one for one in late_after if one.name in delayed and not (one.assumed and _is_real(advice, before))]
    return replace(
        advice,
        effect=effect,
        starves=newly_starved(before, after),
        delays=tuple(one.name for one in harmed),
        breaks=tuple(one for one in advice.slos if _holds(one, before) and not _holds(one, after)),
        still_late=tuple(one for one in late_after if one.name in advice.finding.concerned),
        doubts=tuple(
            one
            for one in uncertain_harm(effect, before, PRECISION)
            if one.address.thing not in advice.finding.concerned and one.address.thing not in advice.whom
        ),
    )


def _is_real(advice: Advice, run: Run) -> bool:
    """Is a finding about anything else than jobs that an import assumed?"""
    assumed = {app.name for app in apps(run.scenario) if app.assumed}
    document = run.scenario.to_dict()
    assumed |= {name for name in document["domain"] if all_assumed(document, name)}
    return not advice.finding.concerned or bool(set(advice.finding.concerned) - assumed)


def _holds(one: Slo, run: Run) -> bool:
    found = run.get(one.address.name)
    return one.holds(None if found is None else found.mean)


WARNED_BY = {"inverted-weights": "that of its driver domain"}
"""What the warning of a scenario says that is about the same as a rule, by the rule."""


def other_warnings(scenario: Scenario, advice: Sequence[Advice], select: Container[str] = RULES) -> list[Problem]:
    """What else is allowed but probably not meant: warnings that no finding repeats.

    Args:
        scenario: as it can run.
        advice: what was found.
        select: the names of the rules that count; of a part of all only warnings count that are about the same.
    """
    paths = {one.finding.path for one in advice}
    rules = {one.finding.rule for one in advice}

    def counts(message: str) -> bool:
        of = next((rule for rule, words in WARNED_BY.items() if words in message), None)
        return of not in rules and (of in select if of is not None else all(rule in select for rule in RULES))

    return [warning for warning in scenario.warnings if warning["field"] not in paths and counts(warning["message"])]


def as_data(advice: Sequence[Advice], toolstack: Toolstack | None = None) -> list[dict[str, object]]:
    """For machines.

    Args:
        advice: it.
        toolstack: whose commands; `None`: those of the scenario's host.
    """
    return [
        {
            "rule": one.finding.rule,
            "field": one.finding.path,
            "reason": one.finding.reason,
            "changes": dict(one.finding.changes),
            "effect": None if one.effect is None else [comparison.row() for comparison in one.effect],
            "starved": rows(one.starves),
            "not_recommended": one.against or None,
            "commands": [step.text for step in steps if step.how == "run"],
            "steps": [asdict(step) for step in steps],
        }
        for one in advice
        for steps in [one.steps(toolstack) if not one.against else []]
    ]
