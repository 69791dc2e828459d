"""Causes of lateness outside the scheduler: disks, links, and clients."""

from vcpulab.advice.capacity.occupancy import NEAR_FULL, with_servers
from vcpulab.advice.lint.held import HALF_FULL, LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import FEW_WAITS, Finding, of_domain


@cause("outside-disk")
def _outside_disk(held: Held) -> Finding | None:
    """A disk is the bottleneck of a service that is late.

    Mechanism: Requests wait for the disk's head or its flash channels; no vCPU waits for a pCPU.

    Evidence: Of everything that the requests pass the disk is nearest to full, and fuller than {NEAR_FULL:.0%}, or than
    {HALF_FULL:.0%} where no vCPU waits for a pCPU. Late is: {LATE_IS}.

    Silent: Where nobody is late.

    Mend: None that a scheduler has: a faster disk, a larger page cache, less load.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    return _outside(held) if held.station.kind == "disk" else None


@cause("outside-link")
def _outside_link(held: Held) -> Finding | None:
    """The host's link is the bottleneck of a service that is late.

    Mechanism: Packets wait for the link; no vCPU waits for a pCPU.

    Evidence: Of everything that the requests pass the link is nearest to full, and fuller than {NEAR_FULL:.0%}, or than
    {HALF_FULL:.0%} where no vCPU waits for a pCPU. Late is: {LATE_IS}.

    Silent: Where nobody is late.

    Mend: None that a scheduler has: a faster link, another NIC, smaller answers.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    return _outside(held) if held.station.kind == "link" else None


@cause("outside-client")
def _outside_client(held: Held) -> Finding | None:
    """The clients' own machines or links, or their own limits, are the bottleneck of what they see.

    Mechanism: Requests and answers wait outside the host.

    Evidence: Of everything that the requests pass the clients' processors, ports or link, or the connections that they
    or the application allow, are nearest to full, and fuller than {NEAR_FULL:.0%}, or than {HALF_FULL:.0%} where no
    vCPU waits for a pCPU. Late is: {LATE_IS}.

    Silent: Where nobody is late.

    Mend: None that a scheduler has: a faster line, smaller answers, more connections.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilisation law.
    """
    return _outside(held) if held.station.kind in ("client machine", "connections", "backlog") else None


def _outside(held: Held) -> Finding | None:
    station, host = held.station, held.host
    serving = with_servers(host.domains, [held.domain])
    no_waits = all(host.waited(name) < FEW_WAITS for name in serving)
    if station.used < (HALF_FULL if no_waits else NEAR_FULL):
        return None
    reason = f"the bottleneck of {held.domain} is outside the scheduler: {station}; a scheduler makes it no faster"
    field = {"disk": "disk", "connections": "app", "backlog": "app"}.get(station.kind, "nic")
    return Finding(of_domain(held.domain, field), reason)
