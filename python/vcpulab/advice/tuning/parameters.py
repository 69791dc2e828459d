"""Parameters that may be changed: policies, their parameters from the registry, driver domains' vCPUs and pinning.

Each has a short list of options: few enough to be tried, round enough to be typed. The present setting is always
one of them.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import Any, NamedTuple

from vcpulab.errors import RequestError
from vcpulab.hypervisors.limits import takes
from vcpulab.scenario import settings
from vcpulab.scenario.catalogue import generation_of, schedulers
from vcpulab.scenario.names import is_pattern, matching
from vcpulab.scenario.scenario import Scenario, join, split

OPTIONS_MAX = 32
"""A range that is given by hand is tried at so many values at most."""

GRIDS: Mapping[str, Sequence[int]] = {
    "weight": (64, 128, 256, 512, 1024, 2048, 4096, 8192),
    "tslice_ms": (1, 2, 5, 10, 20, 30, 50, 100),
    "slice_ms": (1, 2, 5, 10, 20, 30, 50, 100),
    "ratelimit_us": (0, 100, 300, 1000, 3000, 10_000),
    "migration_delay_us": (0, 100, 300, 1000, 3000, 10_000),
    "migrate_resist_us": (0, 100, 500, 1000, 5000),
    "cap_period_ms": (1, 2, 5, 10, 20, 50, 100),
    "ctx_allow": (100_000, 500_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000),
    "mcu_adv": (1, 2, 5, 10, 20, 50, 100),
}
"""Values worth trying, over the range in which a parameter makes sense; of others halves and doubles of the default."""

UNASKED = ("weight", "tslice_ms", "slice_ms", "ratelimit_us", "ctx_allow", "mcu_adv")
"""Parameters that are searched where nobody says which."""

SHARES = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
"""Reservations, % of a pCPU for each vCPU."""
PERIODS_MS = (10, 20, 50, 100)
"""Periods of reservations: with whole tenths of them even the coarsest tool can set the slice."""
WARPS = (0, 100, 1000, 10_000)
"""Virtual time that a domain borrows under BVT: at the default advance 1, 10 and 100 ms."""

_MS_NS = 1_000_000


@dataclass(frozen=True)
class _Reservation:
    """How a scheduler with guaranteed CPU time spells it."""

    period: str
    slice: str
    per_ms: int
    extra: str
    same_as_period: tuple[str, ...] = ()


_RESERVATIONS: Mapping[str, _Reservation] = {
    "sedf": _Reservation("period", "slice", _MS_NS, "extratime"),
    "rtds": _Reservation("period_us", "budget_us", 1000, "extratime"),
    "atropos": _Reservation("nat_period", "nat_slice", _MS_NS, "xtratime", ("latency",)),
}
_WARP = ("warpback", "warpvalue", "warpl", "warpu")
_SCHEDULER = "host.scheduler"


@dataclass(frozen=True)
class Option:
    """One position of a parameter."""

    label: str
    value: Any
    """What is set; of a scheduler, the generation, if it is not the newest; of several fields, path to value."""


@dataclass(frozen=True)
class Parameter:
    """A parameter that may be changed."""

    name: str
    """The path of what it sets, or `reservation`, `reservation_period`, `warp`, `pinning` behind that of a domain."""
    options: tuple[Option, ...]
    now: int
    """The option that is the present setting."""
    ordered: bool = True
    """Are neighbouring options alike?"""
    scheduler: str | None = None
    """It is there only under this scheduler."""
    unasked: bool = True
    """Is it searched where nobody says which?"""
    paths: tuple[str, ...] = ()
    """Of domains that are alike: what it sets in each of them; nothing: its name says it."""

    @property
    def key(self) -> str:
        """Its name, with its scheduler: unique."""
        return self.name if self.scheduler is None else f"{self.name} ({self.scheduler})"

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(option.label for option in self.options)}"


@dataclass(frozen=True)
class Space:
    """All settings that can be reached by changing some parameters of a scenario."""

    scenario: Scenario
    parameters: tuple[Parameter, ...]

    @property
    def present(self) -> dict[str, int]:
        """The present setting: key of a parameter to the number of its option."""
        return {parameter.key: parameter.now for parameter in self.active(self._scheduler)}

    @property
    def size(self) -> int:
        """How many settings there are."""
        return sum(
            math.prod(len(parameter.options) for parameter in self.active(name) if parameter.name != _SCHEDULER)
            for name in self.schedulers
        )

    @property
    def schedulers(self) -> list[str]:
        """The schedulers to choose from."""
        for parameter in self.parameters:
            if parameter.name == _SCHEDULER:
                return [option.label for option in parameter.options]
        return [self._scheduler]

    def active(self, scheduler: str) -> Iterator[Parameter]:
        """The parameters that are there under a scheduler, that of the host first."""
        return (parameter for parameter in self.parameters if parameter.scheduler in (None, scheduler))

    def picks(self, choose: Callable[[Parameter], int]) -> dict[str, int]:
        """Lets somebody choose an option of each parameter that is there."""
        scheduler = self._scheduler
        picked: dict[str, int] = {}
        for parameter in sorted(self.parameters, key=lambda parameter: parameter.name != _SCHEDULER):
            if parameter.scheduler not in (None, scheduler):
                continue
            picked[parameter.key] = choose(parameter)
            if parameter.name == _SCHEDULER:
                scheduler = parameter.options[picked[parameter.key]].label
        return picked

    def each_scheduler(self) -> Iterator[dict[str, int]]:
        """Each scheduler with its own parameters as they would be."""
        for index in range(len(self.schedulers)):
            yield self.picks(partial(_now_but_for_the_scheduler, index))

    def every(self) -> Iterator[dict[str, int]]:
        """Every setting there is."""

        def go(parameters: Sequence[Parameter]) -> Iterator[dict[str, int]]:
            if not parameters:
                yield {}
                return
            first, *rest = parameters
            for index in range(len(first.options)):
                for others in go(rest):
                    yield {first.key: index, **others}

        choice = next((parameter for parameter in self.parameters if parameter.name == _SCHEDULER), None)
        if choice is None:
            yield from go(list(self.active(self._scheduler)))
            return
        for index, name in enumerate(self.schedulers):
            for picked in go([parameter for parameter in self.active(name) if parameter is not choice]):
                yield {choice.key: index, **picked}

    def changes(self, picked: Mapping[str, int]) -> dict[str, Any]:
        """What a setting changes in the scenario: full path to value.

        What does not fit together is made to fit: reservations of more than there are pCPUs are cut, domain by domain,
        and a rate limit is not longer than the timeslice.
        """
        chosen = {
            path: (parameter.options[picked[parameter.key]], picked[parameter.key] == parameter.now)
            for parameter in self.parameters
            if parameter.key in picked
            for path in parameter.paths or (parameter.name,)
        }
        changes: dict[str, Any] = {}
        scheduler = self._scheduler
        choice, is_present = chosen.get(_SCHEDULER, (None, True))
        if choice is not None and not is_present:
            scheduler = choice.label
            changes |= _switched(choice)
        for name, (option, is_now) in chosen.items():
            if is_now or name == _SCHEDULER or split(name)[-1] in _COMPOUND:
                continue
            changes |= option.value if isinstance(option.value, Mapping) else {name: option.value}
        self._fit_reservations(changes, chosen, scheduler)
        self._fit_warps(changes, chosen)
        self._fit_pinning(changes, chosen)
        self._fit_ratelimit(changes, scheduler)
        return changes

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The scenario as tables, to read only."""
        return self.scenario.to_dict()

    @property
    def _scheduler(self) -> str:
        return str(self.document["host"]["scheduler"])

    def _fit_reservations(
        self, changes: dict[str, Any], chosen: Mapping[str, tuple[Option, bool]], scheduler: str
    ) -> None:
        spelt = _RESERVATIONS.get(scheduler)
        if spelt is None:
            return
        document = self.document
        left = 100 * int(document["host"]["pcpus"])
        another = scheduler != self._scheduler
        for domain, table in document["domain"].items():
            share, share_is_now = chosen.get(join(["domain", domain, "reservation"]), (None, True))
            period, period_is_now = chosen.get(join(["domain", domain, "reservation_period"]), (None, True))
            if share is None or (share_is_now and (period is None or period_is_now)):
                continue
            vcpus = int(changes.get(join(["domain", domain, "vcpus"]), table["vcpus"]))
            # In tenths, as the options are.
            fits = min(float(share.value), max(left, 0) // (10 * vcpus) * 10)
            left -= round(fits * vcpus)
            paths = {name: join(["domain", domain, name]) for name in _spelt(spelt)}
            written = {} if another else self.scenario.written().get("domain", {}).get(domain, {})
            present_ms = written.get(spelt.period, 0) / spelt.per_ms
            period_ms = period.value if period is not None and period.value else present_ms or 10
            if fits <= 0:
                changes |= {path: None for name, path in paths.items() if name in written}
                continue
            length = round(period_ms * spelt.per_ms)
            wanted = {spelt.period: length, spelt.slice: round(length * fits / 100)}
            wanted |= dict.fromkeys(spelt.same_as_period, length)
            if spelt.slice not in written:
                # Who had none and gets one keeps what he had beside it.
                wanted[spelt.extra] = 1
            changes |= {paths[name]: value for name, value in wanted.items() if written.get(name) != value}

    def _fit_warps(self, changes: dict[str, Any], chosen: Mapping[str, tuple[Option, bool]]) -> None:
        for name, (option, is_now) in chosen.items():
            *domain, last = split(name)
            if last == "warp" and not is_now:
                changes[join([*domain, "warpback"])] = int(option.value > 0)
                changes[join([*domain, "warpvalue"])] = option.value

    def _fit_pinning(self, changes: dict[str, Any], chosen: Mapping[str, tuple[Option, bool]]) -> None:
        how = next((option.value for name, (option, _) in chosen.items() if split(name)[-1] == "pinning"), None)
        if not how:
            return
        document = self.document
        pcpus, first = int(document["host"]["pcpus"]), 0
        drivers = [name for name, table in document["domain"].items() if table.get("driver_domain")]
        wanted = {}
        for name in drivers:
            vcpus = int(changes.get(join(["domain", name, "vcpus"]), document["domain"][name]["vcpus"]))
            wanted[name] = (first, first + vcpus - 1)
            first += vcpus
        if first > pcpus or (how == "exclusive" and first == pcpus):
            return
        for name, (low, high) in wanted.items():
            changes[join(["domain", name, "affinity"])] = _range(low, high)
        if how == "exclusive":
            for name in document["domain"]:
                if name not in drivers:
                    changes[join(["domain", name, "affinity"])] = _range(first, pcpus - 1)

    def _fit_ratelimit(self, changes: dict[str, Any], scheduler: str) -> None:
        if scheduler != "credit":
            return
        host = self.scenario.written().get("host", {})
        generation = generation_of("credit", changes.get("host.generation") or host.get("generation"))
        defaults = {param["name"]: param["default"] for param in generation["params"]} if generation else {}
        if "tslice_ms" not in defaults:
            return
        tslice, rate = (
            int(changes.get(f"host.{name}", host.get(name, defaults[name]))) for name in ("tslice_ms", "ratelimit_us")
        )
        if rate > 1000 * tslice:
            changes["host.ratelimit_us"] = 1000 * tslice


def _now_but_for_the_scheduler(index: int, parameter: Parameter) -> int:
    return index if parameter.name == _SCHEDULER else parameter.now


_COMPOUND = ("reservation", "reservation_period", "warp", "pinning")


def space(scenario: Scenario, by_hand: Iterable[str] = (), only: Iterable[str] = ()) -> Space:
    """The parameters that may be changed.

    Args:
        scenario: whose parameters.
        by_hand: `PATH=LOW..HIGH` or `PATH=a,b,c`.
        only: names of parameters that the registry knows, or patterns such as `domain.*.weight`.
            With neither, those that are sensible to search: policies, weights or reservations, slices and rate limits,
            vCPUs and pinning of driver domains.

    Raises:
        RequestError: there is nothing to change, or it cannot be understood.

    Examples:
        >>> found = space(Scenario.starter(), ["host.scheduler=credit,credit2"], ["dom0.weight"])
        >>> [parameter.key for parameter in found.parameters]
        ['host.scheduler', 'domain.dom0.weight (credit)', 'domain.dom0.weight (credit2)']
    """
    by_hand, only = list(by_hand), list(only)
    document = scenario.to_dict()
    stated = [_parsed(scenario, word, document) for word in by_hand]
    every = [path for one in stated for path in one.paths or (one.path,)]
    twice = {path for path in every if every.count(path) > 1}
    if twice:
        raise RequestError(f"`{min(twice)}` is stated twice", field="vary")
    chosen = [_choice(scenario, one.values, one.word) for one in stated if one.path == _SCHEDULER]
    unasked = not by_hand and not only
    patterns = [_pattern(scenario, word, document) for word in only]
    known = _known(scenario, chosen[0] if chosen else None)
    if not chosen and not unasked and not any(fnmatchcase(_SCHEDULER, pattern) for pattern in patterns):
        # Nobody wants another policy.
        present = document["host"]["scheduler"]
        known = [k for k in known if k.name != _SCHEDULER and k.scheduler in (None, present)]
    for pattern, word in zip(patterns, only, strict=True):
        if not any(fnmatchcase(parameter.name, pattern) for parameter in known):
            raise RequestError(field="only", found=word, allowed=_some({parameter.name for parameter in known}))
    parameters = [
        parameter
        for parameter in known
        if (unasked and parameter.unasked)
        or any(fnmatchcase(parameter.name, pattern) for pattern in patterns)
        or (chosen and parameter.name == _SCHEDULER)
    ]
    names = {parameter.scheduler for parameter in known} | {document["host"]["scheduler"]}
    for one in stated:
        if one.path != _SCHEDULER:
            _check_typed(one, document, [name for name in names if name])
            parameters = [parameter for parameter in parameters if parameter.name not in (one.path, *one.paths)]
            by_scheduler = _stated(scenario, one.path, one.values, one.word, [name for name in names if name])
            parameters += map(one.whole, by_scheduler)
    parameters = [parameter for parameter in parameters if len(parameter.options) > 1]
    if not parameters:
        hint = "state a parameter and its range, PATH=LOW..HIGH"
        raise RequestError("nothing is free to be tuned: no parameter has more than one value", field="vary", hint=hint)
    return Space(scenario, tuple(parameters))


# ---- what the registry knows ----


def _known(scenario: Scenario, choice: Parameter | None) -> list[Parameter]:
    """Every parameter that is known of, those of other schedulers too if they may be chosen."""
    document, written = scenario.to_dict(), scenario.written()
    host = document["host"]
    choice = choice or _choice(scenario, None, "")
    parameters = [choice]
    for option in choice.options:
        name = option.label
        generation = generation_of(name, _generation(option, host, name))
        if generation is None:
            continue
        params = generation["params"]
        members = [domain for domain, table in document["domain"].items() if table.get("pool") is None]
        parameters += _global(params, ["host"], written.get("host", {}), name)
        for domain in members:
            parameters += _of_domain(params, domain, document, written, name)
    for pool, table in document.get("pool", {}).items():
        generation = generation_of(table["scheduler"], table["generation"])
        if generation is not None:
            parameters += _global(generation["params"], ["pool", pool], written["pool"][pool], None)
            for domain, fields in document["domain"].items():
                if fields.get("pool") == pool and table["scheduler"] not in _RESERVATIONS:
                    parameters += _of_domain(generation["params"], domain, document, written, None)
    return [*parameters, *_of_drivers(document, written)]


def _choice(scenario: Scenario, values: Sequence[Any] | None, word: str) -> Parameter:
    """Which scheduler: those that the same release of the hypervisor has, or those that were named."""
    host = scenario.to_dict()["host"]
    present = str(host["scheduler"])
    listed = {policy["name"]: policy for policy in schedulers()}
    options = []
    names = [present, *(listed if values is None else map(str, values))]
    for name in dict.fromkeys(names) if present not in listed or values is not None else listed:
        if name not in listed:
            # Somebody's own policy, or none at all, which is said there.
            option = Option(name, None)
            settings.change(scenario, _switched(option), {_SCHEDULER: word}, "vary")
            options.append(option)
            continue
        release = _same_release(listed[name], host["generation"])
        newest = listed[name]["generations"][-1]["name"]
        option = Option(name, None if name == present or release == newest else release)
        if name != present:
            if any(param["default"] is None for param in listed[name]["generations"][-1]["params"]):
                if values is not None:
                    reason = f"`{name}` needs a timetable, which is not searched for"
                    raise RequestError(reason, field="vary", found=word)
                continue
            if values is None and not (release and _would_do(scenario, option)):
                continue
            if values is not None:
                settings.change(scenario, _switched(option), {_SCHEDULER: word}, "vary")
        options.append(option)
    now = next(index for index, option in enumerate(options) if option.label == present)
    return Parameter(_SCHEDULER, tuple(options), now, ordered=False)


def _switched(option: Option) -> dict[str, Any]:
    """What changes with the choice of a scheduler."""
    return {_SCHEDULER: option.label, **({"host.generation": option.value} if option.value else {})}


def _would_do(scenario: Scenario, option: Option) -> bool:
    """Can the scheduler be had for the asking? Not where there are pools, or actions that only another one takes."""
    document = scenario.to_dict()
    vcpus = sum(int(table["vcpus"]) for table in document["domain"].values())
    if document.get("pool") or (option.label == "null" and vcpus > document["host"]["pcpus"]):
        return False
    try:
        settings.change(scenario, _switched(option))
    except RequestError:
        return False
    return True


def _same_release(policy: Mapping[str, Any], release: str) -> str | None:
    """The generation that the release has, if it is in a hypervisor: `xen3.0` is in `xen3.0.3`."""
    for generation in reversed(policy["generations"]):
        name = generation["name"]
        if generation["toolstack"]["tool"] and (release == name or release.startswith(f"{name}.")):
            return str(name)
    return None


def _generation(option: Option, host: Mapping[str, Any], name: str) -> str | None:
    return str(host["generation"]) if name == host["scheduler"] else option.value


def _global(
    params: Sequence[Mapping[str, Any]], where: Sequence[str], written: Mapping[str, Any], scheduler: str | None
) -> Iterator[Parameter]:
    for param in params:
        if param["scope"] == "global" and (values := _grid(param, written)):
            yield _of_values([*where, param["name"]], values, written, param, scheduler)


def _of_domain(
    params: Sequence[Mapping[str, Any]],
    domain: str,
    document: Mapping[str, Any],
    written: Mapping[str, Any],
    scheduler: str | None,
) -> Iterator[Parameter]:
    table, fields = document["domain"][domain], written.get("domain", {}).get(domain, {})
    here = ["domain", domain]
    spelt = _RESERVATIONS.get(scheduler or "")
    driver = bool(table.get("driver_domain"))
    names = {param["name"] for param in params if param["scope"] == "domain"}
    if spelt is not None:
        yield from _reserved(params, here, fields, spelt, scheduler)
    if set(_WARP) <= names:
        now = int(fields.get("warpvalue", 0)) if fields.get("warpback") else 0
        values = sorted({*WARPS, now})
        options = tuple(Option(str(value) if value else "none", value) for value in values)
        yield Parameter(join([*here, "warp"]), options, values.index(now), True, scheduler, driver)
    for param in params:
        if param["scope"] != "domain" or param["name"] in _WARP or (spelt and param["name"] in _spelt(spelt)):
            continue
        if param["name"] == "cap":
            top = 100 * int(table["vcpus"])
            values = sorted({*(top * tenth // 10 for tenth in range(1, 10)), int(fields.get("cap", 0)) or top})
            values = [*(value for value in values if value < top), 0]
            yield _of_values([*here, "cap"], values, fields, param, scheduler, unasked="cap" in fields)
        elif spelt is None and (values := _grid(param, fields)):
            yield _of_values([*here, param["name"]], values, fields, param, scheduler)


def _spelt(spelt: _Reservation) -> tuple[str, ...]:
    return (spelt.period, spelt.slice, spelt.extra, *spelt.same_as_period)


def _reserved(
    params: Sequence[Mapping[str, Any]],
    here: Sequence[str],
    fields: Mapping[str, Any],
    spelt: _Reservation,
    scheduler: str | None,
) -> Iterator[Parameter]:
    defaults = {param["name"]: int(param["default"]) for param in params}
    period, length = (int(fields.get(name, defaults[name])) for name in (spelt.period, spelt.slice))
    share = 100 * length / period if period else 0.0
    least = 0 if not defaults[spelt.period] else 1
    shares = sorted({*(float(one) for one in SHARES if one >= least), share})
    now_ms = period / spelt.per_ms
    periods = sorted({*map(float, PERIODS_MS), *([now_ms] if now_ms else [])})
    labels = tuple(Option(f"{one:g} %" if one else "none", one) for one in shares)
    yield Parameter(join([*here, "reservation"]), labels, shares.index(share), True, scheduler)
    labels = tuple(Option(f"{one:g} ms", one) for one in periods)
    now = periods.index(now_ms) if now_ms else 0
    yield Parameter(join([*here, "reservation_period"]), labels, now, True, scheduler)


_INTEGERS = re.compile(r"(?P<zero>0 or )?an integer from (?P<low>-?\d+) to (?P<high>-?\d+)")


def _grid(param: Mapping[str, Any], written: Mapping[str, Any]) -> list[Any]:
    """The values of a parameter to try; none if it is no number and no choice."""
    allowed = str(param["allowed"])
    if allowed.startswith("one of "):
        return allowed.removeprefix("one of ").split(", ")
    if allowed == "0 or 1":
        return [0, 1]
    match = _INTEGERS.match(allowed)
    if match is None or param["default"] is None:
        return []
    low, high, default = int(match["low"]), int(match["high"]), int(param["default"])
    values = GRIDS.get(param["name"], [default * 2**k // 8 for k in range(7)] if default > 0 else range(default - 4, 5))
    now = int(written.get(param["name"], default))
    fitting = {value for value in values if low <= value <= high or (value == 0 and match["zero"])}
    return sorted(fitting | {now})


def _of_values(
    where: Sequence[str],
    values: Sequence[Any],
    written: Mapping[str, Any],
    param: Mapping[str, Any],
    scheduler: str | None,
    *,
    unasked: bool | None = None,
) -> Parameter:
    name, default = param["name"], str(param["default"]).strip('"')
    now = str(written.get(name, default))
    labels = [str(value) for value in values]
    options = tuple(Option(label, value) for label, value in zip(labels, values, strict=True))
    ordered = not str(param["allowed"]).startswith("one of ")
    return Parameter(
        join(where), options, labels.index(now), ordered, scheduler, name in UNASKED if unasked is None else unasked
    )


def _of_drivers(document: Mapping[str, Any], written: Mapping[str, Any]) -> Iterator[Parameter]:
    """VCPUs and pinning of driver domains."""
    pcpus = int(document["host"]["pcpus"])
    drivers = [name for name, table in document["domain"].items() if table.get("driver_domain")]
    pinned = any("affinity" in fields for fields in written.get("domain", {}).values()) or bool(document.get("pool"))
    if pcpus < 2 or not drivers or pinned:
        return
    for name in drivers:
        now = int(document["domain"][name]["vcpus"])
        values = sorted({n for n in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if n <= pcpus} | {now})
        options = tuple(Option(str(value), value) for value in values)
        yield Parameter(join(["domain", name, "vcpus"]), options, values.index(now))
    options = tuple(
        Option(label, label if index else None) for index, label in enumerate(("none", "pinned", "exclusive"))
    )
    yield Parameter(join(["domain", drivers[0], "pinning"]), options, 0, ordered=False)


# ---- by hand ----


class _Stated(NamedTuple):
    path: str
    values: list[Any]
    word: str
    paths: tuple[str, ...]
    """All that a pattern stands for; nothing: the one path."""

    def whole(self, parameter: Parameter) -> Parameter:
        """The parameter, of all that it stands for."""
        name = self.word.partition("=")[0].strip()
        return replace(parameter, name=name, paths=self.paths) if self.paths else parameter


def _parsed(scenario: Scenario, word: str, document: Mapping[str, Any]) -> _Stated:
    given, equals, text = word.partition("=")
    if not equals or not given.strip() or not text.strip():
        allowed = "PATH=LOW..HIGH or PATH=a,b,c, such as domain.web.weight=64..1024"
        raise RequestError(field="vary", found=word, allowed=allowed)
    paths = tuple(settings.resolve_all(scenario, given.strip(), "vary", document))
    path, several = paths[0], paths if len(paths) > 1 else ()
    present = list(dict.fromkeys(str(_at(document, one)) for one in paths))
    if len(present) > 1:
        raise RequestError(f"they have different values, {', '.join(present)}", field="vary", found=word)
    low, dots, high = text.partition("..")
    if dots:
        return _Stated(path, _between(low.strip(), high.strip(), word), word, several)
    values = settings.value_of(f"[{text}]")
    if not isinstance(values, list):
        values = [settings.value_of(part.strip()) for part in text.split(",")]
    if any(value is None for value in values):
        allowed = "PATH=a,b,c, with a value between each two commas"
        raise RequestError(field="vary", found=word, allowed=allowed)
    return _Stated(path, values, word, several)


def _between(low_text: str, high_text: str, word: str) -> list[Any]:
    low, high = settings.value_of(low_text), settings.value_of(high_text)
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (low, high))
    if not numbers or not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        allowed = "PATH=LOW..HIGH, two numbers of which the second is greater"
        raise RequestError(field="vary", found=word, allowed=allowed)
    whole = isinstance(low, int) and isinstance(high, int)
    if whole and high - low < OPTIONS_MAX // 2:
        return list(range(low, high + 1))
    steps = OPTIONS_MAX // 2
    if low > 0 and high / low >= 10:
        values = [low * (high / low) ** (step / steps) for step in range(steps + 1)]
    else:
        values = [low + (high - low) * step / steps for step in range(steps + 1)]
    # Round enough to be typed.
    rounded = [low, *(float(f"{value:.2g}") for value in values[1:-1]), high]
    return sorted({min(max(round(value) if whole else value, low), high) for value in rounded})


def _check_typed(one: _Stated, document: Mapping[str, Any], names: Sequence[str]) -> None:
    """What no tool takes is never advised.

    Raises:
        RequestError: a value is one that the tool of the scheduler refuses.
    """
    host, (*where, name) = document["host"], split(one.path)
    if where[:1] not in (["host"], ["domain"]):
        return
    beside = document["domain"].get(where[1], {}) if where[0] == "domain" else host
    for scheduler in names:
        found = generation_of(scheduler, host["generation"] if scheduler == host["scheduler"] else None)
        if found is None or all(param["name"] != name for param in found["params"]):
            continue
        for value in one.values:
            allowed = takes(scheduler, found["toolstack"], name, value, beside)
            if allowed is not None:
                tool = found["toolstack"]["tool"]
                raise RequestError(field="vary", found=one.word, allowed=f"{allowed}; {tool} takes no other {name}")


def _stated(scenario: Scenario, path: str, values: list[Any], word: str, names: Sequence[str]) -> Iterator[Parameter]:
    """A parameter stated by hand, one for each scheduler that has it if it is a parameter of schedulers."""
    *where, field = split(path)
    scope = "global" if where == ["host"] else "domain"
    owners: list[str | None] = [
        name
        for name in names
        for generation in [generation_of(name, None)]
        if generation and any(p["name"] == field and p["scope"] == scope for p in generation["params"])
    ]
    here = scenario.to_dict()
    present = _at(scenario.written(), path)
    if present is None:
        present = _at(here, path)
    if present is None and owners:
        mine = here["host"]["scheduler"]
        found = generation_of(mine, here["host"]["generation"])
        defaults = {p["name"]: p["default"] for p in found["params"]} if found else {}
        if defaults.get(field) is not None:
            present = settings.value_of(str(defaults[field]))
    listed = list(dict.fromkeys(values))
    if present is not None and present not in listed:
        listed.append(present)
    if all(isinstance(value, int | float) for value in listed):
        listed.sort()
    # Where it has no value now, as it is is an option of its own.
    options = [Option(str(value), value) for value in listed]
    if present is None:
        options.insert(0, Option("as it is", None))
    now = 0 if present is None else listed.index(present)
    ordered = all(isinstance(value, int | float) for value in listed)
    for option in options:
        _check(scenario, path, option, word, owners)
    for owner in owners or [None]:
        yield Parameter(path, tuple(options), now, ordered, owner)


def _check(scenario: Scenario, path: str, option: Option, word: str, owners: Sequence[str | None]) -> None:
    present = scenario.to_dict()["host"]["scheduler"]
    elsewhere = {_SCHEDULER: owners[0]} if owners and present not in owners else {}
    settings.change(scenario, {**elsewhere, path: option.value}, {path: word}, "vary")


def _at(document: Any, path: str) -> Any:
    for step in split(path):
        if isinstance(document, list) and step.isdecimal() and int(step) < len(document):
            document = document[int(step)]
        elif isinstance(document, Mapping) and step in document:
            document = document[step]
        else:
            return None
    return document


def _pattern(scenario: Scenario, word: str, document: Mapping[str, Any]) -> str:
    word = word.strip()
    if word == _SCHEDULER:
        return word
    if is_pattern(word):
        # `batch*.weight` is that of domains; a pattern of whole paths stays.
        first = split(word)[0]
        return join(["domain", *split(word)]) if matching(first, document["domain"]) and first != "*" else word
    return settings.resolve(scenario, word, "only", document)


def _some(names: set[str]) -> str:
    listed = sorted(names)
    return ", ".join(listed if len(listed) <= 24 else [*listed[:24], "…"])


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"
