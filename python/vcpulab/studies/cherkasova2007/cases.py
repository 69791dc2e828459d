"""What is run for the study of Cherkasova, Gupta and Vahdat."""

from collections.abc import Iterable

from vcpulab.studies.study import Case
from vcpulab.studies.window import Window

RATIOS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Weight of Dom0 over that of Dom1 (section 5.1)."""
ALLOWANCES_MS = (1, 5, 50)
"""BVT's context-switch allowance C (section 5.1)."""
PERIODS_MS = (10, 100, 1000)
"""SEDF's periods (section 5.1)."""
SEDF_GENERATIONS = ("xen3.0.2", "xen3.0.3")

_CLIENT = "dom1 1 open-loop"


def cases() -> Iterable[Case]:
    """All of them."""
    yield from _weight_sweep()


def web(window: Window) -> dict[str, float]:
    """The columns of Tables 1 and 2."""
    return {
        "web_throughput": window.throughput(_CLIENT),
        "cpu_util@dom0": window.cpu("dom0"),
        "cpu_util@dom1": window.cpu("dom1"),
        "ex_per_sec@dom0": window.rate("dom0", "executions"),
        "io_count_per_ex@dom0": window.io_per_execution("dom0"),
        "io_per_sec@dom0": window.rate("dom0", "io_count"),
    }


def _weight_sweep() -> Iterable[Case]:
    for ratio in RATIOS:
        for allowance in ALLOWANCES_MS:
            changes = {"host.scheduler": "bvt", "host.generation": "xen3.0", "host.ctx_allow": allowance * 1_000_000}
            yield _web_case(f"bvt C={allowance} {ratio:g}", changes | bvt(ratio))
        for generation in SEDF_GENERATIONS:
            for extra in (True, False):
                for period in PERIODS_MS:
                    mode = "wc" if extra else "nwc"
                    changes = {"host.scheduler": "sedf", "host.generation": generation, **sedf(ratio, period, extra)}
                    yield _web_case(f"sedf-{mode} {generation} P={period} {ratio:g}", changes)


def bvt(ratio: float) -> dict[str, object]:
    """The weights of the two domains: the inverse of how fast their virtual times advance, 10 by default."""
    return {
        "domain.dom0.mcu_adv": round(10 * max(1, 1 / ratio)),
        "domain.dom1.mcu_adv": round(10 * max(1, ratio)),
    }


def sedf(ratio: float, period_ms: int, extra: bool) -> dict[str, object]:
    """The reservations of the two domains: their shares fill the CPU (not printed; derived from ratio and period)."""
    share = ratio / (1 + ratio)
    found: dict[str, object] = {}
    for domain, part in (("dom0", share), ("dom1", 1 - share)):
        found[f"domain.{domain}.period"] = period_ms * 1_000_000
        found[f"domain.{domain}.slice"] = round(period_ms * 1e6 * part)
        found[f"domain.{domain}.extratime"] = int(extra)
    return found


def _web_case(name: str, changes: dict[str, object]) -> Case:
    return Case(
        "dom0-weight-sweep",
        name,
        "web.toml",
        changes,
        web,
        main=_CLIENT,
        precise=("web_throughput",),
        fast={"run.duration": "2s", "run.sample": "20ms"},
    )
