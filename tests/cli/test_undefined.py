"""Numbers that are infinite or undefined: `null` in every JSON, with the reason beside them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from vcpulab.cli.main import main

NEVER = """
[run]
duration = "100ms"
warmup = "0s"
replications = 2
[host]
pcpus = 1
scheduler = "credit"
profile = "exact"
[domain.dom0]
driver_domain = true
[domain.hog]
weight = 65535
app = [{ kind = "hog" }]
[domain.web]
nic.driver_domain = "dom0"
app = [{ kind = "web-server" }]
[client.crowd]
kind = "open-loop"
server = "web"
rate = 2000
[client.quiet]
kind = "open-loop"
server = "web"
rate = 0.01
"""
SWEEP = 'scenario = "never.toml"\n[[vary]]\npath = "domain.hog.weight"\nvalues = [128, 65535]\n'
MEASURED = {
    "mean",
    "before",
    "after",
    "difference_percent",
    "response_min_s",
    "response_s",
    "estimate",
    "throughput_max",
}
"""Numbers that may have no value."""
TUNE = ("tune", "never.toml", "--trials", "2", "--vary", "hog.weight=1,65535", "--slo", "quiet.response_p99 < 5ms")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a scenario in which most domains never run, and a sweep over it."""
    monkeypatch.chdir(tmp_path)
    Path("never.toml").write_text(NEVER)
    Path("sweep.toml").write_text(SWEEP)


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "never.toml"),
        ("run", "never.toml", "--replications", "1"),
        ("compare", "never.toml", "never.toml", "--replications", "2"),
        ("whatif", "never.toml", "--set", "hog.cap=5", "--replications", "2"),
        ("explain", "never.toml", "--slo", "quiet.response_p99", "--replications", "2"),
        ("lint", "never.toml", "--replications", "2"),
        ("bounds", "never.toml", "--check"),
        ("capacity", "never.toml", "--vary", "copies:hog", "--highest", "1", "--slo", "quiet.response_p99 < 50ms"),
        TUNE,
        ("sweep", "sweep.toml", "--show", "quiet.*,web.*"),
        ("manage", "never.toml", "--domain", "web", "--interval", "20ms"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_number_without_a_value_says_why(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert main([*arguments, "--format", "json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    without = [row for row in rows_of(document) if any(row.get(name, 0) is None for name in MEASURED)]
    for row in without:
        assert any(row[name] for name in row if name.endswith("undefined")), row
    assert without or arguments == TUNE, "there are some"


def test_a_goal_without_a_value_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TUNE) in (0, 1)
    assert "quiet.response_p99 undefined" in " ".join(capsys.readouterr().out.split())


def rows_of(value: Any) -> Iterator[dict[str, Any]]:
    """All tables in a document."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from rows_of(item)
