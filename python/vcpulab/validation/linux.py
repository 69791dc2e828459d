"""Recordings of Linux, on one CPU: free runs of their threads on a simulated host under the same kernel's scheduler."""

import json
from pathlib import Path

from vcpulab._engine import LinuxRecording
from vcpulab.formats import linux_folder
from vcpulab.validation.report import Cell, Comparison


class Linux:
    """Recordings of Linux, as a kind of recordings."""

    find = staticmethod(linux_folder.find)

    def read(self, folder: Path) -> LinuxRecording:
        """Reads a recording.

        Raises:
            RecordingError: it is none.
        """
        return linux_folder.read(folder)

    def refusal(self, recording: LinuxRecording) -> str | None:
        """Why it cannot be run."""
        return recording.refusal

    def same(self, recording: LinuxRecording) -> str:
        """What recordings have in common that differ in settings alone."""
        return recording.work

    def compare(self, folders: tuple[Path, Path], recordings: tuple[LinuxRecording, LinuxRecording]) -> Comparison:
        """What one's demands give in the setting of the other, which may be the same.

        Raises:
            RecordingError: the two do not go together.
        """
        demands, setting = recordings
        try:
            compared = json.loads(demands.compare(None if setting is demands else setting))
        except ValueError as error:
            raise linux_folder.wrong(folders[0], error) from None
        cells = [Cell(**{**cell, "range": tuple(cell["range"])}) for cell in compared["cells"]]
        return Comparison(*folders, compared["scheduler"], cells)
