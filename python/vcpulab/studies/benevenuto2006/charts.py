"""The dissertation's figures, drawn again. None of its points can be read off; what its text says of them is marked."""

from vcpulab.studies.benevenuto2006.cases import (
    BUILDS,
    ONE_CARD,
    PERIODS_CYCLES,
    RECEIVE_MBIT,
    TWO_CARDS,
    WEB_RATES,
    build_case,
    receive_case,
    web_case,
)
from vcpulab.studies.benevenuto2006.estimates import build_increase, receive_ratio_at, slowdown, web_ratio
from vcpulab.studies.charts import Mark, curves, marks, published
from vcpulab.studies.results import Missing, Results
from vcpulab.studies.study import Chart


def charts(results: Results) -> list[Chart]:
    """All of them, in the dissertation's order; those of experiments that were not run are left out."""
    drawn = [
        draw(results)
        for draw in (_profiler, _receive, _ratio, _web, _web_cpu, _packets, _acks, _cards, _builds, _misses)
    ]
    return [chart for chart, data in drawn if data]


def _chart(
    data: list[Mark],
    x: str,
    y: str,
    title: str,
    *,
    text: str,
    experiment: str,
    same_scale: bool = True,
    joined: bool = True,
) -> tuple[Chart, list[Mark]]:
    return Chart(title, curves(data, x, y, title, same_scale=same_scale, joined=joined), text, experiment), data


def _received(results: Results, panel: str, hosts: tuple[str, ...], figure: str) -> list[Mark]:
    return [
        mark
        for host in hosts
        for size, rates in RECEIVE_MBIT.items()
        for mark in marks(
            results,
            panel,
            f"{'Xen' if host == 'xen' else 'Linux'}, {size} B",
            {mbit: receive_case(host, size, mbit) for mbit in rates},
            figure,
        )
    ]


def _profiler(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 5.2: what the profiler costs"
    data = [
        published("kernel build", "published", cycles / 1e6, value) for cycles, value in ((10**6, 2.0), (10**7, 0.25))
    ]
    try:
        data += [Mark("kernel build", "Xenoprof", cycles / 1e6, slowdown(results, cycles)) for cycles in PERIODS_CYCLES]
    except Missing:
        data = []
    text = "How much longer a build takes with samples so far apart. The cost of a sample is fitted on the two points."
    return _chart(
        data, "million cycles between samples", "extra time, %", title, text=text, experiment="profiler-overhead"
    )


def _receive(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.1: CPU time to receive over TCP"
    data = _received(results, "driver domain and guest, or Linux", ("xen", "linux"), "cpu_total")
    return _chart(
        data, "Mbit/s", "% of a CPU", title, text="Both CPUs of Xen together; Linux on one.", experiment="tcp-receive"
    )


def _ratio(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.1, as a ratio: CPU time in Xen over that of Linux"
    data = []
    for size, rates in RECEIVE_MBIT.items():
        for mbit in rates:
            try:
                data.append(Mark("TCP receive", f"{size} B", mbit, receive_ratio_at(results, size, mbit)))
            except Missing:
                continue
    if data:
        data += [published("TCP receive", "least and greatest published", 450, value) for value in (3.0, 5.0)]
    text = "Published: 3 to 5 times, for all sizes and rates; a range, without a rate to go with its ends."
    return _chart(data, "Mbit/s", "times Linux", title, text=text, experiment="tcp-receive")


def _web(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.2: throughput of the web server"
    data = [
        mark
        for host, name in (("xen", "Xen"), ("linux", "Linux"))
        for mark in marks(results, "web server", name, {rate: web_case(host, rate) for rate in WEB_RATES}, "throughput")
    ]
    text = "The same up to saturation of the guest's CPU, then a decline. Where that is, is not public."
    return _chart(
        data,
        "connections asked for per second",
        "connections served per second",
        title,
        text=text,
        experiment="web-server",
    )


def _web_cpu(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.3: CPU time of the web server"
    curves_of = (
        ("Linux", "linux", "cpu_total"),
        ("guest", "xen", "cpu_guest"),
        ("driver domain", "xen", "cpu_idd"),
        ("guest and driver domain", "xen", "cpu_total"),
    )
    data = [
        mark
        for name, host, figure in curves_of
        for mark in marks(results, "CPU time", name, {rate: web_case(host, rate) for rate in WEB_RATES}, figure)
    ]
    for rate in WEB_RATES if data else ():
        try:
            data.append(Mark("times Linux", "Xen over Linux", rate, web_ratio(results, [rate])))
        except Missing:
            continue
    if data:
        data.append(published("times Linux", "published", WEB_RATES[0], 3.3))
    text = "Published: 3.3 times Linux below saturation. Beyond it the dissertation's sum falls; here it stays (B-5)."
    return _chart(
        data,
        "connections asked for per second",
        "% of a CPU",
        title,
        text=text,
        experiment="web-server",
        same_scale=False,
    )


def _packets(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.4: CPU time of the driver domain by packets"
    data = []
    for size, rates in RECEIVE_MBIT.items():
        for mbit in rates:
            try:
                case = receive_case("xen", size, mbit)
                for panel, figure in (("data packets", "data_per_s"), ("data and acknowledgements", "packets_per_s")):
                    per_s = results.mean(case, figure) / 1000
                    data.append(Mark(panel, f"{size} B", round(per_s, 1), results.interval(case, "cpu_idd")))
            except Missing:
                continue
    text = "By all packets the sizes fall on one line; by data packets they part where acknowledgements get fewer."
    return _chart(data, "thousand packets per second", "% of a CPU", title, text=text, experiment="tcp-receive")


def _acks(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.5: acknowledgements"
    data = []
    for size, rates in RECEIVE_MBIT.items():
        for mbit in (*rates, None):
            try:
                case = receive_case("xen", size, mbit)
                per_s = round(results.mean(case, "data_per_s") / 1000, 1)
                data.append(Mark("Xen", f"{size} B", per_s, results.interval(case, "acks_per_data")))
            except Missing:
                continue
    text = "One for every two packets while the guest keeps up; fewer, by size, when it does not."
    return _chart(
        data,
        "thousand data packets per second",
        "acknowledgements per data packet",
        title,
        text=text,
        experiment="tcp-receive",
    )


def _cards(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figures 6.7 and 6.9: one and two cards, one and two CPUs of the driver domain"
    figures = (("CPU 1", "cpu_1"), ("CPU 2", "cpu_2"), ("guest", "cpu_guest1"))
    data = []
    for experiment, names in (("one-nic", ONE_CARD), ("two-nics", TWO_CARDS)):
        cases: dict[float | str, str] = {name: f"{experiment}: {name}" for name in names}
        number = "one card" if experiment == "one-nic" else "two cards"
        data += [
            mark for name, figure in figures for mark in marks(results, f"CPU time, {number}, %", name, cases, figure)
        ]
        data += marks(results, f"sent, {number}, Mbit/s", "all guests", cases, "rate_mbit")
    text = "The dissertation draws these as stars with four axes; here each axis is a series."
    return _chart(data, "", "", title, text=text, experiment="one-nic", same_scale=False, joined=False)


def _builds(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.10: kernel builds, time over that of Linux"
    data = []
    for where, name in (("one guest", "n builds in one guest"), ("n guests", "n guests with one build each")):
        for n in BUILDS:
            try:
                data.append(Mark("time", name, n, build_increase(results, n, where)))
            except Missing:
                continue
    text = "How much longer than n builds on Linux. The published value for five guests is not public."
    return _chart(data, "n", "% longer than Linux", title, text=text, experiment="interference")


def _misses(results: Results) -> tuple[Chart, list[Mark]]:
    title = "Figure 6.11: cache misses of n guests"
    data = [
        mark
        for level in ("L2", "L3")
        for mark in marks(
            results,
            "lines brought in again at a turn",
            level,
            {n: build_case("n guests", n) for n in BUILDS},
            f"{level.lower()}_misses_per_turn",
        )
    ]
    text = (
        "The dissertation counts all misses and relates them to Linux; here only those are known that others cause, "
        "which Linux hardly has: so they are shown for each turn on the CPU."
    )
    return _chart(data, "n", "cache lines", title, text=text, experiment="interference")
