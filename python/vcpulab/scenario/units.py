"""Times, sizes and sets of pCPUs as complete scenarios write them."""

import re
from collections.abc import Sequence
from fractions import Fraction

_NS = {"min": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_BYTES = {"GiB": 1 << 30, "GB": 10**9, "MiB": 1 << 20, "MB": 10**6, "KiB": 1 << 10, "KB": 10**3, "kB": 10**3, "B": 1}
_QUANTITY = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+)\s*")


class Duration(str):
    """A time span of a complete scenario, as text such as `30ms`."""

    __slots__ = ()

    @property
    def ns(self) -> int:
        """The time span, ns.

        Examples:
            >>> Duration("1.5ms"), Duration("1.5ms").ns
            ('1.5ms', 1500000)
        """
        return span_ns(self)


class Size(str):
    """A size of a complete scenario, as text such as `64KiB`."""

    __slots__ = ()

    @property
    def bytes(self) -> int:
        """The size, bytes.

        Examples:
            >>> Size("64KiB"), Size("64KiB").bytes
            ('64KiB', 65536)
        """
        return size_bytes(self)


def span_ns(text: str) -> int:
    """A time span, ns.

    Examples:
        >>> span_ns("1.5ms")
        1500000
    """
    return _read(text, _NS)


def duration_s(text: str) -> float:
    """A time that somebody waits, s: with the unit h or m (min), too.

    Examples:
        >>> duration_s("1.5h"), duration_s("90s")
        (5400.0, 90.0)
    """
    return _read(text, _NS | {"h": 60 * _NS["min"], "m": _NS["min"]}) / _NS["s"]


def size_bytes(text: str) -> int:
    """A size, bytes.

    Examples:
        >>> size_bytes("10KB"), size_bytes("64KiB")
        (10000, 65536)
    """
    return _read(text, _BYTES)


def pcpu_set(text: str, pcpus: int) -> frozenset[int]:
    """The pCPUs that a set names.

    Examples:
        >>> sorted(pcpu_set("0-2,5", 8)), sorted(pcpu_set("all,^0", 3))
        ([0, 1, 2, 5], [1, 2])
    """
    numbers: set[int] = set()
    for part in text.replace(" ", "").split(","):
        word = part.removeprefix("^")
        first, _, last = word.partition("-")
        named = set(range(pcpus)) if word == "all" else set(range(int(first), min(int(last or first), pcpus - 1) + 1))
        numbers = numbers - named if part.startswith("^") else numbers | named
    return frozenset(pcpu for pcpu in numbers if pcpu < pcpus)


def spans(pcpus: Sequence[int]) -> str:
    """Numbers as affinities are written.

    Examples:
        >>> spans([0, 1, 2, 5])
        '0-2,5'
    """
    parts: list[list[int]] = []
    for pcpu in pcpus:
        if parts and parts[-1][-1] == pcpu - 1:
            parts[-1].append(pcpu)
        else:
            parts.append([pcpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def members(pcpus: str) -> list[int]:
    """The pCPUs that a text such as `0-3,8` names.

    Examples:
        >>> members("0-2,8")
        [0, 1, 2, 8]
    """
    listed: list[int] = []
    for part in pcpus.split(","):
        first, _, last = part.partition("-")
        listed += range(int(first), int(last or first) + 1)
    return listed


def _read(text: str, units: dict[str, int]) -> int:
    match = _QUANTITY.fullmatch(text)
    if match is None or match["unit"] not in units:
        raise ValueError(f"found `{text}`; allowed: a number with one of {', '.join(units)}")
    return int(Fraction(match["number"]) * units[match["unit"]])
