"""What commands that record have in common: experiments, options, analyses, ends."""

from __future__ import annotations

import argparse
import signal
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from packages import EmulationError, run

Experiment = TypeVar("Experiment")


class ExperimentError(Exception):
    """A table of `experiments.toml` says what cannot be."""


def read_tables(path: Path, make: Callable[..., Experiment]) -> dict[str, Experiment]:
    """All experiments of a file, by name, checked by what makes them: called with the name, and the table's fields."""
    try:
        return {name: make(name, **table) for name, table in tomllib.loads(path.read_text()).items()}
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ExperimentError(f"{path.name}: {error}") from error


def options(about: str | None, out: Path, experiments: Iterable[str] = ()) -> argparse.ArgumentParser:
    """The options that each of them has, and names of experiments where there are any."""
    arguments = argparse.ArgumentParser(description=about)
    arguments.add_argument("--out", type=Path, default=out, help="for a folder each (default: %(default)s)")
    arguments.add_argument("--minutes", type=int, default=60, help="limit for each (default: %(default)s)")
    arguments.add_argument("--seed", type=int, default=1, help="another gives an independent recording (default: 1)")
    known = list(experiments)

    def name(given: str) -> str:
        if given not in known:
            raise argparse.ArgumentTypeError(
                f"no experiment `{given}` in experiments.toml; there are: {', '.join(known)}"
            )
        return given

    if known:
        arguments.add_argument("names", nargs="*", type=name, metavar="NAME", help=f"default: {', '.join(known)}")
    return arguments


def folder(given: argparse.Namespace, name: str) -> Path:
    """Where a recording is put."""
    out: Path = given.out.resolve()
    return out / (name if given.seed == 1 else f"{name}-{given.seed}")


def analyse(recording: Path, steps: dict[str, list[str]], show: str = "") -> None:
    """Runs `vcpulab` on a recording, with some arguments a step; what each says is kept there, and shown of one."""
    vcpulab = Path(sys.executable).with_name("vcpulab")
    if not vcpulab.exists():
        print(f"{recording.name}: not analysed, as {vcpulab} is not there", flush=True)
        return
    for step, arguments in steps.items():
        said = run([str(vcpulab), *arguments], COLUMNS="140")
        (recording / f"{step}.txt").write_text(said)
        print(said if step == show else f"{recording.name}: {recording / step}.txt", flush=True)


def start(main: Callable[[], None]) -> None:
    """Runs a command; what goes wrong ends it with a message and a status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does, so that QEMU is ended too
    try:
        main()
    except (EmulationError, ExperimentError, KeyboardInterrupt) as error:
        print(f"error: {str(error) or 'interrupted'}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ExperimentError) else 1)
