"""Users' own classes, loaded from a file or from an installed package, and commands of installed packages."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from vcpulab._files import safe_open
from vcpulab.errors import RequestError

T = TypeVar("T")
_BYTES_MAX = 1 << 24


class PluginError(RequestError):
    """A class that does not exist or cannot be loaded."""


def load(reference: str, base: type[T], group: str, noun: str) -> type[T]:
    """Finds a class: `file.py:Class`, or the name under which an installed package offers one.

    Args:
        reference: the class's file and name, or its name in a package.
        base: the required base class.
        group: the entry point group in which packages offer such classes.
        noun: the noun for such a class, for messages.

    Raises:
        PluginError: no such class exists.
    """
    path, colon, name = reference.rpartition(":")
    if colon:
        return from_source(source_of(Path(path)), path, name, base)
    return checked(_installed(reference, group, noun), base, reference)


def source_of(path: Path) -> bytes:
    """The content of a file.

    Raises:
        PluginError: the file cannot be read.
    """
    try:
        return safe_open.read(path, _BYTES_MAX)
    except OSError as error:
        raise PluginError(f"{path}: {(error.strerror or str(error)).lower()}") from None


def from_source(source: bytes, path: str, name: str, base: type[T]) -> type[T]:
    """A class in a file, whose code is executed.

    Args:
        source: the file's content.
        path: the file's path, for messages.
        name: the class's name.
        base: the required base class.

    Raises:
        PluginError: no such class exists, or the file's code fails.
    """
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        raise PluginError(f"{path}: {_where(error, path)}{_described(error)}") from error
    if not hasattr(module, name):
        raise PluginError(f"{path}: there is no `{name}`")
    return checked(getattr(module, name), base, f"{path}:{name}")


def checked(candidate: object, base: type[T], reference: str) -> type[T]:
    """The candidate, if it is a complete class.

    Raises:
        PluginError: the candidate is not a subclass of `base`, or has abstract methods.
    """
    if not (isinstance(candidate, type) and issubclass(candidate, base)):
        raise PluginError(f"`{reference}` is not a subclass of `{base.__module__.split('.')[0]}.{base.__name__}`")
    if missing := sorted(getattr(candidate, "__abstractmethods__", ())):
        raise PluginError(f"`{reference}` has no `{'`, `'.join(missing)}`")
    return candidate


def _described(error: BaseException) -> str:
    """The kind and the message of an exception, which code of the user's own raised: its `__str__` may fail, too."""
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - what code of others raises, whatever it is
        message = "a message that cannot be shown, because its __str__ fails"
    return f"{type(error).__name__}: {message}"


def _where(error: BaseException, path: str) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f"line {line}: "


def offered(group: str) -> list[str]:
    """The names under which installed packages offer classes in an entry point group."""
    return sorted(entry_points(group=group).names)


@cache
def places(group: str) -> Mapping[str, str]:
    """What installed packages offer in an entry point group: name to `module:attribute`; nothing is imported."""
    return {entry.name: entry.value for entry in entry_points(group=group)}


def _installed(reference: str, group: str, noun: str) -> object:
    names = offered(group)
    if reference not in names:
        listed = ", ".join(f"`{name}`" for name in names) or "none"
        raise PluginError(
            f"no installed package offers a {noun} `{reference}`; offered: {listed}",
            hint="for one in a file: FILE.py:CLASS",
        )
    try:
        return entry_points(group=group)[reference].load()
    except (Exception, SystemExit) as error:
        raise PluginError(f"{noun} `{reference}`: {_described(error)}") from error
