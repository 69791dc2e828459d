"""The import of `xl` and xentop listings: a scenario of the host's domains, their parameters and work of equal load."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vcpulab._engine import NAME_CHARS_MAX
from vcpulab.errors import RequestError
from vcpulab.formats.kinds import Kind, Read, Unused, files_by_name
from vcpulab.formats.xenpm import Frequencies
from vcpulab.formats.xentop import NAME_MOST, Usage
from vcpulab.formats.xl_info import Info
from vcpulab.hosts.left_out import left_out
from vcpulab.hosts.pcpu_map import PcpuMap, flat, map_of
from vcpulab.hosts.xen_domains import VCPUS_MOST, Domain, domains_of
from vcpulab.hosts.xen_params import accepted, scheduler_params
from vcpulab.hosts.xen_pcpus import are_numbered, pcpus_named, pool_pcpus
from vcpulab.hosts.xen_release import params_of, rules_of
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.command_line import GOVERNORS, Options, dom0_vcpus, governor, is_pinned, read_options
from vcpulab.hypervisors.settings import DOM0, POOL_0
from vcpulab.hypervisors.xen import called
from vcpulab.imports.alike_domains import alike
from vcpulab.imports.contradictions import contradictions
from vcpulab.imports.prices import cautions
from vcpulab.imports.result import Made, made
from vcpulab.imports.work import work
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.names import in_short, plain_name
from vcpulab.scenario.parameters import Param
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import pcpu_set, spans
from vcpulab.show.toml_text import comment, inline, key, toml

KINDS: tuple[Kind, ...] = (
    "xl-list",
    "xl-vcpu-list",
    "xl-cpupool-list",
    "xl-sched",
    "xl-info",
    "xl-dmesg",
    "xl-cfg",
    "xl-list-l",
    "xen-xml",
    "xenpm",
    "xentop",
)
"""The kinds of listings that the import understands."""
_UNEVEN = 0.2
"""The fraction of a domain's memory that may be on other nodes without a note."""


@dataclass(frozen=True)
class _Pool:
    name: str
    scheduler: str
    params: Mapping[str, int]
    cpus: str | None = None
    """The CPUs; `None`: those that no other pool has."""


@dataclass(frozen=True)
class _Host:
    """The facts about the machine that its domains need."""

    map: PcpuMap
    options: Options
    info: Info
    pools: Sequence[_Pool]
    """The first one has Dom0."""
    clocks: Sequence[Frequencies]
    notes: list[str]
    numbered: bool = True
    """`True`: the host's numbers of its CPUs are known."""

    def set_of(self, listed: str, owner: str) -> str:
        """A set of pCPUs; a set that is left out is a note."""
        if not self.numbered and listed != "all":
            self.notes.append(f"{owner}: `{listed}` is left out: its CPUs cannot be told without `xl info -n`")
            return "all"
        return self.map.set_of(listed, owner, self.notes)

    def defaults(self, pool: str | None) -> dict[str, int | str | None]:
        """The parameters of a pool's scheduler, each with its default."""
        return {param["name"]: param["default"] for param in self._parameters(pool)}

    def needed(self, pool: str | None) -> list[str]:
        """The parameters of a pool's scheduler as a whole that have no default."""
        parameters = self._parameters(pool)
        return [param["name"] for param in parameters if param["scope"] == "global" and param["default"] is None]

    def domain_params(self, pool: str | None) -> dict[str, Param]:
        """The parameters of a domain in a pool, by name."""
        return {param["name"]: param for param in self._parameters(pool) if param["scope"] == "domain"}

    def _parameters(self, pool: str | None) -> Sequence[Param]:
        scheduled = next((candidate for candidate in self.pools if candidate.name == pool), self.pools[0])
        return params_of(scheduled.scheduler, self.info.settings)


def scenario_of(
    listings: Iterable[Read],
    profile: str | None = None,
    toolstack: Toolstack | None = None,
    folder: Path | None = None,
    unused: Iterable[Unused] = (),
) -> Made:
    """The host that listings are of.

    Args:
        listings: the results of `recordings.read`; of two of a kind the later one counts, but for parameters of
            schedulers and domains' files, of which there may be many.
        profile: the hardware profile; `None`: `generic`.
        toolstack: in whose commands advice is given; `None`: `xl`.
        folder: where the scenario will be, for a profile that is a file.
        unused: the files that are left out, each a note.

    Raises:
        RequestError: no listing names a domain.
        ScenarioError: there is no such profile.
    """
    reads = list(listings)
    holds = _held(reads)
    notes: list[str] = [*map(str, unused)]
    info = _info(reads, notes)
    notes += _replaced(reads)
    domains = domains_of(reads, notes, with_dom0=bool(info.settings))
    if not domains:
        allowed = "among them what `xl list`, `xl vcpu-list` or `xl sched-credit` prints, or domains' files (xl.cfg)"
        raise RequestError("no file says which domains there are", allowed=allowed)
    placed = map_of(info, notes) or flat(pcpus_named(reads, notes))
    numbered = are_numbered(info, reads, placed, notes)
    pools = _pools(holds, info, placed if numbered else None, notes)
    rules = rules_of(pools[0].scheduler, info.settings)
    options = read_options(
        info.settings.get("xen_commandline", ""), pools[0].scheduler, None if rules is None else rules.generation
    )
    notes += [f"{text}: left at its default" for text in options.ignored]
    host = _Host(placed, options, info, pools, holds.get("xenpm", []), notes, numbered)
    _add_use(holds, domains, notes)
    named = files_by_name(reads)
    renamed = _renamed(domains, notes)
    files = {here: named.get(name, []) for name, here in renamed.items()}
    files[""] = [read.path for read in reads if read.kind in _OF_HOST]
    domains = {renamed[name]: domain for name, domain in domains.items()}
    _count_vcpus(domains, host)
    notes += cautions(profile, placed.topology, "xentop" if any(domain.used for domain in domains.values()) else None)
    lines = [*_host_lines(host, profile, toolstack), *_pool_lines(host)]
    uses = ((name, domain.used, domain.vcpus or 1, "xentop") for name, domain in domains.items())
    notes += contradictions(uses, placed.pcpus)
    for name, domain, count in alike(domains, notes):
        lines += ["", *_table(name, domain, host, count)]
    title = info.settings.get("host", "a host as xl lists it")
    result = made("vcpulab import xl", title, lines, notes, folder=folder, files=files)
    loaded = any(domain.used is not None for domain in domains.values())
    return result if loaded else replace(result, hint="CPU use first: xentop -b -f -i 2 > use.txt")


_OF_HOST = ("xl-sched", "xl-info", "xl-dmesg", "xl-cpupool-list", "xenpm")
"""Kinds that the fields of the host and of pools are of."""
_SINGLE = ("xl-list", "xl-vcpu-list", "xl-info", "xenpm", "xentop")
"""Kinds of which one listing says all."""


def _replaced(reads: Sequence[Read]) -> Iterator[str]:
    """The notes on listings of which there is a later one."""
    last = {read.kind: read for read in reads}
    for read in reads:
        if read.kind in _SINGLE and read is not last[read.kind]:
            later = last[read.kind].path
            where = "later in it" if later == read.path else f"in {later}"
            yield f"{read.path}: the {read.kind} is not used: there is another one {where}"


def _info(reads: Iterable[Read], notes: list[str]) -> Info:
    """`xl info`, and what the log of booting says where it does not."""
    info, booted = Info({}), {}
    for read in reads:
        if read.kind == "xl-info":
            info = read.holds
        elif read.kind == "xl-dmesg":
            booted.update({name: (value, read.path) for name, value in read.holds.settings.items()})
    fields = dict(info.settings)
    has_version = {"xen_version", "xen_major"} & fields.keys()
    for name, (value, path) in booted.items():
        if name not in fields and not (name == "xen_version" and has_version):
            fields[name] = value
        elif fields.get(name, value) not in (value, f"placeholder {value}"):
            notes.append(left_out("the log of booting", name, value, f"`xl info` has `{fields[name]}`", path))
    return replace(info, settings=fields)


def _held(reads: Iterable[Read]) -> dict[str, Any]:
    holds: dict[str, Any] = {}
    for read in reads:
        if read.kind == "xl-sched":
            holds.setdefault(read.kind, []).extend(read.holds)
        elif read.kind == "xl-cpupool-list":
            pools = {pool.name: pool for pool in holds.get(read.kind, [])}
            for pool in read.holds:
                was = pools.get(pool.name, pool)
                pools[pool.name] = replace(
                    was,
                    cpus=was.cpus or pool.cpus,
                    scheduler=was.scheduler or pool.scheduler,
                    size=was.size if was.size is not None else pool.size,
                )
            holds[read.kind] = list(pools.values())
        else:
            holds[read.kind] = read.holds
    return holds


# ---- domains ----


def _renamed(names: Iterable[str], notes: list[str]) -> dict[str, str]:
    """Valid and unique names in the scenario, by name on the host."""
    renamed: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = here = DOM0 if name == called(DOM0) else plain_name(name)
        number = 2
        while here in taken:
            here, number = f"{plain[: NAME_CHARS_MAX - 5]}-{number}", number + 1
        renamed[name] = here
        taken.add(here)
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


def _count_vcpus(domains: Mapping[str, Domain], host: _Host) -> None:
    """The vCPUs that no listing says: Dom0's by the hypervisor's command line."""
    unknown = [name for name, domain in domains.items() if domain.vcpus is None and name != DOM0]
    if unknown:
        host.notes.append(f"{in_short(unknown)}: no listing says how many vCPUs; one")
    for name, domain in domains.items():
        if domain.vcpus is not None and domain.vcpus > VCPUS_MOST:
            host.notes.append(left_out(name, "vCPUs", domain.vcpus, f"a domain has at most {VCPUS_MOST} here"))
            domain.vcpus = VCPUS_MOST
            domain.affinity, domain.soft = domain.affinity[:VCPUS_MOST], domain.soft[:VCPUS_MOST]
        if domain.vcpus is None:
            domain.vcpus = dom0_vcpus(host.options, host.map.pcpus) if name == DOM0 else 1
            if name == DOM0:
                option = host.options.other_cpu_options.get("dom0_max_vcpus", "no dom0_max_vcpus")
                host.notes.append(f"{DOM0}: {domain.vcpus} vCPUs by the hypervisor's command line ({option})")
    dom0 = domains.get(DOM0)
    if dom0 is not None and not dom0.affinity and is_pinned(host.options) and host.numbered:
        dom0.affinity = [str(number) for number in host.map.numbers[: dom0.vcpus]]


# ---- the host ----


def _pools(holds: Mapping[str, Any], info: Info, placed: PcpuMap | None, notes: list[str]) -> list[_Pool]:
    """The pools, that of Dom0 first; `placed`: the pCPUs, `None`: the host's numbers of them are not known."""
    scheds = {pool.pool: pool for pool in reversed(holds.get("xl-sched", [])) if pool.pool}
    unnamed = next((pool for pool in holds.get("xl-sched", []) if not pool.pool), None)
    listed = {pool.name: pool for pool in holds.get("xl-cpupool-list", [])}
    of_dom0 = [row.pool for row in holds.get("xl-list", []) if row.number == 0 and row.pool]
    of_dom0 += [pool.pool for pool in scheds.values() if any(row.get("id") == 0 for row in pool.domains)]
    names = dict.fromkeys([*of_dom0[:1], *listed, *reversed(scheds)]) or {POOL_0: None}
    pools = []
    for name in names:
        pool, sched = listed.get(name), scheds.get(name) or (unnamed if len(names) == 1 else None)
        # Without a heading of its own, a table of weights may be of Credit or of Credit2.
        candidates = (sched and sched.scheduler, pool and pool.scheduler, info.settings.get("xen_scheduler"))
        scheduler = next(
            (candidate for candidate in candidates if candidate and generation_of(candidate) is not None), None
        )
        if scheduler is None:
            candidate = ", ".join(f"`{candidate}`" for candidate in dict.fromkeys(candidates) if candidate)
            reason = (
                f"{candidate} is none that this program has"
                if candidate
                else "no listing says which; it is Xen's default"
            )
            notes.append(f"scheduler = credit2: {reason}")
            scheduler = "credit2"
        params = {} if sched is None else scheduler_params(sched, scheduler, params_of(scheduler, info.settings), notes)
        pools.append(_Pool(name, scheduler, params, pool and pool.cpus))
    first, *further = pools
    return [first, *(pool for pool in further if pool_pcpus(pool.name, pool.cpus, first.name, placed, notes))]


def _host_lines(host: _Host, profile: str | None, toolstack: Toolstack | None) -> Iterator[str]:
    yield "[host]"
    if profile is not None:
        yield f"profile = {toml(profile)}"
    else:
        yield 'profile = "generic"       # assumed: xl does not say what things cost on this machine'
    if toolstack is not None:
        yield f"toolstack = {toml(toolstack)}"
    for name, value in host.map.fields().items():
        text = value if isinstance(value, int) else inline(value)
        yield f"{name} = {text}"
    yield from _scheduler_lines(host, host.pools[0])
    gran = host.map.granularity(host.options.granularity, host.notes)
    if gran is not None:
        yield f"sched_gran = {toml(gran)}       # xen_commandline: sched-gran={gran}"
    printed = host.pools[0].params
    for name, (value, word) in host.options.params.items():
        if name not in printed:
            yield f"{name} = {toml(value)}       # xen_commandline: {word}"
    options = host.options.other_cpu_options
    shown = [word for option, word in options.items() if option != "cpufreq"]
    if shown:
        yield from comment(f"xen_commandline: {' '.join(shown)}: the CPUs and vCPUs here are those that it leaves")
    yield from _clock_lines(host)


def _clock_lines(host: _Host) -> Iterator[str]:
    """The lines on the governor of clock rates, and on costs that the machine itself states."""
    costs: dict[str, int] = {}
    at_boot, clocks = governor(host.options), host.clocks
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
            for node in host.info.nodes
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


def _scheduler_lines(host: _Host, pool: _Pool) -> Iterator[str]:
    yield f"scheduler = {toml(pool.scheduler)}"
    rules = rules_of(pool.scheduler, host.info.settings)
    if rules is not None:
        if rules.exact:
            yield from comment(rules.explanation)
        else:
            host.notes.append(rules.explanation)
        yield f"generation = {toml(rules.generation)}"
    elif pool is host.pools[0]:
        host.notes.append("no `xl info` says which release of Xen it is; the default is taken (`vcpulab schedulers`)")
    needed = [name for name in host.needed(pool.name) if name not in pool.params]
    if needed:
        host.notes.append(
            f"pool {pool.name}: no listing has {in_short(needed)} of {pool.scheduler}, without which nothing runs"
        )
    yield from (f"{name} = {value}" for name, value in pool.params.items())


def _pool_lines(host: _Host) -> Iterator[str]:
    first, *further_pools = host.pools
    if not further_pools:
        return
    pcpus = {pool.name: host.set_of(pool.cpus or "", f"pool {pool.name}") for pool in further_pools}
    if first.name != POOL_0:
        host.notes.append(f"pool {first.name} is {POOL_0} here")
    if first.cpus is not None:
        own = pcpu_set(host.set_of(first.cpus, first.name), host.map.pcpus)
        taken = {pcpu for text in pcpus.values() for pcpu in pcpu_set(text, host.map.pcpus)}
        free = sorted(set(range(host.map.pcpus)) - own - taken)
        if free:
            host.notes.append(f"pCPUs {spans(free)} are in no pool; here they are in {POOL_0}")
    for pool in further_pools:
        yield from ("", f"[pool.{key(plain_name(pool.name))}]", f"pcpus = {toml(pcpus[pool.name])}")
        yield from _scheduler_lines(host, pool)


# ---- what runs ----


def _add_use(holds: Mapping[str, Any], domains: Mapping[str, Domain], notes: list[str]) -> None:
    """CPU use of the later updates, their mean: the first says 0 of all."""
    updates: Sequence[Usage] = holds.get("xentop", [])
    # Of xentop's first update no percentage is above 0; a copy of its screen is a later one.
    is_screen = any(row.cpu_percent for row in updates if not row.update)
    rows = [row for row in updates if row.update or is_screen]
    if not rows:
        notes.append("nothing runs in the domains: no `xentop -b -i 2`, whose second update has their CPU use")
        return
    used: dict[str, list[float]] = {}
    for row in rows:
        used.setdefault(row.name, []).append(row.cpu_percent)
    unlisted = []
    begins = Counter(name[:NAME_MOST] for name in domains)
    for name, domain in domains.items():
        values = used.get(name) or (used.get(name[:NAME_MOST]) if begins[name[:NAME_MOST]] == 1 else None)
        if values is None:
            unlisted.append(name)
        else:
            domain.used = math.fsum(values) / len(values)
    unknown = [name for name in used if not any(domain_name[:NAME_MOST] == name[:NAME_MOST] for domain_name in domains)]
    if unknown:
        notes.append(f"{in_short(unknown)}: CPU use by xentop is left out: no listing has these domains")
    if unlisted:
        notes.append(
            f"{in_short(unlisted)}: not listed by xentop, or with a name cut; nothing runs in there (-f: full names)"
        )


def _usual_nodes(topology: Topology, masks: Sequence[str]) -> list[int]:
    """The nodes of the pCPUs that are preferred, or else allowed."""
    listed = [pcpu for mask in masks or ["all"] for pcpu in pcpu_set(mask, topology.pcpus)]
    return sorted({topology.node(pcpu) for pcpu in listed})


def _table(name: str, domain: Domain, host: _Host, count: int) -> list[str]:
    params = host.defaults(domain.pool)
    vcpus = domain.vcpus or 1
    lines = [f"[domain.{key(name)}]", *([f"count = {count}"] if count > 1 else []), f"vcpus = {vcpus}"]
    if name == DOM0:
        lines.append("driver_domain = true")
    if domain.pool is not None and domain.pool in [mask.name for mask in host.pools[1:]]:
        lines.append(f"pool = {toml(plain_name(domain.pool))}")
    elif domain.pool not in (None, POOL_0, host.pools[0].name):
        host.notes.append(left_out(name, "pool", domain.pool, "its CPUs are not listed (`xl cpupool-list -c` does)"))
    taken = accepted(
        name, domain.params, host.domain_params(domain.pool), vcpus, notes=host.notes, path=domain.scheduled_by
    )
    lines += [f"{param} = {value}" for param, value in taken.items() if params[param] != value]
    masks_here: list[str] = []
    for kind, masks in (("affinity", domain.affinity), ("soft_affinity", domain.soft)):
        cpu_sets = [host.set_of(mask, f"{kind} of {name}") for mask in masks]
        masks_here = cpu_sets if set(cpu_sets) - {"all"} else masks_here
        if set(cpu_sets) - {"all"}:
            same = len(set(cpu_sets)) == 1
            lines.append(f"{kind} = {toml(cpu_sets[0] if same else cpu_sets)}")
    nodes = _memory_nodes(domain, host, name)
    if nodes and nodes != _usual_nodes(host.map.topology, masks_here):
        lines.append(f"memory_nodes = {toml(nodes[0] if len(nodes) == 1 else nodes)}")
    lines += work(name, domain.used, vcpus, "xentop")
    return lines
