"""`validate`: finds recordings, pairs those of the same threads, and compares."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from vcpulab.errors import RequestError
from vcpulab.validation.linux import Linux
from vcpulab.validation.report import Comparison, Report


class Kind(Protocol):
    """A kind of recordings: how they are found, read, paired and predicted."""

    def find(self, path: Path, /) -> list[Path]:
        """The recordings at or below a path."""

    def read(self, folder: Path) -> Any:
        """A recording."""

    def refusal(self, recording: Any) -> str | None:
        """Why it cannot be predicted; None: it can."""

    def same(self, recording: Any) -> str:
        """What recordings have in common that differ in settings alone."""

    def compare(self, folders: tuple[Path, Path], recordings: tuple[Any, Any]) -> Comparison:
        """What one's demands give in the setting of the other."""


KINDS: tuple[Kind, ...] = (Linux(),)


def validate(
    paths: Iterable[Path], *, what_if: bool = True, progress: Callable[[float], bool] = lambda _: True
) -> Report:
    """Predicts each recording at or below the paths from its own demands, and from those of others of the same threads.

    Args:
        paths: Recordings, or folders with them.
        what_if: Also in the settings of others.
        progress: Takes the fraction done; false ends the work.

    Raises:
        RequestError: there is no recording at a path, or none that can be predicted.
        RecordingError: one cannot be read.
        KeyboardInterrupt: the work was ended.
    """
    comparisons: list[Comparison] = []
    skipped: dict[Path, str] = {}
    todo: list[tuple[Kind, tuple[Path, Path], tuple[Any, Any]]] = []
    for kind, found in _found(paths):
        recordings = {}
        for folder in found:
            recording = kind.read(folder)
            reason = kind.refusal(recording)
            if reason is None:
                recordings[folder] = recording
            else:
                skipped[folder] = reason
        pairs = [(a, b) for a in recordings for b in recordings if a == b or what_if]
        pairs = [(a, b) for a, b in pairs if a == b or kind.same(recordings[a]) == kind.same(recordings[b])]
        pairs.sort(key=lambda pair: pair[0] != pair[1])
        todo += [(kind, (a, b), (recordings[a], recordings[b])) for a, b in pairs]
    for done, (kind, folders, both) in enumerate(todo):
        if not progress(done / len(todo)):
            raise KeyboardInterrupt
        comparisons.append(kind.compare(folders, both))
    if not comparisons:
        said = "; ".join(f"{folder}: {reason}" for folder, reason in skipped.items())
        raise RequestError(f"no recording can be predicted: {said}")
    progress(1.0)
    return Report(comparisons, skipped)


def _found(paths: Iterable[Path]) -> list[tuple[Kind, list[Path]]]:
    found: list[dict[Path, None]] = [{} for _ in KINDS]
    for path in paths:
        if not path.exists():
            raise RequestError(f"{path}: no such file or folder")
        here = [kind.find(path) for kind in KINDS]
        if not any(here):
            files = "a folder with experiment.txt, threads.txt, tunables.txt and trace.txt"
            raise RequestError(f"{path}: there is no recording here", allowed=files)
        for known, folders in zip(found, here, strict=True):
            known.update(dict.fromkeys(folders))
    return [(kind, list(folders)) for kind, folders in zip(KINDS, found, strict=True)]
