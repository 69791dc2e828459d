"""F. Benevenuto: what I/O costs in Xen, how to measure it, and how guests disturb each other (2006)."""

from collections.abc import Callable

from vcpulab.hypervisors.monitors import sampled_busy_s, utilisation
from vcpulab.results.figures import Interval
from vcpulab.studies.benevenuto2006.cases import PERIODS_CYCLES, cases
from vcpulab.studies.benevenuto2006.charts import charts
from vcpulab.studies.benevenuto2006.claims import CLAIMS
from vcpulab.studies.benevenuto2006.estimates import (
    build_increase,
    receive_ratio,
    saturation,
    slowdown,
    web_ratio,
)
from vcpulab.studies.results import Results
from vcpulab.studies.study import Cell, Study


def estimate(cell: Cell, results: Results) -> Interval | str:
    """What the simulation says in place of a published cell."""
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
    """What follows the `=`."""
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


_LIMITS = """
* **Past saturation the web server's CPU time falls** (B-5) by another way than the author says. He explains it by
  connections that are refused; those cost little here, and by themselves lower nothing. Here 256 processes of Apache
  leave a guest of 256 MB no room for the 297 MB of files, which then come from the disk. CPU time falls at once, and
  then rises slowly with what is refused. This hangs on the memory of a process, which is assumed: with less than some
  700 KB nothing falls (notes.md).
* **The kernel's share of the profile** is low: the server's own system calls are part of the application's time
  here, and of the kernel's in OProfile. Hypervisor, kernel and programs are all that can be compared of Table 5.2.
* **The saturation rate** hangs on the web server's CPU time for a request, which is not fitted here: it is that of
  `lp200r`, scaled with the clock. It also hangs on how often large files are asked for, which the dissertation does
  not say.
* **The interference** hangs on how much memory a compiler touches in a turn of 5 ms. That was chosen by the
  description of Figure 6.11, not by the slowdown. A working set is touched at once in the simulation.
* **Misses in relation to Linux** (Figure 6.11) are not shown: those that a program causes by itself are not
  counted.
"""

STUDY = Study(
    name="benevenuto2006",
    title="The cost of I/O in Xen, and how to measure it",
    reference="F. Benevenuto. MSc dissertation, Universidade Federal de Minas Gerais, 2006.",
    cases=cases,
    estimate=estimate,
    claims=CLAIMS,
    charts=charts,
    experiments={
        "tcp-receive": "TCP receive by size of packets (sections 6.1 and 6.2, Figures 6.1, 6.4 and 6.5)",
        "web-server": "Web server by rate of connections (section 6.1, Figures 6.2 and 6.3; content of Table 5.1)",
        "xenoprof-example": "Profile of the web server's guest (Table 5.2)",
        "one-nic": "One network card, two vCPUs of the driver domain (section 6.3.1, Figure 6.7)",
        "two-nics": "Two cards and guests (section 6.3.2, Figure 6.9); one driver domain for each (future work)",
        "interference": "One to five kernel builds in one guest and in as many (section 6.4, Figures 6.10 and 6.11)",
        "profiler-overhead": "What the profiler itself costs (section 5.2.3.2, Figure 5.2)",
    },
    seed=2006,
    limits=_LIMITS,
)
