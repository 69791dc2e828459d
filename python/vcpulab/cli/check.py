"""`vcpulab check` and `vcpulab init`: scenario files. Nothing heavy is imported: editors run `check` at every save."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from vcpulab._engine import starter
from vcpulab._files import atomic
from vcpulab.cli import files, terminal
from vcpulab.cli.options import Flag, Force, TableOrJson, command, number
from vcpulab.cli.outputs import Writes
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario import like as hosts
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.measured import PCPUS_MAX
from vcpulab.scenario.names import did_you_mean
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.topology import Topology
from vcpulab.show.as_json import as_json

DONE, WRONG = 0, 2
_Answer = TypeVar("_Answer")
_USUAL = {"web": 1, "service": 4, "batch": 2, "idle": 2}


@command("check", "vcpulab check web.toml", "vcpulab check web.toml --format json")
def check(
    file: Annotated[tuple[Path, ...], Parameter(negative=())],
    /,
    *,
    format: TableOrJson = "table",
) -> int:
    """Check scenario files; print every problem found in them.

    As JSON: for each file whether it can run (`ok`), and its `problems` and `warnings`, each with file, line, column,
    field, what was found, what is allowed, a hint, and the message.

    Args:
        file: Scenario files.
    """
    if format == "json":
        answers = {str(path): _checked(path) for path in file}
        print(as_json(answers))
        return DONE if all(answer["ok"] for answer in answers.values()) else WRONG
    status = DONE
    for path in file:
        try:
            topology = Topology.from_host(files.load(path).host)
        except (RequestError, ScenarioError) as error:
            terminal.say(str(error))
            status = WRONG
        else:
            print(f"{path}: ok" if topology.is_flat else f"{path}: ok ({topology})")
    return status


def _checked(path: Path) -> dict[str, Any]:
    """The result of checking a file, as data."""
    try:
        return {"ok": True, "problems": [], "warnings": Scenario.load(path).warnings}
    except ScenarioError as error:
        return {"ok": False, "problems": error.problems, "warnings": []}
    except OSError as error:
        return {"ok": False, "problems": [{"file": str(path), "message": files.reason(error)}], "warnings": []}


_VMS_MAX = 100
Threads = Annotated[int | None, number("Hardware threads of a host like that.", 1, PCPUS_MAX)]
Web = Annotated[int | None, number(f"VMs: {hosts.KINDS['web']}.", 0, _VMS_MAX)]
Service = Annotated[int | None, number(f"VMs: {hosts.KINDS['service']}.", 0, _VMS_MAX)]
Batch = Annotated[int | None, number(f"VMs: {hosts.KINDS['batch']}.", 0, _VMS_MAX)]
Idle = Annotated[int | None, number(f"VMs: {hosts.KINDS['idle']}.", 0, _VMS_MAX)]


@command("init", "vcpulab init web.toml", "vcpulab init mine.toml --like --threads 16 --web 2 --batch 12")
def init(
    path: Annotated[Path, Writes.FILE] = Path("scenario.toml"),
    /,
    *,
    like: Flag = False,
    threads: Threads = None,
    scheduler: str | None = None,
    web: Web = None,
    service: Service = None,
    batch: Batch = None,
    idle: Idle = None,
    force: Force = False,
) -> None:
    """Write a commented scenario to start from.

    Args:
        path: File to write.
        like: Make it like your host: asks for its threads, its scheduler and its VMs what no option says; where there
            is no terminal, answers for itself.
        scheduler: Its scheduler, such as credit or credit2.
    """
    vms = {"web": web, "service": service, "batch": batch, "idle": idle}
    if not like and any(answer is not None for answer in (threads, scheduler, *vms.values())):
        raise RequestError("--threads, --scheduler and numbers of VMs are for --like", hint="vcpulab init --help")
    if scheduler is not None:
        _scheduler(scheduler)
    files.check_new(path, force=force)
    text = _like(threads, scheduler, vms) if like else starter()
    atomic.write(path, text)
    terminal.say(f"written to {path}\n  hint: vcpulab run {files.word(path)}")


def _like(threads: int | None, scheduler: str | None, vms: Mapping[str, int | None]) -> str:
    threads = threads or _prompted("hardware threads", 8, lambda text: _whole(text, 1, PCPUS_MAX))
    scheduler = scheduler or _prompted("scheduler", "credit2", _scheduler)
    counts = {
        kind: _prompted(f"VMs: {hosts.KINDS[kind]}", _USUAL[kind], lambda text: _whole(text, 0, _VMS_MAX))
        if given is None
        else given
        for kind, given in vms.items()
    }
    text = hosts.text_of(threads, scheduler, counts)
    Scenario.from_toml(text)
    return text


def _prompted(question: str, usual: _Answer, read: Callable[[str], _Answer]) -> _Answer:
    """The first valid answer that the user types; the usual one for an empty line, or without a terminal."""
    if not sys.stdin.isatty():
        return usual
    while True:
        print(f"{question} [{usual}]: ", end="", file=sys.stderr, flush=True)
        text = sys.stdin.readline().strip()
        if not text:
            return usual
        try:
            return read(text)
        except RequestError as error:
            terminal.error(str(error))


def _whole(text: str, least: int, most: int) -> int:
    if not (text.isdecimal() and len(text) < 9 and least <= int(text) <= most):
        raise RequestError(found=text, allowed=f"an integer from {least} to {most}")
    return int(text)


def _scheduler(text: str) -> str:
    """The scheduler's name, if a scenario needs nothing else of that scheduler."""
    names = [scheduler.name for scheduler in schedulers() if scheduler.name not in ("arinc653", "null")]
    if text not in names:
        hint = did_you_mean(text, names)
        raise RequestError(field="scheduler", found=text, allowed=", ".join(names), hint=hint)
    return text
