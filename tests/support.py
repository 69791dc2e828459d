"""What several tests use."""

import functools
import itertools
import operator
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from starter import start
from vcpulab.cli.main import app

ROOT = Path(__file__).parent.parent
STUDIES_PAGE = ROOT / "docs" / "guides" / "comparing-with-published.md"
VCPULAB = Path(sys.executable).with_name("vcpulab")

HANG_S = 1500
"""After this a process is taken to hang: a guard that no machine, however slow or busy, should meet."""

Vcpulab = Callable[..., "subprocess.CompletedProcess[str]"]

TWO_HOGS = """\
name = "two hogs"
[run]
duration = "300ms"
warmup = "30ms"
replications = 3
[host]
profile = "exact"
scheduler = "credit"
pcpus = 1
[domain.a]
app = [{ kind = "hog" }]
[domain.b]
weight = 768
app = [{ kind = "hog" }]
"""


def run_vcpulab(arguments: Sequence[str], cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user does, into a pipe of no width."""
    return start(VCPULAB, arguments, cwd, _wide() | environment, HANG_S)


def _wide() -> dict[str, str]:
    """An environment that says no width; readline, which pytest loads, says one to processes that inherit theirs."""
    return {name: value for name, value in os.environ.items() if name != "COLUMNS"}


def write_program(path: Path, script: str) -> None:
    """Writes a shell script that can be run like a program."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def commands_with_examples() -> list[str]:
    """All commands and their subcommands, in the order of the help."""

    def below(described: App, *above: str) -> Iterator[str]:
        for name in described:
            if not name.startswith("-"):
                yield " ".join((*above, name))
                yield from below(described[name], *above, name)

    return list(below(app()))


def examples_in_help(name: str) -> list[str]:
    """The examples in the help of a command."""
    described = functools.reduce(operator.getitem, name.split(), app())
    lines = map(str.strip, str(described.help_epilogue).splitlines())
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def examples_of(command: Vcpulab, name: str) -> list[list[str]]:
    """The arguments of each example that the help of a command shows and the help of its subcommands does not."""
    examples = examples_in_help(name)
    assert examples
    shown = command(*name.split(), "--help").stdout
    assert all(example in shown for example in examples)
    below = [examples_in_help(other) for other in commands_with_examples() if other.startswith(f"{name} ")]
    return [shlex.split(example)[1:] for example in examples if example not in itertools.chain(*below)]


def examples_work(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order: shell commands (their output has every line shown), Python, and files, named in their first line.

    The examples are there, under the names that the guides give them.
    """
    monkeypatch.chdir(tmp_path)
    for example in sorted((ROOT / "examples").glob("*.*")):
        shutil.copy(example, tmp_path)
    shutil.copytree(ROOT / "tests/recordings/xen4.17-credit-weights", tmp_path / "recorded")
    shutil.copytree(ROOT / "examples/two-sockets", tmp_path / "two-sockets")
    shutil.copytree(ROOT / "examples/kvm-host", tmp_path / "kvm-host")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", f"{VCPULAB.parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, object] = {}
    for kind, text in _blocks(page):
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)
        elif kind == "console":
            assert text.startswith("$ ")
            for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *shown = step.rstrip("\n").split("\n")
                result = _typed(command, tmp_path)
                output = result.stdout + result.stderr
                assert result.returncode == 0, f"{command}: {output}"
                for line in shown:
                    assert line.strip() in output, command
        elif (named := re.match(r"# (\S+\.toml)$", text, re.MULTILINE)) is not None:
            (tmp_path / named[1]).write_text(text)


def _typed(command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    words = shlex.split(command)
    unquoted = re.sub(r"'[^']*'", "", command)
    if words[0] == "vcpulab" and not set(unquoted) & set("|&;<>$*?~`"):
        return run_vcpulab(words[1:], cwd)
    return subprocess.run(
        command, shell=True, cwd=cwd, env=_wide(), capture_output=True, text=True, timeout=HANG_S, check=False
    )


def _blocks(page: Path) -> Iterator[tuple[str, str]]:
    for match in _BLOCK.finditer(page.read_text()):
        yield match["kind"], match["text"]


_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def packets(file: Path) -> list[Any]:
    """A trace for Perfetto, read with its own classes."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    return list(trace.packet)


def opened(browser: str, page: Path) -> str:
    """What the page has become once its scripts have run, without any network."""
    result = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--window-size=1100,3000",
            "--virtual-time-budget=30000",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    return result.stdout
