"""`vcpulab tune` on hosts with threads, sockets and nodes: core scheduling, run queues, soft affinity."""

from typing import Any

import pytest

import vcpulab
from vcpulab.advice.placing.nodes import soft
from vcpulab.advice.tuning import Parameter, space
from vcpulab.advice.tuning.leads import leads
from vcpulab.advice.tuning.prices import PRICES, kind, price
from vcpulab.advice.tuning.spaces import Space
from vcpulab.advice.tuning.widening import widened

TWO_NODES = {"sockets": 2, "cores": 2, "threads": 2, "nodes": 2}


def scenario(domain: dict[str, Any] | None = None, **host: Any) -> vcpulab.Scenario:
    busy = {"vcpus": 2, "app": [{"kind": "hog", "instance": 2}]}
    document = {
        "name": "planted",
        "run": {"duration": "100ms"},
        "host": {"profile": "generic", "scheduler": "credit2", **host},
        "domain": {"dom0": {"driver_domain": True}, "a": busy | (domain or {}), "b": busy, "c": busy | {"vcpus": 1}},
    }
    return vcpulab.Scenario.from_dict(document)


def there(found: Space) -> dict[str, Parameter]:
    return {one.key: one for one in found.parameters}


def labels(parameter: Parameter) -> list[str]:
    return [one.label for one in parameter.options]


def test_a_flat_host_has_nothing_of_it() -> None:
    flat = widened(space(scenario(pcpus=8)), ["a"])
    assert not [one for one in there(flat) if "soft" in one or "gran" in one or "runqueue" in one]


def test_what_the_topology_lets_matter_is_searched() -> None:
    found = there(space(scenario(topology=TWO_NODES)))
    assert labels(found["host.sched_gran"]) == ["cpu", "core"]
    assert labels(found["host.runqueue (credit2)"]) == ["cpu", "core", "socket", "all"], "a node is a socket"
    assert labels(found["host.soft_affinity"]) == ["as it is", "by node"]
    one_node = there(space(scenario(topology=TWO_NODES | {"nodes": 1})))
    assert "host.soft_affinity" not in one_node
    one_thread = there(space(scenario(topology=TWO_NODES | {"threads": 1})))
    assert "host.sched_gran" not in one_thread
    assert labels(one_thread["host.runqueue (credit2)"]) == ["cpu", "socket", "all"]
    four = there(space(scenario(topology=TWO_NODES | {"nodes": 4})))
    assert labels(four["host.runqueue (credit2)"]) == ["cpu", "core", "socket", "all"], "a node is a core"
    one_queue = there(space(scenario(topology={"sockets": 1, "cores": 4, "threads": 1, "nodes": 1})))
    assert "host.runqueue (credit2)" not in one_queue


def test_the_present_setting_is_one_of_them() -> None:
    found = there(space(scenario(topology=TWO_NODES, sched_gran="socket", runqueue="node")))
    assert (labels(found["host.sched_gran"]), found["host.sched_gran"].now) == (["cpu", "core", "socket"], 2)
    assert labels(found["host.runqueue (credit2)"]) == ["cpu", "core", "node", "all"]
    assert found["host.runqueue (credit2)"].now == 2


def test_soft_affinity_by_node_leaves_who_has_affinity() -> None:
    host = scenario({"affinity": "0-1"}, topology=TWO_NODES)
    by_node = there(space(host))["host.soft_affinity"].options[1].value
    assert by_node == {"domain.b.soft_affinity": "0-3", "domain.c.soft_affinity": "4-7"}
    assert set(soft(scenario(topology=TWO_NODES).model)) == {"a", "b", "c"}, "driver domains stay everywhere"
    wide = scenario({"vcpus": 6}, topology=TWO_NODES).model
    assert set(soft(wide)) == {"b", "c"}, "it fits into no node"
    assert soft(scenario(topology=TWO_NODES, scheduler="rtds").model) == {}


def test_the_goals_own_domains_are_tried_on_each_node() -> None:
    found = widened(space(scenario(topology=TWO_NODES)), ["a"])
    own = there(found)["domain.a.soft_affinity"]
    assert labels(own) == ["none", "node 0", "node 1"]
    assert found.changes({**found.present, own.key: 2}) == {"domain.a.soft_affinity": "4-7"}
    assert "domain.b.soft_affinity" not in there(found)
    assert there(space(scenario(topology=TWO_NODES), only=["b.soft_affinity"])).keys() == {"domain.b.soft_affinity"}
    has = widened(space(scenario({"soft_affinity": "0-3"}, topology=TWO_NODES)), ["a"])
    assert labels(there(has)["domain.a.soft_affinity"]) == ["as it is", "none", "node 1"]


@pytest.mark.parametrize("scheduler", ["credit", "credit2", "null", "rtds"])
def test_all_of_them_can_be_set_and_are_tried(scheduler: str) -> None:
    host = scenario(topology=TWO_NODES, scheduler=scheduler)
    found = widened(space(host), ["a"])
    tried = [found.changes(picks) for picks in leads(found, vcpulab.run(host), ["a"], None)]
    assert {"host.sched_gran": "core"} in tried
    for changes in tried:
        if any(word in path for path in changes for word in ("soft", "gran", "runqueue")):
            host.change(changes)


def test_a_restart_is_paid_once() -> None:
    found = there(space(scenario(topology=TWO_NODES)))
    cores, queues, nodes = (
        found[name] for name in ("host.sched_gran", "host.runqueue (credit2)", "host.soft_affinity")
    )
    assert [kind(one) for one in (cores, queues, nodes)] == ["boot", "boot", "pinning"]
    assert price([(cores, 1)], PRICES) == PRICES["boot"]
    assert price([(cores, 1), (queues, 0)], PRICES) == PRICES["boot"] + PRICES["slice"]
    assert price([(cores, 1)], PRICES, restarts=True) == PRICES["slice"]
    assert price([(nodes, 1)], PRICES) < PRICES["boot"]


def test_whoever_is_far_from_its_memory_begins_with_the_nodes() -> None:
    far = {"memory_share_compute_percent": 80, "numa_distance": 40}
    tried = {}
    for name, costs in (("far", far), ("near", {})):
        host = scenario(topology=TWO_NODES, costs=costs)
        found = widened(space(host), ["a"])
        tried[name] = [found.changes(picks) for picks in leads(found, vcpulab.run(host), ["a"], None)]
    by_node = {f"domain.{name}.soft_affinity": mask for name, mask in (("a", "0-3"), ("b", "4-7"), ("c", "0-3"))}
    assert tried["far"][0] == by_node
    assert by_node in tried["near"][1:]
