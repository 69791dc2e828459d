"""How quickly runs get on, for those who wait: simulated time, events a second, and whose they are if they hardly do.

Imported only where somebody looks: at a terminal.
"""

import time
from collections.abc import Iterable

from rich.console import RenderableType
from rich.progress import Progress
from rich.text import Text

from vcpulab import _engine
from vcpulab.show.terminal_text import plain

_LOOK_S = 1.0
"""So often it is looked; more often nobody reads it."""
_HARDLY = 0.3
"""A run that simulates less than this part of a second in each second hardly gets on."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


class Pace:
    """The pace of the runs of this process, since it was made; drawn anew at each look."""

    def __init__(self, before: str = "") -> None:
        self.before = before
        """What stands before it."""
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
            if rate and speed < _HARDLY and busiest:
                self._text += f", most of {busiest}"
            self._looked += seconds
            self._events, self._simulated_ns = events, simulated_ns
        return self._text

    def __rich__(self) -> Text:
        return Text(plain("  ".join(filter(None, (self.before, str(self))))))


class PacedProgress(Progress):
    """Progress bars, and the pace below them."""

    pace: Pace | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """The lines, one for each of these."""
        yield from super().get_renderables()
        if self.pace is not None and str(self.pace):
            yield self.pace


def _short(rate: float) -> str:
    """A rate in three digits."""
    over, unit = next(((over, unit) for over, unit in _UNITS if rate >= over), (1, ""))
    return f"{rate / over:.3g}{f' {unit}' if unit else ''}"
