"""xentop in the terminal: plays a run from its samples. Needs the extra `top`."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.timer import Timer
from textual.widgets import Footer, Input, Static

from vcpulab import xentop
from vcpulab._engine import EngineError
from vcpulab.monitors import NotRecordedError
from vcpulab.runs import Run

_LEAST_DELAY_S, _MOST_DELAY_S = 0.01, 3600.0

Advance = Callable[[float], bool]


class Top(App[None]):
    """Plays a run at the pace of its own time, with xentop's keys.

    Args:
        title: what is shown.
        run: makes the run; it is given whom to tell the fraction done, and stops when the answer is `False`.
        delay_s: simulated time, and time, between updates.
        replication: which one to show.
        options: what to show at first.
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
    ]
    CSS = "#delay { display: none; } #table { width: auto; }"

    def __init__(
        self,
        title: str,
        run: Callable[[Advance], Run],
        *,
        delay_s: float = 1.0,
        replication: int = 0,
        options: xentop.Options | None = None,
    ) -> None:
        super().__init__()
        self.title = title
        self.options = options or xentop.Options()
        self.delay_s = delay_s
        self.finished = False
        self.failed: EngineError | NotRecordedError | None = None
        self.paused = False
        self._make = run
        self._replication = replication
        self._updates: list[xentop.Update] = []
        self._run: Run | None = None
        self._shown = -1
        self._timer: Timer | None = None
        self._leaving = False

    def compose(self) -> ComposeResult:
        """A line on all domains, the table, and the keys."""
        yield Static(id="summary", markup=False)
        with VerticalScroll():
            yield Static(id="table", markup=False)
        yield Input(id="delay", placeholder="seconds between updates")
        yield Footer()

    def on_mount(self) -> None:
        """Begins with the run."""
        self._say("running the scenario")
        self.run_worker(self._work, thread=True)

    def _work(self) -> None:
        def advance(fraction: float) -> bool:
            if not self._leaving:
                self.call_from_thread(self._say, f"running the scenario: {100 * fraction:.0f} %")
            return not self._leaving

        try:
            run = self._make(advance)
            next(xentop.updates(run, delay_s=self.delay_s, replication=self._replication))
        except KeyboardInterrupt:
            return
        except (EngineError, NotRecordedError) as error:
            self.failed = error
            self.call_from_thread(self.exit)
            return
        if not self._leaving:
            self.call_from_thread(self._play, run)

    def _play(self, run: Run) -> None:
        self._run = run
        self._plan(from_s=0.0)
        self._advance()

    def _plan(self, from_s: float) -> None:
        """From now on an update after every delay."""
        if self._run is not None:
            shown = self._updates[: self._shown + 1]
            planned = xentop.updates(self._run, delay_s=self.delay_s, replication=self._replication)
            self._updates = shown + [update for update in planned if update.time_s > from_s]
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_interval(self.delay_s, self._advance)

    def _advance(self) -> None:
        if self._shown + 1 < len(self._updates) and not self.paused:
            self._shown += 1
            self._show()
        self.finished = bool(self._updates) and self._shown + 1 == len(self._updates)

    def _show(self) -> None:
        if self._shown < 0:
            return
        update = self._updates[self._shown]
        order = "" if self.options.sort is None else f"    by {self.options.sort}"
        self._say(f"{self.title}    {xentop.summary(update)}{order}")
        self.query_one("#table", Static).update("\n".join(xentop.table(update, self.options)))

    def _say(self, line: str) -> None:
        self.query_one("#summary", Static).update(line)

    # ---- keys ----

    def action_leave(self) -> None:
        """Ends, or stops asking for the delay."""
        entry = self.query_one("#delay", Input)
        if entry.has_focus:
            self._close(entry)
            return
        self._leaving = True
        self.exit()

    def action_extra(self, what: xentop.Extra) -> None:
        """Shows lines about each domain, or hides them."""
        self.options = replace(self.options, extra=self.options.extra ^ {what})
        self._show()

    def action_sort(self) -> None:
        """Sorts by the next column."""
        orders = (None, *xentop.SORT_ORDERS)
        self.options = replace(self.options, sort=orders[(orders.index(self.options.sort) + 1) % len(orders)])
        self._show()

    def action_pause(self) -> None:
        """Stands still, or goes on."""
        self.paused = not self.paused

    def action_ask_delay(self) -> None:
        """Asks for the time between updates."""
        entry = self.query_one("#delay", Input)
        entry.value = ""
        entry.styles.display = "block"
        entry.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Takes a new delay, if it is one."""
        try:
            delay_s = float(event.value)
        except ValueError:
            delay_s = 0.0
        if not _LEAST_DELAY_S <= delay_s <= _MOST_DELAY_S:
            self.notify(f"found `{event.value}`; allowed: {_LEAST_DELAY_S} to {_MOST_DELAY_S:g} s", severity="error")
            return
        self.delay_s = delay_s
        self._close(event.input)
        self._plan(from_s=self._updates[self._shown].time_s if self._shown >= 0 else 0.0)

    def _close(self, entry: Input) -> None:
        entry.styles.display = "none"
        self.set_focus(None)
