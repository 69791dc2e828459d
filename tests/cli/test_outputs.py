"""Outputs: looked at before the work, written after it, whole or not at all, and never over an input."""

import importlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

from support import HANG_S, TWO_HOGS
from vcpulab._files import atomic
from vcpulab.cli.main import main
from vcpulab.results.store import write_parquet, write_parts

SWEEP = """\
scenario = "hogs.toml"
[[vary]]
path = "domain.a.weight"
values = [128, 256]
"""
SHORT = TWO_HOGS.replace("300ms", "20ms").replace("replications = 3", "replications = 2")

Line = Callable[..., tuple[int, str, str]]


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Line:
    """A command line in this process, in a folder with a scenario, a sweep, and two links to the scenario."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hogs.toml").write_text(SHORT)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "link.toml").symlink_to("hogs.toml")
    (tmp_path / "hard.toml").hardlink_to("hogs.toml")

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = main(arguments)
        said = capfd.readouterr()
        return status, said.out, said.err

    return run


@contextmanager
def full_disk() -> Iterator[None]:
    """No file may have more than 2 KB here: writing fails as on a disk that is full.

    Imports write no bytecode: Python 3.11 would cut the file off without an error, and all later imports would fail.
    """
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # The process itself, and those that it starts.
    with patch.object(sys, "dont_write_bytecode", True), patch.dict(os.environ, PYTHONDONTWRITEBYTECODE="1"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)


def test_no_bytecode_is_cut_off_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text("".join(f"name_{number} = {number}.5\n" for number in range(500)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    with full_disk():
        subprocess.run([sys.executable, "-c", "import imported_late"], check=True, cwd=tmp_path)
        importlib.import_module("imported_late")
    assert not sys.dont_write_bytecode
    assert not list(tmp_path.rglob("*.pyc"))
    monkeypatch.delitem(sys.modules, "imported_late")
    assert importlib.import_module("imported_late").name_499 == 499.5


WHATIF = ("whatif", "hogs.toml", "--set", "a.weight=512", "--replications", "2")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "hogs.toml", "--out", "hogs.toml/out"),
        ("run", "hogs.toml", "--trace", "hogs.toml"),
        (*WHATIF, "--report", "."),
        (*WHATIF, "--write", "hogs.toml/changed.toml"),
        ("compare", "hogs.toml", "hogs.toml", "--report", "/proc/report.html"),
        ("capacity", "hogs.toml", "--vary", "copies:a", "--report", "/proc/report.html"),
        ("tune", "hogs.toml", "--report", "/proc/report.html"),
        ("tune", "hogs.toml", "--out", "hogs.toml"),
        ("manage", "hogs.toml", "--domain", "a", "--report", "/proc/report.html"),
        ("sweep", "sweep.toml", "--plot", "/proc/chart.html"),
        ("sweep", "sweep.toml", "--out", "/proc/all"),
        ("place", "hogs.toml", "--out", "hogs.toml"),
        ("study", "overview", "--fast", "--out", "/proc/studies.md"),
        ("study", "fit", "venkatesh2015", "--out", "/proc/fit.toml"),
        ("bench", "--out", "/proc/bench.json"),
        ("demo", "--out", "/proc/demo"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_written_is_refused_before_any_work(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    for engine in ("run", "run_many", "bench"):
        monkeypatch.setattr(f"vcpulab._engine.{engine}", None)
    before = sorted(tmp_path.iterdir())
    status, out, error = line(*arguments)
    assert (status, out) == (2, "")
    assert error.startswith(f"error: --{arguments[-2].removeprefix('--')} {arguments[-1]}: ")
    assert error.count("\n") <= 2
    assert sorted(tmp_path.iterdir()) == before, "nothing is left of looking"


@pytest.mark.parametrize("path", ["hogs.toml", "link.toml", "hard.toml", "./sub/../hogs.toml"])
@pytest.mark.parametrize(
    "arguments",
    [
        (*WHATIF, "--report"),
        ("compare", "hogs.toml", "sweep.toml", "--report"),
        ("import", "hogs.toml", "--events"),
        ("export", "perfetto", "hogs.toml", "--out"),
        ("twin", "hogs.toml", "--force", "--out"),
        ("place", "sweep.toml", "--host", "hogs.toml", "--out"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_what_is_read_is_never_replaced(line: Line, tmp_path: Path, arguments: tuple[str, ...], path: str) -> None:
    (tmp_path / "sub").mkdir()
    status, out, error = line(*arguments, path)
    assert (status, out) == (2, "")
    assert "it would replace what is read, `hogs.toml`" in error
    assert (tmp_path / "hogs.toml").read_text() == SHORT


def test_a_run_is_not_replaced_while_its_scenario_is_read(line: Line) -> None:
    assert line("run", "hogs.toml", "--out", "o")[0] == 0
    assert "it would replace what is read" in line("run", "o/scenario.toml", "--out", "o")[2]
    assert "it would replace what is read" in line("compare", "o", "o", "--report", "o/result.json")[2]


def test_two_outputs_are_two_files(line: Line) -> None:
    status, _, error = line(*WHATIF, "--write", "x.toml", "--report", "./x.toml")
    assert (status, error) == (2, "error: --write x.toml: --report is the same\n  hint: another name\n")


def test_a_scenario_may_be_edited_in_place(line: Line, tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").chmod(0o640)
    assert line(*WHATIF, "--write", "link.toml")[0] == 0
    assert "weight = 512" in (tmp_path / "hogs.toml").read_text()
    assert (tmp_path / "link.toml").is_symlink(), "a link stays one"
    assert (tmp_path / "hogs.toml").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "hogs.toml", "--out", "new"),
        (*WHATIF, "--report", "new"),
        ("capacity", "hogs.toml", "--vary", "copies:a", "--slo", "a.gotten > 40", "--highest", "3", "--report", "new"),
        ("sweep", "sweep.toml", "--out", "new"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_results_are_printed_though_they_cannot_be_written(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    expected = line(*arguments[:-2])
    (tmp_path / "new").touch() if arguments[-2] == "--report" else None
    before = sorted(tmp_path.iterdir())
    # There is room as long as nobody needs it.
    monkeypatch.setattr("vcpulab.cli.outputs._PROBE_BYTES", 0)
    from vcpulab.cli import outputs

    printed = outputs.written

    @contextmanager
    def written(path: Path) -> Iterator[None]:
        with full_disk(), printed(path):
            yield

    for module in ("run", "outputs", "sweep"):
        monkeypatch.setattr(f"vcpulab.cli.{module}.written", written)
    status, out, error = line(*arguments)
    assert (status, out) == (1, expected[1])
    assert error.splitlines()[-1].startswith("error: ")
    assert "file too large" in error.splitlines()[-1]
    assert "Traceback" not in error
    assert sorted(tmp_path.iterdir()) == before, "nothing is left of it"


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), 9)", "sys.exit('Error: a stack\\nno memory')"])
def test_results_are_printed_though_they_cannot_be_drawn(
    line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    expected = line("sweep", "sweep.toml")[1]
    monkeypatch.setattr("vcpulab.show.drawing._PROGRAM", f"import os, sys; {end}")
    status, out, error = line("sweep", "sweep.toml", "--plot", "x.png")
    assert (status, out) == (1, expected)
    said = {"os.a": "ended by SIGABRT", "os.k": "ended by SIGKILL", "sys.": "no memory"}[end[:4]]
    assert error.splitlines()[-2] == f"error: charts could not be drawn: vl-convert: {said}"
    assert not (tmp_path / "x.png").exists()


class _Stdout:
    """A standard output that is broken, as `main` finds it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
        if kind == "full":
            number = os.open("/dev/full", os.O_WRONLY)
        else:
            reader, number = os.pipe()
            os.close(reader)
        # A small buffer: some of what is printed fails at once, the rest when it ends.
        self.file = os.fdopen(number, "w", buffering=64)
        monkeypatch.setattr(sys, "stdout", self.file)

    def close(self) -> None:
        """As Python does at the end; a broken one would raise."""
        self.file.close()


@pytest.mark.parametrize("kind", ["full", "gone"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("--version",),
        ("run", "--help"),
        ("run", "hogs.toml"),
        ("run", "hogs.toml", "--format", "json"),
        ("check", "hogs.toml"),
        ("schema",),
        ("query", "s", "SELECT 1", "--format", "csv"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("line")
def test_an_output_that_breaks_is_a_line_or_none(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    kind: str,
) -> None:
    if arguments[0] == "query":
        main(["sweep", "sweep.toml", "--store", "s"])
        capfd.readouterr()
    stdout = _Stdout(monkeypatch, kind)
    status = main(arguments)
    stdout.close()
    said = [one for one in capfd.readouterr().err.splitlines() if not one.startswith("warning: ")]
    assert (status, said) == ((1, ["error: stdout: no space left on device"]) if kind == "full" else (0, []))


@pytest.mark.parametrize("kind", ["full", "gone"])
@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (("run", "hogs.toml", "--out", "o"), "o/result.json"),
        (("compare", "hogs.toml", "hogs.toml", "--replications", "2", "--report", "r.html"), "r.html"),
        ((*WHATIF, "--write", "w.toml"), "w.toml"),
        (("sweep", "sweep.toml", "--out", "o"), "o/runs.parquet"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
@pytest.mark.usefixtures("line")
def test_files_are_written_though_nobody_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], written: str, kind: str
) -> None:
    stdout = _Stdout(monkeypatch, kind)
    assert main(arguments) == (1 if kind == "full" else 0)
    stdout.close()
    assert (tmp_path / written).stat().st_size


def test_a_table_that_does_not_fit_on_the_disk_is_an_error_of_the_system(tmp_path: Path) -> None:
    table = pl.DataFrame({"n": range(5000)})
    with full_disk(), pytest.raises(OSError, match="too large"):
        write_parquet(table, tmp_path / "n.parquet")
    write_parquet(table, tmp_path / "n.parquet")
    assert pl.read_parquet(tmp_path / "n.parquet").equals(table)


def test_nor_does_one_in_parts(tmp_path: Path) -> None:
    parts = [pl.DataFrame({"n": range(first, first + 5000)}) for first in range(0, 20_000, 5000)]
    with full_disk(), pytest.raises(OSError, match="too large"):
        write_parts(iter(parts), tmp_path / "n.parquet")
    write_parts(iter(parts), tmp_path / "n.parquet")
    assert pl.read_parquet(tmp_path / "n.parquet").equals(pl.concat(parts))


def test_a_full_device_is_told_before_the_work(line: Line) -> None:
    with full_disk():
        status, out, error = line(*WHATIF, "--write", "new.toml")
    assert (status, out, error) == (2, "", "error: --write new.toml: file too large\n")


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_files_of_the_user_in_a_folder_are_kept(line: Line, tmp_path: Path, kind: str) -> None:
    arguments = (kind, {"run": "hogs.toml"}.get(kind, "sweep.toml"), "--out", "o")
    assert line(*arguments)[0] == 0
    assert line(*arguments)[0] == 0, "it replaces its own"
    (tmp_path / "o" / "notes.txt").write_text("years of work")
    status, out, error = line(*arguments)
    assert (status, out) == (2, "")
    assert "holds other files than" in error
    assert "`notes.txt`; they would be lost" in error
    assert (tmp_path / "o" / "notes.txt").read_text() == "years of work"
    (tmp_path / "o" / "notes.txt").unlink()
    (tmp_path / "o" / "mine").mkdir()
    assert line(*arguments)[0] == 2, "nor a folder"


def test_a_placement_replaces_hosts_and_nothing_else(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("place", "hogs.toml", "--slo", "a.gotten > 1", "--replications", "2", "--out", "o")
    assert line(*arguments)[0] == 0
    hosts = sorted((tmp_path / "o").iterdir())
    (tmp_path / "o" / "host-9.toml").write_text("of before")
    assert line(*arguments)[0] == 0
    assert sorted((tmp_path / "o").iterdir()) == hosts
    (tmp_path / "o" / "notes.txt").write_text("years of work")
    monkeypatch.setattr("vcpulab._engine.run", None)
    status, out, error = line(*arguments)
    assert (status, out) == (2, "")
    assert "there is something else" in error


def test_a_folder_that_is_a_link_stays_one(line: Line, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "o").symlink_to("disk")
    for _ in range(2):
        assert line("run", "hogs.toml", "--out", "o")[0] == 0
    assert (tmp_path / "o").is_symlink()
    assert (tmp_path / "disk" / "result.json").is_file()


def test_what_was_there_is_there_still_if_writing_fails(tmp_path: Path) -> None:
    file = tmp_path / "a"
    atomic.write(file, "before")
    with full_disk(), pytest.raises(OSError, match="too large") as failed:
        atomic.write(file, "x" * 5000)
    assert failed.value.filename == str(file)
    half = atomic.scratch(file)
    half.__enter__().write_text("half")
    assert not half.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert (file.read_text(), [*tmp_path.iterdir()]) == ("before", [file])


def test_a_trace_that_is_cut_off_leaves_the_events_of_before(line: Line, tmp_path: Path) -> None:
    recorded = Path(__file__).parents[1] / "recordings/xen4.17-credit-weights"
    trace = next(file for file in recorded.iterdir() if file.name.startswith("trace"))
    events = tmp_path / "events.arrow"
    assert line("import", str(trace), "--events", str(events))[0] == 0
    there = events.read_bytes()
    assert pl.read_ipc(events).height
    (tmp_path / "cut").write_bytes(trace.read_bytes()[: trace.stat().st_size // 2])
    assert line("import", str(tmp_path / "cut"), "--kind", "xentrace", "--events", str(events))[0] != 0
    assert events.read_bytes() == there


def test_what_is_no_file_is_written_to_as_it_is() -> None:
    code = "from vcpulab._files import atomic; atomic.write('/dev/stdout', 'said')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True)
    assert done.stdout == "said"
    atomic.write("/dev/null", "said")
    assert not Path("/dev/null").is_file()
