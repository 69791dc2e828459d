"""`vcpulab conformance`: recorded decisions of real schedulers, replayed."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any

from cyclopts import Parameter

from vcpulab import _engine
from vcpulab.cli import files, page, terminal
from vcpulab.cli.options import Jobs, TableOrJson, command
from vcpulab.errors import RequestError
from vcpulab.show.table import Table

DONE, FAILED = 0, 1
Paths = Annotated[tuple[Path, ...], Parameter(negative=(), show_default=False)]


@command(
    "conformance",
    "vcpulab conformance",
    "vcpulab conformance my-vectors --format json",
    "vcpulab conformance linux-6.1-cfs-weights",
)
def conformance(path: Paths = (), /, *, format: TableOrJson = "table", jobs: Jobs = 0) -> int:
    """Replay recorded decisions of real schedulers; fail on differences.

    No row of a vector may differ. A recording of Linux does not tell all that its kernel knew (where groups and its own
    threads stood before it began), so that some decisions differ: it fails if more do than its `expected.txt` says
    (`differing N`), or without one if more than one in ten do.

    Args:
        path: Vectors, folders of them, recordings of Linux (folders with trace.txt, experiment.txt, threads.txt and
            tunables.txt), or trees of folders; the bundled ones if left out.
    """
    from vcpulab import conformance as bundled
    from vcpulab.formats import linux_folder

    for entry in path:
        if not entry.is_dir():
            files.check_readable(entry)
    paths = list(path) or [bundled.bundled(), bundled.recordings()]
    by_path = {entry: linux_folder.find(entry) for entry in paths}
    replayed = _replayed(list(dict.fromkeys(folder for folders in by_path.values() for folder in folders)))
    # A tree of nothing but recordings has no vectors.
    vectors = [entry for entry in paths if not by_path[entry] or any(entry.rglob("*.json"))]
    if not vectors and all(verdict["outcome"] == "skipped" for verdict in replayed):
        raise RequestError("; ".join(f"{verdict['folder']}: {verdict['reason']}" for verdict in replayed))
    report: dict[str, Any] = {"passed": 0, "failed": 0, "skipped": 0, "folders": []}
    if vectors:
        try:
            report = json.loads(_engine.conformance([str(entry) for entry in vectors], jobs))
        except ValueError as error:
            raise RequestError(str(error)) from None
    report["recordings"] = replayed
    for recording in replayed:
        report[recording["outcome"]] += 1
    if format == "json":
        print(json.dumps(report, indent=2))
    else:
        _show_conformance(report)
    return FAILED if report["failed"] else DONE


def _replayed(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """The verdict on each recording; `skipped` with the reason where it cannot be replayed."""
    from vcpulab.formats import linux_folder

    verdicts: list[dict[str, Any]] = []
    with terminal.progress("replaying recordings of Linux") as progress:
        for done, folder in enumerate(folders):
            if progress(done / len(folders)) is False:
                raise KeyboardInterrupt
            recording = linux_folder.read(folder)
            verdict: dict[str, Any] = {"folder": str(folder)}
            if reason := recording.refusal:
                verdicts.append(verdict | {"outcome": "skipped", "reason": reason})
                continue
            try:
                judged = json.loads(recording.replay())
            except ValueError as error:
                raise linux_folder.wrong(folder, error) from None
            verdicts.append(verdict | {"outcome": "passed" if judged.pop("passed") else "failed"} | judged)
    return verdicts


def _show_conformance(report: Mapping[str, Any]) -> None:
    """Prints counts by folder, the first differences, and skipped vectors with reasons; the last line has the sums."""
    rows = [
        [PurePath(folder["folder"]).name, *(str(folder[key]) for key in ("passed", "failed", "skipped"))]
        for folder in report["folders"]
    ]
    if rows:
        page.show_table(Table("", ["folder", "passed", "failed", "skipped"], rows))
    for folder in report["folders"]:
        reasons: dict[str, int] = {}
        for vector in folder["vectors"]:
            if vector["outcome"] == "failed":
                _show_divergence(f"{folder['folder']}/{vector['name']}", vector)
            elif vector["outcome"] == "skipped":
                reasons[vector["reason"]] = reasons.get(vector["reason"], 0) + 1
        for reason, count in reasons.items():
            print(f"{folder['folder']}: {count} skipped: {reason}")
    _show_replayed(report["recordings"])
    print(f"{report['passed']} passed, {report['failed']} failed, {report['skipped']} skipped")


_KINDS = ("choice", "tick", "wake-up")


def _show_replayed(recordings: Sequence[Mapping[str, Any]]) -> None:
    rows = []
    for recording in recordings:
        if recording["outcome"] == "skipped":
            continue
        kinds = [recording["by_kind"].get(kind, (0, 0)) for kind in _KINDS]
        allowed = (
            str(recording["differing_max"]) if recording["expected"] else f"{recording['differing_max']} (one in ten)"
        )
        rows.append(
            [
                PurePath(recording["folder"]).name,
                recording["scheduler"],
                recording["outcome"],
                str(recording["decisions"]),
                str(recording["differing"]),
                allowed,
                *(f"{differing} of {total}" for total, differing in kinds),
            ]
        )
    if rows:
        kinds = [f"{kind}s" for kind in _KINDS]
        headings = ["recording", "scheduler", "outcome", "decisions", "differing", "allowed", *kinds]
        page.show_table(Table("Recordings of Linux, decision by decision", headings, rows, 3, together=True))
    for recording in recordings:
        if recording["outcome"] == "skipped":
            print(f"{recording['folder']}: skipped: {recording['reason']}")
        elif first := recording["first"]:
            kernel, ours = first["expected"], first["got"]
            print(
                f"{PurePath(recording['folder']).name}: first difference: trace.txt, line {first['line']}, "
                f"{first['what']}: the kernel {kernel}, {recording['scheduler']} {ours}"
            )


def _show_divergence(name: str, divergence: Mapping[str, Any]) -> None:
    print(f"{name}: {divergence['what']}")
    if divergence["expected"] or divergence["got"]:
        print(f"  expected  {divergence['expected'] or 'no more rows'}")
        print(f"  got       {divergence['got'] or 'no more rows'}")
    for title, lines in (
        ("scheduler just before", divergence["state"]),
        ("decisions before", divergence["before"]),
    ):
        if lines:
            print(f"  {title}:")
        for line in lines:
            print(f"    {line}")
    print()
