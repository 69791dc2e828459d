"""What real hosts record, read: traces of their schedulers, and the texts of their tools.

`read` knows a file by what is in it, and answers with what it holds; a file that holds something else, or is damaged
where that cannot be passed over, is refused with a `RecordingError` that names the file, the line, what was found and
what may be there. Files may be compressed (xz, gzip, bzip2).
"""

from vcpulab.errors import RecordingError
from vcpulab.formats.kinds import (
    KINDS,
    THREADS,
    Kind,
    KvmKind,
    Read,
    Source,
    Unused,
    hypervisor_of,
    kind_of,
    kinds_in,
    known_in,
    names_of,
    read,
    read_all,
    threads_in,
)
from vcpulab.formats.perfetto import export_perfetto
from vcpulab.formats.trace import Recording, VcpuThread, read_threads, read_trace

__all__ = [
    "KINDS",
    "THREADS",
    "Kind",
    "KvmKind",
    "Read",
    "Recording",
    "RecordingError",
    "Source",
    "Unused",
    "VcpuThread",
    "export_perfetto",
    "hypervisor_of",
    "kind_of",
    "kinds_in",
    "known_in",
    "names_of",
    "read",
    "read_all",
    "read_threads",
    "read_trace",
    "threads_in",
]
