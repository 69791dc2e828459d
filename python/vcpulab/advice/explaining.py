"""Why is it slow? Where the time of those who are late goes, what holds them back, and the mends, each simulated."""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from vcpulab.advice.attempts import NOTHING, Attempts, attempts
from vcpulab.advice.capacity.occupancy import stations, with_servers
from vcpulab.advice.capacity.service_alone import Alone, alone
from vcpulab.advice.guest_tasks import vcpus_of
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint import drivers, rules
from vcpulab.advice.lint.catalogue import findings, first_by_path, settings
from vcpulab.advice.lint.held_back import causes_of
from vcpulab.advice.lint.host import Finding, Host, measured, of_pool
from vcpulab.advice.lint.lint import Advice, as_data, tried
from vcpulab.advice.verdicts import Costly, NotFound, Proven, Verdict, in_words
from vcpulab.errors import Interrupted
from vcpulab.hypervisors import Toolstack
from vcpulab.results.addresses import Address, Slo, apps, find, find_all, slos
from vcpulab.results.addresses import in_short as in_short_slos
from vcpulab.results.request_path import Path, is_followed, paths, typical
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.alike import groups
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario, split
from vcpulab.scenario.settings import in_short as in_short_settings
from vcpulab.scenario.threads import HOST, host_threads
from vcpulab.show.answer import Answer
from vcpulab.show.request_path import LINES_MAX
from vcpulab.show.table import Table
from vcpulab.texts import Texts, several

SHOWN = 1.0
"""Parts of less than this, % of the time, are left out."""
FOLLOWED = 2
"""Of those who are late requests are followed for the first ones: others are most often late for the same reason."""


@dataclass(frozen=True)
class Part:
    """A part of the time of something on the way of a request."""

    depth: int
    """0: something that requests pass, such as a vCPU; 1: what it does with its time; 2: behind whom it waits."""
    name: str
    percent: Interval
    """Of the time measured."""

    def row(self) -> dict[str, object]:
        """As flat data."""
        return {
            "depth": self.depth,
            "name": self.name,
            "percent": self.percent.mean,
            "half_width": self.percent.half_width,
        }


@dataclass(frozen=True)
class Explained:
    """One number that hurts, or that was asked for."""

    address: str
    unit: str
    value: Interval | None
    """`None`: it is not defined, as nothing was answered."""
    slo: Slo | None
    parts: tuple[Part, ...]
    paths: tuple[Path, ...] = ()
    """Of a percentile of the response times of a client: the request at it, and the median one."""
    not_followed: str | None = None
    """Why there are no paths."""
    assumed: bool = False
    """Is it of a job that an import assumed?"""

    @property
    def met(self) -> bool | None:
        """Is the SLO met? `None`: there is none."""
        return None if self.slo is None else self.slo.holds(None if self.value is None else self.value.mean)

    def table(self) -> Table:
        """Where the time goes."""
        rows = [["  " * part.depth + part.name, str(part.percent)] for part in self.parts]
        return Table(f"Where the time goes: {self.address}", ["part", "% of the time"], rows)

    def __str__(self) -> str:
        value = "no value: nothing was answered" if self.value is None else f"{self.value} {self.unit}"
        kept = "" if self.slo is None else f" (SLO {self.slo}: {'met' if self.met else 'not met'})"
        return f"{self.address}{' (assumed jobs)' * self.assumed}: {value}{kept}"


@dataclass(frozen=True)
class Explanation(Answer):
    """Why those who are late are so."""

    scenario: Scenario
    explained: tuple[Explained, ...]
    advice: tuple[Advice, ...]
    attempts: Attempts = NOTHING
    """The settings that were tried where no fix of a rule keeps the SLOs."""
    alone: Alone | None = None
    """The SLO that is missed most, of a service alone on the host; `None`: a fix keeps all, or none was asked for."""
    interrupted: bool = False
    """Was it cancelled before the mends were tried?"""

    @property
    def missed(self) -> list[Slo]:
        """The SLOs that are not kept, the worst first."""
        missed = [(one.slo, _mean(one.value)) for one in self.explained if one.slo is not None and not one.met]
        return [slo for slo, value in sorted(missed, key=lambda both: -both[0].excess(both[1]))]

    @property
    def nearest(self) -> Advice | None:
        """Of the fixes that help that which leaves the fewest SLOs missed, by the least; `None`: none helps."""
        helping = [one for one in self.advice if one.helps]
        return min(helping, key=lambda one: (len(one.misses), sum(one.left)), default=None)

    @property
    def verdict(self) -> Verdict | None:
        """Why SLOs are not kept: proven, only at others' cost, or not found; `None`: a fix keeps all."""
        if not self.missed or self.interrupted or (self.nearest is not None and not self.nearest.misses):
            return None
        proof = None if self.alone is None else self.alone.proof(self.missed[0])
        tried, costly = _tried(self.advice, self.attempts), self.costly
        if proof is None and costly is not None:
            return Costly(len(tried), _settings(costly), costly.harm.removeprefix("the mend "))
        return proof or NotFound(len(tried), in_words(tried))

    @property
    def costly(self) -> Advice | None:
        """The first fix that keeps all SLOs and harms others; one that starves somebody comes last."""
        keeping = [fix for fix in self.advice if fix.keeps and fix.harm]
        return min(keeping, key=lambda fix: bool(fix.starves), default=None)

    def outlook(self) -> list[str]:
        """Why no fix keeps the SLOs that are missed, what comes nearest, and what the service would have alone."""
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
        """Each number in a line; three or more of the same metric and SLO in one, least to most."""
        rows: dict[tuple[object, ...], list[Explained]] = {}
        for one in self.explained:
            bound = "" if one.slo is None else str(one.slo).removeprefix(one.address)
            key = (one.address.rpartition(".")[2], bound, one.met, one.value is None, one.assumed)
            rows.setdefault(key, []).append(one)
        return [line for row in rows.values() for line in ([_range(row)] if len(row) > 2 else map(str, row))]

    def as_data(self, toolstack: Toolstack | None = None) -> dict[str, object]:
        """For machines: the numbers with the parts of their time, and the findings as `lint` has them.

        Args:
            toolstack: whose commands; `None`: those of the scenario's host.
        """
        rows = [
            {
                "metric": one.address,
                "unit": one.unit,
                "mean": None if one.value is None else one.value.mean,
                "half_width": None if one.value is None else one.value.half_width,
                "undefined": "nothing was answered" if one.value is None else None,
                "slo": None if one.slo is None else str(one.slo),
                "met": one.met,
                "assumed": one.assumed,
                "parts": [part.row() for part in one.parts],
                "not_followed": one.not_followed,
                "paths": [path.as_data() for path in one.paths],
            }
            for one in self.explained
        ]
        return {
            "explained": rows,
            "findings": as_data(self.advice, toolstack),
            "outlook": self.outlook(),
            "interrupted": self.interrupted,
        }

    def to_frame(self) -> pl.DataFrame:
        """A row for each part of the time of each number: `metric`, and the columns of `Part.row`."""
        rows = [{"metric": one.address, **part.row()} for one in self.explained for part in one.parts]
        return pl.DataFrame(rows, infer_schema_length=None)

    def legs(self) -> pl.DataFrame:
        """The paths of the single requests followed, a row for each leg.

        Columns: `metric`, `quantile` and `replication`, which say which request, and those of `Path.legs`. Empty: none
        was followed.
        """
        frames = [
            path.legs.select(
                pl.lit(one.address).alias("metric"),
                pl.lit(path.quantile).alias("quantile"),
                pl.lit(path.replication).alias("replication"),
                pl.all(),
            )
            for one in self.explained
            for path in one.paths
        ]
        return pl.concat(frames) if frames else pl.DataFrame()

    def __str__(self) -> str:
        lines = self.outlook()
        lines += [line for one in self.explained for line in (str(one), *map(_line, one.parts), *_followed(one))]
        lines += [f"{one.finding.path}: {one.finding.reason}" for one in self.advice]
        return "\n".join(lines) or "nobody is late"


def _tried(advice: Sequence[Advice], attempts: Attempts) -> list[dict[str, Any]]:
    """The settings that were tried, each once."""
    of_rules = (changes for one in advice for changes in (one.finding.changes, *one.finding.otherwise) if changes)
    tried: list[dict[str, Any]] = []
    for changes in (*of_rules, *attempts.settings):
        if dict(changes) not in tried:
            tried.append(dict(changes))
    return tried


def _mean(value: Interval | None) -> float | None:
    return None if value is None else value.mean


def _settings(one: Advice) -> str:
    return "; ".join(in_short_settings(one.finding.changes))


def _range(row: Sequence[Explained]) -> str:
    """Several numbers of the same metric and SLO."""
    things, metric = in_short([one.address.rpartition(".")[0] for one in row]), row[0].address.rpartition(".")[2]
    values = [one.value.mean for one in row if one.value is not None]
    said = f"{number(min(values))} to {number(max(values))} {row[0].unit}" if values else "no value"
    slo = row[0].slo
    kept = "" if slo is None else f" (SLO{str(slo).removeprefix(row[0].address)}: {'met' if row[0].met else 'not met'})"
    return f"{things}.{metric}{' (assumed jobs)' * row[0].assumed}: {said}{kept}"


def _followed(one: Explained) -> Iterator[str]:
    """The slow request in time, where one was followed."""
    for path in one.paths[:1]:
        yield f"  The {path.title}:"
        for line in path.lines(LINES_MAX):
            yield f"    {line.begin_ms:.3f} to {line.end_ms:.3f} ms  {line.text}"


def _line(part: Part) -> str:
    return f"{'  ' * (part.depth + 1)}{part.name}  {part.percent} %"


def explain(
    scenario: Scenario,
    asked: Texts | None = None,
    *,
    replications: int = 10,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> Explanation:
    """Why is it slow?

    Args:
        scenario: the host.
        asked: metrics such as `web.response_p99`, and SLOs, `web.response_p99 < 50ms`, each perhaps of all whose name
            matches, `web*.response_p99`; one or several; `None`: all who are late.
        replications: of each simulation, as it is and mended.
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done; returning `False` cancels.

    Raises:
        RequestError: there is no such metric.
        Interrupted: it was cancelled when the host was run at least once; then mends were not tried.

    Examples:
        >>> print(explain(Scenario.starter().change({"run.duration": "1s"}), "web.response_p99", replications=2))
        http.response_p99: ...
          vCPU 0 of web...
    """
    base = scenario.with_run(replications=max(replications, scenario.replications))
    texts = [] if asked is None else several(asked, "slo")
    limits = slos(base, [text for text in texts if set(text) & set("<>")])
    metrics = find_all(base, [text for text in texts if not set(text) & set("<>")], "slo")
    # What has two bounds is explained once.
    named = list(dict.fromkeys([*(one.address for one in limits), *metrics]))
    host, stopped = measured(base, jobs)
    if asked is None:
        found = findings(host)
        explained = [_explained(host, one, f"{one.name}.response_p99", None) for one in _first_of_each(host.late)]
    else:
        explained, found = _of_those(host, named, limits)
    try:
        if stopped is not None:
            raise stopped
        explained = [*(_with_paths(host, one) for one in explained[:FOLLOWED]), *explained[FOLLOWED:]]
        mends = tried(host, found, limits, jobs=jobs, progress=progress)
        return _further(host, Explanation(base, tuple(explained), tuple(mends)), limits, jobs, progress)
    except KeyboardInterrupt:
        extent = "" if stopped is None else stopped.extent
        raise Interrupted(Explanation(base, tuple(explained), (), interrupted=True), extent) from None


def _further(
    host: Host,
    answer: Explanation,
    limits: Sequence[Slo],
    jobs: int,
    progress: Callable[[float], bool | None] | None,
) -> Explanation:
    """The answer, where no fix of a rule keeps the SLOs with the proof that none does, or with other settings tried."""
    if answer.verdict is None:
        return answer
    answer = replace(answer, alone=alone(host.scenario, answer.missed[0].address, jobs=jobs))
    if isinstance(answer.verdict, Proven):
        return answer
    done = _tried(answer.advice, answer.attempts)
    more = attempts(host, answer.missed, limits, done, jobs=jobs, progress=progress)
    fixes = [fix for fix in more.advice if fix.keeps or answer.nearest is None]
    return replace(answer, attempts=more, advice=(*fixes, *answer.advice))


def _of_those(host: Host, named: Sequence[Address], limits: Sequence[Slo]) -> tuple[list[Explained], list[Finding]]:
    """The numbers that were asked for, the worst first, and what the rules find of those that hurt."""
    of_slo = {one.address.name: one for one in limits}
    found, hurts = [], []
    for address in sorted(named, key=lambda one: -_excess(host, one, of_slo.get(one.name))):
        value = host.run.get(address.name)
        one = Late(address.thing, address.domain, f"{address} is {value or 'undefined'} {address.unit}")
        found.append(_explained(host, one, address.name, of_slo.get(address.name)))
        hurts += [] if found[-1].met else [one]
    return found, _concerning(host, hurts)


def _excess(host: Host, address: Address, slo: Slo | None) -> float:
    """How far a number is beyond its SLO, or how bad it is."""
    value = _mean(host.run.get(address.name))
    if slo is not None:
        return slo.excess(value)
    return math.inf if value is None else -value if address.better == "higher" else value


def _with_paths(host: Host, one: Explained) -> Explained:
    """The same with single requests followed, where there are any."""
    address = find(host.scenario, one.address)
    if not is_followed(host.scenario, address):
        return replace(one, not_followed="no single request to follow: not a percentile of a client's response times")
    if one.value is None:
        return replace(one, not_followed="no single request to follow: nothing was answered")
    return replace(one, paths=tuple(paths(host.scenario, address, typical(host.run, address))))


def _first_of_each(ones: Sequence[Late]) -> Iterator[Late]:
    """One of all who are served by the same domain."""
    first: dict[str, Late] = {}
    for one in ones:
        first.setdefault(one.domain, one)
    yield from first.values()


def _concerning(host: Host, ones: Sequence[Late]) -> list[Finding]:
    """What is wrong with the domains asked about, what holds them back, and what else the rules find on their way."""
    asked = {one.domain for one in ones}
    way = set(with_servers(host.domains, asked))
    # What is wrong with a pool is wrong with those in it.
    pools = {host.domains[domain].get("pool") for domain in way}
    places = [["domain", one] for one in asked] + [split(of_pool(pool, "scheduler"))[:-1] for pool in pools]
    themselves = (
        one for one in settings(host, rules.rule) if any(split(one.path)[: len(place)] == place for place in places)
    )
    serving = (one for one in settings(host, drivers.rule) if _of(one.path) in way)
    others = (one for one in settings(host) if any(_of(path) in way for path in (one.path, *one.changes)))
    return first_by_path(themselves, serving, causes_of(host, ones), others)


def _of(path: str) -> str | None:
    """The domain of a path; `None`: it is of something else."""
    kind, *name = split(path)[:2]
    return name[0] if kind == "domain" and name else None


def _explained(host: Host, one: Late, name: str, limit: Slo | None) -> Explained:
    address = find(host.scenario, name)
    parts: list[Part] = []
    for domain in with_servers(host.domains, [one.domain]):
        parts += _of_domain(host, domain, vcpus_of(host.scenario, address) if domain == one.domain else ())
    threads = enumerate(host_threads(host.document))
    parts += [part for number, thread in threads if thread.domain == one.domain for part in _of_thread(host, number)]
    for station in stations(host.run, [one.domain]):
        if not station.domain and station.kind in ("disk", "link", "client machine", "connections", "backlog"):
            parts.append(Part(0, f"{station.name}, in use", Interval(100 * station.used, None, 1)))
    kept = tuple(part for part in parts if part.percent.mean >= SHOWN)
    (app,) = (app for app in apps(host.scenario) if app.name == address.thing) if address.kind == "app" else (None,)
    assumed = app is not None and app.assumed
    return Explained(address.name, address.unit, host.run.get(address.name), limit, kept, assumed=assumed)


_STATES = (("computes", "running_ns"), ("waits for a pCPU", "runnable_ns"), ("is withheld by its cap", "offline_ns"))
"""What a vCPU does that is not blocked. Linux leaves whom it throttles runnable."""


def _of_domain(host: Host, domain: str, vcpus: Collection[int]) -> Iterator[Part]:
    """What the vCPU of a domain does that is blocked least, of some or of all, and behind whom it waits."""
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
    """What a thread of a KVM host does that serves a domain."""
    rows = host.run.df_vcpus().filter(domain=HOST, vcpu=number)
    its = _of_elapsed(rows)
    total = Interval.from_values(its.select(pl.sum_horizontal(c for _, c in _STATES)).to_series())
    if total is not None:
        yield Part(0, f"{host_threads(host.document)[number]}, not blocked", total)
        for said, column in _STATES:
            share = Interval.from_values(its[column])
            if share is not None:
                yield Part(1, said, share)


def _of_elapsed(rows: pl.DataFrame) -> pl.DataFrame:
    """The states of vCPUs, % of the time."""
    return rows.select("replication", "vcpu", *((100 * pl.col(c) / pl.col("elapsed_ns")).alias(c) for _, c in _STATES))


_LOSSES = (
    ("lost to busy threads of its core", "slowed_threads_ns"),
    ("lost to memory that is far or crowded", "slowed_memory_ns"),
    ("lost to a low clock rate", "slowed_frequency_ns"),
)


def _of_running(rows: pl.DataFrame) -> Iterator[Part]:
    """What of the time that a vCPU runs is work, and what is lost; nothing where all is work."""
    shares = {
        said: Interval.from_values((100 * rows[column] / rows["elapsed_ns"]).to_list())
        for said, column in (("is work done", "work_ns"), *_LOSSES)
    }
    if any(share is not None and share.mean >= SHOWN for said, share in shares.items() if said.startswith("lost")):
        yield from (Part(2, said, share) for said, share in shares.items() if share is not None)


def _behind(host: Host, domain: str) -> list[tuple[str, float]]:
    """Behind whom a domain waits, three or more alike ones together; each with its % of the wait, the most first."""
    called = {one: in_short(row) for row in groups(host.scenario) if len(row) > 2 for one in row}
    shares: dict[str, float] = {}
    for by, of_wait in host.run.df_wait_shares().filter(domain=domain).select("by", "of_wait").iter_rows():
        shares[called.get(by, by)] = shares.get(called.get(by, by), 0.0) + (of_wait or 0.0)
    return sorted(shares.items(), key=lambda one: (-one[1], one[0]))
