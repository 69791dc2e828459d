"""Writes the reference page of the command line, from the command line itself; `--check` only says if it is stale."""

import sys
from pathlib import Path

from vcpulab.cli.main import app

PAGE = Path(__file__).parent / "reference" / "command-line.md"


def page() -> str:
    """The page as it should be."""
    text: str = app().generate_docs(output_format="markdown", heading_level=1)
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE} is stale\n\nhint: make docs")
