"""Late clients and periodic jobs: those that get slow answers, or none, in their own measurements.

Assumed: an answer within 20 ms is perceived as immediate (a tenth of a second is the limit of what feels instantaneous:
Miller 1968, and a page needs several requests). A client whose slowest answers take at most 20 times the service's own
computation is not late either. An SLO overrides both limits.
"""

import math
from dataclasses import dataclass

from vcpulab.advice.runstates import gotten, waited
from vcpulab.results.addresses import Address, App, apps
from vcpulab.results.run import Run
from vcpulab.results.statistics import number
from vcpulab.scenario import model
from vcpulab.scenario.scenario import Scenario

LATE_MS = 20.0
"""Response times below this are as good as any ..."""
LATE_TIMES = 20.0
"""... and so are those within this many times the CPU time that a request takes."""
LOST = 0.05
"""A client or job that loses more than this fraction of its requests or deadlines is late. Assumed."""
NEVER_RUNS = 0.9
"""A vCPU that waits for more than this fraction of the time hardly runs. Assumed."""


@dataclass(frozen=True)
class Late:
    """A client or application that is late."""

    name: str
    """The client or application, as in addresses."""
    domain: str
    """The domain that serves the client or runs the application."""
    how: str
    """The lateness in words."""
    excess: float = math.inf
    """The excess over the limit of lateness, as a fraction of the limit."""
    assumed: bool = False
    """`True`: an import assumed the job."""


def late(run: Run) -> list[Late]:
    """The clients and periodic jobs of a host that are late, or that are not served at all; assumed jobs are last.

    Examples:
        >>> import vcpulab
        >>> web = vcpulab.Scenario.starter().change({"run.duration": "500ms", "run.replications": 2})
        >>> [app.name for app in late(vcpulab.run(web))], late(vcpulab.run(web.change({"domain.web.weight": 512})))
        (['http'], [])
    """
    serving = {app.domain for app in apps(run.scenario) if app.client is not None}
    late_apps = []
    for app in apps(run.scenario):
        if app.client is not None:
            how = _answers(run, app)
        elif app.kind == "periodic":
            jobs = "assumed jobs" if app.assumed else "jobs"
            how = _often(_lost(run, app), f"of the {jobs} of {app.name} are late")
        else:
            how = None if app.domain in serving else _transactions(run, app)
        if how is not None:
            late_apps.append(Late(app.name, app.domain, *how, app.assumed))
    return sorted(late_apps, key=lambda late_app: late_app.assumed)


_How = tuple[str, float]
"""The words and the excess of a `Late`."""


def felt_ms(run: Run, address: Address) -> float | None:
    """The response time below which a client notices no difference, ms; `None`: no response time, or no answers."""
    if not address.metric.is_response:
        return None
    rows = run.df_apps().filter(name=address.thing)
    completed = int(rows["completed"].sum()) if rows.height else 0
    if not completed:
        return None
    cpu_ms = float(run.df_domains().filter(domain=address.domain)["running_ns"].sum()) / completed / 1e6
    return min(LATE_MS, LATE_TIMES * cpu_ms, *_period_ms(run, address))


def _answers(run: Run, client: App) -> _How | None:
    lost, p99 = _lost(run, client), _mean(run, client, "response_p99")
    if p99 is None:
        hungry = lost or waited(run, client.domain) > NEVER_RUNS
        return (f"{client.name} gets no answer at all", math.inf) if hungry else None
    servers = _servers(run.scenario, client)
    own_ms = max((_computes_ms(app) for app in servers), default=0.0) or _computed_ms(run, client, servers)
    slow = _slow(f"answers to {client.name} take", p99, own_ms, " each")
    fails = _often(lost, f"of the requests of {client.name} fail")
    if slow is None or fails is None:
        return slow or fails
    return f"{fails[0]}, and {slow[0]}", max(slow[1], fails[1])


def _transactions(run: Run, app: App) -> _How | None:
    """The lateness of an application that is alone in its domain, so that all CPU time of the domain is its own."""
    p99, per_s = _mean(run, app, "response_p99"), _mean(run, app, "throughput")
    running = run.scenario.domains[app.domain].apps
    # The rounds of a script that sleeps take as long as its sleeps.
    if p99 is None or not per_s or len(running) > 1 or _sleeps(running[0]):
        return None
    return _slow(f"{app.name} takes", p99, 10 * gotten(run, app.domain) / per_s)


def _sleeps(app: model.App) -> bool:
    """`True`: a script sleeps, or waits for other scripts."""
    events = (event for phase in app.phases for event in phase.events)
    return any(step is not None for event in events for step in (event.sleep, event.timer, event.await_))


def _slow(subject: str, p99: float, own_ms: float, each: str = "") -> _How | None:
    """The lateness by response times, compared with the CPU time of an answer, ms."""
    bound = max(LATE_MS, LATE_TIMES * own_ms)
    words = f"{subject} up to {number(p99)} ms (p99) for {number(own_ms)} ms of CPU time{each}"
    return (words, p99 / bound - 1) if p99 > bound else None


def _often(lost: float, words: str) -> _How | None:
    """The lateness by the fraction that is lost."""
    return (f"{100 * lost:.0f} % {words}", lost / LOST - 1) if lost > LOST else None


def _lost(run: Run, app: App) -> float:
    """The fraction of the requests or jobs that fail."""
    done, failed = (_mean(run, app, name) or 0.0 for name in ("throughput", "failed"))
    return failed / max(1.0, failed + done * run.scenario.duration_ns / 1e9)


def _mean(run: Run, app: App, metric: str) -> float | None:
    value = run.get(f"{app.name}.{metric}")
    return None if value is None else value.mean


def _computed_ms(run: Run, client: App, servers: list[model.App]) -> float:
    """The measured CPU time of a request, ms, of a service that is alone in its domain; 0: it is not alone."""
    alone = len(run.scenario.domains[client.domain].apps) == len(servers) == 1
    per_s = _mean(run, client, "throughput")
    return 10 * gotten(run, client.domain) / per_s if alone and per_s else 0.0


def _servers(scenario: Scenario, client: App) -> list[model.App]:
    """The applications that serve a client."""
    kind = scenario.clients[client.client or ""].app
    return [app for app in scenario.domains[client.domain].apps if app.kind == kind]


def _computes_ms(app: model.App) -> float:
    """The CPU time of a request in the scenario, ms; 0: it depends on the request."""
    return app.request_cpu.ns / 1e6 if isinstance(app, model.WebServerApp) else 0.0


def _period_ms(run: Run, address: Address) -> list[float]:
    domain = run.scenario.domains.get(address.domain)
    listed = [app for app in domain.apps for _ in range(app.instance)] if domain is not None else []
    for app in apps(run.scenario):
        if app.name == address.thing and app.client is None and app.position < len(listed):
            job = listed[app.position]
            return [job.period.ns / 1e6] if isinstance(job, model.PeriodicApp) else []
    return []
