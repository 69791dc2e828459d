"""What changing a parameter costs the administrator: a price for each kind, so that the mildest cure is advised.

A weight is typed and takes effect at once; another scheduler takes a restart of the host. The prices are assumptions,
in percent of the score: of settings that are about as good, the one with the least sum is taken.
"""

from collections.abc import Iterable, Mapping

from vcpulab.advice.tuning.parameters import Parameter
from vcpulab.errors import RequestError
from vcpulab.scenario.scenario import split

PRICES: Mapping[str, float] = {
    "weight": 1,
    "cap": 2,
    "budget": 2,
    "slice": 3,
    "pinning": 4,
    "pool": 5,
    "vcpus": 6,
    "scheduler": 10,
    "other": 3,
}
"""Kind to price, %: `budget` is what a reservation is made of, `slice` a slice or rate limit of the host, `vcpus` also
stands for the back ends of driver domains."""

_KINDS = {
    "weight": "weight",
    "cap": "cap",
    "affinity": "pinning",
    "pinning": "pinning",
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
_EACH_MORE = 0.25
"""Of settings with the same price, that with fewer fields: each further field adds this, %."""


def kind(parameter: Parameter) -> str:
    """The kind of a parameter."""
    steps = split(parameter.name)
    first, last = steps[0], steps[-1]
    if first == "domain" and last in _BUDGET:
        return "budget"
    if first in ("host", "pool"):
        return {"scheduler": "scheduler", "pcpus": "pool"}.get(last, "slice")
    return _KINDS.get(last, "other")


def price(parameters: Iterable[Parameter], prices: Mapping[str, float]) -> float:
    """What changing these costs, %."""
    return sum(prices[kind(one)] + _EACH_MORE * (max(1, len(one.paths)) - 1) for one in parameters)


def stated(words: Iterable[str]) -> dict[str, float]:
    """The prices, some of them stated by hand as `KIND=PERCENT`.

    Raises:
        RequestError: there is no such kind, or it is no number.

    Examples:
        >>> stated(["scheduler=30"])["scheduler"]
        30.0
    """
    found = dict(PRICES)
    for word in words:
        name, _, text = (part.strip() for part in word.partition("="))
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if name not in PRICES or not 0 <= value <= 100:
            allowed = f"KIND=PERCENT, from 0 to 100, with one of {', '.join(PRICES)}"
            raise RequestError(field="price", found=word, allowed=allowed)
        found[name] = value
    return found
