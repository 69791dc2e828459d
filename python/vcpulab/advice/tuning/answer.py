"""What came out of a search, in words and as data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from vcpulab.advice.capacity.alone import Alone
from vcpulab.advice.tuning.candidates import Candidate, Found
from vcpulab.advice.tuning.confirming import Confirmation, Rejected
from vcpulab.advice.tuning.front import Offer
from vcpulab.advice.tuning.goals import excess
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.sensitivity import Sensitivity
from vcpulab.advice.tuning.spaces import Space
from vcpulab.advice.tuning.widening import held
from vcpulab.advice.tuning.words import headline, in_words
from vcpulab.advice.verdicts import Costly, NotFound, Proven, Verdict
from vcpulab.advice.verdicts import in_words as tried_in_words
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.commands import new_steps
from vcpulab.hypervisors.steps import Step
from vcpulab.results.addresses import Slo, in_short
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.names import in_short as in_short_names
from vcpulab.show.answer import Answer
from vcpulab.show.table import Table

_FRONT = "Gain against harm, the cheapest first; * is recommended, the least invasive of those about as good"


@dataclass(frozen=True)
class Tuning(Answer):
    """What came out of a search and its confirmation."""

    search: Search
    found: Found
    confirmed: Confirmation | None
    """`None`: nothing was to be confirmed."""
    rejected: Sequence[Rejected] = ()
    """What was better in the search, and is not advised."""
    offers: Sequence[Offer] = ()
    """What is traded for what, the cheapest first; see `front`."""
    sensitivity: Sensitivity | None = None
    """What the answer depends on; `None`: nothing is advised."""
    alone: Alone | None = None
    """The SLO that is missed, of a service alone on the host; `None`: all are kept, or it is alone already."""
    interrupted: bool = False
    """Was it cancelled? Then what comes after the best so far, or after its confirmation, is not there."""

    @property
    def space(self) -> Space:
        """What was searched."""
        return self.search.space

    @property
    def kept(self) -> bool:
        """Did any setting keep the SLOs?"""
        return self.found.standings[self.found.best.number].excess <= 0

    @property
    def advised(self) -> bool:
        """Is there anything to set?"""
        return self.kept and self.confirmed is not None and self.confirmed.verdict in ("better", "keeps the SLOs")

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if self.interrupted and self.confirmed is None:
            return f"Interrupted: this is the best of {len(self.found.candidates)} settings so far, not confirmed."
        if self.found.proof is not None:
            return f"{f'Nothing is to be set: {self.found.proof.reason}' if self.kept else self._why_missed()}."
        if self.found.left:
            return f"Nothing is to be set: {self.found.left}."
        if self.kept:
            return self._of_confirmed()
        nearest = f"the nearest, {in_words(self.space, self.found.best)}, comes to {', '.join(self.nearest())}"
        about = "" if self.alone is None or isinstance(self.missed, Proven) else f" {self.alone.about(self._worst)}"
        return f"{self._why_missed()}; {nearest}.{about}"

    @property
    def missed(self) -> Verdict | None:
        """Why SLOs are not kept: proven, only by starving somebody, or not found; `None`: all are kept."""
        if self.kept:
            return None
        proof = self.found.proof or (self.alone.proof(self._worst) if self.alone is not None else None)
        tried = self.found.tried
        slos = self.search.slos
        starving = (trial for trial in tried if trial.starves and all(excess(slo, trial.rows) <= 0 for slo in slos))
        costly = next(starving, None)
        if proof is None and costly is not None:
            harm = f"starves {in_short_names(costly.starves)}"
            return Costly(len(tried), in_words(self.space, costly), harm)
        return proof or NotFound(len(tried), tried_in_words(trial.changes for trial in tried))

    def _why_missed(self) -> str:
        assert self.missed is not None
        return self.missed.sentence(in_short(self._beyond))

    @property
    def _beyond(self) -> list[Slo]:
        """The SLOs that the best does not keep."""
        return [one for one in self.search.slos if excess(one, self.found.best.rows) > 0]

    @property
    def _worst(self) -> Slo:
        return self._beyond[0]

    def _of_confirmed(self) -> str:
        present_keeps = self.found.standings[0].excess <= 0
        if self.confirmed is None:
            return "Nothing that was tried beats the present setting."
        if self.confirmed.starved:
            starved = ", ".join(self.confirmed.starved)
            return f"Nothing is advised: the best of {len(self.found.tried)} settings tried starves {starved}."
        if self.confirmed.verdict == "keeps the SLOs":
            return "The setting found keeps the SLOs, and the present one does not."
        if self.confirmed.verdict == "better":
            return "The setting found is better than the present one."
        if not present_keeps:
            return "The best that was found does not keep the SLOs for sure: on fresh random numbers it is too close."
        unclear = self.confirmed.verdict == "unclear"
        why = "shows no significant difference" if unclear else "is no better"
        return (
            f"Nothing that was tried beats the present setting: the best that was found {why} on fresh random numbers."
        )

    @property
    def headline(self) -> str:
        """The answer in plain words: what becomes of the goals, by what, what others pay, and whether to restart."""
        if not self.advised or self.confirmed is None:
            return self.verdict
        return headline(self.search, self.found.best, self.confirmed)

    def reasons(self) -> list[str]:
        """What was rejected, how sure the answer is, and what it depends on."""
        found = []
        if self.kept:
            found += [f"not advised: {in_words(self.space, one.candidate)}, which {one.why}" for one in self.rejected]
        if self.confirmed is not None:
            found += self.confirmed.added.lines()
        return found + (self.sensitivity.lines() if self.sensitivity is not None else [])

    def offered(self) -> Table:
        """What is traded for what: a row for each setting that none beats."""
        goals = [goal for goal in self.search.goals if len(goal.addresses) == 1]
        # Where the only goal has a value, that says what is gained.
        gains = [] if len(goals) == 1 == len(self.search.goals) else ["gain"]
        values_of = [f"{goal.name},\n{goal.addresses[0].unit}" for goal in goals]
        headings = ["setting", *values_of, *gains, "price,\n%", "pays most"]
        rows = []
        for one in self.offers:
            values = [
                str(value) if value is not None else "undefined"
                for goal, value in zip(self.search.goals, one.goals, strict=True)
                if goal in goals
            ]
            mark = " *" if one.recommended else ""
            harm = "nobody significantly" if one.harm is None else str(one.harm)
            gain = [str(one.gain) for _ in gains]
            rows.append([in_words(self.space, one.candidate) + mark, *values, *gain, f"{one.price:g}", harm])
        return Table(_FRONT, headings, rows, together=True)

    def front_lines(self, most: int) -> list[str]:
        """What is traded for what: what these lines are, and one for each setting that none beats.

        Args:
            most: as many settings at most; the recommended one is among them.
        """
        lines = [f"{_FRONT}:"]
        told = sorted(self.offers, key=lambda one: not one.recommended)[:most]
        for one in (offer for offer in self.offers if offer in told):
            values = [
                f"{goal.name} {value} {goal.addresses[0].unit}"
                for goal, value in zip(self.search.goals, one.goals, strict=True)
                if value is not None
            ]
            said = values if len(values) == 1 == len(self.search.goals) else [f"gain {one.gain}"]
            harm = "nobody pays significantly" if one.harm is None else f"most pays {one.harm}"
            mark = "* " if one.recommended else "- "
            lines.append(f"{mark}{in_words(self.space, one.candidate)}: {said[0]}; price {one.price:g} %; {harm}")
        return lines

    @property
    def front(self) -> pl.DataFrame:
        """What is traded for what, a row for each setting that none beats, the cheapest first.

        Columns: `changes` (paths and values), `price` (%), `gain` (the score) and its `half_width`, `goals` (each
        metric's mean under it), `harm` (the largest loss of others, on the scale of the score), `loser` (whose, of what
        and how much), `recommended`.
        """
        rows = [{**row, "changes": _said_of(row["changes"]), "goals": _said_of(row["goals"])} for row in self._front()]
        schema = {
            "changes": pl.String,
            "price": pl.Float64,
            "gain": pl.Float64,
            "half_width": pl.Float64,
            "goals": pl.String,
            "harm": pl.Float64,
            "loser": pl.String,
            "recommended": pl.Boolean,
        }
        return pl.DataFrame(rows, schema)

    def _front(self) -> list[dict[str, Any]]:
        return [
            {
                "changes": dict(one.candidate.changes),
                "price": one.price,
                "gain": one.gain.mean,
                "half_width": one.gain.half_width,
                "goals": {
                    goal.name: value.mean for goal, value in zip(self.search.goals, one.goals, strict=True) if value
                },
                "harm": one.loss,
                "loser": None if one.harm is None else str(one.harm),
                "recommended": one.recommended and self.advised,
            }
            for one in self.offers
        ]

    def to_frame(self) -> pl.DataFrame:
        """A row for each parameter changed: its key, present and found value, and what changing it back costs."""
        costs = self.found.costs
        rows = [(key, now, found, costs[key].mean if key in costs else None) for key, now, found in self.changed()]
        schema = {"parameter": pl.String, "now": pl.String, "found": pl.String, "cost_of_the_present": pl.Float64}
        return pl.DataFrame(rows, schema, orient="row")

    def __str__(self) -> str:
        changed = [f"{key}: {now} → {found}" for key, now, found in self.changed()]
        return "\n".join([self.headline, *changed, *self.reasons()])

    def saved(self) -> float:
        """Share of the replications that need not be run."""
        return 1 - self.found.runs / self.found.runs_full if self.found.runs_full else 0.0

    def changed(self) -> Iterator[tuple[str, str, str]]:
        """Key of each parameter that the best setting changes, its present position and the new one."""
        for parameter in self.space.parameters:
            pick = self.found.best.picks.get(parameter.key, parameter.now)
            if pick != parameter.now:
                yield parameter.key, parameter.options[parameter.now].label, parameter.options[pick].label

    def nearest(self) -> list[str]:
        """What the best comes to, of each SLO that it does not keep."""
        return [f"{one.address} {_mean(self.found.best, one)}" for one in self._beyond]

    def commands(self, toolstack: Toolstack | None = None) -> list[Step]:
        """How to set what is advised on a real host.

        Args:
            toolstack: whose commands; `None`: those of the scenario's host.
        """
        return new_steps(self.space.scenario, self.found.best.scenario, toolstack) if self.advised else []

    def document(self, toolstack: Toolstack | None = None) -> dict[str, Any]:
        """All of it, as data.

        Args:
            toolstack: whose commands; `None`: those of the scenario's host.
        """
        found, confirmed = self.found, self.confirmed
        return {
            "scenario": self.space.scenario.name,
            "seed": self.search.seed,
            "verdict": self.verdict,
            "headline": self.headline,
            "advised": self.advised,
            "interrupted": self.interrupted,
            "left": self.found.left or None,
            "held": held(self.space),
            "goals": [str(goal) for goal in self.search.goals],
            "slos": [str(slo) for slo in self.search.slos],
            "changes": dict(found.best.changes),
            "score": None if confirmed is None else _said(confirmed.score),
            "gains": {} if confirmed is None else {name: _said(gain) for name, gain in confirmed.gains.items()},
            "comparisons": [] if confirmed is None else [one.row() for one in confirmed.comparisons],
            "kept": []
            if confirmed is None
            else [
                {
                    "slo": str(k.slo),
                    "mean": k.interval.mean if k.interval else None,
                    "undefined": None if k.interval else k.slo.address.metric.undefined_is,
                    "sure": k.sure,
                }
                for k in confirmed.slos
            ],
            "nearest": [] if self.kept else self.nearest(),
            "proven": isinstance(self.missed, Proven) or found.proof is not None,
            "alone": None if self.alone is None or self.kept else self.alone.about(self._worst),
            "parameters": [
                {"parameter": key, "from": before, "to": after, "costs": _said(found.costs.get(key))}
                for key, before, after in self.changed()
            ],
            "importance": dict(found.importance),
            "policies": {name: found.standings[c.number].score for name, c in found.policies.items()},
            "commands": [asdict(step) for step in self.commands(toolstack)],
            "search": {
                "settings": self.space.size,
                "candidates": len(found.candidates),
                "replications_run": found.runs,
                "replications_saved": found.runs_full - found.runs,
                "everything_tried": found.exhausted,
            },
            "front": self._front(),
            "rejected": [{"changes": dict(one.candidate.changes), "why": one.why} for one in self.rejected],
            "replications": None if confirmed is None else confirmed.added.row(),
            "sensitivity": [] if self.sensitivity is None else self.sensitivity.rows(),
        }


def _said_of(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {number(value) if isinstance(value, float) else 'its default' if value is None else value}"
        for name, value in values.items()
    )


def _said(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else interval.row()


def _mean(candidate: Candidate, slo: Slo) -> str:
    interval = Interval.from_values(row[slo.address.name] for row in candidate.rows)
    return "undefined" if interval is None else f"{number(interval.mean)} {slo.address.unit}"
