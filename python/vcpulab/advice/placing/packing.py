"""Packing items onto equal hosts, by constraint programming (OR-tools CP-SAT; extra `place`).

Items of one kind are alike. The solver therefore decides only the number of items of each kind on a host, and does not
try hosts and items that could be swapped in every order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from vcpulab._extras import require

_PARTS = 100_000
"""The number of parts in which a host's capacity is counted."""
_EFFORT = 20.0
"""The time limit of one solver call, in the solver's deterministic seconds."""

Load = dict[int, int]
"""Kind to the number of its items on a host."""


@dataclass
class Problem:
    """The items to pack, and the constraints."""

    counts: Sequence[int]
    """The number of items of each kind."""
    needs: Sequence[Mapping[str, float]]
    """For each kind: resource to the need of one item, as a share of a host's capacity."""
    wants: Sequence[Mapping[str, float]]
    """For each kind: resource to the share that one item uses alone; packing minimizes the sum on the fullest host."""
    apart: Sequence[tuple[int, int]] = ()
    """Pairs of kinds of which a host may have at most one item in total."""
    refused: list[Load] = field(default_factory=list)
    """Loads that no host may have or exceed."""

    def totals(self) -> dict[str, float]:
        """Resource to the need of all items in hosts, the largest first."""
        resources = sorted({name for need in self.needs for name in need})
        pairs = list(zip(self.counts, self.needs, strict=True))
        totals = {name: sum(count * need.get(name, 0) for count, need in pairs) for name in resources}
        return dict(sorted(totals.items(), key=lambda total: -total[1]))

    def least_hosts(self) -> int:
        """The least number of hosts that can hold the needs."""
        # Minus the rounding error of binary fractions.
        return max([1, *(math.ceil(total - len(self.counts) / _PARTS) for total in self.totals().values())])


def _parts(need: float) -> int:
    # Rounded down: a measurement must not forbid items that fit.
    return int(need * _PARTS)


def pack(problem: Problem, hosts: int) -> tuple[list[Load] | None, bool]:
    """Packs the items onto a number of hosts, as evenly as possible.

    Returns:
        Each host's load, or `None` if no packing was found; and whether that is certain.

    Raises:
        MissingExtraError: OR-tools are not installed.

    Examples:
        >>> pack(Problem([2, 2], [{"cpu": 0.6}, {"cpu": 0.4}], [{"cpu": 0.6}, {"cpu": 0.4}]), 2)
        ([{0: 1, 1: 1}, {0: 1, 1: 1}], True)
    """
    cp_model = require("ortools.sat.python.cp_model", "place")
    model = cp_model.CpModel()
    kinds = range(len(problem.counts))
    amount = [[model.new_int_var(0, problem.counts[kind], f"{kind}@{host}") for kind in kinds] for host in range(hosts)]
    for kind in kinds:
        model.add(sum(row[kind] for row in amount) == problem.counts[kind])
    fullest = model.new_int_var(0, _PARTS * sum(problem.counts), "fullest")
    loads = []
    for row in amount:
        for shares, most in ((problem.needs, _PARTS), (problem.wants, fullest)):
            for name in sorted({name for share in shares for name in share}):
                model.add(sum(_parts(shares[kind].get(name, 0)) * row[kind] for kind in kinds) <= most)
        loads.append(sum((1 + sum(map(_parts, problem.wants[kind].values()))) * row[kind] for kind in kinds))
        for first, second in problem.apart:
            model.add(row[first] + row[second] <= 1)
        for refused in problem.refused:
            fewer = []
            for kind, count in refused.items():
                less = model.new_bool_var("")
                model.add(row[kind] < count).only_enforce_if(less)
                fewer.append(less)
            model.add_bool_or(fewer)
    for larger, smaller in pairwise(loads):
        model.add(larger >= smaller)
    model.minimize(fullest)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = _EFFORT
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, status == cp_model.INFEASIBLE
    return [{kind: n for kind in kinds if (n := solver.value(row[kind]))} for row in amount], True
