"""The rule for parameters of other schedulers in a scenario file; no valid scenario has them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vcpulab.advice.lint.host import Finding
from vcpulab.advice.lint.rule import Rules, Stands
from vcpulab.errors import ScenarioError
from vcpulab.scenario.catalogue import generation_of, schedulers
from vcpulab.scenario.scenario import Scenario, join, split, tables

rule = Rules[Callable[[Mapping[str, Any], Sequence[str]], Finding | None]](Stands.ALWAYS)


def without_foreign(path: Path) -> tuple[Scenario, list[Finding]]:
    """The scenario of a file without parameters of other schedulers, and these parameters as findings.

    Raises:
        ScenarioError: the file has other problems.
        OSError: the file cannot be read.
    """
    try:
        return Scenario.load(path), []
    except ScenarioError as error:
        try:
            written = tables(path.read_text(encoding="utf-8"))
            fields = [split(problem["field"] or "") for problem in error.problems]
            findings = [finding for steps in fields for finding in _findings(written, steps)]
        except (KeyError, TypeError, ValueError):
            # The file has other problems.
            raise error from None
        if len(findings) < len(fields):
            raise
    text = path.read_text(encoding="utf-8")
    return Scenario.without(text, [finding.path for finding in findings], str(path), folder=path.parent), findings


def _findings(written: Mapping[str, Any], steps: Sequence[str]) -> Iterator[Finding]:
    for declared in rule.all:
        if (finding := declared.check(written, steps)) is not None:
            yield declared.stamped(finding)


@rule("foreign-parameter")
def _foreign(written: Mapping[str, Any], steps: Sequence[str]) -> Finding | None:
    """A parameter belongs to another scheduler: it has no effect.

    Mechanism: Each scheduler has its own parameters. On a real host, the tool of one scheduler does not work with
    another. In a file, such a parameter may be left over from an earlier scheduler.

    Evidence: The file, and the parameters of the schedulers; all other commands refuse such a file.

    Silent: No finding if the scheduler has the parameter in its generation.

    Fix: The effect of switching to the scheduler with the parameter is simulated; `--fix` removes the parameter from
    the file.

    Schedulers: All.

    Sources: `vcpulab schedulers` lists every parameter.
    """
    match steps:
        case ["host", param]:
            where = ["host"]
        case ["pool", name, param]:
            where = ["pool", name]
        case ["domain", name, param]:
            pool = written["domain"][name].get("pool")
            where = ["host"] if pool is None else ["pool", pool]
        case _:
            return None
    owning = _owners(param)
    table = _value_at(written, where)
    generation = generation_of(table["scheduler"], table.get("generation"))
    if not owning or generation is None or param in generation.defaults:
        return None
    reason = f"a parameter of {' and '.join(owning)}, not of {table['scheduler']}: it does nothing here"
    # The simulated change: the scheduler that has the parameter.
    meant = {join([*where, "scheduler"]): owning[0], join(steps): _value_at(written, steps)}
    return Finding(join(steps), reason, meant)


def _owners(param: str) -> list[str]:
    """The schedulers with a parameter of that name in at least one generation."""
    return [
        policy.name for policy in schedulers() if any(param in generation.defaults for generation in policy.generations)
    ]


def _value_at(document: Mapping[str, Any], steps: Sequence[str]) -> Any:
    """The value at a path."""
    for step in steps:
        document = document[step]
    return document
