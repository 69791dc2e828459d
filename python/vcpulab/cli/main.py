"""The command line. Data goes to stdout, everything else to stderr.

Exit status: 0 done, 1 the work failed, 2 the input or the usage is wrong, 130 interrupted, 143 by SIGTERM.

Nothing heavy is imported before the command that needs it: `vcpulab --help` takes its text from the table below.
"""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from vcpulab.cli import signals
from vcpulab.cli.streams import NoReader, printing_plainly

if TYPE_CHECKING:
    from cyclopts import App, CycloptsError

DONE, FAILED, WRONG = 0, 1, 2


class Command(NamedTuple):
    """A command."""

    name: str
    module: str | None
    """The module of `vcpulab.cli` that has the command; `None`: another package offers it, by an entry point."""
    summary: str
    """The first line of its help."""
    package: str = "vcpulab"
    """The package to install."""


EVIDENCE = "vcpulab-evidence"


COMMANDS = {
    "Run": [
        Command(
            "run", "run", "Run a scenario; print every metric as mean ± 95 % confidence interval over replications."
        ),
        Command("check", "check", "Check scenario files; print every problem found in them."),
        Command("init", "check", "Write a commented scenario to start from."),
        Command("sweep", "sweep", "Run a scenario at many points; runs that the store has are not repeated."),
        Command("query", "sweep", "Query a store of sweeps in SQL (that of Polars); nothing is changed."),
    ],
    "Advise": [
        Command("explain", "explain", "Explain what is slow: where its time goes, what holds it back, how to fix it."),
        Command("lint", "advise", "Find probable mistakes in scenario files, their cost, and their remedies."),
        Command("whatif", "advise", "Predict improvements and regressions by other settings, and how to set them."),
        Command("compare", "advise", "Compare two scenarios, or two runs: differences from the first to the second."),
        Command(
            "bounds", "bounds", "Bound the load that a host can carry, by queueing analysis, and name the bottleneck."
        ),
        Command("capacity", "capacity", "Find the largest load that keeps objectives, and the bottleneck beyond it."),
        Command("place", "place", "Place domains on as few equal hosts as keep objectives, judged by simulation."),
        Command("tune", "tune", "Search for the best setting of a scenario, and confirm it against the present one."),
        Command("manage", "manage", "Let a workload manager set caps or reservations; measure how steady it is."),
    ],
    "Real hosts": [
        Command("xl", "xl", "Commands to type on a Xen host, and the output that they would print."),
        Command("virsh", "xl", "Commands to type on a KVM host, and the output that they would print."),
        Command("monitor", "monitor", "Show a run as the monitors of a Xen host would have."),
        Command("top", "monitor", "Show a run as xentop does, with its options and keys, at the pace of its own time."),
        Command("collect", "collect", "Print a script that gathers what a host says about itself, or run it over SSH."),
        Command("import", "import_", "Read recordings of real hosts, and make scenarios of the files of other tools."),
        Command("export", "export", "Write traces in the formats of other tools."),
        Command("twin", "twin", "Make a scenario that behaves as a recorded host did, and score it."),
        Command(
            "validate",
            None,
            "Predict recorded hosts from what their threads or guests demand; fail beyond limits.",
            EVIDENCE,
        ),
    ],
    "Studies": [
        Command("study", None, "Re-run published studies, and compare simulated with published numbers.", EVIDENCE),
        Command(
            "demo", None, "Repeat the web-server experiment of Cherkasova, Gupta and Vahdat 2007 and compare.", EVIDENCE
        ),
    ],
    "Engine": [
        Command("schedulers", "engine", "List the schedulers, their generations and parameters."),
        Command("profile", "engine", "Hardware profiles: the cost of everything on a machine, and its source."),
        Command("schema", "engine", "Print the JSON schema of scenario files."),
        Command("conformance", "conformance", "Replay recorded decisions of real schedulers; fail on differences."),
        Command("bench", "engine", "Measure the engine on this machine, beside a bare event-queue loop."),
        Command("completion", "engine", "Print what a shell needs to complete commands, options and their values."),
    ],
}
"""Every command, by group."""

_ABOUT = "A laboratory for hypervisor CPU scheduling."
_EXAMPLES = ("vcpulab init web.toml", "vcpulab run web.toml")
_BY_NAME = {command.name: command for group in COMMANDS.values() for command in group}
_ENTRY_POINTS = "vcpulab.commands"
_KINDS = {str(int): "an integer", str(float): "a number"}
_OPTION_OF = {"changes": "set", "seconds": "budget"}
"""Arguments of the library's functions to options of commands, where their names differ."""
_HELP, _VERSION = ("--help", "-h"), "--version"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if sys.stderr is None:
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the end
        if sys.stdout is None:
            print("error: stdout is closed\n  hint: > /dev/null", file=sys.stderr)
            return FAILED
        with printing_plainly() as stdout:
            try:
                status = _main(given)
            except NoReader:
                status = DONE
            # A reader that closed the pipe is no error.
            if stdout.broken is None or isinstance(stdout.broken, BrokenPipeError):
                return status
            from vcpulab.cli import files, terminal

            terminal.error(f"stdout: {files.reason(stdout.broken)}")
            return status or FAILED
    except (KeyboardInterrupt, Exception) as error:
        if isinstance(error, Exception) and not signals.arrived():
            raise
        print(signals.MESSAGE, file=sys.stderr)
        return signals.status()


def _main(given: list[str]) -> int:
    if not given or given[0] in _HELP:
        print(overview())
    elif given[0] == _VERSION:
        from vcpulab import __version__

        print(__version__)
    elif given[0] not in _BY_NAME:
        return _wrong(_unknown(given[0]))
    elif _function(command := _BY_NAME[given[0]]) is None:
        hint = (
            "`make build` in a checkout installs it; with a wheel of vcpulab, install the evidence wheel of its release"
        )
        return _wrong(f"`vcpulab {command.name}` is in the package {command.package}\n  hint: {hint}")
    else:
        return _command(given)
    sys.stdout.flush()
    return DONE


def overview() -> str:
    """The help of the whole command line."""
    lines = ["Usage: vcpulab COMMAND", "", _ABOUT, ""]
    for group, commands in COMMANDS.items():
        lines += [f"{group}:", *(f"  {command.name:<12} {command.summary}" for command in commands), ""]
    lines += [
        "Options:",
        "  --help       Print this, or the help of a command.",
        "  --version    Print the version.",
        "",
    ]
    return "\n".join([*lines, "Examples:", "", *(f"    $ {example}" for example in _EXAMPLES)])


def app(name: str | None = None) -> "App":
    """All installed commands, or one; each is imported when it is looked up."""
    from cyclopts import App, Group

    from vcpulab.cli.options import examples

    root = App(
        name="vcpulab",
        help=_ABOUT,
        help_epilogue=examples(*_EXAMPLES),
        help_format="plaintext",
        version_flags=(),
        suppress_keyboard_interrupt=False,
    )
    for title, commands in COMMANDS.items():
        group = Group.create_ordered(title)
        for command in commands:
            if name in (None, command.name) and (function := _function(command)) is not None:
                root.command(function, name=command.name, group=group)
    return root


def _function(command: Command) -> str | None:
    """The module and the name of the function of a command; `None`: its package is not installed."""
    if command.module is None:
        from vcpulab.plugins import places

        return places(_ENTRY_POINTS).get(command.name)
    attribute = f"{command.name}_" if command.name == "import" else command.name
    return f"vcpulab.cli.{command.module}:{attribute}"


def _command(given: list[str]) -> int:
    """Runs a command; its errors become messages and exit statuses."""
    from cyclopts import App, CycloptsError

    from vcpulab.cli import outputs, terminal
    from vcpulab.errors import RecordingError, RequestError, ScenarioError, VcpulabError

    described = _BY_NAME[given[0]]
    root = app(described.name)
    try:
        command, bound, _ = root.parse_args(given, exit_on_error=False, print_error=False)
        if not isinstance(getattr(command, "__self__", None), App):
            bound.apply_defaults()
            outputs.check(command, bound.arguments)
        signals.working()
        status = command(*bound.args, **bound.kwargs)
        sys.stdout.flush()
        signals.check()
        return status if isinstance(status, int) else DONE
    except ScenarioError as error:
        terminal.say(str(error))
        return WRONG
    except CycloptsError as error:
        message, status = _misused(error), WRONG
    except RequestError as error:
        message, status = error.text(_option(root, given, error.field)), WRONG
    except VcpulabError as error:
        message, status = str(error), WRONG if isinstance(error, RecordingError) else FAILED
    except ImportError as error:
        if described.module is not None:
            raise
        hint = f"install vcpulab and {described.package} of one release, or from one checkout (`make build`)"
        message, status = f"`vcpulab {described.name}` cannot be loaded: {error}\n  hint: {hint}", WRONG
    except OSError as error:
        from vcpulab.cli.files import reason

        message = f"{error.filename}: {reason(error)}" if error.filename else reason(error)
        status = WRONG if isinstance(error, FileExistsError) else FAILED
    except MemoryError as error:
        message, status = str(error) or "out of memory", FAILED
    signals.check()
    terminal.error(message)
    return status


def _wrong(message: str) -> int:
    from vcpulab.cli import terminal

    terminal.error(message)
    return WRONG


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, _BY_NAME, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "vcpulab --help"
    kind = "option" if name.startswith("-") else "command"
    return f"there is no {kind} `{name}`\n  hint: {hint}"


def _misused(error: "CycloptsError") -> str:
    """The message for a command line that does not fit the command, in this package's words."""
    from cyclopts import CoercionError, MissingArgumentError, UnusedCliTokensError

    from vcpulab.errors import RequestError

    command = " ".join(["vcpulab", *(error.command_chain or ())])
    name = None if error.argument is None else _shown(error.argument.name)
    if isinstance(error.__cause__, RequestError):
        message = error.__cause__.text(name)
    elif isinstance(error, CoercionError) and error.token and error.argument:
        kinds = error.argument.get_choices() or [_KINDS.get(str(error.target_type), "another kind of value")]
        message = RequestError(found=error.token.value, allowed=", ".join(kinds)).text(name)
    elif isinstance(error, MissingArgumentError) and not error.tokens_so_far and not error.keyword:
        message = f"{name} is missing"
    elif isinstance(error, UnusedCliTokensError):
        message = f"too many arguments: `{' '.join(error.unused_tokens or ())}`"
    else:
        message = str(error)
    return f"{message}\n  hint: {command} --help"


def _option(root: "App", given: list[str], field: str | None) -> str | None:
    """The option or argument of the command for a field of a request."""
    if field is None:
        return None
    _, apps, _ = root.parse_commands(given)
    arguments = apps[-1].assemble_argument_collection()
    names = {argument.field_info.name: argument.name for argument in arguments}
    for name in (field, _OPTION_OF.get(field)):
        if name in names:
            return _shown(names[name])
    return field


def _shown(name: str) -> str:
    return name if name.startswith("-") else name.upper()
