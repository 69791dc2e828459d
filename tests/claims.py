"""What the tests of the claims in docs/schedulers share."""

from typing import Any

import polars as pl

import vcpulab
from support import ROOT


def load(claim: str) -> vcpulab.Scenario:
    """The scenario of a claim."""
    return vcpulab.Scenario.load(ROOT / "scenarios" / "claims" / f"{claim}.toml")


def run(claim: str, changes: dict[str, Any] | None = None, *, decisions: bool = False) -> vcpulab.Run:
    """Runs the scenario of a claim, or a change of it."""
    return vcpulab.run(load(claim).change(changes or {}), decisions=decisions)


def longest_wait_ms(run: vcpulab.Run, domain: str) -> float:
    """The longest wait of a domain for a pCPU in any replication, ms (exact, unlike percentiles)."""
    waits = run.df_domains().filter(pl.col("domain") == domain).get_column("wait_max_ns")
    return float(waits.to_numpy().max()) / 1e6
