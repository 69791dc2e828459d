"""Published studies: one folder each, with its scenario, its published cells and notes."""

import csv
from importlib.resources import files

from vcpulab.scenario import Scenario


def scenario(study: str) -> Scenario:
    """The scenario of a study.

    Examples:
        >>> scenario("cherkasova2007").replications
        5
    """
    text = files(__name__).joinpath(study, "scenario.toml").read_text(encoding="utf-8")
    return Scenario.from_toml(text, f"{study}/scenario.toml")


def published(study: str) -> list[dict[str, str]]:
    """The published cells of a study, each with where it stands.

    Examples:
        >>> {row["source"] for row in published("cherkasova2007") if row["metric"] == "web_throughput"}
        {'Table 1'}
    """
    text = files(__name__).joinpath(study, "published.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
