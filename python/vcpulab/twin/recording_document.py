"""A recording as a document: its clock, where the time of pCPUs and vCPUs went, and what followed wake-ups."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vcpulab.formats import Recording
from vcpulab.show.document import Block, Document, Lines, Part
from vcpulab.show.table import Table
from vcpulab.twin.links import links

_PCPU_STATES = ("busy", "idle", "host", "switching", "unknown")
_STATES = ("running", "runnable", "blocked", "offline", "unknown")
_TIMES = {"wake_latency": "wake-up latency", "burst": "wake to block", "execution": "execution", "block": "blocked"}
_POINTS = ("mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns")
_AFTER = ("wakes", "wakes_to_idle", "wakes_ran_next", "wakes_ran_later", "wakes_ran_elsewhere")
_VCPUS_SHOWN = 200
_WAKERS_SHOWN = 30

_Vcpus = Sequence[Mapping[str, Any]]
_NameOf = Callable[[int, int], str]


def document_of(recording: Recording, names: Mapping[int, str]) -> Document:
    """The document of a recording.

    Args:
        recording: the recording.
        names: the names of domains by their numbers.
    """
    summary = recording.summary

    def name_of(domain: int, vcpu: int) -> str:
        return f"{names.get(domain, domain)} v{vcpu}"

    vcpus = summary["vcpus"][:_VCPUS_SHOWN]
    blocks: list[Block] = [
        Lines(list(_lead(recording))),
        _pcpus(summary),
        _states(vcpus, summary["span_ns"], name_of),
        _times(vcpus, name_of),
        _wakes(vcpus, summary, name_of),
    ]
    left_out = len(summary["vcpus"]) - len(vcpus)
    if left_out:
        blocks.append(Lines([f"{left_out} more vCPUs: --format json"]))
    unused = _unused(recording.report["records"])
    if unused:
        counts = ", ".join(f"{name} ({count})" for name, count in unused.items())
        blocks.append(Lines([f"no metrics are made of: {counts}"]))
    return [Part.always(*blocks)]


def _lead(recording: Recording) -> Iterator[str]:
    report, summary = recording.report, recording.summary
    clock = report["clock"]
    clock_sources = {
        "given": "as given",
        "calibrated": f"from {clock['executions']} execution times in it",
        "text": "in seconds",
    }
    mhz = "" if clock["mhz"] is None else f"{clock['mhz']:.3f} MHz, "
    records = sum(record["count"] for record in report["records"])
    span_s = summary["span_ns"] / 1e9
    yield f"{recording.path}: {report['format']}, {report['bytes']} bytes, {records} records, {span_s:.6f} s"
    yield f"clock: {mhz}{clock_sources[clock['source']]}"
    counts = {"lost records": "lost_records", "gaps": "gaps", "contradictions": "contradictions"}
    yield "; ".join(f"{title}: {summary[name]}" for title, name in counts.items())


def _percent(ns: int, span_ns: int) -> str:
    return f"{100 * ns / span_ns:.2f}" if span_ns else "-"


def _pcpus(summary: Mapping[str, Any]) -> Table:
    rows = [
        [
            str(pcpu["pcpu"]),
            *(_percent(pcpu[f"{state}_ns"], summary["span_ns"]) for state in _PCPU_STATES),
            f"{pcpu['switches_per_s']:.1f}",
        ]
        for pcpu in summary["pcpus"]
    ]
    return Table("pCPUs", ["pCPU", *(f"{state} %" for state in _PCPU_STATES), "switches/s"], rows)


def _states(vcpus: _Vcpus, span_ns: int, name_of: _NameOf) -> Table:
    counts = ("preempted", "migrations", "yields")
    rows = [
        [
            name_of(vcpu["domain"], vcpu["vcpu"]),
            *(_percent(vcpu[f"{state}_ns"], span_ns) for state in _STATES),
            f"{vcpu['executions_per_s']:.1f}",
            *(str(vcpu[count]) for count in counts),
            f"{vcpu['wakes_per_s']:.1f}",
        ]
        for vcpu in vcpus
    ]
    headings = ["vCPU", *(f"{state} %" for state in _STATES), "executions/s", *counts, "wakes/s"]
    return Table("vCPUs: where their time went", headings, rows)


def _times(vcpus: _Vcpus, name_of: _NameOf) -> Table:
    rows = [
        [
            name_of(vcpu["domain"], vcpu["vcpu"]),
            title,
            str(vcpu[measure]["count"]),
            *(f"{vcpu[measure][point] / 1000:.1f}" for point in _POINTS),
        ]
        for vcpu in vcpus
        for measure, title in _TIMES.items()
        if vcpu[measure]["count"]
    ]
    headings = ["vCPU", "what", "count", "mean", "median", "p90", "p99", "max"]
    return Table("vCPUs: times, us", headings, rows, text_columns=2)


def _wakes(vcpus: _Vcpus, summary: Mapping[str, Any], name_of: _NameOf) -> Table:
    woken = [vcpu for vcpu in vcpus if vcpu["wakes"]]
    rows = [
        [
            name_of(vcpu["domain"], vcpu["vcpu"]),
            *(str(vcpu[count]) for count in _AFTER),
            _wakers(summary, vcpu, name_of),
        ]
        for vcpu in woken[:_WAKERS_SHOWN]
    ]
    outcomes = ["wakes", "pCPU idle", "ran next", "ran later", "ran elsewhere"]
    return Table("after a wake-up", ["vCPU", *outcomes, "woken by (else timers, devices)"], rows)


def _wakers(summary: Mapping[str, Any], vcpu: Mapping[str, Any], name_of: _NameOf) -> str:
    """The vCPUs that woke a vCPU more often than by chance; empty if timers and devices did."""
    woken = vcpu["domain"], vcpu["vcpu"]
    senders = {waker for waker, target in links(summary) if target == woken}
    counts = {
        tuple(waking["waker"] or ()): waking["count"] for waking in summary["wakers"] if waking["woken"] == [*woken]
    }
    ordered = sorted(senders, key=lambda waker: -counts[waker])
    return ", ".join(f"{name_of(*waker)} ({counts[waker]})" for waker in ordered)


def _unused(records: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The records that no metric is made of, with their numbers."""
    unused: dict[str, int] = {}
    for record in records:
        if not record["used"]:
            name = record["name"] or f"unknown ({record['event']})"
            unused[name] = unused.get(name, 0) + record["count"]
    return unused
