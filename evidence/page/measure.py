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
from vcpulab_evidence.validation import Report, validate
from vcpulab_evidence.validation.xen import BARS, OWN, WHAT_IF, Agreement, Held, Verdict, quantile
from vcpulab_evidence.validation.xen.chance import OF_POINTS
from vcpulab_evidence.validation.xen.recording import PARTS, Recorded
from vcpulab_evidence.validation.xen.recording import read as _read
from vcpulab_evidence.validation.xen.settings import Setting
from vcpulab_evidence.validation.xen.twin_runs import Unit

DOCS = Path(__file__).resolve().parents[2] / "docs"
FOLDER = DOCS / "evidence"
RECORDINGS = DOCS.parent / "evidence" / "recordings" / "xen"
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


def xen(found: Agreement) -> Iterator[Row]:
    """By kind and metric: errors of the predictions of Xen, and what chance gives."""
    for verdict in found.verdicts:
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


def xen_signs(found: Agreement) -> Iterator[Row]:
    """Signs of changes."""
    for one in found.signs:
        counts = {"changes": one.changes, "beyond_chance": one.recorded, "right": one.right, "wrong": one.wrong}
        right = "" if one.part_right is None else f"{100 * one.part_right:.1f}"
        yield {"metric": one.metric} | counts | {"undecided": one.undecided, "right_percent": right}


def xen_summary(found: Agreement, folders: Sequence[Path]) -> Iterator[Row]:
    """How much was compared."""
    whats = found.cells_of(WHAT_IF)
    recordings = [read(folder) for folder in folders]
    yield {
        "recordings": len(found.recordings),
        "kinds_of_guests": len({one.guests for one in recordings}),
        "settings": len({(one.guests, one.setting.key) for one in recordings}),
        "what_ifs": len({(cell.demands, cell.setting) for cell in whats}),
        "predictions": len(whats),
    }


def xen_changes(found: Agreement) -> Iterator[Row]:
    """By what was changed, where it is one thing."""
    for changed, metric, verdict in found.by_change:
        if " + " not in changed:
            errors = {"off_median": _said(verdict.off_median), "off_p90": _said(verdict.off_p90)}
            bias = {"bias": _said(verdict.bias), "by_chance": verdict.by_chance}
            yield {"changed": changed, "metric": metric, "cells": verdict.cells} | errors | bias


def xen_worst(found: Agreement) -> Iterator[Row]:
    """The what-ifs that are farthest off; of each domain's metric in a setting one."""
    seen: set[tuple[str, ...]] = set()
    for cell in found.worst(len(found.cells)):
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


def xen_guests(found: Agreement) -> Iterator[Row]:
    """By kind of guests and metric: twins in their own setting, and in others."""
    for guests in dict.fromkeys(cell.guests for cell in found.cells):
        for metric in BARS:
            row: dict[str, object] = {"guests": guests, "metric": metric}
            for kind, name in ((OWN, "own"), (WHAT_IF, "what_if")):
                cells = [cell for cell in found.cells_of(kind, metric) if cell.guests == guests]
                off = sorted(abs(cell.off) for cell in cells)
                row |= {f"{name}_cells": len(off), f"{name}_median": "", f"{name}_p90": ""}
                if off:
                    row |= {f"{name}_median": _said(median(off)), f"{name}_p90": _said(quantile(off, 0.9))}
            yield row


def xen_own(found: Agreement) -> Iterator[Row]:
    """Median waits in each recording, and of its own twin in its own setting."""
    for cell in found.cells_of(OWN, "wait_median"):
        if cell.demands == cell.setting:
            values = {"recorded": _said(cell.recorded), "predicted": _said(cell.predicted)}
            yield {"recording": cell.setting, "of": cell.thing} | values


def xen_demands(found: Agreement) -> Iterator[Row]:
    """By the recording that twins were made of: which part of all its what-ifs is within the widest limits."""
    for demands in dict.fromkeys(cell.demands for cell in found.cells_of(WHAT_IF)):
        cells = [cell for cell in found.cells_of(WHAT_IF) if cell.demands == demands]
        within = sum(cell.excess <= 1 for cell in cells)
        yield {"demands": demands, "predictions": len(cells), "within_percent": f"{100 * within / len(cells):.1f}"}


def xen_ranks(found: Agreement) -> Iterator[Row]:
    """By metric of waits, and kind of guests: how many of 100 recorded waits lie between recorded and predicted."""
    kinds = dict.fromkeys(cell.guests for cell in found.cells)
    for metric in PARTS:
        for guests in ("all", *kinds):
            cells = [cell for cell in found.cells_of(WHAT_IF, metric) if guests in ("all", cell.guests)]
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
    those = [one for one in map(read, folders) if one.kind == "mixed"]
    for scheduler in dict.fromkeys(one.setting.scheduler for one in those):
        its = [one for one in those if one.setting.scheduler == scheduler]
        told = sorted(one.resume_ns / 1e3 for one in its if one.resume_ns)
        for name in ("hogA", "hogB"):
            of = [_vcpu(one, name) for one in its]
            done = [one.work_rate[name] * one.span_ns / 1e9 for one in its]
            work = np.array([(count, vcpu["preempted"]) for count, vcpu in zip(done, of, strict=True)])
            _, each_ns = np.linalg.lstsq(work, np.array([vcpu["running_ns"] for vcpu in of]), rcond=None)[0]
            row: dict[str, object] = {"scheduler": scheduler, "guest": name, "recordings": len(its)}
            row |= {"counted_us": _said(float(each_ns) / 1e3), "twins": len(told), "told_us": _said(median(told))}
            yield row | {"told_least_us": _said(told[0]), "told_most_us": _said(told[-1])}


def _vcpu(recorded: Recorded, name: str) -> Mapping[str, int]:
    """What the summary says of the vCPU of a domain that has one."""
    found: Mapping[str, int] = next(
        vcpu for vcpu in recorded.whole.summary["vcpus"] if recorded.twin.sources.name(vcpu["domain"]) == name
    )
    return found


def xen_repeating(found: Agreement) -> Iterator[Row]:
    """Parts within the widest limits, by whether a twin repeats its own recording, and the setting is of the same boot.

    It does where its shares and switches in its own setting are within the limits: that needs no other recording.
    """
    failing = _failing(found)
    for repeats in (True, False):
        for same in (True, False):
            cells = [
                cell
                for cell in found.cells_of(WHAT_IF)
                if (cell.demands not in failing) == repeats and (_boot(cell.demands) == _boot(cell.setting)) == same
            ]
            row: dict[str, object] = {"repeats": repeats, "same_boot": same}
            row |= {"twins": len({cell.demands for cell in cells}), "cells": len(cells)}
            yield row | _within_limits(cells)


def _failing(found: Agreement) -> set[str]:
    """The recordings that their own twins do not repeat."""
    own = [
        cell for cell in found.cells_of(OWN) if cell.demands == cell.setting and cell.metric in ("share", "switches")
    ]
    return {cell.demands for cell in own if cell.excess > 1}


_SEVERAL_PCPUS = {"two", "wide", "four", "pool", "tworequests"}
"""Kinds of guests that were recorded on more than one pCPU."""


def xen_causes(found: Agreement) -> Iterator[Row]:
    """Parts within the widest limits as what-ifs are left out of which a cause is known, one cause after another.

    Which those are, recordings and their settings say, and no result of a what-if.
    """
    failing = _failing(found)
    causes: dict[str, Callable[[Held], bool]] = {
        "recorded under a rate limit of 5 ms": lambda cell: RATE_LIMITED in cell.demands,
        "bursts that Dom0 may interrupt": lambda cell: (
            cell.guests == "receive" and "-rate100" in cell.demands + cell.setting
        ),
        "several pCPUs": lambda cell: cell.guests in _SEVERAL_PCPUS,
        "other boots": lambda cell: _boot(cell.demands) != _boot(cell.setting),
        "twins that do not repeat their own recording": lambda cell: cell.demands in failing,
    }
    left = found.cells_of(WHAT_IF)
    yield {"without": "", "cells": len(left)} | _within_limits(left)
    for cause, is_of_it in causes.items():
        left = [cell for cell in left if not is_of_it(cell)]
        yield {"without": cause, "cells": len(left)} | _within_limits(left)


def xen_directions(found: Agreement) -> Iterator[Row]:
    """Parts within the widest limits, by kind of guests, and by what is changed: setting, boot, scheduler."""
    by: dict[tuple[str, str, str, str], list[Held]] = {}
    for cell in found.cells_of(WHAT_IF):
        demanded, held = _boot(cell.demands), _boot(cell.setting)
        boot = "same" if demanded == held else "another"
        # Of different releases there are too few pairs.
        if demanded[0] == held[0]:
            by.setdefault((cell.guests, demanded[1], held[1], boot), []).append(cell)
    for (guests, before, after, boot), cells in sorted(by.items()):
        row: dict[str, object] = {"guests": guests, "from": before, "to": after, "boot": boot}
        yield row | {"cells": len(cells)} | _within_limits(cells)


def xen_repeated(found: Agreement) -> Iterator[Row]:
    """By kind and metric: how often a recording of the same setting in another boot is within the limits.

    That is what a prediction can come to that knows everything but what chance decides as a host boots. Beside it, held
    against the same limits without forgiving what chance explains: twins in their own setting, and what-ifs.
    """
    of_kind: dict[tuple[str, str], dict[str, list[bool]]] = {}
    again = {cell.setting for cell in found.cells_of(OWN) if _boot(cell.demands) != _boot(cell.setting)}
    for cell in found.cells:
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
    for (guests, metric), counts in sorted(of_kind.items(), key=lambda one: (one[0][0] != "all", one[0])):
        row: dict[str, object] = {"guests": guests, "metric": metric, "pairs": len(counts["again"])}
        yield row | {f"{name}_within_percent": _percent(counts.get(name, ())) for name in ("again", "own", "what_if")}


_UNSEEN = re.compile(r"credit2?-asks-.*-3$")
"""Recordings that were made last, and first looked at when twins were what they are."""
_AFTER = re.compile(r"credit2?-(requests|receive|mixed)-.*-3$|credit2?-(disk|two)-.*-2$|credit2?-(asks|tworequests)-.*")
"""Of the others: those that were first looked at when most of twins was what it is."""
_WHICH = {"unseen": _UNSEEN, "after": _AFTER}


def xen_unseen(found: Agreement) -> Iterator[Row]:
    """Parts within the widest limits of what-ifs held against recordings nobody had looked at, by kind; and others."""
    held: dict[tuple[str, str], list[Held]] = {}
    for cell in found.cells_of(WHAT_IF):
        which = next((name for name, those in _WHICH.items() if those.search(cell.setting)), "others")
        held.setdefault((which, cell.guests), []).append(cell)
        held.setdefault((which, "all"), []).append(cell)
    order = [*_WHICH, "others"]
    for which, guests in sorted(held, key=lambda one: (order.index(one[0]), one[1] != "all", one)):
        cells = held[which, guests]
        if which != "others" or guests == "all":
            recordings = len({cell.setting for cell in cells})
            row = {"held_against": which, "guests": guests, "cells": len(cells), "recordings": recordings}
            yield row | _within_limits(cells)


def _within_limits(cells: Sequence[Held]) -> dict[str, str]:
    """By metric, the part within the widest limit, %; nothing where there are none."""
    by_metric = {metric: [cell.excess <= 1 for cell in cells if cell.metric == metric] for metric in BARS}
    return {metric: _percent(within, BARS[metric].needed[-1][1]) for metric, within in by_metric.items()}


def _percent(within: Sequence[bool], least: float = inf) -> str:
    """How many are, %, beside the fraction that must be, if any; nothing where there are none."""
    return _part(100 * sum(within) / len(within), least) if within else ""


def xen_boots(found: Agreement) -> Iterator[Row]:
    """Median waits of Dom0 and of the guests, by kind: of twins of the same boot, and of others."""
    for kind in ("mixed", "weights", "requests"):
        for of in ("dom0", "guests"):
            row: dict[str, object] = {"guests": kind, "of": of}
            for same, name in ((True, "same"), (False, "other")):
                cells = [
                    cell
                    for cell in found.cells_of(WHAT_IF, "wait_median")
                    if cell.guests == kind
                    and (cell.thing == "dom0") == (of == "dom0")
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
        those = [one for one in map(read, folders) if one.kind == kind and not _boot(one.name)[-1]]
        pairs = [(a, b) for a, b in permutations(those, 2) if _boot(a.name) != _boot(b.name) and _named(a) == _named(b)]
        off: dict[str, list[tuple[float, float]]] = {}
        for demands, there in pairs:
            setting = there.setting
            with_its_boot = _Elsewhere(
                setting.host, setting.domains, setting.pools, there.twin.scenario.to_dict()["domain"]
            )
            units = [
                Unit(demands, one).measure(lambda _: True) for one in (there, replace(there, setting=with_its_boot))
            ]
            for (of, metric), recorded in there.values.items():
                name = f"{of} {metric}"
                if recorded and all(name in one for unit in units for one in unit):
                    scale = 1.0 if metric in OF_POINTS else 100 / recorded
                    drawn, its = (abs(scale * (median(one[name] for one in unit) - recorded)) for unit in units)
                    off.setdefault(metric, []).append((drawn, its))
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
        one = read(folder)
        floors.setdefault(one.setting.scheduler, []).append(shortest_wait_ns(one.whole.summary) / 1e3)
    for scheduler, times in sorted(floors.items()):
        yield {"scheduler": scheduler, "recordings": len(times), "shortest_wait_us": _said(median(times))}


def xen_recorder(folders: Sequence[Path]) -> Iterator[Row]:
    """By guests and scheduler: how often Dom0 wakes by a timer of its own, and for how long, in the median of twins."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in map(read, folders):
        for app in one.twin.scenario.domains["dom0"].apps:
            events = [event for phase in app.phases for event in phase.events]
            if any(event.await_ for event in events) or not any(event.sleep for event in events):
                continue
            ran = sum(event.run.ns for event in events if isinstance(event.run, Duration))
            slept = sum(event.sleep.ns for event in events if isinstance(event.sleep, Duration))
            times = len(app.phases)
            each = ran / times / 1e3, (ran + slept) / times / 1e6
            found.setdefault((one.kind, one.setting.scheduler), []).append(each)
    for (kind, scheduler), those in sorted(found.items()):
        run_us, every_ms = (median(values) for values in zip(*those, strict=True))
        row: dict[str, object] = {"guests": kind, "scheduler": scheduler, "twins": len(those)}
        share = median(run / every / 10 for run, every in those)
        yield row | {"cpu_us": f"{run_us:.0f}", "every_ms": f"{every_ms:.0f}", "share_percent": f"{share:.2f}"}


# ---- published studies ----


def studies() -> Iterator[Row]:
    """By study and role: cells, and the errors of tables."""
    for name in NAMES:
        found: dict[str, list[tuple[int, float]]] = {"fitted": [], "predicted": [], "blind": []}
        section = OVERVIEW.read_text(encoding="utf-8").partition(f"(`{name}`)")[2].partition("\n## ")[0]
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            # A row of the table of scores: what, role, cells, tau, error, intervals.
            if len(cells) >= 5 and cells[1] in found and cells[2].isdecimal() and cells[4] != "–":
                found[cells[1]].append((int(cells[2]), float(cells[4])))
        for score in scores(predictions(study(name), Results({}))):
            if score.role == "blind" and score.mape is not None:
                found["blind"].append((score.cells, score.mape))
        for role, tables in found.items():
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
    (FOLDER / "invalidation.csv").write_text(invalidation.table(), encoding="utf-8")
    (FOLDER / "effects.csv").write_text(invalidation.effects_table(), encoding="utf-8")
    write("studies", studies())
    if not recordings.exists():
        return
    with progress("running twins") as shown:
        found = validate([recordings], store=DOCS.parent / "out" / "validate" / "units.jsonl", progress=shown).xen
    assert found is not None, "recordings of Xen are there"
    write("xen", xen(found))
    write("xen-signs", xen_signs(found))
    write("xen-summary", xen_summary(found, found.recordings))
    write("xen-changes", xen_changes(found))
    write("xen-worst", xen_worst(found))
    write("xen-guests", xen_guests(found))
    write("xen-own", xen_own(found))
    write("xen-demands", sorted(xen_demands(found), key=lambda row: float(str(row["within_percent"]))))
    write("xen-ranks", xen_ranks(found))
    write("xen-repeating", xen_repeating(found))
    write("xen-causes", xen_causes(found))
    write("xen-directions", xen_directions(found))
    write("xen-unseen", xen_unseen(found))
    write("xen-repeated", xen_repeated(found))
    write("xen-boots", xen_boots(found))
    write("xen-phases", xen_phases(found.recordings))
    write("xen-preemptions", xen_preemptions(found.recordings))
    write("xen-floors", xen_floors(found.recordings))
    write("xen-recorder", xen_recorder(found.recordings))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDINGS)
