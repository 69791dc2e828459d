"""How much more a host can carry, in sentences."""

from vcpulab.advice.capacity.growing import FULL, Capacity, Point
from vcpulab.advice.capacity.search import Found
from vcpulab.advice.capacity.slos import on_assumed
from vcpulab.advice.capacity.slos import said as default_slos
from vcpulab.advice.capacity.varying import Growth
from vcpulab.advice.starving import in_a_line
from vcpulab.advice.verdicts import Proven

AS_SET = "with these settings"
"""An answer about load or room holds for the settings of the scenario: others were not tried."""


def said(found: Capacity) -> list[str]:
    """The answer in sentences."""
    it, grows = found.found, found.growth
    value = "none" if it.value is None else grows.said(it.value)
    present = grows.said(grows.present)
    kept = found.point(grows.within.lowest if it.value is None else it.value)
    lines = []
    if kept is not None and kept.starved:
        lines.append(in_a_line(kept.starved, f"starved at {grows.name} = {grows.said(kept.value)}"))
    if it.outcome == "none":
        lines += _none_said(found)
    elif it.outcome == "all":
        lines.append(f"every load tried keeps the SLOs {AS_SET}: {grows.name} up to {value}, the highest")
    elif it.outcome == "stopped":
        largest = "no load is known yet" if it.value is None else f"{grows.name} = {value} is the largest known"
        lines.append(f"not finished: {it.stopped}; {largest} to keep the SLOs {AS_SET}")
    else:
        lines.append(f"{grows.name} = {value} keeps all SLOs {AS_SET} (95 % confidence); in the file it is {present}")
    lines += _borders_said(it, grows)
    if found.by_default:
        lines.append(f"SLOs, as none were given: {default_slos()}")
    elif any(one.address.metric.name == "failed" for one in found.slos):
        lines.append("no request of the clients concerned may fail, either, unless an SLO on failures is given")
    lines += on_assumed(grows.at(grows.present), found.slos)
    beyond, saturated = found.first_beyond, found.saturated
    if beyond is not None:
        lines.append(f"first SLO to break: {_slo_said(beyond, grows)}")
    if saturated is not None and saturated.bottleneck is not None:
        full = saturated.bottleneck
        lines.append(f"bottleneck at {grows.said(saturated.value)}: {full}")
        if full.fullness < FULL:
            lines.append(f"no station is {100 * FULL:.0f} % used there: response times grow before one is full")
    return [*lines, *found.notes]


def _none_said(found: Capacity) -> list[str]:
    """Why not even the lowest load is known to keep the SLOs."""
    lowest = found.points[0]
    slo, verdict = lowest.worst.slo, found.verdict
    if verdict is None:
        at = f"{found.growth.name} = {found.growth.said(lowest.value)}, the lowest load"
        return [f"cannot tell whether {at}, keeps {slo} {AS_SET}: the difference from it is not significant"]
    sentence = f"{verdict.sentence([str(slo)])}"
    if isinstance(verdict, Proven):
        return [f"at the lowest load, {sentence}"]
    about = [] if found.alone is None else [found.alone.about(slo)]
    return [f"{sentence} {AS_SET}; vcpulab tune looks for other settings", *about]


def _borders_said(it: Found, grows: Growth) -> list[str]:
    """The nearest values that break an SLO, above and below."""
    lines = []
    if it.value is not None and it.broken is not None:
        if it.open_until is not None and it.open_until > it.value:
            between = f"between {grows.said(it.value)} and {grows.said(it.open_until)}"
            lines.append(
                f"{between} the difference from an SLO is not significant; at {grows.said(it.broken)} one is broken"
            )
        else:
            lines.append(f"at {grows.said(it.broken)} an SLO is broken")
    if it.broken_below:
        places, held = ", ".join(map(grows.said, it.broken_below)), ", ".join(map(grows.said, it.holds_above))
        lines.append(
            f"not monotone: broken at {places}, though {held} held: the failures are rare there, or come and go"
        )
    return lines


def _slo_said(point: Point, grows: Growth) -> str:
    worst = point.worst
    measured = "it has no value: nothing was completed" if worst.interval is None else f"it is {worst.interval}"
    unit = "" if worst.interval is None else f" {worst.slo.address.unit}"
    return f"{worst.slo}; at {grows.said(point.value)} {measured}{unit}"
