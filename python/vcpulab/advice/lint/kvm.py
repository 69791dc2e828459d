"""Rules for KVM hosts: quotas, weights, control groups, threads beside vCPUs, halt polling."""

from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import Any

from vcpulab.advice import runstates
from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lint.host import FEW_WAITS, GROUP_WEIGHT, IDLE, OF_WAITS, WAITS, Finding, Host, of_domain
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.results.statistics import number
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import join
from vcpulab.scenario.threads import HOST, HostThread, host_threads, polls_us
from vcpulab.scenario.units import pcpu_set, spans

VCPUS_PER_PCPU = 16
"""The default of OpenStack's `cpu_allocation_ratio`."""
PERIOD_MOST_US = 20_000
"""The longest period of a shortened limit for a whole VM: such a limit freezes the VM for less than the period."""
QUOTA_LEAST_US = 1_000
"""The least quota that libvirt and the kernel accept."""
SLICE_US = 5_000
"""The default of `bandwidth_slice_us`, the time that a pCPU takes from a group's quota at once."""
MOST_PERIODS = 0.5
"""The fraction of the periods above which a used-up quota is no exception."""
LIGHT = 0.5
"""The fraction of the weight of the vCPUs that it waits behind below which a vCPU is light. Assumed."""
MILDER = (4, 16)
"""The divisors of a weight that does harm, for further tries."""
POLLED = 0.02
"""The fraction of the time above which useless polling matters. Assumed."""

rule = Rules[Callable[[Host], Iterator[Finding]]](Stands.NEVER)


@rule("vm-quota-freezes")
def vm_quota_freezes(host: Host) -> Iterator[Finding]:
    """A quota for a whole VM stops all its threads at once in every period.

    Mechanism: The quota is one account for all vCPUs, the emulator, vhost and I/O threads of the VM. With many vCPUs it
    is used up early in the period. All of them then stop until the next period, including a vCPU that holds a lock or
    has a packet to send. Each pCPU takes {SLICE_US} µs from the account at a time: if the quota is smaller than that
    for each vCPU, some vCPUs get nothing.

    Evidence: The VM has several vCPUs, uses more than {NEAR_FULL:.0%} of its quota, and its vCPUs wait for more than
    {FEW_WAITS:.0%} of the time. If the quota is as large as its vCPUs alone can use, but the threads that serve the VM
    need a part of it, it is used up in more than {MOST_PERIODS:.0%} of the periods instead. The finding contains the
    share of periods in which the quota is used up, like `nr_throttled`.

    Silent: No finding if the VM needs less than its quota, or if another limit improves nothing.

    Fix: Set a quota of the same sum for each vCPU, which stops one vCPU at a time; otherwise the same limit with
    periods of {PERIOD_MOST_US} µs or shorter.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/scheduler/sched-bwc`; libvirt's domain XML, `cputune` (`global_quota`, `quota`).
    """
    for domain in host.machines:
        vcpus, quota = host.domains[domain].vcpus, host.value(domain, "global_quota_us") or -1
        period = host.value(domain, "global_period_us") or 1
        if quota < 0 or vcpus < 2 or host.gotten(domain) < NEAR_FULL * 100 * quota / period:
            continue
        path = of_domain(domain, "global_quota_us")
        if quota >= vcpus * period:
            threads = serving(host, domain)
            if threads and host.throttled(domain) > MOST_PERIODS:
                reason = (
                    f"its quota of {number(quota / period)} pCPUs is no more than its {vcpus} vCPUs use, and its "
                    f"{in_short(threads)} needs a part of it: it is used up in {100 * host.throttled(domain):.0f} % of "
                    "the periods, and the whole VM then stands still until the next one"
                )
                fixes = same_sum(host, domain)
                yield Finding(path, reason, fixes[0], otherwise=tuple(fixes[1:]))
            continue
        if host.mean_waited(domain) < FEW_WAITS:
            continue
        frozen = (period - quota / min(vcpus, host.scenario.host.pcpus)) / 1000
        reason = (
            f"its {vcpus} vCPUs share {number(quota / 1000)} ms in every {number(period / 1000)} ms: all at work, they "
            f"use it up early, and the whole VM stands still for up to {number(frozen)} ms, its emulator and vhost "
            f"threads too; it is used up in {100 * host.throttled(domain):.0f} % of the periods, and its vCPUs wait "
            f"for {100 * host.mean_waited(domain):.0f} % of the time"
        )
        if quota < vcpus * (host.setting(domain, "bandwidth_slice_us") or SLICE_US):
            reason += f"; and {number(quota / 1000)} ms are less than a slice for each of them"
        fixes = same_sum(host, domain)
        yield Finding(path, reason, fixes[0], otherwise=tuple(fixes[1:]))


def serving(host: Host, domain: str) -> list[str]:
    """The kinds of the threads that serve a VM and count for its quota."""
    kinds = [thread.kind for thread in host_threads(host.scenario.model) if thread.domain == domain]
    return ["I/O thread" if kind == "iothread" else f"{kind} thread" for kind in kinds]


def same_sum(host: Host, domain: str) -> list[dict[str, Any]]:
    """Limits with the same sum as a VM's quota that freeze fewer vCPUs, or for a shorter time."""
    quota, period = host.value(domain, "global_quota_us") or 1, host.value(domain, "global_period_us") or 1
    fixes = [_for_each_vcpu(host, domain, quota / period)]
    length = min(period, PERIOD_MOST_US)
    amount = quota * length // period
    if length < period and amount >= QUOTA_LEAST_US:
        fixes.append({of_domain(domain, "global_period_us"): length, of_domain(domain, "global_quota_us"): amount})
    if host.scenario.host.toolstack == "proxmox":
        # Proxmox has no limits of single vCPUs.
        fixes.reverse()
    return fixes


def _for_each_vcpu(host: Host, domain: str, share: float) -> dict[str, Any]:
    period = host.value(domain, "vcpu_period_us") or 1
    each = max(QUOTA_LEAST_US, int(share * period / host.domains[domain].vcpus))
    return {
        of_domain(domain, "vcpu_quota_us"): each,
        **host.taken_out(domain, *(f"global_{name}_us" for name in ("quota", "period", "burst"))),
    }


@rule("many-vcpus-per-pcpu", stands=Stands.ALWAYS)
def many_vcpus_per_pcpu(host: Host) -> Iterator[Finding]:
    """The VMs have more than {VCPUS_PER_PCPU} vCPUs for each pCPU, and wait.

    Mechanism: Each vCPU that wants to run is a thread in a queue. With many vCPUs in one queue, each waits for the
    slices of all others, and slices do not get shorter than the scheduler's base slice.

    Evidence: The VMs have more vCPUs than {VCPUS_PER_PCPU} times the pCPUs, and the vCPUs of at least one VM wait for
    more than {WAITS:.0%} of the time.

    Silent: No finding if vCPUs mostly sleep and no VM waits.

    Fix: Remove vCPUs from VMs that want at most half of theirs. If no VM does, move VMs to other hosts; `vcpulab place`
    finds a placement.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: OpenStack Nova's `cpu_allocation_ratio`, whose default is {VCPUS_PER_PCPU}.
    """
    pcpus = host.scenario.host.pcpus
    vcpus = sum(host.domains[domain].vcpus for domain in host.machines)
    waiting = [domain for domain in host.machines if host.mean_waited(domain) > WAITS]
    if vcpus <= VCPUS_PER_PCPU * pcpus or not waiting:
        return
    fewer = {
        of_domain(domain, "vcpus"): wanted
        for domain in host.machines
        if isinstance(host.domains[domain].affinity, str)
        and 2 * (wanted := max(1, round(host.wanted(domain)))) <= host.domains[domain].vcpus
    }
    worst = max(waiting, key=host.mean_waited)
    reason = (
        f"{vcpus} vCPUs on {pcpus} pCPUs, {number(vcpus / pcpus)} for each: {in_short(waiting)} wait, {worst} for "
        f"{100 * host.mean_waited(worst):.0f} % of the time"
    )
    yield Finding("host.pcpus", reason, fewer)


@rule("emulator-beside-vcpus")
def emulator_beside_vcpus(host: Host) -> Iterator[Finding]:
    """Emulator and vhost threads run on the pCPUs to which vCPUs are pinned.

    Mechanism: Pinning of vCPUs keeps other VMs away, but not the host's own threads: the threads for a VM's packets and
    disk requests may run anywhere unless they are pinned, too. Each takes the pCPU from the vCPU that waits for its
    answer, and a pinned vCPU cannot move.

    Evidence: The VM's vCPUs are pinned, its emulator threads may run on the same pCPUs, and more than {OF_WAITS:.0f} %
    of the waits of its vCPUs are for the host's own threads.

    Silent: No finding if vCPUs are pinned to all pCPUs, so that no other place is left, or if another place improves
    nothing.

    Fix: Pin the emulator threads, and the I/O thread, to the pCPUs without pinned vCPUs.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: libvirt's domain XML, `cputune` (`emulatorpin`, `iothreadpin`); Red Hat's guide to virtualization tuning,
    the chapter on NUMA and pinning.
    """
    pcpus = set(range(host.scenario.host.pcpus))
    masks = {domain: set(chain.from_iterable(host.affinity(domain))) for domain in host.machines}
    pinned = {domain: mask for domain, mask in masks.items() if mask != pcpus}
    free = pcpus.difference(*pinned.values())
    for domain, mask in pinned.items():
        kinds = [kind for kind in ("emulator", "iothread") if mask & host.thread_affinity(domain, kind)]
        behind = host.behind_host(domain)
        if not kinds or not free or behind < OF_WAITS:
            continue
        path = of_domain(domain, f"{kinds[0]}_affinity")
        reason = (
            f"its vCPUs are pinned to pCPU {spans(sorted(mask))}, and so may its {' and '.join(kinds)} threads run "
            f"there: {behind:.0f} % of its vCPUs' waits are for threads of the host, while no vCPU is pinned to pCPU "
            f"{spans(sorted(free))}"
        )
        yield Finding(path, reason, {of_domain(domain, f"{kind}_affinity"): spans(sorted(free)) for kind in kinds})


@rule("light-vcpus")
def light_vcpus(host: Host) -> Iterator[Finding]:
    """A large VM has less weight for each vCPU than the small VMs that it waits for.

    Mechanism: `cpu_shares` and `cpu.weight` belong to the VM, not to a vCPU. A VM with eight vCPUs and the default
    weight shares it among them: each has an eighth of the weight of the vCPU of a small VM with the same weight.

    Evidence: The VM has less than {LIGHT:.0%} of the weight for each vCPU that the VMs have that it mainly waits for,
    and its vCPUs wait for more than {WAITS:.0%} of the time.

    Silent: No finding if the VM serves nothing, or if a larger weight improves nothing or costs other services more
    than it gains. No finding where the kernel counts a weight for each busy vCPU (7.3, unless `cgroup_mode` is `smp`).

    Fix: Set as much weight for each vCPU as those VMs have. If that does harm, half of it.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/admin-guide/cgroup-v2`, `cpu.weight`; libvirt's domain XML, `cputune` (`shares`).
    """
    for domain in host.machines:
        if host.waited(domain) < WAITS or not host.serves(domain) or host.weighs_each_vcpu(domain):
            continue
        own, vcpus = host.value(domain, "weight") or GROUP_WEIGHT, host.domains[domain].vcpus
        behind = [name for name, share in host.behind(domain) if name in host.machines and share >= OF_WAITS]
        each = {name: (host.value(name, "weight") or GROUP_WEIGHT) / host.domains[name].vcpus for name in behind}
        each.pop(domain, None)
        heavy = {name: weight for name, weight in each.items() if own / vcpus < LIGHT * weight}
        if not heavy:
            continue
        path = of_domain(domain, "weight")
        most = max(heavy.values())
        fair = min(host.weight_most, round(most * vcpus))
        reason = (
            f"weight {own} for {vcpus} vCPUs is {number(own / vcpus)} for each, beside {number(most)} of "
            f"{in_short(list(heavy))}: its vCPUs wait for {100 * host.waited(domain):.0f} % of the time"
        )
        half = round(fair / 2)
        yield Finding(path, reason, {path: fair}, otherwise=({path: half},) if half > own else ())


@rule("weight-per-busy-vcpu")
def weight_per_busy_vcpu(host: Host) -> Iterator[Finding]:
    """A weight that was raised for a VM with many vCPUs counts for each of them on a kernel of 7.3.

    Mechanism: Up to 7.2 the weight of a VM is divided among its busy vCPUs, so a large VM needs a larger weight. From
    7.3 on the weight counts for each busy vCPU. The same weight then gives the VM that many times the CPU time, which
    other VMs lose.

    Evidence: The VM has several vCPUs and a larger weight than a VM that serves, waits for more than {WAITS:.0%} of the
    time, and does so for it in more than {OF_WAITS:.0f} % of its waits.

    Silent: No finding if `cgroup_mode` is `smp`, or if a smaller weight improves nothing or costs other services more
    than it gains.

    Fix: Divide the weight by the number of vCPUs, but not below that of the VM that waits.

    Schedulers: `linux-eevdf` from 7.3 on.

    Sources: Linux's `/sys/kernel/debug/sched/cgroup_mode`.
    """
    for domain in host.machines:
        weight, vcpus = host.value(domain, "weight") or GROUP_WEIGHT, host.domains[domain].vcpus
        if vcpus < 2 or not host.weighs_each_vcpu(domain):
            continue
        lighter = {
            name: own
            for name in host.machines
            if name != domain and host.serves(name) and host.waited(name) > WAITS
            if (own := host.value(name, "weight") or GROUP_WEIGHT) < weight
            if dict(host.behind(name)).get(domain, 0.0) >= OF_WAITS
        }
        if not lighter:
            continue
        path = of_domain(domain, "weight")
        first = max(lighter, key=host.waited)
        reason = (
            f"weight {weight} counts for each of its busy vCPUs, of {vcpus}, beside {lighter[first]} of {first}, which "
            f"waits for {100 * host.waited(first):.0f} % of the time"
        )
        yield Finding(path, reason, {path: max(*lighter.values(), weight // vcpus, 1)})


@rule("machines-weigh-as-one")
def machines_weigh_as_one(host: Host) -> Iterator[Finding]:
    """All VMs together have the weight of the host's services.

    Mechanism: Control groups share CPU time level by level. At the top level, `machine.slice` with all VMs is beside
    `system.slice` with all services, each with weight {GROUP_WEIGHT}. If the host is full and services want to run, all
    VMs together get half of it, regardless of their own weights.

    Evidence: VMs wait for more than {WAITS:.0%} of the time, more than {OF_WAITS:.0f} % of that for daemons in another
    slice, and the number of VMs is larger than the ratio of the slices' weights.

    Silent: No finding if no daemon wants much CPU time, or if a larger weight improves nothing.

    Fix: Set a weight of the VMs' slice of {GROUP_WEIGHT} for each VM in it; if that starves a daemon, a quarter of it,
    or a sixteenth.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/admin-guide/cgroup-v2`, weights; `systemd.special(7)`, `machine.slice` and
    `system.slice`; libvirt's page on control groups.
    """
    inside: dict[str, list[str]] = {}
    for domain in host.machines:
        if host.top_group(domain):
            inside.setdefault(host.top_group(domain), []).append(domain)
    for group, machines in inside.items():
        daemons = [daemon for daemon in host.daemons if host.top_group(daemon) != group]
        behind = {
            machine: sum(share for by, share in host.behind(machine) if by in daemons)
            for machine in machines
            if host.waited(machine) > WAITS
        }
        waiting = [machine for machine, share in behind.items() if share >= OF_WAITS]
        weight = host.group_weight(group)
        if not waiting or weight >= min(host.weight_most, GROUP_WEIGHT * len(machines)):
            continue
        path = join(["cgroup", group, "weight"])
        first = max(waiting, key=lambda machine: behind[machine])
        reason = (
            f"all {len(machines)} VMs in it weigh {weight} together, beside the slice of {in_short(daemons)}: {first} "
            f"waits for {100 * host.waited(first):.0f} % of the time, {behind[first]:.0f} % of that for daemons"
        )
        wanted = min(host.weight_most, GROUP_WEIGHT * len(machines))
        milder = [{path: value} for part in MILDER if (value := round(wanted / part)) > weight]
        yield Finding(path, reason, {path: wanted}, otherwise=tuple(milder))


@rule("real-time-vcpus")
def real_time_vcpus(host: Host) -> Iterator[Finding]:
    """The vCPUs of a VM under `SCHED_FIFO` or `SCHED_RR` keep other domains from shared pCPUs.

    Mechanism: Threads of a real-time class run before all others for as long as they want: weights and quotas of groups
    apply to the fair class alone. A guest that computes, or spins, takes its pCPUs for good; even the emulator and
    vhost threads of its own VM wait.

    Evidence: Other domains, or threads that serve them, may run on the same pCPUs and wait for more than {WAITS:.0%} of
    the time, more than {OF_WAITS:.0f} % of that for the VM.

    Silent: No finding if the VM has these pCPUs for itself.

    Fix: Use `SCHED_OTHER`.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: `sched(7)`; libvirt's domain XML, `vcpusched`.
    """
    for domain in host.machines:
        policy = host.domains[domain].sched_policy
        if policy not in ("fifo", "rr"):
            continue
        mask = set(chain.from_iterable(host.affinity(domain)))
        waiting = {
            name: share
            for name in host.domains
            if name != domain
            and host.waited(name) > WAITS
            and mask & set(chain.from_iterable(host.affinity(name)))
            and (share := dict(host.behind(name)).get(domain, 0.0)) >= OF_WAITS
        }
        threads = list(_threads_behind(host, domain, mask))
        if not waiting and not threads:
            continue
        path = of_domain(domain, "sched_policy")
        names = [*waiting, *(str(thread) for thread, _ in threads)]
        longest = {
            **{name: host.waited(name) for name in waiting},
            **{str(thread): waited for thread, waited in threads},
        }
        worst = max(longest, key=lambda name: longest[name])
        verb = "waits" if len(names) == 1 else "wait"
        reason = (
            f"its vCPUs run under SCHED_{policy.upper()} on pCPU {spans(sorted(mask))}, which are not theirs alone: "
            f"{in_short(names)} {verb} for them, {worst} for {100 * longest[worst]:.0f} % of the time"
        )
        yield Finding(path, reason, host.taken_out(domain, "sched_policy", "sched_priority"))


def _threads_behind(host: Host, domain: str, mask: Collection[int]) -> Iterator[tuple[HostThread, float]]:
    """The threads of the host that wait for a domain on some pCPUs, each with the fraction of the time."""
    if dict(host.behind(HOST)).get(domain, 0.0) < OF_WAITS:
        return
    shares = runstates.shares(host.run, HOST, "runnable")
    for thread, waited in zip(host_threads(host.scenario.model), shares, strict=True):
        if waited > WAITS and thread.domain != domain and pcpu_set(thread.affinity, host.topology.pcpus) & set(mask):
            yield thread, waited


@rule("halt-polling-when-full")
def halt_polling_when_full(host: Host) -> Iterator[Finding]:
    """Some vCPUs poll in their halts on a host without spare CPU time.

    Mechanism: A vCPU that halts keeps its pCPU for a while, up to `halt_poll_ns`, so that a short sleep costs no
    wake-up. The poll ends when another thread is queued on the pCPU. Until then the pCPU is not idle for the scheduler,
    and the poll counts as CPU time: against quotas, against the thread on the same core, and against turbo.

    Evidence: Halt polling is on, and VMs wait for more than {FEW_WAITS:.0%} of the time. The pCPUs idle for less than
    {IDLE:.0%} of it, and by the rate at which vCPUs halt, useless polls may take more than {POLLED:.0%} of it.
    Alternatively, these are vCPUs of a VM that uses more than {NEAR_FULL:.0%} of its quota.

    Silent: No finding if turning polling off improves nothing.

    Fix: Turn halt polling off.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/virt/kvm/halt-polling`.
    """
    polls = polls_us(host.scenario.host)
    waiting = [domain for domain in host.machines if host.mean_waited(domain) > FEW_WAITS]
    idle = host.idle_of(host.pcpus_of(POOL_0))
    useless = {machine: host.halts_per_s(machine) * polls / 1e6 for machine in host.machines}
    limited = [
        machine
        for machine in waiting
        if 0 < NEAR_FULL * host.quota(machine) <= host.gotten(machine)
        and useless[machine] > POLLED * host.quota(machine) / 100
    ]
    full = idle <= IDLE and sum(useless.values()) > POLLED * host.scenario.host.pcpus
    if not polls or not waiting or not (full or limited):
        return
    path = "host.halt_poll_us"
    uses = "uses up its quota" if len(limited) == 1 else "use up their quotas"
    cost = (
        f"{in_short(limited)} {uses}, for which that counts"
        if not full
        else f"pCPUs idle for {100 * idle:.0f} % of the time and {in_short(waiting)} wait"
    )
    reason = f"vCPUs keep their pCPU for up to {polls} µs after a halt, while {cost}"
    yield Finding(path, reason, {path: 0})
