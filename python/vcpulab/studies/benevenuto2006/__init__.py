"""F. Benevenuto: what I/O costs in Xen, how to measure it, and how guests disturb each other (2006)."""

from collections.abc import Callable, Iterable

from vcpulab.figures import Interval
from vcpulab.monitors import sampled_busy_s, utilisation
from vcpulab.studies.benevenuto2006.cases import (
    RECEIVE_MBIT,
    WEB_RATES,
    build_case,
    cases,
    profiler_case,
    receive_case,
    web_case,
)
from vcpulab.studies.results import Results
from vcpulab.studies.study import Cell, Chart, Study

BELOW_SATURATION = (500, 1000, 1500)
"""Rates of connections at which both systems serve all: where the web server's cost is compared."""


def estimate(cell: Cell, results: Results) -> Interval | str:
    """What the simulation says in place of a published cell."""
    if cell.experiment == "worked-example":
        return _worked_example(cell)
    if cell.config == "content":
        return results.interval("web-server: content", cell.metric)
    if cell.experiment == "xenoprof-example":
        return _profile(cell, results)
    if cell.metric == "sampling_period_busy_cycles":
        return _exactly(10_000_000)
    if cell.metric == "sampling_period_cache_misses":
        return "a setting of the profiler that the simulation does not have: it counts every miss"
    found: dict[str, Callable[[Results], Interval]] = {
        "xenoprof_extra_slowdown_vs_oprofile": lambda r: slowdown(r, int(float(cell.config.removeprefix("period_cycles=")))),
        "saturation_rate": saturation,
        "exec_time_increase_over_linux": lambda r: build_increase(r, int(cell.load.removeprefix("apps="))),
    }
    if cell.metric == "cpu_total_over_linux":
        return web_ratio(results) if cell.experiment == "web-server" else receive_ratio(results, cell.stat)
    return found[cell.metric](results)


def _exactly(value: float) -> Interval:
    return Interval(value, None, 1)


def _worked_example(cell: Cell) -> Interval:
    """The project's own formulas, with the numbers of the examples."""
    given = {name: float(number.rstrip("Hsz")) for name, number in (item.split("=") for item in cell.load.split(";"))}
    if "B_dom" in given:
        return _exactly(utilisation(given["B_dom"], given["B_idd"], given["T"]))
    busy = [sampled_busy_s(int(given[samples]), int(given["C"]), given["F"]) for samples in ("s1", "s0")]
    return _exactly(utilisation(*busy, given["T"]))


def _profile(cell: Cell, results: Results) -> Interval | str:
    layers = {"sample_share[vmlinux-syms-2.6.12-xenU]": "vmlinux", "sample_share[xen-syms-3.0-devel]": "xen"}
    if cell.metric in layers:
        return results.interval("xenoprof-example: web server", f"sample_share[{layers[cell.metric]}]")
    if cell.metric.startswith("samples["):
        return "the length of the profile is not stated; its shares are compared"
    return "one program in the simulation: only kernel and hypervisor are images of their own"


def receive_ratio(results: Results, stat: str) -> Interval:
    """CPU time of driver domain and guest over that of Linux: the least (`lo`) or greatest (`hi`) of all sizes and rates."""
    pairs = [(size, mbit) for size, rates in RECEIVE_MBIT.items() for mbit in rates]
    return _over_pairs(
        results,
        min if stat == "lo" else max,
        [(receive_case("xen", *pair), receive_case("linux", *pair)) for pair in pairs],
    )


def web_ratio(results: Results) -> Interval:
    """The same of the web server, over rates that both systems manage."""
    pairs = [(web_case("xen", rate), web_case("linux", rate)) for rate in BELOW_SATURATION]
    return _over_pairs(results, lambda ratios: sum(ratios) / len(pairs), pairs)


def _over_pairs(
    results: Results, pick: Callable[[Iterable[float]], float], pairs: list[tuple[str, str]]
) -> Interval:
    figures = [(case, "cpu_total") for pair in pairs for case in pair]
    return results.combine(lambda *values: pick([a / b for a, b in zip(values[::2], values[1::2], strict=True)]), *figures)


def saturation(results: Results) -> Interval:
    """Connections per second where the guest's web server serves most."""
    return results.combine(lambda *rates: max(rates), *((web_case("xen", rate), "throughput") for rate in WEB_RATES))


def slowdown(results: Results, cycles: int) -> Interval:
    """How much longer a build takes with the profiler, %."""
    figures = ((profiler_case(period), "seconds") for period in (cycles, None))
    return results.combine(lambda profiled, alone: 100 * (profiled / alone - 1), *figures)


def build_increase(results: Results, n: int, where: str = "n guests") -> Interval:
    """How much longer n builds take than on Linux, %."""
    figures = ((build_case(place, n), "seconds") for place in (where, "linux"))
    return results.combine(lambda here, linux: 100 * (here / linux - 1), *figures)


def charts(_results: Results) -> list[Chart]:
    """The figures of the paper."""
    return []


STUDY = Study(
    name="benevenuto2006",
    title="The cost of I/O in Xen, and how to measure it",
    reference="F. Benevenuto. MSc dissertation, Universidade Federal de Minas Gerais, 2006.",
    cases=cases,
    estimate=estimate,
    claims=(),
    charts=charts,
    experiments={
        "tcp-receive": "CPU time to receive over TCP, by size of packets (sections 6.1 and 6.2, Figures 6.1, 6.4 and 6.5)",
        "web-server": "Web server by rate of connections (section 6.1, Figures 6.2 and 6.3; content of Table 5.1)",
        "xenoprof-example": "Profile of the web server's guest (Table 5.2)",
        "one-nic": "One network card, two vCPUs of the driver domain (section 6.3.1, Figure 6.7)",
        "two-nics": "Two cards and two guests (section 6.3.2, Figure 6.9), and one driver domain for each (future work)",
        "interference": "One to five kernel builds in one guest and in as many (section 6.4, Figures 6.10 and 6.11)",
        "profiler-overhead": "What the profiler itself costs (section 5.2.3.2, Figure 5.2)",
    },
    seed=2006,
)
