"""What a search keeps in its folder, so that it can go on: whose it is, and how long its batches took."""

import json
import math
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from vcpulab.errors import RequestError


class Clock:
    """How long batches took, those of earlier parts of the same search too."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: list[float] = []
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    self._known.append(float(line))
                except ValueError:
                    break
        self._done: list[float] = []
        self._since: float | None = None

    def start(self) -> None:
        """A batch begins."""
        self._since = time.monotonic()

    def stop(self) -> None:
        """It ends; one that is known took as long as it took then."""
        batch, now = len(self._done), self._running()
        self._since = None
        if batch < len(self._known):
            self._done.append(self._known[batch])
            return
        self._done.append(now)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{now:.6f}\n")

    def spent(self) -> float:
        """Seconds."""
        return math.fsum(self._done) + self._running()

    def _running(self) -> float:
        return 0.0 if self._since is None else time.monotonic() - self._since


def name_of(identity: Mapping[str, object]) -> str:
    """A short name for all this."""
    return sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]


def claim(folder: Path, identity: Mapping[str, object]) -> None:
    """Makes the folder this search's, or finds that it is."""
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
        there = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(f"`{folder}` cannot be used: {error}", field="folder") from None
    other = [name for name, value in identity.items() if not isinstance(there, dict) or there.get(name) != value]
    if other:
        made = "made by another version"
        named = {"format": made, "version": made, "parameters": "of other parameters", "goals": "of other goals"}
        why = {**named, "slos": "of other SLOs"}.get(other[0], f"of another {other[0]}")
        reason = f"the search in `{folder}` is {why}; its measurements do not count here"
        raise RequestError(reason, field="folder", hint="another directory, or delete this one")
