"""Starving domains: domains that want to run and get almost no CPU time, in a run or since a change.

The rules are the engine's, as the playground has them, too (`crates/judge/src/starvation.rs`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from vcpulab._engine import Observed, starved_line
from vcpulab.results.run import Run


def starved(run: Run) -> dict[str, str]:
    """The domains that starve, each with the reason, such as `never ran`.

    A domain starves if one of its vCPUs does. The vCPU is runnable for at least 90 % of its time on the host, and runs
    never or for less than a tenth of an equal share. Its equal share is the CPU time it would have if all vCPUs on its
    pCPUs got the same fraction of their demand; if weights, caps and budgets entitle it to less, it is that.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"domain.web.weight": 512, "run.duration": "100ms"})
        >>> starved(vcpulab.run(scenario))
        {}
    """
    return dict(_observed(run).starved())


def newly_starved(before: Run, after: Run) -> dict[str, str]:
    """The domains that starve in the second run and did not in the first, each with the reason.

    Four kinds of domains starve newly: those that `starved` lists; those that newly wait for 90 % of the time and lose
    half of their CPU time; those that lose nine tenths of it, and wait; and those with an application that loses nine
    tenths of its throughput with the same work.

    Examples:
        >>> import vcpulab
        >>> scenario = vcpulab.Scenario.starter().change({"run.duration": "100ms", "run.replications": 2})
        >>> sorted(newly_starved(*vcpulab.run_many([scenario, scenario.change({"domain.batch.cap": 2})])))
        ['batch']
    """
    return dict(Starving.between(before, after).newly)


def in_a_line(reasons: Mapping[str, str], label: str = "starved") -> str:
    """Starving domains with their reasons in a line; numbered domains are shown with the first one's reason.

    Examples:
        >>> in_a_line({"orders": "never ran"})
        'starved: orders (never ran)'
        >>> in_a_line({f"batch{number}": f"gets {number} % of its share" for number in (1, 2, 3)})
        'starved: batch1 to batch3 (gets 1 % of its share, others alike)'
    """
    return starved_line(label, list(reasons.items()))


def rows(reasons: Mapping[str, str]) -> list[dict[str, str]]:
    """Starving domains and their reasons as data."""
    return [{"domain": domain, "reason": reason} for domain, reason in reasons.items()]


@dataclass(frozen=True)
class Starving:
    """The starving domains of two runs: domain to reason."""

    newly: Mapping[str, str]
    """Domains that starve in the second run only."""
    still: Mapping[str, str]
    """Domains that starve in both runs."""
    no_longer: Mapping[str, str]
    """Domains that starve in the first run only."""

    @classmethod
    def between(cls, before: Run, after: Run) -> Self:
        """The starving domains of two runs."""
        return cls(*map(dict, _observed(before).until(_observed(after))))

    def lines(self) -> list[str]:
        """The starving domains in words, the worst first."""
        sides = (
            ("newly starved", self.newly),
            ("starved as before", self.still),
            ("no longer starved", self.no_longer),
        )
        return [in_a_line(reasons, label) for label, reasons in sides if reasons]

    def rows(self) -> list[dict[str, object]]:
        """The domains that starve in the second run as data; `since` is `after` or `before`."""
        sides = (("after", self.newly), ("before", self.still))
        return [{**row, "since": since} for since, reasons in sides for row in rows(reasons)]


def _observed(run: Run) -> Observed:
    vcpus, domains, apps = run.df_vcpus(), run.df_domains(), run.df_apps()
    times = (vcpus[name].to_list() for name in ("elapsed_ns", "running_ns", "runnable_ns", "offline_ns"))
    elapsed_ns, running_ns, runnable_ns, offline_ns = times
    done = apps["throughput_per_s"].to_list(), apps["completed"].to_list()
    return Observed(
        run.scenario._engine,
        (vcpus["domain"].to_list(), vcpus["vcpu"].to_list(), elapsed_ns, running_ns, runnable_ns, offline_ns),
        (domains["domain"].to_list(), domains["pool"].to_list()),
        (apps["domain"].to_list(), apps["app"].to_list(), *done),
    )
