"""One word for one thing in all that users read: the reference pages hold the help, the schema and the tables, too."""

import re
from pathlib import Path

import pytest

from support import ROOT

pytestmark = pytest.mark.quick

NOT = {
    r"(?<!paper's )\b[fF]igures?\b(?! \d)": "metric, number (of a paper: the paper's figure 8)",
    r"\bknobs?\b": "parameter",
    r"\bgainers?\b|\bpayers?\b|\bwho (gains|pays)\b": "improves, regresses",
    r"\bnot told (apart|from)\b|\btold apart from\b": "no significant difference",
    r"--(names|ci|limit|grow|knob)\b": "--counters, --precision, --slo, --vary",
    r"\bvcpulab (commands|list)\b": "xl commands, xl list",
    r"\bcards?\b": "NIC",
    r"\bback ends?\b": "backend: netback or blkback",
    r"\bfront ends?\b": "frontend: netfront or blkfront",
    r"\bhand(s|ed|ing)? over\b": "enqueue",
    r"\bso (many|much|long|wide)\b": "a number, or `that many`",
    r"\bunplug(s|ged)?\b": "offline",
    r"\bcalls? again\b": "SYN retransmission",
}
"""What to look for, and what to write instead: the glossary's word."""

PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "web" / "gallery").glob("*.html"))


def found(text: str) -> list[str]:
    """What of the list stands in a text, with what to write instead."""
    hits = []
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, instead in NOT.items():
            hits += [f"{number}: `{hit[0]}`: {instead}" for hit in re.finditer(pattern, line)]
    return hits


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_words_of_the_glossary(page: Path) -> None:
    assert not found(page.read_text())


def test_the_list_finds_what_it_is_for() -> None:
    assert found("two cards") == ["1: `cards`: NIC"]
    assert found("so many requests\nare not told apart") == [
        "1: `so many`: a number, or `that many`",
        "2: `not told apart`: no significant difference",
    ]
    assert not found("figure 8 of the paper")
