"""Processes of our own that do what may end them: where memory is short, or when nobody waits for them any more."""

import signal
import subprocess
import sys
import tempfile

from vcpulab.errors import VcpulabError
from vcpulab.guard import Guard


class EndedError(VcpulabError):
    """A process ended without an answer; the text says why."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(why(status, said))
        self.killed = status < 0
        """By a signal: most often as there was no memory for it."""


def answered(program: str, given: bytes, guard: Guard) -> bytes:
    """What a Python program prints that is given this on its standard input.

    Args:
        program: its text; what it has to say of a failure is the last line that it prints to standard error.
        given: what it reads.
        guard: stops it.

    Raises:
        EndedError: it failed.
        StoppedError: it was stopped.
        OSError: there is no room for what it says.
    """
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as said:
        asked.write(given)
        asked.seek(0)
        child = subprocess.Popen([sys.executable, "-c", program], stdin=asked, stdout=answer, stderr=said)
        try:
            guard.wait(child)
        finally:
            child.kill()
            child.wait()
        answer.seek(0)
        said.seek(0)
        if child.returncode:
            raise EndedError(child.returncode, said.read().decode(errors="replace"))
        return answer.read()


def why(status: int, said: str) -> str:
    """Why a process failed: the last line that it said, or the signal that ended it."""
    if status > 0:
        return "".join(said.strip().splitlines()[-1:])
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
