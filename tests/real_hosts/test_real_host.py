"""What `make real-host` does with this machine: groups, processes and recorders, and what it leaves behind."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import real_host
from real_host import EXPERIMENTS, GROUP, HOG, Groups, HostError, Thread, Vm
from support import HANG_S
from vcpulab import formats

V1 = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
VMS = [Vm("a", [HOG, Thread(1000, 5000, 30)], weight=400, quota_us=60_000), Vm("b", [HOG])]


@pytest.fixture(autouse=True)
def folders_are_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel removes the files of a group with the group."""
    monkeypatch.setattr(real_host, "_remove_group", shutil.rmtree)


@pytest.fixture
def v2(tmp_path: Path) -> Groups:
    """Control groups of version 2, whose groups have no CPU controller yet."""
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io\n")
    (tmp_path / "cgroup.subtree_control").write_text("io\n")
    return Groups.of(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n")


def test_the_version_of_control_groups_is_that_with_the_cpu_controller(tmp_path: Path, v2: Groups) -> None:
    assert (v2.version, v2.root) == (2, tmp_path)
    assert Groups.of(V1) == Groups(1, Path("/sys/fs/cgroup/cpu,cpuacct"))
    (tmp_path / "cgroup.controllers").write_text("cpuset io\n")
    with pytest.raises(HostError, match="no control groups with the CPU controller"):
        Groups.of(f"cgroup2 {tmp_path} cgroup2 rw 0 0\n")


def test_groups_of_version_2_have_limits_and_are_removed(tmp_path: Path, v2: Groups) -> None:
    control = tmp_path / "cgroup.subtree_control"
    with v2.made(VMS) as folders:
        assert control.read_text() == "+cpu\n"
        assert (tmp_path / GROUP / "cgroup.subtree_control").read_text() == "+cpu\n"
        assert (folders["a"] / "cpu.max").read_text() == "60000 100000\n"
        assert (folders["a"] / "cpu.weight").read_text() == "400\n"
        assert not (folders["b"] / "cpu.max").exists()
    assert not (tmp_path / GROUP).exists()
    assert control.read_text() == "-cpu\n"


def test_a_controller_that_was_on_stays_on(tmp_path: Path, v2: Groups) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpu io\n")
    with v2.made(VMS):
        pass
    assert (tmp_path / "cgroup.subtree_control").read_text() == "cpu io\n"


def test_groups_of_version_1_have_shares_and_quotas(tmp_path: Path) -> None:
    with Groups(1, tmp_path).made(VMS) as folders:
        assert (folders["a"] / "cpu.shares").read_text() == "4096\n"
        assert (folders["a"] / "cpu.cfs_quota_us").read_text() == "60000\n"
        assert (folders["b"] / "cpu.shares").read_text() == "1024\n"
    assert list(tmp_path.iterdir()) == []


def test_groups_of_another_recording_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / GROUP / "a").mkdir(parents=True)
    with pytest.raises(HostError, match=f"{GROUP} exists: another recording runs"), Groups(1, tmp_path).made(VMS):
        pass
    assert (tmp_path / GROUP / "a").exists()


def test_read_only_groups_are_an_error_with_a_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(HostError, match="Read-only file system; record on the host"), Groups(1, tmp_path).made(VMS):
        pass


def test_processes_are_named_like_vcpus_and_end(tmp_path: Path) -> None:
    folders = {vm.name: tmp_path / vm.name for vm in VMS}
    for folder in folders.values():
        folder.mkdir()
    vms = [Vm("a", [Thread(100, 1000), Thread(100, 1000)]), Vm("b", [Thread(100, 1000)])]
    with real_host.running(vms, folders, speed=1.0) as started:
        limit = time.monotonic() + HANG_S
        while not all(process.rounds[0] for process in started) and time.monotonic() < limit:
            time.sleep(0.01)
        names = [Path(f"/proc/{process.pid}/comm").read_text().strip() for process in started]
        assert names == ["CPU 0/KVM", "CPU 1/KVM", "CPU 0/KVM"]
        assert all(process.rounds[0] for process in started)
        assert (folders["b"] / "cgroup.procs").read_text() == f"{started[2].pid}\n"
    assert not any(Path(f"/proc/{process.pid}").exists() for process in started)


def test_an_interrupted_recording_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    processes_of = real_host.running

    @contextmanager
    def noted(vms: list[Vm], folders: dict[str, Path], speed: float) -> Iterator[list[real_host.Started]]:
        with processes_of(vms, folders, speed) as started:
            pids.extend(process.pid for process in started)
            yield started

    @contextmanager
    def tracing() -> Iterator[Path]:
        yield tmp_path

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    groups = tmp_path / "groups"
    groups.mkdir()
    monkeypatch.setattr(Groups, "of", lambda _: Groups(1, groups))
    monkeypatch.setattr(real_host, "running", noted)
    monkeypatch.setattr(real_host, "tracefs", tracing)
    monkeypatch.setattr(real_host, "SETTLE_S", 0)
    monkeypatch.setitem(real_host.RECORDERS, "perf", interrupt)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        real_host.record(VMS, "perf", 1, 1.0, out / "hogs-1")
    assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert list(groups.iterdir()) == list(out.iterdir()) == []


@pytest.mark.parametrize(("said", "lost"), [("", False), ("Processed 9 events and lost 2 chunks!", True)])
def test_perf_that_lost_events_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, lost: bool
) -> None:
    perf = tmp_path / "perf"
    perf.write_text(
        f'#!/bin/sh\ncase $1 in\nrecord) : >"{tmp_path}/perf.data" ;;\nscript) echo trace; echo "{said}" >&2 ;;\nesac\n'
    )
    perf.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if lost:
        with pytest.raises(HostError, match="perf lost events: Processed 9"):
            real_host.by_perf(1, tmp_path, tmp_path)
        return
    real_host.by_perf(1, tmp_path, tmp_path)
    assert (tmp_path / "trace.txt").read_text() == "trace\n"
    assert not (tmp_path / "perf.data").exists()


def test_a_trace_buffer_that_lost_events_is_an_error() -> None:
    head = "# entries-in-buffer/entries-written: {}/7   #P:2\n"
    assert list(real_host.complete([head.format(7), "event\n"])) == [head.format(7), "event\n"]
    with pytest.raises(HostError, match="holds 5 of 7 events"):
        list(real_host.complete([head.format(5)]))


def test_texts_are_what_the_readers_of_recordings_take(tmp_path: Path) -> None:
    (tmp_path / "kernel.txt").write_text(real_host.kernel_text())
    kernel = formats.read(tmp_path / "kernel.txt")
    assert kernel.kind == "linux"
    assert kernel.holds.version.startswith(os.uname().release)
    (tmp_path / "threads.txt").write_text("10 a 0\n11 a 1\n")
    assert [thread.thread for thread in formats.read_threads(tmp_path / "threads.txt")] == [10, 11]
    assert real_host.setup_text(VMS, 1).splitlines() == [
        "* VM a: shares=4096 quota=60000 period=100000 cpus=- 100000 1000:5000:30",
        "* VM b: shares=1024 quota=- period=- cpus=- 100000",
    ]
    assert real_host.setup_text(VMS, 2).startswith("* VM a: weight=400 quota=60000")


@pytest.mark.parametrize("cpus", [1, 2, 64])
def test_experiments_load_every_cpu(cpus: int) -> None:
    for vms in (experiment(cpus) for experiment in EXPERIMENTS.values()):
        hogs = sum(not thread.sleep_us for vm in vms for thread in vm.threads)
        assert hogs > cpus
        assert all(vm.quota_us is None or vm.quota_us < 100_000 * cpus for vm in vms)


def test_without_root_the_command_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.argv", ["real_host.py", "--out", str(tmp_path)])
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="sudo make real-host"):
        real_host.main()
    assert list(tmp_path.iterdir()) == []
