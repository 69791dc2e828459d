"""The answer of a search, in words and as data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from vcpulab.advice.capacity.service_alone import Alone
from vcpulab.advice.tuning.candidates import Candidate, SearchResult
from vcpulab.advice.tuning.confirming import Confirmation, Rejected
from vcpulab.advice.tuning.document import document as document_of
from vcpulab.advice.tuning.front import Offer
from vcpulab.advice.tuning.goals import excess
from vcpulab.advice.tuning.headline import headline, in_words
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.sensitivity import Sensitivity
from vcpulab.advice.tuning.spaces import Space
from vcpulab.advice.tuning.widening import held
from vcpulab.advice.verdicts import Costly, NotFound, Proven, Verdict
from vcpulab.advice.verdicts import in_words as tried_in_words
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.commands import new_steps
from vcpulab.hypervisors.steps import Step
from vcpulab.results.addresses import Slo, in_short
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.names import in_short as in_short_names
from vcpulab.show.answer import Answer
from vcpulab.show.document import Document
from vcpulab.show.table import Table

_FRONT = "Gain against harm, the cheapest first; * is recommended, the least invasive of those about as good"


@dataclass(frozen=True)
class Tuning(Answer):
    """The answer of a search: its result, the confirmation, and the settings to choose from."""

    search: Search
    result: SearchResult
    confirmed: Confirmation | None
    """The comparison with the present setting; `None`: no setting was confirmed."""
    rejected: Sequence[Rejected] = ()
    """Settings that were better in the search and are not advised."""
    offers: Sequence[Offer] = ()
    """The settings on the front, the cheapest first; see `front`."""
    sensitivity: Sensitivity | None = None
    """Inputs that the answer depends on; `None`: nothing is advised."""
    alone: Alone | None = None
    """The service of the missed SLO alone on the host; `None`: all SLOs are kept, or the service is alone already."""
    interrupted: bool = False
    """Was the search cancelled? Then the steps after the best so far, or after its confirmation, are missing."""

    @property
    def space(self) -> Space:
        """The space of the search."""
        return self.search.space

    @property
    def kept(self) -> bool:
        """Does the best setting keep the SLOs?"""
        return self.result.standings[self.result.best.number].excess <= 0

    @property
    def advised(self) -> bool:
        """Is a change advised?"""
        return self.kept and self.confirmed is not None and self.confirmed.verdict in ("better", "keeps the SLOs")

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if self.interrupted and self.confirmed is None:
            return f"Interrupted: this is the best of {len(self.result.candidates)} settings so far, not confirmed."
        if self.result.proof is not None:
            return f"{f'No change is needed: {self.result.proof.reason}' if self.kept else self._why_missed()}."
        if self.result.left:
            return f"No change is needed: {self.result.left}."
        if self.kept:
            return self._of_confirmed()
        nearest = f"the nearest, {in_words(self.space, self.result.best)}, comes to {', '.join(self.nearest())}"
        about = "" if self.alone is None or isinstance(self.missed, Proven) else f" {self.alone.about(self._worst)}"
        return f"{self._why_missed()}; {nearest}.{about}"

    @property
    def missed(self) -> Verdict | None:
        """Reason for missed SLOs: a proof, starvation as the price, or no setting found; `None`: all are kept."""
        if self.kept:
            return None
        proof = self.result.proof or (self.alone.proof(self._worst) if self.alone is not None else None)
        tried = self.result.tried
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
        """The SLOs that the best setting does not keep."""
        return [slo for slo in self.search.slos if excess(slo, self.result.best.rows) > 0]

    @property
    def _worst(self) -> Slo:
        return self._beyond[0]

    def _of_confirmed(self) -> str:
        present_keeps = self.result.standings[0].excess <= 0
        if self.confirmed is None:
            return "Nothing that was tried beats the present setting."
        if self.confirmed.starved:
            starved = ", ".join(self.confirmed.starved)
            return f"Nothing is advised: the best of {len(self.result.tried)} settings tried starves {starved}."
        if self.confirmed.verdict == "keeps the SLOs":
            return "The setting found keeps the SLOs, and the present one does not."
        if self.confirmed.verdict == "better":
            return "The setting found is better than the present one."
        if not present_keeps:
            return "The best that was found does not keep the SLOs for sure: on fresh random numbers it is too close."
        unclear = self.confirmed.verdict == "unclear"
        shortfall = "shows no significant difference" if unclear else "is no better"
        return (
            "Nothing that was tried beats the present setting: "
            f"the best that was found {shortfall} on fresh random numbers."
        )

    @property
    def headline(self) -> str:
        """The answer in plain words: change of each goal, parameters, losses of other services, restart."""
        if not self.advised or self.confirmed is None:
            return self.verdict
        return headline(self.search, self.result.best, self.confirmed)

    def reasons(self) -> list[str]:
        """Rejected settings, replications of the confirmation, and the inputs that the answer depends on."""
        lines = []
        if self.kept:
            lines += [
                f"not advised: {in_words(self.space, trial.candidate)}, which {trial.reason}" for trial in self.rejected
            ]
        if self.confirmed is not None:
            lines += self.confirmed.added.lines()
        return lines + (self.sensitivity.lines() if self.sensitivity is not None else [])

    def offered(self) -> Table:
        """The front: a row for each setting that no other beats."""
        goals = [goal for goal in self.search.goals if len(goal.addresses) == 1]
        # The value of the only goal, if it has one, replaces the gain.
        gains = [] if len(goals) == 1 == len(self.search.goals) else ["gain"]
        values_of = [f"{goal.name},\n{goal.addresses[0].unit}" for goal in goals]
        headings = ["setting", *values_of, *gains, "price,\n%", "pays most"]
        rows = []
        for offer in self.offers:
            values = [
                str(value) if value is not None else "undefined"
                for goal, value in zip(self.search.goals, offer.goals, strict=True)
                if goal in goals
            ]
            mark = " *" if offer.recommended else ""
            harm = "nobody significantly" if offer.harm is None else str(offer.harm)
            gain = [str(offer.gain) for _ in gains]
            rows.append([in_words(self.space, offer.candidate) + mark, *values, *gain, f"{offer.price:g}", harm])
        return Table(_FRONT, headings, rows, together=True)

    @property
    def front(self) -> pl.DataFrame:
        """The front, a row for each setting that no other beats, the cheapest first.

        Columns: `changes` (paths and values), `price` (%), `gain` (the score) and its `half_width`, `goals` (each
        metric's mean under the setting), `harm` (the largest loss of other services, on the scale of the score),
        `loser` (service, metric and size of that loss), `recommended`.
        """
        rows = [
            {**row, "changes": _assignments(row["changes"]), "goals": _assignments(row["goals"])}
            for row in self._front()
        ]
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
                "changes": dict(offer.candidate.changes),
                "price": offer.price,
                "gain": offer.gain.mean,
                "half_width": offer.gain.half_width,
                "goals": {
                    goal.name: value.mean for goal, value in zip(self.search.goals, offer.goals, strict=True) if value
                },
                "harm": offer.loss,
                "loser": None if offer.harm is None else str(offer.harm),
                "recommended": offer.recommended and self.advised,
            }
            for offer in self.offers
        ]

    def to_frame(self) -> pl.DataFrame:
        """A row for each changed parameter: key, present value, advised value, and the loss if it is changed back."""
        costs = self.result.costs
        rows = [(key, now, new, costs[key].mean if key in costs else None) for key, now, new in self.changed()]
        schema = {"parameter": pl.String, "now": pl.String, "found": pl.String, "cost_of_the_present": pl.Float64}
        return pl.DataFrame(rows, schema, orient="row")

    def saved(self) -> float:
        """Fraction of the replications that were saved."""
        return 1 - self.result.runs / self.result.runs_full if self.result.runs_full else 0.0

    def changed(self) -> Iterator[tuple[str, str, str]]:
        """Key of each parameter that the best setting changes, its present position and the new one."""
        for parameter in self.space.parameters:
            pick = self.result.best.picks.get(parameter.key, parameter.now)
            if pick != parameter.now:
                yield parameter.key, parameter.options[parameter.now].label, parameter.options[pick].label

    def nearest(self) -> list[str]:
        """The best setting's value of each SLO that it does not keep."""
        return [f"{slo.address} {_mean(self.result.best, slo)}" for slo in self._beyond]

    def commands(self, toolstack: Toolstack | None = None) -> list[Step]:
        """Commands that apply the advice on a real host.

        Args:
            toolstack: toolstack of the commands; `None`: that of the scenario's host.
        """
        return new_steps(self.space.scenario, self.result.best.scenario, toolstack) if self.advised else []

    @property
    def title(self) -> str:
        """The title of a page on the answer: whether it is advice, or only the nearest of the settings tried."""
        changes_something = any(True for _ in self.changed())
        nearest = "The nearest setting tried, which is not advised"
        return f"{nearest if changes_something and not self.advised else 'What to set'}: {self.space.scenario.name}"

    def document(self, toolstack: Toolstack | None = None, *, full: bool = False) -> Document:
        """The answer as a document.

        Args:
            toolstack: toolstack of the commands; `None`: that of the scenario's host.
            full: whether to show every gain, parameter and metric.
        """
        return document_of(self, toolstack, full=full)

    def as_data(self, toolstack: Toolstack | None = None) -> dict[str, Any]:
        """The whole answer as data.

        Args:
            toolstack: toolstack of the commands; `None`: that of the scenario's host.
        """
        result, confirmed = self.result, self.confirmed
        return {
            "scenario": self.space.scenario.name,
            "seed": self.search.seed,
            "verdict": self.verdict,
            "headline": self.headline,
            "advised": self.advised,
            "interrupted": self.interrupted,
            "left": self.result.left or None,
            "held": held(self.space),
            "goals": [str(goal) for goal in self.search.goals],
            "slos": [str(slo) for slo in self.search.slos],
            "changes": dict(result.best.changes),
            "score": None if confirmed is None else _row(confirmed.score),
            "gains": {} if confirmed is None else {name: _row(gain) for name, gain in confirmed.gains.items()},
            "comparisons": [] if confirmed is None else [comparison.row() for comparison in confirmed.comparisons],
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
            "proven": isinstance(self.missed, Proven) or result.proof is not None,
            "alone": None if self.alone is None or self.kept else self.alone.about(self._worst),
            "parameters": [
                {"parameter": key, "from": before, "to": after, "costs": _row(result.costs.get(key))}
                for key, before, after in self.changed()
            ],
            "importance": dict(result.importance),
            "policies": {name: result.standings[c.number].score for name, c in result.policies.items()},
            "commands": [asdict(step) for step in self.commands(toolstack)],
            "search": {
                "settings": self.space.size,
                "candidates": len(result.candidates),
                "replications_run": result.runs,
                "replications_saved": result.runs_full - result.runs,
                "everything_tried": result.exhausted,
            },
            "front": self._front(),
            "rejected": [{"changes": dict(trial.candidate.changes), "why": trial.reason} for trial in self.rejected],
            "replications": None if confirmed is None else confirmed.added.row(),
            "sensitivity": [] if self.sensitivity is None else self.sensitivity.rows(),
        }


def _assignments(values: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {number(value) if isinstance(value, float) else 'its default' if value is None else value}"
        for name, value in values.items()
    )


def _row(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else interval.row()


def _mean(candidate: Candidate, slo: Slo) -> str:
    interval = Interval.from_values(row[slo.address.name] for row in candidate.rows)
    return "undefined" if interval is None else f"{number(interval.mean)} {slo.address.unit}"
