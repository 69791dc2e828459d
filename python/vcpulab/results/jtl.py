"""Logs of clients' requests in JMeter's formats, for tools that read JMeter's logs.

One file for each client that sends requests, and replication: `CLIENT-0.jtl` and so on. Time 0 of a run is
2000-01-01 00:00:00 UTC there.
"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

Format = Literal["csv", "xml"]


@dataclass(frozen=True)
class Jtl:
    """The options of a log of clients' requests.

    Examples:
        >>> Jtl("out/jtl", format="xml").warmup
        True
    """

    directory: str | PathLike[str]
    """The directory of the logs: new, empty, or with nothing but logs, which are replaced."""
    format: Format = "csv"
    """The format, one of JMeter's."""
    warmup: bool = True
    """`True`: also log requests that end during the warm-up, as JMeter would, which has no warm-up."""

    def prepare(self) -> tuple[Path, bool, bool]:
        """Makes the directory and removes old logs; returns the arguments of the engine.

        Raises:
            FileExistsError: the directory holds something else.
        """
        path = Path(self.directory)
        if path.exists() and not path.is_dir():
            raise FileExistsError(f"`{path}` is not a directory")
        path.mkdir(parents=True, exist_ok=True)
        logs = list(path.iterdir())
        if any(log.suffix != ".jtl" for log in logs):
            raise FileExistsError(f"`{path}` holds other files than logs; choose another directory")
        for log in logs:
            log.unlink()
        return path, self.format == "xml", self.warmup

    def keep(self, replications: int) -> None:
        """Keeps the logs of the first N replications; the other logs are incomplete."""
        for log in Path(self.directory).glob("*-*.jtl"):
            if int(log.stem.rpartition("-")[2]) >= replications:
                log.unlink()
