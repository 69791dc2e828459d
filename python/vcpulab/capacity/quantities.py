"""Times and sizes as complete scenarios write them."""

import re

_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_UNITS |= {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_QUANTITY = re.compile(r"(?P<number>[0-9.]+) ?(?P<unit>[A-Za-z]+)")


def quantity(text: str) -> float:
    """A time span in ns, or a size in bytes.

    Raises:
        ValueError: it is neither.

    Examples:
        >>> quantity("500us"), quantity("64KiB")
        (500000.0, 65536.0)
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or match["unit"] not in _UNITS:
        raise ValueError(f"found `{text}`; allowed: a number with one of the units {', '.join(_UNITS)}")
    return float(match["number"]) * _UNITS[match["unit"]]
