"""Who starves: domains that want to run and get almost nothing, in one run, or in one and not in another.

Time runnable and running is taken together over all replications. What a domain is held to by its own cap, budget or
weight is no starvation in one run; against another run it is, where the loss is large enough.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from vcpulab.results.addresses import apps
from vcpulab.results.run import Run
from vcpulab.results.statistics import number
from vcpulab.scenario.names import in_rows, in_short
from vcpulab.scenario.threads import HOST, HostThread, cpuset, host_threads, quota
from vcpulab.scenario.units import pcpu_set

WAITING = 0.9
"""Who waits for at least this part of its time on the host may starve."""
OF_SHARE = 0.1
"""... and does, if it runs for less than this part of what it would if all who run there were served alike."""
HALF = 0.5
"""Who comes to wait for `WAITING` of the time starves, if it keeps at most this part of its CPU time."""
KEPT = 0.1
"""Who keeps no more than this part of its CPU time, or an application of its throughput, starves ..."""
HAD = 0.005
"""... if it had more than this of a pCPU before, ..."""
WAITS_NOW = 0.3
"""... and waits for more than this part of the time now: who has less to do does not."""
COMPLETED = 10
"""Fewer units of work than these, over all replications, are too few to tell that they were lost."""
PRESENT = 0.1
"""Who is on the host for less than this part of the time is not judged."""


def starved(run: Run) -> dict[str, str]:
    """The domains that starve, each with the reason, such as `never ran`.

    A domain starves if one of its vCPUs does: it is runnable for at least `WAITING` of its time on the host, and never
    runs, or for less than `OF_SHARE` of an equal share: what it would have if all vCPUs on its pCPUs were given the
    same part of what they want, or what weights, caps and budgets entitle it to where that is less.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"domain.web.weight": 512, "run.duration": "100ms"})
        >>> starved(vcpulab.run(scenario))
        {}
    """
    reach = _reach(run)
    # The threads of a KVM host stand in no scenario, and share what their VMs have.
    vcpus = [one for one in _vcpus(run) if one.domain in reach]
    active = _active(vcpus)
    entitled = _entitled(run, active)
    # Most vCPUs may run on the same pCPUs as many others.
    wants: dict[frozenset[int], list[float]] = {}
    for one in vcpus:
        wants.setdefault(reach[one.domain][one.number], []).append(one.wants)
    wanted_of = {
        pcpus: math.fsum(math.fsum(those) * _overlap(theirs, pcpus) for theirs, those in wants.items())
        for pcpus in wants
    }
    found: dict[str, list[_Vcpu]] = {}
    for one in vcpus:
        if one.waits < WAITING or one.present < PRESENT:
            continue
        pcpus = reach[one.domain][one.number]
        wanted = wanted_of[pcpus]
        share = min(one.wants * min(1.0, len(pcpus) / wanted), entitled[one.domain])
        if not one.running_ns or one.runs < OF_SHARE * share:
            found.setdefault(one.domain, []).append(one)
    threads = host_threads(run.scenario.to_dict())
    starving = found.pop(HOST, []) if threads else []
    served = {threads[one.number].domain: _of_a_thread(threads[one.number], one) for one in starving}
    return {**served, **{domain: _reason(those, active[domain]) for domain, those in found.items()}}


def newly_starved(before: Run, after: Run) -> dict[str, str]:
    """The domains that starve in the second run and did not in the first, each with the reason.

    They are starved now, as `starved` says; or they come to wait for `WAITING` of the time and lose half of their CPU
    time; or they lose nine tenths of it, and wait; or an application of theirs, with the same work to do, loses nine
    tenths of its throughput.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "100ms", "run.replications": 2})
        >>> sorted(newly_starved(*vcpulab.run_many([scenario, scenario.change({"domain.batch.cap": 2})])))
        ['batch']
    """
    already = starved(before)
    found = {domain: why for domain, why in starved(after).items() if domain not in already}
    old, new = _domains(before), _domains(after)
    if host_threads(before.scenario.to_dict()):
        # What becomes of them is seen at those whom they serve.
        old.pop(HOST, None)
    for domain, was in old.items():
        now = new.get(domain)
        if now is None or domain in found or domain in already or now.present < PRESENT:
            continue
        comes_to_wait = was.waits < WAITING <= now.waits and now.runs <= HALF * was.runs
        loses = was.runs > HAD and now.runs <= KEPT * was.runs and now.waits > WAITS_NOW
        if was.runs and (comes_to_wait or loses):
            runs = f"ran for {number(100 * was.runs)} % of a pCPU before, now {number(100 * now.runs)} %"
            found[domain] = f"{runs}, and waits for {number(100 * now.waits)} % of the time"
    for domain, why in _lost(before, after):
        if domain not in already:
            found.setdefault(domain, why)
    return found


def in_a_line(found: Mapping[str, str], label: str = "starved") -> str:
    """Who starves, and why, as it is shown before all else; of numbered ones the first one's reason stands for all.

    Examples:
        >>> in_a_line({"orders": "never ran"})
        'starved: orders (never ran)'
        >>> in_a_line({f"batch{number}": f"gets {number} % of its share" for number in (1, 2, 3)})
        'starved: batch1 to batch3 (gets 1 % of its share, others alike)'
    """
    numbered = in_rows(found)
    alike = [len({found[domain] for domain in row}) == 1 for row in numbered]
    whys = [found[row[0]] + ("" if same else ", others alike") for row, same in zip(numbered, alike, strict=True)]
    return f"{label}: {', '.join(f'{in_short(row)} ({why})' for row, why in zip(numbered, whys, strict=True))}"


def rows(found: Mapping[str, str]) -> list[dict[str, str]]:
    """The same as data."""
    return [{"domain": domain, "reason": why} for domain, why in found.items()]


@dataclass(frozen=True)
class Starving:
    """Who starves in two runs: domain to reason."""

    newly: Mapping[str, str]
    """Those who do in the second and did not in the first."""
    still: Mapping[str, str]
    """Those who do in both."""
    no_longer: Mapping[str, str]
    """Those who did in the first only."""

    @classmethod
    def between(cls, before: Run, after: Run) -> Self:
        """Who starves in these two."""
        old, new = starved(before), starved(after)
        still = {domain: why for domain, why in new.items() if domain in old}
        no_longer = {domain: why for domain, why in old.items() if domain not in new}
        return cls(newly_starved(before, after), still, no_longer)

    def lines(self) -> list[str]:
        """In words, what is worst first."""
        sides = (
            ("newly starved", self.newly),
            ("starved as before", self.still),
            ("no longer starved", self.no_longer),
        )
        return [in_a_line(found, label) for label, found in sides if found]

    def rows(self) -> list[dict[str, object]]:
        """As data: `since` is `after` or `before`; of who no longer starves there is none."""
        sides = (("after", self.newly), ("before", self.still))
        return [{**row, "since": since} for since, found in sides for row in rows(found)]


@dataclass(frozen=True)
class _Vcpu:
    """A vCPU, or the mean of a domain's, over all replications."""

    domain: str
    number: int
    elapsed_ns: int
    running_ns: int
    runnable_ns: int
    offline_ns: int
    vcpus: int = 1

    @property
    def runs(self) -> float:
        """How many pCPUs it had."""
        return self.running_ns / self.elapsed_ns

    @property
    def wants(self) -> float:
        """How many pCPUs it would have had, had it never waited."""
        return (self.running_ns + self.runnable_ns) / self.elapsed_ns

    @property
    def present(self) -> float:
        """The part of the time that it was on the host."""
        return 1 - self.offline_ns / (self.elapsed_ns * self.vcpus)

    @property
    def waits(self) -> float:
        """The part of its time on the host that it was runnable, over all its vCPUs."""
        there = self.elapsed_ns * self.vcpus - self.offline_ns
        return self.runnable_ns / there if there > 0 else 0.0


_TIMES = ("elapsed_ns", "running_ns", "runnable_ns", "offline_ns")


def _vcpus(run: Run) -> list[_Vcpu]:
    sums = run.df_vcpus().group_by("domain", "vcpu", maintain_order=True).agg(pl.col(_TIMES).sum())
    return [_Vcpu(*row) for row in sums.iter_rows()]


def _active(vcpus: list[_Vcpu]) -> Counter[str]:
    """How many vCPUs of each domain want to run."""
    return Counter(one.domain for one in vcpus if one.wants)


def _domains(run: Run) -> dict[str, _Vcpu]:
    """Each domain, with the vCPUs that want to run: the others have nothing to wait for."""
    those: dict[str, list[_Vcpu]] = {}
    for one in _vcpus(run):
        those.setdefault(one.domain, []).append(one)
    found = {}
    for domain, all_of_them in those.items():
        active = [one for one in all_of_them if one.wants] or all_of_them
        running, runnable, offline = (sum(getattr(one, name) for one in active) for name in _TIMES[1:])
        found[domain] = _Vcpu(domain, 0, active[0].elapsed_ns, running, runnable, offline, len(active))
    return found


def _reach(run: Run) -> dict[str, list[frozenset[int]]]:
    """The pCPUs that each vCPU of each domain may run on, by the scenario and the pool that it is in at the end."""
    document = run.scenario.to_dict()
    count = document["host"]["pcpus"]
    pools = {name: pcpu_set(table["pcpus"], count) for name, table in document.get("pool", {}).items()}
    rest = frozenset(range(count)).difference(*pools.values())
    last = {row["domain"]: row["pool"] for row in run.df_domains().iter_rows(named=True)}
    found = {}
    for name, table in document["domain"].items():
        pool = pools.get(last.get(name), rest) & cpuset(document, name)
        given = table["affinity"]
        sets = [given] * table["vcpus"] if isinstance(given, str) else given
        found[name] = [(pool & pcpu_set(one, count)) or pool or frozenset(range(count)) for one in sets]
    threads = host_threads(document)
    allowed = [(left := cpuset(document, one.domain)) & pcpu_set(one.affinity, count) or left for one in threads]
    return {**found, HOST: allowed} if threads else found


def _overlap(theirs: frozenset[int], ours: frozenset[int]) -> float:
    """The part of what they want that they want of our pCPUs."""
    return len(theirs & ours) / len(theirs)


def _entitled(run: Run, active: Counter[str]) -> dict[str, float]:
    """How many pCPUs each vCPU of a domain may expect by weights, caps and budgets; infinite: none says."""
    document = run.scenario.to_dict()
    weights = {row["domain"]: row["entitlement"] for row in run.df_domains().iter_rows(named=True)}
    found = {HOST: math.inf}
    for name, table in document["domain"].items():
        those = active[name] or 1
        # Where it is 0, nothing is promised, and extra time is shared alike.
        found[name] = min((weights.get(name) or math.inf) / those, _held_to(table, those))
    return found


def _held_to(table: Mapping[str, Any], active: int) -> float:
    """The most that a vCPU of a domain may run, in pCPUs."""
    most = table["cap"] / 100 / active if table.get("cap") else math.inf
    limit = quota(table)
    if limit is not None:
        most = min(most, limit / active)
    for budget, period in (("budget_us", "period_us"), ("slice", "period")):
        if table.get(budget) and table.get(period):
            most = min(most, table[budget] / table[period])
    return most


def _of_a_thread(thread: HostThread, one: _Vcpu) -> str:
    """Why a domain starves that is served by a thread of the host which does."""
    runs = f"ran for {number(100 * one.runs)} % of a pCPU" if one.running_ns else "never ran"
    return f"its {thread.kind} thread {runs}, and waited for {number(100 * one.waits)} % of the time"


def _reason(those: list[_Vcpu], active: int) -> str:
    """Why a domain starves, of which these vCPUs do."""
    which = "" if len(those) == active else f"vCPU {', '.join(str(one.number) for one in those)} "
    if not any(one.running_ns for one in those):
        return f"{which}never ran"
    runs = math.fsum(one.runs for one in those)
    waits = math.fsum(one.waits for one in those) / len(those)
    return f"{which}ran for {number(100 * runs)} % of a pCPU, and waited for {number(100 * waits)} % of the time"


def _lost(before: Run, after: Run) -> Iterator[tuple[str, str]]:
    """Domains of which an application, or a client that asks it, does almost nothing of what it did."""
    old, new = before.scenario.to_dict(), after.scenario.to_dict()
    there = {app.name: app for app in apps(after.scenario)}
    rates = [dict(_completed(run)) for run in (before, after)]
    for app in apps(before.scenario):
        if there.get(app.name) != app or _work(old, app.domain) != _work(new, app.domain):
            continue
        (was, many), (now, _) = (rate.get(app.name, (0.0, 0)) for rate in rates)
        if many >= COMPLETED and now <= KEPT * was:
            yield app.domain, f"{app.name}.throughput {number(was)} → {number(now)} 1/s"


def _completed(run: Run) -> Iterator[tuple[str, tuple[float, int]]]:
    """Applications with the units of work that they complete, a second and in all."""
    many = run.df_apps().group_by("name").agg(pl.col("throughput_per_s").mean(), pl.col("completed").sum())
    return ((name, (rate or 0.0, count)) for name, rate, count in many.iter_rows())


def _work(document: Mapping[str, Any], domain: str) -> object:
    """What a domain has to do: a throughput that falls with the load is none lost."""
    clients = document.get("client", {})
    asking = {name: table for name, table in clients.items() if table["server"] == domain}
    return document["domain"][domain].get("app", []), asking
