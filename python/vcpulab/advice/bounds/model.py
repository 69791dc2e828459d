"""A host as a queueing network: stations, and the least demand of each load's unit of work at each station."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

StationKind = Literal["domain", "vcpu", "in turn", "pool", "pcpus", "tasks", "link", "client machine", "disk", "thread"]


@dataclass(frozen=True)
class Station:
    """A station of a queueing network: a resource with servers."""

    name: str
    kind: StationKind
    servers: float
    """Most seconds of service that the station gives in a second."""
    domain: str = ""
    """The domain that the station is a part of, if any."""
    burst: float = 0.0
    """Seconds of service that the station may give in addition, in any interval."""


@dataclass(frozen=True)
class Load:
    """A client, or a program without clients."""

    name: str
    """The client's name in the scenario, or the domain's name and the application's position."""
    rows: tuple[tuple[str, int], ...]
    """Keys of the load's rows in the table `apps`: domains and positions."""
    demands: Mapping[str, float]
    """Least service of one unit of work, by station, s."""
    alone: float
    """Least time of one unit of work from its beginning to its end, s."""
    rate: float | None
    """Units that arrive in a second, in an open loop; `None`: a closed loop."""
    customers: int
    """Users, tasks, or most requests under way."""
    think: float
    """Mean time between the end of a user's unit of work and the beginning of the next, s."""
    ahead: float
    """Most units that can be half done or waiting when the measurement begins, or counted and not done at its end."""
    randomness: float
    """Coefficient of variation of the time between two arrivals, or of the think time."""
    variation: float
    """Coefficient of variation of a unit's demands."""
    has_response: bool
    """Does a unit have a response time? A packet of a stream has none."""


@dataclass(frozen=True)
class Model:
    """A scenario as a queueing network."""

    scenario: str
    stations: Mapping[str, Station]
    loads: tuple[Load, ...]
    not_modelled: tuple[str, ...]
    """Parts of the scenario that the model leaves out, in words."""
