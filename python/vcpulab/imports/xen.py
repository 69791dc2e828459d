"""The import of `xl` and xentop listings: a scenario of the host's domains, their parameters and work of equal load."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vcpulab.errors import RequestError
from vcpulab.formats.kinds import Read, Unused, files_by_name
from vcpulab.formats.xentop import NAME_MOST
from vcpulab.hosts.left_out import left_out
from vcpulab.hosts.pcpu_map import PcpuMap
from vcpulab.hosts.xen_domains import VCPUS_MOST, Domain
from vcpulab.hosts.xen_host import Pool, XenHost, read_host
from vcpulab.hosts.xen_pcpus import pcpu_map
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.command_line import GOVERNORS, Options, dom0_vcpus, governor, is_pinned, read_options
from vcpulab.hypervisors.settings import DOM0, POOL_0
from vcpulab.hypervisors.xen import called
from vcpulab.imports.alike_domains import alike
from vcpulab.imports.contradictions import contradictions
from vcpulab.imports.prices import cautions
from vcpulab.imports.result import Made, made
from vcpulab.imports.work import work
from vcpulab.scenario.names import free_name, in_short, plain_name
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import pcpu_set, spans
from vcpulab.show.toml_text import comment, inline, key, toml

_UNEVEN = 0.2
"""The fraction of a domain's memory that may be on other nodes without a note."""


@dataclass(frozen=True)
class _Host:
    """A Xen host on the pCPUs of a scenario."""

    xen: XenHost
    map: PcpuMap
    options: Options
    notes: list[str]


def scenario_of(
    listings: Iterable[Read],
    profile: str | None = None,
    toolstack: Toolstack | None = None,
    folder: Path | None = None,
    unused: Iterable[Unused] = (),
) -> Made:
    """The scenario of the Xen host that listings describe.

    Args:
        listings: the results of `formats.read`; of two of a kind the later one counts, but for parameters of
            schedulers and domains' files, of which there may be many.
        profile: the hardware profile; `None`: `generic`.
        toolstack: the toolstack whose commands advice uses; `None`: `xl`.
        folder: where the scenario will be, for a profile that is a file.
        unused: the files that are left out, each a note.

    Raises:
        RequestError: no listing names a domain.
        ScenarioError: there is no such profile.
    """
    reads = list(listings)
    listed = read_host(reads)
    notes: list[str] = [*map(str, unused), *_replaced(reads), *listed.notes]
    if not listed.domains:
        allowed = "among them what `xl list`, `xl vcpu-list` or `xl sched-credit` prints, or domains' files (xl.cfg)"
        raise RequestError("no file says which domains there are", allowed=allowed)
    placed = pcpu_map(listed.info, reads, notes)
    notes += [note for pool in listed.pools for note in pool.notes]
    listed = listed.with_pools(placed, notes)
    settings, first = listed.info.settings, listed.pools[0]
    rules = listed.rules(first)
    generation = None if rules is None else rules.generation
    options = read_options(settings.get("xen_commandline", ""), first.scheduler, generation)
    notes += [f"{text}: left at its default" for text in options.ignored]
    host = _Host(listed, placed, options, notes)
    used_on_host = _use(listed, notes)
    named = files_by_name(reads)
    renamed = _renamed(listed.domains, notes)
    files = {here: named.get(name, []) for name, here in renamed.items()}
    files[""] = [read.path for read in reads if read.kind in _OF_HOST]
    used = {renamed[name]: percent for name, percent in used_on_host.items()}
    domains = _counted({renamed[name]: domain for name, domain in listed.domains.items()}, host)
    notes += cautions(profile, placed.topology, "xentop" if any(used.values()) else None)
    lines = [*_host_lines(host, profile, toolstack), *_pool_lines(host)]
    uses = ((name, used.get(name), domain.vcpus or 1, "xentop") for name, domain in domains.items())
    notes += contradictions(uses, placed.pcpus)
    for name, domain, percent, count in alike(domains, used, notes):
        lines += ["", *_table(name, domain, percent, host, count)]
    title = settings.get("host", "a host as xl lists it")
    made_scenario = made("vcpulab import xl", title, lines, notes, folder=folder, files=files)
    return made_scenario if used else replace(made_scenario, hint="CPU use first: xentop -b -f -i 2 > use.txt")


_OF_HOST = ("xl-sched", "xl-info", "xl-dmesg", "xl-cpupool-list", "xenpm")
"""Kinds that the fields of the host and of pools are of."""
_SINGLE = ("xl-list", "xl-vcpu-list", "xl-info", "xenpm", "xentop")
"""Kinds of which only the last listing is used."""


def _replaced(reads: Sequence[Read]) -> Iterator[str]:
    """The notes on listings of which there is a later one."""
    last = {read.kind: read for read in reads}
    for read in reads:
        if read.kind in _SINGLE and read is not last[read.kind]:
            later = last[read.kind].path
            where = "later in it" if later == read.path else f"in {later}"
            yield f"{read.path}: the {read.kind} is not used: there is another one {where}"


# ---- domains ----


def _renamed(names: Iterable[str], notes: list[str]) -> dict[str, str]:
    """Valid and unique names in the scenario, by name on the host."""
    of_scenario: dict[str, str] = {}
    for name in names:
        of_scenario[free_name(DOM0 if name == called(DOM0) else plain_name(name), of_scenario)] = name
    renamed = {name: here for here, name in of_scenario.items()}
    changed = [f"`{name}` is {here}" for name, here in renamed.items() if here not in (DOM0, name)]
    if changed:
        notes.append(f"names that a scenario does not take: {', '.join(changed)}; in commands type the host's own")
    return renamed


def _memory_nodes(domain: Domain, host: _Host, owner: str) -> list[int]:
    """The nodes that hold its memory, each as much, so that it is nearest to how it is spread; empty: as usual."""
    parts = {host.map.node_of_host(node): part for node, part in domain.memory.items()}
    shares = sorted(((part, node) for node, part in parts.items() if node is not None), reverse=True)
    if host.map.topology.nodes == 1 or not shares:
        return []

    def off(count: int) -> float:
        most = [part for part, _ in shares]
        return sum(abs(part - 1 / count) for part in most[:count]) + sum(most[count:])

    count = min(range(1, len(shares) + 1), key=off)
    if off(count) > _UNEVEN:
        spread = ", ".join(f"{100 * part:.0f} % in node {node}" for part, node in shares)
        host.notes.append(f"{owner}: of its memory {spread}; a scenario has as much in each node that holds some")
    return sorted(node for _, node in shares[:count])


def _counted(domains: Mapping[str, Domain], host: _Host) -> dict[str, Domain]:
    """The domains with a number of vCPUs each, where no listing says it: Dom0's by the hypervisor's command line."""
    unknown = [name for name, domain in domains.items() if domain.vcpus is None and name != DOM0]
    if unknown:
        host.notes.append(f"{in_short(unknown)}: number of vCPUs not listed; 1 is assumed")
    counted = {name: _with_vcpus(name, domain, host) for name, domain in domains.items()}
    dom0 = counted.get(DOM0)
    if dom0 is not None and not dom0.affinity and is_pinned(host.options) and host.map.numbered:
        counted[DOM0] = replace(dom0, affinity=tuple(map(str, host.map.numbers[: dom0.vcpus])))
    return counted


def _with_vcpus(name: str, domain: Domain, host: _Host) -> Domain:
    if domain.vcpus is None:
        vcpus = dom0_vcpus(host.options, host.map.pcpus) if name == DOM0 else 1
        if name == DOM0:
            option = host.options.other_cpu_options.get("dom0_max_vcpus", "no dom0_max_vcpus")
            host.notes.append(f"{DOM0}: {vcpus} vCPUs by the hypervisor's command line ({option})")
        return replace(domain, vcpus=vcpus)
    if domain.vcpus > VCPUS_MOST:
        host.notes.append(left_out(name, "vCPUs", domain.vcpus, f"a domain has at most {VCPUS_MOST} here"))
        affinity, soft = domain.affinity[:VCPUS_MOST], domain.soft[:VCPUS_MOST]
        return replace(domain, vcpus=VCPUS_MOST, affinity=affinity, soft=soft)
    return domain


# ---- the host ----


def _host_lines(host: _Host, profile: str | None, toolstack: Toolstack | None) -> Iterator[str]:
    yield "[host]"
    if profile is not None:
        yield f"profile = {toml(profile)}"
    else:
        yield 'profile = "generic"       # assumed: xl does not list the costs of this machine'
    if toolstack is not None:
        yield f"toolstack = {toml(toolstack)}"
    for name, value in host.map.fields().items():
        text = value if isinstance(value, int) else inline(value)
        yield f"{name} = {text}"
    first = host.xen.pools[0]
    yield from _scheduler_lines(host, first)
    gran = host.map.granularity(host.options.granularity, host.notes)
    if gran is not None:
        yield f"sched_gran = {toml(gran)}       # xen_commandline: sched-gran={gran}"
    for name, (value, word) in host.options.params.items():
        if name not in first.params:
            yield f"{name} = {toml(value)}       # xen_commandline: {word}"
    options = host.options.other_cpu_options
    shown = [word for option, word in options.items() if option != "cpufreq"]
    if shown:
        yield from comment(f"xen_commandline: {' '.join(shown)}: the CPUs and vCPUs here are those that it leaves")
    yield from _clock_lines(host)


def _clock_lines(host: _Host) -> Iterator[str]:
    """The lines on the governor of clock rates, and on costs that the machine itself states."""
    costs: dict[str, int] = {}
    at_boot, clocks = governor(host.options), host.xen.clocks
    if clocks:
        if any(clock.turbo for clock in clocks):
            host.notes.append("xenpm: turbo mode is enabled: rates above the highest listed one are left out")
        if len({replace(clock, cpu=0) for clock in clocks}) > 1:
            host.notes.append(f"xenpm: not all CPUs have the frequencies and the governor of CPU {clocks[0].cpu}")
        text, clock = clocks[0].governor, clocks[0]
        if text in GOVERNORS:
            yield f"governor = {toml(text)}       # xenpm"
        else:
            host.notes.append(
                f"xenpm: governor {text or 'not said'}: no field says it; the highest clock rate is taken"
            )
        if clock.most_khz and clock.least_khz:
            costs |= {"cpu_mhz": clock.most_khz // 1000, "min_mhz": clock.least_khz // 1000}
        if clock.sample_us and clock.up_percent:
            costs |= {"governor_sample_ns": 1000 * clock.sample_us, "governor_up_percent": clock.up_percent}
    elif at_boot is not None:
        yield f"governor = {toml(at_boot)}       # xen_commandline: {host.options.other_cpu_options['cpufreq']}"
    elif not host.map.topology.is_flat:
        host.notes.append("governor: not listed (`xenpm get-cpufreq-para` does); the highest clock rate is taken")
    remote = sorted(
        {
            far
            for node in host.xen.info.nodes
            for number, far in enumerate(node.distances)
            if number != node.node and far > 10
        }
    )
    if remote and host.map.topology.nodes > 1:
        costs["numa_distance"] = remote[-1]
        if len(remote) > 1:
            host.notes.append(
                f"distances of nodes: {', '.join(map(str, remote))}; here each other node is as far, {remote[-1]}"
            )
    if costs:
        text = " and ".join(["xenpm"] * ("cpu_mhz" in costs) + ["xl info -n"] * ("numa_distance" in costs))
        yield f"costs = {inline(costs)}       # {text}"


def _scheduler_lines(host: _Host, pool: Pool) -> Iterator[str]:
    yield f"scheduler = {toml(pool.scheduler)}"
    rules = host.xen.rules(pool)
    if rules is not None:
        if rules.exact:
            yield from comment(rules.explanation)
        else:
            host.notes.append(rules.explanation)
        yield f"generation = {toml(rules.generation)}"
    elif pool is host.xen.pools[0]:
        host.notes.append("no `xl info` says which release of Xen it is; the default is taken (`vcpulab schedulers`)")
    needed = [
        name
        for name, param in host.xen.params(pool).items()
        if param.scope == "global" and param.default is None and name not in pool.params
    ]
    if needed:
        host.notes.append(
            f"pool {pool.name}: no listing has {in_short(needed)} of {pool.scheduler}, without which nothing runs"
        )
    yield from (f"{name} = {value}" for name, value in pool.params.items())


def _pool_lines(host: _Host) -> Iterator[str]:
    first, *further_pools = host.xen.pools
    if not further_pools:
        return
    if first.name != POOL_0:
        host.notes.append(f"pool {first.name} is {POOL_0} here")
    if first.cpus is not None:
        own = pcpu_set(host.map.set_of(first.cpus, first.name, host.notes), host.map.pcpus)
        taken = {pcpu for pool in further_pools for pcpu in pcpu_set(pool.pcpus or "", host.map.pcpus)}
        free = sorted(set(range(host.map.pcpus)) - own - taken)
        if free:
            host.notes.append(f"pCPUs {spans(free)} are in no pool; here they are in {POOL_0}")
    for pool in further_pools:
        yield from ("", f"[pool.{key(pool.key)}]", f"pcpus = {toml(pool.pcpus)}")
        yield from _scheduler_lines(host, pool)


# ---- what runs ----


def _use(host: XenHost, notes: list[str]) -> dict[str, float]:
    """CPU use by domain, % of a pCPU: the mean of the later updates, as the first says 0 of all."""
    # Of xentop's first update no percentage is above 0; a copy of its screen is a later one.
    is_screen = any(row.cpu_percent for row in host.usage if not row.update)
    rows = [row for row in host.usage if row.update or is_screen]
    if not rows:
        notes.append("nothing runs in the domains: no `xentop -b -i 2`, whose second update has their CPU use")
        return {}
    percents: dict[str, list[float]] = {}
    for row in rows:
        percents.setdefault(row.name, []).append(row.cpu_percent)
    used: dict[str, float] = {}
    unlisted = []
    begins = Counter(name[:NAME_MOST] for name in host.domains)
    for name in host.domains:
        cut_name = name[:NAME_MOST]
        values = percents.get(name) or (percents.get(cut_name) if begins[cut_name] == 1 else None)
        if values is None:
            unlisted.append(name)
        else:
            used[name] = math.fsum(values) / len(values)
    unknown = [name for name in percents if name[:NAME_MOST] not in begins]
    if unknown:
        notes.append(f"{in_short(unknown)}: CPU use by xentop is left out: no listing has these domains")
    if unlisted:
        notes.append(
            f"{in_short(unlisted)}: not listed by xentop, or with a name cut; it gets no work (-f: full names)"
        )
    return used


def _usual_nodes(topology: Topology, masks: Sequence[str]) -> list[int]:
    """The nodes of the pCPUs that are preferred, or else allowed."""
    listed = [pcpu for mask in masks or ["all"] for pcpu in pcpu_set(mask, topology.pcpus)]
    return sorted({topology.node(pcpu) for pcpu in listed})


def _table(name: str, domain: Domain, used: float | None, host: _Host, count: int) -> Iterator[str]:
    vcpus, pool = domain.vcpus or 1, host.xen.pool_of(domain)
    if pool.name != domain.pool and domain.pool not in (None, POOL_0):
        host.notes.append(left_out(name, "pool", domain.pool, "its CPUs are not listed (see `xl cpupool-list -c`)"))
    fields = host.xen.fields_of(name, domain, vcpus, host.map, host.notes)
    yield f"[domain.{key(name)}]"
    if count > 1:
        yield f"count = {count}"
    params = host.xen.params(pool)
    for field, value in fields.items():
        if field not in params or params[field].default != value:
            same = isinstance(value, list) and len(set(value)) == 1
            yield f"{field} = {toml(value[0] if same else value)}"
        if field == "vcpus" and name == DOM0:
            yield "driver_domain = true"
    nodes = _memory_nodes(domain, host, name)
    if nodes and nodes != _usual_nodes(host.map.topology, fields.get("soft_affinity") or fields.get("affinity") or ()):
        yield f"memory_nodes = {toml(nodes[0] if len(nodes) == 1 else nodes)}"
    yield from work(name, used, vcpus, "xentop")
