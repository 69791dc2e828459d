"""Asymptotic bounds of queueing networks: what no order of service can exceed.

Lazowska, Zahorjan, Graham and Sevcik 1984, "Quantitative System Performance", chapter 5. A station with m servers that
each request needs for D seconds lets at most m/D requests through in a second; N customers who are away for at least
Z + R seconds between two requests make at most N/(Z + R) of them.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple


class Limit(NamedTuple):
    """The least of several upper bounds on a throughput."""

    throughput: float
    """1/s."""
    by: str
    """What sets it: a station, or one of the words that `limit` is given."""


def limit(
    demands: Mapping[str, float],
    servers: Mapping[str, float],
    *,
    rate: float = math.inf,
    customers: float = math.inf,
    cycle: float = 0.0,
    words: tuple[str, str] = ("rate", "customers"),
) -> Limit:
    """The bound on the throughput of one class, whatever others do.

    Args:
        demands: least service of one request, by station, s.
        servers: how many seconds of service a station gives in a second; of stations not named, 1.
        rate: requests that come in a second.
        customers: most requests under way, or users.
        cycle: least time of each of them between two requests, s.
        words: what to call the last two limits.

    Examples:
        >>> limit({"cpu": 0.005, "disk": 0.008}, {}, customers=10, cycle=0.113)
        Limit(throughput=88.4..., by='customers')
        >>> limit({"cpu": 0.005, "disk": 0.008}, {}, customers=100, cycle=0.113)
        Limit(throughput=125.0, by='disk')
    """
    found = [Limit(rate, words[0]), Limit(customers / cycle if cycle > 0 else math.inf, words[1])]
    # The smaller of two equal bounds is the one of the load: a station that is just not the bottleneck is none.
    found += [Limit(servers.get(name, 1.0) / demand, name) for name, demand in demands.items() if demand > 0]
    return min(found, key=lambda one: one.throughput)


def least_response(customers: float, throughput: float, think: float, alone: float) -> float:
    """Least mean response time of a closed loop, s: that of a request that is alone, or N/X - Z where users queue.

    Examples:
        >>> least_response(customers=100, throughput=125.0, think=0.1, alone=0.013)
        0.7...
    """
    return max(alone, customers / throughput - think) if throughput > 0 else alone
