"""The release that a host runs, and whose rules its schedulers have here."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from vcpulab.scenario.catalogue import generation_of, schedulers
from vcpulab.scenario.parameters import Generation, Param

_VERSION = re.compile(r"(?P<major>\d{1,3})\.(?P<minor>\d{1,3})(?:\.(?P<point>\d{1,4}))?(?P<rest>.*)")
_NAME = re.compile(r"xen(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True)
class Rules:
    """A scheduler as a host's release has it."""

    generation: str
    """The release, as a scenario names it."""
    explanation: str
    """The rules of the release, and how they are known."""
    exact: bool
    """`True`: the rules are known to be those of this release."""


def rules_of(scheduler: str, fields: Mapping[str, str]) -> Rules | None:
    """The rules of the release that `xl info` says.

    Args:
        scheduler: a built-in one.
        fields: the output of `xl info` by name: `xen_major`, `xen_minor`, `xen_extra`, `xen_version`.

    Returns:
        Of a release that none is known of, those of the nearest; `None`: `xl info` says no release.

    Examples:
        >>> rules_of("credit2", {"xen_major": "4", "xen_minor": "19", "xen_extra": ".2"}).generation
        'xen4.19.2'
        >>> print(rules_of("credit2", {"xen_version": "4.19.2"}).explanation)
        Xen 4.19.2: credit2 as in xen4.17; from 4.19.3 on as in xen4.22
        >>> print(rules_of("credit2", {"xen_version": "4.19.3-1.xcp"}).explanation)
        Xen 4.19.3-1.xcp: credit2 as in xen4.22, from 4.19.3 on; a vendor's build, whose own changes are not seen
        >>> print(rules_of("credit", {"xen_version": "4.20.5-pre"}).explanation)
        Xen 4.20.5-pre: credit as in xen4.22, from 4.18 on; what precedes 4.20.5 is taken for 4.20.4
        >>> print(rules_of("credit", {"xen_version": "4.13.1"}).explanation)
        Xen 4.13.1: nothing is known of its credit; as in the nearest release, 4.17
    """
    version = "".join(
        fields.get(f"xen_{part}", "") + dot for part, dot in (("major", "."), ("minor", ""), ("extra", ""))
    )
    match = _VERSION.fullmatch(version) or _VERSION.fullmatch(fields.get("xen_version", ""))
    if match is None:
        return None
    whole = f"Xen {match[0]}"
    series, rest = f"xen{match['major']}.{match['minor']}", match["rest"]
    number = series.removeprefix("xen")
    # What is not released yet has the rules of the release before it in its series, as far as anybody knows; the first
    # one of a series those that the series began with.
    unfinished = match["point"] is None or rest.startswith(("-rc", "-unstable", "-dev", "-pre"))
    named = int(match["point"] or 0)
    point = max(named - 1, 0) if unfinished else named
    release = f"{series}.{point}"
    generation = generation_of(scheduler, release)
    if generation is None:
        nearest = _nearest(scheduler, int(match["major"]), int(match["minor"]))
        words = nearest.removeprefix("xen")
        return Rules(
            nearest, f"{whole}: nothing is known of its {scheduler}; as in the nearest release, {words}", exact=False
        )
    changes = _changes(scheduler, series)
    now = max((release_point for release_point in changes if release_point <= point), default=0)
    then = min((release_point for release_point in changes if release_point > point), default=None)
    since = f"{number}.{now}" if now else _earlier(generation, series)
    explanation = f"{whole}: {scheduler} as in {generation.name}" + (f", from {since} on" if since else "")
    if unfinished:
        taken = f"what precedes {number}.{named} is taken for {number}.{point}" if named else "as its series began"
        return Rules(release, f"{explanation}; {taken}", exact=False)
    explanation += "" if then is None else f"; from {number}.{then} on as in {changes[then]}"
    explanation += "; a vendor's build, whose own changes are not seen" if rest else ""
    return Rules(release, explanation, exact=not rest)


def params_of(scheduler: str, fields: Mapping[str, str]) -> Sequence[Param]:
    """The parameters that a scheduler has in the release that `xl info` says; those of the default without one.

    Args:
        scheduler: its name; one that is not built in has no parameters.
        fields: as for `rules_of`.

    Examples:
        >>> [param.name for param in params_of("credit2", {"xen_version": "4.4.1"}) if param.scope == "domain"]
        ['weight']
    """
    rules = None if generation_of(scheduler) is None else rules_of(scheduler, fields)
    generation = generation_of(scheduler, None if rules is None else rules.generation)
    return () if generation is None else generation.params


def _earlier(generation: Generation, series: str) -> str:
    """The first release that has the rules of a generation named after a later one; empty: it is named after this."""
    named, own = (_NAME.fullmatch(name) for name in (generation.name, series))
    if named is None or own is None or (int(named[1]), int(named[2])) <= (int(own[1]), int(own[2])):
        return ""
    return generation.releases[0].split()[0].removeprefix("xen")


def _generations(scheduler: str) -> Iterator[tuple[str, str]]:
    """The generations of a scheduler, each with the first release of each row that has it."""
    for generation in next(policy.generations for policy in schedulers() if policy.name == scheduler):
        for text in generation.releases:
            yield generation.name, text.split()[0]


def _changes(scheduler: str, series: str) -> dict[int, str]:
    """The generation that begins at each point release of a series."""
    firsts = ((name, _NAME.fullmatch(first)) for name, first in _generations(scheduler))
    return {
        int(first[3]): name for name, first in firsts if first and first[3] and f"xen{first[1]}.{first[2]}" == series
    }


def _nearest(scheduler: str, major: int, minor: int) -> str:
    """The release known that is of the same series; or else the next one; or else the last."""
    firsts = [first for _, first in _generations(scheduler)]
    releases = sorted((int(match[1]), int(match[2]), name) for name in firsts if (match := _NAME.fullmatch(name)))
    later = [name for *series, name in releases if tuple(series) >= (major, minor)]
    return later[0] if later else releases[-1][-1]
