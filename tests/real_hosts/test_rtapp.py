"""Workloads of rt-app's: what becomes of them, and of files that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, Vcpulab
from vcpulab.errors import RecordingError
from vcpulab.formats import rtapp
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario

EXAMPLE = ROOT / "examples" / "rt-app.json"


def apps(text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = Scenario.from_toml(rtapp.read(text).text).to_dict()["domain"][rtapp.DOMAIN]["app"]
    return made


def events(task: str) -> list[dict[str, str]]:
    """The events of one task's only phase."""
    made: list[dict[str, str]] = apps(f'{{"tasks": {{"t": {{{task}}}}}}}')[0]["phase"][0]["event"]
    return made


def test_the_example_is_read_and_does_what_it_says() -> None:
    made = rtapp.read(EXAMPLE.read_text(), "rt-app.json")
    scenario = Scenario.from_toml(made.text)
    assert [note.path for note in made.notes] == [
        "tasks.tick.priority",
        "tasks.writer.iorun",
        "global.calibration",
        "global.default_policy",
    ]
    assert all(str(note) in made.text for note in made.notes)
    completed = run(scenario).df_apps()["completed"].to_list()
    # 1000 ticks; a round of the decoder for every four, and one of each writer.
    assert completed[0] in {999, 1000}
    assert all(248 <= rounds <= 250 for rounds in completed[1:]), completed


def test_events_keep_their_order_however_often_a_key_stands() -> None:
    assert events('"run": 10, "sleep": 20, "run": 30, "run2": 1000000, "runtime": 5, "sleep1": 0') == [
        {"run": "10us"},
        {"sleep": "20us"},
        {"run": "30us"},
        {"run": "1s"},
        {"runtime": "5us"},
    ]


def test_events_between_tasks() -> None:
    waits = '{"ref": "q", "mutex": "m"}'
    assert events(f'"lock": "m", "wait": {waits}, "unlock": "m", "sync": {waits}, "broad": "q", "signal": "q"') == [
        {"lock": "m"},
        {"wait": "q", "mutex": "m"},
        {"unlock": "m"},
        {"signal": "q"},
        {"wait": "q", "mutex": "m"},
        {"resume": "q"},
        {"signal": "q"},
    ]
    assert events('"suspend": "", "resume": "a b", "barrier": "a b", "lock": "a-b", "lock": "a b"') == [
        {"suspend": "t"},
        {"resume": "a-b"},
        {"barrier": "a-b"},
        {"lock": "a-b"},
        {"lock": "a-b-2"},
    ]


def test_loops_instances_and_delays() -> None:
    text = """{ "tasks": { "t": { "instance": 3, "loop": 2, "delay": 1500, "phases": {
        "a": { "loop": 10, "run": 1 }, "never": { "loop": 0, "run": 1 }, "b": { "run": 2 } } } } }"""
    [app] = apps(text)
    assert (app["instance"], app["loop"], app["start_delay"]) == (3, 2, "1500us")
    assert [(phase["loop"], phase["event"]) for phase in app["phase"]] == [
        (10, [{"run": "1us"}]),
        (1, [{"run": "2us"}]),
    ]


@pytest.mark.parametrize(
    ("task", "path", "done"),
    [
        ('"mem": 4096', "tasks.t.mem", "left out"),
        ('"fork": "u"', "tasks.t.fork", "left out"),
        ('"cpus": [1, 3]', "tasks.t.cpus", "left out"),
        ('"membind_nodes": [1]', "tasks.t.membind_nodes", "left out"),
        ('"dl-period": 9', "tasks.t.dl-period", "left out"),
        ('"juggle": 3', "tasks.t.juggle", "not understood: left out"),
        ('"timer": {"ref": "unique", "period": 9, "mode": "absolute"}', "tasks.t.timer.mode", "as `relative`"),
        ('"timer": {"ref": "a", "period": 9}, "timer": {"ref": "b", "period": 9}', "tasks.t", "it has one here"),
        ('"instance": 2, "timer": {"ref": "a", "period": 9}', 'timer "a"', "each has one of its own"),
    ],
)
def test_what_a_scenario_cannot_say_is_listed(task: str, path: str, done: str) -> None:
    made = rtapp.read(f'{{"tasks": {{"t": {{{task}, "run": 1}}}}}}')
    [note] = made.notes
    assert note.path == path
    assert done in note.done


def test_the_domain_has_a_vcpu_for_every_cpu_that_is_named() -> None:
    text = '{"tasks": {"t": {"run": 1, "cpus": [0, 2]}}}'
    assert "vcpus = 3" in rtapp.read(text).text
    assert "vcpus = 8" in rtapp.read(text, vcpus=8).text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "w:1:1: not JSON, even as rt-app takes it"),
        ('{\n  /* so\n far */ "tasks": }', "w:3:18: not JSON"),
        ('{"tasks": {"t": {"run": NaN}}}', "w: `NaN` is not JSON"),
        ("[1]", "w: found [1]; allowed: an object with `tasks`"),
        ("{}", "w: tasks: required, but not given"),
        ('{"tasks": {}}', "w: tasks: none of them does anything"),
        ('{"tasks": {"t": 3}}', "w: tasks.t: found 3; allowed: an object"),
        ('{"tasks": {"t": {"run": "long"}}}', 'w: tasks.t.run: found "long"; allowed: an integer from 0'),
        ('{"tasks": {"t": {"run": -1}}}', "w: tasks.t.run: found -1"),
        ('{"tasks": {"t": {"run": true}}}', "w: tasks.t.run: found true"),
        ('{"tasks": {"t": {"run": 1, "timer": {"ref": "u"}}}}', "w: tasks.t.timer.period: found null"),
        ('{"tasks": {"t": {"wait": "q"}}}', 'w: tasks.t.wait: found "q"; allowed: an object'),
        (
            '{"tasks": {"t": {"run": 1, "instance": 1000}}}',
            "w: tasks.t.instance: found 1000; allowed: an integer from 0",
        ),
        ('{"tasks": {"t": {"run": ' + "9" * 5000 + "}}}", "w: "),
        ("[" * 100_000, "w: objects within objects"),
        ('{"tasks": {"t": {"phases": {"p": {"run": 1}}, "x": ' + "[" * 900 + "]" * 900 + "}}}", None),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, message: str | None) -> None:
    if message is None:
        assert rtapp.read(text, "w").notes
        return
    with pytest.raises(RecordingError) as error:
        rtapp.read(text, "w")
    assert str(error.value).startswith(message)


def test_names_and_texts_do_no_harm() -> None:
    name = 'a"]\n[host]\n\x7f#' + "ü" * 100
    text = json.dumps({"tasks": {name: {"run": 1, "lock": name, "unlock": name, name: name}}})
    made = rtapp.read(text, name)
    assert Scenario.from_toml(made.text).to_dict()["host"]["scheduler"] == "credit2"


def test_the_command_writes_a_scenario_that_runs(command: Vcpulab, tmp_path: Path) -> None:
    made = command("import", "rt-app", str(EXAMPLE), "--out", "made.toml")
    assert (made.returncode, made.stdout) == (0, "")
    assert "tasks.writer.iorun: 4096: left out" in made.stderr
    assert command("run", "made.toml", "--replications", "1").returncode == 0
    assert command("import", "rt-app", str(EXAMPLE), "--out", "made.toml").returncode == 2
    shown = command("import", "rt-app", str(EXAMPLE))
    assert shown.stdout.splitlines()[1:] == (tmp_path / "made.toml").read_text().splitlines()[1:]


def test_the_command_says_what_is_wrong(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff")
    (tmp_path / "bad.json").write_text('{"tasks": {"t": {"run": "x"}}}')
    for arguments, message in [
        (["none.json"], "none.json: no such file or directory"),
        (["bytes.json"], "bytes.json:1: found `b'\\xff'`; allowed: UTF-8"),
        (["bad.json"], 'bad.json: tasks.t.run: found "x"'),
        (["bad.json", "--vcpus", "0"], "--vcpus: found `0`"),
    ]:
        result = command("import", "rt-app", *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert message in result.stderr
        assert "Traceback" not in result.stderr
