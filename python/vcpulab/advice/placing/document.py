"""The document of a placement: the hosts with their domains, the reason for their number, and the energy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from vcpulab.advice import core_sharing
from vcpulab.advice.capacity.slos import default_slos_in_words, on_assumed
from vcpulab.advice.placing.energy import HOURS_PER_YEAR, Power
from vcpulab.advice.starvation import in_a_line
from vcpulab.results.statistics import number
from vcpulab.scenario.names import listed
from vcpulab.show.document import BLANK, Lines, Part, count
from vcpulab.show.table import Table

if TYPE_CHECKING:
    from vcpulab.advice.placing.placing import Host, Placement

_REFUSED_SOON = 8
"""The number of refused sets that are shown before other parts grow."""


def document(placed: "Placement", power: Power, tune: str) -> Iterator[Part]:
    """The document of a placement; see `Placement.document`."""
    starved = [
        in_a_line(host.starved, f"starved on host-{position}")
        for position, host in enumerate(placed.hosts, 1)
        if host.starved
    ]
    domains = sum(len(host.domains) for host in placed.hosts)
    hosts = count(len(placed.hosts), "host")
    yield Part.lines(starved, "line of who starves", rounds=(1,))
    left = [f"not placed: {', '.join(listed(placed.not_placed))}"] if placed.not_placed else []
    yield Part.always(
        Lines(
            [
                f"{count(domains, 'domain')} on {hosts}; one host each would be {len(placed.alone)}",
                *left,
                f"{placed.least}; {count(placed.runs, 'host')} simulated",
                *([f"before another host, look for other settings: {tune}"] if placed.refused else []),
            ]
        )
    )
    reasons = [f"SLOs, as none were given: {default_slos_in_words('of the domain alone')}"] if placed.by_default else []
    if placed.needs:
        most = ", ".join(f"{name} {total:.2f}" for name, total in list(placed.needs.items())[:3])
        reasons.append(f"all needs together, in hosts: {most}")
    if placed.without_slos:
        names = ", ".join(listed(placed.without_slos))
        reasons.append(f"no SLO is on {names}: no CPU time is kept free for that, it gets what is left of a host")
    for host in placed.hosts:
        reasons += on_assumed(host.scenario, [judged.slo for judged in host.judged])
    reasons += core_sharing.notes(placed.fleet.base.model)
    yield Part.lines(reasons, "line of reasons", rank=1)
    refused = [
        f"not on one host: {', '.join(listed(refused_set.names))}: {refused_set.reason}"
        for refused_set in placed.refused
    ]
    yield Part.lines(refused, "refused set", rounds=(0, _REFUSED_SOON), rank=3)
    yield Part.always(BLANK)
    rows = [
        [
            f"host-{position}",
            domains_by_node(host),
            "–" if host.tightest is None else f"{host.tightest.slo}: {host.tightest.interval}",
            "–" if not host.stations else f"{host.stations[0].name}, {100 * host.stations[0].used:.0f} %",
            number(100 * host.used),
            number(power.draws(host.used)),
        ]
        for position, host in enumerate(placed.hosts, 1)
    ]
    headings = ["host", "domains", "tightest SLO", "nearest to full", "pCPUs busy, %", "draws, W"]
    below = [[f"{host}: {domains}\n  {slo}\n  {station}", *numbers] for host, domains, slo, station, *numbers in rows]
    narrower = Table("Hosts", ["host: domains, tightest SLO, nearest to full", *headings[4:]], below, together=True)
    yield Part.rows(Table("Hosts", headings, rows, text_columns=4, together=True, narrower=narrower), "host")
    watts = placed.watts(power)
    too_few = ", too few as set" if placed.proven and len(placed.today) < len(placed.hosts) else ""
    energy = [
        [label, str(hosts), number(watts[key]), number(watts[key] * HOURS_PER_YEAR / 1000)]
        for label, key, hosts in (
            ("placed so", "placed", len(placed.hosts)),
            ("one host for each", "alone", len(placed.alone)),
            (f"as the files are{too_few}", "today", len(placed.today)),
        )
        if hosts
    ]
    title = f"Energy, if a host draws {power.idle:g} W idle and {power.busy:g} W busy, and a straight line between"
    yield Part.rows(Table(title, ["", "hosts", "W", "kWh/year"], energy), "row of energy", rank=2)


def domains_by_node(host: "Host") -> str:
    """The domains of a host, by the nodes that they prefer."""
    on_nodes = {name for names in host.nodes.values() for name in names}
    rest = [name for name in host.domains if name not in on_nodes]
    by_node = [f"node {node}: {', '.join(listed(names))}" for node, names in host.nodes.items()]
    return "; ".join([*by_node, *([", ".join(listed(rest))] if rest else [])])
