"""Parts that several documents share: commands to type, and cautions about the profile of a host."""

from collections.abc import Iterable

from vcpulab.advice import core_sharing
from vcpulab.hypervisors.steps import Step, script
from vcpulab.scenario.scenario import Scenario
from vcpulab.show.document import Block, Lines, Part


def commands(steps: Iterable[Step], *, headed: bool = False) -> list[list[Block]]:
    """The lines of `script` in blocks, each a command with the comments before it."""
    blocks: list[list[Block]] = []
    comments: list[Block] = []
    for line in script(steps, headed=headed):
        comments.append(Lines([line], typed=True))
        if not line.startswith("#"):
            blocks.append(comments)
            comments = []
    return [*blocks, comments] if comments else blocks


def cautions_as_data(*scenarios: Scenario) -> dict[str, list[str]]:
    """The warnings of `core_sharing.cautions` for a JSON document; nothing without warnings."""
    listed = core_sharing.cautions(*(scenario.model for scenario in scenarios))
    return {"cautions": listed} if listed else {}


def caution_part(*scenarios: Scenario) -> Part:
    """The warnings of `core_sharing.cautions`, for the end of an answer from a simulation."""
    return Part.always(Lines(core_sharing.cautions(*(scenario.model for scenario in scenarios))))
