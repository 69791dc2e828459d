"""Lays the pages of the site out in out/site/pages: the documentation as it is, with links that hold on a site.

What the documentation links to outside of itself comes along: texts of the project as pages, scenarios and examples as
files. The playground comes along if it was built, and every scenario that the pages show or link to opens in it.
Reports of studies that were run are pages, too.
"""

import base64
import re
import shutil
import zlib
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path
from types import ModuleType

import studies
import vcpulab
import vcpulab_evidence

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "out/site/pages"
DOCS = ROOT / "docs"
HOME, PROJECT = ROOT / "README.md", ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
PLAYGROUND, BUILT = Path("playground/index.html"), ROOT / "out/web"
GUIDE = DOCS / "guides/playground.md"  # where the repository's own home leads, which has no playground to open
REPORTS = ROOT / "out/site/studies"
_TOML = re.compile(r"(?m)^```toml\n(.*?)^```\n", re.DOTALL)
_LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(#[^)\s]*)?\)")


def place(path: Path) -> Path:
    """Where a file of the project is on the site, from the site's root."""
    if path == HOME:
        return Path("index.md")
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS)
    if path.is_dir():
        path /= "README.md"
    return (Path("project") if path.suffix == ".md" or "LICENSE" in path.name else Path("files")) / path.relative_to(
        ROOT
    )


def sources() -> Iterator[Path]:
    """Every page that the site starts from."""
    yield HOME
    yield from (ROOT / name for name in PROJECT)
    yield from (path for path in sorted(DOCS.rglob("*")) if path.suffix in {".md", ".svg", ".png"})


def lay_out(out: Path = OUT) -> None:
    """Writes all pages, and what they link to."""
    shutil.rmtree(out, ignore_errors=True)
    done: set[Path] = set()
    todo = list(sources())
    while todo:
        source = todo.pop()
        if source in done:
            continue
        done.add(source)
        target = out / place(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copyfile(source, target)
            continue
        text, linked = moved(source)
        target.write_text(text, encoding="utf-8")
        todo += linked
    if BUILT.is_dir():
        shutil.copytree(BUILT, out / PLAYGROUND.parent)
    studies.lay_out(out, REPORTS)
    shutil.copy(ROOT / "site/site.css", out)
    (out / "reference/python.md").write_text(python_reference(), encoding="utf-8")


def moved(source: Path) -> tuple[str, list[Path]]:
    """A page with its links as they are on the site, and the files that it links to."""
    linked: list[Path] = []

    def link(match: re.Match[str]) -> str:
        there = (source.parent / match[1]).resolve()
        if not there.exists():
            raise SystemExit(f"{source.relative_to(ROOT)}: link to `{match[1]}`: there is no such file")
        if there.is_dir():
            there /= "README.md"
        linked.append(there)
        if source == HOME and there == GUIDE:
            return f"]({PLAYGROUND})"
        opens = in_playground(there.read_text("utf-8"), source) if there.suffix == ".toml" else ""
        return f"]({relpath(place(there), place(source).parent)}{match[2] or ''})" + (opens and f" ({opens})")

    def shown(match: re.Match[str]) -> str:
        opens = in_playground(match[1], source)
        return match[0] + (opens and f"\n{opens}\n")

    return _TOML.sub(shown, _LINK.sub(link, source.read_text("utf-8"))), linked


def in_playground(text: str, page: Path) -> str:
    """A link of a page to the playground with a scenario; empty if the text is none, or needs files of its own."""
    try:
        vcpulab.Scenario.from_toml(text)
    except vcpulab.ScenarioError:
        return ""
    packer = zlib.compressobj(level=9, wbits=-zlib.MAX_WBITS)
    packed = base64.urlsafe_b64encode(packer.compress(text.encode()) + packer.flush()).decode().rstrip("=")
    return f"[open in the playground]({relpath(PLAYGROUND, place(page).parent)}#s={packed})"


def python_reference() -> str:
    """The page of the Python interface: every public name, by its docstring."""
    lead = "What a notebook needs, from its docstrings. [The guide](../guides/python.md) shows it at work."
    evidence = "With the package `vcpulab-evidence` installed, from `vcpulab_evidence`:"
    parts = [lead, *documented(vcpulab), evidence, *documented(vcpulab_evidence)]
    return "\n\n".join(["# Python interface", *parts]) + "\n"


def documented(package: ModuleType) -> list[str]:
    """The public names of a package, each where it is defined, in alphabetical order."""
    names = sorted((name for name in package.__all__ if not name.startswith("__")), key=str.lower)
    return [f"::: {home(package, name)}" for name in names]


def home(package: ModuleType, name: str) -> str:
    """Where a public name is defined."""
    module = getattr(package, name).__module__
    return f"{module if module.startswith('vcpulab') else vcpulab._HOMES[name]}.{name}"


if __name__ == "__main__":
    lay_out()
