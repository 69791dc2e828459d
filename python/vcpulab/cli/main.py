"""The command line. Data goes to stdout, everything else to stderr.

Exit status: 0 done, 1 the work failed, 2 the input or the usage is wrong, 130 interrupted.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from vcpulab import _engine
from vcpulab import conformance as vectors
from vcpulab.cli import advise as advice_cli
from vcpulab.cli import bounds as bounds_cli
from vcpulab.cli import capacity as capacity_cli
from vcpulab.cli import files, views
from vcpulab.cli import import_ as import_cli
from vcpulab.cli import manage as manage_cli
from vcpulab.cli import sweep as sweep_cli
from vcpulab.cli import tune as tune_cli
from vcpulab.cli.study import app as study
from vcpulab.cli.twin import app as twin
from vcpulab.cli.usage import examples as _help
from vcpulab.errors import EngineError, MissingExtraError, RecordingError, RequestError, ScenarioError
from vcpulab.extras import require
from vcpulab.formats import rtapp
from vcpulab.hypervisors import monitors, xentop
from vcpulab.hypervisors.counters import Tool
from vcpulab.hypervisors.monitors import NotRecordedError
from vcpulab.hypervisors.xl import commands as commands_for
from vcpulab.plugins import PluginError
from vcpulab.policy import load as load_policy
from vcpulab.results import jtl as jtl_logs
from vcpulab.results import store
from vcpulab.results import trace as traces
from vcpulab.results.run import Run
from vcpulab.results.run import run as run_scenario
from vcpulab.scenario.catalogue import profiles as all_profiles
from vcpulab.scenario.catalogue import schedulers as all_schedulers

DONE, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130
_WORKLOAD_BYTES_MAX = 1 << 20


app = App(
    name="vcpulab",
    help="A laboratory for hypervisor CPU scheduling.",
    help_epilogue=_help("vcpulab init web.toml", "vcpulab run web.toml"),
    help_format="plaintext",
    version=_engine.build_info()["version"],
    suppress_keyboard_interrupt=False,
)

Jobs = Annotated[int, Parameter(name=["--jobs", "-j"])]
Format = Literal["table", "json"]


@app.command(
    help_epilogue=_help(
        "vcpulab run web.toml",
        "vcpulab run web.toml --replications 3 --format csv",
        "vcpulab run web.toml --out out/web",
        "vcpulab run web.toml --policy lottery.py:Lottery",
        "vcpulab run web.toml --names esx",
        "vcpulab run web.toml --trace out/trace",
        "vcpulab run web.toml --jtl out/jtl",
        "vcpulab run web.toml --io",
    )
)
def run(
    file: Path,
    /,
    *,
    format: Literal["table", "json", "csv"] = "table",  # noqa: A002 - the option's name
    out: Path | None = None,
    seed: int | None = None,
    replications: int | None = None,
    jobs: Jobs = 0,
    trace: Path | None = None,
    policy: str | None = None,
    names: Tool | None = None,
    waits: bool | None = None,
    io: Annotated[bool, Parameter(negative=())] = False,
    jtl: Path | None = None,
    jtl_format: jtl_logs.Format = "csv",
    jtl_warmup: bool = True,
) -> None:
    """Run a scenario; print every figure as mean ± 95 % confidence interval over its replications.

    Args:
        file: Scenario file.
        format: How to print.
        out: Also write the scenario as run, all tables and the trace to this directory; replaces a run that is there.
        seed: Instead of the scenario's.
        replications: Instead of the scenario's.
        jobs: Replications at a time; 0: one for each processor. It never changes the results.
        trace: Write everything that happens to this directory while it happens; replaces a trace that is there.
        policy: A scheduler in Python instead of the scenario's: FILE.py:CLASS, or one that an installed package offers.
        names: Also show the counters of another tool, under its names and in its units.
        waits: Show who made whom wait; by default for up to six domains.
        io: Show what crossed the domains' network interfaces, cards and disks.
        jtl: Log every request of clients to this directory as JMeter would, CLIENT-0.jtl and so on; replaces logs that
            are there. Time 0 is 2000-01-01 00:00:00 UTC.
        jtl_format: In which of JMeter's formats.
        jtl_warmup: Log what is over before the warm-up is, too, as JMeter would.
    """
    scenario = files.load(file)
    if seed is not None or replications is not None:
        scenario = files.with_run(scenario, seed=seed, replications=replications)
    if out is not None:
        store.check_free(out)
    own = None if policy is None else load_policy(policy)
    with views.progress(f"running {scenario.name}") as progress:
        result = run_scenario(
            scenario,
            jobs=files.at_least_zero("--jobs", jobs),
            trace=out is not None,
            events=trace,
            jtl=None if jtl is None else jtl_logs.Jtl(jtl, jtl_format, jtl_warmup),
            progress=progress,
            policy=own,
        )
    for warning in result.warnings:
        views.warn(warning)
    if out is not None:
        result.save(out)
    _print_run(result, format, names, waits, io=io)
    for written in (out, trace, jtl):
        if written is not None:
            views.say(f"written to {written}")


def _print_run(result: Run, form: str, names: Tool | None, waits: bool | None, *, io: bool) -> None:
    if form == "json":
        print(json.dumps(store.describe(result), indent=2))
    elif form == "csv":
        print(result.summary().write_csv(), end="")
    else:
        views.show_run(result, names, waits, io=io)


@app.command(help_epilogue=_help("vcpulab check web.toml"))
def check(file: Annotated[tuple[Path, ...], Parameter(negative=())], /) -> int:
    """Say everything that is wrong with scenario files.

    Args:
        file: Scenario files.
    """
    status = DONE
    for path in file:
        try:
            files.load(path)
        except (RequestError, ScenarioError) as error:
            views.say(str(error))
            status = WRONG
        else:
            print(f"{path}: ok")
    return status


@app.command(help_epilogue=_help("vcpulab init web.toml"))
def init(path: Path = Path("scenario.toml"), /, *, force: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Write a commented scenario to start from.

    Args:
        path: Where to.
        force: Replace what is there.
    """
    try:
        with path.open("w" if force else "x") as file:
            file.write(_engine.starter())
    except FileExistsError:
        raise RequestError(f"{path}: exists already\n  hint: --force replaces it") from None
    except OSError as error:
        raise RequestError(f"{path}: {files.reason(error)}") from None
    views.say(f"written to {path}\n  hint: vcpulab run {path}")


export = App(name="export", help="Write what was recorded in the formats of other tools.", help_format="plaintext")
app.command(export)
app.command(study)
app.command(twin)
advice_cli.register(app)
bounds_cli.register(app)
capacity_cli.register(app)
manage_cli.register(app)
sweep_cli.register(app)
tune_cli.register(app)


@export.command(
    help_epilogue=_help(
        "vcpulab export perfetto out/trace --out web.pftrace", "vcpulab export perfetto trace.bin --out host.pftrace"
    )
)
def perfetto(
    source: Path,
    /,
    *,
    out: Path,
    replication: int = 0,
    cpu_mhz: float | None = None,
    threads: Path | None = None,
) -> None:
    """Write one replication, or what a real host recorded, as a trace that https://ui.perfetto.dev opens.

    Args:
        source: What `vcpulab run` wrote: a directory of --trace, or one of --out, which knows only who ran when. Or a
            trace of xentrace, perf or ftrace, as `vcpulab import` reads it.
        out: File to write; replaced if it is there.
        replication: Which one of a run.
        cpu_mhz: For a trace of Xen, as for `vcpulab import`.
        threads: For a trace of KVM, as for `vcpulab import`.
    """
    try:
        if source.is_file():
            import_cli.export_perfetto(source, out, cpu_mhz=cpu_mhz, threads=threads)
        else:
            traces.export_perfetto(source, out, replication)
    except (FileNotFoundError, ValueError) as error:
        raise RequestError(str(error)) from None
    views.say(f"written to {out}\n  hint: open it in https://ui.perfetto.dev")


import_ = App(
    name="import",
    help="Read what real hosts recorded, and make scenarios of the files of other tools.",
    help_epilogue=import_cli.EXAMPLES,
    help_format="plaintext",
)
app.command(import_)
import_cli.register(import_)


@import_.command(
    name="rt-app", help_epilogue=_help("vcpulab import rt-app workload.json --out workload.toml --vcpus 2")
)
def import_rt_app(
    file: Path,
    /,
    *,
    out: Path | None = None,
    vcpus: int | None = None,
    force: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Make a scenario of a workload of rt-app's; say what of it a scenario cannot say.

    Args:
        file: The workload (*.json).
        out: Write the scenario to this file instead of printing it.
        vcpus: vCPUs of the domain; if left out, as many as the workload names CPUs, or one.
        force: Replace what is there.
    """
    if vcpus is not None and not 1 <= vcpus <= 512:
        raise RequestError(f"--vcpus: found `{vcpus}`; allowed: an integer from 1 to 512")
    if out is not None and out.exists() and not force:
        raise RequestError(f"{out}: exists already\n  hint: --force replaces it")
    try:
        with file.open("rb") as source:
            data = source.read(_WORKLOAD_BYTES_MAX + 1)
    except OSError as error:
        raise RequestError(f"{file}: {files.reason(error)}") from None
    if len(data) > _WORKLOAD_BYTES_MAX:
        raise RequestError(f"{file}: too long; allowed: at most {_WORKLOAD_BYTES_MAX} bytes")
    try:
        made = rtapp.read(data.decode(), str(file), vcpus=vcpus)
    except UnicodeDecodeError:
        raise RequestError(f"{file}: not text (UTF-8)") from None
    except RecordingError as error:
        raise RequestError(str(error)) from None
    for note in made.notes:
        views.warn(str(note))
    if out is None:
        print(made.text, end="")
        return
    files.write(out, made.text)
    views.say(f"written to {out}\n  hint: vcpulab run {out}")


monitor = App(
    name="monitor",
    help="What the monitors of a Xen host would have shown.",
    help_format="plaintext",
    help_epilogue=_help("vcpulab monitor xencpu web.toml"),
)
app.command(monitor)


@monitor.command(help_epilogue=_help("vcpulab monitor xenmon web.toml --out out/xenmon"))
def xenmon(source: Path, /, *, out: Path, replication: int = 0, prefix: str = "log") -> None:
    """Write XenMon's log files of a run, PREFIX-domN.log for each domain.

    Args:
        source: A run that `vcpulab run --out` wrote, or a scenario file to run now.
        out: Directory to write to; files of the same names are replaced.
        replication: Which one.
        prefix: What the files' names begin with.
    """
    for path in monitors.xenmon(files.run_of(source), out, replication=replication, prefix=prefix):
        views.say(f"written to {path}")


@monitor.command(help_epilogue=_help("vcpulab monitor xencpu web.toml"))
def xencpu(source: Path, /, *, format: Literal["table", "csv"] = "table") -> None:  # noqa: A002
    """Print CPU used by each domain, the time of its driver domain put down to it by page exchanges.

    Args:
        source: A run that `vcpulab run --out` wrote, or a scenario file to run now.
        format: How to print; as CSV with a row for each replication.
    """
    used = monitors.xencpu(files.run_of(source))
    if format == "csv":
        print(used.write_csv(), end="")
    else:
        views.show_xencpu(used)


@monitor.command(help_epilogue=_help("vcpulab monitor xenoprof web.toml"))
def xenoprof(source: Path, /, *, format: Literal["table", "csv"] = "table") -> None:  # noqa: A002
    """Print where busy time went by domain and layer: what the profiler's samples tell, and the truth.

    Args:
        source: A run that `vcpulab run --out` wrote, or a scenario file to run now.
        format: How to print.
    """
    profile = monitors.xenoprof(files.run_of(source))
    if format == "csv":
        print(profile.write_csv(), end="")
    else:
        views.show_xenoprof(profile)


Flag = Annotated[bool, Parameter(negative=())]


@app.command(help_epilogue=_help("vcpulab top web.toml --batch", "vcpulab top web.toml -b -i 2 -n -v"))
def top(
    source: Path,
    /,
    *,
    batch: Annotated[Flag, Parameter(name=["--batch", "-b"])] = False,
    iterations: Annotated[int | None, Parameter(name=["--iterations", "-i"])] = None,
    delay: Annotated[float, Parameter(name=["--delay", "-d"])] = 1.0,
    networks: Annotated[Flag, Parameter(name=["--networks", "-n"])] = False,
    vbds: Annotated[Flag, Parameter(name=["--vbds", "-x"])] = False,
    vcpus: Annotated[Flag, Parameter(name=["--vcpus", "-v"])] = False,
    repeat_header: Annotated[Flag, Parameter(name=["--repeat-header", "-r"])] = False,
    full_name: Annotated[Flag, Parameter(name=["--full-name", "-f"])] = False,
    replication: int = 0,
) -> None:
    """Show a run as xentop does, with its options and keys: at the pace of its own time, while it goes on or after it.

    Args:
        source: A run that `vcpulab run --out` wrote, or a scenario file to run now.
        batch: Print the updates instead, one after the other.
        iterations: Most updates to print; all if left out.
        delay: Seconds between updates, of simulated time too.
        networks: Show what crossed each network interface.
        vbds: Show block devices.
        vcpus: Show the CPU time of each vCPU.
        repeat_header: Repeat the headings before each domain.
        full_name: Do not cut long names.
        replication: Which one.
    """
    if not 0.01 <= delay <= 3600:
        raise RequestError(f"--delay: found `{delay}`; allowed: 0.01 to 3600")
    if iterations is not None and iterations < 1:
        raise RequestError(f"--iterations: found `{iterations}`; allowed: an integer from 1")
    asked: dict[xentop.Extra, bool] = {
        "networks": networks,
        "vbds": vbds,
        "vcpus": vcpus,
        "repeat_header": repeat_header,
    }
    options = xentop.Options(frozenset(extra for extra, wanted in asked.items() if wanted), full_name)
    if batch:
        updates = xentop.updates(files.run_of(source), delay_s=delay, replication=replication)
        for update in islice(updates, iterations):
            print("\n".join(xentop.table(update, options)))
        return
    require("textual", "top")
    from vcpulab.show.top import Top

    shown = files.run_of(source) if source.is_dir() else files.load(source)
    terminal = Top(shown, delay_s=delay, replication=replication, options=options)
    terminal.run()
    if terminal.failed is not None:
        raise terminal.failed


@app.command(help_epilogue=_help("vcpulab schema"))
def schema() -> None:
    """Print the JSON schema of scenario files."""
    print(_engine.schema())


@app.command(help_epilogue=_help("vcpulab commands web.toml", "vcpulab commands web.toml --format json"))
def commands(file: Path, /, *, format: Format = "table") -> None:  # noqa: A002
    """Print what to type on a real host to set up a scenario: boot options, commands, and what cannot be set.

    Args:
        file: Scenario file.
        format: How to print: as a shell script, or each step with its kind and time.
    """
    steps = commands_for(files.load(file))
    if format == "json":
        print(json.dumps([asdict(step) for step in steps], indent=2))
    else:
        views.show_commands(steps)


@app.command(
    name="list",
    help_epilogue=_help("vcpulab list web.toml", "vcpulab list web.toml --at 5s", "vcpulab list web.toml --vcpus"),
)
def list_domains(
    file: Path,
    /,
    *,
    at: str | None = None,
    vcpus: Annotated[bool, Parameter(negative=())] = False,
    format: Format = "table",  # noqa: A002
) -> None:
    """Run a scenario up to a time, and print who is on the host then, as `xl list` would.

    Args:
        file: Scenario file.
        at: When: time since the host started, warm-up included, just before what happens at that very time. The end
            if left out.
        vcpus: Every vCPU, as `xl vcpu-list` would.
        format: How to print.
    """
    try:
        report = _engine.listing(files.load(file)._engine, at)
    except ValueError as error:
        if isinstance(error, ScenarioError):
            raise
        raise RequestError(f"--at: found `{at}`; {error}") from None
    if format == "json":
        print(report)
    elif vcpus:
        views.show_vcpu_list(json.loads(report))
    else:
        views.show_list(json.loads(report))


@app.command(help_epilogue=_help("vcpulab schedulers", "vcpulab schedulers rtds", "vcpulab schedulers --format json"))
def schedulers(name: str | None = None, /, *, format: Format = "table") -> None:  # noqa: A002
    """List the schedulers, their generations and parameters.

    Args:
        name: Only this one.
        format: How to print.
    """
    listed = all_schedulers()
    names = [scheduler["name"] for scheduler in listed]
    if name is not None:
        if name not in names:
            raise RequestError(f"found `{name}`; allowed: one of {', '.join(names)}")
        listed = [scheduler for scheduler in listed if scheduler["name"] == name]
    if format == "json":
        print(json.dumps(listed, indent=2))
    else:
        views.show_schedulers(listed)


profile = App(
    name="profile",
    help="Hardware profiles: what everything costs on a machine, and where that is known from.",
    help_epilogue=_help("vcpulab profile list", "vcpulab profile show generic"),
)
app.command(profile)


@profile.command(name="list", help_epilogue=_help("vcpulab profile list"))
def list_profiles(*, format: Format = "table") -> None:  # noqa: A002
    """List the built-in profiles.

    Args:
        format: How to print; as JSON with all constants.
    """
    if format == "json":
        print(_engine.profiles())
    else:
        views.print_table("", ["profile", "machine"], [[p["name"], p["doc"]] for p in all_profiles()], text_columns=2)


@profile.command(name="show", help_epilogue=_help("vcpulab profile show lp200r"))
def show_profile(name: str, /, *, format: Format = "table") -> None:  # noqa: A002
    """Show every constant of a profile: value, how it is known, and where from.

    Args:
        name: A built-in profile, or a file (*.toml).
        format: How to print.
    """
    found = _profile(name)
    if format == "json":
        print(json.dumps(found, indent=2))
    else:
        views.show_profile(found)


@profile.command(name="measure", help_epilogue=_help("vcpulab profile measure --out this-machine.toml"))
def measure_profile(
    *, base: str = "generic", out: Path | None = None, force: Annotated[bool, Parameter(negative=())] = False
) -> None:
    """Measure this machine's context switches and caches, and make a profile of them.

    Args:
        base: The profile to take all else from: a built-in one, or a file (*.toml).
        out: Write the profile to this file instead of printing it.
        force: Replace what is there.
    """
    from vcpulab.scenario.measured import measure

    if out is not None and out.exists() and not force:
        raise RequestError(f"{out}: exists already\n  hint: --force replaces it")
    measured = measure(_profile(base))
    for constant, reason in measured.missing.items():
        views.warn(f"{constant}: not measured: {reason}")
    if out is None:
        print(measured.text, end="")
        return
    files.write(out, measured.text)
    views.show_measured(measured.figures)
    views.say(f'written to {out}\n  hint: profile = "{out.name}" in the [host] of a scenario beside it')


def _profile(name: str) -> dict[str, Any]:
    listed = all_profiles()
    found = next((built_in for built_in in listed if built_in["name"] == name), None)
    if found is None and not name.endswith(".toml"):
        names = ", ".join(built_in["name"] for built_in in listed)
        raise RequestError(f"found `{name}`; allowed: one of {names}, or a file (`*.toml`)")
    return found or json.loads(_engine.read_profile(name))


@app.command(help_epilogue=_help("vcpulab conformance", "vcpulab conformance my-vectors --format json"))
def conformance(
    path: Annotated[tuple[Path, ...], Parameter(negative=(), show_default=False)] = (),
    /,
    *,
    format: Format = "table",  # noqa: A002
    jobs: Jobs = 0,
) -> int:
    """Replay recorded decisions of real hypervisor schedulers; succeed only if every decision agrees.

    Args:
        path: Vectors, folders of them, or trees of folders; the bundled ones if left out.
        format: How to print.
        jobs: Vectors at a time; 0: one for each processor.
    """
    paths = [str(one) for one in path] or [str(vectors.bundled())]
    try:
        report = _engine.conformance(paths, files.at_least_zero("--jobs", jobs))
    except ValueError as error:
        raise RequestError(str(error)) from None
    parsed = json.loads(report)
    if format == "json":
        print(report)
    else:
        views.show_conformance(parsed)
    return FAILED if parsed["failed"] else DONE


@app.command(help_epilogue=_help("vcpulab bench --seconds 0.01"))
def bench(*, format: Format = "table", seconds: float = 0.5, out: Path | None = None) -> None:  # noqa: A002
    """Measure the engine on this machine, beside a bare event-queue loop measured in the same run.

    Args:
        format: How to print.
        seconds: Time for each figure.
        out: Also write the figures (JSON) to this file.
    """
    if not 0 < seconds <= 60:
        raise RequestError(f"--seconds: found `{seconds}`; allowed: more than 0, at most 60")
    from vcpulab.cli import demo as experiment

    figures = json.loads(_engine.bench(seconds)) | experiment.wall_time()
    report = json.dumps(figures, indent=2)
    if out is not None:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(report + "\n")
        except OSError as error:
            raise RequestError(f"{out}: {files.reason(error)}") from None
    if format == "json":
        print(report)
    else:
        views.show_bench(figures)


@app.command(help_epilogue=_help("vcpulab demo --out out/demo"))
def demo(*, out: Path = Path("out/demo"), jobs: Jobs = 0) -> None:
    """Repeat the web-server experiment of Cherkasova, Gupta and Vahdat 2007 and compare.

    Args:
        out: Directory for report.html.
        jobs: Replications at a time; 0: one for each processor.
    """
    from vcpulab.cli import demo as experiment

    path = experiment.run(out, jobs=files.at_least_zero("--jobs", jobs))
    print(f"report: {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit status."""
    try:
        return _call(arguments)
    except BrokenPipeError:
        # Whoever read our output has seen enough; keep Python from complaining when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        views.say("interrupted")
        return INTERRUPTED


def _call(arguments: Sequence[str] | None) -> int:
    try:
        status = app(
            arguments,
            console=Console(highlight=False),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        sys.stdout.flush()
    except CycloptsError as error:
        views.error(f"{error}\n  hint: vcpulab --help")
        return WRONG
    except ScenarioError as error:
        views.say(str(error))
        return WRONG
    except (RequestError, PluginError, NotRecordedError, RecordingError) as error:
        views.error(str(error))
        return WRONG
    except BrokenPipeError:
        raise
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        views.error(f"{name}{files.reason(error)}")
        return WRONG if isinstance(error, FileExistsError) else FAILED
    except (EngineError, MissingExtraError, MemoryError) as error:
        views.error(str(error) or "out of memory")
        return FAILED
    return status if isinstance(status, int) else DONE
