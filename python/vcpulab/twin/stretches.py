"""The length of the stretches of recorded turns that a twin repeats, chosen by cross-validation.

A twin repeats stretches of recorded turns in their order. Each begins at a random turn, and their mean length is fixed
(stationary bootstrap: Politis and Romano, *The stationary bootstrap*, Journal of the American Statistical Association
89, 1994). Long stretches keep the order of turns; short ones vary more than the recording, and so are right where turns
are independent.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

MEANS = (1, 2, 4, 8, 16, 32, 64)
"""The mean lengths to choose from, in turns."""
_PARTS = 4
"""The number of quantiles that divide computations, and sleeps, into states. Assumed."""
_FOLDS = 4
"""The number of parts of the recording that are held out in turn. Assumed."""
_PRIOR = 0.5
"""The prior count of each state: a transition that was not recorded is not impossible. Assumed."""
_NEGLIGIBLE = 0.01
"""The difference of log-likelihoods up to which two mean lengths are equally likely; the shorter one is taken.
Assumed."""
_ERRORS = 3
"""The rank correlation of computations with sleeps, in standard errors, from which on the two depend on each other:
chance exceeds it in one of 370 cases."""


def mean_stretch(demands: Sequence[tuple[int, int]]) -> int:
    """The mean length of a stretch, of `MEANS`, under which turns that were held out are likeliest.

    Turns are put into states by the quartiles of what they compute and of how long they sleep. Of the turns outside a
    quarter of the recording, a stretch of mean length `m` says of each turn inside: with 1 in `m` it is any, else it is
    one that came after such a turn as the last. The sum of the logarithms over all quarters decides, and of lengths
    that are as likely the shortest.

    Examples:
        >>> by_turns = [(1, 5), (9, 50)] * 100
        >>> mean_stretch(by_turns)
        64
        >>> mean_stretch([(1, 5)] * 100)
        1
    """
    if len(demands) < 2 * _FOLDS:
        return 1
    states = _states(np.array(demands, np.int64))
    count = int(states.max()) + 1
    folds = np.array_split(np.arange(len(states)), _FOLDS)
    scores = dict.fromkeys(MEANS, 0.0)
    for fold in folds:
        after, often = np.zeros((count, count)), np.zeros(count)
        for part in (states[: fold[0]], states[fold[-1] + 1 :]):
            np.add.at(after, (part[:-1], part[1:]), 1)
            often += np.bincount(part, minlength=count)
        any_one = (often + _PRIOR) / (often + _PRIOR).sum()
        # Where a state was seldom seen, what came after it says little, and all turns say more.
        next_one = (after + any_one) / (after.sum(axis=1, keepdims=True) + 1)
        inside = states[fold]
        of_any, of_next = any_one[inside[1:]], next_one[inside[:-1], inside[1:]]
        for mean in MEANS:
            scores[mean] += float(np.log(of_any / mean + of_next * (1 - 1 / mean)).sum())
    best = max(scores.values())
    return next(mean for mean in MEANS if scores[mean] >= best - _NEGLIGIBLE)


def keep_nothing(demands: Sequence[tuple[int, int]]) -> bool:
    """`True`: turns are independent of one another, and sleeps of the computation before, so that spreads suffice.

    Sleeps and computations are tested by their rank correlation.

    Examples:
        >>> keep_nothing([(1, 5), (9, 50)] * 100)
        False
        >>> keep_nothing([(1, 5)] * 100)
        True
    """
    if mean_stretch(demands) > 1:
        return False
    ranks = [pl.Series(column).rank().to_numpy() for column in np.array(demands, np.int64).T]
    spreads = [float(rank.std()) for rank in ranks]
    if min(spreads) == 0:
        return True
    correlation = float(((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())).mean()) / (
        spreads[0] * spreads[1]
    )
    return bool(abs(correlation) * len(demands) ** 0.5 < _ERRORS)


def _states(demands: np.ndarray) -> np.ndarray:
    """The state of each turn, numbered from 0."""
    parts = np.linspace(0, 1, _PARTS + 1)[1:-1]
    codes = np.zeros(len(demands), np.int64)
    for column in demands.T:
        codes = codes * _PARTS + np.searchsorted(np.quantile(column, parts), column, side="right")
    return np.unique(codes, return_inverse=True)[1]
