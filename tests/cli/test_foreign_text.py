"""Text of others (names in recordings, scenarios, sweeps) as it is shown: in the terminal, in pages, in CSV."""

import os
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from support import HANG_S, TWO_HOGS, opened
from vcpulab.cli import terminal
from vcpulab.cli.main import main
from vcpulab.cli.streams import printing_plainly
from vcpulab.show import charts, html
from vcpulab.show.csv import csv
from vcpulab.show.document import Block, Chart, Lines
from vcpulab.show.table import Table
from vcpulab.show.terminal import rendered
from vcpulab.show.terminal_text import plain

SCRIPT = "</script><script>document.title = 'broken into'</script>"
NAMES = [SCRIPT, "<!--<script>", "a\u2028b\u2029c", "\"'&lt;]]>", "\x1b]0;mine\x07\x9b2J", "\u202egnp.exe\u200f"]
OBEYED = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u202e\u200f\u2028\u2029"} - {"\n", "\t"}


def test_a_page_is_drawn_whatever_the_names_are(tmp_path: Path, browser: str) -> None:
    bars = pl.DataFrame([(name, name, 1.0, 0.1, name, False) for name in NAMES], schema=charts.BARS, orient="row")
    differences = pl.DataFrame(
        {"metric": NAMES, "percent": 1.0, "low": 0.5, "high": 1.5, "verdict": "improves", "size": 1.0, "told": True}
    )
    drawn = [charts.bars(bars, NAMES[2], "".join(NAMES)), charts.differences(differences)]
    parts = [Chart(partial(drawn.__getitem__, place)) for place in range(len(drawn))]
    words: list[Block] = [Table(SCRIPT, NAMES, [NAMES]), Lines(NAMES, typed=True)]
    html.write(tmp_path / "page.html", SCRIPT, [Lines(NAMES), *parts, *words])
    page = opened(browser, tmp_path / "page.html")
    assert page.count('data-drawn=""') == len(drawn)
    assert "<title>broken into" not in page


def test_a_chart_of_a_sweep_runs_no_script_of_its_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hogs.toml").write_text(TWO_HOGS.replace("300ms", "20ms").replace("replications = 3", "replications = 1"))
    values = f"""["{SCRIPT}", "=1+1", "<!--<script>"]"""
    Path("sweep.toml").write_text(f'scenario = "hogs.toml"\n[[vary]]\npath = "name"\nvalues = {values}\n')
    assert main(["sweep", "sweep.toml", "--plot", "x.html", "--format", "csv"]) == 0, capsys.readouterr().err
    assert ",'=1+1," in capsys.readouterr().out
    page = Path("x.html").read_text()
    parser = _Scripts()
    parser.feed(page)
    parser.close()
    assert parser.found == 2, "the chart and the program that draws it"
    assert "<!--" not in page.partition('<script type="module">')[0]


class _Scripts(HTMLParser):
    found = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.found += tag == "script"


def test_a_terminal_obeys_nobody_but_us(capsys: pytest.CaptureFixture[str]) -> None:
    with printing_plainly():
        for name in NAMES:
            sys.stdout.write(f"{name}\n")
            terminal.warn(name)
    said = capsys.readouterr()
    assert r"\x1b]0;mine\x07\x9b2J" in said.out
    assert r"\u202egnp.exe\u200f" in said.err
    assert not OBEYED & {*said.out, *said.err}


def test_a_table_in_colour_has_no_colour_of_its_cells() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=100)
    for part in rendered(Table("\x1b[2J", ["name\x9b", "n"], [["\x1b[31mred", "\u202e1"]]), 100):
        console.print(part)
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # it is a StringIO
    assert r"\x1b[31mred" in shown
    assert not {"\x1b[2J", "\x1b[31m", "\x9b", "\u202e"} & {
        shown[i : i + n] for n in (1, 4, 5) for i in range(len(shown))
    }


def test_names_in_a_recording_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    recorded = Path(__file__).parents[1] / "recordings/xen4.17-credit-weights/list0.txt"
    Path("list\x1b[2J.txt").write_text(recorded.read_text().replace("Domain-0", "Dom\x1b[2J\x9b0"))
    for arguments in (["import", "list\x1b[2J.txt"], ["run", "list\x1b[2J.txt"], ["\x1b[2J"]):
        main(arguments)
    said = capsys.readouterr()
    assert r"Dom\x1b[2J\x9b0" in said.out
    assert r"list\x1b[2J.txt" in said.err
    assert not OBEYED & {*said.out, *said.err}


def test_plain_text_stays_as_it_is() -> None:
    text = "300 ± 2 µs\n\tüber – „Größe“ 日本 🙂"
    assert plain(text) is text or plain(text) == text


def test_a_spreadsheet_calculates_nothing() -> None:
    frame = pl.DataFrame({"name": ["=1+1", "+1", "-1", "@sum(a)", "\tx", "a=1", None], "value": [-1.5] * 7})
    names = [line.rpartition(",")[0] for line in csv(frame).splitlines()[1:]]
    assert names == ["'=1+1", "'+1", "'-1", "'@sum(a)", "'\tx", "a=1", ""]
    assert csv(frame).count(",-1.5") == 7


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "±–".encode()), ("latin-1", b"\xb1?"), ("utf-8", "±–".encode())]
)
def test_a_terminal_of_few_letters_gets_what_it_can_show(encoding: str, shown: bytes) -> None:
    code = "from vcpulab.cli.streams import printing_plainly\nwith printing_plainly(): print('±–')"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=HANG_S, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert shown in done.stdout


@pytest.mark.parametrize(
    ("closed", "status", "said"), [("1>&-", 1, "error: stdout is closed\n  hint: > /dev/null\n"), ("2>&-", 0, "")]
)
def test_a_closed_stream_is_no_traceback(closed: str, status: int, said: str) -> None:
    code = "import sys; from vcpulab.cli.main import main; sys.exit(main(['--version']))"
    line = f"exec '{sys.executable}' -c \"{code}\" {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, done.stderr) == (status, said)
