"""Tables as CSV, safe for spreadsheets."""

import polars as pl

from vcpulab.errors import RequestError

_FORMULA = r"^[=+\-@\t\r]"


def csv(frame: pl.DataFrame) -> str:
    """A frame as CSV, with a line of headings. Text that a spreadsheet would treat as a formula gets a leading `'`.

    Raises:
        RequestError: a column holds lists.

    Examples:
        >>> print(csv(pl.DataFrame({"name": ["web", "=1+1"], "change": [-1, 2]})))
        name,change
        web,-1
        '=1+1,2
    """
    text = pl.col(pl.String)
    safe = frame.with_columns(pl.when(text.str.contains(_FORMULA)).then("'" + text).otherwise(text).name.keep())
    try:
        return safe.write_csv()
    except pl.exceptions.ComputeError as error:
        reason = str(error).splitlines()[0]
        raise RequestError(reason, field="format", found="csv", hint="another format, such as json") from None
