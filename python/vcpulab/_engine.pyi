"""The engine. Times are integer nanoseconds of simulated time unless a name says otherwise."""

from collections.abc import Callable
from typing import final

from vcpulab.problems import Problem

__all__ = [
    "EngineError",
    "Results",
    "Scenario",
    "ScenarioError",
    "Table",
    "bench",
    "build_info",
    "conformance",
    "profiles",
    "run",
    "schedulers",
    "schema",
    "starter",
    "tables",
]

class ScenarioError(ValueError):
    """A scenario that cannot run; its text says everything that is wrong."""

    problems: list[Problem]

class EngineError(RuntimeError):
    """A run that failed."""

@final
class Scenario:
    """A checked scenario; immutable."""

    @staticmethod
    def parse(text: str, file: str = "<string>") -> Scenario: ...
    @staticmethod
    def parse_bytes(data: bytes, file: str = "<string>") -> Scenario: ...
    def with_run(self, *, seed: int | None = None, replications: int | None = None) -> Scenario: ...
    def to_toml(self) -> str: ...
    @property
    def warnings(self) -> list[Problem]: ...
    @property
    def name(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def replications(self) -> int: ...
    @property
    def duration_ns(self) -> int: ...
    @property
    def warmup_ns(self) -> int: ...

@final
class Table:
    """A result table, for any library that reads Arrow streams."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

@final
class Results:
    """What a run leaves behind: one row for each replication and thing."""

    @property
    def untraced(self) -> int:
        """Decisions for which the trace had no room."""
    @property
    def rejected_actions(self) -> int:
        """Actions whose values the scheduler refused."""

    def domains(self) -> Table: ...
    def vcpus(self) -> Table: ...
    def pcpus(self) -> Table: ...
    def apps(self) -> Table: ...
    def trace(self) -> Table: ...

def run(
    scenario: Scenario,
    *,
    jobs: int = 0,
    trace: bool = False,
    progress: Callable[[float], bool] | None = None,
) -> Results:
    """Runs every replication, `jobs` at a time (0: as many as there are processors)."""

def schedulers() -> str:
    """Every scheduler with its generations and parameters, as JSON."""

def schema() -> str:
    """The JSON schema of scenario files."""

def starter() -> str:
    """A commented scenario to start from (TOML)."""

def tables(text: str) -> str:
    """The tables of a TOML document, in their order, as JSON.

    Raises:
        ValueError: it is not valid TOML.
    """

def profiles() -> str:
    """Every hardware profile with its constants and their sources, as JSON."""

def conformance(paths: list[str], jobs: int = 0) -> str:
    """Replays vectors, `jobs` at a time (0: as many as there are processors); the report as JSON.

    Raises:
        ValueError: every file that cannot be read.
    """

def bench(seconds: float = 1.0) -> str:
    """Measures the engine, about `seconds` for each figure; JSON, name to figure."""

def build_info() -> dict[str, str]:
    """What was built: version, profile, architecture, system."""
