"""The output of libvirt's `virsh` on virtual machines and their scheduling.

Columns and names are those of virsh(1) and libvirt's domain XML format.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from xml.etree import ElementTree

from vcpulab.formats.errors import wrong
from vcpulab.formats.headed import headed, heading_of
from vcpulab.formats.machine import DEVICES, Machine, quota_us
from vcpulab.formats.sources import text_of
from vcpulab.scenario.units import spans

LIST_HEADINGS = [["Id", "Name", "State"], ["Id", "Name", "State", "Title"]]
_COMMANDS = "vcpuinfo|vcpupin|emulatorpin|iothreadinfo|schedinfo|domstats|dumpxml"
_PARAMS = {
    f"{target}_{field}": f"{target}_{field}_us"
    for target in ("vcpu", "emulator", "global", "iothread")
    for field in ("period", "quota")
}
_NUMBER = re.compile(r"-?\d{1,20}")
_PARTS_MOST = 512
"""Parts of a list of CPUs: a host has no more of them."""
_CPUS = re.compile(r"\^?\d{1,5}(-\d{1,5})?(,\^?\d{1,5}(-\d{1,5})?){0,512}")
_PRETTY = re.compile(rf"(?P<cpus>{_CPUS.pattern}) \(out of \d{{1,5}}\)")
"""An affinity as `virsh vcpuinfo --pretty` prints it."""
DOMAIN_BEGINS = (
    r"\s{0,80}(VCPU:\s{1,80}\d|VCPU:?\s{1,80}CPU Affinity\s*$|emulator: CPU Affinity\s*$"
    r"|IOThread ID\s{1,80}CPU Affinity\s*$|Scheduler\s{0,80}: )"
)
"""The beginnings of `vcpuinfo`, `vcpupin`, `emulatorpin`, `iothreadinfo` and `schedinfo`."""


def read_list(path: str | PathLike[str]) -> list[Machine]:
    """`virsh list`, also with `--all` and `--title`.

    Raises:
        RecordingError: it is something else.
    """
    machines = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.split() in LIST_HEADINGS or re.fullmatch(r"-+", line.strip()):
            continue
        cells = _list_cells(line)
        if cells is None:
            raise wrong(str(path), number, line, f"an id or `-`, a name, a state: {', '.join(_STATES)}")
        domain, name, state = cells
        machine = Machine(name, None if domain == "-" else int(domain), running=domain != "-")
        if state in _STANDING:
            machine.omitted[f"that it is {state}: here it runs"] = None
        machines.append(machine)
    return machines


_STATES = ("no state", "running", "idle", "paused", "in shutdown", "shut off", "crashed", "pmsuspended")
_STANDING = ("paused", "crashed", "pmsuspended")
"""States in which a machine that has a QEMU does not run."""


def _list_cells(line: str) -> tuple[str, str, str] | None:
    """The id, the name and the state of a row; `None`: it is none. Names and states may have a blank inside.

    Examples:
        >>> _list_cells(" 1    my web    in shutdown"), _list_cells(" 22   a-long-name running")
        (('1', 'my web', 'in shutdown'), ('22', 'a-long-name', 'running'))
        >>> _list_cells(" -    web    shut off    The title"), _list_cells("web running")
        (('-', 'web', 'shut off'), None)
    """
    domain, *rest = line.replace("\t", "  ").split(maxsplit=1)
    if not rest or not re.fullmatch(r"\d{1,9}|-", domain):
        return None
    cells = [cell.strip() for cell in rest[0].split("  ") if cell.strip()]
    if len(cells) > 1 and cells[1] in _STATES:
        return domain, cells[0], cells[1]
    # After a long name is one blank.
    for state in _STATES:
        if cells[0].endswith(f" {state}"):
            return domain, cells[0].removesuffix(state).strip(), state
    return None


def read_domain(path: str | PathLike[str]) -> list[Machine]:
    """`vcpuinfo`, `vcpupin`, `emulatorpin`, `iothreadinfo` and `schedinfo` of machines, after each other.

    Raises:
        RecordingError: it is something else.
    """
    machines: dict[str, Machine] = {}
    table: str | None = None
    begun: set[tuple[str, str]] = set()
    for about, number, line in headed(path, _COMMANDS):
        machine = machines.setdefault(about, Machine(about))
        words = line.split()
        begins = re.match(DOMAIN_BEGINS, line)
        if begins is not None:
            table = "info" if re.match(r"VCPU:\s+\d", begins[1]) else begins[1].split()[0].rstrip(":").lower()
        if table is not None and begins is not None and (table != "info" or _FIRST_VCPU.fullmatch(line)):
            if (about, table) in begun:
                raise wrong(str(path), number, line, "a heading `== NAME ==` above what is of another machine")
            begun.add((about, table))
        if begins is not None and table not in ("info", "scheduler"):
            continue
        if not line.strip(" \t-"):
            continue
        if table is None or not _took(machine, table, line, words):
            raise wrong(str(path), number, line, "a line of virsh vcpuinfo, vcpupin, emulatorpin, or schedinfo")
    return list(machines.values())


_FIRST_VCPU = re.compile(r"\s*VCPU:\s+0\s*")


def _took(machine: Machine, table: str, line: str, words: list[str]) -> bool:
    if table == "info":
        return _took_info(machine, line)
    name, sign, value = (part.strip() for part in line.partition(":"))
    if table == "scheduler":
        if name in _PARAMS and _NUMBER.fullmatch(value):
            machine.params[_PARAMS[name]] = quota_us(int(value))
        elif name == "cpu_shares" and value.isdecimal() and len(value) < 10 and int(value):
            # A machine that is off and has none configured has 0.
            machine.shares_now = int(value)
        elif name not in ("Scheduler", "cpu_shares", *_PARAMS):
            machine.omitted[f"{name} = {value}, which `virsh schedinfo` has of another hypervisor"] = None
        return bool(sign)
    if len(words) != 2 or not _CPUS.fullmatch(words[1]):
        return False
    number = words[0].removesuffix(":")
    if table == "emulator" and number == "*":
        machine.emulator_pin = words[1]
    elif number.isdecimal() and len(number) < 5 and table == "vcpu":
        machine.vcpu_pins[int(number)] = words[1]
        machine.vcpus = max(machine.vcpus or 0, int(number) + 1)
    elif number.isdecimal() and len(number) < 5 and table == "iothread":
        machine.iothread_pins[int(number)] = words[1]
        machine.iothreads = len(machine.iothread_pins)
    else:
        return False
    return True


def _took_info(machine: Machine, line: str) -> bool:
    """A line of `vcpuinfo`. That of a machine that is off has `CPU time        N/A`, without a colon."""
    match = re.fullmatch(r"\s*(?P<name>VCPU|CPU|State|CPU time|CPU Affinity)(:|\s{2,})\s*(?P<value>.*?)\s*", line)
    if match is None:
        return False
    name, value = match["name"], match["value"]
    if name == "VCPU":
        if not value.isdecimal() or len(value) > 4:
            return False
        machine.vcpus = max(machine.vcpus or 0, int(value) + 1)
    elif name == "CPU Affinity" and machine.vcpus:
        pretty = _PRETTY.fullmatch(value)
        if pretty is None and re.fullmatch(r"[y-]{1,4096}", value) is None:
            return False
        cpus = ",".join(str(cpu) for cpu, may in enumerate(value) if may == "y") if pretty is None else pretty["cpus"]
        machine.vcpu_pins[machine.vcpus - 1] = cpus
    return True


# ---- XML ----

_COMMENT = re.compile(r"<!--|<!\[CDATA\[")


def elements(path: str | PathLike[str], root: str) -> list[ElementTree.Element]:
    """The elements of that name, several after each other too; between documents may be headings."""
    text = text_of(path)
    if "<!" in _without_comments(text):
        raise wrong(str(path), None, "<!DOCTYPE", "XML without document types, as libvirt writes it")
    parsed = []
    for begin, end in _spans(text, root):
        if end < 0:
            first = text[begin:].split("\n", 1)[0]
            raise wrong(str(path), text.count("\n", 0, begin) + 1, first, f"`<{root}>` … `</{root}>`")
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
    """The beginnings and ends of the elements `root`, found in one pass over any text; an end of -1 is missing."""
    end_mark = f"</{root}>"
    at = 0
    while (begin := text.find(f"<{root}", at)) >= 0:
        at = begin + len(root) + 1
        if not text[at : at + 1].isspace() and text[at : at + 1] != ">":
            continue
        end = text.find(end_mark, at)
        if end < 0:
            yield begin, -1
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
    def number(where: str, text: str | None, least: int | None = None) -> int:
        text = (text or "").strip()
        if not _NUMBER.fullmatch(text) or (least is not None and int(text) < least):
            bound = "" if least is None else f" from {least}"
            raise wrong(str(path), None, text, f"a number{bound} as {where} of the domain {name}")
        return int(text)

    name = (element.findtext("name") or "").strip()
    if not name:
        raise wrong(str(path), None, "no <name>", "a domain's name")
    machine = Machine(name, configured=True)
    if element.get("id") is not None:
        machine.number, machine.running = number("id", element.get("id")), True
    vcpu = element.find("vcpu")
    if vcpu is not None:
        machine.vcpus = number("vcpu", vcpu.get("current") or vcpu.text, 1)
        if vcpu.get("cpuset"):
            machine.vcpu_pins = dict.fromkeys(range(min(machine.vcpus, 4096)), vcpu.get("cpuset", ""))
            machine.emulator_pin = machine.iothread_pin = vcpu.get("cpuset")
    if element.find("iothreads") is not None:
        machine.iothreads = number("iothreads", element.findtext("iothreads"))
    topology = element.find("cpu/topology")
    if topology is not None and topology.get("threads") is not None:
        machine.threads_per_core = number("threads", topology.get("threads"), 1)
    machine.partition = (element.findtext("resource/partition") or "").strip() or None
    for child in element.iterfind("cputune/*"):
        _take_tuning(machine, child, number)
    _take_memory(machine, element.iterfind("numatune/*"))
    _take_omitted(machine, element)
    online = sorted(
        number("vcpu id", vcpu.get("id"), 0) for vcpu in element.iterfind("vcpus/vcpu") if vcpu.get("enabled") == "yes"
    )
    _count_from_0(machine, dict(zip(online, range(len(online)), strict=True)))
    return machine


def _count_from_0(machine: Machine, online: Mapping[int, int]) -> None:
    """Leaves out what is said of vCPUs that are offline, and numbers the others.

    Args:
        machine: theirs.
        online: by vCPU that is online: its number among these; empty: these are the first ones.
    """
    numbered_vcpus = {*machine.vcpu_pins, *machine.scheduling}
    numbers = online or {vcpu: vcpu for vcpu in numbered_vcpus if vcpu < (machine.vcpus or 1)}
    offline = sorted(numbered_vcpus.difference(numbers))
    if offline:
        machine.omitted[f"what vCPUs {spans(offline)} may do, which are offline"] = None
    machine.vcpu_pins = {numbers[vcpu]: pin for vcpu, pin in machine.vcpu_pins.items() if vcpu in numbers}
    machine.scheduling = {numbers[vcpu]: policy for vcpu, policy in machine.scheduling.items() if vcpu in numbers}


def _take_tuning(machine: Machine, child: ElementTree.Element, number: Callable[[str, str | None], int]) -> None:
    """An element of `<cputune>`."""

    def attribute(name: str) -> int:
        return number(f"{child.tag} {name}", child.get(name))

    tag = {"period": "vcpu_period", "quota": "vcpu_quota"}.get(child.tag, child.tag)
    if tag in _PARAMS:
        machine.params[_PARAMS[tag]] = quota_us(number(child.tag, child.text))
    elif tag == "shares":
        machine.shares = max(number("shares", child.text), 0) or None
    elif tag == "vcpupin":
        machine.vcpu_pins[attribute("vcpu")] = child.get("cpuset", "")
    elif tag == "emulatorpin":
        machine.emulator_pin = child.get("cpuset")
    elif tag == "iothreadpin":
        machine.iothread_pins[attribute("iothread")] = child.get("cpuset", "")
    elif tag == "vcpusched":
        for vcpu in numbers_of(child.get("vcpus", "")):
            priority = attribute("priority") if child.get("priority") else 0
            machine.scheduling[vcpu] = child.get("scheduler", "other"), priority
    else:
        machine.omitted[f"<{child.tag}>"] = None


def _take_memory(machine: Machine, numatune: Iterable[ElementTree.Element]) -> None:
    """The host's nodes that its memory is bound to."""
    for child in numatune:
        if child.tag == "memory" and child.get("nodeset"):
            machine.memory_nodes = child.get("nodeset")
        else:
            values = "".join(f" {name}={value!r}" for name, value in child.attrib.items())
            machine.omitted[f"<numatune>: <{child.tag}{values}>"] = None


def _take_omitted(machine: Machine, element: ElementTree.Element) -> None:
    """Notes settings without a field in scenarios that change the place of work."""
    if element.find("devices/disk") is not None or element.find("devices/interface") is not None:
        machine.omitted[DEVICES] = None
    kind = element.get("type", "kvm")
    if kind not in ("kvm", "qemu", "xen"):
        machine.omitted[f"that it is no VM of KVM (type='{kind}'): here it is one"] = None
    vcpu = element.find("vcpu")
    if vcpu is not None and vcpu.get("placement") == "auto":
        machine.omitted["vCPUs placed by numad (placement='auto')"] = None


def numbers_of(text: str) -> list[int]:
    """Numbers of a list such as `0-3,^2`; what is no such list names none.

    Examples:
        >>> numbers_of("0-3,^2"), numbers_of("many")
        ([0, 1, 3], [])
    """
    numbers: set[int] = set()
    for part in text.replace(" ", "").split(",", _PARTS_MOST)[:_PARTS_MOST]:
        match = re.fullmatch(r"(\^?)(\d{1,4})(?:-(\d{1,4}))?", part)
        if match is None:
            return []
        span = range(int(match[2]), int(match[3] or match[2]) + 1)
        numbers = numbers.difference(span) if match[1] else numbers.union(span)
    return sorted(numbers)


# ---- use ----

_STAMP = re.compile(r"\d{9,11}(\.\d{1,9})?")
_VCPU_WAIT = re.compile(r"vcpu\.\d{1,4}\.(wait|delay)")
_VCPU_TIME = re.compile(r"vcpu\.(\d{1,4})\.time")


def read_domstats(path: str | PathLike[str]) -> list[Machine]:
    """`virsh domstats`, again and again, with `date +%s.%N` before each.

    Raises:
        RecordingError: it is something else.
    """
    machines: dict[str, Machine] = {}
    at, machine = 0.0, None
    for number, line in enumerate(text_of(path).splitlines(), 1):
        text = line.strip()
        name, sign, value = text.partition("=")
        if _STAMP.fullmatch(text):
            at, machine = float(text), None
        elif text.startswith("Domain: "):
            title = text.removeprefix("Domain: ").strip("'")
            machine = machines.setdefault(title, Machine(title))
        elif not text or heading_of(line) is not None:
            continue
        elif not sign or machine is None:
            raise wrong(str(path), number, line, "seconds, `Domain: 'NAME'`, or `NAME=VALUE` after it")
        elif value.isdecimal() and len(value) < 20:
            _take_count(machine, at, name, int(value))
    return list(machines.values())


def _take_count(machine: Machine, at: float, name: str, value: int) -> None:
    vcpu = _VCPU_TIME.fullmatch(name)
    if name == "cpu.time":
        machine.cpu_ns[at] = value
    elif vcpu is not None:
        machine.vcpu_ns[at, int(vcpu[1])] = value
    elif value and _VCPU_WAIT.fullmatch(name):
        machine.omitted["how long its vCPUs waited (vcpu.N.wait, vcpu.N.delay)"] = None
    elif name == "vcpu.current" and value < 10_000:
        machine.vcpus = value
    elif name == "state.state":
        machine.running = value not in _OFF


_OFF = (4, 5, 6)
"""libvirt's states of a machine that has no QEMU, or one that ends: being shut down, shut off, crashed."""
