"""`vcpulab export`: traces in the formats of other tools."""

from pathlib import Path
from typing import Annotated

from vcpulab.cli import terminal
from vcpulab.cli.options import CpuMhz, Replication, Threads, command, group
from vcpulab.cli.outputs import Writes
from vcpulab.errors import RequestError

export = group(
    "export", "Write traces in the formats of other tools.", "vcpulab export perfetto out/trace --out web.pftrace"
)


@command(
    "perfetto",
    "vcpulab export perfetto out/trace --out web.pftrace",
    "vcpulab export perfetto trace.bin --out host.pftrace",
    parent=export,
)
def perfetto(
    source: Path,
    /,
    *,
    out: Annotated[Path, Writes.FILE],
    replication: Replication = 0,
    request: str | None = None,
    cpu_mhz: CpuMhz = None,
    threads: Threads = None,
) -> None:
    """Write one replication, or the trace of a real host, as a trace that https://ui.perfetto.dev opens.

    Args:
        source: A directory that `vcpulab run` wrote: that of --trace, or that of --out, which holds only which vCPU ran
            when. Or a trace of xentrace, perf or ftrace, as `vcpulab import` reads it.
        out: File to write; one that is there is replaced.
        request: A percentile of a client's response times, such as http.response_p99: the request at it and the median
            one are followed, each on a track of its own. Of a run only.
    """
    if request is not None and source.is_file():
        raise RequestError("a recording has no clients to follow", field="request", found=request)
    try:
        if source.is_file():
            from vcpulab.cli.import_ import export_perfetto

            export_perfetto(source, out, cpu_mhz=cpu_mhz, threads=threads)
        else:
            from vcpulab.results.perfetto import export_perfetto as export_trace

            export_trace(source, out, replication, request=request)
    except RequestError:
        raise
    except (FileNotFoundError, ValueError) as error:
        raise RequestError(str(error)) from None
    terminal.say(f"written to {out}\n  hint: open it in https://ui.perfetto.dev")
