"""The construction of a scenario from a recording."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from vcpulab import _engine
from vcpulab import formats as recordings
from vcpulab._work.progress import Progress
from vcpulab.errors import RequestError
from vcpulab.formats import Recording
from vcpulab.hosts.kernel import POLICIES
from vcpulab.hosts.kvm_host import LISTER
from vcpulab.hosts.pcpu_map import PcpuMap, flat, map_of
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin import decision_costs
from vcpulab.twin.apps import BLOCKS_LEAST, conserving, drawn, in_stretches, replayed, slept_ns
from vcpulab.twin.busy import all_told
from vcpulab.twin.links import Link, Vcpu, in_exchanges, links
from vcpulab.twin.messages.exchange import app_of, tasks_of
from vcpulab.twin.messages.partners import with_partners
from vcpulab.twin.messages.tasks import Task
from vcpulab.twin.messages.ticks import Tick, alike
from vcpulab.twin.messages.turns import Kind
from vcpulab.twin.messages.wake_costs import Waking
from vcpulab.twin.phase_text import inline_phases
from vcpulab.twin.preemption_costs import resume_ns, without
from vcpulab.twin.sequences import TURNS_MOST, TURNS_READ_MOST, Turns, span_ns, turns_of
from vcpulab.twin.setting import Setting
from vcpulab.twin.sources import Sources
from vcpulab.twin.stretches import keep_nothing

SPAN_NS_LEAST = 1_000_000_000
"""The shortest recording, ns: in a shorter one a vCPU that wakes ten times a second has too few sleeps."""
HELD_BACK_US = 5_000
"""The rate limit of Xen from which on a twin carries a warning, µs: such twins predict other settings worse
(docs/evidence/xen-demands.csv)."""
_OF_TURNS_MOST = 0.8
"""The fraction of the largest number of turns up to which the beginning of a recording is read: turns are more frequent
in some parts than on average. Assumed."""
_THERE_LEAST = 0.5
"""The least fraction of the known time for which a thread of Linux must have existed. Assumed."""
TURNS_OF_VCPU_MOST = 2000
"""The largest number of turns of one vCPU: more make a scenario longer, and hardly better."""


@dataclass(frozen=True)
class Made:
    """A twin."""

    scenario: Scenario
    text: str
    """The scenario as a file, with what it was made of."""
    notes: list[str]
    """Notes on the differences between the twin and the recorded host."""


def read(
    sources: Sources,
    part: tuple[float, float] = (0.0, 1.0),
    progress: Progress | None = None,
    events: Path | None = None,
) -> Recording:
    """A part of a recording, from one fraction of its time to another; all that happened in it is written to `events`.

    Raises:
        RecordingError: it is no recording.
        OSError: it cannot be read.
    """
    assert sources.kind in ("xentrace", "sched-text")
    sources.know_threads(progress)
    return recordings.read_trace(
        sources.trace,
        sources.kind,
        cpu_mhz=sources.cpu_mhz,
        threads=sources.threads,
        part=part,
        progress=progress,
        events=events,
    )


def read_events(
    sources: Sources,
    part: tuple[float, float],
    recording: Recording,
    to: Path,
    progress: Progress | None = None,
    *,
    replay: bool = False,
) -> Path | None:
    """Writes what happened in a part of a recording, or in as much of its beginning as can be replayed.

    Args:
        sources: as for `read`.
        part: as for `read`.
        recording: what `read` said of that part.
        to: the Arrow file to write.
        progress: as for `read`.
        replay: is all to be replayed, turn by turn?

    Returns:
        The file; `None`: nothing that happened is needed, for nobody blocks.
    """
    blocks = sum(vcpu["block"]["count"] for vcpu in recording.summary["vcpus"])
    if not blocks:
        return None
    begin, end = part
    most = _OF_TURNS_MOST * (TURNS_MOST if replay or links(recording.summary) else TURNS_READ_MOST)
    read(sources, (begin, begin + (end - begin) * min(1.0, most / blocks)), progress, to)
    return to


def make(
    sources: Sources,
    recording: Recording,
    *,
    scheduler: str | None = None,
    events: Path | None = None,
    replay: bool = False,
) -> Made:
    """The twin of a host, by what a part of its recording says.

    Args:
        sources: what else is known of the host.
        recording: the part.
        scheduler: the one to simulate, if no file says which was recorded.
        events: what `read_events` wrote.
        replay: replay what happened, instead of drawing from its spreads.

    Raises:
        RequestError: nothing says the scheduler, nothing ran, or there are too many events.
    """
    summary, notes = recording.summary, list(sources.notes)
    used = scheduler or sources.scheduler
    if used is None:
        raise RequestError("no file says which one was recorded", field="scheduler", hint=sources.how_to_say_scheduler)
    summary, left_out = _without_stray_vcpus(summary, sources)
    if left_out:
        notes.append(f"{left_out} vCPUs of whom the recording never says whether they run are left out")
    if not summary["vcpus"]:
        raise RequestError(f"{sources.trace}: no vCPU ran in it; nothing to make a twin of")
    sources.names.update(sources.names | recording.names)
    # Xen has no threads of a host.
    summary = summary if used in POLICIES else _without(summary, sources)
    woken = links(summary)
    if events is not None:
        # On KVM hosts a wake-up says who did it, and what wakes a waker may be no thread.
        woken = with_partners(events, summary, woken if sources.kvm is not None else in_exchanges(woken))
    turns = {} if events is None else turns_of(events, woken)
    resume = resume_ns(turns.values())
    turns = without(turns, resume)
    switch_ns = _switch_ns(summary)
    takes = decision_costs.NOTHING if used in POLICIES else decision_costs.measured(summary, used, switch_ns)
    turns = decision_costs.without(turns, takes)
    if sources.of_linux:
        lasting = _lasting(summary, turns, 0.0 if events is None else span_ns(events) / max(summary["span_ns"], 1))
        turns = {vcpu: history for vcpu, history in turns.items() if vcpu in lasting}
        woken = {link for link in woken if lasting.issuperset(link)}
    linked = {vcpu for link in woken for vcpu in link}
    replays = {vcpu: history for vcpu, history in turns.items() if replay and _does_something(history)}
    summarized = {vcpu: history for vcpu, history in turns.items() if vcpu not in replays}
    tasks, ticks, waking = tasks_of({vcpu: history for vcpu, history in summarized.items() if vcpu in linked}, woken)
    stretches = _in_stretches(
        {vcpu: history for vcpu, history in summarized.items() if vcpu not in linked},
        _sleeps_per_run(summary, resume, turns) if sources.of_linux else {},
    )
    ticks = alike(ticks | {vcpu: tick for vcpu, (_, tick) in stretches.items() if tick is not None})
    if (limit := sources.host_params.get("ratelimit_us", 0)) >= HELD_BACK_US:
        notes.append(
            f"recorded under a rate limit of {limit / 1000:g} ms: what comes while a vCPU waits wakes nobody, so that "
            "other settings are foretold worse; record under a shorter one"
        )
    setting = Setting(sources, used, _placed(sources, summary, notes), notes)
    host, explanations = setting.host()
    document = {
        "name": f"twin of {sources.trace.parent.name or sources.trace.name}",
        # How the scheduler's ticks lay to the recording is chance: 30 ms is the longest of Credit's periods.
        "run": {"duration": "10s", "warmup": "1s", "start_spread": "30ms", "replications": 5},
        "host": {
            "profile": "exact",
            **setting.placed.fields(),
            **host,
            "costs": {
                "context_switch_ns": switch_ns,
                **({"resume_ns": resume} if resume else {}),
                **takes.costs(),
                **({} if used in POLICIES else {"timer_ns": decision_costs.TIMER_NS}),
            },
        },
        **setting.around(),
        "domain": _domains(
            setting,
            summary,
            replays,
            tasks=tasks,
            stretches={vcpu: app for vcpu, (app, _) in stretches.items()},
            ticks=ticks,
            waking=waking,
            by_spreads=_by_spreads(sources, resume, takes.block_ns, turns),
        ),
    }
    head = [f"Made by `vcpulab twin` of {sources.trace.name}: {summary['span_ns'] / 1e9:.3f} s of it."]
    if stretches:
        head += [
            f"{len(stretches)} of {len(summary['vcpus'])} vCPUs go through what they computed and how long they slept "
            "in stretches of the recorded order; `stretch` is their mean length, under which turns that were held out "
            "are likeliest.",
        ]
    answering = {task.vcpu for task in tasks}
    if answering:
        head += [
            f"{len(answering)} of {len(summary['vcpus'])} vCPUs wake one another. Each application of theirs answers "
            "one kind of message, or is a timer, and does what was seen to follow it alone.",
            "A channel `a-wakes-b-after-c` stands for events that a sent to b when c had woken it; without "
            "`after`, when nobody had. With `for-d` c had been woken by d.",
            "What one sent at one go stays whole: a shorter rate limit or slice may interrupt it on a real host.",
        ]
    head += _of_words(
        {
            "resume_ns": bool(resume),
            "block_ns": bool(takes.costs()),
            "timer_ns": used not in POLICIES,
            "wake_cpu": bool(waking),
            "idle_tick": bool(ticks),
        }
    )
    if len(replays) + len(stretches) + len(answering) < len(summary["vcpus"]):
        head += ["Lists of times are spreads: quantiles at equal distances, of which one is drawn each time."]
    if events is not None and replays:
        head += [
            f"{len(replays)} of {len(summary['vcpus'])} vCPUs do what they did in {span_ns(events) / 1e9:.3f} s, turn "
            "by turn, and begin anew at the end.",
            "A channel `a-wakes-b` stands for events that a sent when b was blocked.",
        ]
    head += explanations
    head += notes
    commented = "".join(f"# {line}\n" for line in head) + "\n" + inline_phases(tomli_w.dumps, document)
    return Made(Scenario.from_toml(commented, "<twin>"), commented, notes)


_WORDS = {
    "resume_ns": "`resume_ns` is the CPU time that a vCPU needs besides each time it goes on after it was preempted.",
    "block_ns": "`block_ns` and `wake_ns` are what Credit takes to decide, told from the shortest waits, and not part "
    "of what vCPUs compute.",
    "timer_ns": "`timer_ns` is how late Xen handles timers, so that Credit's ticks slip: measured once, not told here.",
    "wake_cpu": "`wake_cpu` and `idle_cpu` are what a turn costs however much it does, before and after what it sends: "
    "told from turns that share what was sent for them.",
    "idle_tick": "`idle_tick` is the tick of a guest's kernel, told from wake-ups on its grid; `busy_tick_cpu` is what "
    "one takes of turns that are otherwise alike, and no part of what they compute. When it is (`idle_tick_at`) is "
    "decided as a host boots: a what-if of another scheduler, which takes a reboot, leaves that out, and runs draw it.",
}
"""The meanings of the words in a twin's text."""


def _of_words(used: Mapping[str, bool]) -> list[str]:
    return [meaning for word, meaning in _WORDS.items() if used[word]]


def _without(summary: Mapping[str, Any], sources: Sources) -> dict[str, Any]:
    """A summary without the host's own threads."""
    return _only(summary, [vcpu for vcpu in summary["vcpus"] if not sources.is_daemon(vcpu["domain"])])


def _placed(sources: Sources, summary: Mapping[str, Any], notes: list[str]) -> PcpuMap:
    """The host's pCPUs: those that `xl info -n` or `lscpu` list, or as many as the recording names."""
    pcpus = max(pcpu["pcpu"] for pcpu in summary["pcpus"]) + 1
    if sources.of_linux:
        placed = map_of(sources.info, notes, LISTER)
        if placed is not None and max(placed.numbers) + 1 < pcpus:
            notes.append(f"the recording names {pcpus} CPUs, and the listing of CPUs {placed.pcpus}: those are taken")
            placed = None
    else:
        placed = map_of(sources.info, notes) if sources.info.cpus else None
    return placed or flat(pcpus)


def _without_stray_vcpus(summary: Mapping[str, Any], sources: Sources) -> tuple[dict[str, Any], int]:
    """A summary without the vCPUs that only a stray record names, and how many those are."""
    recorded_vcpus = [vcpu for vcpu in summary["vcpus"] if vcpu["unknown_ns"] < summary["span_ns"]]
    return _only(summary, [_of_host(vcpu, sources) for vcpu in recorded_vcpus]), len(summary["vcpus"]) - len(
        recorded_vcpus
    )


def _only(summary: Mapping[str, Any], vcpus: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A summary of these vCPUs."""
    numbers = {(vcpu["domain"], vcpu["vcpu"]) for vcpu in vcpus}
    wakers_kept = {None, *numbers}
    wakers = [
        waking
        for waking in summary["wakers"]
        if tuple(waking["woken"]) in numbers and (waking["waker"] and tuple(waking["waker"])) in wakers_kept
    ]
    return {**summary, "vcpus": list(vcpus), "wakers": wakers}


def _does_something(history: Turns) -> bool:
    return any(turn.blocked or len(turn.computes) > 1 for turn in history.turns)


def _of_host(thread: Mapping[str, Any], sources: Sources) -> Mapping[str, Any]:
    """The unknown time of a thread of the host counts as idle; only VMs are extrapolated."""
    if not sources.is_daemon(thread["domain"]):
        return thread
    return {**thread, "blocked_ns": thread["blocked_ns"] + thread["unknown_ns"], "unknown_ns": 0}


def _lasting(summary: Mapping[str, Any], turns: Mapping[Vcpu, Turns], seen: float) -> set[Vcpu]:
    """The threads of Linux that were there for most of the time: what one did that was there for some ms is no pattern.

    Args:
        summary: of the recording.
        turns: what threads did in its beginning.
        seen: the part of its time that this is, 0 to 1.
    """
    lasting = set()
    for thread in summary["vcpus"]:
        history = turns.get((thread["domain"], thread["vcpu"]))
        known_ns = sum(thread[f"{state}_ns"] for state in ("running", "runnable", "blocked", "offline"))
        if history is not None:
            # The last turn of a thread that has ended lasts until the end of the recording.
            was_there_ns = sum(turn.span_ns + turn.blocked_ns for turn in history.turns) - thread["offline_ns"]
            if was_there_ns >= _THERE_LEAST * seen * known_ns:
                lasting.add(history.vcpu)
    return lasting


def _sleeps_per_run(summary: Mapping[str, Any], resume_ns: int, turns: Mapping[Vcpu, Turns]) -> dict[Vcpu, float]:
    """The sleep of threads of Linux for each ns that they computed, without the cost of resuming."""
    ratios = {}
    for thread in summary["vcpus"]:
        vcpu = thread["domain"], thread["vcpu"]
        computes = thread["running_ns"] - resume_ns * thread["preempted"]
        if computes > 0 and vcpu in turns:
            ratios[vcpu] = slept_ns(thread, turns[vcpu].first_ns) / computes
    return ratios


def _by_spreads(
    sources: Sources, resume_ns: int, block_ns: int, turns: Mapping[Vcpu, Turns]
) -> Callable[[Mapping[str, Any]], dict[str, Any] | None]:
    """The function that makes an application of a vCPU's table of the summary."""

    def of_linux(thread: Mapping[str, Any]) -> dict[str, Any] | None:
        history = turns.get((thread["domain"], thread["vcpu"]))
        return conserving(thread, resume_ns, 0 if history is None else history.first_ns)

    return of_linux if sources.of_linux else lambda vcpu: drawn(vcpu, resume_ns, block_ns)


def _in_stretches(
    turns: Mapping[Vcpu, Turns], sleeps_per_run: Mapping[Vcpu, float]
) -> dict[Vcpu, tuple[dict[str, Any], Tick | None]]:
    """The turns of vCPUs that no other vCPU wakes, as an application, and their tick."""
    told_of = all_told(turns)
    often = {
        vcpu: (tick, demands)
        for vcpu, (tick, demands) in told_of.items()
        if sum(each.sleep_ns > 0 for each in demands) >= BLOCKS_LEAST
        and (tick is not None or not keep_nothing([each[:2] for each in demands]))
    }
    most = min(TURNS_OF_VCPU_MOST, TURNS_MOST // max(len(often), 1))
    return {
        vcpu: (in_stretches(demands, most, sleeps_per_run.get(vcpu)), tick) for vcpu, (tick, demands) in often.items()
    }


def _domains(
    setting: Setting,
    summary: Mapping[str, Any],
    replays: Mapping[Vcpu, Turns],
    *,
    tasks: Sequence[Task],
    stretches: Mapping[Vcpu, dict[str, Any]],
    ticks: Mapping[Vcpu, Tick],
    waking: Mapping[Vcpu, Waking],
    by_spreads: Callable[[Mapping[str, Any]], dict[str, Any] | None],
) -> dict[str, Any]:
    sources = setting.sources
    by_domain: dict[int, list[Mapping[str, Any]]] = {}
    for vcpu in summary["vcpus"]:
        by_domain.setdefault(vcpu["domain"], []).append(vcpu)
    counts = {number: max(vcpu["vcpu"] for vcpu in vcpus) + 1 for number, vcpus in by_domain.items()}

    def called(vcpu: Vcpu) -> str:
        return sources.name(vcpu[0]) if counts[vcpu[0]] == 1 else f"{sources.name(vcpu[0])}.{vcpu[1]}"

    def channel(link: Link, after: Vcpu | None = None, before: Vcpu | None = None) -> str:
        def name(call: Callable[[Vcpu], str]) -> str:
            cause = (f"-after-{call(after)}" if after else "") + (f"-for-{call(before)}" if before else "")
            return "-wakes-".join(map(call, link)) + cause

        of_names = name(called)
        return of_names if len(of_names) <= _engine.NAME_CHARS_MAX else name(lambda vcpu: f"{vcpu[0]}.{vcpu[1]}")

    def of_kind(vcpu: Vcpu, kind: Kind) -> str:
        assert kind.sender is not None
        return channel((kind.sender, vcpu), kind.because, kind.before)

    domains: dict[str, Any] = {}
    for number, vcpus in sorted(by_domain.items()):
        count = counts[number]
        apps: list[dict[str, Any]] = []
        for vcpu in vcpus:
            place = (number, vcpu["vcpu"])
            if place in replays:
                apps.append(replayed(replays[place], channel))
            elif any(task.vcpu == place for task in tasks):
                apps += [app_of(task, tasks, of_kind) for task in tasks if task.vcpu == place]
            else:
                app = stretches.get(place) or by_spreads(vcpu)
                apps += [] if app is None else [app]
        table = setting.domain(number, count)
        its_ticks = [ticks[place] for vcpu in vcpus if (place := (number, vcpu["vcpu"])) in ticks]
        if its_ticks:
            # A kernel has one, whatever differs between its vCPUs.
            cpu_ns = sum(tick.cpu_ns for tick in its_ticks) // len(its_ticks)
            busy_ns = sum(tick.busy_ns for tick in its_ticks) // len(its_ticks)
            table |= replace(its_ticks[0], cpu_ns=max(1, cpu_ns), busy_ns=busy_ns).fields()
        its_waking = [waking.get((number, vcpu["vcpu"]), Waking()) for vcpu in vcpus]
        for word, costs in zip(("wake_cpu", "idle_cpu"), zip(*its_waking, strict=True), strict=True):
            if any(costs):
                table[word] = f"{sum(costs) // len(costs)}ns"
        if apps:
            table["app"] = apps
            if count > 1 and not sources.is_daemon(number):
                setting.notes.append(
                    f"{sources.name(number)}: what its {count} vCPUs did is shared among them by its guest kernel"
                )
        domains[sources.name(number)] = table
    return domains | setting.small_threads()


def _switch_ns(summary: Mapping[str, Any]) -> int:
    """Mean time from one's stop to the next one's start."""
    switches = sum(pcpu["switches"] for pcpu in summary["pcpus"])
    return round(sum(pcpu["switching_ns"] for pcpu in summary["pcpus"]) / switches) if switches else 0
