"""`vcpulab validate` on recordings of hosts with several CPUs: two runs of a setting, and emulated CPUs."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import ROOT
from vcpulab import Scenario, run
from vcpulab.errors import RequestError
from vcpulab_evidence.validation import Cell, Report, validate
from vcpulab_evidence.validation.hosts import HostRecording
from vcpulab_evidence.validation.report import ANOTHER, OWN

HOSTS = ROOT / "evidence" / "recordings" / "hosts"


def recordings_of(name: str) -> list[Path]:
    return [HOSTS / f"linux6.18-2cpus-{name}-{number}" for number in (1, 2)]


def under(kernel: str, name: str, folder: Path) -> list[Path]:
    """Both runs of a setting, as if another kernel had been recorded."""
    copies = [Path(shutil.copytree(path, folder / path.name)) for path in recordings_of(name)]
    for copy in copies:
        file = copy / "kernel.txt"
        text = file.read_text()
        assert "6.18.44" in text
        file.write_text(text.replace("6.18.44", kernel))
    return copies


def cells(report: Report, metric: str, kind: str = ANOTHER) -> Iterator[Cell]:
    for comparison in report.comparisons:
        if comparison.kind == kind:
            yield from (cell for cell in comparison.cells if cell.metric == metric)


@pytest.fixture(scope="module")
def hogs() -> Report:
    return validate(recordings_of("hogs"))


def test_each_run_is_predicted_from_its_own_demands_and_from_those_of_the_other(hogs: Report) -> None:
    first, second = (path.name for path in recordings_of("hogs"))
    pairs = {(comparison.demands.name, comparison.setting.name): comparison.kind for comparison in hogs.comparisons}
    assert pairs == {(first, first): OWN, (second, second): OWN, (first, second): ANOTHER, (second, first): ANOTHER}
    assert {comparison.scheduler for comparison in hogs.comparisons} == {"linux-eevdf 6.18"}


def test_the_difference_between_two_runs_is_the_limit(hogs: Report) -> None:
    of_host = [cell for cell in cells(hogs, "switches") if cell.thing == "host"]
    recorded = sorted(cell.recorded for cell in of_host)
    for cell in of_host:
        limit = 100 * (recorded[1] - recorded[0]) / cell.recorded
        assert cell.limit == f"{limit:.2g} %"
        assert cell.holds == (abs(cell.off) <= limit)


def test_two_hogs_on_each_cpu_share_and_switch_as_recorded(hogs: Report) -> None:
    shares, switches = list(cells(hogs, "share")), list(cells(hogs, "switches"))
    assert len(shares) == 8
    assert all(cell.holds or cell.chance for cell in shares)
    assert all(abs(cell.off) < 3 for cell in switches if cell.thing == "host")
    assert sum(cell.holds or cell.chance for cell in switches) >= 7
    assert [cell.predicted for cell in cells(hogs, "beside")] == pytest.approx([1] * 8, abs=0.05)


def test_the_rules_of_another_kernel_are_outside_of_noise_and_chance(tmp_path: Path) -> None:
    """From 7.1 on requests end by a timer; on 7.3 a weight counts for each busy vCPU."""
    hogs, bigsmall = (validate(under("7.3.4", name, tmp_path)) for name in ("hogs", "bigsmall"))
    assert not any(cell.holds or cell.chance for cell in cells(hogs, "switches"))
    assert not any(cell.holds or cell.chance for cell in cells(bigsmall, "share"))
    assert not bigsmall.passed


def test_emulated_cpus_are_judged_by_shares_and_placement_and_the_noise_of_halves() -> None:
    report = validate([HOSTS / "emulated-linux7.3-2cpus"])
    [comparison] = report.comparisons
    assert comparison.kind == OWN
    assert {cell.metric for cell in comparison.cells} == {"share", "on_main_cpu", "beside"}
    shares = list(cells(report, "share", OWN))
    assert all(cell.holds or cell.chance for cell in shares)
    assert len({cell.limit for cell in shares}) > 1


def test_a_host_without_recordings_is_refused_with_what_is_needed(tmp_path: Path) -> None:
    (tmp_path / "threads.txt").write_text("1 a 0\n")
    with pytest.raises(
        RequestError, match=r"a folder with .*threads.txt and trace.txt beside other files of a KVM host"
    ):
        validate([tmp_path])


def test_wakes_of_a_sleeper_that_are_on_a_grid_by_chance_are_no_tick() -> None:
    """Of 195 short sleeps 10 end on one of 40,000 grids that are tried; two would on any one."""
    assert "idle_tick" not in HostRecording(recordings_of("quota")[1]).twin.written()["domain"]["c"]


def test_each_vcpu_is_a_domain_in_the_group_of_its_vm() -> None:
    recording = HostRecording(recordings_of("bigsmall")[0])
    assert sorted(recording.threads) == ["a.0", "a.1", "a.2", "a.3", "b"]
    domains = recording.twin.written()["domain"]
    assert [domains[name]["cgroup"] for name in ("a.0", "a.3", "b")] == ["machine/a", "machine/a", "machine"]
    assert all(domains[name]["vcpus"] == 1 for name in recording.threads)


def test_a_thread_of_nice_minus_10_that_a_recording_lacks_makes_hogs_move() -> None:
    """4 ms once a second; the kernel's weight of nice -10 is 9548, and 1024 of nice 0."""
    recording = HostRecording(recordings_of("hogs")[0])
    document = recording.twin.written()
    app = {"kind": "periodic", "run": "4ms", "period": "1040ms"}
    thread = {"vcpus": 1, "daemon": True, "cgroup": "/", "weight": 932, "app": [app]}
    with_thread = Scenario.from_dict({**document, "domain": {**document["domain"], "system": thread}})
    moves = [
        run(scenario.change({"run.duration": "8s", "run.replications": 2})).df_domains()["migrations"].sum()
        for scenario in (recording.twin, with_thread)
    ]
    assert moves[0] <= 2
    assert moves[1] >= 10
