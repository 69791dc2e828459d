"""Commands on a random scenario: whatever they answer, each ends by itself and says what is wrong."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from subprocess import CompletedProcess

from support import run_vcpulab
from vcpulab import Scenario

FEW = ("--replications", "2")


def commands(scenario: Scenario, random: Random) -> list[tuple[str, ...]]:
    """Each command that takes a scenario, as it could be typed for this one, which is in `s.toml`."""
    table = scenario.to_dict()
    domain = random.choice(list(table["domain"]))
    address = random.choice([*table.get("client", {}), domain])
    is_kvm = table["host"].get("hypervisor") == "kvm"
    tool = "virsh" if is_kvm else "xl"
    toolstacks = ["libvirt", "proxmox", "cgroup"] if is_kvm else ["xl", "xapi", "libvirt"]
    counters = random.choice(["esx", "kvm", "xapi", "hyperv"])
    return [
        ("check", "s.toml"),
        ("lint", "s.toml", *FEW),
        ("bounds", "s.toml"),
        ("bounds", "s.toml", "--check", *FEW),
        ("explain", "s.toml", *FEW),
        ("explain", "s.toml", "--slo", f"{address}.response_p99", *FEW),
        ("whatif", "s.toml", "--set", f"{domain}.vcpus=2", *FEW),
        ("run", "s.toml", "--waits", "--io", "--all"),
        ("run", "s.toml", "--format", "json"),
        ("run", "s.toml", "--counters", counters),
        (tool, "commands", "s.toml", "--toolstack", random.choice(toolstacks)),
        (tool, "list", "s.toml"),
        ("monitor", "xencpu", "s.toml"),
        ("monitor", "xenoprof", "s.toml"),
        ("top", "s.toml", "-b", "-i", "2", "-n", "-x", "-v"),
        ("manage", "s.toml", "--domain", domain, "--interval", "5ms", *FEW),
        ("capacity", "s.toml", "--vary", f"copies:{domain}", "--budget", "2s"),
        ("place", "s.toml", "--budget", "2s"),
        ("tune", "s.toml", "--trials", "2", *FEW, "--out", "tuned"),
        ("tune", "s.toml", "--minimise", f"{address}.response_p99", "--trials", "8", *FEW, "--out", "tuned-one"),
    ]


def fault(ended: CompletedProcess[str], arguments: Sequence[str]) -> str | None:
    """What is wrong with how a command ended."""
    typed = " ".join(arguments)
    if ended.returncode not in (0, 1, 2):
        return f"{typed}: exit status {ended.returncode}: {ended.stderr[-500:]}"
    if "Traceback" in ended.stderr:
        return f"{typed}: {ended.stderr[-800:]}"
    if "nan" in ended.stdout.lower().split():
        return f"{typed}: prints nan"
    if arguments[0] == "check" and ended.returncode != 0:
        return f"{typed}: {ended.stderr[-500:]}"
    return None


def faults_of(scenario: Scenario, random: Random, count: int, folder: Path) -> list[str]:
    """What is wrong with how some of the commands end for a scenario."""
    folder.joinpath("s.toml").write_text(scenario.to_toml(), encoding="utf-8")
    typed = random.sample(commands(scenario, random), count)
    found = (fault(run_vcpulab(arguments, folder), arguments) for arguments in typed)
    return [problem for problem in found if problem is not None]
