"""What the playground needs to know of questions, as data: `schema/verdicts.json`."""

import json
from pathlib import Path

from vcpulab.results.metrics import APP

FILE = Path(__file__).parents[1] / "schema/verdicts.json"


def page() -> str:
    """The metrics that owners judge by."""
    rules = {"judged_by": [metric.name for metric in APP if metric.judged]}
    return json.dumps(rules, indent=2) + "\n"
