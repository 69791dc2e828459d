"""Schedulers written in Python."""

import pickle
import re
import shutil
import signal
import subprocess
from collections import deque
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import vcpulab
from support import HANG_S, ROOT, TWO_HOGS, VCPULAB, Vcpulab, run_vcpulab
from vcpulab import Context, EngineError, Param, Policy, Rejected, Run, Scenario
from vcpulab.policy import Params
from vcpulab.scenario import settings
from vcpulab.sweeps.work import Batch, Item, canonical, measure

LOTTERY = f"{ROOT / 'examples' / 'lottery.py'}:Lottery"
STRIDE = f"{ROOT / 'examples' / 'stride.py'}:Stride"

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
    parameters: ClassVar[tuple[Param, ...]] = (
        Param(name="slice_ms", of="host", default=10, least=1, most=1000, doc="Longest run.", unit="ms"),
    )

    def __init__(self, params: Params, seed: int) -> None:
        self.seed = seed
        self.slice = params["slice_ms"] * 1_000_000
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


def under(policy: type[Policy] | str, text: str) -> Scenario:
    """A scenario with that scheduler instead."""
    return Scenario.from_toml(text).change({"host.scheduler": policy})


def test_round_robin_decides_as_the_engines_own() -> None:
    own = vcpulab.run(Scenario.from_toml(BUSY), decisions=True)
    python = vcpulab.run(under(RoundRobin, BUSY), decisions=True)
    assert own.df_decisions().height > 1000
    for name, table in own.tables().items():
        assert table.equals(python.tables()[name]), name


def shares(run: Run) -> dict[str, float]:
    rows = run.df_domains().group_by("domain").agg(pl.col("running_ns", "elapsed_ns").mean())
    return dict(zip(rows["domain"], rows["running_ns"] / rows["elapsed_ns"], strict=True))


def test_lottery_shares_by_tickets() -> None:
    domains = "".join(f'[domain.t{t}]\nweight = {t}\napp = [{{ kind = "hog" }}]\n' for t in (100, 200, 500))
    head = f'[run]\nduration = "200s"\n[host]\nscheduler = "{LOTTERY}"\nprofile = "exact"\npcpus = 1\n'
    run = vcpulab.run(Scenario.from_toml(head + domains))
    assert shares(run) == pytest.approx({"t100": 0.125, "t200": 0.25, "t500": 0.625}, abs=0.02)


def test_the_same_seed_draws_the_same_lots() -> None:
    scenario = under(LOTTERY, BUSY)
    first, again = (vcpulab.run(scenario, decisions=True) for _ in range(2))
    other = vcpulab.run(scenario.with_run(seed=2), decisions=True)
    for name, table in first.tables().items():
        assert table.equals(again.tables()[name]), name
    assert not first.df_decisions().equals(other.df_decisions())
    replications = first.df_domains().partition_by("replication", include_key=False)
    assert not replications[0].equals(replications[1])


def test_a_policy_is_made_anew_for_each_replication() -> None:
    seeds = []

    class Counted(RoundRobin):
        def __init__(self, params: Params, seed: int) -> None:
            super().__init__(params, seed)
            seeds.append(seed)
            assert dict(params) == {"slice_ms": 3}

    vcpulab.run(under(Counted, BUSY))
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
        vcpulab.run(under(policy, SMALL))
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
        vcpulab.run(under(policy, POOLS))
    message = str(raised.value)
    assert message.startswith(f"replication 0: at {at} ns, in `{hook}`: {policy.said}"), message


def test_a_domain_leaves_for_another_cpu_pool() -> None:
    left: list[tuple[str, int, int]] = []

    class Leaves(RoundRobin):
        def remove(self, ctx: Context, v: int) -> None:
            left.append(("vCPU", v, ctx.is_current(v)))

        def remove_domain(self, ctx: Context, d: int) -> None:
            left.append(("domain", d, ctx.domain_number(d)))

    run = vcpulab.run(under(Leaves, POOLS))
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
    run = vcpulab.run(under(Capped, SMALL))
    rows = run.df_domains()
    assert rows["offline_ns"].to_list() == [5_000_000] * 3
    assert rows["running_ns"].max() == 5_000_000


def test_what_was_raised_is_the_cause() -> None:
    with pytest.raises(EngineError) as raised:
        vcpulab.run(under(Raises, SMALL))
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_context_is_there_during_a_hook_only() -> None:
    kept = []

    class Keeper(RoundRobin):
        def add_pcpu(self, ctx: Context, p: int) -> None:
            super().add_pcpu(ctx, p)
            kept.append(ctx)

    vcpulab.run(under(Keeper, SMALL))
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

    vcpulab.run(under(Asker, SMALL))
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


class RefusesAWeight(RoundRobin):
    """Refuses one value, which its table of parameters allows."""

    parameters = (*RoundRobin.parameters, Param(name="weight", default=256, least=1, most=1000, doc="Its share."))

    def adjust(self, ctx: Context, d: int, params: Params) -> None:
        if params.get("weight") == 512:
            raise Rejected


def test_a_hook_may_refuse_values() -> None:
    """What is refused in the warm-up is counted, too."""
    adjust = [{"at": at, "op": "adjust", "domain": "a", "weight": 512} for at in ("10ms", "100ms")]
    run = vcpulab.run(under(RefusesAWeight, TWO_HOGS).change({"action": adjust}))
    refused = "`adjust` of `a` at 0.01 s, `adjust` of `a` at 0.1 s"
    assert run.warnings == [f"6 actions were refused and changed nothing: {refused}"]


def test_values_that_are_refused_at_boot_end_the_run() -> None:
    scenario = under(RefusesAWeight, TWO_HOGS)
    for changes in ({"domain.b.weight": 512}, {"domain.b.weight": 512, "domain.b.start": "50ms"}):
        with pytest.raises(EngineError, match="refused the parameters of domain `b`: `weight` = 512"):
            vcpulab.run(scenario.change(changes))


def test_progress_and_cancelling() -> None:
    seen: list[float] = []

    def stop(fraction: float) -> bool:
        seen.append(fraction)
        return fraction < 0.5

    with pytest.raises(KeyboardInterrupt):
        vcpulab.run(under(RoundRobin, SMALL), progress=stop)
    assert seen == sorted(seen)
    assert seen[-1] == 0.5


def test_a_saved_run_remembers_its_policy_and_executes_nothing(tmp_path: Path) -> None:
    executed = tmp_path / "executed"
    source = (ROOT / "examples" / "stride.py").read_text()
    (tmp_path / "own.py").write_text(f"open({str(executed)!r}, 'w').close()\n{source}")
    scenario = Scenario.from_toml(SMALL, folder=tmp_path).change({"host.scheduler": "own.py:Stride"})
    vcpulab.run(scenario).save(tmp_path / "out")
    executed.unlink()
    shutil.copy(tmp_path / "own.py", tmp_path / "out")
    (policies,) = (tmp_path / "out").glob("policies.json")
    policies.write_text(policies.read_text().replace('"file": null', '"file": "own.py"'))
    saved = Run.load(tmp_path / "out").scenario
    assert saved == scenario
    assert saved.to_dict()["host"]["scheduler"] == "own.py:Stride"
    assert source in str(saved.policies["own.py:Stride"].source)
    assert not saved.can_run
    with pytest.raises(EngineError, match="is remembered by a saved run, which executes nothing"):
        vcpulab.run(saved)
    with pytest.raises(vcpulab.ScenarioError, match="can be named by a scenario's own file only"):
        saved.change({"host.scheduler": "other.py:Stride"})
    assert not executed.exists()


STRIDES = f"""\
name = "two hogs"
[run]
duration = "100ms"
replications = 2
[host]
profile = "exact"
scheduler = "{STRIDE}"
quantum_us = 1000
[domain.a]
app = [{{ kind = "hog" }}]
[domain.b]
weight = 512
app = [{{ kind = "hog" }}]
[[action]]
at = "500ms"
op = "adjust"
domain = "a"
weight = 128
"""


def test_parameters_are_checked_as_those_of_built_in_schedulers() -> None:
    wrong = STRIDES.replace("= 1000", "= 1").replace("512", "0").replace("= 128", "= 70000")
    wrong = wrong.replace('app = [{ kind = "hog" }]\n[domain.b]', "wieght = 1\ncap = 5\n[domain.b]")
    with pytest.raises(vcpulab.ScenarioError) as raised:
        Scenario.from_toml(wrong, "s.toml")
    assert str(raised.value).splitlines() == [
        "s.toml:8:14: host.quantum_us: found `1`; allowed: an integer from 100 to 1000000 (us)",
        "s.toml:10:1: domain.a.wieght: unknown field",
        "  hint: did you mean `weight`?",
        "s.toml:11:1: domain.a.cap: `cap` is a parameter of schedulers `credit`, `credit2`, `enhanced`, "
        f"not of `{STRIDE}`",
        f"  hint: `{STRIDE}` ({Scenario.from_toml(STRIDES).policies[STRIDE].generation}) takes here: weight",
        "s.toml:13:10: domain.b.weight: found `0`; allowed: an integer from 1 to 65535",
        "s.toml:19:10: action[0].weight: found `70000`; allowed: an integer from 1 to 65535",
    ]


def test_a_policy_is_given_defaults_then_what_the_scenario_says() -> None:
    given: list[tuple[int, dict[str, int]]] = []

    class Given(RoundRobin):
        parameters = (
            Param(name="weight", default=256, least=1, most=1000, doc="Its share."),
            Param(name="tickets", default=7, least=1, most=9, doc="Its tickets."),
        )

        def __init__(self, params: Params, seed: int) -> None:
            super().__init__({"slice_ms": 10}, seed)

        def adjust(self, ctx: Context, d: int, params: Params) -> None:
            given.append((d, dict(params)))

    vcpulab.run(under(Given, STRIDES).with_run(replications=1))
    defaults = {"weight": 256, "tickets": 7}
    assert given == [(0, defaults), (1, defaults), (1, {"weight": 512}), (0, {"weight": 128})]


class Taken(RoundRobin):
    parameters = (Param(name="vcpus", default=1, least=1, most=2, doc="Its vCPUs."),)


class DeclaresTwice(RoundRobin):
    parameters = (*RoundRobin.parameters, *RoundRobin.parameters)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Taken, "its parameter `vcpus` has the name of a field that is there already"),
        (DeclaresTwice, f"`{__name__}:DeclaresTwice` declares `slice_ms` twice"),
        (Context, "`vcpulab._engine:Context` is not a subclass of `vcpulab.Policy`"),
    ],
)
def test_a_policy_that_cannot_be(policy: type[Policy], said: str) -> None:
    with pytest.raises((vcpulab.ScenarioError, vcpulab.RequestError), match=re.escape(said)):
        under(policy, SMALL)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"name": "Weight"}, "parameter `Weight`: allowed: a name of small letters"),
        ({"default": 10}, "least <= default <= most"),
        ({"most": 2**63}, "least <= default <= most"),
        ({"of": "vcpu"}, "found `vcpu`; allowed: domain, host"),
    ],
)
def test_a_parameter_that_cannot_be(values: dict[str, Any], said: str) -> None:
    good: dict[str, Any] = {"name": "weight", "default": 1, "least": 1, "most": 9, "doc": "Share."}
    with pytest.raises(ValueError, match=re.escape(said)):
        Param(**good | values)


def test_a_scenario_keeps_its_version_of_a_policy_and_keys_tell_versions_apart(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text((ROOT / "examples" / "stride.py").read_text())
    scenario = Scenario.from_toml(SMALL, folder=tmp_path)
    before = scenario.change({"host.scheduler": "own.py:Stride"})
    file.write_text(file.read_text() + "# otherwise\n")
    after = scenario.change({"host.scheduler": "own.py:Stride"})
    assert canonical(before) != canonical(after)
    assert before != after
    assert before.change({"seed": 2}).policies == before.policies
    with pytest.raises(vcpulab.ScenarioError, match=r"host\.generation: found"):
        Scenario.from_toml(before.to_toml(), folder=tmp_path)


def test_a_worker_elsewhere_makes_the_same_runs(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text((ROOT / "examples" / "stride.py").read_text())
    scenario = Scenario.from_toml(STRIDES, folder=tmp_path).change({"host.scheduler": "own.py:Stride"})
    batch = Batch(1, (Item("key", canonical(scenario), 3, 1),), tuple(scenario.policies.values()))
    here = measure(batch).frame
    file.unlink()
    there = pickle.loads(pickle.dumps(batch))
    assert [policy.loaded_class for policy in there.policies] == [None]
    assert measure(there).frame.equals(here)


def test_many_runs_with_and_without_policies_come_in_order() -> None:
    own = Scenario.from_toml(STRIDES)
    credit = own.change({"host.scheduler": "credit", "run.replications": 3})
    seen: list[float] = []

    def progress(done: float) -> bool:
        seen.append(done)
        return True

    runs = vcpulab.run_many([credit, own, credit], progress=progress)
    for run, scenario in zip(runs, [credit, own, credit], strict=True):
        assert run.scenario is scenario
        assert run.df_domains().equals(vcpulab.run(scenario).df_domains())
    assert seen == sorted(seen)
    raises = under(Raises, SMALL)
    with pytest.raises(EngineError, match=r"^scenario 1: replication 0: at "):
        vcpulab.run_many([credit, raises])


def test_pools_have_policies_of_their_own() -> None:
    pools = {"pool.second": {"pcpus": "1", "scheduler": Scenario.from_toml(STRIDES).policies[STRIDE].name}}
    scenario = Scenario.from_toml(STRIDES).change({"host.pcpus": 2, **pools, "domain.b.pool": "second"})
    rows = vcpulab.run(scenario).df_domains()
    assert rows["running_ns"].to_list() == [100_000_000] * 4
    other = scenario.change({"pool.second.scheduler": RoundRobin})
    assert sorted(other.policies) == sorted([STRIDE, f"{__name__}:RoundRobin"])
    assert "weight" not in other.written()["domain"]["b"]
    assert vcpulab.run(other).df_domains()["running_ns"].to_list() == [100_000_000] * 4


def test_what_other_schedulers_have_is_left_out() -> None:
    scenario = Scenario.from_toml(STRIDES).change({"action": None})
    rtds = scenario.change({"host.scheduler": "rtds"})
    assert "quantum_us" not in rtds.written()["host"]
    assert "weight" not in rtds.written()["domain"]["b"]
    assert rtds == settings.apply(scenario, ["host.scheduler=rtds"]).scenario
    back = rtds.change({"host.scheduler": STRIDE, "domain.b.weight": 512, "host.quantum_us": 1000})
    assert back == scenario


@pytest.fixture
def strides(tmp_path: Path) -> None:
    """A folder with a scenario under a policy in a file beside it, and a sweep."""
    shutil.copy(ROOT / "examples" / "stride.py", tmp_path)
    (tmp_path / "strides.toml").write_text(STRIDES.replace(STRIDE, "stride.py:Stride"))
    (tmp_path / "sweep.toml").write_text(
        'scenario = "strides.toml"\nreplications = 2\n'
        '[[vary]]\npath = "host.scheduler"\nvalues = ["credit", "stride.py:Stride"]\n'
    )


VERBS = [
    ["run", "strides.toml", "--out", "out"],
    ["check", "strides.toml"],
    ["compare", "out", "out"],
    ["compare", "strides.toml", "hogs.toml", "--replications", "2"],
    ["whatif", "strides.toml", "--set", "host.quantum_us=30000", "--replications", "2"],
    ["sweep", "sweep.toml"],
    [
        "tune",
        "strides.toml",
        "--vary",
        "host.scheduler=credit,stride.py:Stride",
        "--maximise",
        "b.gotten",
        "--trials",
        "2",
    ],
    ["explain", "strides.toml"],
    ["lint", "strides.toml"],
    ["xl", "list", "strides.toml"],
    ["schedulers", "stride.py:Stride"],
    ["run", "strides.toml", "--trace", "trace"],
]


@pytest.mark.usefixtures("strides")
def test_every_verb_takes_a_policy_from_a_file(command: Vcpulab) -> None:
    for verb in VERBS:
        result = command(*verb)
        assert result.returncode == 0, (verb, result.stderr)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("nowhere.py:Lottery", "nowhere.py: no such file"),
        ("own.py:Missing", "own.py: there is no `Missing`"),
        ("own.py:number", "`own.py:number` is not a subclass of `vcpulab.Policy`"),
        ("own.py:Half", "`own.py:Half` has no `schedule`, `sleep`"),
        ("broken.py:Any", "broken.py: line 2: ZeroDivisionError: division by zero"),
        ("wrong.py:Any", "wrong.py: SyntaxError: "),
        ("lotery", "allowed: one of arinc653, "),
    ],
)
def test_a_policy_that_is_not_there(command: Vcpulab, tmp_path: Path, policy: str, said: str) -> None:
    half = "import vcpulab\nnumber = 1\nclass Half(vcpulab.Policy):\n    def wake(self, ctx, v): ...\n"
    (tmp_path / "own.py").write_text(half)
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    (tmp_path / "wrong.py").write_text("class:\n")
    (tmp_path / "s.toml").write_text(SMALL.replace("round-robin", policy))
    result = command("run", "s.toml")
    assert result.returncode == 2
    assert "s.toml:2:41: host.scheduler: " in result.stderr, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_policy_that_fails_is_told_without_a_traceback(command: Vcpulab, tmp_path: Path) -> None:
    text = (ROOT / "examples" / "lottery.py").read_text().replace("ctx.affinity(v):", "ctx.afinity(v):", 1)
    (tmp_path / "slip.py").write_text(text)
    (tmp_path / "hogs.toml").write_text(TWO_HOGS.replace('"credit"', '"slip.py:Lottery"'))
    line = text.split("ctx.afinity")[0].count("\n") + 1
    result = command("run", "hogs.toml")
    assert result.returncode == 1
    assert result.stderr.startswith("error: replication 0: at 0 ns, in `wake`: AttributeError: ")
    assert result.stderr.endswith(f"(slip.py:{line})\n")
    assert result.stdout == ""


def test_installed_packages_offer_policies(tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").write_text(TWO_HOGS.replace('"credit"', '"lottery"'))
    (tmp_path / "draws.py").write_text((ROOT / "examples" / "lottery.py").read_text())
    info = tmp_path / "draws-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: draws\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[vcpulab.policies]\nlottery = draws:Lottery\ntypo = draws:Lotery\n")
    result = run_vcpulab(["run", "hogs.toml"], tmp_path, PYTHONPATH=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert "lottery" in result.stdout
    result = run_vcpulab(["schedulers", "typo"], tmp_path, PYTHONPATH=str(tmp_path))
    assert result.returncode == 2
    assert "policy `typo`: AttributeError" in result.stderr


def test_a_hook_that_never_ends_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "hogs.toml").write_text(TWO_HOGS.replace('"credit"', '"loop.py:Lottery"'))
    text = (ROOT / "examples" / "lottery.py").read_text()
    loop = 'print("waiting", flush=True)\n        while True: pass\n'
    (tmp_path / "loop.py").write_text(text.replace("first = {}", f"{loop}        first = {{}}"))
    arguments = [str(VCPULAB), "run", "hogs.toml"]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, errors) == (130, "interrupted\n")


def test_what_a_policy_may_ask_is_described() -> None:
    """`help(vcpulab.Context)` listed names alone."""
    stub = Path(vcpulab.__file__).with_name("_engine.pyi").read_text()
    described = re.search(r"class Context:\n(.*?)\n@final", stub, re.DOTALL)
    assert described is not None
    names = re.findall(r"def (\w+)\(", described[1])
    assert len(names) > 25
    for name in names:
        said = (getattr(Context, name).__doc__ or "").split("\n")[0]
        assert said, name
        assert f'"""{said}' in described[1], name
