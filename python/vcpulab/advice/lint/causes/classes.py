"""The cause of lateness by scheduling classes: a service in the idle class."""

from vcpulab.advice.lint.held import LATE_IS, Held, cause  # noqa: F401 - pages of the rules
from vcpulab.advice.lint.host import Finding, of_domain
from vcpulab.scenario.scenario import join


@cause("idle-class")
def _idle_class(held: Held) -> Finding | None:
    """A late service, or the control group around it, is in the idle class.

    Mechanism: A group with `cpu.idle` gets CPU time only when nothing else wants it. Its weight hardly counts.
    (`SCHED_IDLE` of single vCPUs counts only beside the threads of the same VM.)

    Evidence: The VM or its slice is in the idle class, and waits. A service is late at a response p99 {LATE_IS}.

    Silent: No finding for VMs without clients or periodic jobs: batch VMs are in the idle class on purpose.

    Fix: Take the service out of the idle class.

    Schedulers: `linux-cfs`, `linux-eevdf`.

    Sources: Linux's `Documentation/admin-guide/cgroup-v2`, `cpu.idle`.
    """
    host, domain = held.host, held.domain
    if not (host.is_kvm and (held.waits or held.starves) and host.serves(domain)):
        return None
    table = host.domains[domain]
    causes: dict[str, str] = {}
    fix: dict[str, int] = {}
    if table.params.get("idle"):
        path = of_domain(domain, "idle")
        causes[path], fix[path] = f"{domain} is in the idle class (cpu.idle)", 0
    around = (table.cgroup or "").split("/")
    for depth in range(1, len(around) + 1):
        group = "/".join(around[:depth])
        if group in host.scenario.model.cgroups and host.scenario.model.cgroups[group].idle:
            path = join(["cgroup", group, "idle"])
            causes[path], fix[path] = f"its control group {group} is in the idle class (cpu.idle)", False
    if not causes:
        return None
    reason = (
        f"{' and '.join(causes.values())}: it gets CPU time only when nothing else wants it, whatever its weight, "
        f"and waits for {100 * host.waited(domain):.0f} % of the time behind {held.behind_in_words()}"
    )
    return Finding(next(iter(causes)), reason, fix)
