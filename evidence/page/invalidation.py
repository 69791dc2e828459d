"""Cases that break twins, looked for on purpose, and effects of what is not modelled: two files in `docs/evidence`.

The truth is a simulated host with an effect in it (scenarios/invalidation). What a recording would show of it in one
setting becomes a twin that knows nothing of the effect: times to compute and to sleep, drawn one by one from their
spreads; of domains that wake one another, what they did, turn by turn. Both are then put into another setting. What the
twin says of it is as wrong as anybody would be who leaves the effect out.
"""

import csv
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import fmean

import polars as pl

from vcpulab import Run, Scenario, run
from vcpulab.results.statistics import number
from vcpulab.twin.apps import replayed
from vcpulab.twin.links import Link, Vcpu
from vcpulab.twin.sequences import Turns, turns_of
from vcpulab_evidence.studies import study

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "scenarios" / "invalidation"
RECORDED_NS = 4_000_000_000
"""A recording is as long as those of `make real-xen`."""


def _address(address: str) -> Callable[[Run], float]:
    return lambda ran: ran[address].mean


def _useful(ran: Run) -> float:
    """Of the time that `a` had a pCPU, the part in which it did not bring in what its caches had lost."""
    a = ran.df_domains().filter(domain="a")
    return fmean(100 * (a["running_ns"] - a["refill_ns"]) / a["elapsed_ns"])


@dataclass(frozen=True)
class Case:
    """An effect, and the change of setting that shows it."""

    name: str
    what: str
    """What is left out."""
    change: Mapping[str, object]
    """From the setting that is recorded to the one that is predicted."""
    in_words: str
    metric: str
    measure: Callable[[Run], float]
    domain: str = ""
    """Whose CPU time its rate is taken to go with; empty: it is a wait, which the twin has itself."""
    linked: tuple[str, ...] = ()
    """Domains that wake one another: what they did is replayed turn by turn, with their events."""
    untold: tuple[str, ...] = ()
    """What of the change nobody can tell the twin."""


CASES = (
    Case("caches", "cold caches", {"host.tslice_ms": 5}, "slices of 30 → 5 ms", "useful CPU time, %", _useful, "a"),
    Case(
        "smt",
        "threads that share a core",
        {"domain.b.affinity": "1"},
        "a core each → one core",
        "work, % of a core",
        _address("a.work"),
        "a",
    ),
    Case(
        "lock-holders",
        "locks whose holder is preempted",
        {"host.tslice_ms": 5},
        "slices of 30 → 5 ms",
        "critical sections/s",
        _address("locks.throughput"),
        "locks",
    ),
    Case(
        "bursts",
        "bursts: the order of what was recorded",
        {"host.scheduler": "credit"},
        "Credit2 → Credit",
        "p99 of waits, µs",
        _address("sleeper.wait_p99"),
    ),
    Case(
        "saturated-dom0",
        "work of Dom0 that follows from what it is given",
        {"domain.dom0.weight": 2048},
        "Dom0's weight × 8",
        "requests/s",
        _address("httperf.throughput"),
        "web",
        ("dom0", "web"),
    ),
    Case(
        "short-sleeps",
        "what deciding takes, 9 µs under Credit, 18 µs under Credit2",
        {"host.scheduler": "credit2", "host.costs.decision_ns": 18_000},
        "Credit → Credit2",
        "sleeps of 10 µs/s",
        _address("short.throughput"),
        untold=("host.costs.decision_ns",),
    ),
)


@dataclass(frozen=True)
class Found:
    """What a case gives."""

    case: Case
    before: float
    """The truth in the setting that is recorded."""
    after: float
    """The truth in the other."""
    predicted: float
    """The twin there."""

    @property
    def change(self) -> float:
        """True change, %."""
        return 100 * (self.after / self.before - 1)

    @property
    def predicted_change(self) -> float:
        """What the twin says of it, %."""
        return 100 * (self.predicted / self.before - 1)

    @property
    def off(self) -> float:
        """How far off the prediction is, % of the truth."""
        return 100 * (self.predicted / self.after - 1)


def find(case: Case) -> Found:
    """Runs a case."""
    truth = Scenario.load(SCENARIOS / f"{case.name}.toml")
    before, after = run(truth, waits=True), run(truth.change(case.change), waits=True)
    twin = twin_of(truth, before, case.linked)
    told = {name: value for name, value in case.change.items() if name not in case.untold}
    recorded, there = run(twin, waits=True), run(twin.change(told), waits=True)
    old, new = case.measure(before), case.measure(after)
    if case.domain:
        gotten = f"{case.domain}.gotten"
        # As `vcpulab validate` predicts throughput: the same work in the same CPU time.
        return Found(case, old, new, old * there[gotten].mean / before[gotten].mean)
    # What the twin says of its own setting is not held against it.
    return Found(case, old, new, old * case.measure(there) / case.measure(recorded))


def twin_of(truth: Scenario, ran: Run, linked: Sequence[str] = ()) -> Scenario:
    """A scenario that wants what the vCPUs of a simulated host wanted, as a twin of its recording would."""
    numbers = dict(ran.df_domains().select("domain", "number").unique().iter_rows())
    those = [(numbers[name], 0) for name in linked]
    with tempfile.TemporaryDirectory() as scratch:
        recorded = truth.change({"run.replications": 1, "run.duration": f"{RECORDED_NS}ns"})
        run(recorded, trace=Path(scratch, "trace"))
        turns = turns_of(Path(scratch, "trace", "events-0.arrow"), {(a, b) for a in those for b in those if a != b})
        events = pl.read_ipc(Path(scratch, "trace", "events-0.arrow"))
    document = truth.to_dict()
    host = {name: value for name, value in document["host"].items() if name not in ("costs", "topology")}
    known = {"weight", "cap", "vcpus", "affinity"}
    domains = {}
    for name, table in document["domain"].items():
        vcpus = [(numbers[name], number) for number in range(table["vcpus"])]
        wanted = [
            replayed(turns[vcpu], _channel) if vcpu in those and vcpu in turns else _app(turns, events, vcpu)
            for vcpu in vcpus
        ]
        apps = [app for app in wanted if app is not None]
        domains[name] = {key: value for key, value in table.items() if key in known} | ({"app": apps} if apps else {})
    flat = {"profile": "exact", "pcpus": _pcpus(ran), "scheduler": host["scheduler"]}
    flat |= {name: host[name] for name in ("tslice_ms", "ratelimit_us") if name in host}
    return Scenario.from_dict(
        {"name": f"twin of {truth.name}", "run": document["run"], "host": flat, "domain": domains}
    )


def _pcpus(ran: Run) -> int:
    return ran.df_pcpus()["pcpu"].n_unique()


def _channel(link: Link) -> str:
    return "-wakes-".join(f"{domain}.{vcpu}" for domain, vcpu in link)


def _app(turns: Mapping[Vcpu, Turns], events: pl.DataFrame, vcpu: Vcpu) -> dict[str, object] | None:
    """What a vCPU wanted: times drawn one by one from their spreads; all it could get; or nothing."""
    its = turns[vcpu].turns if vcpu in turns else []
    bursts = [sum(cpu for cpu, _ in turn.computes) for turn in its if turn.blocked]
    blocks = [turn.blocked for turn in its if isinstance(turn.blocked, int) and turn.blocked]
    if bursts and blocks:
        return {"kind": "phases", "phase": [{"event": [{"run": _spread(bursts)}, {"sleep": _spread(blocks)}]}]}
    ran = not events.filter(kind="runstate", domain=vcpu[0], vcpu=vcpu[1], what="running").is_empty()
    return {"kind": "hog"} if ran else None


def _spread(times: Sequence[int]) -> list[str]:
    ordered = sorted(times)
    return [f"{max(1, ordered[min(len(ordered) - 1, k * len(ordered) // 127)])}ns" for k in range(128)]


COLUMNS = (
    "case",
    "left_out",
    "change",
    "metric",
    "before",
    "after",
    "predicted",
    "change_percent",
    "predicted_percent",
    "off_percent",
)


def rows() -> Iterator[list[str]]:
    """A row for each case, under `COLUMNS`."""
    for case in CASES:
        found = find(case)
        values = [found.before, found.after, found.predicted]
        changes = [f"{value:+.1f}" for value in (found.change, found.predicted_change, found.off)]
        yield [case.name, case.what, case.in_words, case.metric, *map(number, values), *changes]


def table() -> str:
    """The file."""
    return _text(COLUMNS, rows())


def _text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


# ---- what is not modelled at all ----

MECHANISMS = ROOT / "scenarios" / "mechanisms"
EFFECT_COLUMNS = ("left_out", "measured", "here", "really", "off_percent")


def effects() -> Iterator[list[str]]:
    """A row for each measured effect of what is not modelled, under `EFFECT_COLUMNS`."""
    nics = Scenario.load(MECHANISMS / "two-nics.toml")
    both, one, netbacks = (
        sum(run(nics.change(change))[f"to-{guest}.throughput"].mean for guest in ("a", "b"))
        for change in ({}, {"domain.b.nic.device": "eth0"}, {"domain.b.nic.driver_vcpu": 0})
    )
    measured = "packets/s of two receivers, Dom0 with two vCPUs"
    yield _effect("a NIC's queues", f"{measured}: one NIC; two, each on a vCPU of its own", both, one)
    yield _effect("netbacks that move", f"{measured}: netbacks on one vCPU; on two", both, netbacks)
    sets = {f"domain.{name}.working_set": "24MB" for name in ("a", "b", "c")}
    hogs = Scenario.load(SCENARIOS / "caches.toml").change(sets | {"host.tslice_ms": 1})
    useful, none = _useful(run(hogs)), _useful(run(hogs.change(dict.fromkeys(sets, "0B"))))
    what = "useful CPU time of one of three hogs in slices of 1 ms, %: with 24 MB each; without"
    yield _effect("working sets that are touched little by little", what, none, useful)
    moss = study("devine2010")
    cells = [c for c in moss.blind if (c.load, c.metric, c.source) == ("users=500", "throughput", "Table 5.11")]
    foretold = fmean(moss.foretold[cell.key].value for cell in cells)
    real = fmean(cell.number or 0 for cell in cells)
    what = "requests/s of MOSS with 500 users, mean of nine settings: foretold; measured by Devine"
    yield _effect("servers that run out of memory or threads, requests given up half done", what, real, foretold)


def _effect(left_out: str, measured: str, real: float, here: float) -> list[str]:
    return [left_out, measured, number(here), number(real), f"{100 * (here / real - 1):+.0f}"]


def effects_table() -> str:
    """The file of effects."""
    return _text(EFFECT_COLUMNS, effects())


if __name__ == "__main__":
    for name, text in (("invalidation", table()), ("effects", effects_table())):
        (ROOT / "docs" / "evidence" / f"{name}.csv").write_text(text, encoding="utf-8")
