"""`import xl` and `twin` read the parameters that `xl sched-…` prints alike, and note what they leave out."""

from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import ROOT
from vcpulab.formats.kinds import read_all
from vcpulab.twin import gather
from vcpulab.twin.hosts import Setting
from vcpulab.twin.pcpu_map import flat
from vcpulab.twin.xen_import import scenario_of

TRACE = ROOT / "tests" / "recordings" / "xen4.17-credit-weights" / "trace.bin.xz"
INFO = "host : box\nnr_cpus : 4\nxen_major : 4\nxen_minor : 17\nxen_extra : .5\nxen_scheduler : {}\n"
CREDIT = "Name ID Weight Cap\nDomain-0 0 256 0\nweb 3 512 0\n"

Fields = tuple[dict[str, Any], dict[str, Any], list[str]]
"""The host, the domain `web`, and the notes."""


def imported(folder: Path, scheduler: str, sched: str) -> Fields:
    (folder / "info.txt").write_text(INFO.format(scheduler))
    (folder / "sched.txt").write_text(sched)
    made = scenario_of([read for name in ("info.txt", "sched.txt") for read in read_all(folder / name)[0]])
    document = vcpulab.Scenario.from_toml(made.text).to_dict()
    return document["host"], document["domain"]["web"], list(made.notes)


def twin_fields(folder: Path, scheduler: str, sched: str) -> Fields:
    # The twin reads the parameters first, and the release from a later file.
    (folder / "sched.txt").write_text(sched)
    (folder / "zinfo.txt").write_text(INFO.format(scheduler))
    sources = gather([TRACE, folder / "sched.txt", folder / "zinfo.txt"])
    assert sources.scheduler is not None
    setting = Setting(sources, sources.scheduler, flat(4), [])
    host, _ = setting.host()
    return host, setting.domain(3, 2), [*sources.notes, *setting.notes]


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
