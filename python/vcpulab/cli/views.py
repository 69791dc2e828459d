"""The output of commands on a terminal. Colors only repeat the words; `NO_COLOR` turns them off."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import polars as pl

from vcpulab.advice import core_sharing
from vcpulab.advice.compare import Comparison, in_words, seen_by_clients, table_of_differences
from vcpulab.advice.in_short import ROWS_FULL, ROWS_MAX, in_short
from vcpulab.advice.starvation import in_a_line, starved
from vcpulab.cli import page, terminal
from vcpulab.cli.page import BLANK, Lines, Part, Piece
from vcpulab.hypervisors import Toolstack
from vcpulab.hypervisors.counters import COUNTERS, Tool, counted
from vcpulab.hypervisors.steps import HEADINGS, Step, in_loops, script
from vcpulab.results.metrics import DOMAIN, IO, SPEED, Metric, summarise
from vcpulab.results.run import Run
from vcpulab.results.statistics import Interval, number
from vcpulab.scenario import settings
from vcpulab.scenario.scenario import Scenario
from vcpulab.scenario.topology import Topology
from vcpulab.scenario.units import pcpu_set
from vcpulab.show.folded import NARROW, NARROWEST, View, chosen, folded_table, things
from vcpulab.show.table import Table

if TYPE_CHECKING:  # the import of the rules takes longer than a short run
    from vcpulab.advice.fixes import Fixed
    from vcpulab.advice.lint.host import Finding
    from vcpulab.advice.lint.lint import Advice

_WAITS_SHORT = 6
"""The largest number of domains for which the table of waits is shown by default, if the page has room."""


def show_run(
    run: Run, tool: Tool | None = None, waits: bool | None = None, *, io: bool = False, view: View | None = None
) -> None:
    """Prints the metrics of a run: all, or the most important ones that fit on a page.

    Args:
        run: the run.
        tool: the tool whose counters are also shown.
        waits: whether to show the table of waits; `None`: if it is short and the page has room.
        io: whether to show the traffic of the domains' devices.
        view: the domains and metrics to show; folded if left out.
    """
    view = view or View()
    few = run.df_domains()["domain"].n_unique() <= _WAITS_SHORT
    asides = [] if waits is False or (waits is None and not few) else [*_waits(run), *_wakeups(run)]
    starving = starved(run)
    shown, hint = _tables(run, view)
    extras = []
    if io:
        extras.append(_extra_part(_io(run, view), "row of I/O"))
    if tool is not None:
        counters = COUNTERS[tool]
        counted = summarise(_in_counters(run, counters), "domain", counters)
        title = f"Domains, in the counters of {tool}"
        table = folded_table(run.scenario, counted, title, counters, view).stacked()
        extras.append(_extra_part(table, f"row of {tool}'s counters"))
    if run.not_attributed is not None and waits is not False:
        terminal.say(f"who made whom wait is not known: {run.not_attributed}")
    page.show(
        [
            page.always(*_heading(run), *([Lines([in_a_line(starving)]), BLANK] if starving else [])),
            *(page.rows(table, _CALLED[thing], soon=_ROWS_SOON) for thing, table in shown.items()),
            page.always(*([Lines([hint])] if hint else [])),
            cautions(run.scenario),
            *extras,
            *(_aside(table, requested=bool(waits)) for table in asides),
        ],
        all=view.all,
    )


_CALLED = {"domain": "domain", "app": "application", "pcpu": "pCPU"}


def _extra_part(table: Table, called: str) -> Part:
    """A table that an option asks for: its first rows come before all other parts."""
    return page.rows(table, called, soon=_ROWS_SOON, rank=-1)


_ROWS_SOON = 8
"""The number of rows of each table of a run that are shown before more rows of any, or more columns."""


def _aside(table: Table, *, requested: bool) -> Part:
    """A table that is shown if an option asks for it, or if the page has room for all of it."""
    if requested:
        return _extra_part(table, "row of waits")
    return page.alternatives(page.Version(), page.Version([table]))


def _heading(run: Run) -> list[Piece]:
    """Lines on the scenario of a run."""
    scenario = run.scenario
    document = scenario.to_dict()
    host = document["host"]
    topology, replications = Topology.from_host(host), _count(scenario.replications, "replication")
    pcpus = _count(host["pcpus"], "pCPU") if topology.is_flat else str(topology)
    scheduler = f"{host['scheduler']} {host['generation']}"
    pools = "".join(
        f", {pool['scheduler']} {pool['generation']} in {name} ({pool['pcpus']})"
        for name, pool in document.get("pool", {}).items()
    )
    how_long = f"{scenario.duration_ns / 1e9:g} s after {scenario.warmup_ns / 1e9:g} s of warm-up"
    lines = [
        f"{scenario.name}: {scheduler}{pools}, {pcpus}, profile {host['profile']}",
        f"{how_long}, {replications}, seed {scenario.seed}; mean ± 95 % confidence interval",
    ]
    return [Lines(lines), BLANK]


def _tables(run: Run, view: View) -> tuple[dict[str, Table], str]:
    """The tables of a run, each with the metrics that fit side by side, and a hint that shows the rest."""
    tables = list(things(run, view))
    levels = (None,) if view.all or view.only is not None else (None, NARROW, NARROWEST)
    shown, cut = {}, False
    for table_of_things in tables:
        for names in levels:
            table = table_of_things.table(names).stacked()
            if page.fits(table):
                break
        shown[table_of_things.heading] = table
        cut = cut or names is not None
    if any(table_of_things.folded for table_of_things in tables):
        return shown, "Every one: --all; some of them: --only 'GLOB'; the most first: --sort METRIC"
    return shown, "Every metric: --all" if cut else ""


def comparison(
    comparisons: Sequence[Comparison],
    runs: tuple[Run, Run],
    labels: tuple[str, str],
    *,
    all: bool,
    view: View | None = None,
    starving: Sequence[str] = (),
    heading: bool = True,
) -> list[Part]:
    """The parts of a comparison of two runs: a heading, the differences and their meaning.

    Args:
        comparisons: the comparisons of the runs.
        runs: before and after.
        labels: names of the runs.
        all: whether to show every metric, not only improvements, regressions and metrics that clients see.
        view: the things to show, and the metric that comes first.
        starving: lines on starving domains.
        heading: whether to show lines on the scenarios.
    """
    view = view or View()
    if view.only is not None:
        picked = set(chosen([c.address.thing for c in comparisons], runs[0].scenario, view.only))
        comparisons = [c for c in comparisons if c.address.thing in picked]
    wanted = {address.name for address in seen_by_clients(runs[0])}
    wanted |= {c.address.name for c in comparisons if c.address.metric.name == view.sort}
    shown = [
        c
        for c in comparisons
        if all or (c.verdict != "same" and (c.address.better is not None or c.address.metric.name == view.sort))
    ]
    listed = [c for c in shown if all or c.of_consequence or c.may_regress or c.address.name in wanted]
    scenarios = (runs[0].scenario, runs[1].scenario)
    whole, lines = table_of_differences(listed, labels, view.sort), in_words(comparisons)
    # Alike domains fill a page with few rows or with few words.
    many = not all and max(len(listed), len(lines)) > ROWS_FULL

    def version(size: int) -> page.Version:
        if size > ROWS_MAX and not many:
            table, words = whole, lines
        else:
            table, words = in_short(shown, scenarios, labels, size, first=view.sort)
        return page.Version([*([table] if table.rows else []), Lines(words)])

    starving_lines = [Lines(starving), BLANK] if starving else []
    return [
        page.always(*(_compared(runs, labels) if heading else []), *starving_lines),
        Part(version, ROWS_MAX + (not many), least=1, soon=_DIFFERENCES_SOON),
    ]


_DIFFERENCES_SOON = 6
"""The number of differences that are shown before other parts grow."""


def _compared(runs: tuple[Run, Run], labels: tuple[str, str]) -> list[Piece]:
    hosts = [run.scenario.to_dict()["host"] for run in runs]
    hosts_in_words = [
        f"{run.scenario.name}: {host['scheduler']} {host['generation']}" for run, host in zip(runs, hosts, strict=True)
    ]
    # Equal lines are shown once.
    same = (
        hosts_in_words[:1]
        if len(set(hosts_in_words)) == 1
        else [f"{label}: {host}" for label, host in zip(labels, hosts_in_words, strict=True)]
    )
    pairs = min(run.scenario.replications for run in runs)
    lengths = list(dict.fromkeys(map(_length, runs)))
    how_long = f"{' and '.join(lengths)}, {_count(pairs, 'pair')} of replications, seed {runs[0].scenario.seed}"
    return [Lines([*same, how_long]), BLANK]


def _length(run: Run) -> str:
    return f"{run.scenario.duration_ns / 1e9:g} s after {run.scenario.warmup_ns / 1e9:g} s of warm-up"


def cautions(*scenarios: Scenario) -> Part:
    """Warnings about costs that a host's profile lacks, for the end of an answer from a simulation."""
    return page.always(Lines(core_sharing.cautions(*(scenario.to_dict() for scenario in scenarios))))


def cautions_as_data(*scenarios: Scenario) -> dict[str, list[str]]:
    """The warnings of `cautions` for a JSON document; nothing without warnings."""
    listed = core_sharing.cautions(*(scenario.to_dict() for scenario in scenarios))
    return {"cautions": listed} if listed else {}


def changes(changed: Mapping[str, Any]) -> Lines:
    """Lines on the changed settings, settings with the same value together."""
    return Lines([f"set: {line}" for line in settings.in_short(changed)])


_COMMANDS_SHOWN = 8
"""The largest number of commands of a finding that are shown without `--all`."""


def advice(path: str, fix: "Advice", toolstack: Toolstack | None = None, *, all: bool = True) -> list[Piece]:
    """A finding with its reason, the effect of its fix, and the commands of the fix, unless it does harm."""
    pieces = _finding(path, fix)
    steps = in_loops(fix.steps(toolstack)) if not fix.against else []
    shown = steps if all else steps[:_COMMANDS_SHOWN]
    for place, (how, group) in enumerate(groupby(shown, key=lambda step: step.how)):
        if place or how != "run":
            pieces.append(Lines([f"  {HEADINGS[how]}:"]))
        texts = [step.text for step in group]
        pieces.append(
            Lines(texts, begin="    ", indent="      ") if how == "cannot" else Lines(texts, begin="  $ ", typed=True)
        )
    if len(shown) < len(steps):
        rest = len(steps) - len(shown)
        pieces.append(Lines([f"{rest} more command{'s' * (rest != 1)}: --all"], begin="  "))
    return [*pieces, BLANK]


def fixed(path: str, fixes: "Fixed") -> list[Part]:
    """The fixes, the remaining findings with reasons, and the effect of all fixes together."""
    parts = [
        page.items(
            [[*_fault(path, finding), Lines(["  fixed: taken out"]), BLANK] for finding in fixes.taken_out],
            "fixed finding",
        ),
        page.items([[*_finding(path, fix, "fixed by"), BLANK] for fix in fixes.made], "fixed finding"),
        page.items(
            [
                [*_finding(path, fix), Lines([f"not fixed: {reason}"], begin="  ", indent="    "), BLANK]
                for fix, reason in fixes.left
            ],
            "remaining finding",
        ),
    ]
    if fixes.made:
        runs = (fixes.measured.before, fixes.measured.after)
        starving = fixes.measured.starving.lines()
        parts += comparison(fixes.measured.comparisons, runs, ("before", "fixed"), all=False, starving=starving)
    return parts


def _finding(path: str, advice: "Advice", label: str = "with") -> list[Piece]:
    """A finding with its reason and the effect of its fix."""
    pieces: list[Piece] = _fault(path, advice.finding)
    if advice.effect is not None:
        fix = "; ".join(settings.in_short(advice.finding.changes))
        pieces.append(Lines([f"{label} {fix}:"], begin="  ", indent="    "))
        lines = [advice.does, *advice.kept(), *([advice.against] if advice.against else [])]
        pieces.append(Lines(lines, begin="    ", indent="      "))
    return pieces


def _fault(path: str, finding: "Finding") -> list[Piece]:
    """A finding with its reason."""
    return [Lines([f"{path}: {finding.path}: {finding.rule}"]), Lines([finding.reason], begin="  ", indent="  ")]


def _io(run: Run, view: View) -> Table:
    """The table of I/O, without metrics that are 0 for all domains."""
    io = run.summary().filter(of="io")
    seen = set(io.filter(pl.col("mean") != 0)["metric"])
    metrics = [metric for metric in IO if metric.name in seen]
    return folded_table(run.scenario, io, "I/O", metrics, view).stacked()


def _in_counters(run: Run, counters: Sequence[Metric]) -> pl.DataFrame:
    """The counters of another tool for each domain and replication."""
    return counted(run).select(
        pl.col("domain").alias("thing"), *(counter.expression.alias(counter.name) for counter in counters)
    )


def _waits(run: Run) -> Iterator[Table]:
    """A row for each domain that waited, a column for each thing it waited for."""
    if run.not_attributed is not None or (frame := run.df_wait_shares()).is_empty():
        return
    order = [*run.df_domains()["domain"].unique(maintain_order=True), "idle", "hypervisor"]
    by = [name for name in order if name in frame["by"]]
    cells = {
        (row["domain"], row["by"]): str(Interval(row["of_elapsed"], row["half_width"], run.scenario.replications))
        for row in frame.iter_rows(named=True)
    }
    rows = [
        [domain, *(cells.get((domain, cause), "–") for cause in by)] for domain in order if domain in frame["domain"]
    ]
    yield Table("Who made whom wait: wait of the domain by what ran, % of elapsed", ["domain", *by], rows)


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


def _wakeups(run: Run) -> Iterator[Table]:
    frame = run.df_wakeup_means()
    if frame.is_empty():
        return
    headings = [
        "domain",
        "woken by",
        *(name.replace("_us", ", µs").replace("per_s", "1/s") for name in frame.columns[2:]),
    ]
    rows = [[domain, cause, *map(number, values)] for domain, cause, *values in frame.iter_rows()]
    yield Table("Wait for a pCPU after waking up", headings, rows, 2).stacked()


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


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


def commands(steps: Iterable[Step], *, headed: bool = False) -> list[list[Piece]]:
    """Steps as a shell script in blocks, each a command with the comments before it; see `script`."""
    blocks: list[list[Piece]] = [[]]
    for line in script(steps, headed=headed):
        if blocks[-1] and not _is_comment(blocks[-1][-1]):
            blocks.append([])
        blocks[-1].append(Lines([line], typed=True))
    return list(filter(None, blocks))


def _is_comment(piece: Piece) -> bool:
    return isinstance(piece, Lines) and piece.lines[0].startswith("#")


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
