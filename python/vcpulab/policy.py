"""Your own scheduler: the hooks and parameters of a policy, and lookup by the name in a scenario.

The hooks are those of the engine's own schedulers (`crates/host/src/scheduler.rs`), under the same names. pCPUs, vCPUs,
domains and timers are integers, numbered from 0 over the whole host; times are ns of simulated time.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from pickle import PicklingError
from secrets import token_hex
from typing import ClassVar, Literal

from vcpulab import plugins
from vcpulab._engine import Context, Rejected
from vcpulab.plugins import PluginError

__all__ = ["Context", "OwnPolicy", "Param", "Params", "Policies", "Policy", "Rejected"]

ENTRY_POINTS = "vcpulab.policies"
"""The entry point group in which installed packages offer policies."""

Params = Mapping[str, int]
"""Scheduler parameters by name."""

_VALUE_MAX = 2**62
"""The greatest absolute value of a parameter: sums and products of a few do not overflow the engine's integers."""


@dataclass(frozen=True, kw_only=True)
class Param:
    """A parameter of a policy, an integer. Scenarios are checked against it, and `vcpulab schedulers` shows it.

    Raises:
        ValueError: it cannot be.

    Examples:
        >>> Param(name="weight", default=256, least=1, most=65535, doc="Share of CPU time under contention.").of
        'domain'
    """

    name: str
    """The name of the parameter in scenarios, with the unit at the end where it has one: `slice_us`."""
    default: int
    """The value if a scenario gives none."""
    least: int
    """Least value allowed."""
    most: int
    """Greatest value allowed."""
    doc: str
    """One sentence on what it does."""
    unit: str = ""
    """The unit in words, empty for a plain number."""
    of: Literal["domain", "host"] = "domain"
    """The owner of a value: each domain, or the scheduler (the parameter is then in `[host]` or `[pool.NAME]`)."""

    def __post_init__(self) -> None:
        """Checks it."""
        if not re.fullmatch("[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"parameter `{self.name}`: allowed: a name of small letters, digits and `_`")
        if not -_VALUE_MAX <= self.least <= self.default <= self.most <= _VALUE_MAX:
            raise ValueError(f"parameter `{self.name}`: allowed: least <= default <= most, all from -2**62 to 2**62")
        if self.of not in ("domain", "host"):
            raise ValueError(f"parameter `{self.name}`: of: found `{self.of}`; allowed: domain, host")


class Policy(ABC):
    """A CPU scheduler. One object serves one host for one replication.

    A policy never switches vCPUs itself: it asks a pCPU to reschedule (`ctx.raise_reschedule`), and the host calls
    `schedule` there once the event at hand has been handled. `ctx` is there during a hook only. Whatever a policy draws
    must come from `seed`: then the same scenario gives the same results.

    Args:
        params: the parameters of the host that it declares, each as the scenario gives it or its default.
        seed: of this replication; no other random numbers depend on it.
    """

    parameters: ClassVar[tuple[Param, ...]] = ()
    """The parameters that scenarios may give. From a domain's `weight`, its share, entitlements are computed."""

    def __init__(self, params: Params, seed: int) -> None:
        """Prepares nothing."""

    @abstractmethod
    def wake(self, ctx: Context, v: int) -> None:
        """The vCPU is runnable now; it may be current still, where no decision was taken since it blocked."""

    @abstractmethod
    def sleep(self, ctx: Context, v: int) -> None:
        """The vCPU is not runnable any more, for another reason than blocking by itself."""

    @abstractmethod
    def schedule(self, ctx: Context, p: int) -> tuple[int, int]:
        """Decides what runs next on a pCPU.

        Returns:
            A vCPU that is runnable and assigned to this pCPU, or the pCPU's idle vCPU; and its slice in ns (negative:
            no limit).
        """

    def add_pcpu(self, ctx: Context, p: int) -> None:
        """A pCPU comes up, before any domain exists. Its timers are created here."""

    def add_domain(self, ctx: Context, d: int) -> None:
        """A domain was created, or came from another CPU pool; its vCPUs follow."""

    def insert(self, ctx: Context, v: int) -> None:
        """A vCPU was created, blocked; its pCPU is chosen here (`ctx.set_processor`), by default as `pick` says."""
        ctx.set_processor(v, self.pick(ctx, v))

    def remove(self, ctx: Context, v: int) -> None:
        """The vCPU leaves this scheduler, not current anywhere. If the policy parked it, it unparks it here."""

    def remove_domain(self, ctx: Context, d: int) -> None:
        """The domain leaves this scheduler for another CPU pool; its vCPUs have done so."""

    def yielded(self, ctx: Context, v: int) -> None:
        """The running vCPU yields. Its pCPU reschedules in any case."""

    def context_saved(self, ctx: Context, v: int) -> None:
        """The outgoing vCPU, which may be an idle one, runs nowhere now."""

    def pick(self, ctx: Context, v: int) -> int:
        """The pCPU that a vCPU should go to: by default its own, if it may run there, or the next one allowed."""
        own, allowed = ctx.processor(v), ctx.affinity(v)
        return own if own in allowed else min((p for p in allowed if p > own), default=allowed[0])

    def migrate(self, ctx: Context, v: int, p: int) -> None:
        """Moves a vCPU, not current anywhere, to the pCPU picked."""
        ctx.set_processor(v, p)

    def timer(self, ctx: Context, token: int) -> None:
        """A timer made with `ctx.new_timer(p, token)` is due; it is stopped now."""

    def affinity(self, ctx: Context, v: int, pcpus: tuple[int, ...]) -> None:
        """The pCPUs that a vCPU may run on are about to become these."""

    def adjust(self, ctx: Context, d: int, params: Params) -> None:
        """Changes a domain's parameters.

        After `add_domain`, all of them are set to their defaults, and then those that the scenario gives; later,
        those that an action or a manager sets.

        Raises:
            Rejected: the values are refused, and nothing changed.
        """
        raise Rejected

    def adjust_global(self, ctx: Context, params: Params) -> None:
        """Changes the scheduler's own parameters.

        Raises:
            Rejected: the values are refused, and nothing changed.
        """
        raise Rejected

    def dump(self, ctx: Context) -> str:
        """The present state for people to read."""
        return ""


@dataclass(frozen=True)
class OwnPolicy:
    """A policy that a scenario names and that is not built in."""

    name: str
    """The name of the policy in the scenario."""
    doc: str
    """One sentence on what it does."""
    generation: str
    """A digest of its source; the complete scenario holds the digest, and so does every key."""
    params: tuple[Param, ...]
    """The parameters of the policy."""
    source: str | None = None
    """The content of its file, for the record."""
    file: str | None = None
    """The file that its class can be made from; `None`: the class is loaded, or the policy is only remembered."""
    loaded_class: type[Policy] | None = field(default=None, repr=False, compare=False)
    """The policy's class; `None`: not loaded."""

    @classmethod
    def of_file(cls, name: str, folder: Path) -> "OwnPolicy":
        """The policy `FILE.py:CLASS`, whose file's code is executed; a path is looked for in `folder`.

        Raises:
            PluginError: there is none, or its code fails.
        """
        path, _, class_name = name.rpartition(":")
        file = str(folder / path)
        source = plugins.source_of(Path(file))
        policy_class = plugins.from_source(source, file, class_name, Policy)  # type: ignore[type-abstract]  # it is checked there
        return cls._declared(name, policy_class, _digest([source]), source, file)

    @classmethod
    def installed(cls, name: str) -> "OwnPolicy":
        """The policy that an installed package offers under a name.

        Raises:
            PluginError: there is none, or its code fails.
        """
        policy_class = plugins.load(name, Policy, ENTRY_POINTS, "policy")  # type: ignore[type-abstract]  # it is checked there
        return cls.of_class(policy_class, name)

    @classmethod
    def of_class(cls, policy_class: type[Policy], name: str | None = None) -> "OwnPolicy":
        """The policy of a class, named `MODULE:CLASS` if it has no other name.

        Raises:
            PluginError: it is none, or not complete.
        """
        name = name or f"{policy_class.__module__}:{policy_class.__qualname__}"
        policy_class = plugins.checked(policy_class, Policy, name)  # type: ignore[type-abstract]  # it is checked there
        return cls._declared(name, policy_class, *_version(policy_class))

    @classmethod
    def _declared(
        cls, name: str, policy_class: type[Policy], generation: str, source: bytes | None, file: str | None = None
    ) -> "OwnPolicy":
        params = tuple(policy_class.parameters)
        names = [param.name for param in params]
        if twice := {parameter for parameter in names if names.count(parameter) > 1}:
            raise PluginError(f"`{name}` declares `{min(twice)}` twice")
        doc = (policy_class.__doc__ or "A policy without a description.").strip().splitlines()[0]
        text = None if source is None else source.decode(errors="replace")
        return cls(name, doc, generation, params, text, file, policy_class)

    @property
    def can_run(self) -> bool:
        """`True`: the class of the policy can be loaded; the policy of a saved run has neither a class nor a file."""
        return self.loaded_class is not None or self.file is not None

    def remembered(self) -> "OwnPolicy":
        """The policy as a saved run keeps it, without anything that can be executed."""
        return replace(self, file=None, loaded_class=None)

    def __call__(self, params: Params, seed: int) -> Policy:
        """Makes the policy of one replication.

        Raises:
            PluginError: it is only remembered.
        """
        return self._class(params, seed)

    @cached_property
    def _class(self) -> type[Policy]:
        if self.loaded_class is not None:
            return self.loaded_class
        if self.file is None or self.source is None:
            raise PluginError(
                f"`{self.name}` is remembered by a saved run, which executes nothing",
                hint="run the scenario's own file",
            )
        name = self.name.rpartition(":")[2]
        return plugins.from_source(self.source.encode(), self.file, name, Policy)  # type: ignore[type-abstract]

    def __getstate__(self) -> dict[str, object]:
        """The pickled state: elsewhere, a class from a file is rebuilt from its source, and other classes are imported.

        Raises:
            PicklingError: the class cannot be imported.
        """
        state = {name: value for name, value in self.__dict__.items() if name != "_class"}
        if self.file is not None:
            return {**state, "loaded_class": None}
        if self.loaded_class is not None and not _is_importable(self.loaded_class):
            raise PicklingError(
                f"the policy `{self.name}` cannot be pickled, for its class is not at the top level of a module; "
                "write it to a file, and name it FILE.py:CLASS"
            )
        return state


class Policies:
    """The policies of a scenario that are not built in. Each is loaded once."""

    def __init__(self, folder: Path | None, policies: Mapping[str, OwnPolicy] | Iterable[OwnPolicy] = ()) -> None:
        """Policies in files below `folder` and in packages, besides the given ones; `None`: only the given ones."""
        self._folder = folder
        listed = policies.values() if isinstance(policies, Mapping) else policies
        self._by_name = {policy.name: policy for policy in listed}

    def __call__(self, name: str) -> OwnPolicy | list[str]:
        """The policy of a name; if no policy has the name, the names that installed packages offer.

        Raises:
            PluginError: the policy cannot be loaded.
        """
        if name not in self._by_name:
            if ":" in name:
                if self._folder is None:
                    raise PluginError("a policy file can be named by a scenario's own file only")
                self._by_name[name] = OwnPolicy.of_file(name, self._folder)
            else:
                offered = [] if self._folder is None else plugins.offered(ENTRY_POINTS)
                if name not in offered:
                    return offered
                self._by_name[name] = OwnPolicy.installed(name)
        return self._by_name[name]

    def beside(self, policies: Iterable[OwnPolicy]) -> "Policies":
        """The policies with the same places to look in, and only the given policies loaded."""
        return Policies(self._folder, policies)


def _is_importable(policy_class: type[Policy]) -> bool:
    return getattr(sys.modules.get(policy_class.__module__), policy_class.__qualname__, None) is policy_class


def _version(policy_class: type[Policy]) -> tuple[str, bytes | None]:
    """The text that identifies the version of a class, over all files of its package, and the class's own file."""
    module = sys.modules.get(policy_class.__module__)
    root = sys.modules.get(policy_class.__module__.partition(".")[0])
    file = getattr(module, "__file__", None)
    if root is None or file is None:
        # Typed in by hand: no one can say whether it is the same tomorrow.
        return _typed_in(policy_class), None
    folders = [Path(folder) for folder in getattr(root, "__path__", ())]
    files = sorted(path for folder in folders for path in folder.rglob("*.py")) or [Path(file)]
    return _digest([plugins.source_of(path) for path in files]), plugins.source_of(Path(file))


@cache
def _typed_in(_policy_class: type[Policy]) -> str:
    return f"unsaved-{token_hex(6)}"


def _digest(sources: Iterable[bytes]) -> str:
    digest = sha256()
    for source in sources:
        digest.update(sha256(source).digest())
    return digest.hexdigest()[:12]
