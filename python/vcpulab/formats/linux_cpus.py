"""The CPUs of a Linux host and their places: `virsh nodeinfo`, `virsh capabilities`, and `lscpu`, also with `-p`."""

import re
from os import PathLike

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import text_of
from vcpulab.formats.virsh import elements
from vcpulab.formats.xl_info import Cpu, Info, Node

_NAMES = {
    "CPU(s)": "nr_cpus",
    "Core(s) per socket": "cores_per_socket",
    "Thread(s) per core": "threads_per_core",
    "NUMA cell(s)": "nr_nodes",
    "NUMA node(s)": "nr_nodes",
}
"""Names in nodeinfo and lscpu to names in `xl info`. (nodeinfo counts the sockets of a node.)"""
_NUMBER = re.compile(r"\d{1,6}")
_ONLINE, _MODEL = "On-line CPU(s) list", "Model name"
_NODE_CPUS = re.compile(r"NUMA node(\d{1,4}) CPU\(s\)")
_PLACE = ("cpu", "core", "socket", "node")
_L3 = re.compile(r"L3(?: cache)?")
_INSTANCES = re.compile(r".*\((\d{1,4}) instances?\)")
L3_CACHES = "l3_caches"
"""The setting with the number of L3 caches."""
COLUMNS = r"# (CPU,|([\w:]{1,20},){1,20}CPU(,|\s*$))"
"""The beginning of the last heading line of `lscpu -p`, as a pattern: the names of columns, CPU at any place."""


def read_counts(path: str | PathLike[str]) -> Info:
    """`virsh nodeinfo`, or `lscpu` without options.

    Raises:
        RecordingError: a line is not `name: value`, or the number of CPUs is missing.
    """
    info = Info({})
    models = 0
    for number, line in enumerate(text_of(path).splitlines(), 1):
        name, sign, value = (part.strip() for part in line.partition(":"))
        if line.strip() and not sign:
            raise wrong(str(path), number, line, "`name: value`, as virsh nodeinfo and lscpu print")
        node = _NODE_CPUS.fullmatch(name)
        if name in _NAMES and _NUMBER.fullmatch(value):
            info.settings[_NAMES[name]] = value
        elif node is not None:
            info.settings[f"node{node[1]}_cpus"] = value
        elif name == _ONLINE:
            info.settings["online_cpus"] = value
        instances = _INSTANCES.fullmatch(value)
        if _L3.fullmatch(name) and instances is not None:
            info.settings[L3_CACHES] = instances[1]
        models += name == _MODEL
    if models > 1:
        # Counts of cores are of each kind of them.
        info.settings["kinds_of_cores"] = str(models)
    if "nr_cpus" not in info.settings:
        raise wrong(str(path), None, "nothing", "`CPU(s): NUMBER`")
    return info


def read_lscpu(path: str | PathLike[str]) -> Info:
    """`lscpu -p`: a line for each CPU, also with other columns, in another order, and with CPUs that are offline.

    Raises:
        RecordingError: a column or a cell is missing, a cell is not a number, or CPUs are not listed once each.
    """
    info = Info({})
    columns = list(_PLACE)
    rows: list[tuple[int, dict[str, str]]] = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if re.match(COLUMNS, line):
            columns = [column.strip().lower() for column in line.removeprefix("#").split(",")]
        elif line.strip() and not line.startswith("#"):
            rows.append((number, dict(zip(columns, map(str.strip, line.split(",")), strict=False))))
    if "core" not in columns:
        raise wrong(str(path), None, f"the columns {', '.join(columns)}", "among them CPU and Core, as `lscpu -p` has")
    # CPUs that are offline have no core.
    has_cores = any(row.get("core") for _, row in rows)
    caches = {l3 for _, row in rows if (l3 := row.get("l3") or row.get("l1d:l1i:l2:l3", "").rpartition(":")[2])}
    if caches:
        info.settings[L3_CACHES] = str(len(caches))
    for number, row in rows:
        # A host that does not tell a place leaves the cell empty, or has no such column.
        cells = [row.get(column) or "0" for column in _PLACE]
        is_truncated = any(column in columns and column not in row for column in _PLACE)
        if is_truncated or not row.get("cpu") or not all(map(_NUMBER.fullmatch, cells)):
            raise wrong(str(path), number, ",".join(row.values()), f"`{','.join(columns).upper()}`")
        if row.get("online", "Y") in ("Y", "yes") and (row["core"] or not has_cores):
            info.cpus.append(Cpu(*map(int, cells)))
    _each_once(path, info)
    return info


def read_capabilities(path: str | PathLike[str]) -> Info:
    """`virsh capabilities`: the CPUs of each node of the host.

    Raises:
        RecordingError: the file is not such XML, a number is missing, or CPUs are not listed once each.
    """
    [host, *_] = elements(path, "capabilities")
    info = Info({})

    def number(text: str | None, where: str) -> int:
        if text is None or not _NUMBER.fullmatch(text):
            raise wrong(str(path), None, text, f"a number as {where}")
        return int(text)

    cells = host.findall("host/topology/cells/cell")
    for cell in cells:
        node = number(cell.get("id"), "cell id")
        distances = [number(sibling.get("value"), "sibling value") for sibling in cell.findall("distances/sibling")]
        memory = re.fullmatch(r"\s*(\d{1,15})\s*", cell.findtext("memory") or "")
        mb = int(memory[1]) // 1024 if memory else 0
        info.nodes.append(Node(node, mb, 0, distances))
        for cpu in cell.findall("cpus/cpu"):
            core, socket = (number(cpu.get(name, "0"), name) for name in ("core_id", "socket_id"))
            info.cpus.append(Cpu(number(cpu.get("id"), "cpu id"), core, socket, node))
    _each_once(path, info)
    return info


def _each_once(path: str | PathLike[str], info: Info) -> None:
    numbers = [cpu.cpu for cpu in info.cpus]
    if not numbers:
        raise wrong(str(path), None, "no CPU", "at least one")
    if len(set(numbers)) != len(numbers):
        raise wrong(str(path), None, "a CPU twice", "each CPU once")
