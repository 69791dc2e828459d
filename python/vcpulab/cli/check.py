"""`vcpulab check` and `vcpulab init`: scenario files. Nothing heavy is imported: editors run `check` at every save."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vcpulab._engine import starter
from vcpulab.cli import files, terminal
from vcpulab.cli.options import Force, command
from vcpulab.errors import RequestError, ScenarioError

DONE, WRONG = 0, 2


@command("check", "vcpulab check web.toml")
def check(file: Annotated[tuple[Path, ...], Parameter(negative=())], /) -> int:
    """Check scenario files; print every problem found in them.

    Args:
        file: Scenario files.
    """
    status = DONE
    for path in file:
        try:
            files.load(path)
        except (RequestError, ScenarioError) as error:
            terminal.say(str(error))
            status = WRONG
        else:
            print(f"{path}: ok")
    return status


@command("init", "vcpulab init web.toml")
def init(path: Path = Path("scenario.toml"), /, *, force: Force = False) -> None:
    """Write a commented scenario to start from.

    Args:
        path: File to write.
    """
    try:
        with path.open("w" if force else "x") as file:
            file.write(starter())
    except FileExistsError:
        raise files.exists_already(path) from None
    except OSError as error:
        raise RequestError(f"{path}: {files.reason(error)}") from None
    terminal.say(f"written to {path}\n  hint: vcpulab run {path}")
