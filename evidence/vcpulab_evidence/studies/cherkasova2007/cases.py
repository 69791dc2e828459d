"""The cases of the study of Cherkasova, Gupta and Vahdat."""

from collections.abc import Iterable, Mapping
from functools import partial

import polars as pl

from vcpulab.scenario.scenario import Scenario
from vcpulab_evidence.studies.case import Case, Trial
from vcpulab_evidence.studies.window import Window

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Weight of Dom0 over that of Dom1 (section 5.1)."""
ALLOWANCES_MS = (1, 5, 50)
"""BVT's context-switch allowance C (section 5.1)."""
PERIODS_MS = (10, 100, 1000)
"""SEDF's periods (section 5.1)."""
SEDF_GENERATIONS = ("xen3.0.2", "xen3.0.3")
"""Generations of SEDF: the tree of the study had the rules of the first (notes, C-I10); the second was released."""
CREDIT = "xen3.0.3"
ALERT_TARGETS = (*range(1, 11), *range(20, 91, 10))
"""Limits of Dom1, % of the CPU (section 5.2)."""
ALERT_DOM0 = 6
"""The limit of Dom0 (section 5.2)."""
ALERT_SCHEDULERS = (
    ("sedf", "xen3.0.2"),
    ("sedf", "xen3.0.3"),
    ("credit", "xen3.0.3"),
    ("credit", "xen3.3.0"),
    ("credit", "xen4.4.1"),
)
COMPARED_WC = ("bvt", "sedf-wc", "credit-wc")
"""Figure 4."""
COMPARED_NWC = ("sedf-nwc", "credit-nwc")
"""Figure 5; BVT has no such mode."""
BVT_GENERATIONS = ("xen3.0", "xen2.0")
FILLED = (0.6, 0.8)
"""Fractions of the CPU that SEDF's reservations fill together, besides the whole CPU."""
OFFERED = 0.95
"""Requests offered, over the highest rate that is served: on average, if the rate is raised in steps of 10 % until not
all is served (assumed; the notes say what speaks for it)."""
SATURATING_PER_S = 1100
"""A rate of requests above the throughput of every setting."""

CLIENT = "dom1 1 open-loop"
_RATE = "client.httperf.rate"
_RATES_PER_S = (200, 1300)
_RATE_STEP = 10
_SERVED = 0.985
"""Minimum fraction of the offered requests that must be served for a rate to count as served."""
_TRIAL_NS = 5_000_000_000
"""Minimum length of a trial: outstanding requests at its begin and end must not matter."""
_BUFFER_MBIT = 8192 * 8 / 1e6
"""The buffer that iperf sends at a time, which is its unit of work."""
_NOTHING_IS_COLD = {"host.costs.l2_bytes": 0, "host.costs.context_switch_ns": 0}


# ---- keys ----


def bvt_kind(allowance_ms: int) -> str:
    """BVT with a context-switch allowance."""
    return f"bvt C={allowance_ms}"


def sedf_kind(mode: str, period_ms: int, generation: str = SEDF_GENERATIONS[0]) -> str:
    """SEDF with a period; `wc` or `nwc`. By default in the generation that the study's notes argue for."""
    return f"sedf-{mode} {generation} P={period_ms}"


def web_case(kind: str, ratio: float = 1.0) -> str:
    """The weight sweep."""
    return f"dom0-weight-sweep: {kind} {ratio:g}"


def compared_case(workload: str, kind: str, ratio: float = 1.0) -> str:
    """The comparison of schedulers: `web`, `iperf` or `disk`."""
    return f"comparison: {workload} {kind} {ratio:g}"


def alert_case(scheduler: str, generation: str, target: int) -> str:
    """ALERT with a target, %."""
    return f"alert: {scheduler} {generation} A={target}"


def free_switches_case(allowance_ms: int) -> str:
    """The weight sweep's case at equal weights, where switches cost nothing."""
    return f"switch-cost: free switches, {bvt_kind(allowance_ms)} 1"


def reserved_case(mode: str, filled: float, period_ms: int) -> str:
    """SEDF at equal weights with reservations that fill a fraction of the CPU."""
    return f"sedf-reservations: sedf-{mode} {filled:.0%} P={period_ms} 1"


def guests_case(ratio: float) -> str:
    """Three guests."""
    return f"several-guests: bvt C=5 {ratio:g}"


def loops_case(generation: str, allowance_ms: int, ratio: float) -> str:
    """Two loops under BVT."""
    return f"bvt-error: {generation} C={allowance_ms} {ratio:g}"


def smp_case(scheduler: str, generation: str) -> str:
    """Two CPUs and two loops."""
    return f"smp: {scheduler} {generation}"


# ---- cases ----


def cases() -> Iterable[Case]:
    """All cases of the study."""
    yield from _weight_sweep()
    yield from _comparison()
    yield from _alert()
    yield from _switch_cost()
    yield from _reservations()
    yield from _saturated()
    yield from _guests()
    yield from _loops()
    yield from _two_cpus()


def web(window: Window) -> dict[str, float]:
    """The columns of Tables 1 and 2."""
    return {
        "web_throughput": window.throughput(CLIENT),
        "cpu_util@dom0": window.gotten("dom0"),
        "cpu_util@dom1": window.gotten("dom1"),
        "ex_per_sec@dom0": window.rate("dom0", "executions"),
        "io_count_per_ex@dom0": window.io_per_execution("dom0"),
        "io_per_sec@dom0": window.rate("dom0", "io_count"),
        "preemptions_per_sec@dom1": window.rate("dom1", "preemptions"),
    }


def scheduler(kind: str, ratio: float, *, allowance_ms: int = 5, period_ms: int = 10) -> dict[str, object]:
    """A scheduler with the weights of Dom0 and Dom1 in this ratio.

    Args:
        kind: as the published cells name them: `bvt`, `sedf-wc`, `sedf-nwc`, `credit-wc`, `credit-nwc`.
        ratio: weight of Dom0 over that of Dom1.
        allowance_ms: BVT's C.
        period_ms: SEDF's period.
    """
    name, _, mode = kind.partition("-")
    if name == "bvt":
        return {"host.scheduler": "bvt", "host.generation": "xen3.0", **_allowance(allowance_ms), **bvt(ratio)}
    if name == "sedf":
        reserved = sedf(ratio, period_ms, mode == "wc")
        return {"host.scheduler": "sedf", "host.generation": SEDF_GENERATIONS[0], **reserved}
    return {"host.scheduler": "credit", "host.generation": CREDIT, **credit(ratio, capped=mode == "nwc")}


def _allowance(milliseconds: int) -> dict[str, object]:
    return {"host.ctx_allow": milliseconds * 1_000_000}


def bvt(ratio: float, first: str = "dom0", second: str = "dom1") -> dict[str, object]:
    """The weights of two domains: the inverse of the speed of their virtual times, 10 by default."""
    return {
        f"domain.{first}.mcu_adv": round(10 * max(1, 1 / ratio)),
        f"domain.{second}.mcu_adv": round(10 * max(1, ratio)),
    }


def sedf(ratio: float, period_ms: int, extra: bool, filled: float = 1.0) -> dict[str, object]:
    """The reservations of the two domains (not printed; derived from ratio and period).

    Args:
        ratio: slice of Dom0 over that of Dom1.
        period_ms: of both.
        extra: do they take part in extra time (work-conserving)?
        filled: how much of the CPU is reserved in all; the study's notes assume all of it.
    """
    share = filled * ratio / (1 + ratio)
    return {**_reserve("dom0", share, period_ms, extra), **_reserve("dom1", filled - share, period_ms, extra)}


def _reserve(domain: str, share: float, period_ms: int, extra: bool) -> dict[str, object]:
    return {
        f"domain.{domain}.period": period_ms * 1_000_000,
        f"domain.{domain}.slice": round(period_ms * 1e6 * share),
        f"domain.{domain}.extratime": int(extra),
    }


def credit(ratio: float, *, capped: bool) -> dict[str, object]:
    """Weights, and caps that fill the CPU for the mode that does not conserve work (assumed; not printed)."""
    weights: dict[str, object] = {"domain.dom0.weight": round(256 * ratio), "domain.dom1.weight": 256}
    share = round(100 * ratio / (1 + ratio))
    return weights | ({"domain.dom0.cap": share, "domain.dom1.cap": 100 - share} if capped else {})


def _weight_sweep() -> Iterable[Case]:
    for ratio in RATIOS:
        for allowance in ALLOWANCES_MS:
            yield _web_case(web_case(bvt_kind(allowance), ratio), scheduler("bvt", ratio, allowance_ms=allowance))
        for generation in SEDF_GENERATIONS:
            for mode in ("wc", "nwc"):
                for period in PERIODS_MS:
                    changes = scheduler(f"sedf-{mode}", ratio, period_ms=period) | {"host.generation": generation}
                    key = web_case(sedf_kind(mode, period, generation), ratio)
                    yield _web_case(key, changes | _long_enough(period), period)


def _long_enough(period_ms: int) -> dict[str, object]:
    """Twenty periods of SEDF at least."""
    return {"run.duration": "20s"} if period_ms == max(PERIODS_MS) else {}


def _web_case(key: str, changes: Mapping[str, object], period_ms: int = 0) -> Case:
    fast = {"run.duration": "5s" if period_ms == max(PERIODS_MS) else "2s", "run.sample": "20ms"}
    prepare = None if _RATE in changes else nearly_saturated
    precise = ("web_throughput",)
    return Case(key, "web.toml", changes, web, main=CLIENT, precise=precise, fast=fast, prepare=prepare)


def nearly_saturated(scenario: Scenario, trial: Trial) -> Scenario:
    """The client's rate as `OFFERED` says; the highest that is served is found by bisection."""
    served, beyond = _RATES_PER_S
    tried = scenario.change({"run.duration": f"{max(scenario.duration_ns // 2, _TRIAL_NS)}ns"})
    while beyond - served > _RATE_STEP:
        rate = (served + beyond) // 2
        if trial(tried.change({_RATE: rate})).throughput(CLIENT) >= _SERVED * rate:
            served = rate
        else:
            beyond = rate
    return scenario.change({_RATE: round(OFFERED * served)})


def _comparison() -> Iterable[Case]:
    for kind in (*COMPARED_WC, *COMPARED_NWC):
        for ratio in RATIOS:
            changes = scheduler(kind, ratio)
            yield _web_case(compared_case("web", kind, ratio), changes)
            for workload, template, app in (("iperf", "iperf.toml", "iperf"), ("disk", "disk.toml", "dd")):
                yield Case(
                    compared_case(workload, kind, ratio),
                    template,
                    changes,
                    _stream if workload == "iperf" else _disk,
                    main=f"dom1 0 {app}",
                    precise=("throughput",),
                    fast={"run.duration": "1s", "run.sample": "20ms"},
                )


def _stream(window: Window) -> dict[str, float]:
    """Mbit/s (10^6 bit) that iperf sends."""
    return {"throughput": window.throughput("dom1 0 iperf") * _BUFFER_MBIT, **_cpu(window)}


def _disk(window: Window) -> dict[str, float]:
    """KB/s (1024 B) that dd reads."""
    return {"throughput": window.throughput("dom1 0 dd"), **_cpu(window)}


def _cpu(window: Window) -> dict[str, float]:
    return {"cpu_util@dom0": window.gotten("dom0"), "cpu_util@dom1": window.gotten("dom1")}


def _alert() -> Iterable[Case]:
    for name, generation in ALERT_SCHEDULERS:
        for target in ALERT_TARGETS:
            shares: dict[str, object]
            if name == "sedf":
                shares = {**_reserve("dom0", ALERT_DOM0 / 100, 10, False), **_reserve("dom1", target / 100, 10, False)}
            else:
                shares = {"domain.dom0.cap": ALERT_DOM0, "domain.dom1.cap": target}
            yield Case(
                alert_case(name, generation, target),
                "alert.toml",
                {"host.scheduler": name, "host.generation": generation, **shares},
                used_each_second,
                fast={"run.duration": "60s"},
            )


def used_each_second(window: Window) -> dict[str, float]:
    """CPU time of Dom1 in each second, %."""
    rows = window.run.df_samples().filter(domain="dom1").sort("time_ns")
    used = (100 * rows["running_ns"] / rows["elapsed_ns"]).to_list()
    return {f"used {second}": value for second, value in enumerate(used)}


def _switch_cost() -> Iterable[Case]:
    for allowance in ALLOWANCES_MS:
        changes = scheduler("bvt", 1.0, allowance_ms=allowance) | _NOTHING_IS_COLD
        yield _web_case(free_switches_case(allowance), changes)


def _reservations() -> Iterable[Case]:
    for filled in FILLED:
        for mode in ("wc", "nwc"):
            for period in PERIODS_MS:
                reserved = sedf(1.0, period, mode == "wc", filled)
                changes = scheduler(f"sedf-{mode}", 1.0) | reserved | _long_enough(period)
                yield _web_case(reserved_case(mode, filled, period), changes, period)


def _saturated() -> Iterable[Case]:
    """Table 1's rows with more requests than any of them serves."""
    settings = {f"bvt C={c}": scheduler("bvt", 1.0, allowance_ms=c) for c in ALLOWANCES_MS}
    settings |= {f"sedf-wc P={p}": scheduler("sedf-wc", 1.0, period_ms=p) | _long_enough(p) for p in PERIODS_MS}
    for name, changes in settings.items():
        yield _web_case(f"saturated: {name}", changes | {_RATE: SATURATING_PER_S})


def _guests() -> Iterable[Case]:
    for ratio in RATIOS:
        changes = scheduler("bvt", ratio)
        changes |= {f"domain.{guest}.mcu_adv": changes["domain.dom1.mcu_adv"] for guest in ("dom2", "dom3")}
        yield Case(
            guests_case(ratio),
            "guests.toml",
            changes,
            _three_guests,
            main=CLIENT,
            precise=("web", "iperf", "disk"),
            fast={"run.duration": "2s", "run.sample": "20ms"},
        )


def _three_guests(window: Window) -> dict[str, float]:
    return {
        "web": window.throughput(CLIENT),
        "iperf": window.throughput("dom2 0 iperf") * _BUFFER_MBIT,
        "disk": window.throughput("dom3 0 dd"),
    }


def _loops() -> Iterable[Case]:
    for generation in BVT_GENERATIONS:
        for allowance in ALLOWANCES_MS:
            for ratio in RATIOS:
                weights = bvt(ratio, "dom1", "dom2")
                yield Case(
                    loops_case(generation, allowance, ratio),
                    "loops.toml",
                    {"host.generation": generation, **_allowance(allowance), **weights},
                    partial(furthest_ahead, share=ratio / (1 + ratio)),
                )


def furthest_ahead(window: Window, share: float) -> dict[str, float]:
    """The maximum difference between Dom1's CPU time and its share of the elapsed time, ms."""
    rows = window.run.df_samples().filter(domain="dom1").sort("time_ns")
    ahead = rows.select(pl.col("running_ns").cum_sum() - share * pl.col("time_ns")).to_series()
    return {"error_ms": max(map(abs, ahead.to_list())) / 1e6}


def _two_cpus() -> Iterable[Case]:
    for name, generation in (("credit", CREDIT), *(("sedf", g) for g in SEDF_GENERATIONS), ("bvt", "xen3.0")):
        changes = {"host.scheduler": name, "host.generation": generation}
        yield Case(smp_case(name, generation), "smp.toml", changes, idle_while_waiting)


def idle_while_waiting(window: Window) -> dict[str, float]:
    """Time a CPU was idle although a vCPU waited, % of the time of one: both guests always want one of the two CPUs."""
    idle = window.run.df_pcpus().select(100 * pl.col("idle_ns") / pl.col("elapsed_ns")).to_series().sum()
    return {"idle_while_waiting": float(idle)}
