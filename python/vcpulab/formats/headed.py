"""Texts of commands that do not name the machine they are about: several in one file have headings between.

A heading is a line `== NAME ==`, `# NAME`, or `==> FILE <==` as `tail -n +1 *.txt` writes. Without one the command
above tells, or the file's own name: `schedinfo-web.txt` is about `web`.
"""

import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from vcpulab.formats.excerpts import Excerpt
from vcpulab.formats.sources import text_of

_PATH_MOST = 4096
"""No file's path is longer."""
_SUFFIXES = (".txt", ".conf", ".cfg", ".xz", ".gz", ".bz2")


def of_file(name: str, commands: str) -> str:
    """The machine that a file's name tells; `commands`: words, as a pattern, that name none.

    Examples:
        >>> of_file("schedinfo-web.txt", "schedinfo|vcpupin"), of_file("db.vcpupin", "schedinfo|vcpupin")
        ('web', 'db')
        >>> of_file("/etc/pve/qemu-server/100.conf", "qm|config")
        '100'
    """
    stem = name.rsplit("/", 1)[-1]
    while stem.endswith(_SUFFIXES):
        stem = stem.rpartition(".")[0]
    # A name that holds such a word is still one: only whole words at the ends are taken off.
    return re.sub(rf"^((virsh|{commands})[-_. ])+|([-_. ]({commands}))+$", "", stem)


def heading_of(line: str) -> str | None:
    """The name in a heading, or the file in it; `None`: the line is no heading.

    Examples:
        >>> heading_of("== web =="), heading_of("# my shop "), heading_of("==> 100.conf <==")
        ('web', 'my shop', '100.conf')
        >>> heading_of("===="), heading_of("= web ="), heading_of("web")
        (None, None, None)
    """
    text = line.rstrip()
    if text.startswith("==>") and text.endswith("<=="):
        name = text[3:-3].strip()
        return name if name and len(name) <= _PATH_MOST and not any(map(str.isspace, name)) else None
    if text.startswith("==") and text.endswith("=="):
        return text.strip("=").strip() or None
    return text.lstrip("#").strip() or None if text.startswith("#") else None


def headed(path: str | PathLike[str], commands: str, comments: str | None = None) -> Iterator[tuple[str, int, str]]:
    """Lines that are not empty: each with the machine it is about, and its number from 1.

    Args:
        path: the file.
        commands: words, as a pattern, that name no machine.
        comments: the names, as a pattern, that make a line `# NAME` a heading. Others are comments, and so are all of
            them where the file's name or another heading names the machine. `None`: each is a heading.
    """
    about = of_file((path.about if isinstance(path, Excerpt) else None) or Path(path).name, commands)
    named = comments is not None and re.fullmatch(comments, about) is not None
    for number, line in enumerate(text_of(path).splitlines(), 1):
        name = heading_of(line)
        if name is not None and comments is not None and line.startswith("#"):
            if not named and re.fullmatch(comments, name):
                about = name
        elif name is not None:
            named = comments is not None
            about = of_file(name, commands) if line.startswith("==>") else name
        elif line.strip():
            yield about, number, line
