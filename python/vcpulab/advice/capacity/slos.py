"""The default SLOs: no request fails, and responses stay near those of an idle host."""

from collections.abc import Sequence

from vcpulab.results.addresses import App, Slo, apps, find
from vcpulab.results.run import Run
from vcpulab.scenario.names import listed
from vcpulab.scenario.scenario import Scenario

SLOWER = 10
"""The largest allowed ratio of a response time to the one on an idle host.

The rule of thumb for "busy, but usable": the mean response of an M/M/1 queue is ten times its service where nine
tenths of its capacity are used (Kleinrock 1975, "Queueing systems", volume 1, section 3.2).
"""


def asking(scenario: Scenario) -> list[App]:
    """The applications whose requests count: every client, and every application in a domain without clients."""
    candidates = apps(scenario)
    with_clients = {app.domain for app in candidates if app.client is not None}
    return [app for app in candidates if app.domain not in with_clients or app.client is not None]


def default_slos(idle: Run) -> list[Slo]:
    """For each application whose requests count: no failure, and a response p99 of at most `SLOWER` times the idle one.

    Applications without response times have no default SLO. Jobs that an import assumed have one only if the scenario
    has no other application whose requests count.
    """
    slos = []
    candidates = asking(idle.scenario)
    for app in [app for app in candidates if not app.assumed] or candidates:
        p99, failed = (find(idle.scenario, f"{app.name}.{metric}") for metric in ("response_p99", "failed"))
        idle_p99 = idle.get(p99.name)
        if idle_p99 is not None:
            slos += [Slo(failed, "<=", 0.0), Slo(p99, "<=", SLOWER * idle_p99.mean)]
    return slos


def served(scenario: Scenario, slos: Sequence[Slo]) -> list[Slo]:
    """The SLOs, and one on failures for each client of their domains: a host does not carry a load that it refuses.

    A client whose failures an SLO already limits gets no second one.
    """
    concerned = {slo.address.domain for slo in slos}
    clients = [app for app in asking(scenario) if app.client is not None and app.domain in concerned]
    failures = [find(scenario, f"{app.name}.failed") for app in clients]
    named = {slo.address for slo in slos}
    return [*slos, *(Slo(failed, "<=", 0.0) for failed in failures if failed not in named)]


def on_assumed(scenario: Scenario, slos: Sequence[Slo]) -> list[str]:
    """A line that names the SLOs' jobs that an import assumed; no line if none was assumed."""
    assumed = {app.name for app in apps(scenario) if app.assumed}
    things = list(dict.fromkeys(slo.address.thing for slo in slos if slo.address.thing in assumed))
    return (
        [f"assumed jobs: an import assumed the work of {', '.join(listed(things))}, whose SLOs count"] if things else []
    )


def default_slos_in_words(lowest: str = "at the lowest load") -> str:
    """The default SLOs in words."""
    return f"no failed requests, and a response p99 of at most {SLOWER} times that {lowest}"
