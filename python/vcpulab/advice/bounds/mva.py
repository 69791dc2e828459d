"""Mean-value analysis of queueing networks: closed, open, and mixed.

Exact for product-form networks (processor sharing, or first come, first served with exponential service; delays) by
the arrival theorem: an arriving customer sees the mean state of the network without that customer (Reiser and Lavenberg
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
"""Most populations in an exact solution."""

_CLOSE = 1e-10
_ROUNDS_MAX = 10_000


@dataclass(frozen=True)
class Centre:
    """A service centre, or a delay."""

    name: str
    servers: int = 1
    """Most customers served at once; 0: all, the centre is a delay."""


@dataclass(frozen=True)
class Closed:
    """A closed class: a fixed number of customers who always return."""

    name: str
    population: int
    demands: Mapping[str, float]
    """Service of one visit to the network, by centre, s."""
    think: float = 0.0
    """Mean time between two visits, s."""


@dataclass(frozen=True)
class Open:
    """An open class: customers who arrive at a rate and leave."""

    name: str
    rate: float
    demands: Mapping[str, float]


@dataclass(frozen=True)
class Solution:
    """Means in the steady state."""

    throughput: Mapping[str, float]
    """Throughput by class, 1/s."""
    response: Mapping[str, float]
    """Response time by class, without think time, s; infinite: the number of customers grows without bound."""
    utilisation: Mapping[str, float]
    """Busy servers by centre, as a fraction of all; for a delay, the customers in it."""
    customers: Mapping[str, float]
    """Customers of closed classes by centre, waiting and served."""
    method: str
    """Method of the solution, with whether it is exact."""


def solve(centres: Sequence[Centre], closed: Sequence[Closed] = (), open_: Sequence[Open] = ()) -> Solution:
    """Solves a network.

    Closed classes get the capacity that open classes leave: demands of closed classes are stretched by 1/(1 - U)
    (Lazowska et al., section 7.4.3). Several closed classes are solved exactly if they have few states, otherwise by
    Schweitzer's approximation.

    Args:
        centres: the centres of the network, which all demands must name.
        closed: classes with a fixed number of customers.
        open_: classes with a rate.

    Raises:
        KeyError: a demand names no centre.

    Examples:
        >>> machines = Closed("machines", population=3, think=2.0, demands={"repair": 1.0})
        >>> round(solve([Centre("repair")], [machines]).throughput["machines"], 4)
        0.7895
    """
    by_name = {centre.name: centre for centre in centres}
    demanded = [job_class.demands for job_class in closed] + [job_class.demands for job_class in open_]
    if strangers := {name for demands in demanded for name in demands} - by_name.keys():
        raise KeyError(f"demands at {', '.join(sorted(strangers))}, which is no centre")
    of_open = busy((job_class.rate, job_class.demands) for job_class in open_)
    rho = {k.name: of_open.get(k.name, 0.0) / k.servers if k.servers else 0.0 for k in centres}
    stretched = [_stretched(job_class, rho) for job_class in closed]
    solution = _solve_closed(centres, stretched)
    throughput = {**solution.throughput, **{job_class.name: job_class.rate for job_class in open_}}
    response = {
        **solution.response,
        **{job_class.name: _open_response(job_class, by_name, rho, solution.customers) for job_class in open_},
    }
    of_closed = busy((solution.throughput[job_class.name], job_class.demands) for job_class in closed)
    utilisation = {k.name: (of_open.get(k.name, 0.0) + of_closed.get(k.name, 0.0)) / max(k.servers, 1) for k in centres}
    method = solution.method if closed else _open_method(centres)
    if closed and open_:
        method += "; open classes taken out of the centres first"
    return Solution(throughput, response, utilisation, solution.customers, method)


def busy(classes: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Busy servers at each centre that has work, by the throughput of each class and its demands (utilisation law).

    Examples:
        >>> busy([(2.0, {"cpu": 0.25, "disk": 0.1}), (1.0, {"cpu": 0.5})])
        {'cpu': 1.0, 'disk': 0.2}
    """
    parts: dict[str, list[float]] = {}
    for throughput, demands in classes:
        for name, demand in demands.items():
            # A load without demands may have an infinite throughput.
            parts.setdefault(name, []).append(throughput * demand if demand else 0.0)
    return {name: math.fsum(products) for name, products in parts.items()}


def _stretched(job_class: Closed, rho: Mapping[str, float]) -> Closed:
    demands = {name: demand / max(1.0 - rho[name], 1e-12) for name, demand in job_class.demands.items()}
    return Closed(job_class.name, job_class.population, demands, job_class.think)


# ---- open ----


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arriving customer must wait, with `load` busy servers in the mean (Erlang 1917).

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
    job_class: Open, centres: Mapping[str, Centre], rho: Mapping[str, float], customers: Mapping[str, float]
) -> float:
    total = 0.0
    for name, demand in job_class.demands.items():
        servers = centres[name].servers
        if servers == 0 or demand == 0:
            total += demand
        elif rho[name] >= 1:
            return math.inf
        else:
            waits = erlang_c(servers, rho[name] * servers) / (servers * (1 - rho[name]))
            # Customers of closed classes at the centre add to the wait (Lazowska et al., section 7.4.3).
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
    # A centre with a server for each customer is a delay.
    crowds = Counter({k.name: 0 for k in centres})
    for job_class in classes:
        crowds.update({name: job_class.population for name, demand in job_class.demands.items() if demand})
    centres = [Centre(k.name, 0) if crowds[k.name] <= k.servers else k for k in centres]
    single, moved = _without_multiple_servers(centres, classes)
    states = math.prod(job_class.population + 1 for job_class in classes)
    several = any(centre.servers > 1 for centre in centres)
    note = "; several servers by Seidmann's approximation" if several else ""
    if states <= EXACT_STATES_MAX:
        return _exact(single, moved, "exact mean-value analysis" + note)
    return _schweitzer(single, moved, "Schweitzer's approximate mean-value analysis" + note)


def _one_class(centres: Sequence[Centre], job_class: Closed) -> Solution:
    """The exact solution for any servers (Reiser and Lavenberg 1980, section 4; Lazowska et al., chapter 8)."""
    demands = {centre: job_class.demands.get(centre.name, 0.0) for centre in centres}
    queue = {centre.name: 0.0 for centre in centres}
    # For centres with m > 1 servers: the probabilities that 0, 1, ..., m - 2 servers are busy.
    idle = {centre.name: [1.0] + [0.0] * (centre.servers - 2) for centre in centres if centre.servers > 1}
    throughput = response = 0.0
    for n in range(1, job_class.population + 1):
        times = {}
        for centre, demand in demands.items():
            m = centre.servers
            if m == 0:
                times[centre.name] = demand
            else:
                free = sum((m - 1 - j) * p for j, p in enumerate(idle.get(centre.name, ())))
                times[centre.name] = demand / m * (1 + queue[centre.name] + free)
        response = math.fsum(times.values())
        cycle = response + job_class.think
        if cycle == 0:
            throughput = math.inf
            break
        throughput = n / cycle
        queue = {name: throughput * time for name, time in times.items()}
        for centre, demand in demands.items():
            if centre.servers > 1:
                idle[centre.name] = _marginals(idle[centre.name], throughput * demand, centre.servers)
    method = "exact mean-value analysis"
    return Solution({job_class.name: throughput}, {job_class.name: response}, {}, queue, method)


def _marginals(before: list[float], load: float, servers: int) -> list[float]:
    """Probabilities of 0 to `servers` - 2 customers with one more in the network; `load` of the servers are busy."""
    # p(j | n) = load / j · p(j - 1 | n - 1); p(0) from the mean number of busy servers.
    following = [load / j * before[j - 1] for j in range(1, servers)]
    none = 1 - (load + sum((servers - j) * p for j, p in enumerate(following, 1))) / servers
    return [max(0.0, none), *following][: servers - 1]


def _without_multiple_servers(
    centres: Sequence[Centre], classes: Sequence[Closed]
) -> tuple[list[Centre], list[Closed]]:
    """Centres with m servers as one server, m times as fast, and a delay (Seidmann, Schweitzer, Shalev-Oren 1987)."""
    single, moved = [], [dict(job_class.demands) for job_class in classes]
    for centre in centres:
        single.append(Centre(centre.name, min(centre.servers, 1)))
        if centre.servers > 1:
            single.append(Centre(_delay_of(centre.name), 0))
            for demands in moved:
                demand = demands.get(centre.name, 0.0)
                demands[centre.name] = demand / centre.servers
                demands[_delay_of(centre.name)] = demand * (centre.servers - 1) / centre.servers
    pairs = zip(classes, moved, strict=True)
    return single, [
        Closed(job_class.name, job_class.population, demands, job_class.think) for job_class, demands in pairs
    ]


def _delay_of(name: str) -> str:
    return f"{name} (its other servers)"


def _exact(centres: Sequence[Centre], classes: Sequence[Closed], method: str) -> Solution:
    """The exact solution, by recursion over all populations from 0 on."""
    queues: dict[tuple[int, ...], list[float]] = {}
    throughput, responses = [0.0] * len(classes), [0.0] * len(classes)
    demands = [[job_class.demands.get(centre.name, 0.0) for centre in centres] for job_class in classes]
    for population in product(*(range(job_class.population + 1) for job_class in classes)):
        queue = [0.0] * len(centres)
        throughput = [0.0] * len(classes)
        for c, job_class in enumerate(classes):
            if population[c] == 0:
                continue
            seen = queues[(*population[:c], population[c] - 1, *population[c + 1 :])]
            times = [d * (1 + q) if k.servers else d for d, q, k in zip(demands[c], seen, centres, strict=True)]
            responses[c] = sum(times)
            throughput[c] = (
                population[c] / (responses[c] + job_class.think) if responses[c] + job_class.think else math.inf
            )
            if responses[c] > 0:
                queue = [q + throughput[c] * time for q, time in zip(queue, times, strict=True)]
        queues[population] = queue
    return _solution(centres, classes, (throughput, responses, queue), method)


def _schweitzer(centres: Sequence[Centre], classes: Sequence[Closed], method: str) -> Solution:
    """The approximation of arrivals that see their own class in proportion (Schweitzer 1979; Bard 1979)."""
    demands = [[job_class.demands.get(centre.name, 0.0) for centre in centres] for job_class in classes]
    served = [max(1, sum(d > 0 for d in row)) for row in demands]
    queues = [
        [job_class.population / n if d else 0.0 for d in row]
        for job_class, n, row in zip(classes, served, demands, strict=True)
    ]
    throughput, responses = [0.0] * len(classes), [0.0] * len(classes)
    for _ in range(_ROUNDS_MAX):
        change = 0.0
        total = [sum(column) for column in zip(*queues, strict=True)]
        for c, job_class in enumerate(classes):
            if job_class.population == 0:
                continue
            seen = [all_ - own / job_class.population for all_, own in zip(total, queues[c], strict=True)]
            times = [d * (1 + q) if k.servers else d for d, q, k in zip(demands[c], seen, centres, strict=True)]
            responses[c] = sum(times)
            if responses[c] + job_class.think == 0:
                throughput[c] = math.inf
                continue
            throughput[c] = job_class.population / (responses[c] + job_class.think)
            row = [throughput[c] * time for time in times]
            change = max(change, *(abs(a - b) for a, b in zip(row, queues[c], strict=True)), 0.0)
            total = [all_ + now - then for all_, now, then in zip(total, row, queues[c], strict=True)]
            queues[c] = row
        if change < _CLOSE * max(job_class.population for job_class in classes):
            break
    queue = [sum(row[k] for row in queues) for k in range(len(centres))]
    return _solution(centres, classes, (throughput, responses, queue), method)


def _solution(
    centres: Sequence[Centre],
    classes: Sequence[Closed],
    means: tuple[Sequence[float], Sequence[float], Sequence[float]],
    method: str,
) -> Solution:
    throughput, responses, queue = means
    names = [job_class.name for job_class in classes]
    customers = {centre.name: length for centre, length in zip(centres, queue, strict=True)}
    return Solution(
        dict(zip(names, throughput, strict=True)), dict(zip(names, responses, strict=True)), {}, customers, method
    )
