"""Causes of lateness outside the scheduler: disks, links, and clients."""

from vcpulab.advice.capacity.occupancy import NEAR_FULL, with_servers
from vcpulab.advice.lint.held import HALF_FULL, LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import FEW_WAITS, Finding, of_domain


@cause("outside-disk")
def _outside_disk(held: Held) -> Finding | None:
    """A disk is the bottleneck of a late service.

    Mechanism: Requests wait for the disk's head or its flash channels; no vCPU waits for a pCPU.

    Evidence: The disk is the fullest station that the requests pass. It is fuller than {NEAR_FULL:.0%}, or than
    {HALF_FULL:.0%} if no vCPU waits for a pCPU. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late.

    Fix: The rule proposes no setting. Use a faster disk, a larger page cache, or less load.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilization law.
    """
    return _outside(held) if held.station.kind == "disk" else None


@cause("outside-link")
def _outside_link(held: Held) -> Finding | None:
    """The host's link is the bottleneck of a late service.

    Mechanism: Packets wait for the link; no vCPU waits for a pCPU.

    Evidence: The link is the fullest station that the requests pass. It is fuller than {NEAR_FULL:.0%}, or than
    {HALF_FULL:.0%} if no vCPU waits for a pCPU. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late.

    Fix: The rule proposes no setting. Use a faster link, another NIC, or smaller answers.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilization law.
    """
    return _outside(held) if held.station.kind == "link" else None


@cause("outside-client")
def _outside_client(held: Held) -> Finding | None:
    """The machines, links or limits of the clients are the bottleneck of their requests.

    Mechanism: Requests and answers wait outside the host.

    Evidence: The fullest stations that the requests pass are the clients' processors, ports or link, or the connections
    that the clients or the application allow. They are fuller than {NEAR_FULL:.0%}, or than {HALF_FULL:.0%} if no vCPU
    waits for a pCPU. A service is late at a response p99 {LATE_IS}.

    Silent: No finding if no service is late.

    Fix: The rule proposes no setting. Use a faster line, smaller answers, or more connections.

    Schedulers: All.

    Sources: Denning and Buzen 1978, "The operational analysis of queueing network models": the utilization law.
    """
    return _outside(held) if held.station.kind in ("client machine", "connections", "backlog") else None


def _outside(held: Held) -> Finding | None:
    station, host = held.station, held.host
    serving = with_servers(host.scenario.domains, [held.domain])
    no_waits = all(host.waited(name) < FEW_WAITS for name in serving)
    if station.used < (HALF_FULL if no_waits else NEAR_FULL):
        return None
    reason = f"the bottleneck of {held.domain} is outside the scheduler: {station}; a scheduler makes it no faster"
    field = {"disk": "disk", "connections": "app", "backlog": "app"}.get(station.kind, "nic")
    return Finding(of_domain(held.domain, field), reason)
