"""rt-app's workload files: read, and made into scenarios.

The grammar is that of rt-app's tutorial (github.com/scheduler-tools/rt-app, doc/tutorial.txt), comments, commas too
many and keys that stand several times included: events are carried out in the order in which they stand. What a
scenario cannot say is listed, each with its place in the file and what is done about it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from vcpulab.errors import RecordingError
from vcpulab.formats.sources import text_of
from vcpulab.scenario.scenario import Scenario

DOMAIN = "rt-app"
_PHASE_LOOPS_MAX = 2**32 - 1
_DAY_US = 86_400_000_000
_DURATION_S = 10
_VCPUS_MAX = 512
_NAME_CHARS_MAX = 60

# Events are known by how their keys begin (`run1` is a `run`): the longer words first.
_EVENTS: tuple[str, ...] = (
    "runtime",
    "run",
    "sleep",
    "membind",
    "mem",
    "iorun",
    "lock",
    "unlock",
    "signal",
    "broad",
    "wait",
    "sync",
)
_EVENTS += ("barrier", "timer", "resume", "suspend", "yield", "fork")

# What tasks and phases may say besides, and what is done about it.
_PROPERTIES = {
    "policy": "left out: the guest kernel shares its vCPUs evenly",
    "priority": "left out: in the guest kernel all tasks weigh alike",
    "nice": "left out: in the guest kernel all tasks weigh alike",
    "cpus": "left out: the guest kernel places its tasks itself",
    "nodes_membind": "left out: there are no memory nodes",
    "membind_nodes": "left out: there are no memory nodes",
    "util_min": "left out: clocks do not change",
    "util_max": "left out: clocks do not change",
    "taskgroup": "left out: there are no groups of tasks",
    "dl-runtime": (_RESERVED := "left out: the guest kernel has no reservations"),
    "dl-period": _RESERVED,
    "dl-deadline": _RESERVED,
    "period": _RESERVED,
    "deadline": _RESERVED,
}

_GLOBAL = {
    "calibration": "left out: `run` is CPU time on the scenario's machine",
    "default_policy": _PROPERTIES["policy"],
    "pi_enabled": "left out: locks do not pass priorities on",
    "lock_pages": "left out: memory is never paged out",
    "cumulative_slack": "left out: it is about rt-app's logs",
    "mem_buffer_size": "left out, as is `mem`",
    "io_device": "left out, as is `iorun`",
}

_LOST_EVENTS = {
    "mem": "left out: memory is not written byte by byte",
    "membind": "left out: there are no memory nodes",
    "iorun": "left out: writing to a device is not among the events of a scenario",
    "yield": "left out: a task keeps its vCPU for its time slice",
    "fork": "left out: all tasks are there from the beginning",
}

_LAX = re.compile(r'(?P<string>"(?:\\.|[^"\\])*")|/\*.*?\*/|//[^\n]*', re.DOTALL)
_COMMA = re.compile(r'(?P<string>"(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


@dataclass(frozen=True)
class Note:
    """Content of a file that the scenario does not express."""

    path: str
    """The path in the JSON."""
    content: str
    """The content of the file at that path."""
    done: str
    """The treatment of that content in the scenario."""

    def __str__(self) -> str:
        return f"{self.path}: {self.content}: {self.done}"


@dataclass(frozen=True)
class Imported:
    """A scenario made of a file of rt-app's."""

    text: str
    """The scenario file."""
    notes: list[Note]
    """Notes on contents that a scenario cannot express."""


class _Object(list[tuple[str, Any]]):
    """A JSON object, whose keys may stand several times."""

    def last(self, key: str) -> Any:
        return next((value for name, value in reversed(self) if name == key), None)


def load(path: Path, *, vcpus: int | None = None) -> Imported:
    """Imports the workload in a file; see `read`.

    Raises:
        RecordingError: the file is not a workload of rt-app.
        ScenarioError: the workload exceeds the limits of a scenario.
        OSError: the file cannot be read.
    """
    return read(text_of(path), str(path), vcpus=vcpus)


def read(text: str, file: str = "<string>", *, vcpus: int | None = None) -> Imported:
    """Makes a scenario of a file of rt-app's: one domain whose applications are its tasks.

    Args:
        text: What stands in the file.
        file: Its name, for messages.
        vcpus: vCPUs of the domain; if left out, as many as the file names CPUs, or one.

    Raises:
        RecordingError: it is no such file.
        ScenarioError: what it says exceeds what a scenario may be.

    Examples:
        >>> made = read('{"tasks": {"t": {"run": 10, "run": 20, "mem": 4, "sleep": 1000}}}')
        >>> print(made.notes[0])
        tasks.t.mem: 4: left out: memory is not written byte by byte
        >>> [app] = Scenario.from_toml(made.text).to_dict()["domain"]["rt-app"]["app"]
        >>> app["phase"][0]["event"]
        [{'run': '10us'}, {'run': '20us'}, {'sleep': '1ms'}]
    """
    document = _parse(text, file)
    made = _Import(file).document(document, vcpus)
    Scenario.from_toml(made.text, f"{file} as a scenario")
    return made


def _parse(text: str, file: str) -> _Object:
    """JSON as rt-app and its helpers take it."""

    def blank(match: re.Match[str]) -> str:
        return match["string"] or re.sub(r"[^\n]", " ", match[0])

    def constant(word: str) -> NoReturn:
        raise ValueError(f"`{word}` is not JSON")

    strict = _COMMA.sub(blank, _LAX.sub(blank, text))
    try:
        document = json.loads(strict, object_pairs_hook=_Object, parse_constant=constant)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise RecordingError(
            f"{file}:{error.lineno}:{error.colno}: not JSON, even as rt-app takes it: {message}"
        ) from None
    except ValueError as error:
        raise RecordingError(f"{file}: {error}") from None
    except RecursionError:
        raise RecordingError(f"{file}: objects within objects within objects: too deep") from None
    if not isinstance(document, _Object):
        raise RecordingError(f"{file}: found {_shown(document)}; allowed: an object with `tasks`")
    return document


def _shown(value: Any) -> str:
    """A value on one line, short, and without anything that a comment may not hold."""
    try:
        plain = json.dumps(dict(value) if isinstance(value, _Object) else value).replace("\x7f", " ")
    except RecursionError:
        return "..."
    return plain if len(plain) <= 60 else plain[:57] + "..."


@dataclass
class _Names:
    """Names of things in the file, as a scenario can write them."""

    unique_names: dict[str, str] = field(default_factory=dict)

    def unique_name(self, name: str) -> str:
        if name not in self.unique_names:
            plain = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:_NAME_CHARS_MAX] or "-"
            taken, tries = set(self.unique_names.values()), 1
            unique = plain
            while unique in taken:
                tries += 1
                unique = f"{plain[: _NAME_CHARS_MAX - 6]}-{tries}"
            self.unique_names[name] = unique
        return self.unique_names[name]


@dataclass
class _Import:
    """One file being made into a scenario."""

    file: str
    notes: list[Note] = field(default_factory=list)
    locks: _Names = field(default_factory=_Names)
    points: _Names = field(default_factory=_Names)
    barriers: _Names = field(default_factory=_Names)
    cpus: set[int] = field(default_factory=set)
    timers: dict[str, set[str]] = field(default_factory=dict)
    """The tasks that use each shared timer."""

    def note(self, path: str, value: Any, done: str) -> None:
        texts = (path, value if isinstance(value, str) else _shown(value), done)
        # A comment ends with its line.
        self.notes.append(Note(*(re.sub(r"[\x00-\x1f\x7f]", " ", text) for text in texts)))

    # ---- what stands in the file, checked ----

    def wrong(self, path: str, value: Any, allowed: str) -> NoReturn:
        raise RecordingError(f"{self.file}: {path}: found {_shown(value)}; allowed: {allowed}")

    def object(self, value: Any, path: str) -> _Object:
        return value if isinstance(value, _Object) else self.wrong(path, value, "an object")

    def integer(self, value: Any, path: str, least: int, most: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.wrong(path, value, f"an integer from {least} to {most}")
        return value

    def string(self, value: Any, path: str) -> str:
        return value if isinstance(value, str) else self.wrong(path, value, "a string")

    def member(self, value: Any, path: str, key: str) -> str:
        return self.string(self.object(value, path).last(key), f"{path}.{key}")

    def span(self, value: Any, path: str) -> str | None:
        """A time span, which stands there in microseconds; `None`: none."""
        span = self.integer(value, path, 0, _DAY_US)
        return _duration(span) if span else None

    # ---- from the outside in ----

    def document(self, document: _Object, vcpus: int | None) -> Imported:
        tasks = document.last("tasks")
        if tasks is None:
            raise RecordingError(f"{self.file}: tasks: required, but not given")
        apps = [line for name, task in self.object(tasks, "tasks") for line in self.task(name, task)]
        duration = _DURATION_S
        for key, value in document:
            if key == "global":
                duration = self.globals(self.object(value, key))
            elif key == "resources":
                self.note(key, "an object", "left out: locks are there where they are named")
            elif key != "tasks":
                self.note(key, value, "not understood: left out")
        if not apps:
            raise RecordingError(f"{self.file}: tasks: none of them does anything that a scenario can say")
        for timer, users in self.timers.items():
            if len(users) > 1:
                self.note(f"timer {_shown(timer)}", "one for several tasks", "each has one of its own")
        count = vcpus or max(self.cpus, default=0) + 1
        title = re.sub(r"[^A-Za-z0-9_. -]", "-", Path(self.file).stem)[:_NAME_CHARS_MAX]
        head = [f"# Made of {_shown(self.file)}, a workload of rt-app's."]
        if self.notes:
            head += ["#", "# What stands there and not here:", *(f"# * {note}" for note in self.notes)]
        head += ["", f'name = "{title}"', "", "[run]", f'duration = "{duration}s"', 'warmup = "0s"']
        head += ["", "[host]", 'scheduler = "credit2"', f"pcpus = {count}"]
        head += ["", f"[domain.{DOMAIN}]", f"vcpus = {count}", ""]
        return Imported("\n".join(head + apps), self.notes)

    def globals(self, options: _Object) -> int:
        """The duration, s."""
        duration = _DURATION_S
        for key, value in options:
            path = f"global.{key}"
            if key == "duration":
                seconds = self.integer(value, path, -1, 86_400)
                if seconds > 0:
                    duration = seconds
                else:
                    self.note(path, value, f"a run ends: after {_DURATION_S} s")
            elif key.startswith(("log", "ftrace", "gnuplot")):
                self.note(path, value, "left out: it is about rt-app's logs")
            else:
                self.note(path, value, _GLOBAL.get(key, "not understood: left out"))
        return duration

    def task(self, name: str, task: Any) -> Iterator[str]:
        path = f"tasks.{name}"
        task = self.object(task, path)
        phases = task.last("phases")
        instance = self.integer(_or(task.last("instance"), 1), f"{path}.instance", 0, 256)
        loop = self.integer(_or(task.last("loop"), -1), f"{path}.loop", -1, _PHASE_LOOPS_MAX)
        delay = self.span(_or(task.last("delay"), 0), f"{path}.delay")
        own = _Object((key, value) for key, value in task if key not in {"phases", "instance", "loop", "delay"})
        user = _Task(name, instance)
        if phases is None:
            scripts = [("", 1, self.events(own, path, user))]
        else:
            # A task's own `runtime` is a reservation where its events stand in phases.
            for key, value in own:
                self.property(key, value, f"{path}.{key}", "left out: the task has phases")
            objects = self.object(phases, f"{path}.phases")
            scripts = [
                self.phase(phase_name, value, f"{path}.phases.{phase_name}", user) for phase_name, value in objects
            ]
        scripts = [script for script in scripts if script[2] and script[1]]
        if len(user.timers) > 1:
            self.note(path, f"{len(user.timers)} timers", "it has one here, which counts from when it was last due")
        if instance == 0 or not scripts:
            self.note(path, "a task that is not started" if instance == 0 else "a task without events", "left out")
            return
        yield from (f"# {_shown(name)}", f"[[domain.{DOMAIN}.app]]", 'kind = "phases"')
        yield from [f"instance = {instance}"] * (instance != 1) + [f"loop = {loop}"] * (loop != -1)
        yield from [f'start_delay = "{delay}"'] * (delay is not None)
        yield ""
        for phase, times, events in scripts:
            yield f"[[domain.{DOMAIN}.app.phase]]" + (f"  # {_shown(phase)}" if phase else "")
            yield from [f"loop = {times}"] * (times != 1)
            yield from ("event = [", *(f"  {event}," for event in events), "]", "")

    def phase(self, name: str, phase: Any, path: str, user: "_Task") -> tuple[str, int, list[str]]:
        phase = self.object(phase, path)
        loop = self.integer(_or(phase.last("loop"), 1), f"{path}.loop", -1, _PHASE_LOOPS_MAX)
        if loop == -1:
            self.note(f"{path}.loop", -1, f"as many times as a scenario can say: {_PHASE_LOOPS_MAX}")
            loop = _PHASE_LOOPS_MAX
        if loop == 0:
            self.note(path, "a phase that is never gone through", "left out")
        events = _Object((key, value) for key, value in phase if key != "loop")
        return name, loop, self.events(events, path, user)

    def property(self, key: str, value: Any, path: str, otherwise: str) -> None:
        if key == "cpus":
            cpus = value if isinstance(value, list) else [value]
            self.cpus |= {self.integer(cpu, path, 0, _VCPUS_MAX - 1) for cpu in cpus}
        self.note(path, value, _PROPERTIES.get(key, otherwise))

    def events(self, events: _Object, path: str, user: "_Task") -> list[str]:
        made: list[str] = []
        for key, value in events:
            at = f"{path}.{key}"
            word = next((word for word in _EVENTS if key.startswith(word)), None)
            if key in _PROPERTIES or word is None:
                self.property(key, value, at, "not understood: left out")
            elif word in _LOST_EVENTS:
                self.note(at, value, _LOST_EVENTS[word])
            else:
                made += self.event(word, value, at, user)
        return made

    def event(self, word: str, value: Any, path: str, user: "_Task") -> list[str]:
        match word:
            case "run" | "runtime" | "sleep":
                span = self.span(value, path)
                return [f'{{ {word} = "{span}" }}'] if span else []
            case "timer":
                return self.timer(self.object(value, path), path, user)
            case "lock" | "unlock":
                return [f'{{ {word} = "{self.locks.unique_name(self.string(value, path))}" }}']
            case "wait" | "sync":
                point = self.points.unique_name(self.member(value, path, "ref"))
                mutex = self.locks.unique_name(self.member(value, path, "mutex"))
                wait = f'{{ wait = "{point}", mutex = "{mutex}" }}'
                return [f'{{ signal = "{point}" }}', wait] if word == "sync" else [wait]
            case "barrier":
                return [f'{{ barrier = "{self.barriers.unique_name(self.string(value, path))}" }}']
            case _:
                # Who suspends itself without saying for whom waits by its own name.
                point = self.points.unique_name(self.string(value, path) or user.name)
                return [f'{{ {"resume" if word == "broad" else word} = "{point}" }}']

    def timer(self, timer: _Object, path: str, user: "_Task") -> list[str]:
        name = self.string(_or(timer.last("ref"), "unknown"), f"{path}.ref")
        mode = self.string(_or(timer.last("mode"), "relative"), f"{path}.mode")
        period = self.span(timer.last("period"), f"{path}.period")
        user.timers.add(name)
        if not name.startswith("unique"):
            self.timers.setdefault(name, set()).update(f"{user.name} {number}" for number in range(user.instance))
        if mode != "relative":
            self.note(f"{path}.mode", mode, "as `relative`: after a late one the period begins anew")
        for key, value in timer:
            if key not in {"ref", "mode", "period"}:
                self.note(f"{path}.{key}", value, "not understood: left out")
        return [f'{{ timer = "{period}" }}'] if period else []


@dataclass
class _Task:
    """The task whose events are being read."""

    name: str
    instance: int
    timers: set[str] = field(default_factory=set)


def _or(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None else value


def _duration(us: int) -> str:
    """A time span as a scenario writes it."""
    for unit, name in ((1_000_000, "s"), (1000, "ms")):
        if us % unit == 0:
            return f"{us // unit}{name}"
    return f"{us}us"
