"""What the documentation shows works, and generated pages are up to date."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import HANG_S, ROOT, STUDIES_PAGE, examples_work

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if page != STUDIES_PAGE], ids=lambda page: page.name)
def test_examples_work(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples_work(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_command_line_reference_is_up_to_date() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "evidence" / "page")}
    script = ROOT / "docs" / "generate.py"
    subprocess.run([sys.executable, script, "--check"], check=True, timeout=HANG_S, env=environment)
