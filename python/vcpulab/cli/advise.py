"""`vcpulab lint`, `whatif` and `compare`: the effects of a change, on whom, and their confidence."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from vcpulab import _api
from vcpulab._files import atomic
from vcpulab._work.progress import Progress
from vcpulab.advice import core_sharing
from vcpulab.advice.answers import Differences
from vcpulab.advice.lint.catalogue import RULES, named, selected
from vcpulab.advice.lint.lint import as_data, other_warnings
from vcpulab.advice.shared_parts import cautions_as_data
from vcpulab.cli import files, outputs, page, terminal
from vcpulab.cli.interrupting import run_or_partial, stop
from vcpulab.cli.options import (
    All,
    AnyFormat,
    Flag,
    HarmBudget,
    HarmPrecision,
    Jobs,
    Pairs,
    Report,
    Scenarios,
    Seed,
    TableOrJson,
    TypedFor,
    Words,
    command,
    number,
)
from vcpulab.cli.outputs import Writes, check_writable, written
from vcpulab.cli.streams import continue_without_reader
from vcpulab.errors import RequestError
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.steps import Step
from vcpulab.results.addresses import addresses
from vcpulab.results.run import Run
from vcpulab.show.as_json import as_json
from vcpulab.show.csv import csv
from vcpulab.show.folded import View
from vcpulab.show.folded import check as check_view
from vcpulab.show.table import Table


@command(
    "lint",
    "vcpulab lint web.toml",
    "vcpulab lint web.toml --select 'pinn*,starved' --format json",
    "vcpulab lint --rules",
    "vcpulab lint --explain cap-throttles",
    "vcpulab lint web.toml --fix",
)
def lint(
    file: Scenarios = (),
    /,
    *,
    select: Words = (),
    fix: Flag = False,
    rules: Flag = False,
    explain: str | None = None,
    all: All = False,
    replications: Annotated[
        int, number("Replications of each simulation, without and with the fix.", 2, 10_000)
    ] = _api.REPLICATIONS,
    toolstack: TypedFor = None,
    format: TableOrJson = "table",
    jobs: Jobs = 0,
) -> int:
    """Find probable mistakes in scenario files, their cost, and their remedies.

    The exit status is 0 if nothing is found, or nothing is left. A note is no finding: it is good to know, with the
    price of the other setting.

    Args:
        file: Scenario files.
        select: RULE, or several with commas between them: only what these rules find. Patterns such as 'pinn*' stand
            for all rules that match; may be repeated.
        fix: Apply the fixes of the findings to the files themselves; comments stay. A fix is applied if its simulation
            improves something, starves no domain and makes no service late, and if no earlier fix sets the same field;
            each is simulated with the earlier fixes applied.
        rules: List the rules, and what each finds.
        explain: RULE: print its page: why it hurts, what is measured, when it is silent, and the fix.
    """
    if rules or explain is not None:
        _show_rules(explain, format=format)
        return 0
    if not file:
        raise RequestError("no scenario file is named", hint="--rules and --explain need none")
    names = selected([name.strip() for word in select for name in word.split(",")])
    if fix:
        for path in file:
            check_writable("fix", path)
        continue_without_reader()
    if toolstack is not None:
        # Errors of any file come before the first simulation.
        for path in file:
            files.check_toolstack(path, toolstack)
    answers = {}
    for path in file:
        with _reading(path) as progress:
            answers[path] = (_fixed if fix else _linted)(
                path,
                names,
                toolstack,
                replications=replications,
                jobs=jobs,
                progress=progress,
                shown=format == "table",
                all=all,
            )
        if answers[path].interrupted:
            break
    interrupted = any(answer.interrupted for answer in answers.values())
    if format == "json":
        data = {"files": {str(path): answer.data for path, answer in answers.items()}}
        notes = {str(path): answer.notes for path, answer in answers.items() if answer.notes}
        cautions = {str(path): answer.cautions for path, answer in answers.items() if answer.cautions}
        more = {name: listed for name, listed in (("notes", notes), ("cautions", cautions)) if listed}
        print(as_json({"interrupted": interrupted, **data, **more}))
    elif any(answer.rules for answer in answers.values()):
        terminal.say("vcpulab lint --explain RULE says more of a rule")
    for path, answer in answers.items():
        if answer.text is not None:
            with written(path):
                atomic.write(path, answer.text)
    stop(interrupted=interrupted)
    return 1 if any(answer.left for answer in answers.values()) else 0


class _Answer(NamedTuple):
    """The answer about a scenario file."""

    data: object
    rules: int
    """The number of rules' findings that were shown."""
    left: int
    """The number of remaining faults."""
    text: str | None = None
    """The new content of the file; `None`: unchanged."""
    interrupted: bool = False
    notes: Sequence[object] = ()
    """Settings that are no fault but worth knowing."""
    cautions: Sequence[str] = ()
    """Warnings about costs that the host's profile lacks."""


@contextmanager
def _reading(path: Path) -> Iterator[Progress]:
    try:
        with terminal.progress(f"trying fixes of {path}") as progress:
            yield progress
    except OSError as error:
        raise RequestError(f"{path}: {files.reason(error)}") from None


def _linted(
    path: Path, names: Collection[str], toolstack: Toolstack | None, *, shown: bool, all: bool, **options: Any
) -> _Answer:
    linted, interrupted = run_or_partial(_api.lint, path, names, **options)
    warnings = other_warnings(linted.scenario, linted.advice, names)
    data = [*as_data(linted.advice, toolstack), *({"rule": "warning", **warning} for warning in warnings)]
    if shown:
        page.show(linted.document(toolstack, full=all, label=str(path), names=names), all=all)
    notes, cautions = as_data(linted.notes, toolstack), core_sharing.cautions(linted.scenario.model)
    return _Answer(data, len(linted.advice), len(data), interrupted=interrupted, notes=notes, cautions=cautions)


def _fixed(
    path: Path, names: Collection[str], toolstack: Toolstack | None, *, shown: bool, all: bool, **options: Any
) -> _Answer:
    from vcpulab.advice.fixes import fix

    fixed, interrupted = run_or_partial(fix, path, select=names, **options)
    if shown:
        page.show(fixed.document(str(path)), all=all)
    text = fixed.scenario.text if fixed.number and not interrupted else None
    return _Answer(fixed.as_data(toolstack), fixed.number + len(fixed.left), len(fixed.left), text, interrupted)


def _show_rules(name: str | None, *, format: str) -> None:
    """Prints all rules, or the page of a rule."""
    shown = list(RULES.values()) if name is None else [named(name)]
    if format == "json":
        print(as_json([{"rule": rule.name, "finds": rule.finds, **rule.parts()} for rule in shown]))
    elif name is None:
        page.show_table(
            Table("", ["rule", "what it finds"], [[rule.name, rule.finds] for rule in shown], text_columns=2)
        )
    else:
        page.show_lines(shown[0].page().splitlines(), indent="")


@command(
    "whatif",
    "vcpulab whatif web.toml --set domain.web.weight=1024",
    "vcpulab whatif web.toml --set 'b*.weight=128'",
    "vcpulab whatif web.toml --set batch.cap=30 --report out/whatif.html",
    "vcpulab whatif web.toml --set batch.cap=30 --toolstack xapi",
)
def whatif(
    file: Path,
    /,
    *,
    set: Words = (),
    replications: Pairs = None,
    precision: HarmPrecision = None,
    budget: HarmBudget = None,
    seed: Seed = None,
    all: Flag = False,
    only: str | None = None,
    sort: str | None = None,
    report: Report = None,
    write: Annotated[Path | None, Writes.SAME_FILE] = None,
    toolstack: TypedFor = None,
    format: AnyFormat = "table",
    jobs: Jobs = 0,
) -> None:
    """Predict improvements and regressions by other settings, and how to set them.

    Where a large harm is uncertain, replications are added, and the answer says so. JSON and CSV have every metric.

    Args:
        file: Scenario file.
        set: PATH=VALUE, any number of times; no value: back to the default. `web.weight` may stand for
            `domain.web.weight`, and `batch*.weight` for that of every domain whose name matches. What is set of `run`,
            such as `run.duration=2s`, is set on both sides.
        all: Show every metric of every domain, not only those with a good direction, and of many those that change.
        only: Show only domains, with their applications, whose names match, such as 'web*'.
        sort: Show first where this metric changes most, such as wait_p99.
        write: Also write the changed scenario to this file, which may be the same one; comments stay.
    """
    if not set:
        raise RequestError("nothing is set", field="changes", allowed="PATH=VALUE, such as --set domain.web.weight=512")
    scenario, view = files.load(file, toolstack), View(all, only, sort)
    check_view(scenario, view)
    with terminal.progress(f"running {scenario.name}") as progress:
        answer, interrupted = run_or_partial(
            _api.whatif,
            scenario,
            set,
            replications=replications,
            precision=precision,
            seconds=budget,
            seed=seed,
            jobs=jobs,
            progress=progress,
        )
    before, changed = answer.before.scenario, answer.changed
    terminal.warn_left_out(changed.left_out)
    for warning in changed.scenario.warnings:
        if warning["message"] not in {earlier["message"] for earlier in before.warnings}:
            terminal.warn(f"as changed: {warning['field'] or ''}: {warning['message']}")
    steps = answer.commands_for(toolstack)
    if format == "table":
        page.show(answer.document(view=view, toolstack=toolstack), all=all)
    else:
        _print_data(answer, format, steps)
    outputs.report(report, f"What if: {before.name}", answer.document(toolstack=toolstack))
    if write is not None:
        with written(write):
            atomic.write(write, changed.scenario.text)
    stop(interrupted=interrupted)


@command(
    "compare",
    "vcpulab whatif web.toml --set batch.cap=30 --write capped.toml",
    "vcpulab compare web.toml capped.toml",
)
def compare(
    a: Path,
    b: Path,
    /,
    *,
    replications: Pairs = None,
    precision: HarmPrecision = None,
    budget: HarmBudget = None,
    seed: Seed = None,
    all: Flag = False,
    only: str | None = None,
    sort: str | None = None,
    report: Report = None,
    format: AnyFormat = "table",
    jobs: Jobs = 0,
) -> None:
    """Compare two scenarios, or two runs: differences from the first to the second.

    Both scenarios run with the first one's seed and replications, if no others are given. Where a large harm is
    uncertain, replications are added, and the answer says so. JSON and CSV have every metric.

    Args:
        a: Scenario file, or a directory of `vcpulab run --out`.
        b: The same.
        all: Show every metric of every domain, not only those with a good direction, and of many those that change.
        only: Show only domains, with their applications, whose names match, such as 'web*'.
        sort: Show first where this metric changes most, such as wait_p99.
    """
    if a.is_dir() != b.is_dir():
        raise RequestError(f"{a}, {b}: allowed: two scenario files, or two directories of runs")
    if a.is_dir():
        if any(stated is not None for stated in (replications, precision, budget, seed)):
            raise RequestError(
                "--replications, --precision, --budget and --seed are for scenario files; these runs are over"
            )
        answer, interrupted = _api.compare(files.run_of(a), files.run_of(b)), False
    else:
        first, second = files.load(a), files.load(b)
        with terminal.progress(f"running {first.name}") as progress:
            answer, interrupted = run_or_partial(
                _api.compare,
                first,
                second,
                replications=replications,
                precision=precision,
                seconds=budget,
                seed=seed,
                jobs=jobs,
                progress=progress,
            )
    _warn_of_differences(answer.before, answer.after)
    for sentence in answer.not_comparable:
        terminal.warn(f"not comparable: {sentence}")
    if not answer.comparisons:
        raise RequestError(f"{a}, {b}: they have no domain or client in common, and nothing to compare")
    labels = (str(a), str(b)) if str(a) != str(b) else ("first", "second")
    view = View(all, only, sort)
    check_view(answer.before.scenario, view)
    if format == "table":
        page.show(answer.document(labels, view), all=all)
    else:
        _print_data(answer, format)
    outputs.report(report, f"{labels[0]} and {labels[1]}", answer.document(labels))
    stop(interrupted=interrupted)


def _warn_of_differences(a: Run, b: Run) -> None:
    if a.scenario.seed != b.scenario.seed:
        terminal.warn(
            f"seeds {a.scenario.seed} and {b.scenario.seed}: the runs are independent, differences less certain"
        )
    if a.scenario.replications != b.scenario.replications:
        least = min(a.scenario.replications, b.scenario.replications)
        terminal.warn(f"{a.scenario.replications} and {b.scenario.replications} replications: the first {least} count")
    if a.scenario.duration_ns != b.scenario.duration_ns:
        lengths = f"{a.scenario.duration_ns / 1e9:g} and {b.scenario.duration_ns / 1e9:g} s"
        terminal.warn(f"{lengths}: of different lengths; counts are compared for each second")
    things = [{address.thing: None for address in addresses(run.scenario) if address.kind != "pcpu"} for run in (a, b)]
    for present, absent, label in ((*things, "first"), (*reversed(things), "second")):
        if alone := [name for name in present if name not in absent]:
            terminal.warn(f"only in the {label}, not compared: {', '.join(alone)}")


def _print_data(answer: Differences, format: str, steps: Sequence[Step] | None = None) -> None:
    """Prints the comparison as CSV, or as JSON with the commands, if the comparison may have commands."""
    if format == "csv":
        print(csv(answer.to_frame()), end="")
        return
    document = {
        "interrupted": answer.added is not None and answer.added.interrupted,
        "starved": answer.starved,
        "verdict": answer.in_words(),
        "not_comparable": answer.not_comparable,
        "replications": answer.added.row() if answer.added is not None else None,
        "metrics": [comparison.row() for comparison in answer],
        **cautions_as_data(answer.before.scenario, answer.after.scenario),
    }
    if steps is not None:
        document["commands"] = [asdict(step) for step in steps]
    print(as_json(document))
