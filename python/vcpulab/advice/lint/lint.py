"""Findings of lint on a scenario, each with the simulated effect of its fix."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import log
from pathlib import Path

from vcpulab._work.effort import Effort
from vcpulab._work.progress import Progress
from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.deciding import PRECISION, uncertain_harm
from vcpulab.advice.lateness import Late, late
from vcpulab.advice.lint.catalogue import RULES
from vcpulab.advice.lint.catalogue import findings as findings_on
from vcpulab.advice.lint.catalogue import notes as notes_on
from vcpulab.advice.lint.foreign import without_foreign
from vcpulab.advice.lint.host import Finding, Host, measured, with_effort
from vcpulab.advice.lint.rule import Stands
from vcpulab.advice.starvation import newly_starved, rows
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
"""The number of effects that are shown of a fix."""
MORE = 4
"""The factor of replications with which both sides run again if a large gain is uncertain."""
LOOKS = 2
"""The largest number of looks at the two sides."""
RATIO_MAX = 10.0
"""The largest ratio of a metric's change that counts; a larger one counts as this."""


@dataclass(frozen=True)
class Advice:
    """A finding, and the simulated effect of its fix."""

    finding: Finding
    effect: list[Comparison] | None
    """The comparison of the host without and with the fix; `None`: not simulated."""
    change: Change | None
    """The change of a real host; `None`: none."""
    after: Run | None = None
    """The host with the fix."""
    starves: Mapping[str, str] = field(default_factory=dict)
    """The domains that starve only with the fix, each with the reason."""
    delays: tuple[str, ...] = ()
    """The services that are late only with the fix."""
    slos: tuple[Slo, ...] = ()
    """The SLOs to keep."""
    breaks: tuple[Slo, ...] = ()
    """The SLOs that only the fix breaks."""
    targets: frozenset[str] = frozenset()
    """The late services that the fix is for."""
    still_late: tuple[Late, ...] = ()
    """The services of the finding that are late with the fix, too."""

    doubts: tuple[Comparison, ...] = ()
    """Metrics of other services that may become much worse with the fix, which only more replications can decide."""

    def steps(self, toolstack: Toolstack | None = None) -> list[Step]:
        """The steps to make the change on a real host.

        Args:
            toolstack: the toolstack of the commands; `None`: the one of the scenario's host.
        """
        return [] if self.change is None else typed(self.change, toolstack)

    def main_effects(self) -> list[Comparison]:
        """The most important significant effects: first those on services of the finding, then the largest.

        The largest improvement and the largest regression are always included.
        """
        about = {*self.finding.concerned, *split(self.finding.path)[1:2]}

        def unconcerned(effect: Comparison) -> tuple[bool, bool]:
            address = effect.address
            concerned = address.kind == "app" and about & {address.thing, address.domain}
            return not concerned, address.thing not in self.targets

        effects = sorted(self._significant(), key=lambda effect: (*unconcerned(effect), effect.rank))
        shown = effects[:SHOWN]
        for verdict in ("improves", "regresses"):
            most = next((effect for effect in effects if effect.verdict == verdict), None)
            shown += [] if most is None or most in shown else [most]
        return shown

    @property
    def is_noted(self) -> bool:
        """Is the finding a note rather than a problem?"""
        rule = RULES.get(self.finding.rule)
        return rule is not None and rule.stands is Stands.NOTED

    @property
    def misses(self) -> list[Slo]:
        """The SLOs that the fix does not keep."""
        return [slo for slo in self.slos if not slo.holds(self._with(slo))]

    @property
    def left(self) -> list[float]:
        """The excess of each SLO that the fix does not keep; without SLOs, of each service that stays late."""
        if self.slos:
            return [slo.excess(self._with(slo)) for slo in self.misses]
        return [late.excess for late in self.still_late]

    def leaves_less(self, previous: "Advice") -> bool:
        """Does the fix leave fewer SLOs missed or services late than a previous one, or less than half the excess?"""
        if len(self.left) != len(previous.left):
            return len(self.left) < len(previous.left)
        return sum(self.left) < sum(previous.left) / 2

    def kept(self) -> list[str]:
        """The SLOs kept and not kept with the fix, in words; alike SLOs share a line.

        Without SLOs, the services that stay late. In both cases the uncertain harm to other services.
        """
        cost = [f"may cost others: {in_short([str(doubt.address) for doubt in self.doubts])}"] if self.doubts else []
        if not self.slos:
            late = [f"late still: {in_short([late.name for late in self.still_late])}"] if self.still_late else []
            return [*late, *cost]
        kept = [slo for slo in self.slos if slo not in self.misses]
        return [*self._slo_lines("keeps", kept), *self._slo_lines("does not keep", self.misses), *cost]

    def _slo_lines(self, verb: str, slos: Sequence[Slo]) -> list[str]:
        lines = []
        for name, row in slos_in_short(slos).items():
            values = [value for slo in row if (value := self._with(slo)) is not None]
            ends = f"{least_to_most(values)} {row[0].address.unit}" if values else "undefined"
            doubt = "" if all(map(self._surely, row)) else " on average, not for sure"
            lines.append(f"{verb} {name}: {ends}{doubt}")
        return lines

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
        """The metric of an SLO with the fix."""
        interval = self._interval_with(slo)
        return None if interval is None else interval.mean

    @property
    def does(self) -> str:
        """The effects of the fix, in words."""
        effects = "; ".join(f"{effect.judged.change} ({effect.verdict})" for effect in self.main_effects())
        return effects or "no significant difference"

    def _significant(self) -> list[Comparison]:
        """The significant effects, except on applications whose clients are measured."""
        return [
            effect
            for effect in self.effect or ()
            if effect.of_consequence and effect.address.thing not in self._with_clients
        ]

    @cached_property
    def _with_clients(self) -> frozenset[str]:
        """The applications with clients: the metrics of the clients mean more than theirs."""
        if self.after is None:
            return frozenset()
        servers = [(client.server, client.app) for client in self.after.scenario.clients.values()]
        return frozenset(
            app.name
            for app in apps(self.after.scenario)
            if app.client is None and any(app.domain == server and kind in (None, app.kind) for server, kind in servers)
        )

    @cached_property
    def _assumed(self) -> frozenset[str]:
        """The applications whose work an import assumed."""
        if self.after is None:
            return frozenset()
        return frozenset(app.name for app in apps(self.after.scenario) if app.assumed)

    @property
    def improves(self) -> bool:
        """Does the fix improve a metric of a service of the finding without making the host worse on balance?"""
        about = self.finding.concerned
        gains = [effect.address for effect in self._significant() if effect.verdict == "improves"]
        concerned = any(not about or gain.thing in about or gain.domain in about for gain in gains)
        return concerned and not self.makes_worse

    @property
    def may_improve(self) -> bool:
        """Is a large improvement for a late service possible, but none certain?"""
        on_targets = [effect for effect in self.effect or () if effect.address.thing in self.targets]
        certain = any(effect.verdict == "improves" and effect.large for effect in on_targets)
        return not certain and any(effect.may_improve for effect in on_targets)

    @property
    def keeps(self) -> bool:
        """Does the fix keep every SLO?"""
        return bool(self.slos) and self.after is not None and not self.misses

    @property
    def helps(self) -> bool:
        """Does the fix improve the host or keep the SLOs, without harm?"""
        return (self.improves or self.keeps) and not self.harm

    @property
    def harm(self) -> str:
        """The harm of the fix, in words; empty: no harm."""
        if self.starves:
            return f"the fix starves {in_short(list(self.starves))}"
        if self.breaks:
            return f"the fix breaks {', '.join(map(str, self.breaks))}"
        if self.delays:
            return f"the fix makes {in_short(self.delays)} late"
        return "the fix regresses more than it improves" if self.makes_worse else ""

    @property
    def against(self) -> str:
        """The reason why the fix is not recommended, in a sentence; empty: it is recommended, or there is no fix."""
        if self.effect is None or self.helps:
            return ""
        return f"{self.harm or 'it improves nothing that matters significantly'}: better leave it as it is"

    @property
    def makes_worse(self) -> bool:
        """Does the fix only make applications worse, or take more from some clients than it gives to others?"""
        on_apps = [effect for effect in self._significant() if effect.address.kind == "app"]
        # A gain of jobs that an import assumed does not justify harm to others.
        served = [effect for effect in on_apps if effect.address.thing not in self._assumed] or on_apps
        clients = {app.name for app in apps(self.after.scenario) if app.client is not None} if self.after else set()
        on_clients = [effect for effect in served if effect.address.thing in clients]
        verdicts, of_clients = ({effect.verdict for effect in effects} for effects in (served, on_clients))
        if {"improves", "regresses"} <= of_clients:
            return sum(map(_gain, on_clients)) <= 0
        return "regresses" in verdicts and "improves" not in verdicts


def _gain(effect: Comparison) -> float:
    """The gain of a metric as the logarithm of a ratio, so that twice and half weigh the same; at most `RATIO_MAX`."""
    values = [abs(value.mean) for value in (effect.before, effect.after) if value is not None and value.mean]
    size = abs(log(values[1] / values[0])) if len(values) == 2 else log(RATIO_MAX)
    return min(size, log(RATIO_MAX)) * (1 if effect.verdict == "improves" else -1)


def lint(
    path: Path,
    *,
    select: Container[str] = RULES,
    effort: Effort = Effort(),
    progress: Progress | None = None,
) -> tuple[Scenario, list[Advice]]:
    """The findings on a scenario file, each with the simulated effect of its fix.

    Parameters of another scheduler, which make a scenario invalid, are findings, too.

    Args:
        path: the scenario file.
        select: the names of the rules to check.
        effort: the replications of each simulation, their seed, and the number at a time.
        progress: see `Progress`.

    Returns:
        The scenario without parameters of other schedulers, and the findings.

    Raises:
        ScenarioError: the file has other problems.
        OSError: the file cannot be read.
        Interrupted: as for `advise`.
    """
    scenario, foreign = without_foreign(path)
    try:
        return scenario, advise(scenario, foreign, select=select, effort=effort, progress=progress)
    except Interrupted as interrupted:
        raise Interrupted((scenario, interrupted.partial), interrupted.extent) from None


def advise(
    scenario: Scenario,
    foreign: Sequence[Finding] = (),
    *,
    select: Container[str] = RULES,
    effort: Effort = Effort(),
    progress: Progress | None = None,
) -> list[Advice]:
    """The findings on a scenario, each with the simulated effect of its fix, followed by notes.

    Args:
        scenario: a valid scenario.
        foreign: findings about parameters that were removed to make the scenario valid.
        select: the names of the rules to check.
        effort: the replications of each simulation, their seed, and the number at a time.
        progress: see `Progress`.

    Raises:
        Interrupted: the work was cancelled after the host ran at least once; the findings then have no tried fixes.
    """
    jobs = effort.jobs
    host, stopped = measured(with_effort(scenario, effort), jobs)
    findings = [finding for finding in (*foreign, *findings_on(host)) if finding.rule in select]
    try:
        if stopped is not None:
            raise stopped
        notes = [note for note in notes_on(host) if note.rule in select]
        advice = tried(host, findings, jobs=jobs, progress=progress)
        # Findings about jobs that an import assumed come last.
        advice.sort(key=lambda item: not _is_real(item, host.run))
        return [*advice, *_noted(host, notes, jobs=jobs)]
    except KeyboardInterrupt:
        extent = "findings whose fixes are not tried" + ("" if stopped is None else f", from {stopped.extent}")
        raise Interrupted([Advice(finding, None, None) for finding in findings], extent) from None


def tried(
    host: Host,
    findings: Sequence[Finding],
    slos: Sequence[Slo] = (),
    *,
    jobs: int = 0,
    progress: Progress | None = None,
) -> list[Advice]:
    """Findings, each with the effect of its fix, simulated with the host's replications.

    A finding whose fix does not help is dropped, unless its rule keeps it: see `Stands`.
    """
    advice = simulated(host, findings, slos, jobs=jobs, progress=progress)
    good = [item for item in advice if item.improves or item.keeps]
    allowed = {Stands.ALWAYS} if good else {Stands.ALWAYS, Stands.ALONE}
    return [
        item for item in advice if item.effect is None or item in good or RULES[item.finding.rule].stands in allowed
    ]


def simulated(
    host: Host,
    findings: Sequence[Finding],
    slos: Sequence[Slo] = (),
    *,
    jobs: int = 0,
    progress: Progress | None = None,
) -> list[Advice]:
    """Findings, each with the effect of its first fix that helps, or of the fix tried first if none helps."""
    first = _all_tried(host, findings, slos, jobs=jobs, progress=progress)
    return [_or_otherwise(host, advice, jobs=jobs) for advice in _decided(host, first, jobs=jobs)]


def _noted(host: Host, findings: Sequence[Finding], *, jobs: int) -> list[Advice]:
    """Notes, each with the effect of the other setting, if the host can have it."""
    return [advice for advice in _all_tried(host, findings, (), jobs=jobs) if advice.effect is not None]


def _decided(host: Host, advice: Sequence[Advice], *, jobs: int) -> list[Advice]:
    """Advice after runs with `MORE` times the replications for fixes whose gain is large and uncertain."""
    doubtful = [(item, item.after.scenario) for item in advice if item.may_improve and item.after is not None]
    if not doubtful:
        return list(advice)
    scenarios = [host.scenario, *(scenario for _, scenario in doubtful)]
    longer = [scenario.with_run(replications=MORE * scenario.replications) for scenario in scenarios]
    before, *afters = run_many(longer, jobs=jobs)
    decided = {id(item): _judged(item, before, after) for (item, _), after in zip(doubtful, afters, strict=True)}
    return [decided.get(id(item), item) for item in advice]


def _or_otherwise(host: Host, advice: Advice, *, jobs: int) -> Advice:
    """Advice with another fix if its own does not help, does harm, misses SLOs, or leaves services late.

    The first fix that helps is used, unless a later one leaves less.
    """
    for changes in advice.finding.otherwise:
        if advice.helps and not advice.left:
            break
        tried = _all_tried(host, [replace(advice.finding, changes=changes)], advice.slos, jobs=jobs)
        (alternative,) = _decided(host, tried, jobs=jobs)
        if alternative.helps and (not advice.helps or alternative.leaves_less(advice)):
            advice = alternative
    return advice


def _all_tried(
    host: Host,
    findings: Sequence[Finding],
    slos: Sequence[Slo],
    *,
    jobs: int = 0,
    progress: Progress | None = None,
) -> list[Advice]:
    """Findings, each with the effect of its first fix."""
    base = host.scenario
    fixes: list[Scenario | None] = []
    for finding in findings:
        try:
            fixes.append(change(base, finding.changes).scenario if finding.changes else None)
        except RequestError:
            # The fix does not fit the rest of the scenario; the finding is kept without it.
            fixes.append(None)
    valid = [fixed for fixed in fixes if fixed is not None]
    runs = iter(run_many(valid, jobs=jobs, progress=progress)) if valid else iter(())
    advice = []
    for finding, fixed in zip(findings, fixes, strict=True):
        if fixed is None:
            advice.append(Advice(finding, None, None))
            continue
        after = next(runs)
        targets = frozenset(finding.concerned or (late.name for late in host.late))
        tried = Advice(finding, None, difference(base, fixed), after, slos=tuple(slos), targets=targets)
        advice.append(_judged(tried, host.run, after))
    return advice


def _judged(advice: Advice, before: Run, after: Run) -> Advice:
    """Advice with the effect of its fix between two runs."""
    effect = compare(before, after, looks=LOOKS)
    late_before, late_after = late(before), late(after)
    regressing = {comparison.address.thing for comparison in effect if comparison.verdict == "regresses"}
    delayed = regressing - {service.name for service in late_before}
    real = _is_real(advice, before)
    # A fix for a client is not refused for jobs that an import assumed.
    harmed = [service for service in late_after if service.name in delayed and not (service.assumed and real)]
    return replace(
        advice,
        effect=effect,
        starves=newly_starved(before, after),
        delays=tuple(service.name for service in harmed),
        breaks=tuple(slo for slo in advice.slos if _holds(slo, before) and not _holds(slo, after)),
        still_late=tuple(service for service in late_after if service.name in advice.finding.concerned),
        doubts=tuple(
            comparison
            for comparison in uncertain_harm(effect, before, PRECISION)
            if comparison.address.thing not in advice.finding.concerned
            and comparison.address.thing not in advice.targets
        ),
    )


def _is_real(advice: Advice, run: Run) -> bool:
    """Is a finding about more than jobs that an import assumed?"""
    assumed = {app.name for app in apps(run.scenario) if app.assumed}
    assumed |= {name for name, domain in run.scenario.domains.items() if all_assumed(domain)}
    return not advice.finding.concerned or bool(set(advice.finding.concerned) - assumed)


def _holds(slo: Slo, run: Run) -> bool:
    interval = run.get(slo.address.name)
    return slo.holds(None if interval is None else interval.mean)


WARNED_BY = {"inverted-weights": "that of its driver domain"}
"""Rule to words of the scenario's warning about the same problem."""


def other_warnings(scenario: Scenario, advice: Sequence[Advice], select: Container[str] = RULES) -> list[Problem]:
    """The warnings of a scenario that no finding repeats.

    Args:
        scenario: a valid scenario.
        advice: the findings.
        select: the names of the rules to check; unless all rules are, only their warnings are included.
    """
    paths = {item.finding.path for item in advice}
    rules = {item.finding.rule for item in advice}

    def counts(message: str) -> bool:
        same = next((rule for rule, words in WARNED_BY.items() if words in message), None)
        return same not in rules and (same in select if same is not None else all(rule in select for rule in RULES))

    return [warning for warning in scenario.warnings if warning["field"] not in paths and counts(warning["message"])]


def as_data(advice: Sequence[Advice], toolstack: Toolstack | None = None) -> list[dict[str, object]]:
    """The findings as plain data.

    Args:
        advice: the findings.
        toolstack: the toolstack of the commands; `None`: the one of the scenario's host.
    """
    return [
        {
            "rule": item.finding.rule,
            "field": item.finding.path,
            "reason": item.finding.reason,
            "changes": dict(item.finding.changes),
            "effect": None if item.effect is None else [comparison.row() for comparison in item.effect],
            "starved": rows(item.starves),
            "not_recommended": item.against or None,
            "commands": [step.text for step in steps if step.how == "run"],
            "steps": [asdict(step) for step in steps],
        }
        for item in advice
        for steps in [item.steps(toolstack) if not item.against else []]
    ]
