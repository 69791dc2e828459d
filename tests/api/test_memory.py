"""Memory does not grow with the length of a run."""

import subprocess
import sys
from pathlib import Path

import pytest

import vcpulab
from support import HANG_S
from vcpulab import EngineError, Run, Scenario

SAMPLED = """\
[run]
duration = "1s"
warmup = "0s"
sample = "1ms"
[host]
profile = "exact"
scheduler = "credit"
pcpus = 1
[domain.a]
app = [{ kind = "periodic", run = "20us", period = "200us" }]
[domain.b]
app = [{ kind = "hog" }]
"""
"""For each simulated second some 8,000 rows of samples and 10,000 decisions."""

MEASURE = """\
import re, sys
from pathlib import Path
from vcpulab import Scenario, run
done = run(Scenario.load("sampled.toml").change({"run.duration": sys.argv[1]}), decisions=True)
done.summary()
done.save("saved")
print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def peak_mb(folder: Path, duration: str) -> float:
    """Most memory that a process of its own takes to run, to sum up and to save so much."""
    command = [sys.executable, "-c", MEASURE, duration]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=True)
    return int(done.stdout) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux")
def test_memory_is_flat(tmp_path: Path) -> None:
    (tmp_path / "sampled.toml").write_text(SAMPLED)
    short, long = (peak_mb(tmp_path, duration) for duration in ("20s", "60s"))
    samples = Run.load(tmp_path / "saved").df_samples()
    assert samples.height == 2 * 60_000, "all are there"
    # In memory, 40 seconds of samples and decisions are 60 MB and more.
    assert long < short + 20


def test_what_is_saved_in_parts_is_what_is_asked_for(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(SAMPLED).change({"run.duration": "3s", "run.replications": 3})
    run = vcpulab.run(scenario, jobs=2, decisions=True)
    run.save(tmp_path / "saved")
    loaded = Run.load(tmp_path / "saved").tables()
    for name, table in run.tables().items():
        assert table.equals(loaded[name]), name
    samples = run.df_samples()
    assert samples["replication"].is_sorted()
    assert samples.group_by("replication", "domain").len()["len"].to_list() == [3_000] * 6


def test_a_run_that_cannot_keep_its_samples_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    with pytest.raises(EngineError, match=r"none: a temporary file for samples and decisions: .*[Nn]o such file"):
        vcpulab.run(Scenario.from_toml(SAMPLED).change({"run.duration": "3s"}))
