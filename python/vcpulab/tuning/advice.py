"""What to type on a host to get from one setting to another."""

from collections.abc import Iterator
from typing import Any

from vcpulab.commands import Step, commands
from vcpulab.scenario import Scenario


def steps(present: Scenario, wanted: Scenario) -> list[Step]:
    """The steps that set up what is wanted and do not set up what is there: only what differs.

    Examples:
        >>> now = Scenario.starter()
        >>> [step.text for step in steps(now, now.change({"domain.web.weight": 512}))]
        ['xl sched-credit -d web -w 512']
    """
    there = commands(present)
    return [*_vcpus(present.to_dict(), wanted.to_dict()), *(step for step in commands(wanted) if step not in there)]


def _vcpus(present: dict[str, Any], wanted: dict[str, Any]) -> Iterator[Step]:
    for name, table in wanted["domain"].items():
        was, vcpus = present["domain"].get(name, {}).get("vcpus"), table["vcpus"]
        if was == vcpus:
            continue
        if name == "dom0":
            yield Step("boot", f"dom0_max_vcpus={vcpus}")
        else:
            yield Step("cannot", f"domain {name}: vcpus = {vcpus} stands in its configuration file; create it again")
