"""All rules of lint: their findings on a host, their names, and their selection by patterns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from vcpulab.advice.lint import drivers, foreign, held_back, kvm, pinning, rules, slowed, topology
from vcpulab.advice.lint.causes import CAUSES
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.rule import Rule, Rules
from vcpulab.errors import RequestError
from vcpulab.scenario.names import did_you_mean, matching

RULES: Mapping[str, Rule[Any]] = {
    rule.name: rule
    for rule in chain[Rule[Any]](
        rules.rule.all,
        drivers.rule.all,
        kvm.rule.all,
        slowed.cause.all,
        CAUSES,
        pinning.rule.all,
        topology.rule.all,
        topology.note.all,
        foreign.rule.all,
    )
}
"""Name to rule, in the order in which the rules are checked."""


def findings(host: Host) -> list[Finding]:
    """The findings of all rules; of several on the same field, the first."""
    return first_by_path(
        settings(host, rules.rule, drivers.rule),
        held_back.held_back(host),
        settings(host, kvm.rule, pinning.rule, topology.rule),
    )


def notes(host: Host) -> list[Finding]:
    """Notes: findings about a host that are no problem."""
    return list(settings(host, topology.note))


def settings(host: Host, *kinds: Rules[Callable[[Host], Iterator[Finding]]]) -> Iterator[Finding]:
    """The findings of the rules that check a whole host; by default of all kinds of them."""
    for rule in chain.from_iterable(
        kind.all for kind in kinds or (rules.rule, drivers.rule, kvm.rule, pinning.rule, topology.rule)
    ):
        yield from map(rule.stamped, rule.check(host))


def first_by_path(*groups: Iterable[Finding]) -> list[Finding]:
    """The first finding on each field."""
    first: dict[str, Finding] = {}
    for finding in chain.from_iterable(groups):
        first.setdefault(finding.path, finding)
    return list(first.values())


def named(name: str) -> Rule[Any]:
    """The rule with a name.

    Raises:
        RequestError: no rule has that name.
    """
    if name not in RULES:
        raise _unknown(name, "explain")
    return RULES[name]


def selected(patterns: Sequence[str]) -> frozenset[str]:
    """The names of the rules that match at least one pattern; without patterns, all names.

    Raises:
        RequestError: a pattern matches nothing.

    Examples:
        >>> sorted(selected(["pinn*", "starved"]))
        ['pinned-to-one-core', 'pinned-together', 'pinning-leaves-idle', 'starved']
    """
    chosen: set[str] = set()
    for pattern in patterns:
        names = matching(pattern, RULES)
        if not names:
            raise _unknown(pattern, "select")
        chosen.update(names)
    return frozenset(chosen if patterns else RULES)


def _unknown(name: str, field: str) -> RequestError:
    hint = did_you_mean(name, RULES)
    allowed = None if hint else ", ".join(RULES)
    return RequestError("there is no such rule", field=field, found=name, allowed=allowed, hint=hint)
