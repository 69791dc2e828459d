"""Documents as text: what is written reads back as the same."""

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_scenarios import random_checked
from vcpulab.show.toml_text import document

_SCALARS = (
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers(-(2**63), 2**63 - 1)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)
_NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3), max_leaves=20
)


@given(st.dictionaries(_NAMES, _VALUES, max_size=4))
def test_a_document_reads_back_as_what_was_written(tables: dict[str, Any]) -> None:
    assert tomllib.loads(document(tables)) == tables


@pytest.mark.parametrize("seed", range(20))
def test_a_scenario_reads_back_as_what_was_written(seed: int) -> None:
    tables = random_checked(seed).to_dict()
    assert tomllib.loads(document(tables)) == tables


def test_a_phase_of_a_script_is_a_line_whatever_its_texts_say() -> None:
    phases = [{"event": [{"run": "1ms"}, {"notify": f"phases {number}".ljust(100)}]} for number in range(2)]
    tables = {"domain": {"a": {"app": [{"kind": "phases", "phase": phases}, {"kind": "hog"}]}}}
    text = document(tables)
    assert tomllib.loads(text) == tables
    assert [line for line in text.splitlines() if "event" in line] == [
        f'    {{ event = [{{ run = "1ms" }}, {{ notify = "{"phases 0".ljust(100)}" }}] }},',
        f'    {{ event = [{{ run = "1ms" }}, {{ notify = "{"phases 1".ljust(100)}" }}] }},',
    ]
