"""`experiments.toml`, checked: kinds of guests, settings of schedulers, and the boots in which they meet."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from command import ExperimentError

DEFAULTS = {"credit": {"tslice_ms": 30, "ratelimit_us": 1000}, "credit2": {"ratelimit_us": 1000}}
"""Parameters of each scheduler as a whole, as Xen sets them when it boots."""

DOMAIN = {"weight": 256, "cap": 0, "cpus": "all", "soft": "all"}
"""What a domain has when nothing is set."""

ADDRESSES = {"address": "adr", "ask": "ask", "send_to": "to"}
NUMBERS = {
    "work": "wk",
    "sleep_us": "sl",
    "reply_bytes": "rep",
    "bytes": "rep",
    "burst": "bur",
    "receive": "rcv",
    "disk_bytes": "blk",
    "vcpus": "thr",
}
"""What a guest does, and what `guest.c` calls it."""

PCPUS_MOST = 8

DOM0 = "Domain-0"


@dataclass(frozen=True)
class Setting:
    """One table of `settings`: how one scheduler is set."""

    name: str
    parameters: dict[str, int] = field(default_factory=dict)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)

    def is_for(self, kind: Kind) -> bool:
        """Whether it is recorded with those guests."""
        return self.name in (kind.settings or [self.name]) and kind.name in (self.kinds or [kind.name])


@dataclass(frozen=True)
class Kind:
    """One table of `kinds`: guests, and what is recorded of them."""

    name: str
    guests: list[dict[str, Any]] = field(default_factory=list)
    schedulers: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    pcpus: int = 1
    pools: dict[str, list[int]] = field(default_factory=dict)
    """Besides `Pool-0`: their pCPUs."""

    @property
    def names(self) -> list[str]:
        """Of its guests."""
        return [guest["name"] for guest in self.guests]


@dataclass(frozen=True)
class Boot:
    """What is recorded one after another after one start of the machine."""

    scheduler: str
    kind: Kind
    settings: tuple[Setting, ...]
    seed: int
    seconds: int

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return f"{self.scheduler}-{self.kind.name}"

    def parameters(self, setting: Setting) -> dict[str, int]:
        """Of the scheduler as a whole: what is set, and what is as ever."""
        return DEFAULTS[self.scheduler] | setting.parameters

    def domains(self, setting: Setting) -> dict[str, dict[str, Any]]:
        """What each domain has, Dom0 first."""
        return {name: DOMAIN | setting.domains.get(name, {}) for name in (DOM0, *self.kind.names)}

    def recording(self, setting: Setting) -> str:
        """What a recording is called, but for the release of Xen before it."""
        return f"{self.name}-{setting.name}" + (f"-{self.seed}" if self.seed > 1 else "")


@dataclass(frozen=True)
class Experiments:
    """All of `experiments.toml`."""

    seconds: int
    seeds: list[int]
    kinds: dict[str, Kind]
    settings: dict[str, dict[str, Setting]]

    def boots(self) -> dict[str, list[Boot]]:
        """By name: one for each seed."""
        named: dict[str, list[Boot]] = {}
        for scheduler, settings in self.settings.items():
            for kind in self.kinds.values():
                if kind.schedulers and scheduler not in kind.schedulers:
                    continue
                chosen = tuple(one for one in settings.values() if one.is_for(kind))
                boots = [Boot(scheduler, kind, chosen, seed, self.seconds) for seed in kind.seeds or self.seeds]
                named[boots[0].name] = boots
        return named


class _Reader:
    """Checks tables, since what passes goes into a shell script that trusts it."""

    def __init__(self, file: str) -> None:
        self.where = [file]

    def fail(self, text: str) -> ExperimentError:
        return ExperimentError(f"{': '.join(self.where)}: {text}")

    def table(self, name: str, given: object, known: Iterable[str]) -> dict[str, Any]:
        """A table that has known words only."""
        if not isinstance(given, dict):
            raise self.fail(f"{name}: found `{given}`; allowed: a table")
        for key in given:
            if key not in known:
                raise self.fail(f"{name}: `{key}` is not one of: {', '.join(known)}")
        return given

    def number(self, name: str, value: object, least: int = 0, most: int = 10**9) -> None:
        if type(value) is not int or not least <= value <= most:
            raise self.fail(f"{name}: found `{value}`; allowed: a whole number from {least} to {most}")

    def match(self, name: str, value: object, pattern: str, allowed: str) -> None:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise self.fail(f"{name}: found `{value}`; allowed: {allowed}")

    def names(self, name: str, given: object, known: Iterable[str]) -> list[str]:
        """A list of known names, or nothing."""
        if not isinstance(given, list):
            raise self.fail(f"{name}: found `{given}`; allowed: a list")
        for one in given:
            if one not in known:
                raise self.fail(f"{name}: `{one}` is not one of: {', '.join(known)}")
        return given

    def seeds(self, given: object) -> list[int]:
        if not isinstance(given, list) or not given:
            raise self.fail(f"seeds: found `{given}`; allowed: a list of whole numbers")
        for seed in given:
            self.number("seeds", seed, 1)
        return given

    def settings(self, given: object, kinds: Iterable[str]) -> dict[str, dict[str, Setting]]:
        found: dict[str, dict[str, Setting]] = {}
        for scheduler, settings in self.table("settings", given, DEFAULTS).items():
            found[scheduler] = {}
            for name, table in self.table(f"[settings.{scheduler}]", settings, settings).items():
                found[scheduler][name] = self.setting(scheduler, name, table, kinds)
        if not all(found.get(scheduler) for scheduler in found) or not found:
            raise self.fail("settings: none; allowed: tables [settings.credit], [settings.credit2] of at least one")
        return found

    def setting(self, scheduler: str, name: str, given: object, kinds: Iterable[str]) -> Setting:
        self.where.append(f"[settings.{scheduler}] {name}")
        if not re.fullmatch(r"[a-z0-9-]+", name):
            raise self.fail("a setting's name has lower-case letters, digits and -")
        table = self.table("setting", given, ["parameters", "domains", "kinds"])
        parameters = self.table("parameters", table.get("parameters", {}), DEFAULTS[scheduler])
        for key, value in parameters.items():
            self.number(key, value)
        domains = table.get("domains", {})
        for domain, values in self.table("domains", domains, domains).items():
            for key, value in self.table(f"domain `{domain}`", values, DOMAIN).items():
                if key in {"cpus", "soft"}:
                    self.match(
                        f"domain `{domain}`: {key}", value, r"all|\d+(-\d+)?(,\d+(-\d+)?)*", "all, 0, 0-1 or 0,2"
                    )
                else:
                    self.number(f"domain `{domain}`: {key}", value)
        only = self.names("kinds", table.get("kinds", []), kinds)
        self.where.pop()
        return Setting(name, parameters, domains, only)

    def kind(self, name: str, given: object, settings: dict[str, dict[str, Setting]]) -> Kind:
        self.where.append(f"[kinds.{name}]")
        if not re.fullmatch(r"[a-z0-9]+", name):
            raise self.fail("a kind's name has lower-case letters and digits")
        table = self.table("kind", given, ["guests", "schedulers", "settings", "seeds", "pcpus", "pools"])
        self.number("pcpus", table.get("pcpus", 1), 1, PCPUS_MOST)
        pools = self.table("pools", table.get("pools", {}), table.get("pools", {}))
        for pool, pcpus in pools.items():
            self.match("pools", pool, r"[a-z0-9]+", "names of lower-case letters and digits")
            if not isinstance(pcpus, list) or not pcpus:
                raise self.fail(f"pool `{pool}`: found `{pcpus}`; allowed: a list of pCPUs")
            for pcpu in pcpus:
                self.number(f"pool `{pool}`", pcpu, 1, table.get("pcpus", 1) - 1)
        guests = table.get("guests", [])
        if not isinstance(guests, list) or not guests:
            raise self.fail("no guests")
        for guest in guests:
            self.guest(guest, pools)
        if len({guest["name"] for guest in guests}) < len(guests):
            raise self.fail("guests: every guest needs a name of its own")
        self.names("schedulers", table.get("schedulers", []), settings)
        self.names("settings", table.get("settings", []), {name: 0 for named in settings.values() for name in named})
        if "seeds" in table:
            self.seeds(table["seeds"])
        self.where.pop()
        return Kind(name, **table)

    def guest(self, given: object, pools: Iterable[str]) -> None:
        guest = self.table("guest", given, ["name", "pool", *ADDRESSES, *NUMBERS])
        name = guest.get("name", "")
        if not re.fullmatch(r"[A-Za-z0-9]+", str(name)):
            raise self.fail(f"every guest needs a name of letters and digits: {guest}")
        for key, value in guest.items():
            field = f"guest `{name}`: {key}"
            if key in ADDRESSES:
                self.match(field, value, r"\d+(\.\d+){3}", "an IPv4 address")
                if "address" not in guest:
                    raise self.fail(f"{field}: needs an `address` of its own")
            elif key in NUMBERS:
                self.number(field, value)
            elif key == "pool":
                self.names(field, [value], pools)


def read_experiments(path: Path) -> Experiments:
    """All of a file, checked."""
    try:
        file = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path.name}: {error}") from error
    reader = _Reader(path.name)
    reader.table("tables", file, ["seconds", "seeds", "kinds", "settings"])
    reader.number("seconds", file.get("seconds"), 1, 60)
    seeds = reader.seeds(file.get("seeds"))
    given = reader.table("kinds", file.get("kinds", {}), file.get("kinds", {}))
    settings = reader.settings(file.get("settings"), given)
    kinds = {name: reader.kind(name, table, settings) for name, table in given.items()}
    if not kinds:
        raise reader.fail("kinds: none; allowed: at least one table [kinds.NAME]")
    known = {DOM0} | {name for kind in kinds.values() for name in kind.names}
    for scheduler, named in settings.items():
        for setting in named.values():
            for domain in setting.domains:
                if domain not in known:
                    where = f"{path.name}: [settings.{scheduler}] {setting.name}: domains"
                    raise ExperimentError(f"{where}: `{domain}` is not one of: {', '.join(sorted(known))}")
    return Experiments(file["seconds"], seeds, kinds, settings)
