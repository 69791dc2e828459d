"""What is run for the study."""

from collections.abc import Iterable

from vcpulab.studies.study import Case


def cases() -> Iterable[Case]:
    """All of them."""
    return ()
