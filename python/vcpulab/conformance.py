"""The conformance vectors that come with the package."""

from importlib.resources import files
from pathlib import Path


def bundled() -> Path:
    """The folder with one folder for each scheduler and generation."""
    return Path(str(files("vcpulab").joinpath("data", "conformance")))
