"""Conservation of CPU time: in its own setting a twin's VMs get what the recorded ones had."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from vcpulab.errors import RequestError
from vcpulab.formats import Recording
from vcpulab.results.run import run
from vcpulab.scenario.scenario import Scenario
from vcpulab.twin.build import Made
from vcpulab.twin.scoring import rate
from vcpulab.twin.sources import Sources

POINTS = 2.0
"""The largest distance of a VM's recorded CPU time from those that its twin gets in replications, % of a CPU for each
of its vCPUs: with a larger one the twin is refused. Assumed."""
_PERCENT_INCOMPLETE = 20.0
"""That distance, % of the recorded CPU time, where it is larger and up to `UNRECORDED` of the switches are missing: the
threads of which records are missing are in no twin, and can move others between CPUs. Assumed."""
_UNKNOWN_MOST = 0.75
"""The largest fraction of all CPUs' time that no record covers. Assumed."""
_UNRECORDED = 0.02
"""The largest fraction of switches without a counterpart in a recording that is not filtered. Assumed."""
_REPLICATIONS = 3
"""The number of replications that suffice if their means are within `POINTS` of what was recorded. Assumed."""
ORDERS = 20
"""The number of further replications if they are not, in each of which VMs and threads start in another order. A twin
that is right has a recorded CPU time outside of all of these in 8 % of recordings by chance, and more than `POINTS`
outside more rarely."""
_SPAN_NS_MOST = 4_000_000_000
"""The longest simulation of the check, ns. Assumed."""


@dataclass(frozen=True)
class Share:
    """The CPU time of a VM, % of a CPU."""

    vm: str
    vcpus: int
    recorded: float
    simulated: tuple[float, ...]
    """The CPU time that its twin got in each replication."""
    left_out: float
    """The CPU time of the threads that recorded, which a twin leaves to VMs."""
    lacks_records: bool
    """`True`: records of some threads are missing, but not of as many as in a filtered recording."""

    @property
    def mean(self) -> float:
        """The mean of the simulated CPU times."""
        return sum(self.simulated) / len(self.simulated)

    @property
    def is_conserved(self) -> bool:
        """`True`: the mean is the recorded CPU time, within `POINTS`."""
        return self._beyond(self.mean, self.mean) <= POINTS * self.vcpus

    @property
    def is_in_range(self) -> bool:
        """`True`: some replications got at most as much as was recorded, and some at least as much."""
        return self._outside == 0

    @property
    def is_lost(self) -> bool:
        """`True`: the recorded CPU time is outside those of all replications by more than chance explains."""
        incomplete = _PERCENT_INCOMPLETE / 100 * self.recorded if self.lacks_records else 0.0
        return self._outside > max(POINTS * self.vcpus, incomplete)

    @property
    def _outside(self) -> float:
        return self._beyond(min(self.simulated), max(self.simulated))

    def _beyond(self, least: float, most: float) -> float:
        """The distance of the recorded CPU time from a range."""
        return max(least - self.left_out - self.recorded, self.recorded - most, 0.0)

    def __str__(self) -> str:
        least, most = (f"{share:.3g}" for share in (min(self.simulated), max(self.simulated)))
        simulated = least if least == most else f"{least} to {most}"
        return f"{self.vm} gets {simulated} % of a CPU and had {self.recorded:.3g} %"


def shares(made: Made, sources: Sources, recording: Recording) -> list[Share]:
    """The CPU time of each VM while it was there, recorded and simulated by its twin.

    Which CPUs threads are on at the beginning decides for seconds what VMs get, and depends on the order in which the
    threads started, which no recording has. So further replications start them in other orders.
    """
    span_ns = recording.summary["span_ns"]
    lasts = {"run.duration": f"{min(span_ns, _SPAN_NS_MOST)}ns", "run.replications": _REPLICATIONS}
    short = made.scenario.change(lasts)
    vcpus_of_vms: dict[str, list[Mapping[str, Any]]] = {}
    for vcpu in recording.summary["vcpus"]:
        if not sources.is_daemon(vcpu["domain"]):
            absent_ns = made.absent_ns.get((vcpu["domain"], vcpu["vcpu"]), 0)
            vcpus_of_vms.setdefault(sources.name(vcpu["domain"]), []).append(_while_there(vcpu, absent_ns))
    first = _simulated(short)
    vms = {name: vcpus for name, vcpus in vcpus_of_vms.items() if name in first}
    roles, lacks_records = sources.roles, 0 < _unrecorded(recording) <= _UNRECORDED
    left_out = 100 * roles.recorder_ns / roles.span_ns
    few = []
    for name, vcpus in vms.items():
        recorded = 100 * rate(vcpus, "running_ns", span_ns)
        few.append(Share(name, len(vcpus), recorded, tuple(first[name]), left_out, lacks_records))
    if all(share.is_conserved for share in few):
        return few
    further = [_simulated(reordered) for reordered in in_other_orders(short)]
    times = {share.vm: tuple(time for simulated in further for time in simulated[share.vm]) for share in few}
    return [replace(share, simulated=share.simulated + times[share.vm]) for share in few]


def _while_there(vcpu: Mapping[str, Any], absent_ns: int) -> Mapping[str, Any]:
    """The table of a vCPU in which the time before it was there is unknown."""
    absent_ns = min(absent_ns, vcpu["blocked_ns"] + vcpu["offline_ns"])
    return {**vcpu, "unknown_ns": vcpu["unknown_ns"] + absent_ns}


def _simulated(scenario: Scenario) -> dict[str, list[float]]:
    """The CPU time of each domain in each replication, % of a CPU."""
    domains = run(scenario, waits=False).df_domains()
    percent = (100 * domains["running_ns"] / domains["elapsed_ns"]).to_list()
    times: dict[str, list[float]] = {}
    for name, time in zip(domains["domain"], percent, strict=True):
        times.setdefault(name, []).append(time)
    return times


def in_other_orders(scenario: Scenario) -> Iterator[Scenario]:
    """The scenario with a single replication, with other seeds and with its domains in other orders.

    A domain starts its vCPUs in the order of the scenario, on the CPUs that are idle then.
    """
    document = scenario.written()
    document["run"] = {**document.get("run", {}), "replications": 1}
    for number in range(1, ORDERS + 1):
        names = list(document["domain"])
        Random(number).shuffle(names)
        domains = {name: document["domain"][name] for name in names}
        yield Scenario.from_dict({**document, "domain": domains, "seed": scenario.seed + number})


def check(made: Made, sources: Sources, recording: Recording) -> list[str]:
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
    off = [share for share in shares(made, sources, recording) if not share.is_conserved]
    lost = next((share for share in off if share.is_lost), None)
    if lost is not None:
        cause, hint = next(_causes(sources, recording))
        raise RequestError(
            f"{sources.trace}: a twin of it does not repeat the CPU time of its VMs: {lost}; {cause}",
            allowed=f"at most {POINTS:g} points for each vCPU outside of what {len(lost.simulated)} replications get",
            hint=hint,
        )
    return [_note(share) for share in off]


def _note(share: Share) -> str:
    if share.is_in_range:
        reason = "how much depends on the CPUs on which threads started, which no recording shows"
    elif share.lacks_records:
        reason = "records of some threads are missing, and the twin has nothing of what these did"
    else:
        reason = f"it is off by at most {POINTS:g} points for each vCPU"
    return f"{share}: {reason}"


def _unrecorded(recording: Recording) -> float:
    """The fraction of all switches of which the record is missing."""
    switches = sum(pcpu["switches"] for pcpu in recording.summary["pcpus"])
    return float(recording.summary["unrecorded"] / max(switches, 1))


def _causes(sources: Sources, recording: Recording) -> Iterator[tuple[str, str]]:
    """The possible gaps of a recording, the likeliest first, and how to record them."""
    summary = recording.summary
    if (unrecorded := _unrecorded(recording)) > _UNRECORDED:
        yield (
            f"the recording is filtered: {100 * unrecorded:.2g} % of all switches have no counterpart",
            "record without --filter, and all CPUs (perf sched record -a)",
        )
    elif unrecorded:
        yield (
            f"records of some threads are missing: {100 * unrecorded:.2g} % of all switches have no counterpart",
            "record all threads and CPUs (perf sched record -a)",
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
