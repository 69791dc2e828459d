"""Causes of lateness: more work than a service's vCPUs, its tasks, a host thread, or the host can do."""

from collections import Counter

from vcpulab.advice.bounds.answers import LOAD_WORDS
from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.lateness import Late
from vcpulab.advice.lint.held import HALF_FULL, LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import IDLE, Finding, Host, of_domain, of_pool
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.results.statistics import least_to_most, number
from vcpulab.scenario.model import Domain, PeriodicApp

FULL = 0.98
"""The busy fraction of the time above which pCPUs are full. Assumed."""
_WITHOUT_END = ("hog", "spin")
"""Kinds of applications that take all the CPU time that they get: they do not measure the load of a host."""


@cause("too-few-vcpus")
def _too_few_vcpus(held: Held) -> Finding | None:
    """A late service uses all of its vCPUs while pCPUs idle.

    Mechanism: A domain runs on as many pCPUs at a time as it has vCPUs.

    Evidence: A vCPU of the domain is the fullest station that the requests pass. Each of its vCPUs is occupied by its
    own work for more than {HALF_FULL:.0%} of the time, while the pCPUs idle for more than {IDLE:.0%}. A service is late
    at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, if the domain has a vCPU for each pCPU, or if one of its vCPUs has little
    to do.

    Fix: Add one vCPU, or double their number.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilization law.
    """
    host, domain = held.host, held.domain
    vcpus = host.domains[domain].vcpus
    if held.station.kind != "guest vCPU" or vcpus >= len(held.pcpus) or host.idle_of(held.pcpus) <= IDLE:
        return None
    if held.station.used < HALF_FULL or min(host.occupied(domain), default=0.0) < HALF_FULL:
        return None
    path = of_domain(domain, "vcpus")
    load = "saturates its vCPUs" if held.station.used >= NEAR_FULL else "keeps its vCPUs so busy that requests queue"
    reason = f"{held.station}, while pCPUs idle: {domain} {load}, and has too few for what is asked of it"
    return Finding(path, reason, {path: vcpus + 1}, otherwise=({path: min(2 * vcpus, len(held.pcpus))},))


@cause("tasks-fill-vcpus")
def _tasks_fill_vcpus(held: Held) -> Finding | None:
    """Tasks of a late service each fill a vCPU, while other vCPUs of the domain have little to do.

    Mechanism: A task runs on one vCPU at a time. Neither more vCPUs nor more CPU time makes it faster.

    Evidence: A vCPU of the domain is the fullest station that the requests pass. Its own work occupies it for more than
    {NEAR_FULL:.0%} of the time, and another vCPU for less. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if all vCPUs are full: see `capacity-exceeded` and `too-few-vcpus`.

    Fix: The rule proposes no setting. Split the work into more tasks, or reduce it.

    Schedulers: All.

    Sources: Amdahl 1967, "Validity of the single processor approach to achieving large scale computing capabilities".
    """
    host, domain = held.host, held.domain
    occupied = host.occupied(domain)
    full = [share for share in occupied if share >= NEAR_FULL]
    rest = [share for share in occupied if share < NEAR_FULL]
    if held.starves or held.station.kind != "guest vCPU" or held.station.used < NEAR_FULL or not rest:
        return None
    idle = least_to_most([100 * (1 - share) for share in rest], lambda percent: f"{percent:.0f}")
    wants = _tasks(host.domains[domain])
    occupation = (
        f"{len(full)} of the {len(occupied)} vCPUs of {domain} are occupied by its own tasks"
        f"{f' ({wants})' if wants else ''} for {100 * min(full):.0f} % of the time or more; "
        f"the other {f'{len(rest)} idle' if len(rest) > 1 else 'one idles'} for {idle} %"
    )
    reason = f"{occupation}: a task runs on one vCPU at a time; more tasks for the same work, or less work, help"
    return Finding(of_domain(domain, "app"), reason)


def _tasks(domain: Domain) -> str:
    """The periodic tasks of a domain that each nearly fill a vCPU, such as `2 tasks want 95 % of a vCPU each`."""
    wants: Counter[int] = Counter()
    for app in domain.apps:
        if isinstance(app, PeriodicApp):
            wants[round(100 * app.run.ns / app.period.ns)] += app.instance
    large = [(percent, count) for percent, count in sorted(wants.items()) if percent >= 100 * HALF_FULL]
    return ", ".join(
        f"{count} tasks want {percent} % of a vCPU each" if count > 1 else f"a task wants {percent} % of a vCPU"
        for percent, count in large
    )


@cause("capacity-exceeded")
def _capacity_exceeded(held: Held) -> Finding | None:
    """A late service uses all the CPU time that it can get.

    Mechanism: The load is more than the host can compute; the queue grows under any scheduler.

    Evidence: The service and the domains that serve it fill the pCPUs, or its own work occupies each of its vCPUs for
    more than {NEAR_FULL:.0%} of the time. If queueing analysis bounds the load that can be served, the finding contains
    the bound, which holds for any scheduler. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late, or if other domains use the pCPUs.

    Fix: The rule proposes no setting. Reduce the load, or add CPUs.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilization law;
    Lazowska, Zahorjan, Graham and Sevcik 1984, "Quantitative System Performance", chapter 5: bounds.
    """
    station, domain = held.station, held.domain
    if held.starves or station.used < NEAR_FULL:
        return None
    if station.kind == "guest vCPU":
        occupied = held.host.occupied(domain)
        if min(occupied, default=0.0) < NEAR_FULL:
            return None
        vcpus = f"its {len(occupied)} vCPUs" if len(occupied) > 1 else "its vCPU"
        full = f"{domain} itself uses all that {vcpus} can get ({station.reason})"
    elif station.kind == "pCPUs" and not station.domain:
        full = f"{domain} and the domains that serve it use all of the {station}"
    else:
        return None
    bound = beyond_any_scheduler(held.host, held.late)
    proof = f", and no setting of the scheduler changes that: {bound}" if bound else ""
    return Finding(of_domain(domain, "vcpus"), f"{full}: the capacity is exceeded{proof}; less load or more CPU helps")


def beyond_any_scheduler(host: Host, late: Late) -> str:
    """The bound of a client under any scheduler, by the least work of its requests; empty: nothing is proven."""
    load = next((load for load in host.bounds.loads if load.name == late.name), None)
    rate = next((load.rate for load in host.bounds.model.loads if load.name == late.name), None)
    if load is None or load.limit in LOAD_WORDS:
        return ""
    if rate is not None:
        served = f"at most {number(load.throughput_max)} of {number(rate)} requests/s can be served"
        return f"{served} by {load.limit}, whatever runs first"
    if load.response_min_s is None:
        return ""
    wait = f"its users wait for at least {number(1e3 * load.response_min_s)} ms on average"
    return f"{wait} at {load.limit}, whatever runs first"


@cause("host-thread-full")
def _host_thread_full(held: Held) -> Finding | None:
    """One thread of the host handles all packets or disk requests of a VM, and is full.

    Mechanism: A virtio device with one queue has one vhost or I/O thread. All its work runs on one pCPU at a time, even
    if other pCPUs idle, and for any number of vCPUs.

    Evidence: The thread is the fullest station that the requests pass, by its own work. A service is late at a response
    p99 {LATE_IS}.

    Silent: No finding if no service is late, or if the thread waits for a pCPU: other rules cover that.

    Fix: The rule proposes no setting. Give the device more queues (`<driver queues='N'/>`, an I/O thread for each
    disk), or reduce the load.

    Schedulers: All of KVM hosts.

    Sources: libvirt's domain XML, `driver` of `interface` (`queues`) and `iothreads`; Linux's vhost, a worker for each
    device.
    """
    if held.station.kind != "host thread" or held.station.used < NEAR_FULL:
        return None
    reason = f"the {held.station}: it carries all of that device, on one pCPU at a time; more queues, or less load help"
    return Finding(of_domain(held.domain, "vcpus"), reason)


@cause("null-overcommitted")
def _never_runs(held: Held) -> Finding | None:
    """A pool with the null scheduler has more vCPUs than pCPUs, so the last vCPUs never run.

    Mechanism: The null scheduler gives each vCPU its own pCPU for good. A vCPU without a pCPU waits until another vCPU
    is gone.

    Evidence: The pool has more vCPUs than pCPUs, and a domain in it is late or starves.

    Silent: No finding if each vCPU has a pCPU, or if the vCPUs without one never want to run.

    Fix: Remove vCPUs from the domains that use the smallest fraction of theirs. If every domain has a single vCPU, use
    a scheduler that shares pCPUs.

    Schedulers: `null`.

    Sources: Xen's `docs/misc/xen-command-line`, `sched=null`, and the boot message of the scheduler itself.
    """
    host, name = held.host, held.pool
    if not (held.waits or held.starves) or host.pool_of(held.domain).scheduler != "null":
        return None
    inside = {domain: host.domains[domain].vcpus for domain in host.inside(name)}
    total, pcpus = sum(inside.values()), len(held.pcpus)
    if total <= pcpus:
        return None
    waiting = f"a vCPU of {held.domain}" if host.gotten(held.domain) else held.domain
    reason = (
        f"the null scheduler gives each vCPU a pCPU of its own, and there are {total} vCPUs for {pcpus} pCPUs: "
        f"{waiting} never runs. Fewer vCPUs, or a scheduler that shares"
    )
    left = dict(inside)
    while sum(left.values()) > pcpus and (spare := [domain for domain, vcpus in left.items() if vcpus > 1]):
        # The domain that uses the smallest fraction of its vCPUs gives up one.
        left[min(spare, key=lambda domain: host.gotten(domain) / left[domain])] -= 1
    path = of_pool(name, "scheduler")
    fewer = {of_domain(domain, "vcpus"): vcpus for domain, vcpus in left.items() if vcpus != inside[domain]}
    return Finding(path, reason, fewer if sum(left.values()) <= pcpus else {path: "credit2"})


@cause("host-full")
def _host_full(held: Held) -> Finding | None:
    """The pCPUs are full with domains that have a definite amount of work.

    Mechanism: All domains together want more CPU time than the host has. Weights and pinning decide which domain waits,
    not how much work is done.

    Evidence: The pCPUs of the pool are busy for more than {FULL:.0%} of the time. Domains with a definite amount of
    work (clients' requests, periodic jobs, phases, I/O for other domains) use more than {NEAR_FULL:.0%} of them. The
    service waits for a pCPU, and gets at least {NEAR_FULL:.0%} of the CPU time that its weight entitles it to. A
    service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late. No finding if programs without an end (hogs) fill the pCPUs: they only
    take the time that is left, and a weight helps. No finding if the service uses less than its weight entitles it to:
    see `late-wake-ups`.

    Fix: The rule proposes no setting, since weights only decide which domain waits. Reduce the load or the number of
    domains, or add pCPUs.

    Schedulers: All that share pCPUs.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilization law.
    """
    host, here = held.host, held.pcpus
    busy = 1 - host.idle_of(here)
    if not held.waits or busy < FULL or not host.uses_its_weight(held.domain):
        return None
    definite = [name for name in host.inside(held.pool) if _has_an_end(host, name)]
    used = sum(sum(host.busy(name)) for name in definite)
    if used < NEAR_FULL * len(here) or len(definite) < 2:
        return None
    reason = (
        f"{held.waits_in_words} on {len(here)} pCPUs that are {100 * busy:.0f} % busy: the {len(definite)} domains "
        f"whose work has an end use {used:.1f} of them, and wait for more. Weights only decide which domain waits; "
        "less load, fewer domains or more pCPUs help all"
    )
    path = "host.pcpus" if held.pool == POOL_0 else of_pool(held.pool, "pcpus")
    return Finding(path, reason)


def _has_an_end(host: Host, domain: str) -> bool:
    """Does a domain have a definite amount of work, rather than take all the CPU time that it gets?"""
    kinds = {app.kind for app in host.domains[domain].apps}
    return host.serves(domain) or bool(kinds - set(_WITHOUT_END))
