"""The output of libvirt's `virsh` on virtual machines and their scheduling.

Columns and names are those of virsh(1) and libvirt's domain XML format.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
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
        RecordingError: the file does not have this format.
    """
    machines = []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        if not line.strip() or line.split() in LIST_HEADINGS or re.fullmatch(r"-+", line.strip()):
            continue
        cells = _list_cells(line)
        if cells is None:
            raise wrong(str(path), number, line, f"an id or `-`, a name, a state: {', '.join(_STATES)}")
        domain, name, state = cells
        omitted = {f"that it is {state}: here it runs": None} if state in _STANDING else {}
        machines.append(Machine(name, None if domain == "-" else int(domain), running=domain != "-", omitted=omitted))
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
        RecordingError: the file does not have this format.
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
        more = None if table is None else _line(machine, table, line, words)
        if more is None:
            raise wrong(str(path), number, line, "a line of virsh vcpuinfo, vcpupin, emulatorpin, or schedinfo")
        machines[about] = machine.updated(more)
    return list(machines.values())


_FIRST_VCPU = re.compile(r"\s*VCPU:\s+0\s*")


def _line(machine: Machine, table: str, line: str, words: list[str]) -> Machine | None:
    """The contents of a line about a machine that is known so far; `None`: the table has no such line."""
    if table == "info":
        return _info(machine, line)
    name, sign, value = (part.strip() for part in line.partition(":"))
    if table == "scheduler":
        return _scheduling(machine.name, name, value) if sign else None
    if len(words) != 2 or not _CPUS.fullmatch(words[1]):
        return None
    return _pin(machine, table, words[0].removesuffix(":"), words[1])


def _pin(machine: Machine, table: str, number: str, cpus: str) -> Machine | None:
    """A line of `vcpupin`, `emulatorpin` or `iothreadinfo`."""
    if table == "emulator" and number == "*":
        return Machine(machine.name, emulator_pin=cpus)
    if not number.isdecimal() or len(number) > 4:
        return None
    if table == "vcpu":
        vcpus = max(machine.vcpus or 0, int(number) + 1)
        return Machine(machine.name, vcpus=vcpus, vcpu_pins={int(number): cpus})
    if table == "iothread":
        iothreads = len({*machine.iothread_pins, int(number)})
        return Machine(machine.name, iothreads=iothreads, iothread_pins={int(number): cpus})
    return None


def _scheduling(machine: str, name: str, value: str) -> Machine:
    """A line of `schedinfo`."""
    if name in _PARAMS and _NUMBER.fullmatch(value):
        return Machine(machine, params={_PARAMS[name]: quota_us(int(value))})
    if name == "cpu_shares" and value.isdecimal() and len(value) < 10 and int(value):
        # A machine that is off and has none configured has 0.
        return Machine(machine, shares_now=int(value))
    if name in ("Scheduler", "cpu_shares", *_PARAMS):
        return Machine(machine)
    return Machine(machine, omitted={f"{name} = {value}, which `virsh schedinfo` has of another hypervisor": None})


def _info(machine: Machine, line: str) -> Machine | None:
    """A line of `vcpuinfo`. That of a machine that is off has `CPU time        N/A`, without a colon."""
    match = re.fullmatch(r"\s*(?P<name>VCPU|CPU|State|CPU time|CPU Affinity)(:|\s{2,})\s*(?P<value>.*?)\s*", line)
    if match is None:
        return None
    name, value = match["name"], match["value"]
    if name == "VCPU":
        is_number = value.isdecimal() and len(value) < 5
        return Machine(machine.name, vcpus=max(machine.vcpus or 0, int(value) + 1)) if is_number else None
    if name == "CPU Affinity" and machine.vcpus:
        pretty = _PRETTY.fullmatch(value)
        if pretty is None and re.fullmatch(r"[y-]{1,4096}", value) is None:
            return None
        cpus = ",".join(str(cpu) for cpu, may in enumerate(value) if may == "y") if pretty is None else pretty["cpus"]
        return Machine(machine.name, vcpu_pins={machine.vcpus - 1: cpus})
    return Machine(machine.name)


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
        RecordingError: the file does not have this format.
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
    domain, vcpu, topology = element.get("id"), element.find("vcpu"), element.find("cpu/topology")
    vcpus = None if vcpu is None else number("vcpu", vcpu.get("current") or vcpu.text, 1)
    pin = None if vcpu is None else vcpu.get("cpuset") or None
    threads = None if topology is None else topology.get("threads")
    iothreads = element.find("iothreads")
    machine = Machine(
        name,
        None if domain is None else number("id", domain),
        running=None if domain is None else True,
        vcpus=vcpus,
        configured=True,
        vcpu_pins={} if pin is None or vcpus is None else dict.fromkeys(range(min(vcpus, 4096)), pin),
        emulator_pin=pin,
        iothread_pin=pin,
        iothreads=None if iothreads is None else number("iothreads", iothreads.text),
        threads_per_core=None if threads is None else number("threads", threads, 1),
        partition=(element.findtext("resource/partition") or "").strip() or None,
    )
    tuning = [_tuning(name, child, number) for child in element.iterfind("cputune/*")]
    machine = machine.updated(*tuning, *_memory(name, element.iterfind("numatune/*")), _omitted(name, element))
    online = sorted(
        number("vcpu id", vcpu.get("id"), 0) for vcpu in element.iterfind("vcpus/vcpu") if vcpu.get("enabled") == "yes"
    )
    return _counted_from_0(machine, dict(zip(online, range(len(online)), strict=True)))


def _counted_from_0(machine: Machine, online: Mapping[int, int]) -> Machine:
    """The machine without what is said of vCPUs that are offline, and with numbers for the others.

    Args:
        machine: theirs.
        online: by vCPU that is online: its number among these; empty: these are the first ones.
    """
    numbered_vcpus = {*machine.vcpu_pins, *machine.scheduling}
    numbers = online or {vcpu: vcpu for vcpu in numbered_vcpus if vcpu < (machine.vcpus or 1)}
    offline = sorted(numbered_vcpus.difference(numbers))
    omitted = {f"what vCPUs {spans(offline)} may do, which are offline": None} if offline else {}
    return replace(
        machine,
        omitted={**machine.omitted, **omitted},
        vcpu_pins={numbers[vcpu]: pin for vcpu, pin in machine.vcpu_pins.items() if vcpu in numbers},
        scheduling={numbers[vcpu]: policy for vcpu, policy in machine.scheduling.items() if vcpu in numbers},
    )


def _tuning(  # noqa: PLR0911 (a line for each element)
    machine: str, child: ElementTree.Element, number: Callable[[str, str | None], int]
) -> Machine:
    """The contents of an element of `<cputune>`."""

    def attribute(name: str) -> int:
        return number(f"{child.tag} {name}", child.get(name))

    tag = {"period": "vcpu_period", "quota": "vcpu_quota"}.get(child.tag, child.tag)
    if tag in _PARAMS:
        return Machine(machine, params={_PARAMS[tag]: quota_us(number(child.tag, child.text))})
    if tag == "shares":
        return Machine(machine, shares=max(number("shares", child.text), 0) or None)
    if tag == "vcpupin":
        return Machine(machine, vcpu_pins={attribute("vcpu"): child.get("cpuset", "")})
    if tag == "emulatorpin":
        return Machine(machine, emulator_pin=child.get("cpuset"))
    if tag == "iothreadpin":
        return Machine(machine, iothread_pins={attribute("iothread"): child.get("cpuset", "")})
    if tag == "vcpusched":
        vcpus = numbers_of(child.get("vcpus", ""))
        priority = attribute("priority") if vcpus and child.get("priority") else 0
        return Machine(machine, scheduling=dict.fromkeys(vcpus, (child.get("scheduler", "other"), priority)))
    return Machine(machine, omitted={f"<{child.tag}>": None})


def _memory(machine: str, numatune: Iterable[ElementTree.Element]) -> Iterator[Machine]:
    """The host's nodes that its memory is bound to."""
    for child in numatune:
        if child.tag == "memory" and child.get("nodeset"):
            yield Machine(machine, memory_nodes=child.get("nodeset"))
        else:
            values = "".join(f" {name}={value!r}" for name, value in child.attrib.items())
            yield Machine(machine, omitted={f"<numatune>: <{child.tag}{values}>": None})


def _omitted(machine: str, element: ElementTree.Element) -> Machine:
    """Settings without a field in scenarios that change the place of work."""
    omitted = []
    if element.find("devices/disk") is not None or element.find("devices/interface") is not None:
        omitted.append(DEVICES)
    kind = element.get("type", "kvm")
    if kind not in ("kvm", "qemu", "xen"):
        omitted.append(f"that it is no VM of KVM (type='{kind}'): here it is one")
    vcpu = element.find("vcpu")
    if vcpu is not None and vcpu.get("placement") == "auto":
        omitted.append("vCPUs placed by numad (placement='auto')")
    return Machine(machine, omitted=dict.fromkeys(omitted))


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
        RecordingError: the file does not have this format.
    """
    counts: dict[str, list[Machine]] = {}
    at, title = 0.0, None
    for number, line in enumerate(text_of(path).splitlines(), 1):
        text = line.strip()
        name, sign, value = text.partition("=")
        if _STAMP.fullmatch(text):
            at, title = float(text), None
        elif text.startswith("Domain: "):
            title = text.removeprefix("Domain: ").strip("'")
            counts.setdefault(title, [])
        elif not text or heading_of(line) is not None:
            continue
        elif not sign or title is None:
            raise wrong(str(path), number, line, "seconds, `Domain: 'NAME'`, or `NAME=VALUE` after it")
        elif value.isdecimal() and len(value) < 20:
            counts[title].append(_count(title, at, name, int(value)))
    return [Machine(title).updated(*more) for title, more in counts.items()]


def _count(machine: str, at: float, name: str, value: int) -> Machine:
    vcpu = _VCPU_TIME.fullmatch(name)
    if name == "cpu.time":
        return Machine(machine, cpu_ns={at: value})
    if vcpu is not None:
        return Machine(machine, vcpu_ns={(at, int(vcpu[1])): value})
    if value and _VCPU_WAIT.fullmatch(name):
        return Machine(machine, omitted={"how long its vCPUs waited (vcpu.N.wait, vcpu.N.delay)": None})
    if name == "vcpu.current" and value < 10_000:
        return Machine(machine, vcpus=value)
    return Machine(machine, running=value not in _OFF if name == "state.state" else None)


_OFF = (4, 5, 6)
"""libvirt's states of a machine that has no QEMU, or one that ends: being shut down, shut off, crashed."""
