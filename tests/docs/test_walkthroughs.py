"""The walkthroughs name functions, and ARCHITECTURE.md files: each is where they say."""

import re

import pytest

from support import ROOT

pytestmark = pytest.mark.quick

PAGE = ROOT / "docs" / "concepts" / "walkthroughs.md"
STEP = re.compile(r"^\| \d+ \| `(?P<file>[^`]+\.rs)` `(?P<function>\w+)` \|", re.MULTILINE)
STEPS = [(step["file"], step["function"]) for step in STEP.finditer(PAGE.read_text())]


def test_every_step_names_a_function() -> None:
    rows = re.findall(r"^\| \d+ \|", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == len(STEPS) > 30


@pytest.mark.parametrize(("file", "function"), sorted(set(STEPS)))
def test_functions_are_where_the_walkthroughs_say(file: str, function: str) -> None:
    source = (ROOT / file).read_text()
    assert re.search(rf"\bfn {function}\b", source), f"{file} has no function `{function}`"


def test_other_names_in_the_text_are_in_the_code() -> None:
    text = STEP.sub("", PAGE.read_text())
    names = set(re.findall(r"`(?:\w+::)?([a-z]+(?:_[a-z0-9]+)+)`", text))
    sources = "\n".join(
        path.read_text() for crate in ("host", "io", "sched") for path in (ROOT / "crates" / crate).rglob("*.rs")
    )
    assert names
    assert not [name for name in sorted(names) if not re.search(rf"\b{name}\b", sources)]


def test_the_architecture_page_names_what_there_is() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    paths = set(re.findall(r"`((?:crates|python|docs|scenarios)/[\w./-]+)`", text))
    assert len(paths) > 20
    made_up = {path for path in paths if "NAME" in path}
    assert all((ROOT / path).parent.is_dir() for path in made_up)
    assert not sorted(path for path in paths - made_up if not (ROOT / path).exists())


def test_the_table_of_the_kernels_names_is_true() -> None:
    folder = ROOT / "crates" / "sched" / "src" / "linux"
    sources = {path.stem: path.read_text() for path in folder.glob("*.rs")}
    tables = sources.pop("mod").split("Names that differ")
    by_file, by_name = (re.findall(r"^//! \| (`.+) \| (.+) \|$", table, re.MULTILINE) for table in tables)
    assert len(by_file) > 10
    assert len(by_name) > 10
    rows = [(re.findall(r"`(\w+)`", names), described) for names, described in by_file]
    rows += [(list(sources), here) for _, here in by_name]
    for stems, described in rows:
        # A type `CfsRq` is the kernel's `cfs_rq`.
        text = "\n".join(sources[stem] for stem in stems).replace("_", "")
        names = [re.split(r"\W+", name)[-1].replace("_", "") for name in re.findall(r"`([\w:<>]+)`", described)]
        assert not [name for name in names if not re.search(rf"\b{name}\b", text, re.IGNORECASE)], described
