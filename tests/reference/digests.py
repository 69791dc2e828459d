"""Digests of all that a fixed set of reference work computes: for changes that should change no result.

    python tests/reference/digests.py write            # keep today's digests in digests.json
    python tests/reference/digests.py compare          # run the same work, and say what differs

The work: every scenario in `scenarios/` with its decisions, the bundled conformance vectors, the short runs of each
study, and searches with fixed seeds (sweep, tune, capacity, twin). A table has a digest for each column, so that a
renamed column is told apart from a changed one; of JSON every number counts and no name does. It takes some minutes.
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
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import vcpulab
from vcpulab.cli.main import main as command_line

ROOT = Path(__file__).parent.parent.parent
KEPT = Path(__file__).with_name("digests.json")

Digests = dict[str, list[list[str]]]
"""By piece of work: name and digest of each column, or of all numbers together."""

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
    for name, digests in work(asked.only):
        print(name, file=sys.stderr, flush=True)
        found[name] = digests
    if asked.what == "write":
        asked.digests.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
        return 0
    kept = {name: digests for name, digests in json.loads(asked.digests.read_text()).items() if asked.only in name}
    return differences(kept, found)


def work(only: str) -> Iterator[tuple[str, list[list[str]]]]:
    """All reference work, piece by piece."""
    for path in sorted((ROOT / "scenarios").rglob("*.toml")):
        name = str(path.relative_to(ROOT))
        if only in name:
            yield from of_scenario(name, path)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepare(Path(folder))
        for name, line in SEARCHES.items():
            if only in name:
                yield name, of_json(output_of(line))
        for study in STUDIES:
            if only in f"study {study}":
                output_of(f"study run {study} --fast --out studies")
                units = Path("studies", f"{study}-fast", "units.jsonl").read_text()
                yield f"study {study}", of_json(f"[{','.join(units.splitlines())}]")


def of_scenario(name: str, path: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Every table of a run, its decisions included."""
    run = vcpulab.run(vcpulab.Scenario.load(path), decisions=True)
    for table, frame in run.tables().items():
        yield f"{name} {table}", of_table(frame)


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


def of_table(frame: pl.DataFrame) -> list[list[str]]:
    """Name and digest of each column."""

    def digest(column: pl.Series) -> str:
        data = column.rename("values").to_frame().write_ipc(None, compression="uncompressed").getvalue()
        return hashlib.sha256(data).hexdigest()[:16]

    return [[column.name, digest(column)] for column in frame]


def of_json(text: str) -> list[list[str]]:
    """How many numbers there are, and their digest, whatever they are called."""
    numbers = sorted(repr(number) for number in leaves(json.loads(text)))
    if folder := os.environ.get("DIGESTS_KEEP"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, hashlib.sha256(text.encode()).hexdigest()[:12] + ".json").write_text(text)
    return [[f"{len(numbers)} numbers", hashlib.sha256("\n".join(numbers).encode()).hexdigest()[:16]]]


def leaves(value: object) -> Iterator[int | float]:
    """Every number in a document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def differences(kept: Digests, found: Digests) -> int:
    """Prints what differs; 1 if values do, 0 if at most names do."""
    changed = 0
    for name in sorted(kept | found):
        before, after = kept.get(name), found.get(name)
        if before is None or after is None:
            print(f"{name}: {'new' if before is None else 'gone'}")
            changed = 1
        elif [digest for _, digest in before] != [digest for _, digest in after]:
            columns = [b for (b, x), (_, y) in zip(before, after, strict=False) if x != y]
            print(f"{name}: changed: {', '.join(columns) or 'another number of columns'}")
            changed = 1
        else:
            for (b, _), (a, _) in zip(before, after, strict=True):
                if a != b:
                    print(f"{name}: column `{b}` is now `{a}`")
    print(f"{len(found)} pieces of work: {'values differ' if changed else 'the same values'}")
    return changed


if __name__ == "__main__":
    raise SystemExit(main())
