"""xentop in the terminal, for a run in progress or the samples of a finished run. Needs the extra `top`."""

from dataclasses import replace
from typing import ClassVar

import polars as pl
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from vcpulab._engine import LiveSamples
from vcpulab.errors import EngineError
from vcpulab.hypervisors import xentop
from vcpulab.hypervisors.monitors import NotRecordedError, check_sampled, samples
from vcpulab.results.run import Run
from vcpulab.results.run import run as run_scenario
from vcpulab.scenario.scenario import Scenario

_LEAST_DELAY_S, _MOST_DELAY_S = 0.01, 3600.0

Samples = tuple[pl.DataFrame, pl.DataFrame]
"""Samples of domains, and of their vCPUs."""


class Top(App[None]):
    """An application that shows a run at the pace of its simulated time, with xentop's keys.

    A scenario runs in the background at full speed.

    Args:
        source: a scenario, or a finished run.
        delay_s: simulated time, and time, between updates.
        replication: the replication to show.
        options: the options at first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        ("q,Q,escape", "leave", "Quit"),
        ("d,D", "ask_delay", "Delay"),
        ("n,N", "extra('networks')", "Networks"),
        ("b,B", "extra('vbds')", "VBDs"),
        ("v,V", "extra('vcpus')", "vCPUs"),
        ("r,R", "extra('repeat_header')", "Repeat header"),
        ("s,S", "sort", "Sort"),
        ("space", "pause", "Pause"),
        ("comma", "step(-1)", "Back"),
        ("full_stop", "step(1)", "Step"),
        ("g", "jump(0)", "First"),
        ("G", "jump(-1)", "Newest"),
    ]
    CSS = "#delay { display: none; } #table { width: auto; }"

    def __init__(
        self,
        source: Scenario | Run,
        *,
        delay_s: float = 1.0,
        replication: int = 0,
        options: xentop.Options | None = None,
    ) -> None:
        super().__init__()
        self.options = options or xentop.Options()
        self.delay_s = delay_s
        self.failed: EngineError | NotRecordedError | None = None
        self.paused = False
        self.fraction = 0.0
        """The fraction of the run that is done."""
        self._source = source
        self._scenario = source.scenario if isinstance(source, Run) else source
        self.title = self._scenario.name
        self._replication = replication
        self._taken: list[Samples] = []
        self._player = xentop.Player(self._scenario, delay_s=delay_s)
        self._updates: list[xentop.Update] = []
        self._shown = -1
        self._complete = False
        self._timer: Timer | None = None
        self._leaving = False

    @property
    def finished(self) -> bool:
        """`True`: the run is done, and its last update is on the screen."""
        return self._complete and self._shown + 1 == len(self._updates)

    def compose(self) -> ComposeResult:
        """A line on all domains, the table, and the keys."""
        yield Static(id="summary", markup=False)
        with VerticalScroll():
            yield Static(id="table", markup=False)
        yield Input(id="delay", placeholder="seconds between updates")
        yield Footer()

    def on_mount(self) -> None:
        """Starts the run."""
        self._show()
        self.run_worker(self._work, thread=True)

    def _work(self) -> None:
        """Runs the scenario, or reads the samples of the run; called in its own thread."""
        try:
            check_sampled(self._scenario, self._replication)
            if isinstance(self._source, Run):
                vcpus = self._source.df_vcpu_samples().filter(replication=self._replication)
                self._hand_over((samples(self._source, self._replication), vcpus), 1.0)
            else:
                self._run(self._source)
        except KeyboardInterrupt:
            return
        except (EngineError, NotRecordedError) as error:
            self.failed = error
            self.call_from_thread(self.exit)
            return
        if not self._leaving:
            self.call_from_thread(self._complete_run)

    def _run(self, scenario: Scenario) -> None:
        live = LiveSamples(self._replication)

        def advance(fraction: float) -> bool:
            domains, vcpus = live.take()
            self._hand_over((pl.DataFrame(domains), pl.DataFrame(vcpus)), fraction)
            return not self._leaving

        run_scenario(scenario, live=live, progress=advance)

    def _hand_over(self, taken: Samples, fraction: float) -> None:
        if not self._leaving:
            self.call_from_thread(self._arrived, taken, fraction)

    def _arrived(self, taken: Samples, fraction: float) -> None:
        """Takes new samples; there may be none."""
        self.fraction = fraction
        if taken[0].height:
            self._taken.append(taken)
            self._updates += self._player.add(*taken)
        self._begin()

    def _complete_run(self) -> None:
        self._complete = True
        self._updates += self._player.finish()
        self._begin()

    def _begin(self) -> None:
        """Shows the first update as soon as it exists; later updates follow after the delay."""
        if self._shown < 0 and self._updates:
            self._shown = 0
            self._set_timer()
        self._show()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(self.delay_s, self._advance)

    def _plan(self) -> None:
        """Plans updates from the shown one on, one after every delay."""
        shown = self._updates[: self._shown + 1]
        self._player = xentop.Player(self._scenario, delay_s=self.delay_s)
        planned = [update for taken in self._taken for update in self._player.add(*taken)]
        planned += self._player.finish() if self._complete else ()
        self._updates = shown + [update for update in planned if not shown or update.time_s > shown[-1].time_s]
        self._set_timer()

    def _advance(self) -> None:
        if self._shown + 1 < len(self._updates) and not self.paused:
            self._shown += 1
            self._show()

    def _show(self) -> None:
        states = [] if self._complete else [f"running: {100 * self.fraction:.0f} %"]
        states += ["paused"] if self.paused else []
        states += [] if self.options.sort is None else [f"by {self.options.sort}"]
        if self._shown < 0:
            self._say("    ".join([self.title, *states]))
            return
        update = self._updates[self._shown]
        self._say("    ".join([self.title, xentop.summary(update), *states]))
        self.query_one("#table", Static).update("\n".join(xentop.table(update, self.options)))

    def _say(self, line: str) -> None:
        self.query_one("#summary", Static).update(line)

    # ---- keys ----

    def action_leave(self) -> None:
        """Ends the application, or closes the entry of the delay."""
        entry = self.query_one("#delay", Input)
        if entry.has_focus:
            self._close(entry)
            return
        self._leaving = True
        self.exit()

    def action_extra(self, extra: xentop.Extra) -> None:
        """Shows lines about each domain, or hides them."""
        self.options = replace(self.options, extra=self.options.extra ^ {extra})
        self._show()

    def action_sort(self) -> None:
        """Sorts by the next column."""
        orders = (None, *xentop.SORT_ORDERS)
        self.options = replace(self.options, sort=orders[(orders.index(self.options.sort) + 1) % len(orders)])
        self._show()

    def action_pause(self) -> None:
        """Pauses, or continues."""
        self.paused = not self.paused
        self._show()

    def action_step(self, by: int) -> None:
        """Pauses at the next update, or at the previous one."""
        self.paused = True
        self.action_jump(min(max(self._shown + by, 0), len(self._updates) - 1))

    def action_jump(self, to: int) -> None:
        """Shows the first update, or the newest one (-1)."""
        if self._updates:
            self._shown = to % len(self._updates)
        self._show()

    def action_ask_delay(self) -> None:
        """Asks for the time between updates."""
        entry = self.query_one("#delay", Input)
        entry.value = ""
        entry.styles.display = "block"
        entry.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Takes a new delay if the text is a valid one."""
        try:
            delay_s = float(event.value)
        except ValueError:
            delay_s = 0.0
        if not _LEAST_DELAY_S <= delay_s <= _MOST_DELAY_S:
            self.notify(f"found `{event.value}`; allowed: {_LEAST_DELAY_S} to {_MOST_DELAY_S:g} s", severity="error")
            return
        self.delay_s = delay_s
        self._close(event.input)
        self._plan()

    def _close(self, entry: Input) -> None:
        entry.styles.display = "none"
        self.set_focus(None)
