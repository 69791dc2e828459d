"""What the documentation shows works, and generated pages are up to date."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import ROOT, VCPULAB

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    for match in BLOCK.finditer(page.read_text()):
        yield match["kind"], match["text"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_work(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """In order: shell commands (their output has every line shown), Python, and files, named in their first line.

    The examples are there, under the names that the guides give them, and what studies have run already.
    """
    if "vcpulab study run" in page.read_text():
        shutil.copytree(request.getfixturevalue("studies"), tmp_path / "out" / "study")
    monkeypatch.chdir(tmp_path)
    for example in sorted((ROOT / "examples").glob("*.*")):
        shutil.copy(example, tmp_path)
    shutil.copytree(ROOT / "tests/recordings/xen4.17-credit-weights", tmp_path / "recorded")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", f"{VCPULAB.parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, object] = {}
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(text, page.name, "exec"), names)
        elif kind == "console":
            assert text.startswith("$ ")
            for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, *shown = step.rstrip("\n").split("\n")
                result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120, check=False)
                output = result.stdout + result.stderr
                assert result.returncode == 0, f"{command}: {output}"
                for line in shown:
                    assert line.strip() in output, command
        elif (named := re.match(r"# (\S+\.toml)$", text, re.MULTILINE)) is not None:
            (tmp_path / named[1]).write_text(text)


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md")), ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_command_line_reference_is_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=True, timeout=60)
