"""Python programs in processes of their own, for work that may run out of memory or has to be stopped."""

import signal
import subprocess
import sys
import tempfile

from vcpulab._work.budget import Budget
from vcpulab.errors import VcpulabError


class EndedError(VcpulabError):
    """A process ended without an answer; the text says why."""

    def __init__(self, status: int, stderr: str) -> None:
        super().__init__(failure(status, stderr))
        self.killed = status < 0
        """`True`: a signal ended the process, most often for lack of memory."""


def answered(program: str, stdin: bytes, budget: Budget) -> bytes:
    """The output of a Python program for an input.

    Args:
        program: the program's text; the last line of its standard error is the reason of a failure.
        stdin: the input.
        budget: the time and memory after which the program is stopped.

    Raises:
        EndedError: the program failed.
        StoppedError: the program was stopped.
        OSError: no room for the output.
    """
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        request.write(stdin)
        request.seek(0)
        child = subprocess.Popen([sys.executable, "-c", program], stdin=request, stdout=answer, stderr=errors)
        try:
            budget.wait(child)
        finally:
            child.kill()
            child.wait()
        answer.seek(0)
        errors.seek(0)
        if child.returncode:
            raise EndedError(child.returncode, errors.read().decode(errors="replace"))
        return answer.read()


def failure(status: int, stderr: str) -> str:
    """The reason that a process failed: the last line of its standard error, or the signal that ended it."""
    if status > 0:
        return "".join(stderr.strip().splitlines()[-1:])
    try:
        return f"ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"ended by signal {-status}"
