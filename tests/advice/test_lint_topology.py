"""Rules of lint on threads, cores and nodes: each finds what was planted, and is silent where nothing is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import vcpulab
from support import Vcpulab
from vcpulab.advice.lint.answer import Findings
from vcpulab.advice.lint.catalogue import findings, notes
from vcpulab.advice.lint.host import Finding, Host

FOUR_CORES = {"sockets": 1, "cores": 4, "threads": 2, "nodes": 1}
TWO_NODES = {"sockets": 2, "cores": 2, "threads": 2, "nodes": 2}
SELDOM = {"kind": "periodic", "run": "1ms", "period": "20ms"}


def busy(vcpus: int = 1, **fields: Any) -> dict[str, Any]:
    return {"vcpus": vcpus, "app": [{"kind": "hog", "instance": vcpus}], **fields}


def scenario(domains: dict[str, Any], **host: Any) -> vcpulab.Scenario:
    document = {
        "name": "planted",
        "run": {"duration": "200ms", "warmup": "20ms", "replications": 2},
        "host": {"profile": "generic", "scheduler": "credit2", **host},
        "domain": domains,
    }
    return vcpulab.Scenario.from_dict(document)


def found(domains: dict[str, Any], **host: Any) -> dict[str, Finding]:
    it = scenario(domains, **host)
    return {one.rule: one for one in findings(Host(it, vcpulab.run(it)))}


def noted(domains: dict[str, Any], **host: Any) -> list[Finding]:
    it = scenario(domains, **host)
    return notes(Host(it, vcpulab.run(it)))


@pytest.mark.parametrize(
    ("domains", "said", "fix"),
    [
        ({"a": busy(affinity="0"), "b": busy(affinity="1")}, "vCPUs of a, b are pinned to pCPU 0-1", "b.affinity=2"),
        ({"a": busy(2, affinity=["0", "1"])}, "the threads of 1 core", 'a.affinity=["0", "2"]'),
        ({"a": busy(4, affinity="0-3")}, "the threads of 2 cores", "a.affinity=0,2,4,6"),
        ({"a": busy(affinity="0"), "b": busy(affinity="1"), "c": busy(affinity="2-3")}, "pCPU 4-7", "b.affinity=4"),
    ],
)  # fmt: skip
def test_threads_of_one_core_while_others_idle(domains: dict[str, Any], said: str, fix: str) -> None:
    it = found(domains, topology=FOUR_CORES)["pinned-to-one-core"]
    assert said in it.reason
    assert it.reason.endswith(f": domain.{fix}")


def test_spread_numbers_name_other_siblings() -> None:
    spread = FOUR_CORES | {"numbering": "spread"}
    apart = {"a": busy(affinity="0"), "b": busy(affinity="1")}
    assert found(apart, topology=spread) == {}
    assert "pinned-to-one-core" in found({"a": busy(affinity="0"), "b": busy(affinity="4")}, topology=spread)


def test_cores_of_the_same_node_are_taken_first() -> None:
    nodes = {"sockets": 2, "cores": 2, "threads": 2, "nodes": 2}
    it = found({"a": busy(affinity="4"), "b": busy(affinity="5")}, topology=nodes)["pinned-to-one-core"]
    assert it.reason.endswith("domain.b.affinity=6")


@pytest.mark.parametrize(
    "domains",
    [
        {"a": busy(affinity="0"), "b": busy(affinity="2")},
        {"a": busy(2, affinity="0-3")},
        {"a": busy(2), "b": busy(2)},
        {
            "a": busy(affinity="0"),
            "b": {"affinity": "1", "app": [{"kind": "periodic", "run": "1ms", "period": "20ms"}]},
        },
        {"a": busy(8, affinity="all")},
    ],
)
def test_vcpus_on_cores_of_their_own_are_left_alone(domains: dict[str, Any]) -> None:
    assert found(domains, topology=FOUR_CORES) == {}


def test_flat_hosts_and_cores_that_are_scheduled_whole_have_no_siblings() -> None:
    pinned = {"a": busy(affinity="0"), "b": busy(affinity="1")}
    assert found(pinned, pcpus=8) == {}
    assert noted(pinned, pcpus=8) == []
    assert "pinned-to-one-core" not in found({"a": busy(2, affinity="0-1")}, topology=FOUR_CORES, sched_gran="core")
    full = {f"d{core}": busy(2, affinity=f"{2 * core}-{2 * core + 1}") for core in range(4)}
    assert found(full, topology=FOUR_CORES) == {}, "no core idles"


def test_more_busy_vcpus_than_a_node_has_threads() -> None:
    wide = {"a": busy(6, soft_affinity="0-3")}
    it = found(wide, topology=TWO_NODES)["wider-than-a-node"]
    assert "a has 6 vCPUs that want 6.0 pCPUs, and prefers 4 threads (node 0)" in it.reason
    assert it.reason.endswith('soft_affinity = "0-7", or 4 vCPUs fit')
    by_memory = found({"a": busy(6, memory_nodes=1)}, topology=TWO_NODES)["wider-than-a-node"]
    assert by_memory.path == "domain.a.memory_nodes"
    assert by_memory.reason.endswith("memory_nodes = [0, 1], or 4 vCPUs fit")
    assert found({"a": busy(6, memory_nodes=[0, 1])}, topology=TWO_NODES) == {}
    assert found({"a": busy(4, soft_affinity="0-3")}, topology=TWO_NODES) == {}
    assert found({"a": busy(6)}, topology=TWO_NODES) == {}, "it says nothing of a node"
    idle = {"a": {"vcpus": 6, "soft_affinity": "0-3", "app": [{"kind": "hog"}]}}
    assert found(idle, topology=TWO_NODES) == {}
    assert found({"a": busy(6, soft_affinity="0-3")}, topology=TWO_NODES | {"nodes": 1}) == {}


@pytest.mark.parametrize(
    ("domain", "scheduler", "why"),
    [
        ({"affinity": "0-3", "soft_affinity": "0-5"}, "credit2", "that is everywhere where a may run"),
        ({"affinity": "0-3", "soft_affinity": "4-7"}, "credit", "a may not run there, but only on pCPU 0-3"),
        ({"vcpus": 2, "affinity": ["0", "1"], "soft_affinity": ["0", "2"]}, "null", "everywhere there, or nowhere"),
        ({"soft_affinity": "0-3"}, "rtds", "rtds pays no attention to it"),
    ],
)
def test_soft_affinity_that_cannot_matter(domain: dict[str, Any], scheduler: str, why: str) -> None:
    it = found({"a": busy(**domain)}, topology=FOUR_CORES, scheduler=scheduler)["soft-affinity-without-effect"]
    assert it.path == "domain.a.soft_affinity"
    assert why in it.reason


@pytest.mark.parametrize("scheduler", ["credit", "credit2", "null"])
def test_soft_affinity_that_counts_is_left_alone(scheduler: str) -> None:
    domains = {"a": busy(soft_affinity="0-3"), "b": busy(affinity="0-5", soft_affinity="4-7"), "c": busy()}
    assert found(domains, topology=FOUR_CORES, scheduler=scheduler) == {}


def test_soft_affinity_that_is_to_count_later_is_left_alone() -> None:
    it = scenario({"a": busy(affinity="0-3", soft_affinity="0-3")}, topology=FOUR_CORES)
    action = {"op": "affinity", "at": "100ms", "domain": "a", "affinity": "0-7"}
    later = vcpulab.Scenario.from_dict(it.written() | {"action": [action]})
    assert [one.rule for one in findings(Host(it, vcpulab.run(it)))] == ["soft-affinity-without-effect"]
    assert findings(Host(later, vcpulab.run(later))) == []


def test_vcpus_beyond_threads() -> None:
    it = found({"a": busy(6, affinity="0-3")}, topology=FOUR_CORES)["more-vcpus-than-threads"]
    assert "a has 6 vCPUs and may run on 4 threads" in it.reason
    assert it.changes == {"domain.a.vcpus": 4}
    assert found({"a": busy(10)}, pcpus=8)["more-vcpus-than-threads"].changes == {"domain.a.vcpus": 8}
    idle = {"vcpus": 10, "app": [{"kind": "hog"}]}
    assert found({"a": idle}, pcpus=8) == {}
    assert found({"a": busy(8), "b": busy(8)}, pcpus=8) == {}, "they wait for each other, not for themselves alone"


def test_the_mend_of_vcpus_beyond_threads_is_simulated(tmp_path: Path) -> None:
    file = tmp_path / "planted.toml"
    it = scenario({"a": busy(6), "dom0": {}}, pcpus=4)
    file.write_text(tomli_w.dumps(it.written()))
    (advice,) = vcpulab.lint(file, replications=3)
    assert advice.helps
    assert [step.text for step in advice.steps() if step.how == "run"] == ["xl vcpu-set a 4"]


def test_domains_that_share_cores_are_a_note_with_its_price() -> None:
    domains = {"a": busy(4), "b": busy(3), "c": busy(affinity="0")}
    (it,) = noted(domains, topology=FOUR_CORES)
    assert it.reason == "a, b, c may run beside each other on the threads of 4 cores"
    answer = vcpulab.lint(scenario(domains, topology=FOUR_CORES), replications=2)
    assert list(answer) == []
    assert answer.to_frame().is_empty()
    (line,) = answer.noted()
    assert 'host.sched_gran = "core", after a restart of the host, prevents that; its price: ' in line
    assert "%" in line
    assert line in str(answer).splitlines()
    assert str(answer).endswith(": nothing found")
    apart = {"a": busy(2, affinity="0-1"), "b": busy(4, affinity="4-7")}
    assert noted(apart, topology=FOUR_CORES) == []
    assert noted({"a": busy(2), "b": {}}, topology=FOUR_CORES) == [], "one that never runs shares nothing"
    old = vcpulab.lint(scenario({"a": busy(), "b": busy()}, topology=FOUR_CORES, scheduler="sedf"), replications=2)
    assert isinstance(old, Findings)
    assert old.notes == (), "it schedules each thread by itself"


def test_notes_are_no_findings_on_the_command_line(tmp_path: Path, command: Vcpulab) -> None:
    file = tmp_path / "shared.toml"
    file.write_text(tomli_w.dumps(scenario({"a": busy(2), "b": busy(2)}, topology=FOUR_CORES).written()))
    plain = command("lint", "shared.toml", "--replications", "2")
    assert plain.returncode == 0
    caution, note, *_ = plain.stdout.splitlines()
    assert caution.startswith("a thread is not a core: the 8 pCPUs are threads of 4 cores")
    assert note.startswith("note: a, b may run beside each other on the threads of 4 cores; ")
    assert plain.stdout.endswith("shared.toml: nothing found\n")
    data = json.loads(command("lint", "shared.toml", "--replications", "2", "--format", "json").stdout)
    assert data["files"] == {"shared.toml": []}
    assert [one["rule"] for one in data["notes"]["shared.toml"]] == ["cores-shared"]
    assert "notes" not in json.loads(command("lint", "shared.toml", "--select", "starved", "--format", "json").stdout)
