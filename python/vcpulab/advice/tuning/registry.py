"""The parameters of the registry of schedulers and of driver domains, each with a few round values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vcpulab.advice.reservations import Reservation, reservations
from vcpulab.advice.tuning import kvm
from vcpulab.advice.tuning.placement import placement_parameters, run_queues, soft_affinities
from vcpulab.advice.tuning.spaces import SCHEDULER, Option, Parameter, switched
from vcpulab.errors import RequestError
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.scenario import settings
from vcpulab.scenario.catalogue import generation_of, schedulers
from vcpulab.scenario.model import Domain, Host
from vcpulab.scenario.parameters import Generation, Param, RegisteredScheduler
from vcpulab.scenario.scenario import Scenario, join

GRIDS: Mapping[str, Sequence[int]] = {
    "tslice_ms": (1, 2, 5, 10, 20, 30, 50, 100),
    "slice_ms": (1, 2, 5, 10, 20, 30, 50, 100),
    "ratelimit_us": (0, 100, 300, 1000, 3000, 10_000),
    "migration_delay_us": (0, 100, 300, 1000, 3000, 10_000),
    "load_balance_ratelimit_us": (0, 100, 300, 1000, 3000, 10_000),
    "migrate_resist_us": (0, 100, 500, 1000, 5000),
    "cap_period_ms": (1, 2, 5, 10, 20, 50, 100),
    "ctx_allow": (100_000, 500_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000),
    "mcu_adv": (1, 2, 5, 10, 20, 50, 100),
    **dict.fromkeys(
        ("vcpu_period_us", "global_period_us"), (10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
    ),
    "global_burst_us": (0, 10_000, 20_000, 50_000, 100_000),
    "migration_cost_us": (0, 100, 500, 1000, 5000),
}
"""Values of each parameter over its sensible range; other parameters are tried at halves and doubles of the default."""
_TIMES = {"weight": (0.25, 0.5, 1, 2, 4, 8, 16, 32)}
"""Values as multiples of the default, for parameters whose default depends on the scheduler."""

SEARCHED_BY_DEFAULT = ("weight", "tslice_ms", "slice_ms", "ratelimit_us", "ctx_allow", "mcu_adv")
"""Parameters of a search without `by_hand` and `only`."""

SHARES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
"""Reservations, % of a pCPU for each vCPU."""
PERIODS_MS = (10, 20, 50, 100)
"""Periods of reservations; every tool can set slices of whole tenths of these."""
WARPS = (0, 100, 1000, 10_000)
"""Virtual time that a domain borrows under BVT: at the default advance 1, 10 and 100 ms."""
_WARP = ("warpback", "warpvalue", "warpl", "warpu")


def registry_parameters(scenario: Scenario, choice: Parameter | None) -> list[Parameter]:
    """Every parameter of the registry for a scenario, with those of all schedulers that may be chosen."""
    host, domains = scenario.host, scenario.domains
    choice = choice or choice_of(scenario, None, "")
    parameters = [choice]
    for option in choice.options:
        name = option.label
        generation = generation_of(name, host.generation if name == host.scheduler else option.value)
        if generation is None:
            continue
        parameters += _global_parameters(generation, ["host"], host.params, name, host)
        parameters += kvm.scheduler_parameters(generation, host, name)
        for member, domain in domains.items():
            if domain.pool == POOL_0:
                parameters += _domain_parameters(generation, member, domain, name)
    for pool, frame in scenario.pools.items():
        generation = generation_of(frame.scheduler, frame.generation)
        if generation is not None:
            parameters += _global_parameters(generation, ["pool", pool], frame.params, None, host)
            for member, domain in domains.items():
                if domain.pool == pool and frame.scheduler not in reservations():
                    parameters += _domain_parameters(generation, member, domain, None)
    guests = [name for name, domain in domains.items() if not domain.driver_domain]
    places = [
        *kvm.host_parameters(scenario),
        *placement_parameters(scenario),
        *soft_affinities(scenario, guests, by_default=False),
    ]
    return [*parameters, *places, *_driver_parameters(scenario)]


def choice_of(scenario: Scenario, values: Sequence[Any] | None, word: str) -> Parameter:
    """The choice of the scheduler: the named ones, or those of the same release of the hypervisor."""
    present = scenario.host.scheduler
    listed = {policy.name: policy for policy in schedulers()}
    options = []
    names = [present, *(listed if values is None else map(str, values))]
    for name in dict.fromkeys(names) if present not in listed or values is not None else listed:
        if name not in listed:
            # A user's own policy; an unknown name is an error of `settings.change`.
            option = Option(name, None)
            settings.change(scenario, switched(option), {SCHEDULER: word}, "vary")
            options.append(option)
            continue
        release = _same_release(listed[name], scenario.host.generation)
        usual = listed[name].default
        option = Option(name, None if name == present or release == usual.name else release)
        if name != present:
            if any(param.default is None for param in usual.params):
                if values is not None:
                    reason = f"`{name}` needs a timetable, which is not searched for"
                    raise RequestError(reason, field="vary", found=word)
                continue
            if values is None and not (release and _would_do(scenario, option)):
                continue
            if values is not None:
                settings.change(scenario, switched(option), {SCHEDULER: word}, "vary")
        options.append(option)
    now = next(index for index, option in enumerate(options) if option.label == present)
    return Parameter(SCHEDULER, tuple(options), now, ordered=False)


def _would_do(scenario: Scenario, option: Option) -> bool:
    """Can the host switch to the scheduler? Not with pools, or with actions that only another scheduler takes."""
    vcpus = sum(domain.vcpus for domain in scenario.domains.values())
    if scenario.pools or (option.label == "null" and vcpus > scenario.host.pcpus):
        return False
    try:
        settings.change(scenario, switched(option))
    except RequestError:
        return False
    return True


def _same_release(policy: RegisteredScheduler, release: str) -> str | None:
    """The policy's generation in a release, if a hypervisor has it: `xen3.0` is in `xen3.0.3`."""
    generation = generation_of(policy.name, release)
    if generation is not None:
        return release if generation.tools.tool else None
    series = (generation.name for generation in policy.generations if generation.tools.tool)
    return next((name for name in series if release.startswith(f"{name}.")), None)


def _global_parameters(
    generation: Generation,
    where: Sequence[str],
    given: Mapping[str, Any],
    scheduler: str | None,
    host: Host,
) -> Iterator[Parameter]:
    for name, param in generation.of_scope("global").items():
        if kvm.is_handled(name) or not (values := _grid(param)):
            continue
        path, by_default = [*where, name], None
        if path == ["host", "runqueue"] and host.topology:
            # On a flat host, the cores and sockets of its pCPUs are unknown.
            values = run_queues(host, param.choices, str(given.get("runqueue", param.default)))
            by_default = len(values) > 2
        yield _parameter(path, values, given, param, scheduler, by_default=by_default)


def _domain_parameters(
    generation: Generation,
    name: str,
    domain: Domain,
    scheduler: str | None,
) -> Iterator[Parameter]:
    given, here = domain.params, ["domain", name]
    reservation = reservations().get(scheduler or "")
    params = generation.of_scope("domain")
    if reservation is not None:
        yield from _reserved(params, here, given, reservation, scheduler)
    if set(_WARP) <= params.keys():
        now = int(given.get("warpvalue", 0)) if given.get("warpback") else 0
        values = sorted({*WARPS, now})
        options = tuple(Option(str(value) if value else "none", value) for value in values)
        yield Parameter(join([*here, "warp"]), options, values.index(now), True, scheduler, domain.driver_domain)
    for field, param in params.items():
        if field in _WARP or kvm.is_handled(field) or (reservation and field in reservation.fields):
            continue
        if param.has_role("cap-percent"):
            top = 100 * domain.vcpus
            limits = {*(top * tenth // 10 for tenth in range(1, 10)), int(given.get("cap", 0))}
            caps = [*sorted(limits - {0}), 0]
            yield _parameter([*here, "cap"], caps, given, param, scheduler, by_default="cap" in given)
        elif reservation is None and (grid := _grid(param)):
            yield _parameter([*here, field], grid, given, param, scheduler)
    yield from kvm.domain_parameters(generation, name, domain, scheduler)


def _reserved(
    params: Mapping[str, Param],
    here: Sequence[str],
    given: Mapping[str, Any],
    reservation: Reservation,
    scheduler: str | None,
) -> Iterator[Parameter]:
    defaults = {name: int(param.default or 0) for name, param in params.items() if param.kind == "int"}
    period, length = (int(given.get(name, defaults[name])) for name in (reservation.period, reservation.amount))
    share = 100 * length / period if period else 0.0
    least = 0 if not defaults[reservation.period] else 1
    shares = sorted({*(float(percent) for percent in SHARES if percent >= least), share})
    now_ms = period / reservation.per_ms
    periods = sorted({*map(float, PERIODS_MS), *([now_ms] if now_ms else [])})
    labels = tuple(Option(f"{percent:g} %" if percent else "none", percent) for percent in shares)
    yield Parameter(join([*here, "reservation"]), labels, shares.index(share), True, scheduler)
    labels = tuple(Option(f"{ms:g} ms", ms) for ms in periods)
    now = periods.index(now_ms) if now_ms else 0
    yield Parameter(join([*here, "reservation_period"]), labels, now, True, scheduler)


def _grid(param: Param) -> Sequence[int | str]:
    """The values of a parameter to try; empty for a parameter that is neither a number nor a choice."""
    if param.kind == "choice":
        return param.choices
    if param.kind == "flag":
        return [0, 1]
    default = param.default
    if not isinstance(default, int):
        return []
    of_default = [round(default * times) for times in _TIMES.get(param.name, ())]
    values = of_default or GRIDS.get(
        param.name, [default * 2**k // 8 for k in range(7)] if default > 0 else range(default - 4, 5)
    )
    return sorted(value for value in set(values) if param.accepts(value))


def _parameter(
    where: Sequence[str],
    values: Sequence[Any],
    given: Mapping[str, Any],
    param: Param,
    scheduler: str | None,
    *,
    by_default: bool | None = None,
) -> Parameter:
    """A parameter with these values and its present one."""
    name, now = param.name, given.get(param.name, param.default)
    ordered = param.kind != "choice"
    listed = list(values)
    if now not in listed:
        listed = sorted([*listed, now]) if ordered else [*listed, now]
    options = tuple(Option(str(value), value) for value in listed)
    return Parameter(
        join(where),
        options,
        listed.index(now),
        ordered,
        scheduler,
        name in SEARCHED_BY_DEFAULT if by_default is None else by_default,
    )


def _driver_parameters(scenario: Scenario) -> Iterator[Parameter]:
    """VCPUs and pinning of driver domains."""
    pcpus, drivers = scenario.host.pcpus, {name: each for name, each in scenario.domains.items() if each.driver_domain}
    pinned = any(domain.affinity != "all" for domain in scenario.domains.values())
    if pcpus < 2 or not drivers or scenario.pools or pinned:
        return
    for name, domain in drivers.items():
        now = domain.vcpus
        values = sorted({n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if n <= pcpus} | {now})
        options = tuple(Option(str(value), value) for value in values)
        yield Parameter(join(["domain", name, "vcpus"]), options, values.index(now))
    options = tuple(
        Option(label, label if index else None) for index, label in enumerate(("none", "pinned", "exclusive"))
    )
    yield Parameter(join(["domain", next(iter(drivers)), "pinning"]), options, 0, ordered=False)
