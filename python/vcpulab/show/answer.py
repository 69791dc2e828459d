"""The base class of answers: a document, which is text, and a page of a notebook, and a frame."""

from abc import ABC, abstractmethod

import polars as pl

from vcpulab.show.document import Document, in_full


class Answer(ABC):
    """The answer of a call, as a document and as a table."""

    @abstractmethod
    def to_frame(self) -> pl.DataFrame:
        """The answer as a table."""

    @abstractmethod
    def document(self) -> Document:
        """The answer as a document, which terminals, pages and notebooks show."""

    def __str__(self) -> str:
        """The whole document as plain text."""
        # Terminals and pages are loaded when they are used.
        from vcpulab.show import terminal

        return terminal.text(in_full(self.document()))

    def _repr_html_(self) -> str:
        """The whole document in a notebook, and the frame."""
        from vcpulab.show import html

        return "".join([*html.rendered(in_full(self.document())), self.to_frame()._repr_html_()])
