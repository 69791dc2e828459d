"""A host as a queueing network: stations, and what a unit of each load's work takes of them at least."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

StationKind = Literal["domain", "vcpu", "in turn", "pool", "pcpus", "tasks", "link", "client machine", "disk", "thread"]


@dataclass(frozen=True)
class Station:
    """Something that serves."""

    name: str
    kind: StationKind
    servers: float
    """Seconds of service that it gives in a second, at most."""
    of: str = ""
    """The domain that it is a part of, if it is one."""
    burst: float = 0.0
    """Seconds of service that it may give on top in any stretch of time."""


@dataclass(frozen=True)
class Load:
    """A client, or a program that works by itself."""

    name: str
    """As in a scenario: the client's name, or the domain's and the application's position."""
    rows: tuple[tuple[str, int], ...]
    """Where its counts are in the table `apps`: domains and positions."""
    demands: Mapping[str, float]
    """Least service of one unit of work, by station, s."""
    alone: float
    """Least time of one unit of work from its beginning to its end, s."""
    rate: float | None
    """Units that come in a second, whatever becomes of them; `None`: a loop that is closed."""
    customers: int
    """Users, tasks, or most requests under way."""
    think: float
    """Mean time between the end of a user's unit of work and the beginning of the next, s."""
    ahead: float
    """Most units that can be half done or due already when measuring begins, or counted and not done when it ends."""
    randomness: float
    """Coefficient of variation of the time between two units that come, or of thinking."""
    variation: float
    """The same of what a unit takes."""
    has_response: bool
    """Does a unit's response time mean anything? Not that of a stream's packet."""


@dataclass(frozen=True)
class Model:
    """A scenario as a queueing network."""

    scenario: str
    stations: Mapping[str, Station]
    loads: tuple[Load, ...]
    not_modelled: tuple[str, ...]
    """What is left out, in words."""
