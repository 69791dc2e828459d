"""The generated parts of `validation.md` and the README, and the picture: from the files in `docs/evidence`."""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from vcpulab_evidence.validation.report import ANOTHER, NEEDED_OF_HOSTS, OWN
from vcpulab_evidence.validation.xen import BARS, WHAT_IF

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE, PICTURE = DOCS / "validation.md", DOCS / "validation.svg"
HOSTS_PICTURE = DOCS / "validation-hosts.svg"
README = DOCS.parent / "README.md"
LIMITS = DOCS / "concepts" / "modelled.md"

Row = Mapping[str, str]
_BLOCK = re.compile(r"(<!-- generated: (?P<name>[a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def evidence(name: str) -> list[Row]:
    """The rows of a file of evidence."""
    return list(csv.DictReader((DOCS / "evidence" / f"{name}.csv").read_text(encoding="utf-8").splitlines()))


def pages() -> dict[Path, str]:
    """The pages that have such parts, and the picture, as they should be."""
    found = {path: filled(path.read_text(encoding="utf-8"), PARTS) for path in (PAGE, README, LIMITS)}
    return found | {PICTURE: picture(), HOSTS_PICTURE: hosts_picture()}


def filled(page: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """A page with its generated parts as they should be."""
    return _BLOCK.sub(lambda match: f"{match[1]}{parts[match['name']]()}\n{match[3]}", page)


# ---- what there is ----


@dataclass(frozen=True)
class Line:
    """Predictions of one kind, from one kind of evidence."""

    what: str
    evidence: str
    cells: str
    unit: str
    median: float
    most: float
    """What nine in ten do not exceed; of studies, the worst table."""
    bar: str
    reached: str


_METRICS = {
    "share": "shares",
    "switches": "switches",
    "wait_median": "median waits",
    "wait_p90": "90th percentiles of waits",
    "loops": "throughput of request loops",
    "throughput": "throughput of other guests",
}
RATE_LIMITED = "-rate5000"
"""How recordings under a rate limit of 5 ms are called in `real-xen/experiments.toml`."""
_ENDS = 5
"""So many of a long table's first and last rows are shown."""
_LIMITS = {
    ("free run", "share"): "0.5 points",
    ("free run", "switches"): "3 %, 15 %",
    ("free run", "wait_median"): "20 %",
    ("free run", "wait_p90"): "20 %",
    ("what-if", "share"): "1 point",
    ("what-if", "switches"): "6 %, 30 %",
    ("what-if", "wait_median"): "40 %",
    ("what-if", "wait_p90"): "40 %",
}


def lines() -> Iterator[Line]:
    """All kinds of predictions."""
    for row in evidence("linux"):
        what = f"Linux, {row['kind']}: {_METRICS[row['metric']]}"
        of = "recordings of kernels 5.10 to 7.3"
        within = f"{row['within']} of {row['cells']}"
        bar = _LIMITS[row["kind"], row["metric"]]
        yield Line(what, of, row["cells"], row["unit"], float(row["off_median"]), float(row["off_p90"]), bar, within)
    for row in evidence("hosts"):
        if row["cpus"] == "real" and row["kind"] == ANOTHER and row["metric"] in _METRICS:
            yield Line(
                f"Linux, two CPUs: {_METRICS[row['metric']]}",
                "another recording of the setting",
                row["cells"],
                row["unit"],
                float(row["off_median"]),
                float(row["off_p90"]),
                f"noise: {_said(float(row['noise_median']))}, {_said(float(row['noise_p90']))}",
                f"{row['within']} of {row['cells']}, by chance {row['by_chance']}",
            )
    for row in evidence("xen"):
        if row["kind"] == WHAT_IF:
            unit = BARS[row["metric"]].unit
            reached = f"{'yes' if row['passed'] == 'yes' else '**no**'}: {row['within']} %"
            yield Line(
                f"Xen, twins' what-ifs: {_METRICS[row['metric']]}",
                "recordings in other settings",
                row["cells"],
                unit,
                float(row["off_median"]),
                float(row["off_p90"]),
                row["bar"],
                reached,
            )
    for role, words in (("fitted", "fitted"), ("predicted", "seen, not fitted"), ("blind", "blind")):
        rows = [row for row in evidence("studies") if row["role"] == role]
        errors = sorted(float(row["error_median"]) for row in rows)
        yield Line(
            f"Published studies: cells {words}",
            f"{len(rows)} studies",
            str(sum(int(row["cells"]) for row in rows)),
            "%",
            errors[len(errors) // 2],
            max(float(row["error_most"]) for row in rows),
            "none",
            "–",
        )


def overview() -> str:
    """The table that the page opens with."""
    vectors = [row for row in evidence("conformance") if row["kind"] == "vectors"]
    passed, failed = (sum(int(row[key]) for row in vectors) for key in ("passed", "failed"))
    replayed = [row for row in evidence("conformance") if row["kind"] != "vectors"]
    decisions, differing = (sum(int(row[key]) for row in replayed) for key in ("decisions", "differing"))
    signs = next(row for row in evidence("xen-signs") if row["metric"] == "all")
    rows = [
        [
            "Decisions of Xen's schedulers",
            f"{len(vectors)} sets of vectors",
            f"{passed + failed}",
            f"{failed} differ",
            "",
            "none",
            "**no**" if failed else "yes",
        ],
        [
            "Decisions of Linux's schedulers",
            f"{len(replayed)} recordings, replayed",
            f"{decisions:,}",
            f"{100 * differing / decisions:.1f} % differ",
            "",
            "explained",
            "yes" if all(row["failed"] == "0" for row in replayed) else "**no**",
        ],
    ]
    for line in lines():
        unit = " points" if line.unit == "points" else " %"
        worst = f"{_said(line.most)}{unit}" + (" (worst table)" if line.evidence.endswith("studies") else "")
        rows.append(
            [line.what, line.evidence, line.cells, f"{_said(line.median)}{unit}", worst, line.bar, line.reached]
        )
    right, needed = float(signs["right_percent"] or "nan"), 95
    rows.append(
        [
            "Xen, twins' what-ifs: signs of changes",
            "the same",
            signs["beyond_chance"],
            f"{right:g} % right",
            f"{100 * int(signs['undecided']) / int(signs['beyond_chance']):.0f} % left open",
            f"{needed} % of those decided",
            "yes" if right >= needed else "**no**",
        ]
    )
    gains = [(float(row["predicted_gain_percent"]), float(row["real_gain_percent"])) for row in evidence("advice")]
    apart = sorted(abs(predicted - real) for predicted, real in gains)
    same = sum(predicted * real > 0 for predicted, real in gains)
    rows.append(
        [
            "Xen: gains of what `tune` advised",
            "recorded before and after",
            str(len(gains)),
            f"{_said(median(apart))} points of the gain",
            f"{_said(apart[-1])} points (all)",
            "the sign",
            f"{same} of {len(gains)}",
        ]
    )
    return table(["what is predicted", "evidence", "cells", "off: median", "off: 9 in 10", "bar", "reached"], rows)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows])


def _said(value: float) -> str:
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def two_lines() -> str:
    """What the README quotes."""
    vectors = [row for row in evidence("conformance") if row["kind"] == "vectors"]
    passed, failed = (sum(int(row[key]) for row in vectors) for key in ("passed", "failed"))
    by_metric = {row["metric"]: row for row in evidence("xen") if row["kind"] == WHAT_IF}
    signs = next(row for row in evidence("xen-signs") if row["metric"] == "all")
    blind = [row for row in evidence("studies") if row["role"] == "blind"]
    summary = evidence("xen-summary")[0]
    medians, most = (
        "{} points of CPU share, {} % of switches, {} % of median waits".format(
            *(_said(float(by_metric[name][column])) for name in ("share", "switches", "wait_median"))
        )
        for column in ("off_median", "off_p90")
    )
    first = (
        f"Of {passed + failed} sequences of decisions of Xen's schedulers {passed} are reproduced exactly. In settings "
        f"of a real Xen that were never recorded ({summary['what_ifs']} what-ifs), twins are off by {medians} in the "
        f"median, and nine in ten by no more than {most}."
    )
    second = (
        f"They have the sign of {signs['right_percent']} % of the changes that chance does not explain. Of published "
        f"numbers that nobody had seen, tables are off by {_least_to_most(blind)} % in the median of each study, and a "
        "server that collapses under overload does not collapse here."
    )
    return f"* {first}\n* {second}"


def _least_to_most(rows: Sequence[Row]) -> str:
    errors = sorted(float(row["error_median"]) for row in rows)
    return f"{_said(errors[0])} to {_said(errors[-1])}"


def conformance() -> str:
    """The table of vectors."""
    rows = [
        [row["of"], row["passed"], row["failed"], row["decisions"] or "–", row["differing"] or "–"]
        for row in evidence("conformance")
    ]
    return table(["vectors, recording", "passed", "failed", "decisions", "differing"], rows)


def xen() -> str:
    """What-ifs on Xen, beside twins in their own setting, and chance."""
    summary = evidence("xen-summary")[0]
    lead = (
        f"{summary['recordings']} recordings of {summary['kinds_of_guests']} kinds of guests in {summary['settings']} "
        f"settings: {summary['what_ifs']} what-ifs with {summary['predictions']} predictions."
    )
    rows = [
        [
            row["kind"],
            _METRICS[row["metric"]],
            row["cells"],
            row["bar"],
            f"{row['within']} %",
            f"{row['within_by_mean']} %",
            *(row[key] for key in ("off_median", "off_p90", "off_mean", "bias")),
            f"{row['chance_median'] or '–'}, {row['chance_p90'] or '–'}",
            row["chance_from"] or "–",
        ]
        for row in evidence("xen")
    ]
    headings = [
        "predictions",
        "metric",
        "cells",
        "bar",
        "within",
        "by means",
        "median",
        "9 in 10",
        "mean",
        "bias",
        "chance",
        "from",
    ]
    signs = [
        [
            _METRICS.get(row["metric"], "all"),
            *(row[key] for key in ("changes", "beyond_chance", "right", "wrong", "undecided")),
            f"{row['right_percent']} %" if row["right_percent"] else "–",
        ]
        for row in evidence("xen-signs")
    ]
    of_signs = ["metric", "changes", "beyond chance", "right", "wrong", "predicted as none", "right of those decided"]
    return "\n\n".join([lead, table(headings, rows), table(of_signs, signs)])


def changes() -> str:
    """What-ifs in which one thing was changed."""
    found: dict[str, dict[str, Row]] = {}
    for row in evidence("xen-changes"):
        found.setdefault(row["changed"], {})[row["metric"]] = row
    rows = [
        [changed, *(f"{its[m]['off_median']}, {its[m]['off_p90']}" if m in its else "–" for m in _METRICS)]
        for changed, its in found.items()
        if changed
    ]
    units = {metric: "points" if BARS[metric].unit == "points" else "%" for metric in _METRICS}
    return table(["changed", *(f"{name}, {units[metric]}" for metric, name in _METRICS.items())], rows)


def worst() -> str:
    """The what-ifs that are farthest off."""
    rows = [
        [
            row["demands"],
            row["setting"],
            row["changed"],
            f"{row['of']}: {_METRICS[row['metric']]}",
            row["recorded"],
            row["predicted"],
        ]
        for row in evidence("xen-worst")
    ]
    return table(["twin of", "in the setting of", "changed", "what", "recorded", "predicted"], rows)


def guests() -> str:
    """By kind of guests: own setting and what-ifs."""
    kinds: dict[str, dict[str, Row]] = {}
    for row in evidence("xen-guests"):
        kinds.setdefault(row["guests"], {})[row["metric"]] = row
    units = {metric: "points" if BARS[metric].unit == "points" else "%" for metric in _METRICS}
    rows = []
    for kind, its in kinds.items():
        for name, words in (("own", "own"), ("what_if", "what-ifs")):
            cells = [
                f"{its[m][f'{name}_median']}, {its[m][f'{name}_p90']}" if its[m][f"{name}_median"] else "–"
                for m in _METRICS
            ]
            rows.append([kind, words, *cells])
    return table(["guests", "setting", *(f"{name}, {units[m]}" for m, name in _METRICS.items())], rows)


def demands() -> str:
    """The recordings that make the worst and the best twins."""
    rows = [[row["demands"], row["predictions"], f"{row['within_percent']} %"] for row in evidence("xen-demands")]
    shown = rows if len(rows) <= 2 * _ENDS else [*rows[:_ENDS], ["…", "", ""], *rows[-_ENDS:]]
    return table(["twin of", "predictions", "within their limits"], shown)


def held_back() -> str:
    """Twins of recordings under a long rate limit, and all others."""
    rows = evidence("xen-demands")
    groups = {
        "under a rate limit of 5 ms": [row for row in rows if RATE_LIMITED in row["demands"]],
        "all others": [row for row in rows if RATE_LIMITED not in row["demands"]],
    }
    shown = []
    for name, those in groups.items():
        predictions = sum(int(row["predictions"]) for row in those)
        within = sum(float(row["within_percent"]) * int(row["predictions"]) for row in those) / max(predictions, 1)
        shown.append([name, str(len(those)), str(predictions), f"{within:.0f} %"])
    return table(["twins of recordings", "recordings", "predictions", "within their limits"], shown)


def two_pcpus() -> str:
    """Median waits on two pCPUs, pinned and not."""
    found = {
        name: {row["of"]: row for row in evidence("xen-own") if row["recording"].endswith(f"-two-{name}")}
        for name in ("default", "pin")
    }
    rows = [
        [of, *(found[name][of][key] for name in ("default", "pin") for key in ("recorded", "predicted"))]
        for of in found["default"]
        if of in found["pin"]
    ]
    headings = ["median wait of, µs", "free: recorded", "free: predicted", "pinned: recorded", "pinned: predicted"]
    return table(headings, rows)


def floors() -> str:
    """The shortest waits by scheduler."""
    rows = [[row["scheduler"], row["recordings"], row["shortest_wait_us"]] for row in evidence("xen-floors")]
    return table(["scheduler", "recordings", "shortest wait, µs"], rows)


def recorder() -> str:
    """How often Dom0 wakes by a timer of its own, by guests, under either scheduler."""
    found: dict[str, dict[str, Row]] = {}
    for row in evidence("xen-recorder"):
        found.setdefault(row["guests"], {})[row["scheduler"]] = row
    both = {guests: (of["credit"], of["credit2"]) for guests, of in found.items() if len(of) > 1}
    rows = [
        [guests, *(row[key] for row in those for key in ("cpu_us", "every_ms", "share_percent"))]
        for guests, those in both.items()
    ]
    headings = [f"{scheduler}: {what}" for scheduler in ("Credit", "Credit2") for what in ("µs", "every, ms", "%")]
    return table(["guests", *headings], rows)


def ranks() -> str:
    """How far off waits are, in how many of 100 recorded ones."""
    rows = [
        [
            f"{_METRICS[row['metric']]}{'' if row['guests'] == 'all' else ', ' + row['guests']}",
            row["cells"],
            *(row[key] for key in ("rank_median", "rank_p90", "beyond")),
            *(_part(row[f"beyond_within_{most}"], row["beyond"]) for most in (5, 10)),
        ]
        for row in evidence("xen-ranks")
    ]
    headings = ["what", "cells", "waits between: median", "9 in 10", "beyond the bar", "of those ≤ 5 of 100", "≤ 10"]
    return table(headings, rows)


def _part(some: str, of: str) -> str:
    return f"{100 * int(some) / int(of):.0f} %" if int(of) else "–"


def preemptions() -> str:
    """What each preemption costs guests: by their own counts, and as twins are told."""
    rows = [
        [
            *(row[key] for key in ("scheduler", "guest", "recordings", "counted_us", "twins")),
            f"{row['told_us']} ({row['told_least_us']} to {row['told_most_us']})",
        ]
        for row in evidence("xen-preemptions")
    ]
    headings = [
        "scheduler",
        "guest",
        "recordings",
        "by its own counts, µs",
        "twins that say it",
        "they say, µs: median",
    ]
    return table(headings, rows)


def _within(row: Row) -> Iterator[str]:
    """By metric, which part is within its limits; a dash where there is none."""
    return (f"{row[metric]} %" if row[metric] else "–" for metric in _METRICS)


def repeating() -> str:
    """What-ifs by whether twins repeat themselves, and within a boot or not."""
    words = {"True": ("repeats its own recording", "the same boot"), "False": ("does not", "another boot")}
    rows = [
        [
            words[row["repeats"]][0],
            words[row["same_boot"]][1],
            row["twins"],
            row["cells"],
            *_within(row),
        ]
        for row in evidence("xen-repeating")
    ]
    return table(["a twin that", "in settings of", "twins", "cells", *_METRICS.values()], rows)


def causes() -> str:
    """What-ifs as those are left out of which a cause is known, one cause after another."""
    rows = [
        [
            f"and without: {row['without']}" if row["without"] else "all",
            row["cells"],
            *_within(row),
        ]
        for row in evidence("xen-causes")
    ]
    return table(["what-ifs", "cells", *_METRICS.values()], rows)


def directions() -> str:
    """What-ifs by what is changed: the setting in the same boot, the boot, the scheduler."""
    rows = [
        [
            row["guests"],
            row["from"] if row["from"] == row["to"] else f"{row['from']} → {row['to']}",
            row["boot"],
            row["cells"],
            *_within(row),
        ]
        for row in evidence("xen-directions")
    ]
    return table(["guests", "scheduler", "boot", "cells", *_METRICS.values()], rows)


def unseen() -> str:
    """What-ifs held against recordings that were first looked at late, or last."""
    words = {"unseen": "recorded last", "after": "looked at when most was done", "others": "looked at before"}
    rows = [
        [
            words[row["held_against"]],
            row["guests"],
            row["recordings"],
            row["cells"],
            *_within(row),
        ]
        for row in evidence("xen-unseen")
    ]
    return table(["held against recordings", "of guests", "recordings", "cells", *_METRICS.values()], rows)


def repeated() -> str:
    """How near to one another recordings of one setting are, of different boots, and how near twins come."""
    parts = ("again", "own", "what_if")
    found = {(row["guests"], row["metric"]): row for row in evidence("xen-repeated")}
    rows = []
    for guests in dict.fromkeys(guests for guests, _ in found):
        of = {metric: found.get((guests, metric)) for metric in _METRICS}
        cells = (
            " / ".join(row[f"{part}_within_percent"] for part in parts) + " %" if row else "–" for row in of.values()
        )
        rows.append([guests, *cells])
    return table(["guests: recorded again / own setting / what-ifs", *_METRICS.values()], rows)


def boots() -> str:
    """Median waits foretold within a boot and from others, and what the other boot's ticks make of them."""
    rows = [
        [
            f"{row['guests']}, {row['of']}",
            *(f"{row[f'{which}_within_percent']} % of {row[f'{which}_cells']}" for which in ("same", "other")),
        ]
        for row in evidence("xen-boots")
    ]
    phases = [
        [
            f"{row['guests']}: {_METRICS[row['metric']]}",
            row["cells"],
            *(
                f"{row[f'{ticks}_within_percent']} %, {row[f'{ticks}_off']}"
                for ticks in ("drawn_ticks", "the_other_ticks")
            ),
        ]
        for row in evidence("xen-phases")
    ]
    headings = ["Credit ↔ Credit2", "cells", "within the limit, median error", "the same with the other boot's ticks"]
    within = table(["median waits of", "within the bar: twins of the same boot", "of other boots"], rows)
    return f"{within}\n\n{table(headings, phases)}"


def studies() -> str:
    """Errors of published studies by role."""
    names = {"fitted": "fitted", "predicted": "seen, not fitted", "blind": "blind"}
    rows = [
        [
            f"`{row['study']}`",
            names[row["role"]],
            row["cells"],
            row["tables"],
            row["error_median"],
            f"{row['error_least']} to {row['error_most']}",
        ]
        for row in evidence("studies")
    ]
    return table(["study", "cells are", "cells", "tables", "error of a table, %: median", "least to most"], rows)


def invalidation() -> str:
    """Cases that break twins."""
    rows = [
        [
            f"[{row['case']}](../scenarios/invalidation/{row['case']}.toml)",
            row["left_out"],
            row["change"],
            row["metric"],
            *(row[key] for key in ("before", "after", "predicted")),
            f"{row['change_percent']} %",
            f"{row['predicted_percent']} %",
            f"{row['off_percent']} %",
        ]
        for row in evidence("invalidation")
    ]
    headings = ["case", "left out", "change", "metric", "before", "after", "predicted", "change", "predicted", "off by"]
    return table(headings, rows)


def advice() -> str:
    """Predicted and real gains of advice."""
    rows = [
        [
            f"{row['direction']} `{row['metric']}`, `{row['recording']}`",
            row["set"].replace("domain.", "").replace("host.", ""),
            *(f"{float(row[f'{of}_before']):.4g} → {float(row[f'{of}_after']):.4g}" for of in ("predicted", "real")),
            row["unit"],
            f"{float(row['real_before_again']):.4g}",
            f"{float(row['predicted_gain_percent']):+.1f} ± {float(row['predicted_half_width_percent']):.1f} %",
            f"{float(row['real_gain_percent']):+.1f} %",
        ]
        for row in evidence("advice")
    ]
    headings = [
        "goal, recording",
        "advised",
        "predicted",
        "real",
        "unit",
        "first setting again",
        "gain predicted",
        "real",
    ]
    return table(headings, rows)


_OF_HOSTS = {
    "share": "shares",
    "switches": "switches",
    "migrations": "migrations",
    "on_main_cpu": "time on the main CPU",
    "beside": "threads on the same CPU",
    "wait_median": "median waits",
    "wait_p90": "90th percentiles of waits",
}


def hosts() -> str:
    """Errors of predictions of hosts with several CPUs, beside the noise of their recordings."""
    kinds = {OWN: "its own", ANOTHER: "the other recording"}
    rows = [
        [
            {"real": "two CPUs", "emulated": "two and four, emulated"}[row["cpus"]],
            kinds[row["kind"]],
            f"{_OF_HOSTS[row['metric']]}, {row['unit']}",
            row["cells"],
            *(f"{_said(float(row[f'{of}_median']))}, {_said(float(row[f'{of}_p90']))}" for of in ("off", "noise")),
            row["within"],
            row["by_chance"],
            "yes" if _reached(row) else "**no**",
        ]
        for row in evidence("hosts")
    ]
    headings = [
        "CPUs",
        "demands of",
        "metric, unit of the error",
        "cells",
        "error: median, 9 in 10",
        "noise: median, 9 in 10",
        "within the noise",
        "explained by chance",
        f"{100 * NEEDED_OF_HOSTS:g} % of both",
    ]
    return table(headings, rows)


def _reached(row: Row) -> bool:
    """Whether enough predictions of hosts are within the noise, or explained by chance."""
    return int(row["within"]) + int(row["by_chance"]) >= NEEDED_OF_HOSTS * int(row["cells"])


def host_threads() -> str:
    """Recorded and predicted values of each thread on two CPUs."""
    shown = ("share", "switches", "migrations", "beside")
    threads: dict[tuple[str, str], dict[str, Row]] = {}
    for row in evidence("host-threads"):
        threads.setdefault((row["setting"], row["of"]), {})[row["metric"]] = row
    rows = []
    for (setting, thread), metrics in threads.items():
        cells = []
        for metric in shown:
            values = metrics.get(metric)
            both = ("recorded", "predicted")
            cells += ["–", "–"] if values is None else [f"{values[f'{of}_1']}, {values[f'{of}_2']}" for of in both]
        rows.append([setting, thread, *cells])
    names = {"share": "share, %", "switches": "switches/s", "migrations": "migrations/s", "beside": "threads beside"}
    headings = [f"{names[metric]}: {of}" for metric in shown for of in ("recorded", "predicted")]
    return table(["setting", "thread", *headings], rows)


def limits() -> str:
    """What leaving out costs, for the page on what is modelled."""
    rows = [
        [row["left_out"], row["change"], row["metric"], f"{row['off_percent']} %"] for row in evidence("invalidation")
    ]
    return table(["left out by a twin", "change of setting", "what is predicted", "off by"], rows)


def effects() -> str:
    """What is not modelled at all, measured."""
    rows = [
        [row["left_out"], row["measured"], row["here"], row["really"], f"{row['off_percent']} %"]
        for row in evidence("effects")
    ]
    return table(["not modelled", "measured", "as modelled", "as it is, or at most could be", "off by"], rows)


PARTS = {
    "overview": overview,
    "two-lines": two_lines,
    "conformance": conformance,
    "xen": xen,
    "changes": changes,
    "worst": worst,
    "guests": guests,
    "demands": demands,
    "held-back": held_back,
    "two-pcpus": two_pcpus,
    "floors": floors,
    "recorder": recorder,
    "ranks": ranks,
    "boots": boots,
    "repeating": repeating,
    "causes": causes,
    "directions": directions,
    "unseen": unseen,
    "repeated": repeated,
    "preemptions": preemptions,
    "studies": studies,
    "invalidation": invalidation,
    "advice": advice,
    "hosts": hosts,
    "host-threads": host_threads,
    "limits": limits,
    "effects": effects,
}

# ---- the picture ----

_WIDTH, _LEFT, _ROW, _TOP = 860, 330, 22, 46
_LEAST, _MOST = 0.01, 10_000.0
_COLOURS = {"Linux": "#0072B2", "Xen": "#D55E00", "Publ": "#009E73"}


def picture() -> str:
    """Each kind of predictions: the median error, and what nine in ten do not exceed, on a logarithmic axis."""
    those = list(lines())
    height = _TOP + _ROW * len(those) + 40

    def x(value: float) -> float:
        clipped = min(max(value, _LEAST), _MOST)
        part = math.log10(clipped / _LEAST) / math.log10(_MOST / _LEAST)
        return round(_LEFT + part * (_WIDTH - _LEFT - 24), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>How far off predictions are, by kind</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        '<text x="12" y="20" font-weight="bold">How far off: median (dot), and nine in ten (end of the line); '
        "of studies the worst table</text>",
    ]
    bottom = _TOP + _ROW * len(those)
    for power in range(-2, 5):
        at = x(10.0**power)
        label = f"{10.0**power:g}"
        parts.append(f'<line x1="{at}" y1="{_TOP - 8}" x2="{at}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle" fill="#555">{label}</text>')
    parts.append(
        f'<text x="{_LEFT}" y="{bottom + 33}" fill="#555">% of what was recorded; of shares points of a pCPU</text>'
    )
    for number, line in enumerate(those):
        y = _TOP + _ROW * number + 6
        colour = next(colour for begin, colour in _COLOURS.items() if line.what.startswith(begin))
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{line.what.replace("&", "&amp;")}</text>')
        ends = x(line.median), x(line.most)
        parts.append(f'<line x1="{ends[0]}" y1="{y}" x2="{ends[1]}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<circle cx="{ends[0]}" cy="{y}" r="5" fill="{colour}"/>')
        parts.append(
            f'<line x1="{ends[1]}" y1="{y - 5}" x2="{ends[1]}" y2="{y + 5}" stroke="{colour}" stroke-width="3"/>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


_HOSTS_LEFT, _HOSTS_ROW = 120, 18


def hosts_picture() -> str:
    """The share of each thread on two CPUs: recorded twice, and the range of predictions."""
    rows = [row for row in evidence("host-threads") if row["metric"] == "share"]
    bottom = _TOP + _HOSTS_ROW * len(rows)
    scale = (_WIDTH - _HOSTS_LEFT - 24) / 100

    def x(value: str) -> float:
        return round(_HOSTS_LEFT + scale * float(value), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 40}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Shares of threads on two CPUs, recorded twice and predicted</title>",
        f'<rect width="{_WIDTH}" height="{bottom + 40}" fill="white"/>',
        '<text x="12" y="20" font-weight="bold">Shares on two CPUs: recorded twice (dots), and predicted (median of '
        "each twin: bars; range of all runs: line)</text>",
    ]
    for percent in range(0, 101, 10):
        at = x(str(percent))
        parts.append(f'<line x1="{at}" y1="{_TOP - 8}" x2="{at}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle" fill="#555">{percent}</text>')
    parts.append(f'<text x="{_HOSTS_LEFT}" y="{bottom + 33}" fill="#555">% of a CPU</text>')
    for number, row in enumerate(rows):
        y = _TOP + _HOSTS_ROW * number + 6
        label = f"{row['setting']}: {row['of']}"
        parts.append(f'<text x="{_HOSTS_LEFT - 10}" y="{y + 4}" text-anchor="end">{label}</text>')
        colour, low, high = _COLOURS["Xen"], x(row["low"]), x(row["high"])
        parts.append(f'<line x1="{low}" y1="{y}" x2="{high}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        for run in (1, 2):
            at = x(row[f"predicted_{run}"])
            parts.append(f'<line x1="{at}" y1="{y - 6}" x2="{at}" y2="{y + 6}" stroke="{colour}" stroke-width="3"/>')
        parts += [
            f'<circle cx="{x(row[f"recorded_{run}"])}" cy="{y}" r="4" fill="{_COLOURS["Linux"]}"/>' for run in (1, 2)
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
