"""What `make real-xen` does before it boots anything: tables to files, and files to what Linux unpacks."""

from pathlib import Path

import pytest

from archive import archive
from command import ExperimentError
from record import HERE, is_recorded, read_experiments


def read(folder: Path, table: str) -> None:
    file = folder / "experiments.toml"
    file.write_text(table)
    read_experiments(file)


def test_every_experiment_is_sound() -> None:
    for name, experiment in read_experiments(HERE / "experiments.toml").items():
        assert {f"experiment/{guest['name']}.cfg" for guest in experiment.guests} < experiment.files().keys(), name


def test_parameters_become_commands_of_xl() -> None:
    files = read_experiments(HERE / "experiments.toml")["credit-caps"].files()
    plan = files["experiment/plan.sh"][1].decode()
    assert "xl sched-credit -d hogB -w 256 -c 40" in plan
    assert "xl sched-credit -s -t 10 -r 500" in plan
    assert "wk=100000 sl=5000" in files["experiment/slp.cfg"][1].decode()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("[a]\nguests = []", "scheduler `` is not one of: credit, credit2"),
        ('[a]\nscheduler = "credit"', "[a]: no guests"),
        ('[a]\nscheduler = "credit"\nguests = [{ name = "x; reboot" }]', "a name of letters and digits"),
        (
            '[a]\nscheduler = "credit"\nguests = [{ name = "x", weigth = 1 }]',
            "guest `x`: `weigth` is not one of: name, weight",
        ),
        (
            '[a]\nscheduler = "credit"\nguests = [{ name = "x", cap = "1; reboot" }]',
            "cap `1; reboot` is not a whole number",
        ),
        ('[a]\nscheduler = "credit"\nguests = [{ name = "x", ask = "host" }]', "ask `host` is not an IPv4 address"),
        (
            '[a]\nscheduler = "credit2"\nguests = [{ name = "x" }]\nparameters = { tslice_ms = 5 }',
            "`tslice_ms` is not one of",
        ),
        ('[a]\nscheduler = "credit"\nspeed = 1', "speed"),
        ("[a", "experiments.toml: "),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, table: str, says: str) -> None:
    with pytest.raises(ExperimentError) as error:
        read(tmp_path, table)
    assert says in str(error.value)


def test_a_recording_of_another_table_is_not_this_ones(tmp_path: Path) -> None:
    experiments = read_experiments(HERE / "experiments.toml")
    assert not is_recorded(experiments["credit-caps"], tmp_path / "nothing")
    for path, (_, contents) in experiments["credit-caps"].files().items():
        (tmp_path / Path(path).name).write_bytes(contents)
    assert is_recorded(experiments["credit-caps"], tmp_path)
    assert not is_recorded(experiments["credit2-caps"], tmp_path)


def test_an_archive_holds_folders_before_their_files() -> None:
    archived = archive({"a/b/c": (0o100644, b"text")})
    names: list[str] = []
    at = 0
    while not names or names[-1] != "TRAILER!!!":
        assert archived[at : at + 6] == b"070701"
        size, name_size = (int(archived[at + field : at + field + 8], 16) for field in (54, 94))
        names.append(archived[at + 110 : at + 110 + name_size - 1].decode())
        at += 110 + name_size
        at += -at % 4
        at += size
        at += -at % 4
    assert names == ["a", "a/b", "a/b/c", "TRAILER!!!"]
    assert at == len(archived)
