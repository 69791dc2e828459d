"""The notebooks run from top to bottom, and what they show holds."""

import importlib.util
from collections.abc import Mapping
from typing import Any

import polars as pl

from support import ROOT


def run(name: str) -> Mapping[str, Any]:
    """What a notebook's cells define when they have all run."""
    path = ROOT / "examples" / "notebooks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, definitions = module.app.run()
    return dict(definitions)


def test_what_if() -> None:
    found = {one.address.name: one.verdict for one in run("what_if")["found"]}
    assert found["batch.throughput"] == "regresses"
    assert found["dom0.waited"] == "improves"


def test_bounds() -> None:
    curves: pl.DataFrame = run("bounds")["curves"]
    wide = curves.pivot("what", index="users", values="per_s")
    # Requests under way when measuring begins may end in it.
    assert (wide["simulated"] <= 1.05 * wide["bound"] + 2).all()
    assert wide["simulated"][-1] < 0.9 * wide["bound"][-1], "switches cost"
