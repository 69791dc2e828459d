"""The search for the best setting of a scenario.

`parameters` lists the parameters to vary, `goals` the objectives; `search` tries settings on common random numbers and
drops hopeless ones early (`leads` and `proposing` choose candidates, `trials` measures, `worth` judges, `racing` drops,
`simplifying` takes the mildest); `confirming` compares the winner with the present setting on fresh random numbers.
"""

from vcpulab.advice.tuning.candidates import Candidate, SearchResult
from vcpulab.advice.tuning.confirming import Confirmation, confirm
from vcpulab.advice.tuning.goals import Goal, default_goals, goal
from vcpulab.advice.tuning.parameters import space
from vcpulab.advice.tuning.search import Search
from vcpulab.advice.tuning.spaces import Parameter, Space

__all__ = [
    "Candidate",
    "Confirmation",
    "Goal",
    "Parameter",
    "Search",
    "SearchResult",
    "Space",
    "confirm",
    "default_goals",
    "goal",
    "space",
]
