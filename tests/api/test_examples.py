"""The examples work, and the guide that explains them shows the very files."""

import os
import re
import subprocess
from pathlib import Path

import pytest

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
