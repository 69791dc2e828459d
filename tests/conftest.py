"""Fixtures that several tests share."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import vcpulab
from support import TWO_HOGS, Vcpulab, run_vcpulab


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Tests wait for browsers and clocks, too."""
    return 2 * (os.cpu_count() or 1)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Does not even import files without the marker where quick tests are asked for."""
    if not config.option.markexpr.startswith("quick") or collection_path.suffix != ".py":
        return None
    return "pytest.mark.quick" not in collection_path.read_text("utf-8") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests that open a browser, and starts long files first, so that nothing waits for them at the end.

    The playground's come before all others: they build it.
    """
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: ("playground" not in item.path.parts, item.path not in slow))


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
