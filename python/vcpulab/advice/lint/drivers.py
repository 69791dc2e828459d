"""Rules for driver domains that delay the domains they serve: weight, cap, vCPUs."""

from collections.abc import Callable, Iterator
from typing import Any

from vcpulab.advice.capacity.occupancy import NEAR_FULL
from vcpulab.advice.io_spreading import apart, netbacks, spread
from vcpulab.advice.lint.host import IDLE, WAITS, Finding, Host, of_domain
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.scenario.names import in_short

BUSY = 0.9
"""The fraction of the time above which a running vCPU is saturated. Assumed."""
BURSTY = 0.25
"""The mean used fraction of its share from which a driver domain uses the share up in bursts. Assumed."""

rule = Rules[Callable[[Host], Iterator[Finding]]](Stands.NEVER)


@rule("inverted-weights")
def inverted_weights(host: Host) -> Iterator[Finding]:
    """A driver domain has less weight than guests whose I/O it does.

    Mechanism: Each packet and block of a guest passes its driver domain. Beside heavier guests the driver domain runs
    last, and all guests wait for it, including the heavy ones.

    Evidence: A vCPU of the driver domain waits for more than {WAITS:.0%} of the time. It is occupied for more than
    {NEAR_FULL:.0%} of it, or a domain that it serves is late, or none of them has clients. The driver domain gets
    {BURSTY:.0%} or more of the CPU time that its weight entitles it to: its work comes in bursts.

    Silent: No finding if its waits affect no domain; lint then repeats the warning of `vcpulab check`. No finding if it
    gets much less than its weight entitles it to, because it then waits for another reason: see `late-wake-ups` and
    `ratelimit-too-long`. No finding if a larger weight improves nothing, or costs the served domains more than it gives
    them: a lone driver domain that waits takes more packets at a time, and throughput may grow.

    Fix: Set twice the weight of the heaviest guest.

    Schedulers: Those with weights: `credit`, `credit2`, `enhanced`.

    Sources: Cherkasova, Gupta and Vahdat 2007, "Comparison of the three CPU schedulers in Xen"; Ongaro, Cox and Rixner
    2008, "Scheduling I/O in virtual machine monitors".
    """
    for driver in host.drivers:
        own = host.value(driver, "weight")
        pool = host.domains[driver].pool
        guests = [d for d in host.served_by(driver) if host.domains[d].pool == pool]
        weights = {guest: weight for guest in guests if (weight := host.value(guest, "weight")) is not None}
        if not own or not weights or max(weights.values()) <= own or not _feels(host, driver):
            continue
        if not host.uses_its_weight(driver, BURSTY):
            continue
        part = host.of_entitlement(driver)
        used = "" if part is None else f"it gets {100 * part:.0f} % of the CPU time that this entitles it to, "
        heaviest = max(weights, key=lambda guest: weights[guest])
        reason = (
            f"weight {own} is below the {weights[heaviest]} of {heaviest}, whose I/O it does: {used}"
            f"it waits for {100 * host.waited(driver):.0f} % of the time, and they wait for it"
        )
        fix = {of_domain(driver, "weight"): min(65535, 2 * weights[heaviest])}
        yield Finding(of_domain(driver, "weight"), reason, fix)


def _feels(host: Host, driver: str) -> bool:
    """Does waiting of a driver domain matter: is it full, or is a domain that it serves late or without clients?"""
    served = set(host.served_by(driver))
    if host.waited(driver) < WAITS:
        return False
    full = 1 - host.blocked(driver) >= NEAR_FULL
    return not served & host.with_clients or full or any(late.domain in served for late in host.late)


@rule("starving-cap")
def starving_cap(host: Host) -> Iterator[Finding]:
    """A cap throttles a driver domain.

    Mechanism: Once the cap is used up, the driver domain stops even if pCPUs idle, and with it the I/O of all domains
    that it serves. The caps of other domains are intended; for late services see `cap-throttles`.

    Evidence: The driver domain gets more than {NEAR_FULL:.0%} of its cap.

    Silent: No finding if the driver domain needs less than that.

    Fix: Remove the cap.

    Schedulers: Those with caps: `credit`, `credit2`, `enhanced`.

    Sources: Xen's `xl sched-credit` and `xl sched-credit2`: the cap holds even if the host has idle CPU cycles.
    """
    for name in host.drivers:
        cap = host.value(name, "cap")
        if cap and host.gotten(name) >= NEAR_FULL * cap:
            path = of_domain(name, "cap")
            reason = (
                f"a driver domain that may use {cap} % of a pCPU at most, and uses {host.gotten(name):.0f} %, delays "
                f"the I/O of {in_short(host.served_by(name))}"
            )
            yield Finding(path, reason, {path: None})


@rule("few-driver-vcpus")
def few_driver_vcpus(host: Host) -> Iterator[Finding]:
    """A driver domain has too few vCPUs: all of them are saturated while pCPUs idle.

    Mechanism: The I/O of all guests passes the vCPUs of their driver domain. Once these are full, guests wait for them,
    regardless of their own weights.

    Evidence: A vCPU of the driver domain runs for more than {BUSY:.0%} of the time, and the others for more than half
    of that, while the pCPUs idle for more than {IDLE:.0%}.

    Silent: No finding if no pCPU is left, or if one more vCPU improves nothing: the link or the disk is then the limit.

    Fix: Add one vCPU, and spread the netbacks and NICs over all vCPUs, because a vCPU without any has nothing to do. If
    that takes from some domains to give to others, separate the netbacks from the NICs.

    Schedulers: All.

    Sources: Xen's `dom0_max_vcpus`; Linux's xen-netback, one kernel thread for each queue.
    """
    for driver, busy in _saturated_drivers(host):
        vcpus = host.domains[driver].vcpus
        if _uneven(busy) or vcpus >= len(host.pcpus_of(host.domains[driver].pool)):
            continue
        path = of_domain(driver, "vcpus")
        busiest = "its only vCPU" if vcpus == 1 else f"one of its {vcpus} vCPUs"
        reason = (
            f"{busiest} is busy for {100 * max(busy):.0f} % of the time with the I/O of "
            f"{in_short(host.served_by(driver))}, while pCPUs idle: it has too few vCPUs, one saturates"
        )
        more: dict[str, Any] = {path: vcpus + 1}
        if not isinstance(host.domains[driver].affinity, str):
            more[of_domain(driver, "affinity")] = "all"
        fixes = [{**more, **places(host.scenario.model, driver, vcpus + 1)} for places in (spread, apart)]
        yield Finding(path, reason, fixes[0], otherwise=tuple(fixes[1:]))


@rule("saturated-driver-vcpu")
def saturated_driver_vcpu(host: Host) -> Iterator[Finding]:
    """One vCPU of a driver domain does all the I/O while its others have little to do.

    Mechanism: A netback runs on one vCPU, and so does the interrupt of a NIC. If most of the work is on the same vCPU,
    it is full while the others idle, and more vCPUs do not help. Netbacks that were tasklets all ran on the first vCPU
    by default. As threads they are spread, but the interrupts of a NIC, and the bridge behind them, stay on one vCPU.

    Evidence: A vCPU of the driver domain runs for more than {BUSY:.0%} of the time, another for less than half of that,
    while the pCPUs idle for more than {IDLE:.0%}.

    Silent: No finding if moving the netbacks and interrupts improves nothing.

    Fix: Spread NICs, disks, netbacks and blkbacks over its vCPUs in turn. If they are spread, move the netbacks to
    vCPUs without NIC interrupts.

    Schedulers: All.

    Sources: Linux's `/proc/irq/N/smp_affinity` and `irqbalance`; xen-netback's kernel threads, which `taskset` binds.
    """
    for driver, busy in _saturated_drivers(host):
        if not _uneven(busy):
            continue
        vcpus, full = host.domains[driver].vcpus, busy.index(max(busy))
        rest = ", ".join(f"{100 * share:.0f} %" for share in sorted(busy)[:-1])
        places = netbacks(host.scenario.model, driver)
        on_full = [name for name, vcpu in places.items() if vcpu == full]
        devices = f"the netbacks of {in_short(on_full)} are" if on_full else "a NIC's or a disk's interrupts are"
        reason = (
            f"one of its {vcpus} vCPUs, saturated for {100 * max(busy):.0f} % of the time, does the I/O of "
            f"{in_short(on_full or host.served_by(driver))}, while the others are busy for {rest}: "
            f"{'its netbacks are all' if on_full and on_full == list(places) else devices} on that vCPU"
        )
        yield Finding(of_domain(driver, "vcpus"), reason, spread(host.scenario.model, driver, vcpus))


def _saturated_drivers(host: Host) -> Iterator[tuple[str, list[float]]]:
    """Driver domains with a vCPU that is saturated while pCPUs idle, and the busy share of each vCPU."""
    for driver in host.drivers:
        busy = host.busy(driver)
        here = host.pcpus_of(host.domains[driver].pool)
        if max(busy, default=0.0) >= BUSY and host.idle_of(here) >= IDLE:
            yield driver, busy


def _uneven(busy: list[float]) -> bool:
    return len(busy) > 1 and min(busy) < BUSY / 2
