"""Writes the reference pages of the command line and of the rules of lint, and the manual pages.

`--check` only says if one is stale.
"""

import re
import sys
from pathlib import Path

from docutils.core import publish_string

from vcpulab.advice.lint.catalogue import RULES
from vcpulab.cli.main import COMMANDS, app

REFERENCE = Path(__file__).parent / "reference"
MANUAL = Path(__file__).parents[1] / "packaging/data/share/man/man1"
"""From where a wheel puts them beside the command."""


def pages() -> dict[Path, str]:
    """The pages as they should be."""
    text: str = app().generate_docs(output_format="markdown", heading_level=1)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    found = {REFERENCE / "command-line.md": "\n".join(lines) + "\n"}
    found |= {REFERENCE / "lint" / f"{rule.name}.md": rule.page() for rule in RULES.values()}
    return found | {REFERENCE / "lint" / "README.md": rules()} | manual()


def manual() -> dict[Path, str]:
    """The manual pages: one of all commands, and one of each."""
    names = [command for group in COMMANDS.values() for command in group]
    listed = "\n".join(f"vcpulab-{command.name}(1)\n    {command.summary}" for command in names)
    found = {MANUAL / "vcpulab.1": _page("vcpulab", str(app().help), f"::\n\n    vcpulab COMMAND\n\n{listed}\n")}
    for command in names:
        name = f"vcpulab {command.name}"
        text: str = app()[command.name].generate_docs(output_format="rst", heading_level=1, usage_name=name)
        # A page of its own needs neither anchors, nor a heading, nor a table of contents; its summary is its name.
        _, _, body = re.sub(r"(?m)^\.\. .*\n(?:   .*\n)*", "", text).partition("::\n")
        found[MANUAL / f"vcpulab-{command.name}.1"] = _page(
            name.replace(" ", "-"), command.summary, "::\n" + body.replace(f"\n{command.summary}\n", "\n", 1)
        )
    return found


def _page(name: str, summary: str, body: str) -> str:
    bar = "=" * len(name)
    title = f"{bar}\n{name}\n{bar}\n{summary.rstrip('.')}\n{'-' * len(summary)}\n"
    head = f"{title}:Manual section: 1\n:Manual group: vcpulab\n\nUsage\n=====\n\n"
    plain = re.sub(r"(?<!\*)\*(?!\*)", r"\*", body)  # a lone asterisk is one
    page: bytes = publish_string(head + plain, writer="manpage", settings_overrides={"halt_level": 2})
    return page.decode()


def rules() -> str:
    """The list of the rules."""
    rows = [f"| [{rule.name}]({rule.name}.md) | {rule.finds} |" for rule in RULES.values()]
    lead = "What `vcpulab lint` looks for. `vcpulab lint --explain RULE` prints a rule's page."
    return "\n".join(["# Rules of lint", "", lead, "", "| rule | what it finds |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    wanted = pages()
    there = {path for where in (REFERENCE / "lint", MANUAL) for path in where.iterdir() if path not in wanted}
    if sys.argv[1:] != ["--check"]:
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        for path in there:
            path.unlink()
    elif stale := [str(path) for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]:
        sys.exit(f"{', '.join(stale)}: stale\n\nhint: make docs")
    elif there:
        sys.exit(f"{', '.join(map(str, sorted(there)))}: nothing of that name\n\nhint: make docs")
