"""What people paste of Xen hosts: prompts, quotes, wrapped lines, several commands, older tools, other layouts."""

from pathlib import Path
from typing import Any

import pytest

import vcpulab
from support import Vcpulab
from vcpulab.formats import RecordingError, read, read_all
from vcpulab.formats.kinds import Read
from vcpulab.formats.xl_cfg import read_cfg
from vcpulab.imports.result import Made
from vcpulab.imports.xen import scenario_of

INFO = """\
host                   : box
release                : 6.1.0
machine                : x86_64
nr_cpus                : 4
max_cpu_id             : 3
nr_nodes               : 1
cores_per_socket       : 2
threads_per_core       : 2
hw_caps                : bfebfbff:77faf3ff:2c100800:00000121:0000000f:239c6fbf:00000000:00000100
xen_major              : 4
xen_minor              : 17
xen_extra              : .5
xen_version            : 4.17.5
xen_scheduler          : credit2
xen_commandline        : placeholder dom0_max_vcpus=2 dom0_mem=4096M,max:4096M com1=115200,8n1 console=com1
"""
LIST = """\
Name                                        ID   Mem VCPUs\tState\tTime(s)
Domain-0                                     0  4096     2     r-----   11234.5
Windows Server (prod)                        3  8192     3     -b----     100.0
"""
VCPUS = """\
Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)
Domain-0                             0     0    0   -b-     445.8  0-1 / all
Domain-0                             0     1    1   -b-     420.0  0-1 / all
web                                  3     0    2   -b-      52.6  2-3 / all
web                                  3     1    -   --p      52.6  2-3 / all
"""


def paste(folder: Path, *texts: str) -> Made:
    """The import of files with these texts."""
    reads: list[Read] = []
    for number, text in enumerate(texts):
        path = folder / f"{number}.txt"
        path.write_text(text)
        reads += read_all(path)[0]
    return scenario_of(reads)


def test_tables_with_tabs_are_read(tmp_path: Path) -> None:
    rows = ["Name\tID\tVCPU\tCPU\tState\tTime(s)\tCPU Affinity", "Domain-0\t0\t0\t0\t-b-\t10.0\tany cpu"]
    listed = domains(paste(tmp_path, INFO, "\r\n".join([*rows, "web\t3\t0\t2\t-b-\t10.0\t2-3"])))
    assert listed["web"]["affinity"] == "2-3"
    assert listed["dom0"]["affinity"] == "all"


def domains(made: Made) -> dict[str, Any]:
    return dict(vcpulab.Scenario.from_toml(made.text).to_dict()["domain"])


# ---- one text, as people have it ----


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a prompt", f"[root@box ~]# xl info\n{INFO}[root@box ~]# sudo xl list\n{LIST}[root@box ~]# \n"),
        ("no prompt", f"{INFO}\n{LIST}"),
        ("no empty line", f"{LIST}{INFO}"),
        ("a user's prompt", f"$ xl list\n{LIST}\n% sudo /usr/sbin/xl info\n{INFO}"),
        ("a mailer", "".join(f"> {line}\n" for line in f"{INFO}\n{LIST}".splitlines())),
        ("two mailers", "".join(f"> > {line}\n" for line in f"{INFO}\n{LIST}".splitlines())),
        ("indented", "".join(f"    {line}\n" for line in f"{INFO}\n{LIST}".splitlines())),
        ("a mark of the order of bytes", f"\ufeff{LIST}{INFO}"),
        ("Windows", f"{LIST}{INFO}".replace("\n", "\r\n")),
        ("wrapped", f"{LIST}{INFO}".replace(": bfebfbff", ":\nbfebfbff").replace(" com1=", "\ncom1=")),
        ("a word above", f"Hello, this is my host:\n\n{INFO}\n{LIST}"),
    ],
)
def test_a_paste_is_what_its_commands_printed(name: str, text: str, tmp_path: Path) -> None:
    plain = paste(tmp_path, INFO, LIST)
    assert paste(tmp_path, text).text == plain.text, name
    assert list(domains(plain)) == ["dom0", "Windows-Server--prod-"]


def test_a_wrapped_table_is_whole(tmp_path: Path) -> None:
    wrapped = VCPUS.replace("Affinity (Hard", "Affinity\n(Hard").replace("52.6  2-3", "52.6\n2-3")
    assert paste(tmp_path, INFO, wrapped).text == paste(tmp_path, INFO, VCPUS).text


def test_the_part_of_a_paste_that_is_unknown_is_named(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "paste.txt").write_text(f"Hello,\nthis is my host:\n{INFO}{LIST}")
    made = command("import", "xl", "paste.txt")
    assert "warning: paste.txt: not used: line 1 to line 2: not known" in made.stderr
    (tmp_path / "list.txt").write_text(f"{LIST}Thanks, Bob\n")
    assert "list.txt:4: found `Thanks, Bob`" in command("import", "xl", "list.txt").stderr


def test_outputs_of_virsh_below_prompts_are_told_apart(tmp_path: Path) -> None:
    text = "".join(
        f"[root@h ~]# virsh schedinfo {name}\nScheduler      : posix\ncpu_shares     : {shares}\n\n"
        for name, shares in (("web", 2046), ("db", 100))
    )
    (tmp_path / "paste.txt").write_text(text)
    reads, unused = read_all(tmp_path / "paste.txt")
    assert [(machine.name, machine.shares_now) for one in reads for machine in one.holds] == [
        ("web", 2046),
        ("db", 100),
    ]
    assert not unused


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("uuid ( RO)             : 1\n       name-label ( RW): web\n", "xl info -n > info.txt; xl vcpu-list"),
        ("CPU\tcore\tsocket\tnode\nCPU0\t 0\t 0\t 0\n", "xl info -n > info.txt"),
    ],
)
def test_outputs_that_are_not_read_have_the_command_whose_output_is(text: str, command: str, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text(text)
    with pytest.raises(RecordingError, match=command):
        read(tmp_path / "other.txt")


# ---- older tools, and other options ----


def test_affinity_of_older_tools(tmp_path: Path) -> None:
    old = """\
Name                                ID  VCPU   CPU State   Time(s) CPU Affinity
Domain-0                             0     0   15   -b-      94.4  any cpu
router1                              1     0    3   -b-     475.6  3
router2                              2     0    4   r--     108.3  4-7
router2                              2     1    4   r--     108.3  all
"""
    made = domains(paste(tmp_path, old))
    assert (made["dom0"]["affinity"], made["router1"]["affinity"]) == ("all", "3")
    assert made["router2"]["affinity"] == ["4-7", "all"]


def test_xm_info_has_the_parts_of_the_version(tmp_path: Path) -> None:
    old = INFO.replace("xen_version            : 4.17.5\n", "")
    assert 'generation = "xen4.17.5"' in paste(tmp_path, old, LIST).text


def test_lists_with_uuids_and_labels(tmp_path: Path) -> None:
    (heading, dom0, *_) = LIST.splitlines()
    text = f"{heading}   UUID   Reason-Code\tSecurity Label\n{dom0} 00000000-0000-0000-0000-000000000000   -   -\n"
    assert paste(tmp_path, text, INFO).text == paste(tmp_path, f"{heading}\n{dom0}\n", INFO).text


def test_long_lists_are_read(tmp_path: Path) -> None:
    text = """[
    { "domid": 0, "config": { "c_info": { "name": "Domain-0" }, "b_info": { "max_vcpus": 4, "avail_vcpus": [0, 1] } } },
    { "domid": 3, "config": { "c_info": { "name": "web", "pool_name": "Pool-0" }, "b_info": { "max_vcpus": 4,
      "avail_vcpus": [0, 1], "vcpu_hard_affinity": [[4], [5]], "sched_params": { "weight": 1000, "cap": 0 } } } }
]"""
    made = domains(paste(tmp_path, text))
    assert (made["dom0"]["vcpus"], made["web"]["vcpus"], made["web"]["weight"]) == (2, 2, 1000)
    assert made["web"]["affinity"] == ["4", "5"]
    (tmp_path / "long.json").write_text('[\n{"domid": 0, "config": []}]')
    with pytest.raises(RecordingError, match=r"long.json: found .* allowed: a list of objects with `domid`"):
        read(tmp_path / "long.json")


def test_weights_without_the_line_of_a_pool(tmp_path: Path) -> None:
    text = "Name                                ID Weight  Cap\nDomain-0    0    512    0\nmail       3    256   50\n"
    made = paste(tmp_path, text, INFO)
    assert (domains(made)["dom0"]["weight"], domains(made)["mail"]["cap"]) == (512, 50)
    assert 'scheduler = "credit2"' in made.text
    assert 'scheduler = "credit"' in paste(tmp_path, f"# xl sched-credit -d mail\n{text}").text


def test_a_screen_of_xentop_is_read(tmp_path: Path) -> None:
    text = """\
xentop - 12:00:01   Xen 4.17.5
2 domains: 1 running, 1 blocked, 0 paused, 0 crashed, 0 dying, 0 shutdown
Mem: 8178956k total, 2290176k used, 5888780k free    CPUs: 4 @ 3000MHz
      NAME  STATE   CPU(sec) CPU(%)     MEM(k) MEM(%)  MAXMEM(k) MAXMEM(%) VCPUS NETS
  Domain-0 -----r        110    5.0    1228800   29.3   no limit       n/a     2    0
Net0 RX:  1bytes  2pkts  0err  0drop  TX:  3bytes  4pkts  0err  0drop
VCPUs(sec):   0:         60s  1:         50s
VBD BlkBack 51712 [ca: 0]  OO:        0   RD:      100   WR:       20  RSECT: 1  WSECT: 2
       web --b---         10   50.0     196608    4.7     197632       4.7     1    0
  Delay  Networks  vBds  Tmem  VCPUs  Repeat header  Sort order  Quit
"""
    made = paste(tmp_path, text, VCPUS, INFO)
    assert "# assumed: 50 % of a pCPU, as xentop measured" in made.text


def test_the_log_of_booting_and_the_dump_of_run_queues(tmp_path: Path) -> None:
    boot = """\
(XEN) Xen version 4.17.0 (root@) (gcc) debug=n 2023-12-12
(XEN) Command line: dom0_mem=4096M sched=null dom0_max_vcpus=2 dom0_vcpus_pin
(XEN) Using scheduler: null Scheduler (null)
(XEN) Brought up 4 CPUs
"""
    made = paste(tmp_path, boot, LIST)
    assert 'scheduler = "null"' in made.text
    assert domains(made)["dom0"]["affinity"] == ["0", "1"]
    beside = paste(tmp_path, boot, LIST, INFO)
    assert any("xen_scheduler `null` is left out: `xl info` has `credit2`" in note for note in beside.notes)
    queues = "(XEN) Online Cpus: 0-3\n(XEN) \tDomain: 0 w 256 c 0 v 4\n(XEN) \tDomain: 3 w 2000 c 50 v 2\n"
    web = domains(paste(tmp_path, queues, VCPUS))["web"]
    assert (web["weight"], web["cap"], web["vcpus"]) == (2000, 50, 1)


def test_frequencies_below_a_failure(tmp_path: Path) -> None:
    (tmp_path / "xenpm.txt").write_text("[CPU0] failed to get cpufreq parameter\ncpu id               : 1\n")
    reads, unused = read_all(tmp_path / "xenpm.txt")
    assert ([one.kind for one in reads], len(unused)) == (["xenpm"], 1)


# ---- reservations ----


RTDS = """\
Cpupool Pool-0: sched=RTDS
Name                                ID    Period    Budget  Extratime
Domain-0                             0     10000      4000        yes
vm1                                  1     20000      5000         no
"""


def test_budgets_without_extra_time_are_ceilings(tmp_path: Path) -> None:
    made = domains(paste(tmp_path, RTDS))
    assert (made["vm1"]["extratime"], made["dom0"].get("extratime", 1)) == (0, 1)
    old = paste(tmp_path, "\n".join(line[:60] for line in RTDS.splitlines()) + "\n")
    assert domains(old)["dom0"]["extratime"] == 0
    assert any("no column Extratime" in note for note in old.notes)


@pytest.mark.parametrize(("second", "budget", "unlike"), [(5000, 5000, False), (1000, 1000, True)])
def test_reservations_of_vcpus(second: int, budget: int, unlike: bool, tmp_path: Path) -> None:
    text = f"""\
Cpupool Pool-0: sched=RTDS
Name                                ID VCPU    Period    Budget  Extratime
rt                                   1    0     10000      5000         no
rt                                   1    1     10000      {second}         no
"""
    made = paste(tmp_path, text)
    assert (domains(made)["rt"]["budget_us"], domains(made)["rt"]["vcpus"]) == (budget, 2)
    assert any("unlike reservations (vCPU 0 period 10000 budget 5000" in note for note in made.notes) == unlike


# ---- domains' files ----


def test_numbers_in_quotes_are_numbers(tmp_path: Path) -> None:
    text = """name = 'db'
vcpus = '0x8'
cpu_weight = "01000"
cap = " 200 "
cpus = '2-3'
cpu_cap = 3
pool = "Pool-0"
"""
    made = paste(tmp_path, text, INFO.replace("dom0_max_vcpus=2", ""))
    db = domains(made)["db"]
    assert (db["vcpus"], db["weight"], db["cap"], db["affinity"]) == (8, 512, 200, "2-3")
    assert any("db: cpu_cap `3` is left out" in note for note in made.notes)
    wrong = paste(tmp_path, "name = 'db'\nvcpus = 'many'\n", INFO)
    assert any("0.txt: db: vcpus `many` is left out: no number" in note for note in wrong.notes)


def test_tables_in_settings_of_others_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "vm.cfg").write_text("name = 'a'\nkeys = [{'pf':'0','pkey':['0x1',]},]\nvcpus = 2\n")
    assert read_cfg(tmp_path / "vm.cfg") == {"name": "a", "keys": [["0", ["0x1"]]], "vcpus": 2}


# ---- CPUs ----


def arm(*rows: str) -> str:
    table = "cpu_topology           :\ncpu:    core    socket     node\n" + "".join(rows) if rows else ""
    lines = INFO.replace("x86_64", "aarch64").replace("cores_per_socket       : 2", "cores_per_socket       : 1")
    return lines.replace("threads_per_core       : 2\n", f"threads_per_core       : 1\n{table}")


@pytest.mark.parametrize("rows", [(), tuple(f"  {cpu}:       0        0        0\n" for cpu in range(4))])
def test_where_xen_knows_no_topology_each_cpu_is_a_core(rows: tuple[str, ...], tmp_path: Path) -> None:
    made = paste(tmp_path, arm(*rows), LIST)
    assert vcpulab.Scenario.from_toml(made.text).to_dict()["host"]["pcpus"] == 4
    assert "topology" not in made.text.partition("[host]")[2]


def test_numbers_that_cannot_be_translated_are_left_out(tmp_path: Path) -> None:
    info = INFO.replace("max_cpu_id             : 3", "max_cpu_id             : 7")
    made = paste(tmp_path, info, VCPUS.replace("2-3", "6-7"))
    assert domains(made)["web"]["affinity"] == domains(made)["dom0"]["affinity"] == "all"
    assert any("names CPU 6: which 4 of the CPUs 0 to 7 are online is not known" in note for note in made.notes)
    as_listed = paste(tmp_path, info, VCPUS)
    assert domains(as_listed)["web"]["affinity"] == "2-3"
    assert any("are taken for 0 to 3" in note for note in as_listed.notes)


def test_pools_say_how_many_pcpus_there_are(tmp_path: Path) -> None:
    pools = """\
Name               CPUs   Sched     Active   Domain count
Pool-node0          12    credit       y          1
Pool-node1          12    credit       y          2
Name               CPU list
Pool-node0         0,1,2,3,4,5,6,7,8,9,10,11
Pool-node1         12,13,14,15,16,17,18,19,20,21,22,23
"""
    domain_list = """\
Name                                        ID   Mem VCPUs\tState\tTime(s)         Cpupool
avm                                          1  8192    12     -b----     100.0       Pool-node1
Domain-0                                     0  4096    12     r-----    1234.5       Pool-node0
"""
    document = vcpulab.Scenario.from_toml(paste(tmp_path, pools, domain_list).text).to_dict()
    assert (document["host"]["pcpus"], document["pool"]["Pool-node1"]["pcpus"]) == (24, "12-23")
    without = paste(tmp_path, pools.partition("Name               CPU list")[0], domain_list)
    assert vcpulab.Scenario.from_toml(without.text).to_dict()["host"]["pcpus"] == 24
    alone = paste(tmp_path, domain_list)
    assert vcpulab.Scenario.from_toml(alone.text).to_dict()["host"]["pcpus"] == 12, "as many as Dom0 has vCPUs"


# ---- domains ----


def test_domains_with_the_same_name_or_number(tmp_path: Path) -> None:
    (heading, dom0, _) = LIST.splitlines()
    row = "{:40} {:5d}  512     {}     -b----     475.6\n"
    twins = paste(tmp_path, f"{heading}\n{dom0}\n{row.format('web', 3, 1)}{row.format('web', 4, 2)}")
    assert [domains(twins)[name]["vcpus"] for name in ("web-3", "web-4")] == [1, 2]
    assert any("2 domains are called `web`" in note for note in twins.notes)
    other = paste(tmp_path, f"{heading}\n{dom0}\n{row.format('shop', 3, 1)}", VCPUS)
    assert {"shop", "web"} < set(domains(other))
    assert any("ID 3 is `shop` in" in note for note in other.notes)


def test_a_cap_that_limits_nothing_is_left_out(tmp_path: Path) -> None:
    sched = "Cpupool Pool-0: ratelimit=1000us mystery=7us\nName ID Weight Cap\nweb 3 99999 150\n"
    made = paste(tmp_path, INFO, VCPUS, sched)
    assert any("2.txt: web: cap `150` is left out: it limits nothing with 1 vCPU online" in note for note in made.notes)
    assert any("web: weight `99999` is left out: allowed: 0 or an integer" in note for note in made.notes)
    assert any("mystery `7us` is left out" in note for note in made.notes)


def test_dying_domains_are_left_out(tmp_path: Path) -> None:
    dying = "(null)                                       9     0     1     --p--d       0.0\n"
    made = paste(tmp_path, INFO, LIST + dying)
    assert len(domains(made)) == 2
    assert any("domain `(null)` (ID 9) is left out" in note for note in made.notes)


XML = """\
<domain type='xen' id='3'>
  <name>work</name>
  <vcpu placement='static' cpuset='0-15'>2</vcpu>
  <cputune><vcpupin vcpu='0' cpuset='0-5'/></cputune>
</domain>
"""


def test_xml_of_xen_is_of_a_xen_host(command: Vcpulab, tmp_path: Path) -> None:
    assert domains(paste(tmp_path, XML))["work"]["affinity"] == ["0-5", "all"]
    (tmp_path / "work.xml").write_text(XML)
    refused = command("import", "kvm", "work.xml")
    assert (refused.returncode, "hint: vcpulab import xl work.xml" in refused.stderr) == (2, True)
