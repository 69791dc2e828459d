r"""Control groups as units of systemd: the unit of a path, if it has one.

Sources: `systemd.slice(5)` (a slice `a-b.slice` is in `a.slice`), `systemd.unit(5)` (names of units, and how `-` is
escaped: `\x2d`).
"""

import re

_NAME = re.compile(r"(?!-)[A-Za-z0-9:_.\\@-]{1,255}")
_SLICE = ".slice"
_KINDS = (_SLICE, ".scope", ".service")


def is_unit(path: str) -> bool:
    r"""`True`: the path is that of a unit's control group.

    A group that only looks like a unit, such as `gold.slice` in `machine.slice`, is another one than the unit of that
    name: a slice in `machine.slice` is called `machine-gold.slice`.

    Examples:
        >>> [is_unit(path) for path in ("machine.slice", "machine.slice/machine-gold.slice", "backup.service")]
        [True, True, True]
        >>> [is_unit(path) for path in ("machine.slice/gold.slice", "vms", "vms/web.scope", "a b.slice")]
        [False, False, False, False]
    """
    around, _, name = path.rpartition("/")
    if not _NAME.fullmatch(name) or not name.endswith(_KINDS):
        return False
    return slices(path if name.endswith(_SLICE) else around) is not None


def slices(path: str) -> list[str] | None:
    """The name that each slice of a path adds to the slice around it; `None`: the path is not a path of slices.

    Examples:
        >>> slices("machine.slice/machine-gold.slice"), slices("machine.slice/gold.slice"), slices("")
        (['machine', 'gold'], None, [])
    """
    names = list[str]()
    before = ""
    for name in path.split("/") if path else []:
        own = name.removesuffix(_SLICE).removeprefix(before)
        fits = _NAME.fullmatch(name) and name.endswith(_SLICE) and name.startswith(before)
        if not fits or not own or "-" in own:
            return None
        names.append(own)
        before = f"{name.removesuffix(_SLICE)}-"
    return names
