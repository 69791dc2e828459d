"""Asymptotic bounds of queueing networks, which hold for any order of service.

Lazowska, Zahorjan, Graham and Sevcik 1984, "Quantitative System Performance", chapter 5. A station with m servers that
each request needs for D seconds serves at most m/D requests per second; N customers with at least Z + R seconds between
two requests make at most N/(Z + R) requests per second.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple


class Limit(NamedTuple):
    """The least of several upper bounds on a throughput."""

    throughput: float
    """Upper bound, 1/s."""
    by: str
    """The bottleneck: a station, or one of the `words` of `limit`."""


def limit(
    demands: Mapping[str, float],
    servers: Mapping[str, float],
    *,
    rate: float = math.inf,
    customers: float = math.inf,
    cycle: float = 0.0,
    words: tuple[str, str] = ("rate", "customers"),
) -> Limit:
    """The bound on the throughput of one class, for any work of the other classes.

    Args:
        demands: least service of one request, by station, s.
        servers: seconds of service that a station gives in a second; 1 for stations that are not named.
        rate: requests that arrive in a second.
        customers: most requests under way, or users.
        cycle: least time between two requests of a customer, s.
        words: names of the limits by rate and by customers.

    Examples:
        >>> limit({"cpu": 0.005, "disk": 0.008}, {}, customers=10, cycle=0.113)
        Limit(throughput=88.4..., by='customers')
        >>> limit({"cpu": 0.005, "disk": 0.008}, {}, customers=100, cycle=0.113)
        Limit(throughput=125.0, by='disk')
    """
    limits = [Limit(rate, words[0]), Limit(customers / cycle if cycle > 0 else math.inf, words[1])]
    # Of two equal bounds the load's comes first: a station that is just fast enough is no bottleneck.
    limits += [Limit(servers.get(name, 1.0) / demand, name) for name, demand in demands.items() if demand > 0]
    return min(limits, key=lambda bound: bound.throughput)


def least_response(customers: float, throughput: float, think: float, alone: float) -> float:
    """Least mean response time of a closed loop, s: the time of a request alone, or N/X - Z if users queue.

    Examples:
        >>> least_response(customers=100, throughput=125.0, think=0.1, alone=0.013)
        0.7...
    """
    return max(alone, customers / throughput - think) if throughput > 0 else alone
