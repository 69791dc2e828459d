"""Sensitivity of the answer: the guessed inputs that would change it.

A scenario states the CPU time and the number of requests, which are guessed more often than measured. The present
setting and the advised one run again with each of these inputs a quarter lower and higher, the same input of alike
domains together. The answer holds if the gain remains, no domain starves and all SLOs are kept. It changes otherwise,
or if the present setting is good enough.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from vcpulab._work.progress import Progress
from vcpulab.advice.capacity.occupancy import with_servers
from vcpulab.advice.lateness import felt_ms
from vcpulab.advice.starvation import newly_starved
from vcpulab.advice.tuning import no_change
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
"""Fraction by which an input is lowered and raised."""
REPLICATIONS = 4
SHARE = 0.25
"""Most replications by default, as a fraction of the search's."""
LEAST = 2
"""Inputs that are tried in any case."""
_KEPT = 0.25
"""Fraction of the confirmed gain above which the gain counts as kept."""
_GUESSED = ("rate", "users", "think", "run", "work")
"""Fields that users often guess, in addition to those that end with `_cpu`."""


@dataclass(frozen=True)
class Guess:
    """A guessed input."""

    name: str
    """Name of the input, such as `rate of customers`."""
    values: Mapping[str, Any]
    """Path to present value, one path for each of alike domains."""
    domains: tuple[str, ...]
    """Domains of the input."""

    def times(self, factor: float) -> dict[str, Any]:
        """The changes that multiply the input by a factor: path to value."""
        return {path: _times(value, factor) for path, value in self.values.items()}


@dataclass(frozen=True)
class InputEffect:
    """The answer with a changed input."""

    guess: Guess
    factor: float
    """Factor of the input."""
    score: float
    """The gain; see `goals`."""
    reason: str
    """Reason why the answer changes; empty: the answer holds."""

    def __str__(self) -> str:
        """The changed input, in words."""
        return f"{self.guess.name} is {abs(self.factor - 1) * 100:.0f} % {'lower' if self.factor < 1 else 'higher'}"


@dataclass(frozen=True)
class Sensitivity:
    """The inputs that were tried, with their effect on the answer."""

    tried: tuple[InputEffect, ...]
    left: tuple[Guess, ...]
    """Inputs that were not tried, to save time."""

    def lines(self) -> list[str]:
        """The effects in words."""
        changed: dict[str, list[InputEffect]] = {}
        for trial in self.tried:
            changed.setdefault(trial.guess.name, []).extend([trial] if trial.reason else [])
        holds = [name for name, changing in changed.items() if not changing]
        lines = [
            f"the answer changes if {trial}: {trial.reason}" for changing in changed.values() for trial in changing
        ]
        if holds:
            lines.append(f"the answer holds if {', or '.join(holds)} is {100 * PART:.0f} % lower or higher")
        if self.left:
            lines.append(f"not tried: {', '.join(guess.name for guess in self.left)} (--sensitivity tries them, too)")
        return lines

    def rows(self) -> list[dict[str, Any]]:
        """The effects as data."""
        return [
            {
                "input": trial.guess.name,
                "factor": trial.factor,
                "score": trial.score,
                "holds": not trial.reason,
                "why": trial.reason,
            }
            for trial in self.tried
        ]


def sensitivity(
    search: Search,
    best: Candidate,
    gain: float,
    *,
    everything: bool = False,
    jobs: int = 0,
    progress: Progress | None = None,
) -> Sensitivity:
    """Tries the inputs, those of the goals' own domains first, then by the CPU time of their domains.

    Args:
        search: the search.
        best: the advised setting.
        gain: the confirmed score of that setting.
        everything: try all inputs, without a limit of time?
        jobs: replications at a time; 0: one for each processor.
        progress: see `Progress`.

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
        scenario.change(guess.times(factor)).with_run(seed=seed, replications=REPLICATIONS)
        for guess, factor in chosen
        for scenario in (present, best.scenario)
    ]
    runs = run_many(pairs, jobs=jobs, waits=False, progress=progress)
    tried = (
        _effect_of(search, guess, factor, (runs[2 * index], runs[2 * index + 1]), gain)
        for index, (guess, factor) in enumerate(chosen)
    )
    return Sensitivity(tuple(tried), tuple(listed[most:]))


def guesses(scenario: Scenario) -> list[Guess]:
    """The inputs of a scenario's file that users often guess: rates, users, think times, CPU time of requests and jobs.

    Examples:
        >>> [guess.name for guess in guesses(Scenario.starter())]
        ['rate of http', 'request_cpu of web']
    """
    return list(_guesses(scenario))


def _guesses(scenario: Scenario) -> Iterator[Guess]:
    clients = scenario.stated("client")
    for alike in groups(scenario):
        asking = [[name for name, client in scenario.clients.items() if client.server == domain] for domain in alike]
        for row in zip(*asking, strict=False):
            yield from _guesses_of([(join(["client", name]), clients[name]) for name in row], in_short(row), alike)
        running = [scenario.stated("domain", domain).get("app", ()) for domain in alike]
        for position, apps in enumerate(zip(*running, strict=False)):
            tables = [
                (join(["domain", domain, "app", str(position)]), app) for domain, app in zip(alike, apps, strict=True)
            ]
            yield from _guesses_of(tables, in_short(alike), alike)


def _guesses_of(tables: Sequence[tuple[str, Mapping[str, Any]]], name: str, domains: Sequence[str]) -> Iterator[Guess]:
    for field in tables[0][1]:
        if field.endswith("_cpu") or field in _GUESSED:
            values = {f"{path}.{field}": table[field] for path, table in tables}
            if all(_times(value, 2.0) is not None for value in values.values()):
                yield Guess(f"{field} of {name}", values, tuple(domains))


def _times(value: Any, factor: float) -> Any:
    """A number or a time span, multiplied by a factor; `None`: the value is neither."""
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
    """All domains: the goals' own, the domains that serve these, then by CPU time."""
    run = search.present_run()
    used = run.df_domains().group_by("domain", maintain_order=True).agg(pl.col("running_ns").sum())
    used = used.sort("running_ns", descending=True, maintain_order=True)
    own = no_change.concerned(search.goals)
    domains = search.space.scenario.domains
    return list(dict.fromkeys([*own, *with_servers(domains, own), *used["domain"], *domains]))


def _effect_of(search: Search, guess: Guess, factor: float, runs: tuple[Run, Run], gain: float) -> InputEffect:
    old, new = (rows(run, search.metrics) for run in runs)
    scores = [score(search.goals, [goal.gain(b, a) for goal in search.goals]) for a, b in zip(old, new, strict=True)]
    mean = sum(scores) / len(scores)
    addresses = [goal.addresses[0] for goal in search.goals]
    felt = {address.name: value for address in addresses if (value := felt_ms(runs[0], address)) is not None}
    starving = newly_starved(*runs)
    broken = [str(slo) for slo in search.slos if excess(slo, new) > 0]
    if starving:
        reason = f"the setting starves {', '.join(starving)}"
    elif (
        left := no_change.good_enough(search.goals, search.slos, old, felt) if no_change.concerned(search.goals) else ""
    ):
        reason = f"no change is needed ({left})"
    elif broken:
        reason = f"the setting does not keep {' and '.join(broken)}"
    elif mean <= _KEPT * gain:
        reason = "most of the gain is gone" if mean > 0 else "there is no gain"
    else:
        reason = ""
    return InputEffect(guess, factor, mean, reason)
