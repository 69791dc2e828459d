"""XenMon's logs: a row for each sample of a domain and pCPU."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from vcpulab.formats.errors import wrong
from vcpulab.formats.sources import lines_of

_HEADING = (
    "passed cpu dom cpu(tot) cpu(%) cpu/ex allocated/ex blocked(tot) blocked(%) blocked/io "
    "waited(tot) waited(%) waited/ex ex/s io(tot) io/ex"
)
COLUMNS = _HEADING.split()
"""The columns of XenMon's log files."""

DOMAINS_MAX = 4096


@dataclass
class Domain:
    """A domain's time over the log; of one pCPU, sums over its pCPUs."""

    domain: int
    samples: int = 0
    running_ns: float = 0.0
    blocked_ns: float = 0.0
    waited_ns: float = 0.0
    executions: float = 0.0
    """Executions a second, added over the samples."""
    io: float = 0.0
    """Packets and requests."""
    began_ms: float = 0.0
    ended_ms: float = 0.0


def read_xenmon(path: str | PathLike[str]) -> list[Domain]:
    """The domains of a log, in the order of their numbers.

    Raises:
        RecordingError: the file does not have this format.
    """
    domains: dict[int, Domain] = {}
    for number, line in lines_of(Path(path)):
        words = line.split()
        if number == 1:
            if words != ["#", *COLUMNS]:
                raise wrong(str(path), 1, line, f"the heading `# {' '.join(COLUMNS)}`")
            continue
        if not words:
            continue
        row = _row(words)
        if row is None or not (row["dom"].is_integer() and 0 <= row["dom"] < 1 << 16):
            allowed = f"{len(COLUMNS)} numbers from 0, the third a domain's"
            raise wrong(str(path), number, line, allowed)
        domain_id = int(row["dom"])
        if domain_id not in domains:
            if len(domains) == DOMAINS_MAX:
                raise wrong(str(path), number, "more domains", f"at most {DOMAINS_MAX}")
            domains[domain_id] = Domain(domain_id, began_ms=row["passed"])
        domain = domains[domain_id]
        domain.samples += 1
        domain.running_ns += row["cpu(tot)"]
        domain.blocked_ns += row["blocked(tot)"]
        domain.waited_ns += row["waited(tot)"]
        domain.executions += row["ex/s"]
        domain.io += row["io(tot)"]
        domain.ended_ms = row["passed"]
    return [domains[domain_id] for domain_id in sorted(domains)]


def _row(words: list[str]) -> dict[str, float] | None:
    if len(words) != len(COLUMNS):
        return None
    try:
        values = [float(word) for word in words]
    except ValueError:
        return None
    # Neither NaN nor infinity nor below zero.
    if not all(0 <= value < 1e300 for value in values):
        return None
    return dict(zip(COLUMNS, values, strict=True))
