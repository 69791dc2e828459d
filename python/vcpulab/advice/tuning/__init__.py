"""What should I set? The search for the best setting of a scenario.

`knobs` says what may be turned, `goals` what for, `search` tries settings on common random numbers and drops hopeless
ones early, `confirm` sets the winner against the present setting on fresh random numbers.
"""

from vcpulab.advice.tuning.confirming import Confirmation, confirm
from vcpulab.advice.tuning.goals import Goal, default_goals, goal
from vcpulab.advice.tuning.knobs import Knob, Space, space
from vcpulab.advice.tuning.search import Candidate, Found, Search

__all__ = [
    "Candidate",
    "Confirmation",
    "Found",
    "Goal",
    "Knob",
    "Search",
    "Space",
    "confirm",
    "default_goals",
    "goal",
    "space",
]
