"""Findings, fixes and remaining findings as documents."""

from collections.abc import Collection, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from vcpulab.advice.comparison_document import differences
from vcpulab.advice.lint.host import Finding
from vcpulab.advice.lint.lint import Advice, other_warnings
from vcpulab.advice.shared_parts import caution_part
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.steps import HEADINGS, in_loops
from vcpulab.scenario import settings
from vcpulab.scenario.problems import in_short
from vcpulab.show.document import BLANK, Block, Lines, Part, count

if TYPE_CHECKING:
    from vcpulab.advice.fixes import Fixed
    from vcpulab.advice.lint.answer import Findings

_COMMANDS_SHOWN = 8
"""The largest number of commands of a finding that are shown unless the document is full."""


def of_findings(
    answer: "Findings", label: str, names: Collection[str], toolstack: Toolstack | None, *, full: bool
) -> Iterator[Part]:
    """The document of findings, warnings and notes; see `Findings.document`."""
    warnings = other_warnings(answer.scenario, answer.advice, names)
    yield Part.items([finding(label, advice, toolstack, full=full) for advice in answer.advice], "finding", rounds=(1,))
    yield Part.items([[Lines(line.splitlines()), BLANK] for line in in_short(warnings, full=full)], "warning")
    yield caution_part(answer.scenario)
    total = len(answer.advice) + len(warnings)
    yield Part.always(
        *([Lines(answer.noted())] if answer.notes else []), Lines([f"{label}: {total or 'nothing'} found"])
    )


def of_fixes(answer: "Fixed", label: str) -> Iterator[Part]:
    """The document of fixes, remaining findings with reasons, and the effect of all fixes; see `Fixed.document`."""
    taken_out = [[*_fault(label, removed), Lines(["  fixed: taken out"]), BLANK] for removed in answer.taken_out]
    yield Part.items(taken_out, "fixed finding")
    yield Part.items([[*_with_effect(label, fix, "fixed by"), BLANK] for fix in answer.made], "fixed finding")
    remaining = [
        [*_with_effect(label, fix), Lines([f"not fixed: {reason}"], begin="  ", indent="    "), BLANK]
        for fix, reason in answer.left
    ]
    yield Part.items(remaining, "remaining finding")
    if answer.made:
        measured = answer.measured
        runs, starving = (measured.before, measured.after), measured.starving.lines()
        yield from differences(measured.comparisons, runs, ("before", "fixed"), starving=starving)
    yield caution_part(answer.scenario)
    yield Part.always(Lines([f"{label}: {answer.number} fixed, {len(answer.left) or 'nothing'} left"]))


def finding(label: str, fix: Advice, toolstack: Toolstack | None = None, *, full: bool = True) -> list[Block]:
    """A finding with its reason, the effect of its fix, and the commands of the fix, unless it does harm.

    Args:
        label: the name of the scenario file.
        fix: the finding, and the effect of its fix.
        toolstack: the toolstack of the commands; `None`: that of the scenario's host.
        full: whether to show all commands.
    """
    blocks = _with_effect(label, fix)
    steps = in_loops(fix.steps(toolstack)) if not fix.against else []
    shown = steps if full else steps[:_COMMANDS_SHOWN]
    for place, (how, group) in enumerate(groupby(shown, key=lambda step: step.how)):
        if place or how != "run":
            blocks.append(Lines([f"  {HEADINGS[how]}:"]))
        texts = [step.text for step in group]
        blocks.append(
            Lines(texts, begin="    ", indent="      ") if how == "cannot" else Lines(texts, begin="  $ ", typed=True)
        )
    if len(shown) < len(steps):
        blocks.append(Lines([f"{count(len(steps) - len(shown), 'more command')}: --all"], begin="  "))
    return [*blocks, BLANK]


def _with_effect(label: str, fix: Advice, verb: str = "with") -> list[Block]:
    """A finding with its reason and the effect of its fix."""
    blocks = _fault(label, fix.finding)
    if fix.effect is not None:
        changes = "; ".join(settings.in_short(fix.finding.changes))
        blocks.append(Lines([f"{verb} {changes}:"], begin="  ", indent="    "))
        lines = [fix.does, *fix.kept(), *([fix.against] if fix.against else [])]
        blocks.append(Lines(lines, begin="    ", indent="      "))
    return blocks


def _fault(label: str, fault: Finding) -> list[Block]:
    """A finding with its reason."""
    return [Lines([f"{label}: {fault.path}: {fault.rule}"]), Lines([fault.reason], begin="  ", indent="  ")]
