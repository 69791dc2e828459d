"""Names in the package say what a value is: no pronoun, and no participle that could be of anything."""

import pytest

from empty_names import empty_names, faults


@pytest.mark.parametrize(
    "text", ["found = 1", "def f(its): ...", "class those: ...", "x = [one for one in y]", "self.said = 1"]
)
def test_empty_names_are_recognized(text: str) -> None:
    assert len(empty_names(text)) == 1


def test_names_that_say_what_a_value_is_are_fine() -> None:
    assert not empty_names("rows = [row.said for row in found]")


def test_no_module_binds_an_empty_name() -> None:
    assert not faults()
