"""The costs of scheduling decisions on a Xen host: the delay of a wake-up, and CPU time of vCPUs that block or wake.

These costs are no demand of a guest, but they are in the CPU times of a trace, and they depend on the scheduler. The
costs of the recorded scheduler are inferred from the shortest waits: no wait without a competitor is shorter.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from vcpulab.scenario.model import Costs
from vcpulab.twin.links import Vcpu
from vcpulab.twin.sequences import Turns

CREDIT2_PERCENT = 200
"""The decision time of Credit2, % of Credit's. This and the next two values are from two recordings that are not used
for validation (Xen 4.17 on an emulated machine; see `scenarios/recordings/*-weights.toml`). The 20th percentile of
waits is 8.9 µs under Credit, and 18.0 µs under Credit2. Other schedulers are treated as Credit."""
_BLOCKING = 0.62
"""The part of it that comes with blocking. In those two a turn that nobody preempts takes 5.6 µs more under Credit2
(a tick 62.4 instead of 56.8 µs, a computation 1158.1 instead of 1152.7 µs), a wait 9.1 µs. The rest comes with
waking."""
_OF_SWITCH = 10.2
"""Credit's decision time, in mean times between one vCPU's stop and the next one's start (0.876 µs there)."""
TIMER_NS = 3_000
"""The delay of Xen's timers: in the events of a boot that is not used for validation, Credit's accounting passes slip
by 0.1 ms per second, and its ticks by 0.2 to 0.8 ms. Ticks that slip relative to those of guests hit one vCPU now and
another later. Ticks in step always hit the same vCPUs, and the others lose no credits."""
_CLOCKS_APART_NS = 1_000
"""No way through the hypervisor takes less: such a wait is that of a vCPU woken by one pCPU and run by another."""


class DecisionCosts(NamedTuple):
    """The costs of scheduling decisions."""

    block_ns: int
    """CPU time of a vCPU for each time that it blocks, under the recorded scheduler."""
    wake_ns: int
    """CPU time of a vCPU for each other one that it wakes. Both together: from a wake-up until a pCPU has switched."""
    percent: int
    """The decision time of the recorded scheduler, % of Credit's."""

    def costs(self) -> dict[str, int]:
        """The costs of a host, for any scheduler."""
        of_credit = {"block_ns": 100 * self.block_ns // self.percent, "wake_ns": 100 * self.wake_ns // self.percent}
        return {**of_credit, "credit2_percent": CREDIT2_PERCENT} if any(of_credit.values()) else {}


NOTHING = DecisionCosts(0, 0, 100)


def measured(summary: Mapping[str, Any], scheduler: str, switch_ns: int) -> DecisionCosts:
    """The costs of decisions on a recorded host.

    If almost every wake-up has a competitor, as with a long rate limit, they are inferred from the time of switches.

    Args:
        summary: the summary of the recording.
        scheduler: the recorded scheduler.
        switch_ns: mean time between one vCPU's stop and the next one's start, ns.

    Examples:
        >>> quantiles = {"quantiles_ns": [8_000, 9_000, *[50_000] * 99]}
        >>> measured({"vcpus": [{"wakes": 99, "wake_latency": quantiles}]}, "credit", 1_000)
        DecisionCosts(block_ns=5580, wake_ns=3420, percent=100)
    """
    percent = _percent(scheduler)
    both_ns = min(shortest_wait_ns(summary), round(_OF_SWITCH * switch_ns * percent / 100))
    block_ns = round(_BLOCKING * both_ns)
    return DecisionCosts(block_ns, both_ns - block_ns, percent)


def takes_ns(costs: Costs, scheduler: str) -> int:
    """The delay of a decision on the host of a twin, from a wake-up until a pCPU has switched, ns.

    Args:
        costs: the costs of the twin's host.
        scheduler: the scheduler of the twin.
    """
    return (costs.block_ns + costs.wake_ns) * _percent(scheduler) // 100


def _percent(scheduler: str) -> int:
    return CREDIT2_PERCENT if scheduler == "credit2" else 100


def shortest_wait_ns(summary: Mapping[str, Any]) -> int:
    """The wait of a vCPU without competitors, ns.

    It is the first percentile of waits of the vCPU where that is least: with a rate limit that delays most wake-ups,
    even the first decile is delayed.
    """
    waits = [
        [time for time in vcpu["wake_latency"]["quantiles_ns"] if time >= _CLOCKS_APART_NS]
        for vcpu in summary["vcpus"]
        if vcpu["wakes"]
    ]
    return min((times[len(times) // 100] for times in waits if times), default=0)


def without(turns: Mapping[Vcpu, Turns], takes: DecisionCosts) -> dict[Vcpu, Turns]:
    """The turns without the CPU time that decisions and wake-ups charged to them."""
    return {
        vcpu: replace(history, turns=[turn.without(takes.block_ns, takes.wake_ns) for turn in history.turns])
        for vcpu, history in turns.items()
    }
