"""`vcpulab xl`: commands to type on a Xen host, and the output that they would print."""

import json
from dataclasses import asdict
from pathlib import Path

from vcpulab.cli import files
from vcpulab.cli.options import Flag, TableOrJson, TypedFor, command, group
from vcpulab.errors import RequestError, ScenarioError
from vcpulab.show.as_json import as_json

xl = group(
    "xl",
    "Commands to type on a Xen host, and the output that they would print.",
    "vcpulab xl commands web.toml",
    "vcpulab xl list web.toml",
)


@command("commands", "vcpulab xl commands web.toml", "vcpulab xl commands web.toml --toolstack xapi", of=xl)
def commands(file: Path, /, *, toolstack: TypedFor = None, format: TableOrJson = "table") -> None:
    """Print the commands that set up a scenario on a real host and keep it so, and what no command does.

    The table is a shell script; JSON has each step with its kind and time.

    Args:
        file: Scenario file.
    """
    from vcpulab.cli import page, views
    from vcpulab.hypervisors.commands import commands as commands_for

    steps = commands_for(files.load(file), toolstack)
    if format == "json":
        print(as_json([asdict(step) for step in steps]))
    else:
        page.print_pieces(piece for one in views.commands(steps) for piece in one)


@command(
    "list", "vcpulab xl list web.toml", "vcpulab xl list web.toml --at 5s", "vcpulab xl list web.toml --vcpus", of=xl
)
def list_(file: Path, /, *, at: str | None = None, vcpus: Flag = False, format: TableOrJson = "table") -> None:
    """Run a scenario up to a time, and print the domains on the host then, as `xl list` would.

    Args:
        file: Scenario file.
        at: Time since the host started, warm-up included, just before the events of that very time; the end if left
            out.
        vcpus: Every vCPU, as `xl vcpu-list` would.
    """
    from vcpulab._engine import listing
    from vcpulab.cli import views

    try:
        report = listing(files.load(file)._engine, at)
    except ScenarioError:
        raise
    except ValueError as error:
        raise RequestError(f"found `{at}`; {error}", field="at") from None
    if format == "json":
        print(report)
    elif vcpus:
        views.show_vcpu_list(json.loads(report))
    else:
        views.show_list(json.loads(report))
