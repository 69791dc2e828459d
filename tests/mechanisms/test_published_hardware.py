"""The speed of hardware against published numbers: docs/concepts/published-hardware.md has what is computed here."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import pytest

import vcpulab
from support import ROOT

PAGE = ROOT / "docs" / "concepts" / "published-hardware.md"

# What is not looked at: the hypervisor's own time, caches, turbo.
_STILL = {
    "decision_ns": 0,
    "context_switch_ns": 0,
    "l2_bytes": 0,
    "l3_bytes": 0,
    "ipi_ns": 0,
    "lock_ns": 0,
    "turbo_one_core_mhz": 0,
    "turbo_all_cores_mhz": 0,
}
_THREAD_GB_PER_S = 12.96
_NODE_6248 = {"node_mb_per_s": 61_430}
_WAITS = {"memory_share_memory_percent": 100}


@dataclass(frozen=True)
class Load:
    """A domain with a busy vCPU on each of these pCPUs."""

    kind: str
    first: int = 0
    last: int = 0
    nodes: tuple[int, ...] = (0,)
    """Those that hold its memory."""

    def domain(self) -> dict[str, object]:
        count = self.last - self.first + 1
        return {
            "vcpus": count,
            "affinity": f"{self.first}-{self.last}",
            "bound_by": self.kind,
            "memory_nodes": list(self.nodes),
            "app": [{"kind": "hog", "instance": count}],
        }


@cache
def _work(loads: tuple[Load, ...], costs: tuple[tuple[str, int], ...]) -> tuple[float, ...]:
    document = {
        "host": {"profile": "xeon-gold-6240", "scheduler": "credit2", "costs": {**_STILL, **dict(costs)}},
        "run": {"duration": "20ms", "warmup": "5ms"},
        "domain": {f"d{number}": load.domain() for number, load in enumerate(loads)},
    }
    run = vcpulab.run(vcpulab.Scenario.from_dict(document))
    done = {row["domain"]: row["work_ns"] for row in run.df_domains().iter_rows(named=True)}
    return tuple(done[f"d{number}"] / run.scenario.duration_ns for number in range(len(loads)))


def work(*loads: Load, **costs: int) -> tuple[float, ...]:
    """The work that each does in a unit of time."""
    return _work(loads, tuple(costs.items()))


def core_with_two(kind: str) -> float:
    """The work of a core with two busy threads, against that with one."""
    (alone,) = work(Load(kind))
    return sum(work(Load(kind), Load(kind, 36, 36))) / alone


def longer_in(*nodes: int) -> float:
    """How much longer memory of these nodes takes than that of the first one, from a CPU of that."""
    (near,), (far,) = work(Load("memory"), **_WAITS), work(Load("memory", nodes=nodes), **_WAITS)
    return near / far


def read_by(*loads: Load, **costs: int) -> float:
    """What threads read from memory, GB/s."""
    return _THREAD_GB_PER_S * sum(work(*loads, **costs))


def faster_clock_and_slower_memory() -> float:
    """SPEC CPU2017's mix at 5 GHz and 220 ns, against 4.4 GHz and 130 ns."""
    rate = {"cpu_mhz": 4400, "turbo_one_core_mhz": 5000, "turbo_all_cores_mhz": 5000, "numa_distance": 17}
    return work(Load("compute", nodes=(1,)), **rate)[0]


def beside_load() -> float:
    """The latency of memory while others read 80 % of what its node brings, against that of an idle node."""
    only = {**_WAITS, "bandwidth_memory_mb_per_s": 0, "bandwidth_io_mb_per_s": 12_960}
    (alone,) = work(Load("memory"), **only)
    # Seven threads that want 12.96 GB/s each.
    beside = work(Load("memory"), Load("io", 1, 7), **only)
    return alone / beside[0]


@dataclass(frozen=True)
class Cell:
    """A published figure, and how it is computed here."""

    figure: str
    published: float
    simulated: Callable[[], float]
    off_by: float = 0.05
    """How far the two are apart at most, of the published one."""
    fitted: bool = False
    """A constant of the profile comes from it: it predicts nothing."""
    digits: int = 2

    def row(self) -> str:
        kind = "fitted" if self.fitted else "prediction"
        return f"| {self.figure} | {self.published:.{self.digits}f} | {self.simulated():.{self.digits}f} | {kind} |"


_CORES = (12.96, 25.66, 37.66, 47.04, 54.00, 58.37, 60.24, 60.91, 61.07, 61.43)

CELLS = [
    Cell(
        "Threads: two that read memory (`load`), against one",
        14.62 / 12.96,
        lambda: core_with_two("memory"),
        0.02,
        True,
    ),
    Cell("the same, `copy`", 15.12 / 14.56, lambda: core_with_two("memory"), 0.1),
    Cell("the same, `daxpy`", 23.13 / 21.32, lambda: core_with_two("memory")),
    Cell("the same, `triad`", 14.96 / 15.21, lambda: core_with_two("memory"), 0.15),
    Cell("the same, `update`", 27.67 / 24.27, lambda: core_with_two("memory")),
    Cell(
        "Threads: two of any virtual machines, the middle of 1.1 to 1.3",
        1.2,
        lambda: core_with_two("compute"),
        0.02,
        True,
    ),
    Cell("Threads: two that saturate the core's load ports", 265.6 / 275.0, lambda: core_with_two("compute"), 0.25),
    Cell("Nodes: latency of the other one's memory, in the own one's", 140.4 / 80.8, lambda: longer_in(1), fitted=True),
    Cell("Nodes: memory interleaved over two (two Broadwell)", 104.6 / 75.8, lambda: longer_in(0, 1)),
    *(
        Cell(
            f"Bandwidth: GB/s read by {n} core{'s' if n > 1 else ''} of a node of 10 (Gold 6248)",
            _CORES[n - 1],
            partial(read_by, Load("memory", 0, n - 1), **_NODE_6248),
            0.02 if n in (1, 10) else 0.15,
            n in (1, 10),
            1,
        )
        for n in range(1, 11)
    ),
    Cell(
        "Bandwidth: GB/s of both nodes at once",
        225.6,
        lambda: read_by(Load("memory", 0, 17), Load("memory", 18, 35, (1,))),
        digits=1,
    ),
    Cell("Bandwidth: GB/s from the other node", 34.3, lambda: read_by(Load("memory", 18, 35)), 0.02, True, 1),
    Cell("Bandwidth: latency while 80 % of it is in use, against idle", 119.65 / 82.21, beside_load, 0.35),
    Cell(
        "Clocks: SPEC CPU2017 at 5 GHz and 220 ns, against 4.4 GHz and 130 ns",
        1,
        faster_clock_and_slower_memory,
        fitted=True,
    ),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.figure)
def test_published_figures_are_met_as_well_as_the_page_says(cell: Cell) -> None:
    assert cell.simulated() == pytest.approx(cell.published, rel=cell.off_by)
    assert cell.row() in PAGE.read_text().splitlines(), cell.row()


def test_the_page_has_no_other_figures() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.endswith(("| fitted |", "| prediction |"))]
    assert len(rows) == len(CELLS)


@pytest.mark.parametrize("profile", ["epyc-9355p", "i3-370m"])
def test_hosts_without_a_topology_are_as_fast_as_before(profile: str) -> None:
    def ran(costs: dict[str, int], **host: object) -> tuple[int, int]:
        document = {
            "host": {"profile": profile, "scheduler": "credit2", "costs": costs, **host},
            "domain": {"a": Load("memory", 0, 1).domain()},
            "run": {"duration": "20ms"},
        }
        domains = vcpulab.run(vcpulab.Scenario.from_dict(document)).df_domains()
        return int(domains["running_ns"].sum()), int(domains["work_ns"].sum())

    known = next(known for known in vcpulab.profiles() if known.name == profile).constants
    hardware = {constant: 100 for constant in known if constant.startswith("smt_")} | {"node_mb_per_s": 0}
    gotten, done = ran({})
    assert (gotten, done) == ran(hardware)
    assert gotten == done
    gotten, done = ran({}, topology={"cores": 2, "threads": 2})
    assert gotten > 1.2 * done
