"""Policies for an engine on the other side: it calls their hooks, and answers what they ask meanwhile.

What is said stands in `crates/wasm/src/policy.rs`.
"""

import builtins
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from operator import index
from pathlib import Path
from types import TracebackType
from typing import Any

from vcpulab._engine import Context, Rejected
from vcpulab.plugins import PluginError
from vcpulab.policy import OwnPolicy, Policy

_RANGES = {"at": (-(2**63), 2**63 - 1)}
_KNOWN: dict[str, OwnPolicy] = {}
_SERVED: dict[str, Policy] = {}
_CONTEXT = Context()


def declared(name: str) -> str:
    """What a policy declares whose file is here; or what is wrong with it."""
    try:
        _KNOWN[name] = policy = OwnPolicy.of_file(name, Path())
    except PluginError as error:
        return json.dumps({"unusable": [error.reason, error.hint]})
    params = [asdict(param) for param in policy.params]
    return json.dumps({"declared": {"doc": policy.doc, "generation": policy.generation, "params": params}})


def offer(ask: Callable[[int, int, int], Any], questions: str) -> None:
    """Gives the context its methods. Each asks by a number, of at most two integers; without any it is a property."""
    for number, (name, signature) in enumerate(json.loads(questions)):
        names = [one.partition("=")[0] for one in signature.split(", ") if one]
        values = [*(f"whole({one}, {one!r})" for one in names), "0", "0"][:2]
        method = eval(
            f"lambda self, {signature}: told(ask({number}, {', '.join(values)}))",
            {"ask": ask, "told": _told, "whole": _whole},
        )
        setattr(Context, name, method if names else property(method))


def called(line: str) -> str:
    """Calls a hook, and says what it answered."""
    of, hook, *arguments = json.loads(line)
    try:
        if hook == "__init__":
            name, params, seed, *_ = arguments
            _SERVED[of] = _KNOWN[name](params, seed)
            return '{"answer": null}'
        if hook == "affinity":
            arguments[1] = tuple(arguments[1])
        answer = getattr(_SERVED[of], hook)(_CONTEXT, *arguments)
    except Rejected as error:
        return '"rejected"' if hook.startswith("adjust") else _failed(error)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the run ends with it
        return _failed(error)
    try:
        return json.dumps({"answer": _READ[hook](answer) if hook in _READ else None})
    except (TypeError, ValueError):
        return json.dumps({"wrong": repr(answer)})


def _decision(answer: object) -> tuple[int, int]:
    if not isinstance(answer, tuple):
        raise TypeError
    first, slice_ns = answer
    return index(first), index(slice_ns)


_READ: dict[str, Callable[[Any], object]] = {"schedule": _decision, "pick": index, "dump": str}


def _whole(value: object, name: str) -> int:
    number = index(value)
    least, most = _RANGES.get(name, (0, 2**32 - 1))
    if not least <= number <= most:
        raise OverflowError(f"argument '{name}': found {number}; allowed: from {least} to {most}")
    return number


def _told(answer: Any) -> Any:
    """A number or flag is what it is; the others come in words."""
    if type(answer) is not str:
        return answer
    words = _read(answer)
    if isinstance(words, dict):
        raise getattr(builtins, words["error"])(words["text"])
    return words


@lru_cache(maxsize=4096)
def _read(words: str) -> Any:
    found = json.loads(words)
    return tuple(found) if isinstance(found, list) else found


def _failed(error: BaseException) -> str:
    """An exception, and the deepest place in the file in which the hook is."""
    # The first is here.
    entry = error.__traceback__ and error.__traceback__.tb_next
    place = f" ({_innermost(entry)})" if entry else ""
    return json.dumps({"failed": f"{type(error).__qualname__}: {error}".removesuffix(": ") + place})


def _innermost(entry: TracebackType) -> str:
    file = entry.tb_frame.f_code.co_filename
    line, at = entry.tb_lineno, entry.tb_next
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            line = at.tb_lineno
        at = at.tb_next
    return f"{file}:{line}"
