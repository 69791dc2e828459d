"""Measured values of the cases of a study, by replication."""

from collections.abc import Callable, Mapping, Sequence

from vcpulab.results.statistics import Difference, Interval, paired

Values = Sequence[tuple[str, str]]
"""Pairs of a case and a metric."""


class Missing(LookupError):  # noqa: N818 - not an error: the case was not selected
    """A case that was not run, or does not measure the metric."""


class Results:
    """The values of each replication by case and metric."""

    def __init__(self, values: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
        """Takes the metrics of each case: a mapping for each replication, from 0."""
        self._values = values

    def cases(self) -> list[str]:
        """The keys of the cases that were run."""
        return list(self._values)

    def values(self, case: str, metric: str) -> list[float]:
        """A value for each replication; replications with the same index had the same random numbers.

        Raises:
            Missing: the case was not run, or does not measure the metric.
        """
        replications = self._values.get(case)
        if not replications:
            raise Missing(f"`{case}` was not run")
        if metric not in replications[0]:
            raise Missing(f"`{case}` does not measure `{metric}`")
        return [replication[metric] for replication in replications]

    def interval(self, case: str, metric: str) -> Interval:
        """The mean of a metric of a case, with its 95 % confidence interval.

        Raises:
            Missing: the case was not run, or does not measure the metric.
        """
        return self.combine(lambda value: value, (case, metric))

    def mean(self, case: str, metric: str) -> float:
        """The mean of a metric of a case over the replications."""
        return self.interval(case, metric).mean

    def each(self, function: Callable[..., float], *columns: tuple[str, str]) -> list[float]:
        """A function of several metrics, such as a ratio of two cases, in each replication that all cases have.

        Raises:
            Missing: a case was not run, or does not measure the metric.
        """
        return list(map(function, *(self.values(case, metric) for case, metric in columns)))

    def combine(self, function: Callable[..., float], *columns: tuple[str, str]) -> Interval:
        """The mean of a function of several metrics, with its 95 % confidence interval.

        Raises:
            Missing: a case was not run, or does not measure the metric.
        """
        interval = Interval.from_values(self.each(function, *columns))
        if interval is None:
            raise Missing("no replication")
        return interval

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """The paired difference of a metric between two cases, first minus second.

        Raises:
            Missing: a case was not run, or does not measure the metric.
        """
        return self.difference_of(lambda value: value, [(first, metric)], [(second, metric)])

    def difference_of(self, function: Callable[..., float], first: Values, second: Values) -> Difference:
        """The paired difference of a function of several metrics, first minus second.

        Raises:
            Missing: a case was not run, or does not measure the metric.
        """
        difference = paired(self.each(function, *first), self.each(function, *second))
        if difference is None:
            raise Missing("no replication")
        return difference

    def metrics(self, case: str) -> list[str]:
        """The metrics of a case."""
        replications = self._values.get(case)
        return list(replications[0]) if replications else []

    def replications(self, case: str) -> int:
        """Number of replications of a case."""
        return len(self._values.get(case, ()))

    def matching(self, prefix: str) -> list[str]:
        """The keys of the cases that start with a prefix."""
        return [case for case in self._values if case.startswith(prefix)]
