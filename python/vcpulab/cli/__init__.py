"""The command line, a module for each group of commands."""

import sys
from typing import NoReturn

from vcpulab.cli import signals


def start() -> NoReturn:
    """Runs the command line of the process."""
    signals.take()
    from vcpulab.cli.main import main

    status = main()
    signals.idle()
    sys.exit(status)
