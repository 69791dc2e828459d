"""The way in which a host takes a setting: commands for now, commands that keep it, or reasons without a command."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vcpulab.hypervisors.steps import Step


@dataclass
class Way:
    """The commands and options that make a setting and keep it."""

    domain: str | None = None
    """The domain that the setting concerns, if it concerns a single one."""
    called: str | None = None
    """The domain's name in the commands, where it differs."""
    boot: list[str] = field(default_factory=list)
    """Options of the command line of the hypervisor, or of Linux where that is it, which take a restart."""
    run: list[str] = field(default_factory=list)
    """Commands that hold at once."""
    options: list[str] = field(default_factory=list)
    """Options of that command line that keep the setting."""
    keep: list[str] = field(default_factory=list)
    """Commands that keep the setting."""
    keys: dict[str, Any] = field(default_factory=dict)
    """Keys of the domain's configuration that keep the setting: `weight`, `cap`, `vcpus`, `affinity`, `pool`."""
    before: list[str] = field(default_factory=list)
    """Commands to repeat at each start of the host, before the domains are created."""
    after: list[str] = field(default_factory=list)
    """Commands to repeat at each start of the host, after the domains are created."""
    cannot: list[str] = field(default_factory=list)
    """Settings without a command, each with the reason."""
    notes: list[str] = field(default_factory=list)
    """Notes on commands of this kind, the same for every domain, which are listed once."""

    @classmethod
    def none(cls, reason: str, domain: str | None = None) -> "Way":
        """A setting without a command."""
        return cls(domain, cannot=[reason])

    @classmethod
    def each_time(cls, command: str, domain: str | None = None) -> "Way":
        """A command that must be repeated at each start of the host."""
        return cls(domain, run=[command], after=[command])


def run(ways: Iterable[Way]) -> Iterator[Step]:
    """The steps that hold at once."""
    return (Step("run", text, domain=way.domain, called=way.called) for way in ways for text in way.run)


def cannot(ways: Iterable[Way]) -> Iterator[Step]:
    """The settings without a command; then each note once."""
    listed = list(ways)
    yield from (Step("cannot", text, domain=way.domain) for way in listed for text in way.cannot)
    yield from (Step("cannot", text) for text in dict.fromkeys(text for way in listed for text in way.notes))
