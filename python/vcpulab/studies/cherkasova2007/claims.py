"""The claims of the paper, by their numbers in the notes, as checks."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from vcpulab.results.figures import Interval, number
from vcpulab.results.statistics import holm, kendall_tau
from vcpulab.studies.cherkasova2007 import alert
from vcpulab.studies.cherkasova2007.cases import (
    ALERT_SCHEDULERS,
    ALERT_TARGETS,
    ALLOWANCES_MS,
    COMPARED_NWC,
    COMPARED_WC,
    PERIODS_MS,
    RATIOS,
)
from vcpulab.studies.results import Results
from vcpulab.studies.study import Claim, Outcome, Verdict

X = "web_throughput"
DOM0, DOM1 = "cpu_util@dom0", "cpu_util@dom1"
EXECUTIONS, IO = "ex_per_sec@dom0", "io_count_per_ex@dom0"
SIGNIFICANT = 0.05


def web(kind: str, ratio: float = 1.0) -> str:
    """A case of the weight sweep."""
    return f"dom0-weight-sweep: {kind} {ratio:g}"


def bvt() -> list[str]:
    """BVT from the largest to the smallest context-switch allowance."""
    return [f"bvt C={allowance}" for allowance in reversed(ALLOWANCES_MS)]


def sedf(mode: str) -> list[str]:
    """SEDF from the shortest to the longest period, in the generation that the notes argue for."""
    return [f"sedf-{mode} xen3.0.2 P={period}" for period in PERIODS_MS]


GROUPS = {"BVT": bvt(), "SEDF WC": sedf("wc"), "SEDF NWC": sedf("nwc")}
"""Each from the setting with the highest throughput that is claimed to the lowest."""


def decide(right: bool, figures: str, p: float | None = None) -> Verdict:
    """Holds, fails, or is right but may be so by chance."""
    if right and p is not None and p >= SIGNIFICANT:
        return Verdict(Outcome.UNTESTABLE, f"{figures}; too few replications to exclude chance", p)
    return Verdict(Outcome.HOLDS if right else Outcome.FAILS, figures, p)


def falling(results: Results, figure: str, cases: Sequence[str]) -> tuple[bool, float | None]:
    """Does a figure fall from each case to the next, and how likely is that by chance (Holm, the least sure step)?"""
    steps = [results.difference(figure, a, b) for a, b in pairwise(cases)]
    known = [step.p for step in steps if step.p is not None]
    return all(step.interval.mean > 0 for step in steps), max(holm(known)) if len(known) == len(steps) else None


def weight_matters(results: Results) -> Verdict:
    """C-1."""
    spreads, ps = {}, []
    for kind in (kind for group in GROUPS.values() for kind in group):
        cases = sorted((web(kind, ratio) for ratio in RATIOS), key=lambda case: results.mean(case, X))
        spreads[kind] = 100 * (results.mean(cases[-1], X) / results.mean(cases[0], X) - 1)
        ps.append(results.difference(X, cases[-1], cases[0]).p)
    known = [p for p in ps if p is not None]
    said = ", ".join(f"{kind.replace(' xen3.0.2', '')}: {spread:.0f} %" for kind, spread in spreads.items())
    return decide(min(spreads.values()) > 10, f"highest over lowest: {said}", max(holm(known)) if known else None)


def rises_with_allowance(results: Results) -> Verdict:
    """C-2."""
    cases = [web(kind) for kind in bvt()]
    return decide_order(results, X, cases, "req/s")


def decide_order(results: Results, figure: str, cases: Sequence[str], unit: str) -> Verdict:
    """Does a figure fall from case to case?"""
    right, p = falling(results, figure, cases)
    said = " > ".join(number(results.mean(case, figure)) for case in cases)
    return decide(right, f"{said if right else said.replace('>', ',')} {unit}", p)


def eighty_five_percent(results: Results) -> Verdict:
    """C-3: taken at its word; Table 1 gives 45 %."""
    lost = results.combine(lambda one, fifty: 100 * (1 - one / fifty), (web("bvt C=1"), X), (web("bvt C=50"), X))
    return decide(80 < lost.mean < 90, f"{lost} % lower; Table 1: 45.4 %")


def short_period(mode: str, low: float, high: float, published: str) -> Callable[[Results], Verdict]:
    """C-4 and C-5: how much more the shortest period gives than the longest."""

    def check(results: Results) -> Verdict:
        first, *_, last = (web(kind) for kind in sedf(mode))
        gain = results.combine(lambda a, b: 100 * (a / b - 1), (first, X), (last, X))
        return decide(low < gain.mean < high, f"{gain} % more{published}", results.difference(X, first, last).p)

    return check


def narrow_dom0(results: Results) -> Verdict:
    """C-6: two points are allowed beyond the range, which was read off a figure."""
    cases = [web(kind, ratio) for kind in bvt() + sedf("wc") for ratio in RATIOS if ratio >= 0.5]
    used, served = ([results.mean(case, figure) for case in cases] for figure in (DOM0, X))
    said = f"Dom0 {min(used):.1f} to {max(used):.1f} %, throughput {min(served):.0f} to {max(served):.0f} req/s"
    return decide(min(used) >= 31 and max(used) <= 47 and max(served) / min(served) > 1.5, said)


def little_and_a_lot(results: Results) -> Verdict:
    """C-7."""
    right, parts, ps = True, [], []
    for group in (bvt(), sedf("wc")):
        first, last = web(group[0]), web(group[-1])
        dom0, dom1 = (results.difference(figure, last, first) for figure in (DOM0, DOM1))
        lost = results.combine(lambda a, b: 100 * (1 - b / a), (first, X), (last, X))
        little = max(abs(dom0.interval.mean), abs(dom1.interval.mean))
        right &= dom0.interval.mean > 0 > dom1.interval.mean and lost.mean > 2 * little
        ps += [p for p in (dom0.p, dom1.p) if p is not None]
        parts.append(f"{group[0]} to {group[-1]}: Dom0 {dom0.interval}, Dom1 {dom1.interval} points, -{lost} % req/s")
    return decide(right, "; ".join(parts).replace(" xen3.0.2", ""), max(holm(ps)) if ps else None)


def nwc_period(results: Results) -> Verdict:
    """C-8: what is claimed is not public."""
    dom1, served = ([str(results.interval(web(kind), figure)) for kind in sedf("nwc")] for figure in (DOM1, X))
    said = f"simulated, 10 to 1000 ms: Dom1 {' → '.join(dom1)} %, {' → '.join(served)} req/s"
    return Verdict(Outcome.UNTESTABLE, f"what is claimed is not public; {said}")


def executions_and_batches(results: Results) -> Verdict:
    """C-9."""
    right, parts = True, []
    for name, group in GROUPS.items():
        executions, io, served = ([results.mean(web(kind), f) for kind in group] for f in (EXECUTIONS, IO, X))
        taus = [kendall_tau(executions, io), kendall_tau(executions, served)]
        right &= all(tau is not None and tau < -0.8 for tau in taus)
        parts.append(
            f"{name}: executions x{executions[-1] / executions[0]:.1f}, I/O each /{io[0] / io[-1]:.1f}, "
            f"throughput {100 * (served[-1] / served[0] - 1):+.0f} %"
        )
    each = [results.mean(web(k), "io_per_sec@dom0") / results.mean(web(k), X) for g in GROUPS.values() for k in g]
    return decide(right, f"{'; '.join(parts)}; I/O per request {min(each):.1f} to {max(each):.1f}")


def cold_switches(results: Results) -> Verdict:
    """C-10: with switches that cost nothing, C should hardly matter."""

    def effect(prefix: str) -> tuple[list[float], Interval]:
        ends = [f"{prefix}bvt C={c} 1" for c in (50, 1)]
        return [results.mean(case, X) for case in ends], results.combine(
            lambda a, b: 100 * (a / b - 1), *((case, X) for case in ends)
        )

    (_, usual), (free_ends, free) = effect("dom0-weight-sweep: "), effect("switch-cost: free switches, ")
    said = f"C = 50 ms gives {usual} % more than 1 ms; with free switches {free} % ({free_ends[0]:.0f} req/s)"
    return decide(abs(free.mean) < usual.mean / 2, said)


def periods_and_executions(results: Results) -> Verdict:
    """C-11."""
    return decide_order(results, EXECUTIONS, [web(kind) for kind in reversed(sedf("wc"))], "executions/s of Dom0 (WC)")


def more_is_not_more(results: Results) -> Verdict:
    """C-12."""
    found = {
        name: correlation([results.mean(web(k), DOM0) for k in group], [results.mean(web(k), X) for k in group])
        for name, group in GROUPS.items()
    }
    said = ", ".join(f"{name}: {r:.2f}" for name, r in found.items())
    return decide(max(found.values()) < 0, f"correlation of Dom0's CPU time and throughput: {said}")


def correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Pearson's; nan where one does not vary."""
    a, b = math.fsum(first) / len(first), math.fsum(second) / len(second)
    both = math.fsum((x - a) * (y - b) for x, y in zip(first, second, strict=True))
    each = math.sqrt(math.fsum((x - a) ** 2 for x in first) * math.fsum((y - b) ** 2 for y in second))
    return both / each if each else math.nan


def same_shares(results: Results) -> Verdict:
    """C-13: at equal weights, web server and iperf, Figures 4 and 5."""
    right, parts, ps = True, [], []
    for workload, figure in (("web", X), ("iperf", "throughput")):
        for mode, kinds in (("WC", COMPARED_WC), ("NWC", COMPARED_NWC)):
            cases = {kind: f"comparison: {workload} {kind} 1" for kind in kinds}
            ranked = sorted(kinds, key=lambda kind, at=cases: results.mean(at[kind], figure))
            low, high = cases[ranked[0]], cases[ranked[-1]]
            ratio = results.mean(high, figure) / results.mean(low, figure)
            # More than the 2 % to which means are known.
            right &= ratio > 1.02 or mode == "NWC"
            if mode == "WC":
                ps.append(results.difference(figure, high, low).p)
            parts.append(f"{workload} {mode}: {ranked[-1]} {100 * (ratio - 1):.0f} % above {ranked[0]}")
    known = [p for p in ps if p is not None]
    return decide(right, "; ".join(parts), max(holm(known)) if known else None)


def conserving_is_better(results: Results) -> Verdict:
    """C-14."""
    pairs = [(web(wc), web(nwc)) for wc, nwc in zip(sedf("wc"), sedf("nwc"), strict=True)]
    steps = [results.difference(X, *pair) for pair in pairs]
    known = [step.p for step in steps if step.p is not None]
    said = ", ".join(
        f"{p} ms: {results.mean(wc, X):.0f} and {results.mean(nwc, X):.0f}"
        for p, (wc, nwc) in zip(PERIODS_MS, pairs, strict=True)
    )
    right = all(step.interval.mean > 0 for step in steps)
    return decide(right, f"WC and NWC at {said} req/s", max(holm(known)) if len(known) == len(steps) else None)


def several_guests(results: Results) -> Verdict:
    """C-15: does one weight of Dom0 suit three different guests?"""
    alone = {
        "web": [results.mean(web("bvt C=5", ratio), X) for ratio in RATIOS],
        "iperf": [results.mean(f"comparison: iperf bvt {ratio:g}", "throughput") for ratio in RATIOS],
    }
    spread = {name: 100 * (max(values) / min(values) - 1) for name, values in alone.items()}
    shares = {
        name: [results.mean(f"several-guests: bvt C=5 {ratio:g}", name) for ratio in RATIOS]
        for name in ("web", "iperf", "disk")
    }
    best = max(min(values[i] / max(values) for values in shares.values()) for i in range(len(RATIOS)))
    reacts = ", ".join(f"{name} {value:.0f} %" for name, value in spread.items())
    said = (
        f"highest over lowest of five weights: {reacts}; of three guests at the best weight one gets {100 * best:.0f} %"
    )
    return decide(min(spread.values()) > 20 and best < 0.95, f"{said} of what it gets at its own best")


def small_and_similar(results: Results) -> Verdict:
    """C-16."""
    largest = {
        scheduler: [max(map(abs, alert.errors(results, scheduler, target))) for target in ALERT_TARGETS]
        for scheduler in (alert.SEDF, alert.CREDIT)
    }
    small = [e for e, target in zip(largest[alert.CREDIT], ALERT_TARGETS, strict=True) if target < 30]
    rest = [e for e, target in zip(largest[alert.CREDIT], ALERT_TARGETS, strict=True) if target >= 30]
    said = (
        f"largest error: SEDF {max(largest[alert.SEDF]):.1f} %; Credit {min(small):.0f} to {max(small):.0f} % "
        f"below 30 %, {min(rest):.1f} to {max(rest):.1f} % from there on"
    )
    return decide(
        max(largest[alert.SEDF]) < 10 and min(small) > max(rest) and min(small) > max(largest[alert.SEDF]), said
    )


def tails(results: Results) -> Verdict:
    """C-17: both tails of Credit's within a factor of two, and none of SEDF's."""
    credit, sedf_ = (alert.all_errors(results, scheduler) for scheduler in (alert.CREDIT, alert.SEDF))
    low, high = alert.at_or_below(credit, 10), alert.at_or_above(credit, 10)
    none = alert.share_below(sedf_, -9.9) <= 0.1 and alert.share_above(sedf_, 36.3) == 0
    said = "; ".join(alert.tails(results, scheduler) for scheduler in ALERT_SCHEDULERS)
    return decide(none and -20 < low < -5 and 18 < high < 73, f"{said}; published: -9.9, +36.3, -100 to 370 %")


def too_much(results: Results) -> Verdict:
    """C-18, with the sign of the figures."""
    shares = {}
    for scheduler in (alert.SEDF, alert.CREDIT):
        found = alert.all_errors(results, scheduler)
        shares[scheduler] = alert.share_above(found, 0.01), alert.share_below(found, -0.01)
    (sedf_more, sedf_less), (more, less) = shares[alert.SEDF], shares[alert.CREDIT]
    said = (
        f"too much, too little: Credit {more:.0f}, {less:.0f} % of points; SEDF {sedf_more:.2f}, {sedf_less:.2f} % "
        "(with the sign of the authors' formula it would be the other way round)"
    )
    return decide(more > less and sedf_less > sedf_more, said)


def three_minutes(results: Results) -> Verdict:
    """C-19."""
    long = {
        scheduler: [abs(alert.long_error(results, scheduler, target)) for target in ALERT_TARGETS]
        for scheduler in (alert.SEDF, alert.CREDIT)
    }
    worse = alert.worse_than_sedf(results)
    rest = [e for e, target in zip(long[alert.CREDIT], ALERT_TARGETS, strict=True) if target > 30]
    said = (
        f"SEDF within {max(long[alert.SEDF]):.2f} %; Credit more than a point worse at targets of "
        f"{', '.join(map(str, worse))} %, within {max(rest):.2f} % above 30 %"
    )
    return decide(len(worse) >= 5 and max(worse) <= 30 and max(rest) < 1, said)


def within_allowance(results: Results) -> Verdict:
    """C-20: in the generation of the study."""
    over: dict[str, float] = {}
    equal: list[float] = []
    for generation in ("xen3.0", "xen2.0"):
        for allowance in ALLOWANCES_MS:
            for ratio in RATIOS:
                error = results.mean(f"bvt-error: {generation} C={allowance} {ratio:g}", "error_ms") / allowance
                over[generation] = max(over.get(generation, 0.0), error)
                if generation == "xen3.0" and ratio == 1:
                    equal.append(error)
    said = (
        f"largest error over C: {max(equal):.1f} at equal weights; at others {over['xen2.0']:.1f} in xen2.0, but "
        f"{over['xen3.0']:.0f} after 2 s in xen3.0, which charges a vCPU that goes on running again and again"
    )
    return decide(over["xen3.0"] <= 1, said)


def never_idle(results: Results) -> Verdict:
    """C-21."""
    idle = {case: results.mean(case, "idle_while_waiting") for case in results.matching("smp: ")}
    mean = {name: [v for case, v in idle.items() if f" {name} " in case] for name in ("credit", "sedf")}
    if not all(mean.values()):
        return Verdict(Outcome.UNTESTABLE, "the experiment was not run")
    said = ", ".join(f"{case.removeprefix('smp: ')}: {value:.0f} %" for case, value in idle.items())
    return decide(
        max(mean["credit"]) == 0 < min(mean["sedf"]), f"time that one of two CPUs is idle while a vCPU waits: {said}"
    )


def controller(results: Results) -> Verdict:
    """C-22: a requirement; how often would it be met?"""
    shares = []
    for scheduler in (alert.SEDF, alert.CREDIT):
        found = alert.all_errors(results, scheduler, seconds=5)
        within = 100 - alert.share_above(found, 2) - alert.share_below(found, -2)
        shares.append(f"{' '.join(scheduler)} {within:.0f} %")
    reason = "a requirement of a controller that the authors do not describe"
    return Verdict(Outcome.UNTESTABLE, f"{reason}; errors over 5 s are within 2 % in: {', '.join(shares)} of windows")


CLAIMS = (
    Claim(
        "C-1",
        "Web throughput depends strongly on the weight of Dom0, under BVT, SEDF WC and SEDF NWC",
        "Figure 1 only",
        weight_matters,
    ),
    Claim(
        "C-2",
        "At equal weights BVT's throughput rises with C",
        "consistent: 934 > 817 > 510 (Table 1)",
        rises_with_allowance,
    ),
    Claim(
        "C-3",
        "At equal weights C = 1 ms gives 85 % less than C = 50 ms",
        "contradicted: Table 1 gives 45.4 % less",
        eighty_five_percent,
        contradicted=True,
    ),
    Claim(
        "C-4",
        "SEDF WC gives almost 40 % more with a period of 10 ms than with 1000 ms",
        "consistent: 39.5 % (Table 1)",
        short_period("wc", 30, 50, "; published 39.5"),
    ),
    Claim(
        "C-5",
        "SEDF NWC gains from the short period as well",
        "the percentage is not public",
        short_period("nwc", 0, math.inf, ""),
    ),
    Claim(
        "C-6",
        "For ratios of 0.5 to 4 Dom0 uses 33 to 45 % under BVT and SEDF WC, although throughput moves a lot",
        "Figure 2; Table 1 lies within",
        narrow_dom0,
    ),
    Claim(
        "C-7",
        "A smaller C or a longer period (WC): Dom0 uses a little more, Dom1 a little less, throughput falls a lot",
        "holds for BVT; under SEDF WC Dom1 stays at 59 % from 10 to 100 ms",
        little_and_a_lot,
    ),
    Claim(
        "C-8",
        "What happens to Dom1's CPU time and to throughput under SEDF NWC as the period grows",
        "not public",
        nwc_period,
    ),
    Claim(
        "C-9",
        "More executions of Dom0 go with fewer I/Os in each and with less throughput",
        "consistent in the public rows: x5.7, /10.5, -45 %",
        executions_and_batches,
    ),
    Claim(
        "C-10",
        "Because Dom0 then preempts the guest at each interrupt instead of handling I/O in batches",
        "argued, not measured",
        cold_switches,
    ),
    Claim(
        "C-11",
        "A longer SEDF period is like a smaller C: Dom0 is scheduled more often",
        "Table 2; numbers not public",
        periods_and_executions,
    ),
    Claim(
        "C-12",
        "More CPU time for Dom0 does not mean more throughput",
        "consistent within each scheduler (Table 1)",
        more_is_not_more,
    ),
    Claim(
        "C-13",
        "The same shares under different schedulers give different performance",
        "Figures 4 and 5, without numbers",
        same_shares,
    ),
    Claim(
        "C-14",
        "Not conserving work performs clearly worse at similar shares",
        "numbers not public",
        conserving_is_better,
    ),
    Claim(
        "C-15",
        "Applications with much I/O react strongly to Dom0's share, and it is harder with several different VMs",
        "stated",
        several_guests,
    ),
    Claim(
        "C-16",
        "SEDF's allocation errors are small and alike for all targets; Credit's are much larger, most below 30 %",
        "Figure 6",
        small_and_similar,
    ),
    Claim(
        "C-17",
        "10 % of Credit's errors are at or below -9.9 %, 10 % above +36.3 %; hardly any of SEDF's",
        "0.03 % of SEDF's 3240 points is one",
        tails,
    ),
    Claim(
        "C-18",
        "Credit gives too much more often than too little, SEDF too little",
        "consistent only with the sign of the figures, not of the formula (C-I4)",
        too_much,
    ),
    Claim(
        "C-19",
        "Over 3 minutes both are close, but Credit stays clearly worse for targets of 1 to 30 %",
        "Figure 8",
        three_minutes,
    ),
    Claim("C-20", "BVT's allocation error never exceeds C", "design statement", within_allowance),
    Claim("C-21", "Credit never leaves a CPU idle while a vCPU is runnable; SEDF can", "design statement", never_idle),
    Claim(
        "C-22",
        "A workload manager that sets shares anew every 5 s or so needs errors of 1 to 2 %",
        "requirement, not tested",
        controller,
    ),
)
