"""What should I set? The search for the best setting of a scenario.

`parameters` lists what may be changed, `goals` what is wanted; `search` tries settings on common random numbers and
drops hopeless ones early (`leads` and `proposing` say which to try, `trials` measures, `worth` judges, `racing` drops,
`simplifying` takes the mildest); `confirming` compares the winner with the present setting on fresh random numbers.
"""

from vcpulab.advice.tuning.candidates import Candidate, Found
from vcpulab.advice.tuning.confirming import Confirmation, confirm
from vcpulab.advice.tuning.goals import Goal, default_goals, goal
from vcpulab.advice.tuning.parameters import space
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.spaces import Parameter, Space

__all__ = [
    "Candidate",
    "Confirmation",
    "Found",
    "Goal",
    "Parameter",
    "Search",
    "Space",
    "confirm",
    "default_goals",
    "goal",
    "space",
]
