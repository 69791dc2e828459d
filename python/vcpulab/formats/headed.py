"""Texts of commands that do not name the machine they are about: several in one file have headings between.

A heading is a line `== NAME ==`, `# NAME`, or `==> FILE <==` as `tail -n +1 *.txt` writes. Without one the file's own
name tells: `schedinfo-web.txt` is about `web`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from vcpulab.formats.sources import text_of

HEADING = re.compile(r"(?:==>\s*(?P<file>\S+)\s*<==|==+\s*(?P<name>\S.*?)\s*==+|#+\s*(?P<comment>\S.*?))\s*")


def of_file(name: str, commands: str) -> str:
    """The machine that a file's name tells; `commands`: words, as a pattern, that name none.

    Examples:
        >>> of_file("schedinfo-web.txt", "schedinfo|vcpupin"), of_file("db.vcpupin", "schedinfo|vcpupin")
        ('web', 'db')
        >>> of_file("/etc/pve/qemu-server/100.conf", "qm|config")
        '100'
    """
    stem = re.sub(r"(\.(txt|conf|cfg|xz|gz|bz2))+$", "", name.rsplit("/", 1)[-1])
    # A name that holds such a word is still one: only whole words at the ends are taken off.
    return re.sub(rf"^((virsh|{commands})[-_. ])+|([-_. ]({commands}))+$", "", stem)


def headed(path: Path, commands: str, comments: str | None = None) -> Iterator[tuple[str, int, str]]:
    """Lines that are not empty: each with the machine it is about, and its number from 1.

    Args:
        path: the file.
        commands: words, as a pattern, that name no machine.
        comments: the names, as a pattern, that make a line `# NAME` a heading. Others are comments, and so are all of
            them where the file's name or another heading names the machine. `None`: each is a heading.
    """
    about = of_file(path.name, commands)
    named = comments is not None and re.fullmatch(comments, about) is not None
    for number, line in enumerate(text_of(path).splitlines(), 1):
        match = HEADING.fullmatch(line)
        if match is not None and comments is not None and match["comment"] is not None:
            if not named and re.fullmatch(comments, match["comment"]):
                about = match["comment"]
        elif match is not None:
            named = comments is not None
            about = of_file(match["file"], commands) if match["file"] else match["name"] or match["comment"]
        elif line.strip():
            yield about, number, line
