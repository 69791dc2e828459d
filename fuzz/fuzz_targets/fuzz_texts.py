"""Any bytes as each of the texts that the Python front reads (`tests/texts.py` says which): read, or refused.

Takes libFuzzer's arguments: a folder to collect in, folders of seeds, options.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["vcpulab"]):
    from texts import check

with tempfile.TemporaryDirectory(prefix="fuzz-texts-") as scratch:
    file = Path(scratch, "file")

    def read(data: bytes) -> None:
        """Reads the bytes as a file."""
        file.write_bytes(data)
        check(file)

    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
