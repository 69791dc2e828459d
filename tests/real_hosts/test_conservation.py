"""Twins of Linux hosts conserve CPU time: of hogs, sleepers, threads that come and go, and across missing records."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from support import ROOT, Vcpulab
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.conservation import Share, in_other_orders
from vcpulab.twin.twin import Twin

SPAN_NS = 1_600_000_000
QUANTUM_NS = 4_000_000
DAEMON, HIDDEN, RECORDER = 900, 901, 902
NS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
GROUP = "/sys/fs/cgroup/cpu/machine/{}/cpu.{}:{}\n"


@dataclass
class Thread:
    """A thread that computes and sleeps from its begin to its end."""

    tid: int
    name: str
    run_ns: int
    sleep_ns: int
    begin_ns: int = 0
    end_ns: int = SPAN_NS
    left_ns: int = 0
    wakes_ns: int = 0
    ran_ns: int = field(default=0, init=False)
    waited_ns: int = field(default=0, init=False)
    turns: int = field(default=0, init=False)

    def next_sleep_ns(self) -> int:
        """Sleeps differ by some %, and from thread to thread, so that no thread seems to wake another."""
        self.turns += 1
        return self.sleep_ns * (94 + (self.tid + 7 * self.turns) % 13) // 100

    @property
    def asleep_ns(self) -> int:
        """How long it wanted nothing, or was not there."""
        return SPAN_NS - self.ran_ns - self.waited_ns

    def __post_init__(self) -> None:
        self.left_ns, self.wakes_ns = self.run_ns, self.begin_ns


def recorded(threads: list[Thread], hidden: frozenset[int] = frozenset()) -> str:
    """One CPU, on which waking threads go first, as perf writes it, without lines of hidden threads.

    Sets how long each thread ran and waited.
    """
    lines: list[str] = []

    def line(now: int, who: Thread | None, text: str) -> None:
        tid, name = (0, "swapper/0") if who is None else (who.tid, who.name)
        if tid not in hidden:
            lines.append(f"{name} {tid}/{tid} [000] {1 + now // 10**9}.{now % 10**9:09}: sched:{text}\n")

    def task(prefix: str, who: Thread | None) -> str:
        tid, name = (0, "swapper/0") if who is None else (who.tid, who.name)
        return f"{prefix}_comm={name} {prefix}_pid={tid} {prefix}_prio=120"

    now, queue = 0, list[Thread]()
    current: Thread | None = None
    asleep = sorted(threads, key=lambda one: one.tid)
    while now < SPAN_NS:
        until = min([now + QUANTUM_NS, SPAN_NS, *(one.wakes_ns for one in asleep if one.wakes_ns > now)])
        if current is not None:
            until = min(until, now + current.left_ns)
            current.left_ns -= until - now
            current.ran_ns += until - now
        for one in queue:
            one.waited_ns += until - now
        now, state = until, "R"
        for one in [one for one in asleep if one.wakes_ns <= now]:
            asleep.remove(one)
            queue.insert(0, one)
            line(now, current, f"sched_waking: comm={one.name} pid={one.tid} prio=120 target_cpu=000")
        before = current
        if current is not None and current.left_ns == 0:
            current.left_ns, current.wakes_ns = current.run_ns, now + current.next_sleep_ns()
            state = "S" if current.wakes_ns < current.end_ns else "X"
            if state == "S":
                asleep.append(current)
            current = None
        elif current is not None and queue:
            queue.append(current)
        if current is None or queue:
            current = queue.pop(0) if queue else None
        if current is not before:
            line(now, before, f"sched_switch: {task('prev', before)} prev_state={state} ==> {task('next', current)}")
    return "".join(lines)


def host(
    folder: Path, threads: list[Thread], hidden: frozenset[int] = frozenset(), kernel: str = "Linux 6.12.5\n"
) -> Path:
    """A folder of a recorded host."""
    (folder / "trace.txt").write_text(recorded(threads, hidden))
    (folder / "kernel.txt").write_text(kernel)
    vcpus = [thread for thread in threads if thread.tid < DAEMON]
    (folder / "threads.txt").write_text("".join(f"{one.tid} vm{one.tid} 0\n" for one in vcpus))
    groups = [GROUP.format(f"vm{one.tid}", name, value) for one in vcpus for name, value in (("shares", 1024),)]
    (folder / "groups.txt").write_text("".join(groups))
    return folder


def mean_ns(times: str | list[str]) -> float:
    """The mean of a time, or of quantiles at equal distances."""
    parts = [re.fullmatch(r"([\d.]+)(ns|us|ms|s)", time) for time in ([times] if isinstance(times, str) else times)]
    values = [float(part[1]) * NS[part[2]] for part in parts if part is not None]
    return values[0] if len(values) == 1 else sum((a + b) / 2 for a, b in pairwise(values)) / (len(values) - 1)


def sleeps_per_run(domain: Mapping[str, Any]) -> float:
    """Time asleep for each ns of computing that a domain's application wants."""
    (app,) = domain["app"]
    if app["kind"] == "hog":
        return 0.0
    events = [event for phase in app["phase"] for event in phase["event"]]
    # Sleeps that look by chance as if they ended at a tick of a guest's kernel have no length.
    assume(not any("ticks" in event for event in events))
    run = sum(mean_ns(event["run"]) for event in events if "run" in event)
    return sum(mean_ns(event["sleep"]) for event in events if "sleep" in event) / run


def sleeper(tid: int) -> st.SearchStrategy[Thread]:
    times = st.tuples(st.integers(100_000, 1_000_000), st.integers(8_000_000, 20_000_000))
    return times.map(lambda pair: Thread(tid, "CPU 0/KVM", *pair))


def passing(tid: int, name: str) -> st.SearchStrategy[Thread]:
    """A thread that lives for some ms, computes all the while, and ends, or is still there at the end."""
    begins = st.integers(0, SPAN_NS - 30_000_000)
    return st.tuples(begins, st.integers(500_000, 9_000_000)).map(
        lambda pair: Thread(tid, name, pair[1], 2 * SPAN_NS, pair[0], SPAN_NS)
    )


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(
    sleepers=st.lists(st.booleans(), min_size=1, max_size=3).flatmap(
        lambda those: st.tuples(*(sleeper(101 + number) for number, _ in enumerate(those)))
    ),
    daemon=passing(DAEMON, "daemon"),
    unseen=passing(HIDDEN, "hidden"),
    hides=st.booleans(),
)
def test_each_thread_wants_what_it_consumed(
    sleepers: tuple[Thread, ...],
    daemon: Thread,
    unseen: Thread,
    hides: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    threads = [Thread(100, "CPU 0/KVM", SPAN_NS, 0), *sleepers, daemon, unseen]
    folder = host(tmp_path_factory.mktemp("host"), threads, frozenset({HIDDEN} if hides else {}))
    domains = Twin(folder).scenario.to_dict()["domain"]
    assert all(
        app["kind"] != "hog" for domain in domains.values() if domain.get("daemon") for app in domain.get("app", [])
    )
    assert sleeps_per_run(domains["vm100"]) == 0
    for thread in sleepers:
        # The turns at the begin and at the end are cut.
        edges = 2 * thread.run_ns / thread.ran_ns
        wanted = sleeps_per_run(domains[f"vm{thread.tid}"])
        assert wanted == pytest.approx(thread.asleep_ns / thread.ran_ns, rel=0.01 + edges)
    # Of what runs beside hidden threads some is unknown.
    for thread in () if hides else (daemon, unseen):
        if thread.name in domains:
            wanted = sleeps_per_run(domains[thread.name])
            # Of a single turn no mean evens out that spreads keep times to 1/64.
            assert wanted == pytest.approx(thread.asleep_ns / thread.ran_ns, rel=0.01 + 1 / 64)


def test_what_recorded_is_left_out_and_uname_sr_is_enough(tmp_path: Path) -> None:
    threads = [Thread(100, "CPU 0/KVM", SPAN_NS, 0), Thread(RECORDER, "perf", 1_000_000, 9_000_000)]
    made = Twin(host(tmp_path, threads, kernel="Linux 6.12.5\n"))
    assert set(made.scenario.to_dict()["domain"]) == {"vm100"}
    assert re.search(r"The threads that recorded \(perf, (9|10)[.\d]* % of a CPU\) are left out\.", made.text)
    assert any("hz = 250 is assumed" in note for note in made.notes)


def test_weights_and_quotas_of_version_1_are_those_of_the_group_of_a_vm_s_name(tmp_path: Path) -> None:
    host(tmp_path, [Thread(100, "CPU 0/KVM", SPAN_NS, 0), Thread(101, "CPU 0/KVM", SPAN_NS, 0)])
    of_groups = {"shares": 512, "cfs_quota_us": 60_000, "cfs_period_us": 100_000}
    text = "".join(GROUP.format(f"vm{tid}", name, value) for tid in (100, 101) for name, value in of_groups.items())
    (tmp_path / "groups.txt").write_text(text)
    domain = Twin(tmp_path).scenario.to_dict()["domain"]["vm100"]
    assert (domain["cgroup"], domain["weight"]) == ("machine", 50)
    assert (domain["global_quota_us"], domain["global_period_us"]) == (60_000, 100_000)


def test_a_recording_that_leaves_most_time_to_nobody_is_refused(command: Vcpulab, tmp_path: Path) -> None:
    """Of the threads that keep the VM from running no line is there."""
    others = [Thread(DAEMON + number, "hidden", 3_000_000, 2_000_000) for number in range(3)]
    host(tmp_path, [Thread(100, "CPU 0/KVM", SPAN_NS, 0), *others], frozenset(one.tid for one in others))
    with pytest.raises(RequestError, match=r"the recording is filtered: \d+ % of all switches have no counterpart"):
        _ = Twin(tmp_path).scenario
    out = tmp_path / "host.toml"
    refused = command("twin", str(tmp_path), "--out", str(out))
    assert "record without --filter" in refused.stderr
    assert (refused.returncode, out.exists()) == (2, False)
    assert "is filtered" in command("twin", "score", str(tmp_path)).stderr


def test_what_no_twin_has_is_a_problem_of_the_recording(tmp_path: Path) -> None:
    """The twin's own text, whose lines nobody has, is not named."""
    host(tmp_path, [Thread(100, "CPU 0/KVM", SPAN_NS, 0), Thread(101, "CPU 0/KVM", SPAN_NS, 0)])
    (tmp_path / "cpus.txt").write_text("# CPU,Core,Socket,Node\n" + "".join(f"{cpu},{cpu},0,0\n" for cpu in range(513)))
    with pytest.raises(ScenarioError, match=r"^\S+: host\.pcpus: found `513`") as caught:
        _ = Twin(tmp_path).scenario
    assert str(tmp_path) in str(caught.value)
    assert "<twin>" not in str(caught.value)


@pytest.mark.parametrize(("weights", "gets"), [((100, 1000), "9"), ((100, 125), "45")])
def test_a_twin_that_does_not_repeat_the_cpu_time_of_its_vms_is_refused(
    weights: tuple[int, int], gets: str, tmp_path: Path
) -> None:
    """Both VMs have as much, and a file says that one weighs less: a tenth, or four fifths."""
    host(tmp_path, [Thread(100, "CPU 0/KVM", SPAN_NS, 0), Thread(101, "CPU 0/KVM", SPAN_NS, 0)])
    lines = [GROUP.format(f"vm{tid}", "shares", shares) for tid, shares in zip((100, 101), weights, strict=True)]
    (tmp_path / "groups.txt").write_text("".join(lines))
    with pytest.raises(RequestError, match=rf"vm100 gets {gets}[\d.]*( to {gets}[\d.]*)? % of a CPU and had (49|50)"):
        _ = Twin(tmp_path).scenario


def test_the_time_before_a_thread_began_is_no_lost_cpu_time(tmp_path: Path) -> None:
    """Two hogs begin after 15 % of the recording; the sleeper is there all the while."""
    begin_ns = SPAN_NS * 15 // 100
    hogs = [Thread(100 + number, "CPU 0/KVM", SPAN_NS, 0, begin_ns) for number in range(2)]
    made = Twin(host(tmp_path, [*hogs, Thread(110, "CPU 0/KVM", 500_000, 9_500_000)]))
    assert [app["kind"] for app in made.scenario.to_dict()["domain"]["vm100"]["app"]] == ["hog"]
    assert not any(" had " in note for note in made.notes)


@pytest.mark.parametrize(
    ("recorded", "lost", "lost_where_records_are_missing"), [(96, False, False), (91, True, False), (70, True, True)]
)
def test_missing_records_of_threads_allow_a_larger_distance(
    recorded: float, lost: bool, lost_where_records_are_missing: bool
) -> None:
    share = Share("b", 1, recorded, (97, 99), left_out=0, lacks_records=False)
    assert share.is_lost == lost
    assert replace(share, lacks_records=True).is_lost == lost_where_records_are_missing


def test_further_replications_start_vmsin_other_orders() -> None:
    text = """
        run = { duration = "100ms" }
        host = { profile = "exact", pcpus = 2, hypervisor = "kvm", scheduler = "linux-eevdf" }
        domain.a = { weight = 400, app = [{ kind = "hog" }] }
        domain.b = { app = [{ kind = "hog" }] }
        domain.c = { affinity = "0", app = [{ kind = "hog" }] }
    """
    scenario = Scenario.from_toml(text)
    reordered = list(in_other_orders(scenario))
    assert {tuple(sorted(each.domains)) for each in reordered} == {("a", "b", "c")}
    assert len({tuple(each.domains) for each in reordered}) == 6, "all orders of three"
    assert len({each.seed for each in reordered} | {scenario.seed}) == len(reordered) + 1


@pytest.mark.parametrize(("name", "least"), [("bigsmall", 1), ("mixed", 2)])
def test_twins_of_a_real_host_of_two_cpus_share_as_it_did(name: str, least: int) -> None:
    """Two seconds of it; with threads that come and go, missing records, and groups of version 1."""
    scored = Twin(ROOT / "tests" / "recordings" / f"linux6.18-2cpus-{name}").score(replications=3)
    off = {row.place: row.off for row in scored.judged if row.metric.name == "gotten"}
    assert all(abs(points) <= 3 for points in off.values()), off
    assert sum(bool(row.holds) for row in scored.judged) >= least
