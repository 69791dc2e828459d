"""Writes reference pages, manual pages, what is generated on other pages, and the metrics for others than Python.

`--check` only says if one is stale.
"""

import sys
from pathlib import Path

import manual
import metrics
import scenario_model
import twins_page
import verdicts

import validation_page
from vcpulab.advice.lint.catalogue import RULES
from vcpulab.cli.main import app
from vcpulab_evidence.studies import NAMES, overview, study

DOCS = Path(__file__).parent
REFERENCE = DOCS / "reference"
STUDIES = DOCS / "published-and-simulated.md"


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    text: str = app().generate_docs(output_format="markdown", heading_level=1)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    found = {REFERENCE / "command-line.md": "\n".join(lines) + "\n"}
    found |= {REFERENCE / "lint" / f"{rule.name}.md": rule.page() for rule in RULES.values()}
    found |= manual.pages()
    found[metrics.FILE] = metrics.page()
    found[scenario_model.FILE] = scenario_model.page()
    found[verdicts.FILE] = verdicts.page()
    found |= {REFERENCE / "lint" / "README.md": rules(), STUDIES: foretold(STUDIES.read_text("utf-8"))}
    return found | validation_page.pages() | twins_page.pages()


def foretold(page: str) -> str:
    """The page on studies, whose runs take hours, with its section on what was foretold, which takes none."""
    before, _, rest = page.partition(f"## {overview.BLIND}\n")
    after = rest[rest.index("\n## ") + 1 :]
    return f"{before}{overview.blind(map(study, NAMES))}\n\n{after}"


def rules() -> str:
    """The list of the rules."""
    rows = [f"| [{rule.name}]({rule.name}.md) | {rule.finds} |" for rule in RULES.values()]
    lead = "What `vcpulab lint` looks for. `vcpulab lint --explain RULE` prints a rule's page."
    return "\n".join(["# Rules of lint", "", lead, "", "| rule | what it finds |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    wanted = pages()
    there = {path for where in (REFERENCE / "lint", manual.MANUAL) for path in where.iterdir() if path not in wanted}
    if sys.argv[1:] != ["--check"]:
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        for path in there:
            path.unlink()
    elif stale := [str(path) for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]:
        sys.exit(f"{', '.join(stale)}: stale\n\nhint: make docs")
    elif there:
        sys.exit(f"{', '.join(map(str, sorted(there)))}: nothing of that name\n\nhint: make docs")
