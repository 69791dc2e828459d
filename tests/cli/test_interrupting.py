"""Ctrl-C: what is known by then is printed, and marked as what it is."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import HANG_S, TWO_HOGS, VCPULAB
from vcpulab import Interrupted, Scenario, _api, _engine
from vcpulab.advice.managing import Proportional, Settings, manage
from vcpulab.advice.placing import packing, placing
from vcpulab.cli.main import main

pytestmark = pytest.mark.slow

SHORT = TWO_HOGS.replace("300ms", "100ms").replace("replications = 3", "replications = 2")
LONG = SHORT.replace("100ms", "1000s").replace("replications = 2", "replications = 4")
"""A replication takes some 0.05 s: the engine is asked whether to go on while it runs."""
KNOWN = "what follows is what was known by then"
TURNS = """
from vcpulab import Policy
class Turns(Policy):
    def __init__(self, params, seed): self.waiting = []
    def wake(self, ctx, v): self.waiting.append(v); ctx.raise_reschedule(ctx.processor(v))
    def sleep(self, ctx, v): v in self.waiting and self.waiting.remove(v)
    def schedule(self, ctx, p):
        if not ctx.is_idle(ctx.current(p)) and ctx.runnable(ctx.current(p)): self.waiting.append(ctx.current(p))
        return (self.waiting.pop(0), 10_000_000) if self.waiting else (ctx.idle(p), -1)
"""
SWEEP = 'scenario = "hogs.toml"\nreplications = 1\n[[vary]]\npath = "domain.a.weight"\nvalues = [128, 256, 512]\n'
CAPACITY = ("capacity", "hogs.toml", "--vary", "copies:a", "--slo", "b.gotten > 1", "--highest", "9")
TUNE = ("tune", "hogs.toml", "--trials", "30", "--maximise", "a.gotten", "--vary", "a.weight=1..900", "--out", "t")


def interrupt(monkeypatch: pytest.MonkeyPatch, nth: int) -> None:
    """Ctrl-C when the engine is asked for runs, or for one of a stream, for the nth time, from 1 on."""
    asked = iter(range(1, 10_000))

    def until(engine: Callable[..., Any]) -> Callable[..., Any]:
        def asking(*arguments: Any, **options: Any) -> Any:
            if next(asked) >= nth:
                raise KeyboardInterrupt
            return engine(*arguments, **options)

        return asking

    class Stream:
        def __init__(self, **options: Any) -> None:
            self._engine = stream(**options)
            self.take = until(self._engine.take)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._engine, name)

    stream = _engine.Stream
    monkeypatch.setattr(_engine, "Stream", Stream)
    for name in ("run", "run_many"):
        monkeypatch.setattr(_engine, name, until(getattr(_engine, name)))


def interrupt_within(monkeypatch: pytest.MonkeyPatch, fraction: float) -> None:
    """Ctrl-C when so much of the first work of the engine is done, with one replication at a time."""

    def until(engine: Callable[..., Any]) -> Callable[..., Any]:
        def asking(*arguments: Any, **options: Any) -> Any:
            return engine(*arguments, **{**options, "jobs": 1, "progress": lambda done: done < fraction})

        return asking

    for name in ("run", "run_many"):
        monkeypatch.setattr(_engine, name, until(getattr(_engine, name)))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a scenario and a sweep over it."""
    monkeypatch.chdir(tmp_path)
    Path("hogs.toml").write_text(SHORT)
    Path("sweep.toml").write_text(SWEEP)


@pytest.mark.parametrize(
    ("arguments", "nth", "said"),
    [
        (CAPACITY, 3, "not finished: interrupted at "),
        (TUNE, 20, "settings so far, not confirmed."),
        (("bounds", "hogs.toml", "--check"), 1, "Not modelled:"),
        (("explain", "hogs.toml", "--slo", "a.gotten > 99"), 2, "a.gotten"),
        (("sweep", "sweep.toml", "--jobs", "1", "--out", "all"), 3, "domain.a.weight"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_what_is_known_is_printed_and_marked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], nth: int, said: str
) -> None:
    interrupt(monkeypatch, nth)
    status = main(arguments)
    shown = capsys.readouterr()
    assert status == 130, shown.err
    assert said in shown.out
    assert "interrupted: what follows is what was known by then\n" in shown.err
    assert shown.err.endswith("interrupted\n")


def test_a_run_has_the_first_replications_that_are_finished() -> None:
    scenario = Scenario.from_toml(LONG)
    with pytest.raises(Interrupted) as interrupted:
        vcpulab.run(scenario, jobs=1, keep_finished=True, progress=lambda done: done < 0.6)
    partial = interrupted.value.partial
    n = partial.scenario.replications
    assert interrupted.value.extent == f"{n} of 4 replications"
    assert partial.metrics().equals(vcpulab.run(scenario.with_run(replications=n)).metrics())
    with pytest.raises(KeyboardInterrupt) as interrupted_for_nothing:
        vcpulab.run(scenario, progress=lambda _: False)
    assert not isinstance(interrupted_for_nothing.value, Interrupted)


def test_an_own_policy_has_the_replications_before_the_one_that_is_interrupted() -> None:
    Path("turns.py").write_text(TURNS)
    scenario = Scenario.from_toml(SHORT).change({"host.scheduler": "turns.py:Turns", "run.replications": 5})
    with pytest.raises(Interrupted) as interrupted:
        vcpulab.run(scenario, keep_finished=True, progress=lambda done: done < 0.5)
    assert interrupted.value.extent == "2 of 5 replications"
    assert interrupted.value.partial.df_pcpus()["replication"].to_list() == [0, 1]


def test_a_run_that_is_interrupted_is_written_as_far_as_it_went(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("long.toml").write_text(LONG)
    interrupt_within(monkeypatch, 0.5)
    assert main(["run", "long.toml", "--out", "o", "--trace", "t", "--format", "json"]) == 130
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    n = found["replications"]
    assert found["interrupted"]
    assert 2 <= n <= 4
    assert shown.err.startswith(
        f"warning: interrupted: what follows is what was known by then: {n} of 4 replications\n"
    )
    assert vcpulab.Run.load("o").scenario.replications == n
    assert vcpulab.Trace.load("t").replications == n == len(list(Path("t").glob("events-*.arrow")))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("explain", "long.toml", "--slo", "a.gotten > 99", "--replications", "4"), "a.gotten"),
        (("lint", "long.toml", "--replications", "4"), "long.toml: nothing found"),
        (("bounds", "long.toml", "--check"), "beyond its bound: none of"),
        (("whatif", "long.toml", "--set", "a.weight=512", "--replications", "4"), " of 4; interrupted"),
        (("compare", "long.toml", "long.toml", "--replications", "4"), " of 4; interrupted"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_replications_that_are_finished_are_an_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    Path("long.toml").write_text(LONG)
    interrupt_within(monkeypatch, 0.6)
    assert main(arguments) == 130
    shown = capsys.readouterr()
    assert said in shown.out
    assert f"interrupted: {KNOWN}" in shown.err
    assert shown.err.endswith("interrupted\n")


def test_findings_are_given_without_their_mends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Scenario.starter().change({"run.duration": "500ms"}).to_toml()
    Path("web.toml").write_text(text)
    with monkeypatch.context() as during:
        interrupt(during, 2)
        assert main(["lint", "web.toml", "--format", "json"]) == 130
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["interrupted"]
    found = found["files"]["web.toml"]
    assert [(one["rule"], one["effect"], one["commands"]) for one in found] == [("waits-behind-equals", None, [])]
    assert "findings whose fixes are not tried" in shown.err
    interrupt(monkeypatch, 2)
    assert main(["lint", "web.toml", "--fix"]) == 130
    assert "nothing is written" in capsys.readouterr().err
    assert Path("web.toml").read_text() == text


@pytest.mark.parametrize("arguments", [CAPACITY, TUNE, ("sweep", "sweep.toml"), ("explain", "hogs.toml")])
def test_nothing_is_printed_when_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    interrupt(monkeypatch, 1)
    assert main(arguments) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("interrupted\n")
    assert "Traceback" not in shown.err


def test_data_says_that_it_is_not_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt(monkeypatch, 20)
    assert main([*TUNE, "--format", "json"]) == 130
    found = json.loads(capsys.readouterr().out)
    assert (found["interrupted"], found["advised"], found["commands"]) == (True, False, [])
    assert 1 < found["search"]["candidates"] < 30


def test_a_search_goes_on_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = _api.tune("hogs.toml", maximise=["a.gotten"], vary=["a.weight=1..900"], trials=12)
    with monkeypatch.context() as during:
        interrupt(during, 9)
        with pytest.raises(Interrupted) as interrupted:
            _api.tune("hogs.toml", maximise=["a.gotten"], vary=["a.weight=1..900"], trials=12, folder="t")
    assert interrupted.value.partial.result.best.rows
    again = _api.tune("hogs.toml", maximise=["a.gotten"], vary=["a.weight=1..900"], trials=12, folder="t")
    assert again.as_data() == whole.as_data()


def test_damaged_measurements_are_told_and_made_again(capsys: pytest.CaptureFixture[str]) -> None:
    line = ("tune", "hogs.toml", "--trials", "3", "--maximise", "a.gotten", "--vary", "a.weight=1,900", "--out", "t")
    assert main([*line, "--format", "json"]) == 0
    before = capsys.readouterr().out
    measured = Path("t/runs.jsonl").read_bytes()
    at = measured.index(b'"a.gotten": ') + len('"a.gotten": ')
    Path("t/runs.jsonl").write_bytes(measured[:at] + bytes([measured[at] ^ 1]) + measured[at + 1 :])
    assert main([*line, "--format", "json"]) == 0
    again = capsys.readouterr()
    assert again.out == before
    assert "t/runs.jsonl: 1 line is damaged" in again.err


def test_a_comparison_has_the_replications_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcpulab.advice.deciding.uncertain_harm", lambda found, *_: list(found[:1]))
    interrupt(monkeypatch, 2)
    with pytest.raises(Interrupted) as interrupted:
        _api.whatif("hogs.toml", {"b.weight": 2000}, precision=0.1)
    added = interrupted.value.partial.added
    assert (added.first, added.last, added.interrupted) == (10, 10, True)
    assert interrupted.value.partial.before.scenario.replications == 10


def test_a_placement_that_is_known_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(placing._Placing, "_first", lambda self, *_: [[item] for item in self.fleet.items])
    monkeypatch.setattr(placing._Placing, "_pack", pressed)
    monkeypatch.setattr(packing.Problem, "least_hosts", lambda _: 1)
    with pytest.raises(Interrupted) as interrupted:
        _api.place("hogs.toml", slo=["a.gotten > 1", "b.gotten > 1"], replications=2)
    partial = interrupted.value.partial
    assert (partial.stopped, partial.proven, len(partial.hosts)) == ("interrupted", False, 2)


def test_a_study_shows_the_cases_that_are_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def pressed(_fraction: float) -> bool:
        return False

    monkeypatch.setattr("vcpulab.cli.terminal.progress", lambda _: nullcontext(pressed))
    assert main(["study", "run", "cherkasova2007", "--only", "dom0-weight-sweep", "--fast", "--jobs", "1"]) == 130
    shown = capsys.readouterr()
    assert "Agreement" in shown.out
    assert "interrupted: what follows is what was known by then" in shown.err


# ---- signals, to a process that shows how far it is ----

SOME = r"\b([5-9]|[1-9]\d)%"
"""So far that replications are finished."""
MANAGE = ("manage", "long.toml", "--domain", "a", "--interval", "10s", "--format", "json")


def signalled(
    arguments: tuple[str, ...], sign: str, number: signal.Signals = signal.SIGINT
) -> "subprocess.CompletedProcess[str]":
    """A command that gets a signal when its terminal shows the sign; what it prints goes to a file."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": "200", "TERM": "xterm"}
    with (
        Path("printed").open("wb") as printed,
        subprocess.Popen(
            [VCPULAB, *arguments], stdin=subprocess.DEVNULL, stdout=printed, stderr=theirs, env=environment
        ) as process,
    ):
        os.close(theirs)
        said = ""
        while not re.search(sign, said):
            said += os.read(ours, 4096).decode(errors="replace")
        process.send_signal(number)
        # The terminal has little room: it is read while the command ends.
        with suppress(OSError):
            while more := os.read(ours, 4096):
                said += more.decode(errors="replace")
        process.wait(HANG_S)
    os.close(ours)
    assert "Traceback" not in said, said
    assert "Exception ignored" not in said, said
    return subprocess.CompletedProcess(arguments, process.returncode, Path("printed").read_text(), said)


def long(replications: int) -> Scenario:
    scenario = Scenario.from_toml(LONG).with_run(replications=replications)
    Path("long.toml").write_text(scenario.to_toml())
    return scenario


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_managed_run_has_the_replications_that_are_finished(number: signal.Signals, status: int) -> None:
    scenario = long(100)
    done = signalled(MANAGE, SOME, number)
    assert done.returncode == status, done.stderr
    found = json.loads(done.stdout)
    assert found["interrupted"], done.stderr
    (managed,) = found["schedulers"].values()
    n = managed["decisions"][-1]["replication"] + 1
    assert 1 <= n < 100
    assert f"{n} of 100 replications" in done.stderr
    whole = manage(scenario.with_run(replications=n), Settings(Proportional, ["a"], 10.0))
    assert managed["decisions"] == whole.decisions.to_dicts()
    assert {row["n"] for row in managed["metrics"] if row["address"] == "a.throughput"} <= {n}


def test_schedulers_that_are_managed_before_are_shown() -> None:
    long(8)
    done = signalled((*MANAGE, "-s", "credit", "-s", "credit2"), r"credit2 \(2 of 2\)")
    found = json.loads(done.stdout)
    assert (done.returncode, found["interrupted"]) == (130, True), done.stderr
    assert found["schedulers"]["credit"]["decisions"][-1]["replication"] == 7
    assert "of credit2 " in done.stderr


@pytest.mark.parametrize("form", ["json", "table"])
def test_domains_that_hold_alone_are_known_before_a_first_placement(form: str) -> None:
    long(2)
    slos = ("--slo", "a.gotten > 1", "--slo", "b.gotten > 1")
    line = ("place", "long.toml", *slos, "--replications", "40", "--out", "hosts", "--format", form)
    done = signalled(line, "b on one host")
    assert done.returncode == 130, done.stderr
    assert "nothing is written: not everything is placed" in done.stderr
    assert not Path("hosts").exists()
    if form == "json":
        found = json.loads(done.stdout)
        assert [host["domains"] for host in found["hosts"]] == [["a"]]
        assert (found["interrupted"], found["not_placed"], found["proven_least"]) == (True, ["b"], False)
        assert sorted(found["watts"]) == ["alone", "placed"]
    else:
        assert "not placed: b\n" in done.stdout


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        (("run", "long.toml"), SOME),
        (("sweep", "long-sweep.toml", "--jobs", "1"), SOME),
        (("lint", "web.toml"), r"\b[1-9]\d?%"),
        (("bounds", "long.toml", "--check"), SOME),
        (("capacity", "long.toml", *CAPACITY[2:]), "= [2-9]"),
        (("whatif", "long.toml", "--set", "a.weight=512"), SOME),
        (("compare", "long.toml", "long.toml"), SOME),
        (("tune", "long.toml", *TUNE[2:]), r"\b[2-9]\d%"),
        (("explain", "long.toml", "--slo", "a.gotten > 99", "--replications", "300"), SOME),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_every_document_says_that_it_was_interrupted(line: tuple[str, ...], sign: str) -> None:
    long(300)
    Path("long-sweep.toml").write_text(SWEEP.replace("hogs", "long").replace("replications = 1", "replications = 100"))
    Path("web.toml").write_text(Scenario.starter().to_toml())
    done = signalled((*line, "--format", "json"), sign)
    assert done.returncode == 130, done.stderr
    assert json.loads(done.stdout)["interrupted"] is True


PRESSED = """
import os, signal, sys
from vcpulab.cli import {module}
def pressed(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    return once(*arguments)
once, {module}.{name} = {module}.{name}, pressed
sys.argv = ["vcpulab", "run", "hogs.toml", "--format", "json", "--out", "o"]
from vcpulab.cli import start
start()
"""


@pytest.mark.parametrize(("module", "name"), [("run", "as_json"), ("run", "written"), ("files", "load")])
def test_what_is_known_is_shown_and_written_though_a_signal_comes_meanwhile(module: str, name: str) -> None:
    code = PRESSED.format(module=module, name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "interrupted")
    if module == "files":
        assert (done.stdout, Path("o").exists()) == ("", False)
    else:
        assert json.loads(done.stdout)["interrupted"] is False
        assert vcpulab.Run.load("o").scenario.replications == 2
