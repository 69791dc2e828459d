"""Names in the package say what a value is: no pronoun, and no participle that could be of anything."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import ROOT

PACKAGE = ROOT / "python" / "vcpulab"
EMPTY_NAMES = frozenset(
    [
        "all_of_them",
        "any_of",
        "asked",
        "both",
        "either",
        "found",
        "it",
        "its",
        "itself",
        "known",
        "of",
        "one",
        "ones",
        "other",
        "others",
        "said",
        "so_far",
        "such",
        "that",
        "their",
        "them",
        "there",
        "these",
        "they",
        "this",
        "those",
        "told",
        "what",
        "which",
        "who",
        "whom",
        "whose",
        "why",
    ]
)
"""Pronouns and participles that do not say what a value is."""
ALLOWED = {
    ("advice/bounds/answers.py", "asked"): "a key of JSON",
    ("advice/bounds/checking.py", "what"): "a key of JSON",
    ("errors.py", "found"): "the value found, in every error and in JSON",
    ("policy.py", "of"): "users write it in their policies",
    ("scenario/problems.py", "found"): "a key of JSON",
    ("scenario/scenario.py", "other"): "the argument of `__eq__`",
}
"""Module and name: the reason why it stays."""
UNCHECKED = ("advice", "cli")
"""Folders whose modules' names are not yet what they should be."""


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each name that a module binds, with its line: functions, classes, arguments, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node.lineno
            case ast.arg(arg=name):
                yield name, node.lineno
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno


def empty_names(text: str) -> list[tuple[str, int]]:
    """The names of a module that are not to be bound, with their lines."""
    return [(name, line) for name, line in bound_names(ast.parse(text)) if name.strip("_") in EMPTY_NAMES]


@pytest.mark.parametrize(
    "text", ["found = 1", "def f(its): ...", "class those: ...", "x = [one for one in y]", "self.said = 1"]
)
def test_empty_names_are_recognized(text: str) -> None:
    assert len(empty_names(text)) == 1


def test_names_that_say_what_a_value_is_are_fine() -> None:
    assert not empty_names("rows = [row.said for row in found]")


def test_no_module_binds_an_empty_name() -> None:
    faults = []
    for file in sorted(PACKAGE.rglob("*.py")):
        module = file.relative_to(PACKAGE)
        if module.parent.as_posix() not in UNCHECKED:
            names = empty_names(Path(file).read_text(encoding="utf-8"))
            faults += [f"{module}:{line}: {name}" for name, line in names if (str(module), name) not in ALLOWED]
    assert not faults, "\n".join(faults)
