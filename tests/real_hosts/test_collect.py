"""`vcpulab collect`: its script under several shells, what it keeps and leaves out, SSH, and reading of archives."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from support import write_program
from vcpulab import Scenario, Twin
from vcpulab.cli import collect
from vcpulab.cli.main import main
from vcpulab.errors import RecordingError
from vcpulab.formats import archive

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "python" / "vcpulab" / collect.SCRIPT
SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
XL_LIST = """\
Name                                        ID   Mem VCPUs\tState\tTime(s)
Domain-0                                     0  4096     2     r-----     100.0
web                                          1  1024     2     -b----      20.0
"""
XENTOP_HEADING = (
    "      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS NETTX(k) NETRX(k) VBDS "
    "  VBD_OO   VBD_RD   VBD_WR  VBD_RSECT  VBD_WSECT SSID"
)
XENTOP_REST = (
    " 1048576    3.1    1048576       3.1     2    0        0        0    0        0        0        0  0  0    0"
)
XENTOP = "".join(
    f"{XENTOP_HEADING}\n  Domain-0 -----r        100    {dom0} {XENTOP_REST}\n       web --b--- {seconds} {web} "
    f"{XENTOP_REST}\n"
    for dom0, web, seconds in ((0.0, 0.0, 20), (4.0, 40.0, 22))
)
XL_INFO = """\
host                   : xen1
release                : 6.1.0
nr_cpus                : 2
nr_nodes               : 1
cores_per_socket       : 2
threads_per_core       : 1
xen_major              : 4
xen_minor              : 17
xen_extra              : .0
xen_scheduler          : credit2
"""


def run(
    shell: list[str], folder: Path, *options: str, stubs: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    return subprocess.run(
        [*shell, str(SCRIPT), *options],
        cwd=folder,
        env={"PATH": path if stubs is None else f"{stubs}:{path}", "TMPDIR": str(folder), **environment},
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )


def files_of(path: Path) -> dict[str, str]:
    """The files of an archive, by name."""
    with tarfile.open(path) as opened:
        members = [member for member in opened if member.isfile()]
        return {Path(member.name).name: opened.extractfile(member).read().decode() for member in members}  # type: ignore[union-attr]


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(
        ["shellcheck", "--shell=sh", str(SCRIPT)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_gathers_the_same_files(shell: str, tmp_path: Path) -> None:
    if shutil.which(SHELLS[shell][0]) is None:
        pytest.skip(f"needs {shell}")
    done = run(SHELLS[shell], tmp_path, "--seconds", "1", "--out", "host.tar.gz")
    assert done.returncode == 0, done.stderr
    files = files_of(tmp_path / "host.tar.gz")
    assert {"collected.txt", "kernel.txt", "lscpu.txt", "use-groups.txt"} <= set(files)
    # Nothing but the archive is left behind.
    assert [path.name for path in tmp_path.iterdir()] == ["host.tar.gz"]


def test_every_command_is_named_before_it_runs_and_in_the_archive(tmp_path: Path) -> None:
    done = run(["sh"], tmp_path, "--seconds", "1", "--out", "host.tar.gz")
    shown = [line.strip() for line in done.stderr.splitlines() if line.startswith("  ") and "hint" not in line]
    kept = [
        line.split(": ", 2)[2]
        for line in files_of(tmp_path / "host.tar.gz")["collected.txt"].splitlines()[1:]
        if ": exit " in line
    ]
    assert shown == kept
    assert "uname -a" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seconds", "0"], "--seconds 0: allowed: 1 to 600"),
        (["--seconds", "601"], "--seconds 601: allowed: 1 to 600"),
        (["--trace", "1; id"], "--trace 1; id: allowed: 1 to 600"),
        (["--trace"], "--trace: a value is missing"),
        (["--quick"], "--quick: not known"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(options: list[str], message: str, tmp_path: Path) -> None:
    done = run(["sh"], tmp_path, *options)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"collect.sh: {message}")
    assert list(tmp_path.iterdir()) == []


def test_command_lines_are_kept_of_vms_alone_and_without_secrets(tmp_path: Path) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    heading = "    PID     TID CLS RTPRIO  NI CGROUP COMMAND     COMMAND"
    rows = [
        "    100     100  TS      -   0 /      nginx       nginx --token=abc",
        "    200     201  TS      -   0 /      CPU 0/KVM   qemu-system-x86_64 -object a,data=hidden -name guest=web",
    ]
    write_program(stubs / "ps", "cat <<'END'\n" + "\n".join([heading, *rows]) + "\nEND")
    done = run(["sh"], tmp_path, "--seconds", "1", "--out", "host.tar.gz", stubs=stubs)
    assert done.returncode == 0, done.stderr
    listed = files_of(tmp_path / "host.tar.gz")["ps.txt"]
    assert "token" not in listed
    assert "hidden" not in listed
    assert "nginx" in listed
    assert "guest=web" in listed


def test_the_archive_of_a_xen_host_becomes_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    for name, text in (("list", XL_LIST), ("info", XL_INFO), ("xentop", XENTOP)):
        stubs.joinpath(f"{name}.txt").write_text(text)
    write_program(
        stubs / "xl",
        f'case "$1 $#" in "list 1") cat {stubs}/list.txt;; info*) cat {stubs}/info.txt;; *) echo no >&2; exit 1;; esac',
    )
    write_program(stubs / "xentop", f"cat {stubs}/xentop.txt")
    done = run(["sh"], tmp_path, "--seconds", "1", "--out", "host.tar.gz", stubs=stubs)
    assert done.returncode == 0, done.stderr
    assert main(["import", str(tmp_path / "host.tar.gz"), "--out", str(tmp_path / "host.toml")]) == 0
    notes = capsys.readouterr().err
    assert "xl-vcpu-list.txt: on the host `xl vcpu-list` failed (exit 1): no" in notes
    scenario = Scenario.load(tmp_path / "host.toml")
    assert set(scenario.domains) == {"dom0", "web"}


def test_ssh_runs_the_script_there_and_fetches_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Like OpenSSH's client: the words of the command, joined, are for the shell of the host.
    write_program(tmp_path / "ssh", f'printf "%s\\n" "$@" >{tmp_path}/typed; shift 2; exec sh -c "$*"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin")
    monkeypatch.chdir(tmp_path)
    assert main(["collect", "--ssh", "root@kvm1", "--seconds", "1"]) == 0
    assert "hint: vcpulab import kvm1.tar.gz --out host.toml" in capsys.readouterr().err
    assert "kernel.txt" in files_of(tmp_path / "kvm1.tar.gz")
    assert (tmp_path / "typed").read_text().splitlines()[:2] == ["--", "root@kvm1"]
    assert main(["collect", "--ssh", "root@kvm1"]) == 2
    assert "kvm1.tar.gz: exists already" in capsys.readouterr().err


def test_a_host_that_cannot_be_reached_is_an_error_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_program(tmp_path / "ssh", "echo 'ssh: connect to host kvm9 port 22: No route to host' >&2; exit 255")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    assert main(["collect", "--ssh", "root@kvm9"]) == 2
    assert "ssh root@kvm9: ended with an error" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["ssh"]
    assert main(["collect", "--ssh", "-oProxyCommand=touch pwned"]) == 2
    assert not (tmp_path / "pwned").exists()


def test_the_script_takes_over_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "--seconds", "33", "--trace", "7"]) == 0
    text = capsys.readouterr().out
    assert "\nSECONDS_BETWEEN=33\n" in text
    assert "\nTRACE_SECONDS=7\n" in text


# ---- archives ----


def made_of(path: Path, files: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as opened:  # type: ignore[call-overload]
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("name", "mode"), [("a.tar", "w"), ("a.tgz", "w:gz"), ("a.tar.xz", "w:xz"), ("a.tar.bz2", "w:bz2")]
)
def test_files_are_unpacked_under_names_without_folders(name: str, mode: str, tmp_path: Path) -> None:
    path = made_of(
        tmp_path / name, {"h/a.txt": b"1", "/etc/passwd": b"2", "../../b.txt": b"3", "h/x/a.txt": b"4"}, mode
    )
    with archive.unpacked([path]) as unpacked:
        (folder,) = unpacked.paths
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
            "a.txt": b"1",
            "passwd": b"2",
            "b.txt": b"3",
            "x-a.txt": b"4",
        }
    assert not folder.exists()


def test_links_are_named_and_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as opened:
        link = tarfile.TarInfo("h/shadow")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
        opened.addfile(link)
    with archive.unpacked([path]) as unpacked:
        assert list(unpacked.paths[0].iterdir()) == []
        assert unpacked.notes == (f"{path}: 'h/shadow': not used: a link or a device, and no file",)


def test_archives_that_hold_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "BYTES_MAX", 1000)
    monkeypatch.setattr(archive, "FILES_MAX", 3)
    with (
        pytest.raises(RecordingError, match="too much in it"),
        archive.unpacked([made_of(tmp_path / "b.tar.gz", {"a": bytes(2000)})]),
    ):
        pass
    many = made_of(tmp_path / "m.tar.gz", {str(number): b"" for number in range(4)})
    with pytest.raises(RecordingError, match="too many files"), archive.unpacked([many]):
        pass


@pytest.mark.parametrize("length", [0, 5, 40, 200])
def test_damaged_archives_are_errors(length: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_of(tmp_path / "a.tar.gz", {"h/trace.txt": bytes(range(256)) * 40})
    path.write_bytes(path.read_bytes()[:length])
    for command in (["import"], ["twin"], ["twin", "score"]):
        assert main([*command, str(path)]) == 2
        assert "a.tar.gz" in capsys.readouterr().err


def test_a_twin_of_an_archive_is_that_of_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "examples" / "kvm-host"
    path = made_of(
        tmp_path / "host.tar.gz",
        {f"h/{file.name}": file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()},
    )
    assert Twin(path).text.replace(path.name, folder.name) == Twin(folder).text
    assert main(["twin", str(path), "--out", str(tmp_path / "host.toml")]) == 0
    assert f"hint: vcpulab twin score {path}" in capsys.readouterr().err
