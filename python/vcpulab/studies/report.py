"""The report of a study: one HTML file, and the same as Markdown and Parquet."""

from pathlib import Path

from vcpulab.studies.results import Results
from vcpulab.studies.runner import Effort
from vcpulab.studies.study import Study


def write(study: Study, results: Results, effort: Effort, folder: Path) -> None:
    """Writes `report.html`, `report.md` and the cells as Parquet to a folder."""
    raise NotImplementedError
