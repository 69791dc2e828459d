"""The note on a value of a listing that no scenario has."""

from pathlib import Path


def left_out(where: str, field: str, value: object, reason: str, file: Path | str | None = None) -> str:
    """The note on a value of a listing that the scenario does not have.

    Args:
        where: the domain, the pool or the part of the host that has the value.
        field: the value's name in the listing.
        value: the value in the listing.
        reason: why the scenario cannot have it.
        file: the listing; `None`: not known.

    Examples:
        >>> left_out("web", "cap", 150, "at most 100 with 1 vCPU online", Path("sched.txt"))
        'sched.txt: web: cap `150` is left out: at most 100 with 1 vCPU online'
    """
    begins = "" if file is None else f"{file}: "
    return f"{begins}{where}: {field} `{value}` is left out: {reason}"
