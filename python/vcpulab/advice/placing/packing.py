"""Packing items onto equal hosts, by constraint programming (OR-tools CP-SAT; extra `place`).

Items of one kind are alike, so only how many of each kind a host has is decided: that keeps hosts and items that
could be swapped from being tried in every order.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from vcpulab.extras import require

_PARTS = 100_000
"""A host's capacity is counted in so many parts."""
_EFFORT = 20.0
"""Of the solver for one question, in its own deterministic seconds."""

Load = dict[int, int]
"""Kind to how many of it are on a host."""


@dataclass
class Problem:
    """What is to be packed."""

    counts: Sequence[int]
    """How many items there are of each kind."""
    needs: Sequence[Mapping[str, float]]
    """For each kind: resource to what one item needs of it, as a share of a host's."""
    wants: Sequence[Mapping[str, float]]
    """The same for what it would use, if it could: hosts are packed so that the fullest has least of it."""
    apart: Sequence[tuple[int, int]] = ()
    """Kinds of which a host may have one item together."""
    refused: list[Load] = field(default_factory=list)
    """No host may have so many or more of all these kinds."""

    def totals(self) -> dict[str, float]:
        """Resource to how many hosts' worth of it all items need together, the most first."""
        resources = sorted({name for need in self.needs for name in need})
        pairs = list(zip(self.counts, self.needs, strict=True))
        totals = {name: sum(count * need.get(name, 0) for count, need in pairs) for name in resources}
        return dict(sorted(totals.items(), key=lambda total: -total[1]))

    def least_hosts(self) -> int:
        """Fewer cannot hold the needs."""
        # Less a little, which binary fractions may be off by.
        return max([1, *(math.ceil(total - len(self.counts) / _PARTS) for total in self.totals().values())])


def _parts(need: float) -> int:
    # Downwards: what is measured must not forbid what fits.
    return int(need * _PARTS)


def pack(problem: Problem, hosts: int) -> tuple[list[Load] | None, bool]:
    """Packs onto so many hosts, as evenly as can be.

    Returns:
        Each host's load, or `None` if there is none; and whether that is certain.

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
