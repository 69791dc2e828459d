"""What the cases of a study measured, by replication."""

from collections.abc import Callable, Mapping, Sequence

from vcpulab.results.figures import Interval
from vcpulab.results.statistics import Difference, paired


class Missing(LookupError):  # noqa: N818 - not an error: the case was not asked for
    """A case that was not run, or does not measure the figure."""


class Results:
    """Case and figure to a value for each replication."""

    def __init__(self, values: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
        """Takes the figures of each case: one mapping for each replication, from 0 on."""
        self._values = values

    def cases(self) -> list[str]:
        """The keys of the cases that were run."""
        return list(self._values)

    def values(self, case: str, figure: str) -> list[float]:
        """A value for each replication; replications with the same index had the same random numbers.

        Raises:
            Missing: the case was not run, or does not measure the figure.
        """
        replications = self._values.get(case)
        if not replications:
            raise Missing(f"`{case}` was not run")
        if figure not in replications[0]:
            raise Missing(f"`{case}` does not measure `{figure}`")
        return [replication[figure] for replication in replications]

    def interval(self, case: str, figure: str) -> Interval:
        """Mean and 95 % confidence interval.

        Raises:
            Missing: the case was not run, or does not measure the figure.
        """
        return self.combine(lambda value: value, (case, figure))

    def mean(self, case: str, figure: str) -> float:
        """The mean over the replications."""
        return self.interval(case, figure).mean

    def combine(self, function: Callable[..., float], *of: tuple[str, str]) -> Interval:
        """A function of several figures, computed in each replication: such as a ratio of two cases.

        Raises:
            Missing: a case was not run, or does not measure the figure.
        """
        interval = Interval.of(map(function, *(self.values(case, figure) for case, figure in of)))
        if interval is None:
            raise Missing("no replication")
        return interval

    def difference(self, figure: str, first: str, second: str) -> Difference:
        """The paired difference of a figure between two cases, first minus second.

        Raises:
            Missing: a case was not run, or does not measure the figure.
        """
        found = paired(self.values(first, figure), self.values(second, figure))
        if found is None:
            raise Missing("no replication")
        return found

    def figures(self, case: str) -> list[str]:
        """What a case measures."""
        replications = self._values.get(case)
        return list(replications[0]) if replications else []

    def replications(self, case: str) -> int:
        """How often it was run."""
        return len(self._values.get(case, ()))

    def matching(self, prefix: str) -> list[str]:
        """The keys of the cases that begin like this."""
        return [case for case in self._values if case.startswith(prefix)]
