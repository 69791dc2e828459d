"""The check of names bound in the packages: no pronoun, and no participle that says nothing. `make lint` runs it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGES = [Path(__file__).parents[1] / package for package in ("python/vcpulab", "evidence/vcpulab_evidence")]
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


def faults() -> list[str]:
    """The names in the packages that are not to be bound, with module and line, and exceptions without a name."""
    lines, used = [], set()
    files = [(file, folder) for folder in PACKAGES for file in sorted(folder.rglob("*.py"))]
    for file, folder in files:
        module = file.relative_to(folder).as_posix()
        for name, line in empty_names(file.read_text(encoding="utf-8")):
            if (module, name) in ALLOWED:
                used.add((module, name))
            else:
                lines.append(f"{module}:{line}: {name}: the name does not say what the value is")
    return lines + [f"{module}: {name}: an exception without such a name" for module, name in ALLOWED.keys() - used]


if __name__ == "__main__":
    sys.exit("\n".join(faults()) or 0)
