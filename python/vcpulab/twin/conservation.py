"""Conservation of CPU time: in its own setting a twin's VMs get what the recorded ones had."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.errors import RequestError
from vcpulab.formats import Recording
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.scoring import rate
from vcpulab.twin.sources import Sources

POINTS = 2.0
"""The error up to which a VM's CPU time is repeated, % of a CPU for each of its vCPUs. Assumed."""
PERCENT = 20.0
"""The error up to which a VM's CPU time differs by chance, % of the recorded CPU time: the recorded kernel may have
distributed CPUs differently. With a larger error the twin is refused. Assumed."""
_UNKNOWN_MOST = 0.75
"""The largest fraction of all CPUs' time that no record covers. Assumed."""
_UNRECORDED = 0.02
"""The largest fraction of switches without a counterpart in a complete recording. Assumed."""
_REPLICATIONS = 3
"""The number of replications of the check. Assumed."""
_SPAN_NS_MOST = 4_000_000_000
"""The longest simulation of the check, ns. Assumed."""


@dataclass(frozen=True)
class Share:
    """The CPU time of a VM, % of a CPU."""

    vm: str
    vcpus: int
    recorded: float
    simulated: float

    @property
    def is_conserved(self) -> bool:
        """`True`: the CPU time is the recorded one, within `POINTS`."""
        return self._off <= POINTS * self.vcpus

    @property
    def is_lost(self) -> bool:
        """`True`: the CPU time differs from the recorded one by more than chance explains."""
        return not self.is_conserved and self._off > PERCENT / 100 * self.recorded

    @property
    def _off(self) -> float:
        return abs(self.simulated - self.recorded)

    def __str__(self) -> str:
        return f"{self.vm} gets {self.simulated:.3g} % of a CPU and had {self.recorded:.3g} %"


def shares(scenario: Scenario, sources: Sources, recording: Recording) -> list[Share]:
    """The CPU time of each VM, recorded and simulated by its twin."""
    span_ns = recording.summary["span_ns"]
    lasts = {"run.duration": f"{min(span_ns, _SPAN_NS_MOST)}ns", "run.replications": _REPLICATIONS}
    domains = run(scenario.change(lasts)).df_domains()
    of_vms: dict[str, list[Mapping[str, Any]]] = {}
    for vcpu in recording.summary["vcpus"]:
        if not sources.is_daemon(vcpu["domain"]):
            of_vms.setdefault(sources.name(vcpu["domain"]), []).append(vcpu)
    shares_of_vms = []
    for name, vcpus in of_vms.items():
        rows = domains.filter(domain=name)
        if rows.is_empty():
            continue
        simulated = float((100 * rows["running_ns"] / rows["elapsed_ns"]).mean())  # type: ignore[arg-type]
        shares_of_vms.append(Share(name, len(vcpus), 100 * rate(vcpus, "running_ns", span_ns), simulated))
    return shares_of_vms


def check(scenario: Scenario, sources: Sources, recording: Recording) -> list[str]:
    """Refuses a twin that does not repeat the CPU time of its VMs.

    Returns:
        Notes on VMs whose CPU time it repeats only roughly.

    Raises:
        RequestError: such a twin.
    """
    summary = recording.summary
    unknown = sum(pcpu["unknown_ns"] for pcpu in summary["pcpus"]) / summary["span_ns"] / len(summary["pcpus"])
    if unknown > _UNKNOWN_MOST:
        cause, hint = next(_causes(sources, recording))
        raise RequestError(
            f"{sources.trace}: who ran is unknown for {100 * unknown:.3g} % of the time of all CPUs: {cause}",
            allowed=f"at most {100 * _UNKNOWN_MOST:g} %",
            hint=hint,
        )
    off = [share for share in shares(scenario, sources, recording) if not share.is_conserved]
    lost = next((share for share in off if share.is_lost), None)
    if lost is not None:
        cause, hint = next(_causes(sources, recording))
        raise RequestError(
            f"{sources.trace}: a twin of it does not repeat the CPU time of its VMs: {lost}; {cause}",
            allowed=f"{POINTS:g} points for each vCPU, or {PERCENT:g} %, more or less",
            hint=hint,
        )
    return [f"{share}: the recorded kernel dealt out CPUs otherwise than the simulated one" for share in off]


def _causes(sources: Sources, recording: Recording) -> Iterator[tuple[str, str]]:
    """The possible gaps of a recording, the likeliest first, and how to record them."""
    summary = recording.summary
    switches = sum(pcpu["switches"] for pcpu in summary["pcpus"])
    if summary["unrecorded"] > _UNRECORDED * switches:
        share = 100 * summary["unrecorded"] / switches
        yield (
            f"the recording is filtered: {share:.2g} % of all switches have no counterpart",
            "record without --filter, and all CPUs (perf sched record -a)",
        )
    if summary["gaps"]:
        yield (
            f"records were lost in {summary['gaps']} places",
            "record with larger buffers (perf sched record -m 64M; buffer_size_kb of ftrace)",
        )
    if sources.kvm is not None and not sources.kvm.linux.groups:
        yield (
            "no file says which weights and quotas the VMs have",
            "grep -rs . /sys/fs/cgroup/machine.slice --include='cpu.*' > groups.txt beside the recording",
        )
    yield (
        "what the recorded kernel did is not what the simulated scheduler does with the same demand",
        "say pinning, weights and quotas by more files (vcpulab twin --help), or record again",
    )
