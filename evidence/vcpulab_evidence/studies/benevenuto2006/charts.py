"""The dissertation's figures, drawn again. None of its points can be read off; what its text says of them is marked."""

from collections.abc import Mapping, Sequence
from typing import Any

from vcpulab_evidence.studies.benevenuto2006.cases import (
    BUILDS,
    HOSTS,
    ONE_CARD,
    PERIODS_CYCLES,
    RECEIVE_MBIT,
    TWO_CARDS,
    WEB_RATES,
    build_case,
    receive_case,
    web_case,
)
from vcpulab_evidence.studies.benevenuto2006.ratios import (
    RECEIVED,
    build_increase,
    receive_ratio_at,
    slowdown,
    web_ratio,
)
from vcpulab_evidence.studies.cells import Cell
from vcpulab_evidence.studies.charts import Chart, Mark, curves, published
from vcpulab_evidence.studies.results import Missing, Results

_SYSTEMS = dict(zip(HOSTS, ("Xen", "Linux"), strict=True))


def charts(results: Results, _cells: Sequence[Cell]) -> list[Chart]:
    """All charts, in the dissertation's order; charts of experiments that were not run are left out."""
    figures = []
    for draw in (
        _profiler,
        _receive,
        _receive_ratio,
        _web,
        _web_cpu,
        _web_ratio,
        _packets,
        _acks,
        _one_card,
        _two_cards,
        _builds,
        _misses,
    ):
        try:
            figures.append(draw(results))
        except Missing:
            continue
    return figures


def _curve(results: Results, panel: str, series: str, cases: Mapping[Any, str], metric: str) -> list[Mark]:
    """A metric of cases by their position."""
    return [Mark(panel, series, x, results.interval(case, metric)) for x, case in cases.items()]


def _web_cases(host: str) -> dict[int, str]:
    return {rate: web_case(host, rate) for rate in WEB_RATES}


def _profiler(results: Results) -> Chart:
    title = "Figure 5.2: what the profiler costs"
    data = [
        Mark("kernel build", "Xenoprof", cycles / 1e6, slowdown(results, cycles))
        for cycles in PERIODS_CYCLES
        if cycles >= 10**6
    ]
    data += [published("kernel build", "published", x, value) for x, value in ((1.0, 2.0), (10.0, 0.25))]
    text = (
        f"Extra time of a build by the distance of samples; with {min(PERIODS_CYCLES):.0e} cycles it is "
        f"{slowdown(results, min(PERIODS_CYCLES))} %. The cost of a sample is fitted on both points."
    )
    return Chart(
        title, curves(data, "million cycles between samples", "extra time, %", title), text, "profiler-overhead"
    )


def _receive(results: Results) -> Chart:
    title = "Figure 6.1: CPU time to receive over TCP"
    data = [
        mark
        for host in HOSTS
        for size, rates in RECEIVE_MBIT.items()
        for mark in _curve(
            results, _SYSTEMS[host], f"{size} B", {mbit: receive_case(host, size, mbit) for mbit in rates}, "cpu_total"
        )
    ]
    text = "Driver domain and guest together, each on a CPU of its own; Linux on one."
    return Chart(title, curves(data, "Mbit/s", "% of a CPU", title), text, "tcp-receive")


def _receive_ratio(results: Results) -> Chart:
    title = "Figure 6.1, as a ratio: CPU time in Xen over that of Linux"
    panel = "TCP receive"
    data = [Mark(panel, f"{size} B", mbit, receive_ratio_at(results, size, mbit)) for size, mbit in RECEIVED]
    data += [published(panel, "published range", 50, value) for value in (3.0, 5.0)]
    text = "Published: 3 to 5 times. At which sizes and rates is not said, so the two marks stand apart."
    return Chart(title, curves(data, "Mbit/s", "times Linux", title), text, "tcp-receive")


def _web(results: Results) -> Chart:
    title = "Figure 6.2: throughput of the web server"
    data = [
        mark for host in HOSTS for mark in _curve(results, "web server", _SYSTEMS[host], _web_cases(host), "throughput")
    ]
    text = "The same up to saturation of the guest's CPU, then a decline. Published: at about 500/s."
    return Chart(title, curves(data, "connections/s asked for", "connections/s served", title), text, "web-server")


def _web_cpu(results: Results) -> Chart:
    title = "Figure 6.3: CPU time of the web server"
    drawn = (
        ("Linux", "linux", "cpu_total"),
        ("guest", "xen", "cpu_guest"),
        ("driver domain", "xen", "cpu_idd"),
        ("guest and driver domain", "xen", "cpu_total"),
    )
    data = [
        mark for name, host, metric in drawn for mark in _curve(results, "web server", name, _web_cases(host), metric)
    ]
    text = "In the dissertation the sum falls past saturation (B-5)."
    return Chart(title, curves(data, "connections/s asked for", "% of a CPU", title), text, "web-server")


def _web_ratio(results: Results) -> Chart:
    title = "Figure 6.3, as a ratio: CPU time in Xen over that of Linux"
    panel = "web server"
    data = [Mark(panel, "simulated", rate, web_ratio(results, [rate])) for rate in WEB_RATES]
    data.append(published(panel, "published", WEB_RATES[0], 3.3))
    text = "Published: 3.3 times below saturation."
    return Chart(title, curves(data, "connections/s asked for", "times Linux", title), text, "web-server")


def _packets(results: Results) -> Chart:
    title = "Figure 6.4: CPU time of the driver domain by packets"
    data = []
    for panel, metric in (("data packets", "data_per_s"), ("data and acknowledgements", "packets_per_s")):
        for size, rates in RECEIVE_MBIT.items():
            cases = [receive_case("xen", size, mbit) for mbit in (*rates, None)]
            by_packets = {round(results.mean(case, metric) / 1000, 1): case for case in cases}
            data += _curve(results, panel, f"{size} B", by_packets, "cpu_idd")
    text = "By all packets the sizes fall on one line; by data packets they part where acknowledgements get fewer."
    return Chart(title, curves(data, "thousand packets/s", "% of a CPU", title), text, "tcp-receive")


def _acks(results: Results) -> Chart:
    title = "Figure 6.5: acknowledgements"
    data = []
    for size, rates in RECEIVE_MBIT.items():
        cases = [receive_case("xen", size, mbit) for mbit in (*rates, None)]
        by_packets = {round(results.mean(case, "data_per_s") / 1000, 1): case for case in cases}
        data += _curve(results, "Xen", f"{size} B", by_packets, "acks_per_data")
    text = "One for every two packets while the receiver keeps up; fewer, by size, when it does not."
    return Chart(title, curves(data, "thousand data packets/s", "per data packet", title), text, "tcp-receive")


def _one_card(results: Results) -> Chart:
    return _cards(results, "Figure 6.7: one card, two CPUs of the driver domain", "one-nic", list(ONE_CARD))


def _two_cards(results: Results) -> Chart:
    return _cards(results, "Figure 6.9: two cards, two CPUs of driver domains", "two-nics", list(TWO_CARDS))


def _cards(results: Results, title: str, experiment: str, names: list[str]) -> Chart:
    cases = {name: f"{experiment}: {name}" for name in names}
    drawn = (("CPU 1", "cpu_1"), ("CPU 2", "cpu_2"), ("guest 1", "cpu_guest1"))
    data = [mark for name, metric in drawn for mark in _curve(results, "CPU time, %", name, cases, metric)]
    data += _curve(results, "sent, Mbit/s", "all guests", cases, "rate_mbit")
    text = "The dissertation draws stars with an axis for each CPU and one for the rate; here each axis is a series."
    chart = curves(data, "interrupts and events", "", title, same_scale=False, joined=False, width=420)
    return Chart(title, chart, text, experiment)


def _builds(results: Results) -> Chart:
    title = "Figure 6.10: kernel builds, time over that of Linux"
    data = [
        Mark("kernel builds", name, n, build_increase(results, n, where))
        for where, name in (("one guest", "n builds in one guest"), ("n guests", "n guests with one build each"))
        for n in BUILDS
    ]
    text = "How much longer than n builds on Linux. The published value for five guests was about 18 %."
    return Chart(title, curves(data, "n", "% longer than Linux", title), text, "interference")


def _misses(results: Results) -> Chart:
    title = "Figure 6.11: cache misses of n guests"
    cases = {n: build_case("n guests", n) for n in BUILDS}
    data = [
        mark
        for level in ("L2", "L3")
        for mark in _curve(results, "n guests", level, cases, f"{level.lower()}_misses_per_turn")
    ]
    text = (
        "The dissertation counts all misses and relates them to Linux. Here only those are known that others cause, "
        "which Linux hardly has: they are shown for each turn on the CPU."
    )
    return Chart(title, curves(data, "n", "lines brought in again, per turn", title), text, "interference")
