"""The document of a slow host: the causes with fixes, where the time goes, and single requests over time."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from vcpulab.advice.lint.document import finding
from vcpulab.advice.shared_parts import caution_part
from vcpulab.hypervisors import Toolstack
from vcpulab.scenario.topology import Topology
from vcpulab.show.document import Block, Chart, Heading, Lines, Part, Version
from vcpulab.show.request_path import LINES_MAX, beside, chart, timeline

if TYPE_CHECKING:
    from vcpulab.advice.explanation import Explained, Explanation

FOLLOWED = 2
"""The number of late applications whose requests are followed; the rest are most often late for the same reason."""
_FINDINGS_SOON = 2
"""The number of findings that are shown after the first metric's time and request, and before the rest."""
_LINES = 6
"""The number of lines on a request that are shown unless the document is full."""


def document(answer: "Explanation", label: str, toolstack: Toolstack | None, *, full: bool) -> Iterator[Part]:
    """The document of an explanation; see `Explanation.document`."""
    nobody = [] if answer.explained else [f"{label}: nobody is late (--slo METRIC explains one nevertheless)"]
    topology = Topology.from_host(answer.scenario.host)
    host = [] if topology.is_flat else [f"host: {topology}"]
    yield Part.always(Lines([*nobody, *answer.outlook(), *answer.numbers(), *host]))
    yield caution_part(answer.scenario)
    if answer.advice:
        yield Part.always(Heading("What holds it back, and how to fix it"), Lines([""]))
        findings = [finding(label, advice, toolstack, full=full) for advice in answer.advice]
        yield Part.items(findings, "finding", rounds=(1, 1, _FINDINGS_SOON))
    if answer.explained:
        yield Part.only_on_page(Heading("Where the time goes"))
    for place, entry in enumerate(answer.explained):
        if place < FOLLOWED:
            yield from _where_time_goes(entry, full=full, secondary=place > 0)
        else:
            yield Part.only_on_page(entry.table())


def _where_time_goes(entry: "Explained", *, full: bool, secondary: bool) -> Iterator[Part]:
    """The parts of the time of a metric, and its followed requests; secondary metrics come after fixes."""
    rank, rounds = (1, (0, 0)) if secondary else (0, (0,))
    yield Part.rows(entry.table(), f"part of the time of {entry.address}", rounds=rounds, rank=rank)
    if entry.paths:
        details: list[Block] = [beside(entry.paths)]
        blocks = [timeline(entry.paths[0], LINES_MAX if full else _LINES), *(details if full else [])]
        left_out = {"requests from begin to answer": 0}
        versions = [Version(left_out=left_out), Version(blocks, {} if full else left_out)]
        page = [*(Chart(partial(chart, path)) for path in entry.paths), *details]
        yield Part.alternatives(*versions, rounds=rounds, rank=rank, page=page)
    if entry.not_followed and (full or not secondary):
        note = Lines([f"{entry.address}: {entry.not_followed}"])
        yield Part.alternatives(Version(), Version([note]), rounds=rounds, rank=rank)
