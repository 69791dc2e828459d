"""Records the scheduler of this machine while processes compute and sleep as vCPUs do: `sudo make real-host`.

Needs root, control groups, and perf or tracefs. No guest runs. Control groups, trace buffers and mounts are removed at
the end, also after Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gzip
import itertools
import mmap
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

OUT = Path(__file__).resolve().parent.parent / "out/real-host"
GROUP = "vcpulab-real-host"
"""The control group around those of the VMs, and the buffer of the tracer."""
EVENTS = ("sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task")
RUNS = 2
"""Recordings of each experiment: their difference is chance."""
SECONDS = 12
SETTLE_S = 1
"""Time from the start of the threads to the start of the recording."""
PERIOD_US = 100_000
BUSY_PERCENT = 10
"""More CPU time of other programs than this is reported."""
CPU_TRACE_KB = 16_384
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))


class HostError(Exception):
    """This machine cannot be recorded; the text has the reason and the next step."""


@dataclass(frozen=True)
class Thread:
    """A vCPU's work: computing in turn with sleep."""

    work_us: int = 100_000
    sleep_us: int = 0
    """0: a hog."""
    jitter_percent: int = 0
    """Work and sleep are drawn evenly from this range around their values."""

    @property
    def text(self) -> str:
        """The thread as setup.md has it."""
        return ":".join(
            map(str, (self.work_us, self.sleep_us, self.jitter_percent) if self.sleep_us else [self.work_us])
        )


@dataclass(frozen=True)
class Vm:
    """A control group and its threads."""

    name: str
    threads: Sequence[Thread]
    weight: int = 100
    """As `cpu.weight` has it; 100 is 1024 shares."""
    quota_us: int | None = None
    """CPU time in 100 ms; `None`: not limited."""

    @property
    def shares(self) -> int:
        """The weight as version 1 has it."""
        return self.weight * 1024 // 100


HOG = Thread()
EXPERIMENTS: dict[str, Callable[[int], list[Vm]]] = {
    "hogs": lambda cpus: [Vm("a", [HOG] * cpus), Vm("b", [HOG] * cpus)],
    "mixed": lambda cpus: [
        Vm("a", [HOG] * (cpus + 1)),
        Vm("b", [Thread(200, 1000, 30), Thread(800, 3000, 30)]),
        Vm("c", [Thread(4000, 20_000, 30)], weight=400),
    ],
    "bigsmall": lambda cpus: [Vm("a", [HOG] * (2 * cpus)), Vm("b", [HOG])],
    "quota": lambda cpus: [
        Vm("a", [HOG] * cpus, quota_us=30_000 * cpus),
        Vm("b", [HOG]),
        Vm("c", [Thread(1000, 5000, 30)]),
    ],
}
"""The VMs of each experiment, by the number of CPUs."""


def write(path: Path, value: object) -> None:
    """Writes a file of the kernel."""
    try:
        path.write_text(f"{value}\n")
    except OSError as error:
        raise HostError(f"{path}: `{value}` is refused: {error.strerror}") from error


@dataclass(frozen=True)
class Groups:
    """The control groups of the machine."""

    version: int
    root: Path

    @classmethod
    def of(cls, mounts: str) -> Groups:
        """The control groups with the CPU controller.

        Args:
            mounts: what /proc/mounts says.
        """
        for line in mounts.splitlines():
            _, mounted_on, kind, options, *_ = line.split()
            root = Path(mounted_on)
            if kind == "cgroup" and "cpu" in options.split(","):
                return cls(1, root)
            controllers = root / "cgroup.controllers"
            if kind == "cgroup2" and controllers.exists() and "cpu" in controllers.read_text().split():
                return cls(2, root)
        raise HostError("no control groups with the CPU controller are mounted; record on the host, not in a container")

    @contextlib.contextmanager
    def made(self, vms: Sequence[Vm]) -> Iterator[dict[str, Path]]:
        """The groups of VMs, by name. They are removed at the end."""
        top = self.root / GROUP
        with contextlib.ExitStack() as undo:
            if self.version == 2:
                undo.enter_context(self._controlled(self.root))
            undo.enter_context(self._group(top))
            if self.version == 2:
                write(top / "cgroup.subtree_control", "+cpu")
            folders = {vm.name: undo.enter_context(self._group(top / vm.name)) for vm in vms}
            for vm in vms:
                self._limit(folders[vm.name], vm)
            yield folders

    @contextlib.contextmanager
    def _controlled(self, root: Path) -> Iterator[None]:
        """The groups in the root have the CPU controller; it is taken from them again if they did not have it."""
        control = root / "cgroup.subtree_control"
        had_it = "cpu" in control.read_text().split()
        if not had_it:
            write(control, "+cpu")
        try:
            yield
        finally:
            if not had_it:
                write(control, "-cpu")

    @contextlib.contextmanager
    def _group(self, path: Path) -> Iterator[Path]:
        try:
            path.mkdir()
        except FileExistsError:
            raise HostError(
                f"{path} exists: another recording runs, or one was killed; then `rmdir {path}/* {path}` removes it"
            ) from None
        except OSError as error:
            raise HostError(
                f"{path}: cannot be made: {error.strerror}; record on the host, as root, not in a container"
            ) from error
        try:
            yield path
        finally:
            _remove_group(path)

    def _limit(self, folder: Path, vm: Vm) -> None:
        if self.version == 1:
            write(folder / "cpu.shares", vm.shares)
            if vm.quota_us is not None:
                write(folder / "cpu.cfs_period_us", PERIOD_US)
                write(folder / "cpu.cfs_quota_us", vm.quota_us)
            return
        write(folder / "cpu.weight", vm.weight)
        if vm.quota_us is not None:
            write(folder / "cpu.max", f"{vm.quota_us} {PERIOD_US}")


def _remove_group(path: Path) -> None:
    """Removes a group. The kernel takes a moment to let the last process of a group go."""
    for _ in range(100):
        try:
            path.rmdir()
        except OSError:
            time.sleep(0.05)
        else:
            return
    print(f"{path} could not be removed", file=sys.stderr)


def loops_per_us() -> float:
    """Iterations of the work loop in a µs of an undisturbed CPU."""
    count = 1_000_000
    elapsed_ns = []
    for _ in range(5):
        begin = time.thread_time_ns()
        _work(count)
        elapsed_ns.append(time.thread_time_ns() - begin)
    return 1000 * count / min(elapsed_ns)


def _work(count: int) -> None:
    for _ in itertools.repeat(None, count):
        pass


def _behave(thread: Thread, vcpu: int, seed: int, speed: float, rounds: memoryview) -> NoReturn:
    """The life of a process that stands for a vCPU."""
    Path("/proc/self/comm").write_text(f"CPU {vcpu}/KVM")
    draw = random.Random(seed)
    span = thread.jitter_percent / 100
    while True:
        _work(int(thread.work_us * speed * draw.uniform(1 - span, 1 + span)))
        rounds[0] += 1
        if thread.sleep_us:
            time.sleep(thread.sleep_us * draw.uniform(1 - span, 1 + span) / 1e6)


def _await_start(start: int, starting: int, parent: int) -> None:
    """Waits in a new process until its parent has put it into its group and starts it."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # Without this a killed recorder would leave hogs behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.close(starting)
    os.read(start, 1)
    if os.getppid() != parent:
        os._exit(1)


@dataclass(frozen=True)
class Started:
    """A running process that stands for a vCPU."""

    pid: int
    vm: str
    vcpu: int
    rounds: memoryview


@contextlib.contextmanager
def running(vms: Sequence[Vm], groups: dict[str, Path], speed: float) -> Iterator[list[Started]]:
    """The processes of VMs in their groups, all started at once. They are ended at the end."""
    threads = [(vm, vcpu, thread) for vm in vms for vcpu, thread in enumerate(vm.threads)]
    counters = memoryview(mmap.mmap(-1, 8 * len(threads))).cast("q")
    start, starting = os.pipe()
    parent = os.getpid()
    started: list[Started] = []
    try:
        for number, (vm, vcpu, thread) in enumerate(threads):
            rounds = counters[number : number + 1]
            pid = os.fork()
            if pid == 0:
                try:
                    _await_start(start, starting, parent)
                    _behave(thread, vcpu, number, speed, rounds)
                finally:
                    os._exit(1)
            started.append(Started(pid, vm.name, vcpu, rounds))
            write(groups[vm.name] / "cgroup.procs", pid)
        os.close(starting)
        starting = -1
        yield started
    finally:
        for process in started:
            os.kill(process.pid, signal.SIGKILL)
        for process in started:
            os.waitpid(process.pid, 0)
        for descriptor in (start, starting):
            if descriptor >= 0:
                os.close(descriptor)


def run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a program that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostError(f"{' '.join(command[:2])}: {(done.stderr or done.stdout).strip()}")
    return done


@contextlib.contextmanager
def tracefs() -> Iterator[Path]:
    """The file system of the tracer. It is unmounted at the end if it was not mounted."""
    for path in _TRACEFS:
        if (path / "events/sched").is_dir():
            yield path
            return
    run(["mount", "-t", "tracefs", "tracefs", str(_TRACEFS[0])])
    try:
        yield _TRACEFS[0]
    finally:
        run(["umount", str(_TRACEFS[0])])


def by_perf(seconds: int, folder: Path, _: Path) -> None:
    """Records by perf."""
    data = folder / "perf.data"
    events = ",".join(f"sched:{event}" for event in EVENTS)
    record = ["perf", "record", "--all-cpus", "--clockid", "CLOCK_MONOTONIC", "--mmap-pages", "4096", "--event", events]
    run([*record, "--output", str(data), "--", "sleep", str(seconds)])
    script = run(["perf", "script", "--ns", "--fields", "comm,pid,tid,cpu,time,event,trace", "--input", str(data)])
    lost = [line for line in script.stderr.splitlines() if " lost " in line]
    if lost:
        raise HostError(f"perf lost events: {lost[0]}")
    (folder / "trace.txt").write_text(script.stdout)
    data.unlink()


def complete(trace: Iterable[str]) -> Iterator[str]:
    """The lines of a trace whose buffer lost no event."""
    for line in trace:
        counted = re.search(r"entries-in-buffer/entries-written: (\d+)/(\d+)", line)
        if counted and counted[1] != counted[2]:
            raise HostError(f"the trace buffer holds {counted[1]} of {counted[2]} events; record fewer --seconds")
        yield line


def by_ftrace(seconds: int, folder: Path, tracing: Path) -> None:
    """Records into a trace buffer apart from those of others, which is removed at the end."""
    buffer = tracing / "instances" / GROUP
    try:
        buffer.mkdir()
    except OSError as error:
        raise HostError(f"{buffer}: cannot be made: {error.strerror}") from error
    try:
        write(buffer / "tracing_on", 0)
        write(buffer / "trace_clock", "mono")
        write(buffer / "buffer_size_kb", CPU_TRACE_KB)
        for event in EVENTS:
            write(buffer / "events/sched" / event / "enable", 1)
        write(buffer / "tracing_on", 1)
        time.sleep(seconds)
        write(buffer / "tracing_on", 0)
        with (buffer / "trace").open(errors="replace") as source, (folder / "trace.txt").open("w") as trace:
            trace.writelines(complete(source))
    finally:
        buffer.rmdir()


RECORDERS = {"perf": by_perf, "ftrace": by_ftrace}


def kernel_text() -> str:
    """The kernel, as `uname` and its configuration describe it."""
    uname = os.uname()
    lines = [f"Linux host {uname.release} {uname.version} {uname.machine} GNU/Linux"]
    packed, unpacked = Path("/proc/config.gz"), Path(f"/boot/config-{uname.release}")
    if packed.exists():
        config = gzip.decompress(packed.read_bytes()).decode()
    else:
        config = unpacked.read_text() if unpacked.exists() else ""
    lines += [line for line in config.splitlines() if line.startswith("CONFIG_HZ=")]
    settings = [Path("/proc/sys/kernel/sched_cfs_bandwidth_slice_us"), *Path("/proc/sys/kernel").glob("sched_*_ns")]
    debug = Path("/sys/kernel/debug/sched")
    settings += [file for file in sorted(debug.glob("*")) if file.is_file() and file.name != "debug"]
    settings += [Path("/sys/kernel/sched_ext/state")]
    lines += [f"{file}:{file.read_text().strip()}" for file in settings if file.exists()]
    return "\n".join([*lines, ""])


def groups_text(groups: dict[str, Path], started: Sequence[Started]) -> str:
    """The files of groups and the group of each process, as `grep -r .` writes them."""
    files = [file for path in groups.values() for file in sorted(path.glob("cpu*")) if os.access(file, os.R_OK)]
    files += [Path(f"/proc/{process.pid}/cgroup") for process in started]
    lines = []
    for file in files:
        with contextlib.suppress(OSError):
            lines += [f"{file}:{line}" for line in file.read_text().splitlines()]
    return "\n".join([*lines, ""])


def setup_text(vms: Sequence[Vm], version: int) -> str:
    """The VMs and their threads."""
    lines = []
    for vm in vms:
        weight = f"shares={vm.shares}" if version == 1 else f"weight={vm.weight}"
        quota, period = ("-", "-") if vm.quota_us is None else (vm.quota_us, PERIOD_US)
        threads = " ".join(thread.text for thread in vm.threads)
        lines.append(f"* VM {vm.name}: {weight} quota={quota} period={period} cpus=- {threads}")
    return "\n".join([*lines, ""])


def busy_percent(seconds: float) -> float:
    """The CPU time that runs now, % of all CPUs."""

    def read() -> tuple[int, int]:
        ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(ticks), ticks[3] + ticks[4]

    total, idle = read()
    time.sleep(seconds)
    total_later, idle_later = read()
    return 100 * (1 - (idle_later - idle) / max(total_later - total, 1))


def steal_ms() -> int:
    """The time that a hypervisor below gave to others, all CPUs together."""
    ticks = int(Path("/proc/stat").read_text().split()[8])
    return 1000 * ticks // os.sysconf("SC_CLK_TCK")


def record(vms: Sequence[Vm], recorder: str, seconds: int, speed: float, folder: Path) -> None:
    """Runs an experiment, and leaves its recording in a new folder."""
    groups = Groups.of(Path("/proc/mounts").read_text())
    making = folder.with_name(f".{folder.name}")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    try:
        with tracefs() as tracing, groups.made(vms) as folders, running(vms, folders, speed) as started:
            time.sleep(SETTLE_S)
            stolen_ms = steal_ms()
            RECORDERS[recorder](seconds, making, tracing)
            stolen_ms = steal_ms() - stolen_ms
            texts = {
                "threads.txt": "".join(f"{process.pid} {process.vm} {process.vcpu}\n" for process in started),
                "iterations.txt": "".join(f"{made.vm} {made.vcpu} {made.rounds[0]}\n" for made in started),
                "groups.txt": groups_text(folders, started),
                "setup.md": setup_text(vms, groups.version),
                "recorder.md": f"* {recorder}, {seconds} s; stolen by a hypervisor below: {stolen_ms} ms\n",
                "kernel.txt": kernel_text(),
                "lscpu.txt": run(["lscpu", "--parse=CPU,CORE,SOCKET,NODE"]).stdout,
            }
        for name, text in texts.items():
            (making / name).write_text(text)
        making.rename(folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def give_to_caller(path: Path) -> None:
    """Gives files to the user who called sudo."""
    if "SUDO_UID" in os.environ and path.exists():
        for file in (path, *path.rglob("*")):
            os.chown(file, int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"]))


def stop(*_: object) -> None:
    """Ends the recording. Later signals are ignored, so that everything is removed."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> None:
    """The command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    names = ", ".join(EXPERIMENTS)
    arguments.add_argument("names", nargs="*", metavar="NAME", help=f"default: {names}")
    arguments.add_argument("--out", type=Path, default=OUT, help="for a folder each (default: %(default)s)")
    arguments.add_argument("--seconds", type=int, default=SECONDS, help="of each recording (default: %(default)s)")
    have_perf = shutil.which("perf") is not None
    default = "perf" if have_perf else "ftrace"
    arguments.add_argument("--recorder", choices=list(RECORDERS), default=default, help="default here: %(default)s")
    given = arguments.parse_args()
    unknown = [name for name in given.names if name not in EXPERIMENTS]
    if unknown:
        arguments.error(f"no experiment `{unknown[0]}`; allowed: {names}")
    if not 1 <= given.seconds <= 600:
        arguments.error(f"--seconds: found {given.seconds}; allowed: 1 to 600")
    if os.geteuid():
        raise HostError("control groups and tracing need root: `sudo make real-host`")
    cpus = os.cpu_count() or 1
    release = ".".join(platform.release().split(".")[:2])
    busy = busy_percent(1)
    if busy > BUSY_PERCENT:
        print(f"warning: other programs use {busy:.0f} % of the CPUs; they are in the recordings, too", file=sys.stderr)
    speed = loops_per_us()
    for name in given.names or EXPERIMENTS:
        for number in range(1, RUNS + 1):
            folder = given.out.resolve() / f"linux-{release}-real-{cpus}cpus-{name}-{number}"
            if folder.exists():
                print(f"{folder.name}: recorded before in {folder.parent}", flush=True)
                continue
            record(EXPERIMENTS[name](cpus), given.recorder, given.seconds, speed, folder)
            give_to_caller(folder)
            print(f"{folder}", flush=True)
    give_to_caller(given.out.resolve())


if __name__ == "__main__":
    for stopping in SIGNALS:
        signal.signal(stopping, stop)
    try:
        main()
    except HostError as error:
        sys.exit(f"real-host: {error}")
    except KeyboardInterrupt:
        sys.exit("real-host: stopped; nothing is left behind")
