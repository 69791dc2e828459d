"""What the terminal shows. Colours only repeat what the words say; `NO_COLOR` turns them off."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import polars as pl

from vcpulab.advice import sharing
from vcpulab.advice.compare import Comparison, in_words, seen_by_clients, table_of_differences
from vcpulab.advice.in_short import ROWS_FULL, ROWS_MAX, in_short
from vcpulab.advice.starving import in_a_line, starved
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

if TYPE_CHECKING:  # what finds mistakes takes longer to import than a short run takes
    from vcpulab.advice.fixing import Fixed
    from vcpulab.advice.lint.host import Finding
    from vcpulab.advice.lint.lint import Advice

_WAITS_SHORT = 6
"""Who made whom wait is shown unasked for up to so many domains, where there is room."""


def show_run(
    run: Run, tool: Tool | None = None, waits: bool | None = None, *, io: bool = False, view: View | None = None
) -> None:
    """The metrics of a run: all, or those that most people look at where there is no room for more on a page.

    Args:
        run: the run.
        tool: also in the counters of this tool.
        waits: show who made whom wait, and for how long? `None`: if it is short, as far as there is room on the page.
        io: show what crossed the domains' devices?
        view: what is shown of it; folded if left out.
    """
    view = view or View()
    few = run.df_domains()["domain"].n_unique() <= _WAITS_SHORT
    asides = [] if waits is False or (waits is None and not few) else [*_waits(run), *_wakeups(run)]
    starving = starved(run)
    shown, hint = _tables(run, view)
    asked = []
    if io:
        asked.append(_asked(_io(run, view), "row of I/O"))
    if tool is not None:
        counters = COUNTERS[tool]
        counted = summarise(_in_counters(run, counters), "domain", counters)
        title = f"Domains, in the counters of {tool}"
        table = folded_table(run.scenario, counted, title, counters, view).stacked()
        asked.append(_asked(table, f"row of {tool}'s counters"))
    if run.not_attributed is not None and waits is not False:
        terminal.say(f"who made whom wait is not known: {run.not_attributed}")
    page.show(
        [
            page.always(*_heading(run), *([Lines([in_a_line(starving)]), BLANK] if starving else [])),
            *(page.rows(table, _CALLED[of], soon=_ROWS_SOON) for of, table in shown.items()),
            page.always(*([Lines([hint])] if hint else [])),
            cautions(run.scenario),
            *asked,
            *(_aside(table, asked=bool(waits)) for table in asides),
        ],
        all=view.all,
    )


_CALLED = {"domain": "domain", "app": "application", "pcpu": "pCPU"}


def _asked(table: Table, called: str) -> Part:
    """A table that was asked for by an option: its first rows come before all else."""
    return page.rows(table, called, soon=_ROWS_SOON, rank=-1)


_ROWS_SOON = 8
"""So many rows of each table of a run are shown before more of any, or more of its columns."""


def _aside(table: Table, *, asked: bool) -> Part:
    """A table that is shown if it was asked for, or else as far as there is room for all of it."""
    if asked:
        return _asked(table, "row of waits")
    return page.either(page.Version(), page.Version([table]))


def _heading(run: Run) -> list[Piece]:
    """What was run."""
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
    """The tables of a run, each with as many metrics as fit beside one another; and how to see what is left out."""
    those = list(things(run, view))
    levels = (None,) if view.all or view.only is not None else (None, NARROW, NARROWEST)
    shown, cut = {}, False
    for one in those:
        for names in levels:
            table = one.table(names).stacked()
            if page.fits(table):
                break
        shown[one.heading] = table
        cut = cut or names is not None
    if any(one.folded for one in those):
        return shown, "Every one: --all; some of them: --only 'GLOB'; the most first: --sort METRIC"
    return shown, "Every metric: --all" if cut else ""


def comparison(
    found: Sequence[Comparison],
    runs: tuple[Run, Run],
    labels: tuple[str, str],
    *,
    all: bool,
    view: View | None = None,
    starving: Sequence[str] = (),
    heading: bool = True,
) -> list[Part]:
    """What differs between two runs, and what it means for whom.

    Args:
        found: what was compared.
        runs: before and after.
        labels: what they are called.
        all: every metric, not only those that changed for better or worse, and what clients see?
        view: of which things, and which metric comes first; all, and what owners judge by, if left out.
        starving: lines on who starves.
        heading: say what is compared?
    """
    view = view or View()
    if view.only is not None:
        there = set(chosen([c.address.thing for c in found], runs[0].scenario, view.only))
        found = [c for c in found if c.address.thing in there]
    asked = {address.name for address in seen_by_clients(runs[0])}
    asked |= {c.address.name for c in found if c.address.metric.name == view.sort}
    shown = [
        c
        for c in found
        if all or (c.verdict != "same" and (c.address.better is not None or c.address.metric.name == view.sort))
    ]
    told = [c for c in shown if all or c.of_consequence or c.may_regress or c.address.name in asked]
    scenarios = (runs[0].scenario, runs[1].scenario)
    whole, lines = table_of_differences(told, labels, view.sort), in_words(found)
    # Alike domains fill a page with few rows or with few words.
    many = not all and max(len(told), len(lines)) > ROWS_FULL

    def version(size: int) -> page.Version:
        if size > ROWS_MAX and not many:
            table, said = whole, lines
        else:
            table, said = in_short(shown, scenarios, labels, size, first=view.sort)
        return page.Version([*([table] if table.rows else []), Lines(said)])

    said = [Lines(starving), BLANK] if starving else []
    return [
        page.always(*(_compared(runs, labels) if heading else []), *said),
        Part(version, ROWS_MAX + (not many), least=1, soon=_DIFFERENCES_SOON),
    ]


_DIFFERENCES_SOON = 6
"""So many differences are shown before there is room for anything else."""


def _compared(runs: tuple[Run, Run], labels: tuple[str, str]) -> list[Piece]:
    hosts = [run.scenario.to_dict()["host"] for run in runs]
    said = [
        f"{run.scenario.name}: {host['scheduler']} {host['generation']}" for run, host in zip(runs, hosts, strict=True)
    ]
    # What is the same is said once.
    same = said[:1] if len(set(said)) == 1 else [f"{label}: {one}" for label, one in zip(labels, said, strict=True)]
    pairs = min(run.scenario.replications for run in runs)
    lengths = list(dict.fromkeys(map(_length, runs)))
    how_long = f"{' and '.join(lengths)}, {_count(pairs, 'pair')} of replications, seed {runs[0].scenario.seed}"
    return [Lines([*same, how_long]), BLANK]


def _length(run: Run) -> str:
    return f"{run.scenario.duration_ns / 1e9:g} s after {run.scenario.warmup_ns / 1e9:g} s of warm-up"


def cautions(*scenarios: Scenario) -> Part:
    """What the profile of a host does not say, below an answer from its simulation."""
    return page.always(Lines(sharing.cautions(*(one.to_dict() for one in scenarios))))


def cautions_as_data(*scenarios: Scenario) -> dict[str, list[str]]:
    """The same for a JSON document; nothing where there is none."""
    there = sharing.cautions(*(one.to_dict() for one in scenarios))
    return {"cautions": there} if there else {}


def changes(changed: Mapping[str, Any]) -> Lines:
    """What was set, settings of the same value in a line."""
    return Lines([f"set: {line}" for line in settings.in_short(changed)])


_COMMANDS_SHOWN = 8
"""The most commands of a finding that are shown unless all is asked for."""


def advice(path: str, one: "Advice", toolstack: Toolstack | None = None, *, all: bool = True) -> list[Piece]:
    """A finding: what is wrong and why, what mending it does, and how it is mended, if it may be."""
    pieces = _finding(path, one)
    steps = in_loops(one.steps(toolstack)) if not one.against else []
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


def fixed(path: str, it: "Fixed") -> list[Part]:
    """What was mended, what was not and why, and what all mends do together."""
    parts = [
        page.items([[*_what(path, one), Lines(["  fixed: taken out"]), BLANK] for one in it.taken_out], "mend"),
        page.items([[*_finding(path, one, "fixed by"), BLANK] for one in it.made], "mend"),
        page.items(
            [
                [*_finding(path, one), Lines([f"not fixed: {why}"], begin="  ", indent="    "), BLANK]
                for one, why in it.left
            ],
            "finding that is left",
        ),
    ]
    if it.made:
        runs = (it.measured.before, it.measured.after)
        starving = it.measured.starving.lines()
        parts += comparison(it.measured.comparisons, runs, ("before", "fixed"), all=False, starving=starving)
    return parts


def _finding(path: str, advice: "Advice", label: str = "with") -> list[Piece]:
    """What is wrong and why, and what mending it does."""
    pieces: list[Piece] = _what(path, advice.finding)
    if advice.effect is not None:
        mend = "; ".join(settings.in_short(advice.finding.changes))
        pieces.append(Lines([f"{label} {mend}:"], begin="  ", indent="    "))
        lines = [advice.does, *advice.kept(), *([advice.against] if advice.against else [])]
        pieces.append(Lines(lines, begin="    ", indent="      "))
    return pieces


def _what(path: str, finding: "Finding") -> list[Piece]:
    """What is wrong and why."""
    return [Lines([f"{path}: {finding.path}: {finding.rule}"]), Lines([finding.reason], begin="  ", indent="  ")]


def _io(run: Run, view: View) -> Table:
    """What there was nothing of anywhere is left out."""
    io = run.summary().filter(of="io")
    seen = set(io.filter(pl.col("mean") != 0)["metric"])
    metrics = [metric for metric in IO if metric.name in seen]
    return folded_table(run.scenario, io, "I/O", metrics, view).stacked()


def _in_counters(run: Run, counters: Sequence[Metric]) -> pl.DataFrame:
    """The domains in the counters of another tool, in each replication."""
    return counted(run).select(pl.col("domain").alias("thing"), *(one.expression.alias(one.name) for one in counters))


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
        [domain, *(cells.get((domain, other), "–") for other in by)] for domain in order if domain in frame["domain"]
    ]
    yield Table("Who made whom wait: wait of the domain by what ran, % of elapsed", ["domain", *by], rows)


def show_gotten_and_work(run: Run) -> None:
    """The time gotten, as XenMon counts it, beside the work done in it; nothing where they are the same."""
    shown = [metric for metric in DOMAIN if metric.name in ("gotten", *SPEED)]
    frame = run.summary().filter(pl.col("of") == "domain", pl.col("metric").is_in([one.name for one in shown]))
    if frame.filter(pl.col("metric") == "work")["mean"].is_not_null().any():
        title = "Time gotten, which XenMon counts, and the work done in it, which it does not see"
        page.show_table(folded_table(run.scenario, frame, title, shown, View()))


def show_xencpu(used: pl.DataFrame) -> None:
    """CPU used by each domain, with its share of the driver domain."""

    def mean(domain: str, column: str, scale: float) -> str:
        return str(Interval.from_values((scale * used.filter(domain=domain)[column]).to_list()) or "–")

    columns = {"busy_s": 1, "exchanges": 1, "attributed_s": 1, "utilisation": 100}
    domains = used["domain"].unique(maintain_order=True)
    rows = [[domain, *(mean(domain, column, scale) for column, scale in columns.items())] for domain in domains]
    headings = ["domain", "busy, s", "page exchanges", "of the driver domain, s", "used, % of a pCPU"]
    page.show_table(Table("CPU used, with the driver domain's part by page exchanges", headings, rows))


def show_xenoprof(profile: pl.DataFrame) -> None:
    """Where busy time went by domain and layer."""

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
    """Each scheduler with its parameters, and in which generations it has them if not in all."""
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
    default = "no default" if param["default"] is None else f"default {param['default']}"
    unit = f" {param['unit']}" if param["unit"] else ""
    scope = "per domain" if param["scope"] == "domain" else param["scope"]
    return f"  {param['name']}: {scope}, {default}{unit}; allowed: {param['allowed']}\n      {param['doc']}"


def commands(steps: Iterable[Step], *, headed: bool = False) -> list[list[Piece]]:
    """As a shell script, each command with the comments before it; see `script`."""
    found: list[list[Piece]] = [[]]
    for line in script(steps, headed=headed):
        if found[-1] and not _is_comment(found[-1][-1]):
            found.append([])
        found[-1].append(Lines([line], typed=True))
    return list(filter(None, found))


def _is_comment(piece: Piece) -> bool:
    return isinstance(piece, Lines) and piece.lines[0].startswith("#")


def show_list(listing: Mapping[str, Any]) -> None:
    """As `xl list` prints it, but for the memory."""
    print(f"{'Name':<40}{'ID':>5}{'VCPUs':>6}\tState\tTime(s)")
    for domain in listing["domains"]:
        online = sum(vcpu["pcpu"] is not None for vcpu in domain["vcpus"])
        seconds = domain["time_ns"] / 1e9
        print(f"{domain['name']:<40}{domain['id']:>5}{online:>6}\t{domain['state']}\t{seconds:>7.1f}")


def show_vcpu_list(listing: Mapping[str, Any]) -> None:
    """As `xl vcpu-list` prints it."""
    print(f"{'Name':<32}{'ID':>6}{'VCPU':>6}{'CPU':>6}{'State':>8}{'Time(s)':>10} Affinity (Hard / Soft)")
    for domain in listing["domains"]:
        for vcpu in domain["vcpus"]:
            pcpu = "-" if vcpu["pcpu"] is None else vcpu["pcpu"]
            where = f"{domain['name']:<32}{domain['id']:>6}{vcpu['vcpu']:>6}{pcpu:>6}"
            affinity = f"{vcpu['affinity']} / {vcpu['soft_affinity']}"
            print(f"{where}{vcpu['state']:>8}{vcpu['time_ns'] / 1e9:>10.1f} {affinity}")


_MACHINE_STATES = {"c": "crashed", "d": "in shutdown", "s": "in shutdown", "p": "paused"}
"""Of `virsh`, by the letters of `xl list`, the first that is there; else it is running, whether it has work or not."""


def show_machines(domains: Iterable[Mapping[str, Any]]) -> None:
    """As `virsh list` prints it."""
    domains = list(domains)
    width = max((len(domain["name"]) for domain in domains), default=4) + 3
    heading = f" {'Id':<5}{'Name':<{width}}State"
    print(f"{heading}\n{'-' * (len(heading) + 4)}")
    for domain in domains:
        letters = (state for letter, state in _MACHINE_STATES.items() if letter in domain["state"])
        print(f" {domain['id']:<5}{domain['name']:<{width}}{next(letters, 'running')}")


def show_vcpuinfo(domains: Iterable[Mapping[str, Any]], pcpus: int) -> None:
    """As `virsh vcpuinfo` prints it for each domain, with its name above."""
    for domain in domains:
        print(f"{domain['name']}\n")
        for vcpu in (one for one in domain["vcpus"] if one["pcpu"] is not None):
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
    """A hardware profile with its constants."""
    print(f"{profile['name']}: {profile['doc']}\n")
    for constant in [{"name": "pcpus", "doc": "Number of pCPUs.", **profile["pcpus"]}, *profile["constants"]]:
        print(f"  {constant['name']} = {constant['value']}")
        print(f"      {constant['doc']}")
        print(f"      {constant['kind']}: {constant['source']}")


def show_measured(constants: Mapping[str, Mapping[str, Any]]) -> None:
    """What was measured for a hardware profile, with its spread."""
    rows = [
        [name, *(str(constant[key]) for key in ("value", "low", "high", "samples"))]
        for name, constant in constants.items()
    ]
    page.show_table(Table("", ["constant", "median", "lower quartile", "upper quartile", "samples"], rows))


_DECISIONS = re.compile(r"decisions_per_s_(?P<key>(?P<size>\d+x\d+)(_(?P<policy>.+))?)")
_OF_A_POLICY = ("decisions_per_s_", "events_per_s_", "schedule_calls_per_s_")


_WHOLE = re.compile(r"whole_(?P<key>.+)_of_floor")


def show_bench(metrics: Mapping[str, float]) -> None:
    """Decisions and events per second of each policy, and whole runs, beside the bare loop; then the other numbers."""
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
    others = [[name, number(value)] for name, value in metrics.items() if not name.startswith(shown)]
    page.show_table(Table("", ["measure", "value"], others))


def _whole_runs(metrics: Mapping[str, float]) -> Table:
    """Whole runs part by part, from text to tables."""
    rows = []
    keys = [match["key"].split("_") for match in map(_WHOLE.fullmatch, metrics) if match]
    for words in sorted(keys, key=lambda words: [word.zfill(8) if word.isdigit() else word for word in words]):

        def of(metric: str, key: str = "_".join(words)) -> float:
            return metrics[f"whole_{key}_{metric}"]

        times = [of("read_ms") + of("build_ms"), of("run_ms"), of("rows_ms") + of("tables_ms")]
        per_dispatch = [of("ns_per_dispatch"), of("floor_ns_per_event"), of("of_floor")]
        speed = of("simulated_ms") / of("run_ms")
        rows.append(["-".join(words), *map(number, [*times, speed, *per_dispatch])])
    headings = ["whole run", "set-up, ms", "run, ms", "tables, ms", "times\nreal time"]
    headings += ["ns for each\ndispatch", "bare loop, ns\nfor each event", "ratio"]
    return Table("From a scenario's text to its tables", headings, rows, 1)
