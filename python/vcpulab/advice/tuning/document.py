"""The document of a search: the advice with its commands, the search's goals and limits, and the effects of the advice.

A page also has charts of the settings tried, of the front and of the importance of parameters.
"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from vcpulab.advice import in_short as short
from vcpulab.advice import starvation
from vcpulab.advice.comparison_document import differences, verdict
from vcpulab.advice.shared_parts import caution_part, commands
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.confirming import Confirmation
from vcpulab.advice.tuning.widening import held
from vcpulab.hypervisors import Toolstack
from vcpulab.results.addresses import in_short
from vcpulab.show.document import BLANK, Block, Chart, Heading, Lines, Part, Version
from vcpulab.show.folded import View
from vcpulab.show.table import Table

if TYPE_CHECKING:
    from vcpulab.advice.tuning.answer import Tuning


def document(answer: "Tuning", toolstack: Toolstack | None, *, full: bool) -> Iterator[Part]:
    """The document of a search; see `Tuning.document`."""
    search, confirmed = answer.result, answer.confirmed
    yield Part.always(Lines([f"{answer.space.scenario.name}: {answer.headline}"]), *([] if answer.advised else [BLANK]))
    if confirmed is not None and confirmed.starved:
        starved = starvation.in_a_line(confirmed.starved, "the setting found is not advised, for it starves")
        yield Part.always(Lines([starved]))
    if answer.advised:
        steps = answer.commands(toolstack)
        typed = commands(steps, headed=True)
        if not steps:
            typed = [[Lines([f"No command of the toolstack sets {', '.join(search.best.changes)}.", ""])]]
        yield Part.always(Heading("To set it on a real host"))
        yield Part.items(typed, "command", rounds=(1,))
        yield Part.always(Lines(["", answer.verdict, ""]))
    size = answer.space.size
    tried = f"{len(search.candidates)} of {size if size < 10**6 else f'{size:.1g}'} settings"
    lines = [
        f"wanted: {'; '.join([*map(str, answer.search.goals), *in_short(answer.search.slos)])}",
        f"held fixed: {'; '.join(held(answer.space)) or 'nothing'}",
        f"tried: {tried}, {100 * answer.saved():.0f} % of their replications saved",
        *answer.reasons(),
    ]
    yield Part.lines(lines, "line on the search", rank=1)
    yield Part.always(BLANK)
    if len(answer.offers) > 1:
        yield Part.rows(answer.offered(), "setting to choose from", rank=2)
    if full or answer.interrupted:
        yield from _parameters(answer, full=full)
    # The effects of a setting that is not advised are of no use.
    if confirmed is not None and (full or answer.advised):
        yield from _confirmed(confirmed, full=full)
    yield caution_part(answer.space.scenario)
    yield Part(lambda *_: Version(), page=_charts(answer))


def _parameters(answer: "Tuning", *, full: bool) -> Iterator[Part]:
    search = answer.result
    rows = [
        [key, before, after, str(search.costs.get(key, "–")), _share(search.importance.get(key))]
        for key, before, after in answer.changed()
    ]
    if rows:
        headings = ["parameter", "now", "found", "changing it back\ncosts of the score", "importance\nin the search"]
        title = "Parameters that the best setting changes"
        yield Part.rows(Table(title, headings, rows, text_columns=3), "parameter")
    if not full and not answer.kept:
        return
    unchanged = [
        [key, _share(share)] for key, share in search.importance.items() if key not in {row[0] for row in rows}
    ]
    if unchanged:
        title = "Parameters that stay as they are"
        yield Part.rows(Table(title, ["parameter", "importance in the search"], unchanged), "parameter", rank=3)
    if len(search.policies) > 1:
        ranked = sorted(search.policies.items(), key=lambda item: search.standings[item[1].number].order, reverse=True)
        policies = [[name, f"{search.standings[c.number].score:+.3f}", _verbal(answer, c)] for name, c in ranked]
        headings = ["scheduler", "score in the search", "SLOs"]
        yield Part.rows(Table("The best under each scheduler", headings, policies), "scheduler", rank=3)


def _confirmed(confirmed: Confirmation, *, full: bool) -> Iterator[Part]:
    if full:
        rows = [[name, str(gain)] for name, gain in confirmed.gains.items()]
        if len(rows) > 1:
            rows.append(["score: their mean", str(confirmed.score)])
        yield Part.always(Table("Gain", ["goal", f"gain in {confirmed.score.n} fresh replications"], rows))
    if confirmed.slos:
        words = {True: "kept", False: "not kept", None: "not sure"}
        judged = {confirmed_slo.slo: confirmed_slo for confirmed_slo in confirmed.slos}
        slos = []
        for name, slos_alike in in_short(judged).items():
            # The worst one stands for the SLOs of alike domains.
            worst = min(
                (judged[slo] for slo in slos_alike),
                key=lambda confirmed_slo: (False, None, True).index(confirmed_slo.sure),
            )
            slos.append([name, words[worst.sure], str(worst.interval or "–")])
        yield Part.rows(Table("SLOs", ["SLO", "kept", "value"], slos, text_columns=2), "SLO")
    changed = [
        comparison
        for comparison in confirmed.comparisons
        if comparison.verdict in ("improves", "regresses") or comparison.may_regress
    ]
    runs, labels = (confirmed.before, confirmed.after), ("now", "found")
    if changed and (full or len(changed) <= short.ROWS_FULL):
        page = verdict(confirmed.comparisons, runs, labels)
        yield from differences(changed, runs, labels, View(all=full), heading=False, page=page)
    elif changed:
        scenarios = (runs[0].scenario, runs[1].scenario)
        worse = [line for line in short.words(changed, scenarios) if "regress" in line]
        yield Part.always(Lines([*worse, "--all shows what improves, and every metric"]))


def _charts(answer: "Tuning") -> Iterator[Block]:
    """The settings tried, the importance of parameters, and the front where it has losses."""
    from vcpulab.advice.tuning import charts

    yield Heading("Settings tried")
    yield Chart(partial(charts.history, answer))
    if answer.result.importance:
        yield Chart(partial(charts.importance, answer))
    if len(answer.offers) > 1 and any(offer.loss for offer in answer.offers):
        yield Chart(partial(charts.front, answer))


def _verbal(answer: "Tuning", candidate: Candidate) -> str:
    if not answer.search.slos:
        return "–"
    return "kept" if answer.result.standings[candidate.number].excess <= 0 else "not kept"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
