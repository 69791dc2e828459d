"""Xen's ways for settings: at boot or by a command of `xl` (before Xen 4.1 `xm`), and how settings are kept.

The toolstack decides where a setting is kept: `xl`, `xapi`.

Sources: the registry (`Toolstack` in `crates/sched`) for the parameters of the schedulers; `xl(1)` and
`xlcpupool.cfg(5)` for the other commands, `xl(1)` of Xen 4.4 for what its pools take; Xen's page on its command line
(`docs/misc/xen-command-line`) for the options at boot, and for `smt`, which cannot be switched at run time where cores
are scheduled; the help of `xenpm` (`set-sched-smt`, `set-scaling-governor`) and of `xen-hptool` (`smt-enable`,
`smt-disable`, from 4.13 on); what `cpupool-numa-split` of 4.17 calls its pools.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch

from vcpulab.hypervisors import dom0
from vcpulab.hypervisors.limits import takes
from vcpulab.hypervisors.settings import (
    DOM0,
    POOL_0,
    Affinity,
    AnotherHypervisor,
    Backend,
    Governor,
    Granularity,
    Interrupts,
    Life,
    Machine,
    Member,
    MemoryNodes,
    MemoryStays,
    NoHypervisor,
    Online,
    Params,
    Pcpus,
    Pool,
    PoolGone,
    PoolMade,
    PoolPcpus,
    PoolsByNode,
    Scheduler,
    Setting,
    Shape,
    Smt,
    Vcpus,
)
from vcpulab.hypervisors.way import Way
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.units import spans

# The tool whose releases know CPU pools.
HAS_POOLS = "xl"

KEPT_AT_BOOT: Mapping[str, str] = {
    "tslice_ms": "sched_credit_tslice_ms",
    "ratelimit_us": "sched_ratelimit_us",
    "migration_delay_us": "vcpu_migration_delay",
}
"""The option of the hypervisor's command line that sets a parameter at its start, for parameters with a command."""

AT_RUN_TIME: Mapping[str, Mapping[int, str]] = {
    "smt_power_savings": {0: "xenpm set-sched-smt disable", 1: "xenpm set-sched-smt enable"},
}
"""Commands that set, at run time, parameters with a boot option and without a command of `xl`."""

OPTIONS_SINCE: Mapping[tuple[str, str], str] = {("rtds", "-e"): "4.10"}
"""Options of commands of `xl` that came later than the scheduler itself: the first release with them."""

KEEPS_SHARES = ("credit", "credit2")
"""The schedulers whose weights and caps are in the configuration of a domain ("honoured by", `xl.cfg(5)`)."""


def way_of(setting: Setting) -> Way:
    """The way of Xen for a setting."""
    pool = getattr(setting, "pool", None)
    if pool is not None and not pool.tools.tool and not isinstance(setting, Scheduler | Params):
        domain = getattr(setting, "domain", None)
        owner = f"pool {pool.name}" if domain is None else f"domain {domain}"
        return Way.none(f"{owner}: {pool} is in no release of Xen", domain)
    return _way(setting)


@singledispatch
def _way(setting: Setting) -> Way:
    raise TypeError(setting)


@_way.register
def _(_setting: NoHypervisor) -> Way:
    return Way.none("there is no hypervisor on bare metal")


@_way.register
def _(setting: Scheduler) -> Way:
    pool = setting.pool
    if not pool.tools.sched:
        return Way.none(f"no release of Xen has {pool}")
    release = f"{pool}: requires another release of the hypervisor"
    return Way(boot=[f"sched={pool.tools.sched}"], cannot=[release] if setting.another_release else [])


@_way.register
def _(setting: Machine) -> Way:
    return Way.none(f"host.{', host.'.join(setting.fields)}: requires another machine")


@_way.register
def _(setting: Shape) -> Way:
    off = "" if setting.topology.threads > 1 else "; of a machine with more threads smt=0 leaves the first of each core"
    return Way.none(f"host.topology: takes a machine of {setting.topology}{off}")


@_way.register
def _(setting: Smt) -> Way:
    way = Way()
    option = f"smt={int(setting.on)}"
    if setting.restarts:
        way.boot = [option]
    else:
        way.run = [f"xen-hptool smt-{'enable' if setting.on else 'disable'}"]
        way.options = [option]
    numbered = smt_numbers(setting)
    if numbered is not None:
        way.cannot = [numbered]
    return way


def smt_numbers(setting: Smt) -> str | None:
    """A note on CPU numbers when threads go offline: the remaining CPUs keep their numbers.

    Examples:
        >>> from vcpulab.scenario.topology import Topology
        >>> from vcpulab.hypervisors.settings import set_up
        >>> from vcpulab import Scenario
        >>> smt_numbers(Smt(set_up(Scenario.starter()).first, False, Topology(1, 4, 2, 1), False))
        'pCPU n of the scenario is then CPU 2 × n of the host: where a command names CPUs, type those'
    """
    if setting.on or not setting.topology.adjacent:
        return None
    times = f"{setting.topology.threads} × n"
    return f"pCPU n of the scenario is then CPU {times} of the host: where a command names CPUs, type those"


@_way.register
def _(setting: Granularity) -> Way:
    return Way(boot=[f"sched-gran={setting.unit}"])


@_way.register
def _(setting: Governor) -> Way:
    option = [f"cpufreq=xen:{setting.name}"]
    return (
        Way(boot=option)
        if setting.restarts
        else Way(run=[f"xenpm set-scaling-governor {setting.name}"], options=option)
    )


@_way.register
def _(setting: Pcpus) -> Way:
    if setting.old_count is not None and setting.count > setting.old_count:
        return Way.none(f"host.pcpus = {setting.count}: takes a machine with more pCPUs than {setting.old_count}")
    return Way(boot=[f"maxcpus={setting.count}"])


def called(domain: str) -> str:
    """The name of a domain in the tools."""
    return "Domain-0" if domain == DOM0 else domain


def _typed(pool: Pool, *words: str) -> str:
    return shlex.join((pool.tools.tool, *words))


# ---- pools ----


@_way.register
def _(setting: PoolMade) -> Way:
    pool, first = setting.pool, setting.first
    if pool.tools.tool != HAS_POOLS:
        return Way.none(f"pool {pool.name}: {pool} has no CPU pools")
    listed = f'"{spans(pool.pcpus)}"' if _takes_ranges(pool) else [str(pcpu) for pcpu in pool.pcpus]
    cpus = listed if isinstance(listed, str) else f"[{', '.join(json.dumps(pcpu) for pcpu in listed)}]"
    settings = (f'name="{pool.name}"', f'sched="{pool.tools.sched}"', f"cpus={cpus}")
    create = _typed(pool, "cpupool-create", *settings)
    if setting.moved is None:
        made = [*_moved(first, "cpupool-cpu-remove", POOL_0, pool.pcpus), create]
        return Way(run=made, before=made)
    out, back = (
        [_typed(pool, "cpupool-migrate", called(domain), where) for domain in setting.moved]
        for where in (POOL_0, pool.name)
    )
    kept = f"pool {pool.name}: set its `sched` where it is made at each start of the host"
    return Way(run=[*out, _typed(pool, "cpupool-destroy", pool.name), create, *back], cannot=[kept])


@_way.register
def _(setting: PoolGone) -> Way:
    pool = setting.pool
    back = _moved(pool, "cpupool-cpu-add", POOL_0, pool.pcpus)
    kept = f"pool {pool.name}: take it out where it is made at each start of the host"
    return Way(run=[_typed(pool, "cpupool-destroy", pool.name), *back], cannot=[kept])


@_way.register
def _(setting: PoolPcpus) -> Way:
    pool = setting.pool
    way = Way(cannot=[f"pool {pool.name}: set its `cpus` where it is made at each start of the host"])
    for pcpus, giver, taker in ((setting.fewer, pool.name, POOL_0), (setting.more, POOL_0, pool.name)):
        way.run += _moved(pool, "cpupool-cpu-remove", giver, pcpus)
        way.run += _moved(pool, "cpupool-cpu-add", taker, pcpus)
    return way


@_way.register
def _(setting: PoolsByNode) -> Way:
    pool = setting.pool
    # The tool gives Pool-0 another name, by which no other command here calls it.
    split = [_typed(pool, "cpupool-numa-split"), _typed(pool, "cpupool-rename", "Pool-node0", POOL_0)]
    return Way(run=split, before=split)


def _takes_ranges(pool: Pool) -> bool:
    """`True`: the pool's commands take several pCPUs at once; those of Xen 4.4 take one."""
    return not pool.generation.startswith("xen4.4")


def _moved(pool: Pool, command: str, name: str, pcpus: Sequence[int]) -> list[str]:
    each = [spans(pcpus)] if pcpus and _takes_ranges(pool) else [str(pcpu) for pcpu in pcpus]
    return [_typed(pool, command, name, cpus) for cpus in each]


# ---- parameters ----


@_way.register
def _(setting: Params) -> Way:
    """One command for all parameters that a command sets; for the others, the reason that no command does."""
    pool, ways = setting.pool, setting.pool.tools.setters
    way, options = Way(setting.domain), list[str]()
    typed: dict[str, int] = {}
    complete = True
    params = pool.of_scope("global" if setting.domain is None else "domain")
    beside = {**{param.name: param.default for param in params}, **setting.table}
    for param in params:
        name, how = param.name, ways.get(param.name)
        given = name in setting.values
        if not given and not (how and how.always and setting.values):
            continue
        value = setting.values.get(name, beside[name])
        allowed = takes(pool.scheduler, pool.tools, name, value, beside)
        # Files of a Linux host are not on a Xen host.
        if how is None or how.by == "host":
            way.cannot.append(f"{setting.owner}: no command sets {name} of {pool}")
        elif allowed is not None:
            unit = f" {param.unit}" if param.unit and allowed.startswith("whole") else ""
            way.cannot.append(
                f"{setting.owner}: {name} = {value} cannot be typed: {pool.tools.tool} takes {allowed}{unit}"
            )
            complete = complete and not how.always
        elif how.by == "boot":
            _at_boot(way, setting, name, how.name, value)
        elif setting.moment == "restart" and name in KEPT_AT_BOOT:
            way.boot.append(f"{KEPT_AT_BOOT[name]}={value}")
        else:
            options += [how.name] if how.by == "option" else []
            options.append(str(int(value) // how.unit))
            typed[name] = value
    if typed and not complete:
        # These are given together or not at all.
        way.cannot.append(f"{setting.owner}: {', '.join(typed)} cannot be typed without it")
    elif typed:
        way.run.append(_command(setting, options))
        way.notes = list(_older(pool, options))
        _keep(way, setting, typed)
    return way


def _older(pool: Pool, options: Sequence[str]) -> Iterator[str]:
    """Notes on options that releases before the first simulated one do not take."""
    first = (policy.generations[0].name for policy in schedulers() if policy.name == pool.scheduler)
    if pool.generation in first:
        for (scheduler, option), since in OPTIONS_SINCE.items():
            if scheduler == pool.scheduler and option in options:
                yield f"xl sched-{scheduler}: `{option}` is there from Xen {since} on; leave it out on an older host"


def _at_boot(way: Way, setting: Params, name: str, option: str, value: object) -> None:
    commands = AT_RUN_TIME.get(name, {})
    if commands and setting.moment != "restart" and setting.pool.name == POOL_0:
        way.run.append(commands[int(str(value))])
        way.options.append(f"{option}={value}")
    elif setting.moment == "action":
        way.cannot.append(f"{setting.owner}: {name} cannot be changed while the host runs")
    elif setting.pool.name != POOL_0:
        whole = f"the boot option {option} holds for the whole host"
        way.cannot.append(f"{setting.owner}: {name} cannot be set for one pool: {whole}")
    else:
        way.boot.append(f"{option}={value}")


def _command(setting: Params, options: list[str]) -> str:
    tools = setting.pool.tools
    if setting.domain is None:
        pool = ["-p", setting.pool.name] if setting.pool.name != POOL_0 else []
        return _typed(setting.pool, *tools.whole.split(), *pool, *options)
    words = [called(setting.domain) if word == "DOM" else word for word in tools.domain.split()]
    return _typed(setting.pool, *words, *options)


def _keep(way: Way, setting: Params, typed: Mapping[str, int]) -> None:
    pool = setting.pool
    if setting.domain is None and pool.name == POOL_0 and typed.keys() <= KEPT_AT_BOOT.keys():
        way.options += [f"{KEPT_AT_BOOT[name]}={value}" for name, value in typed.items()]
    elif setting.domain is None:
        way.before += way.run
    elif pool.tools.tool == HAS_POOLS and setting.domain != DOM0 and pool.scheduler in KEEPS_SHARES:
        way.keys |= typed
    else:
        way.after += way.run


# ---- domains ----


@_way.register
def _(setting: Vcpus) -> Way:
    pool, domain, count = setting.pool, setting.domain, setting.count
    if domain == DOM0:
        return Way(domain, boot=[f"dom0_max_vcpus={count}"])
    if _is_first_release(pool):
        return Way.none(f"domain {domain}: xm of {pool.generation} changes no number of vCPUs", domain)
    more = setting.old_count is not None and count > setting.old_count
    keys = {"vcpus": count} | ({"maxvcpus": count} if more else {})
    return Way(domain, run=[_typed(pool, "vcpu-set", domain, str(count))], keys=keys)


@_way.register
def _(setting: Online) -> Way:
    pool, domain = setting.pool, setting.domain
    if _is_first_release(pool):
        return Way.none(f"domain {domain}: xm of {pool.generation} takes no vCPU offline", domain)
    if setting.count is not None:
        return Way(domain, run=[_typed(pool, "vcpu-set", called(domain), str(setting.count))])
    inside = f"in the guest: echo {int(setting.on)} > /sys/devices/system/cpu/cpu{setting.vcpu}/online"
    return Way.none(f"domain {domain}: {pool.tools.tool} vcpu-set takes the last ones offline; {inside}", domain)


@_way.register
def _(setting: Member) -> Way:
    pool, domain = setting.pool, setting.domain
    if pool.tools.tool != HAS_POOLS:
        return Way.none(f"domain {domain}: {pool} has no CPU pools", domain)
    return Way(domain, run=[_typed(pool, "cpupool-migrate", called(domain), pool.name)], keys={"pool": pool.name})


@_way.register(AnotherHypervisor)
@_way.register(MemoryStays)
def _(setting: AnotherHypervisor | MemoryStays) -> Way:
    return Way.none(str(setting))


@_way.register
def _(setting: MemoryNodes) -> Way:
    nodes = f"node{'s' * (len(setting.nodes) > 1)} {spans(setting.nodes)}"
    how = "memory is placed when a domain is created, on the nodes of its affinity then, and stays there"
    return Way.none(f"domain {setting.domain}: memory on {nodes}: {how}", setting.domain)


@_way.register(Backend)
@_way.register(Interrupts)
def _(setting: Backend | Interrupts) -> Way:
    run, to_know = dom0.placed(setting)
    return Way(setting.domain if isinstance(setting, Backend) else None, run=run, cannot=[to_know])


def _is_first_release(pool: Pool) -> bool:
    return pool.generation.startswith("xen2")


@_way.register
def _(setting: Affinity) -> Way:
    pool, domain, pcpus = setting.pool, setting.domain, setting.pcpus
    if not isinstance(pcpus, str):
        pins = {str(vcpu): cpus for vcpu, cpus in enumerate(pcpus)}
    else:
        pins = {"all" if setting.vcpu is None else str(setting.vcpu): pcpus}
    way = Way(domain)
    if not _is_first_release(pool):
        # Of the two masks a dash leaves the hard one as it is.
        hard = ["-"] if setting.soft else []
        way.run = [_typed(pool, "vcpu-pin", called(domain), vcpu, *hard, cpus) for vcpu, cpus in pins.items()]
    elif pins.keys() <= {"all", "0"} and all(cpus.isdecimal() for cpus in pins.values()):
        way.run = [_typed(pool, "pincpu", called(domain), cpus) for cpus in pins.values()]
    else:
        return Way.none(f"domain {domain}: xm pincpu of {pool.generation} pins to one pCPU", domain)
    if (
        domain == DOM0
        and not setting.soft
        and not isinstance(pcpus, str)
        and list(pcpus) == [str(vcpu) for vcpu in range(len(pcpus))]
    ):
        way.options = ["dom0_vcpus_pin"]
    elif domain != DOM0 and pool.tools.tool == HAS_POOLS:
        way.keys = {"soft_affinity" if setting.soft else "affinity": pcpus}
    else:
        way.after = way.run
    return way


@_way.register
def _(setting: Life) -> Way:
    pool, domain, op = setting.pool, setting.domain, setting.op
    state = f"{domain}.save"
    if op == "destroy" and setting.saved:
        return Way(domain, run=[f"rm {state}"])
    words = {
        "create": ("create", f"{domain}.cfg"),
        "save": ("save", domain, state),
        "restore": ("restore", state),
        # The kernel of the guest crashes itself when it gets this key.
        "crash": ("sysrq", called(domain), "c"),
    }
    return Way(domain, run=[_typed(pool, *words.get(op, (op, called(domain))))])
