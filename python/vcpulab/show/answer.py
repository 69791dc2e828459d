"""The base class of answers: as text, as a frame, and in a notebook."""

from abc import ABC, abstractmethod
from html import escape

import polars as pl

from vcpulab.show.document import Document, Lines, Part


class Answer(ABC):
    """The answer of a call, as text and as a table."""

    @abstractmethod
    def to_frame(self) -> pl.DataFrame:
        """The answer as a table."""

    @abstractmethod
    def __str__(self) -> str:
        """The answer in words."""

    def document(self) -> Document:
        """The answer as a document, which terminals and pages show."""
        return [Part.always(Lines(str(self).splitlines()))]

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.to_frame()._repr_html_()}"
