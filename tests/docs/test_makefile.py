"""`make help`: every target is listed, with a sentence."""

import re
import subprocess

import pytest

from support import ROOT

pytestmark = pytest.mark.quick


def test_help_lists_every_target_with_a_sentence() -> None:
    text = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY:((?:.*\\\n)*.*)$", text, re.MULTILINE)
    targets = set(phony.replace("\\", " ").split())
    assert targets == set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  ([a-z-]+) +\S", shown, re.MULTILINE)) == targets
