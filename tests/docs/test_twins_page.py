"""`docs/concepts/twins.md` has every threshold with its value in the code (`generate.py --check` compares)."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT

MESSAGES = ROOT / "python" / "vcpulab" / "twin" / "messages"


@pytest.fixture(scope="module")
def script() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("twins_page")
    sys.path.remove(str(ROOT / "docs"))


@pytest.mark.parametrize("module", sorted(MESSAGES.glob("*.py")), ids=lambda path: path.stem)
def test_every_module_with_thresholds_is_on_the_page(script: ModuleType, module: Path) -> None:
    names = [name for name, *_ in script.constants(module.read_text(encoding="utf-8"))]
    listed = {name for names in script.MODULES.values() for name in names}
    assert not names or f"messages/{module.stem}" in listed


def test_every_table_is_on_the_page(script: ModuleType) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    assert all(f"<!-- generated: thresholds-{name} -->" in page for name in script.MODULES)


def test_thresholds_have_their_value_and_reason(script: ModuleType) -> None:
    source = """
_MOST = 0.5
'''The largest
fraction.'''
NAME = "web"
TOLERANCE: dict = {"gotten": (1.0, "points")}
'How much.'
"""
    assert list(script.constants(source)) == [
        ("MOST", "0.5", "The largest fraction."),
        ("TOLERANCE", "gotten 1.0 points", "How much."),
    ]


def test_a_threshold_without_a_reason_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="MOST: no docstring"):
        list(script.constants("_MOST = 0.5\nOTHER = 1"))
