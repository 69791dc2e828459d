"""The folder of a search, from which it can continue: the identity of the search, and the time of its batches."""

import json
import math
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from vcpulab.errors import RequestError


class Clock:
    """Time of a search's batches, with the batches of its earlier parts."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._recorded: list[float] = []
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    self._recorded.append(float(line))
                except ValueError:
                    break
        self._done: list[float] = []
        self._since: float | None = None

    def start(self) -> None:
        """Begins a batch."""
        self._since = time.monotonic()

    def stop(self) -> None:
        """Ends the batch; a recorded batch counts with its recorded time."""
        batch, now = len(self._done), self._running()
        self._since = None
        if batch < len(self._recorded):
            self._done.append(self._recorded[batch])
            return
        self._done.append(now)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{now:.6f}\n")

    def spent(self) -> float:
        """The time spent so far, s."""
        return math.fsum(self._done) + self._running()

    def _running(self) -> float:
        return 0.0 if self._since is None else time.monotonic() - self._since


def name_of(identity: Mapping[str, object]) -> str:
    """A short name for an identity."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def claim(folder: Path, identity: Mapping[str, object]) -> None:
    """Takes the folder for this search, or checks that it is this search's folder.

    Raises:
        RequestError: the folder has other files or another search, or cannot be used.
    """
    mark = folder / "tune.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            if any(folder.iterdir()):
                reason = f"`{folder}` holds other files than a search's"
                raise RequestError(reason, field="folder", allowed="a new or empty directory")
            scratch = folder / ".tune.json.new"
            scratch.write_text(json.dumps(identity, indent=2) + "\n", encoding="utf-8")
            scratch.replace(mark)
            return
        saved = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"`{folder}` cannot be used: {error}", field="folder") from None
    different = [name for name, value in identity.items() if not isinstance(saved, dict) or saved.get(name) != value]
    if different:
        made = "made by another version"
        named = {"format": made, "version": made, "parameters": "of other parameters", "goals": "of other goals"}
        relation = {**named, "slos": "of other SLOs"}.get(different[0], f"of another {different[0]}")
        reason = f"the search in `{folder}` is {relation}; its measurements do not count here"
        raise RequestError(reason, field="folder", hint="another directory, or delete this one")
