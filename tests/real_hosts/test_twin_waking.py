"""What waking costs who is woken for messages, beside what each of them costs."""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from support import ROOT
from vcpulab.twin import build, decision_costs, demands
from vcpulab.twin.links import Link, Vcpu, in_exchanges, links
from vcpulab.twin.messages import attribution
from vcpulab.twin.messages.attribution import attributed
from vcpulab.twin.messages.exchange import Exchange, tasks_of
from vcpulab.twin.messages.partners import with_partners
from vcpulab.twin.messages.turns import Beliefs, Received
from vcpulab.twin.messages.wake_costs import Waking, waking
from vcpulab.twin.preemption_costs import resume_ns, without
from vcpulab.twin.sequences import Turn, Turns, turns_of
from vcpulab.twin.sources import gather

pytestmark = pytest.mark.slow

KEPT = ROOT / "evidence" / "recordings" / "xen"
DOM0, SENDER = (0, 0), (1, 0)
US = 1000


def bursts(wake_us: int, work_us: int, pieces: tuple[int, ...]) -> dict[tuple[int, int], Turns]:
    """A sender that Dom0 preempts some times in a burst, each time for waking and a part of the burst's work."""
    sends, answers = list[Turn](), [Turn(((wake_us * US, None),), SENDER, 0, 0, 1, 1, sender_turn=0)]
    for number in range(120):
        count, at_us = pieces[number % len(pieces)], 10_000 * number + 1000 + 331 * (number % 7)
        of_dom0 = wake_us + work_us // count
        computes = (*((60 * US, DOM0) for _ in range(count)), (60 * US, None))
        span_us = 60 * (count + 1) + count * of_dom0
        slept_us = 10_000 + 331 * ((number + 1) % 7 - number % 7) - span_us
        sends.append(Turn(computes, slept_us * US, at_us * US, 0, span_us * US, slept_us * US))
        for piece in range(count):
            woke_us, following = at_us + 60 + piece * (60 + of_dom0), number + (piece + 1 == count)
            compute = ((of_dom0 * US, None),)
            answers.append(Turn(compute, SENDER, woke_us * US, 0, of_dom0 * US, 60 * US, sender_turn=following))
    return {DOM0: Turns(DOM0, 0, answers), SENDER: Turns(SENDER, 0, sends)}


@pytest.mark.parametrize("pieces", [(1, 3), (1, 2, 4)])
def test_turns_that_share_a_burst_tell_what_waking_costs(pieces: tuple[int, ...]) -> None:
    seen = attributed(bursts(60, 120, pieces), {(SENDER, DOM0)})
    assert waking(seen)[DOM0].ns == pytest.approx(60 * US, abs=1 * US)


def test_turns_that_are_all_alike_do_not_tell_what_waking_costs() -> None:
    assert waking(attributed(bursts(60, 120, (2,)), {(SENDER, DOM0)})) == {DOM0: Waking(), SENDER: Waking()}


def exchanging(
    folder: Path, scratch: Path
) -> tuple[dict[tuple[int, int], Turns], set[Link], dict[tuple[int, int], str]]:
    """The turns, links and names of the vCPUs of a recording that exchange messages."""
    sources = gather([folder])
    file = scratch / f"{folder.name}.arrow"
    recording = build.read(sources, events=file)
    found = with_partners(file, recording.summary, in_exchanges(links(recording.summary)))
    turns = turns_of(file, found)
    turns = without(turns, resume_ns(turns.values()))
    assert sources.scheduler is not None
    takes = decision_costs.measured(recording.summary, sources.scheduler, demands._switch_ns(recording.summary))
    turns = decision_costs.without(turns, takes)
    linked = {vcpu for link in found for vcpu in link}
    names = {vcpu: recording.names.get(vcpu[0]) or sources.name(vcpu[0]) for vcpu in linked}
    return {vcpu: its for vcpu, its in turns.items() if vcpu in linked}, found, names


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@cache
def answering(name: str, scratch: Path) -> tuple[Exchange, dict[tuple[int, int], str]]:
    """What a twin takes of a recording."""
    turns, found, names = exchanging(KEPT / name, scratch)
    return tasks_of(turns, found), names


def test_a_pass_leaves_the_beliefs_before_it_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "_PASSES_MOST", 0)
    turns = bursts(60, 120, (1, 3))
    before = attributed(turns, {(SENDER, DOM0)})
    written = repr(before)
    order = [(vcpu, turn) for vcpu, history in turns.items() for turn in range(len(history.turns))]
    after = attribution._pass(before, order)
    assert repr(after) != written
    assert repr(before) == written


@pytest.mark.parametrize("scheduler", ["credit", "credit2"])
def test_attribution_changes_nothing_after_the_third_pass(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So `docs/concepts/twins.md` says of these two recordings."""
    turns, found, _ = exchanging(ROOT / "tests" / "request-loops" / scheduler, tmp_path)

    def received(passes: int) -> dict[tuple[int, int], list[Received]]:
        monkeypatch.setattr(attribution, "_PASSES_MOST", passes)
        return {vcpu: list(its.received) for vcpu, its in attributed(turns, found).items()}

    settled = received(3)
    assert settled == received(4)
    assert settled != received(1)


def test_the_pass_that_changes_nothing_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = bursts(60, 120, (1, 2, 4))
    one_pass, passes = attribution._pass, 0

    def counted(beliefs: Mapping[Vcpu, Beliefs], order: Iterable[tuple[Vcpu, int]]) -> dict[Vcpu, Beliefs]:
        nonlocal passes
        passes += 1
        return one_pass(beliefs, order)

    monkeypatch.setattr(attribution, "_pass", counted)
    settled = attributed(turns, {(SENDER, DOM0)})
    assert 1 < passes < attribution._PASSES_MOST
    monkeypatch.setattr(attribution, "_is_settled", lambda *_: False)
    every_pass = attributed(turns, {(SENDER, DOM0)})
    assert repr(settled) == repr(every_pass)


@pytest.mark.parametrize("seed", ["", "-2"])
def test_a_driver_domain_that_preempts_its_sender_is_sent_all_of_a_burst(seed: str, scratch: Path) -> None:
    """Four datagrams take Dom0 168 us together, and 95 us each alone: 60 to 75 us are for waking and deciding."""
    of, names = answering(f"xen4.17-credit-receive-slice1-rate100{seed}", scratch)
    assert 52 * US < of.waking[DOM0].ns < 67 * US
    timers = [task for task in of.tasks if task.kind.sender is None and names[task.vcpu] == "sender"]
    sent = [sum(woken == DOM0 for _, woken in sample.actions) for task in timers for sample in task.samples]
    # It was seen to begin 1.9 turns of Dom0 in each of its own (2,800 in 1,470).
    assert sum(sent) / len(sent) == pytest.approx(1.9, abs=0.2)


@pytest.mark.parametrize("seed", ["", "-2", "-3"])
def test_a_driver_domain_acknowledges_before_what_waking_costs_it_is_over(seed: str, scratch: Path) -> None:
    """It wakes who sent something 8.3 to 8.8 us after its turn began, and goes on for 43 us: that one waits for it."""
    of, _ = answering(f"xen4.17-credit2-asks-default{seed}", scratch)
    first_ns, last_ns = of.waking[DOM0]
    assert first_ns == pytest.approx(8.5 * US, abs=0.5 * US)
    assert 20 * US < last_ns < 32 * US


def test_what_threads_pass_on_is_acknowledged_by_interrupts(scratch: Path) -> None:
    of, names = answering("xen4.17-credit2-asks-default", scratch)
    first = {
        (names[task.vcpu], names[sender])
        for task in of.tasks
        if (sender := task.kind.sender) and task.acknowledges_first
    }
    assert first == {("dom0", "server"), ("dom0", "clientA"), ("dom0", "clientB")}
