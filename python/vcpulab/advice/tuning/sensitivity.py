"""What the answer depends on: of the inputs that somebody guessed, those that would change it.

A scenario says how much CPU time a request takes, and how many there are; that is guessed more often than measured.
The present setting and the one found run again with each of these inputs a quarter lower and higher, the same input of
alike domains together. The answer holds if the gain is there still, for nobody starving and all SLOs kept, and changes
if it is not, or if nothing need be set.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from vcpulab.advice.capacity.occupancy import with_servers
from vcpulab.advice.lateness import felt_ms
from vcpulab.advice.starving import newly_starved
from vcpulab.advice.tuning import leaving
from vcpulab.advice.tuning.candidates import Candidate
from vcpulab.advice.tuning.goals import excess, rows, score
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.trials import seed_of
from vcpulab.results.run import Run, run_many
from vcpulab.scenario.alike import groups
from vcpulab.scenario.names import in_short
from vcpulab.scenario.scenario import Scenario, join
from vcpulab.scenario.units import span_ns

PART = 0.25
"""How much lower and higher."""
REPLICATIONS = 4
SHARE = 0.25
"""Unasked this part of the replications of the search is spent at most, but for ..."""
LEAST = 2
"""... so many inputs."""
_KEPT = 0.25
"""The gain is there still if it is more than this part of what was confirmed."""
_GUESSED = ("rate", "users", "think", "run", "work")
"""Fields that people guess, beside those that end with `_cpu`."""


@dataclass(frozen=True)
class Guess:
    """An input that somebody guessed."""

    name: str
    """Such as `rate of customers`."""
    values: Mapping[str, Any]
    """Its paths, one for each of alike domains, and what they have now."""
    domains: tuple[str, ...]
    """The domains that it is about."""

    def times(self, factor: float) -> dict[str, Any]:
        """What is set for another value."""
        return {path: _times(value, factor) for path, value in self.values.items()}


@dataclass(frozen=True)
class Tried:
    """What becomes of the answer with another input."""

    guess: Guess
    factor: float
    """What the input was multiplied by."""
    score: float
    """The gain; see `goals`."""
    why: str
    """Why the answer changes; nothing: it holds."""

    def __str__(self) -> str:
        """The input, as it was tried."""
        return f"{self.guess.name} is {abs(self.factor - 1) * 100:.0f} % {'lower' if self.factor < 1 else 'higher'}"


@dataclass(frozen=True)
class Sensitivity:
    """Which inputs were tried, and what became of the answer."""

    tried: tuple[Tried, ...]
    left: tuple[Guess, ...]
    """Inputs that were not tried, for it would have taken too long."""

    def lines(self) -> list[str]:
        """In words."""
        changed: dict[str, list[Tried]] = {}
        for one in self.tried:
            changed.setdefault(one.guess.name, []).extend([one] if one.why else [])
        holds = [name for name, those in changed.items() if not those]
        found = [f"the answer changes if {one}: {one.why}" for those in changed.values() for one in those]
        if holds:
            found.append(f"the answer holds if {', or '.join(holds)} is {100 * PART:.0f} % lower or higher")
        if self.left:
            found.append(f"not tried: {', '.join(guess.name for guess in self.left)} (--sensitivity tries them, too)")
        return found

    def rows(self) -> list[dict[str, Any]]:
        """As data."""
        return [
            {"input": one.guess.name, "factor": one.factor, "score": one.score, "holds": not one.why, "why": one.why}
            for one in self.tried
        ]


def sensitivity(
    search: Search,
    best: Candidate,
    gain: float,
    *,
    everything: bool = False,
    jobs: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> Sensitivity:
    """Tries the inputs, those of the goals' own domains first, then by the CPU time of their domains.

    Args:
        search: the search.
        best: what it found.
        gain: its score, as confirmed.
        everything: all inputs, however long it takes?
        jobs: replications at a time; 0: one for each processor.
        progress: called now and then with the fraction done.

    Raises:
        EngineError: a run failed.
    """
    present = search.space.scenario
    order = _order(search)
    listed = sorted(guesses(present), key=lambda guess: min(map(order.index, guess.domains)))
    each = 4 * REPLICATIONS
    most = len(listed) if everything else max(LEAST, int(SHARE * search.runs / each))
    chosen = [(guess, factor) for guess in listed[:most] for factor in (1 - PART, 1 + PART)]
    seed = seed_of(search.seed, "sensitivity", 0)
    pairs = [
        one.change(guess.times(factor)).with_run(seed=seed, replications=REPLICATIONS)
        for guess, factor in chosen
        for one in (present, best.scenario)
    ]
    runs = run_many(pairs, jobs=jobs, waits=False, progress=progress)
    tried = (
        _tried(search, guess, factor, (runs[2 * index], runs[2 * index + 1]), gain)
        for index, (guess, factor) in enumerate(chosen)
    )
    return Sensitivity(tuple(tried), tuple(listed[most:]))


def guesses(scenario: Scenario) -> list[Guess]:
    """The inputs of a scenario's file that people guess: rates, users, think times, CPU time of requests and jobs.

    Examples:
        >>> [guess.name for guess in guesses(Scenario.starter())]
        ['rate of http', 'request_cpu of web']
    """
    return list(_guesses(scenario))


def _guesses(scenario: Scenario) -> Iterator[Guess]:
    written = scenario.written()
    clients = written.get("client", {})
    for alike in groups(scenario):
        asking = [[name for name, table in clients.items() if table["server"] == domain] for domain in alike]
        for row in zip(*asking, strict=False):
            yield from _of([(join(["client", name]), clients[name]) for name in row], in_short(row), alike)
        running = [written["domain"].get(domain, {}).get("app", []) for domain in alike]
        for position, apps in enumerate(zip(*running, strict=False)):
            tables = [
                (join(["domain", domain, "app", str(position)]), app) for domain, app in zip(alike, apps, strict=True)
            ]
            yield from _of(tables, in_short(alike), alike)


def _of(tables: Sequence[tuple[str, Mapping[str, Any]]], name: str, domains: Sequence[str]) -> Iterator[Guess]:
    for field in tables[0][1]:
        if field.endswith("_cpu") or field in _GUESSED:
            values = {f"{path}.{field}": table[field] for path, table in tables}
            if all(_times(value, 2.0) is not None for value in values.values()):
                yield Guess(f"{field} of {name}", values, tuple(domains))


def _times(value: Any, factor: float) -> Any:
    """A number or a time span, multiplied; `None`: it is neither."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return max(1, round(value * factor))
    if isinstance(value, float):
        return value * factor
    try:
        return f"{round(span_ns(value) * factor)}ns"
    except (TypeError, ValueError):
        return None


def _order(search: Search) -> list[str]:
    """All domains: the goals' own, those that serve them, then by their CPU time."""
    run = search.present_run()
    used = run.df_domains().group_by("domain", maintain_order=True).agg(pl.col("running_ns").sum())
    used = used.sort("running_ns", descending=True, maintain_order=True)
    own = leaving.concerned(search.goals)
    document = search.space.scenario.to_dict()["domain"]
    return list(dict.fromkeys([*own, *with_servers(document, own), *used["domain"], *document]))


def _tried(search: Search, guess: Guess, factor: float, runs: tuple[Run, Run], gain: float) -> Tried:
    old, new = (rows(run, search.asked) for run in runs)
    scores = [score(search.goals, [goal.gain(b, a) for goal in search.goals]) for a, b in zip(old, new, strict=True)]
    mean = sum(scores) / len(scores)
    addresses = [goal.addresses[0] for goal in search.goals]
    felt = {one.name: value for one in addresses if (value := felt_ms(runs[0], one)) is not None}
    starving = newly_starved(*runs)
    broken = [str(slo) for slo in search.slos if excess(slo, new) > 0]
    if starving:
        why = f"the setting starves {', '.join(starving)}"
    elif left := leaving.good_enough(search.goals, search.slos, old, felt) if leaving.concerned(search.goals) else "":
        why = f"nothing need be set ({left})"
    elif broken:
        why = f"the setting does not keep {' and '.join(broken)}"
    elif mean <= _KEPT * gain:
        why = "most of the gain is gone" if mean > 0 else "there is no gain"
    else:
        why = ""
    return Tried(guess, factor, mean, why)
