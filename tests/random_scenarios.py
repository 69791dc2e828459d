"""Random scenarios over the whole schema: drafted field by field, then repaired until the checks accept them."""

import json
import re
from math import exp, log
from random import Random
from typing import Any

import vcpulab
from support import ROOT
from vcpulab.errors import ScenarioError
from vcpulab.scenario.catalogue import schedulers
from vcpulab.scenario.parameters import Generation, Param, Scope
from vcpulab.scenario.problems import Problem

SCHEMA = json.loads((ROOT / "schema/scenario.schema.json").read_text(encoding="utf-8"))
DEFINITIONS = SCHEMA["$defs"]
REPAIRS_MAX = 60
PATH = re.compile(r'"([^"]*)"|([^.\[\]"]+)|\[(\d+)\]')
PROFILES = ("generic", "generic", "exact", "lp200r", "dl360", "q9550", "epyc-9355p", "xeon-gold-6240", "i3-370m")

Table = dict[str, Any]


def random_scenario(seed: int) -> str:
    """A scenario that is right, as TOML; the same for the same seed."""
    return random_checked(seed).to_toml()


def random_checked(seed: int) -> vcpulab.Scenario:
    """A scenario that is right; the same for the same seed."""
    random = Random(seed)
    while True:
        draft = Draft(random)
        scenario = repaired(draft.scenario(f"random {seed}"), random)
        if scenario is not None:
            return scenario


class Draft:
    """A scenario that may be wrong in places."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.is_kvm = random.random() < 0.45
        self.has_network = random.random() < 0.6
        names = [scheduler.name for scheduler in schedulers()]
        linux = ["linux-cfs", "linux-eevdf"]
        self.scheduler = random.choice(linux if self.is_kvm else [name for name in names if name not in linux])
        self.generation = self.any_generation(self.scheduler)
        self.domain_names = [f"d{number}" for number in range(random.choice([1, 2, 2, 3, 3, 4, 5]))]
        self.pcpus = random.choice([1, 1, 2, 2, 3, 4, 6, 8])
        self.pools: dict[str, Any] = {}
        self.groups: list[str] = []

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- values ----

    def integer(self, least: int, most: int) -> int:
        """Small values as often as large ones; now and then a limit."""
        if self.chance(0.06):
            return self.random.choice([least, most])
        return min(most, least + int((most - least + 1) ** self.random.random()) - 1)

    def span(self, least_ns: int = 1_000, most_ns: int = 30_000_000) -> str:
        ns = round(exp(self.random.uniform(log(least_ns), log(most_ns))))
        return self.random.choice([f"{ns}ns", f"{max(1, ns // 1000)}us", f"{ns / 1e6:.6f}ms"])

    def size(self) -> str | int:
        if self.chance(0.03):
            limits: list[str | int] = ["0B", "1B", "1GiB", 0, 1]
            return self.random.choice(limits)
        return f"{round(exp(self.random.uniform(log(64), log(1 << 24))))}B"

    def cpus(self) -> str:
        first = self.random.randrange(self.pcpus)
        last = self.random.randrange(first, self.pcpus)
        return self.random.choice(["all", f"{first}-{last}", f"{first}", f"{first},{last}"])

    def affinity(self, vcpus: int) -> str | list[str]:
        return self.cpus() if self.chance(0.7) else [self.cpus() for _ in range(vcpus)]

    def value(self, schema: Table) -> Any:
        """A value of a field by its schema; `None`: it cannot be drawn."""
        if schema.get("format") == "time-span":
            return self.span(2_000, 5_000_000)
        if schema.get("format") == "size":
            return self.size()
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        if schema.get("type") == "boolean":
            return self.chance(0.5)
        if schema.get("type") == "integer":
            most = schema.get("maximum", 100)
            return self.integer(schema.get("minimum", 0), most if self.chance(0.07) else min(most, 20))
        return None

    def parameters(self, generation: Generation, scope: Scope, probability: float) -> Table:
        drawn = {name: self.parameter(p) for name, p in generation.of_scope(scope).items() if self.chance(probability)}
        return {name: value for name, value in drawn.items() if value is not None}

    def parameter(self, param: Param) -> Any:
        if param.kind == "choice":
            return self.random.choice(param.choices)
        if param.kind == "flag":
            return self.random.choice([0, 1, True, False])
        if param.kind == "int":
            if param.also and self.chance(0.2):
                return param.also[0]
            return self.integer(param.min, min(param.max, 10**13))
        return None

    def any_generation(self, scheduler: str) -> Generation:
        return self.random.choice(next(one.generations for one in schedulers() if one.name == scheduler))

    # ---- tables ----

    def scenario(self, name: str) -> Table:
        random = self.random
        draft: Table = {"name": name, "seed": random.choice([0, 1, random.randrange(2**32), 2**63 - 1])}
        draft["run"] = self.run()
        draft["host"] = self.host()
        draft["domain"] = {}
        self.has_dom0 = not self.is_kvm and draft["host"].get("drivers") is None and self.has_network
        if self.has_dom0:
            own = self.parameters(self.generation, "domain", 0.2)
            draft["domain"]["dom0"] = {"driver_domain": True, "vcpus": random.choice([1, 1, 2, 4])} | own
        if not self.is_kvm and self.pcpus > 2 and self.chance(0.2):
            draft["pool"] = self.pool()
        if self.is_kvm and self.chance(0.5):
            draft["cgroup"] = self.cgroups()
        for domain in self.domain_names:
            draft["domain"][domain] = self.domain()
        if self.has_network:
            draft |= self.network()
        if self.chance(0.2):
            draft["disk"] = {"sda": self.back_end() | {"kind": random.choice(["spindle", "ssd"])}}
        if self.chance(0.25):
            draft["action"] = self.actions()
        return draft

    def run(self) -> Table:
        run: Table = {"duration": self.span(3_000_000, 60_000_000), "replications": 2}
        run["warmup"] = self.random.choice(["0s", "5ms", "20ms"])
        if self.chance(0.3):
            run["start_spread"] = self.span(1_000, 20_000_000)
        if self.chance(0.4):
            run["sample"] = self.random.choice(["0s", "1ms", "7ms", "20ms"])
        if self.chance(0.2):
            run["profiler"] = {"cycles": self.integer(10_000, 10**8)}
        return run

    def host(self) -> Table:
        random, properties = self.random, DEFINITIONS["Host"]["properties"]
        host: Table = {"scheduler": self.scheduler, "generation": self.generation.name}
        host["profile"] = random.choice(PROFILES)
        if self.is_kvm:
            host |= {"hypervisor": "kvm", "cgroups": random.choice([1, 2, 2])}
        if self.chance(0.45):
            sockets, threads = random.choice([1, 1, 2, 4]), random.choice([1, 2, 2, 4])
            cores = max(1, self.pcpus // (sockets * threads))
            host["topology"] = {"sockets": sockets, "cores": cores, "threads": threads}
            self.pcpus = sockets * cores * threads
            if self.chance(0.4):
                host["topology"]["nodes"] = random.choice([1, 2, 4, sockets])
            if self.chance(0.4):
                host["topology"]["numbering"] = random.choice(["adjacent", "spread"])
        else:
            host["pcpus"] = self.pcpus
        for field in ("sched_gran", "creation", "governor", "toolstack"):
            if self.chance(0.3):
                host[field] = random.choice(properties[field]["enum"])
        if self.chance(0.08):
            host["drivers"] = "hypervisor"
        if self.chance(0.3):
            host["halt_poll_us"] = self.integer(0, 1_000_000)
        if self.chance(0.1):
            host["polls_recorded"] = True
        host |= self.isolation()
        host |= self.parameters(self.generation, "global", 0.25)
        if self.chance(0.3):
            host["costs"] = self.costs()
        if self.scheduler == "arinc653":
            host["major_frame_ns"] = random.choice([30_000_000, 50_000_000, 100_000_000])
            entry = {"vcpu": 0}
            host["entries"] = [
                entry | {"domain": random.choice(self.domain_names), "runtime": self.span(100_000, 5_000_000)}
                for _ in range(random.randint(1, 6))
            ]
        return host

    def isolation(self) -> Table:
        if not (self.is_kvm and self.pcpus > 1 and self.chance(0.2)):
            return {}
        first = self.random.randrange(1, self.pcpus)
        return {self.random.choice(["isolated_cpus", "nohz_full"]): f"{first}-{self.pcpus - 1}"}

    def costs(self) -> Table:
        constants = DEFINITIONS["Host"]["properties"]["costs"]["properties"]
        names = self.random.sample(list(constants), self.random.randint(1, 8))
        return {name: self.cost(constants[name]) for name in names}

    def cost(self, schema: Table) -> int:
        least, most = schema["minimum"], schema["maximum"]
        return self.integer(least, most if self.chance(0.1) else min(most, max(least, 20_000)))

    def pool(self) -> Table:
        first = self.random.randrange(1, self.pcpus)
        others = [one.name for one in schedulers() if not one.name.startswith(("linux-", "arinc"))]
        scheduler = self.random.choice(others)
        generation = self.any_generation(scheduler)
        self.pools["p1"] = generation
        table = {"pcpus": f"{first}-{self.pcpus - 1}", "scheduler": scheduler, "generation": generation.name}
        return {"p1": table | self.parameters(generation, "global", 0.2)}

    def cgroups(self) -> Table:
        tables = {}
        for number in range(self.random.choice([1, 2, 3, 5])):
            parent = self.random.choice([*self.groups, ""])
            own = self.random.choice([f"g{number}", "machine.slice", "system.slice", "user.slice"])
            path = f"{parent}/{own}".removeprefix("/")
            self.groups.append(path)
            table: Table = {}
            if self.chance(0.5):
                table["weight"] = self.integer(1, 10_000)
            if self.chance(0.4):
                table["quota_us"] = self.integer(1_000, 200_000)
                if self.chance(0.4):
                    table["burst_us"] = self.integer(0, table["quota_us"])
            if self.chance(0.4):
                table["period_us"] = self.integer(1_000, 1_000_000)
            if self.chance(0.1):
                table["idle"] = True
            if self.chance(0.2):
                table["cpus"] = self.cpus()
            tables[path] = table
        return tables

    def domain(self) -> Table:
        random = self.random
        domain: Table = {"vcpus": random.choice([1, 1, 2, 2, 3, 4])}
        if self.chance(0.1):
            domain["count"] = random.choice([2, 3])
        generation = self.generation
        if self.pools and self.chance(0.5):
            domain["pool"], generation = next(iter(self.pools.items()))
        domain |= self.parameters(generation, "domain", 0.3)
        if self.chance(0.25):
            domain["affinity"] = self.affinity(domain["vcpus"])
        if self.chance(0.15):
            domain["soft_affinity"] = self.affinity(domain["vcpus"])
        domain |= self.guest()
        if self.is_kvm:
            domain |= self.threads()
        if self.has_network and self.chance(0.7):
            flags = [flag for flag in ("tso", "checksum_offload", "emulated") if self.chance(0.2)]
            domain["nic"] = self.back_end() | {flag: self.chance(0.5) for flag in flags}
        if self.chance(0.4):
            domain["disk"] = self.back_end()
        domain["app"] = [self.app() for _ in range(random.choice([1, 1, 1, 2, 3]))] if self.chance(0.95) else []
        return domain

    def guest(self) -> Table:
        """What a domain says of its kernel and its memory."""
        random = self.random
        drawn = {
            "bound_by": (0.2, random.choice(["compute", "memory", "io"])),
            "memory_nodes": (0.1, random.randint(0, 2)),
            "working_set": (0.1, self.size()),
            "page_cache": (0.1, self.size()),
            "memory": (0.1, self.size()),
            "start": (0.1, self.span(1_000, 30_000_000)),
            "shutdown": (0.06, self.span(1_000, 1_000_000)),
            "wake_cpu": (0.06, self.span(1_000, 1_000_000)),
            "idle_cpu": (0.06, self.span(1_000, 1_000_000)),
            "on_crash": (0.05, random.choice(["destroy", "restart", "preserve"])),
        }
        guest = {field: value for field, (probability, value) in drawn.items() if self.chance(probability)}
        if self.chance(0.12):
            guest |= {"idle_tick": random.choice(["1ms", "4ms", "10ms"]), "idle_tick_cpu": self.span(1_000, 100_000)}
            if self.chance(0.5):
                guest["busy_tick_cpu"] = self.span(1_000, 100_000)
        return guest

    def threads(self) -> Table:
        threads: Table = {}
        if self.chance(0.12):
            threads["daemon"] = True
        if self.chance(0.3):
            threads["cgroup"] = self.random.choice([*self.groups, "machine.slice", "system.slice", "x/y/z"])
        for field in ("emulator_affinity", "iothread_affinity"):
            if self.chance(0.15):
                threads[field] = self.cpus()
        if self.chance(0.3):
            threads["iothreads"] = self.random.randint(0, 1)
        policy = "other"
        if self.chance(0.25):
            policy = threads["sched_policy"] = self.random.choice(["other", "batch", "idle", "fifo", "rr"])
        if policy in ("fifo", "rr") and self.chance(0.4):
            threads["sched_priority"] = self.random.randint(1, 99)
        if policy in ("other", "batch") and self.chance(0.2):
            threads["nice"] = self.random.randint(-20, 19)
        return threads

    def back_end(self) -> Table:
        return {"driver_domain": "dom0"} if self.has_dom0 else {}

    def app(self) -> Table:
        schema = self.random.choice(DEFINITIONS["App"]["oneOf"])["properties"]
        kind = schema["kind"]["const"]
        if kind == "phases":
            return self.phases()
        app: Table = {"kind": kind}
        for field, field_schema in schema.items():
            if field == "kind" or self.chance(0.5):
                continue
            named = field in ("to", "database", "directory", "files") and field_schema.get("type") == "string"
            value = self.random.choice(self.domain_names) if named else self.value(field_schema)
            if value is not None:
                app[field] = value
        return app

    def phases(self) -> Table:
        run = {"run": self.span(1_000, 3_000_000)}
        phases = [
            {"loop": self.random.choice([1, 2, 3, 5]), "event": [run, *(self.event() for _ in range(4))]}
            for _ in range(self.random.randint(1, 3))
        ]
        app = {"kind": "phases", "phase": phases, "loop": self.random.choice([-1, -1, 1, 3])}
        if self.chance(0.2):
            app["instance"] = self.random.randint(1, 4)
        if self.chance(0.2):
            app["start_delay"] = self.span()
        return app

    def event(self) -> Table:
        name = self.random.choice(["x", "y", *self.domain_names])
        quantiles = [f"{ns}ns" for ns in sorted(self.integer(1_000, 1_000_000) for _ in range(3))]
        events: list[tuple[int, Table]] = [
            (40, {"run": self.random.choice([self.span(1_000, 5_000_000), quantiles])}),
            (25, {"sleep": self.random.choice([self.span(5_000, 10_000_000), quantiles])}),
            (8, {"timer": self.span(20_000, 10_000_000)}),
            (4, {"ticks": self.random.randint(1, 5)}),
            (4, {"done": True}),
            (4, {"runtime": self.span(1_000, 2_000_000)}),
            (9, {self.random.choice(["lock", "unlock", "mutex", "signal", "wait", "barrier"]): name}),
            (6, {self.random.choice(["notify", "await", "suspend", "resume"]): name}),
        ]
        return self.random.choices([event for _, event in events], [weight for weight, _ in events])[0]

    def network(self) -> Table:
        tables: Table = {"client": {f"c{number}": self.client() for number in range(self.random.choice([1, 1, 2]))}}
        if self.chance(0.2):
            bits = self.integer(10**6, 10**11)
            tables["client_machine"] = {"m": {"bits_per_s": bits, "processors": self.random.randint(1, 8)}}
            tables["client"]["c0"]["machine"] = "m"
        if self.chance(0.2):
            tables["nic"] = {"eth0": self.back_end()}
        return tables

    def client(self) -> Table:
        schema = self.random.choice(DEFINITIONS["Client"]["oneOf"])["properties"]
        client: Table = {"kind": schema["kind"]["const"], "server": self.random.choice(self.domain_names)}
        if "rate" in schema:
            client["rate"] = round(exp(self.random.uniform(0, 9)), 3)
        if "users" in schema:
            client["users"] = self.integer(1, 2_000)
        for field, field_schema in schema.items():
            if field in client or field in ("app", "machine", "mix") or self.chance(0.7):
                continue
            value = self.value(field_schema)
            if value is not None:
                client[field] = value
        return client

    def actions(self) -> list[Table]:
        kinds = DEFINITIONS["Action"]
        actions, at_ms = [], 0.0
        for _ in range(self.random.randint(1, 8)):
            at_ms += self.random.uniform(0.01, 12)
            op = self.random.choice(kinds.get("oneOf") or kinds["anyOf"])["properties"]["op"]["const"]
            action: Table = {"op": op, "at": f"{at_ms:.3f}ms"}
            if op != "adjust-global":
                action["domain"] = self.random.choice(self.domain_names)
            if op in ("adjust", "adjust-global"):
                action |= self.parameters(self.generation, "domain" if op == "adjust" else "global", 0.3)
            if op == "affinity":
                action["affinity"] = self.cpus()
            if op in ("online", "offline"):
                action["vcpu"] = self.random.randint(1, 3)
            if op == "move-pool":
                action["pool"] = self.random.choice(["p1", "Pool-0"])
            actions.append(action)
        return actions


# ---- repair ----


def repaired(draft: Table, random: Random) -> vcpulab.Scenario | None:
    """The scenario of a draft from which is deleted what the checks refuse, or to which is added what they miss."""
    for _ in range(REPAIRS_MAX):
        try:
            return vcpulab.Scenario.from_dict(draft)
        except ScenarioError as error:
            # From the end, so that positions in lists stay right.
            changes = [_add(draft, problem, random) or _delete(draft, problem) for problem in reversed(error.problems)]
            if not any(changes):
                return None
    return None


def _add(draft: Table, problem: Problem, random: Random) -> bool:
    """Adds what a problem says is missing, if that is a device or a service."""
    message, field = problem["message"], problem["field"] or ""
    named = re.search(r"domain `([^`]*)`", message)
    name = named[1] if named else re.sub(r"^domain\.([^.\[]*).*", r"\1", field)
    domain = draft["domain"].get(name) or draft["domain"].get(re.sub(r"\d+$", "", name))
    if domain is None or random.random() < 0.1:
        return False
    back_end = {"driver_domain": "dom0"} if "dom0" in draft["domain"] else {}
    apps = domain.get("app", [])
    if "needs a disk" in message and "disk" not in domain:
        domain["disk"] = back_end
    elif "network interface" in message and "nic" not in domain:
        domain["nic"] = back_end
    elif "no service runs in domain" in message and len(apps) < 6:
        domain["app"] = [*apps, {"kind": "web-server"}]
    elif kind := re.search(r"must run one `([^`]*)`", message):
        if any(app["kind"] == kind[1] for app in apps):
            return False
        domain["app"] = [*apps, {"kind": kind[1]}]
    else:
        return False
    return True


def _delete(draft: Table, problem: Problem) -> bool:
    """Deletes the field of a problem, or the table around a field that is missing."""
    parent: Any = None
    key: Any = ""
    node: Any = draft
    for quoted, plain, position in PATH.findall(problem["field"] or ""):
        step = int(position) if position else quoted or plain
        missing = isinstance(node, list) and (not position or step >= len(node))
        if missing or not isinstance(node, list | dict) or (isinstance(node, dict) and step not in node):
            break
        parent, key, node = node, step, node[step]
    vital = parent is draft and key in ("host", "domain", "run")
    if parent is None or vital or (parent is draft["domain"] and len(parent) < 2):
        return False
    del parent[key]
    return True
