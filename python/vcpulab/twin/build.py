"""The construction of a scenario from a recording."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from vcpulab import _engine
from vcpulab import formats as recordings
from vcpulab._work.progress import Progress
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.formats import Recording
from vcpulab.hosts.kernel_rules import POLICIES
from vcpulab.hosts.kvm_host import LISTER
from vcpulab.hosts.pcpu_map import PcpuMap, flat, map_of
from vcpulab.scenario.problems import without_lines
from vcpulab.scenario.scenario import Scenario
from vcpulab.show import toml_text
from vcpulab.twin import decision_costs
from vcpulab.twin.apps import replayed
from vcpulab.twin.demands import Demands, demands_of
from vcpulab.twin.links import Link, Vcpu, links
from vcpulab.twin.messages.exchange import app_of
from vcpulab.twin.messages.turns import Kind
from vcpulab.twin.messages.wake_costs import Waking
from vcpulab.twin.sequences import TURNS_MOST, TURNS_READ_MOST, span_ns
from vcpulab.twin.setting import Setting
from vcpulab.twin.sources import Sources

SPAN_NS_LEAST = 1_000_000_000
"""The shortest recording, ns: in a shorter one a vCPU that wakes ten times a second has too few sleeps."""
HELD_BACK_US = 5_000
"""The rate limit of Xen from which on a twin carries a warning, µs: such twins predict other settings worse
(docs/evidence/xen-demands.csv)."""
_OF_TURNS_MOST = 0.8
"""The fraction of the largest number of turns up to which the beginning of a recording is read: turns are more frequent
in some parts than on average. Assumed."""


@dataclass(frozen=True)
class Made:
    """A twin."""

    scenario: Scenario
    text: str
    """The scenario as a file, with what it was made of."""
    notes: list[str]
    """Notes on the differences between the twin and the recorded host."""
    absent_ns: Mapping[Vcpu, int]
    """The time at the beginning of the recording in which a thread of Linux was not there: no part of its demand."""


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
    notes = list(sources.notes)
    used = scheduler or sources.scheduler
    if used is None:
        raise RequestError("no file says which one was recorded", field="scheduler", hint=sources.how_to_say_scheduler)
    summary, left_out = _without_stray_vcpus(recording.summary, sources)
    if left_out:
        notes.append(f"{left_out} vCPUs of whom the recording never says whether they run are left out")
    if not summary["vcpus"]:
        raise RequestError(f"{sources.trace}: no vCPU ran in it; nothing to make a twin of")
    if used not in POLICIES:
        # Xen has no threads of a host.
        summary = _only(summary, [vcpu for vcpu in summary["vcpus"] if not sources.is_daemon(vcpu["domain"])])
    demands = demands_of(sources, summary, used, events, replay=replay)
    if (limit := int(sources.host_params.get("ratelimit_us", 0))) >= HELD_BACK_US:
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
        "host": {"profile": "exact", **setting.placed.fields(), **host, "costs": _costs(demands, used)},
        **setting.around(),
        "domain": {**_Domains(setting, summary, demands).tables(), **setting.small_threads()},
    }
    head = [*_head(sources.trace.name, summary, demands, used, events), *explanations, *notes]
    commented = "".join(f"# {line}\n" for line in head) + "\n" + toml_text.document(document)
    absent_ns = {vcpu: history.first_ns for vcpu, history in demands.turns.items()} if sources.of_linux else {}
    try:
        return Made(Scenario.from_toml(commented, "<twin>"), commented, notes, absent_ns)
    except ScenarioError as error:
        raise without_lines(error.problems, {"": [sources.trace]}) from None


def _costs(demands: Demands, used: str) -> dict[str, int]:
    costs = {"context_switch_ns": demands.switch_ns}
    if demands.resume_ns:
        costs["resume_ns"] = demands.resume_ns
    costs |= demands.takes.costs()
    return costs if used in POLICIES else costs | {"timer_ns": decision_costs.TIMER_NS}


def _head(trace: str, summary: Mapping[str, Any], demands: Demands, used: str, events: Path | None) -> Iterator[str]:
    """The comments that say what a twin was made of, and what its words mean."""
    vcpus, answering = len(summary["vcpus"]), {task.vcpu for task in demands.tasks}
    yield f"Made by `vcpulab twin` of {trace}: {summary['span_ns'] / 1e9:.3f} s of it."
    if demands.stretches:
        yield (
            f"{len(demands.stretches)} of {vcpus} vCPUs go through what they computed and how long they slept "
            "in stretches of the recorded order; `stretch` is their mean length, under which turns that were held out "
            "are likeliest."
        )
    if answering:
        yield (
            f"{len(answering)} of {vcpus} vCPUs wake one another. Each application of theirs answers "
            "one kind of message, or is a timer, and does what was seen to follow it alone."
        )
        yield (
            "A channel `a-wakes-b-after-c` stands for events that a sent to b when c had woken it; without "
            "`after`, when nobody had. With `for-d` c had been woken by d."
        )
        yield "What one sent at one go stays whole: a shorter rate limit or slice may interrupt it on a real host."
    used_words = {
        "resume_ns": bool(demands.resume_ns),
        "block_ns": bool(demands.takes.costs()),
        "timer_ns": used not in POLICIES,
        "wake_cpu": bool(demands.waking),
        "idle_tick": bool(demands.ticks),
    }
    yield from (meaning for word, meaning in _WORDS.items() if used_words[word])
    if len(demands.replays) + len(demands.stretches) + len(answering) < vcpus:
        yield "Lists of times are spreads: quantiles at equal distances, of which one is drawn each time."
    if events is not None and demands.replays:
        yield (
            f"{len(demands.replays)} of {vcpus} vCPUs do what they did in {span_ns(events) / 1e9:.3f} s, turn "
            "by turn, and begin anew at the end."
        )
        yield "A channel `a-wakes-b` stands for events that a sent when b was blocked."


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


def _of_host(thread: Mapping[str, Any], sources: Sources) -> Mapping[str, Any]:
    """The unknown time of a thread of the host counts as idle; only VMs are extrapolated."""
    if not sources.is_daemon(thread["domain"]):
        return thread
    return {**thread, "blocked_ns": thread["blocked_ns"] + thread["unknown_ns"], "unknown_ns": 0}


@dataclass(frozen=True)
class _Domains:
    """The domains of a twin."""

    setting: Setting
    summary: Mapping[str, Any]
    demands: Demands

    @cached_property
    def _vcpus(self) -> dict[int, list[Mapping[str, Any]]]:
        """The vCPUs of each domain, in the order of domains."""
        vcpus: dict[int, list[Mapping[str, Any]]] = {}
        for vcpu in self.summary["vcpus"]:
            vcpus.setdefault(vcpu["domain"], []).append(vcpu)
        return dict(sorted(vcpus.items()))

    @cached_property
    def _counts(self) -> dict[int, int]:
        return {number: max(vcpu["vcpu"] for vcpu in vcpus) + 1 for number, vcpus in self._vcpus.items()}

    def tables(self) -> dict[str, Any]:
        """The tables of domains by name."""
        return {self.setting.sources.name(number): self._table(number) for number in self._vcpus}

    def _table(self, number: int) -> dict[str, Any]:
        sources, count = self.setting.sources, self._counts[number]
        vcpus = [(number, vcpu["vcpu"]) for vcpu in self._vcpus[number]]
        apps = [app for vcpu in self._vcpus[number] for app in self._apps(vcpu)]
        table = self.setting.domain(number, count) | self._tick(vcpus) | self._wake_costs(vcpus)
        if apps and count > 1 and not sources.is_daemon(number):
            self.setting.notes.append(
                f"{sources.name(number)}: what its {count} vCPUs did is shared among them by its guest kernel"
            )
        return table | ({"app": apps} if apps else {})

    def _apps(self, vcpu: Mapping[str, Any]) -> list[dict[str, Any]]:
        demands, place = self.demands, (vcpu["domain"], vcpu["vcpu"])
        if place in demands.replays:
            return [replayed(demands.replays[place], self._channel)]
        tasks = [app_of(task, demands.tasks, self._channel_of_kind) for task in demands.tasks if task.vcpu == place]
        app = None if tasks else demands.stretches.get(place) or demands.by_spreads(vcpu)
        return tasks if app is None else [app]

    def _tick(self, vcpus: Sequence[Vcpu]) -> dict[str, Any]:
        """The tick of a domain: a kernel has one, whatever differs between its vCPUs."""
        ticks = [self.demands.ticks[vcpu] for vcpu in vcpus if vcpu in self.demands.ticks]
        if not ticks:
            return {}
        cpu_ns = sum(tick.cpu_ns for tick in ticks) // len(ticks)
        busy_ns = sum(tick.busy_ns for tick in ticks) // len(ticks)
        return replace(ticks[0], cpu_ns=max(1, cpu_ns), busy_ns=busy_ns).fields()

    def _wake_costs(self, vcpus: Sequence[Vcpu]) -> dict[str, str]:
        waking = [self.demands.waking.get(vcpu, Waking()) for vcpu in vcpus]
        costs = dict(zip(("wake_cpu", "idle_cpu"), zip(*waking, strict=True), strict=True))
        return {word: f"{sum(each) // len(each)}ns" for word, each in costs.items() if any(each)}

    def _name(self, vcpu: Vcpu) -> str:
        name = self.setting.sources.name(vcpu[0])
        return name if self._counts[vcpu[0]] == 1 else f"{name}.{vcpu[1]}"

    def _channel(self, link: Link, after: Vcpu | None = None, before: Vcpu | None = None) -> str:
        """The channel of events; of a too long name the numbers of domains instead of their names."""

        def joined(call: Callable[[Vcpu], str]) -> str:
            causes = (f"-after-{call(after)}" if after else "") + (f"-for-{call(before)}" if before else "")
            return "-wakes-".join(map(call, link)) + causes

        names = joined(self._name)
        return names if len(names) <= _engine.NAME_CHARS_MAX else joined(lambda vcpu: f"{vcpu[0]}.{vcpu[1]}")

    def _channel_of_kind(self, vcpu: Vcpu, kind: Kind) -> str:
        assert kind.sender is not None
        return self._channel((kind.sender, vcpu), kind.because, kind.before)
