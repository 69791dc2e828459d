"""What the playground needs to know of questions and of starving domains, as data: `schema/verdicts.json`."""

import json
from pathlib import Path

from vcpulab.advice import starvation
from vcpulab.results.metrics import APP

FILE = Path(__file__).parents[1] / "schema/verdicts.json"


def page() -> str:
    """The numbers, named as the constants that they are."""
    rules = {
        "judged_by": [metric.name for metric in APP if metric.judged],
        "starving": {
            "waiting": starvation.WAITING,
            "of_share": starvation.OF_SHARE,
            "half": starvation.HALF,
            "kept": starvation.KEPT,
            "had": starvation.HAD,
            "waits_now": starvation.WAITS_NOW,
            "completed": starvation.COMPLETED,
            "present": starvation.PRESENT,
        },
    }
    return json.dumps(rules, indent=2) + "\n"
