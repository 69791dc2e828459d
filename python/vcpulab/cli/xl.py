"""`vcpulab xl` and `vcpulab virsh`: commands to type on a Xen or a KVM host, and the output that they would print."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vcpulab.cli import files
from vcpulab.cli.options import Flag, TableOrJson, TypedFor, command, group
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.units import pcpu_set
from vcpulab.show.as_json import as_json

xl = group(
    "xl",
    "Commands to type on a Xen host, and the output that they would print.",
    "vcpulab xl commands web.toml",
    "vcpulab xl list web.toml",
)
virsh = group(
    "virsh",
    "Commands to type on a KVM host, and the output that they would print.",
    "vcpulab virsh commands kvm.toml",
    "vcpulab virsh list kvm.toml",
)


@command("commands", "vcpulab xl commands web.toml", "vcpulab xl commands web.toml --toolstack xapi", parent=xl)
def commands(file: Path, /, *, toolstack: TypedFor = None, format: TableOrJson = "table") -> None:
    """Print the commands that set up a scenario on a real host and keep it so, and what no command does.

    The table is a shell script; JSON has each step with its kind and time.

    Args:
        file: Scenario file.
    """
    _commands(_scenario_of(file, "xen", "commands"), toolstack, format)


@command(
    "commands", "vcpulab virsh commands kvm.toml", "vcpulab virsh commands kvm.toml --toolstack proxmox", parent=virsh
)
def virsh_commands(file: Path, /, *, toolstack: TypedFor = None, format: TableOrJson = "table") -> None:
    """Print the commands that set up a scenario on a real KVM host and keep it so, and what no command does.

    They are those of the scenario's toolstack: libvirt's virsh, Proxmox VE's qm, or systemd and files of control
    groups. The table is a shell script; JSON has each step with its kind and time.

    Args:
        file: Scenario file.
    """
    _commands(_scenario_of(file, "kvm", "commands"), toolstack, format)


@command(
    "list",
    "vcpulab xl list web.toml",
    "vcpulab xl list web.toml --at 5s",
    "vcpulab xl list web.toml --vcpus",
    parent=xl,
)
def list_(file: Path, /, *, at: str | None = None, vcpus: Flag = False, format: TableOrJson = "table") -> None:
    """Run a scenario up to a time, and print the domains on the host then, as `xl list` would.

    Args:
        file: Scenario file.
        at: Time since the host started, warm-up included, just before the events of that very time; the end if left
            out.
        vcpus: Every vCPU, as `xl vcpu-list` would.
    """
    report = _listing(_scenario_of(file, "xen", "list"), at)
    if format == "json":
        print(report)
    elif vcpus:
        _show_vcpu_list(json.loads(report))
    else:
        _show_list(json.loads(report))


@command(
    "list",
    "vcpulab virsh list kvm.toml",
    "vcpulab virsh list kvm.toml --at 5s",
    "vcpulab virsh list kvm.toml --vcpus",
    parent=virsh,
)
def virsh_list(file: Path, /, *, at: str | None = None, vcpus: Flag = False, format: TableOrJson = "table") -> None:
    """Run a scenario up to a time, and print the VMs on the host then, as `virsh list` would.

    Args:
        file: Scenario file.
        at: Time since the host started, warm-up included, just before the events of that very time; the end if left
            out.
        vcpus: Every vCPU of each, as `virsh vcpuinfo` would.
    """
    scenario = _scenario_of(file, "kvm", "list")
    report = _listing(scenario, at)
    if format == "json":
        print(report)
        return
    domains = list(_machines(scenario, json.loads(report)["domains"]))
    if vcpus:
        _show_vcpuinfo(domains, scenario.host.pcpus)
    else:
        _show_machines(domains)


def _scenario_of(file: Path, hypervisor: str, verb: str) -> Scenario:
    """The scenario of a host of that hypervisor.

    Raises:
        RequestError: the host has another hypervisor.
    """
    from vcpulab.hypervisors.commands import HYPERVISORS

    scenario = files.load(file)
    present = scenario.host.hypervisor
    if present != hypervisor:
        tool = {"xen": "xl", "kvm": "virsh"}[present]
        reason = f"its host is a {HYPERVISORS[present]} host (host.hypervisor)"
        raise RequestError(reason, field="file", found=file, hint=f"vcpulab {tool} {verb} {files.word(file)}")
    return scenario


def _commands(scenario: Scenario, toolstack: TypedFor, format: TableOrJson) -> None:
    from vcpulab.hypervisors.commands import commands
    from vcpulab.hypervisors.steps import script

    steps = commands(scenario, toolstack)
    if format == "json":
        print(as_json([asdict(step) for step in steps]))
    else:
        for line in script(steps):
            print(line)


def _listing(scenario: Scenario, at: str | None) -> str:
    from vcpulab._engine import listing

    try:
        return listing(scenario._engine, at)
    except ScenarioError:
        raise
    except ValueError as error:
        raise RequestError(f"found `{at}`; {error}", field="at") from None


def _machines(scenario: Scenario, domains: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The domains that are virtual machines: neither daemons nor threads of the host."""
    names = {name for name, domain in scenario.domains.items() if not domain.daemon}
    return (domain for domain in domains if domain["name"] in names)


def _show_list(listing: Mapping[str, Any]) -> None:
    """Prints domains in the format of `xl list`, without memory."""
    print(f"{'Name':<40}{'ID':>5}{'VCPUs':>6}\tState\tTime(s)")
    for domain in listing["domains"]:
        online = sum(vcpu["pcpu"] is not None for vcpu in domain["vcpus"])
        seconds = domain["time_ns"] / 1e9
        print(f"{domain['name']:<40}{domain['id']:>5}{online:>6}\t{domain['state']}\t{seconds:>7.1f}")


def _show_vcpu_list(listing: Mapping[str, Any]) -> None:
    """Prints vCPUs in the format of `xl vcpu-list`."""
    print(f"{'Name':<32}{'ID':>6}{'VCPU':>6}{'CPU':>6}{'State':>8}{'Time(s)':>10} Affinity (Hard / Soft)")
    for domain in listing["domains"]:
        for vcpu in domain["vcpus"]:
            pcpu = "-" if vcpu["pcpu"] is None else vcpu["pcpu"]
            where = f"{domain['name']:<32}{domain['id']:>6}{vcpu['vcpu']:>6}{pcpu:>6}"
            affinity = f"{vcpu['affinity']} / {vcpu['soft_affinity']}"
            print(f"{where}{vcpu['state']:>8}{vcpu['time_ns'] / 1e9:>10.1f} {affinity}")


_MACHINE_STATES = {"c": "crashed", "d": "in shutdown", "s": "in shutdown", "p": "paused"}
"""Letters of `xl list` to states of `virsh`, the first match counts; without a match a domain is running."""


def _show_machines(domains: Iterable[Mapping[str, Any]]) -> None:
    """Prints domains in the format of `virsh list`."""
    domains = list(domains)
    width = max((len(domain["name"]) for domain in domains), default=4) + 3
    heading = f" {'Id':<5}{'Name':<{width}}State"
    print(f"{heading}\n{'-' * (len(heading) + 4)}")
    for domain in domains:
        letters = (state for letter, state in _MACHINE_STATES.items() if letter in domain["state"])
        print(f" {domain['id']:<5}{domain['name']:<{width}}{next(letters, 'running')}")


def _show_vcpuinfo(domains: Iterable[Mapping[str, Any]], pcpus: int) -> None:
    """Prints the vCPUs of each domain in the format of `virsh vcpuinfo`, with the domain's name above."""
    for domain in domains:
        print(f"{domain['name']}\n")
        for vcpu in (online for online in domain["vcpus"] if online["pcpu"] is not None):
            allowed = pcpu_set(vcpu["affinity"], pcpus)
            rows = {
                "VCPU": vcpu["vcpu"],
                "CPU": vcpu["pcpu"],
                "State": "running" if "r" in vcpu["state"] else "blocked" if "b" in vcpu["state"] else "offline",
                "CPU time": f"{vcpu['time_ns'] / 1e9:.1f}s",
                "CPU Affinity": "".join("y" if pcpu in allowed else "-" for pcpu in range(pcpus)),
            }
            print("".join(f"{f'{name}:':<16}{value}\n" for name, value in rows.items()))
