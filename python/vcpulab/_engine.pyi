"""The engine. Times are integer nanoseconds of simulated time unless a name says otherwise."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Final, Literal, final

from vcpulab.policy import OwnPolicy
from vcpulab.scenario.problems import Problem

__all__ = [
    "CONFIDENCE",
    "FILE_BYTES_MAX",
    "NAME_CHARS_MAX",
    "Comparison",
    "Context",
    "LinuxRecording",
    "LiveSamples",
    "Metric",
    "Observed",
    "RecordingReader",
    "Rejected",
    "Results",
    "Scenario",
    "Stream",
    "Table",
    "addresses",
    "bench",
    "build_info",
    "compare",
    "comparison_lines",
    "conformance",
    "copies",
    "declare",
    "declared",
    "export_perfetto",
    "f_tail",
    "follow",
    "generation_of",
    "holm",
    "interval",
    "interval_text",
    "linux_rules",
    "listing",
    "looks",
    "measure",
    "median_interval",
    "name_rows",
    "names_in_short",
    "names_listed",
    "number_text",
    "p_text",
    "pace",
    "paired",
    "parse_profile",
    "profiles",
    "read_profile",
    "run",
    "run_managed",
    "run_many",
    "schedulers",
    "schema",
    "starter",
    "starved_line",
    "t_cdf",
    "t_quantile",
    "tables",
    "verdict_text",
    "without_number",
    "written",
]

_FindPolicy = Callable[[str], OwnPolicy | list[str]]
"""Finds a scheduler that is not built in; if there is none of that name, answers with those that packages offer."""
FILE_BYTES_MAX: Final[int]
"""Longest scenario file."""
NAME_CHARS_MAX: Final[int]
"""Longest name in a scenario."""
CONFIDENCE: Final[float]
"""The confidence of intervals; a difference is significant if its p value is at most the rest."""
_Interval = tuple[float, float | None, int, float | None]
"""An interval: mean, half width, number of values, standard error."""
_Verdict = Literal["improves", "regresses", "higher", "lower", "same", "unclear"]

class Rejected(Exception):  # noqa: N818 - a refusal is no error of the policy
    """Raised by a policy's hook that refuses its values."""

@final
class Context:
    """The host as a policy sees it, and the requests that a policy may make.

    pCPUs, vCPUs, domains and timers are integers, numbered from 0; the idle vCPU of pCPU p has number p, those of
    domains follow. A number of nothing raises `IndexError`; a request that cannot be met, or for what is in another CPU
    pool, `ValueError`.
    """

    @property
    def now(self) -> int:
        """The time, ns since the host started."""
    @property
    def pcpus(self) -> tuple[int, ...]:
        """The pCPUs of this scheduler, ascending."""
    @property
    def guest_vcpus(self) -> tuple[int, ...]:
        """The vCPUs of the domains in this scheduler's CPU pool, in order of creation."""
    @property
    def executing(self) -> int:
        """The pCPU on which the code at hand executes."""

    def socket(self, p: int) -> int:
        """The socket of a pCPU."""
    def core(self, p: int) -> int:
        """The core of a pCPU, counted over the whole host."""
    def node(self, p: int) -> int:
        """The NUMA node of a pCPU."""
    def current(self, p: int) -> int:
        """The vCPU that a pCPU executes; during a decision still the outgoing vCPU."""
    def idle(self, p: int) -> int:
        """The idle vCPU of a pCPU."""
    def is_idle(self, v: int) -> bool:
        """Whether a vCPU is an idle vCPU."""
    def is_current(self, v: int) -> bool:
        """Whether a vCPU runs now, on its processor."""
    def processor(self, v: int) -> int:
        """The pCPU that a vCPU is assigned to: where it runs, ran last, or has been placed."""
    def runnable(self, v: int) -> bool:
        """Whether a vCPU is neither blocked, paused, parked nor migrating."""
    def affinity(self, v: int) -> tuple[int, ...]:
        """The pCPUs that a vCPU may run on, ascending."""
    def soft_affinity(self, v: int) -> tuple[int, ...] | None:
        """The pCPUs that a vCPU prefers, ascending, if any were given."""
    def dom(self, v: int) -> int:
        """The domain of a vCPU; idle vCPUs have none."""
    def vcpus_of(self, d: int) -> tuple[int, ...]:
        """The vCPUs of a domain, in order."""
    def domain_number(self, d: int) -> int:
        """A domain's number as an administrator sees it (0: Dom0)."""
    def name(self, v: int) -> tuple[int, int]:
        """Domain number and vCPU number in the domain; (-1, p) for the idle vCPU of pCPU p."""
    def switched_at(self, v: int) -> int:
        """The time of a vCPU's last switch, in or out, ns since the host started (0: no switch yet)."""
    def running_ns(self, v: int) -> int:
        """The time that a vCPU has run up to now, ns."""
    def raise_reschedule(self, p: int) -> None:
        """Asks a pCPU of this scheduler to decide, once the event at hand has been handled."""
    def set_processor(self, v: int, p: int) -> None:
        """Assigns a vCPU, not running, to a pCPU of this scheduler."""
    def start_migration(self, v: int) -> None:
        """Asks for a running vCPU to be moved: once it has stopped, it goes to the pCPU that `pick` says."""
    def park(self, v: int) -> None:
        """Makes a vCPU not runnable until it is unparked, as a cap does. Parking twice changes nothing.

        No hook is called: a policy that parks the running vCPU asks its pCPU to reschedule.
        """
    def unpark(self, v: int) -> None:
        """Ends the parking of a vCPU, if it is parked.

        No hook is called: if the vCPU is runnable now, the policy treats it as one that wakes.
        """
    def is_parked(self, v: int) -> bool:
        """Whether the policy has parked a vCPU."""
    def new_timer(self, p: int, token: int = 0) -> int:
        """Makes a timer, stopped; when due, the hook `timer` gets the token."""
    def set_timer(self, timer: int, at: int) -> None:
        """Sets or moves a timer, ns since the host started; a time already past counts as now."""
    def stop_timer(self, timer: int) -> None:
        """Stops a timer."""
    def timer_expiry(self, timer: int) -> int | None:
        """The time at which a timer is due, ns since the host started; `None`: stopped."""

@final
class Scenario:
    """A checked scenario; immutable."""

    @staticmethod
    def parse(
        text: str, file: str = "<string>", folder: str | PathLike[str] = ..., policies: _FindPolicy | None = None
    ) -> Scenario: ...
    @staticmethod
    def parse_bytes(
        data: bytes, file: str = "<string>", folder: str | PathLike[str] = ..., policies: _FindPolicy | None = None
    ) -> Scenario: ...
    @staticmethod
    def changed(
        text: str,
        edits: str,
        file: str = "<scenario>",
        folder: str | PathLike[str] = ...,
        policies: _FindPolicy | None = None,
        *,
        new_names: bool = False,
    ) -> tuple[Scenario, str, list[tuple[list[str], int, str]], list[int], list[list[str]]]:
        """The scenario of a text with other settings; comments, order and formatting of the text stay.

        Args:
            text: the text of a scenario file.
            edits: JSON: a list of `[address, value]`, each address a list of steps; null removes the field.
            file: the name of the scenario in messages.
            folder: the folder of the files that it names.
            policies: the source of schedulers that are not built in.
            new_names: whether a full path may add a table.

        Returns:
            The scenario, its text, the paths that are set, each with the number of its edit and its value in JSON, the
            numbers of the edits that remove nothing, and the paths left out.

        Raises:
            ScenarioError: the result is no valid scenario; `edits` has for each problem the number of its edit.
            ChangeError: an address leads nowhere, or the value cannot be there.
        """
    def with_run(self, *, seed: int | None = None, replications: int | None = None) -> Scenario: ...
    def to_toml(self) -> str: ...
    def to_json(self) -> str: ...
    def apps(self) -> list[tuple[str, list[str], str, int, str, str | None, bool]]:
        """The applications and clients: name, other names, domain, position, kind, client, whether work is assumed."""
    @property
    def policies(self) -> dict[str, OwnPolicy]: ...
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
class RecordingReader:
    """Reads a recording piece by piece."""

    def __new__(
        cls,
        format: str,  # noqa: A002
        *,
        cpu_mhz: float | None = None,
        threads: Mapping[int, tuple[int, int]] = ...,
        window_ns: tuple[int, int] | None = None,
        events: str | PathLike[str] | None = None,
    ) -> RecordingReader:
        """Reads `xentrace` or `sched-text`; `threads` are those that are vCPUs, with domain and number.

        `window_ns` is from when to before when to look, since the first record; times then count from its beginning.
        `events` is an Arrow file to write, in the columns of `Trace.events`.
        """
    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
    def finish(self) -> str:
        """Ends the recording; its summary as JSON."""

@final
class LinuxRecording:
    """A recording that was read."""

    def __new__(
        cls, *, experiment: str, threads: str, tunables: str, trace: str, expected: str | None = None
    ) -> LinuxRecording:
        """Reads it, of the texts of its files."""
    @property
    def work(self) -> str:
        """The threads and their work, as JSON: the same for recordings that differ only in settings."""
    @property
    def refusal(self) -> str | None:
        """The reason why the recording can be neither replayed nor run; `None`: it can be both."""
    def replay(self) -> str:
        """Replays the recording step by step; the verdict as JSON."""
    def compare(self, setting: LinuxRecording | None = None) -> str:
        """Runs what its threads demand, in its own setting or another's, beside what was recorded there; as JSON."""

@final
class Table:
    """An Arrow table that any frame library can take over without copying."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def parts(self) -> list[Table]:
        """The table in parts, each of which is read when it is taken over: not all of it is in memory."""

@final
class Results:
    """The results of a run."""

    @property
    def untraced(self) -> int:
        """Decisions for which the trace had no room."""
    @property
    def rejected_actions(self) -> int:
        """The number of actions that were refused, those in the warm-up included."""
    @property
    def rejected(self) -> list[tuple[int, str, str | None]]:
        """The first refused actions: the time since the start of the run, ns, the action's name, and its domain."""
    @property
    def not_attributed(self) -> str | None:
        """The reason why `waits` is empty, if it was not measured."""

    def domains(self) -> Table: ...
    def vcpus(self) -> Table: ...
    def pcpus(self) -> Table: ...
    def apps(self) -> Table: ...
    def io(self) -> Table: ...
    def threads(self) -> Table: ...
    def vms(self) -> Table: ...
    def waits(self) -> Table: ...
    def wakeups(self) -> Table: ...
    def wakeup_buckets(self) -> Table: ...
    def samples(self) -> Table: ...
    def vcpu_samples(self) -> Table: ...
    def pcpu_samples(self) -> Table: ...
    def app_samples(self) -> Table: ...
    def profile(self) -> Table: ...
    def trace(self) -> Table: ...

@final
class LiveSamples:
    """Samples of one replication of a run while it lasts."""

    def __new__(cls, replication: int) -> LiveSamples: ...
    def take(self) -> tuple[Table, Table]:
        """Takes the samples since they were last taken: of domains, and of vCPUs."""

def run(
    scenario: Scenario,
    *,
    jobs: int = 0,
    trace: bool = False,
    waits: bool = True,
    events: str | PathLike[str] | None = None,
    jtl: tuple[str | PathLike[str], bool, bool] | None = None,
    live: LiveSamples | None = None,
    progress: Callable[[float], bool | None] | None = None,
) -> Results:
    """Runs every replication of a scenario: under policies of the registry in parallel, under others in turn.

    `jtl` is how to log requests: the directory; as XML?; also what is over before the warm-up is?

    Raises:
        Interrupted: as of `run_many`.
    """

def run_many(
    scenarios: Sequence[Scenario],
    *,
    jobs: int = 0,
    waits: bool = True,
    only: Sequence[int] | None = None,
    progress: Callable[[float], bool | None] | None = None,
) -> list[Results]:
    """Runs every replication of several scenarios, `jobs` at a time (0: as many as there are processors).

    `only` has the number, from 0, of the one replication to run of each scenario.

    Raises:
        ValueError: `only` does not have a number for each scenario.
        Interrupted: it was cancelled when each had replications: a list of how many, from the first on, and results.
    """

def pace() -> tuple[int, int, str]:
    """Progress of this process's runs: number of events, simulated time (ns), and the cause of most recent events.

    The cause is that of late, in the words of the scenario; empty: not known yet.
    """

@final
class Stream:
    """Runs of scenarios that go on, in the order in which they were begun, while the results of others are looked at.

    With one job, and under a policy in Python, a scenario runs when it is taken.
    """

    def __new__(cls, *, jobs: int = 0, waits: bool = True) -> Stream: ...
    @property
    def jobs(self) -> int:
        """The number of runs that execute at a time."""
    def begin(self, scenario: Scenario) -> int:
        """Begins the run of a scenario, and numbers it, from 0."""
    def take(self, number: int, progress: Callable[[float], bool | None] | None = None) -> Results:
        """The results of a run, once it is over; they can be taken once. A run cancelled meanwhile is called off."""
    def call_off(self, number: int) -> None:
        """Calls off a run: it ends, or never starts, and its results are dropped."""

def run_managed(
    scenario: Scenario,
    manager: Callable[[int, Table], Mapping[str, Mapping[str, int]]],
    *,
    waits: bool = True,
    progress: Callable[[float], bool | None] | None = None,
) -> Results:
    """Runs every replication, one after the other in this thread, while a manager sets parameters.

    At each sample it is called with the replication and the sample of every domain (columns as in `samples`), and
    answers with what is to be set now: domain to parameter to value.

    Raises:
        Interrupted: as of `run_many`.
    """

def follow(
    scenario: Scenario,
    client: str,
    quantiles: Sequence[float],
    *,
    replication: int = 0,
    progress: Callable[[float], bool | None] | None = None,
) -> Table:
    """Follows single requests of a client, at these quantiles of its response times, through one replication.

    Raises:
        ValueError: there is no such client.
        EngineError: the run failed.
    """

def export_perfetto(
    events: str | PathLike[str],
    names: Mapping[int, str],
    out: str | PathLike[str],
    *,
    places: Sequence[Sequence[str]] = ...,
    slices: Sequence[tuple[str, int, int, str]] = ...,
) -> None:
    """Writes the recorded events of one replication as a Perfetto trace.

    Args:
        events: the file.
        names: the domains' by their numbers.
        out: the file to write.
        places: by pCPU: the groups that it is in, the largest first; empty on a flat host.
        slices: on tracks of their own: the track, begin and end in ns, and the name of each.
    """

def schedulers() -> str:
    """Every scheduler with its generations and parameters, as JSON."""

def linux_rules(
    release: tuple[int, int, int | None] | None,
    *,
    base_slice: bool | None = None,
    hrtick: bool | None = None,
    cgroup_mode: bool | None = None,
) -> tuple[str, str, str]:
    """The scheduler and the generation of a kernel's fair class, and the evidence for them.

    Args:
        release: the numbers of the kernel's release; the last is `None` where only the series is known.
        base_slice: whether the file `base_slice_ns` exists.
        hrtick: whether the feature `HRTICK` is on.
        cgroup_mode: whether the file `cgroup_mode` exists.
    """

def generation_of(name: str, release: str | None = None) -> str | None:
    """The generation that a release of a scheduler has, or the scheduler where no release is named."""

def declare(policy: OwnPolicy) -> str:
    """Declares a policy from outside the registry: the policy as JSON like an item of `schedulers`."""

def declared(name: str, generation: str | None = None) -> str | None:
    """The policy from outside the registry that was last found under a name, as JSON like an item of `schedulers`."""

def schema() -> str:
    """The JSON schema of scenario files."""

def starter() -> str:
    """A commented scenario to start from."""

def addresses(text: str, address: Sequence[str]) -> list[list[str]]:
    """The full paths, as lists of steps, of the settings that an address means in a scenario's text.

    Raises:
        ChangeError: no or several things have that name.
    """

def written(text: str) -> str:
    """The tables of a scenario's text, with all copies of those with a `count` written out, as JSON.

    Raises:
        ValueError: it is not valid TOML.
    """

def copies(text: str) -> list[tuple[str, str, list[str]]]:
    """The tables of a scenario's text that stand for several: kind, name, names of the copies."""

def tables(text: str) -> str:
    """The tables of a TOML document, in their order, as JSON.

    Raises:
        ValueError: it is not valid TOML.
    """

def profiles() -> str:
    """Every hardware profile with its constants and their sources, as JSON."""

def parse_profile(text: str, file: str = "<string>") -> str:
    """A checked hardware profile as JSON; `file` is its name in messages.

    Raises:
        ScenarioError: everything that is wrong with it.
    """

def read_profile(path: str | PathLike[str]) -> str:
    """A checked hardware profile from a file of its own, as JSON.

    Raises:
        ScenarioError: it cannot be read, or everything that is wrong with it.
    """

def measure() -> str:
    """Measures the constants of a hardware profile that this machine lets a program measure; JSON."""

def conformance(paths: list[str], jobs: int = 0) -> str:
    """Replays the vectors at or below these paths; the report as JSON.

    Raises:
        ValueError: every file that cannot be read.
    """

def listing(scenario: Scenario, at: str | None = None) -> str:
    """The domains on the host at a time of the scenario's first replication (at its end if left out), as JSON.

    Raises:
        ValueError: there is no such time in the run.
        EngineError: the run failed.
    """

def bench(seconds: float = 1.0) -> str:
    """Measures the engine, about `seconds` for each metric; JSON, name to value."""

def build_info() -> dict[str, str]:
    """The build: version, profile, architecture, system."""

@final
class Metric:
    """A metric of a thing, as comparisons take it."""

    def __new__(
        cls,
        name: str,
        kind: str,
        domain: str,
        unit: str,
        better: Literal["higher", "lower"] | None = None,
        whole: float | None = None,
        undefined_is: str = ...,
        undefined_is_worst: bool = False,
        accumulates: bool = False,
        in_question: bool = False,
        begun: float | None = None,
    ) -> Metric:
        """Describes a metric.

        Args:
            name: its address, such as `http.response_p99`.
            kind: the kind of the thing: `app`, `domain`, `io`, `host` or `pcpu`.
            domain: the domain that it concerns; empty: the host.
            unit: the unit, as it is shown.
            better: the good direction.
            whole: the whole that differences are a fraction of.
            undefined_is: the reason for a missing value.
            undefined_is_worst: a missing value is worse than any value.
            accumulates: the value grows with the measured time.
            in_question: the question is about this metric.
            begun: of failures, the units of work that were begun before, per replication.
        """

@final
class Comparison:
    """A metric before and after, judged."""

    def __new__(
        cls,
        metric: Metric,
        before: _Interval | None,
        after: _Interval | None,
        difference: _Interval | None,
        p: float | None,
        verdict: _Verdict,
        before_undefined: str | None = None,
        after_undefined: str | None = None,
    ) -> Comparison:
        """Takes what `compare` finds out."""
    @property
    def before(self) -> _Interval | None:
        """The mean before."""
    @property
    def after(self) -> _Interval | None:
        """The mean after."""
    @property
    def difference(self) -> _Interval | None:
        """After minus before, over the replications that have both."""
    @property
    def p(self) -> float | None:
        """The corrected probability of such a difference if there were none."""
    @property
    def verdict(self) -> _Verdict:
        """The verdict."""
    @property
    def before_undefined(self) -> str | None:
        """The reason for no value before."""
    @property
    def after_undefined(self) -> str | None:
        """The reason for no value after."""
    @property
    def percent(self) -> float | None:
        """The difference in % of the value before."""
    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval of the difference, in % of the value before."""
    @property
    def width(self) -> float | None:
        """Half the width of the interval of the difference, as a fraction of the value before."""
    @property
    def size(self) -> float:
        """The size of the difference, in % of the metric's whole if it has one, else of the value before."""
    @property
    def is_large(self) -> bool:
        """Whether the change is large in comparison with the value before."""
    @property
    def may_regress(self) -> bool:
        """Whether the difference is not significant, but perhaps a large harm."""
    @property
    def may_improve(self) -> bool:
        """Whether the difference is not significant, but perhaps a large gain."""
    @property
    def matters(self) -> bool:
        """Whether the metric improves or regresses by more than a negligible amount."""
    @property
    def rank(self) -> tuple[int, bool, float]:
        """The key of the order in which comparisons are told."""
    @property
    def change(self) -> str:
        """The change, in words."""
    @property
    def in_doubt(self) -> str:
        """The values of a change that is not certain, in words."""
    @property
    def unit(self) -> str:
        """The unit; of failures also the units of work that were begun before."""
    @property
    def percent_text(self) -> str:
        """The difference in %, with its sign."""
    @property
    def difference_text(self) -> str:
        """The difference and its interval, with its sign."""
    @property
    def verdict_text(self) -> str:
        """The verdict as it is shown."""

def compare(
    metrics: Sequence[tuple[Metric, Sequence[float | None], Sequence[float | None]]],
    lengths: tuple[float, float],
    looks: int,
) -> list[Comparison | None]:
    """Metrics of two runs, compared; `None` for each without a pair of values.

    Args:
        metrics: each with its values before and after, by replication.
        lengths: the measured time of both runs, s.
        looks: how often the runs may be looked at.
    """

def comparison_lines(comparisons: Sequence[Comparison]) -> list[str]:
    """Comparisons in words, line by line."""

@final
class Observed:
    """A run whose starving domains are asked for. Each is a tuple: name, reason."""

    def __new__(
        cls,
        scenario: Scenario,
        vcpus: tuple[Sequence[str], Sequence[int], Sequence[int], Sequence[int], Sequence[int], Sequence[int]],
        domains: tuple[Sequence[str], Sequence[str]],
        apps: tuple[Sequence[str], Sequence[int], Sequence[float], Sequence[int]],
    ) -> Observed:
        """The run of a scenario, with columns of its tables over all replications.

        Args:
            scenario: the scenario.
            vcpus: `domain`, `vcpu`, `elapsed_ns`, `running_ns`, `runnable_ns`, `offline_ns`.
            domains: `domain`, `pool`.
            apps: `domain`, `app`, `throughput_per_s`, `completed`.
        """
    def starved(self) -> list[tuple[str, str]]:
        """The domains that starve."""
    def until(self, after: Observed) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[tuple[str, str]]]:
        """The domains that starve in a run after this one alone, in both, and in this one alone."""

def starved_line(label: str, starved: Sequence[tuple[str, str]]) -> str:
    """Starving domains in a line; numbered domains are shown with the first one's reason."""

def without_number(name: str) -> str:
    """The name with a `#` for its number."""

def name_rows(names: Sequence[str]) -> list[list[str]]:
    """Three or more names that differ in their number alone as a row; each other name by itself."""

def names_listed(names: Sequence[str]) -> list[str]:
    """All names, with rows of numbered ones by their ends."""

def names_in_short(names: Sequence[str]) -> str:
    """Several names in a few words."""

def verdict_text(verdict: _Verdict) -> str:
    """A verdict as it is shown."""

def interval(values: Sequence[float | None]) -> _Interval | None:
    """The mean of the values that there are, with its interval."""

def median_interval(values: Sequence[float]) -> _Interval | None:
    """The median of values, with its interval."""

def interval_text(interval: _Interval) -> str:
    """An interval as text."""

def number_text(value: float) -> str:
    """A value with three significant digits."""

def p_text(p: float) -> str:
    """A p value with three decimals."""

def paired(first: Sequence[float], second: Sequence[float]) -> tuple[_Interval, float | None] | None:
    """Student's test of paired differences, first minus second: the interval, and p."""

def looks(stopping: Literal["stated", "decided", "timed"]) -> int:
    """The largest number of looks at two runs.

    Args:
        stopping: the choice of the number of replications: stated before the runs, doubled while a large harm is
            uncertain (decided), or doubled while time is left, too (timed).
    """

def holm(ps: Sequence[float]) -> list[float]:
    """P values corrected by Holm's method."""

def t_cdf(degrees: float, t: float) -> float:
    """The probability that Student's t is at most `t`."""

def t_quantile(degrees: float, probability: float) -> float:
    """A quantile of Student's t."""

def f_tail(numerator: float, denominator: float, f: float) -> float:
    """The probability that Fisher's F with these degrees of freedom exceeds `f`."""
