"""Recordings of Linux on one CPU: free runs of their threads under the simulated scheduler of the same kernel."""

import json
from pathlib import Path

from vcpulab._engine import LinuxRecording
from vcpulab.formats import linux_folder
from vcpulab_evidence.validation.report import FREE_RUN, WHAT_IF, Cell, Comparison


class Linux:
    """Recordings of Linux, as a kind of recordings."""

    find = staticmethod(linux_folder.find)

    def read(self, folder: Path) -> LinuxRecording:
        """Reads a recording.

        Raises:
            RecordingError: the folder holds no recording.
        """
        return linux_folder.read(folder)

    def refusal(self, recording: LinuxRecording) -> str | None:
        """The reason why a recording cannot be run; `None`: it can."""
        return recording.refusal

    def same(self, recording: LinuxRecording) -> str:
        """The work of a recording: the same text for recordings that differ only in their settings."""
        return recording.work

    def compare(self, folders: tuple[Path, Path], recordings: tuple[LinuxRecording, LinuxRecording]) -> Comparison:
        """Predicts a recording from the demands of the first one, in the setting of the second; they may be the same.

        Raises:
            RecordingError: the two recordings have different threads.
        """
        demands, setting = recordings
        try:
            compared = json.loads(demands.compare(None if setting is demands else setting))
        except ValueError as error:
            raise linux_folder.wrong(folders[0], error) from None
        cells = [Cell(thing=cell.pop("of"), **{**cell, "range": tuple(cell["range"])}) for cell in compared["cells"]]
        kind = FREE_RUN if folders[0] == folders[1] else WHAT_IF
        return Comparison(*folders, compared["scheduler"], cells, kind)
