"""The verb `validate`: finds recordings, pairs recordings of the same threads or guests, and compares."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from vcpulab._work.progress import Progress, part, report
from vcpulab.errors import RequestError
from vcpulab.results.cache import RunCache
from vcpulab_evidence.validation.hosts import Hosts
from vcpulab_evidence.validation.linux import Linux
from vcpulab_evidence.validation.report import Comparison, Report
from vcpulab_evidence.validation.xen import Agreement, Xen
from vcpulab_evidence.validation.xen.recording import NEEDED, TRACES


class Kind(Protocol):
    """A kind of recordings that can be found."""

    def find(self, path: Path, /) -> list[Path]:
        """The recordings at or below a path."""


class Paired(Kind, Protocol):
    """A kind of recordings that are read and predicted pair by pair."""

    def read(self, folder: Path) -> Any:
        """Reads a recording."""

    def refusal(self, recording: Any) -> str | None:
        """The reason why a recording cannot be predicted; `None`: it can."""

    def same(self, recording: Any) -> str:
        """The work of a recording: the same text for recordings that differ only in their settings."""

    def compare(self, folders: tuple[Path, Path], recordings: tuple[Any, Any]) -> Comparison:
        """Predicts a recording from the demands of the first one, in the setting of the second."""


LINUX: Paired = Linux()
HOSTS = Hosts()
XEN = Xen()
KINDS: tuple[Kind, ...] = (LINUX, HOSTS, XEN)


def validate(
    paths: Iterable[Path],
    *,
    what_if: bool = True,
    store: Path | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Report:
    """Predicts each recording at or below the paths from its own demands, and from others of the same work.

    Args:
        paths: Recordings, or folders with them.
        what_if: Also predict recordings from the demands of other recordings; of hosts, from those of the other
            recordings of the same setting.
        store: A file for the results of runs of Xen's recordings: a stopped validation continues from it.
        jobs: Runs of Xen's recordings at a time; 0: one for each processor.
        progress: see `Progress`.

    Raises:
        RequestError: a path has no recording, or no recording can be predicted.
        RecordingError: a recording cannot be read.
        KeyboardInterrupt: the work was stopped.
    """
    folders = _recordings(paths)
    of_linux, of_hosts, of_xen = folders[LINUX], folders[HOSTS], folders[XEN]
    # A recording of Xen is predicted from all others, a recording of Linux from few.
    count = len(of_linux) + len(of_hosts) + len(of_xen) ** 2
    one_cpu_part, linux_part = len(of_linux) / count, (len(of_linux) + len(of_hosts)) / count
    comparisons, refused = _compared(LINUX, of_linux, part(progress, 0.0, one_cpu_part), what_if=what_if)
    # What cannot be run as a host of one CPU is run as one with several.
    comparisons_of_hosts, skipped = HOSTS.validate(
        [*of_hosts, *refused], part(progress, one_cpu_part, linux_part), what_if=what_if
    )
    comparisons += comparisons_of_hosts
    agreement: Agreement | None = None
    if of_xen:
        kept = None if store is None else RunCache(store)
        agreement = XEN.validate(
            of_xen, what_if=what_if, store=kept, jobs=jobs, progress=part(progress, linux_part, 1.0)
        )
        skipped |= agreement.skipped
    if not comparisons and (agreement is None or not agreement.cells):
        reasons = "; ".join(f"{folder}: {reason}" for folder, reason in skipped.items())
        raise RequestError(f"no recording can be predicted: {reasons}")
    report(progress, 1.0)
    return Report(comparisons, skipped, agreement)


def _compared(
    kind: Paired, folders: Sequence[Path], progress: Progress | None, *, what_if: bool
) -> tuple[list[Comparison], dict[Path, str]]:
    recordings: dict[Path, Any] = {}
    skipped: dict[Path, str] = {}
    for folder in folders:
        recording = kind.read(folder)
        reason = kind.refusal(recording)
        if reason is None:
            recordings[folder] = recording
        else:
            skipped[folder] = reason
    pairs = [(a, b) for a in recordings for b in recordings if a == b or what_if]
    pairs = [(a, b) for a, b in pairs if a == b or kind.same(recordings[a]) == kind.same(recordings[b])]
    pairs.sort(key=lambda pair: pair[0] != pair[1])
    comparisons = []
    for done, (a, b) in enumerate(pairs):
        report(progress, done / len(pairs))
        comparisons.append(kind.compare((a, b), (recordings[a], recordings[b])))
    return comparisons, skipped


def _recordings(paths: Iterable[Path]) -> dict[Kind, list[Path]]:
    folders_of: dict[Kind, dict[Path, None]] = {kind: {} for kind in KINDS}
    for path in paths:
        if not path.exists():
            raise RequestError(f"{path}: no such file or folder")
        here = {kind: kind.find(path) for kind in KINDS}
        if not any(here.values()):
            linux = "experiment.txt, threads.txt, tunables.txt and trace.txt"
            host = "threads.txt and trace.txt beside other files of a KVM host"
            raise RequestError(
                f"{path}: there is no recording here",
                allowed=f"a folder with {linux}, with {host}, or with {NEEDED} and {TRACES[0]}",
            )
        for kind, folders in here.items():
            folders_of[kind].update(dict.fromkeys(folders))
    return {kind: list(folders) for kind, folders in folders_of.items()}
