"""Metrics of one replication without its warm-up (cut off by MSER-5), in the units of the published tables."""

import polars as pl

from vcpulab.results.run import Run
from vcpulab.results.statistics import mser5


class Window:
    """The part of a replication after its warm-up.

    Metrics of the registry have its names (`throughput`, `gotten`, `waited`, `blocked`, `io_per_execution`) and units;
    other metrics have the unit in their name, or are rates of a counter.

    Domains have their names in the scenario; applications are named by domain, position and kind ("dom1 1 dd"); clients
    are named like applications of their server, with higher positions.
    """

    def __init__(self, run: Run, main: str | None) -> None:
        """Cuts the warm-up off.

        Args:
            run: a run of one replication, with samples.
            main: the application whose completions show the end of the warm-up; `None`: nothing is cut.
        """
        self.run = run
        """The whole run, for values without samples (percentiles, completion times)."""
        self._apps = run.df_app_samples().with_columns(pl.format("{} {} {}", "domain", "app", "kind").alias("name"))
        self._domains = run.df_samples()
        series = self._apps.filter(name=main).sort("time_ns") if main is not None else self._apps.clear()
        if main is not None and series.is_empty():
            names = sorted(set(self._apps.get_column("name")))
            raise KeyError(f"no application `{main}`; there are: {', '.join(names)}")
        cut = mser5(series.get_column("completed").to_list())
        self.start_ns: int = series.get_column("time_ns")[cut - 1] if cut else 0
        """The end of the warm-up, ns since the host started."""
        self._apps = self._apps.filter(pl.col("time_ns") > self.start_ns)
        self._domains = self._domains.filter(pl.col("time_ns") > self.start_ns)

    def throughput(self, app: str) -> float:
        """Units of work completed per second."""
        return 1e9 * self._app(app, "completed") / self._app(app, "elapsed_ns")

    def failed_rate(self, app: str) -> float:
        """Units of work that failed, per second."""
        return 1e9 * self._app(app, "failed") / self._app(app, "elapsed_ns")

    def response_ms(self, app: str) -> float:
        """Mean response time, ms; nan if nothing was completed."""
        completed = self._app(app, "completed")
        return self._app(app, "response_sum_ns") / 1e6 / completed if completed else float("nan")

    def gotten(self, domain: str) -> float:
        """CPU time of a domain, % of one pCPU."""
        return 100 * self._domain(domain, "running_ns")

    def waited(self, domain: str) -> float:
        """Time that a domain's vCPUs were runnable but waiting, % of a vCPU, summed over the vCPUs."""
        return 100 * self._domain(domain, "runnable_ns")

    def blocked(self, domain: str) -> float:
        """Time that a domain's vCPUs were blocked, % of a vCPU, summed over the vCPUs."""
        return 100 * self._domain(domain, "blocked_ns")

    def rate(self, domain: str, counter: str) -> float:
        """A counter of `Run.df_samples`, per second."""
        return 1e9 * self._domain(domain, counter)

    def io_per_execution(self, domain: str) -> float:
        """XenMon's I/O count per execution; nan without any execution."""
        executions = self._domain(domain, "executions")
        return self._domain(domain, "io_count") / executions if executions else float("nan")

    def _app(self, name: str, column: str) -> float:
        rows = self._apps.filter(name=name)
        if rows.is_empty():
            raise KeyError(f"no application `{name}`; there are: {', '.join(sorted(set(self._apps['name'])))}")
        return float(rows.get_column(column).sum())

    def _domain(self, name: str, column: str) -> float:
        """A counter of a domain for each ns elapsed."""
        rows = self._domains.filter(domain=name)
        if rows.is_empty():
            raise KeyError(f"no domain `{name}`")
        return float(rows.get_column(column).sum()) / float(rows.get_column("elapsed_ns").sum())
