"""Measures what `docs/validation.md` says: `make evidence` writes `docs/evidence/*.csv`, and `make docs` the page.

Everything is measured anew but the agreement with published studies, whose runs take hours:
`docs/published-and-simulated.md` has it, written by `vcpulab study overview`.
"""

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from itertools import permutations
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import invalidation
from validation_page import RATE_LIMITED
from vcpulab import _engine
from vcpulab import conformance as bundled
from vcpulab.cli.terminal import progress
from vcpulab.formats import linux_folder
from vcpulab.scenario.units import Duration
from vcpulab.twin.decision_costs import shortest_wait_ns
from vcpulab_evidence.studies import NAMES, study
from vcpulab_evidence.studies.predict import predictions, scores
from vcpulab_evidence.studies.results import Results
from vcpulab_evidence.validation import Cell, Report, validate
from vcpulab_evidence.validation.report import ANOTHER
from vcpulab_evidence.validation.xen import BARS, OWN, WHAT_IF, Agreement, Held, Verdict, quantile
from vcpulab_evidence.validation.xen.chance import OF_POINTS
from vcpulab_evidence.validation.xen.recording import PARTS, Recorded
from vcpulab_evidence.validation.xen.recording import read as _read
from vcpulab_evidence.validation.xen.settings import Setting
from vcpulab_evidence.validation.xen.twin_runs import Unit

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "evidence"
RECORDINGS = DOCS.parent / "evidence" / "recordings" / "xen"
HOSTS = RECORDINGS.parent / "hosts"
OVERVIEW = DOCS / "published-and-simulated.md"
_WORST = 12
read = cache(_read)
"""Most tables look at most recordings."""
_TICKS = ("idle_tick", "idle_tick_at")

Row = Mapping[str, object]


def write(name: str, rows: Iterable[Row]) -> None:
    """Writes a file of rows that have the same columns."""
    rows = list(rows)
    out = StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (FOLDER / f"{name}.csv").write_text(out.getvalue(), encoding="utf-8")


# ---- decisions ----


def conformance() -> Iterator[Row]:
    """Vectors by folder, and the recordings of Linux that are replayed."""
    report = json.loads(_engine.conformance([str(bundled.bundled())], 0))
    for folder in report["folders"]:
        counts: dict[str, object] = {key: folder[key] for key in ("passed", "failed", "skipped")}
        row: dict[str, object] = {"of": Path(folder["folder"]).name, "kind": "vectors"}
        yield row | counts | {"decisions": "", "differing": ""}
    for folder in linux_folder.find(bundled.recordings()):
        judged = json.loads(linux_folder.read(folder).replay())
        passed = {"passed": int(judged["passed"]), "failed": int(not judged["passed"]), "skipped": 0}
        counts = {"decisions": judged["decisions"], "differing": judged["differing"]}
        yield {"of": folder.name, "kind": "recording of Linux"} | passed | counts


# ---- predictions ----


def linux(report: Report) -> Iterator[Row]:
    """By kind and metric: errors of the predictions of Linux."""
    for verdict in report.verdicts:
        cells = [
            cell
            for comparison in report.comparisons
            if comparison.kind == verdict.kind
            for cell in comparison.cells
            if cell.metric == verdict.metric
        ]
        off = sorted(abs(cell.off) for cell in cells)
        counts = {"cells": len(cells), "within": verdict.within, "by_chance": verdict.chance}
        errors = {"off_median": _said(median(off)), "off_p90": _said(quantile(off, 0.9)), "off_most": _said(off[-1])}
        measured: Row = {"kind": verdict.kind, "metric": verdict.metric, "unit": cells[0].off_unit}
        yield {**measured, **counts, **errors}


def hosts(report: Report) -> Iterator[Row]:
    """By CPUs, kind and metric: errors of the predictions of hosts, beside the noise of recordings."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for comparison in report.comparisons:
        cpus = "emulated" if linux_folder.is_recording(comparison.setting) else "real"
        for cell in comparison.cells:
            groups.setdefault((cpus, comparison.kind, cell.metric), []).append(cell)
    for (cpus, kind, metric), cells in sorted(groups.items(), key=lambda group: group[0][:2], reverse=True):
        off = sorted(abs(cell.off) for cell in cells)
        noise = sorted(cell.noise for cell in cells if cell.noise is not None)
        row: dict[str, object] = {"cpus": cpus, "kind": kind, "metric": metric, "unit": cells[0].off_unit}
        within = sum(cell.holds for cell in cells)
        counts = {"cells": len(cells), "within": within, "by_chance": _only_by_chance(cells)}
        errors = {"off_median": _said(median(off)), "off_p90": _said(quantile(off, 0.9))}
        yield row | counts | errors | {"noise_median": _said(median(noise)), "noise_p90": _said(quantile(noise, 0.9))}


def host_threads(report: Report) -> Iterator[Row]:
    """By setting, thread and metric: recorded twice, and each predicted from the demands of the other recording."""
    pairs: dict[tuple[str, str, str], list[Cell]] = {}
    for comparison in report.comparisons:
        if comparison.kind == ANOTHER:
            setting = re.sub(r"-\d+$", "", comparison.setting.name).rpartition("-")[2]
            for cell in sorted(comparison.cells, key=lambda cell: cell.thing):
                pairs.setdefault((setting, cell.thing, cell.metric), []).append(cell)
    for (setting, thing, metric), cells in pairs.items():
        row: dict[str, object] = {"setting": setting, "of": thing, "metric": metric, "unit": cells[0].unit}
        for number, cell in enumerate(sorted(cells, key=lambda cell: cell.recorded), 1):
            row |= {f"recorded_{number}": _said(cell.recorded), f"predicted_{number}": _said(cell.predicted)}
        row |= {"low": _said(min(cell.range[0] for cell in cells)), "high": _said(max(cell.range[1] for cell in cells))}
        yield row | {"within": sum(cell.holds for cell in cells), "by_chance": _only_by_chance(cells)}


def _only_by_chance(cells: Iterable[Cell]) -> int:
    return sum(cell.chance and not cell.holds for cell in cells)


def xen(agreement: Agreement) -> Iterator[Row]:
    """By kind and metric: errors of the predictions of Xen, and what chance gives."""
    for verdict in agreement.verdicts:
        yield {
            "kind": verdict.kind,
            "metric": verdict.metric,
            "cells": verdict.cells,
            "bar": verdict.bar,
            "within": _parts(verdict, verdict.reached),
            "within_by_mean": _parts(verdict, verdict.reached_by_mean),
            "passed": "yes" if verdict.passed else "no",
            "off_median": _said(verdict.off_median),
            "off_p90": _said(verdict.off_p90),
            "off_mean": _said(verdict.off_mean),
            "bias": _said(verdict.bias),
            "by_chance": verdict.by_chance,
            "chance_median": _said(verdict.chance_median),
            "chance_p90": _said(verdict.chance_p90),
            "chance_from": verdict.evidence,
        }


def _parts(verdict: Verdict, reached: Sequence[float]) -> str:
    """Parts within each limit, %."""
    needed = (least for _, least in BARS[verdict.metric].needed)
    return " / ".join(_part(part, least) for part, least in zip(reached, needed, strict=True))


def _part(part: float, least: float = inf) -> str:
    """A part, %, so that one that misses its bar does not read as if it had reached it; the bar is a fraction."""
    return f"{part:.{int(part < 100 * least <= round(part))}f}"


def xen_signs(agreement: Agreement) -> Iterator[Row]:
    """Signs of changes."""
    for sign in agreement.signs:
        counts = {"changes": sign.changes, "beyond_chance": sign.recorded, "right": sign.right, "wrong": sign.wrong}
        right = "" if sign.part_right is None else f"{100 * sign.part_right:.1f}"
        yield {"metric": sign.metric} | counts | {"undecided": sign.undecided, "right_percent": right}


def xen_summary(agreement: Agreement, folders: Sequence[Path]) -> Iterator[Row]:
    """How much was compared."""
    what_ifs = agreement.cells_of(WHAT_IF)
    recordings = [read(folder) for folder in folders]
    yield {
        "recordings": len(agreement.recordings),
        "kinds_of_guests": len({recorded.guests for recorded in recordings}),
        "settings": len({(recorded.guests, recorded.setting.key) for recorded in recordings}),
        "what_ifs": len({(cell.demands, cell.setting) for cell in what_ifs}),
        "predictions": len(what_ifs),
    }


def xen_changes(agreement: Agreement) -> Iterator[Row]:
    """By what was changed, where it is one thing."""
    for changed, metric, verdict in agreement.by_change:
        if " + " not in changed:
            errors = {"off_median": _said(verdict.off_median), "off_p90": _said(verdict.off_p90)}
            bias = {"bias": _said(verdict.bias), "by_chance": verdict.by_chance}
            yield {"changed": changed, "metric": metric, "cells": verdict.cells} | errors | bias


def xen_worst(agreement: Agreement) -> Iterator[Row]:
    """The what-ifs that are farthest off; of each domain's metric in a setting one."""
    seen: set[tuple[str, ...]] = set()
    for cell in agreement.worst(len(agreement.cells)):
        key = (cell.setting, cell.thing, cell.metric)
        if key not in seen and len(seen) < _WORST:
            seen.add(key)
            yield {
                "demands": cell.demands,
                "setting": cell.setting,
                "changed": cell.changed,
                "of": cell.thing,
                "metric": cell.metric,
                "recorded": _said(cell.recorded),
                "predicted": _said(cell.predicted),
                "off": _said(cell.off),
            }


def xen_guests(agreement: Agreement) -> Iterator[Row]:
    """By kind of guests and metric: twins in their own setting, and in others."""
    for guests in dict.fromkeys(cell.guests for cell in agreement.cells):
        for metric in BARS:
            row: dict[str, object] = {"guests": guests, "metric": metric}
            for kind, name in ((OWN, "own"), (WHAT_IF, "what_if")):
                cells = [cell for cell in agreement.cells_of(kind, metric) if cell.guests == guests]
                off = sorted(abs(cell.off) for cell in cells)
                row |= {f"{name}_cells": len(off), f"{name}_median": "", f"{name}_p90": ""}
                if off:
                    row |= {f"{name}_median": _said(median(off)), f"{name}_p90": _said(quantile(off, 0.9))}
            yield row


def xen_own(agreement: Agreement) -> Iterator[Row]:
    """Median waits in each recording, and of its own twin in its own setting."""
    for cell in agreement.cells_of(OWN, "wait_median"):
        if cell.demands == cell.setting:
            values = {"recorded": _said(cell.recorded), "predicted": _said(cell.predicted)}
            yield {"recording": cell.setting, "of": cell.thing} | values


def xen_demands(agreement: Agreement) -> Iterator[Row]:
    """By the recording that twins were made of: which part of all its what-ifs is within the widest limits."""
    for demands in dict.fromkeys(cell.demands for cell in agreement.cells_of(WHAT_IF)):
        cells = [cell for cell in agreement.cells_of(WHAT_IF) if cell.demands == demands]
        within = sum(cell.excess <= 1 for cell in cells)
        yield {"demands": demands, "predictions": len(cells), "within_percent": f"{100 * within / len(cells):.1f}"}


def xen_ranks(agreement: Agreement) -> Iterator[Row]:
    """By metric of waits, and kind of guests: how many of 100 recorded waits lie between recorded and predicted."""
    kinds = dict.fromkeys(cell.guests for cell in agreement.cells)
    for metric in PARTS:
        for guests in ("all", *kinds):
            cells = [cell for cell in agreement.cells_of(WHAT_IF, metric) if guests in ("all", cell.guests)]
            ranks = sorted(cell.off_rank for cell in cells if cell.off_rank is not None)
            beyond = [cell.off_rank for cell in cells if cell.excess > 1 and cell.off_rank is not None]
            if not ranks:
                continue
            near = {f"beyond_within_{most}": sum(rank <= most for rank in beyond) for most in (5, 10)}
            middle = {"rank_median": _said(median(ranks)), "rank_p90": _said(quantile(ranks, 0.9))}
            yield {"metric": metric, "guests": guests, "cells": len(ranks)} | middle | {"beyond": len(beyond)} | near


def xen_preemptions(folders: Sequence[Path]) -> Iterator[Row]:
    """By scheduler and hog of the kind `mixed`: CPU time of each preemption, and what twins find of it.

    Hogs count their work, so that least squares over recordings tell CPU time for each iteration from that for each
    preemption. A twin has neither counts nor other recordings.
    """
    mixed = [recorded for recorded in map(read, folders) if recorded.kind == "mixed"]
    for scheduler in dict.fromkeys(recorded.setting.scheduler for recorded in mixed):
        of_scheduler = [recorded for recorded in mixed if recorded.setting.scheduler == scheduler]
        resumes_us = sorted(recorded.resume_ns / 1e3 for recorded in of_scheduler if recorded.resume_ns)
        for name in ("hogA", "hogB"):
            vcpus = [_vcpu(recorded, name) for recorded in of_scheduler]
            done = [recorded.work_rate[name] * recorded.span_ns / 1e9 for recorded in of_scheduler]
            work = np.array([(count, vcpu["preempted"]) for count, vcpu in zip(done, vcpus, strict=True)])
            _, each_ns = np.linalg.lstsq(work, np.array([vcpu["running_ns"] for vcpu in vcpus]), rcond=None)[0]
            row: dict[str, object] = {"scheduler": scheduler, "guest": name, "recordings": len(of_scheduler)}
            row |= {
                "counted_us": _said(float(each_ns) / 1e3),
                "twins": len(resumes_us),
                "told_us": _said(median(resumes_us)),
            }
            yield row | {"told_least_us": _said(resumes_us[0]), "told_most_us": _said(resumes_us[-1])}


def _vcpu(recorded: Recorded, name: str) -> Mapping[str, int]:
    """What the summary says of the vCPU of a domain that has one."""
    name_of = recorded.twin.sources.name
    vcpu: Mapping[str, int] = next(vcpu for vcpu in recorded.whole.summary["vcpus"] if name_of(vcpu["domain"]) == name)
    return vcpu


def xen_repeating(agreement: Agreement) -> Iterator[Row]:
    """Parts within the widest limits, by whether a twin repeats its own recording, and the setting is of the same boot.

    It does where its shares and switches in its own setting are within the limits: that needs no other recording.
    """
    failing = _failing(agreement)
    for repeats in (True, False):
        for same in (True, False):
            cells = [
                cell
                for cell in agreement.cells_of(WHAT_IF)
                if (cell.demands not in failing) == repeats and (_boot(cell.demands) == _boot(cell.setting)) == same
            ]
            row: dict[str, object] = {"repeats": repeats, "same_boot": same}
            row |= {"twins": len({cell.demands for cell in cells}), "cells": len(cells)}
            yield row | _within_limits(cells)


def _failing(agreement: Agreement) -> set[str]:
    """The recordings that their own twins do not repeat."""
    own = [
        cell
        for cell in agreement.cells_of(OWN)
        if cell.demands == cell.setting and cell.metric in ("share", "switches")
    ]
    return {cell.demands for cell in own if cell.excess > 1}


_SEVERAL_PCPUS = {"two", "wide", "four", "pool", "tworequests"}
"""Kinds of guests that were recorded on more than one pCPU."""


def xen_causes(agreement: Agreement) -> Iterator[Row]:
    """Parts within the widest limits as what-ifs are left out of which a cause is known, one cause after another.

    Which those are, recordings and their settings say, and no result of a what-if.
    """
    failing = _failing(agreement)
    causes: dict[str, Callable[[Held], bool]] = {
        "recorded under a rate limit of 5 ms": lambda cell: RATE_LIMITED in cell.demands,
        "bursts that Dom0 may interrupt": lambda cell: (
            cell.guests == "receive" and "-rate100" in cell.demands + cell.setting
        ),
        "several pCPUs": lambda cell: cell.guests in _SEVERAL_PCPUS,
        "other boots": lambda cell: _boot(cell.demands) != _boot(cell.setting),
        "twins that do not repeat their own recording": lambda cell: cell.demands in failing,
    }
    left = agreement.cells_of(WHAT_IF)
    yield {"without": "", "cells": len(left)} | _within_limits(left)
    for cause, has_cause in causes.items():
        left = [cell for cell in left if not has_cause(cell)]
        yield {"without": cause, "cells": len(left)} | _within_limits(left)


def xen_directions(agreement: Agreement) -> Iterator[Row]:
    """Parts within the widest limits, by kind of guests, and by what is changed: setting, boot, scheduler."""
    by_change: dict[tuple[str, str, str, str], list[Held]] = {}
    for cell in agreement.cells_of(WHAT_IF):
        demanded, held = _boot(cell.demands), _boot(cell.setting)
        boot = "same" if demanded == held else "another"
        # Of different releases there are too few pairs.
        if demanded[0] == held[0]:
            by_change.setdefault((cell.guests, demanded[1], held[1], boot), []).append(cell)
    for (guests, before, after, boot), cells in sorted(by_change.items()):
        row: dict[str, object] = {"guests": guests, "from": before, "to": after, "boot": boot}
        yield row | {"cells": len(cells)} | _within_limits(cells)


def xen_repeated(agreement: Agreement) -> Iterator[Row]:
    """By kind and metric: how often a recording of the same setting in another boot is within the limits.

    That is what a prediction can come to that knows everything but what chance decides as a host boots. Beside it, held
    against the same limits without forgiving what chance explains: twins in their own setting, and what-ifs.
    """
    of_kind: dict[tuple[str, str], dict[str, list[bool]]] = {}
    again = {cell.setting for cell in agreement.cells_of(OWN) if _boot(cell.demands) != _boot(cell.setting)}
    for cell in agreement.cells:
        if cell.setting not in again:
            continue
        limit = cell.bar.widest
        parts = {"own" if cell.kind == OWN else "what_if": abs(cell.off) <= limit}
        if cell.kind == OWN and _boot(cell.demands) != _boot(cell.setting) and cell.before is not None:
            scale = 1.0 if cell.metric in OF_POINTS else 100 / cell.recorded
            parts["again"] = abs(scale * (cell.before - cell.recorded)) <= limit
        for guests in (cell.guests, "all"):
            counts = of_kind.setdefault((guests, cell.metric), {})
            for name, is_within in parts.items():
                counts.setdefault(name, []).append(is_within)
    for (guests, metric), counts in sorted(of_kind.items(), key=lambda item: (item[0][0] != "all", item[0])):
        row: dict[str, object] = {"guests": guests, "metric": metric, "pairs": len(counts["again"])}
        yield row | {f"{name}_within_percent": _percent(counts.get(name, ())) for name in ("again", "own", "what_if")}


_UNSEEN = re.compile(r"credit2?-asks-.*-3$")
"""Recordings that were made last, and first looked at when twins were what they are."""
_AFTER = re.compile(r"credit2?-(requests|receive|mixed)-.*-3$|credit2?-(disk|two)-.*-2$|credit2?-(asks|tworequests)-.*")
"""Of the others: those that were first looked at when most of twins was what it is."""
_WHICH = {"unseen": _UNSEEN, "after": _AFTER}


def xen_unseen(agreement: Agreement) -> Iterator[Row]:
    """Parts within the widest limits of what-ifs held against recordings nobody had looked at, by kind; and others."""
    groups: dict[tuple[str, str], list[Held]] = {}
    for cell in agreement.cells_of(WHAT_IF):
        group = next((name for name, pattern in _WHICH.items() if pattern.search(cell.setting)), "others")
        groups.setdefault((group, cell.guests), []).append(cell)
        groups.setdefault((group, "all"), []).append(cell)
    order = [*_WHICH, "others"]
    for group, guests in sorted(groups, key=lambda key: (order.index(key[0]), key[1] != "all", key)):
        cells = groups[group, guests]
        if group != "others" or guests == "all":
            recordings = len({cell.setting for cell in cells})
            row = {"held_against": group, "guests": guests, "cells": len(cells), "recordings": recordings}
            yield row | _within_limits(cells)


def _within_limits(cells: Sequence[Held]) -> dict[str, str]:
    """By metric, the part within the widest limit, %; nothing where there are none."""
    by_metric = {metric: [cell.excess <= 1 for cell in cells if cell.metric == metric] for metric in BARS}
    return {metric: _percent(within, BARS[metric].needed[-1][1]) for metric, within in by_metric.items()}


def _percent(within: Sequence[bool], least: float = inf) -> str:
    """How many are, %, beside the fraction that must be, if any; nothing where there are none."""
    return _part(100 * sum(within) / len(within), least) if within else ""


def xen_boots(agreement: Agreement) -> Iterator[Row]:
    """Median waits of Dom0 and of the guests, by kind: of twins of the same boot, and of others."""
    for kind in ("mixed", "weights", "requests"):
        for side in ("dom0", "guests"):
            row: dict[str, object] = {"guests": kind, "of": side}
            for same, name in ((True, "same"), (False, "other")):
                cells = [
                    cell
                    for cell in agreement.cells_of(WHAT_IF, "wait_median")
                    if cell.guests == kind
                    and (cell.thing == "dom0") == (side == "dom0")
                    and (_boot(cell.demands) == _boot(cell.setting)) == same
                ]
                within = 100 * sum(cell.excess <= 1 for cell in cells) / max(len(cells), 1)
                row |= {f"{name}_cells": len(cells), f"{name}_within_percent": f"{within:.0f}"}
            yield row


def _boot(recording: str) -> tuple[str, ...]:
    """Release, scheduler, kind and seed: what is recorded in one boot."""
    words = recording.split("-")
    return (*words[:3], words[-1] if words[-1].isdecimal() else "")


@dataclass(frozen=True)
class _Elsewhere(Setting):
    """A setting in another boot, whose ticks are known."""

    ticks: Mapping[str, Mapping[str, Any]]
    """Of each domain: its table."""

    def on(self, demands: Mapping[str, Any], *, rebooted: bool = False) -> dict[str, Any]:
        document = super().on(demands, rebooted=rebooted)
        for name, table in document["domain"].items():
            if _TICKS[0] in table:
                table |= {field: value for field, value in self.ticks[name].items() if field in _TICKS}
        return document


def xen_phases(folders: Sequence[Path]) -> Iterator[Row]:
    """By kind and metric: what-ifs across schedulers, and so boots, with ticks drawn at random and with that boot's.

    Of each setting's twin in the setting of the same name under the other scheduler.
    """
    for kind in ("mixed", "requests", "receive", "weights"):
        recordings = [entry for entry in map(read, folders) if entry.kind == kind and not _boot(entry.name)[-1]]
        pairs = [
            (a, b) for a, b in permutations(recordings, 2) if _boot(a.name) != _boot(b.name) and _named(a) == _named(b)
        ]
        off: dict[str, list[tuple[float, float]]] = {}
        for demands, target in pairs:
            setting = target.setting
            known_ticks = _Elsewhere(
                setting.host, setting.domains, setting.pools, target.twin.scenario.to_dict()["domain"]
            )
            units = [
                Unit(demands, entry).measure(lambda _: True) for entry in (target, replace(target, setting=known_ticks))
            ]
            for (thing, metric), recorded in target.values.items():
                name = f"{thing} {metric}"
                if recorded and all(name in values for unit in units for values in unit):
                    scale = 1.0 if metric in OF_POINTS else 100 / recorded
                    drawn, known = (abs(scale * (median(values[name] for values in unit) - recorded)) for unit in units)
                    off.setdefault(metric, []).append((drawn, known))
        for metric, both in off.items():
            limit = BARS[metric].widest
            row: dict[str, object] = {"guests": kind, "metric": metric, "pairs": len(pairs), "cells": len(both)}
            for number, name in enumerate(("drawn_ticks", "the_other_ticks")):
                within = sum(errors[number] <= limit for errors in both)
                middle = median(errors[number] for errors in both)
                row |= {f"{name}_within_percent": f"{100 * within / len(both):.0f}", f"{name}_off": _said(middle)}
            yield row


def _named(recorded: Recorded) -> str:
    """What its setting is called."""
    return recorded.name.split("-", 3)[3]


def xen_floors(folders: Sequence[Path]) -> Iterator[Row]:
    """By scheduler: the shortest waits from waking to running that recordings have."""
    floors: dict[str, list[float]] = {}
    for folder in folders:
        recorded = read(folder)
        floors.setdefault(recorded.setting.scheduler, []).append(shortest_wait_ns(recorded.whole.summary) / 1e3)
    for scheduler, times in sorted(floors.items()):
        yield {"scheduler": scheduler, "recordings": len(times), "shortest_wait_us": _said(median(times))}


def xen_recorder(folders: Sequence[Path]) -> Iterator[Row]:
    """By guests and scheduler: how often Dom0 wakes by a timer of its own, and for how long, in the median of twins."""
    timers: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for recorded in map(read, folders):
        for app in recorded.twin.scenario.domains["dom0"].apps:
            events = [event for phase in app.phases for event in phase.events]
            if any(event.await_ for event in events) or not any(event.sleep for event in events):
                continue
            ran = sum(event.run.ns for event in events if isinstance(event.run, Duration))
            slept = sum(event.sleep.ns for event in events if isinstance(event.sleep, Duration))
            times = len(app.phases)
            execution = ran / times / 1e3, (ran + slept) / times / 1e6
            timers.setdefault((recorded.kind, recorded.setting.scheduler), []).append(execution)
    for (kind, scheduler), executions in sorted(timers.items()):
        run_us, every_ms = (median(values) for values in zip(*executions, strict=True))
        row: dict[str, object] = {"guests": kind, "scheduler": scheduler, "twins": len(executions)}
        share = median(run / every / 10 for run, every in executions)
        yield row | {"cpu_us": f"{run_us:.0f}", "every_ms": f"{every_ms:.0f}", "share_percent": f"{share:.2f}"}


# ---- published studies ----


def studies() -> Iterator[Row]:
    """By study and role: cells, and the errors of tables."""
    for name in NAMES:
        errors_by_role: dict[str, list[tuple[int, float]]] = {"fitted": [], "predicted": [], "blind": []}
        section = OVERVIEW.read_text(encoding="utf-8").partition(f"(`{name}`)")[2].partition("\n## ")[0]
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            # A row of the table of scores: what, role, cells, tau, error, intervals.
            if len(cells) >= 5 and cells[1] in errors_by_role and cells[2].isdecimal() and cells[4] != "–":
                errors_by_role[cells[1]].append((int(cells[2]), float(cells[4])))
        for score in scores(predictions(study(name), Results({}))):
            if score.role == "blind" and score.mape is not None:
                errors_by_role["blind"].append((score.cells, score.mape))
        for role, tables in errors_by_role.items():
            if tables:
                errors = sorted(error for _, error in tables)
                middle = {"error_median": _said(median(errors)), "error_least": _said(errors[0])}
                counts = {"tables": len(tables), "cells": sum(cells for cells, _ in tables)}
                yield {"study": name, "role": role} | counts | middle | {"error_most": _said(errors[-1])}


def _said(value: float | None) -> str:
    # What is right by construction is off by a rounding.
    return "" if value is None else f"{round(value, 9):.4g}"


def main(recordings: Path) -> None:
    """Measures everything.

    Args:
        recordings: of Xen; if there are none, what was measured of them before is left as it is.
    """
    FOLDER.mkdir(exist_ok=True)
    write("conformance", conformance())
    write("linux", linux(validate([bundled.recordings()])))
    of_hosts = validate([HOSTS])
    write("hosts", hosts(of_hosts))
    write("host-threads", host_threads(of_hosts))
    (FOLDER / "invalidation.csv").write_text(invalidation.table(), encoding="utf-8")
    (FOLDER / "effects.csv").write_text(invalidation.effects_table(), encoding="utf-8")
    write("studies", studies())
    if not recordings.exists():
        return
    with progress("running twins") as shown:
        agreement = validate([recordings], store=DOCS.parent / "out" / "validate" / "units.jsonl", progress=shown).xen
    assert agreement is not None, "recordings of Xen are there"
    write("xen", xen(agreement))
    write("xen-signs", xen_signs(agreement))
    write("xen-summary", xen_summary(agreement, agreement.recordings))
    write("xen-changes", xen_changes(agreement))
    write("xen-worst", xen_worst(agreement))
    write("xen-guests", xen_guests(agreement))
    write("xen-own", xen_own(agreement))
    write("xen-demands", sorted(xen_demands(agreement), key=lambda row: float(str(row["within_percent"]))))
    write("xen-ranks", xen_ranks(agreement))
    write("xen-repeating", xen_repeating(agreement))
    write("xen-causes", xen_causes(agreement))
    write("xen-directions", xen_directions(agreement))
    write("xen-unseen", xen_unseen(agreement))
    write("xen-repeated", xen_repeated(agreement))
    write("xen-boots", xen_boots(agreement))
    write("xen-phases", xen_phases(agreement.recordings))
    write("xen-preemptions", xen_preemptions(agreement.recordings))
    write("xen-floors", xen_floors(agreement.recordings))
    write("xen-recorder", xen_recorder(agreement.recordings))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS)
