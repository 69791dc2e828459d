"""`vcpulab capacity` and `vcpulab place`: how much more a host can carry, and on how few hosts domains fit."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from vcpulab.advice.capacity import Capacity, Growth, growth
from vcpulab.advice.capacity import capacity as find_capacity
from vcpulab.advice.capacity.growing import FULL, Point
from vcpulab.advice.capacity.guard import Guard, StoppedError
from vcpulab.advice.capacity.limits import said as default_limits_said
from vcpulab.advice.capacity.search import Found
from vcpulab.advice.placing.energy import HOURS_PER_YEAR, Power
from vcpulab.advice.placing.fleet import fleet as take_apart
from vcpulab.advice.placing.placing import Placement, UnplaceableError
from vcpulab.advice.placing.placing import place as find_place
from vcpulab.cli import files, views
from vcpulab.cli.usage import examples
from vcpulab.errors import RequestError
from vcpulab.results.figures import number as number_said
from vcpulab.results.outcomes import limit as read_limit
from vcpulab.scenario.catalogue import profiles
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.units import size_bytes

app = App()

DONE, FAILED = 0, 1
Jobs = Annotated[int, Parameter(name=["--jobs", "-j"])]
Words = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]
Format = Literal["table", "json"]
_STATIONS_SHOWN = 8
_REFUSED_SHOWN = 8
_BUDGET = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>s|m|min|h)")
_UNITS_S = {"s": 1, "m": 60, "min": 60, "h": 3600}


@app.command(
    help_epilogue=examples(
        "vcpulab capacity web.toml --grow web.rate --highest 800",
        "vcpulab capacity web.toml --grow copies:web --format json",
    )
)
def capacity(
    file: Path,
    /,
    *,
    grow: str,
    limit: Words = (),
    lowest: float | None = None,
    highest: float | None = None,
    replications: int | None = None,
    budget: str = "10m",
    report: Path | None = None,
    format: Format = "table",  # noqa: A002 - the option's name
    jobs: Jobs = 0,
) -> int:
    """Find the largest load that keeps limits, and what stops the host from carrying more.

    Args:
        file: Scenario file.
        grow: What grows: a number of the scenario (web.users, web.rate), or copies:NAME, copies of a domain with its
            clients.
        limit: What must hold, such as `web.response_p99 < 50ms`; may be given again. Without any: no failed requests,
            and a response p99 of at most 10 times that at the lowest load.
        lowest: From where to look; 1, or the rate at which a hundred requests come in a replication, if left out.
        highest: Up to where to look; what the scenario allows if left out.
        replications: Of each load, to begin with; four times as many where it is close. The scenario's, but at least 5,
            if left out.
        budget: Time after which to stop and say how far it came.
        report: Write a report (HTML) to this file, too.
        format: How to print.
        jobs: Replications at a time; 0: one for each processor. It never changes the results.
    """
    scenario = files.load(file)
    limits = [read_limit(scenario, text) for text in limit]
    _replications(replications)
    grows = growth(scenario, grow, lowest=lowest, highest=highest)
    with views.status(f"growing {grows.name}") as progress:
        found = find_capacity(
            grows, limits, replications=replications, jobs=jobs, guard=Guard(_seconds(budget)), progress=progress
        )
    if report is not None:
        from vcpulab.advice.capacity.report import write

        write(report, scenario.name, found, said(found))
        views.say(f"written to {report}")
    if format == "json":
        print(json.dumps(found.document(), indent=2))
    else:
        _show(scenario.name, found)
    return DONE if found.found.outcome in ("found", "all") else FAILED


@app.command(
    help_epilogue=examples(
        "vcpulab place web.toml --limit 'response_p99 < 50ms'",
        "vcpulab place web.toml --apart web,batch --out out/hosts",
    )
)
def place(
    files_: Annotated[tuple[Path, ...], Parameter(name="FILE", negative=(), show_default=False)],
    /,
    *,
    limit: Words = (),
    host: str | None = None,
    apart: Words = (),
    together: Words = (),
    margin: float = 0.0,
    memory: str | None = None,
    idle_watts: float = Power().idle,
    busy_watts: float = Power().busy,
    replications: int | None = None,
    budget: str = "10m",
    out: Path | None = None,
    format: Format = "table",  # noqa: A002 - the option's name
    jobs: Jobs = 0,
) -> int:
    """Place domains on as few equal hosts as keep limits: packed by what they need, judged by simulation.

    Args:
        files_: Scenario files; their domains are placed with their clients. dom0 and driver domains are on every host.
        limit: What must hold, such as `web.response_p99 < 50ms`, or of every client `response_p99 < 50ms`; may be given
            again. Without any: no failed requests, and a response p99 of at most 10 times that of the domain alone.
        host: The hosts: a hardware profile, or a scenario file whose host it is; that of the first file if left out.
        apart: Domains of which no two may be on one host: a,b; may be given again.
        together: Domains that have to be on one host: a,b; may be given again.
        margin: Of each resource, to leave free when packing, %.
        memory: Of a host, such as 64GiB; enough for everything if left out.
        idle_watts: What an idle host draws.
        busy_watts: What a busy host draws.
        replications: As for `capacity`.
        budget: Time after which to stop.
        out: Write a scenario file for each host to this directory.
        format: How to print.
        jobs: As for `capacity`.
    """
    _replications(replications)
    power = _power(idle_watts, busy_watts)
    if not 0 <= margin < 100:
        raise RequestError(f"--margin: found `{margin:g}`; allowed: 0 to less than 100")
    scenarios: dict[str, Scenario] = {}
    for path in files_:
        label = path.stem
        while label in scenarios:
            label += "x"
        scenarios[label] = files.load(path)
    taken = take_apart(scenarios, host=_host(host, scenarios), together=_groups("--together", together))
    for note in taken.notes:
        views.say(note)
    try:
        with views.status("placing") as progress:
            placed = find_place(
                taken,
                limit,
                apart=_groups("--apart", apart),
                margin=margin / 100,
                memory=None if memory is None else _bytes(memory),
                replications=replications,
                jobs=jobs,
                guard=Guard(_seconds(budget)),
                progress=progress,
            )
    except (UnplaceableError, StoppedError) as error:
        views.error(str(error))
        return FAILED
    if out is not None:
        _write_hosts(placed, out)
    if format == "json":
        print(json.dumps(placed.document(power), indent=2))
    else:
        _show_placement(placed, power)
    return DONE


def _host(host: str | None, scenarios: Mapping[str, Scenario]) -> Scenario | None:
    if host is None:
        return None
    if host.endswith(".toml"):
        return files.load(Path(host))
    names = [profile["name"] for profile in profiles()]
    if host not in names:
        raise RequestError(f"--host: found `{host}`; allowed: a scenario file (*.toml), or one of {', '.join(names)}")
    first = next(iter(scenarios.values()))
    own = [f"host.{field}" for field in ("pcpus", "pcpus_per_socket", "costs") if field in first.written()["host"]]
    return first.change({**dict.fromkeys(own), "host.profile": host})


def _groups(option: str, words: Sequence[str]) -> list[list[str]]:
    groups = [[name.strip() for name in word.split(",")] for word in words]
    for word, names in zip(words, groups, strict=True):
        if len(names) < 2 or len(set(names)) < len(names) or not all(names):
            raise RequestError(f"{option}: found `{word}`; allowed: two or more names of domains, such as web,batch")
    return groups


def _bytes(memory: str) -> float:
    try:
        found = size_bytes(memory)
    except ValueError:
        found = 0
    if found <= 0:
        raise RequestError(f"--memory: found `{memory}`; allowed: a size such as 64GiB")
    return found


def _power(idle: float, busy: float) -> Power:
    if not 0 <= idle <= busy < float("inf"):
        raise RequestError(
            f"--idle-watts, --busy-watts: found `{idle:g}`, `{busy:g}`; allowed: from 0, and idle is at most busy"
        )
    return Power(idle, busy)


def _write_hosts(placed: Placement, out: Path) -> None:
    names = [f"host-{number}.toml" for number in range(1, len(placed.hosts) + 1)]
    if out.exists() and (not out.is_dir() or {path.name for path in out.iterdir()} - set(names)):
        raise RequestError(f"{out}: there is something else\n  hint: another directory, or an empty one")
    out.mkdir(parents=True, exist_ok=True)
    for name, host in zip(names, placed.hosts, strict=True):
        files.write(out / name, host.scenario.to_toml())
    views.say(f"written to {out}: {len(names)} scenario{'s' if len(names) > 1 else ''}")


def _show_placement(placed: Placement, power: Power) -> None:
    domains = sum(len(host.domains) for host in placed.hosts)
    hosts = _count(len(placed.hosts), "host")
    print(f"{_count(domains, 'domain')} on {hosts}; one host each would be {len(placed.alone)}")
    least = "no fewer hosts keep the limits" if placed.proven else "fewer may do, but were not found"
    if placed.stopped is not None:
        least = f"{least}: {placed.stopped}"
    print(f"{least}; {_count(placed.runs, 'host')} simulated")
    if placed.by_default:
        print(f"limits, as none were given: {default_limits_said('of the domain alone')}")
    most = ", ".join(f"{name} {total:.2f}" for name, total in list(placed.needs.items())[:3])
    print(f"all needs together, in hosts: {most}")
    if placed.unlimited:
        names = ", ".join(placed.unlimited)
        print(f"no limit is on {names}: what is left of a host's CPU time is enough for that")
    for refused in placed.refused[:_REFUSED_SHOWN]:
        print(f"not on one host: {', '.join(refused.names)}: {refused.why}")
    if len(placed.refused) > _REFUSED_SHOWN:
        print(f"and {len(placed.refused) - _REFUSED_SHOWN} more sets that break limits")
    print()
    rows = [
        [
            f"host-{number}",
            ", ".join(host.domains),
            "–" if host.tightest is None else f"{host.tightest.limit}: {host.tightest.interval}",
            "–" if not host.stations else f"{host.stations[0].name}, {100 * host.stations[0].used:.0f} %",
            number_said(100 * host.used),
            number_said(power.draws(host.used)),
        ]
        for number, host in enumerate(placed.hosts, 1)
    ]
    headings = ["host", "domains", "tightest limit", "nearest to full", "pCPUs busy, %", "draws, W"]
    views.print_table("Hosts", headings, rows, text_columns=4)
    watts = placed.watts(power)
    too_few = ", too few" if placed.proven and len(placed.today) < len(placed.hosts) else ""
    energy = [
        [what, str(hosts), number_said(watts[key]), number_said(watts[key] * HOURS_PER_YEAR / 1000)]
        for what, key, hosts in (
            ("placed so", "placed", len(placed.hosts)),
            ("one host for each", "alone", len(placed.alone)),
            (f"as the files are{too_few}", "today", len(placed.today)),
        )
    ]
    title = f"Energy, if a host draws {power.idle:g} W idle and {power.busy:g} W busy, and a straight line between"
    views.print_table(title, ["", "hosts", "W", "kWh/year"], energy)


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _replications(given: int | None) -> None:
    if given is not None and not 2 <= given <= 1000:
        raise RequestError(f"--replications: found `{given}`; allowed: an integer from 2 to 1000")


def _seconds(budget: str) -> float:
    match = _BUDGET.fullmatch(budget.strip())
    if match is None or float(match["number"]) == 0:
        raise RequestError(f"--budget: found `{budget}`; allowed: a time such as 90s, 10m or 2h")
    return float(match["number"]) * _UNITS_S[match["unit"]]


def said(found: Capacity) -> list[str]:
    """The answer in sentences."""
    it, grows = found.found, found.growth
    value = "none" if it.value is None else grows.said(it.value)
    present = grows.said(grows.present)
    lines = []
    if it.outcome == "none":
        lines.append(f"no load keeps the limits: not even {grows.name} = {grows.said(grows.within.lowest)}")
    elif it.outcome == "all":
        lines.append(f"every load keeps the limits: {grows.name} up to {value}, which is as far as was looked")
    elif it.outcome == "stopped":
        lines.append(f"not finished: {it.stopped}; {grows.name} = {value} is the largest known to keep the limits")
    else:
        lines.append(f"{grows.name} = {value} keeps all limits (95 % confidence); in the file it is {present}")
    lines += _borders_said(it, grows)
    if found.by_default:
        lines.append(f"limits, as none were given: {default_limits_said()}")
    elif any(one.metric.figure == "failed" for one in found.limits):
        lines.append("no request of the clients concerned may fail, either, unless a limit on failures is given")
    beyond, saturated = found.first_beyond, found.saturated
    if beyond is not None:
        lines.append(f"first limit to break: {_limit_said(beyond, grows)}")
    if saturated is not None and saturated.bottleneck is not None:
        full = saturated.bottleneck
        lines.append(f"bottleneck at {grows.said(saturated.value)}: {full}")
        if full.used < FULL:
            lines.append("nothing is full there: response times grow before anything is used up")
    return lines


def _borders_said(it: Found, grows: Growth) -> list[str]:
    """What lies beyond the value."""
    lines = []
    if it.value is not None and it.broken is not None:
        if it.open_until is not None and it.open_until > it.value:
            between = f"between {grows.said(it.value)} and {grows.said(it.open_until)}"
            lines.append(f"{between} it cannot be told apart from a limit; at {grows.said(it.broken)} one is broken")
        else:
            lines.append(f"at {grows.said(it.broken)} a limit is broken")
    if it.broken_below:
        places, held = ", ".join(map(grows.said, it.broken_below)), ", ".join(map(grows.said, it.holds_above))
        lines.append(
            f"not monotone: broken at {places}, though {held} held: what breaks is rare there, or it comes and goes"
        )
    return lines


def _limit_said(point: Point, grows: Growth) -> str:
    worst = point.worst
    measured = "it has no value: nothing was completed" if worst.interval is None else f"it is {worst.interval}"
    unit = "" if worst.interval is None else f" {worst.limit.metric.unit}"
    return f"{worst.limit}; at {grows.said(point.value)} {measured}{unit}"


def _show(name: str, found: Capacity) -> None:
    print(f"{name}\n")
    for line in said(found):
        print(line)
    print()
    headings = [found.growth.name, "limits", *(str(limit) for limit in found.limits), "replications", "nearest to full"]
    rows = [
        [
            found.growth.said(point.value),
            _STANDINGS[point.standing],
            *("–" if one.interval is None else str(one.interval) for one in point.judged),
            str(point.replications),
            "–" if point.bottleneck is None else f"{point.bottleneck.name}, {100 * point.bottleneck.used:.0f} %",
        ]
        for point in found.points
    ]
    views.print_table("Loads tried", headings, rows, text_columns=2)
    if found.saturated is not None:
        shown = found.saturated.stations[:_STATIONS_SHOWN]
        stations = [[one.name, one.kind, one.why, number_said(100 * one.used)] for one in shown]
        title = f"How full everything is on the way of the requests, at {found.growth.said(found.saturated.value)}"
        views.print_table(title, ["station", "kind", "measured", "used, %"], stations, text_columns=3)


_STANDINGS = {"holds": "hold", "open": "cannot tell", "broken": "broken"}


def register(root: App) -> None:
    """Adds the commands."""
    root.command(app, name="*")
