"""What `vcpulab tune` advises on twins of recordings, set on the real Xen: `make real-xen ADVICE=1`."""

from __future__ import annotations

import csv
import json
import re
import sys
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "emulation"))

import command
import record
from command import ExperimentError
from experiments import DOM0, Boot, Experiments, Setting, read_experiments
from image import RELEASES
from packages import EmulationError, run

GOALS = record.HERE / "goals.toml"
METRICS = ("gotten", "executions", "wait_p50", "wait_p99", "throughput")
UNITS = {"µs": 1e3, "ms": 1e6, "s": 1e9}
"""In nanoseconds."""


@dataclass(frozen=True)
class Goal:
    """One table of `goals`."""

    name: str
    recording: str = ""
    maximise: str = ""
    minimise: str = ""
    vary: tuple[str, ...] = field(default_factory=tuple)

    @property
    def metric(self) -> str:
        """What is to be more, or less."""
        return self.maximise or self.minimise


@dataclass(frozen=True)
class Advice:
    """What tuning said of a goal."""

    goal: Goal
    setting: Setting
    changes: dict[str, Any]
    unit: str
    before: tuple[float, float]
    after: tuple[float, float]
    """Predicted: mean, and half-width of its interval."""

    @property
    def written(self) -> str:
        """What it changes."""
        return ", ".join(f"{path} = {value}" for path, value in self.changes.items())


def read_goals(path: Path, experiments: Experiments) -> tuple[int, list[tuple[Goal, Boot, Setting]]]:
    """Trials, and goals with what they start from."""
    try:
        file = tomllib.loads(path.read_text())
        goals = [Goal(name, **table) for name, table in file.get("goals", {}).items()]
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ExperimentError(f"{path.name}: {error}") from error
    trials = file.get("trials")
    if type(trials) is not int or trials < 2:
        raise ExperimentError(f"{path.name}: trials: found `{trials}`; allowed: a whole number from 2")
    known = {
        f"{name}-{setting.name}": (boots[0], setting)
        for name, boots in experiments.boots().items()
        for setting in boots[0].settings
    }
    return trials, [(goal, *_checked(goal, known, f"{path.name}: [goals.{goal.name}]")) for goal in goals]


def _checked(goal: Goal, known: dict[str, tuple[Boot, Setting]], where: str) -> tuple[Boot, Setting]:
    if not re.fullmatch(r"[a-z0-9-]+", goal.name):
        raise ExperimentError(f"{where}: a goal's name has lower-case letters, digits and -")
    if goal.recording not in known:
        raise ExperimentError(f"{where}: recording: `{goal.recording}` is not one of: {', '.join(known)}")
    if bool(goal.maximise) == bool(goal.minimise):
        raise ExperimentError(f"{where}: one of maximise and minimise is needed")
    one, setting = known[goal.recording]
    domain, metric = domain_and_metric(goal.metric)
    if domain not in ("dom0", *one.kind.names) or metric not in METRICS:
        allowed = f"a domain (dom0, {', '.join(one.kind.names)}), points and one of: {', '.join(METRICS)}"
        raise ExperimentError(f"{where}: found `{goal.metric}`; allowed: {allowed}")
    return one, setting


def domain_and_metric(address: str) -> tuple[str, str]:
    """Both, of `ioA.wait_p99` or, where the twin has the metric for its applications, `client.0.throughput`."""
    domain, *_, metric = address.split(".")
    return domain, metric


def advise(recording: Path, goal: Goal, base: Setting, trials: int, to: Path) -> Advice:
    """Tunes the twin of a recording."""
    vcpulab = str(Path(sys.executable).with_name("vcpulab"))
    host = to / f"{goal.name}.host.toml"
    run([vcpulab, "twin", *record.files(recording), "--force", "--out", str(host)])
    direction = "--maximise" if goal.maximise else "--minimise"
    vary = [word for path in goal.vary for word in ("--vary" if "=" in path else "--only", path)]
    how = [direction, goal.metric, *vary, "--trials", str(trials), "--seed", "1", "--format", "json"]
    said = run([vcpulab, "tune", str(host), *how, "--out", str(to / f"{goal.name}.tune")])
    (to / f"{goal.name}.tune.json").write_text(said)
    answer = json.loads(said)
    if answer["advised"]:
        row = next(one for one in answer["comparisons"] if one["metric"] == goal.metric)
        before, after = ((row[when], row[f"{when}_half_width"]) for when in ("before", "after"))
    else:
        metrics = json.loads(run([vcpulab, "run", str(host), "--format", "json"]))["metrics"]
        row = next(one for one in metrics if one["address"] == goal.metric)
        before = after = (row["mean"], row["half_width"])
    changes = answer["changes"] if answer["advised"] else {}
    return Advice(
        goal=goal,
        setting=_set(goal.name, base, changes),
        changes=changes,
        unit=row["unit"],
        before=before,
        after=after,
    )


def _set(name: str, base: Setting, changes: dict[str, Any]) -> Setting:
    """A setting with what a scenario's paths change."""
    parameters = dict(base.parameters)
    domains = {domain: dict(values) for domain, values in base.domains.items()}
    for path, value in changes.items():
        kind, *rest = path.split(".")
        if kind == "host":
            parameters[rest[0]] = value
        else:
            domain, what = rest
            domains.setdefault(DOM0 if domain == "dom0" else domain, {})[what] = value or 0
    return Setting(name, parameters, domains)


def measured(recording: Path, metric: str, unit: str) -> float:
    """A metric of a real recording, in a unit that `tune` has."""
    domain, what = domain_and_metric(metric)
    if what == "throughput":
        counted = re.search(rf"^G {domain} iters=(\d+)", (recording / "guests.txt").read_text(), re.MULTILINE)
        if counted is None:
            raise EmulationError(f"{recording / 'guests.txt'}: no line of guest `{domain}`")
        return int(counted[1]) / float(tomllib.loads((recording / "experiment.toml").read_text())["seconds"])
    listed = (recording / "list0.txt").read_text()
    numbers = dict(re.findall(r"^(\S+) +(\d+) ", listed, re.MULTILINE))
    number = int(numbers[DOM0 if domain == "dom0" else domain])
    vcpulab = str(Path(sys.executable).with_name("vcpulab"))
    said = json.loads(run([vcpulab, "import", "--show", str(recording / "trace.bin"), "--format", "json"]))
    summary = (said[0] if isinstance(said, list) else said)["summary"]
    vcpus = [vcpu for vcpu in summary["vcpus"] if vcpu["domain"] == number]
    if what == "gotten":
        return float(sum(100 * vcpu["running_ns"] / summary["span_ns"] for vcpu in vcpus))
    if what == "executions":
        return float(sum(vcpu["executions_per_s"] for vcpu in vcpus))
    return float(vcpus[0]["wait"][what.replace("wait_", "") + "_ns"] / UNITS[unit])


def table(rows: list[dict[str, Any]]) -> str:
    """Predicted and real gains, for people."""
    lines = ["Predicted and real gain of what was advised", ""]
    for row in rows:
        lines += [
            f"{row['goal']}: {row['direction']} {row['metric']} of {row['recording']}",
            f"  set         {row['set'] or 'nothing: no setting is better'}",
            f"  predicted   {row['predicted_before']:.4g} -> {row['predicted_after']:.4g} {row['unit']}"
            f"  ({row['predicted_gain_percent']:+.1f} % ± {row['predicted_half_width_percent']:.1f})",
            f"  real        {row['real_before']:.4g} -> {row['real_after']:.4g} {row['unit']}"
            f"  ({row['real_gain_percent']:+.1f} %; the same setting again: {row['real_before_again']:.4g})",
            "",
        ]
    return "\n".join(lines)


def row_of(advice: Advice, before: float, again: float, after: float) -> dict[str, Any]:
    """One line of `advice.csv`: means, and gains in % of what was before (more is positive, whatever is wanted)."""
    predicted, half = advice.before[0], advice.after[1] + advice.before[1]
    return {
        "goal": advice.goal.name,
        "recording": advice.goal.recording,
        "direction": "maximise" if advice.goal.maximise else "minimise",
        "metric": advice.goal.metric,
        "unit": advice.unit,
        "set": advice.written,
        "predicted_before": predicted,
        "predicted_after": advice.after[0],
        "predicted_gain_percent": 100 * (advice.after[0] / predicted - 1),
        "predicted_half_width_percent": 100 * half / predicted,
        "real_before": before,
        "real_before_again": again,
        "real_after": after,
        "real_gain_percent": 100 * (after / before - 1),
    }


class _Bench:
    """The real Xen, and where its recordings are."""

    def __init__(self, xen: str, out: Path, limit_minutes: int) -> None:
        self.image = record.image(xen)
        self.xen = xen
        self.out = out
        self.limit_minutes = limit_minutes
        self.advised = out / f"xen{xen}-advice"
        self.advised.mkdir(parents=True, exist_ok=True)

    def before(self, one: Boot, base: Setting) -> Path:
        """The recording that a twin is made of, made if it is not there."""
        record.make(self.image, one, self.out, self.limit_minutes)
        return record.folder(self.out, one, base, self.xen)

    def confirm(self, one: Boot, advices: list[tuple[Advice, Setting]]) -> list[dict[str, Any]]:
        """Records what was advised, after what it was advised for, all in one boot."""
        bases = {base.name: base for _, base in advices}
        settings = (*bases.values(), *(advice.setting for advice, _ in advices))
        record.make(self.image, replace(one, settings=settings), self.advised, self.limit_minutes)

        def real(advice: Advice, setting: Setting, where: Path) -> float:
            recording = record.folder(where, one, setting, self.xen)
            return measured(recording, advice.goal.metric, advice.unit)

        return [
            row_of(
                advice,
                before=real(advice, base, self.out),
                again=real(advice, base, self.advised),
                after=real(advice, advice.setting, self.advised),
            )
            for advice, base in advices
        ]


def main() -> None:
    """The command line."""
    experiments = read_experiments(record.HERE / "experiments.toml")
    trials, goals = read_goals(GOALS, experiments)
    names = [goal.name for goal, _, _ in goals]
    arguments = command.options(__doc__, record.OUT)
    arguments.add_argument("--xen", choices=list(RELEASES), default=next(iter(RELEASES)), help="(default: %(default)s)")
    arguments.add_argument("names", nargs="*", metavar="GOAL", help=f"default: {', '.join(names)}")
    given = arguments.parse_args()
    for name in given.names:
        if name not in names:
            raise ExperimentError(f"no goal `{name}` in {GOALS.name}; there are: {', '.join(names)}")
    goals = [one for one in goals if one[0].name in (given.names or names)]
    bench = _Bench(given.xen, given.out.resolve(), given.minutes)
    advices: dict[str, list[tuple[Advice, Setting]]] = {}
    for goal, one, base in goals:
        advice = advise(bench.before(one, base), goal, base, trials, bench.advised)
        print(f"{goal.name}: {advice.written or 'nothing is better'}", flush=True)
        advices.setdefault(one.name, []).append((advice, base))
    boots = {one.name: one for _, one, _ in goals}
    rows = [row for name, those in advices.items() for row in bench.confirm(boots[name], those)]
    with (bench.advised / "advice.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    (bench.advised / "advice.txt").write_text(table(rows))
    print(table(rows))


if __name__ == "__main__":
    command.start(main)
