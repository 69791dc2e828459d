"""What every command says fits a page: the answer first, and in a line what is left out and how to see it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import vcpulab
from forty import FORTY
from support import ROOT, Vcpulab
from vcpulab.cli import page
from vcpulab.cli.main import main
from vcpulab.cli.page import LINES_MAX
from vcpulab.show.document import Block, Document, Lines, Part
from vcpulab.show.table import Table

WIDTHS = (60, 80, 120)
AtWidths = Callable[..., tuple[int, dict[int, str]]]
SOON = ["--replications", "2"]
BATCH = [word for number in range(1, 13) for word in ("--domain", f"batch{number:02}")]
COMMANDS = {
    "run": (["run", "HOST", *SOON], "(?m)^Domains: 41"),
    "run with counters": (["run", "HOST", *SOON, "--io", "--counters", "esx"], "(?ms)^Domains: 41.*^I/O"),
    "explain": (["explain", "HOST", *SOON], "^http, service01 to service15.response_p99: "),
    "explain one": (
        ["explain", "HOST", *SOON, "--slo", "service07.response_p99 < 5ms"],
        "(?m)^service07.response_p99: ",
    ),
    "lint": (["lint", "HOST", *SOON], "^HOST: host.ratelimit_us: late-wake-ups"),
    "bounds": (["bounds", "HOST"], "^forty: bounds"),
    "bounds checked": (["bounds", "HOST", "--check", *SOON], "(?m)^beyond its bound: none of 103"),
    "whatif": (["whatif", "HOST", *SOON, "--set", "batch*.cap=20"], "^newly starved: batch01 to batch12"),
    "compare": (["compare", "HOST", "capped.toml", *SOON], "^newly starved: batch01 to batch12"),
    "tune": (["tune", "HOST", *SOON, "--trials", "4", "--minimise", "http.response_p99"], "^forty: "),
    "capacity": (
        ["capacity", "HOST", *SOON, "--vary", "http.rate", "--lowest", "200", "--highest", "400"],
        "(does|not) +keep|cannot be kept|cannot tell",
    ),
    "place": (["place", "HOST", *SOON, "--slo", "http.response_p99 < 1s"], "^40 domains on 1 host"),
    "manage": (
        ["manage", "HOST", "--replications", "1", "--interval", "20ms", *BATCH, "-s", "sedf", "-s", "credit"],
        "^Steadiness of the allocation",
    ),
}
"""A command on forty VMs, and how its answer begins."""

LEAVES_OUT = ("run", "run with counters", "explain", "bounds", "bounds checked", "whatif", "manage")
"""Commands whose answer on forty VMs is longer than a page."""


@pytest.fixture
def hosts(tmp_path: Path) -> None:
    (tmp_path / "forty.toml").write_text(FORTY)
    capped = vcpulab.Scenario.from_toml(FORTY).change({f"domain.batch{n:02}.cap": 20 for n in range(1, 13)})
    (tmp_path / "capped.toml").write_text(capped.text)
    # Nothing but what is different by name and number.
    names = capped.to_dict()["domain"]
    unlike = vcpulab.Scenario.from_toml(FORTY).change({f"domain.{n}.weight": 100 + i for i, n in enumerate(names)})
    (tmp_path / "unlike.toml").write_text(
        re.sub(r"(\d)(\d)\]", lambda of: f"{'abc'[int(of[1])]}{of[2]}th]", unlike.text)
    )


def lines_of_a_terminal(text: str, columns: int) -> int:
    """The lines that a terminal shows, which breaks those that are longer."""
    return sum(max(1, -(-len(line) // columns)) for line in text.splitlines())


@pytest.fixture
def at_widths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> AtWidths:
    """A command in this process: it works once, and shows its answer at each width; its status and the answers."""
    monkeypatch.chdir(tmp_path)
    show = page.show

    def run(*arguments: str) -> tuple[int, dict[int, str]]:
        answers = dict.fromkeys(WIDTHS, "")

        def show_at_widths(document: Document, **options: bool) -> None:
            parts, before = list(document), capsys.readouterr().out
            for columns in WIDTHS:
                monkeypatch.setenv("COLUMNS", str(columns))
                show(parts, **options)
                answers[columns] += before + capsys.readouterr().out

        monkeypatch.setattr(page, "show", show_at_widths)
        status = main(arguments)
        end = capsys.readouterr().out
        return status, {columns: answer + end for columns, answer in answers.items()}

    return run


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("name", COMMANDS)
def test_an_answer_on_forty_vms_fits_a_page(at_widths: AtWidths, name: str) -> None:
    arguments, answer = COMMANDS[name]
    status, answers = at_widths(*(word.replace("HOST", "forty.toml") for word in arguments))
    assert status in (0, 1)
    for columns, text in answers.items():
        assert lines_of_a_terminal(text, columns) <= LINES_MAX, columns
        beginning = " ".join(text.splitlines()[:5]) if "(?m" not in answer else text
        assert re.search(answer.replace("HOST", "forty.toml"), beginning), text
    assert name not in LEAVES_OUT or "--all" in " ".join(answers[60].split())


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("name", LEAVES_OUT)
def test_the_option_that_a_page_names_shows_what_it_leaves_out(command: Vcpulab, name: str) -> None:
    arguments = [word.replace("HOST", "forty.toml") for word in COMMANDS[name][0]]
    every = command(*arguments, "--all", COLUMNS="60").stdout
    assert "--all" not in every
    assert len(every.splitlines()) > LINES_MAX


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("name", ["run", "explain one", "bounds", "bounds checked", "whatif", "lint"])
def test_an_answer_on_vms_that_are_all_different_fits_a_page(command: Vcpulab, name: str) -> None:
    columns = 60
    arguments = [word.replace("HOST", "unlike.toml").replace("service07", "servicea7th") for word in COMMANDS[name][0]]
    result = command(*arguments, COLUMNS=str(columns))
    assert result.returncode in (0, 1), result.stderr
    assert 0 < lines_of_a_terminal(result.stdout, columns) <= LINES_MAX


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "web.toml", *SOON],
        ["bounds", "web.toml", "--check", *SOON],
        ["run", "web.toml", *SOON, "--io", "--counters", "esx"],
        ["manage", "web.toml", "--domain", "batch", "--interval", "500ms", "-s", "sedf", "-s", "credit"],
        ["sweep", "points.toml", "--show", "web.throughput,web.response_p99,batch.gotten"],
        ["study", "show", "cherkasova2007"],
        ["twin", "score", str(ROOT / "tests" / "recordings" / "xen4.17-credit-mixed"), *SOON],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_an_answer_on_a_small_host_fits_a_page(at_widths: AtWidths, tmp_path: Path, arguments: list[str]) -> None:
    short = vcpulab.Scenario.starter().change({"run.duration": "1s", "run.warmup": "0s"})
    (tmp_path / "web.toml").write_text(short.text)
    (tmp_path / "points.toml").write_text(POINTS)
    status, answers = at_widths(*arguments)
    assert status == 0
    for columns, text in answers.items():
        assert 0 < lines_of_a_terminal(text, columns) <= LINES_MAX, columns


POINTS = """\
replications = 1
scenario = "web.toml"
[[vary]]
path = "batch.cap"
values = [10, 20, 30, 40, 50, 60, 70, 80]
[[vary]]
path = "web.weight"
values = [64, 128, 256, 512, 1024, 2048]
"""


def told(capsys: pytest.CaptureFixture[str], *parts: Part, whole: bool = False) -> list[str]:
    page.show(parts, all=whole)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def numbered(what: str, count: int) -> list[list[Block]]:
    return [[Lines([f"{what} {number}"])] for number in range(count)]


def test_what_is_less_important_makes_room(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(
        capsys,
        Part.always(Lines(["answer"])),
        Part.items(numbered("detail", 30), "detail", rank=1),
        Part.items(numbered("station", 20), "station"),
    )
    assert lines == [
        "answer",
        *(f"detail {number}" for number in range(18)),
        *(f"station {number}" for number in range(20)),
        "12 more details: --all",
    ]


def test_everything_has_a_little_before_anything_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    few = told(
        capsys, Part.items(numbered("a", 50), "a", rounds=(0, 3)), Part.items(numbered("b", 50), "b", rounds=(1, 2))
    )
    assert few == [*(f"a {n}" for n in range(37)), "b 0", "b 1", "13 more as and 48 more bs: --all"]
    every = told(capsys, Part.items(numbered("a", 50), "a", rounds=(0, 3)), whole=True)
    assert every == [f"a {number}" for number in range(50)]


def test_what_fits_has_no_line_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, Part.items(numbered("item", LINES_MAX), "item", rounds=(0, 9))) == [
        f"item {n}" for n in range(40)
    ]


def test_the_lines_that_a_terminal_breaks_count(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    typed = [[Lines(["x" * 100], typed=True)] for _ in range(30)]
    assert told(capsys, Part.items(typed, "command")) == [*["x" * 100] * 19, "11 more commands: --all"]


def test_a_table_goes_without_columns_before_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    wide = Table("", ["thing", *(f"metric {column}" for column in range(9))], [[str(n)] * 10 for n in range(20)])
    lines = told(capsys, Part.rows(wide, "thing"))
    assert len(lines) <= LINES_MAX
    assert lines[-1] == "5 more columns: --all"
    assert sum(line.startswith(" 19 ") for line in lines) == 1
    longer = Table("", ["thing", "metric"], [[str(n)] * 2 for n in range(100)])
    assert told(capsys, Part.rows(longer, "row of things"))[-1] == "65 more rows of things: --all"
