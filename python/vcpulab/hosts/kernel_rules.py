"""Whose rules the fair class of a kernel has: by its release, and by files that only some releases have."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from vcpulab.formats.linux_host import Linux
from vcpulab.hosts.kernel_release import Series
from vcpulab.scenario.catalogue import generation_of, schedulers

CFS, EEVDF = "linux-cfs", "linux-eevdf"
POLICIES = (CFS, EEVDF)
"""The schedulers of Linux, the older one first."""
EEVDF_SINCE: Series = (6, 6)
HRTICK_SINCE: Series = (7, 1)
"""The series from which on the feature HRTICK is on."""
CGROUP_MODE_SINCE: Series = (7, 3)
FEATURES = ("sched/features", "sched_features")
CGROUP_MODE = "sched/cgroup_mode"
_OF_CFS = ("latency_ns", "sched_latency_ns", "wakeup_granularity_ns", "sched_wakeup_granularity_ns")
"""The parameters that only kernels with CFS have."""
_FIRST = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")

Release = tuple[int, int, int | None]
"""A release; its last number is `None` where only the series is known: its newest release counts."""


class Evidence(Enum):
    """What rules are taken from."""

    RELEASE = "release"
    """The release is known to have them."""
    BETWEEN = "between"
    """The release is between two that are known: the older one's."""
    NEWER = "newer"
    """The release is newer than all that are known: the newest one's."""
    OLDER = "older"
    """The release is older than all that are known: the oldest one's."""
    FILES = "files"
    """Files of the scheduler show other rules than the release has, or no release is known."""


@dataclass(frozen=True)
class Sign:
    """A file of the scheduler that only some releases have as it is."""

    text: str
    since: Series | None = None
    """The first series that has it so; `None`: the oldest ones have, too."""
    before: Series | None = None
    """The first series that no longer has it so; `None`: the newest ones have, too."""


@dataclass(frozen=True)
class Rules:
    """The rules of a kernel's fair class."""

    scheduler: str
    generation: str
    evidence: Evidence
    decisive: tuple[Sign, ...] = ()
    """The files that show other rules than the release has."""


def features_of(linux: Linux) -> frozenset[str]:
    """The features of a host's scheduler; empty: they are not listed."""
    listed = next(filter(None, map(linux.ends_with, FEATURES)), "")
    return frozenset(listed.split())


def signs_of(linux: Linux) -> Iterator[Sign]:
    """The files of a host's scheduler that tell releases apart."""
    if linux.ends_with(CGROUP_MODE) is not None:
        yield Sign("cgroup_mode is in /sys/kernel/debug/sched, as from 7.3 on", since=CGROUP_MODE_SINCE)
    if "HRTICK" in features_of(linux):
        yield Sign("HRTICK is among the scheduler's features, as from 7.1 on", since=HRTICK_SINCE)
    if linux.setting("base_slice_ns") is not None:
        yield Sign("the scheduler has `base_slice_ns`, as from 6.6 on", since=EEVDF_SINCE)
    of_cfs = next((name for name in _OF_CFS if linux.setting(name) is not None), None)
    if of_cfs is not None:
        yield Sign(f"the scheduler has `{of_cfs}`, as up to 6.5", before=EEVDF_SINCE)


def rules_of(release: Release | None, signs: Sequence[Sign]) -> Rules:
    """The rules of a kernel.

    Args:
        release: `None`: not known. The default of the newer scheduler counts then, unless a file shows another.
        signs: what files show.

    Examples:
        >>> rules_of((6, 1, 112), []).generation, rules_of((4, 18, None), []).evidence
        ('6.1', <Evidence.OLDER: 'older'>)
        >>> rules_of((6, 12, 0), [Sign("", before=(6, 6))]).scheduler
        'linux-cfs'
    """
    steps = _steps()
    evidence, position = Evidence.FILES, _default(steps)
    if release is not None:
        first_newer = _count_to(steps, release)
        position = max(first_newer - 1, 0)
        evidence = _evidence(steps, release, first_newer)
    # A file shows that the kernel has at least, or at most, the rules of a release.
    least = max([0, *(_count_to(steps, (*sign.since, 0)) - 1 for sign in signs if sign.since is not None)])
    most = min([len(steps) - 1, *(_count_to(steps, (*sign.before, -1)) - 1 for sign in signs if sign.before)])
    decided = max(least, min(most, position), 0)
    _, scheduler, generation = steps[decided]
    if (scheduler, generation) == steps[position][1:]:
        return Rules(scheduler, generation, evidence)
    moved = tuple(sign for sign in signs if (sign.since is not None) == (decided > position))
    return Rules(scheduler, generation, Evidence.FILES, moved)


_Step = tuple[tuple[int, int, int], str, str]
"""The first release of a series that has a generation, the scheduler and the generation."""


def _steps() -> list[_Step]:
    """The generations of both schedulers in the order of the releases that have them."""
    return sorted(
        ((int(match[1]), int(match[2]), int(match[3] or 0)), policy.name, generation.name)
        for policy in schedulers()
        if policy.name in POLICIES
        for generation in policy.generations
        for text in generation.releases
        if (match := _FIRST.match(text))
    )


def _count_to(steps: Sequence[_Step], release: Release) -> int:
    """The number of steps up to a release.

    EEVDF's first one begins at 6.6, whichever of its generations are known.
    """
    major, minor, point = release
    newest = (major, minor, 1 << 20 if point is None else point)
    count = sum(first <= newest for first, _, _ in steps)
    return max(count, _first_of_eevdf(steps) + 1) if newest >= (*EEVDF_SINCE, 0) else count


def _first_of_eevdf(steps: Sequence[_Step]) -> int:
    return next(position for position, (_, scheduler, _) in enumerate(steps) if scheduler == EEVDF)


def _default(steps: Sequence[_Step]) -> int:
    rules = generation_of(EEVDF)
    name = "" if rules is None else rules.name
    return next(position for position, (_, scheduler, generation) in enumerate(steps) if generation == name)


def _evidence(steps: Sequence[_Step], release: Release, count: int) -> Evidence:
    series = release[:2]
    if count == 0:
        return Evidence.OLDER
    if any(first[:2] == series for first, _, _ in steps):
        return Evidence.RELEASE
    return Evidence.NEWER if series > steps[-1][0][:2] else Evidence.BETWEEN
