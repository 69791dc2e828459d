"""The functions of the library: each takes scenarios or their files, runs them as needed, and returns an answer.

Answers print themselves (`str`, and in notebooks), and have `to_frame()`.
"""

from collections.abc import Iterable, Mapping, Sized
from contextlib import closing, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vcpulab._arguments import check, check_optional
from vcpulab._extras import require
from vcpulab._texts import Texts, groups, several, single
from vcpulab._work.effort import Effort, stated
from vcpulab._work.progress import Progress, report
from vcpulab.errors import Interrupted, RequestError, ScenarioError
from vcpulab.results.addresses import find_all
from vcpulab.results.addresses import slos as read_slos
from vcpulab.results.run import Run
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario, Source, scenario_of, split

if TYPE_CHECKING:
    from vcpulab.advice.answers import Differences, WhatIf
    from vcpulab.advice.bounds import Bounds
    from vcpulab.advice.capacity import Capacity
    from vcpulab.advice.explanation import Explanation
    from vcpulab.advice.lint.answer import Findings
    from vcpulab.advice.placing.placing import Placement
    from vcpulab.advice.tuning.answer import Tuning
    from vcpulab.sweeps.answer import Sweep
    from vcpulab.sweeps.plan import Plan
    from vcpulab.sweeps.store import Store

_AnyDifferences = TypeVar("_AnyDifferences", bound="Differences")

REPLICATIONS = 10
"""The replications of comparisons; enough for narrow intervals: t(0.975, 9) is 2.26, t(0.975, 4) 2.78."""
TRIALS = 100
"""Settings that are tried, where neither their number nor a time is given."""


def compare(
    before: Source | Run,
    after: Source | Run,
    metrics: Texts | None = None,
    *,
    effort: Effort | None = None,
    replications: int | None = None,
    precision: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Differences":
    """Paired differences of all metrics that two scenarios or two runs have in common.

    Where a large harm is uncertain, replications are added; see `deciding`.

    Args:
        before: a scenario, its file, a run, or the directory of a run.
        after: another scenario or run, in the same form.
        metrics: an address to compare, or a pattern such as `web*.response_p99`, or several; all if left out.
        effort: see `Effort`, whose fields are keywords, too. `replications=N` runs exactly N. Otherwise: the first
            scenario's number, at least 10; more while a harm is uncertain, until intervals are within `precision`
            (a fraction of the value, 0.1 if left out: 10 %) or `seconds` of wall time have passed; without `seconds` at
            most 4 times as many.
        progress: see `Progress`.

    Returns:
        The differences. `to_frame()` has a row for each metric: `metric`, `unit`, the means `before` and `after` and
        the `difference` in that unit, `difference_percent`, `p`, `verdict` and other columns (see `Comparison.row`).

    Raises:
        RequestError: a scenario cannot be compared with a run, or there is no such metric.
        ScenarioError: a scenario has errors.
        OSError: a file cannot be read.
        EngineError: a run failed.
        Interrupted: the work was cancelled; it holds the comparison of the finished replications.
        KeyboardInterrupt: the work was cancelled before there was a result.

    Examples:
        >>> scenario = Scenario.starter().change({"run.duration": "200ms"})
        >>> found = compare(scenario, scenario.change({"domain.batch.cap": 30}), ["batch.gotten"])
        >>> found["batch.gotten"].verdict
        'lower'
    """
    from vcpulab.advice.answers import Differences
    from vcpulab.advice.compare import compare as differences
    from vcpulab.advice.deciding import decide

    effort = stated(
        "compare", effort, replications=replications, precision=precision, seconds=seconds, seed=seed, jobs=jobs
    )
    first, second = _run_or_scenario(before, "before"), _run_or_scenario(after, "after")
    if isinstance(first, Run) != isinstance(second, Run):
        raise RequestError("a scenario and a run", allowed="two scenarios, or two runs")
    named = first.scenario if isinstance(first, Run) else first
    addresses = None if metrics is None else find_all(named, several(metrics, "metrics"), "metrics")
    if isinstance(first, Run) and isinstance(second, Run):
        numbers = ("replications", "precision", "seconds", "seed")
        if field := ", ".join(name for name in numbers if getattr(effort, name) is not None):
            raise RequestError(field=field, allowed="with scenarios; these runs are over")
        return Differences(first, second, tuple(differences(first, second, addresses)))
    assert isinstance(first, Scenario)
    assert isinstance(second, Scenario)
    first = _with_effort(first, effort)
    old, new, comparisons, added = decide(first, second, metrics=addresses, effort=effort, progress=progress)
    return _raise_if_interrupted(Differences(old, new, tuple(comparisons), added))


def whatif(
    scenario: Source,
    changes: Mapping[str, Any] | Texts,
    *,
    effort: Effort | None = None,
    replications: int | None = None,
    precision: float | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "WhatIf":
    """The comparison of a scenario with the same scenario with other settings.

    Where a large harm is uncertain, replications are added; see `deciding`.

    Args:
        scenario: a scenario, or its file.
        changes: path to value, or texts `PATH=VALUE`, one or several; `web.weight` may stand for
            `domain.web.weight`, and `batch*.weight` for the weight of every domain whose name matches. Changes of `run`
            apply to both sides.
        effort: see `Effort`, whose fields are keywords, too. `replications=N` runs exactly N. Otherwise: the
            scenario's number, at least 10; more while a harm is uncertain, until intervals are within `precision`
            (a fraction of the value, 0.1 if left out: 10 %) or `seconds` of wall time have passed; without `seconds` at
            most 4 times as many.
        progress: see `Progress`.

    Returns:
        The differences. `to_frame()` has a row for each metric: `metric`, `unit`, the means `before` and `after` and
        the `difference` in that unit, `difference_percent`, `p`, `verdict` and other columns (see `Comparison.row`).

    Raises:
        RequestError: a setting cannot be understood, or makes no valid scenario.
        ScenarioError: a scenario has errors.
        OSError: a file cannot be read.
        EngineError: a run failed.
        Interrupted: the work was cancelled; it holds the comparison of the finished replications.
        KeyboardInterrupt: the work was cancelled before there was a result.

    Examples:
        >>> found = whatif(Scenario.starter().change({"run.duration": "200ms"}), {"batch.cap": 30})
        >>> found["batch.gotten"].verdict, found.commands[0].text
        ('lower', 'xl sched-credit -d batch -c 30')
    """
    from vcpulab.advice.answers import WhatIf
    from vcpulab.advice.deciding import decide

    effort = stated(
        "whatif", effort, replications=replications, precision=precision, seconds=seconds, seed=seed, jobs=jobs
    )
    base_scenario = scenario_of(scenario)
    if isinstance(changes, Sized) and not changes:
        raise RequestError("nothing is set", field="changes", allowed="one change or several")
    if isinstance(changes, Mapping):
        changed = settings.change(base_scenario, changes, new_names=False)
    else:
        changed = settings.apply(base_scenario, several(changes, "changes"))
    before = _measured_alike(_with_effort(base_scenario, effort), changed.changes)
    old, new, comparisons, added = decide(before, changed.scenario, effort=effort, progress=progress)
    return _raise_if_interrupted(WhatIf(old, new, tuple(comparisons), added, changed=changed))


def tune(
    scenario: Source,
    *,
    maximise: Texts = (),
    minimise: Texts = (),
    slo: Texts = (),
    vary: Texts = (),
    only: Texts = (),
    price: Texts = (),
    trials: int | None = None,
    folder: str | PathLike[str] | None = None,
    sensitivity: bool = False,
    effort: Effort | None = None,
    replications: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Tuning":
    """The best setting of a scenario that a search finds, confirmed against the present one on fresh random numbers.

    `maximise`, `minimise`, `slo`, `vary`, `only` and `price` take one text or several.

    Args:
        scenario: a scenario, or its file.
        maximise: addresses to make greater; without these and `minimise`: the SLOs that the present setting misses; if
            it keeps all, throughput and response times of all, fairness, and waits of driver domains.
        minimise: addresses to make smaller.
        slo: SLOs to keep, such as `web.response_p99 < 50ms`.
        vary: parameters with the values to try: `PATH=LOW..HIGH` or `PATH=a,b,c`.
        only: the schedulers' parameters to vary: paths, or patterns such as `domain.*.cap`.
        price: the cost of changing a kind of parameter, such as `scheduler=50`, %: among settings that are about
            equally good the cheapest is advised.
        trials: the number of settings to try, including the present one; if neither this nor `seconds` is given, 100,
            or fewer where 32 in a row are no better.
        folder: the folder of the measurements, from which an interrupted search continues; in memory only if left out.
            `{search}` in it stands for a name that no other search has.
        sensitivity: whether to try every guessed input, not only the nearest ones.
        effort: see `Effort`, whose fields are keywords, too. `seconds` is the wall time of the search; the confirmation
            takes additional time. `replications` is that of each setting that is not dropped earlier; 6 if left out.
        progress: see `Progress`; it starts again for the confirmation.

    Returns:
        The tuning. `to_frame()` has a row for each changed parameter: `parameter`, the values `now` and `found`, and
        `cost_of_the_present`, the loss of score if it is changed back, a fraction.

    Raises:
        RequestError: an argument cannot be understood.
        ScenarioError: a scenario has errors.
        OSError: a file cannot be read.
        MissingExtraError: Optuna is not installed.
        Interrupted: the search was cancelled; it holds the best setting so far, without confirmation.
        KeyboardInterrupt: the search was cancelled before there was a result.
    """
    require("optuna", "tune")
    from vcpulab.advice.capacity.service_alone import alone
    from vcpulab.advice.rule_fixes import with_fixes
    from vcpulab.advice.tuning import goals as tuning_goals
    from vcpulab.advice.tuning import prices
    from vcpulab.advice.tuning.answer import Tuning
    from vcpulab.advice.tuning.confirming import settle
    from vcpulab.advice.tuning.front import front
    from vcpulab.advice.tuning.goals import excess
    from vcpulab.advice.tuning.no_change import concerned
    from vcpulab.advice.tuning.parameters import space
    from vcpulab.advice.tuning.search import REPLICATIONS as SEARCH_REPLICATIONS
    from vcpulab.advice.tuning.search import Search
    from vcpulab.advice.tuning.sensitivity import sensitivity as sensitivity_of
    from vcpulab.advice.tuning.widening import shared

    check_optional(trials=trials)
    effort = stated("tune", effort, replications=replications, seconds=seconds, seed=seed, jobs=jobs)
    store_folder = None if folder is None else _path(folder, "folder")
    scenario = scenario_of(scenario)
    vary, only = several(vary, "vary"), several(only, "only")
    slos = read_slos(scenario, several(slo, "slo"))
    tuning_goals.contradictions(slos)
    search_space = space(scenario, vary, only)
    missed = tuning_goals.missed(scenario, slos, jobs=effort.jobs)
    goals = tuning_goals.goals(scenario, several(maximise, "maximise"), several(minimise, "minimise"), missed)
    by_hand = bool(vary or only)
    domains = [*concerned(goals), *(objective.address.domain for objective in missed)]
    search = Search(
        shared(search_space, domains) if by_hand else with_fixes(search_space, goals, missed, jobs=effort.jobs),
        goals,
        slos,
        seed=scenario.seed if effort.seed is None else effort.seed,
        replications=SEARCH_REPLICATIONS if effort.replications is None else effort.replications,
        jobs=effort.jobs,
        by_hand=by_hand,
        prices=prices.stated(several(price, "price")),
    )
    if store_folder is not None:
        search.keep(Path(str(store_folder).replace("{search}", search.name())))
    limited = trials is not None or effort.seconds is not None
    try:
        result = search.run(
            trials=trials if limited else TRIALS, seconds=effort.seconds, patient=limited, progress=progress
        )
    except Interrupted as interrupted:
        raise Interrupted(Tuning(search, interrupted.partial, None, interrupted=True)) from None
    answer = Tuning(search, result, None)
    try:
        answer = Tuning(search, *settle(search, result, progress))
        if answer.advised and answer.confirmed is not None:
            offers = front(search, answer.result, answer.confirmed, progress)
            gain = answer.confirmed.score.mean
            inputs = sensitivity_of(
                search, answer.result.best, gain, everything=sensitivity, jobs=effort.jobs, progress=progress
            )
            answer = replace(answer, offers=offers, sensitivity=inputs)
        if not answer.kept:
            missed = [objective for objective in slos if excess(objective, answer.result.best.rows) > 0]
            answer = replace(answer, alone=alone(scenario, missed[0].address, jobs=effort.jobs))
    except KeyboardInterrupt:
        raise Interrupted(replace(answer, interrupted=True)) from None
    return answer


def capacity(
    scenario: Source,
    vary: str,
    *,
    slo: Texts = (),
    lowest: float | None = None,
    highest: float | None = None,
    effort: Effort | None = None,
    replications: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Capacity":
    """The largest load that keeps SLOs, and what stops the host from carrying more.

    Args:
        scenario: a scenario, or its file.
        vary: what grows: a number of the scenario such as `web.rate`, or `copies:NAME`.
        slo: SLOs to keep, such as `web.response_p99 < 50ms`, one or several; without any: no failed requests, and
            responses near those at the lowest load.
        lowest: the lowest load, in the unit of `vary`.
        highest: the highest load, in the unit of `vary`.
        effort: see `Effort`, whose fields are keywords, too. `replications` is the first number of each load; if left
            out that of the scenario, at least 5. After `seconds` of wall time the search stops.
        progress: see `Progress`.

    Returns:
        The capacity. `to_frame()` has a row for each load tried: `value` in the unit of `vary`, `standing`,
        `replications`, the `slo` nearest to breaking and its `mean` in its metric's unit, and the `fullest` station.

    Raises:
        RequestError: an argument cannot be understood.
        ScenarioError: a scenario has errors.
        OSError: a file cannot be read.
        Interrupted: the work was cancelled; it holds the loads tried.
        KeyboardInterrupt: the work was cancelled before there was a result.

    Examples:
        >>> starter = Scenario.starter().change({"run.duration": "500ms"})
        >>> print(capacity(starter, "http.rate", lowest=100, highest=250))
        a web server beside a batch machine
        <BLANKLINE>
        every load tried keeps the SLOs with these settings: client.http.rate up to 250, the highest
        ...
    """
    from vcpulab._work.budget import Budget
    from vcpulab.advice import capacity as capacities

    check_optional(lowest=lowest, highest=highest)
    effort = stated("capacity", effort, replications=replications, seconds=seconds, seed=seed, jobs=jobs)
    scenario = scenario_of(scenario).with_run(seed=effort.seed)
    slos = read_slos(scenario, several(slo, "slo"))
    grows = capacities.growth(scenario, single(vary, "vary"), lowest=lowest, highest=highest)
    budget = Budget(effort.seconds, progress)
    return capacities.capacity(grows, slos, replications=effort.replications, jobs=effort.jobs, budget=budget)


def place(
    scenarios: Source | Iterable[Source] | Mapping[str, Source],
    *,
    slo: Texts = (),
    host: Source | None = None,
    apart: Texts | Iterable[Iterable[str]] = (),
    together: Texts | Iterable[Iterable[str]] = (),
    margin: float = 0.0,
    memory: str | float | None = None,
    effort: Effort | None = None,
    replications: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Placement":
    """Domains placed on as few equal hosts as keep SLOs.

    Args:
        scenarios: one or several scenarios, or their files, or labels to them; their domains are placed with their
            clients.
        slo: SLOs to keep, such as `web.response_p99 < 50ms`, or for every client `response_p99 < 50ms`; one or
            several.
        host: a scenario with the host that the domains are placed on, or its file, or the name of a hardware profile;
            the first scenario's host if left out.
        apart: groups of domains of which no two may be on one host, each `"web,batch"` or a sequence of names.
        together: groups of domains that have to be on one host, in the same form.
        margin: the fraction of each resource that packing leaves free, 0 to 1.
        memory: the memory of each host, such as `64GiB`, or a number of bytes; enough for everything if left
            out.
        effort: see `Effort`, whose fields are keywords, too. `replications` is the first number of each simulation;
            if left out that of the scenario, at least 5. After `seconds` of wall time the search stops.
        progress: see `Progress`.

    Returns:
        The placement. `to_frame()` has a row for each host: `host`, its `domains`, `pcpus_used_percent`, and the `slo`
        nearest to breaking. `stopped` is the reason if `seconds` passed during the search for fewer hosts.

    Raises:
        RequestError: an argument cannot be understood.
        ScenarioError: a scenario has errors.
        OSError: a file cannot be read.
        UnplaceableError: a domain misses its SLOs even alone, or needs more memory than a host has.
        StoppedError: `seconds` passed before the first placement that keeps the SLOs was found.
        Interrupted: the work was cancelled; it holds the placement of the domains judged so far.
        KeyboardInterrupt: the work was cancelled before there was a result.
        MissingExtraError: OR-Tools is not installed.
    """
    from vcpulab._work.budget import Budget
    from vcpulab.advice.placing import fleet as fleets
    from vcpulab.advice.placing import placing

    check(margin=margin)
    effort = stated("place", effort, replications=replications, seconds=seconds, seed=seed, jobs=jobs)
    labelled = {name: scenario.with_run(seed=effort.seed) for name, scenario in _labelled(scenarios).items()}
    target_host = fleets.host_of(labelled, host) if isinstance(host, str) else host
    fleet = fleets.fleet(
        labelled,
        host=None if target_host is None else scenario_of(target_host, "host"),
        together=groups(together, "together"),
    )
    return placing.place(
        fleet,
        several(slo, "slo"),
        apart=groups(apart, "apart"),
        margin=margin,
        memory=_bytes(memory),
        replications=effort.replications,
        jobs=effort.jobs,
        budget=Budget(effort.seconds, progress),
    )


def bounds(scenario: Source) -> "Bounds":
    """The bounds on the load that a host can carry, and the bottleneck, by queueing analysis without a simulation.

    Args:
        scenario: a scenario, or its file.

    Returns:
        The bounds. `to_frame()` has a row for each load: `load`, `throughput_max`, `bottleneck`, `together` and
        `throughput` (units of work per second), `response_min_s` and `response_s` (seconds).

    Raises:
        RequestError: `scenario` is neither a scenario nor a path.
        ScenarioError: a scenario has errors.
        OSError: a file cannot be read.

    Examples:
        >>> print(bounds(Scenario.starter()))
        a web server beside a batch machine: bounds, and estimates by exact mean-value analysis; ...
    """
    from vcpulab.advice.bounds import bounds as bounds_of

    return bounds_of(scenario_of(scenario))


def lint(
    scenario: Source,
    select: Texts = (),
    *,
    effort: Effort | None = None,
    replications: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Findings":
    """The probable problems of a scenario, each with its fix and the simulated effect.

    Args:
        scenario: a scenario, or its file, which may have parameters of other schedulers.
        select: the name of a rule to apply, or a pattern such as `pinn*`, or several; all if left out.
        effort: see `Effort`, whose fields are keywords, too. `replications` is the fewest of each simulation,
            without and with the fix, 10 if left out; those of the scenario if they are more.
        progress: see `Progress`.

    Returns:
        The findings. `to_frame()` has a row for each finding: `rule`, `field`, `reason`, and the `commands` of its fix.

    Raises:
        RequestError: no rule has such a name.
        ScenarioError: the file has other errors.
        OSError: the file cannot be read.
        Interrupted: the work was cancelled; it holds the findings, whose fixes were not tried.
        KeyboardInterrupt: the work was cancelled before there was a result.

    Examples:
        >>> print(lint(Scenario.starter().change({"run.duration": "50ms"}), replications=2))
        a web server beside a batch machine: domain.web.weight: waits-behind-equals
          answers to http take up to ...
    """
    from vcpulab.advice.lint import catalogue
    from vcpulab.advice.lint import lint as linting
    from vcpulab.advice.lint.answer import Findings

    effort = stated("lint", effort, replications=replications, seed=seed, jobs=jobs)
    names = catalogue.selected(several(select, "select"))
    try:
        if isinstance(scenario, Scenario):
            findings = scenario, linting.advise(scenario, select=names, effort=effort, progress=progress)
        else:
            findings = linting.lint(_path(scenario, "scenario"), select=names, effort=effort, progress=progress)
    except Interrupted as interrupted:
        partial = interrupted.partial
        host, advice = (scenario, partial) if isinstance(scenario, Scenario) else partial
        raise Interrupted(Findings.from_advice(host, advice), interrupted.extent) from None
    return Findings.from_advice(*findings)


def explain(
    scenario: Source,
    slo: Texts | None = None,
    *,
    effort: Effort | None = None,
    replications: int | None = None,
    seed: int | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Explanation":
    """The reason why a service is slow: where its time goes, what holds it back, and the fixes, simulated.

    For a percentile of a client's response times, the request at that percentile and the median request are followed:
    `Explained.paths`.

    Args:
        scenario: a scenario, or its file.
        slo: one or several metrics such as `web.response_p99`, or SLOs such as `web.response_p99 < 50ms`; a name may be
            a pattern, `web*.response_p99`; `None`: all clients and applications that are late.
        effort: see `Effort`, whose fields are keywords, too. `replications` is the fewest of each simulation, without
            and with the fix, 10 if left out; those of the scenario if they are more.
        progress: see `Progress`.

    Returns:
        The explanation. `to_frame()` has a row for each part of the time of each metric: `metric`, `depth`, `name`,
        `percent` of the time, and `half_width` of its interval in percentage points.

    Raises:
        RequestError: the metric does not exist.
        ScenarioError: the file has errors.
        OSError: the file cannot be read.
        Interrupted: the work was cancelled; it holds the explanation without fixes.
        KeyboardInterrupt: the work was cancelled before there was a result.

    Examples:
        >>> print(explain(Scenario.starter().change({"run.duration": "50ms"}), "batch.gotten", replications=2))
        batch.gotten: ...
    """
    from vcpulab.advice.explanation import explain as explained

    effort = stated("explain", effort, replications=replications, seed=seed, jobs=jobs)
    return explained(scenario_of(scenario), slo, effort=effort, progress=progress)


def sweep(
    file: "str | PathLike[str] | Plan",
    store: "str | PathLike[str] | Store" = "out/sweep",
    *,
    metrics: Texts | None = None,
    executor: str = "local",
    effort: Effort | None = None,
    jobs: int = 0,
    progress: Progress | None = None,
) -> "Sweep":
    """The results of a scenario at many points; runs that are in the store are not repeated.

    Args:
        file: the sweep file (the scenario, varied parameters, replications), or its `Plan`.
        store: the directory of the results, or the store in it; several sweeps may share it.
        metrics: an address to show, or a pattern such as `web*.gotten`, or several; by default throughput of every
            client.
        executor: `local` (threads), `dask://HOST:PORT` or `dask://local?workers=N`. It never changes the results.
        effort: see `Effort`: `jobs` on this machine, which is a keyword, too. Everything else is in the file.
        progress: see `Progress`.

    Returns:
        The sweep. `to_frame()` has a row for each point: `point`, the value of each varied parameter, and for each
        metric its mean in its unit and, with the suffix ` ±`, the half width of its interval.

    Raises:
        RequestError: the sweep file has errors.
        ScenarioError: the scenario has errors.
        OSError: a file cannot be read.
        SweepFailedError: the sweep failed; finished runs are kept.
        ClusterLostError: no scheduler answers at the executor's address.
        Interrupted: the sweep was cancelled; it holds the finished points.
        KeyboardInterrupt: the sweep was cancelled before any point was finished.
    """
    from vcpulab.sweeps.answer import Sweep
    from vcpulab.sweeps.executors import executor as executor_of
    from vcpulab.sweeps.plan import Plan
    from vcpulab.sweeps.runner import run as run_plan
    from vcpulab.sweeps.store import Store
    from vcpulab.sweeps.tables import default_metrics, summary

    effort = stated("sweep", effort, jobs=jobs)
    plan = file if isinstance(file, Plan) else Plan.load(_path(file, "file"))
    scenario = plan.scenario(0)
    addresses = default_metrics(plan) if metrics is None else find_all(scenario, several(metrics, "metrics"), "metrics")
    pool = executor_of(executor, effort.jobs)
    with (
        closing(pool),
        nullcontext(store) if isinstance(store, Store) else Store.open(Path(store), create=True) as opened,
    ):
        stored = len(opened.done({unit.key for unit in plan.units()}))

        def report_remaining(done: int, total: int) -> None:
            report(progress, max(0.0, (done - stored) / max(total - stored, 1)))

        try:
            run_plan(plan, opened, pool, progress=report_remaining)
        except KeyboardInterrupt:
            if not opened.done({unit.key for unit in plan.units()}):
                raise KeyboardInterrupt from None
            raise Interrupted(Sweep(plan, tuple(addresses), tuple(summary(plan, opened, addresses)))) from None
        return Sweep(plan, tuple(addresses), tuple(summary(plan, opened, addresses)))


def _with_effort(scenario: Scenario, effort: Effort) -> Scenario:
    """The scenario with enough replications for an interval.

    Raises:
        RequestError: a value is out of range, or has no effect where the number of replications is given.
    """
    replications = effort.replications
    for field in ("precision", "seconds"):
        value = getattr(effort, field)
        if replications is not None and value is not None:
            reason = f"it has no effect where the number of replications is given, {replications}"
            raise RequestError(reason, field=field, found=f"{value:g}", allowed="one of the two")
    if replications is not None and replications < 2:
        raise RequestError(field="replications", found=replications, allowed="at least 2, for an interval")
    first_replications = max(REPLICATIONS, scenario.replications) if replications is None else replications
    try:
        return scenario.with_run(seed=effort.seed, replications=first_replications)
    except ScenarioError as error:
        raise RequestError(str(error)) from None


def _measured_alike(before: Scenario, changes: Mapping[str, Any]) -> Scenario:
    """The present side with the changed length and seed of runs: runs of different lengths are not comparable.

    Raises:
        RequestError: only settings of runs are changed, so that both sides are equal.
    """
    of_the_runs = {path: value for path, value in changes.items() if split(path)[0] == "run"}
    if changes and len(of_the_runs) == len(changes):
        raise RequestError(
            f"`{', '.join(of_the_runs)}` is set on both sides, and nothing else is: there is nothing to compare",
            field="changes",
            hint="`run` and `sweep` take runs of other lengths",
        )
    return before.change(of_the_runs) if of_the_runs else before


def _raise_if_interrupted(answer: "_AnyDifferences") -> "_AnyDifferences":
    """The answer, unless it was interrupted."""
    if answer.added is not None and answer.added.interrupted:
        raise Interrupted(answer)
    return answer


def _labelled(scenarios: Source | Iterable[Source] | Mapping[str, Source]) -> dict[str, Scenario]:
    """The scenarios that an argument gives, by their labels or by their numbers.

    Raises:
        RequestError: it gives none, or something else.
    """
    if isinstance(scenarios, Mapping):
        labelled = {label: scenario_of(source, "scenarios") for label, source in scenarios.items()}
    elif isinstance(scenarios, Scenario | str | PathLike) or not isinstance(scenarios, Iterable):
        labelled = {"scenario 1": scenario_of(scenarios, "scenarios")}
    else:
        labelled = {
            f"scenario {number}": scenario_of(source, "scenarios") for number, source in enumerate(scenarios, 1)
        }
    if not labelled:
        raise RequestError(field="scenarios", found="none", allowed="a scenario or several, or their files")
    return labelled


def _bytes(memory: str | float | None) -> float | None:
    """Memory in bytes, of a text such as `64GiB` or a number."""
    from vcpulab.scenario.units import size_bytes

    if not isinstance(memory, str):
        check_optional(memory=memory)
        return memory
    try:
        return size_bytes(memory)
    except ValueError as error:
        raise RequestError(str(error), field="memory") from None


def _path(given: str | PathLike[str], field: str) -> Path:
    if not isinstance(given, str | PathLike):
        raise RequestError(field=field, found=type(given).__name__, allowed="a path")
    return Path(given)


def _run_or_scenario(source: Source | Run, field: str) -> Scenario | Run:
    if isinstance(source, Run | Scenario):
        return source
    if isinstance(source, str | PathLike) and Path(source).is_dir():
        return Run.load(source)
    return scenario_of(source, field)
