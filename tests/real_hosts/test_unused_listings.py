"""Imports name each file that they do not use, and name the listings where no scenario can be made of them."""

from pathlib import Path

import pytest

import vcpulab
from support import ROOT, Vcpulab
from vcpulab.formats import read
from vcpulab.imports import kvm
from vcpulab.imports.xen import scenario_of

SEEDS = ROOT / "fuzz/seeds/texts"
XML = (SEEDS / "virsh.xml").read_text()


def test_files_of_a_folder_that_are_not_used_are_notes(command: Vcpulab, tmp_path: Path) -> None:
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "list.txt").write_text((SEEDS / "list.txt").read_text())
    (folder / "machines.xml").write_text(XML)
    (folder / "shopping.txt").write_text("milk\n")
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    made = command("import", "xl", "host", "--out", "host.toml")
    assert made.returncode == 0, made.stderr
    for name, reason in (
        ("machines.xml", "found virsh-xml, of a KVM host"),
        ("shopping.txt", "not known by how it begins"),
        ("picture.png", "not known by how it begins"),
    ):
        assert f"warning: host/{name}: not used: {reason}" in made.stderr
        assert f"# * host/{name}: not used: {reason.split(',')[0]}" in (tmp_path / "host.toml").read_text()
    assert "list.txt" not in made.stderr
    (folder / "shopping.txt").write_text("CPU NODE SOCKET CORE\n  0    0      0    0\n")
    made = command("import", "xl", "host")
    reason = "`lscpu -e`: not read, but this is: lscpu -p > lscpu.txt"
    assert f"warning: host/shopping.txt: not used: {reason}\n" in made.stderr
    shown = command("import", "host")
    assert "warning: host/shopping.txt: not used" in shown.stderr


@pytest.mark.parametrize(("wrong", "right", "name"), [("kvm", "xl", "list.txt"), ("xl", "kvm", "virsh.xml")])
def test_listings_of_the_other_hypervisor_have_the_right_command(
    wrong: str, right: str, name: str, command: Vcpulab, tmp_path: Path
) -> None:
    folder = tmp_path / "the host"
    folder.mkdir()
    (folder / name).write_bytes((SEEDS / name).read_bytes())
    for path in ("the host", f"the host/{name}"):
        answer = command("import", wrong, path)
        assert answer.returncode == 2
        assert f"  hint: vcpulab import {right} '{path}'" in answer.stderr


def test_what_no_scenario_takes_is_in_a_listing(tmp_path: Path) -> None:
    """The scenario's text is seen by nobody: its lines say nothing."""
    path = tmp_path / "machines.xml"
    path.write_text(
        '<domain type="kvm" id="1"><name>a</name><vcpu>1</vcpu><cputune><quota>1</quota></cputune></domain>'
    )
    with pytest.raises(vcpulab.ScenarioError) as caught:
        kvm.scenario_of([read(path)])
    assert str(caught.value).startswith(f"{path}: domain.a.vcpu_quota_us: found `1`")
    assert caught.value.problems[0]["line"] is None


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "x\x7fy", "\U0001f600 shop", "--all", "$(reboot)", "\u202eexe", '"\\'])
def test_any_name_becomes_a_domain(name: str, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    row = "{:40} {:5d}  512     1     r-----     475.6\n"
    path.write_text(
        "Name                                        ID   Mem VCPUs\tState\tTime(s)\n" + row.format(name, 3)
    )
    (domain,) = vcpulab.Scenario.from_toml(scenario_of([read(path)]).text).to_dict()["domain"]
    assert not domain.startswith("-")
