"""Mean-value analysis of queueing networks: closed, open, and mixed.

Exact for product-form networks (processor sharing, or first come, first served with exponential service; delays) by
the arrival theorem: whoever arrives sees the network as it is in the mean with himself taken out (Reiser and Lavenberg
1980, "Mean-value analysis of closed multichain queuing networks", Journal of the ACM 27, pp. 313-322). Notation and the
mixed case are those of Lazowska, Zahorjan, Graham and Sevcik 1984, "Quantitative System Performance", chapters 6 to 8.

Times are in seconds, rates per second.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

EXACT_STATES_MAX = 20_000
"""Most populations that are gone through for an exact answer."""

_CLOSE = 1e-10
_ROUNDS_MAX = 10_000


@dataclass(frozen=True)
class Centre:
    """Where customers are served, or delayed."""

    name: str
    servers: int = 1
    """How many it serves at once; 0: all, it is a delay."""


@dataclass(frozen=True)
class Closed:
    """So many customers who come back for ever."""

    name: str
    population: int
    demands: Mapping[str, float]
    """Service of one visit to the network, by centre, s."""
    think: float = 0.0
    """Mean time between two visits, s."""


@dataclass(frozen=True)
class Open:
    """Customers who come at a rate and go."""

    name: str
    rate: float
    demands: Mapping[str, float]


@dataclass(frozen=True)
class Solution:
    """Means in the steady state."""

    throughput: Mapping[str, float]
    """By class, 1/s."""
    response: Mapping[str, float]
    """By class, without thinking, s; infinite: its customers become ever more."""
    utilisation: Mapping[str, float]
    """By centre: busy servers, as a fraction of all; of a delay, customers in it."""
    customers: Mapping[str, float]
    """By centre, of closed classes: waiting and served."""
    method: str
    """How it was found, and whether that is exact."""


def solve(centres: Sequence[Centre], closed: Sequence[Closed] = (), open_: Sequence[Open] = ()) -> Solution:
    """Solves a network.

    Open classes leave the closed ones what they do not use themselves: demands of closed classes are stretched by
    1/(1 - U) (Lazowska et al., section 7.4.3). Of several closed classes an exact solution is found while they have few
    states; otherwise Schweitzer's approximation.

    Args:
        centres: where service is; demands elsewhere are not allowed.
        closed: classes with a fixed number of customers.
        open_: classes with a rate.

    Raises:
        KeyError: a demand is at no centre.

    Examples:
        >>> machines = Closed("machines", population=3, think=2.0, demands={"repair": 1.0})
        >>> round(solve([Centre("repair")], [machines]).throughput["machines"], 4)
        0.7895
    """
    known = {centre.name: centre for centre in centres}
    demanded = [one.demands for one in closed] + [one.demands for one in open_]
    if strangers := {name for demands in demanded for name in demands} - known.keys():
        raise KeyError(f"demands at {', '.join(sorted(strangers))}, which is no centre")
    of_open = busy((one.rate, one.demands) for one in open_)
    rho = {k.name: of_open.get(k.name, 0.0) / k.servers if k.servers else 0.0 for k in centres}
    stretched = [_stretched(one, rho) for one in closed]
    found = _solve_closed(centres, stretched)
    throughput = {**found.throughput, **{one.name: one.rate for one in open_}}
    response = {**found.response, **{one.name: _open_response(one, known, rho, found.customers) for one in open_}}
    of_closed = busy((found.throughput[one.name], one.demands) for one in closed)
    utilisation = {k.name: (of_open.get(k.name, 0.0) + of_closed.get(k.name, 0.0)) / max(k.servers, 1) for k in centres}
    method = found.method if closed else _open_method(centres)
    if closed and open_:
        method += "; open classes taken out of the centres first"
    return Solution(throughput, response, utilisation, found.customers, method)


def busy(classes: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Busy servers at each centre that has work, by the throughput of each class and its demands (utilisation law).

    Examples:
        >>> busy([(2.0, {"cpu": 0.25, "disk": 0.1}), (1.0, {"cpu": 0.5})])
        {'cpu': 1.0, 'disk': 0.2}
    """
    parts: dict[str, list[float]] = {}
    for throughput, demands in classes:
        for name, demand in demands.items():
            # A load that asks for nothing may have an infinite throughput.
            parts.setdefault(name, []).append(throughput * demand if demand else 0.0)
    return {name: math.fsum(products) for name, products in parts.items()}


def _stretched(one: Closed, rho: Mapping[str, float]) -> Closed:
    demands = {name: demand / max(1.0 - rho[name], 1e-12) for name, demand in one.demands.items()}
    return Closed(one.name, one.population, demands, one.think)


# ---- open ----


def erlang_c(servers: int, load: float) -> float:
    """Probability that whoever comes must wait, with `load` busy servers in the mean (Erlang 1917).

    Examples:
        >>> erlang_c(1, 0.5), round(erlang_c(2, 1.0), 4)
        (0.5, 0.3333)
    """
    if load >= servers:
        return 1.0
    blocked = 1.0
    for server in range(1, servers + 1):
        blocked = load * blocked / (server + load * blocked)
    return blocked / (1 - load / servers * (1 - blocked))


def _open_response(
    one: Open, centres: Mapping[str, Centre], rho: Mapping[str, float], customers: Mapping[str, float]
) -> float:
    total = 0.0
    for name, demand in one.demands.items():
        servers = centres[name].servers
        if servers == 0 or demand == 0:
            total += demand
        elif rho[name] >= 1:
            return math.inf
        else:
            waits = erlang_c(servers, rho[name] * servers) / (servers * (1 - rho[name]))
            # Closed customers who are there are in the way, too (Lazowska et al., section 7.4.3).
            total += demand * (1 + waits + customers.get(name, 0.0) / (servers * (1 - rho[name])))
    return total


def _open_method(centres: Sequence[Centre]) -> str:
    return f"open network, exact for product form ({'M/M/m' if any(c.servers > 1 for c in centres) else 'M/M/1'})"


# ---- closed ----


def _solve_closed(centres: Sequence[Centre], classes: Sequence[Closed]) -> Solution:
    if not classes:
        return Solution({}, {}, {}, {}, "")
    if len(classes) == 1 and classes[0].population <= EXACT_STATES_MAX:
        return _one_class(centres, classes[0])
    # Where there is a server for everybody who comes, there is a delay.
    crowds = Counter({k.name: 0 for k in centres})
    for one in classes:
        crowds.update({name: one.population for name, demand in one.demands.items() if demand})
    centres = [Centre(k.name, 0) if crowds[k.name] <= k.servers else k for k in centres]
    single, moved = _without_multiple_servers(centres, classes)
    states = math.prod(one.population + 1 for one in classes)
    several = any(centre.servers > 1 for centre in centres)
    note = "; several servers by Seidmann's approximation" if several else ""
    if states <= EXACT_STATES_MAX:
        return _exact(single, moved, "exact mean-value analysis" + note)
    return _schweitzer(single, moved, "Schweitzer's approximate mean-value analysis" + note)


def _one_class(centres: Sequence[Centre], one: Closed) -> Solution:
    """Exact, several servers included (Reiser and Lavenberg 1980, section 4; Lazowska et al., chapter 8)."""
    demands = {centre: one.demands.get(centre.name, 0.0) for centre in centres}
    queue = {centre.name: 0.0 for centre in centres}
    # Of centres with several servers: the probabilities that 0, 1, ... servers but one are busy.
    idle = {centre.name: [1.0] + [0.0] * (centre.servers - 2) for centre in centres if centre.servers > 1}
    throughput = response = 0.0
    for n in range(1, one.population + 1):
        times = {}
        for centre, demand in demands.items():
            m = centre.servers
            if m == 0:
                times[centre.name] = demand
            else:
                free = sum((m - 1 - j) * p for j, p in enumerate(idle.get(centre.name, ())))
                times[centre.name] = demand / m * (1 + queue[centre.name] + free)
        response = math.fsum(times.values())
        cycle = response + one.think
        if cycle == 0:
            throughput = math.inf
            break
        throughput = n / cycle
        queue = {name: throughput * time for name, time in times.items()}
        for centre, demand in demands.items():
            if centre.servers > 1:
                idle[centre.name] = _marginals(idle[centre.name], throughput * demand, centre.servers)
    method = "exact mean-value analysis"
    return Solution({one.name: throughput}, {one.name: response}, {}, queue, method)


def _marginals(before: list[float], load: float, servers: int) -> list[float]:
    """Probabilities of 0 to `servers` - 2 customers with one more in the network; `load` of the servers are busy."""
    # p(j | n) = load / j · p(j - 1 | n - 1); p(0) from the mean number of busy servers.
    following = [load / j * before[j - 1] for j in range(1, servers)]
    none = 1 - (load + sum((servers - j) * p for j, p in enumerate(following, 1))) / servers
    return [max(0.0, none), *following][: servers - 1]


def _without_multiple_servers(
    centres: Sequence[Centre], classes: Sequence[Closed]
) -> tuple[list[Centre], list[Closed]]:
    """Servers as one that is as many times as fast, and a delay (Seidmann, Schweitzer and Shalev-Oren 1987)."""
    single, moved = [], [dict(one.demands) for one in classes]
    for centre in centres:
        single.append(Centre(centre.name, min(centre.servers, 1)))
        if centre.servers > 1:
            single.append(Centre(_delay_of(centre.name), 0))
            for demands in moved:
                demand = demands.get(centre.name, 0.0)
                demands[centre.name] = demand / centre.servers
                demands[_delay_of(centre.name)] = demand * (centre.servers - 1) / centre.servers
    pairs = zip(classes, moved, strict=True)
    return single, [Closed(one.name, one.population, demands, one.think) for one, demands in pairs]


def _delay_of(name: str) -> str:
    return f"{name} (its other servers)"


def _exact(centres: Sequence[Centre], classes: Sequence[Closed], method: str) -> Solution:
    """Over all populations from nobody on."""
    queues: dict[tuple[int, ...], list[float]] = {}
    throughput, responses = [0.0] * len(classes), [0.0] * len(classes)
    demands = [[one.demands.get(centre.name, 0.0) for centre in centres] for one in classes]
    for there in product(*(range(one.population + 1) for one in classes)):
        queue = [0.0] * len(centres)
        throughput = [0.0] * len(classes)
        for c, one in enumerate(classes):
            if there[c] == 0:
                continue
            seen = queues[(*there[:c], there[c] - 1, *there[c + 1 :])]
            times = [d * (1 + q) if k.servers else d for d, q, k in zip(demands[c], seen, centres, strict=True)]
            responses[c] = sum(times)
            throughput[c] = there[c] / (responses[c] + one.think) if responses[c] + one.think else math.inf
            if responses[c] > 0:
                queue = [q + throughput[c] * time for q, time in zip(queue, times, strict=True)]
        queues[there] = queue
    return _solution(centres, classes, (throughput, responses, queue), method)


def _schweitzer(centres: Sequence[Centre], classes: Sequence[Closed], method: str) -> Solution:
    """Who arrives is taken to see his own class in proportion (Schweitzer 1979; Bard 1979)."""
    demands = [[one.demands.get(centre.name, 0.0) for centre in centres] for one in classes]
    served = [max(1, sum(d > 0 for d in row)) for row in demands]
    queues = [
        [one.population / n if d else 0.0 for d in row] for one, n, row in zip(classes, served, demands, strict=True)
    ]
    throughput, responses = [0.0] * len(classes), [0.0] * len(classes)
    for _ in range(_ROUNDS_MAX):
        change = 0.0
        total = [sum(column) for column in zip(*queues, strict=True)]
        for c, one in enumerate(classes):
            if one.population == 0:
                continue
            there = [all_ - own / one.population for all_, own in zip(total, queues[c], strict=True)]
            times = [d * (1 + q) if k.servers else d for d, q, k in zip(demands[c], there, centres, strict=True)]
            responses[c] = sum(times)
            if responses[c] + one.think == 0:
                throughput[c] = math.inf
                continue
            throughput[c] = one.population / (responses[c] + one.think)
            row = [throughput[c] * time for time in times]
            change = max(change, *(abs(a - b) for a, b in zip(row, queues[c], strict=True)), 0.0)
            total = [all_ + now - then for all_, now, then in zip(total, row, queues[c], strict=True)]
            queues[c] = row
        if change < _CLOSE * max(one.population for one in classes):
            break
    queue = [sum(row[k] for row in queues) for k in range(len(centres))]
    return _solution(centres, classes, (throughput, responses, queue), method)


def _solution(
    centres: Sequence[Centre],
    classes: Sequence[Closed],
    found: tuple[Sequence[float], Sequence[float], Sequence[float]],
    method: str,
) -> Solution:
    throughput, responses, queue = found
    names = [one.name for one in classes]
    customers = {centre.name: there for centre, there in zip(centres, queue, strict=True)}
    return Solution(
        dict(zip(names, throughput, strict=True)), dict(zip(names, responses, strict=True)), {}, customers, method
    )
