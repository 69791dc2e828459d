"""Commands on random scenarios: each ends with 0, 1 or 2, and without a traceback. `make fuzz` takes more of them."""

from pathlib import Path
from random import Random

import pytest

from random_commands import faults_of
from random_scenarios import random_checked


@pytest.mark.parametrize("seed", range(12))
def test_commands_end_by_themselves(seed: int, tmp_path: Path) -> None:
    assert faults_of(random_checked(seed), Random(seed), 3, tmp_path) == []
