"""The manual pages: the help of the command line, as `man` has it."""

import re
from pathlib import Path

from docutils.core import publish_string

from vcpulab.cli.main import COMMANDS, app

MANUAL = Path(__file__).parents[1] / "packaging/data/share/man/man1"
"""From where a wheel puts them beside the command."""


def pages() -> dict[Path, str]:
    """The pages as they should be: one of all commands, and one of each."""
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
