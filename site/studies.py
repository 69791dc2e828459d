"""The reports of the published studies as pages of the site: what `make site` has run of them, short or in full."""

import re
import shutil
from pathlib import Path

from vcpulab_evidence.studies import NAMES, study

PAGES = Path("studies")
OVERVIEW = Path("published-and-simulated.md")
_FIGURE = re.compile(r"\]\((figure-\d+\.svg)\)")
_RESULT = r"(?m)^\| `{name}` \| (\d+) \| (\d+) \| (\d+) \|"
_SHORT = "-fast"


def lay_out(out: Path, reports: Path) -> None:
    """Writes a page for each study whose report is in that folder, and the list of them."""
    overview = out / OVERVIEW
    text = overview.read_text("utf-8")
    rows = []
    for name in NAMES:
        folder = newest(reports, name)
        if folder is None:
            continue
        there = out / PAGES / name
        there.mkdir(parents=True, exist_ok=True)
        for figure in folder.glob("figure-*.svg"):
            shutil.copy(figure, there)
        shutil.copy(folder / "report.html", there)
        report = (folder / "report.md").read_text("utf-8")
        (out / PAGES / f"{name}.md").write_text(
            page(report, name, short=folder.name.endswith(_SHORT)), encoding="utf-8"
        )
        claims = re.search(_RESULT.format(name=name), text)
        rows.append(
            [f"[{study(name).title}]({name}.md)", study(name).reference, *(claims.groups() if claims else "–––")]
        )
        text = text.replace(f"| `{name}` |", f"| [`{name}`]({PAGES / name}.md) |", 1)
    (out / PAGES).mkdir(parents=True, exist_ok=True)
    (out / PAGES / "README.md").write_text(listed(rows), encoding="utf-8")
    overview.write_text(text, encoding="utf-8")


def newest(reports: Path, name: str) -> Path | None:
    """The folder of the study's report that was written last, of a short look or of a full run."""
    found = [reports / f"{name}{kind}" / "report.md" for kind in ("", _SHORT)]
    there = [file for file in found if file.is_file()]
    return max(there, key=lambda file: file.stat().st_mtime).parent if there else None


def page(report: str, name: str, *, short: bool) -> str:
    """A report as a page, which says where its figures answer to the pointer, and how a short look is to be taken."""
    title, lead, rest = report.split("\n\n", 2)
    also = f"[The same as one file]({name}/report.html), whose figures show their numbers under the pointer."
    parts = [title, lead, also, *([_NOTE] if short else []), _FIGURE.sub(rf"]({name}/\1)", rest)]
    return "\n\n".join(parts)


_NOTE = f"""!!! note "A short look"
    Short runs, two of each, made with this site. What full runs give is on
    [published and simulated](../{OVERVIEW}): where the two differ, that page counts."""


def listed(rows: list[list[str]]) -> str:
    """The page that lists the studies."""
    lead = (
        "What was published, run again: every figure, table and claim beside what the simulation says of it. How well "
        f"all of them agree, by full runs, of which the claims here are too: [published and simulated](../{OVERVIEW}). "
        "How they are compared, and how to run one: "
        "[comparing with published results](../guides/comparing-with-published.md)."
    )
    table = [f"| {' | '.join(cells)} |" for cells in (_HEADINGS, ["---"] * len(_HEADINGS), *rows)]
    return "\n".join(["# The studies' reports", "", lead, "", *(table if rows else ["No report was made."])]) + "\n"


_HEADINGS = ["study", "published in", "claims hold", "fail", "cannot be tested"]
