"""The space of settings: parameters, their options, and the changes of a scenario for a choice of options."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vcpulab.advice.reservations import reservations
from vcpulab.scenario.catalogue import generation_of
from vcpulab.scenario.scenario import Scenario, join, split

_WARP = ("warpback", "warpvalue", "warpl", "warpu")
SCHEDULER = "host.scheduler"


@dataclass(frozen=True)
class Option:
    """An option of a parameter."""

    label: str
    value: Any
    """Value to set; for a scheduler, the generation if it is not the default; for several fields, path to value."""


@dataclass(frozen=True)
class Parameter:
    """A parameter to vary."""

    name: str
    """Path of the field that it sets, or `reservation`, `reservation_period`, `warp`, `pinning` below a domain's."""
    options: tuple[Option, ...]
    now: int
    """Index of the present setting's option."""
    ordered: bool = True
    """Are neighbouring options alike?"""
    scheduler: str | None = None
    """The scheduler that has the parameter; `None`: all have it."""
    by_default: bool = True
    """Is the parameter searched if the user names none?"""
    paths: tuple[str, ...] = ()
    """Paths of the fields that it sets in alike domains; empty: only `name`."""
    by_rule: bool = False
    """Are the options fixes of a rule of lint, which are tried first?"""

    @property
    def key(self) -> str:
        """Unique key: the name, with the scheduler if only one has the parameter."""
        return self.name if self.scheduler is None else f"{self.name} ({self.scheduler})"

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(option.label for option in self.options)}"


@dataclass(frozen=True)
class Space:
    """All settings of a scenario's parameters."""

    scenario: Scenario
    parameters: tuple[Parameter, ...]

    @property
    def present(self) -> dict[str, int]:
        """The present setting: key of a parameter to the number of its option."""
        return {parameter.key: parameter.now for parameter in self.active(self.scenario.host.scheduler)}

    @property
    def size(self) -> int:
        """Number of settings."""
        return sum(
            math.prod(len(parameter.options) for parameter in self.active(name) if parameter.name != SCHEDULER)
            for name in self.schedulers
        )

    @property
    def schedulers(self) -> list[str]:
        """The schedulers to choose from."""
        for parameter in self.parameters:
            if parameter.name == SCHEDULER:
                return [option.label for option in parameter.options]
        return [self.scenario.host.scheduler]

    def active(self, scheduler: str) -> Iterator[Parameter]:
        """The parameters under a scheduler, in their order."""
        return (parameter for parameter in self.parameters if parameter.scheduler in (None, scheduler))

    def picks(self, choose: Callable[[Parameter], int]) -> dict[str, int]:
        """The setting that a function chooses: key of each parameter under its scheduler to the chosen option."""
        scheduler = self.scenario.host.scheduler
        picked: dict[str, int] = {}
        for parameter in sorted(self.parameters, key=lambda parameter: parameter.name != SCHEDULER):
            if parameter.scheduler not in (None, scheduler):
                continue
            picked[parameter.key] = choose(parameter)
            if parameter.name == SCHEDULER:
                scheduler = parameter.options[picked[parameter.key]].label
        return picked

    def each_scheduler(self) -> Iterator[dict[str, int]]:
        """Each scheduler with the present options of its parameters."""
        for index in range(len(self.schedulers)):
            yield self.picks(partial(_now_but_for_the_scheduler, index))

    def every(self) -> Iterator[dict[str, int]]:
        """Every setting."""

        def go(parameters: Sequence[Parameter]) -> Iterator[dict[str, int]]:
            if not parameters:
                yield {}
                return
            first, *rest = parameters
            for index in range(len(first.options)):
                for picks in go(rest):
                    yield {first.key: index, **picks}

        choice = next((parameter for parameter in self.parameters if parameter.name == SCHEDULER), None)
        if choice is None:
            yield from go(list(self.active(self.scenario.host.scheduler)))
            return
        for index, name in enumerate(self.schedulers):
            for picked in go([parameter for parameter in self.active(name) if parameter is not choice]):
                yield {choice.key: index, **picked}

    def changes(self, picked: Mapping[str, int]) -> dict[str, Any]:
        """The changes of the scenario by a setting: full path to value.

        Conflicting options are adjusted: reservations of more than all pCPUs are cut, domain by domain, and a rate
        limit is cut to the timeslice.
        """
        chosen = {
            path: (parameter.options[picked[parameter.key]], picked[parameter.key] == parameter.now)
            for parameter in self.parameters
            if parameter.key in picked
            for path in parameter.paths or (parameter.name,)
        }
        changes: dict[str, Any] = {}
        scheduler = self.scenario.host.scheduler
        choice, is_present = chosen.get(SCHEDULER, (None, True))
        if choice is not None and not is_present:
            scheduler = choice.label
            changes |= switched(choice)
        for name, (option, is_now) in chosen.items():
            if is_now or name == SCHEDULER or split(name)[-1] in _COMPOUND:
                continue
            changes |= option.value if isinstance(option.value, Mapping) else {name: option.value}
        self._fit_reservations(changes, chosen, scheduler)
        self._fit_warps(changes, chosen)
        self._fit_pinning(changes, chosen)
        self._fit_ratelimit(changes, scheduler)
        return changes

    def _fit_reservations(
        self, changes: dict[str, Any], chosen: Mapping[str, tuple[Option, bool]], scheduler: str
    ) -> None:
        reservation = reservations().get(scheduler)
        if reservation is None:
            return
        left = 100 * self.scenario.host.pcpus
        another = scheduler != self.scenario.host.scheduler
        for domain, present in self.scenario.domains.items():
            share, share_is_now = chosen.get(join(["domain", domain, "reservation"]), (None, True))
            period, period_is_now = chosen.get(join(["domain", domain, "reservation_period"]), (None, True))
            if share is None or (share_is_now and (period is None or period_is_now)):
                continue
            vcpus = int(changes.get(join(["domain", domain, "vcpus"]), present.vcpus))
            # The options are tenths of a pCPU.
            fits = min(float(share.value), max(left, 0) // (10 * vcpus) * 10)
            left -= round(fits * vcpus)
            paths = {name: join(["domain", domain, name]) for name in reservation.fields}
            given = {} if another else present.params
            present_ms = given.get(reservation.period, 0) / reservation.per_ms
            period_ms = period.value if period is not None and period.value else present_ms or 10
            if fits <= 0:
                changes |= {path: None for name, path in paths.items() if name in given}
                continue
            length = round(period_ms * reservation.per_ms)
            wanted = {reservation.period: length, reservation.amount: round(length * fits / 100)}
            wanted |= dict.fromkeys(reservation.at_most_period, length)
            if reservation.amount not in given:
                # A domain without a reservation keeps extra time when it gets one.
                wanted[reservation.extra] = 1
            changes |= {paths[name]: value for name, value in wanted.items() if given.get(name) != value}

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
        pcpus, first = self.scenario.host.pcpus, 0
        drivers = {name: domain for name, domain in self.scenario.domains.items() if domain.driver_domain}
        wanted = {}
        for name, domain in drivers.items():
            vcpus = int(changes.get(join(["domain", name, "vcpus"]), domain.vcpus))
            wanted[name] = (first, first + vcpus - 1)
            first += vcpus
        if first > pcpus or (how == "exclusive" and first == pcpus):
            return
        for name, (low, high) in wanted.items():
            changes[join(["domain", name, "affinity"])] = _range(low, high)
        if how == "exclusive":
            for name in self.scenario.domains:
                if name not in drivers:
                    changes[join(["domain", name, "affinity"])] = _range(first, pcpus - 1)

    def _fit_ratelimit(self, changes: dict[str, Any], scheduler: str) -> None:
        # A rate limit of the present setting that is longer stays: the user chose it.
        if scheduler != "credit" or not changes.keys() & {SCHEDULER, "host.tslice_ms", "host.ratelimit_us"}:
            return
        host = self.scenario.host
        present = host.generation if host.scheduler == scheduler else None
        generation = generation_of(scheduler, changes.get("host.generation") or present)
        defaults = generation.defaults if generation else {}
        if "tslice_ms" not in defaults:
            return
        tslice, rate = (
            int(changes.get(f"host.{name}", host.params.get(name, defaults[name])))
            for name in ("tslice_ms", "ratelimit_us")
        )
        if rate > 1000 * tslice:
            changes["host.ratelimit_us"] = 1000 * tslice


def _now_but_for_the_scheduler(index: int, parameter: Parameter) -> int:
    return index if parameter.name == SCHEDULER else parameter.now


_COMPOUND = ("reservation", "reservation_period", "warp", "pinning")


def switched(option: Option) -> dict[str, Any]:
    """The changes of the scenario for the choice of a scheduler."""
    return {SCHEDULER: option.label, **({"host.generation": option.value} if option.value else {})}


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"
