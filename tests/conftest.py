"""Fixtures that several tests share."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import vcpulab
from support import TWO_HOGS, Vcpulab, run_vcpulab

LONGEST = ("test_playground.py", "test_studies.py", "test_docs.py", "test_twin_patterns.py")
"""Files of tests, one for each worker on two cores."""


def pytest_xdist_auto_num_workers() -> int:
    """Tests wait for browsers and clocks, too."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, that nobody waits for them at the end."""
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


@pytest.fixture
def command(tmp_path: Path) -> Vcpulab:
    """The command line, in an empty directory with `hogs.toml`."""
    (tmp_path / "hogs.toml").write_text(TWO_HOGS)

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return run_vcpulab(arguments, tmp_path, **environment)

    return run


@pytest.fixture(scope="session")
def hogs() -> vcpulab.Run:
    """Two domains that compute without end, one with three times the weight of the other, traced."""
    return vcpulab.run(vcpulab.Scenario.from_toml(TWO_HOGS), decisions=True)


@pytest.fixture(scope="session")
def browser() -> str:
    """A browser that can be run without a screen."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    if "VCPULAB_REQUIRE_BROWSER" in os.environ:
        pytest.fail("no Chromium or Chrome found")
    pytest.skip("no Chromium or Chrome found: the report cannot be opened")
