"""Documents: what a terminal shows of their parts, and what a page shows."""

import re
from pathlib import Path

import polars as pl
import pytest

import vcpulab
from vcpulab.cli import page
from vcpulab.show import html, markdown
from vcpulab.show.answer import Answer
from vcpulab.show.document import Block, Chart, Document, Folded, Heading, Lines, Part, Prose, Version, on_page
from vcpulab.show.table import Table
from vcpulab.show.terminal_text import plain

WIDE = Table("Domains", ["domain", *(f"metric {number}" for number in range(9))], [["web", *"123456789"]])


def on_terminal(capsys: pytest.CaptureFixture[str], document: Document) -> list[str]:
    page.show(document)
    return [line.strip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def markup(document: Document) -> str:
    return "".join(html.rendered(on_page(document)))


def test_a_page_has_everything_that_a_terminal_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    def document() -> Document:
        yield Part.lines([f"line {number}" for number in range(90)], "line")
        yield Part.alternatives(Version(), Version([Lines(["aside"])]))

    assert on_terminal(capsys, document())[-1] == "51 more lines: --all"
    assert re.findall("<p>(.*?)</p>", markup(document())) == [*(f"line {number}" for number in range(90)), "aside"]


def test_what_only_a_page_shows_is_made_for_pages_only(capsys: pytest.CaptureFixture[str]) -> None:
    made = []

    def details() -> object:
        made.append("details")
        yield Folded("All metrics", [WIDE])

    document = [Part.always(Lines(["answer"])), Part(lambda *_: Version(), page=details())]  # type: ignore[arg-type]
    assert on_terminal(capsys, document) == ["answer"]
    assert not made
    assert "<summary>All metrics</summary>" in markup(document)


def test_a_terminal_shows_no_charts(capsys: pytest.CaptureFixture[str]) -> None:
    def draw() -> object:
        raise AssertionError("a terminal draws nothing")

    chart = Chart(draw)  # type: ignore[arg-type]
    assert on_terminal(capsys, [Part.always(Heading("Settings tried"), chart)]) == ["Settings tried:"]


def test_lines_are_paragraphs_lists_or_commands_of_a_page() -> None:
    blocks: list[Block] = [
        Heading("To set it"),
        Lines(["Either:", ""]),
        Lines(["weights"], begin="  "),
        Lines(["caps <b>"], begin="    "),
        Lines(["# at run time", ""], typed=True),
        Lines(["xl list"], typed=True),
    ]
    (section,) = html.rendered(blocks)
    assert section.replace("\n", "|").strip("|") == (
        '<section><h2 id="to-set-it">To set it</h2><p>Either:</p>'
        "<ul><li>weights<ul><li>caps &lt;b&gt;</li></ul></li></ul>"
        "<pre># at run time||xl list</pre></section>"
    )


def test_a_narrow_terminal_has_the_narrower_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = Table("Domains", ["domain", "metric 0"], [["web", "1"]])
    table = Table(WIDE.title, WIDE.headings, WIDE.rows, narrower=narrow)
    for columns, last in (("200", "metric 8"), ("40", "metric 0")):
        monkeypatch.setenv("COLUMNS", columns)
        assert on_terminal(capsys, [Part.rows(table, "domain")])[1].endswith(last)
    assert "metric 8" in markup([Part.rows(table, "domain")])


def test_answers_are_documents(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = vcpulab.Scenario.starter().change({"run.duration": "300ms", "run.replications": 2})
    answers: list[Answer] = [
        vcpulab.bounds(scenario),
        vcpulab.whatif(scenario, {"batch.cap": 30}, replications=2),
        vcpulab.explain(scenario, replications=2),
    ]
    for answer in answers:
        lines = on_terminal(capsys, answer.document())
        assert lines
        html.write(tmp_path / "page.html", "An answer", on_page(answer.document()))
        assert lines[0].split()[0] in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_markdown_has_the_lines_of_a_page(tmp_path: Path) -> None:
    """It had none of them."""
    blocks: list[Block] = [
        Heading("To set it"),
        Lines(["Either:", ""]),
        Lines(["weights"], begin="  "),
        Lines(["caps", "pins"], begin="    "),
        Lines(["both"], begin="  "),
        Lines(["xl list"], typed=True),
    ]
    assert markdown.text(blocks, "Advice", tmp_path) == (
        "# Advice\n\n## To set it\n\nEither:\n\n- weights\n  - caps\n  - pins\n- both\n\n```\nxl list\n```\n"
    )


class _Differences(Answer):
    def document(self) -> Document:
        return [
            Part.always(Heading("Differences")),
            Part.rows(Table("", ["metric", "value"], [["a.gotten", "1 %"], ["b.gotten", "<2> %"]]), "metric"),
            Part.lines(["a \x1b[2J", "b"], "line", rounds=(1,)),
            Part.only_on_page(Prose("*only on a page*")),
        ]

    def to_frame(self) -> pl.DataFrame:
        return pl.DataFrame({"metric": ["a.gotten"]})


def test_an_answer_is_its_document_on_a_terminal_and_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    """It was a text of its own for each answer."""
    answer = _Differences()
    page.show(answer.document(), all=True)
    printed = [plain(line).rstrip() for line in capsys.readouterr().out.strip().splitlines()]
    assert str(answer).splitlines() == printed
    in_notebook = answer._repr_html_()
    assert '<h2 id="differences">Differences</h2>' in in_notebook
    assert "<td>&lt;2&gt; %</td>" in in_notebook
    assert "only on a page" not in in_notebook
    assert in_notebook.count("<table") == 2
