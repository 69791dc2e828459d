"""`import xl` and `twin` read parameters, CPU pools and affinities alike, and note what they leave out."""

from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import ROOT
from vcpulab.formats.kinds import read_all
from vcpulab.hosts.pcpu_map import flat
from vcpulab.imports.xen import scenario_of
from vcpulab.twin import gather
from vcpulab.twin.setting import Setting

TRACE = ROOT / "tests" / "recordings" / "xen4.17-credit-weights" / "trace.bin.xz"
INFO = "host : box\nnr_cpus : 4\nxen_major : 4\nxen_minor : 17\nxen_extra : .5\nxen_scheduler : {}\n"
WEB = "Name ID Weight Cap\nweb 3 512 0\n"
CREDIT = "Name ID Weight Cap\nDomain-0 0 256 0\nweb 3 512 0\n"
VCPUS = (
    "Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)\n"
    "Domain-0                             0     0    0   -b-     445.8  all / all\n"
    "web                                  3     0    2   -b-      52.6  {} / all\n"
)

POOLS = "Name CPU list\nPool-0 0-1\nsecond {}\n"
SECOND = f"Cpupool Pool-0: tslice=30ms\nName ID Weight Cap\nDomain-0 0 256 0\nCpupool second: ratelimit=1000us\n{WEB}"

Fields = tuple[dict[str, Any], dict[str, Any], list[str]]
"""The host, the domain `web`, and the notes."""


def files(folder: Path, scheduler: str, sched: str, more: tuple[str, ...]) -> list[Path]:
    # The release is in a later file than the parameters.
    paths = []
    for number, text in enumerate([sched, INFO.format(scheduler), *more]):
        paths.append(folder / f"{number}.txt")
        paths[-1].write_text(text)
    return paths


def imported(folder: Path, scheduler: str, sched: str, *more: str) -> Fields:
    made = scenario_of([read for path in files(folder, scheduler, sched, more) for read in read_all(path)[0]])
    document = vcpulab.Scenario.from_toml(made.text).to_dict()
    return document["host"] | {"pool": document.get("pool", {})}, document["domain"]["web"], list(made.notes)


def twin_fields(folder: Path, scheduler: str, sched: str, *more: str) -> Fields:
    sources = gather([TRACE, *files(folder, scheduler, sched, more)])
    assert sources.scheduler is not None
    setting = Setting(sources, sources.scheduler, flat(4), [])
    host, _ = setting.host()
    web = setting.domain(3, 2)
    return host | setting.around(), web, [*sources.notes, *setting.notes]


BOTH = pytest.mark.parametrize("fields_of", [imported, twin_fields])


@BOTH
def test_times_have_any_unit(fields_of: Any, tmp_path: Path) -> None:
    for printed in ("tslice=5ms ratelimit=2ms", "tslice=5000us ratelimit=2000us", "tslice=5 ratelimit=2000"):
        host, _, notes = fields_of(tmp_path, "credit", f"Cpupool Pool-0: {printed}\n{CREDIT}")
        assert (host["tslice_ms"], host["ratelimit_us"]) == (5, 2000), printed
        assert not [note for note in notes if "left out" in note]


@BOTH
def test_parameters_of_the_scheduler_that_are_left_out_are_noted(fields_of: Any, tmp_path: Path) -> None:
    sched = f"Cpupool Pool-0: tslice=1500us ratelimit=fast mystery=7us migration-delay=9us\n{CREDIT}"
    host, _, notes = fields_of(tmp_path, "credit", sched)
    assert host["migration_delay_us"] == 9
    assert host.get("tslice_ms", 30) == 30, "the default"
    for left in ("tslice `1500us`", "ratelimit `fast`"):
        assert any(f"pool Pool-0: {left} is left out: allowed: " in note for note in notes), left
    assert "pool Pool-0: mystery `7us` is left out: credit has no such parameter here" in notes


@BOTH
def test_the_release_decides_which_parameters_there_are(
    fields_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "INFO", INFO.replace("17", "4").replace(".5", ".1"))
    host, web, notes = fields_of(
        tmp_path, "credit2", "Cpupool Pool-0: ratelimit=1000us\nName ID Weight Cap\nweb 3 512 50\n"
    )
    assert host["generation"] == "xen4.4.1"
    assert "ratelimit_us" not in host
    assert (web["weight"], web.get("cap", 0)) == (512, 0)
    assert "pool Pool-0: ratelimit `1000us` is left out: credit2 has no such parameter here" in notes
    assert any("web: cap `50` is left out: its scheduler has no such parameter" in note for note in notes)


@BOTH
def test_a_table_without_its_pool_is_of_the_hosts_scheduler(fields_of: Any, tmp_path: Path) -> None:
    host, web, _ = fields_of(tmp_path, "credit2", CREDIT)
    assert (host["scheduler"], web["weight"]) == ("credit2", 512)


@BOTH
def test_values_that_a_domain_cannot_have_are_noted(fields_of: Any, tmp_path: Path) -> None:
    _, web, notes = fields_of(tmp_path, "credit", "Cpupool Pool-0: tslice=30ms\nName ID Weight Cap\nweb 3 99999 900\n")
    assert (web.get("weight", 256), web.get("cap", 0)) == (256, 0), "the defaults"
    assert any("web: weight `99999` is left out: allowed: " in note for note in notes)
    assert any("web: cap `900` is left out: it limits nothing with " in note for note in notes)


@BOTH
def test_of_unlike_reservations_of_rtds_the_least_counts(fields_of: Any, tmp_path: Path) -> None:
    rows = "web 3 0 20000 8000 yes\nweb 3 1 20000 2000 no\n"
    sched = f"Cpupool Pool-0: sched=RTDS\nName ID VCPU Period Budget Extratime\n{rows}"
    _, web, notes = fields_of(tmp_path, "rtds", sched)
    assert (web["period_us"], web["budget_us"], web["extratime"]) == (20000, 2000, 0)
    assert any("web: its vCPUs have unlike reservations" in note for note in notes)
    old = "Cpupool Pool-0: sched=RTDS\nName ID Period Budget\nweb 3 10000 4000\n"
    _, web, notes = fields_of(tmp_path, "rtds", old)
    assert web["extratime"] == 0
    assert any("no column Extratime" in note for note in notes)


@BOTH
def test_reservations_of_sedf_are_read_in_ms(fields_of: Any, tmp_path: Path) -> None:
    row = "web 3 50.0 20.0 0.0 0 0"
    sched = f"Cpupool Pool-0: sched=EDF\nName ID Period(ms) Slice(ms) Lat(ms) Extra Weight\n{row}\n"
    _, web, _ = fields_of(tmp_path, "sedf", sched)
    assert (web["period"], web["slice"], web["extratime"]) == (50_000_000, 20_000_000, 0)


@BOTH
def test_a_pool_whose_cpus_are_listed_has_its_scheduler_and_domains(fields_of: Any, tmp_path: Path) -> None:
    host, web, _ = fields_of(tmp_path, "credit", SECOND, POOLS.format("2-3"))
    assert (host["pool"]["second"]["pcpus"], host["pool"]["second"]["scheduler"]) == ("2-3", "credit2")
    assert (web["pool"], web["weight"]) == ("second", 512)


@BOTH
@pytest.mark.parametrize("cpus", ["7", "0-3"])
def test_a_pool_without_cpus_of_its_own_is_left_out(fields_of: Any, cpus: str, tmp_path: Path) -> None:
    host, web, notes = fields_of(tmp_path, "credit", SECOND, POOLS.format(cpus))
    assert not host.get("pool")
    assert web.get("pool", "Pool-0") == "Pool-0"
    reason = f"its CPUs `{cpus}` leave no pool: none is online, or all are in it; its domains are in Pool-0"
    assert f"pool second: {reason}" in notes


@BOTH
def test_pools_are_renamed_where_a_scenario_does_not_take_their_names(fields_of: Any, tmp_path: Path) -> None:
    sched, pools = SECOND.replace("second", "real time"), POOLS.replace("second", "real time ").format("2-3")
    host, web, _ = fields_of(tmp_path, "credit", sched, pools)
    assert (list(host["pool"]), web["pool"]) == (["real-time"], "real-time")


@BOTH
def test_pools_whose_names_become_equal_stay_apart(fields_of: Any, tmp_path: Path) -> None:
    sched = SECOND.replace("second", "real time") + "\n" + SECOND.replace("second", "real-time")
    header, first, second = POOLS.format("2").splitlines()
    further = [second.replace("second", "real time "), second.replace("second", "real-time").replace("2", "3")]
    pools = "\n".join([header, first, *further, ""])
    host, _, _ = fields_of(tmp_path, "credit", sched, pools)
    assert sorted(host["pool"]) == ["real-time", "real-time-2"]


@BOTH
def test_an_affinity_without_a_cpu_is_noted(fields_of: Any, tmp_path: Path) -> None:
    _, _, notes = fields_of(tmp_path, "credit", CREDIT, VCPUS.format("9"))
    assert "affinity of web: `9` names no CPU that is online here; left out" in notes


@BOTH
def test_cpus_that_are_not_online_are_noted(fields_of: Any, tmp_path: Path) -> None:
    _, web, notes = fields_of(tmp_path, "credit", CREDIT, VCPUS.format("2-5"))
    assert web["affinity"] in ("2-3", ["2-3", "all"])
    assert "affinity of web: CPUs 4-5 of `2-5` are not online here; left out" in notes


@BOTH
def test_vcpus_are_told_by_their_numbers_and_not_by_their_rows(fields_of: Any, tmp_path: Path) -> None:
    rows = VCPUS.format("2") + "web                                  3     1    3   -b-      52.6  3 / all\n"
    heading, dom0, first, second = rows.splitlines()
    _, web, _ = fields_of(tmp_path, "credit", CREDIT, "\n".join([heading, second, dom0, first, ""]))
    assert web["affinity"] == ["2", "3"]


LONG = """[{"domid": 3, "config": {"c_info": {"name": "web"}, "b_info": {"max_vcpus": 2,
"sched_params": {"sched": "credit2", "weight": 512, "cap": 0, "slice": 10, "latency": 0},
"vcpu_hard_affinity": "0-1", "nodemap": [1]}}}]"""


def test_parameters_of_the_long_list_that_are_not_read_are_noted(tmp_path: Path) -> None:
    _, web, notes = imported(tmp_path, "credit2", LONG)
    assert web["weight"] == 512
    omitted = {note.removeprefix("web: no field of a scenario says ") for note in notes}
    assert {
        "sched_params slice = 10; left out",
        'vcpu_hard_affinity = "0-1"; left out',
        "nodemap = [1]; left out",
    } <= omitted


CFG = "name = 'web'\nvcpus = 2\n{}\n"


def test_nodes_that_no_table_has_are_noted(tmp_path: Path) -> None:
    _, _, notes = imported(tmp_path, "credit2", CFG.format("cpus = 'node:1'"))
    note = "affinity of web: `node:1` is left out: the CPUs of nodes are listed by `xl info -n` only"
    assert note in notes


@pytest.mark.parametrize("devices", ["disk = ['phy:/a,xvda,w']", "vif = ['bridge=br0']"])
def test_devices_of_a_file_are_noted(devices: str, tmp_path: Path) -> None:
    _, _, notes = imported(tmp_path, "credit2", CFG.format(devices))
    assert any(note.startswith("web: no field of a scenario says what its disks and network") for note in notes)
    assert not any("disks" in note for note in imported(tmp_path, "credit2", CFG.format("vif = []"))[2])


XML = """<domain type='xen'{}><name>web</name><vcpu current='2'>4</vcpu>
<cputune><shares>512</shares><quota>50000</quota></cputune>
<numatune><memory mode='strict' nodeset='0'/></numatune></domain>
"""


def test_a_domain_that_is_off_is_not_dom0(tmp_path: Path) -> None:
    host, web, notes = imported(tmp_path, "credit2", XML.format(""))
    assert (web["vcpus"], web["weight"]) == (2, 512)
    assert not web.get("driver_domain")
    omitted = [note for note in notes if "no field of a scenario" in note]
    assert [note.split("says ")[1] for note in omitted] == [
        "vcpu_quota_us = 50000; left out",
        "memory on nodes 0; left out",
    ]
    assert host["pcpus"] == 4


def test_a_configuration_of_no_running_domain_is_left_out(tmp_path: Path) -> None:
    xml = XML.format("").replace("web", "old")
    _, web, notes = imported(tmp_path, "credit2", CREDIT, xml)
    assert web["weight"] == 512
    assert any("domain `old` is left out: it does not run" in note for note in notes)
