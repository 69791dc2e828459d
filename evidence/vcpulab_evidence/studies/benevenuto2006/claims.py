"""The dissertation's claims, numbered as in notes.md, each above its check."""

import itertools
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import correlation

from vcpulab.results.statistics import Difference, number
from vcpulab_evidence.studies.benevenuto2006.cases import (
    BUILDS,
    HOSTS,
    RECEIVE_MBIT,
    WEB_RATES,
    build_case,
    receive_case,
    web_case,
)
from vcpulab_evidence.studies.benevenuto2006.ratios import (
    BELOW_SATURATION,
    RECEIVED,
    build_increase,
    manages,
    receive_ratio,
    saturation,
    slowdown,
    web_ratio,
)
from vcpulab_evidence.studies.claims import Claims, Verdict, cannot_be_tested, decide
from vcpulab_evidence.studies.results import Results

SIZES = tuple(RECEIVE_MBIT)

claim = Claims()


def _above(results: Results, pairs: Iterable[tuple[str, str, str]]) -> list[Difference]:
    """The difference of a metric between two cases, for each (metric, first, second)."""
    return [results.difference(*pair) for pair in pairs]


def _percent_more(results: Results, metric: str, first: str, second: str) -> float:
    return 100 * (results.mean(first, metric) / results.mean(second, metric) - 1)


# ---- receiving ----


@claim(
    "B-1",
    "Receiving costs 3 to 5 times the CPU time of Linux at the same rate, for each size of packets",
    "section 6.1, Figure 6.1",
)
def three_to_five_times(results: Results) -> Verdict:
    least, most = receive_ratio(results, min), receive_ratio(results, max)
    text = f"{least} to {most} times Linux over {len(RECEIVED)} sizes and rates; published 3 to 5"
    return decide(round(least.mean) >= 3 and round(most.mean) <= 5, text)


@claim("B-2", "At the same byte rate smaller packets cost more", "Figure 6.1")
def smaller_packets_cost_more(results: Results) -> Verdict:
    pairs = [
        ("cpu_total", receive_case(host, small, mbit), receive_case(host, large, mbit))
        for host in HOSTS
        for small, large in pairwise(SIZES)
        for mbit in RECEIVE_MBIT[small]
        if mbit in RECEIVE_MBIT[large] and manages(results, host, small, mbit)
    ]
    at = ", ".join(f"{size} B: {number(results.mean(receive_case('xen', size, 200), 'cpu_total'))} %" for size in SIZES)
    text = f"at 200 Mbit/s {at} of a CPU in Xen; {len(pairs)} pairs of sizes at a rate that both manage"
    return decide(True, text, _above(results, pairs))


@claim(
    "B-6",
    "The driver domain's CPU time goes by packets, data and acknowledgements, not by their size",
    "Figures 6.4 and 6.5",
)
def packets_decide(results: Results) -> Verdict:
    cases = [receive_case("xen", size, mbit) for size, mbit in RECEIVED]
    packets, rates, cpu = (
        [results.mean(case, metric) for case in cases] for metric in ("packets_per_s", "rate_mbit", "cpu_idd")
    )
    by_packets, by_bytes = correlation(packets, cpu) ** 2, correlation(rates, cpu) ** 2
    # The same packets per second in two sizes.
    equal = [(receive_case("xen", 500, mbit), receive_case("xen", 1000, 2 * mbit)) for mbit in (100, 200)]
    apart = max(abs(_percent_more(results, "cpu_idd", *pair)) for pair in equal)
    text = (
        f"R² of the IDD's CPU with packets/s {by_packets:.3f}, with Mbit/s {by_bytes:.3f}; "
        f"the same packets/s in 500 and 1000 B: at most {apart:.1f} % apart"
    )
    return decide(by_packets > 0.95 > by_bytes and apart < 5, text)


@claim("B-7", "The driver domain is the bottleneck for packets of 500 and 1000 B", "section 6.2")
def driver_is_bottleneck(results: Results) -> Verdict:
    parts, holds = [], True
    for size in SIZES:
        case = receive_case("xen", size, None)
        idd, guest, rate = (results.mean(case, metric) for metric in ("busy_idd", "busy_guest", "rate_mbit"))
        parts.append(f"{size} B: {rate:.0f} Mbit/s, IDD {idd:.0f} % busy, guest {guest:.0f} %")
        if size < SIZES[-1]:
            holds &= (
                idd > guest and idd > 90 and rate < 0.95 * results.mean(receive_case("linux", size, None), "rate_mbit")
            )
    return decide(holds, "; ".join(parts))


@claim(
    "B-8",
    "The driver domain's CPU time can be predicted from the packet rates of guests",
    "stated as the form of an equation, not fitted",
)
def predictable(results: Results) -> Verdict:
    """A line through the cases of 500 and 1448 B predicts those of 1000 B."""
    fitted = [receive_case("xen", size, mbit) for size, mbit in RECEIVED if size != 1000]
    predicted = [receive_case("xen", size, mbit) for size, mbit in RECEIVED if size == 1000]
    slope, base = _line(
        [results.mean(case, "packets_per_s") for case in fitted], [results.mean(case, "cpu_idd") for case in fitted]
    )
    errors = [
        100 * abs((base + slope * results.mean(case, "packets_per_s")) / results.mean(case, "cpu_idd") - 1)
        for case in predicted
    ]
    worst = max(errors)
    text = f"a line through 500 and 1448 B predicts 1000 B within {worst:.0f} % ({1e4 * slope:.1f} us per packet)"
    return decide(worst < 15, text)


def _line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Slope and intercept by least squares."""
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread if spread else 0.0
    return slope, mean_y - slope * mean_x


# ---- the web server ----


def _limit(results: Results) -> tuple[int, list[int]]:
    """The requested rate with the highest throughput of the guest's web server, and all higher rates."""
    most = max(WEB_RATES, key=lambda rate: results.mean(web_case("xen", rate), "throughput"))
    return most, [rate for rate in WEB_RATES if rate > most]


def _fall_beyond(results: Results, metric: str) -> list[Difference]:
    """The decrease of a metric of the web server's guest from its limit to each higher rate."""
    limit, beyond = _limit(results)
    return _above(results, [(metric, web_case("xen", limit), web_case("xen", rate)) for rate in beyond])


FULL = 90
"""Utilization above which a CPU counts as full at the limit, %: the limit is below the next requested rate."""


@claim(
    "B-3",
    "The web server serves as much as on Linux until the guest's CPU is full; then throughput drops",
    "section 6.1, Figure 6.2; blind then: about 500 connections/s",
)
def equal_until_saturation(results: Results) -> Verdict:
    limit, beyond = _limit(results)
    below = [rate for rate in WEB_RATES if rate <= 0.9 * saturation(results).mean]
    if not below or not beyond:
        return cannot_be_tested("the rates asked for lie all on one side of saturation")
    apart = max(
        abs(_percent_more(results, "throughput", web_case("xen", rate), web_case("linux", rate))) for rate in below
    )
    full = results.mean(web_case("xen", limit), "cpu_guest")
    text = (
        f"within {apart:.1f} % of Linux up to {below[-1]}/s; most {saturation(results)}/s, "
        f"where the guest's CPU is {full:.0f} % busy; "
        f"{number(results.mean(web_case('xen', beyond[-1]), 'throughput'))}/s when {beyond[-1]}/s are asked for"
    )
    return decide(apart < 2 and full > FULL, text, _fall_beyond(results, "throughput"))


@claim("B-4", "Below saturation the web server costs 3.3 times the CPU time of Linux", "section 6.1, Figure 6.3")
def web_costs(results: Results) -> Verdict:
    ratios = [web_ratio(results, [rate]) for rate in BELOW_SATURATION]
    text = ", ".join(f"{ratio} at {rate}/s" for rate, ratio in zip(BELOW_SATURATION, ratios, strict=True))
    return decide(all(abs(ratio.mean / 3.3 - 1) < 0.15 for ratio in ratios), f"{text}; published 3.3")


@claim(
    "B-5",
    "Past saturation less CPU time is used again, as refused connections mean fewer packets",
    "section 6.1, Figure 6.3",
)
def falls_past_saturation(results: Results) -> Verdict:
    limit, beyond = _limit(results)
    if not beyond:
        return cannot_be_tested("no rate beyond saturation was run")
    cpu = ", ".join(
        f"{number(results.mean(web_case('xen', rate), 'cpu_total'))} % at {rate}/s" for rate in (limit, *beyond)
    )
    linux = results.mean(web_case("linux", beyond[-1]), "cpu_total")
    read = " and ".join(
        f"{results.mean(web_case('xen', rate), 'disk_kb'):.1f} KB at {rate}/s" for rate in (limit, beyond[-1])
    )
    text = (
        f"CPU of both: {cpu}; Linux {number(linux)} % at {beyond[-1]}/s; "
        f"a connection takes {read} from the guest's disk"
    )
    return decide(True, text, _fall_beyond(results, "cpu_total"))


# ---- one and two cards ----


@claim("B-9", "By default a second CPU of the driver domain is not used", "section 6.3")
def unused_by_default(results: Results) -> Verdict:
    used = max(results.mean(f"{case}: default", "cpu_2") for case in ("one-nic", "two-nics"))
    return decide(used < 1, f"the second CPU is {used:.2f} % busy")


@claim(
    "B-10",
    "The card's interrupts on the second CPU: both are used, for more CPU time and a little less throughput",
    "Figure 6.7",
)
def two_are_used(results: Results) -> Verdict:
    moved, default = "one-nic: NIC on CPU 2", "one-nic: default"
    used = min(results.mean(moved, metric) for metric in ("cpu_1", "cpu_2"))
    dearer = [("cpu_drivers", moved, default), ("cpu_per_mbit_guest", moved, default), ("rate_mbit", default, moved)]
    text = (
        f"CPUs 1 and 2 {results.mean(moved, 'cpu_1'):.0f} and {results.mean(moved, 'cpu_2'):.0f} % instead of "
        f"{results.mean(default, 'cpu_1'):.0f} and {results.mean(default, 'cpu_2'):.0f} %; "
        f"throughput {_percent_more(results, 'rate_mbit', moved, default):+.1f} %, "
        f"guest's CPU per Mbit {_percent_more(results, 'cpu_per_mbit_guest', moved, default):+.1f} %"
    )
    return decide(used > 10, text, _above(results, dearer))


@claim(
    "B-11",
    "Moving both card and interface changes nothing; moving the interface is like moving the card",
    "section 6.3.1",
)
def other_variants(results: Results) -> Verdict:
    both_moved = abs(_percent_more(results, "rate_mbit", "one-nic: both on CPU 2", "one-nic: default"))
    alike = abs(_percent_more(results, "rate_mbit", "one-nic: VIF on CPU 2", "one-nic: NIC on CPU 2"))
    text = (
        f"both moved: throughput {both_moved:.1f} % from the default; VIF instead of NIC: {alike:.1f} % from NIC moved"
    )
    return decide(both_moved < 1 and alike < 1, text)


@claim(
    "B-12",
    "Two cards and two guests: splitting by pairs of card and interface lowers both throughputs too",
    "Figure 6.9; the author does not know the cause",
)
def splitting_lowers(results: Results) -> Verdict:
    split, default = "two-nics: NIC and VIF pairs split", "two-nics: default"
    lower = _above(results, [(f"rate_mbit@{guest}", default, split) for guest in ("guest1", "guest2")])
    changes = [
        f"{_percent_more(results, f'rate_mbit@{guest}', split, default):+.1f} %" for guest in ("guest1", "guest2")
    ]
    return decide(True, f"throughput of the two guests {' and '.join(changes)}", lower)


@claim(
    "B-13",
    "The network capacity of a driver domain is that of one CPU, even if it has several",
    "summary of B-9 to B-12",
)
def one_cpu_is_all(results: Results) -> Verdict:
    default = {case: results.mean(f"{case}: default", "rate_mbit") for case in ("one-nic", "two-nics")}
    variants = {
        "one-nic": ("NIC on CPU 2", "VIF on CPU 2", "both on CPU 2"),
        "two-nics": ("NIC and VIF pairs split", "routed, split"),
    }
    gain = max(
        100 * (results.mean(f"{case}: {name}", "rate_mbit") / default[case] - 1)
        for case, names in variants.items()
        for name in names
    )
    each = 100 * (results.mean("two-nics: an IDD each", "rate_mbit") / default["two-nics"] - 1)
    text = f"two CPUs give one IDD at most {gain:+.1f} %; an IDD for each card {each:+.0f} %"
    return decide(gain < 2, text)


# ---- interference and profiler ----


@claim("B-14", "Builds in one guest cost a constant factor over Linux", "Figure 6.10")
def constant_in_one_guest(results: Results) -> Verdict:
    increases = [build_increase(results, n, "one guest").mean for n in BUILDS]
    text = "; ".join(f"n = {n}: {increase:+.1f} %" for n, increase in zip(BUILDS, increases, strict=True))
    return decide(max(increases) - min(increases) < 2 and min(increases) > 0, text)


@claim(
    "B-15",
    "Builds in as many guests get slower, relatively, the more there are",
    "Figure 6.10; blind then: about 18 % for five",
)
def slower_with_guests(results: Results) -> Verdict:
    increases = [build_increase(results, n) for n in BUILDS]
    text = "; ".join(f"n = {n}: +{increase} %" for n, increase in zip(BUILDS, increases, strict=True))
    grows = all(a.mean < b.mean for a, b in itertools.pairwise(increases))
    return decide(grows, text)


@claim(
    "B-16",
    "The slowdown follows L3 misses, which begin to level off at five guests; L2 misses rise to two and stay",
    "Figure 6.11",
)
def follows_l3(results: Results) -> Verdict:
    l2, l3 = (
        [results.mean(build_case("n guests", n), f"{level}_misses_per_turn") for n in BUILDS] for level in ("l2", "l3")
    )
    increases = [build_increase(results, n).mean for n in BUILDS]
    steps = [b - a for a, b in itertools.pairwise(l3)]
    l2_stays = l2[1] > 2 * l2[0] and max(l2[1:]) < 1.1 * min(l2[1:])
    follows = correlation(l3, increases)
    text = (
        f"lines that a turn has to bring in again, L2: {', '.join(f'{x:.0f}' for x in l2)}; "
        f"L3: {', '.join(f'{x:.0f}' for x in l3)} (n = 1 to 5); correlation of slowdown and L3 {follows:.3f}"
    )
    return decide(l2_stays and 0 < steps[-1] < max(steps[:-1]) and follows > 0.95, text)


@claim("B-17", "The profiler costs 2 % at 10^6 cycles and 0.25 % at 10^7", "Figure 5.2")
def profiler_costs(results: Results) -> Verdict:
    often, seldom = slowdown(results, 10**6), slowdown(results, 10**7)
    text = f"{often} % at 10^6 cycles, {seldom} % at 10^7; published 2 % and 0.25 %"
    ratio = often.mean / seldom.mean if seldom.mean else 0.0
    return decide(abs(often.mean / 2 - 1) < 0.25 and abs(seldom.mean / 0.25 - 1) < 0.25 and 5 < ratio < 15, text)


@claim(
    "B-18",
    "Where the network is the bottleneck and not the CPU, Xen receives as much as Linux",
    "the author's explanation of earlier reports",
)
def slow_network_hides(results: Results) -> Verdict:
    fast = max(RECEIVE_MBIT[1448])
    slow, quick = ((receive_case("xen", 1448, mbit), receive_case("linux", 1448, mbit)) for mbit in (100, fast))
    served = min(results.mean(pair[0], "rate_mbit") / results.mean(pair[1], "rate_mbit") for pair in (slow, quick))
    full = max(results.mean(slow[0], metric) for metric in ("busy_idd", "busy_guest"))
    small = results.mean(receive_case("xen", 500, None), "rate_mbit") / results.mean(
        receive_case("linux", 500, None), "rate_mbit"
    )
    text = (
        f"at 100 Mbit/s Xen receives {100 * served:.0f} % of what Linux does, its busiest CPU {full:.0f} % busy; "
        f"at full speed with 500 B {100 * small:.0f} %"
    )
    return decide(served > 0.98 and full < 50 and small < 0.9, text)
