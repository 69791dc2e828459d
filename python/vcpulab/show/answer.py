"""Answers that print themselves: in words, as a frame, in a notebook."""

from abc import ABC, abstractmethod
from html import escape

import polars as pl


class Answer(ABC):
    """What a call found out."""

    @abstractmethod
    def to_frame(self) -> pl.DataFrame:
        """It as a table."""

    @abstractmethod
    def __str__(self) -> str:
        """It in words."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.to_frame()._repr_html_()}"
