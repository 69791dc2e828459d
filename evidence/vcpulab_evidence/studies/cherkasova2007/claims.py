"""The claims of the paper, by their numbers in the notes, each above its check."""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import StatisticsError, correlation

from vcpulab.results.statistics import Difference, Interval, kendall_tau, number
from vcpulab_evidence.studies.cherkasova2007 import alert
from vcpulab_evidence.studies.cherkasova2007.cases import (
    ALERT_SCHEDULERS,
    ALERT_TARGETS,
    ALLOWANCES_MS,
    COMPARED_NWC,
    COMPARED_WC,
    PERIODS_MS,
    RATIOS,
    bvt_kind,
    compared_case,
    free_switches_case,
    guests_case,
    loops_case,
    sedf_kind,
    web_case,
)
from vcpulab_evidence.studies.claims import Claims, Verdict, cannot_be_tested, decide
from vcpulab_evidence.studies.results import Results

X = "web_throughput"
DOM0, DOM1 = "cpu_util@dom0", "cpu_util@dom1"
EXECUTIONS, IO = "ex_per_sec@dom0", "io_count_per_ex@dom0"

BVT = [bvt_kind(allowance) for allowance in reversed(ALLOWANCES_MS)]
"""Settings from the largest to the smallest context-switch allowance."""
SEDF_WC, SEDF_NWC = ([sedf_kind(mode, period) for period in PERIODS_MS] for mode in ("wc", "nwc"))
"""Settings from the shortest to the longest period."""
GROUPS = {"BVT": BVT, "SEDF WC": SEDF_WC, "SEDF NWC": SEDF_NWC}
"""Settings of each scheduler, from the highest claimed throughput to the lowest."""

claim = Claims()


@claim("C-1", "Web throughput depends strongly on the weight of Dom0, under BVT, SEDF WC and SEDF NWC", "Figure 1 only")
def weight_matters(results: Results) -> Verdict:
    spreads, gaps = {}, []
    for kind in (kind for group in GROUPS.values() for kind in group):
        cases = sorted((web_case(kind, ratio) for ratio in RATIOS), key=lambda case: results.mean(case, X))
        spreads[kind] = 100 * (results.mean(cases[-1], X) / results.mean(cases[0], X) - 1)
        gaps.append(results.difference(X, cases[-1], cases[0]))
    evidence = ", ".join(f"{kind.replace(' xen3.0.2', '')}: {spread:.0f} %" for kind, spread in spreads.items())
    return decide(min(spreads.values()) > 10, f"highest over lowest: {evidence}", gaps)


@claim("C-2", "At equal weights BVT's throughput rises with C", "consistent: 934 > 817 > 510 (Table 1)")
def rises_with_allowance(results: Results) -> Verdict:
    return _falls(results, X, [web_case(kind) for kind in BVT], "req/s")


def _falls(results: Results, metric: str, cases: Sequence[str], unit: str) -> Verdict:
    """The verdict on a metric that is claimed to fall from each case to the next."""
    steps = _steps(results, metric, cases)
    means = [number(results.mean(case, metric)) for case in cases]
    evidence = (" > " if all(step.interval.mean > 0 for step in steps) else " , ").join(means)
    return decide(True, f"{evidence} {unit}", steps)


def _steps(results: Results, metric: str, cases: Sequence[str]) -> list[Difference]:
    """The decrease of a metric from each case to the next."""
    return [results.difference(metric, case, following) for case, following in pairwise(cases)]


@claim(
    "C-3",
    "At equal weights C = 1 ms gives 85 % less than C = 50 ms",
    "contradicted: Table 1 gives 45.4 % less",
    contradicted=True,
)
def eighty_five_percent(results: Results) -> Verdict:
    """The literal claim; Table 1 gives 45 %."""
    at_1_ms, at_50_ms = (web_case(bvt_kind(allowance)) for allowance in (1, 50))
    lost = results.combine(lambda at_1_ms, at_50_ms: 100 * (1 - at_1_ms / at_50_ms), (at_1_ms, X), (at_50_ms, X))
    return decide(80 < lost.mean < 90, f"{lost} % lower; Table 1: 45.4 %")


@claim(
    "C-4",
    "SEDF WC gives almost 40 % more with a period of 10 ms than with 1000 ms",
    "consistent: 39.5 % (Table 1)",
)
def short_period(results: Results) -> Verdict:
    gain, gap = _gain_of_the_shortest(results, SEDF_WC)
    return decide(30 < gain.mean < 50, f"{gain} % more; published 39.5", [gap])


@claim(
    "C-5", "SEDF NWC gives more with the short period as well", "blind then; published: about 50 %, by Table 1 46.8 %"
)
def short_period_without_extra_time(results: Results) -> Verdict:
    gain, gap = _gain_of_the_shortest(results, SEDF_NWC)
    return decide(True, f"{gain} % more", [gap])


def _gain_of_the_shortest(results: Results, kinds: Sequence[str]) -> tuple[Interval, Difference]:
    """The gain of the shortest period over the longest: in %, and as a difference."""
    first, last = web_case(kinds[0]), web_case(kinds[-1])
    gain = results.combine(lambda a, b: 100 * (a / b - 1), (first, X), (last, X))
    return gain, results.difference(X, first, last)


@claim(
    "C-6",
    "For ratios of 0.5 to 4 Dom0 uses 33 to 45 % under BVT and SEDF WC, although throughput moves a lot",
    "Figure 2; Table 1 lies within",
)
def narrow_dom0(results: Results) -> Verdict:
    """Two points are allowed beyond the range, which was read off a figure."""
    cases = [web_case(kind, ratio) for kind in BVT + SEDF_WC for ratio in RATIOS if ratio >= 0.5]
    used, served = ([results.mean(case, metric) for case in cases] for metric in (DOM0, X))
    evidence = f"Dom0 {min(used):.1f} to {max(used):.1f} %, throughput {min(served):.0f} to {max(served):.0f} req/s"
    return decide(min(used) >= 31 and max(used) <= 47 and max(served) / min(served) > 1.5, evidence)


@claim(
    "C-7",
    "A smaller C or a longer period (WC): Dom0 uses a little more, Dom1 a little less, throughput falls a lot",
    "holds for BVT; under SEDF WC Dom1 stays at 59 % from 10 to 100 ms",
)
def little_and_a_lot(results: Results) -> Verdict:
    a_lot, parts, gaps = True, [], []
    for group in (BVT, SEDF_WC):
        first, last = web_case(group[0]), web_case(group[-1])
        dom0, dom1 = (results.difference(metric, last, first) for metric in (DOM0, DOM1))
        lost = results.combine(lambda a, b: 100 * (1 - b / a), (first, X), (last, X))
        a_lot &= lost.mean > 2 * max(abs(dom0.interval.mean), abs(dom1.interval.mean))
        gaps += [dom0, results.difference(DOM1, first, last)]
        parts.append(f"{group[0]} to {group[-1]}: Dom0 {dom0.interval}, Dom1 {dom1.interval} points, -{lost} % req/s")
    return decide(a_lot, "; ".join(parts).replace(" xen3.0.2", ""), gaps)


@claim(
    "C-8",
    "What happens to Dom1's CPU time and to throughput under SEDF NWC as the period grows",
    "blind then; published: Dom1 at 50 % for all, 615 → 504 → 419 req/s",
)
def nwc_period(results: Results) -> Verdict:
    dom1, served = ([str(results.interval(web_case(kind), metric)) for kind in SEDF_NWC] for metric in (DOM1, X))
    evidence = f"simulated, 10 to 1000 ms: Dom1 {' → '.join(dom1)} %, {' → '.join(served)} req/s"
    return cannot_be_tested(f"what is claimed was not known when this was made; {evidence}")


@claim(
    "C-9",
    "More executions of Dom0 go with fewer I/Os in each and with less throughput",
    "consistent in the rows known then: x5.7, /10.5, -45 %",
)
def executions_and_batches(results: Results) -> Verdict:
    right, parts = True, []
    for name, group in GROUPS.items():
        executions, io, served = ([results.mean(web_case(kind), m) for kind in group] for m in (EXECUTIONS, IO, X))
        taus = [kendall_tau(executions, io), kendall_tau(executions, served)]
        right &= all(tau is not None and tau < -0.8 for tau in taus)
        parts.append(
            f"{name}: executions x{executions[-1] / executions[0]:.1f}, I/O each /{io[0] / io[-1]:.1f}, "
            f"throughput {100 * (served[-1] / served[0] - 1):+.0f} %"
        )
    cases = [web_case(kind) for group in GROUPS.values() for kind in group]
    each = [results.mean(case, "io_per_sec@dom0") / results.mean(case, X) for case in cases]
    return decide(right, f"{'; '.join(parts)}; I/O per request {min(each):.1f} to {max(each):.1f}")


@claim(
    "C-10",
    "Because Dom0 then preempts the guest at each interrupt instead of handling I/O in batches",
    "argued, not measured",
)
def cold_switches(results: Results) -> Verdict:
    """With switches that cost nothing, C should hardly matter."""
    usual, free = (
        results.combine(lambda a, b: 100 * (a / b - 1), *((case, X) for case in ends))
        for ends in ([web_case(bvt_kind(c)) for c in (50, 1)], [free_switches_case(c) for c in (50, 1)])
    )
    served = results.mean(free_switches_case(50), X)
    evidence = f"C = 50 ms gives {usual} % more than 1 ms; with free switches {free} % ({served:.0f} req/s)"
    return decide(abs(free.mean) < usual.mean / 2, evidence)


@claim(
    "C-11",
    "A longer SEDF period is like a smaller C: Dom0 is scheduled more often",
    "Table 2; blind then: 2478, 5124, 6859 executions/s (WC), 451, 4635, 7292 (NWC)",
)
def periods_and_executions(results: Results) -> Verdict:
    cases = [web_case(kind) for kind in reversed(SEDF_WC)]
    return _falls(results, EXECUTIONS, cases, "executions/s of Dom0 (WC)")


@claim(
    "C-12",
    "More CPU time for Dom0 does not mean more throughput",
    "consistent within each scheduler (Table 1)",
)
def more_is_not_more(results: Results) -> Verdict:
    correlations = {}
    for name, group in GROUPS.items():
        used, served = ([results.mean(web_case(kind), metric) for kind in group] for metric in (DOM0, X))
        try:
            correlations[name] = correlation(used, served)
        except StatisticsError:  # one of them does not vary
            correlations[name] = math.nan
    evidence = ", ".join(f"{name}: {r:.2f}" for name, r in correlations.items())
    return decide(max(correlations.values()) < 0, f"correlation of Dom0's CPU time and throughput: {evidence}")


@claim(
    "C-13",
    "The same shares under different schedulers give different performance",
    "Figures 4 and 5, without numbers",
)
def same_shares(results: Results) -> Verdict:
    """At equal weights, web server and iperf, Figures 4 and 5."""
    right, parts, gaps = True, [], []
    for workload, metric in (("web", X), ("iperf", "throughput")):
        for mode, kinds in (("WC", COMPARED_WC), ("NWC", COMPARED_NWC)):
            cases = {kind: compared_case(workload, kind) for kind in kinds}
            ranked = sorted(kinds, key=lambda kind, at=cases: results.mean(at[kind], metric))
            low, high = cases[ranked[0]], cases[ranked[-1]]
            ratio = results.mean(high, metric) / results.mean(low, metric)
            # More than the 2 % to which means are known.
            right &= ratio > 1.02 or mode == "NWC"
            if mode == "WC":
                gaps.append(results.difference(metric, high, low))
            parts.append(f"{workload} {mode}: {ranked[-1]} {100 * (ratio - 1):.0f} % above {ranked[0]}")
    return decide(right, "; ".join(parts), gaps)


@claim("C-14", "Not conserving work performs clearly worse at similar shares", "Table 1; NWC blind then")
def conserving_is_better(results: Results) -> Verdict:
    pairs = [(web_case(wc), web_case(nwc)) for wc, nwc in zip(SEDF_WC, SEDF_NWC, strict=True)]
    evidence = ", ".join(
        f"{p} ms: {results.mean(wc, X):.0f} and {results.mean(nwc, X):.0f}"
        for p, (wc, nwc) in zip(PERIODS_MS, pairs, strict=True)
    )
    return decide(True, f"WC and NWC at {evidence} req/s", [results.difference(X, *pair) for pair in pairs])


@claim(
    "C-15",
    "Applications with much I/O react strongly to Dom0's share, and it is harder with several different VMs",
    "stated",
)
def several_guests(results: Results) -> Verdict:
    """Whether one weight of Dom0 suits three different guests."""
    alone = {
        "web": [results.mean(web_case("bvt C=5", ratio), X) for ratio in RATIOS],
        "iperf": [results.mean(compared_case("iperf", "bvt", ratio), "throughput") for ratio in RATIOS],
    }
    spread = {name: 100 * (max(values) / min(values) - 1) for name, values in alone.items()}
    shares = {name: [results.mean(guests_case(ratio), name) for ratio in RATIOS] for name in ("web", "iperf", "disk")}
    best = max(min(values[i] / max(values) for values in shares.values()) for i in range(len(RATIOS)))
    reacts = ", ".join(f"{name} {value:.0f} %" for name, value in spread.items())
    evidence = (
        f"highest over lowest of five weights: {reacts}; of three guests at the best weight one gets {100 * best:.0f} %"
    )
    return decide(min(spread.values()) > 20 and best < 0.95, f"{evidence} of what it gets at its own best")


@claim(
    "C-16",
    "SEDF's allocation errors are small and alike for all targets; Credit's are much larger, most below 30 %",
    "Figure 6",
)
def small_and_similar(results: Results) -> Verdict:
    largest = {
        scheduler: [max(map(abs, alert.errors(results, scheduler, target))) for target in ALERT_TARGETS]
        for scheduler in (alert.SEDF, alert.CREDIT)
    }
    small = [e for e, target in zip(largest[alert.CREDIT], ALERT_TARGETS, strict=True) if target < 30]
    rest = [e for e, target in zip(largest[alert.CREDIT], ALERT_TARGETS, strict=True) if target >= 30]
    evidence = (
        f"largest error: SEDF {max(largest[alert.SEDF]):.1f} %; Credit {min(small):.0f} to {max(small):.0f} % "
        f"below 30 %, {min(rest):.1f} to {max(rest):.1f} % from there on"
    )
    return decide(
        max(largest[alert.SEDF]) < 10 and min(small) > max(rest) and min(small) > max(largest[alert.SEDF]), evidence
    )


@claim(
    "C-17",
    "10 % of Credit's errors are at or below -9.9 %, 10 % above +36.3 %; hardly any of SEDF's",
    "0.03 % of SEDF's 3240 points is one",
)
def tails(results: Results) -> Verdict:
    """Both tails of Credit's within a factor of two, and none of SEDF's."""
    credit, sedf = (alert.all_errors(results, scheduler) for scheduler in (alert.CREDIT, alert.SEDF))
    low, high = alert.at_or_below(credit, 10), alert.at_or_above(credit, 10)
    none = alert.share_below(sedf, -9.9) <= 0.1 and alert.share_above(sedf, 36.3) == 0
    evidence = "; ".join(alert.tails(results, scheduler) for scheduler in ALERT_SCHEDULERS)
    return decide(none and -20 < low < -5 and 18 < high < 73, f"{evidence}; published: -9.9, +36.3, -100 to 370 %")


@claim(
    "C-18",
    "Credit gives too much more often than too little, SEDF too little",
    "consistent only with the sign of the figures, not of the formula (C-I4)",
)
def too_much(results: Results) -> Verdict:
    """With the sign of the figures."""
    shares = {}
    for scheduler in (alert.SEDF, alert.CREDIT):
        ascending = alert.all_errors(results, scheduler)
        shares[scheduler] = alert.share_above(ascending, 0.01), alert.share_below(ascending, -0.01)
    (sedf_more, sedf_less), (more, less) = shares[alert.SEDF], shares[alert.CREDIT]
    evidence = (
        f"too much, too little: Credit {more:.0f}, {less:.0f} % of points; SEDF {sedf_more:.2f}, {sedf_less:.2f} % "
        "(with the sign of the authors' formula it would be the other way round)"
    )
    return decide(more > less and sedf_less > sedf_more, evidence)


@claim(
    "C-19",
    "Over 3 minutes both are close, but Credit stays clearly worse for targets of 1 to 30 %",
    "Figure 8",
)
def three_minutes(results: Results) -> Verdict:
    long = {
        scheduler: [abs(alert.long_error(results, scheduler, target)) for target in ALERT_TARGETS]
        for scheduler in (alert.SEDF, alert.CREDIT)
    }
    worse = alert.worse_than_sedf(results)
    rest = [e for e, target in zip(long[alert.CREDIT], ALERT_TARGETS, strict=True) if target > 30]
    evidence = (
        f"SEDF within {max(long[alert.SEDF]):.2f} %; Credit more than a point worse at targets of "
        f"{', '.join(map(str, worse))} %, within {max(rest):.2f} % above 30 %"
    )
    return decide(len(worse) >= 5 and max(worse) <= 30 and max(rest) < 1, evidence)


@claim("C-20", "BVT's allocation error never exceeds C", "design statement")
def within_allowance(results: Results) -> Verdict:
    """In the generation of the study."""
    over: dict[str, float] = {}
    equal: list[float] = []
    for generation in ("xen3.0", "xen2.0"):
        for allowance in ALLOWANCES_MS:
            for ratio in RATIOS:
                error = results.mean(loops_case(generation, allowance, ratio), "error_ms") / allowance
                over[generation] = max(over.get(generation, 0.0), error)
                if generation == "xen3.0" and ratio == 1:
                    equal.append(error)
    evidence = (
        f"largest error over C: {max(equal):.1f} at equal weights; at others {over['xen2.0']:.1f} in xen2.0, but "
        f"{over['xen3.0']:.0f} after 2 s in xen3.0, which charges a vCPU that goes on running again and again"
    )
    return decide(over["xen3.0"] <= 1, evidence)


@claim("C-21", "Credit never leaves a CPU idle while a vCPU is runnable; SEDF can", "design statement")
def never_idle(results: Results) -> Verdict:
    idle = {case: results.mean(case, "idle_while_waiting") for case in results.matching("smp: ")}
    mean = {name: [v for case, v in idle.items() if f" {name} " in case] for name in ("credit", "sedf")}
    if not all(mean.values()):
        return cannot_be_tested("the experiment was not run")
    evidence = ", ".join(f"{case.removeprefix('smp: ')}: {value:.0f} %" for case, value in idle.items())
    return decide(
        max(mean["credit"]) == 0 < min(mean["sedf"]),
        f"time that one of two CPUs is idle while a vCPU waits: {evidence}",
    )


@claim(
    "C-22",
    "A workload manager that sets shares anew every 5 s or so needs errors of 1 to 2 %",
    "requirement, not tested",
)
def controller(results: Results) -> Verdict:
    """The claim is a requirement; the check counts how often it would be met."""
    shares = []
    for scheduler in (alert.SEDF, alert.CREDIT):
        ascending = alert.all_errors(results, scheduler, seconds=5)
        within = 100 - alert.share_above(ascending, 2) - alert.share_below(ascending, -2)
        shares.append(f"{' '.join(scheduler)} {within:.0f} %")
    reason = "a requirement of a controller that the authors do not describe"
    return cannot_be_tested(f"{reason}; errors over 5 s are within 2 % in: {', '.join(shares)} of windows")
