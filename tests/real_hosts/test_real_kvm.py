"""What `make real-kvm` does around the machine: tables to what its host reads, and its trace to seconds."""

from dataclasses import replace
from pathlib import Path

import pytest

import kernels
from command import ExperimentError
from experiment import TUNABLES, Experiment, read_experiments
from kernels import KERNELS, prepare
from packages import EmulationError, Packages, extract, run
from record_kvm import HERE, in_seconds, is_recorded

HEAD = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 2/{}   #P:1\n#\n"
RAW = """\
     kworker/0:1-10      (     10) [000] d..2.   5956936314: sched_switch: prev_comm=a [0] b 12: next_pid=0
       CPU 0/KVM-86      (     83) [000] d.h3.  10000000001: sched_wakeup: comm=CPU 0/KVM pid=85
"""


def test_every_experiment_is_sound_for_every_kernel() -> None:
    experiments = read_experiments(HERE / "experiments.toml")
    for kernel in KERNELS:
        lines = [line.split()[0] for line in experiments["mixed-8cpus"].text(kernel).splitlines()]
        assert {"cg", "vm", "th", "set"} == set(lines)
        assert experiments["mixed"].text(kernel) in experiments["mixed-8cpus"].text(kernel)


def test_tunables_are_those_of_a_host_with_more_processors() -> None:
    def tunables(kernel: str, cpus: int) -> list[str]:
        lines = Experiment("a", "vm a\nth", cpus=cpus).text(kernel).splitlines()
        return [line.rpartition("/")[2] for line in lines if line.startswith("set ")]

    assert set(TUNABLES) == set(KERNELS)
    assert tunables("5.10", 8) == [
        "sched_latency_ns 24000000",
        "sched_min_granularity_ns 3000000",
        "sched_wakeup_granularity_ns 4000000",
    ]
    assert tunables("7.3", 8) == ["base_slice_ns 2800000"]
    assert tunables("6.1", 8) == ["latency_ns 24000000", "min_granularity_ns 3000000", "wakeup_granularity_ns 4000000"]
    assert [tunables("6.12", cpus) for cpus in (1, 3, 4, 64)] == [
        [],
        ["base_slice_ns 1400000"],
        ["base_slice_ns 2100000"],
        ["base_slice_ns 2800000"],
    ]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("", "no thread: a line `th` after a line `vm`"),
        ("th", "line 1: th: found ``; allowed: after a line `vm`"),
        ("vm a\ncpu", "line 2: first word: found `cpu`; allowed: cg, vm, th, set"),
        ("cg a; reboot\nvm a\nth", "line 1: cg: found `a;`; allowed: a new path"),
        ("cg ../a\nvm a\nth", "line 1: cg: found `../a`"),
        ("cg a\ncg a", "line 2: cg: found `a`; allowed: a new path"),
        ("cg a/b", "line 1: cg: found `a/b`; allowed: after a line `cg a`"),
        ("cg a wieght=1", "line 1: word: found `wieght=1`; allowed: weight"),
        ("cg a weight=0", "line 1: weight: found `0`; allowed: 1 to 10000"),
        ("cg a max=1000", "line 1: max period: found ``; allowed: 1000 to 1000000"),
        ("vm a b", "line 1: vm: found `b`; allowed: a group of a line `cg` before"),
        ("vm a\nvm a", "line 2: vm: found `a`; allowed: at most 64, each with a new name"),
        ("vm a\nth policy=fifo", "line 2: policy: found `fifo`; allowed: other, batch, idle"),
        ("vm a\nth wk=$(reboot)", "line 2: wk: found `$(reboot)`; allowed: 0 to"),
        ("cg a\nvm a a\nth cg=a", "line 3: cg: found `a`; allowed: a group with `threaded`"),
        ("vm a\n" + "th\n" * 65, "line 66: th: found ``; allowed: after a line `vm`, at most 64"),
        ("set /etc/passwd 0", "line 1: set: found `/etc/passwd 0`; allowed: a file of /sys/kernel/debug/sched"),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, lines: str, says: str) -> None:
    file = tmp_path / "experiments.toml"
    file.write_text(f"[a]\nexperiment = '''\n{lines}\n'''")
    with pytest.raises(ExperimentError) as error:
        read_experiments(file)
    assert says in str(error.value)


@pytest.mark.parametrize("field", ["seconds = 0", "cpus = 'all'", "speed = 1"])
def test_fields_that_cannot_be_are_said(tmp_path: Path, field: str) -> None:
    file = tmp_path / "experiments.toml"
    file.write_text(f"[a]\nexperiment = '''\nvm a\nth'''\n{field}")
    with pytest.raises(ExperimentError, match=field.partition(" ")[0]):
        read_experiments(file)


def test_readings_of_the_counter_become_seconds() -> None:
    trace = in_seconds(HEAD.format(2) + RAW)
    assert trace == HEAD.format(2) + RAW.replace("5956936314", "5.956936314").replace("10000000001", "10.000000001")


def test_a_trace_that_lost_events_is_refused() -> None:
    with pytest.raises(EmulationError, match="not whole: entries-in-buffer/entries-written: 2/3"):
        in_seconds(HEAD.format(3) + RAW)


def test_a_recording_of_another_table_is_not_this_ones(tmp_path: Path) -> None:
    experiment, kernel = read_experiments(HERE / "experiments.toml")["hogs"], KERNELS["6.1"]
    assert not is_recorded(experiment, kernel, 1, tmp_path)
    (tmp_path / "trace.txt").touch()
    (tmp_path / "experiment.txt").write_text(experiment.text("6.1"))
    (tmp_path / "cmdline.txt").write_text("console=ttyS0 quiet rdinit=/init cryptomgr.notests=1 seconds=4 seed=1\n")
    assert is_recorded(experiment, kernel, 1, tmp_path)
    assert not is_recorded(experiment, kernel, 2, tmp_path)
    assert not is_recorded(replace(experiment, seconds=5), kernel, 1, tmp_path)
    assert not is_recorded(replace(experiment, experiment="vm a\nth\n"), kernel, 1, tmp_path)


def test_a_kernel_that_apt_does_not_have_is_left_out_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offered = {"linux-image-cloud-amd64": "  Candidate: 6.12.43-1\n", "linux-image-6.12-cloud-amd64": ""}
    monkeypatch.setattr(kernels, "run", lambda command, **_: offered.get(command[-1], ""))
    monkeypatch.setattr(Packages, "unpack", lambda _: None)
    with pytest.raises(EmulationError) as error:
        prepare(tmp_path, [])
    assert "apt offers `6.12.43-1` as `linux-image-cloud-amd64`; needed: 6.1.*\nhint: it is in Debian 12" in str(
        error.value
    )
    assert "kernel 6.12: apt offers nothing as" in str(error.value)

    offered["linux-image-cloud-amd64"] = "  Candidate: 6.1.192-2\n"
    packages, found = prepare(tmp_path, [])
    assert [kernel.name for kernel in found] == ["linux-6.1-cfs"]
    assert "linux-image-cloud-amd64" in packages.names
    assert "left out: kernel 6.12: apt offers nothing" in capsys.readouterr().out
    with pytest.raises(EmulationError, match=r"kernel 6\.12"):
        prepare(tmp_path, ["6.12"])


def test_the_newest_build_of_a_kernel_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = "linux-image-7.2.13+deb14-cloud-amd64"
    offered = {
        "linux-image-7.2.": f"linux-image-7.2.9+deb13-cloud-amd64\n{newest}\nlinux-image-7.2.12+deb13-cloud-amd64\n"
        f"{newest}-unsigned\nlinux-image-7.2.14+deb14-amd64\nlinux-image-7.2.14+deb14-rt-amd64\n",
        newest: "  Candidate: 7.2.13-1\n",
        "linux-image-5.10.": "linux-image-5.10.0-9-cloud-amd64\nlinux-image-5.10.0-32-cloud-amd64\n",
        "linux-image-5.10.0-32-cloud-amd64": "  Candidate: 5.10.223-1\n",
    }
    monkeypatch.setattr(kernels, "run", lambda command, **_: offered.get(command[-1], ""))
    monkeypatch.setattr(Packages, "unpack", lambda _: None)
    packages, to_record = prepare(tmp_path, ["7.2", "5.10"])
    assert [kernel.name for kernel in to_record] == ["linux-5.10-cfs", "linux-7.2-eevdf"]
    assert packages.names[-2:] == ("linux-image-5.10.0-32-cloud-amd64", newest)
    with pytest.raises(EmulationError, match=r"kernel 7\.3: apt has no `linux-image-7\.3\.\*-cloud-amd64`"):
        prepare(tmp_path, ["7.3"])


def test_a_superseded_build_without_its_parts_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = "linux-image-7.1.13+deb13-cloud-amd64"

    def apt(command: list[str], **_: str) -> str:
        if "--simulate" in command:
            raise EmulationError("Depends: linux-modules-7.1.13+deb13-cloud-amd64 but it is not installable")
        return package if command[1] == "pkgnames" else "  Candidate: 7.1.13-1~bpo13+1\n"

    monkeypatch.setattr(kernels, "run", apt)
    with pytest.raises(EmulationError, match=r"kernel 7\.1: apt lacks packages that `linux-image-7\.1\.13"):
        prepare(tmp_path, ["7.1"])


@pytest.mark.parametrize(
    "image", ["boot/vmlinuz-7.2.13+deb14-cloud-amd64", "usr/lib/modules/7.2.13+deb14-cloud-amd64/vmlinuz"]
)
def test_a_kernel_is_in_boot_or_beside_its_modules(tmp_path: Path, image: str) -> None:
    packages = Packages(tmp_path, ())
    (packages.root / image).parent.mkdir(parents=True)
    (packages.root / image).touch()
    assert packages.boot_image("7.2") == packages.root / image


def test_what_is_not_installed_is_named_with_how_to_get_it() -> None:
    with pytest.raises(EmulationError, match="there is no program `no-such-compiler` here\n\nhint: get it"):
        run(["no-such-compiler"], hint="get it")


def test_packages_of_old_and_new_releases_share_a_folder(tmp_path: Path) -> None:
    """Debian 11 has its kernel's modules in `/lib`, Debian 13 in `/usr/lib`."""
    packages = []
    for name, folder in (("old", "lib"), ("new", "usr/lib")):
        control = tmp_path / name / "DEBIAN/control"
        control.parent.mkdir(parents=True)
        fields = {"Package": name, "Version": "1", "Architecture": "all", "Maintainer": "nobody", "Description": name}
        control.write_text("".join(f"{field}: {value}\n" for field, value in fields.items()))
        module = tmp_path / name / folder / "modules" / name
        module.parent.mkdir(parents=True)
        module.write_text(name)
        packages.append(tmp_path / f"{name}.deb")
        run(["dpkg-deb", "--build", "--root-owner-group", str(tmp_path / name), str(packages[-1])])
    root = tmp_path / "root"
    extract(packages, root)
    assert {path.name: path.read_text() for path in (root / "lib/modules").iterdir()} == {"old": "old", "new": "new"}
    assert (root / "lib").resolve() == root / "usr/lib"
