"""Values derived from the cases of the study: ratios to Linux, the saturation rate, slowdowns."""

from collections.abc import Callable, Sequence

from vcpulab.results.statistics import Interval
from vcpulab_evidence.studies.benevenuto2006.cases import (
    HOSTS,
    RECEIVE_MBIT,
    WEB_RATES,
    build_case,
    profiler_case,
    receive_case,
    web_case,
)
from vcpulab_evidence.studies.results import Results

BELOW_SATURATION = (500, 1000, 1500)
"""Rates of connections at which both systems serve all: where the web server's cost is compared."""
_SAME_RATE = 0.98
"""Minimum fraction of the requested rate that a system must receive to sustain it."""

RECEIVED = [(size, mbit) for size, rates in RECEIVE_MBIT.items() for mbit in rates]


def manages(results: Results, host: str, size: int, mbit: int) -> bool:
    """Whether a system receives as much as the client wants to send."""
    return results.mean(receive_case(host, size, mbit), "rate_mbit") >= _SAME_RATE * mbit


def receive_ratio(results: Results, pick: Callable[[Sequence[float]], float]) -> Interval:
    """CPU time of driver domain and guest over that of Linux, picked from all sizes and rates that both sustain."""
    values = [
        (receive_case(host, size, mbit), metric)
        for size, mbit in RECEIVED
        for host in HOSTS
        for metric in ("cpu_total", "rate_mbit")
    ]

    def picked(*values: float) -> float:
        xen_cpu, xen_rate, linux_cpu, linux_rate = (values[i::4] for i in range(4))
        points = zip(xen_cpu, xen_rate, linux_cpu, linux_rate, strict=True)
        return pick([a / b for a, rate, b, linux in points if rate >= _SAME_RATE * linux])

    return results.combine(picked, *values)


def receive_ratio_at(results: Results, size: int, mbit: int) -> Interval:
    """CPU time of driver domain and guest over that of Linux, for one size and rate."""
    values = ((receive_case(host, size, mbit), "cpu_total") for host in HOSTS)
    return results.combine(lambda xen, linux: xen / linux, *values)


def web_ratio(results: Results, rates: Sequence[int] = BELOW_SATURATION) -> Interval:
    """CPU time of the web server's host over that of Linux, mean over the common rates."""
    values = [(web_case(host, rate), "cpu_total") for rate in rates for host in HOSTS]
    return results.combine(
        lambda *cpu: sum(a / b for a, b in zip(cpu[::2], cpu[1::2], strict=True)) / len(rates), *values
    )


def saturation(results: Results) -> Interval:
    """Connections per second at the highest throughput of the guest's web server."""
    return results.combine(lambda *rates: max(rates), *((web_case("xen", rate), "throughput") for rate in WEB_RATES))


def slowdown(results: Results, cycles: int) -> Interval:
    """The slowdown of a build by the profiler, %."""
    values = ((profiler_case(period), "seconds") for period in (cycles, None))
    return results.combine(lambda profiled, alone: 100 * (profiled / alone - 1), *values)


def build_increase(results: Results, n: int, where: str = "n guests") -> Interval:
    """The slowdown of n builds compared with Linux, %."""
    values = ((build_case(place, n), "seconds") for place in (where, "linux"))
    return results.combine(lambda here, linux: 100 * (here / linux - 1), *values)
