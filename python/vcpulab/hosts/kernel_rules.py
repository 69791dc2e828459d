"""Whose rules the fair class of a kernel has: by its release, and by files that only some releases have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from vcpulab import _engine
from vcpulab.formats.linux_host import Linux
from vcpulab.hosts.kernel_release import Series

CFS, EEVDF = "linux-cfs", "linux-eevdf"
POLICIES = (CFS, EEVDF)
"""The schedulers of Linux, the older one first."""
HRTICK_SINCE: Series = (7, 1)
"""The series from which on the feature HRTICK is on."""
FEATURES = ("sched/features", "sched_features")
CGROUP_MODE = "sched/cgroup_mode"
_OF_CFS = ("latency_ns", "sched_latency_ns", "wakeup_granularity_ns", "sched_wakeup_granularity_ns")
"""The parameters that only kernels with CFS have."""

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


class Fact(Enum):
    """What only some releases have."""

    BASE_SLICE = "base_slice"
    """The file `base_slice_ns`: kernels with EEVDF."""
    HRTICK = "hrtick"
    """The feature `HRTICK`, on: 7.1 and later."""
    CGROUP_MODE = "cgroup_mode"
    """The file `cgroup_mode`: 7.3 and later."""


@dataclass(frozen=True)
class Sign:
    """A file of the scheduler that tells releases apart."""

    text: str
    fact: Fact
    present: bool = True
    """`False`: the file shows that the kernel does not have what the fact names."""


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
        yield Sign("cgroup_mode is in /sys/kernel/debug/sched, as from 7.3 on", Fact.CGROUP_MODE)
    if "HRTICK" in features_of(linux):
        yield Sign("HRTICK is among the scheduler's features, as from 7.1 on", Fact.HRTICK)
    if linux.setting("base_slice_ns") is not None:
        yield Sign("the scheduler has `base_slice_ns`, as from 6.6 on", Fact.BASE_SLICE)
    of_cfs = next((name for name in _OF_CFS if linux.setting(name) is not None), None)
    if of_cfs is not None:
        yield Sign(f"the scheduler has `{of_cfs}`, as up to 6.5", Fact.BASE_SLICE, present=False)


def rules_of(release: Release | None, signs: Sequence[Sign]) -> Rules:
    """The rules of a kernel.

    Args:
        release: `None`: not known. The default of the newer scheduler counts then, unless a file shows another.
        signs: what files show.

    Examples:
        >>> rules_of((6, 1, 112), []).generation, rules_of((4, 18, None), []).evidence
        ('6.1', <Evidence.OLDER: 'older'>)
        >>> rules_of((6, 12, 0), [Sign("", Fact.BASE_SLICE, present=False)]).scheduler
        'linux-cfs'
    """
    scheduler, generation, evidence = _taken(release, signs)
    alone = _taken(release, [])
    if (scheduler, generation) == alone[:2]:
        # Without a release, files or the default decide.
        return Rules(scheduler, generation, Evidence.FILES if release is None else Evidence(evidence))
    decisive = tuple(sign for sign in signs if _taken(release, [sign])[:2] != alone[:2])
    return Rules(scheduler, generation, Evidence.FILES, decisive)


def _taken(release: Release | None, signs: Sequence[Sign]) -> tuple[str, str, str]:
    """The scheduler, the generation and the evidence, as the engine takes them.

    Of files that contradict each other the newer kernel's counts.
    """
    signs = sorted(signs, key=lambda sign: sign.present)
    return _engine.linux_rules(release, **{sign.fact.value: sign.present for sign in signs})
