"""The cases of the study of Devine."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.window import Window

WEB, MOSS, EXCHANGE, VPS = "web-application", "windows-domain-moss", "windows-domain-exchange", "vps-hosting"
PLACEMENT = "placement"

WEB_USERS = (25, 50, 100, 500, 800)
MOSS_USERS = (25, 50, 100, 500)
EXCHANGE_USERS = (25, 50, 100, 500, 1000)

WEB_WEIGHTS = (256, 512, 1024, 2048, 4096)
WINDOWS_WEIGHTS = (256, 512, 1024, 2048)
"""The weights of the main guests; other guests and Dom0 keep 256."""

WEB_SLICES: Mapping[str, tuple[float, float, float, float]] = {
    "sedf-20": (15, 20, 20, 100),
    "sedf-2.5": (2.5, 10, 2.5, 10),
    "sedf-2.8": (1.6, 10, 2.8, 10),
    "sedf-250": (250, 1000, 250, 1000),
    "sedf-280": (160, 1000, 280, 1000),
}
"""Slice and period of Dom0, slice and period of the guests, ms (Table 4.1)."""
WINDOWS_SLICES: Mapping[str, tuple[float, float, float, float, float]] = {
    "sedf-20": (15, 20, 20, 20, 100),
    "sedf-2": (2, 10, 2, 2, 10),
    "sedf-2.8": (2, 10, 2.8, 1.8, 10),
    "sedf-200": (200, 1000, 200, 200, 1000),
    "sedf-175": (175, 1000, 175, 175, 1000),
}
"""Slice and period of Dom0, slice of the main guests, slice of the others, period of both, ms (Table 4.2)."""

CPUS = 4
"""XenMon's times were divided by those of four CPUs (section 5 of his R code)."""
RUN_S = 1800
DIVISOR_S = {WEB: 1600, MOSS: 1375}
"""His throughput is what came in 1800 s divided by less: throughput x response time / users is 1.125 for the web
application and 1.31 in the middle for MOSS, and could not be more than 1 (notes, "Little's law")."""

WEB_GUESTS = ("apache", "nfs", "mysql")
WINDOWS_GUESTS = ("ad", "exchange", "moss", "mssql")
VPS_GUESTS = ("vps1", "vps2", "vps3", "vps4")

VCPUS: Mapping[str, int] = {
    "dom0": 4,
    "apache": 1,
    **dict.fromkeys(("nfs", "mysql", *WINDOWS_GUESTS), 2),
    **dict.fromkeys(VPS_GUESTS, 1),
}
"""The number of vCPUs of each domain (Figures A.2 and A.3; assumed for guests that were planned)."""

WEB_CREATED = ("mysql", "nfs", "apache")
"""The order in which the guests of the site were created: assumed, those first that others need."""
MOSS_CREATED, MOSS_ANEW = WINDOWS_GUESTS, ("mssql", "ad", "exchange", "moss")
"""The guests of the portal in the order of the figures, and as if created anew, the database first."""
ORDERS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    WEB: (WEB_CREATED, WEB_GUESTS, ("nfs", "mysql", "apache"), ("nfs", "apache", "mysql")),
    MOSS: (MOSS_CREATED, MOSS_ANEW, ("ad", "moss", "exchange", "mssql"), ("moss", "ad", "exchange", "mssql")),
}
"""Orders of creation that experiment `placement` compares."""
PLACED: Mapping[str, tuple[str, ...]] = {WEB: ("sedf-20", "sedf-250"), MOSS: ("sedf-20", "sedf-175")}
"""Configurations of experiment `placement`; without Credit, which moves vCPUs, so that the order does not matter."""

_GENERATION = "xen3.3.0"
_CLIENTS = ("throughput", "response_time")


def cases() -> Iterable[Case]:
    """All cases of the study."""
    for config, changes in web_configurations(WEB_GUESTS):
        for users in WEB_USERS:
            yield _web(config, {**changes, **_placed(config, WEB_CREATED)}, users)
    for config, changes in windows_configurations(("moss", "mssql")):
        for users in MOSS_USERS:
            yield _moss(config, {**changes, **_placed(config, moss_created(config, users))}, users)
    for config, changes in windows_configurations(("exchange",)):
        for users in EXCHANGE_USERS:
            yield _exchange(config, {**changes, **_placed(config, WINDOWS_GUESTS)}, users)
    for config, changes in web_configurations(VPS_GUESTS):
        for users in WEB_USERS:
            yield _vps(config, {**changes, **_placed(config, VPS_GUESTS)}, users)
    web, windows = dict(web_configurations(WEB_GUESTS)), dict(windows_configurations(("moss", "mssql")))
    for experiment, configurations, make in ((WEB, web, _web), (MOSS, windows, _moss)):
        for config in PLACED[experiment]:
            for order in ORDERS[experiment]:
                case = make(config, {**configurations[config], **_placed(config, order)}, 50)
                yield replace(case, key=placed_name(experiment, config, order))


def name(experiment: str, config: str, users: int) -> str:
    """The key of a case."""
    return f"{experiment}: {config} users={users}"


def placed_name(experiment: str, config: str, order: Iterable[str]) -> str:
    """The key of a case with an order of creation of its guests."""
    return f"{PLACEMENT}: {experiment} {config} {' '.join(order)}"


def moss_created(config: str, users: int) -> tuple[str, ...]:
    """The order in which the guests of a MOSS run were created (notes, "Where SEDF puts domains").

    Inferred from the public columns: under SEDF all runs with 25 users and the first configuration with 50 are at one
    level, that of the order in his figures; those after it are up to 45 % higher, as if guests had been created anew.
    """
    return MOSS_CREATED if users == 25 or (config, users) == ("sedf-20", 50) else MOSS_ANEW


def _placed(config: str, order: Iterable[str]) -> dict[str, object]:
    """The placement of guests' vCPUs, created in this order after Dom0: SEDF leaves them there.

    The creation of a domain puts its first vCPU on the pCPU with the fewest, the next ones on the pCPUs after it. Of
    equals the last one is taken; pCPU 0 loses all ties (notes, "Where SEDF puts domains").
    """
    if not config.startswith("sedf"):
        return {}
    load = [VCPUS["dom0"] // CPUS] * CPUS
    affinities: dict[str, object] = {}
    for guest in order:
        first = min(range(CPUS), key=lambda p: (load[p], p == 0, -p))
        homes = [(first + i) % CPUS for i in range(VCPUS[guest])]
        for p in homes:
            load[p] += 1
        affinities[f"domain.{guest}.affinity"] = [str(p) for p in homes]
    return affinities


def web_configurations(guests: Iterable[str]) -> Iterable[tuple[str, dict[str, object]]]:
    """The ten configurations of Table 4.1; under Credit, Dom0 keeps its weight."""
    for weight in WEB_WEIGHTS:
        yield f"credit-{weight}", _credit(dict.fromkeys(guests, weight))
    for config, (dom0_slice, dom0_period, slice_ms, period_ms) in WEB_SLICES.items():
        yield config, _sedf({"dom0": (dom0_slice, dom0_period), **dict.fromkeys(guests, (slice_ms, period_ms))})


def windows_configurations(main: tuple[str, ...]) -> Iterable[tuple[str, dict[str, object]]]:
    """The nine configurations of Table 4.2, for some main guests."""
    for weight in WINDOWS_WEIGHTS:
        yield f"credit-{weight}", _credit(dict.fromkeys(main, weight))
    for config, (dom0_slice, dom0_period, slice_ms, other_ms, period_ms) in WINDOWS_SLICES.items():
        guests = {guest: (slice_ms if guest in main else other_ms, period_ms) for guest in WINDOWS_GUESTS}
        yield config, _sedf({"dom0": (dom0_slice, dom0_period), **guests})


def _credit(weights: Mapping[str, int]) -> dict[str, object]:
    domains = {f"domain.{domain}.weight": weight for domain, weight in weights.items()}
    return {"host.scheduler": "credit", "host.generation": _GENERATION, **domains}


def _sedf(reserved: Mapping[str, tuple[float, float]]) -> dict[str, object]:
    """Slices and periods, ms. All domains have extra time: the flag is 1 in the one listing, and scripts leave it."""
    changes: dict[str, object] = {"host.scheduler": "sedf", "host.generation": _GENERATION}
    for domain, (slice_ms, period_ms) in reserved.items():
        changes[f"domain.{domain}.slice"] = round(slice_ms * 1e6)
        changes[f"domain.{domain}.period"] = round(period_ms * 1e6)
        changes[f"domain.{domain}.extratime"] = 1
    return changes


def _web(config: str, changes: Mapping[str, object], users: int) -> Case:
    # Users that find no worker wait for minutes, many at once: which of them a run's two ends cut off decides the mean
    # response time of a short run. As long as his runs: 1.5 % from one to another, 5 % with half of that.
    crowded = users > 150
    long = {"run.duration": f"{RUN_S}s", "run.sample": "5s"} if crowded else {}
    domains = ("dom0", *WEB_GUESTS)
    return Case(
        name(WEB, config, users),
        "web.toml",
        {**changes, "client.jmeter.users": users, **long},
        partial(_closed, WEB, "apache 1 closed-loop", domains),
        main="apache 1 closed-loop",
        precise=(*_CLIENTS, *(f"{state}@{domain}" for state in ("running", "blocked") for domain in domains)),
        fast={"run.duration": "20s" if crowded else "4s", "run.sample": "200ms"},
    )


def _moss(config: str, changes: Mapping[str, object], users: int) -> Case:
    return Case(
        name(MOSS, config, users),
        "moss.toml",
        # Each waits for seconds.
        {**changes, "client.jmeter.users": users, **({"run.duration": "20s"} if users > 100 else {})},
        partial(_closed, MOSS, "moss 1 closed-loop", ("dom0", *WINDOWS_GUESTS)),
        main="moss 1 closed-loop",
        precise=_CLIENTS,
        fast={"run.duration": "1s", "run.sample": "50ms"},
    )


def _closed(experiment: str, client: str, domains: Iterable[str], window: Window) -> dict[str, float]:
    """The columns of Tables 5.1 to 5.19; `throughput` and the times are his, `requests_per_s` is the truth."""
    true = window.throughput(client)
    return {
        "throughput": true * RUN_S / DIVISOR_S[experiment],
        "requests_per_s": true,
        "response_time": window.response_ms(client),
        "response_sd": _response_sd_ms(window, client),
        "failed_per_s": window.failed_rate(client),
        **_xenmon(domains, window),
    }


def _xenmon(domains: Iterable[str], window: Window) -> dict[str, float]:
    """Time running and blocked, % of four CPUs; `waiting` is the author's residual: the rest of four CPUs' time."""
    percents: dict[str, float] = {}
    for domain in domains:
        running, blocked = window.gotten(domain) / CPUS, window.blocked(domain) / CPUS
        percents |= {
            f"running@{domain}": running,
            f"blocked@{domain}": blocked,
            f"waiting@{domain}": 100 - running - blocked,
            f"runnable@{domain}": window.waited(domain) / CPUS,
        }
    return percents


def _response_sd_ms(window: Window, client: str) -> float:
    """The standard deviation over all samples, including the warm-up."""
    for row in window.run.df_apps().iter_rows(named=True):
        if f"{row['domain']} {row['app']} {row['kind']}" == client:
            return (row["response_sd_ns"] or 0.0) / 1e6
    return float("nan")


def _exchange(config: str, changes: Mapping[str, object], users: int) -> Case:
    client = "exchange 1 closed-loop"

    def measure(window: Window) -> dict[str, float]:
        return {
            "throughput": window.throughput(client),
            "response_time": window.response_ms(client),
            "response_sd": _response_sd_ms(window, client),
            **_xenmon(("dom0", *WINDOWS_GUESTS), window),
        }

    return Case(
        name(EXCHANGE, config, users),
        "exchange.toml",
        {**changes, "client.loadgen.users": users},
        measure,
        main=client,
        precise=("response_time",),
        fast={"run.duration": "60s", "run.sample": "2s", "client.loadgen.ramp_up": "5s"},
    )


def _vps(config: str, changes: Mapping[str, object], users: int) -> Case:
    clients = [f"{guest} 2 closed-loop" for guest in VPS_GUESTS]

    def measure(window: Window) -> dict[str, float]:
        each = [window.throughput(client) for client in clients]
        total = sum(each)
        return {
            "throughput": total,
            "least": min(each),
            "most": max(each),
            "response_time": sum(x * window.response_ms(c) for x, c in zip(each, clients, strict=True) if x) / total
            if total
            else float("nan"),
            **_xenmon(("dom0", *VPS_GUESTS), window),
        }

    of_users = {f"client.users{i}.users": users for i in range(1, len(VPS_GUESTS) + 1)}
    return Case(
        name(VPS, config, users),
        "vps.toml",
        {**changes, **of_users},
        measure,
        main=clients[0],
        precise=_CLIENTS,
        fast={"run.duration": "1500ms", "run.sample": "50ms"},
    )
