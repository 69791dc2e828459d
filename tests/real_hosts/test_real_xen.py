"""What `make real-xen` does before it boots anything, and after: tables, plans, archives, goals, traces."""

import struct
from pathlib import Path

import pytest

import boot
from advise import GOALS, read_goals
from archive import archive
from command import ExperimentError
from experiments import Boot, Experiments, Setting, read_experiments
from keep import thinned
from record import HERE, folder, is_recorded, xen_options
from turns import lines

GUESTS = '[kinds.k]\nguests = [{ name = "x" }]\n'
SETTINGS = "[settings.credit]\ndefault = {}\n"
HEAD = "seconds = 1\nseeds = [1]\n"


@pytest.fixture(scope="module")
def experiments() -> Experiments:
    return read_experiments(HERE / "experiments.toml")


def setting(one: Boot, name: str) -> Setting:
    return next(each for each in one.settings if each.name == name)


def plan(one: Boot) -> str:
    return boot.files(one)["experiment/plan.sh"][1].decode()


def test_every_experiment_is_sound(experiments: Experiments) -> None:
    for name, boots in experiments.boots().items():
        for one in boots:
            assert one.settings, name
            assert {f"experiment/{guest}.cfg" for guest in one.kind.names} < boot.files(one).keys(), name


def test_the_matrix_has_kinds_settings_and_seeds_enough(experiments: Experiments) -> None:
    for kind in ("weights", "mixed", "requests"):
        boots = [experiments.boots()[f"{scheduler}-{kind}"] for scheduler in ("credit", "credit2")]
        assert sum(len(seeds[0].settings) for seeds in boots) >= 12
        assert {len(seeds) for seeds in boots} == {3}


@pytest.mark.parametrize(("kind", "pcpus"), [("asks", 1), ("tworequests", 2)])
@pytest.mark.parametrize("scheduler", ["credit", "credit2"])
def test_clients_ask_guests_that_are_started_before_them(
    experiments: Experiments, scheduler: str, kind: str, pcpus: int
) -> None:
    one = experiments.boots()[f"{scheduler}-{kind}"][0]
    guests = one.kind.guests
    addresses = [guest["address"] for guest in guests if "address" in guest]
    asked = [addresses.index(guest["ask"]) < addresses.index(guest["address"]) for guest in guests if "ask" in guest]
    assert asked
    assert all(asked)
    assert len(set(addresses)) == len(addresses)
    assert {"default", "weight", "dom0", "rate5000"} <= {each.name for each in one.settings}
    assert one.kind.pcpus == pcpus


def test_two_clients_ask_for_replies_of_different_lengths(experiments: Experiments) -> None:
    files = boot.files(experiments.boots()["credit-asks"][0])
    words = [
        set(files[f"experiment/{name}.cfg"][1].decode().replace('"', " ").split()) for name in ("clientA", "clientB")
    ]
    assert {"wk=20000", "sl=3000", "ask=10.0.0.1"} <= words[0]
    assert {"wk=5000", "sl=1500", "rep=4000", "ask=10.0.0.1"} <= words[1]
    assert not any(word.startswith("rep=") for word in words[0])


def test_settings_become_commands_of_xl(experiments: Experiments) -> None:
    one = experiments.boots()["credit-weights"][0]
    assert "\ncap) xl sched-credit -d hogA -w 256 -c 10" in plan(one)
    assert "xl sched-credit -s -t 1 -r 100" in plan(one)
    assert "xl vcpu-pin hogC all 1 all" in plan(experiments.boots()["credit-two"][0])


def test_a_setting_is_undone_by_the_next(experiments: Experiments) -> None:
    lines = plan(experiments.boots()["credit-weights"][0]).splitlines()
    weight = next(at for at, line in enumerate(lines) if line.startswith("weight)"))
    assert lines[weight] == "weight) xl sched-credit -d hogA -w 512 -c 0 ;;"
    assert "xl sched-credit -d hogA -w 256 -c 0" in lines[weight + 1]


def test_xen_loads_registers_at_each_switch_and_leaves_the_last_pcpu_alone(experiments: Experiments) -> None:
    options = {name: xen_options(experiments.boots()[name][0]).split() for name in ("credit-mixed", "credit2-two")}
    assert all("spec-ctrl=eager-fpu" in words for words in options.values())
    assert "maxcpus=2" in options["credit2-two"]
    assert not any(word.startswith("maxcpus") for word in options["credit-mixed"])


def test_what_guests_do_does_not_depend_on_settings(experiments: Experiments) -> None:
    boots = experiments.boots()
    files = [boot.files(boots[name][0]) for name in ("credit-mixed", "credit2-mixed")]
    for name in boots["credit-mixed"][0].kind.names:
        assert files[0][f"experiment/{name}.cfg"] == files[1][f"experiment/{name}.cfg"]
    assert b"wk=20000 sl=1000" in files[0]["experiment/ioA.cfg"][1]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("[a", "experiments.toml: "),
        ("seeds = [1]", "seconds: found `None`"),
        ("seconds = 1", "seeds: found `None`"),
        (HEAD + "speed = 1", "`speed` is not one of: seconds, seeds, kinds, settings"),
        (HEAD + SETTINGS, "kinds: none"),
        (HEAD + GUESTS, "settings: found `None`; allowed: a table"),
        (HEAD + GUESTS + "[settings.credit]", "settings: none"),
        (HEAD + SETTINGS + "[kinds.k]\nguests = []", "[kinds.k]: no guests"),
        (HEAD + GUESTS + "[settings.rtds]\na = {}", "`rtds` is not one of: credit, credit2"),
        (HEAD + SETTINGS + '[kinds.k]\nguests = [{ name = "x; reboot" }]', "a name of letters and digits"),
        (HEAD + SETTINGS + '[kinds.k]\nguests = [{ name = "x", wrok = 1 }]', "`wrok` is not one of: name, pool"),
        (HEAD + SETTINGS + '[kinds.k]\nguests = [{ name = "x", work = "1; reboot" }]', "work: found `1; reboot`"),
        (
            HEAD + SETTINGS + '[kinds.k]\nguests = [{ name = "x", address = "10.0.0.1", ask = "host" }]',
            "ask: found `host`; allowed: an IPv4 address",
        ),
        (HEAD + SETTINGS + '[kinds.k]\nguests = [{ name = "x", ask = "10.0.0.1" }]', "needs an `address`"),
        (HEAD + SETTINGS + '[kinds.k]\nguests = [{ name = "x" }, { name = "x" }]', "a name of its own"),
        (HEAD + SETTINGS + '[kinds.k]\nsettings = ["cap"]\nguests = [{ name = "x" }]', "`cap` is not one of: default"),
        (HEAD + SETTINGS + '[kinds.k]\npools = { a = [1] }\nguests = [{ name = "x" }]', "pool `a`: found `1`"),
        (HEAD + GUESTS + "[settings.credit]\na = { domains = { y = {} } }", "`y` is not one of: Domain-0, x"),
        (HEAD + GUESTS + "[settings.credit]\na = { domains = { x = { cap = -1 } } }", "domain `x`: cap: found `-1`"),
        (
            HEAD + GUESTS + '[settings.credit]\na = { domains = { x = { cpus = "1; reboot" } } }',
            "domain `x`: cpus: found `1; reboot`; allowed: all, 0, 0-1 or 0,2",
        ),
        (
            HEAD + GUESTS + "[settings.credit2]\na = { parameters = { tslice_ms = 5 } }",
            "[settings.credit2] a: parameters: `tslice_ms` is not one of: ratelimit_us",
        ),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, table: str, says: str) -> None:
    file = tmp_path / "experiments.toml"
    file.write_text(table)
    with pytest.raises(ExperimentError) as error:
        read_experiments(file)
    assert says in str(error.value)


def test_a_recording_of_another_table_is_not_this_ones(tmp_path: Path, experiments: Experiments) -> None:
    one, other = (experiments.boots()[name][0] for name in ("credit-weights", "credit2-weights"))
    assert not is_recorded(one, tmp_path, "4.17")
    for each in one.settings:
        to = folder(tmp_path, one, each, "4.17")
        to.mkdir()
        for path, (_, contents) in boot.files(one).items():
            (to / Path(path).name).write_bytes(contents)
        (to / "experiment.toml").write_text(boot.table(one, each, "4.17"))
    assert is_recorded(one, tmp_path, "4.17")
    assert not is_recorded(one, tmp_path, "4.20")
    assert not is_recorded(other, tmp_path, "4.17")
    cap = folder(tmp_path, one, setting(one, "cap"), "4.17") / "experiment.toml"
    cap.write_text(boot.table(one, setting(one, "weight"), "4.17"))
    assert not is_recorded(one, tmp_path, "4.17")


def test_goals_start_from_recordings_that_are_made(experiments: Experiments) -> None:
    _, goals = read_goals(GOALS, experiments)
    assert len(goals) >= 6
    for goal, one, base in goals:
        assert goal.recording == f"{one.name}-{base.name}"


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("trials = 1", "trials: found `1`"),
        ('trials = 9\n[goals.a]\nrecording = "x"', "[goals.a]: recording: `x` is not one of: credit-weights-default"),
        ('trials = 9\n[goals.a]\nrecording = "credit-weights-default"', "one of maximise and minimise"),
        (
            'trials = 9\n[goals.a]\nrecording = "credit-weights-default"\nmaximise = "ioA.gotten"',
            "found `ioA.gotten`; allowed: a domain (dom0, hogA, hogB, slp), points",
        ),
        ("trials = 9\n[goals.a]\nspeed = 1", "speed"),
    ],
)
def test_what_cannot_be_a_goal_is_said(tmp_path: Path, experiments: Experiments, table: str, says: str) -> None:
    file = tmp_path / "goals.toml"
    file.write_text(table)
    with pytest.raises(ExperimentError) as error:
        read_goals(file, experiments)
    assert says in str(error.value)


def event(number: int, *words: int, at_ns: int = 5) -> bytes:
    return struct.pack(f"<I Q {len(words)}I", 1 << 31 | len(words) << 28 | number, at_ns, *words)


def window(*events: bytes, pcpu: int = 0) -> bytes:
    return struct.pack("<III", 2 << 28 | 0x1F003, pcpu, sum(map(len, events))) + b"".join(events)


def test_a_kept_trace_is_without_what_nothing_reads() -> None:
    runs, own, wake, switch = event(0x21011, 1, 2), event(0x22009, 3), event(0x28004, 1), event(0x2800F, 1, 2, 3, 4)
    assert thinned(window(runs, own, switch) + window(own)) == window(runs, switch) + window()
    assert thinned(window(runs, wake, switch)) == window(runs, switch)


def test_a_kept_trace_begins_and_ends_when_it_did() -> None:
    runs, wake = event(0x21011, 1, 2), event(0x28004, 1)
    assert thinned(window(wake, runs, wake)) == window(wake, runs, wake)


def test_turns_are_what_straight_code_takes_longer(tmp_path: Path) -> None:
    def switches(every: int, stands_ns: int) -> list[bytes]:
        begins = (1_000_000 * n for n in range(400))
        ends = ((begin, begin + 500 + (stands_ns if n % every == 0 else 0)) for n, begin in enumerate(begins))
        return [event(number, at_ns=at) for pair in ends for number, at in zip((0x2800F, 0x21021), pair, strict=True)]

    (tmp_path / "trace.bin").write_bytes(window(*switches(10, 10_000)) + window(*switches(1000, 0), pcpu=1))
    assert list(lines(tmp_path)) == [
        "pCPU 0: stands 67 % of the time, 10.0 µs after each 5.0 µs (seen 40 times, at most 10.0 µs; 10 µs 100 %)",
        "pCPU 1: never stands",
    ]


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
