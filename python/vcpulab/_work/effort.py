"""The work that an answer may take: one declaration for all functions that simulate."""

from dataclasses import asdict, dataclass

from vcpulab._arguments import check, check_optional
from vcpulab.errors import RequestError


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The work that an answer may take, for any question: `whatif(scenario, changes, effort=Effort(seconds=60))`.

    Each field may be given as a keyword of the function instead. A function refuses the fields that it cannot use.

    Raises:
        RequestError: a number is out of range.

    Examples:
        >>> Effort(replications=5, jobs=2)
        Effort(replications=5, precision=None, seconds=None, seed=None, jobs=2)
    """

    replications: int | None = None
    """The number of replications of each setting; `None`: the function chooses it."""
    precision: float | None = None
    """Half the width of an interval that is narrow enough, as a fraction of the value; `None`: the function's own."""
    seconds: float | None = None
    """The time after which no more work is begun; `None`: no limit."""
    seed: int | None = None
    """The seed of all runs; `None`: that of the scenario."""
    jobs: int = 0
    """Replications at a time; 0: one for each processor. It never changes results."""

    def __post_init__(self) -> None:
        check(jobs=self.jobs)
        check_optional(replications=self.replications, precision=self.precision, seconds=self.seconds, seed=self.seed)


def stated(function: str, effort: Effort | None, **keywords: float | None) -> Effort:
    """The effort of a call, by its `effort` and its keywords.

    Args:
        function: the name of the function, for errors.
        effort: the effort that was given as a whole.
        keywords: the fields that the function can use, as they were given one by one.

    Raises:
        RequestError: a field is given twice, is of no use to the function, or is out of range.

    Examples:
        >>> stated("lint", Effort(jobs=1), replications=5, jobs=0)
        Effort(replications=5, precision=None, seconds=None, seed=None, jobs=1)
        >>> stated("lint", Effort(seconds=5), replications=None, jobs=0)
        Traceback (most recent call last):
        ...
        vcpulab.errors.RequestError: effort.seconds 5: `lint` has no use for it; allowed: replications, jobs
    """
    if effort is not None and not isinstance(effort, Effort):
        raise RequestError(field="effort", found=type(effort).__name__, allowed="an `Effort`")
    defaults = asdict(Effort())
    whole = defaults if effort is None else asdict(effort)
    for name, value in whole.items():
        if value is defaults[name]:
            continue
        if name not in keywords:
            reason = f"`{function}` has no use for it"
            raise RequestError(reason, field=f"effort.{name}", found=f"{value:g}", allowed=", ".join(keywords))
        if keywords[name] is not defaults[name]:
            raise RequestError(
                f"`{function}` takes it once: as a keyword, or in `effort`, where it is {value:g}",
                field=name,
                found=repr(keywords[name]),
            )
    return Effort(**whole | {name: value for name, value in keywords.items() if value is not defaults[name]})
