"""Commands that differ in the number of a domain alone, as one loop of a shell."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from vcpulab.hypervisors.xl import Step

LEAST = 3
"""So many commands become a loop."""
_NUMBERED = re.compile(r"(?P<stem>[A-Za-z_][\w.-]*?)(?P<number>\d+)")


@dataclass
class _Row:
    """Commands alike but for one word."""

    first: Step
    words: list[str]
    place: int | None = None
    names: tuple[str, ...] = ()

    def takes(self, step: Step) -> bool:
        """Adds a command, if it differs in the number of the one word alone."""
        words = step.text.split(" ")
        if (step.how, step.at) != (self.first.how, self.first.at) or len(words) != len(self.words):
            return False
        differ = [place for place, (one, other) in enumerate(zip(self.words, words, strict=True)) if one != other]
        if len(differ) != 1 or (self.place is not None and differ != [self.place]):
            return False
        here, there = (_NUMBERED.fullmatch(some[differ[0]]) for some in (self.words, words))
        if here is None or there is None or here["stem"] != there["stem"]:
            return False
        self.place = differ[0]
        self.names = (*(self.names or (self.words[self.place],)), words[self.place])
        return True

    def steps(self) -> list[Step]:
        if self.place is None or len(self.names) < LEAST:
            before, after = self.words[: self.place], self.words[(self.place or 0) + 1 :]
            each = [" ".join([*before, name, *after]) for name in self.names] or [self.first.text]
            return [replace(self.first, text=text) for text in each]
        words = [*self.words[: self.place], "$d", *self.words[self.place + 1 :]]
        return [replace(self.first, text=f"for d in {' '.join(self.names)}; do {' '.join(words)}; done")]


def in_loops(steps: Iterable[Step]) -> list[Step]:
    """The same steps, with those that do the same to numbered domains in a loop.

    The loop stands where the first of them stood: what is done to one domain keeps its order.

    Examples:
        >>> print(in_loops([Step("run", f"xl sched-credit -d vm{n} -w 9") for n in (1, 2, 3)])[0].text)
        for d in vm1 vm2 vm3; do xl sched-credit -d $d -w 9; done
    """
    rows: list[_Row] = []
    for step in steps:
        if step.how != "run" or not any(row.takes(step) for row in rows):
            rows.append(_Row(step, step.text.split(" ")))
    return [step for row in rows for step in row.steps()]
