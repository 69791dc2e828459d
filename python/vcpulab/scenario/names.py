"""Names that people type: patterns of them, the nearest ones, and rows of numbered ones in short."""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import count
from typing import TypeVar

from vcpulab._engine import NAME_CHARS_MAX, name_rows, names_in_short, names_listed
from vcpulab._engine import without_number as engine_without_number

Item = TypeVar("Item")
Key = TypeVar("Key")
_PATTERN = re.compile(r"[*?\[]")


def is_pattern(text: str) -> bool:
    """`True`: a text is a pattern that stands for every matching name, as file names do in a shell."""
    return _PATTERN.search(text) is not None


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that match, in their order.

    Examples:
        >>> matching("batch*", ["web", "batch1", "batch2"])
        ['batch1', 'batch2']
    """
    return [name for name in names if fnmatchcase(name, pattern)]


def did_you_mean(word: str, names: Iterable[str]) -> str | None:
    """A hint with the nearest name, or the first that ends with the word; for a pattern, a pattern.

    Examples:
        >>> did_you_mean("webb", ["web", "db"]), did_you_mean("bath*", ["batch1", "batch2"])
        ('did you mean `web`?', 'did you mean `batch*`?')
        >>> did_you_mean("p99", ["failed", "response_p99", "wait_p99"])
        'did you mean `response_p99`?'
    """
    if is_pattern(word):
        stems = {stem: f"{stem}*" for stem in (name.rstrip("0123456789") for name in names)}
        near = [stems[stem] for stem in get_close_matches(_PATTERN.split(word)[0], stems, 1)]
    else:
        candidates = list(names)
        near = get_close_matches(word, candidates, 1) or [name for name in candidates if name.endswith(f"_{word}")]
    return f"did you mean `{near[0]}`?" if near else None


def in_short(names: Sequence[str]) -> str:
    """Several things in a few words: rows of numbered ones by their ends, and of many how many more there are.

    A row with gaps shows its number of names.

    Examples:
        >>> in_short(["batch01", "batch02", "batch03"]), in_short(["batch1", "batch3"])
        ('batch01 to batch03', 'batch1, batch3')
        >>> in_short(["a1", "a2", "a5", "a9"]), in_short(["web", "mail", "db", "log"])
        ('a1 to a9 (4)', 'web, mail and 2 more')
        >>> in_short(["b11", "web", "b1", "b2"]), in_short(["web", "mail", "b1", "b2", "b3", "log"])
        ('b1 to b11 (3), web', 'web, mail and 4 more')
    """
    return names_in_short(names)


def listed(names: Iterable[str]) -> list[str]:
    """All names, with rows of numbered ones in short.

    Examples:
        >>> listed(["web", "batch1", "batch2", "batch3", "dom0"])
        ['web', 'batch1 to batch3', 'dom0']
    """
    return names_listed(list(names))


def shortlist(word: str, names: Sequence[str]) -> str:
    """The names, rows of numbered ones in short; if there are many, those nearest to a word and the first ones.

    Examples:
        >>> shortlist("webb", ["dom0", "web", "batch1", "batch2", "batch3"])
        'dom0, web, batch1 to batch3'
    """
    rows = listed(names)
    if len(rows) <= _LISTED_MAX:
        return ", ".join(rows)
    near = get_close_matches(word, names, n=3, cutoff=0.7)
    first = [name for name in rows if name not in near][: _LISTED_MAX - len(near)]
    return ", ".join([*near, *first, "…"])


_LISTED_MAX = 8
"""More names than that are not all listed."""


def in_rows(names: Iterable[str]) -> list[list[str]]:
    """Three or more names that differ in their number alone as a row, by that number; each other name by itself.

    Examples:
        >>> in_rows(["web", "batch10", "batch2", "batch3", "dom0"])
        [['web'], ['batch2', 'batch3', 'batch10'], ['dom0']]
    """
    return name_rows(list(names))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items of each key, the keys in the order of their first items: alike things that share a row.

    Examples:
        >>> grouped(["web1", "db", "web2"], without_number)
        {'web#': ['web1', 'web2'], 'db': ['db']}
    """
    items_of: dict[Key, list[Item]] = {}
    for item in items:
        items_of.setdefault(key(item), []).append(item)
    return items_of


def without_number(name: str) -> str:
    """The name with a `#` for its number, the same for all that differ in that alone.

    Examples:
        >>> without_number("batch10"), without_number("batch10.0"), without_number("web")
        ('batch#', 'batch#.0', 'web')
    """
    return engine_without_number(name)


def plain_name(name: str) -> str:
    """A host's name of a domain or a pool, as a scenario and every command line take it.

    Examples:
        >>> plain_name("Windows (prod)"), plain_name("--all"), plain_name("")
        ('Windows--prod-', 'vm---all', 'vm')
    """
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
    # A name that begins with a dash would be an option of xl's and virsh's.
    return (f"vm-{plain}" if plain.startswith("-") else plain)[:NAME_CHARS_MAX] or "vm"


def free_name(plain: str, taken: Container[str]) -> str:
    """A name, or with a number where it is taken.

    Examples:
        >>> free_name("web", ["db"]), free_name("web", ["web", "web-2"])
        ('web', 'web-3')
    """
    numbered = (f"{plain[: NAME_CHARS_MAX - 5]}-{number}" for number in count(2))
    return plain if plain not in taken else next(name for name in numbered if name not in taken)
