"""Classes that users bring: found in a file of theirs, or in a package that is installed."""

from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from vcpulab.errors import RequestError

T = TypeVar("T")


class PluginError(RequestError):
    """There is no such class."""


def load(reference: str, base: type[T], group: str, what: str) -> type[T]:
    """Finds a class: `file.py:Class`, or the name under which an installed package offers one.

    Args:
        reference: where it is.
        base: what it must be a subclass of.
        group: the entry point group in which packages offer such classes.
        what: what they are called, for messages.

    Raises:
        PluginError: there is none.
    """
    path, colon, name = reference.rpartition(":")
    found = _from_file(Path(path), name) if colon else _installed(reference, group, what)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise PluginError(f"`{reference}` is not a subclass of `{base.__module__.split('.')[0]}.{base.__name__}`")
    if missing := sorted(getattr(found, "__abstractmethods__", ())):
        raise PluginError(f"`{reference}` has no `{'`, `'.join(missing)}`")
    return found


def _from_file(path: Path, name: str) -> object:
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    try:
        exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    except OSError as error:
        raise PluginError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except Exception as error:
        raise PluginError(f"{path}: {_where(error, path)}{type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        raise PluginError(f"{path}: there is no `{name}`")
    return getattr(module, name)


def _where(error: Exception, path: Path) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f"line {line}: "


def _installed(name: str, group: str, what: str) -> object:
    offered = entry_points(group=group)
    if name not in offered.names:
        names = ", ".join(f"`{one}`" for one in sorted(offered.names)) or "none"
        raise PluginError(
            f"no installed package offers a {what} `{name}`; offered: {names}\n  hint: for one in a file: FILE.py:CLASS"
        )
    try:
        return offered[name].load()
    except Exception as error:
        raise PluginError(f"{what} `{name}`: {type(error).__name__}: {error}") from error
