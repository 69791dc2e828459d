"""`vcpulab import xl` of hosts with threads, sockets and nodes: release, topology, boot options, pools, affinity."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vcpulab
from support import ROOT, Vcpulab
from vcpulab.errors import RecordingError, RequestError
from vcpulab.formats.kinds import Read, read
from vcpulab.formats.xenpm import Frequencies
from vcpulab.formats.xentop import Usage
from vcpulab.formats.xl import Domain, Pool, Vcpu
from vcpulab.formats.xl_info import Cpu, Info, Node, read_info
from vcpulab.formats.xl_sched import Sched
from vcpulab.hosts.pcpu_map import map_of
from vcpulab.hosts.xen_release import rules_of
from vcpulab.hypervisors.commands import commands
from vcpulab.imports.result import Made
from vcpulab.imports.xen import scenario_of
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.topology import Topology

HERE = Path("listed.txt")
DOM0 = Vcpu("Domain-0", 0, 0, 0, "-b-", 9.0, "all", "all")


def cpus(rows: Iterable[Sequence[int]]) -> list[Cpu]:
    """CPUs of (core, socket, node), numbered from 0."""
    return [Cpu(number, *row) for number, row in enumerate(rows)]


def epyc(threads: int = 2) -> list[Cpu]:
    """Two sockets of sixteen cores, a node each."""
    return cpus((p // threads % 16, p // (16 * threads), p // (16 * threads)) for p in range(32 * threads))


def host(listed: list[Cpu], line: str = "", *, version: str = "4.19.2", more: Iterable[Read] = ()) -> Made:
    said = {"host": "epyc1", "xen_version": version, "xen_scheduler": "credit2", "xen_commandline": line}
    return scenario_of([Read(HERE, "xl-info", Info(said, listed)), Read(HERE, "xl-vcpu-list", [DOM0]), *more])


def document(made: Made) -> dict[str, Any]:
    return vcpulab.Scenario.from_toml(made.text).to_dict()


TEXT = """\
host                   : epyc1
nr_cpus                : 4
max_cpu_id             : 255
cpu_topology           :
cpu:    core    socket     node
  0:       0        0        0
  1:       0        0        0
  2:       0        1        1
  3:       0        1        1
device topology        :
device           node
0000:00:00.0      0
numa_info              :
node:    memsize    memfree    distances
   0:    261632     90115      10,32
   1:    262144     90116      32,10
xen_version            : 4.22.0
xen_scheduler          : credit2
xen_commandline        : placeholder sched-gran=core
"""


def test_a_table_of_another_scheduler_than_the_hosts_is_a_note() -> None:
    def credit(pool: str) -> Made:
        rows: list[dict[str, int | str]] = [{"name": "Domain-0", "id": 0, "weight": 256, "cap": 0}]
        return host(epyc(), more=[Read(HERE, "xl-sched", [Sched(pool, "credit", {}, rows)])])

    note = (
        "pool Pool-0: listings name different schedulers (`credit`, `credit2`): listings of different times or hosts?"
    )
    for made in (credit(""), credit("Pool-0")):
        assert document(made)["host"]["scheduler"] == "credit"
        assert any(text.startswith(note) for text in made.notes)
    assert not any("different schedulers" in text for text in credit("fast").notes)
    assert not any("different schedulers" in text for text in host(epyc()).notes)


def test_the_tables_of_info_are_read(tmp_path: Path, command: Vcpulab) -> None:
    (tmp_path / "info.txt").write_text(TEXT)
    info = read_info(tmp_path / "info.txt")
    assert info.cpus == cpus([(0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 1)])
    assert info.nodes == [Node(0, 261632, 90115, [10, 32]), Node(1, 262144, 90116, [32, 10])]
    assert info.settings["xen_commandline"] == "placeholder sched-gran=core"
    shown = command("import", "info.txt").stdout
    assert ("4 threads on 2 cores, 2 sockets, 2 nodes" in shown, "[32, 10]" in shown, "epyc1" in shown) == (True,) * 3
    assert len(json.loads(command("import", "info.txt", "--format", "json").stdout)[0]["holds"]["cpu_topology"]) == 4
    listed = command("import", str(ROOT / "examples/two-sockets/xenpm.txt")).stdout
    assert re.search(r"(?m)^ 0-63 +performance +2994000 +1500000", listed), "alike ones in a row"
    (tmp_path / "info.txt").write_text(
        TEXT.replace("device topology        :\n", "").replace("device           node\n", "")
    )
    with pytest.raises(RecordingError, match=r"info.txt:10: found `0000:00:00.0 .*allowed: `CPU: CORE SOCKET NODE`"):
        read_info(tmp_path / "info.txt")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (
            TEXT.replace("  3:       0        1        1\n", ""),
            "found `3 CPUs in cpu_topology`; allowed: 4, as nr_cpus",
        ),
        (TEXT.replace("  3:       0", "  2:       0"), "found `cpu 2 twice`; allowed: each CPU once"),
        (TEXT.replace("  3:       0        1        1", "  3:       0"), "info.txt:9: found `  3:       0`; allowed"),
    ],
)
def test_a_listing_that_was_cut_is_refused(text: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "info.txt").write_text(text)
    with pytest.raises(RecordingError) as error:
        read(tmp_path / "info.txt", "xl-info")
    assert wrong in str(error.value)


# ---- which rules ----


@pytest.mark.parametrize(
    ("scheduler", "version", "named", "rules"),
    [
        ("credit2", "4.17.0", "xen4.17.0", "xen4.17.0"),
        ("credit2", "4.17.3", "xen4.17.3", "xen4.17"),
        ("credit2", "4.19.2", "xen4.19.2", "xen4.17"),
        ("credit2", "4.19.3", "xen4.19.3", "xen4.22"),
        ("credit2", "4.20.1", "xen4.20.1", "xen4.17"),
        ("credit2", "4.20.2", "xen4.20.2", "xen4.22"),
        ("credit2", "4.22.0", "xen4.22.0", "xen4.22"),
        ("credit", "4.17.7", "xen4.17.7", "xen4.17"),
        ("credit", "4.18.0", "xen4.18.0", "xen4.22"),
        ("rtds", "4.20.3", "xen4.20.3", "xen4.19"),
        ("rtds", "4.20.4", "xen4.20.4", "xen4.21"),
        ("arinc653", "4.19.2", "xen4.19.2", "xen4.18"),
        ("credit2", "4.19-unstable", "xen4.19.0", "xen4.17"),
        ("credit2", "4.20.0-rc3", "xen4.20.0", "xen4.17"),
        ("credit2", "4.20.2-pre", "xen4.20.1", "xen4.17"),
        ("credit2", "4.20.5-pre", "xen4.20.4", "xen4.22"),
        ("rtds", "4.20.4-rc1", "xen4.20.3", "xen4.19"),
        ("credit2", "4.13.5-9.40", "xen4.17.0", "xen4.17.0"),
        ("credit2", "4.4.4", "xen4.4.1", "xen4.4.1"),
        ("credit", "4.23.0", "xen4.22", "xen4.22"),
    ],
)
def test_rules_are_those_of_the_point_release(scheduler: str, version: str, named: str, rules: str) -> None:
    found = rules_of(scheduler, {"xen_version": version})
    assert found is not None
    generation = generation_of(scheduler, named)
    assert (found.generation, generation and generation.name) == (named, rules)
    major, _, rest = version.partition(".")
    minor = rest[:2].strip(".-")
    parts = {"xen_major": major, "xen_minor": minor, "xen_extra": rest[len(minor) :]}
    assert rules_of(scheduler, parts) == found


def test_what_precedes_a_point_release_is_taken_for_the_one_before() -> None:
    for scheduler, why in {
        "credit": "credit as in xen4.22, from 4.18 on; what precedes 4.20.5 is taken for 4.20.4",
        "credit2": "credit2 as in xen4.22, from 4.20.2 on; what precedes 4.20.5 is taken for 4.20.4",
    }.items():
        found = rules_of(scheduler, {"xen_version": "4.20.5-pre"})
        assert found is not None
        assert (found.explanation, found.exact) == (f"Xen 4.20.5-pre: {why}", False)


def test_the_file_says_whose_rules_and_why() -> None:
    made = host(epyc())
    assert "# Xen 4.19.2: credit2 as in xen4.17; from 4.19.3 on as in xen4.22\ngeneration" in made.text
    old = host(epyc(), version="4.13.5")
    assert "* Xen 4.13.5: nothing is known of its credit2; as in the nearest release, 4.17.0" in old.text
    assert document(old)["host"]["generation"] == "xen4.17.0"
    (vendors,) = [note for note in host(epyc(), version="4.17.5-14").notes if "4.17" in note]
    assert vendors.endswith("a vendor's build, whose own changes are not seen")


# ---- where the CPUs are ----


def test_a_server_of_two_sockets() -> None:
    made = host(epyc())
    assert "topology = { sockets = 2, cores = 16, threads = 2, nodes = 2 }" in made.text
    assert document(made)["host"]["pcpus"] == 64
    assert document(made)["name"] == "epyc1"


@settings(deadline=None)
@given(
    sockets=st.sampled_from([1, 2, 4]),
    cores=st.sampled_from([1, 2, 4, 6]),
    threads=st.sampled_from([1, 2, 4]),
    nodes=st.sampled_from([1, 2, 4, 8]),
    numbering=st.sampled_from(["adjacent", "spread"]),
)
def test_every_topology_comes_back(sockets: int, cores: int, threads: int, nodes: int, numbering: str) -> None:
    if not (sockets % nodes == 0 or (nodes % sockets == 0 and cores % (nodes // sockets) == 0)):
        return
    total, rows = sockets * cores, []
    topology = Topology(sockets, cores, threads, nodes, numbering == "adjacent")
    for p in range(topology.pcpus):
        socket, inside = divmod(topology.core(p), cores)
        # Hosts number cores with gaps, and sockets and nodes as they like.
        rows.append((3 * inside + 1, 7 - socket, 9 - topology.node(p)))
    notes: list[str] = []
    found = map_of(Info({}, cpus(rows)), notes)
    assert found is not None
    assert (notes, found.renumbered, len(found.nodes)) == ([], False, nodes)
    # Of one core, or of one thread each, the numberings are the same.
    adjacent = numbering == "adjacent" or total == 1 or threads == 1
    assert found.topology == Topology(sockets, cores, threads, nodes, adjacent)


def test_threads_that_are_off_line_are_no_pcpus() -> None:
    gone = [one for one in epyc() if one.cpu % 2 == 0]
    pinned = Vcpu("db", 1, 0, 4, "-b-", 9.0, "4-7", "32-63")
    made = host(gone, "smt=0", more=[Read(HERE, "xl-vcpu-list", [DOM0, pinned])])
    assert "topology = { sockets = 2, cores = 16, threads = 1, nodes = 2 }" in made.text
    assert "0 to 31 are CPUs 0, 2, … 62" in " ".join(made.notes)
    assert "# xen_commandline: smt=0" in made.text
    database = document(made)["domain"]["db"]
    assert (database["affinity"], database["soft_affinity"]) == ("2-3", "16-31"), "translated"


def test_sockets_that_take_turns_are_numbered_anew() -> None:
    made = host(cpus((p // 2, p % 2, p % 2) for p in range(8)))
    assert "topology = { sockets = 2, cores = 4, threads = 1, nodes = 2 }" in made.text
    assert "0 to 3 are CPUs 0, 2, … 6; 4 to 7 are CPUs 1, 3, … 7" in " ".join(made.notes)


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        # A host of fast cores of two threads, and of slow ones of one.
        ([(0, 0, 0), (0, 0, 0), (1, 0, 0)], "there are cores of 1 and of 2 threads online"),
        ([(0, 0, 0), (1, 0, 0), (0, 1, 0)], "there are sockets of 1 and of 2 cores online"),
        ([(p, p // 3, p) for p in range(6)] + [(9, 2, 6), (10, 2, 6), (11, 2, 6)], "there are 7 nodes on 3 sockets"),
        ([(p, 0, int(p == 3)) for p in range(4)], "the 2 nodes do not have the cores in rows of equal length"),
    ],
)
def test_what_no_topology_says_is_said(listed: list[tuple[int, int, int]], said: str) -> None:
    made = host(cpus(listed), "sched-gran=core" if "online" in said else "")
    assert said in " ".join(made.notes)
    assert f"\npcpus = {len(listed)}\n" in made.text
    if "online" in said:
        assert "sched-gran=core: left out, as Xen itself schedules by cpu where cores are not alike" in made.notes
        assert document(made)["host"]["sched_gran"] == "cpu"


def test_memory_without_cpus_is_named() -> None:
    notes: list[str] = []
    found = map_of(Info({}, cpus([(0, 0, 0), (0, 0, 0)]), [Node(0, 9, 9, [10]), Node(1, 9, 9, [10])]), notes)
    assert (found and found.topology) == Topology(1, 1, 2, 1)
    assert notes == ["node 1 has memory and no CPU: left out"]


def test_without_the_table_the_counts_say_it() -> None:
    notes: list[str] = []
    said = {"nr_cpus": "64", "cores_per_socket": "16", "threads_per_core": "2", "nr_nodes": "2"}
    found = map_of(Info(said), notes)
    assert (found and found.topology) == Topology(2, 16, 2, 2)
    assert notes == ["the threads of a core are assumed to have numbers beside each other; `xl info -n` says it"]
    notes.clear()
    found = map_of(Info({**said, "nr_cpus": "60"}), notes)
    assert found is not None
    assert (found.topology.is_flat, found.pcpus) == (True, 60)
    assert "not every socket has the same" in notes[0]
    assert map_of(Info({}), []) is None


# ---- the command line of the hypervisor ----


def test_boot_options_are_fields() -> None:
    line = "credit2_runqueue=core sched_credit2_max_cpus_runqueue=0x8 sched-gran=core no-smt sched_smt_power_savings"
    made = host(epyc(), f"{line} sched_ratelimit_us=500 credit2_balance_over=-2 credit2_balance_over=-1")
    its = document(made)["host"]
    assert (its["runqueue"], its["max_cpus_runqueue"], its["sched_gran"]) == ("core", 8, "core")
    assert (its["smt_power_savings"], its["ratelimit_us"], its["balance_over"]) == (1, 500, -1), "the last counts"
    assert "# xen_commandline: no-smt: the CPUs" in made.text
    printed = Read(
        HERE, "xl-sched", [Sched("Pool-0", "credit2", {"ratelimit": "2000us"}, [{"name": "Domain-0", "id": 0}])]
    )
    now = host(epyc(), "sched_ratelimit_us=500", more=[printed])
    assert document(now)["host"]["ratelimit_us"] == 2000, "what holds now was set later"
    wrong = host(epyc(), "credit2_runqueue=die sched_ratelimit_us=1 load-balance-ratelimit=0")
    assert "runqueue" not in wrong.text.split("[host]")[1].replace("runqueue=die", "")
    assert "credit2_runqueue=die: allowed: one of cpu, core, socket, node, all: left at its default" in wrong.notes
    assert any(note.startswith("sched_ratelimit_us=1: allowed: 0 or an integer from 100") for note in wrong.notes)


def test_dom0_is_as_its_options_say_where_nobody_lists_it() -> None:
    row = Sched("Pool-0", "credit", {"tslice": "5ms"}, [{"name": "Domain-0", "id": 0, "weight": 512, "cap": 0}])
    said = {"nr_cpus": "8", "xen_version": "4.17.5", "xen_commandline": "dom0_max_vcpus=2-4 dom0_vcpus_pin"}
    made = scenario_of([Read(HERE, "xl-info", Info(said)), Read(HERE, "xl-sched", [row])])
    dom0 = document(made)["domain"]["dom0"]
    assert (dom0["vcpus"], dom0["affinity"], dom0["weight"]) == (4, ["0", "1", "2", "3"], 512)
    assert "dom0: 4 vCPUs by the hypervisor's command line (dom0_max_vcpus=2-4)" in made.notes
    typed = [step.text for step in commands(vcpulab.Scenario.from_toml(made.text))]
    assert any("dom0_max_vcpus=4" in text for text in typed), "it is Dom0 to the tools"
    assert not any("Domain-0.cfg" in text or "dom0.cfg" in text for text in typed)


# ---- domains and pools ----


def test_soft_affinity_is_kept() -> None:
    rows = [Vcpu("web", 1, n, n, "-b-", 1.0, "all", "32-63") for n in (0, 1)]
    rows += [Vcpu("db", 2, n, n, "-b-", 1.0, "0-31", soft) for n, soft in ((0, "0-15"), (1, "all"))]
    domains = document(host(epyc(), more=[Read(HERE, "xl-vcpu-list", rows)]))["domain"]
    assert (domains["web"]["affinity"], domains["web"]["soft_affinity"]) == ("all", "32-63")
    assert (domains["db"]["affinity"], domains["db"]["soft_affinity"]) == ("0-31", ["0-15", "all"])


def test_files_of_domains_say_what_no_listing_does(tmp_path: Path) -> None:
    (tmp_path / "web.cfg").write_text('name = "web"\nvcpus = 2\ncpus_soft = "nodes:1"\ncpu_weight = 512\n')
    (tmp_path / "db.cfg").write_text('vcpus = 3\ncpus = ["0-3", "^1,4"]\ncap = 150\nname = "db"\n')
    files = [read(tmp_path / name, "xl-cfg") for name in ("web.cfg", "db.cfg")]
    said = {"xen_version": "4.22.0", "xen_commandline": "dom0_max_vcpus=2"}
    domains = document(scenario_of([Read(HERE, "xl-info", Info(said, epyc())), *files]))["domain"]
    assert (domains["dom0"]["vcpus"], domains["web"]["vcpus"]) == (2, 2)
    assert (domains["web"]["soft_affinity"], domains["web"]["weight"]) == ("32-63", 512)
    assert (domains["db"]["affinity"], domains["db"]["cap"]) == (["0-3", "4", "all"], 150)
    running = document(host(epyc(), more=[*files, Read(HERE, "xl-vcpu-list", [DOM0, *WEB])]))["domain"]
    assert list(running) == ["dom0", "web"], "db does not run"
    assert running["web"].get("soft_affinity") is None, "the listing says what holds now"


WEB = [Vcpu("web", 1, n, n, "-b-", 1.0, "all", "all") for n in (0, 1)]


def test_pools_by_node() -> None:
    pools = [Pool("Pool-node0", ",".join(map(str, range(32)))), Pool("Pool-node1", "32-63")]
    scheds = [
        Sched("Pool-node0", "credit2", {"ratelimit": "1000us"}, [{"name": "Domain-0", "id": 0, "weight": 512}]),
        Sched("Pool-node1", "credit", {"tslice": "5ms"}, [{"name": "web", "id": 1, "weight": 128}]),
    ]
    listings = [Read(HERE, "xl-vcpu-list", [DOM0, *WEB]), Read(HERE, "xl-sched", scheds)]
    made = host(epyc(), more=[*listings, Read(HERE, "xl-cpupool-list", pools)])
    its = document(made)
    (pool,) = its["pool"].values()
    assert (pool["pcpus"], pool["scheduler"], pool["tslice_ms"], pool["generation"]) == (
        "32-63",
        "credit",
        5,
        "xen4.19.2",
    )
    assert "# Xen 4.19.2: credit as in xen4.22, from 4.18 on\n" in made.text, "each scheduler's own rules"
    assert (its["domain"]["web"]["pool"], its["domain"]["web"]["weight"]) == ("Pool-node1", 128)
    assert "pool Pool-node0 is Pool-0 here" in made.notes
    without = host(epyc(), more=listings)
    assert any("pool Pool-node1: its CPUs are not listed (see `xl cpupool-list -c`)" in note for note in without.notes)


def test_lists_with_pools_and_nodes_are_read(tmp_path: Path) -> None:
    (tmp_path / "pools.txt").write_text(
        "Name               CPUs   Sched     Active   Domain count\n"
        "Pool-0              32     credit2     y          2\n"
        "Name               CPU list\nPool-0             0,1,2-31\n"
    )
    assert read(tmp_path / "pools.txt").holds == [Pool("Pool-0", "0,1,2-31", "credit2", 32)]
    (tmp_path / "list.txt").write_text(
        "Name                                        ID   Mem VCPUs\tState\tTime(s)         Cpupool NODE Affinity\n"
        "my web                                       1  1024     2     -b----      10.0          Pool-0 0-1\n"
    )
    (web,) = read(tmp_path / "list.txt").holds
    assert (web.name, web.pool, web.nodes) == ("my web", "Pool-0", "0-1")
    (tmp_path / "pools.txt").write_text("Name               CPU list\nPool-0  all of them\n")
    with pytest.raises(RecordingError, match=r"pools.txt:2: found `Pool-0  all of them`; allowed: name and CPUs"):
        read(tmp_path / "pools.txt")


def test_names_that_no_scenario_takes_are_others() -> None:
    rows = [Vcpu(name, number, 0, 0, "-b-", 1.0, "all", "all") for number, name in enumerate(ODD)]
    usage = [Usage(update, name, "b", 9, 50.0) for update in (0, 1) for name in ODD]
    made = host(epyc(), more=[Read(HERE, "xl-vcpu-list", rows), Read(HERE, "xentop", usage)])
    domains = document(made)["domain"]
    assert list(domains) == ["dom0", "my-web--old-", "my-web--old--2", "x" * 64]
    assert all(one["app"] for one in domains.values()), "xentop has the host's names"
    assert any(
        note.startswith("names that a scenario does not take: `my web (old)` is my-web--old-, `my web [old]` is")
        and note.endswith("in commands type the host's own")
        for note in made.notes
    )


ODD = ("Domain-0", "my web (old)", "my web [old]", "x" * 70)


# ---- memory and clocks ----

DMESG = """\
(XEN) Xen version 4.17.5 (Debian 4.17.5-1)
(XEN) Memory location of each domain:
(XEN) Domain 0 (total: 100):
(XEN)     Node 0: 1
(XEN) [2026-11-03 09:12:44] 'u' pressed -> dumping numa info (now = 812334511822)
(XEN) [2026-11-03 09:12:44] Memory location of each domain:
(XEN) [2026-11-03 09:12:44] Domain 0 (total: 1000):
(XEN) [2026-11-03 09:12:44]     Node 0: 501
(XEN) [2026-11-03 09:12:44]     Node 1: 499
(XEN) [2026-11-03 09:12:44] d1 (total: 1000):
(XEN) [2026-11-03 09:12:44]     Node 0: 3
(XEN) [2026-11-03 09:12:44]     Node 1: 997
(XEN) [2026-11-03 09:12:44]      1 vnodes, 2 vcpus, guest physical layout:
(XEN) [2026-11-03 09:12:44] d2 (total: 1000):
(XEN) [2026-11-03 09:12:44]     Node 0: 700
(XEN) [2026-11-03 09:12:44]     Node 1: 300
"""
XENPM = """\
cpu id               : 0
affected_cpus        : 0
cpuinfo frequency    : max [1700000] min [1400000] cur [1400000]
scaling_driver       : powernow
scaling_avail_gov    : userspace performance powersave ondemand
current_governor     : ondemand
  ondemand specific  :
    sampling_rate    : max [10000000] min [10000] cur [20000]
    up_threshold     : 85
scaling_avail_freq   : 1700000 1600000 *1400000
scaling frequency    : max [1700000] min [1400000] cur [1400000]
turbo mode           : enabled

[CPU1] failed to get cpufreq parameter
"""


def test_memory_is_where_the_hypervisor_says(tmp_path: Path) -> None:
    (tmp_path / "numa.txt").write_text(DMESG)
    rows = [Vcpu(name, number, 0, 0, "-b-", 1.0, "all", soft) for number, name, soft in HOMES]
    listings = [Read(HERE, "xl-vcpu-list", rows), read(tmp_path / "numa.txt")]
    made = host(epyc(), more=listings)
    domains = document(made)["domain"]
    assert "memory_nodes" not in domains["dom0"], "on both nodes, as usual"
    assert (domains["db"]["memory_nodes"], domains["web"]["memory_nodes"]) == (1, [0, 1])
    assert (
        "web: of its memory 70 % in node 0, 30 % in node 1; a scenario has as much in each node that holds some"
        in made.notes
    )
    near = host(epyc(), more=[Read(HERE, "xl-vcpu-list", [DOM0, rows[1], rows[2]]), listings[1]])
    assert near.text.count("memory_nodes") == 2
    (tmp_path / "numa.txt").write_text("(XEN) Freed 628kB init memory\n")
    with pytest.raises(RecordingError, match="allowed: `xl dmesg` of booting, or after `xl debug-keys u`"):
        read(tmp_path / "numa.txt")


HOMES = [(0, "Domain-0", "all"), (1, "db", "0-31"), (2, "web", "0-31")]


def test_memory_beside_the_vcpus_needs_no_line() -> None:
    listed = [Domain("web", 1, 1024, 1, "-b----", 1.0, None, "1"), Domain("db", 2, 1024, 1, "-b----", 1.0, None, "0-1")]
    rows = [Vcpu("web", 1, 0, 0, "-b-", 1.0, "all", "32-63"), Vcpu("db", 2, 0, 0, "-b-", 1.0, "0-31", "all")]
    made = host(epyc(), more=[Read(HERE, "xl-list", listed), Read(HERE, "xl-vcpu-list", rows)])
    domains = document(made)["domain"]
    assert "memory_nodes" not in domains["web"]
    assert domains["db"]["memory_nodes"] == [0, 1]


def test_clocks_are_those_that_xenpm_says(tmp_path: Path) -> None:
    (tmp_path / "xenpm.txt").write_text(XENPM)
    clocks = read(tmp_path / "xenpm.txt")
    assert clocks.holds == [Frequencies(0, "ondemand", 1_700_000, 1_400_000, 20_000, 85, turbo=True)]
    its = document(host(epyc(), "cpufreq=xen:performance", more=[clocks]))["host"]
    assert its["governor"] == "ondemand", "what holds now was set later"
    wanted = {"cpu_mhz": 1700, "min_mhz": 1400, "governor_sample_ns": 20_000_000, "governor_up_percent": 85}
    assert {name: its["costs"][name] for name in wanted} == wanted
    (tmp_path / "xenpm.txt").write_text(XENPM.replace("ondemand\n", "hwp\n"))
    hardware = host(epyc(), more=[read(tmp_path / "xenpm.txt")])
    assert "xenpm: governor hwp: no field says it; the highest clock rate is taken" in hardware.notes
    at_boot = host(epyc(), "cpufreq=xen:powersave")
    assert document(at_boot)["host"]["governor"] == "powersave"
    assert any(note.startswith("governor: not listed (`xenpm get-cpufreq-para` does)") for note in host(epyc()).notes)


def test_nodes_are_as_far_as_the_host_says() -> None:
    def far(*distances: list[int]) -> tuple[int, list[str]]:
        nodes = [Node(number, 9, 9, its) for number, its in enumerate(distances)]
        said = {"xen_version": "4.17.5", "xen_scheduler": "credit"}
        listed = cpus((p, p % 4, p % 4) for p in range(4)) if len(distances) == 4 else epyc()
        made = scenario_of([Read(HERE, "xl-info", Info(said, listed, nodes)), Read(HERE, "xl-vcpu-list", [DOM0])])
        return document(made)["host"]["costs"]["numa_distance"], made.notes

    assert far([10, 32], [32, 10])[0] == 32
    distance, notes = far([10, 12, 32, 32], [12, 10, 32, 32], [32, 32, 10, 12], [32, 32, 12, 10])
    assert distance == 32
    assert "distances of nodes: 12, 32; here each other node is as far, 32" in notes


# ---- what no listing says ----


def test_a_profile_that_prices_threads_is_asked_for(command: Vcpulab, tmp_path: Path) -> None:
    (note,) = (note for note in host(epyc()).notes if note.startswith("profile generic"))
    assert "such as epyc-9355p, " in note
    listings = [str(path) for path in sorted((ROOT / "examples/two-sockets").glob("*.txt"))]
    made = command(
        "import", "xl", *listings, "--profile", "xeon-gold-6240", "--toolstack", "xapi", "--out", "host.toml"
    )
    assert (made.returncode, made.stderr.count("warning")) == (0, 2), made.stderr
    assert "xenpm: turbo mode is enabled" in made.stderr
    assert "warning: profile xeon-gold-6240: CPU use as xentop measured it contains" in made.stderr
    its = vcpulab.Scenario.load(tmp_path / "host.toml").to_dict()["host"]
    assert (its["profile"], its["toolstack"], its["pcpus"]) == ("xeon-gold-6240", "xapi", 64)
    assert (its["costs"]["cpu_mhz"], its["costs"]["numa_distance"]) == (2994, 32), "the host's own"
    wrong = command("import", "xl", *listings, "--profile", "xeon")
    assert (wrong.returncode, 'host.profile: found `"xeon"`; allowed: one of generic' in wrong.stderr) == (2, True)


LISTINGS = {name: ROOT / f"fuzz/seeds/texts/{name}.txt" for name in ("info", "list", "numa", "pools", "vcpus", "xenpm")}
PIECES = (b"", b"\n", b" ", b",", b"-", b":", b"^", b"0", b"9" * 12, b"-1", b"all", b"nodes:1", "\u00e9".encode())


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_changed_listings_are_a_scenario_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever a listing says, the host of it is one that runs, or what is wrong is said."""
    changed = data.draw(st.sampled_from(sorted(LISTINGS)))
    text = LISTINGS[changed].read_bytes()
    place = st.integers(0, len(text))
    for begin, end, times, piece in data.draw(
        st.lists(st.tuples(place, place, st.integers(0, 2), st.sampled_from(PIECES)), max_size=3)
    ):
        text = text[:begin] + text[begin:end] * times + piece + text[max(begin, end) :]
    path = tmp_path_factory.getbasetemp() / f"{changed}.txt"
    path.write_bytes(text)
    others = [read(other) for name, other in LISTINGS.items() if name != changed]
    assert "my-web" in scenario_of([*others, read(LISTINGS[changed])]).text, "as it is, it is one"
    try:
        made = scenario_of([*others, read(path)])
    except (RecordingError, RequestError, vcpulab.ScenarioError):
        return
    assert document(made)["host"]["pcpus"] >= 1
    commands(vcpulab.Scenario.from_toml(made.text))
