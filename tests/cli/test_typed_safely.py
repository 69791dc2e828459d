"""Printed commands, run by a shell: only they are run, and each word reaches its command as it is meant.

Commands that change a host are stubs, which record what they are called with; files are those of a folder that stands
in for the host's.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from vcpulab import Scenario
from vcpulab.errors import ScenarioError
from vcpulab.hypervisors import TOOLSTACKS, Toolstack, systemd
from vcpulab.hypervisors.commands import commands, new_steps
from vcpulab.hypervisors.proxmox import vmid
from vcpulab.hypervisors.steps import Step, script

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")

STUBS = (
    *("virsh", "virt-xml", "xl", "xe", "xm", "xenpm", "xen-hptool", "qm", "systemctl", "systemd-escape"),
    *("taskset", "chrt", "renice", "cpupower", "ps", "pgrep", "update-grub", "chcpu", "sysctl"),
)
TOOLS = ("cat", "sed", "awk", "seq", "grep", "cut", "mkdir", "rm", "chmod")
"""What scripts use besides, as it is."""
STUB = """\
#!/bin/sh
{ printf '%s\\037' "${0##*/}" "$@"; printf '\\036'; } >> "$RECORD"
case "${0##*/} $1" in
  'virsh domid' | 'xl domid') printf 7 ;;
  'qm list') for name in $VMS; do printf '%s\\n' "100 $name"; done ;;
  systemd-escape*) printf %s "$1" | sed 's/-/\\\\x2d/g' ;;
esac
"""
HOST_FILES = re.compile(r"/(?=(?:sys|etc|proc|run|opt|boot|usr/sbin)/)")
DOMID, VMID = 7, 100


@dataclass
class Sandbox:
    """A folder with what stands in for a host."""

    root: Path

    def __post_init__(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.bin.mkdir(parents=True)
        for name in STUBS:
            self.bin.joinpath(name).write_text(STUB)
            self.bin.joinpath(name).chmod(0o755)
        for name in TOOLS:
            found = shutil.which(name)
            assert found is not None, name
            self.bin.joinpath(name).symlink_to(found)
        for folder in ("modprobe.d", "sysctl.d", "tmpfiles.d", "default/grub.d", "xen", "systemd/system"):
            self.root.joinpath("etc", folder).mkdir(parents=True)
        for folder in ("kernel/debug/sched", "module/kvm/parameters"):
            self.root.joinpath("sys", folder).mkdir(parents=True)

    @property
    def bin(self) -> Path:
        return self.root / "bin"

    def make_group(self, path: str) -> None:
        group = self.root.joinpath("sys/fs/cgroup", path)
        group.mkdir(parents=True, exist_ok=True)
        for threads in ("tasks", "cgroup.threads", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuset.cpus"):
            group.joinpath(threads).write_text("4711")

    def written(self) -> dict[str, str]:
        """What is in the files of control groups."""
        groups = self.root / "sys/fs/cgroup"
        files = (path for path in groups.rglob("*") if path.is_file())
        return {str(path.relative_to(groups)): path.read_text().strip() for path in files}

    def run(self, steps: list[Step], vms: Iterable[str] = ()) -> list[list[str]]:
        """Runs a script of steps; what stubs were called with."""
        text = HOST_FILES.sub(f"{self.root}/", "\n".join(script(steps)))
        record = self.root / "record"
        record.touch()
        variables = {"PATH": str(self.bin), "RECORD": str(record), "VMS": " ".join(vms), "HOME": str(self.root)}
        done = subprocess.run(
            ["/bin/sh", "-e"], input=text, text=True, capture_output=True, cwd=self.root, env=variables, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), f"{text}\n{done.stderr}"
        return [one.split("\037")[:-1] for one in record.read_text().split("\036")[:-1]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host")


HOSTILE = (
    *("$(touch${IFS}x)", "`touch${IFS}x`", ";touch${IFS}x;", "|touch${IFS}x", "&touch${IFS}x&", ">x", "'", '"'),
    *("\\", "*", "$d", "${PATH}", "~", "#", "-p", "a.slice", "!", "{a,b}"),
)
pieces = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text("abz09_.-", max_size=4)), min_size=1, max_size=3)
part = pieces.map("".join).filter(lambda text: text not in ("", ".", ".."))
hostile_path = st.lists(part, min_size=1, max_size=3).map("/".join)
plain_path = st.sampled_from(["machine.slice", "machine.slice/machine-gold.slice", "machine.slice/gold.slice", "vms"])
name = st.from_regex(r"\A[A-Za-z0-9_.][A-Za-z0-9_.-]{0,11}\Z").filter(lambda text: text not in ("host", "dom0"))


@st.composite
def kvm_hosts(draw: st.DrawFn) -> Scenario:
    """Hosts with control groups and VMs of hostile names, all of whose settings are given."""
    groups = draw(st.lists(st.one_of(hostile_path, plain_path), min_size=1, max_size=3, unique=True))
    names = draw(st.lists(name, min_size=1, max_size=4, unique_by=str.lower))
    tables = [
        f"[cgroup.{_key(path)}]\nweight = {draw(st.integers(2, 10_000))}\nquota_us = 12345\nperiod_us = 20000\n"
        f'burst_us = 5\ncpus = "0-1"\n'
        for path in groups
    ]
    tables += [
        f"[domain.{_key(one)}]\nvcpus = 2\nweight = 7\ncgroup = {_key(draw(st.sampled_from(groups)))}\n"
        f'global_quota_us = 50000\nglobal_burst_us = 2000\nvcpu_quota_us = 30000\naffinity = "1"\n'
        'emulator_affinity = "0"\nnice = 3\napp = [{ kind = "hog" }]\n'
        for one in names
    ]
    version = draw(st.sampled_from([1, 2]))
    host = (
        f'[host]\nhypervisor = "kvm"\nprofile = "exact"\npcpus = 4\nscheduler = "linux-eevdf"\n'
        f"{'cgroups = 1' if version == 1 else ''}\n"
        "halt_poll_us = 50\nbase_slice_us = 3000\n"
    )
    return Scenario.from_toml(host + "".join(tables))


def _key(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _accepted(host: st.SearchStrategy[Scenario]) -> st.SearchStrategy[Scenario | None]:
    @st.composite
    def one(draw: st.DrawFn) -> Scenario | None:
        try:
            return draw(host)
        except ScenarioError:
            return None

    return one()


def scopes(document: dict[str, object], toolstack: Toolstack) -> Iterator[str]:
    """The paths of the groups that VMs have to themselves, as this host names them."""
    for vm, table in document["domain"].items():  # type: ignore[attr-defined]
        if toolstack == "proxmox":
            yield f"qemu.slice/{vmid(vm) or VMID}.scope"
            continue
        kept = re.sub(r"([-.])[-.]+", r"\1", re.sub(r"[^A-Za-z0-9.-]", "", vm)).strip("-.")
        machine = f"qemu-{DOMID}-{kept}".rstrip("-.").replace("-", r"\x2d")
        yield f"{table['cgroup'].strip('/')}/machine-{machine}.scope"


@settings(
    max_examples=25, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(host=_accepted(kvm_hosts()), toolstack=st.sampled_from(TOOLSTACKS["kvm"]))
def test_groups_and_names_are_words_of_a_kvm_host(host: Scenario | None, toolstack: Toolstack, folder: Path) -> None:
    assume(host is not None)
    assert host is not None
    document = host.to_dict()
    version = document["host"].get("cgroups", 2)
    roots = ["cpu/", "cpuset/"] if version == 1 else [""]
    inner = "libvirt/" if version == 2 else ""
    sandbox = Sandbox(folder / "kvm")
    own = list(scopes(document, toolstack))
    parts = [f"{inner}{one}" for one in ("vcpu0", "vcpu1", "emulator")]
    groups = set(document["cgroup"]) | set(own)
    made = groups | {f"{path}/{part}" for path in own for part in parts} | {"qemu.slice", "machine.slice"}
    for root in roots:
        for path in made:
            sandbox.make_group(root + path)
    pids = sandbox.root / "run/qemu-server"
    pids.mkdir(parents=True)
    for vm in document["domain"]:
        pids.joinpath(f"{vmid(vm) or VMID}.pid").write_text("4711")
    steps = commands(host, toolstack)
    ran = sandbox.run([step for step in steps if step.how != "boot"], document["domain"])
    assert {one[0] for one in ran} <= set(STUBS)
    assert not list(folder.rglob("x")), "nothing of a name is run"
    written = sandbox.written()
    assert {path.rpartition("/")[0] for path in written} <= {root + path for root in roots for path in made}
    units = [words[words.index("set-property") + 1 :] for words in ran if words[0] == "systemctl"]
    named_units = {next(word for word in words if not word.startswith("--")) for words in units}
    assert named_units <= {path.rpartition("/")[2] for path in chain(groups, ["qemu.slice"]) if systemd.is_unit(path)}
    for path, table in document["cgroup"].items():
        if not systemd.is_unit(path):
            file, weight = (
                ("cpu/{}/cpu.shares", (table["weight"] * 1024 + 50) // 100)
                if version == 1
                else (
                    "{}/cpu.weight",
                    table["weight"],
                )
            )
            assert written[file.format(path)] == str(weight) or table["weight"] == 100
    named = {words[2] for words in ran if words[0] == "virsh" and words[1] in ("schedinfo", "vcpupin", "emulatorpin")}
    assert named == (set(document["domain"]) if toolstack == "libvirt" else set())


@st.composite
def xen_hosts(draw: st.DrawFn) -> Scenario:
    names = draw(st.lists(name, min_size=1, max_size=4, unique_by=str.lower))
    tables = [f'[domain."{one}"]\nvcpus = 2\nweight = 512\ncap = 50\naffinity = "1"\n' for one in names]
    pool = draw(st.one_of(st.none(), name))
    pools = f'[pool."{pool}"]\npcpus = "3"\nscheduler = "credit2"\n' if pool else ""
    host = '[host]\nprofile = "exact"\npcpus = 4\nscheduler = "credit"\ntslice_ms = 5\n'
    return Scenario.from_toml(f"{host}{pools}{''.join(tables)}")


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(host=_accepted(xen_hosts()), toolstack=st.sampled_from(TOOLSTACKS["xen"]))
def test_names_are_words_of_a_xen_host(host: Scenario | None, toolstack: Toolstack, folder: Path) -> None:
    assume(host is not None)
    assert host is not None
    sandbox = Sandbox(folder / "xen")
    names = list(host.to_dict()["domain"])
    for domain in names:
        sandbox.root.joinpath("etc/xen", f"{domain}.cfg").write_text("# kept\n")
    tool = sandbox.root / "opt/xensource/libexec/xen-cmdline"
    tool.parent.mkdir(parents=True)
    shutil.copy(sandbox.bin / "xl", tool)
    sandbox.root.joinpath("etc/rc.d").mkdir()
    ran = sandbox.run(commands(host, toolstack))
    assert {one[0] for one in ran} <= {*STUBS, "xen-cmdline"}
    pinned = [words[2] for words in ran if words[:2] == ["xl", "vcpu-pin"]]
    assert pinned == (names if toolstack != "libvirt" else [])
    if toolstack == "xl":
        for domain in names:
            assert "cpu_weight = 512; cap = 50" in sandbox.root.joinpath("etc/xen", f"{domain}.cfg").read_text()


def test_loops_replace_no_name_that_a_shell_would_not() -> None:
    tables = "".join(
        f'[domain.vm{n}]\nweight = 7\ncgroup = "a$b/vm{n}"\napp = [{{ kind = "hog" }}]\n' for n in (1, 2, 3)
    )
    host = '[host]\nhypervisor = "kvm"\nprofile = "exact"\npcpus = 4\nscheduler = "linux-eevdf"\n'
    lines = [line for line in script(commands(Scenario.from_toml(host + tables), "cgroup")) if line.startswith("echo")]
    assert len(lines) == 3, "what is in single quotes is typed for each"
    assert [f"vm{n}/" in line for n, line in zip((1, 2, 3), lines, strict=True)] == [True] * 3


@pytest.mark.parametrize("wrong", ["-w", "--all", "-"])
def test_no_name_is_an_option(wrong: str) -> None:
    host = '[host]\nprofile = "exact"\npcpus = 2\nscheduler = "credit"\n'
    for table in (f'[domain."{wrong}"]\n', f'[domain.a]\n[pool."{wrong}"]\npcpus = "1"\nscheduler = "credit"\n'):
        with pytest.raises(ScenarioError, match="does not begin with `-`"):
            Scenario.from_toml(host + table)
    inside = Scenario.from_toml(host + '[domain.a-b]\nweight = 9\n[domain."_-"]\nweight = 8\n')
    back = new_steps(inside.change({"domain.a-b.weight": 5}), inside)
    assert next(step.text for step in back).endswith("-d a-b -w 9")
