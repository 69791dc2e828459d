"""The output of commands on a terminal. Colors only repeat the words; `NO_COLOR` turns them off."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from vcpulab.cli import page
from vcpulab.results.metrics import DOMAIN, SPEED
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario.units import pcpu_set
from vcpulab.show.folded import View, folded_table
from vcpulab.show.table import Table

if TYPE_CHECKING:  # the import of the rules takes longer than a short run
    pass


def show_gotten_and_work(run: Run) -> None:
    """Prints the time gotten, as XenMon counts it, next to the work done in it; nothing if both are equal."""
    shown = [metric for metric in DOMAIN if metric.name in ("gotten", *SPEED)]
    frame = run.summary().filter(pl.col("of") == "domain", pl.col("metric").is_in([metric.name for metric in shown]))
    if frame.filter(pl.col("metric") == "work")["mean"].is_not_null().any():
        title = "Time gotten, which XenMon counts, and the work done in it, which it does not see"
        page.show_table(folded_table(run.scenario, frame, title, shown, View()))


def show_xencpu(used: pl.DataFrame) -> None:
    """Prints the CPU time of each domain, with its share of the driver domain's."""

    def mean(domain: str, column: str, scale: float) -> str:
        return str(Interval.from_values((scale * used.filter(domain=domain)[column]).to_list()) or "–")

    columns = {"busy_s": 1, "exchanges": 1, "attributed_s": 1, "utilisation": 100}
    domains = used["domain"].unique(maintain_order=True)
    rows = [[domain, *(mean(domain, column, scale) for column, scale in columns.items())] for domain in domains]
    headings = ["domain", "busy, s", "page exchanges", "of the driver domain, s", "used, % of a pCPU"]
    page.show_table(Table("CPU used, with the driver domain's part by page exchanges", headings, rows))


def show_xenoprof(profile: pl.DataFrame) -> None:
    """Prints busy time by domain and layer."""

    def shown(value: float | None) -> str:
        return "–" if value is None else number(value)

    rows = [
        [row["domain"] or "(hypervisor)", row["layer"], *(shown(row[column]) for column in profile.columns[2:])]
        for row in profile.iter_rows(named=True)
    ]
    headings = ["domain", "layer", "samples", "estimated, %", "exact, %", "error, %"]
    page.show_table(Table("Busy time by domain and layer", headings, rows, text_columns=2))


def show_schedulers(schedulers: Sequence[Mapping[str, Any]]) -> None:
    """Prints each scheduler with its parameters, and the generations of parameters that not all generations have."""
    for scheduler in schedulers:
        generations = [generation["name"] for generation in scheduler["generations"]]
        print(f"{scheduler['name']}: {scheduler['doc']}")
        usual = next(generation["name"] for generation in scheduler["generations"] if generation["default"])
        print(f"  generations: {', '.join(generations)} (default: {usual})")
        for generation in scheduler["generations"]:
            if generation["releases"] != [generation["name"]]:
                print(f"    {generation['name']}: {', '.join(generation['releases'])}")
        owners: dict[str, list[str]] = {}
        for generation in scheduler["generations"]:
            for param in sorted(generation["params"], key=lambda param: param["scope"] != "global"):
                owners.setdefault(_param(param), []).append(generation["name"])
        for text, names in owners.items():
            print(text + ("" if names == generations else f"\n      only: {', '.join(names)}"))
        print()


def _param(param: Mapping[str, Any]) -> str:
    default = "no default" if param["default"] is None else f"default {json.dumps(param['default'])}"
    unit = f" {param['unit']}" if param["unit"] else ""
    scope = "per domain" if param["scope"] == "domain" else param["scope"]
    return f"  {param['name']}: {scope}, {default}{unit}; allowed: {param['allowed']}\n      {param['doc']}"


def show_list(listing: Mapping[str, Any]) -> None:
    """Prints domains in the format of `xl list`, without memory."""
    print(f"{'Name':<40}{'ID':>5}{'VCPUs':>6}\tState\tTime(s)")
    for domain in listing["domains"]:
        online = sum(vcpu["pcpu"] is not None for vcpu in domain["vcpus"])
        seconds = domain["time_ns"] / 1e9
        print(f"{domain['name']:<40}{domain['id']:>5}{online:>6}\t{domain['state']}\t{seconds:>7.1f}")


def show_vcpu_list(listing: Mapping[str, Any]) -> None:
    """Prints vCPUs in the format of `xl vcpu-list`."""
    print(f"{'Name':<32}{'ID':>6}{'VCPU':>6}{'CPU':>6}{'State':>8}{'Time(s)':>10} Affinity (Hard / Soft)")
    for domain in listing["domains"]:
        for vcpu in domain["vcpus"]:
            pcpu = "-" if vcpu["pcpu"] is None else vcpu["pcpu"]
            where = f"{domain['name']:<32}{domain['id']:>6}{vcpu['vcpu']:>6}{pcpu:>6}"
            affinity = f"{vcpu['affinity']} / {vcpu['soft_affinity']}"
            print(f"{where}{vcpu['state']:>8}{vcpu['time_ns'] / 1e9:>10.1f} {affinity}")


_MACHINE_STATES = {"c": "crashed", "d": "in shutdown", "s": "in shutdown", "p": "paused"}
"""Letters of `xl list` to states of `virsh`, the first match counts; without a match a domain is running."""


def show_machines(domains: Iterable[Mapping[str, Any]]) -> None:
    """Prints domains in the format of `virsh list`."""
    domains = list(domains)
    width = max((len(domain["name"]) for domain in domains), default=4) + 3
    heading = f" {'Id':<5}{'Name':<{width}}State"
    print(f"{heading}\n{'-' * (len(heading) + 4)}")
    for domain in domains:
        letters = (state for letter, state in _MACHINE_STATES.items() if letter in domain["state"])
        print(f" {domain['id']:<5}{domain['name']:<{width}}{next(letters, 'running')}")


def show_vcpuinfo(domains: Iterable[Mapping[str, Any]], pcpus: int) -> None:
    """Prints the vCPUs of each domain in the format of `virsh vcpuinfo`, with the domain's name above."""
    for domain in domains:
        print(f"{domain['name']}\n")
        for vcpu in (online for online in domain["vcpus"] if online["pcpu"] is not None):
            allowed = pcpu_set(vcpu["affinity"], pcpus)
            rows = {
                "VCPU": vcpu["vcpu"],
                "CPU": vcpu["pcpu"],
                "State": "running" if "r" in vcpu["state"] else "blocked" if "b" in vcpu["state"] else "offline",
                "CPU time": f"{vcpu['time_ns'] / 1e9:.1f}s",
                "CPU Affinity": "".join("y" if pcpu in allowed else "-" for pcpu in range(pcpus)),
            }
            print("".join(f"{f'{name}:':<16}{value}\n" for name, value in rows.items()))


def show_profile(profile: Mapping[str, Any]) -> None:
    """Prints a hardware profile with its constants."""
    print(f"{profile['name']}: {profile['doc']}\n")
    for constant in [{"name": "pcpus", "doc": "Number of pCPUs.", **profile["pcpus"]}, *profile["constants"]]:
        print(f"  {constant['name']} = {constant['value']}")
        print(f"      {constant['doc']}")
        print(f"      {constant['kind']}: {constant['source']}")


def show_measured(constants: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints the measured constants of a hardware profile with their spread."""
    rows = [
        [name, *(str(constant[key]) for key in ("value", "low", "high", "samples"))]
        for name, constant in constants.items()
    ]
    page.show_table(Table("", ["constant", "median", "lower quartile", "upper quartile", "samples"], rows))


_DECISIONS = re.compile(r"decisions_per_s_(?P<key>(?P<size>\d+x\d+)(_(?P<policy>.+))?)")
_OF_A_POLICY = ("decisions_per_s_", "events_per_s_", "schedule_calls_per_s_")


_WHOLE = re.compile(r"whole_(?P<key>.+)_of_floor")


def show_bench(metrics: Mapping[str, float]) -> None:
    """Prints decisions and events per second of each policy, whole runs next to the bare loop, and other numbers."""
    rows = []
    for match in filter(None, map(_DECISIONS.fullmatch, metrics)):
        rates = [metrics[f"{rate}{match['key']}"] / 1e6 for rate in _OF_A_POLICY]
        share = 100 * metrics[f"events_per_s_{match['key']}_of_floor"]
        policy = match["policy"] or "credit, default generation"
        rows.append([match["size"], policy, *(f"{rate:.1f}" for rate in rates), f"{share:.0f} %"])
    headings = ["pCPUs x vCPUs", "policy", "decisions", "events", "schedule calls", "events,\nof the bare loop"]
    page.show_table(Table("Million per second", headings, rows, 2))
    page.show_table(_whole_runs(metrics))
    shown = (*_OF_A_POLICY, "whole_")
    rest = [[name, number(value)] for name, value in metrics.items() if not name.startswith(shown)]
    page.show_table(Table("", ["measure", "value"], rest))


def _whole_runs(metrics: Mapping[str, float]) -> Table:
    """The table of whole runs, part by part from text to tables."""
    rows = []
    keys = [match["key"].split("_") for match in map(_WHOLE.fullmatch, metrics) if match]
    for words in sorted(keys, key=lambda words: [word.zfill(8) if word.isdigit() else word for word in words]):

        def value(metric: str, key: str = "_".join(words)) -> float:
            return metrics[f"whole_{key}_{metric}"]

        times = [value("read_ms") + value("build_ms"), value("run_ms"), value("rows_ms") + value("tables_ms")]
        per_dispatch = [value("ns_per_dispatch"), value("floor_ns_per_event"), value("of_floor")]
        speed = value("simulated_ms") / value("run_ms")
        rows.append(["-".join(words), *map(number, [*times, speed, *per_dispatch])])
    headings = ["whole run", "set-up, ms", "run, ms", "tables, ms", "times\nreal time"]
    headings += ["ns for each\ndispatch", "bare loop, ns\nfor each event", "ratio"]
    return Table("From a scenario's text to its tables", headings, rows, 1)
