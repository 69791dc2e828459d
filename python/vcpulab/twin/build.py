"""From a recording to a scenario."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import tomli_w

from vcpulab import recordings
from vcpulab.recordings import Recording
from vcpulab.scenario import Scenario
from vcpulab.twin.sequences import Turns, turns_of
from vcpulab.twin.sources import Sources
from vcpulab.usage import UsageError

BLOCKS_LEAST = 5
"""A vCPU that blocked less often has no spread to draw from: it always computes, or is idle."""
EVENTS_OF_PHASE = 1000


@dataclass(frozen=True)
class Made:
    """A twin."""

    scenario: Scenario
    text: str
    """The scenario as a file, with what it was made of."""
    notes: list[str]
    """What it does not do that the host did."""


def read(
    sources: Sources,
    part: tuple[float, float] = (0.0, 1.0),
    progress: Callable[[float], bool] | None = None,
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


def make(sources: Sources, recording: Recording, *, scheduler: str | None = None, events: Path | None = None) -> Made:
    """The twin of a host, by what a part of its recording says.

    Args:
        sources: what else is known of the host.
        recording: the part.
        scheduler: the one to simulate, if no file says which was recorded.
        events: replay what happened, as `read` wrote it there, instead of drawing from its spreads.

    Raises:
        UsageError: nothing says the scheduler, or nothing ran.
    """
    summary, notes = recording.summary, list(sources.notes)
    used = scheduler or sources.scheduler
    if used is None:
        raise UsageError(
            "nothing says which scheduler was recorded\n"
            "  hint: add what `xl info` or `xl sched-credit` prints, or --scheduler"
        )
    turns = turns_of(events) if events is not None else {}
    by_domain: dict[int, list[Mapping[str, Any]]] = {}
    for vcpu in summary["vcpus"]:
        by_domain.setdefault(vcpu["domain"], []).append(vcpu)
    domains: dict[str, Any] = {}
    names = sources.names | recording.names
    sources.names.update(names)
    for number in sorted(by_domain):
        vcpus = by_domain[number]
        count = max(vcpu["vcpu"] for vcpu in vcpus) + 1
        done = [(vcpu, turns.get((number, vcpu["vcpu"]))) for vcpu in vcpus]
        apps = [app for vcpu, its in done if (app := _app(vcpu) if its is None else _replay(its)) is not None]
        table: dict[str, Any] = {"vcpus": count}
        if used == sources.scheduler:
            table |= sources.domain_params.get(number, {})
        if any((number, vcpu) in sources.affinity for vcpu in range(count)):
            table["affinity"] = [sources.affinity.get((number, vcpu), "all") for vcpu in range(count)]
        domains[sources.name(number)] = table | ({"app": apps} if apps else {})
        if count > 1 and apps:
            notes.append(f"{sources.name(number)}: what its {count} vCPUs did is shared among them by its guest kernel")
    if not domains:
        raise UsageError(f"{sources.trace}: no vCPU ran in it; nothing to make a twin of")
    pcpus = max(pcpu["pcpu"] for pcpu in summary["pcpus"]) + 1
    document = {
        "name": f"twin of {sources.trace.parent.name or sources.trace.name}",
        "run": {"duration": "10s", "warmup": "1s", "replications": 5},
        "host": {
            "profile": "exact",
            "pcpus": pcpus,
            "scheduler": used,
            **(sources.host_params if used == sources.scheduler else {}),
            "costs": {"context_switch_ns": _switch_ns(summary)},
        },
        "domain": domains,
    }
    text = tomli_w.dumps(document)
    head = [
        f"Made by `vcpulab twin` of {sources.trace.name}: {summary['span_ns'] / 1e9:.3f} s of it.",
        "It replays what happened, and begins anew at the end."
        if events is not None
        else "Lists of times are spreads: quantiles at equal distances, of which one is drawn each time.",
        "Who wakes whom is not kept: a vCPU that another domain woke sleeps as long as it did then.",
        *notes,
    ]
    commented = "".join(f"# {line}\n" for line in head) + "\n" + text
    return Made(Scenario.from_toml(commented, "<twin>"), commented, notes)


def _app(vcpu: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a vCPU wanted: time to compute between waking and blocking, and time blocked."""
    if vcpu["block"]["count"] >= BLOCKS_LEAST and vcpu["burst"]["count"] >= BLOCKS_LEAST:
        event = [{"run": _spread(vcpu["burst"], least=1)}, {"sleep": _spread(vcpu["block"], least=0)}]
        return {"kind": "phases", "phase": [{"event": event}]}
    # Off line is a vCPU that a cap holds back, too.
    wanted = vcpu["running_ns"] + vcpu["runnable_ns"] + vcpu["offline_ns"]
    return {"kind": "hog"} if wanted > vcpu["blocked_ns"] and vcpu["running_ns"] > 0 else None


def _replay(its: Turns) -> dict[str, Any]:
    """The turns of a vCPU one after the other, beginning when it first woke."""
    events = [
        event for run, sleep in its.turns for event in ({"run": f"{max(run, 1)}ns"}, {"sleep": f"{max(sleep, 1)}ns"})
    ]
    phases = [{"event": events[at : at + EVENTS_OF_PHASE]} for at in range(0, len(events), EVENTS_OF_PHASE)]
    return {"kind": "phases", "start_delay": f"{its.first_wake_ns}ns", "phase": phases}


def _spread(times: Mapping[str, Any], least: int) -> list[str]:
    """Quantiles, so that they have the mean that was measured: a histogram is good to 1 % only."""
    quantiles: Sequence[int] = times["quantiles_ns"]
    halves = [(a + b) / 2 for a, b in pairwise(quantiles)]
    factor = times["mean_ns"] * len(halves) / sum(halves) if sum(halves) > 0 else 1.0
    return [f"{max(least, round(factor * quantile))}ns" for quantile in quantiles]


def _switch_ns(summary: Mapping[str, Any]) -> int:
    """Mean time from one's stop to the next one's start."""
    switches = sum(pcpu["switches"] for pcpu in summary["pcpus"])
    return round(sum(pcpu["switching_ns"] for pcpu in summary["pcpus"]) / switches) if switches else 0
