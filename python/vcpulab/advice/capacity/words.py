"""The largest load that a host carries, in sentences."""

from typing import TYPE_CHECKING

from vcpulab.advice.capacity.occupancy import FULL
from vcpulab.advice.capacity.search import SearchResult
from vcpulab.advice.capacity.slos import default_slos_in_words, on_assumed
from vcpulab.advice.capacity.varying import Growth
from vcpulab.advice.starvation import in_a_line
from vcpulab.advice.verdicts import Proven
from vcpulab.results.metrics import Quantity

if TYPE_CHECKING:
    from vcpulab.advice.capacity.growing import Capacity, Point

AS_SET = "with these settings"
"""The condition of an answer about load or room: only the settings of the scenario were tried."""


def sentences(answer: "Capacity") -> list[str]:
    """The answer in sentences."""
    result, growth = answer.result, answer.growth
    value = "none" if result.value is None else growth.format(result.value)
    present = growth.format(growth.present)
    kept = answer.point(growth.within.lowest if result.value is None else result.value)
    lines = []
    if kept is not None and kept.starved:
        lines.append(in_a_line(kept.starved, f"starved at {growth.name} = {growth.format(kept.value)}"))
    if result.outcome == "none":
        lines += _none_keeps(answer)
    elif result.outcome == "all":
        lines.append(f"every load tried keeps the SLOs {AS_SET}: {growth.name} up to {value}, the highest")
    elif result.outcome == "stopped":
        largest = "no load is known yet" if result.value is None else f"{growth.name} = {value} is the largest known"
        lines.append(f"not finished: {result.stopped}; {largest} to keep the SLOs {AS_SET}")
    else:
        lines.append(f"{growth.name} = {value} keeps all SLOs {AS_SET} (95 % confidence); in the file it is {present}")
    lines += _borders(result, growth)
    if answer.by_default:
        lines.append(f"SLOs, as none were given: {default_slos_in_words()}")
    elif any(slo.address.metric.quantity is Quantity.FAILURES for slo in answer.slos):
        lines.append("no request of the clients concerned may fail, either, unless an SLO on failures is given")
    lines += on_assumed(growth.at(growth.present), answer.slos)
    beyond, saturated = answer.first_beyond, answer.saturated
    if beyond is not None:
        lines.append(f"first SLO to break: {_worst_slo(beyond, growth)}")
    if saturated is not None and saturated.bottleneck is not None:
        full = saturated.bottleneck
        lines.append(f"bottleneck at {growth.format(saturated.value)}: {full}")
        if full.fullness < FULL:
            lines.append(f"no station is {100 * FULL:.0f} % used there: response times grow before one is full")
    return [*lines, *answer.notes]


def _none_keeps(answer: "Capacity") -> list[str]:
    """Sentences for a lowest load that is not known to keep the SLOs."""
    lowest = answer.points[0]
    slo, verdict = lowest.worst.slo, answer.verdict
    if verdict is None:
        at = f"{answer.growth.name} = {answer.growth.format(lowest.value)}, the lowest load"
        return [f"cannot tell whether {at}, keeps {slo} {AS_SET}: the difference from it is not significant"]
    sentence = f"{verdict.sentence([str(slo)])}"
    if isinstance(verdict, Proven):
        return [f"at the lowest load, {sentence}"]
    about = [] if answer.alone is None else [answer.alone.about(slo)]
    return [f"{sentence} {AS_SET}; vcpulab tune looks for other settings", *about]


def _borders(result: SearchResult, growth: Growth) -> list[str]:
    """Sentences about the nearest values that break an SLO, above and below."""
    lines = []
    if result.value is not None and result.broken is not None:
        broken = growth.format(result.broken)
        if result.open_until is not None and result.open_until > result.value:
            between = f"between {growth.format(result.value)} and {growth.format(result.open_until)}"
            lines.append(f"{between} the difference from an SLO is not significant; at {broken} one is broken")
        else:
            lines.append(f"at {broken} an SLO is broken")
    if result.broken_below:
        places = ", ".join(map(growth.format, result.broken_below))
        held = ", ".join(map(growth.format, result.holds_above))
        lines.append(
            f"not monotone: broken at {places}, though {held} held: the failures are rare there, or come and go"
        )
    return lines


def _worst_slo(point: "Point", growth: Growth) -> str:
    worst = point.worst
    measured = "it has no value: nothing was completed" if worst.interval is None else f"it is {worst.interval}"
    unit = "" if worst.interval is None else f" {worst.slo.address.unit}"
    return f"{worst.slo}; at {growth.format(point.value)} {measured}{unit}"
