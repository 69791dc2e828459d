"""An end to what might go on for ever: loads that no SLO stops, searches that take too long."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from vcpulab.errors import VcpulabError

T = TypeVar("T")

_MEMORY_SHARE = 0.5
_STATM = Path("/proc/self/statm")


class StoppedError(VcpulabError):
    """No time or memory left for what was going on; the text says which."""


class Guard:
    """Stops runs when the time that was given is over, or when they take half of the machine's memory."""

    def __init__(self, seconds: float = float("inf"), progress: Callable[[], None] | None = None) -> None:
        self._given = seconds
        self._until = time.monotonic() + seconds
        self._bytes_max = _MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._progress = progress
        self._reason: str | None = None

    def watch(self, work: Callable[..., T], *arguments: object, **options: object) -> T:
        """Does some work that takes `progress`, and stops it in time.

        Raises:
            StoppedError: it was stopped.
        """
        self._check()
        if self._reason is None:
            try:
                return work(*arguments, progress=self._advance, **options)
            except KeyboardInterrupt:
                # Whoever was stopped by us was not interrupted.
                if self._reason is None:
                    raise
        raise StoppedError(self._reason)

    def _advance(self, _fraction: float) -> bool:
        if self._progress is not None:
            self._progress()
        self._check()
        return self._reason is None

    def _check(self) -> None:
        if time.monotonic() > self._until:
            self._reason = f"the {self._given:g} s that were given are over"
        elif _resident_bytes() > self._bytes_max:
            self._reason = "it took half of the machine's memory"


def _resident_bytes() -> int:
    """Memory that this process has; 0 where the system does not say."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
