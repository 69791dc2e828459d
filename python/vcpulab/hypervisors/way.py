"""How a host takes a setting: what holds at once, what keeps it, what cannot be had."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from vcpulab.hypervisors.steps import Step


@dataclass
class Way:
    """How a setting is made, and kept."""

    domain: str | None = None
    """The domain that it is about, if it is about one."""
    called: str | None = None
    """What the commands call it, where that is not its name."""
    boot: list[str] = field(default_factory=list)
    """Options of the command line of the hypervisor, or of Linux where that is it, which take a restart."""
    run: list[str] = field(default_factory=list)
    """Commands that hold at once."""
    options: list[str] = field(default_factory=list)
    """Options of that command line that keep it."""
    keep: list[str] = field(default_factory=list)
    """Commands that keep it."""
    keys: dict[str, Any] = field(default_factory=dict)
    """What the configuration of the domain must say to keep it: `weight`, `cap`, `vcpus`, `affinity`, `pool`."""
    before: list[str] = field(default_factory=list)
    """Commands to repeat at each start of the host, before the domains are created."""
    after: list[str] = field(default_factory=list)
    """The same, when they are there."""
    cannot: list[str] = field(default_factory=list)
    """What cannot be done, and why."""
    notes: list[str] = field(default_factory=list)
    """What holds of commands of this kind, whichever domain they are about: said once."""

    @classmethod
    def none(cls, reason: str, domain: str | None = None) -> "Way":
        """There is none."""
        return cls(domain, cannot=[reason])

    @classmethod
    def each_time(cls, command: str, domain: str | None = None) -> "Way":
        """A command that nothing but itself keeps."""
        return cls(domain, run=[command], after=[command])


def run(ways: Iterable[Way]) -> Iterator[Step]:
    """What holds at once."""
    return (Step("run", text, domain=one.domain, called=one.called) for one in ways for text in one.run)


def cannot(ways: Iterable[Way]) -> Iterator[Step]:
    """What cannot be done, and why; then what holds of several commands, once."""
    listed = list(ways)
    yield from (Step("cannot", text, domain=one.domain) for one in listed for text in one.cannot)
    yield from (Step("cannot", text) for text in dict.fromkeys(text for one in listed for text in one.notes))
