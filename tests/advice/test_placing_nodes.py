"""`vcpulab place` on hosts with nodes and threads: a domain in one node, busy vCPUs on cores of their own."""

from typing import Any

import pytest

from vcpulab import Scenario, run
from vcpulab.advice.placing.document import domains_by_node
from vcpulab.advice.placing.energy import Power
from vcpulab.advice.placing.fleet import Fleet, fleet, host_of
from vcpulab.advice.placing.nodes import Wish, by_node
from vcpulab.advice.placing.placing import Host, place
from vcpulab.scenario.topology import Topology

HOST = """\
name = "a fleet"
[run]
duration = "300ms"
warmup = "100ms"
[host]
profile = "exact"
scheduler = "SCHEDULER"
topology = { sockets = 2, cores = 2, threads = 2, nodes = NODES, numbering = "NUMBERING" }
[domain.dom0]
driver_domain = true
"""
SHORT = 'app = [{ kind = "periodic", run = "3ms", period = "10ms" }]\n'


def taken(guests: str, scheduler: str = "credit2", nodes: int = 2, numbering: str = "adjacent") -> Fleet:
    text = HOST.replace("SCHEDULER", scheduler).replace("NODES", str(nodes)).replace("NUMBERING", numbering)
    return fleet({"file": Scenario.from_toml(text + guests)})


def hogs(count: int, vcpus: int = 1) -> str:
    app = f'vcpus = {vcpus}\napp = [{{ kind = "hog", instance = {vcpus} }}]\n'
    return "".join(f"[domain.h{number}]\n{app}" for number in range(count))


def soft(scenario: Scenario) -> dict[str, object]:
    return {name: table.get("soft_affinity", "all") for name, table in scenario.to_dict()["domain"].items()}


def test_the_busiest_go_where_most_cores_are_left() -> None:
    host = Topology(2, 4, 2, 2)
    wishes = {"a": Wish(2, 0.1), "b": Wish(4, 3.9), "c": Wish(4, 2.0), "d": Wish(2, 1.0), "wide": Wish(9, 9.0)}
    assert by_node(host, wishes) == {"a": 1, "b": 0, "c": 1, "d": 1}


def test_each_domain_prefers_one_node() -> None:
    it = taken(hogs(4, vcpus=2))
    assert soft(it.scenario(it.items)) == {"dom0": "all", "h0": "0-3", "h1": "4-7", "h2": "0-3", "h3": "4-7"}
    spread = taken(hogs(2, vcpus=2), numbering="spread")
    assert soft(spread.scenario(spread.items))["h1"] == "2-3,6-7"
    assert soft(taken(hogs(2)).scenario([])) == {"dom0": "all"}
    other = taken(hogs(2), scheduler="rtds")
    assert set(soft(other.scenario(other.items)).values()) == {"all"}, "it pays no attention"
    sockets = taken(hogs(2), nodes=1)
    assert soft(sockets.scenario(sockets.items)) == {"dom0": "all", "h0": "0-3", "h1": "4-7"}


def test_what_keeps_a_node_busy_counts_not_what_it_could() -> None:
    idle = "".join(f"[domain.i{number}]\nvcpus = 4\n{SHORT}" for number in range(2))
    it = taken(idle + hogs(2, vcpus=2))
    placed = place(it, ["throughput > 90"], replications=2)
    (host,) = placed.hosts
    assert host.nodes == {0: ["i0", "h0"], 1: ["i1", "h1"]}
    assert it.busy["h0"] == pytest.approx(2, rel=0.05)
    assert it.busy["i0"] == pytest.approx(0.3, rel=0.05)
    assert domains_by_node(host) == "node 0: i0, h0; node 1: i1, h1"
    rows: Any = placed.as_data(Power())["hosts"]
    assert rows[0]["nodes"] == [{"node": 0, "domains": ["i0", "h0"]}, {"node": 1, "domains": ["i1", "h1"]}]


def test_who_has_an_affinity_keeps_it() -> None:
    it = taken(hogs(2) + '[domain.pinned]\naffinity = "4-5"\n' + SHORT)
    made = it.scenario(it.items)
    assert soft(made)["pinned"] == "all"
    host = Host(it.items, made, [], 0.0, [], {})
    assert host.nodes == {0: ["h0"], 1: ["h1"]}
    assert domains_by_node(host) == "node 0: h0; node 1: h1; pinned"


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("scheduler", ["credit", "credit2", "null"])
def test_busy_vcpus_have_cores_of_their_own_while_there_are_some(scheduler: str, nodes: int) -> None:
    it = taken(hogs(4), scheduler, nodes)
    made = it.scenario(it.items)
    used = [row["pcpu"] for row in run(made).df_pcpus().to_dicts() if row["run_ns"] > 0.5 * row["elapsed_ns"]]
    assert len({Topology.from_host(made.host).core(pcpu) for pcpu in used}) == len(used) == 4


def test_numbers_of_another_topology_are_left_out_and_named() -> None:
    small = Scenario.from_toml(
        HOST.replace("SCHEDULER", "credit2").replace("NODES", "2").replace("NUMBERING", "adjacent")
        + '[domain.a]\nsoft_affinity = "0-3"\n'
        + SHORT
    )
    large = small.change({"host.topology.cores": 8})
    moved = fleet({"file": small}, host=large)
    assert moved.notes[1:] == ["file: soft_affinity of a is left out, the hosts have another topology"]
    assert soft(moved.scenario(moved.items))["a"] == "0-15"
    assert fleet({"file": small}).notes == []
    assert soft(fleet({"file": small}).scenario(fleet({"file": small}).items))["a"] == "0-3"


def test_a_profile_brings_its_own_topology() -> None:
    it = Scenario.from_toml(HOST.replace("SCHEDULER", "credit2").replace("NODES", "2").replace("NUMBERING", "adjacent"))
    assert "topology" not in host_of({"file": it}, "generic").written()["host"]
