"""Who is late: those who are answered too slowly, or not at all, by what they themselves see.

Assumed: an answer within 20 ms is felt as immediate (a tenth of a second is the limit of what feels instantaneous:
Miller 1968, and a page is made of several requests). Nor is anybody late whose slowest answers take at most 20 times
the service's own computation. An SLO goes before both.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vcpulab.advice.runstates import gotten, waited
from vcpulab.results.addresses import Address, App, apps
from vcpulab.results.metrics import MILLISECONDS
from vcpulab.results.run import Run
from vcpulab.results.statistics import number
from vcpulab.scenario.units import span_ns

LATE_MS = 20.0
"""Response times below this are as good as any ..."""
LATE_TIMES = 20.0
"""... and so are those within this many times the CPU time that a request takes."""
LOST = 0.05
"""Losing more than this part of the requests, or of the deadlines, is being late. Assumed."""
NEVER_RUNS = 0.9
"""A vCPU that waits for more than this part of the time hardly runs. Assumed."""


@dataclass(frozen=True)
class Late:
    """Somebody who is late."""

    name: str
    """The client or application, as in addresses."""
    domain: str
    """What serves him."""
    how: str
    """How late, in words."""
    excess: float = math.inf
    """How far beyond what is not late, as a fraction of it."""
    assumed: bool = False
    """Is it a job that an import assumed?"""


def late(run: Run) -> list[Late]:
    """The clients and periodic jobs of a host that are late, or that are not served at all; assumed jobs are last.

    Examples:
        >>> import vcpulab
        >>> web = vcpulab.Scenario.starter().change({"run.duration": "500ms", "run.replications": 2})
        >>> [one.name for one in late(vcpulab.run(web))], late(vcpulab.run(web.change({"domain.web.weight": 512})))
        (['http'], [])
    """
    document = run.scenario.to_dict()
    asked = {app.domain for app in apps(run.scenario) if app.client is not None}
    found = []
    for app in apps(run.scenario):
        if app.client is not None:
            how = _answers(run, document, app)
        elif app.kind == "periodic":
            jobs = "assumed jobs" if app.assumed else "jobs"
            how = _often(_lost(run, app), f"of the {jobs} of {app.name} are late")
        else:
            how = None if app.domain in asked else _transactions(run, document, app)
        if how is not None:
            found.append(Late(app.name, app.domain, *how, app.assumed))
    return sorted(found, key=lambda one: one.assumed)


_How = tuple[str, float]
"""The words and the excess of somebody who is late."""


def felt_ms(run: Run, address: Address) -> float | None:
    """Below this a response time is as good as any, ms; `None`: it is no response time, or nothing was completed."""
    if not _is_response(address):
        return None
    rows = run.df_apps().filter(name=address.thing)
    completed = int(rows["completed"].sum()) if rows.height else 0
    if not completed:
        return None
    cpu_ms = float(run.df_domains().filter(domain=address.domain)["running_ns"].sum()) / completed / 1e6
    return min(LATE_MS, LATE_TIMES * cpu_ms, *_period_ms(run, address))


def _answers(run: Run, document: Mapping[str, Any], client: App) -> _How | None:
    lost, p99 = _lost(run, client), _mean(run, client, "response_p99")
    if p99 is None:
        hungry = lost or waited(run, client.domain) > NEVER_RUNS
        return (f"{client.name} gets no answer at all", math.inf) if hungry else None
    servers = _servers(document, client)
    own_ms = max((_computes_ms(app) for app in servers), default=0.0) or _computed_ms(run, document, client, servers)
    slow = _slow(f"answers to {client.name} take", p99, own_ms, " each")
    fails = _often(lost, f"of the requests of {client.name} fail")
    if slow is None or fails is None:
        return slow or fails
    return f"{fails[0]}, and {slow[0]}", max(slow[1], fails[1])


def _transactions(run: Run, document: Mapping[str, Any], app: App) -> _How | None:
    """Of an application that is alone in its domain, so that all CPU time there is its own."""
    p99, per_s = _mean(run, app, "response_p99"), _mean(run, app, "throughput")
    running = document["domain"][app.domain]["app"]
    # Rounds of a script that sleeps of its own accord take as long as it sleeps.
    if p99 is None or not per_s or len(running) > 1 or _sleeps(running[0]):
        return None
    return _slow(f"{app.name} takes", p99, 10 * gotten(run, app.domain) / per_s)


def _sleeps(app: Mapping[str, Any]) -> bool:
    """Does a script sleep, or wait for others?"""
    events = (event for phase in app.get("phase", []) for event in phase["event"])
    return any(name in event for event in events for name in ("sleep", "timer", "await"))


def _slow(who_takes: str, p99: float, own_ms: float, each: str = "") -> _How | None:
    """By response times, ms, beside the CPU time of an answer."""
    bound = max(LATE_MS, LATE_TIMES * own_ms)
    said = f"{who_takes} up to {number(p99)} ms (p99) for {number(own_ms)} ms of CPU time{each}"
    return (said, p99 / bound - 1) if p99 > bound else None


def _often(lost: float, words: str) -> _How | None:
    """By the part that is lost."""
    return (f"{100 * lost:.0f} % {words}", lost / LOST - 1) if lost > LOST else None


def _lost(run: Run, app: App) -> float:
    """The part of the requests, or of the jobs, that fail."""
    done, failed = (_mean(run, app, name) or 0.0 for name in ("throughput", "failed"))
    return failed / max(1.0, failed + done * run.scenario.duration_ns / 1e9)


def _mean(run: Run, app: App, metric: str) -> float | None:
    found = run.get(f"{app.name}.{metric}")
    return None if found is None else found.mean


def _computed_ms(run: Run, document: Mapping[str, Any], client: App, servers: list[Mapping[str, Any]]) -> float:
    """CPU time of a request as measured, ms, of a service that is alone in its domain; 0: it is not."""
    alone = len(document["domain"][client.domain].get("app", [])) == len(servers) == 1
    per_s = _mean(run, client, "throughput")
    return 10 * gotten(run, client.domain) / per_s if alone and per_s else 0.0


def _servers(document: Mapping[str, Any], client: App) -> list[Mapping[str, Any]]:
    table = document["client"][client.client]
    running: list[Mapping[str, Any]] = document["domain"][client.domain].get("app", [])
    return [app for app in running if table.get("app") in (None, app["kind"])]


def _computes_ms(app: Mapping[str, Any]) -> float:
    """CPU time of a request as given, ms; 0: it depends on the request."""
    return span_ns(app.get("request_cpu", "0ns")) / 1e6


def _is_response(address: Address) -> bool:
    return address.metric.name.startswith("response_") and address.metric.unit is MILLISECONDS


def _period_ms(run: Run, address: Address) -> list[float]:
    table = run.scenario.to_dict()["domain"].get(address.domain, {})
    listed = [app for app in table.get("app", []) for _ in range(app.get("instance", 1))]
    for app in apps(run.scenario):
        if app.name == address.thing and app.client is None and app.position < len(listed):
            period = listed[app.position].get("period")
            return [span_ns(period) / 1e6] if isinstance(period, str) else []
    return []
