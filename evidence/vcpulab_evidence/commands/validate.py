"""`vcpulab validate`: predictions of recorded hosts, compared with the recordings."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab.cli import page, terminal
from vcpulab.cli.options import All, AnyFormat, Jobs, command
from vcpulab.cli.outputs import Writes, written
from vcpulab.show.as_json import as_json

DONE, FAILED = 0, 1


@command(
    "validate",
    "vcpulab validate",
    "vcpulab validate linux-6.1-cfs-weights",
    "vcpulab validate recordings --no-what-if --format json",
    "vcpulab validate recordings --report page.html",
    "vcpulab validate out/real-host",
)
def validate(
    path: Annotated[tuple[Path, ...], Parameter(negative=(), show_default=False)] = (),
    /,
    *,
    what_if: Annotated[bool, Parameter(help="Also predict each in its setting from the demands of the others.")] = True,
    report: Annotated[Path | None, Parameter(help="Also write a page with all of it (HTML)."), Writes.FILE] = None,
    results: Annotated[
        Path,
        Parameter(help="Directory in which runs are kept: an interrupted validation of Xen resumes."),
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

    Recordings of hosts with any number of CPUs: folders NAME-1 and NAME-2 are two of one setting. The twin of each,
    with a domain for each thread, is compared with both: shares, switches, migrations, placement (the time on the main
    CPU, and how many threads are beside one), waits. Limit: the difference between the two, or else of the halves of
    one, in 90 % of all predictions of a metric; what the range of 20 runs explains counts as within.

    Recordings of Xen: the twin of each is run in the setting of every other of the same guests (scheduler, parameters,
    weights, caps, pinning). Limits: shares 1 point in 90 % of all predictions; switches 5 % (median), 10 % (90 %);
    median waits 20 % and 90th percentiles 25 %, in 90 % beyond what chance gives (recordings that differ by their seed;
    else the halves of one); throughput of guests 5 % in 90 %; the sign of 95 % of the changes.

    Args:
        path: Recordings of Linux on one CPU (folders with trace.txt, experiment.txt, threads.txt and tunables.txt), of
            hosts with several (with trace.txt, threads.txt, kernel.txt and the like, as `make real-host` writes them),
            or of Xen (with trace.bin, sched.txt and guests' files), or folders with them; the bundled ones of Linux if
            left out.
    """
    from vcpulab import conformance as bundled
    from vcpulab.show.csv import csv
    from vcpulab_evidence.validation import validate as validated

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
        from vcpulab_evidence.commands import validation_parts as shown

        page.show(shown.parts(result), all=all)
    if report is not None:
        from vcpulab_evidence.validation import page as pages

        with written(report):
            pages.write(report, result)
    return DONE if result.passed else FAILED
