"""Parameters of a KVM host, whose vCPUs are threads: quotas, the kernel's tunables, halt polling, slices."""

from collections.abc import Iterator, Mapping, Sequence

from vcpulab.advice.isolation import pinned_to
from vcpulab.advice.tuning.spaces import Option, Parameter
from vcpulab.hypervisors import groups, linux
from vcpulab.scenario.cgroups import WEIGHT
from vcpulab.scenario.model import Domain, Host
from vcpulab.scenario.parameters import Generation
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.threads import polls_us
from vcpulab.scenario.units import spans

TUNABLES_US: Mapping[str, Sequence[int]] = {
    "base_slice_us": (300, 500, 700, 1000, 1500, 2000, 3000, 5000, 10_000),
    "latency_us": (3000, 6000, 12_000, 18_000, 24_000, 48_000),
    "min_granularity_us": (300, 750, 1500, 2250, 3000, 5000, 10_000),
    "wakeup_granularity_us": (0, 500, 1000, 2000, 3000, 4000, 8000, 15_000),
    "bandwidth_slice_us": (500, 1000, 2000, 5000, 10_000),
}
"""Values from a fraction of the kernel's default on one CPU to several times the default on eight; the longest are
those of the profile `virtual-host` of `tuned`."""
POLLS_US = (0, 50, 100, 200, 400)
"""Values of halt polling: none, a quarter, a half, the kernel's default, twice the default."""
GROUP_WEIGHTS = (50, 100, 200, 400, 800, 1600, 3200)
"""Weights of slices."""
_PARTS = ("vcpu", "global")
"""Limits of each vCPU, and of the whole VM."""
_QUOTAS = tuple(f"{part}_quota_us" for part in _PARTS)


def host_parameters(scenario: Scenario) -> Iterator[Parameter]:
    """Halt polling, and the weights of slices with VMs if daemons run in other slices."""
    if scenario.host.hypervisor != "kvm":
        return
    if not scenario.host.polls_recorded:
        polls = polls_us(scenario.host)
        yield _numbers(["host", "halt_poll_us"], {*POLLS_US, polls}, polls)
    domains = scenario.domains.values()
    daemons = {_top(domain) for domain in domains if domain.daemon}
    for group in dict.fromkeys(_top(domain) for domain in domains if not domain.daemon):
        # The root group has no weight.
        if group and daemons - {group}:
            now = scenario.model.cgroups[group].weight if group in scenario.model.cgroups else WEIGHT
            yield _numbers(["cgroup", group, "weight"], {*GROUP_WEIGHTS, now}, now)
    yield from _emulators(scenario)


def _top(domain: Domain) -> str:
    return (domain.cgroup or "").split("/", 1)[0]


def _emulators(scenario: Scenario) -> Iterator[Parameter]:
    """Affinity of all VMs' emulator threads if vCPUs are pinned: the pCPUs without pinned vCPUs."""
    pinned = {name: pcpus for name, domain in scenario.domains.items() if (pcpus := pinned_to(domain)) is not None}
    free = sorted(set(range(scenario.host.pcpus)).difference(*pinned.values()))
    paths = {
        join(["domain", name, "emulator_affinity"]): spans(free)
        for name in pinned
        if scenario.domains[name].nic is not None or scenario.domains[name].disk is not None
    }
    if free and paths:
        options = (Option("as they are", None), Option(f"on pCPU {spans(free)}", paths))
        yield Parameter("host.emulator_affinity", options, 0, ordered=False)


def scheduler_parameters(generation: Generation, host: Host, scheduler: str) -> Iterator[Parameter]:
    """The tunables of a generation of a Linux scheduler that can be changed at run time."""
    params = generation.of_scope("global")
    for name, values in TUNABLES_US.items():
        if name in params:
            given = int(host.params.get(name, params[name].default))
            now = linux.by_cpus(name, host.pcpus, generation.name) if given == groups.NONE else given
            by_default = name != "bandwidth_slice_us"
            yield _numbers(["host", name], {*values, now}, now, scheduler, by_default=by_default)


def domain_parameters(generation: Generation, name: str, domain: Domain, scheduler: str | None) -> Iterator[Parameter]:
    """The limits of a VM, in tenths of its vCPUs' time; a limit that is set is searched by default."""
    params = generation.of_scope("domain")
    for part in _PARTS:
        quota, period = f"{part}_quota_us", f"{part}_period_us"
        if quota not in params:
            continue
        length = int(domain.params.get(period, params[period].default))
        top = length * (domain.vcpus if part == "global" else 1)
        now = int(domain.params.get(quota, groups.NONE))
        values = sorted({*(top * tenth // 10 for tenth in range(1, 10)), *([now] if now != groups.NONE else [])})
        options = [*(Option(str(value), value) for value in values), Option("none", groups.NONE)]
        labels = [option.label for option in options]
        index = labels.index("none" if now == groups.NONE else str(now))
        path = join(["domain", name, quota])
        yield Parameter(path, tuple(options), index, True, scheduler, by_default=now != groups.NONE)


def is_limit(field: str) -> bool:
    """Is the field a limit, whose last option is "none"?"""
    return field in _QUOTAS


def is_handled(field: str) -> bool:
    """Is the parameter searched here, or fixed in the kernel?"""
    return field in TUNABLES_US or field in linux.BUILT_IN or field.endswith("_quota_us")


def _numbers(
    where: Sequence[str], values: set[int], now: int, scheduler: str | None = None, *, by_default: bool = True
) -> Parameter:
    listed = sorted(values)
    options = tuple(Option(str(value), value) for value in listed)
    return Parameter(join(where), options, listed.index(now), True, scheduler, by_default)
