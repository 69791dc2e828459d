"""Placement of domains on as few equal hosts as keep their SLOs: packed by needs, judged by simulation.

Each item first runs alone on a host, which gives its needs. The solver packs the items onto as few hosts as the sums
of needs allow. Each host is then simulated and judged; a set of items that breaks an SLO is refused: no later host may
have that set or a larger one. Hosts are added one at a time until all hold. Then each smaller number of hosts is tried
with further packings, until no packing is left or the tries are used up. The number of hosts is proven to be the least
under two assumptions: needs add up, and a set that breaks an SLO still breaks it with more items on its host.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from vcpulab._work.budget import Budget, StoppedError
from vcpulab.advice import starvation
from vcpulab.advice.capacity.judging import REPLICATIONS, Judged, Verdict, try_out, worst
from vcpulab.advice.capacity.occupancy import Station, stations
from vcpulab.advice.capacity.service_alone import alone
from vcpulab.advice.capacity.slos import asking, default_slos, served
from vcpulab.advice.capacity.words import AS_SET
from vcpulab.advice.placing.document import document as document_of
from vcpulab.advice.placing.energy import HOURS_PER_YEAR, Power
from vcpulab.advice.placing.fleet import Fleet, Item, group, item_of
from vcpulab.advice.placing.needs import measured, needs, used_by_all
from vcpulab.advice.placing.packing import Load, Problem, pack
from vcpulab.advice.runstates import gotten
from vcpulab.advice.verdicts import NotFound
from vcpulab.errors import Interrupted, RequestError, ScenarioError, VcpulabError
from vcpulab.results.addresses import Slo, find, slo, slos
from vcpulab.results.run import Run, run
from vcpulab.scenario.names import is_pattern, matching
from vcpulab.scenario.scenario import Scenario, split
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import pcpu_set
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document

_PATH = re.compile(r"\s*(?P<metric>[^<>=\s]+)")


ROUNDS = 20
"""The number of packings tried on one number of hosts before it stays open whether one of them holds."""
FEW = 6
"""The largest set that is reduced to its items that break an SLO; for a larger one, packing again is faster."""


class UnplaceableError(VcpulabError):
    """A domain that does not keep its SLOs even alone on a host; the text names the domain and the SLO."""


@dataclass(frozen=True)
class Host:
    """A host with the items placed on it."""

    items: list[Item]
    scenario: Scenario
    judged: list[Judged]
    used: float
    """The share of the pCPUs' time that is not idle."""
    stations: list[Station]
    starved: Mapping[str, str]
    """The starved domains, each with the reason."""

    @property
    def domains(self) -> list[str]:
        """The domains placed on the host."""
        return [domain for item in self.items for domain in item.domains]

    @property
    def nodes(self) -> dict[int, list[str]]:
        """Node to the domains that prefer it; empty: the host has one node, or its scheduler has no soft affinity."""
        topology, by_node = Topology.from_host(self.scenario.host), dict[int, list[str]]()
        if topology.nodes == 1:
            return {}
        for name in self.domains:
            given = self.scenario.domains[name].soft_affinity or "all"
            masks = (given,) if isinstance(given, str) else given
            nodes = {topology.node(p) for mask in masks for p in pcpu_set(mask, topology.pcpus)}
            if len(nodes) == 1:
                by_node.setdefault(nodes.pop(), []).append(name)
        return dict(sorted(by_node.items()))

    @property
    def tightest(self) -> Judged | None:
        """The SLO that is nearest to breaking."""
        return worst(self.judged) if self.judged else None


class Refused(NamedTuple):
    """Domains that together break an SLO on one host; a small set breaks none without any one of them."""

    names: list[str]
    reason: str
    """The SLO and its measured metric."""
    certain: bool
    """Is the difference from the SLO significant?"""

    def row(self) -> dict[str, object]:
        """As flat data."""
        return {"names": self.names, "why": self.reason, "certain": self.certain}


def _used(hosts: Iterable[Host]) -> list[float]:
    return [host.used for host in hosts]


@dataclass(frozen=True)
class Placement(Answer):
    """The hosts with the items placed on them, and the proof or search behind their number."""

    fleet: Fleet
    hosts: list[Host]
    alone: list[Host]
    """For each item the host with this item alone."""
    by_default: bool
    """Were no SLOs given?"""
    refused: list[Refused]
    stopped: str | None
    """The reason why the search for fewer hosts stopped early; `None`: it did not."""
    proven: bool
    """Is it certain that fewer hosts do not suffice, under the two assumptions and with the present settings?"""
    needs: dict[str, float]
    """Resource to the number of hosts that all needs together fill, the largest first."""
    not_placed: list[str]
    """Items that were not placed before an interruption."""
    without_slos: list[str]
    """Items without SLOs: they get the capacity that is left."""
    today: list[float]
    """The busy share of the pCPUs in each given scenario, 0 to 1; empty after an interruption."""
    runs: int
    """The number of hosts that were simulated."""
    tried_on_fewer: int
    """The number of placements on fewer hosts that were simulated; each of them breaks an SLO."""

    @property
    def uncertain(self) -> list[Refused]:
        """The refused sets whose difference from an SLO is not significant."""
        return [refused for refused in self.refused if not refused.certain]

    @property
    def least(self) -> str:
        """The result about fewer hosts, in words."""
        if len(self.hosts) == 1 and not self.not_placed:
            sentence = f"{AS_SET}, one host keeps the SLOs"
        elif self.proven:
            sentence = f"{AS_SET}, no fewer hosts keep the SLOs: {self._proof}"
        elif self.uncertain:
            sentence = (
                f"cannot tell whether fewer hosts keep the SLOs {AS_SET}: of "
                f"{len(self.refused)} sets that were refused, {len(self.uncertain)} "
                f"{'is' if len(self.uncertain) == 1 else 'are'} not significantly beyond one (more replications may "
                "tell)"
            )
        else:
            tried = NotFound(self.tried_on_fewer, (f"on fewer than {len(self.hosts)} hosts",), "placement")
            sentence = f"{tried.sentence(['the SLOs'])} {AS_SET}; others may"
        return f"{sentence}: {self.stopped}" if self.stopped is not None else sentence

    @property
    def _proof(self) -> str:
        """The reason why fewer hosts do not suffice, if proven."""
        resource, total = next(iter(self.needs.items()), ("", 0.0))
        if total > len(self.hosts) - 1:
            return f"all domains need {total:.2f} hosts of {resource}"
        return "each placement on fewer has domains that break one together"

    def to_frame(self) -> pl.DataFrame:
        """A row for each host: its domains, the busy share of its pCPUs, and the SLO nearest to breaking."""
        rows = [
            (number, host.domains, 100 * host.used, str(host.tightest.slo) if host.tightest else None)
            for number, host in enumerate(self.hosts, 1)
        ]
        kinds = (pl.UInt32(), pl.List(pl.String), pl.Float64(), pl.String())
        schema = zip(("host", "domains", "pcpus_used_percent", "slo"), kinds, strict=True)
        return pl.DataFrame(rows, pl.Schema(schema), orient="row")

    def watts(self, power: Power) -> dict[str, float]:
        """The power of all hosts, W: as placed, with one host for each item, and for the given scenarios if known."""
        used = {"placed": _used(self.hosts), "alone": _used(self.alone), "today": self.today}
        return {name: sum(map(power.draws, hosts)) for name, hosts in used.items() if hosts}

    def saved_kwh_per_year(self, power: Power) -> float:
        """The energy saved compared with one host for each item, kWh per year."""
        watts = self.watts(power)
        return (watts["alone"] - watts["placed"]) * HOURS_PER_YEAR / 1000

    def document(self, power: Power = Power(), tune: str = "vcpulab tune") -> Document:
        """The placement as a document.

        Args:
            power: the power of a host.
            tune: the command that searches for settings with which fewer hosts may be enough.
        """
        return document_of(self, power, tune)

    def as_data(self, power: Power) -> dict[str, object]:
        """As plain data."""
        return {
            "hosts": [
                {
                    "domains": host.domains,
                    **({"nodes": [{"node": n, "domains": names} for n, names in nodes.items()]} if nodes else {}),
                    "starved": starvation.rows(host.starved),
                    "pcpus_used_percent": 100 * host.used,
                    "tightest": host.tightest.row() if host.tightest else None,
                    "slos": [judged.row() for judged in host.judged],
                    "stations": [station.row() for station in host.stations],
                }
                for host in self.hosts
                for nodes in [host.nodes]
            ],
            "not_placed": self.not_placed,
            "hosts_alone": len(self.alone),
            "proven_least": self.proven,
            "stopped": self.stopped,
            "slos_by_default": self.by_default,
            "refused": [refused.row() for refused in self.refused],
            "hosts_today": len(self.today),
            "without_slos": self.without_slos,
            "needs_in_hosts": self.needs,
            "watts": self.watts(power),
            "idle_watts": power.idle,
            "busy_watts": power.busy,
            "saved_kwh_per_year": self.saved_kwh_per_year(power),
            "hosts_simulated": self.runs,
        }


def place(
    fleet: Fleet,
    slos: Iterable[str] = (),
    *,
    apart: Iterable[Sequence[str]] = (),
    margin: float = 0.0,
    memory: float | None = None,
    replications: int | None = None,
    jobs: int = 0,
    budget: Budget | None = None,
) -> Placement:
    """Places a fleet on as few hosts as keep the SLOs.

    Args:
        fleet: the items to place, and the host.
        slos: the SLOs to keep, such as `web.response_p99 < 50ms`, or for every client `response_p99 < 50ms`; clients'
            requests may not fail, either. Without any: responses near those of each domain alone.
        apart: groups of domains of which no two may be on one host.
        margin: the share of each resource to leave free when packing.
        memory: the memory of a host, bytes; `None`: enough.
        replications: as for `capacity`.
        jobs: replications at a time.
        budget: the time after which the search stops, and the progress that takes each step.

    Raises:
        UnplaceableError: a domain does not keep its SLOs even alone.
        RequestError: an SLO or a group is invalid.
        StoppedError: the budget is used up.
        Interrupted: the placing was cancelled after at least one item was found to hold alone.
    """
    placing = _Placing(fleet, list(slos), replications, jobs, budget or Budget())
    return placing.place([_separate(fleet, names) for names in apart], margin, memory)


def _separate(fleet: Fleet, names: Sequence[str]) -> list[Item]:
    """The items of a group of which no two may be on one host."""
    domain_of: dict[str, str] = {}
    items = []
    for name in group(names, "apart"):
        item = item_of(fleet.items, name, "apart")
        if item.name in domain_of:
            raise RequestError(f"`{domain_of[item.name]}` and `{name}` are both apart and together", field="apart")
        domain_of[item.name] = name
        items.append(item)
    return items


@dataclass
class _Placing:
    fleet: Fleet
    texts: list[str]
    replications: int | None
    jobs: int
    budget: Budget
    verdicts: dict[tuple[str, ...], Verdict] = field(default_factory=dict)
    slos: dict[str, list[Slo]] = field(default_factory=dict)
    """Item to its SLOs."""
    common: list[Slo] = field(default_factory=list)
    """The SLOs that every host has."""
    refused: list[Refused] = field(default_factory=list)
    alone: list[Host] = field(default_factory=list)
    """For each item that holds alone, the host with this item."""
    packed: list[list[Item]] = field(default_factory=list)
    """The items of each host of the best placement so far; empty: one host for each item."""
    missed: list[int] = field(default_factory=list)
    """The number of hosts of each placement that breaks an SLO."""
    needs: dict[str, float] = field(default_factory=dict)
    """Resource to the need of all items in hosts."""
    stopped: str | None = None

    def place(self, apart: list[list[Item]], margin: float, memory: float | None) -> Placement:
        try:
            proven = self._search(apart, margin, memory)
            today = [used_by_all(run(scenario, jobs=self.jobs)) for scenario in self.fleet.given]
        except KeyboardInterrupt:
            if not self.alone:
                raise
            self.stopped = "interrupted"
            raise Interrupted(self._placement(proven=False, today=[])) from None
        return self._placement(proven=proven, today=today)

    def _step(self, name: str) -> None:
        self.budget.step(name, usual=3 * len(self.fleet.items))

    def _search(self, apart: list[list[Item]], margin: float, memory: float | None) -> bool:
        """Places all items; returns whether it is certain that fewer hosts do not suffice."""
        self._alone()
        kinds, counts = self._kinds(apart)
        empty = self._empty()
        item_needs = []
        for first, *_alike in kinds:
            run_alone = self._judge([first]).run
            slos = self._slos([first])
            item_needs.append(needs(self.fleet, first, run_alone, empty=empty, slos=slos, memory=memory))
        for members, need in zip(kinds, item_needs, strict=True):
            if need.get("memory", 0) > 1:
                raise UnplaceableError(f"{members[0].name}: needs {need['memory']:.3g} times the memory of a host")
        problem = Problem(
            counts,
            # The margin does not refuse an item that fits alone.
            [{name: min(1.0, need / (1 - margin)) for name, need in needed.items()} for needed in item_needs],
            [needs(self.fleet, first, self._judge([first]).run, empty=empty) for first, *_alike in kinds],
            [pair for group in apart for pair in _pairs(group, kinds)],
        )
        self.needs = problem.totals()
        self.packed = self._first(problem, kinds)
        proven = True
        try:
            for hosts in range(problem.least_hosts(), len(self.packed)):
                better, certain = self._pack(problem, kinds, hosts)
                proven = proven and certain
                if better is not None:
                    self.packed = better
                    break
        except StoppedError as error:
            self.stopped = str(error)
        return proven and self.stopped is None and all(refused.certain for refused in self.refused)

    def _first(self, problem: Problem, kinds: Sequence[Sequence[Item]]) -> list[list[Item]]:
        """A placement that holds, found quickly: hosts as even as possible, and one more host until all hold."""
        for hosts in range(problem.least_hosts(), len(self.fleet.items)):
            self._step(f"packing onto {hosts} host{'s' if hosts > 1 else ''}")
            loads, _certain = pack(problem, hosts)
            if loads is not None:
                refused = self._refuse(loads, kinds)
                if not refused:
                    return self._hosts(loads, kinds)
                self.missed.append(hosts)
                problem.refused += refused
        # Each alone holds.
        return [[item] for item in self.fleet.items]

    def _pack(
        self, problem: Problem, kinds: Sequence[Sequence[Item]], hosts: int
    ) -> tuple[list[list[Item]] | None, bool]:
        """A placement on a number of hosts that holds; `None`: none was found, and whether that is certain."""
        for round_ in range(ROUNDS):
            self._step(f"packing onto {hosts} host{'s' if hosts > 1 else ''}, try {round_ + 1}")
            loads, certain = pack(problem, hosts)
            if loads is None:
                return None, certain
            refused = self._refuse(loads, kinds)
            if not refused:
                return self._hosts(loads, kinds), True
            self.missed.append(hosts)
            problem.refused += refused
        return None, False

    def _alone(self) -> None:
        """Runs each item alone on a host, which has to hold."""
        unknown = list(self.texts)
        for item in self.fleet.items:
            self._step(f"{item.name} alone")
            idle = self._run_alone(item)
            by_text = {text: _slos_of(idle, item, text) for text in self.texts}
            given = [slo for slos in by_text.values() for slo in slos]
            self.slos[item.name] = served(idle.scenario, given) if self.texts else default_slos(idle)
            unknown = [text for text in unknown if not by_text[text]]
        self.common = [slo for text in unknown for slo in self._common_slos(text)]
        if not any(self.slos.values()) and not self.common:
            raise RequestError(
                "needed, because no domain has response times that SLOs could be on by default", field="slo"
            )
        for item in self.fleet.items:
            verdict = self._judge([item])
            if verdict.standing != "holds":
                raise UnplaceableError(_unplaceable(item, verdict, self.jobs))
            self.alone.append(self._host([item]))
            self.fleet.busy.update({name: gotten(verdict.run, name) / 100 for name in item.domains})

    def _run_alone(self, item: Item) -> Run:
        try:
            scenario = self.fleet.scenario([item])
        except ScenarioError as error:
            problems = "; ".join(f"{problem['field'] or 'it'}: {problem['message']}" for problem in error.problems)
            raise RequestError(f"{item.name} cannot be on the host: {problems}") from None
        return self.budget.watch(run, scenario.with_run(replications=self._replications(scenario)), jobs=self.jobs)

    def _replications(self, scenario: Scenario) -> int:
        return self.replications or max(scenario.replications, REPLICATIONS)

    def _common_slos(self, text: str) -> list[Slo]:
        """The SLOs on the host or on a domain that every host has; empty for an SLO on every client."""
        scenario = self.fleet.scenario(self.fleet.items[:1])
        steps = _steps(text)
        if len(steps) == 1:
            return []
        if steps and is_pattern(steps[0]) and not matching(steps[0], self.fleet.common):
            return []
        if steps and not matching(steps[0], ["host", *self.fleet.common]):
            names = sorted({name for item in self.fleet.items for name in item.names} | self.fleet.common | {"host"})
            raise RequestError(f"there is no `{steps[0]}`", field="slo", found=text, allowed=", ".join(names))
        return slos(scenario, [text])

    def _slos(self, items: Iterable[Item]) -> list[Slo]:
        return [*self.common, *(slo for item in items for slo in self.slos[item.name])]

    def _judge(self, items: Sequence[Item]) -> Verdict:
        key = tuple(item.name for item in items)
        if key not in self.verdicts:
            self._step(f"{', '.join(key)} on one host")
            scenario = self.fleet.scenario(items)
            self.verdicts[key] = try_out(
                scenario,
                self._slos(items),
                replications=self._replications(scenario),
                jobs=self.jobs,
                budget=self.budget,
            )
        return self.verdicts[key]

    def _host(self, items: list[Item]) -> Host:
        verdict = self._judge(items)
        done = verdict.run
        return Host(items, done.scenario, verdict.judged, used_by_all(done), stations(done), starvation.starved(done))

    def _empty(self) -> Mapping[str, float]:
        """Resource to the share that a host without items uses."""
        if not self.fleet.common:
            return {}
        return measured(self.budget.watch(run, self.fleet.scenario([]), jobs=self.jobs))

    def _kinds(self, apart: Iterable[Sequence[Item]]) -> tuple[list[list[Item]], list[int]]:
        """Groups of items that are alike, SLOs included; an item of a group `apart` is a kind of its own."""
        special = {item.name for group in apart for item in group}
        kinds: dict[str, list[Item]] = {}
        for item in self.fleet.items:
            bounds = [(slo.address.metric.name, slo.operator, round(slo.bound, 9)) for slo in self.slos[item.name]]
            key = item.name if item.name in special else f"{item.kind} {bounds}"
            kinds.setdefault(key, []).append(item)
        return list(kinds.values()), [len(members) for members in kinds.values()]

    def _hosts(self, packed: Sequence[Load], kinds: Sequence[Sequence[Item]]) -> list[list[Item]]:
        """The items of each host with a load, assigned in the order of the files."""
        left = [list(members) for members in kinds]
        hosts = []
        for load in packed:
            chosen = [left[kind].pop(0) for kind, count in load.items() for _ in range(count)]
            hosts.append([item for item in self.fleet.items if item in chosen])
        return [items for items in hosts if items]

    def _refuse(self, packed: Sequence[Load], kinds: Sequence[Sequence[Item]]) -> list[Load]:
        """The loads of a packing that break SLOs, reduced to small ones."""
        refused: list[Load] = []
        for items in self._hosts(packed, kinds):
            if len(items) < 2 or self._judge(items).standing == "holds":
                continue
            few = self._fewest(items)
            load: Load = {}
            for item in few:
                kind = next(index for index, members in enumerate(kinds) if item in members)
                load[kind] = load.get(kind, 0) + 1
            if load not in refused:
                refused.append(load)
                verdict = self._judge(few)
                self.refused.append(Refused([item.name for item in few], _broken(verdict), _is_certain(verdict)))
        return refused

    def _fewest(self, items: list[Item]) -> list[Item]:
        """A minimal subset of the items that breaks an SLO; all items if they are more than `FEW`."""
        if len(items) > FEW:
            return items
        for item in reversed(items):
            rest = [member for member in items if member is not item]
            if len(rest) > 1 and self._judge(rest).standing != "holds":
                return self._fewest(rest)
        return items

    def _placement(self, *, proven: bool, today: list[float]) -> Placement:
        """The best placement so far."""
        packed = sorted(self.packed, key=lambda items: self.fleet.items.index(items[0]))
        hosts = [self._host(items) for items in packed] or self.alone
        return Placement(
            fleet=self.fleet,
            hosts=hosts,
            alone=self.alone,
            by_default=not self.texts,
            refused=self.refused,
            stopped=self.stopped,
            proven=proven,
            needs=self.needs,
            not_placed=[item.name for item in self.fleet.items[len(self.alone) :]],
            without_slos=[name for name, slos in self.slos.items() if not slos],
            today=today,
            runs=len(self.verdicts),
            tried_on_fewer=sum(1 for number in self.missed if number < len(hosts)),
        )


def _slos_of(alone: Run, item: Item, text: str) -> list[Slo]:
    """The SLOs on an item that a text states; empty if the text is about other items."""
    steps = _steps(text)
    if len(steps) == 1:
        judged = [app for app in asking(alone.scenario) if app.domain in item.domains]
        named = [slo(alone.scenario, f"{app.name}.{text.strip()}") for app in judged]
        return [candidate for candidate in named if _is_measurable(candidate, alone)]
    return slos(alone.scenario, [text]) if steps and matching(steps[0], item.names) else []


def _steps(text: str) -> list[str]:
    """The path that an SLO begins with."""
    match = _PATH.match(text)
    return split(match["metric"]) if match else []


def _is_measurable(slo: Slo, alone: Run) -> bool:
    """Can the metric of an SLO have values? A program without end completes work but has no response times."""
    work = find(alone.scenario, f"{slo.address.thing}.throughput")
    values = alone.values([slo.address, work])
    return any(value is not None for value in values[slo.address.name]) or not any(values[work.name])


def _pairs(group: Sequence[Item], kinds: Sequence[Sequence[Item]]) -> list[tuple[int, int]]:
    numbers = [next(index for index, members in enumerate(kinds) if item in members) for item in group]
    return [(a, b) for position, a in enumerate(numbers) for b in numbers[position + 1 :]]


def _is_certain(verdict: Verdict) -> bool:
    """Is an SLO broken significantly: is its bound outside the interval of the mean?"""
    return any(_is_beyond(judged) for judged in verdict.judged if judged.standing == "broken")


def _is_beyond(judged: Judged) -> bool:
    """Is the bound of an SLO outside the interval? A metric that never had a value is beyond any bound."""
    interval = judged.interval
    if interval is None:
        return True
    half = math.inf if interval.half_width is None else interval.half_width
    nearest = interval.mean - half if judged.slo.operator.startswith("<") else interval.mean + half
    return not judged.slo.holds(nearest)


def _broken(verdict: Verdict) -> str:
    tightest = worst(verdict.judged)
    came_to = "has no value" if tightest.interval is None else f"is {tightest.interval}"
    how = "" if _is_beyond(tightest) else ", and the difference from it is not significant"
    return f"{tightest.slo}: it {came_to}{how}"


def _unplaceable(item: Item, verdict: Verdict, jobs: int) -> str:
    full = max(stations(verdict.run, item.domains), key=lambda station: station.used)
    measured = f"  {_broken(verdict)}\n  nearest to full: {full}"
    tightest = worst(verdict.judged)
    if tightest.standing == "open":
        return f"{item.name}: cannot tell whether it keeps the SLOs alone on a host, {AS_SET}\n{measured}"
    by_itself = alone(verdict.run.scenario, tightest.slo.address, jobs=jobs)
    about = "" if by_itself is None else f"\n  {by_itself.about(tightest.slo)}"
    proven = by_itself is not None and by_itself.proof(tightest.slo) is not None
    more = "" if proven else "\n  vcpulab tune looks for other settings"
    return f"{item.name}: alone on a host it breaks an SLO, {AS_SET}\n{measured}{about}{more}"
