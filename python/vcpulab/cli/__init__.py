"""The command line, a module for each group of commands."""

import os
import signal
import sys
from typing import NoReturn


def start() -> NoReturn:
    """Runs what was typed. Who interrupts it before it can say anything is not answered."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from vcpulab.cli.main import main

    signal.signal(signal.SIGINT, before)
    sys.exit(main())
