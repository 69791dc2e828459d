"""Names that people type: patterns of them, the nearest ones, and rows of numbered ones in short."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

_PATTERN = re.compile(r"[*?\[]")
_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)(?P<rest>\.\d+)?")
"""The number of a domain, perhaps with that of its application."""


def is_pattern(text: str) -> bool:
    """Does it stand for every name that matches it, as file names do in a shell?"""
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
        known = list(names)
        near = get_close_matches(word, known, 1) or [name for name in known if name.endswith(f"_{word}")]
    return f"did you mean `{near[0]}`?" if near else None


def in_short(names: Sequence[str]) -> str:
    """Several things in a few words.

    Of rows with gaps the number of names is told.

    Examples:
        >>> in_short(["batch01", "batch02", "batch03"]), in_short(["batch1", "batch3"])
        ('batch01 to batch03', 'batch1, batch3')
        >>> in_short(["a1", "a2", "a5", "a9"]), in_short(["web", "mail", "db", "log"])
        ('a1 to a9 (4)', 'web, mail and 2 more')
        >>> in_short(["a10", "a11", "a5"])
        'a5 to a11 (3)'
    """
    matches = [_NUMBERED.fullmatch(name) for name in names]
    numbered = [match for match in matches if match is not None]
    if len(names) > 2 and len(numbered) == len(names) and len({match.group("stem", "rest") for match in numbered}) == 1:
        numbered.sort(key=lambda match: int(match["number"]))
        numbers = [int(match["number"]) for match in numbered]
        row = f"{numbered[0][0]} to {numbered[-1][0]}"
        return row if numbers == list(range(numbers[0], numbers[0] + len(names))) else f"{row} ({len(names)})"
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} more"


def listed(names: Iterable[str]) -> list[str]:
    """All names, with rows of numbered ones in short.

    Examples:
        >>> listed(["web", "batch1", "batch2", "batch3", "dom0"])
        ['web', 'batch1 to batch3', 'dom0']
    """
    return [in_short(row) for row in in_rows(names)]


def in_rows(names: Iterable[str]) -> list[list[str]]:
    """Three or more names that differ in their number alone as a row, each other name by itself.

    Examples:
        >>> in_rows(["web", "batch1", "batch2", "batch3", "dom0"])
        [['web'], ['batch1', 'batch2', 'batch3'], ['dom0']]
    """
    rows: dict[str, list[str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        rows.setdefault(f"{match['stem']}#{match['rest']}" if match else name, []).append(name)
    return [part for row in rows.values() for part in ([row] if len(row) > 2 else [[name] for name in row])]
