"""The numbers that verdicts on two runs depend on, as data for others than Python: `schema/verdicts.json`."""

import json
from pathlib import Path

from vcpulab.advice import deciding, starvation
from vcpulab.results.addresses import JUDGED_BY
from vcpulab.results.statistics import CONFIDENCE

FILE = Path(__file__).parents[1] / "schema/verdicts.json"


def page() -> str:
    """The numbers, named as the constants that they are."""
    rules = {
        "confidence": CONFIDENCE,
        "looks": deciding.LOOKS,
        "harm_mean": 5.0,
        "harm_end": 20.0,
        "small": 1.0,
        "small_of_whole": 0.1,
        "told": 6,
        "nearest": ["app", "domain", "io", "host", "pcpu"],
        "judged_by": JUDGED_BY,
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
