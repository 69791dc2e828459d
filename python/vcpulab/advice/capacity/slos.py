"""The SLOs that hold where none are given: nobody fails, and responses stay near those of an idle host."""

from collections.abc import Sequence

from vcpulab.results.addresses import App, Slo, apps, find
from vcpulab.results.run import Run
from vcpulab.scenario.names import listed
from vcpulab.scenario.scenario import Scenario

SLOWER = 10
"""How many times slower than on an idle host a response may be.

The rule of thumb for "busy, but usable": the mean response of an M/M/1 queue is ten times its service where nine
tenths of its capacity are used (Kleinrock 1975, "Queueing systems", volume 1, section 3.2).
"""


def asking(scenario: Scenario) -> list[App]:
    """Whose requests count: every client; and every application in a domain without clients."""
    everybody = apps(scenario)
    asked = {app.domain for app in everybody if app.client is not None}
    return [app for app in everybody if app.domain not in asked or app.client is not None]


def default_slos(idle: Run) -> list[Slo]:
    """No failure, and a 99th percentile of the response time of at most `SLOWER` times that in this run.

    Of all whose requests count and who have response times. Jobs that an import assumed count where there is nothing
    else.
    """
    slos = []
    everybody = asking(idle.scenario)
    for app in [app for app in everybody if not app.assumed] or everybody:
        p99, failed = (find(idle.scenario, f"{app.name}.{metric}") for metric in ("response_p99", "failed"))
        there = idle.get(p99.name)
        if there is not None:
            slos += [Slo(failed, "<=", 0.0), Slo(p99, "<=", SLOWER * there.mean)]
    return slos


def served(scenario: Scenario, slos: Sequence[Slo]) -> list[Slo]:
    """SLOs, and that no request fails of clients that they concern: a load that is refused is not carried.

    Not of clients on whose failures there is an SLO.
    """
    concerned = {one.address.domain for one in slos}
    clients = [app for app in asking(scenario) if app.client is not None and app.domain in concerned]
    failures = [find(scenario, f"{app.name}.failed") for app in clients]
    named = {one.address for one in slos}
    return [*slos, *(Slo(failed, "<=", 0.0) for failed in failures if failed not in named)]


def on_assumed(scenario: Scenario, slos: Sequence[Slo]) -> list[str]:
    """That SLOs are on jobs that an import assumed, in a line; nothing where none is."""
    assumed = {app.name for app in apps(scenario) if app.assumed}
    things = list(dict.fromkeys(one.address.thing for one in slos if one.address.thing in assumed))
    return (
        [f"assumed jobs: an import assumed the work of {', '.join(listed(things))}, whose SLOs count"] if things else []
    )


def said(lowest: str = "at the lowest load") -> str:
    """What these SLOs are, in words."""
    return f"no failed requests, and a response p99 of at most {SLOWER} times that {lowest}"
