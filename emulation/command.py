"""What commands that record have in common: tables of experiments, options, and how they end."""

from __future__ import annotations

import argparse
import signal
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from packages import EmulationError

Experiment = TypeVar("Experiment")


class ExperimentError(Exception):
    """A table of `experiments.toml` says what cannot be."""


def read_tables(path: Path, make: Callable[..., Experiment]) -> dict[str, Experiment]:
    """All experiments of a file, by name, checked by what makes them: called with the name, and the table's fields."""
    try:
        return {name: make(name, **table) for name, table in tomllib.loads(path.read_text()).items()}
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ExperimentError(f"{path.name}: {error}") from error


def options(about: str | None, out: Path) -> argparse.ArgumentParser:
    """The options that each of them has."""
    arguments = argparse.ArgumentParser(description=about)
    arguments.add_argument("--out", type=Path, default=out, help="for a folder each (default: %(default)s)")
    arguments.add_argument("--minutes", type=int, default=60, help="limit for each (default: %(default)s)")
    arguments.add_argument("--seed", type=int, default=1, help="another gives an independent recording (default: 1)")
    return arguments


def start(main: Callable[[], None]) -> None:
    """Runs a command; what goes wrong ends it with a message and a status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does, so that QEMU is ended too
    try:
        main()
    except (EmulationError, ExperimentError, KeyboardInterrupt) as error:
        print(f"error: {str(error) or 'interrupted'}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ExperimentError) else 1)
