"""The site: it is built without a warning, its links hold, it loads nothing from elsewhere, and a browser shows it."""

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import pages
import studies
import versions
from support import HANG_S, ROOT
from vcpulab_evidence.studies import NAMES


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "BUILT", here / "no playground")  # another test may be building it just now
        patch.setattr(pages, "REPORTS", reports(here))
        pages.lay_out(here / "out/site/pages")
    shutil.copy(ROOT / "mkdocs.yml", here)
    for sources in ("python", "evidence"):
        (here / sources).symlink_to(ROOT / sources)
    zensical = Path(sys.executable).parent / "zensical"
    subprocess.run([zensical, "build", "--strict"], cwd=here, check=True, timeout=HANG_S)
    return here / "out/site/html"


def reports(here: Path) -> Path:
    """Reports as `vcpulab study report` lays them out, without their runs, which have tests of their own."""
    for name in NAMES:
        folder = here / "reports" / f"{name}-fast"
        folder.mkdir(parents=True)
        parts = [f"# {name}: published and simulated", "Its authors.", "* Of 2 claims 1 holds.", "## Figures"]
        (folder / "report.md").write_text("\n\n".join([*parts, "### Figure 1", "![Figure 1](figure-1.svg)"]) + "\n")
        (folder / "report.html").write_text("<!doctype html><title>report</title>")
        (folder / "figure-1.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    return here / "reports"


class _Page(HTMLParser):
    """Where a page leads, what it loads, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        self.anchors.add(has.get("id") or "")
        if tag == "a" and has.get("href"):
            self.links.append(has["href"] or "")
        elif tag in {"script", "img", "link", "iframe"}:
            self.loads += [value for value in (has.get("src"), has.get("href")) if value]


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    found = {path: _Page(path) for path in site.rglob("*.html")}
    assert len(found) > 100
    broken = []
    for path, page in found.items():
        if site / "playground" in path.parents:
            continue
        if path.name == "404.html":
            continue  # its links are from the root of whatever serves it
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme and link in page.links:
                continue
            if "playground/" in parts.path:  # which holds scenarios in its fragments, and has tests of its own
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = found[target].anchors if target in found else set()
            if parts.scheme or not target.exists() or (parts.fragment and unquote(parts.fragment) not in anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken


def test_studies_have_pages_that_their_overview_leads_to(site: Path) -> None:
    overview = _Page(site / "published-and-simulated.html")
    for name in NAMES:
        assert f"studies/{name}.html" in overview.links
        page = _Page(site / f"studies/{name}.html")
        assert f"{name}/figure-1.svg" in page.loads
        assert f"{name}/report.html" in page.links
        assert "../published-and-simulated.html" in page.links, "a short look says where the full figures are"
    listed = (site / "studies/index.html").read_text("utf-8")
    full = (ROOT / "docs/published-and-simulated.md").read_text("utf-8")
    for claims in re.findall(r"(?m)^\| `\w+` \| (\d+) \| (\d+) \| (\d+) \|", full):
        assert "".join(f"<td>{number}</td>\n" for number in claims) in listed, "claims are counted by full runs"


def test_the_report_that_was_written_last_is_shown(tmp_path: Path) -> None:
    assert studies.newest(tmp_path, "x") is None
    for order, name in enumerate(["x", "x-fast"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.md").touch()
        os.utime(tmp_path / name / "report.md", (order, order))
    assert studies.newest(tmp_path, "x") == tmp_path / "x-fast"
    os.utime(tmp_path / "x/report.md", (2, 2))
    assert studies.newest(tmp_path, "x") == tmp_path / "x"
    assert "A short look" not in studies.page("# T\n\nWho.\n\n* Of 2 claims.\n", "x", short=False)


def test_spelling() -> None:
    codespell = Path(sys.executable).parent / "codespell"
    subprocess.run(
        [codespell, "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs"], cwd=ROOT, check=True, timeout=HANG_S
    )


def test_a_browser_shows_it(site: Path, browser: str) -> None:
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(http.server.SimpleHTTPRequestHandler, directory=site)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        for page, shows in [
            ("index.html", "hypervisor CPU scheduling"),
            ("schedulers/credit2.html", "run queue"),
            ("studies/index.html", "reports"),
        ]:
            shown = subprocess.run(
                [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", f"{address}/{page}"],
                capture_output=True, text=True, timeout=HANG_S, check=True,
            ).stdout  # fmt: skip
            assert shows in shown
            assert "Search" in shown
        server.shutdown()


def test_versions_are_beside_each_other(site: Path, tmp_path: Path) -> None:
    for version in ("v0.9.0", "v0.10.0", "main"):
        versions.add(tmp_path, version, site)
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [each["version"] for each in listed] == ["v0.10.0", "v0.9.0", "main"]
    assert "v0.10.0/index.html" in (tmp_path / "index.html").read_text()
    assert (tmp_path / "v0.9.0/index.html").is_file()
    with pytest.raises(SystemExit, match=r"found `\.\./up`"):
        versions.add(tmp_path, "../up", site)
