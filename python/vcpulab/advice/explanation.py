"""The explanation of slow clients and applications: where their time goes, the causes, and fixes, each simulated."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from vcpulab._texts import Texts, several
from vcpulab._work.effort import Effort
from vcpulab._work.progress import Progress
from vcpulab.advice.attempts import NOTHING, Attempts, attempts
from vcpulab.advice.capacity.occupancy import stations, with_servers
from vcpulab.advice.capacity.service_alone import Alone, alone
from vcpulab.advice.concerning import concerning
from vcpulab.advice.explanation_document import FOLLOWED
from vcpulab.advice.explanation_document import document as document_of
from vcpulab.advice.guest_tasks import vcpus_of
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint.catalogue import findings
from vcpulab.advice.lint.host import Finding, Host, measured, with_effort
from vcpulab.advice.lint.lint import Advice, as_data, tried
from vcpulab.advice.verdicts import Costly, NotFound, Proven, Verdict, in_words
from vcpulab.errors import Interrupted
from vcpulab.hypervisors import Toolstack
from vcpulab.results.addresses import Address, Slo, apps, find, find_all, slos
from vcpulab.results.addresses import in_short as in_short_slos
from vcpulab.results.request_path import Path, is_followed, paths, typical
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.alike import groups
from vcpulab.scenario.names import grouped, in_short
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.settings import in_short as in_short_settings
from vcpulab.scenario.threads import HOST, host_threads
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document
from vcpulab.show.table import Table

SHOWN = 1.0
"""The least part that is listed, % of the time."""


@dataclass(frozen=True)
class Part:
    """A part of the time of a vCPU, thread or device on the path of requests."""

    depth: int
    """0: a vCPU, thread or device; 1: a state of it, such as waiting; 2: a cause of that state, such as a domain."""
    name: str
    percent: Interval
    """The part, % of the measured time."""

    def row(self) -> dict[str, object]:
        """The part as flat data."""
        return {
            "depth": self.depth,
            "name": self.name,
            "percent": self.percent.mean,
            "half_width": self.percent.half_width,
        }


@dataclass(frozen=True)
class Explained:
    """A metric of a late application, or of the question, with the parts of its time."""

    address: str
    unit: str
    value: Interval | None
    """The value; `None`: undefined, because nothing was answered."""
    slo: Slo | None
    parts: tuple[Part, ...]
    paths: tuple[Path, ...] = ()
    """For a percentile of a client's response times: the request at that percentile, and the median request."""
    not_followed: str | None = None
    """The reason why there are no paths."""
    assumed: bool = False
    """`True`: the metric is of a job that an import assumed."""

    @property
    def met(self) -> bool | None:
        """`True`: the SLO is met; `None`: no SLO."""
        return None if self.slo is None else self.slo.holds(None if self.value is None else self.value.mean)

    def table(self) -> Table:
        """The table of the parts of the time."""
        rows = [["  " * part.depth + part.name, str(part.percent)] for part in self.parts]
        return Table(f"Where the time goes: {self.address}", ["part", "% of the time"], rows)

    def __str__(self) -> str:
        value = "no value: nothing was answered" if self.value is None else f"{self.value} {self.unit}"
        kept = "" if self.slo is None else f" (SLO {self.slo}: {'met' if self.met else 'not met'})"
        return f"{self.address}{' (assumed jobs)' * self.assumed}: {value}{kept}"


@dataclass(frozen=True)
class Explanation(Answer):
    """The explanation of the late clients and applications of a host."""

    scenario: Scenario
    explained: tuple[Explained, ...]
    advice: tuple[Advice, ...]
    attempts: Attempts = NOTHING
    """The settings that were tried because no rule's fix keeps the SLOs."""
    alone: Alone | None = None
    """The service of the SLO that is missed most, alone on the host; `None`: a fix keeps all SLOs, or no SLO is set."""
    interrupted: bool = False
    """`True`: the work was cancelled before the fixes were tried."""

    @property
    def missed(self) -> list[Slo]:
        """The missed SLOs, the worst first."""
        missed = [
            (entry.slo, _mean(entry.value)) for entry in self.explained if entry.slo is not None and not entry.met
        ]
        return [slo for slo, value in sorted(missed, key=lambda pair: -pair[0].excess(pair[1]))]

    @property
    def nearest(self) -> Advice | None:
        """The helpful fix with the fewest missed SLOs, then with the least excess; `None`: no fix helps."""
        helping = [fix for fix in self.advice if fix.helps]
        return min(helping, key=lambda fix: (len(fix.misses), sum(fix.left)), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on missed SLOs: proven impossible, costly to others, or not found; `None`: a fix keeps all."""
        if not self.missed or self.interrupted or (self.nearest is not None and not self.nearest.misses):
            return None
        proof = None if self.alone is None else self.alone.proof(self.missed[0])
        tried, costly = _tried(self.advice, self.attempts), self.costly
        if proof is None and costly is not None:
            return Costly(len(tried), _settings(costly), costly.harm.removeprefix("the fix "))
        return proof or NotFound(len(tried), in_words(tried))

    @property
    def costly(self) -> Advice | None:
        """The first fix that keeps all SLOs and harms others; fixes that starve a domain come last."""
        keeping = [fix for fix in self.advice if fix.keeps and fix.harm]
        return min(keeping, key=lambda fix: bool(fix.starves), default=None)

    def outlook(self) -> list[str]:
        """Lines on missed SLOs that no fix keeps: the verdict, the nearest fix, and the service alone on the host."""
        verdict, best = self.verdict, self.nearest
        if verdict is None:
            return []
        lines = [verdict.sentence(in_short_slos(self.missed))]
        harmless = "without harm " if isinstance(verdict, Costly) else ""
        lines += [] if best is None else [f"{harmless}nearest: {_settings(best)}, which {'; '.join(best.kept())}"]
        if not isinstance(verdict, Proven):
            lines[0] += "; vcpulab tune searches further"
            lines += [] if self.alone is None else [self.alone.about(self.missed[0])]
        return lines

    def numbers(self) -> list[str]:
        """A line for each metric; three or more values of the same metric and SLO share a line, least to most."""

        def key(entry: Explained) -> tuple[object, ...]:
            bound = "" if entry.slo is None else str(entry.slo).removeprefix(entry.address)
            return (entry.address.rpartition(".")[2], bound, entry.met, entry.value is None, entry.assumed)

        rows = grouped(self.explained, key).values()
        return [line for row in rows for line in ([_range(row)] if len(row) > 2 else map(str, row))]

    def document(self, toolstack: Toolstack | None = None, *, full: bool = False, label: str | None = None) -> Document:
        """The explanation as a document.

        Args:
            toolstack: the toolstack of the commands; `None`: that of the scenario's host.
            full: whether to show all commands, and requests in detail.
            label: the name of the scenario's file; `None`: the name of the scenario.
        """
        return document_of(self, label or self.scenario.name, toolstack, full=full)

    def as_data(self, toolstack: Toolstack | None = None) -> dict[str, object]:
        """The explanation as data: the metrics with the parts of their time, and the findings in the form of `lint`.

        Args:
            toolstack: the toolstack of the commands; `None`: that of the scenario's host.
        """
        rows = [
            {
                "metric": entry.address,
                "unit": entry.unit,
                "mean": None if entry.value is None else entry.value.mean,
                "half_width": None if entry.value is None else entry.value.half_width,
                "undefined": "nothing was answered" if entry.value is None else None,
                "slo": None if entry.slo is None else str(entry.slo),
                "met": entry.met,
                "assumed": entry.assumed,
                "parts": [part.row() for part in entry.parts],
                "not_followed": entry.not_followed,
                "paths": [path.as_data() for path in entry.paths],
            }
            for entry in self.explained
        ]
        return {
            "explained": rows,
            "findings": as_data(self.advice, toolstack),
            "outlook": self.outlook(),
            "interrupted": self.interrupted,
        }

    def to_frame(self) -> pl.DataFrame:
        """A row for each part of the time of each metric: `metric`, and the columns of `Part.row`."""
        rows = [{"metric": entry.address, **part.row()} for entry in self.explained for part in entry.parts]
        return pl.DataFrame(rows, infer_schema_length=None)

    def legs(self) -> pl.DataFrame:
        """The paths of the followed requests, a row for each leg; empty if no request was followed.

        Columns: `metric`, `quantile` and `replication` of the request, and the columns of `Path.legs`.
        """
        frames = [
            path.legs.select(
                pl.lit(entry.address).alias("metric"),
                pl.lit(path.quantile).alias("quantile"),
                pl.lit(path.replication).alias("replication"),
                pl.all(),
            )
            for entry in self.explained
            for path in entry.paths
        ]
        return pl.concat(frames) if frames else pl.DataFrame()


def _tried(advice: Sequence[Advice], attempts: Attempts) -> list[dict[str, Any]]:
    """The settings that were tried, without duplicates."""
    of_rules = (changes for fix in advice for changes in (fix.finding.changes, *fix.finding.otherwise) if changes)
    tried: list[dict[str, Any]] = []
    for changes in (*of_rules, *attempts.settings):
        if dict(changes) not in tried:
            tried.append(dict(changes))
    return tried


def _mean(value: Interval | None) -> float | None:
    return None if value is None else value.mean


def _settings(fix: Advice) -> str:
    return "; ".join(in_short_settings(fix.finding.changes))


def _range(row: Sequence[Explained]) -> str:
    """A line on several values of the same metric and SLO."""
    things, metric = in_short([entry.address.rpartition(".")[0] for entry in row]), row[0].address.rpartition(".")[2]
    values = [entry.value.mean for entry in row if entry.value is not None]
    span = f"{number(min(values))} to {number(max(values))} {row[0].unit}" if values else "no value"
    slo = row[0].slo
    kept = "" if slo is None else f" (SLO{str(slo).removeprefix(row[0].address)}: {'met' if row[0].met else 'not met'})"
    return f"{things}.{metric}{' (assumed jobs)' * row[0].assumed}: {span}{kept}"


def explain(
    scenario: Scenario,
    targets: Texts | None = None,
    *,
    effort: Effort = Effort(),
    progress: Progress | None = None,
) -> Explanation:
    """The explanation of a slow host: where the time goes, the causes, and fixes, each simulated.

    Args:
        scenario: the host.
        targets: one or several metrics such as `web.response_p99`, or SLOs such as `web.response_p99 < 50ms`; a name
            may be a pattern, `web*.response_p99`; `None`: all clients and applications that are late.
        effort: the replications of each simulation, of the host and of fixes, their seed, and the number at a time.
        progress: see `Progress`.

    Raises:
        RequestError: a metric does not exist.
        Interrupted: the work was cancelled after the first run of the host; fixes were not tried.

    Examples:
        >>> short = Scenario.starter().change({"run.duration": "1s"})
        >>> print(explain(short, "web.response_p99", effort=Effort(replications=2)))
        http.response_p99: ...
          vCPU 0 of web...
    """
    base, jobs = with_effort(scenario, effort), effort.jobs
    texts = [] if targets is None else several(targets, "slo")
    limits = slos(base, [text for text in texts if set(text) & set("<>")])
    metrics = find_all(base, [text for text in texts if not set(text) & set("<>")], "slo")
    # A metric with two bounds is explained once.
    named = list(dict.fromkeys([*(slo.address for slo in limits), *metrics]))
    host, stopped = measured(base, jobs)
    if targets is None:
        problems = findings(host)
        explained = [
            _explained(host, late_app, f"{late_app.name}.response_p99", None) for late_app in _first_of_each(host.late)
        ]
    else:
        explained, problems = _of_metrics(host, named, limits)
    try:
        if stopped is not None:
            raise stopped
        explained = [*(_with_paths(host, entry) for entry in explained[:FOLLOWED]), *explained[FOLLOWED:]]
        fixes = tried(host, problems, limits, jobs=jobs, progress=progress)
        # Fixes that keep all SLOs come first.
        fixes.sort(key=lambda fix: not (fix.keeps and fix.helps))
        return _further(host, Explanation(base, tuple(explained), tuple(fixes)), limits, jobs, progress)
    except KeyboardInterrupt:
        extent = "" if stopped is None else stopped.extent
        raise Interrupted(Explanation(base, tuple(explained), (), interrupted=True), extent) from None


def _further(
    host: Host,
    answer: Explanation,
    limits: Sequence[Slo],
    jobs: int,
    progress: Progress | None,
) -> Explanation:
    """The answer, extended where no rule's fix keeps the SLOs: by a proof that no setting does, or by attempts."""
    if answer.verdict is None:
        return answer
    answer = replace(answer, alone=alone(host.scenario, answer.missed[0].address, jobs=jobs))
    if isinstance(answer.verdict, Proven):
        return answer
    done = _tried(answer.advice, answer.attempts)
    more = attempts(host, answer.missed, limits, done, jobs=jobs, progress=progress)
    fixes = [fix for fix in more.advice if fix.keeps or answer.nearest is None]
    return replace(answer, attempts=more, advice=(*fixes, *answer.advice))


def _of_metrics(host: Host, named: Sequence[Address], limits: Sequence[Slo]) -> tuple[list[Explained], list[Finding]]:
    """The explanations of some metrics, the worst first, and the rules' findings on the bad ones."""
    of_slo = {slo.address.name: slo for slo in limits}
    explained, hurts = [], []
    for address in sorted(named, key=lambda metric: -_excess(host, metric, of_slo.get(metric.name))):
        value = host.run.get(address.name)
        shown = "undefined" if value is None else f"{value} {address.unit}"
        late_app = Late(address.thing, address.domain, f"{address} is {shown}")
        explained.append(_explained(host, late_app, address.name, of_slo.get(address.name)))
        hurts += [] if explained[-1].met else [late_app]
    return explained, concerning(host, hurts)


def _excess(host: Host, address: Address, slo: Slo | None) -> float:
    """The excess of a metric over its SLO; without SLO, a number that grows with the harm."""
    value = _mean(host.run.get(address.name))
    if slo is not None:
        return slo.excess(value)
    return math.inf if value is None else -value if address.better == "higher" else value


def _with_paths(host: Host, entry: Explained) -> Explained:
    """The explanation with the paths of single requests, or with the reason why none was followed."""
    address = find(host.scenario, entry.address)
    if not is_followed(host.scenario, address):
        return replace(entry, not_followed="no single request to follow: not a percentile of a client's response times")
    if entry.value is None:
        return replace(entry, not_followed="no single request to follow: nothing was answered")
    return replace(entry, paths=tuple(paths(host.scenario, address, typical(host.run, address))))


def _first_of_each(late_apps: Sequence[Late]) -> Iterator[Late]:
    """The first late application of each domain."""
    first: dict[str, Late] = {}
    for late_app in late_apps:
        first.setdefault(late_app.domain, late_app)
    yield from first.values()


def _explained(host: Host, late_app: Late, name: str, limit: Slo | None) -> Explained:
    address = find(host.scenario, name)
    parts: list[Part] = []
    for domain in with_servers(host.scenario.domains, [late_app.domain]):
        parts += _of_domain(host, domain, vcpus_of(host.scenario, address) if domain == late_app.domain else ())
    threads = enumerate(host_threads(host.scenario.model))
    parts += [
        part for number, thread in threads if thread.domain == late_app.domain for part in _of_thread(host, number)
    ]
    for station in stations(host.run, [late_app.domain]):
        if not station.domain and station.kind in ("disk", "link", "client machine", "connections", "backlog"):
            parts.append(Part(0, f"{station.name}, in use", Interval(100 * station.used, None, 1)))
    kept = tuple(part for part in parts if part.percent.mean >= SHOWN)
    (app,) = (app for app in apps(host.scenario) if app.name == address.thing) if address.kind == "app" else (None,)
    assumed = app is not None and app.assumed
    return Explained(address.name, address.unit, host.run.get(address.name), limit, kept, assumed=assumed)


_STATES = (("computes", "running_ns"), ("waits for a pCPU", "runnable_ns"), ("is withheld by its cap", "offline_ns"))
"""The states of a vCPU that is not blocked. Linux leaves throttled vCPUs runnable."""


def _of_domain(host: Host, domain: str, vcpus: Collection[int]) -> Iterator[Part]:
    """The states of the least blocked vCPU of a domain, among the given ones or all, and the domains it waits for."""
    rows = host.run.df_vcpus().filter(domain=domain)
    if vcpus:
        rows = rows.filter(pl.col("vcpu").is_in(list(vcpus)))
    if rows.is_empty():
        return
    shares = _of_elapsed(rows)
    occupied = shares.group_by("vcpu").agg(pl.sum_horizontal(pl.col(c).mean() for _, c in _STATES).alias("used"))
    busiest = occupied.sort("used", "vcpu", descending=[True, False])["vcpu"][0]
    of_busiest = shares.filter(vcpu=busiest)
    total = Interval.from_values(of_busiest.select(pl.sum_horizontal(c for _, c in _STATES)).to_series())
    if total is None:
        return
    yield Part(0, f"vCPU {busiest} of {domain}, not blocked", total)
    for state, column in _STATES:
        share = Interval.from_values(of_busiest[column])
        if share is None:
            continue
        throttled = column == "runnable_ns" and host.throttled(domain) > 0
        yield Part(1, "waits for its quota or a pCPU" if throttled else state, share)
        if column == "running_ns":
            yield from _of_running(rows.filter(vcpu=busiest))
        if column == "runnable_ns" and share.mean >= SHOWN:
            for by, of_wait in _behind(host, domain)[:4]:
                part = of_wait / 100 * share.mean
                yield Part(2, "while pCPUs idle" if by == "idle" else f"behind {by}", Interval(part, None, 1))


def _of_thread(host: Host, number: int) -> Iterator[Part]:
    """The states of a thread of a KVM host."""
    rows = host.run.df_vcpus().filter(domain=HOST, vcpu=number)
    shares = _of_elapsed(rows)
    total = Interval.from_values(shares.select(pl.sum_horizontal(c for _, c in _STATES)).to_series())
    if total is not None:
        yield Part(0, f"{host_threads(host.scenario.model)[number]}, not blocked", total)
        for state, column in _STATES:
            share = Interval.from_values(shares[column])
            if share is not None:
                yield Part(1, state, share)


def _of_elapsed(rows: pl.DataFrame) -> pl.DataFrame:
    """The states of vCPUs, % of the time."""
    return rows.select("replication", "vcpu", *((100 * pl.col(c) / pl.col("elapsed_ns")).alias(c) for _, c in _STATES))


_LOSSES = (
    ("lost to busy threads of its core", "slowed_threads_ns"),
    ("lost to memory that is far or crowded", "slowed_memory_ns"),
    ("lost to a low clock rate", "slowed_frequency_ns"),
)


def _of_running(rows: pl.DataFrame) -> Iterator[Part]:
    """The work and the losses in the time that a vCPU runs; nothing if nothing is lost."""
    shares = {
        part: Interval.from_values((100 * rows[column] / rows["elapsed_ns"]).to_list())
        for part, column in (("is work done", "work_ns"), *_LOSSES)
    }
    if any(share is not None and share.mean >= SHOWN for part, share in shares.items() if part.startswith("lost")):
        yield from (Part(2, part, share) for part, share in shares.items() if share is not None)


def _behind(host: Host, domain: str) -> list[tuple[str, float]]:
    """The domains that run while a domain waits, each with its % of the wait, the most first; alike ones together."""
    called = {domain: in_short(row) for row in groups(host.scenario) if len(row) > 2 for domain in row}
    shares: dict[str, float] = {}
    for by, of_wait in host.run.df_wait_shares().filter(domain=domain).select("by", "of_wait").iter_rows():
        shares[called.get(by, by)] = shares.get(called.get(by, by), 0.0) + (of_wait or 0.0)
    return sorted(shares.items(), key=lambda item: (-item[1], item[0]))
