"""`vcpulab tune`: what should I set?"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import tomli_w
from cyclopts import App, Parameter

from vcpulab.advice.tuning import goals as wanted
from vcpulab.advice.tuning.answer import Answer
from vcpulab.advice.tuning.confirm import Confirmation, confirm
from vcpulab.advice.tuning.goals import Goal
from vcpulab.advice.tuning.knobs import space as space_of
from vcpulab.advice.tuning.search import REPLICATIONS, Candidate, Search
from vcpulab.cli import files, views
from vcpulab.cli.usage import examples
from vcpulab.errors import RequestError
from vcpulab.extras import require
from vcpulab.hypervisors.xl import new_steps
from vcpulab.results import outcomes
from vcpulab.scenario.scenario import Scenario

DONE, FAILED = 0, 1
TRIALS = 100
"""Candidates, if nobody says how many or how long."""
_TRIALS_MAX = 1_000_000

_SPAN = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>s|m|min|h|)")
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}

Many = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False, consume_multiple=False)]


def register(app: App) -> None:
    """Adds the command."""
    app.command(
        tune,
        help_epilogue=examples(
            "vcpulab tune web.toml --trials 12",
            "vcpulab tune web.toml --trials 9 --only 'domain.*.weight'",
            "vcpulab tune web.toml --trials 9 --knob batch.cap=10..90",
            "vcpulab tune web.toml --trials 9 --limit 'batch.throughput > 1'",
            "vcpulab tune web.toml --budget 2s --format json",
        ),
    )


def tune(
    file: Path,
    /,
    *,
    maximise: Many = (),
    minimise: Many = (),
    limit: Many = (),
    knob: Many = (),
    only: Many = (),
    trials: int | None = None,
    budget: str | None = None,
    replications: int = REPLICATIONS,
    seed: int | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    write: Path | None = None,
    report: Path | None = None,
    format: Literal["table", "json"] = "table",  # noqa: A002 - the option's name
    jobs: Annotated[int, Parameter(name=["--jobs", "-j"])] = 0,
) -> int:
    """Search for the best setting of a scenario, confirm it against the present one, and say how to set it.

    A search that is interrupted keeps what it has measured; the same command goes on. The same scenario, options and
    seed give the same result with --trials; with --budget it depends on the machine how far the search gets.

    Args:
        file: Scenario file.
        maximise: A metric to make greater, such as web.throughput; may be repeated, and all count alike. If none is
            named: throughput and response times of all clients and applications, fairness, and that driver domains do
            not wait.
        minimise: A metric to make smaller, such as web.response_p99.
        limit: What must hold, such as 'web.response_p99 < 50ms'.
        knob: What may be turned, by hand: PATH=LOW..HIGH or PATH=a,b,c.
        only: What may be turned, of what the schedulers have: a path such as domain.dom0.weight, or a pattern such as
            'domain.*.cap'. If neither is given: schedulers of the same release, weights or reservations, slices, rate
            limits, vCPUs and pinning of driver domains.
        trials: Settings to try, the present one among them; 100 if no budget is given.
        budget: Time to search, such as 30s, 5m or 1h; the confirmation comes on top.
        replications: Of each setting that is not given up earlier.
        seed: Of the search; the scenario's if left out.
        out: Directory for what is measured; by default one in out/tune that only this search has.
        write: Write the scenario with the setting found to this file.
        report: Write a report with charts (HTML) to this file.
        format: How to print.
        jobs: Replications at a time; 0: one for each processor. It never changes the result.
    """
    require("optuna", "tune")
    seconds = _seconds(budget)
    _between("--trials", trials, 2, _TRIALS_MAX)
    _between("--replications", replications, 2, 1000)
    _between("--seed", seed, 0, 2**63 - 1)
    scenario = files.load(file)
    space = space_of(scenario, knob, only)
    goals = _goals(scenario, maximise, minimise)
    limits = [outcomes.limit(scenario, text) for text in limit]
    wanted.contradictions(limits)
    seed = scenario.seed if seed is None else seed
    search = Search(
        space, goals, limits, seed=seed, replications=replications, jobs=files.at_least_zero("--jobs", jobs)
    )
    folder = out or Path("out/tune") / f"{file.stem}-{search.name()}"
    search.keep(folder)
    trials = TRIALS if trials is None and seconds is None else trials
    with _keeping(folder):
        with views.progress(f"tuning {scenario.name}") as progress:
            found = search.run(trials=trials, seconds=seconds, progress=progress)
        with views.progress("confirming") as progress:
            confirmed = None if found.best is search.present else confirm(search, found.best, progress)
    answer = Answer(search, found, confirmed)
    if format == "json":
        print(json.dumps(answer.document(), indent=2))
    else:
        _show(answer)
    if write is not None and answer.advised:
        files.write(write, tomli_w.dumps(found.best.scenario.written()))
        views.say(f"written to {write}")
    if report is not None:
        from vcpulab.advice.tuning.report import write_report

        write_report(report, answer)
        views.say(f"written to {report}")
    return DONE if answer.kept else FAILED


def _show(answer: Answer) -> None:
    found, confirmed = answer.found, answer.confirmed
    size = answer.space.size
    tried = f"{len(found.candidates)} of {size if size < 10**6 else f'{size:.1g}'} settings tried"
    print(f"{answer.space.scenario.name}: {tried}, {100 * answer.saved():.0f} % of their replications saved")
    print(f"wanted: {'; '.join(map(str, [*answer.search.goals, *answer.search.limits]))}\n")
    print(answer.verdict)
    if not answer.kept:
        print(f"beyond its limit, and by how much: {'; '.join(answer.nearest())}")
    rows = [
        [key, before, after, str(found.costs.get(key, "–")), _share(found.importance.get(key))]
        for key, before, after in answer.turned()
    ]
    if rows:
        headings = ["knob", "now", "found", "turning it back\ncosts of the score", "importance\nin the search"]
        views.print_table("What the best turns", headings, rows, text_columns=3)
    others = [[key, _share(share)] for key, share in found.importance.items() if key not in {row[0] for row in rows}]
    if others:
        views.print_table("Knobs that stay where they are", ["knob", "importance in the search"], others[:8])
    if len(found.policies) > 1:
        ranked = sorted(found.policies.items(), key=lambda item: found.standings[item[1].number].order, reverse=True)
        policies = [[name, f"{found.standings[c.number].score:+.3f}", _verbal(answer, c)] for name, c in ranked]
        views.print_table("The best under each scheduler", ["scheduler", "score in the search", "limits"], policies)
    if confirmed is not None:
        _show_confirmed(confirmed)
    if answer.advised:
        print("\nTo set it on a real host:\n")
        views.show_commands(new_steps(answer.space.scenario, found.best.scenario))


def _show_confirmed(confirmed: Confirmation) -> None:
    n = confirmed.score.n
    rows = [[name, str(gain)] for name, gain in confirmed.gains.items()]
    rows.append(["score: their mean", str(confirmed.score)])
    views.print_table("Gain", ["goal", f"gain in {n} fresh replications"], rows)
    if confirmed.limits:
        words = {True: "kept", False: "not kept", None: "not sure"}
        limits = [[str(one.limit), words[one.sure], str(one.interval or "–")] for one in confirmed.limits]
        views.print_table("Limits", ["limit", "kept", "value"], limits, text_columns=2)
    changed = [one for one in confirmed.comparisons if one.verdict in ("better", "worse")]
    if changed:
        views.show_comparison(changed, (confirmed.before, confirmed.after), ("now", "found"), all=False)


def _verbal(answer: Answer, candidate: Candidate) -> str:
    if not answer.search.limits:
        return "–"
    return "kept" if answer.found.standings[candidate.number].excess <= 0 else "not kept"


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _goals(scenario: Scenario, maximise: Sequence[str], minimise: Sequence[str]) -> list[Goal]:
    stated = [wanted.goal(scenario, name, higher=True) for name in maximise]
    stated += [wanted.goal(scenario, name, higher=False) for name in minimise]
    names = [goal.name for goal in stated]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(f"--maximise, --minimise: `{name}` is named twice; allowed: each metric once")
    return stated or wanted.default_goals(scenario)


def _seconds(budget: str | None) -> float | None:
    if budget is None:
        return None
    match = _SPAN.fullmatch(budget.strip())
    seconds = float(match["number"]) * _SECONDS[match["unit"]] if match else 0.0
    if not 0 < seconds <= 30 * 86400:
        raise RequestError(f"--budget: found `{budget}`; allowed: a time such as 30s, 5m or 1h, at most 720h")
    return seconds


def _between(option: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise RequestError(f"{option}: found `{value}`; allowed: an integer from {least} to {most}")


@contextmanager
def _keeping(folder: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        views.say(f"what was measured is kept in {folder}\n  hint: the same command goes on")
        raise
