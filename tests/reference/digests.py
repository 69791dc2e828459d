"""Digests of all that a fixed set of reference work computes: for changes that should change no result.

    python tests/reference/digests.py write            # keep today's digests in digests.json
    python tests/reference/digests.py compare          # run the same work, and say what differs

The work: every scenario in `scenarios/` with its decisions, the bundled conformance vectors, the short runs of each
study, and searches with fixed seeds (sweep, tune, capacity, twin). A table's digest is of the values of its columns in
order; their names are kept once for each kind of table, so that a renamed column is told apart from a changed one. Of
JSON every number counts and no name does. It takes some minutes.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

import vcpulab
from vcpulab.cli.main import main as command_line

ROOT = Path(__file__).parent.parent.parent
KEPT = Path(__file__).with_name("digests.json")


class Piece(NamedTuple):
    """What a piece of work gave."""

    work: str
    """A scenario, a command line, or a study."""
    part: str
    """A table of a run; or how many numbers there are."""
    digest: str
    columns: tuple[str, ...] = ()


Digests = dict[str, dict[str, str]]
"""By piece of work: the digest of each part."""
Columns = dict[str, list[str]]
"""By kind of table: its columns, which are the same in every run."""

SEARCHES = {
    "tune": "tune starter.toml --trials 12 --jobs 2 --format json",
    "capacity": "capacity starter.toml --vary web.rate --highest 800 --jobs 2 --format json",
    "whatif": "whatif starter.toml --set domain.web.weight=1024 --format json",
    "bounds": "bounds starter.toml --check --format json",
    "lint": "lint starter.toml --format json",
    "place": "place starter.toml --slo 'response_p99 < 50ms' --format json",
    "sweep": "sweep weights.toml --store store --format json",
    "twin": "twin score recorded --format json",
    "conformance": "conformance --format json",
}
"""Command lines with fixed seeds, their files beside them."""

STUDIES = ("cherkasova2007", "devine2010", "venkatesh2015", "benevenuto2006")


def main() -> int:
    """Writes or compares digests; 1: something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("--digests", type=Path, default=KEPT, help="the file of digests")
    parser.add_argument("--only", default="", help="only work whose name contains this")
    asked = parser.parse_args()
    found: Digests = {}
    columns: Columns = {}
    for piece in work(asked.only):
        print(piece.work, piece.part, file=sys.stderr, flush=True)
        found.setdefault(piece.work, {})[piece.part] = piece.digest
        if piece.columns and columns.setdefault(piece.part, list(piece.columns)) != list(piece.columns):
            raise SystemExit(f"{piece.work}: its table `{piece.part}` has other columns than those before it")
    if asked.what == "write":
        asked.digests.write_text(written(columns, found))
        return 0
    kept = json.loads(asked.digests.read_text())
    same = {name: parts for name, parts in kept["work"].items() if asked.only in name}
    renamed(kept["columns"], columns)
    return differences(same, found)


def written(columns: Columns, found: Digests) -> str:
    """The file: a line for each kind of table, and for each piece of work."""

    def lines(rows: Mapping[str, object]) -> str:
        return ",\n".join(f"{json.dumps(name)}: {json.dumps(rows[name], sort_keys=True)}" for name in sorted(rows))

    return f'{{"columns": {{\n{lines(columns)}\n}}, "work": {{\n{lines(found)}\n}}}}\n'


def work(only: str) -> Iterator[Piece]:
    """All reference work, piece by piece."""
    for path in sorted((ROOT / "scenarios").rglob("*.toml")):
        name = str(path.relative_to(ROOT))
        if only in name:
            yield from of_scenario(name, path)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepare(Path(folder))
        for name, line in SEARCHES.items():
            if only in name:
                yield of_json(name, output_of(line))
        for study in STUDIES:
            if only in f"study {study}":
                output_of(f"study run {study} --fast --out studies")
                units = Path("studies", f"{study}-fast", "units.jsonl").read_text()
                yield of_json(f"study {study}", f"[{','.join(units.splitlines())}]")


def of_scenario(name: str, path: Path) -> Iterator[Piece]:
    """Every table of a run, its decisions included."""
    run = vcpulab.run(vcpulab.Scenario.load(path), decisions=True)
    for table, frame in run.tables().items():
        yield of_table(name, table, frame)


def prepare(folder: Path) -> None:
    """The files that the searches name."""
    (folder / "starter.toml").write_text(vcpulab.Scenario.starter().to_toml())
    (folder / "web.toml").write_text(vcpulab.Scenario.starter().to_toml())
    (folder / "weights.toml").write_text((ROOT / "examples" / "weights.toml").read_text())
    (folder / "recorded").symlink_to(ROOT / "tests" / "recordings" / "xen4.17-credit2-mixed")


def output_of(line: str) -> str:
    """What a command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()) as errors:
        status = command_line(shlex.split(line))
    if status not in {0, 1}:
        raise SystemExit(f"`vcpulab {line}` failed: {errors.getvalue()}")
    return printed.getvalue()


def of_table(work: str, table: str, frame: pl.DataFrame) -> Piece:
    """The digest of the digests of its columns."""

    def digest(column: pl.Series) -> str:
        data = column.rename("values").rechunk().to_frame().write_ipc(None, compression="uncompressed").getvalue()
        return digest_of(data)

    return Piece(work, table, digest_of("".join(map(digest, frame)).encode()), tuple(frame.columns))


def of_json(work: str, text: str) -> Piece:
    """How many numbers there are, and their digest, whatever they are called."""
    numbers = sorted(repr(number) for number in leaves(json.loads(text)))
    if folder := os.environ.get("DIGESTS_KEEP"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, hashlib.sha256(text.encode()).hexdigest()[:12] + ".json").write_text(text)
    return Piece(work, f"{len(numbers)} numbers", digest_of("\n".join(numbers).encode()))


def digest_of(data: bytes) -> str:
    """Long enough that no two are the same by chance."""
    return hashlib.sha256(data).hexdigest()[:16]


def leaves(value: object) -> Iterator[int | float]:
    """Every number in a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def renamed(kept: Columns, found: Columns) -> None:
    """Prints which columns have other names."""
    for table in sorted(kept.keys() & found.keys()):
        for before, after in zip(kept[table], found[table], strict=False):
            if before != after:
                print(f"{table}: column `{before}` is now `{after}`")


def differences(kept: Digests, found: Digests) -> int:
    """Prints which parts of which work differ; 1 if any does."""
    changed = 0
    for name in sorted(kept | found):
        before, after = kept.get(name, {}), found.get(name, {})
        for what, parts in (
            ("gone", before.keys() - after),
            ("new", after.keys() - before),
            ("changed", {part for part in before.keys() & after.keys() if before[part] != after[part]}),
        ):
            if parts:
                print(f"{name}: {what}: {', '.join(sorted(parts))}")
                changed = 1
    print(f"{len(found)} pieces of work: {'values differ' if changed else 'the same values'}")
    return changed


if __name__ == "__main__":
    raise SystemExit(main())
