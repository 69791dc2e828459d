"""All rules: what they find on a host, their names, and those that patterns of names stand for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from vcpulab.advice.lint import drivers, foreign, held, held_back, kvm, pinning, rules, slowed, topology
from vcpulab.advice.lint.host import Finding, Host
from vcpulab.advice.lint.rule import Rule, Rules
from vcpulab.errors import RequestError
from vcpulab.scenario.names import did_you_mean, matching

RULES: Mapping[str, Rule[Any]] = {
    one.name: one
    for one in chain[Rule[Any]](
        rules.rule.all,
        drivers.rule.all,
        kvm.rule.all,
        slowed.cause.all,
        held.cause.all,
        pinning.rule.all,
        topology.rule.all,
        topology.note.all,
        foreign.rule.all,
    )
}
"""Every rule by its name, in the order in which they are asked."""


def findings(host: Host) -> list[Finding]:
    """What all rules find; of each field the first word on it."""
    return first_words(
        settings(host, rules.rule, drivers.rule),
        held_back.held_back(host),
        settings(host, kvm.rule, pinning.rule, topology.rule),
    )


def notes(host: Host) -> list[Finding]:
    """What is no fault on a host, and good to know."""
    return list(settings(host, topology.note))


def settings(host: Host, *those: Rules[Callable[[Host], Iterator[Finding]]]) -> Iterator[Finding]:
    """What the rules find that look at a whole host."""
    for one in chain.from_iterable(
        kind.all for kind in those or (rules.rule, drivers.rule, kvm.rule, pinning.rule, topology.rule)
    ):
        yield from map(one.stamped, one.check(host))


def first_words(*found: Iterable[Finding]) -> list[Finding]:
    """Of each field the first finding on it."""
    first: dict[str, Finding] = {}
    for finding in chain.from_iterable(found):
        first.setdefault(finding.path, finding)
    return list(first.values())


def named(name: str) -> Rule[Any]:
    """The rule of that name.

    Raises:
        RequestError: there is none.
    """
    if name not in RULES:
        raise _unknown(name, "explain")
    return RULES[name]


def selected(patterns: Sequence[str]) -> frozenset[str]:
    """The names of the rules that match one of these patterns; all, if there are none.

    Raises:
        RequestError: a pattern matches nothing.

    Examples:
        >>> sorted(selected(["pinn*", "starved"]))
        ['pinned-to-one-core', 'pinned-together', 'pinning-leaves-idle', 'starved']
    """
    found: set[str] = set()
    for pattern in patterns:
        names = matching(pattern, RULES)
        if not names:
            raise _unknown(pattern, "select")
        found.update(names)
    return frozenset(found if patterns else RULES)


def _unknown(name: str, field: str) -> RequestError:
    hint = did_you_mean(name, RULES)
    allowed = None if hint else ", ".join(RULES)
    return RequestError("there is no such rule", field=field, found=name, allowed=allowed, hint=hint)
