"""Random scenarios over the whole schema: what must hold of every run. `make fuzz` takes more of them."""

import json
import re
from pathlib import Path
from random import Random

import polars as pl
import pytest

import vcpulab
from invariants import faults_of, same_tables
from random_scenarios import SCHEMA, random_checked
from support import run_vcpulab
from vcpulab.scenario.catalogue import schedulers

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold(seed: int) -> None:
    assert faults_of(random_checked(seed)) == []


def test_the_same_seed_draws_the_same_scenario() -> None:
    assert random_checked(3).to_toml() == random_checked(3).to_toml()


def test_scenarios_are_drawn_from_the_whole_schema() -> None:
    """Each kind of application and client, and each field of a host and a domain, is in some scenario."""
    drawn = json.dumps([random_checked(seed).to_dict() for seed in range(120)])
    definitions = SCHEMA["$defs"]
    kinds = [one["properties"]["kind"]["const"] for kind in ("App", "Client") for one in definitions[kind]["oneOf"]]
    assert [kind for kind in kinds if f'"{kind}"' not in drawn] == []
    parameters = {param.name for one in schedulers() for g in one.generations for param in g.params}
    fields = {*definitions["Host"]["properties"], *definitions["Domain"]["properties"]} - parameters
    # Copies are written out, and the last two are not drawn.
    missing = fields - {"count", "bare_metal", "idle_tick_at"} - set(re.findall(r'"(\w+)":', drawn))
    assert missing == set()


@pytest.mark.parametrize(("seed", "replications"), [(0, 1), (1, 2), (2, 3), (3, 2), (4, 1)])
def test_a_point_has_the_same_results_however_it_is_set(seed: int, replications: int, tmp_path: Path) -> None:
    """By `run --set`, by `change`, by `whatif` and by a sweep."""
    scenario = random_checked(seed).change({"seed": 7, "run.replications": replications})
    # Where a constant is set to its own default, not to the profile's value, it must stay so when it is written.
    constants = SCHEMA["$defs"]["Host"]["properties"]["costs"]["properties"]
    written = sorted(set(scenario.to_dict()["host"]["costs"]) & set(constants))
    path, least = next(
        (f"host.costs.{name}", constants[name]["minimum"])
        for name in Random(seed).sample(written, len(written))
        if name.endswith("_ns")
    )
    changed = scenario.change({path: least})
    expected = vcpulab.run(changed, decisions=True)
    metric = f"{list(scenario.to_dict()['domain'])[-1]}.gotten"
    mean = expected[metric].mean
    tmp_path.joinpath("s.toml").write_text(scenario.to_toml(), encoding="utf-8")

    by_run = run_vcpulab(("run", "s.toml", "--set", f"{path}={least}", "--waits", "--out", "out"), tmp_path)
    assert by_run.returncode == 0, by_run.stderr
    assert same_tables(vcpulab.Run.load(tmp_path / "out"), expected)

    after = vcpulab.whatif(scenario, {path: least}, replications=replications + 1)[metric].after
    assert after is not None
    assert after.mean == vcpulab.run(changed.change({"run.replications": replications + 1}))[metric].mean

    sweep = f'scenario = "s.toml"\n[[vary]]\npath = "{path}"\nvalues = [{least}]\n'
    tmp_path.joinpath("sweep.toml").write_text(sweep, encoding="utf-8")
    points = vcpulab.sweep(tmp_path / "sweep.toml", tmp_path / "store", metrics=[metric])
    assert points.to_frame()[metric].to_list() == [mean]
    by_sweep = run_vcpulab(("sweep", "sweep.toml", "--store", "store", "--out", "export"), tmp_path)
    assert by_sweep.returncode == 0, by_sweep.stderr
    for table, of_run in (("domains", expected.df_domains()), ("apps", expected.df_apps()), ("io", expected.df_io())):
        rows = pl.read_parquet(tmp_path / "export" / f"{table}.parquet").drop("point")
        assert rows.equals(of_run.select(rows.columns)), table
