"""The I/O of a driver domain spread over its vCPUs."""

from collections.abc import Mapping
from typing import Any

from vcpulab.scenario.scenario import join


def spread(document: Mapping[str, Any], driver: str, vcpus: int) -> dict[str, int]:
    """What is to be set so that NICs and netbacks are in turn on that many vCPUs of their driver domain."""
    nics = [name for name, nic in document.get("nic", {}).items() if nic.get("driver_domain") == driver]
    found = {
        join(["nic", name, "vcpu"]): index % vcpus
        for index, name in enumerate(nics)
        if document["nic"][name].get("vcpu", 0) != index % vcpus
    }
    served = [n for n, table in document["domain"].items() if table.get("nic", {}).get("driver_domain") == driver]
    return found | {
        join(["domain", name, "nic", "driver_vcpu"]): index % vcpus
        for index, name in enumerate(served)
        if document["domain"][name]["nic"].get("driver_vcpu", 0) != index % vcpus
    }
