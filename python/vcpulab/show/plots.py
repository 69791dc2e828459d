"""`run.plot`: the charts of a run. All but `tables` need the extra `report`."""

from typing import TYPE_CHECKING

from vcpulab.results.run import Run

if TYPE_CHECKING:
    import altair as alt


class Plots:
    """The charts of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def domains(self) -> "alt.TopLevelMixin":
        """CPU time by domain."""
        from vcpulab.show import charts

        return charts.domains({self._run.scenario.name: self._run})

    def apps(self) -> "alt.TopLevelMixin":
        """Throughput by application; a service is shown as its clients."""
        from vcpulab.show import charts

        return charts.apps({self._run.scenario.name: self._run})

    def waits(self) -> "alt.TopLevelMixin":
        """Who made whom wait, as a map."""
        from vcpulab.show import charts

        return charts.waits(self._run)

    def wakeups(self) -> "alt.TopLevelMixin":
        """How long vCPUs waited after waking up, by domain and cause."""
        from vcpulab.show import charts

        return charts.wakeups(self._run)

    def timeline(
        self, *, replication: int = 0, start_ms: float | None = None, window_ms: float = 200
    ) -> "alt.TopLevelMixin":
        """Who ran when: zoom with the wheel, move by dragging. Needs a run with its decisions.

        Args:
            replication: which one.
            start_ms: start of the window, since the host started; `None`: the end of the warm-up.
            window_ms: length of the window; it ends earlier where there is more in it than a browser can draw.

        Raises:
            ValueError: the run kept no decisions.
        """
        from vcpulab.show import charts

        return charts.timeline(self._run, replication=replication, start_ms=start_ms, window_ms=window_ms)

    def tables(self) -> str:
        """The metrics as HTML tables."""
        from vcpulab.show import report

        return report.summary_tables(self._run)
