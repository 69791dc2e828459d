"""JMeter's logs of requests (JTL), as XML and as CSV: counted while they are read."""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from xml.parsers import expat

from vcpulab.errors import RecordingError
from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import CHUNK_BYTES, lines_of, opened

LABELS_MAX = 1000
_MS_MAX = 10**15
_TAG_BYTES_MAX = 1 << 20
_DEPTH_MAX = 100
"""The largest depth of nested elements; samples of samples are about five deep."""
_CSV_NEEDED = ("timeStamp", "elapsed", "label", "success")


@dataclass
class Requests:
    """Requests of one label."""

    label: str
    count: int = 0
    failed: int = 0
    began_ms: int = _MS_MAX
    """When the first began, since 1970."""
    ended_ms: int = 0
    """When the last was over."""
    elapsed_sum_ms: int = 0
    _elapsed: Counter[int] = field(default_factory=Counter, repr=False)

    def add(self, began_ms: int, elapsed_ms: int, *, succeeded: bool) -> None:
        """Counts one more."""
        self.count += 1
        self.failed += not succeeded
        self.began_ms = min(self.began_ms, began_ms)
        self.ended_ms = max(self.ended_ms, began_ms + elapsed_ms)
        self.elapsed_sum_ms += elapsed_ms
        # Three significant digits keep the number of different ones small.
        digits = max(len(str(elapsed_ms)) - 3, 0)
        self._elapsed[elapsed_ms // 10**digits * 10**digits] += 1

    @property
    def rate(self) -> float:
        """Requests a second."""
        seconds = (self.ended_ms - self.began_ms) / 1000
        return self.count / seconds if seconds > 0 else 0.0

    @property
    def mean_ms(self) -> float:
        """Mean time of a request."""
        return self.elapsed_sum_ms / self.count if self.count else 0.0

    def percentile_ms(self, percent: float) -> int:
        """Time that so many of a hundred do not exceed, to three digits; 0 if there is none."""
        rank, seen = percent / 100 * self.count, 0
        for elapsed, count in sorted(self._elapsed.items()):
            seen += count
            if seen >= rank:
                return elapsed
        return 0


def read_jtl(path: str | PathLike[str]) -> list[Requests]:
    """The requests of a log, XML or CSV, by label.

    Raises:
        RecordingError: the file does not have this format, or is damaged.
    """
    with opened(Path(path)) as (source, _):
        begins = source.read(1)
    requests: dict[str, Requests] = {}
    for line, sample in _xml(Path(path)) if begins == b"<" else _csv(Path(path)):
        label = sample["label"][:200]
        if label not in requests:
            if len(requests) == LABELS_MAX:
                raise wrong(str(path), line, "more labels", f"at most {LABELS_MAX}")
            requests[label] = Requests(label)
        began, elapsed = (_ms(str(path), line, name, sample[name]) for name in ("timeStamp", "elapsed"))
        if sample["success"] not in ("true", "false"):
            raise wrong(str(path), line, sample["success"], "`true` or `false` as success")
        requests[label].add(began, elapsed, succeeded=sample["success"] == "true")
    return list(requests.values())


def _ms(path: str, line: int, name: str, text: str) -> int:
    if not (text.isdecimal() and len(text) <= 15):
        raise wrong(path, line, text, f"milliseconds as {name}")
    return int(text)


def _csv(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    # A message in quotes may go over several lines.
    reader = csv.reader((f"{line}\n" for _, line in lines_of(path)), strict=True)
    columns: list[str] | None = None
    try:
        for row in reader:
            if columns is None:
                columns = row
                if any(columns.count(column) != 1 for column in _CSV_NEEDED):
                    raise wrong(str(path), 1, ",".join(row), f"a heading with {', '.join(_CSV_NEEDED)}, each once")
            elif row:
                if len(row) != len(columns):
                    raise wrong(str(path), reader.line_num, ",".join(row), f"{len(columns)} values")
                yield reader.line_num, dict(zip(columns, row, strict=True))
    except csv.Error as error:
        raise RecordingError(f"{path}:{reader.line_num}: no comma-separated values: {error}") from None
    if columns is None:
        raise wrong(str(path), 1, "", f"a heading with {', '.join(_CSV_NEEDED)}")


def _xml(path: Path) -> Iterator[tuple[int, Mapping[str, str]]]:
    parser = expat.ParserCreate()
    samples: list[tuple[int, Mapping[str, str]]] = []
    depth = 0

    def refuse(*_: object) -> None:
        raise wrong(str(path), parser.CurrentLineNumber, "<!DOCTYPE", "XML without document types, as JMeter writes it")

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        line = parser.CurrentLineNumber
        if depth == 0 and name != "testResults":
            raise wrong(str(path), line, f"<{name}>", "`<testResults>`")
        if depth == _DEPTH_MAX:
            raise wrong(str(path), line, "elements in elements", f"at most {_DEPTH_MAX} deep")
        # Samples in samples are parts of a page; the page counts.
        if depth == 1 and name in ("httpSample", "sample"):
            for attribute in ("ts", "t", "s"):
                if attribute not in attributes:
                    raise wrong(str(path), line, f"<{name}> without {attribute}", "attributes ts, t and s")
            sample = {"timeStamp": attributes["ts"], "elapsed": attributes["t"], "success": attributes["s"]}
            samples.append((line, {**sample, "label": attributes.get("lb", "")}))
        depth += 1

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end

    def parse(data: bytes) -> None:
        try:
            parser.Parse(data, not data)
        except expat.ExpatError as error:
            raise RecordingError(f"{path}:{error.lineno}: no XML: {expat.ErrorString(error.code)}") from None
        except RecordingError:
            raise
        except (ValueError, LookupError) as error:  # encodings that the parser does not know
            raise RecordingError(f"{path}:{parser.CurrentLineNumber}: no XML that is read: {error}") from None

    fed = 0
    with opened(path) as (source, _):
        while chunk := source.read(CHUNK_BYTES):
            parse(chunk)
            fed += len(chunk)
            if fed - parser.CurrentByteIndex > _TAG_BYTES_MAX:
                # The parser holds what has no end yet.
                allowed = f"at most {_TAG_BYTES_MAX} bytes"
                raise wrong(str(path), parser.CurrentLineNumber, "a longer tag or comment", allowed)
            yield from samples
            samples.clear()
    parse(b"")
