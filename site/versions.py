"""Adds the site as it was built to a folder with a site for each version: `versions.py FOLDER VERSION`.

The pages' own chooser reads `versions.json` there, in the form that mike gave it. The newest release is at the top: its
name leads to it from the folder's root.
"""

import json
import re
import shutil
import sys
from pathlib import Path

BUILT = Path(__file__).resolve().parents[1] / "out/site/html"
_RELEASE = re.compile(r"v\d+(\.\d+)*")


def add(folder: Path, version: str, built: Path = BUILT) -> None:
    """Puts the site that was built there as one version; it replaces that version's former one."""
    if not re.fullmatch(r"[\w.-]+", version) or version.startswith("."):
        raise SystemExit(f"version: found `{version}`; allowed: letters, digits, `.`, `-`, `_`")
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(built, folder / version)
    found = sorted((path.name for path in folder.iterdir() if (path / "index.html").is_file()), key=_age, reverse=True)
    listed = [{"version": name, "title": name, "aliases": ["latest"] if name == found[0] else []} for name in found]
    (folder / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    there = f"{found[0]}/index.html"
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={there}"><a href="{there}">vcpulab</a>\n'
    (folder / "index.html").write_text(page, encoding="utf-8")
    (folder / ".nojekyll").touch()


def _age(name: str) -> tuple[bool, list[int], str]:
    """Releases before branches, by their numbers.

    Examples:
        >>> sorted(["main", "v0.10.0", "v0.9.1"], key=_age)
        ['main', 'v0.9.1', 'v0.10.0']
    """
    is_release = _RELEASE.fullmatch(name) is not None
    return is_release, [int(part) for part in re.findall(r"\d+", name)] if is_release else [], name


if __name__ == "__main__":
    add(Path(sys.argv[1]), sys.argv[2])
