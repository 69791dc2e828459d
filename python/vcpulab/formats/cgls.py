r"""The output of `systemd-cgls`: the tree of control groups, and the processes in them.

```text
Control group /:
-.slice
├─machine.slice
│ └─machine-qemu\x2d3\x2dweb.scope …
│   └─libvirt
│     └─emulator
│       └─2345 /usr/bin/qemu-system-x86_64 -name guest=web,debug-threads=on
```
"""

import re
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.linux_host import Linux, ProcThread
from vcpulab.formats.sources import lines_of

BEGINS = r"Control group \S*:\s*$|-\.slice\s*$|Unit \S+ \((?P<unit>/\S*)\):\s*$"
"""The beginning of such a tree."""
_ROW = re.compile(r"(?P<tree>[│ \u00a0]*[├└]─|[| ]*[|`]-)(?P<rest>\S.*)")
_PROCESS = re.compile(r"(?P<pid>\d{1,10})(\s.*)?")
_UNIT = re.compile(r"\s+(\(#\d+\)|…|\.\.\.)\s*$")
_DEPTH_MAX = 64


def read_cgls(path: str | PathLike[str]) -> Linux:
    """The tree: its processes, each with its control group.

    Raises:
        RecordingError: a line is not part of such a tree.
    """
    threads: dict[int, ProcThread] = {}
    root: list[str] = []
    ancestors: list[str] = []
    in_tree = False
    for number, line in lines_of(path):
        begin = re.match(BEGINS, line)
        if begin is not None or not line.strip():
            in_tree = True
            root = begin["unit"].strip("/").split("/") if begin is not None and begin["unit"] else root
            continue
        match = _ROW.match(line)
        if match is None:
            # Properties of units, such as `→ user.invocation_id: …`, and status lines of the pager.
            if in_tree and line.lstrip("│ \u00a0").startswith(("→", "lines ")):
                continue
            raise wrong(str(path), number, line, "a line of the tree that systemd-cgls draws")
        depth, rest = len(match["tree"]) // 2 - 1, match["rest"]
        process = _PROCESS.fullmatch(rest)
        if depth >= _DEPTH_MAX or depth > len(ancestors):
            raise wrong(str(path), number, line, "a group or a process one level below the one before")
        if rest.startswith("→"):
            continue
        if process is not None:
            threads[int(process["pid"])] = ProcThread(int(process["pid"]), group="/".join([*root, *ancestors[:depth]]))
        else:
            ancestors[depth:] = [_UNIT.sub("", rest)]
    return Linux(threads=threads)
