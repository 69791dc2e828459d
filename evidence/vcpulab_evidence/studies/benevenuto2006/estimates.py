"""Simulated values in place of Benevenuto's numbers."""

from collections.abc import Callable

from vcpulab.hypervisors.monitors import sampled_busy_s, utilisation
from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies.benevenuto2006.cases import PERIODS_CYCLES
from vcpulab_evidence.studies.benevenuto2006.ratios import (
    build_increase,
    receive_ratio,
    saturation,
    slowdown,
    web_ratio,
)
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.results import Results


def estimate(cell: Cell, results: Results) -> Interval | str:
    """The simulated value of a published cell; text: the reason for a missing value."""
    if cell.experiment == "worked-example":
        return _worked_example(cell)
    if cell.experiment == "xenoprof-example":
        return _profile(cell, results)
    if cell.config == "content":
        return results.interval("web-server: content", cell.metric)
    return _ESTIMATES[cell.metric](cell, results)


def _times_linux(cell: Cell, results: Results) -> Interval:
    if cell.experiment == "web-server":
        return web_ratio(results)
    return receive_ratio(results, min if cell.stat == "lo" else max)


_ESTIMATES: dict[str, Callable[[Cell, Results], Interval | str]] = {
    "cpu_total_over_linux": _times_linux,
    "saturation_rate": lambda _, results: saturation(results),
    "exec_time_increase_over_linux": lambda cell, results: build_increase(results, int(_value(cell.load))),
    "xenoprof_extra_slowdown_vs_oprofile": lambda cell, results: slowdown(results, int(float(_value(cell.config)))),
    "sampling_period_busy_cycles": lambda _, __: _exactly(max(PERIODS_CYCLES)),
    "sampling_period_cache_misses": lambda _, __: "a setting of the profiler; the simulation counts every miss",
}


def _value(text: str) -> str:
    """The text after the `=`."""
    return text.split("=")[1]


def _exactly(value: float) -> Interval:
    return Interval(value, None, 1)


def _worked_example(cell: Cell) -> Interval:
    """The project's own formulas, with the numbers of the examples."""
    given = {name: float(number.rstrip("Hsz")) for name, number in (item.split("=") for item in cell.load.split(";"))}
    if "B_dom" in given:
        return _exactly(utilisation(given["B_dom"], given["B_idd"], given["T"]))
    first, second = (sampled_busy_s(int(given[samples]), int(given["C"]), given["F"]) for samples in ("s1", "s0"))
    return _exactly(utilisation(first, second, given["T"]))


def _profile(cell: Cell, results: Results) -> Interval | str:
    layers = {"sample_share[vmlinux-syms-2.6.12-xenU]": "vmlinux", "sample_share[xen-syms-3.0-devel]": "xen"}
    if cell.metric in layers:
        return results.interval("xenoprof-example: web server", f"sample_share[{layers[cell.metric]}]")
    if cell.metric.startswith("samples["):
        return "the length of the profile is not stated; its shares are compared"
    return "one program in the simulation: only kernel and hypervisor are images of their own"
