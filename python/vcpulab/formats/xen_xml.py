"""libvirt's XML of domains of Xen: `virsh dumpxml` on a host whose hypervisor is Xen."""

from os import PathLike

from vcpulab.formats.virsh import read_xml
from vcpulab.formats.xl_cfg import Value
from vcpulab.formats.xl_long import Config

BEGINS = r"(?m)^[ \t]*<domain\s[^>]{0,400}?type=[\"']xen[\"']"
"""The first element of it."""


def read_xen_xml(path: str | PathLike[str]) -> list[Config]:
    """The domains of it, each with the settings that a file of xl's would have.

    Raises:
        RecordingError: the file does not have this format.
    """
    configs = []
    for machine in read_xml(path):
        settings: dict[str, Value] = {}
        if machine.vcpus is not None:
            settings["vcpus"] = machine.vcpus
        if machine.vcpu_pins:
            count = machine.vcpus or max(machine.vcpu_pins) + 1
            settings["cpus"] = [machine.vcpu_pins.get(vcpu, "all") for vcpu in range(count)]
        if machine.shares is not None:
            settings["cpu_weight"] = machine.shares
        limits = [f"{param} = {value}" for param, value in machine.params.items() if value > 0]
        pins = {"emulatorpin": machine.emulator_pin, "memory on nodes": machine.memory_nodes}
        places = [f"{setting} {cpus}" for setting, cpus in pins.items() if cpus is not None]
        omitted = [*limits, *places, *machine.omitted]
        configs.append(Config(machine.name, machine.number, settings, omitted))
    return configs
