"""Readers of files from real hosts: traces of their schedulers, and the texts of their tools.

`read` recognizes a file by its content, and returns the content. A file with other contents, or with damage that cannot
be skipped, raises a `RecordingError` that names the file, the line, the value found and the allowed values. Files may
be compressed (xz, gzip, bzip2).
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
