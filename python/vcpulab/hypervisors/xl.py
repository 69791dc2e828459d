"""What an administrator types to set up on a real host what a scenario says.

The registry knows by which command each parameter of each generation is set (`Toolstack` in `crates/sched`); here those
are put together for a whole scenario, with CPU pools, pinning and timed actions.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.units import span_ns

POOL_0 = "Pool-0"

_LIFE = ("create", "shutdown", "reboot", "crash", "destroy", "save", "restore")

# The tool whose releases know CPU pools.
_HAS_POOLS = "xl"


@dataclass(frozen=True)
class Step:
    """One thing to type, or one that cannot be typed."""

    how: Literal["boot", "run", "cannot"]
    """`boot`: an option of the hypervisor's command line, which takes a restart; `run`: a command for Dom0; `cannot`:
    there is no way on a real host."""
    text: str
    """The option, the command, or the reason."""
    at: str | None = None
    """When: as in the scenario's action; `None`: before everything else."""


def commands(scenario: Scenario) -> list[Step]:
    """The steps that set up a scenario's pCPUs, pools, schedulers, parameters, pinning and actions on a real host.

    Examples:
        >>> web = Scenario.starter().change({"host.scheduler": "credit2", "domain.web.weight": 512})
        >>> for step in commands(web):
        ...     print(step.how, step.text)
        boot sched=credit2 maxcpus=1
        run xl sched-credit2 -d Domain-0 -w 512
        run xl sched-credit2 -d web -w 512
    """
    document = scenario.to_dict()
    host = document["host"]
    pools = {POOL_0: _Pool(POOL_0, host)} | {name: _Pool(name, pool) for name, pool in document.get("pool", {}).items()}
    steps = list(_boot(host, pools))
    for name, pool in pools.items():
        if name != POOL_0:
            steps += pool.create(pools[POOL_0])
    for pool in pools.values():
        steps += pool.set_global(pool.table)
    domains = {name: _Domain(name, table, pools) for name, table in document["domain"].items()}
    later = []
    for name, domain in domains.items():
        if "start" in domain.table:
            later.append({"op": "create", "at": domain.table["start"], "domain": name})
        else:
            steps += domain.set_up()
    for action in sorted([*later, *document.get("action", [])], key=lambda action: span_ns(action["at"])):
        steps += (Step(step.how, step.text, action["at"]) for step in _act(action, pools, domains))
    return steps


def new_steps(before: Scenario, after: Scenario) -> list[Step]:
    """The steps that make one scenario of another that is set up already.

    Examples:
        >>> web = Scenario.starter()
        >>> for step in new_steps(web, web.change({"domain.batch.cap": 50, "domain.dom0.weight": None})):
        ...     print(step.how, step.text)
        run xl sched-credit -d Domain-0 -w 256
        run xl sched-credit -d batch -c 50
    """
    # What goes back to its default must be set to it.
    old, new = before.to_dict(), after.to_dict()
    back = {
        join([*where, param["name"]]): param["default"]
        for where, was, became in _tables_with_params(old, new)
        for param in _params(became, new)
        if param["name"] in was and param["name"] not in became and param["default"] is not None
    }
    after = after.change({path: int(value) if value.lstrip("-").isdecimal() else value for path, value in back.items()})
    known = set(commands(before))
    steps = [step for step in commands(after) if step not in known]
    for name, table in new["domain"].items():
        was = old["domain"].get(name, table)
        if table["vcpus"] != was["vcpus"]:
            boot = name == "dom0"
            text = f"dom0_max_vcpus={table['vcpus']}" if boot else f"xl vcpu-set {shlex.quote(name)} {table['vcpus']}"
            steps.append(Step("boot" if boot else "run", text))
        if table["affinity"] == "all" != was["affinity"]:
            steps.append(Step("run", shlex.join(("xl", "vcpu-pin", _domain(name), "all", "all"))))
    return steps


def _tables_with_params(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[list[str], Mapping[str, Any], Mapping[str, Any]]]:
    """Where tables with parameters of schedulers are, as they were and as they became."""
    yield ["host"], old["host"], new["host"]
    for kind in ("pool", "domain"):
        for name, table in new.get(kind, {}).items():
            yield [kind, name], old.get(kind, {}).get(name, {}), table


def _params(table: Mapping[str, Any], document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parameters that a table may hold: a pool's own, or those of a domain."""
    scope = "global" if "scheduler" in table else "domain"
    pool = table if scope == "global" else document.get("pool", {}).get(table.get("pool"), document["host"])
    generation = generation_of(pool["scheduler"], pool["generation"])
    assert generation is not None, "a checked scenario names what there is"
    return [param for param in generation["params"] if param["scope"] == scope]


class _Pool:
    """A CPU pool and the tools of its scheduler's release."""

    def __init__(self, name: str, table: Mapping[str, Any]) -> None:
        self.name = name
        self.table = table
        self.scheduler = f"{table['scheduler']} ({table['generation']})"
        generation = generation_of(table["scheduler"], table["generation"])
        assert generation is not None, "a checked scenario names what there is"
        self.tools: Mapping[str, Any] = generation["toolstack"]
        self.params: list[Mapping[str, Any]] = generation["params"]

    def run(self, *words: str) -> Step:
        return Step("run", shlex.join((self.tools["tool"], *words)))

    def create(self, first: "_Pool") -> Iterator[Step]:
        if self.tools["tool"] != _HAS_POOLS:
            yield Step("cannot", f"pool {self.name}: {self.scheduler} has no CPU pools, or is in no hypervisor")
            return
        pcpus = members(self.table["pcpus"])
        for pcpu in pcpus:
            yield first.run("cpupool-cpu-remove", POOL_0, str(pcpu))
        listed = ", ".join(f'"{pcpu}"' for pcpu in pcpus)
        settings = (f'name="{self.name}"', f'sched="{self.tools["sched"]}"', f"cpus=[{listed}]")
        yield self.run("cpupool-create", *settings)

    def set_global(self, table: Mapping[str, Any]) -> Iterator[Step]:
        pool = ["-p", self.name] if self.name != POOL_0 else []
        yield from self._set(table, "global", [*self.tools["global"].split(), *pool], f"{self.scheduler}")

    def set_domain(self, name: str, table: Mapping[str, Any]) -> Iterator[Step]:
        words = [_domain(name) if word == "DOM" else word for word in self.tools["domain"].split()]
        yield from self._set(table, "domain", words, f"domain {name}")

    def _set(self, table: Mapping[str, Any], scope: str, words: list[str], whose: str) -> Iterator[Step]:
        """One command for all parameters of a table that there is a command for; for the others, why not."""
        ways = self.tools["set"]
        params = [param for param in self.params if param["scope"] == scope]
        given = [param["name"] for param in params if param["name"] in table]
        options: list[str] = []
        for param in params:
            name, way = param["name"], ways.get(param["name"])
            if way is None or way["by"] == "boot":
                if name in given and (way is None or self.name != POOL_0):
                    yield Step("cannot", f"{whose}: {self._why_not(name, way)}")
            elif name in given or (way.get("always") and given):
                value, unit = int(table.get(name, param["default"])), way.get("unit", 1)
                if value % unit:
                    coarse = f"{self.tools['tool']} takes whole multiples of {unit} {param['unit']}"
                    yield Step("cannot", f"{whose}: {name} = {value}: {coarse}")
                    continue
                options += [way["name"]] if way["by"] == "option" else []
                options.append(str(value // unit))
        if options:
            yield self.run(*words, *options)

    def _why_not(self, name: str, way: Mapping[str, Any] | None) -> str:
        if way is None:
            return f"nothing sets {name} of {self.scheduler} on a real host"
        return f"{name} cannot be set for one pool: the boot option {way['name']} holds for the whole host"

    def boot_options(self) -> Iterator[str]:
        for param in self.params:
            way = self.tools["set"].get(param["name"])
            if way and way["by"] == "boot" and param["name"] in self.table:
                yield f"{way['name']}={self.table[param['name']]}"

    def pin(self, name: str, vcpus: int, affinity: str | list[str]) -> Iterator[Step]:
        if isinstance(affinity, str):
            if affinity != "all":
                yield self.pin_to(name, "all", affinity)
            return
        for vcpu, pcpus in zip(range(vcpus), affinity, strict=True):
            if pcpus != "all":
                yield self.pin_to(name, str(vcpu), pcpus)

    def pin_to(self, name: str, vcpu: str, pcpus: str) -> Step:
        if not self.tools["tool"]:
            return Step("cannot", f"domain {name}: {self.scheduler} is in no hypervisor")
        if self.table["generation"] == "xen2.0":
            listed = members(pcpus)
            if len(listed) > 1 or vcpu not in ("all", "0"):
                return Step("cannot", f"domain {name}: xm pincpu of {self.table['generation']} pins to one pCPU")
            return self.run("pincpu", _domain(name), str(listed[0]))
        return self.run("vcpu-pin", _domain(name), vcpu, pcpus)


class _Domain:
    """A domain: what the file says, the pool that it is in, and which of its vCPUs are online."""

    def __init__(self, name: str, table: Mapping[str, Any], pools: Mapping[str, _Pool]) -> None:
        self.name = name
        self.table = table
        self.home = self.pool = pools[table.get("pool", POOL_0)]
        self.online = set(range(table["vcpus"]))
        self.saved = False

    def set_up(self) -> Iterator[Step]:
        """What a domain needs that has come to the host: it is in `Pool-0`, and has defaults."""
        self.pool = self.home
        if self.pool.name != POOL_0:
            yield self.pool.run("cpupool-migrate", _domain(self.name), self.pool.name)
        yield from self.pool.set_domain(self.name, self.table)
        yield from self.pool.pin(self.name, self.table["vcpus"], self.table.get("affinity", "all"))

    def live(self, op: str) -> Iterator[Step]:
        """Its life goes on in this way."""
        domain, state = _domain(self.name), f"{self.name}.save"
        if op == "destroy" and self.saved:
            yield Step("run", f"rm {state}")
        else:
            words = {
                "create": ("create", f"{self.name}.cfg"),
                "save": ("save", self.name, state),
                "restore": ("restore", state),
                # The kernel of the guest crashes itself when it gets this key.
                "crash": ("sysrq", domain, "c"),
            }
            yield self.pool.run(*words.get(op, (op, domain)))
        self.saved = op == "save"
        again = op in ("create", "reboot") or (op == "crash" and self.table["on_crash"] == "restart")
        if again:
            self.online = set(range(self.table["vcpus"]))
        if again or op == "restore":
            yield from self.set_up()

    def set_online(self, vcpu: int, *, on: bool) -> Step:
        self.online ^= {vcpu}
        if self.pool.table["generation"] == "xen2.0":
            return Step("cannot", f"domain {self.name}: xm of xen2.0 takes no vCPU offline")
        if self.online == set(range(len(self.online))):
            return self.pool.run("vcpu-set", _domain(self.name), str(len(self.online)))
        inside = f"in the guest: echo {int(on)} > /sys/devices/system/cpu/cpu{vcpu}/online"
        return Step(
            "cannot", f"domain {self.name}: {self.pool.tools['tool']} vcpu-set takes the last ones offline; {inside}"
        )


def _boot(host: Mapping[str, Any], pools: Mapping[str, _Pool]) -> Iterator[Step]:
    first = pools[POOL_0]
    if not first.tools["sched"]:
        yield Step("cannot", f"no hypervisor has {first.scheduler}")
        return
    options = [f"sched={first.tools['sched']}", f"maxcpus={host['pcpus']}", *first.boot_options()]
    yield Step("boot", " ".join(options))


def _act(
    action: Mapping[str, Any],
    pools: Mapping[str, _Pool],
    domains: Mapping[str, _Domain],
) -> Iterator[Step]:
    op = action["op"]
    if op == "adjust-global":
        pool = pools[action.get("pool", POOL_0)]
        at_boot = [name for name, way in pool.tools["set"].items() if way["by"] == "boot" and name in action]
        for name in at_boot:
            yield Step("cannot", f"{pool.scheduler}: {name} cannot be changed while the host runs")
        yield from pool.set_global({name: value for name, value in action.items() if name not in at_boot})
        return
    name = action["domain"]
    domain = domains[name]
    pool = domain.pool
    if op == "adjust":
        yield from pool.set_domain(name, action)
    elif op == "affinity":
        vcpu = action.get("vcpu")
        yield pool.pin_to(name, "all" if vcpu is None else str(vcpu), action["affinity"])
    elif op == "move-pool":
        domain.pool = pools[action["pool"]]
        yield pool.run("cpupool-migrate", _domain(name), action["pool"])
    elif not pool.tools["tool"]:
        yield Step("cannot", f"domain {name}: {pool.scheduler} is in no hypervisor")
    elif op in ("online", "offline"):
        yield domain.set_online(action["vcpu"], on=op == "online")
    elif op in _LIFE:
        yield from domain.live(op)
    else:
        yield pool.run(op, _domain(name))


def _domain(name: str) -> str:
    """Dom0 as the tools call it."""
    return "Domain-0" if name == "dom0" else name


def spans(pcpus: Sequence[int]) -> str:
    """Numbers as affinities are written.

    Examples:
        >>> spans([0, 1, 2, 5])
        '0-2,5'
    """
    parts: list[list[int]] = []
    for pcpu in pcpus:
        if parts and parts[-1][-1] == pcpu - 1:
            parts[-1].append(pcpu)
        else:
            parts.append([pcpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def members(pcpus: str) -> list[int]:
    """The pCPUs that a text such as `0-3,8` names.

    Examples:
        >>> members("0-2,8")
        [0, 1, 2, 8]
    """
    listed: list[int] = []
    for part in pcpus.split(","):
        first, _, last = part.partition("-")
        listed += range(int(first), int(last or first) + 1)
    return listed
