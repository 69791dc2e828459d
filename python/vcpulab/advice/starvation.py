"""Starving domains: domains that want to run and get almost no CPU time, in a run or since a change.

Running and runnable time is summed over all replications. A limit by a domain's own cap, budget or weight is no
starvation within a run; compared with another run it is, if the loss is large enough.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import polars as pl

from vcpulab.results.addresses import apps
from vcpulab.results.run import Run
from vcpulab.results.statistics import number
from vcpulab.scenario.model import Domain, Model
from vcpulab.scenario.names import in_rows, in_short
from vcpulab.scenario.threads import HOST, HostThread, cpuset, host_threads, quota
from vcpulab.scenario.units import pcpu_set

WAITING = 0.9
"""A vCPU that waits for at least this fraction of its time on the host may starve."""
OF_SHARE = 0.1
"""A waiting vCPU starves if it runs for less than this fraction of an equal share; see `starved`."""
HALF = 0.5
"""A domain that newly waits for `WAITING` of the time starves if it keeps at most this fraction of its CPU time."""
KEPT = 0.1
"""A domain starves if it, or the throughput of its application, keeps at most this fraction of its former value ..."""
HAD = 0.005
"""... if the domain had more than this fraction of a pCPU before, ..."""
WAITS_NOW = 0.3
"""... and waits for more than this fraction of the time now; a domain with less work does not wait."""
COMPLETED = 10
"""The fewest units of work, over all replications, whose loss counts as starvation."""
PRESENT = 0.1
"""The least fraction of the time on the host; domains with less are not judged."""


def starved(run: Run) -> dict[str, str]:
    """The domains that starve, each with the reason, such as `never ran`.

    A domain starves if one of its vCPUs does. The vCPU is runnable for at least `WAITING` of its time on the host, and
    runs never or for less than `OF_SHARE` of an equal share. Its equal share is the CPU time it would have if all vCPUs
    on its pCPUs got the same fraction of their demand; if weights, caps and budgets entitle it to less, it is that.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"domain.web.weight": 512, "run.duration": "100ms"})
        >>> starved(vcpulab.run(scenario))
        {}
    """
    reach = _reach(run)
    # The threads of a KVM host are not in scenarios, and share the entitlements of their VMs.
    vcpus = [vcpu for vcpu in _vcpus(run) if vcpu.domain in reach]
    active = _active(vcpus)
    entitled = _entitled(run, active)
    # Most vCPUs share their set of pCPUs with many other vCPUs.
    wants: dict[frozenset[int], list[float]] = {}
    for vcpu in vcpus:
        wants.setdefault(reach[vcpu.domain][vcpu.number], []).append(vcpu.wants)
    wanted_of = {
        pcpus: math.fsum(math.fsum(wanting) * _overlap(reachable, pcpus) for reachable, wanting in wants.items())
        for pcpus in wants
    }
    by_domain: dict[str, list[_Vcpu]] = {}
    for vcpu in vcpus:
        if vcpu.waits < WAITING or vcpu.present < PRESENT:
            continue
        pcpus = reach[vcpu.domain][vcpu.number]
        wanted = wanted_of[pcpus]
        share = min(vcpu.wants * min(1.0, len(pcpus) / wanted), entitled[vcpu.domain])
        if not vcpu.running_ns or vcpu.runs < OF_SHARE * share:
            by_domain.setdefault(vcpu.domain, []).append(vcpu)
    threads = host_threads(run.scenario.model)
    starving = by_domain.pop(HOST, []) if threads else []
    served = {threads[vcpu.number].domain: _of_a_thread(threads[vcpu.number], vcpu) for vcpu in starving}
    return {**served, **{domain: _reason(vcpus, active[domain]) for domain, vcpus in by_domain.items()}}


def newly_starved(before: Run, after: Run) -> dict[str, str]:
    """The domains that starve in the second run and did not in the first, each with the reason.

    Four kinds of domains starve newly: those that `starved` lists; those that newly wait for `WAITING` of the time and
    lose half of their CPU time; those that lose nine tenths of it, and wait; and those with an application that loses
    nine tenths of its throughput with the same work.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "100ms", "run.replications": 2})
        >>> sorted(newly_starved(*vcpulab.run_many([scenario, scenario.change({"domain.batch.cap": 2})])))
        ['batch']
    """
    already = starved(before)
    reasons = {domain: reason for domain, reason in starved(after).items() if domain not in already}
    old, new = _domains(before), _domains(after)
    if host_threads(before.scenario.model):
        # Starving threads are visible at the domains that they serve.
        old.pop(HOST, None)
    for domain, was in old.items():
        now = new.get(domain)
        if now is None or domain in reasons or domain in already or now.present < PRESENT:
            continue
        comes_to_wait = was.waits < WAITING <= now.waits and now.runs <= HALF * was.runs
        loses = was.runs > HAD and now.runs <= KEPT * was.runs and now.waits > WAITS_NOW
        if was.runs and (comes_to_wait or loses):
            runs = f"ran for {number(100 * was.runs)} % of a pCPU before, now {number(100 * now.runs)} %"
            reasons[domain] = f"{runs}, and waits for {number(100 * now.waits)} % of the time"
    for domain, reason in _lost(before, after):
        if domain not in already:
            reasons.setdefault(domain, reason)
    return reasons


def in_a_line(reasons: Mapping[str, str], label: str = "starved") -> str:
    """Starving domains with their reasons in a line; numbered domains are shown with the first one's reason.

    Examples:
        >>> in_a_line({"orders": "never ran"})
        'starved: orders (never ran)'
        >>> in_a_line({f"batch{number}": f"gets {number} % of its share" for number in (1, 2, 3)})
        'starved: batch1 to batch3 (gets 1 % of its share, others alike)'
    """
    numbered = in_rows(reasons)
    alike = [len({reasons[domain] for domain in row}) == 1 for row in numbered]
    texts = [reasons[row[0]] + ("" if same else ", others alike") for row, same in zip(numbered, alike, strict=True)]
    return f"{label}: {', '.join(f'{in_short(row)} ({text})' for row, text in zip(numbered, texts, strict=True))}"


def rows(reasons: Mapping[str, str]) -> list[dict[str, str]]:
    """Starving domains and their reasons as data."""
    return [{"domain": domain, "reason": reason} for domain, reason in reasons.items()]


@dataclass(frozen=True)
class Starving:
    """The starving domains of two runs: domain to reason."""

    newly: Mapping[str, str]
    """Domains that starve in the second run only."""
    still: Mapping[str, str]
    """Domains that starve in both runs."""
    no_longer: Mapping[str, str]
    """Domains that starve in the first run only."""

    @classmethod
    def between(cls, before: Run, after: Run) -> Self:
        """The starving domains of two runs."""
        old, new = starved(before), starved(after)
        still = {domain: reason for domain, reason in new.items() if domain in old}
        no_longer = {domain: reason for domain, reason in old.items() if domain not in new}
        return cls(newly_starved(before, after), still, no_longer)

    def lines(self) -> list[str]:
        """The starving domains in words, the worst first."""
        sides = (
            ("newly starved", self.newly),
            ("starved as before", self.still),
            ("no longer starved", self.no_longer),
        )
        return [in_a_line(reasons, label) for label, reasons in sides if reasons]

    def rows(self) -> list[dict[str, object]]:
        """The domains that starve in the second run as data; `since` is `after` or `before`."""
        sides = (("after", self.newly), ("before", self.still))
        return [{**row, "since": since} for since, reasons in sides for row in rows(reasons)]


@dataclass(frozen=True)
class _Vcpu:
    """The times of a vCPU, or of all vCPUs of a domain, over all replications."""

    domain: str
    number: int
    elapsed_ns: int
    running_ns: int
    runnable_ns: int
    offline_ns: int
    vcpus: int = 1

    @property
    def runs(self) -> float:
        """The CPU time, in pCPUs."""
        return self.running_ns / self.elapsed_ns

    @property
    def wants(self) -> float:
        """The CPU time without any waiting, in pCPUs."""
        return (self.running_ns + self.runnable_ns) / self.elapsed_ns

    @property
    def present(self) -> float:
        """The fraction of the time on the host."""
        return 1 - self.offline_ns / (self.elapsed_ns * self.vcpus)

    @property
    def waits(self) -> float:
        """The runnable fraction of the time on the host, over all vCPUs."""
        present = self.elapsed_ns * self.vcpus - self.offline_ns
        return self.runnable_ns / present if present > 0 else 0.0


_TIMES = ("elapsed_ns", "running_ns", "runnable_ns", "offline_ns")


def _vcpus(run: Run) -> list[_Vcpu]:
    sums = run.df_vcpus().group_by("domain", "vcpu", maintain_order=True).agg(pl.col(_TIMES).sum())
    return [_Vcpu(*row) for row in sums.iter_rows()]


def _active(vcpus: list[_Vcpu]) -> Counter[str]:
    """The number of vCPUs of each domain that want to run."""
    return Counter(vcpu.domain for vcpu in vcpus if vcpu.wants)


def _domains(run: Run) -> dict[str, _Vcpu]:
    """The sums of each domain over its vCPUs that want to run; the rest have nothing to wait for."""
    by_domain: dict[str, list[_Vcpu]] = {}
    for vcpu in _vcpus(run):
        by_domain.setdefault(vcpu.domain, []).append(vcpu)
    means = {}
    for domain, vcpus in by_domain.items():
        active = [vcpu for vcpu in vcpus if vcpu.wants] or vcpus
        running, runnable, offline = (sum(getattr(vcpu, name) for vcpu in active) for name in _TIMES[1:])
        means[domain] = _Vcpu(domain, 0, active[0].elapsed_ns, running, runnable, offline, len(active))
    return means


def _reach(run: Run) -> dict[str, list[frozenset[int]]]:
    """The pCPUs that each vCPU of each domain may run on, by the scenario and the domain's pool at the end."""
    scenario = run.scenario.model
    count = scenario.host.pcpus
    pools = {name: pcpu_set(pool.pcpus, count) for name, pool in scenario.pools.items()}
    rest = frozenset(range(count)).difference(*pools.values())
    last = {row["domain"]: row["pool"] for row in run.df_domains().iter_rows(named=True)}
    reach = {}
    for name, domain in scenario.domains.items():
        pool = pools.get(last.get(name, ""), rest) & cpuset(scenario, name)
        given = domain.affinity
        sets = [given] * domain.vcpus if isinstance(given, str) else given
        reach[name] = [(pool & pcpu_set(cpus, count)) or pool or frozenset(range(count)) for cpus in sets]
    threads = host_threads(scenario)
    of_threads = [
        (left := cpuset(scenario, thread.domain)) & pcpu_set(thread.affinity, count) or left for thread in threads
    ]
    return {**reach, HOST: of_threads} if threads else reach


def _overlap(wanted: frozenset[int], pcpus: frozenset[int]) -> float:
    """The fraction of the first set of pCPUs that is in the second."""
    return len(wanted & pcpus) / len(wanted)


def _entitled(run: Run, active: Counter[str]) -> dict[str, float]:
    """The pCPUs that each vCPU of a domain may expect by weights, caps and budgets; infinite: no limit."""
    weights = {row["domain"]: row["entitlement"] for row in run.df_domains().iter_rows(named=True)}
    entitled = {HOST: math.inf}
    for name, domain in run.scenario.domains.items():
        count = active[name] or 1
        # A weight of 0 promises nothing, and extra time is shared equally.
        entitled[name] = min((weights.get(name) or math.inf) / count, _held_to(domain, count))
    return entitled


def _held_to(domain: Domain, active: int) -> float:
    """The most that a vCPU of a domain may run, in pCPUs."""
    params = domain.params
    most = params["cap"] / 100 / active if params.get("cap") else math.inf
    limit = quota(domain)
    if limit is not None:
        most = min(most, limit / active)
    for budget, period in (("budget_us", "period_us"), ("slice", "period")):
        if params.get(budget) and params.get(period):
            most = min(most, params[budget] / params[period])
    return most


def _of_a_thread(thread: HostThread, vcpu: _Vcpu) -> str:
    """The reason why a domain starves whose host thread starves."""
    runs = f"ran for {number(100 * vcpu.runs)} % of a pCPU" if vcpu.running_ns else "never ran"
    return f"its {thread.kind} thread {runs}, and waited for {number(100 * vcpu.waits)} % of the time"


def _reason(starving: list[_Vcpu], active: int) -> str:
    """The reason why a domain with starving vCPUs starves."""
    subject = "" if len(starving) == active else f"vCPU {', '.join(str(vcpu.number) for vcpu in starving)} "
    if not any(vcpu.running_ns for vcpu in starving):
        return f"{subject}never ran"
    runs = math.fsum(vcpu.runs for vcpu in starving)
    waits = math.fsum(vcpu.waits for vcpu in starving) / len(starving)
    return f"{subject}ran for {number(100 * runs)} % of a pCPU, and waited for {number(100 * waits)} % of the time"


def _lost(before: Run, after: Run) -> Iterator[tuple[str, str]]:
    """Domains with an application or client that lost almost all of its throughput, and the reason."""
    old, new = before.scenario.model, after.scenario.model
    present = {app.name: app for app in apps(after.scenario)}
    rates = [dict(_completed(run)) for run in (before, after)]
    for app in apps(before.scenario):
        if present.get(app.name) != app or _work(old, app.domain) != _work(new, app.domain):
            continue
        (was, many), (now, _) = (rate.get(app.name, (0.0, 0)) for rate in rates)
        if many >= COMPLETED and now <= KEPT * was:
            yield app.domain, f"{app.name}.throughput {number(was)} → {number(now)} 1/s"


def _completed(run: Run) -> Iterator[tuple[str, tuple[float, int]]]:
    """Applications with their throughput per second and the units of work that they complete."""
    many = run.df_apps().group_by("name").agg(pl.col("throughput_per_s").mean(), pl.col("completed").sum())
    return ((name, (rate or 0.0, count)) for name, rate, count in many.iter_rows())


def _work(scenario: Model, domain: str) -> object:
    """The work of a domain, for comparison: throughput that falls with the work is not lost."""
    asking = {name: client for name, client in scenario.clients.items() if client.server == domain}
    return scenario.domains[domain].apps, asking
