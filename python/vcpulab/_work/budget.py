"""Limits of time and memory for work that might never end, such as searches."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from vcpulab._work.progress import Progress, StepProgress, report
from vcpulab.errors import VcpulabError

if TYPE_CHECKING:
    import subprocess

T = TypeVar("T")

_MEMORY_SHARE = 0.5
_LOOK_S = 0.01


class StoppedError(VcpulabError):
    """Work was stopped because its time or its memory was used up; the text names which."""


class Budget:
    """Stops runs and processes after a given time, or when they use half of the machine's memory.

    It reports the progress of work whose number of steps is not known before.
    """

    def __init__(self, seconds: float | None = None, progress: Progress | None = None) -> None:
        self._given = float("inf") if seconds is None else seconds
        self._until = time.monotonic() + self._given
        self._bytes_max = _MEMORY_SHARE * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._progress = progress
        self._steps = 0
        self._fraction = 0.0
        self._reason: str | None = None

    def step(self, name: str, usual: int) -> None:
        """Begins a step of the work; `usual` steps are reported as half of the work.

        Raises:
            KeyboardInterrupt: the work is cancelled.
        """
        self._fraction = self._steps / (self._steps + usual)
        self._steps += 1
        if isinstance(self._progress, StepProgress):
            self._progress.step(name)
        report(self._progress, self._fraction)

    def watch(self, work: Callable[..., T], *arguments: object, **options: object) -> T:
        """Does work that takes `progress`, and stops it when the budget is used up.

        Raises:
            StoppedError: the work was stopped.
        """
        self._check()
        if self._reason is None:
            try:
                return work(*arguments, progress=self._advance, **options)
            except KeyboardInterrupt:
                # Stopping the work raises the same exception as an interruption by the user.
                if self._reason is None:
                    raise
        raise StoppedError(self._reason)

    def _advance(self, _fraction: float) -> bool:
        self._check()
        return self._reason is None and (self._progress is None or self._progress(self._fraction) is not False)

    def wait(self, process: "subprocess.Popen[bytes]") -> None:
        """Waits for a process, without ending it when the budget is used up.

        Raises:
            StoppedError: the budget is used up.
        """
        while process.poll() is None:
            self._check(process.pid)
            if self._reason is not None:
                raise StoppedError(self._reason)
            time.sleep(_LOOK_S)

    def _check(self, process: int | None = None) -> None:
        if time.monotonic() > self._until:
            self._reason = f"the {self._given:g} s that were given are over"
        elif _resident_bytes("self" if process is None else process) > self._bytes_max:
            self._reason = "it took half of the machine's memory"


def _resident_bytes(process: int | str) -> int:
    """Resident memory of a process; 0 where the system does not report it."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
