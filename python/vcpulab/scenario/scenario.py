"""Scenarios: loaded from files, built in code, changed field by field; always checked by the engine."""

import json
import re
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeAlias, TypeVar

import tomli_w

from vcpulab import _engine
from vcpulab._arguments import check_optional
from vcpulab._files import safe_open
from vcpulab.errors import ChangeError, RequestError
from vcpulab.policy import OwnPolicy, Policies
from vcpulab.scenario.model import Action, Client, Domain, Host, Model, Pool
from vcpulab.scenario.names import did_you_mean, shortlist
from vcpulab.scenario.problems import Problem
from vcpulab.scenario.table import FrozenDict, frozen, value_at

AT_BOOT = "idle_tick_at"
"""The field of a domain that is set when the host boots, not by an administrator."""
_Kept = TypeVar("_Kept")
_Kind = TypeVar("_Kind", bound="Scenario")
_STEP = re.compile(r'"(?P<quoted>[^"]*)"|(?P<bare>[^."]+)')


class Scenario:
    """A checked scenario. It cannot be changed, but `change` makes another one.

    Examples:
        >>> scenario = Scenario.from_dict({
        ...     "name": "two hogs",
        ...     "run": {"duration": "1s"},
        ...     "host": {"profile": "exact", "pcpus": 1, "scheduler": "credit"},
        ...     "domain": {
        ...         "a": {"app": [{"kind": "hog"}]},
        ...         "b": {"weight": 512, "app": [{"kind": "hog"}]},
        ...     },
        ... })
        >>> scenario
        <Scenario "two hogs": 1 s, seed 1, 1 replication>
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Reads a scenario file. Where it names a policy in a Python file, that file is executed.

        Args:
            path: the path of the file; for scenarios without a file use `from_toml` and `from_dict`.

        Raises:
            ScenarioError: all errors of the scenario.
            RequestError: the argument is no path.
            OSError: the file cannot be read.
        """
        if not isinstance(path, str | PathLike) or (isinstance(path, str) and "\n" in path):
            shown = f"{type(path).__name__}{' of several lines' if isinstance(path, str) else ''}"
            hint = "Scenario.from_toml reads a text, Scenario.from_dict tables"
            raise RequestError(field="path", found=shown, allowed="the path of a scenario file", hint=hint)
        with safe_open.opened(path) as file:
            # One byte more than the engine accepts: an endless file is refused like any that is too long.
            data = file.read(_engine.FILE_BYTES_MAX + 1)
        folder = Path(path).parent
        policies = Policies(folder)
        self._set(_engine.Scenario.parse_bytes(data, fspath(path), folder, policies), data.decode(), folder, policies)

    def _set(self, engine: _engine.Scenario, text: str, folder: Path, policies: Policies) -> None:
        self._engine = engine
        self._text = text
        self._folder = folder
        self._policies = policies
        self._kept: dict[object, Any] = {}

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Reads a scenario file: the same as `Scenario(path)`."""
        return cls(path)

    @classmethod
    def from_toml(
        cls, text: str, file: str = "<string>", *, folder: Path | None = None, policies: Policies | None = None
    ) -> Self:
        """Reads a scenario.

        Args:
            text: the text of a scenario file.
            file: the name of the scenario in messages.
            folder: the folder in which files named by the scenario are looked for.
            policies: the source of schedulers that are not built in; if left out, Python files (which are executed)
                and installed packages.

        Raises:
            ScenarioError: all errors of the scenario.

        Examples:
            >>> Scenario.from_toml("nmae = 'x'")
            Traceback (most recent call last):
            ...
            vcpulab.errors.ScenarioError: <string>:1:1: ...
        """
        if not isinstance(text, str):
            raise RequestError(field="text", found=type(text).__name__, allowed="the text of a scenario file")
        folder = folder or Path()
        policies = policies or Policies(folder)
        made = cls.__new__(cls)
        made._set(_engine.Scenario.parse(text, file, folder, policies), text, folder, policies)
        return made

    @classmethod
    def without(cls, text: str, fields: Iterable[str], file: str = "<string>", *, folder: Path | None = None) -> Self:
        """Reads a scenario without some fields, given as dotted paths.

        Raises:
            ScenarioError: all other errors of the scenario.
        """
        folder = folder or Path()
        removed = [(field, None) for field in fields]
        return _changed(cls, text, removed, file=file, folder=folder, policies=Policies(folder)).scenario

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        """Builds a scenario from tables, named as in a scenario file.

        Raises:
            ScenarioError: all errors of the scenario.
            RequestError: a value is of a type that no scenario file has.
        """
        if not isinstance(document, Mapping):
            raise RequestError(field="document", found=type(document).__name__, allowed="tables, as in a scenario file")
        try:
            text = tomli_w.dumps(document)
        except (TypeError, ValueError, AttributeError, RecursionError) as error:
            raise RequestError(str(error), field="document", allowed=_VALUES) from None
        return cls.from_toml(text, "<scenario>")

    @classmethod
    def starter(cls) -> Self:
        """The scenario that `vcpulab init` writes.

        Examples:
            >>> Scenario.starter().name
            'a web server beside a batch machine'
        """
        return cls.from_toml(_engine.starter(), "<starter>")

    def change(self, changes: Mapping[str, Any]) -> Self:
        """A copy of the scenario with other values in some fields.

        Args:
            changes: path to value, as in a scenario file; `None` removes the field, so that its default applies.
                `web.weight` may stand for `domain.web.weight`, and `batch*.weight` for the weight of every domain whose
                name matches. Items of a list are counted from 0 (`domain.web.app.0.kind`), and the number after the
                last item adds one; names with dots are quoted. Comments, order and formatting of the text stay. A
                change of all copies of a table with a `count` is written there; a change of one copy, in a table of its
                name. A scheduler may be a subclass of `vcpulab.Policy`. With another scheduler, parameters of the old
                one are removed, also from a domain that gets another pool; with another scheduler of the host, which
                requires a reboot, so is `idle_tick_at`.

        Raises:
            ScenarioError: all errors of the result.
            ChangeError: a path leads nowhere or through a value without fields, or removes a field that does not exist,
                or a value is of a type that no scenario file has.
            RequestError: the changes are no mapping.

        Examples:
            >>> heavier = Scenario.starter().change({"web.weight": 512, "seed": 7})
            >>> heavier.domains["web"].params["weight"], heavier.seed
            (512, 7)
        """
        if not isinstance(changes, Mapping):
            raise RequestError(field="changes", found=type(changes).__name__, allowed="a mapping of paths to values")
        edited = self._changed(list(changes.items()), new_names=True)
        for path in edited.absent:
            raise ChangeError(f"`{path}` cannot be removed: the scenario does not have this field")
        return edited.scenario

    def changed(self, changes: Iterable[tuple[str, Any]], *, new_names: bool = False) -> "Changed":
        """The scenario with other values in some fields, as `change` makes it, and the fields that differ.

        Args:
            changes: paths and values, as for `change`. A field that a pattern sets may be set again later, and one that
                is removed may be absent.
            new_names: whether a full path may add a table; if not, the name of a table that does not exist is an error.

        Raises:
            ScenarioError: all errors of the result; `edits` has the number of the change at fault for each problem.
            ChangeError: as for `change`; `edit` is the number of the change.
        """
        edited = self._changed(list(changes), new_names=new_names)
        return Changed(edited.scenario, edited.values, edited.left_out)

    def addressed(self, path: str) -> list[str]:
        """The full paths of the settings that a path means, which `change` would set: one, or one for each name.

        Raises:
            ChangeError: no or several things have that name.

        Examples:
            >>> Scenario.starter().addressed("web.weight"), Scenario.starter().addressed("*b*.cap")
            (['domain.web.weight'], ['domain.web.cap', 'domain.batch.cap'])
        """
        try:
            paths = _engine.addresses(self._text, split(checked_path(path)))
        except ChangeError as error:
            raise _explained(error, [path]) from None
        return [join(steps) for steps in paths]

    def _changed(self, changes: Sequence[tuple[str, Any]], *, new_names: bool) -> "_Edited[Self]":
        own = [OwnPolicy.of_class(value) if isinstance(value, type) else None for _, value in changes]
        policies = self._policies.beside([*self.policies.values(), *filter(None, own)])
        named = [(path, policy.name if policy else value) for (path, value), policy in zip(changes, own, strict=True)]
        kind, folder = type(self), self._folder
        edited = _changed(kind, self._text, named, folder=folder, policies=policies, new_names=new_names)
        classes = {policy.name: value for (_, value), policy in zip(changes, own, strict=True) if policy}
        values = {
            path: classes.get(value, value) if isinstance(value, str) else value
            for path, value in edited.values.items()
        }
        return edited._replace(values=values)

    @property
    def policies(self) -> dict[str, OwnPolicy]:
        """The scenario's schedulers that are not built in, by their names in the scenario."""
        return self._engine.policies

    @property
    def can_run(self) -> bool:
        """`True`: all schedulers are available; `False` for some saved runs under a user's own policy."""
        return all(policy.can_run for policy in self.policies.values())

    @property
    def text(self) -> str:
        """The TOML text: that of the file, with its comments and all changes since."""
        return self._text

    def written(self) -> dict[str, Any]:
        """The written tables without defaults. Copies of a table with a `count` are written out."""
        document: dict[str, Any] = json.loads(_engine.written(self._text))
        return document

    def stated(self, *path: str) -> Mapping[str, Any]:
        """The written fields of a table, without defaults; none if the file does not have the table.

        Examples:
            >>> sorted(Scenario.starter().stated("host")), Scenario.starter().stated("pool")
            (['pcpus', 'profile', 'scheduler'], {})
        """
        fields: Mapping[str, Any] = value_at(self.kept(_stated), path) or FrozenDict()
        return fields

    def copies(self) -> dict[str, dict[str, list[str]]]:
        """The tables with copies: `domain` or `client` to their names, and these to the names of the copies.

        Examples:
            >>> Scenario.from_toml('''
            ...     host = { profile = "exact", scheduler = "credit" }
            ...     domain.batch = { count = 3, app = [{ kind = "hog" }] }
            ... ''').copies()
            {'domain': {'batch': ['batch1', 'batch2', 'batch3']}}
        """
        copies_of: dict[str, dict[str, list[str]]] = {}
        for kind, name, names in _engine.copies(self._text):
            copies_of.setdefault(kind, {})[name] = names
        return copies_of

    def with_run(self, *, seed: int | None = None, replications: int | None = None) -> Self:
        """A copy of the scenario with another seed or number of replications.

        Raises:
            RequestError: a value is out of range.

        Examples:
            >>> Scenario.starter().with_run(replications=2).replications
            2
        """
        check_optional(seed=seed, replications=replications)
        settings = {"seed": seed, "run.replications": replications}
        present = {"seed": self.seed, "run.replications": self.replications}
        changes = {field: value for field, value in settings.items() if value not in (None, present[field])}
        return self.change(changes) if changes else self

    @property
    def folder(self) -> Path:
        """The folder in which files named by the scenario are looked for."""
        return self._folder

    def to_toml(self) -> str:
        """The complete scenario as a file for people, without fields that have the same value in most files."""
        return self._engine.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The complete scenario as tables: every field that it can have, with the defaults.

        Parameters of schedulers are those that the scenario gives.

        Examples:
            >>> tables = Scenario.starter().to_dict()
            >>> tables["domain"]["web"]["pool"], tables["run"]["start_spread"], tables["host"]["governor"]
            ('Pool-0', '0ns', 'performance')
        """
        # Each caller gets its own tables.
        document: dict[str, Any] = json.loads(self._engine.to_json())
        return document

    @property
    def model(self) -> Model:
        """The complete scenario: every field as an attribute of its type, with every default.

        Durations and sizes are texts with an attribute `ns` or `bytes`. The scheduler's parameters that the scenario
        gives are in `params`.

        Examples:
            >>> complete = Scenario.starter().model
            >>> complete.host.pcpus, complete.run.duration, complete.run.duration.ns
            (1, '10s', 10000000000)
        """
        return self.kept(_model)

    def value(self, path: str) -> Any:
        """The value of a field of the complete scenario, as its file has it.

        Args:
            path: the full path of the field, as for `change`.

        Returns:
            The value; `None`: the field is absent.

        Examples:
            >>> Scenario.starter().value("domain.web.app.0.kind"), Scenario.starter().value("domain.web.cap")
            ('web-server', None)
        """
        return value_at(self.model.fields, split(path))

    @property
    def host(self) -> Host:
        """The host, complete.

        Examples:
            >>> host = Scenario.starter().host
            >>> host.scheduler, host.governor, host.costs.context_switch_ns
            ('credit', 'performance', 1500)
        """
        return self.model.host

    @property
    def domains(self) -> Mapping[str, Domain]:
        """The domains by name, complete.

        Examples:
            >>> web = Scenario.starter().domains["web"]
            >>> web.vcpus, web.pool, web.params, web.apps[0].kind
            (1, 'Pool-0', {'weight': 256}, 'web-server')
        """
        return self.model.domains

    @property
    def clients(self) -> Mapping[str, Client]:
        """The clients outside the host by name, complete.

        Examples:
            >>> Scenario.starter().clients["http"].server
            'web'
        """
        return self.model.clients

    @property
    def pools(self) -> Mapping[str, Pool]:
        """The CPU pools besides `Pool-0` by name, complete; the scheduler of `Pool-0` is the host's."""
        return self.model.pools

    @property
    def actions(self) -> tuple[Action, ...]:
        """The administrator's actions while the host runs."""
        return self.model.actions

    def kept(self, work: "Callable[[Scenario], _Kept]") -> _Kept:
        """The result of a function of the scenario, computed once and shared: callers must not change it."""
        if work not in self._kept:
            self._kept[work] = work(self)
        result: _Kept = self._kept[work]
        return result

    @property
    def name(self) -> str:
        """The name of the scenario, for people."""
        return self._engine.name

    @property
    def seed(self) -> int:
        """The seed of all random numbers."""
        return self._engine.seed

    @property
    def replications(self) -> int:
        """Number of independent runs."""
        return self._engine.replications

    @property
    def duration_ns(self) -> int:
        """Measured time, ns."""
        return self._engine.duration_ns

    @property
    def warmup_ns(self) -> int:
        """Time before measuring starts, ns."""
        return self._engine.warmup_ns

    @property
    def length_in_words(self) -> str:
        """The measured time and the warm-up, in words."""
        return f"{self.duration_ns / 1e9:g} s after {self.warmup_ns / 1e9:g} s of warm-up"

    @property
    def warnings(self) -> list[Problem]:
        """Settings that are allowed but probably not intended."""
        return self._engine.warnings

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self._engine == other._engine

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the text of the scenario and its policies, those from files with their source."""
        return _unpickled, (type(self), self._text, self._folder, [*self.policies.values()])

    def __repr__(self) -> str:
        s = "" if self.replications == 1 else "s"
        seconds = self.duration_ns / 1e9
        return f'<Scenario "{self.name}": {seconds:g} s, seed {self.seed}, {self.replications} replication{s}>'


class Changed(NamedTuple):
    """A scenario with other settings."""

    scenario: Scenario
    changes: dict[str, Any]
    """Full path to value, as `Scenario.change` takes them; `None`: back to its default."""
    left_out: list[str]
    """Paths of parameters that the new scheduler does not have, and of what a reboot decides anew."""


class _Edited(NamedTuple, Generic[_Kind]):
    """A scenario with other settings, and what became of the changes."""

    scenario: _Kind
    values: dict[str, Any]
    """Full path to the value that is set; `None`: removed."""
    absent: list[str]
    """Paths, as given, of changes that remove nothing."""
    left_out: list[str]
    """Full paths of the fields that are left out."""


Source: TypeAlias = Scenario | str | PathLike[str]
"""A scenario, or the path of its file."""


def scenario_of(source: Source, field: str = "scenario") -> Scenario:
    """The scenario that an argument gives, as it is or by the path of its file.

    Raises:
        RequestError: the argument gives something else.
        ScenarioError: everything that is wrong with the file.
        OSError: the file cannot be read.

    Examples:
        >>> scenario_of(None)
        Traceback (most recent call last):
        ...
        vcpulab.errors.RequestError: scenario: found `NoneType`; allowed: a scenario, or the path of its file
    """
    if isinstance(source, Scenario):
        return source
    if not isinstance(source, str | PathLike):
        raise RequestError(field=field, found=type(source).__name__, allowed="a scenario, or the path of its file")
    return Scenario.load(source)


def _model(scenario: Scenario) -> Model:
    return Model(scenario.to_dict())


def _stated(scenario: Scenario) -> FrozenDict:
    document: FrozenDict = frozen(scenario.written())
    return document


def tables(text: str) -> dict[str, Any]:
    """A TOML document as tables.

    Raises:
        ValueError: it is not valid TOML.
    """
    # By the engine's own reader: Python's knows an older TOML.
    document: dict[str, Any] = json.loads(_engine.tables(text))
    return document


def split(path: str) -> list[str]:
    """The steps of a dotted path.

    Examples:
        >>> split('domain."my.vm".weight')
        ['domain', 'my.vm', 'weight']
    """
    return [match["quoted"] or match["bare"] for match in _STEP.finditer(path)]


def join(steps: Iterable[str]) -> str:
    """The dotted path of these steps.

    Examples:
        >>> join(["domain", "my.vm", "weight"])
        'domain."my.vm".weight'
    """
    return ".".join(f'"{step}"' if "." in step else step for step in steps)


def checked_path(path: object) -> str:
    """A dotted path that leads somewhere.

    Raises:
        ChangeError: it is none.
    """
    if not isinstance(path, str) or not split(path):
        allowed = "dotted paths, such as domain.web.weight, with a value for each"
        shown = path if isinstance(path, str) else reprlib.repr(path)
        raise ChangeError(field="changes", found=shown, allowed=allowed)
    return path


_VALUES = "text, finite numbers, booleans, lists and tables of these; None removes a field"


def _changed(
    kind: type[_Kind],
    text: str,
    changes: Sequence[tuple[str, Any]],
    *,
    folder: Path,
    policies: Policies,
    file: str = "<scenario>",
    new_names: bool = True,
) -> "_Edited[_Kind]":
    """The scenario of a text with changes."""
    edits = ", ".join(
        f"[{json.dumps(split(checked_path(path)))}, {_as_json_value(path, value)}]" for path, value in changes
    )
    try:
        engine, text, fields, absent, left_out = _engine.Scenario.changed(
            text, f"[{edits}]", file, folder, policies, new_names=new_names
        )
    except ChangeError as error:
        raise _explained(error, [path for path, _ in changes]) from None
    made = kind.__new__(kind)
    made._set(engine, text, folder, policies)
    return _Edited(
        made,
        {join(path): json.loads(value) for path, _, value in fields},
        [changes[number][0] for number in absent],
        [join(path) for path in left_out],
    )


def _explained(error: ChangeError, paths: Sequence[str]) -> ChangeError:
    """An error of the engine with the path at fault, and with the names that were probably meant."""
    if error.edit is not None:
        error.set_value(paths[error.edit])
    if error.unknown is not None:
        error.allowed = shortlist(error.unknown, error.choices) or "none, the scenario has none"
        error.hint = did_you_mean(error.unknown, error.choices)
    elif error.choices:
        error.allowed = f"one of {', '.join(error.choices)}"
    return error


def _as_json_value(path: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        shown = reprlib.repr(value)
        raise ChangeError(field=path, found=shown, allowed=_VALUES) from None


def _plain(value: Any) -> Any:
    """The number in a scalar of NumPy's."""
    if type(value).__module__ != "numpy":
        raise TypeError
    return value.item()


def _unpickled(kind: type[Scenario], text: str, folder: Path, policies: Iterable[OwnPolicy]) -> Scenario:
    return kind.from_toml(text, "<scenario>", folder=folder, policies=Policies(folder, policies))
