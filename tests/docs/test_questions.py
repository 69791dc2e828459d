"""The verdicts of docs/questions: each sweep, shortened, still comes to them."""

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from support import ROOT
from vcpulab.cli.main import main
from vcpulab.sweeps import Plan

EXAMPLES = ROOT / "examples" / "questions"
PAGES = ROOT / "docs" / "questions"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.toml"))

Value = Callable[..., float]
"""The mean of a metric at the point with these values of the first axis and of the second."""


def shortened(name: str, keep: Mapping[str, Sequence[Any]], duration: str) -> dict[str, Any]:
    """The sweep with two short replications, and of these axes only the values to keep."""
    sweep = tomllib.loads((EXAMPLES / f"{name}.toml").read_text())
    sweep["replications"] = 2
    sweep["scenario"]["run"] |= {"duration": duration, "warmup": "500ms"}
    for axis in sweep["vary"]:
        if "from" in axis:
            axis["values"] = list(range(axis.pop("from"), axis.pop("to") + 1))
            del axis["steps"]
    for path, values in keep.items():
        (chosen,) = (axis for axis in sweep["vary"] if axis["path"] == path)
        kept = [value in values for value in chosen["values"]]
        for axis in sweep["vary"]:
            if axis is chosen or (axis.get("zip") is not None and axis.get("zip") == chosen.get("zip")):
                axis["values"] = [value for value, keeps in zip(axis["values"], kept, strict=True) if keeps]
    return sweep


def command_of(name: str) -> tuple[Path, list[str]]:
    """The page of a sweep, and the command with which it repeats the sweep."""
    commands = [
        (page, words)
        for page in sorted(PAGES.glob("*.md"))
        for command in re.findall(r"^\$ (vcpulab sweep .*)$", page.read_text(), re.MULTILINE)
        if (words := shlex.split(command))[2] == f"examples/questions/{name}.toml"
    ]
    (command_of_page,) = commands
    return command_of_page


@pytest.fixture
def measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Value]:
    """Runs a shortened sweep by the command of its page, and looks up what it prints."""

    def of(name: str, axes: tuple[str, str], keep: Mapping[str, Sequence[Any]], duration: str = "2s") -> Value:
        (tmp_path / f"{name}.toml").write_text(tomli_w.dumps(shortened(name, keep, duration)))
        _, words = command_of(name)
        shown = words[words.index("--show") + 1]
        given = [str(tmp_path / f"{name}.toml"), "--store", str(tmp_path / "store"), "--show", shown]
        assert main(["sweep", *given, "--format", "json", "--plot", str(tmp_path / f"{name}.svg")]) == 0
        rows = json.loads(capsys.readouterr().out)["metrics"]
        means = {(row[axes[0]], row[axes[1]], row["metric"]): row["mean"] for row in rows}
        assert (tmp_path / f"{name}.svg").read_text().startswith("<svg")

        def value(first: object, second: object, metric: str) -> float:
            mean: float = means[first, second, metric]
            return mean

        return value

    return of


@pytest.mark.parametrize("name", NAMES)
def test_page_shows_its_command_and_its_picture(name: str) -> None:
    path, words = command_of(name)
    page = path.read_text()
    assert page.splitlines()[0].endswith("?"), "a question is its title"
    assert f"({name}.svg)" in page
    assert words[words.index("--plot") + 1] == f"docs/questions/{name}.svg"
    assert f"({path.name})" in (PAGES / "README.md").read_text()
    assert len(Plan.load(EXAMPLES / f"{name}.toml").groups) <= 2


def test_credit2_slices(measured: Callable[..., Value]) -> None:
    of = measured("credit2-slices", ("domain.hogs.count", "host.generation"), {"domain.hogs.count": [2, 3, 6]})
    tail = "http.response_p99"
    assert of(3, "xen4.22", tail) < 0.7 * of(3, "xen4.17", tail)
    assert of(2, "xen4.22", "http.response_p50") < 0.8 * of(2, "xen4.17", "http.response_p50")
    assert of(3, "xen4.22", "host.overhead") > 1.1 * of(3, "xen4.17", "host.overhead")
    assert of(6, "xen4.22", tail) == of(6, "xen4.17", tail)


def test_soft_affinity(measured: Callable[..., Value]) -> None:
    of = measured("soft-affinity", ("domain.left-hogs.count", "name"), {"domain.left-hogs.count": [2, 6, 8]})
    work, tail = "left-hogs1.work", "http.response_p99"
    assert of(2, "preferred", work) == pytest.approx(of(2, "pinned", work), rel=0.02)
    assert of(2, "preferred", work) > 1.2 * of(2, "anywhere", work)
    assert of(6, "preferred", work) > 1.1 * of(6, "pinned", work)
    assert of(6, "pinned", tail) < 0.3 * of(6, "preferred", tail)
    assert of(8, "pinned", "right-hogs1.work") > 1.2 * of(8, "preferred", "right-hogs1.work")


def test_dom0_vcpus(measured: Callable[..., Value]) -> None:
    keep = {"domain.dom0.vcpus": [1, 4, 8]}
    of = measured("dom0-vcpus", ("domain.dom0.vcpus", "name"), keep, "1s")
    rate, tail, batch = "http1.throughput", "http1.response_p99", "batch.work"
    assert of(1, "anywhere", rate) < 0.85 * of(4, "anywhere", rate)
    assert of(4, "own", tail) < of(1, "own", tail) / 10
    assert of(4, "anywhere", tail) < of(4, "pinned", tail)
    assert of(8, "own", batch) < 0.7 * of(4, "own", batch)
    assert of(8, "anywhere", batch) > 0.95 * of(4, "anywhere", batch)


def test_smt_power_savings(measured: Callable[..., Value]) -> None:
    keep = {"domain.batch.vcpus": [1, 6, 8, 16]}
    of = measured("smt-power-savings", ("domain.batch.vcpus", "host.smt_power_savings"), keep)
    work, tail = "batch.work", "http.response_p99"
    assert of(6, 1, work) < 0.85 * of(6, 0, work)
    assert of(6, 1, tail) > 1.4 * of(6, 0, tail)
    for vcpus in (1, 16):
        assert of(vcpus, 1, work) == pytest.approx(of(vcpus, 0, work), rel=0.03)


def test_core_scheduling(measured: Callable[..., Value]) -> None:
    keep = {"host.topology.cores": [2, 6, 12]}
    of = measured("core-scheduling", ("host.topology.cores", "name"), keep)
    work = "probe.work"
    assert of(2, "1 vCPU, core", work) < 0.9 * of(2, "1 vCPU, cpu", work)
    assert of(2, "2 vCPUs, core", work) == pytest.approx(of(2, "2 vCPUs, cpu", work), rel=0.1)
    assert of(12, "1 vCPU, core", work) == pytest.approx(of(12, "1 vCPU, cpu", work), rel=0.1)
    assert of(12, "2 vCPUs, core", work) < 0.7 * of(12, "2 vCPUs, cpu", work)


def test_spread_or_pack(measured: Callable[..., Value]) -> None:
    of = measured("spread-or-pack", ("domain.vm.vcpus", "name"), {"domain.vm.vcpus": [4, 8, 10, 12, 16]}, "1s")
    work = "vm.work"
    assert of(4, "pack, compute", work) > of(4, "spread, compute", work)
    assert of(16, "spread, compute", work) > 1.4 * of(16, "pack, compute", work)
    assert of(8, "pack, memory", work) > 1.2 * of(8, "spread, memory", work)
    assert of(10, "pack, memory", work) > of(10, "spread, memory", work)
    assert of(12, "spread, memory", work) > of(12, "pack, memory", work)


def test_kernel_upgrade_latency(measured: Callable[..., Value]) -> None:
    keep = {"domain.hogs.count": [2, 10]}
    of = measured("kernel-upgrade-latency", ("domain.hogs.count", "host.generation"), keep, "10s")
    median, tail = "http.response_p50", "http.response_p99"
    assert of(10, "7.3", median) > 2 * of(10, "7.0", median)
    assert of(10, "7.3", tail) > 1.2 * of(10, "7.0", tail)
    assert of(10, "6.8", median) == pytest.approx(of(10, "7.0", median), rel=0.2)
    assert of(2, "7.3", tail) == pytest.approx(of(2, "7.0", tail), rel=0.02)


def test_kernel_upgrade_sizes(measured: Callable[..., Value]) -> None:
    of = measured("kernel-upgrade-sizes", ("domain.large.vcpus", "host.generation"), {"domain.large.vcpus": [8]})
    for generation in ("6.8", "6.12", "7.0"):
        assert of(8, generation, "large.gotten") == pytest.approx(88, abs=2)
    assert of(8, "7.3", "large.gotten") == pytest.approx(372, abs=5)
    assert of(8, "7.3", "small1.gotten") < 0.65 * of(8, "7.0", "small1.gotten")


def test_kernel_upgrade_quota(measured: Callable[..., Value]) -> None:
    quota = "domain.limited.global_quota_us"
    of = measured("kernel-upgrade-quota", (quota, "host.generation"), {quota: [100_000]}, "10s")
    for generation in ("6.8", "6.12", "7.0", "7.3"):
        assert of(100_000, generation, "limited.gotten") == pytest.approx(100, abs=1)
    switches = "limited.context_switches"
    assert of(100_000, "7.3", switches) > 1.3 * of(100_000, "7.0", switches)


def test_kernel_upgrade_daemon(measured: Callable[..., Value]) -> None:
    threads = "domain.backup.vcpus"
    of = measured("kernel-upgrade-daemon", (threads, "host.generation"), {threads: [4, 8]}, "5s")
    assert of(4, "7.3", "backup.gotten") < 0.85 * of(4, "7.0", "backup.gotten")
    assert of(8, "7.3", "backup.gotten") == pytest.approx(of(8, "7.0", "backup.gotten"), rel=0.02)
