"""`vcpulab conformance` and `vcpulab validate`: comparisons of the simulation with real hosts."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Any

from cyclopts import Parameter

from vcpulab import _engine
from vcpulab.cli import files, page, terminal
from vcpulab.cli.options import All, AnyFormat, Jobs, TableOrJson, command
from vcpulab.cli.outputs import Writes, written
from vcpulab.errors import RequestError
from vcpulab.show.as_json import as_json
from vcpulab.show.table import Table

DONE, FAILED = 0, 1
Paths = Annotated[tuple[Path, ...], Parameter(negative=(), show_default=False)]


# ---- conformance ----


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


# ---- validate ----


@command(
    "validate",
    "vcpulab validate",
    "vcpulab validate linux-6.1-cfs-weights",
    "vcpulab validate recordings --no-what-if --format json",
    "vcpulab validate recordings --report page.html",
)
def validate(
    path: Paths = (),
    /,
    *,
    what_if: Annotated[bool, Parameter(help="Also predict each in its setting from the demands of the others.")] = True,
    report: Annotated[Path | None, Parameter(help="Also write a page with all of it (HTML)."), Writes.FILE] = None,
    results: Annotated[
        Path,
        Parameter(
            help="Directory in which runs are kept: an interrupted validation of Xen's goes on where it stopped."
        ),
        Writes.FOLDER,
    ] = Path("out/validate"),
    all: All = False,
    format: AnyFormat = "table",
    jobs: Jobs = 0,
) -> int:
    """Predict recorded hosts from what their threads or guests demand; fail beyond limits.

    Recordings of Linux: each is predicted in its own setting (a free run), and, if others are of the same threads, from
    the demands of each of them (what-if: weights, quotas, parameters or the kernel differ). Limits of free runs: shares
    0.5 points; switches 3 %, 15 % where only hogs of different weights run; median waits from waking to running, and
    their 90th percentiles, 20 % or 16 µs for nine threads in ten. What-ifs may be off by twice as much. What is farther
    off counts as within where runs that differ by an interrupt are as far apart (verdict: chance).

    Recordings of Xen: the twin of each is run in the setting of every other of the same guests (scheduler, parameters,
    weights, caps, pinning). Limits: shares 1 point in 90 % of all predictions; switches 5 % (median), 10 % (90 %);
    median waits 20 % and 90th percentiles 25 %, in 90 % beyond what chance gives (recordings that differ by their seed;
    else the halves of one); throughput of guests 5 % in 90 %; the sign of 95 % of the changes.

    Args:
        path: Recordings of Linux on one CPU (folders with trace.txt, experiment.txt, threads.txt and tunables.txt) or
            of Xen (with trace.bin, sched.txt and guests' files), or folders with them; the bundled ones of Linux if
            left out.
    """
    from vcpulab import conformance as bundled
    from vcpulab.show.csv import csv
    from vcpulab.validation import validate as validated

    with terminal.progress("running recorded threads") as progress:
        result = validated(
            path or (bundled.recordings(),),
            what_if=what_if,
            store=results / "units.jsonl",
            jobs=jobs,
            progress=progress,
        )
    if format == "json":
        print(as_json(result.to_dict()))
    elif format == "csv":
        print(csv(result.to_frame()), end="")
    else:
        from vcpulab.cli import validation_parts as shown

        page.show(shown.parts(result), all=all)
    if report is not None:
        from vcpulab.validation import page as pages

        with written(report):
            pages.write(report, result)
    return DONE if result.passed else FAILED
