"""Parameters that limit a domain to its allocation under each scheduler: a cap, or a reservation alone."""

from collections.abc import Callable, Mapping

from vcpulab.errors import RequestError
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.scenario import Scenario

PERIOD_NS = 10_000_000
"""Period of reservations: the 10 ms of Cherkasova, Gupta and Vahdat 2007, section 5.2."""
LEAST = 1.0
"""Least allocation, % of a pCPU: a cap of 0 means no cap."""


def _cap(share: float, vcpus: int) -> dict[str, int]:
    del vcpus
    return {"cap": max(1, round(share))}


def _sedf(share: float, vcpus: int) -> dict[str, int]:
    return {"period": PERIOD_NS, "slice": max(5_000, round(share / 100 / vcpus * PERIOD_NS)), "extratime": 0}


def _rtds(share: float, vcpus: int) -> dict[str, int]:
    period_us = PERIOD_NS // 1000
    return {"period_us": period_us, "budget_us": max(10, round(share / 100 / vcpus * period_us)), "extratime": 0}


def _atropos(share: float, vcpus: int) -> dict[str, int]:
    nat_slice = max(1, round(share / 100 / vcpus * PERIOD_NS))
    # The latency may not be longer than the period, and the default latency is longer.
    return {"nat_period": PERIOD_NS, "nat_slice": nat_slice, "latency": PERIOD_NS, "xtratime": 0}


_LIMITERS: Mapping[str, Callable[[float, int], dict[str, int]]] = {
    "cap": _cap,
    "slice": _sedf,
    "budget_us": _rtds,
    "nat_slice": _atropos,
}
"""Name of the limiting parameter to the function that makes the parameters."""


def limiter(scheduler: str, generation: str) -> Callable[[float, int], dict[str, int]]:
    """The function from % of a pCPU and a number of vCPUs to parameters, for a scheduler.

    Raises:
        RequestError: the scheduler has neither caps nor reservations.

    Examples:
        >>> limiter("credit", "xen4.17")(37.4, 1)
        {'cap': 37}
        >>> limiter("sedf", "xen3.0.3")(50, 1)
        {'period': 10000000, 'slice': 5000000, 'extratime': 0}
    """
    declared = generation_of(scheduler, generation)
    names = declared.of_scope("domain") if declared is not None else {}
    for limiting, params_of in _LIMITERS.items():
        if limiting in names:
            return lambda share, vcpus: {name: v for name, v in params_of(share, vcpus).items() if name in names}
    raise RequestError(
        f"{scheduler} ({generation}) has neither caps nor reservations to limit a domain with",
        allowed="credit and credit2 from xen3.0.3 and xen4.17 on, sedf, rtds, atropos",
    )


def limits(scenario: Scenario, domain: str, share: float) -> dict[str, int]:
    """The parameters that limit a domain of a scenario to a share, % of a pCPU.

    Raises:
        RequestError: the domain's scheduler has neither caps nor reservations.
    """
    limited = scenario.domains[domain]
    pool = scenario.pools.get(limited.pool, scenario.host)
    return limiter(pool.scheduler, pool.generation)(share, limited.vcpus)
