"""The pace of runs, for progress bars: simulated time, events per second, and the busiest domain of a slow run.

Imported only for output on a terminal.
"""

import time
from collections.abc import Iterable

from rich.console import RenderableType
from rich.progress import Progress
from rich.text import Text

from vcpulab import _engine
from vcpulab.show.terminal_text import plain

_LOOK_S = 1.0
"""The time between updates, s."""
_SLOW = 0.3
"""A run that simulates less than this fraction of a second in each second is slow."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Pace:
    """The pace of the runs of this process since the object was made; updated when it is drawn."""

    def __init__(self, before: str = "") -> None:
        self.before = before
        """The text before the pace."""
        self._looked = time.monotonic()
        self._events, self._simulated_ns, _ = _engine.pace()
        self._began_ns = self._simulated_ns
        self._text = ""

    def __str__(self) -> str:
        seconds = time.monotonic() - self._looked
        if seconds >= _LOOK_S:
            events, simulated_ns, busiest = _engine.pace()
            rate, speed = (events - self._events) / seconds, (simulated_ns - self._simulated_ns) / 1e9 / seconds
            self._text = (
                f"{(simulated_ns - self._began_ns) / 1e9:.3g} s simulated, {_short(rate)} events/s" if rate else ""
            )
            if rate and speed < _SLOW and busiest:
                self._text += f", most of {busiest}"
            self._looked += seconds
            self._events, self._simulated_ns = events, simulated_ns
        return self._text

    def __rich__(self) -> Text:
        return Text(plain("  ".join(filter(None, (self.before, str(self))))))


class PacedProgress(Progress):
    """Progress bars with the pace below them."""

    pace: Pace | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """The lines: progress bars, then the pace."""
        yield from super().get_renderables()
        if self.pace is not None and str(self.pace):
            yield self.pace


def _short(rate: float) -> str:
    """A rate with three digits."""
    over, unit = next(((over, unit) for over, unit in _UNITS if rate >= over), (1, ""))
    return f"{rate / over:.3g}{f' {unit}' if unit else ''}"
