"""Listings of Xen hosts as its tools print them: each value becomes that of the scenario, or a note names it."""

from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import Vcpulab
from vcpulab.errors import RecordingError, ScenarioError
from vcpulab.formats import read_all
from vcpulab.imports.xen import scenario_of

LIST = "Name                                        ID   Mem VCPUs\tState\tTime(s)"
XENTOP = (
    "      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS NETTX(k)\n"
    "  Domain-0 -----r      54312   {dom0}    4194304   12.5   no limit       n/a     4    0        0\n"
    "       web --b---        100   {web}    1048576    3.1    1049600       3.1     2    1      123\n"
)
USE = XENTOP.format(dom0=" 0.0", web=" 0.0") + XENTOP.format(dom0="12.4", web="46.0")


def host(folder: Path, *listings: str) -> tuple[dict[str, Any], str]:
    """The scenario of listings, and the notes on it."""
    reads = []
    for number, text in enumerate(listings):
        (folder / f"{number}.txt").write_text(text)
        reads += read_all(folder / f"{number}.txt")[0]
    made = scenario_of(reads)
    return vcpulab.Scenario.from_toml(made.text).to_dict(), "\n".join(made.notes)


def rows(*domains: str) -> str:
    return "\n".join([LIST, "Domain-0      0  4096     4     r-----   11234.5", *domains, ""])


@pytest.mark.parametrize(
    ("state", "note"),
    [
        ("---s--", "domain `a b` (ID 7) is left out: it has shut down"),
        ("---sc-", "domain `a b` (ID 7) is left out: it has crashed"),
        ("-----d", "domain `a b` (ID 7) is left out: it is dying"),
    ],
)
def test_a_domain_that_runs_no_more_is_left_out(state: str, note: str, tmp_path: Path) -> None:
    scenario, notes = host(tmp_path, rows(f"a b           7   499     1     {state}       1.0"))
    assert list(scenario["domain"]) == ["dom0"]
    assert note in notes


def test_a_paused_domain_is_there_and_named(tmp_path: Path) -> None:
    scenario, notes = host(tmp_path, rows("a             7   499     1     --p---       1.0"))
    assert "a" in scenario["domain"]
    assert "domain `a` (ID 7) is paused on the host; here it runs" in notes


def test_a_domain_of_xm_without_an_id_is_off(tmp_path: Path) -> None:
    scenario, notes = host(tmp_path, rows("win xp                499     1                  0.0"))
    assert list(scenario["domain"]) == ["dom0"]
    assert "domain `win xp` (ID -) is left out: it is off" in notes


def test_a_row_is_never_a_part_of_the_name_in_the_row_below(tmp_path: Path) -> None:
    text = rows("web           7   499     1     -b-     1.0", "db            8   499     1     -b----       1.0")
    with pytest.raises(RecordingError, match=r"txt:3: found `web "):
        host(tmp_path, text)


def test_nodes_of_any_node_are_read(tmp_path: Path) -> None:
    heading = f"{LIST}   UUID                            Reason-Code\tSecurity Label NODE Affinity"
    tail = "00000000-0000-0000-0000-000000000000        -                -"
    table = f"{heading}\nDomain-0  0  4096  4  r-----  65.9 {tail} any node\nweb  7  499  2  -b----  1.0 {tail} 0\n"
    assert host(tmp_path, table)[0]["domain"]["web"]["vcpus"] == 2


def test_id_0_is_dom0_whatever_its_name(tmp_path: Path) -> None:
    heading = "Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)\n"
    scenario, _ = host(tmp_path, f"{heading}(null)    0     0    0   r--      10.0  0 / all\n")
    assert scenario["domain"]["dom0"]["driver_domain"] is True


def test_a_list_and_its_vcpus_that_differ_are_named(tmp_path: Path) -> None:
    heading = "Name                                ID  VCPUs   CPU State   Time(s) CPU Affinity\n"
    vcpus = f"{heading}Domain-0  0     0     0   r--    1234.5 any cpu\nDomain-0  0     1     -   --p    0.0 any cpu\n"
    scenario, notes = host(tmp_path, rows(), vcpus)
    assert scenario["domain"]["dom0"]["vcpus"] == 1
    assert "Domain-0: `xl list` has 4 vCPUs online, and `xl vcpu-list` 1, which are taken" in notes


@pytest.mark.parametrize(
    "table",
    [
        "Cpupool Pool-0: sched=EDF\nName ID Period Slice Latency Extra Weight\n"
        "Domain-0   0    100    75       0     1      0\nvm   1    100    20       0     0      0\n"
        "best   2    100     0       0     1      0\n",
        "$ xm sched-sedf\nName ID Period(ms) Slice(ms) Lat(ms) Extra Weight\n"
        "Domain-0   0    100.0   75.0    0.0     1      0\nvm   1    100.0    20.0     0.0     0      0\n"
        "best   2    100.0     0.0     0.0     1      0\n",
    ],
)
def test_reservations_of_sedf_are_in_milliseconds(table: str, tmp_path: Path) -> None:
    scenario, _ = host(tmp_path, table)
    assert scenario["host"]["scheduler"] == "sedf"
    reservation = {"period": 100_000_000, "slice": 20_000_000, "extratime": 0}
    assert scenario["domain"]["vm"].items() >= reservation.items()
    assert "slice" not in scenario["domain"]["best"]


def test_xentop_alone_lists_domains_with_their_vcpus_and_use(tmp_path: Path) -> None:
    scenario, notes = host(tmp_path, USE)
    assert scenario["host"]["pcpus"] == 4
    assert scenario["domain"]["web"]["vcpus"] == 2
    assert scenario["domain"]["web"]["app"][0]["run"] == "2300us"
    assert "the domains are those of xentop" in notes


def test_use_above_what_there_is_and_use_of_others_are_named(tmp_path: Path) -> None:
    _, notes = host(tmp_path, USE.replace("12.4", "512.4"), rows())
    assert "dom0: xentop has 512.4 % of a pCPU, but its vCPUs 400, which is taken" in notes
    assert "the domains together used 5.124 pCPUs, and the host has 4" in notes
    assert "web: CPU use by xentop is left out: no listing has these domains" in notes


def test_pools_may_have_blanks_in_their_names(tmp_path: Path) -> None:
    pools = "Name               CPU list\nPool-0             0-3\nreal time          4-5\n"
    sched = "Cpupool real time: tslice=30ms ratelimit=0us\nName   ID Weight  Cap\nrt   1    512    0\n"
    scenario, _ = host(tmp_path, rows("rt             1   499     1     -b----       1.0"), pools, sched)
    assert scenario["pool"]["real-time"]["pcpus"] == "4-5"
    assert scenario["domain"]["rt"]["pool"] == "real-time"


def test_turbo_and_loads_of_one_instant_are_named(tmp_path: Path) -> None:
    clocks = "cpu id               : 0\ncurrent_governor     : performance\nturbo mode           : enabled\n"
    debug = "(XEN) Online Cpus: 0-3\n(XEN) \tDomain: 0 w 256 c 0 v 4\n(XEN)   1: [0.0] flags=2 cpu=0 load=13 (~5%)\n"
    _, notes = host(tmp_path, rows(), clocks, debug)
    assert "xenpm: turbo mode is enabled" in notes
    assert "credits and loads of vCPUs and run queues are left out" in notes


CREDIT = """\
Cpupool Pool-0: tslice=30ms ratelimit=1000us
Name                                ID Weight  Cap
Domain-0                             0    256    0
web                                  3    512   50
"""
WEB = "web           3   499     2     -b----       1.0"


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("commands without prompts", f"xl list\n{rows(WEB)}\nxl sched-credit\n{CREDIT}"),
        ("Markdown", f"My host:\n```\n# xl list\n{rows(WEB)}```\nand\n~~~text\n{CREDIT}~~~\nThanks.\n"),
        ("an arrow as prompt", f"root@xen1 ~ \u276f xl list\n{rows(WEB)}root@xen1 ~ \u276f xl sched-credit\n{CREDIT}"),
    ],
)
def test_pastes_are_what_their_commands_printed(title: str, text: str, tmp_path: Path) -> None:
    assert host(tmp_path, text)[0] == host(tmp_path, rows(WEB), CREDIT)[0], title


def test_a_pool_that_no_listing_has_and_vcpus_that_are_all_offline_are_named(tmp_path: Path) -> None:
    _, notes = host(tmp_path, 'name = "web"\nmemory = 1\nvcpus = 1\npool = "rt"\nvnuma = [["pnode=0"]]\n')
    assert "web: pool `rt` is left out: its CPUs are not listed" in notes
    assert "web: vnuma `[['pnode=0']]` is left out" in notes
    heading = "Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)\n"
    vcpus = f"{heading}Domain-0  0     0    0   r--   10.0  all / all\nweb       3     0    -   --p    0.0  all / all\n"
    scenario, notes = host(tmp_path, rows(WEB), vcpus)
    assert list(scenario["domain"]) == ["dom0"]
    assert "domain `web` is left out: none of its vCPUs is online" in notes


def test_a_reservation_in_a_domains_file_is_taken_under_rtds(tmp_path: Path) -> None:
    heading = "Cpupool Pool-0: sched=RTDS\nName   ID VCPU    Period    Budget  Extratime"
    rtds = f"{heading}\nDomain-0   0    0     10000      4000    yes\n"
    file = 'name = "web"\nmemory = 1\nvcpus = 1\nperiod = 20000\nbudget = 5000\nextratime = 0\n'
    domain = host(tmp_path, rtds, rows(WEB), file)[0]["domain"]["web"]
    assert domain.items() >= {"period_us": 20000, "budget_us": 5000, "extratime": 0}.items()


def test_hints_quote_paths(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "my list.txt").write_text(rows(WEB) + USE)
    made = command("import", "xl", "my list.txt", "--out", "a $(b).toml")
    assert "hint: vcpulab run 'a $(b).toml'" in made.stderr
    (tmp_path / "kvm list.txt").write_text(" Id   Name   State\n-----\n 1    web    running\n")
    assert "hint: vcpulab import kvm 'kvm list.txt'" in command("import", "xl", "kvm list.txt").stderr


def test_a_schedule_that_no_tool_lists_and_ids_that_changed_are_named(tmp_path: Path) -> None:
    info = "host : h\nnr_cpus : 4\nxen_version : 4.17.0\nxen_scheduler : arinc653\n"
    sched = "Name   ID Weight  Cap\nDomain-0   0    256    0\nweb   5    512    0\n"
    assert (
        "no listing has major_frame_ns, entries of arinc653, without which nothing runs"
        in host(tmp_path, info, rows())[1]
    )
    assert "`web` has the IDs 3 and 5: listings of different times?" in host(tmp_path, rows(WEB), sched)[1]


def test_a_value_of_the_host_that_is_refused_is_in_the_file_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"1\.txt: host\.tslice_ms: found `5000`"):
        host(tmp_path, rows(WEB), CREDIT.replace("30ms", "5000ms"))
