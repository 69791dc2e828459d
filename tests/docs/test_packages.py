"""What is published: the source distribution has what a wheel is made of, and workflows run what they name."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

from support import HANG_S, ROOT


def test_the_source_distribution_has_what_a_wheel_is_made_of(tmp_path: Path) -> None:
    maturin = Path(sys.executable).parent / "maturin"
    subprocess.run([maturin, "sdist", "--out", tmp_path], cwd=ROOT, check=True, capture_output=True, timeout=HANG_S)
    with tarfile.open(next(tmp_path.glob("vcpulab-*.tar.gz"))) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    there = [path for part in ("packaging", "python/vcpulab") for path in (ROOT / part).rglob("*") if path.is_file()]
    made = {".so", ".pyc"}
    kept = [str(path.relative_to(ROOT)) for path in there if path.suffix not in made]
    assert not {*kept, "README.md", "LICENSE-APACHE", "LICENSE-MIT", "Cargo.lock"} - names
    assert any(name.endswith("man1/vcpulab.1") for name in names)
    assert not [name for name in names if "evidence" in name or "studies" in name]


def test_workflows_name_actions_by_commit() -> None:
    for workflow in (ROOT / ".github/workflows").iterdir():
        for action in re.findall(r"uses: (.*)", workflow.read_text("utf-8")):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", action), f"{workflow.name}: {action}"
