"""What libvirt's `virsh` prints of virtual machines and their scheduling.

Columns and names are those of virsh(1) and libvirt's domain XML format.
"""

import re
from collections.abc import Iterator
from os import PathLike
from xml.etree import ElementTree

from vcpulab.formats.errors import wrong
from vcpulab.formats.headed import headed
from vcpulab.formats.machine import Machine
from vcpulab.formats.sources import text_of

LIST_HEADING = ["Id", "Name", "State"]
_COMMANDS = "vcpuinfo|vcpupin|emulatorpin|iothreadinfo|schedinfo|domstats|dumpxml"
_PARAMS = {
    f"{of}_{what}": f"{of}_{what}_us"
    for of in ("vcpu", "emulator", "global", "iothread")
    for what in ("period", "quota")
}
_NUMBER = re.compile(r"-?\d{1,20}")
_UNLIMITED = 10**15
"""libvirt says no quota by -1, and by numbers near 2^64 / 1000."""
DOMAIN_BEGINS = (
    r"\s{0,80}(VCPU:\s{1,80}\d|VCPU\s{1,80}CPU Affinity\s*$|emulator: CPU Affinity\s*$"
    r"|IOThread ID\s{1,80}CPU Affinity\s*$|Scheduler\s{0,80}: )"
)
"""How `vcpuinfo`, `vcpupin`, `emulatorpin`, `iothreadinfo` and `schedinfo` begin."""


def read_list(path: str | PathLike[str]) -> list[Machine]:
    """`virsh list`, also with `--all`.

    Raises:
        RecordingError: it is something else.
    """
    found = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.split() == LIST_HEADING or re.fullmatch(r"-+", line.strip()):
            continue
        # Names and states may have a blank inside, and two blanks between them.
        cells = [cell.strip() for cell in line.replace("\t", "  ").split("  ") if cell.strip()]
        if len(cells) != 3 or not re.fullmatch(r"\d{1,9}|-", cells[0]):
            raise wrong(str(path), number, line, "an id or `-`, a name, a state")
        known = None if cells[0] == "-" else int(cells[0])
        found.append(Machine(cells[1], known, running=cells[2] != "shut off"))
    return found


def read_domain(path: str | PathLike[str]) -> list[Machine]:
    """`vcpuinfo`, `vcpupin`, `emulatorpin`, `iothreadinfo` and `schedinfo` of machines, after each other.

    Raises:
        RecordingError: it is something else.
    """
    machines: dict[str, Machine] = {}
    table: str | None = None
    for about, number, line in headed(path, _COMMANDS):
        its = machines.setdefault(about, Machine(about))
        words = line.split()
        begins = re.match(DOMAIN_BEGINS, line)
        if begins is not None:
            table = begins[1].split()[0].rstrip(":").lower() + (":" if begins[1].startswith("VCPU:") else "")
        if begins is not None and not line.lstrip().startswith(("VCPU:", "Scheduler")):
            continue
        if not line.strip(" \t-"):
            continue
        if table is None or not _took(its, table, line, words):
            raise wrong(str(path), number, line, "a line of virsh vcpuinfo, vcpupin, emulatorpin, or schedinfo")
    return list(machines.values())


def _took(machine: Machine, table: str, line: str, words: list[str]) -> bool:
    name, sign, value = (part.strip() for part in line.partition(":"))
    if table == "vcpu:":
        if name == "VCPU" and value.isdecimal() and len(value) < 5:
            machine.vcpus = max(machine.vcpus or 0, int(value) + 1)
        elif name == "CPU Affinity" and re.fullmatch(r"[y-]{1,4096}", value) and machine.vcpus:
            machine.vcpu_pins[machine.vcpus - 1] = ",".join(str(cpu) for cpu, may in enumerate(value) if may == "y")
        return bool(sign)
    if table == "scheduler":
        if name in _PARAMS and _NUMBER.fullmatch(value):
            machine.params[_PARAMS[name]] = _quota(int(value))
        elif name == "cpu_shares" and value.isdecimal() and len(value) < 10:
            machine.shares = int(value)
        return bool(sign)
    if len(words) != 2 or not re.fullmatch(r"[\d,^-]{1,4096}", words[1]):
        return False
    if table == "emulator" and words[0] == "*:":
        machine.emulator_pin = words[1]
    elif words[0].isdecimal() and len(words[0]) < 5 and table == "vcpu":
        machine.vcpu_pins[int(words[0])] = words[1]
        machine.vcpus = max(machine.vcpus or 0, int(words[0]) + 1)
    elif words[0].isdecimal() and len(words[0]) < 5 and table == "iothread":
        machine.iothread_pins[int(words[0])] = words[1]
    else:
        return False
    return True


def _quota(us: int) -> int:
    return -1 if us <= 0 or us > _UNLIMITED else us


# ---- XML ----

_COMMENT = re.compile(r"<!--|<!\[CDATA\[")


def elements(path: str | PathLike[str], root: str) -> list[ElementTree.Element]:
    """The elements of that name, several after each other too; between documents may be headings."""
    text = text_of(path)
    if "<!" in _without_comments(text):
        raise wrong(str(path), None, "<!DOCTYPE", "XML without document types, as libvirt writes it")
    parsed = []
    for begin, end in _spans(text, root):
        piece = text[begin:end]
        try:
            parsed.append(ElementTree.fromstring(piece))
        except ElementTree.ParseError as error:
            line = text.count("\n", 0, begin) + error.position[0]
            raise wrong(str(path), line, piece.split("\n")[error.position[0] - 1], "XML") from None
    if not parsed:
        first = next((line for line in text.splitlines() if line.strip()), "")
        raise wrong(str(path), 1, first, f"`<{root}>` … `</{root}>`")
    return parsed


def _spans(text: str, root: str) -> Iterator[tuple[int, int]]:
    """Where the elements of that name begin and end; one pass, whatever the text is."""
    end_mark = f"</{root}>"
    at = 0
    while (begin := text.find(f"<{root}", at)) >= 0:
        at = begin + len(root) + 1
        if not text[at : at + 1].isspace() and text[at : at + 1] != ">":
            continue
        end = text.find(end_mark, at)
        if end < 0:
            return
        at = end + len(end_mark)
        yield begin, at


def _without_comments(text: str) -> str:
    """A text without comments and raw texts of XML; one that does not end stays."""
    pieces, at = [], 0
    ends = {"<!--": "-->", "<![CDATA[": "]]>"}
    unended: set[str] = set()
    while match := _COMMENT.search(text, at):
        pieces.append(text[at : match.start()])
        end = -1 if match[0] in unended else text.find(ends[match[0]], match.end())
        if end < 0:
            unended.add(match[0])
            pieces.append(match[0])
            at = match.end()
        else:
            at = end + len(ends[match[0]])
    return "".join([*pieces, text[at:]])


def read_xml(path: str | PathLike[str]) -> list[Machine]:
    """`virsh dumpxml`, of several machines after each other too.

    Raises:
        RecordingError: it is something else.
    """
    return [_machine(path, element) for element in elements(path, "domain")]


def _machine(path: str | PathLike[str], element: ElementTree.Element) -> Machine:
    def said(where: str, text: str | None) -> int | None:
        if text is None:
            return None
        if not _NUMBER.fullmatch(text.strip()):
            raise wrong(str(path), None, text.strip(), f"a number as {where}")
        return int(text)

    def number(of: ElementTree.Element, attribute: str) -> int:
        return said(f"{of.tag} {attribute}", of.get(attribute, "")) or 0

    machine = Machine((element.findtext("name") or "").strip())
    if not machine.name:
        raise wrong(str(path), None, "no <name>", "a domain's name")
    machine.number = said("id", element.get("id"))
    machine.running = machine.number is not None
    vcpu = element.find("vcpu")
    if vcpu is not None:
        machine.vcpus = said("vcpu", vcpu.get("current") or vcpu.text)
        if vcpu.get("cpuset"):
            machine.vcpu_pins = dict.fromkeys(range(min(machine.vcpus or 0, 4096)), vcpu.get("cpuset", ""))
            machine.emulator_pin = vcpu.get("cpuset")
    machine.iothreads = said("iothreads", element.findtext("iothreads"))
    tune = element.find("cputune")
    for child in tune if tune is not None else ():
        name = {"period": "vcpu_period", "quota": "vcpu_quota"}.get(child.tag, child.tag)
        if name in _PARAMS:
            machine.params[_PARAMS[name]] = _quota(said(child.tag, child.text) or 0)
        elif name == "shares":
            machine.shares = said("shares", child.text)
        elif name == "vcpupin":
            machine.vcpu_pins[number(child, "vcpu")] = child.get("cpuset", "")
        elif name == "emulatorpin":
            machine.emulator_pin = child.get("cpuset")
        elif name == "iothreadpin":
            machine.iothread_pins[number(child, "iothread")] = child.get("cpuset", "")
        elif name == "vcpusched":
            for one in _listed(child.get("vcpus", "")):
                priority = number(child, "priority") if child.get("priority") else 0
                machine.scheduling[one] = child.get("scheduler", "other"), priority
    return machine


def _listed(text: str) -> list[int]:
    """Numbers of a list such as `0-3,^2`; what is no such list names none.

    Examples:
        >>> _listed("0-3,^2"), _listed("many")
        ([0, 1, 3], [])
    """
    found: set[int] = set()
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"(\^?)(\d{1,4})(?:-(\d{1,4}))?", part)
        if match is None:
            return []
        ones = range(int(match[2]), int(match[3] or match[2]) + 1)
        found = found.difference(ones) if match[1] else found.union(ones)
    return sorted(found)


# ---- use ----

_STAMP = re.compile(r"\d{9,11}(\.\d{1,9})?")


def read_domstats(path: str | PathLike[str]) -> list[Machine]:
    """`virsh domstats`, again and again, with `date +%s.%N` before each.

    Raises:
        RecordingError: it is something else.
    """
    machines: dict[str, Machine] = {}
    at, its = 0.0, None
    for number, line in enumerate(text_of(path).splitlines(), 1):
        said = line.strip()
        name, sign, value = said.partition("=")
        if _STAMP.fullmatch(said):
            at, its = float(said), None
        elif said.startswith("Domain: "):
            called = said.removeprefix("Domain: ").strip("'")
            its = machines.setdefault(called, Machine(called))
        elif not said:
            continue
        elif not sign or its is None:
            raise wrong(str(path), number, line, "seconds, `Domain: 'NAME'`, or `NAME=VALUE` after it")
        elif name == "cpu.time" and value.isdecimal() and len(value) < 20:
            its.cpu_ns[at] = int(value)
        elif name == "vcpu.current" and value.isdecimal() and len(value) < 5:
            its.vcpus = int(value)
    return list(machines.values())
