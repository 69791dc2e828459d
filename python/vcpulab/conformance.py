"""The conformance vectors and the recordings of Linux that come with the package."""

from importlib.resources import files
from pathlib import Path


def bundled() -> Path:
    """The folder with one folder of vectors for each scheduler and generation."""
    return _data("conformance")


def recordings() -> Path:
    """The folder with one folder for each recording of Linux."""
    return _data("linux")


def _data(name: str) -> Path:
    return Path(str(files("vcpulab").joinpath("data", name)))
