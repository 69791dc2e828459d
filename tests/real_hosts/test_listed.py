"""`vcpulab import xl`: a scenario of what xl and xentop print of a host."""

import re
from pathlib import Path

import pytest

import vcpulab
from support import ROOT, Vcpulab
from vcpulab.formats.kinds import Read
from vcpulab.formats.xentop import Usage, read_xentop
from vcpulab.formats.xl import Vcpu
from vcpulab.imports.xen import scenario_of

REAL = ROOT / "tests/recordings/xen4.17-credit-mixed"
INFO = ROOT / "tests/recordings/xl-info-credit.txt"
XENTOP = """\
      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS
  Domain-0 -----r        110    0.0    1228800   29.3   no limit       n/a     2    0
      mail --b---         10    0.0     196608    4.7     197632       4.7     1    0
 a-long-na --b---         10    0.0     196608    4.7     197632       4.7     4    0
      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS
  Domain-0 -----r        110    5.0    1228800   29.3   no limit       n/a     2    0
      mail --b---         10    0.0     196608    4.7     197632       4.7     1    0
a-long-nam --b---         12  250.5     196608    4.7     197632       4.7     4    0
""".replace(" a-long-na ", "a-long-nam ")
VCPUS = """\
Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)
Domain-0                             0     0    0   r--     110.2  0-1 / all
Domain-0                             0     1    1   -b-     110.2  0-1 / all
mail                                 1     0    5   -b-       7.8  all / all
a-long-name.of                       2     0    2   -b-       7.8  2 / all
a-long-name.of                       2     1    3   -b-       7.8  3 / all
a-long-name.of                       2     2    4   -b-       7.8  0-7 / all
a-long-name.of                       2     3    -   --p       7.8  all / all
"""
SCHED = """\
Cpupool Pool-0:
Name                                ID Weight  Cap
Domain-0                             0    512    0
mail                                 1    256   50
a-long-name.of                       2    256    0
"""


def listed(folder: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    return [f"{name}.txt" for name in texts]


def test_the_recorded_host(command: Vcpulab, tmp_path: Path) -> None:
    files = [str(REAL / name) for name in ("list0.txt", "vcpus.txt", "sched.txt")]
    made = command("import", "xl", *files, str(INFO), "--out", "host.toml")
    assert made.returncode == 0, made.stderr
    assert "nothing runs in the domains: no `xentop" in made.stderr
    scenario = vcpulab.Scenario.load(tmp_path / "host.toml").to_dict()
    assert (scenario["host"]["pcpus"], scenario["host"]["scheduler"], scenario["host"]["tslice_ms"]) == (
        1,
        "credit",
        30,
    )
    assert list(scenario["domain"]) == ["dom0", "hogA", "hogB", "ioA", "ioB", "ioC"]
    assert scenario["host"]["generation"] == "xen4.17.5", "as `xl info` says"
    assert scenario["domain"]["ioC"]["weight"] == 1024
    assert scenario["run"]["replications"] == 5, "results have intervals"
    assert command("check", "host.toml").returncode == 0
    again = command("import", "xl", *files, "--out", "host.toml")
    assert (again.returncode, "--force replaces it" in again.stderr) == (2, True)


def test_what_is_used_becomes_work_and_what_is_pinned_stays(command: Vcpulab, tmp_path: Path) -> None:
    info = INFO.read_text().replace("nr_cpus                : 1", "nr_cpus                : 8")
    info = info.replace("cores_per_socket       : 1", "cores_per_socket       : 8")
    info = re.sub(r"(xen_scheduler\s*: )credit\n", r"\1credit2\n", info)
    made = command("import", "xl", *listed(tmp_path, top=XENTOP, vcpus=VCPUS, sched=SCHED, info=info))
    assert made.returncode == 0, made.stderr
    assert made.stderr == ""
    assert "# assumed: 250.5 % of a pCPU, as xentop measured" in made.stdout
    scenario = vcpulab.Scenario.from_toml(made.stdout)
    document = scenario.to_dict()
    assert (document["host"]["pcpus"], document["host"]["scheduler"]) == (8, "credit2")
    domains = document["domain"]
    assert (domains["dom0"]["affinity"], domains["mail"]["affinity"]) == ("0-1", "all")
    assert domains["a-long-name.of"]["affinity"] == ["2", "3", "all"], "the fourth vCPU is off line"
    assert (domains["mail"]["cap"], domains["mail"].get("app", [])) == (50, [])
    run = vcpulab.run(scenario.change({"run.duration": "2s"}))
    assert run["dom0.gotten"].mean == pytest.approx(5, abs=0.5)
    assert run['"a-long-name.of".gotten'].mean == pytest.approx(250.5, rel=0.05)


def test_what_is_missing_is_assumed_and_said(command: Vcpulab, tmp_path: Path) -> None:
    made = command("import", "xl", *listed(tmp_path, vcpus=VCPUS))
    assert "pcpus = 8: no `xl info` says how many" in made.stderr
    assert "scheduler = credit2: no listing says which" in made.stderr
    nobody = command("import", "xl", str(INFO))
    assert (nobody.returncode, nobody.stdout) == (2, "")
    assert "no file says which domains there are" in nobody.stderr
    trace = command("import", "xl", str(REAL / "trace.bin.xz"))
    assert "trace.bin.xz: found xentrace; allowed: xl-list, " in trace.stderr


def test_xentop_is_read_or_refused(command: Vcpulab, tmp_path: Path) -> None:
    (name,) = listed(tmp_path, top=XENTOP)
    rows = read_xentop(tmp_path / name)
    assert [(row.update, row.name, row.cpu_percent) for row in rows[-2:]] == [
        (1, "mail", 0.0),
        (1, "a-long-nam", 250.5),
    ]
    assert "a-long-nam" in command("import", name).stdout
    (tmp_path / name).write_text(XENTOP + "mail what\n")
    with pytest.raises(vcpulab.RecordingError, match=r"top.txt:9: found `mail what`; allowed: name, state"):
        read_xentop(tmp_path / name)


def test_numbered_domains_that_are_alike_are_one_table() -> None:
    rows = [("vm1", 50.0), ("vm2", 52.0), ("db1", 10.0), ("db2", 90.0), ("x1", 0.0), ("x3", 0.0)]
    usage = [Usage(update, name, "r", 9, cpu) for update in (0, 1) for name, cpu in rows]
    vcpus = [Vcpu(name, number, 0, 0, "r", 9.0, "all", "all") for number, (name, _) in enumerate(rows, 1)]
    path = Path("listed.txt")
    made = scenario_of([Read(path, "xl-vcpu-list", vcpus), Read(path, "xentop", usage)])
    assert vcpulab.Scenario.from_toml(made.text).copies() == {"domain": {"vm": ["vm1", "vm2"]}}
    assert 'run = "5100us"' in made.text
    assert "vm1, vm2: 50 to 52 % of a pCPU; all get the mean" in made.notes
