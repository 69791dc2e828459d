"""Notes of imports on hardware profiles: whether they have costs of threads that share a core, and of remote memory."""

from collections.abc import Iterator

from vcpulab.scenario.catalogue import profiles
from vcpulab.scenario.names import in_short
from vcpulab.scenario.topology import Topology


def cautions(profile: str | None, topology: Topology, measured_by: str | None) -> Iterator[str]:
    """Notes on the costs of a profile on a host.

    Args:
        profile: its name; `None`: generic.
        topology: of the host.
        measured_by: the tool that measured CPU use; `None`: nothing is known to run.
    """
    priced = _priced()
    if topology.is_flat:
        return
    if profile is None:
        yield (
            "profile generic: in it threads share a core, and memory is on another node, at no price; --profile "
            f"takes one that prices both, such as {in_short(priced)}; `vcpulab profile measure` makes one of the host "
            "itself"
        )
    elif profile in priced and measured_by is not None:
        yield (
            f"profile {profile}: CPU use as {measured_by} measured it contains what threads and memory cost on the "
            f"host, which this charges again: lower the jobs' `run` until `gotten` is as {measured_by} has it"
        )


def _priced() -> list[str]:
    """The built-in profiles in which threads that share a core are slower."""
    return [
        profile.name
        for profile in profiles()
        if (speed := profile.constants.get("smt_compute_beside_compute_percent")) is not None and speed.value < 100
    ]
