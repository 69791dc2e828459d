"""The I/O of a driver domain spread over its vCPUs."""

from collections.abc import Mapping, Sequence
from typing import Any

from vcpulab.scenario.scenario import join


def spread(document: Mapping[str, Any], driver: str, vcpus: int) -> dict[str, int]:
    """The settings that spread devices, netbacks and blkbacks of a driver domain over its first `vcpus` vCPUs.

    If they are spread already, the settings move netbacks to vCPUs that no NIC interrupts, if there are such vCPUs.
    """
    changes: dict[str, int] = {}
    for kind in ("nic", "disk"):
        changes |= _in_turn(_interrupts(document, kind, driver), range(vcpus))
        changes |= _in_turn(_backs(document, kind, driver), range(vcpus))
    return changes or apart(document, driver, vcpus)


def apart(document: Mapping[str, Any], driver: str, vcpus: int) -> dict[str, int]:
    """The settings that spread netbacks over those of the first `vcpus` vCPUs that no NIC interrupts, if any."""
    interrupted = set(_interrupts(document, "nic", driver).values()) or {0}
    return _in_turn(_backs(document, "nic", driver), [vcpu for vcpu in range(vcpus) if vcpu not in interrupted])


def behind(document: Mapping[str, Any], kind: str, driver: str) -> list[str]:
    """The domains whose netbacks (`kind` is "nic") or blkbacks ("disk") are in a driver domain, in file order."""
    if kind == "disk" and "disk" in document["domain"][driver]:
        # A stub domain forwards requests on the vCPU of its own disk's events.
        return []
    return [name for name, table in document["domain"].items() if table.get(kind, {}).get("driver_domain") == driver]


def _backs(document: Mapping[str, Any], kind: str, driver: str) -> dict[str, int]:
    """The vCPU of each netback or blkback, by path."""
    return {
        join(["domain", name, kind, "driver_vcpu"]): document["domain"][name][kind].get("driver_vcpu", 0)
        for name in behind(document, kind, driver)
    }


def _interrupts(document: Mapping[str, Any], kind: str, driver: str) -> dict[str, int]:
    """The vCPU that takes the interrupts of each named NIC or disk, by path."""
    return {
        join([kind, name, "vcpu"]): table.get("vcpu", 0)
        for name, table in document.get(kind, {}).items()
        if table.get("driver_domain") == driver
    }


def _in_turn(places: Mapping[str, int], vcpus: Sequence[int]) -> dict[str, int]:
    """The settings that distribute places over vCPUs in turn; nothing without vCPUs."""
    wanted = {path: vcpus[index % len(vcpus)] for index, path in enumerate(places) if vcpus}
    return {path: vcpu for path, vcpu in wanted.items() if vcpu != places[path]}
