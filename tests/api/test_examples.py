"""The examples work, and the guide that explains them shows the very files."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import vcpulab
from support import HANG_S, ROOT

GUIDE = ROOT / "docs" / "guides" / "write-a-scheduler.md"


def code(text: str) -> list[str]:
    """Its lines but the empty ones, of which a guide that goes step by step has others."""
    return [line for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("kind", "files"), [("py", ["lottery.py", "stride.py"]), ("rust", ["lottery-rust/src/lib.rs"])]
)
def test_the_guide_shows_the_files_step_by_step(kind: str, files: list[str]) -> None:
    steps = re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(steps) > 3
    assert code("".join(steps)) == code("".join((ROOT / "examples" / file).read_text() for file in files))


def test_a_weight_of_the_readme_matters_beyond_its_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (ROOT / "README.md").read_text()
    monkeypatch.chdir(tmp_path)
    Path("web.toml").write_text(vcpulab.Scenario.starter().text)
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    exec(snippet, {})
    printed = capsys.readouterr().out.splitlines()
    assert all(line in readme for line in printed), printed
    (slow, by_slow), (fast, by_fast) = (
        [float(number) for number in re.findall(r"[\d.]+", line)[1:]] for line in printed
    )
    assert fast + by_fast < (slow - by_slow) / 2
    assert by_slow < 0.1 * slow


def test_a_weight_of_the_starter_matters_to_everything_that_its_owner_looks_at() -> None:
    # It needs nobody to take anything away first, and nothing changes by itself.
    starter = vcpulab.Scenario.starter().change({"run.duration": "4s", "run.replications": 3})
    assert not starter.warnings
    assert "action" not in starter.written()
    before, after = vcpulab.run_many([starter, starter.change({"domain.web.weight": 512})])
    for address, better in {"http.response_p50": -1, "http.response_p99": -1, "http.throughput": 1}.items():
        now, then = before[address], after[address]
        assert now.half_width is not None
        assert then.half_width is not None
        assert better * (then.mean - now.mean) > now.half_width + then.half_width, address


def test_a_crate_of_its_own_passes_its_tests() -> None:
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    command = ["cargo", "test", "--quiet", "--locked", "--offline"]
    result = subprocess.run(
        command,
        cwd=ROOT / "examples" / "lottery-rust",
        env={**os.environ, "CARGO_TARGET_DIR": str(Path(target, "examples"))},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "4 passed" in result.stdout
