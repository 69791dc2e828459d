"""The I/O of a driver domain spread over its vCPUs."""

from collections.abc import Mapping, Sequence
from typing import Literal

from vcpulab.scenario.model import Disk, Domain, Model, Netfront, Nic, VirtualDisk
from vcpulab.scenario.scenario import join

_Kind = Literal["nic", "disk"]


def spread(scenario: Model, driver: str, vcpus: int) -> dict[str, int]:
    """The settings that spread devices, netbacks and blkbacks of a driver domain over its first `vcpus` vCPUs.

    If they are spread already, the settings move netbacks to vCPUs that no NIC interrupts, if there are such vCPUs.
    """
    changes: dict[str, int] = {}
    kinds: tuple[_Kind, ...] = ("nic", "disk")
    for kind in kinds:
        changes |= _in_turn(_interrupts(scenario, kind, driver), range(vcpus))
        changes |= _in_turn(_backs(scenario, kind, driver), range(vcpus))
    return changes or apart(scenario, driver, vcpus)


def apart(scenario: Model, driver: str, vcpus: int) -> dict[str, int]:
    """The settings that spread netbacks over those of the first `vcpus` vCPUs that no NIC interrupts, if any."""
    interrupted = set(_interrupts(scenario, "nic", driver).values()) or {0}
    return _in_turn(_backs(scenario, "nic", driver), [vcpu for vcpu in range(vcpus) if vcpu not in interrupted])


def netbacks(scenario: Model, driver: str) -> dict[str, int]:
    """The domains whose netbacks are in a driver domain, in file order, each with the vCPU of its netback."""
    return {name: device.driver_vcpu or 0 for name, device in _behind(scenario, "nic", driver).items()}


def _behind(scenario: Model, kind: _Kind, driver: str) -> dict[str, Netfront | VirtualDisk]:
    """The devices whose netbacks or blkbacks are in a driver domain, by domain in file order."""
    if kind == "disk" and scenario.domains[driver].disk is not None:
        # A stub domain forwards requests on the vCPU of its own disk's events.
        return {}
    devices = {name: _device(domain, kind) for name, domain in scenario.domains.items()}
    return {name: device for name, device in devices.items() if device is not None and device.driver_domain == driver}


def _device(domain: Domain, kind: _Kind) -> Netfront | VirtualDisk | None:
    return domain.nic if kind == "nic" else domain.disk


def _backs(scenario: Model, kind: _Kind, driver: str) -> dict[str, int]:
    """The vCPU of each netback or blkback, by path."""
    devices = _behind(scenario, kind, driver)
    return {join(["domain", name, kind, "driver_vcpu"]): device.driver_vcpu or 0 for name, device in devices.items()}


def _interrupts(scenario: Model, kind: _Kind, driver: str) -> dict[str, int]:
    """The vCPU that takes the interrupts of each named NIC or disk, by path."""
    devices: Mapping[str, Nic | Disk] = scenario.nics if kind == "nic" else scenario.disks
    return {
        join([kind, name, "vcpu"]): device.vcpu or 0
        for name, device in devices.items()
        if device.driver_domain == driver
    }


def _in_turn(places: Mapping[str, int], vcpus: Sequence[int]) -> dict[str, int]:
    """The settings that distribute places over vCPUs in turn; nothing without vCPUs."""
    wanted = {path: vcpus[index % len(vcpus)] for index, path in enumerate(places) if vcpus}
    return {path: vcpu for path, vcpu in wanted.items() if vcpu != places[path]}
