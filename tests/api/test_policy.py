"""Schedulers written in Python."""

import signal
import subprocess
from collections import deque
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import vcpulab
from support import HANG_S, ROOT, TWO_HOGS, VCPULAB, Vcpulab, run_vcpulab
from vcpulab import Context, EngineError, Policy, Rejected, Run, Scenario
from vcpulab.policy import Params, load

LOTTERY = f"{ROOT / 'examples' / 'lottery.py'}:Lottery"

BUSY = """\
name = "all that can happen to a vCPU"
[run]
duration = "2s"
replications = 2
[host]
profile = "generic"
scheduler = "round-robin"
slice_ms = 3
pcpus = 3
[domain.dom0]
driver_domain = true
[domain.pinned]
vcpus = 2
affinity = "1"
app = [{ kind = "hog", instance = 2 }]
[domain.free]
vcpus = 4
app = [{ kind = "periodic", run = "1ms", period = "4ms", instance = 4 }]
[domain.web]
nic.driver_domain = "dom0"
app = [{ kind = "web-server" }]
[client.c]
kind = "open-loop"
server = "web"
rate = 300
[[action]]
at = "500ms"
op = "pause"
domain = "pinned"
[[action]]
at = "700ms"
op = "unpause"
domain = "pinned"
[[action]]
at = "900ms"
op = "affinity"
domain = "free"
vcpu = 0
affinity = "2"
"""


class RoundRobin(Policy):
    """As `crates/sched/src/round_robin.rs`."""

    said: ClassVar[str]

    def __init__(self, params: Params, seed: int) -> None:
        self.seed = seed
        self.slice = params.get("slice_ms", 10) * 1_000_000
        self.queue: deque[int] = deque()
        self.idlers: set[int] = set()

    def add_pcpu(self, ctx: Context, p: int) -> None:
        self.idlers.add(p)

    def wake(self, ctx: Context, v: int) -> None:
        if ctx.is_current(v):
            return
        self.queue.append(v)
        self.tell_an_idler(ctx, v)

    def tell_an_idler(self, ctx: Context, v: int) -> None:
        if idlers := self.idlers & set(ctx.affinity(v)):
            p = min(idlers)
            self.idlers.remove(p)
            ctx.raise_reschedule(p)

    def sleep(self, ctx: Context, v: int) -> None:
        if ctx.is_current(v):
            ctx.raise_reschedule(ctx.processor(v))
        elif v in self.queue:
            self.queue.remove(v)

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        current = ctx.current(p)
        if not ctx.is_idle(current) and ctx.runnable(current):
            self.queue.append(current)
        for v in self.queue:
            if p in ctx.affinity(v):
                self.queue.remove(v)
                self.idlers.discard(p)
                ctx.set_processor(v, p)
                if v != current and self.queue and self.queue[-1] == current:
                    self.tell_an_idler(ctx, current)
                return v, self.slice
        self.idlers.add(p)
        return ctx.idle(p), -1


def test_round_robin_decides_as_the_engines_own() -> None:
    scenario = Scenario.from_toml(BUSY)
    own = vcpulab.run(scenario, decisions=True)
    python = vcpulab.run(scenario, decisions=True, policy=RoundRobin)
    assert own.df_decisions().height > 1000
    for name, table in own.tables().items():
        # What a domain is entitled to is unknown under a policy that only Python knows.
        columns = [column for column in table.columns if column != "entitlement"]
        assert table.select(columns).equals(python.tables()[name].select(columns)), name


def shares(run: Run) -> dict[str, float]:
    rows = run.df_domains().group_by("domain").agg(pl.col("running_ns", "elapsed_ns").mean())
    return dict(zip(rows["domain"], rows["running_ns"] / rows["elapsed_ns"], strict=True))


def test_lottery_shares_by_tickets() -> None:
    domains = "".join(f'[domain.t{t}]\nweight = {t}\napp = [{{ kind = "hog" }}]\n' for t in (100, 200, 500))
    head = '[run]\nduration = "200s"\n[host]\nscheduler = "credit"\nprofile = "exact"\npcpus = 1\n'
    run = vcpulab.run(Scenario.from_toml(head + domains), policy=load(LOTTERY))
    assert shares(run) == pytest.approx({"t100": 0.125, "t200": 0.25, "t500": 0.625}, abs=0.02)


def test_the_same_seed_draws_the_same_lots() -> None:
    scenario = Scenario.from_toml(BUSY).change({"host.scheduler": "credit", "host.slice_ms": None})
    lottery = load(LOTTERY)
    first, again = (vcpulab.run(scenario, decisions=True, policy=lottery) for _ in range(2))
    other = vcpulab.run(scenario.with_run(seed=2), decisions=True, policy=lottery)
    for name, table in first.tables().items():
        assert table.equals(again.tables()[name]), name
    assert not first.df_decisions().equals(other.df_decisions())
    replications = first.df_domains().partition_by("replication", include_key=False)
    assert not replications[0].equals(replications[1])


def test_a_policy_is_made_anew_for_each_replication() -> None:
    seeds = []

    def make(params: Params, seed: int) -> Policy:
        seeds.append(seed)
        assert dict(params) == {"slice_ms": 3}
        return RoundRobin(params, seed)

    vcpulab.run(Scenario.from_toml(BUSY), policy=make)
    assert len(set(seeds)) == len(seeds) == 2


# Each breaks one rule; the text is what the error says besides.


class NotRunnable(RoundRobin):
    said = "pCPU 0 was given vCPU 0 of domain 2, which is not runnable"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        blocked = next((v for v in ctx.guest_vcpus if not ctx.runnable(v)), None)
        return super().schedule(ctx, p) if blocked is None else (blocked, 1000)


class Elsewhere(RoundRobin):
    said = "pCPU 0 was given vCPU 0 of domain 1, which is assigned to another pCPU"

    def insert(self, ctx: Context, v: int) -> None:
        ctx.set_processor(v, 1)

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return self.queue[0], 1000


class Twice(RoundRobin):
    said = "vCPU 0 of domain 1 runs on pCPU 0: it cannot move now"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        ctx.set_processor(2, p)
        return 2, 1000


class OtherIdle(RoundRobin):
    said = "pCPU 0 was given vCPU 1 of domain -1, which is the idle vCPU of another pCPU"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return 1 - p, 1000


class Nobody(RoundRobin):
    said = "pCPU 0 was given vCPU number 99, which does not exist"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return 99, 1000


class Excluded(RoundRobin):
    said = "pCPU 1 was given vCPU 0 of domain 3, whose affinity excludes it"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        if p == 1 and 4 in self.queue:
            ctx.set_processor(4, 1)
            return 4, 1000
        return super().schedule(ctx, p)


class ZeroSlice(RoundRobin):
    said = "time stands still: pCPU 0 is given slices of 0 ns without end"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return super().schedule(ctx, p)[0], 0


class Raises(RoundRobin):
    said = "KeyError: 7 (FILE:LINE)"

    def wake(self, ctx: Context, v: int) -> None:
        raise KeyError(7)  # here


class ForgetsAnAnswer(RoundRobin):
    said = "TypeError: the answer was `None`; expected the next vCPU and its slice in ns, such as `(4, 10_000_000)`"

    def schedule(self, ctx: Context, p: int) -> Any:
        pass


class PicksNowhere(RoundRobin):
    said = "IndexError: there is no pCPU 5; the host has 2, numbered from 0"

    def pick(self, ctx: Context, v: int) -> int:
        return 5

    def insert(self, ctx: Context, v: int) -> None:
        pass


class ReschedulesElsewhere(RoundRobin):
    said = "IndexError: there is no pCPU 2; the host has 2, numbered from 0"

    def wake(self, ctx: Context, v: int) -> None:
        ctx.raise_reschedule(2)


class Parked(RoundRobin):
    said = "pCPU 0 was given vCPU 0 of domain 1, which is not runnable"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        ctx.park(2)
        return 2, 1000


class TimerForEver(RoundRobin):
    said = "time stands still: events at one instant do not end"

    def add_pcpu(self, ctx: Context, p: int) -> None:
        super().add_pcpu(ctx, p)
        self.clock = ctx.new_timer(p)
        ctx.set_timer(self.clock, 5)

    def timer(self, ctx: Context, token: int) -> None:
        ctx.set_timer(self.clock, 0)


class ReschedulesForEver(RoundRobin):
    said = "decisions keep asking for decisions at one instant"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        ctx.raise_reschedule(p)
        return super().schedule(ctx, p)


class NeverMade(RoundRobin):
    said = "ZeroDivisionError"

    def __init__(self, params: Params, seed: int) -> None:
        super().__init__(params, seed // 0)


FAULTS: list[tuple[type[RoundRobin], str, int]] = [
    (NotRunnable, "schedule", 0),
    (Elsewhere, "schedule", 0),
    (Twice, "schedule", 0),
    (OtherIdle, "schedule", 0),
    (Nobody, "schedule", 0),
    (Excluded, "schedule", 12_000_000),
    (ZeroSlice, "schedule", 0),
    (Raises, "wake", 0),
    (ForgetsAnAnswer, "schedule", 0),
    (PicksNowhere, "pick", 2_000_000),
    (ReschedulesElsewhere, "wake", 0),
    (Parked, "schedule", 0),
    (TimerForEver, "timer", 5),
    (ReschedulesForEver, "schedule", 0),
    (NeverMade, "__init__", 0),
]

SMALL = """\
run.duration = "10ms"
host = { profile = "exact", scheduler = "round-robin", pcpus = 2 }
domain.a.app = [{ kind = "hog" }]
domain.b.app = [{ kind = "periodic", run = "1ms", period = "4ms" }]
domain.c.affinity = "0"
domain.c.app = [{ kind = "hog" }]
action = [{ at = "2ms", op = "affinity", domain = "a", vcpu = 0, affinity = "1" }]
"""


@pytest.mark.parametrize(("policy", "hook", "at"), FAULTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_policy_that_misbehaves_ends_the_run(policy: type[RoundRobin], hook: str, at: int) -> None:
    with pytest.raises(EngineError) as raised:
        vcpulab.run(Scenario.from_toml(SMALL), policy=policy)
    message = str(raised.value)
    assert message.startswith(f"replication 0: at {at} ns, in `{hook}`: "), message
    line = Path(__file__).read_text().split("# here")[0].count("\n") + 1
    said = policy.said.replace("FILE:LINE", f"{__file__}:{line}")
    assert said in message, message


class ReschedulesTheNeighbour(RoundRobin):
    said = "ValueError: pCPU 1 is in another CPU pool"

    def wake(self, ctx: Context, v: int) -> None:
        ctx.raise_reschedule(1)


class GoesToTheNeighbour(RoundRobin):
    said = "ValueError: pCPU 1 is in another CPU pool"

    def wake(self, ctx: Context, v: int) -> None:
        ctx.set_processor(v, 1)


class PicksTheNeighbour(RoundRobin):
    said = "pCPU 1 was picked for vCPU 0 of domain 1, which it cannot be on"

    def insert(self, ctx: Context, v: int) -> None:
        pass

    def pick(self, ctx: Context, v: int) -> int:
        return 1


class ParksTheNeighbour(RoundRobin):
    said = "ValueError: vCPU 0 of domain 2 is in another CPU pool"

    def wake(self, ctx: Context, v: int) -> None:
        ctx.park(3)


class RunsTheNeighbour(RoundRobin):
    said = "ValueError: pCPU 0 was given vCPU 0 of domain 2, whose affinity excludes it"

    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        return 3, 1000


class SetsTheNeighboursTimer(RoundRobin):
    said = "ValueError: timer 0 is not one that this policy made"

    def wake(self, ctx: Context, v: int) -> None:
        ctx.set_timer(0, 5)


POOLS = """\
run = { duration = "10ms", warmup = "0s" }
host = { profile = "exact", scheduler = "round-robin", pcpus = 2 }
pool.other = { scheduler = "credit", pcpus = "1" }
domain.a.app = [{ kind = "hog" }]
domain.b = { pool = "other", app = [{ kind = "hog" }] }
action = [
  { at = "1ms", op = "affinity", domain = "a", vcpu = 0, affinity = "0" },
  { at = "5ms", op = "move-pool", domain = "a", pool = "other" },
]
"""

TRESPASSES: list[tuple[type[RoundRobin], str, int]] = [
    (ReschedulesTheNeighbour, "wake", 0),
    (GoesToTheNeighbour, "wake", 0),
    (PicksTheNeighbour, "pick", 1_000_000),
    (ParksTheNeighbour, "wake", 0),
    (RunsTheNeighbour, "schedule", 0),
    (SetsTheNeighboursTimer, "wake", 0),
]


@pytest.mark.parametrize(("policy", "hook", "at"), TRESPASSES, ids=lambda value: getattr(value, "__name__", None))
def test_a_policy_that_reaches_into_another_cpu_pool_ends_the_run(policy: type[RoundRobin], hook: str, at: int) -> None:
    with pytest.raises(EngineError) as raised:
        vcpulab.run(Scenario.from_toml(POOLS), policy=policy)
    message = str(raised.value)
    assert message.startswith(f"replication 0: at {at} ns, in `{hook}`: {policy.said}"), message


def test_a_domain_leaves_for_another_cpu_pool() -> None:
    left: list[tuple[str, int, int]] = []

    class Leaves(RoundRobin):
        def remove(self, ctx: Context, v: int) -> None:
            left.append(("vCPU", v, ctx.is_current(v)))

        def remove_domain(self, ctx: Context, d: int) -> None:
            left.append(("domain", d, ctx.domain_number(d)))

    run = vcpulab.run(Scenario.from_toml(POOLS), policy=Leaves)
    assert left == [("vCPU", 2, False), ("domain", 0, 1)]
    rows = {row["domain"]: row for row in run.df_domains().iter_rows(named=True)}
    assert rows["a"]["running_ns"] >= 5_000_000
    assert rows["a"]["running_ns"] + rows["b"]["running_ns"] == 15_000_000


class Capped(RoundRobin):
    """Every vCPU may run for half of each 2 ms."""

    def add_pcpu(self, ctx: Context, p: int) -> None:
        super().add_pcpu(ctx, p)
        if p == 0:
            self.clock = ctx.new_timer(p)
            ctx.set_timer(self.clock, 1_000_000)
        self.parked = False

    def timer(self, ctx: Context, token: int) -> None:
        self.parked = not self.parked
        for v in ctx.guest_vcpus:
            (ctx.park if self.parked else ctx.unpark)(v)
            assert ctx.is_parked(v) == self.parked
            if self.parked:
                self.sleep(ctx, v)
            elif ctx.runnable(v):
                self.wake(ctx, v)
        ctx.set_timer(self.clock, ctx.now + 1_000_000)


def test_who_is_parked_does_not_run() -> None:
    run = vcpulab.run(Scenario.from_toml(SMALL), policy=Capped)
    rows = run.df_domains()
    assert rows["offline_ns"].to_list() == [5_000_000] * 3
    assert rows["running_ns"].max() == 5_000_000


def test_what_was_raised_is_the_cause() -> None:
    with pytest.raises(EngineError) as raised:
        vcpulab.run(Scenario.from_toml(SMALL), policy=Raises)
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_context_is_there_during_a_hook_only() -> None:
    kept = []

    class Keeper(RoundRobin):
        def add_pcpu(self, ctx: Context, p: int) -> None:
            super().add_pcpu(ctx, p)
            kept.append(ctx)

    vcpulab.run(Scenario.from_toml(SMALL), policy=Keeper)
    with pytest.raises(RuntimeError, match="during a hook only"):
        _ = kept[0].now


def test_what_a_context_tells() -> None:
    told: dict[str, object] = {}

    class Asker(RoundRobin):
        def add_pcpu(self, ctx: Context, p: int) -> None:
            super().add_pcpu(ctx, p)
            if p == 0:
                self.clock = ctx.new_timer(p, token=3)

        def insert(self, ctx: Context, v: int) -> None:
            super().insert(ctx, v)
            ctx.set_timer(self.clock, 1_500_000)

        def timer(self, ctx: Context, token: int) -> None:
            told.update(
                now=ctx.now,
                token=token,
                executing=ctx.executing,
                pcpus=ctx.pcpus,
                guests=ctx.guest_vcpus,
                domain=ctx.dom(4),
                vcpus=ctx.vcpus_of(2),
                number=ctx.domain_number(2),
                names=[ctx.name(v) for v in (1, 4)],
                affinity=ctx.affinity(4),
                socket=ctx.socket(1),
                idle=ctx.idle(1),
                expiry=ctx.timer_expiry(self.clock),
                ran=[ctx.running_ns(v) for v in ctx.guest_vcpus],
                states=[ctx.runnable(v) for v in ctx.guest_vcpus],
            )
            for asked in (
                lambda: ctx.processor(99),
                lambda: ctx.current(2),
                lambda: ctx.idle(2**32 - 1),
                lambda: ctx.socket(300),
                lambda: ctx.new_timer(2),
                lambda: ctx.set_processor(4, 2),
                lambda: ctx.vcpus_of(3),
                lambda: ctx.raise_reschedule(2),
            ):
                with pytest.raises(IndexError, match="numbered from 0"):
                    asked()
            with pytest.raises(ValueError, match="no domain's"):
                ctx.dom(0)
            with pytest.raises(OverflowError):
                ctx.processor(-1)

    vcpulab.run(Scenario.from_toml(SMALL), policy=Asker)
    assert told == {
        "now": 1_500_000,
        "token": 3,
        "executing": 0,
        "pcpus": (0, 1),
        "guests": (2, 3, 4),
        "domain": 2,
        "vcpus": (4,),
        "number": 3,
        "names": [(-1, 1), (3, 0)],
        "affinity": (0,),
        "socket": 0,
        "idle": 1,
        "expiry": None,
        "ran": [1_500_000, 0, 0],
        "states": [True, False, True],
    }


def test_a_hook_may_refuse_values() -> None:
    class Refuses(RoundRobin):
        def adjust(self, ctx: Context, d: int, params: Params) -> None:
            raise Rejected

    adjust = [{"at": "100ms", "op": "adjust", "domain": "a", "weight": 512}]
    scenario = Scenario.from_toml(TWO_HOGS).change({"action": adjust})
    run = vcpulab.run(scenario, policy=Refuses)
    assert run.warnings == ["the scheduler refused the values of 3 actions"]


def test_progress_and_cancelling() -> None:
    seen: list[float] = []

    def stop(fraction: float) -> bool:
        seen.append(fraction)
        return fraction < 0.5

    with pytest.raises(KeyboardInterrupt):
        vcpulab.run(Scenario.from_toml(SMALL), policy=RoundRobin, progress=stop)
    assert seen == sorted(seen)
    assert seen[-1] == 0.5


def test_results_say_which_policy_it_was(tmp_path: Path) -> None:
    run = vcpulab.run(Scenario.from_toml(SMALL), policy=RoundRobin)
    run.save(tmp_path / "out")
    assert run.policy == Run.load(tmp_path / "out").policy == "RoundRobin"
    assert run.df_domains()["entitlement"].null_count() == 3


def test_the_command_line_runs_a_policy_from_a_file(command: Vcpulab) -> None:
    result = command("run", "hogs.toml", "--policy", LOTTERY)
    assert result.returncode == 0, result.stderr
    assert "policy Lottery" in result.stdout


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("nowhere.py:Lottery", "nowhere.py: no such file"),
        ("own.py:Missing", "own.py: there is no `Missing`"),
        ("own.py:number", "`own.py:number` is not a subclass of `vcpulab.Policy`"),
        ("own.py:Half", "`own.py:Half` has no `schedule`, `sleep`"),
        ("broken.py:Any", "broken.py: line 2: ZeroDivisionError: division by zero"),
        ("wrong.py:Any", "wrong.py: SyntaxError: "),
        ("lotery", "no installed package offers a policy `lotery`; offered: "),
    ],
)
def test_a_policy_that_is_not_there(command: Vcpulab, tmp_path: Path, policy: str, said: str) -> None:
    half = "import vcpulab\nnumber = 1\nclass Half(vcpulab.Policy):\n    def wake(self, ctx, v): ...\n"
    (tmp_path / "own.py").write_text(half)
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    (tmp_path / "wrong.py").write_text("class:\n")
    result = command("run", "hogs.toml", "--policy", policy)
    assert result.returncode == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_policy_that_fails_is_told_without_a_traceback(command: Vcpulab, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "lottery.py").read_text().replace("ctx.affinity(v):", "ctx.afinity(v):", 1)
    (tmp_path / "slip.py").write_text(text)
    line = text.split("ctx.afinity")[0].count("\n") + 1
    result = command("run", "hogs.toml", "--policy", "slip.py:Lottery")
    assert result.returncode == 1
    assert result.stderr.startswith("error: replication 0: at 0 ns, in `wake`: AttributeError: ")
    assert result.stderr.endswith(f"(slip.py:{line})\n")
    assert result.stdout == ""


def test_installed_packages_offer_policies(tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").write_text(TWO_HOGS)
    (tmp_path / "draws.py").write_text((ROOT / "examples" / "lottery.py").read_text())
    info = tmp_path / "draws-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: draws\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vcpulab.policies]\nlottery = draws:Lottery\ntypo = draws:Lotery\n")
    result = run_vcpulab(["run", "hogs.toml", "--policy", "lottery"], tmp_path, PYTHONPATH=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "policy Lottery" in result.stdout
    result = run_vcpulab(["run", "hogs.toml", "--policy", "typo"], tmp_path, PYTHONPATH=str(tmp_path))
    assert result.returncode == 2
    assert "policy `typo`: AttributeError" in result.stderr


def test_a_hook_that_never_ends_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").write_text(TWO_HOGS)
    text = (ROOT / "examples" / "lottery.py").read_text()
    loop = 'print("waiting", flush=True)\n        while True: pass\n'
    (tmp_path / "loop.py").write_text(text.replace("first = {}", f"{loop}        first = {{}}"))
    arguments = [str(VCPULAB), "run", "hogs.toml", "--policy", "loop.py:Lottery"]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, errors) == (130, "interrupted\n")
