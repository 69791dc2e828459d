"""`vcpulab xl` and `vcpulab virsh`: commands to type on a Xen or a KVM host, and the output that they would print."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vcpulab.cli import files
from vcpulab.cli.options import Flag, TableOrJson, TypedFor, command, group
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.scenario.scenario import Scenario
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
    from vcpulab.cli import views

    report = _listing(_scenario_of(file, "xen", "list"), at)
    if format == "json":
        print(report)
    elif vcpus:
        views.show_vcpu_list(json.loads(report))
    else:
        views.show_list(json.loads(report))


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
    from vcpulab.cli import views

    scenario = _scenario_of(file, "kvm", "list")
    report = _listing(scenario, at)
    if format == "json":
        print(report)
        return
    domains = list(_machines(scenario, json.loads(report)["domains"]))
    if vcpus:
        views.show_vcpuinfo(domains, scenario.to_dict()["host"]["pcpus"])
    else:
        views.show_machines(domains)


def _scenario_of(file: Path, hypervisor: str, verb: str) -> Scenario:
    """The scenario of a host of that hypervisor.

    Raises:
        RequestError: the host has another hypervisor.
    """
    from vcpulab.hypervisors.commands import HYPERVISORS
    from vcpulab.hypervisors.settings import hypervisor_of

    scenario = files.load(file)
    present = hypervisor_of(scenario.to_dict())
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
    tables = scenario.to_dict()["domain"]
    return (domain for domain in domains if domain["name"] in tables and not tables[domain["name"]].get("daemon"))
