"""What `progress` may answer and raise, and what a policy may."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import HANG_S
from vcpulab import EngineError, Policy, Scenario
from vcpulab.policy import Context

LONG = Scenario.starter().change({"run.duration": "20s", "run.replications": 4})
SHORT = LONG.change({"run.duration": "20ms"})
SEARCHED = LONG.change({"run.duration": "500ms"})


class Idle(Policy):
    """Runs nothing."""

    def wake(self, ctx: Context, v: int) -> None: ...

    def sleep(self, ctx: Context, v: int) -> None: ...

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return ctx.idle(p), -1


OWN = Scenario.from_dict(
    {
        "run": {"duration": "1s", "replications": 4},
        "host": {"profile": "exact", "pcpus": 1, "scheduler": "round-robin"},
        "domain": {"a": {"app": [{"kind": "hog"}]}},
    }
).change({"host.scheduler": Idle})
Runs = Callable[..., object]
RUNS: dict[str, Runs] = {
    "run": lambda progress: vcpulab.run(LONG, progress=progress),
    "run_many": lambda progress: vcpulab.run_many([LONG, LONG], progress=progress),
    "own policy": lambda progress: vcpulab.run(OWN, progress=progress),
    "many under own policies": lambda progress: vcpulab.run_many([OWN, LONG], progress=progress),
    "whatif": lambda progress: vcpulab.whatif(LONG, "batch.cap=30", progress=progress),
    "tune": lambda progress: vcpulab.tune(LONG, only="batch.cap", trials=9, progress=progress),
    "lint": lambda progress: vcpulab.lint(LONG.change({"run.duration": "1s"}), progress=progress),
    "capacity": lambda progress: vcpulab.capacity(LONG, "http.rate", highest=250, progress=progress),
    "place": lambda progress: vcpulab.place(LONG, progress=progress),
}


class OddError(Exception):
    """Of the caller's own."""


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt("x"), GeneratorExit(), OddError("odd")], ids=repr)
def test_what_progress_raises_reaches_its_caller(name: str, raised: BaseException) -> None:
    def progress(_done: float) -> bool:
        raise raised

    with pytest.raises(type(raised)) as reached:
        RUNS[name](progress)
    if isinstance(reached.value, SystemExit):
        assert reached.value.code == 3


@pytest.mark.parametrize("answer", [None, True])
def test_progress_that_answers_nothing_continues(answer: bool | None) -> None:
    seen: list[float] = []

    def progress(done: float) -> bool | None:
        seen.append(done)
        return answer

    assert vcpulab.run(SHORT, progress=progress).df_domains().height
    assert vcpulab.run_many([SHORT], progress=progress)
    assert vcpulab.run(OWN, progress=progress).df_domains().height
    assert vcpulab.whatif(SHORT, "batch.cap=30", replications=2, progress=progress).comparisons
    assert vcpulab.tune(SHORT, only="batch.cap", trials=2, replications=2, progress=progress).result
    assert seen


def test_progress_that_answers_false_cancels() -> None:
    for run in RUNS.values():
        with pytest.raises(KeyboardInterrupt):
            run(lambda _done: False)


@pytest.mark.parametrize("answer", [0, "no", [], object()], ids=lambda answer: type(answer).__name__)
def test_another_answer_of_progress_is_refused(answer: Any) -> None:
    for run in (RUNS["run"], RUNS["own policy"]):
        with pytest.raises(TypeError, match=r"^progress: found an answer of type `\w+`; allowed: `True` or `None` to"):
            run(lambda _done: answer)


class UnspeakableError(Exception):
    """One whose message fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def _raising(raised: BaseException) -> type[Policy]:
    class Raising(Idle):
        """Raises it."""

        def wake(self, ctx: Context, v: int) -> None:  # noqa: ARG002 - as every hook is called
            raise raised

    return Raising


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (UnspeakableError(), "UnspeakableError: a message that cannot be shown, because its __str__ fails"),
        (SystemExit(3), "SystemExit: 3"),
        (GeneratorExit(), "GeneratorExit"),
        (OddError("odd"), "OddError: odd"),
    ],
    ids=lambda of: type(of).__name__,
)
def test_what_a_policy_raises_is_an_error_with_that_cause(
    raised: BaseException, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EngineError) as error:
        vcpulab.run(OWN.change({"host.scheduler": _raising(raised)}))
    assert message in str(error.value)
    assert "test_progress.py" in str(error.value)
    assert error.value.__cause__ is raised
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_in_a_policy_is_ctrl_c() -> None:
    with pytest.raises(KeyboardInterrupt):
        vcpulab.run(OWN.change({"host.scheduler": _raising(KeyboardInterrupt())}))


def test_a_policy_file_that_fails_without_a_message_is_refused(tmp_path: Path) -> None:
    failing = "class E(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise E\n"
    (tmp_path / "p.py").write_text(failing)
    text = Scenario.starter().text.replace('scheduler = "credit"', 'scheduler = "p.py:P"')
    with pytest.raises(vcpulab.VcpulabError, match="E: a message that cannot be shown"):
        Scenario.from_toml(text, folder=tmp_path)


def test_the_exit_status_of_a_callback_is_that_of_the_program() -> None:
    code = "import sys, vcpulab; vcpulab.run(vcpulab.Scenario.starter(), progress=lambda done: sys.exit(3))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (3, "")


def test_progress_that_answers_false_cancels_a_sweep(tmp_path: Path) -> None:
    """After the first point, which is kept."""
    tmp_path.joinpath("s.toml").write_text(SHORT.text)
    points = 'scenario = "s.toml"\nreplications = 1\n[[vary]]\npath = "domain.web.weight"\nvalues = [1, 2, 3, 4]\n'
    tmp_path.joinpath("sweep.toml").write_text(points)
    fractions: list[float] = []

    def progress(done: float) -> bool:
        fractions.append(done)
        return done == 0

    with pytest.raises(vcpulab.Interrupted):
        vcpulab.sweep(tmp_path / "sweep.toml", tmp_path / "store", jobs=1, progress=progress)
    assert fractions[-1] < 1


@pytest.mark.parametrize(
    "search",
    [
        lambda progress: vcpulab.capacity(SEARCHED, "http.rate", lowest=100, highest=250, progress=progress),
        lambda progress: vcpulab.place(SEARCHED, slo="http.response_p99 < 1s", progress=progress),
    ],
    ids=["capacity", "place"],
)
def test_a_search_reports_a_growing_fraction_and_its_steps(search: Runs) -> None:
    """The number of its steps is not known before; `step` is called with the name of each."""

    class Seen:
        def __init__(self) -> None:
            self.fractions: list[float] = []
            self.steps: list[str] = []

        def __call__(self, fraction: float, /) -> None:
            self.fractions.append(fraction)

        def step(self, name: str, /) -> None:
            self.steps.append(name)

    seen = Seen()
    search(seen)
    assert seen.fractions == sorted(seen.fractions)
    assert 0 == seen.fractions[0] < seen.fractions[-1] < 1
    assert len(seen.steps) > 1


def test_a_search_is_cancelled_by_its_progress() -> None:
    with pytest.raises(KeyboardInterrupt):
        vcpulab.capacity(LONG, "http.rate", highest=250, progress=lambda _done: False)
