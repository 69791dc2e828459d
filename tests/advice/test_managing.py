"""The workload manager: what controllers answer, what is set, and what allocation errors do to it."""

from pathlib import Path

import polars as pl
import pytest

import vcpulab
from support import ROOT, Vcpulab, opened
from vcpulab.advice.managing import (
    CONTROLLERS,
    Controller,
    Integral,
    Managed,
    Predictive,
    Proportional,
    Settings,
    Usage,
    manage,
)
from vcpulab.advice.managing.limits import limiter
from vcpulab.errors import RequestError

SERVICES = vcpulab.Scenario.load(ROOT / "scenarios/workload-manager.toml").change(
    {"run.duration": "60s", "run.replications": 2}
)


def managed(scheduler: str, generation: str, **settings: object) -> Managed:
    scenario = SERVICES.change({"host.scheduler": scheduler, "host.generation": generation})
    chosen = {"controller": Proportional, "domains": ["web", "service"], "interval_s": 2.0} | settings
    return manage(scenario, Settings(**chosen))  # type: ignore[arg-type]


@pytest.mark.parametrize("controller", CONTROLLERS.values())
def test_controllers_settle_where_demand_is_steady(controller: type[Controller]) -> None:
    one = controller(0.8)
    allocated = 100.0
    for step in range(60):
        allocated = one.allocate(Usage(float(step), min(40.0, allocated), allocated, 0.0))
    assert allocated == pytest.approx(50, rel=0.02)


def test_controllers_differ_in_how_they_follow_a_step() -> None:
    before = Usage(0, 20, 25, 0)
    after = Usage(5, 40, 40, 10)
    assert Proportional(0.8).allocate(after) == 50
    assert Integral(0.8).allocate(after) == pytest.approx(40 - 0.8 * 40 / 0.8 * (0.8 - 1))
    predictive = Predictive(0.8)
    for _ in range(5):
        assert predictive.allocate(before) == pytest.approx(25)
    assert 25 < predictive.allocate(after) < 50


@pytest.mark.parametrize(
    ("scheduler", "generation"),
    [("credit", "xen3.0.3"), ("credit2", "xen4.17"), ("sedf", "xen3.0.2"), ("rtds", "xen4.17")],
)
def test_limits_hold(scheduler: str, generation: str) -> None:
    """A domain that always wants more gets its share, more or less exactly, under whatever limits it."""
    scenario = vcpulab.Scenario.from_dict(
        {
            "name": "limited",
            "run": {"duration": "3s"},
            "host": {"profile": "exact", "pcpus": 1, "scheduler": scheduler, "generation": generation},
            "domain": {"a": {"app": [{"kind": "hog"}]} | limiter(scheduler, generation)(30, 1)},
        }
    )
    gotten = vcpulab.run(scenario)["a.gotten"]
    assert gotten is not None
    assert gotten.mean == pytest.approx(30, rel=0.05)


def test_schedulers_without_limits_are_refused() -> None:
    with pytest.raises(RequestError, match=r"bvt .* neither caps nor reservations"):
        managed("bvt", "xen3.0")


def test_allocation_errors_unsettle_the_manager() -> None:
    """Cherkasova 2007, section 3 and C-22: SEDF keeps to its reservations, the first Credit does not."""
    exact, loose = managed("sedf", "xen3.0.2"), managed("credit", "xen3.0.3")
    error = [one.errors["error"].abs().mean() for one in (exact, loose)]
    assert error[0] < 0.01  # type: ignore[operator]
    assert error[1] > 2  # type: ignore[operator]
    spread = [one.stability().filter(thing="web", metric="spread")["mean"][0] for one in (exact, loose)]
    assert spread[0] < spread[1]


def test_decisions_are_what_is_set_next() -> None:
    done = managed("sedf", "xen3.0.2", start=60.0)
    web = done.decisions.filter(domain="web", replication=1)
    assert web["allocated"][0] == 60
    assert web["allocated"][1:].to_list() == web["next"][:-1].to_list()
    assert web["time_s"].to_list() == [2.0 * step for step in range(1, 30)]
    assert managed("sedf", "xen3.0.2", start=60.0).decisions.equals(done.decisions), "the same again"


def test_what_is_asked_for_is_never_more_than_there_is() -> None:
    class Greedy(Controller):
        def allocate(self, usage: Usage) -> float:  # noqa: ARG002
            return 1e9

    done = managed("sedf", "xen3.0.2", controller=Greedy)
    totals = done.decisions.group_by("replication", "time_s").agg(pl.col("next").sum())
    assert totals["next"].to_list() == pytest.approx([100.0] * totals.height)


def test_a_controller_that_fails_ends_the_run_and_is_named() -> None:
    class Broken(Controller):
        def allocate(self, usage: Usage) -> float:
            return float("nan") if usage.time_s > 5 else 50

    with pytest.raises(vcpulab.EngineError, match="the controller of `web` allocated nan") as raised:
        managed("sedf", "xen3.0.2", controller=Broken)
    assert isinstance(raised.value.__cause__, ValueError)


def test_manage_on_the_command_line(command: Vcpulab, tmp_path: Path, browser: str) -> None:
    (tmp_path / "services.toml").write_text(SERVICES.change({"run.duration": "20s"}).to_toml())
    (tmp_path / "cautious.py").write_text((ROOT / "examples/cautious.py").read_text())
    base = ("manage", "services.toml", "--domain", "web", "--interval", "2s")
    compared = command(*base, "-s", "sedf:xen3.0.2", "-s", "credit:xen3.0.3", "--report", "out/report.html")
    assert compared.returncode == 0, compared.stderr
    assert "sedf:xen3.0.2" in compared.stdout
    page = opened(browser, tmp_path / "out/report.html")
    assert page.count('data-drawn=""') == page.count("<figure ") == 2
    own = command(*base, "--controller", "cautious.py:Cautious", "--format", "csv")
    assert own.stdout.splitlines()[0] == "scheduler,replication,time_s,domain,used,waited,allocated,next"
    for arguments, said in (
        ((*base, "--controller", "pid"), "the built-in ones are proportional, integral, predictive"),
        ((*base, "--controller", "missing.py:It"), "no such file"),
        ((*base, "--target", "0"), "target: found `0`"),
        ((*base, "--start", "0"), "start: found `0`"),
        (("manage", "services.toml", "--domain", "nobody"), "there is no domain `nobody`"),
        (("manage", "services.toml", "--domain", "web", "--interval", "15s"), "interval: found `15` s"),
        (("manage", "services.toml", "--domain", "web", "--interval", "soon"), "--interval: found `soon`"),
        ((*base, "-s", "bvt"), "neither caps nor reservations"),
        ((*base, "-s", "credit:xen9"), "xen9"),
    ):
        result = command(*arguments)
        assert (result.returncode, result.stdout) == (2, ""), (arguments, result.stderr)
        assert said in result.stderr, (arguments, result.stderr)
        assert "Traceback" not in result.stderr


def test_a_run_that_is_too_short_for_any_interval_is_refused() -> None:
    short = SERVICES.change({"run.duration": "8ms"})
    with pytest.raises(RequestError, match=r"the run of 0\.008 s is too short"):
        manage(short, Settings(controller=Proportional, domains=["web"], interval_s=0.005))
