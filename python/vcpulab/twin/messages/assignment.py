"""The cheapest assignment of rows to columns."""

import math
from collections.abc import Sequence


def cheapest(costs: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs of a row and a column, each in at most one pair, with the least sum of costs; as many pairs as possible.

    By shortest augmenting paths (Crouse 2016, "On implementing 2D rectangular assignment algorithms", IEEE Transactions
    on Aerospace and Electronic Systems 52, pp. 1679-1696). Equal sums are decided as `scipy.optimize` decides them.

    Args:
        costs: finite costs, row by row, all rows of the same length.

    Returns:
        The pairs in the order of their rows.

    Examples:
        >>> cheapest([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]])
        [(0, 1), (1, 0)]
    """
    rows, columns = len(costs), len(costs[0]) if costs else 0
    if columns < rows:
        return sorted((row, column) for column, row in cheapest(list(zip(*costs, strict=True))))
    row_of, column_of = [-1] * columns, [-1] * rows
    row_prices, column_prices = [0.0] * rows, [0.0] * columns
    for first in range(rows):
        shortest, by = [math.inf] * columns, [-1] * columns
        seen_rows, seen_columns = [], []
        remaining = list(range(columns - 1, -1, -1))
        row, length, sink = first, 0.0, -1
        while sink < 0:
            seen_rows.append(row)
            nearest, lowest = -1, math.inf
            for place, column in enumerate(remaining):
                reached = length + costs[row][column] - row_prices[row] - column_prices[column]
                if reached < shortest[column]:
                    shortest[column], by[column] = reached, row
                # Of equally near columns a free one is preferred.
                if shortest[column] < lowest or (shortest[column] == lowest and row_of[column] < 0):
                    lowest, nearest = shortest[column], place
            length = lowest
            column = remaining[nearest]
            remaining[nearest] = remaining[-1]
            remaining.pop()
            seen_columns.append(column)
            if row_of[column] < 0:
                sink = column
            else:
                row = row_of[column]
        row_prices[first] += length
        for row in seen_rows[1:]:
            row_prices[row] += length - shortest[column_of[row]]
        for column in seen_columns:
            column_prices[column] -= length - shortest[column]
        while True:
            row = by[sink]
            row_of[sink] = row
            column_of[row], sink = sink, column_of[row]
            if row == first:
                break
    return list(enumerate(column_of))
