"""Prices of changing parameters, by kind: the effort for the administrator, so that the mildest fix is advised.

A weight takes effect at once; another scheduler needs a restart of the host. The prices are assumptions, in percent of
the score if the score is above 1, otherwise in percent of 1: a gain of 10 % is never worth another scheduler, and a
great gain does not make an expensive change cheap. Of settings that are about as good, the one with the least sum is
advised. Within one kind, fewer fields and smaller steps are cheaper.
"""

from collections.abc import Iterable, Mapping
from functools import cache

from vcpulab.advice.tuning.spaces import Parameter
from vcpulab.errors import RequestError
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.scenario import split

PRICES: Mapping[str, float] = {
    "weight": 1,
    "cap": 2,
    "budget": 2,
    "slice": 3,
    "pinning": 4,
    "pool": 5,
    "vcpus": 6,
    "boot": 15,
    "scheduler": 30,
    "other": 3,
}
"""Kind to price, %. `budget`: the fields of a reservation. `slice`: a slice or rate limit of the host. `vcpus`: also
back ends of driver domains. `boot`: a boot option; the first one, or another scheduler, pays for the restart."""

_KINDS = {
    "weight": "weight",
    "mcu_adv": "weight",
    "cap": "cap",
    "vcpu_quota_us": "cap",
    "global_quota_us": "cap",
    "vcpu_period_us": "cap",
    "global_period_us": "cap",
    "global_burst_us": "cap",
    "idle": "weight",
    "emulator_affinity": "pinning",
    "iothread_affinity": "pinning",
    "affinity": "pinning",
    "soft_affinity": "pinning",
    "pinning": "pinning",
    "isolation": "pinning",
    "pool": "pool",
    "vcpus": "vcpus",
    "backends": "vcpus",
}
_BUDGET = {"reservation", "reservation_period", "warp", "extratime", "xtratime", "slice", "period", "budget_us"} | {
    "period_us",
    "nat_slice",
    "nat_period",
    "latency",
}
ISOLATION = ("isolated_cpus", "nohz_full")
"""Fields of the host that are options of the kernel's command line."""
_EACH_MORE = 0.25
"""Price of each further field, %."""
_EACH_STEP = 0.1
"""Price of each step beyond the first, %."""
_LEAVES = 1.0
"""Price of taking a domain out of its pool, which gives up the pool's purpose, %."""


def kind(parameter: Parameter) -> str:
    """The kind of a parameter."""
    steps = split(parameter.name)
    first, last = steps[0], steps[-1]
    if first == "domain" and last in _BUDGET:
        return "budget"
    if first in ("host", "pool"):
        usual = "boot" if last in _boot_options() else "slice"
        return {
            "scheduler": "scheduler",
            "pcpus": "pool",
            "soft_affinity": "pinning",
            "emulator_affinity": "pinning",
        }.get(last, usual)
    return _KINDS.get(last, "other")


@cache
def _boot_options() -> frozenset[str]:
    """The parameters of hosts that are boot options."""
    tools = (generation.tools.setters for policy in schedulers() for generation in policy.generations)
    return frozenset(
        {"sched_gran", *ISOLATION, *(name for tool in tools for name, how in tool.items() if how.by == "boot")}
    )


def price(changed: Iterable[tuple[Parameter, int]], prices: Mapping[str, float], *, restarts: bool = False) -> float:
    """The price of changing parameters to these options, %.

    Args:
        changed: parameters, each with its option.
        prices: price of each kind.
        restarts: is the host restarted anyway?
    """
    total = 0.0
    for parameter, pick in changed:
        kind_of = kind(parameter)
        total += prices["slice" if kind_of == "boot" and restarts else kind_of] + _extent(parameter, pick)
        restarts = restarts or kind_of == "boot"
    return total


def _extent(parameter: Parameter, pick: int) -> float:
    value = parameter.options[pick].value
    fields = len(value) if isinstance(value, Mapping) else len(parameter.paths)
    steps = abs(pick - parameter.now) if parameter.ordered else 1
    leaves = split(parameter.name)[0] == "domain" and split(parameter.name)[-1] == "pool"
    return _EACH_MORE * (max(1, fields) - 1) + _EACH_STEP * (max(1, steps) - 1) + _LEAVES * leaves


def stated(words: Iterable[str]) -> dict[str, float]:
    """The prices, some of them stated by hand as `KIND=PERCENT`.

    Raises:
        RequestError: no such kind, or the price is no number from 0 to 100.

    Examples:
        >>> stated(["scheduler=50"])["scheduler"]
        50.0
    """
    prices = dict(PRICES)
    for word in words:
        name, _, text = (part.strip() for part in word.partition("="))
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if name not in PRICES or not 0 <= value <= 100:
            allowed = f"KIND=PERCENT, from 0 to 100, with one of {', '.join(PRICES)}"
            raise RequestError(field="price", found=word, allowed=allowed)
        prices[name] = value
    return prices
