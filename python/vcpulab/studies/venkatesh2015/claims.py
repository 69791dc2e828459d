"""What the thesis claims, checked against what the cases measured."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import mean

from vcpulab.results.figures import Interval
from vcpulab.results.statistics import holm, paired
from vcpulab.studies.results import Results
from vcpulab.studies.study import Claim, Outcome, Verdict
from vcpulab.studies.venkatesh2015 import figures
from vcpulab.studies.venkatesh2015.cases import SCHEDULERS

SURE = 0.05
"""Differences count as such below this probability, corrected for their number (Holm)."""

LITTLE, HEAVY = 10.0, 25.0
"""What is read as a small loss, and as a heavy one, %: between the 6 and the 41 of Table 4."""

NOTICEABLE = 5.0
"""From here on a loss is called one, %: a third of those of Table 5."""

HALF = 100.0
"""What Dom0's weight entitles it to beside one guest of the same weight on two cores, % of one."""

NAMES = {"credit": "Credit", "sedf": "SEDF", "credit2": "Credit2", "enhanced": "Enhanced"}

Values = Sequence[tuple[str, str]]


def _outcome(holds: bool) -> Outcome:
    return Outcome.HOLDS if holds else Outcome.FAILS


def _said(of: Callable[[str], Interval], unit: str = "%", names: Sequence[str] = SCHEDULERS) -> str:
    return ", ".join(f"{NAMES[name]} {of(name)} {unit}" for name in names)


def _more(results: Results, *pairs: tuple[Values, Values]) -> tuple[bool, float | None]:
    """Is the mean of the first figures above that of the second, in each pair? The greatest corrected probability."""
    # Cases have different numbers of replications: those count that all have.
    differences = [
        paired(*([mean(x) for x in zip(*(results.values(*v) for v in side), strict=False)] for side in pair))
        for pair in pairs
    ]
    found = [difference for difference in differences if difference is not None]
    ps = [difference.p for difference in found if difference.p is not None]
    p = max(holm(ps)) if len(ps) == len(pairs) else None
    return all(d.interval.mean > 0 for d in found) and (p is None or p < SURE), p


def near_native(results: Results) -> Verdict:
    """V-1."""
    shares = {name: figures.near_native(results, name).mean for name in SCHEDULERS}
    said = _said(lambda name: figures.near_native(results, name))
    return Verdict(_outcome(all(share >= 90 for share in shares.values())), said)


def sedf_disk_absolute(results: Results) -> Verdict:
    """V-2."""
    credit, sedf = (figures.disk(name, "idle") for name in ("credit", "sedf"))
    holds, p = _more(results, (credit, sedf))
    said = f"guest's disk: Credit {figures.average(results, credit)} KB/s, SEDF {figures.average(results, sedf)} KB/s"
    return Verdict(_outcome(holds), said, p)


def disk_loss(results: Results) -> Verdict:
    """V-3."""
    losses = {name: figures.disk_loss(results, name).mean for name in SCHEDULERS}
    little = all(losses[name] < LITTLE for name in SCHEDULERS if name != "sedf")
    return Verdict(
        _outcome(little and losses["sedf"] > HEAVY), "lost: " + _said(lambda name: figures.disk_loss(results, name))
    )


def credit2_disk(results: Results) -> Verdict:
    """V-4, in the only way it can be meant: the rate under stress."""
    credit2, credit, sedf = (figures.disk(name, "stress") for name in ("credit2", "credit", "sedf"))
    holds, p = _more(results, (credit2, credit), (credit2, sedf))
    names = ("credit2", "credit", "sedf")
    said = _said(lambda name: figures.average(results, figures.disk(name, "stress")), "KB/s", names)
    return Verdict(_outcome(holds), f"guest's disk under stress: {said}", p)


def write_order(results: Results) -> Verdict:
    """V-5."""

    def loss(name: str) -> Interval:
        cases = [(f"disk-iozone: {name} write {load}", "rate") for load in ("stress", "idle")]
        return results.combine(lambda busy, idle: 100 * (1 - busy / idle), *cases)

    order = ("enhanced", "credit2", "credit", "sedf")
    holds = all(loss(a).mean <= loss(b).mean for a, b in pairwise(order))
    return Verdict(_outcome(holds), "sequential writes lost: " + _said(loss, names=order))


def _network(results: Results, name: str, loads: Sequence[str] = ("idle", "stress", "disk")) -> str:
    return " / ".join(str(figures.average(results, figures.network(name, load))) for load in loads)


def credit_network(results: Results) -> Verdict:
    """V-6: with either load of Dom0 a loss worth the name."""
    losses = {load: figures.network_loss(results, "credit", load) for load in ("stress", "disk")}
    idle = figures.network("credit", "idle")
    _, p = _more(results, *((idle, figures.network("credit", load)) for load in losses))
    said = f"{_network(results, 'credit')} Mbit/s; lost {losses['stress']} and {losses['disk']} %"
    holds = all(loss.mean >= NOTICEABLE for loss in losses.values())
    return Verdict(_outcome(holds), f"idle / CPU stress / disk load: {said}", p)


def credit2_network(results: Results) -> Verdict:
    """V-7."""
    loads = ("idle", "stress", "disk")
    holds, p = _more(results, *((figures.network("credit2", load), figures.network("credit", load)) for load in loads))
    said = "; ".join(f"{NAMES[name]} {_network(results, name)}" for name in ("credit2", "credit"))
    return Verdict(_outcome(holds), f"idle / CPU stress / disk load, Mbit/s: {said}", p)


def sedf_network(results: Results) -> Verdict:
    """V-8: the others keep more under CPU stress."""
    sedf = figures.network("sedf", "stress")
    holds, p = _more(results, *((figures.network(name, "stress"), sedf) for name in ("credit", "credit2")))
    said = "lost under CPU stress: " + _said(lambda name: figures.network_loss(results, name))
    return Verdict(_outcome(holds), said, p)


def credit2_network_disk(results: Results) -> Verdict:
    """V-9."""
    best = figures.network("credit2", "disk")
    holds, p = _more(results, *((best, figures.network(name, "disk")) for name in ("credit", "sedf")))
    names = ("credit2", "credit", "sedf")
    said = _said(lambda name: figures.average(results, figures.network(name, "disk")), "Mbit/s", names)
    return Verdict(_outcome(holds), f"Dom0 at its disk: {said}", p)


def database(results: Results) -> Verdict:
    """V-10: each scheduler loses under stress, SEDF most, Credit2 least of the three."""
    loss = {name: figures.database_loss(results, name).mean for name in ("credit", "sedf", "credit2")}
    holds = 0 < loss["credit2"] < loss["credit"] < loss["sedf"]
    shares = _said(lambda name: figures.database_share(results, name), "of Dom0's")
    said = f"Dom0 idle: {shares}; lost under stress: {_said(lambda name: figures.database_loss(results, name))}"
    return Verdict(_outcome(holds), said)


_COLUMNS = {
    "iozone_s_write@dom0": "KB/s",
    "netperf_tcp_stream@dom1": "Mbit/s",
    "sysbench_transactions@dom2": "transactions/s",
}


def _consolidated(results: Results, names: Sequence[str]) -> str:
    rows = (
        f"{NAMES[name]} " + " / ".join(str(results.interval(f"consolidated: {name}", column)) for column in _COLUMNS)
        for name in names
    )
    return f"{', '.join(_COLUMNS.values())}: {'; '.join(rows)}"


def _ahead(results: Results, first: str, second: str, columns: Sequence[str]) -> tuple[bool, float | None]:
    pairs = (([(f"consolidated: {first}", c)], [(f"consolidated: {second}", c)]) for c in columns)
    return _more(results, *pairs)


def sedf_consolidated(results: Results) -> Verdict:
    """V-11."""
    holds, p = _ahead(results, "credit", "sedf", list(_COLUMNS))
    return Verdict(_outcome(holds), _consolidated(results, ("credit", "sedf", "credit2")), p)


def resembles_contention(results: Results) -> Verdict:
    """V-12: netperf as under CPU stress, to a fifth; Dom0's disk as when it is alone, to a tenth."""
    said, holds = [], True
    for name in SCHEDULERS:
        case = f"consolidated: {name}"
        alone = results.mean(f"disk-iozone: {name} write native", "rate")
        disk = results.mean(case, "iozone_s_write@dom0") / alone
        stressed = figures.average(results, figures.network(name, "stress")).mean
        net = results.mean(case, "netperf_tcp_stream@dom1") / stressed
        holds &= abs(net - 1) <= 0.2 and disk >= 0.9
        said.append(f"{NAMES[name]} {net:.2f} and {disk:.2f}")
    return Verdict(_outcome(holds), "netperf over that under stress, Dom0's disk over that alone: " + ", ".join(said))


def enhanced_network(results: Results) -> Verdict:
    """V-13."""
    losses = {name: figures.network_loss(results, name).mean for name in SCHEDULERS}
    said = "lost under CPU stress: " + _said(lambda name: figures.network_loss(results, name))
    return Verdict(_outcome(min(losses, key=losses.__getitem__) == "enhanced"), said)


def enhanced_database(results: Results) -> Verdict:
    """V-14: Dom0's rate within 5 % of that of Credit and Credit2; the guest loses less than under Credit2."""
    rate = {name: figures.average(results, figures.database(name, "native")).mean for name in SCHEDULERS}
    alike = all(abs(rate["enhanced"] / rate[name] - 1) <= 0.05 for name in ("credit", "credit2"))
    pair = (figures.database("enhanced", "stress"), figures.database("credit2", "stress"))
    more, p = _more(results, pair)
    names = ("enhanced", "credit2", "credit")
    native = _said(lambda name: figures.average(results, figures.database(name, "native")), "transactions/s", names)
    lost = _said(lambda name: figures.database_loss(results, name), names=names)
    return Verdict(_outcome(alike and more), f"Dom0: {native}; lost under stress: {lost}", p)


def enhanced_consolidated(results: Results) -> Verdict:
    """V-15."""
    columns = ["netperf_tcp_stream@dom1", "sysbench_transactions@dom2"]
    holds, p = _ahead(results, "enhanced", "credit2", columns)
    return Verdict(_outcome(holds), _consolidated(results, ("enhanced", "credit2")), p)


def enhanced_idle(results: Results) -> Verdict:
    """V-16."""
    pairs = [(of("credit", "idle"), of("enhanced", "idle")) for of in (figures.disk, figures.network, figures.database)]
    holds, p = _more(results, *pairs)
    said = "; ".join(
        f"{what}: {figures.average(results, credit)} and {figures.average(results, enhanced)}"
        for what, (credit, enhanced) in zip(("disk", "network", "database"), pairs, strict=True)
    )
    return Verdict(_outcome(holds), f"Dom0 idle, Credit and Enhanced: {said}", p)


def slices(results: Results) -> Verdict:
    """V-17: the guest's I/O beside CPU stress gains from a shorter slice."""
    rate = {ms: [(f"slices: network {ms}ms", "domU_throughput")] for ms in (1, 5, 10, 30)}
    holds, p = _more(results, (rate[1], rate[30]))
    network = ", ".join(f"{ms} ms {figures.average(results, values)}" for ms, values in rate.items())
    database = ", ".join(f"{ms} ms {results.interval(f'slices: database {ms}ms', 'transactions')}" for ms in rate)
    return Verdict(_outcome(holds), f"netperf, Mbit/s: {network}; database, transactions/s: {database}", p)


def cpu_bound(results: Results) -> Verdict:
    """V-18: beside netperf CPU-bound Dom0 gets the half of the machine that its weight gives it."""
    cpu = results.interval("cpu-bound: enhanced", "cpu_util@dom0")
    ratio = results.combine(
        lambda enhanced, credit: enhanced / credit,
        ("cpu-bound: enhanced", "stress_batches"),
        ("cpu-bound: credit", "stress_batches"),
    )
    said = f"Dom0 has {cpu} % of 200 %, entitled to 100 %; its arithmetic over that under Credit: {ratio}"
    return Verdict(_outcome(cpu.mean >= HALF), said)


def scheduler_matters(results: Results) -> Verdict:
    """V-19: a tenth or more between the best and the worst, in each of the workloads beside CPU stress."""
    spread = {}
    for what, of in (("disk", figures.disk), ("network", figures.network), ("database", figures.database)):
        means = [figures.average(results, of(name, "stress")).mean for name in SCHEDULERS]
        spread[what] = 100 * (1 - min(means) / max(means))
    said = ", ".join(f"{what} {value:.0f} %" for what, value in spread.items())
    return Verdict(_outcome(min(spread.values()) >= 10), f"worst below best, Dom0 under CPU stress: {said}")


CLAIMS = (
    Claim("V-1", "The guest's disk, Dom0 being idle, is nearly as fast as Dom0's under every scheduler.",
          "Table 4 and section 4.5: 93, 97, 94 to 99, 98 to 99 %", near_native),
    Claim("V-2", "SEDF's disk rate is below Credit's although its ratio is better.",
          "Figures 17 and 19; no number", sedf_disk_absolute),
    Claim("V-3", "CPU stress in Dom0 hurts the guest's disk heavily under SEDF, little under the others.",
          "Table 4 and section 4.5: 4 to 5, 4 to 6, 2 to 4, and 41 to 45 %", disk_loss),
    Claim("V-4", "Credit2 handles a guest's I/O under stress better than Credit and SEDF.",
          "Table 4 has 4 to 6 % lost under Credit2, 4 to 5 % under Credit: only the rate itself can be meant",
          credit2_disk, contradicted=True),
    Claim("V-5", "Sequential writes lose least under Enhanced, then Credit2, Credit, SEDF.",
          "Figure 36; Table 4 does not have Credit2 before Credit", write_order, contradicted=True),
    Claim("V-6", "Credit: the network is slower with Dom0 under CPU stress or at its disk.",
          "Table 5: 87.85, 72.71, 71.63 Mbit/s", credit_network),
    Claim("V-7", "Credit2's network is faster than Credit's in each case.",
          "Table 5: 91.05, 79.15, 84.57 Mbit/s", credit2_network),
    Claim("V-8", "SEDF does not serve the network promptly when Dom0 is under CPU stress.",
          "Table 5; SEDF's numbers are not public", sedf_network),
    Claim("V-9", "With Dom0 at its disk, Credit2's network is the best of the three.",
          "Table 5; SEDF's number is not public", credit2_network_disk),
    Claim("V-10", "The database loses under stress of Dom0: most under SEDF, least of the three under Credit2.",
          "Figures 27 to 29; only SEDF has numbers: a fifth of Dom0's rate, and 75 % lost", database),
    Claim("V-11", "Consolidated, SEDF is behind Credit in all three columns.",
          "Table 7: 0.54, 0.86 and 0.68 of Credit's", sedf_consolidated),
    Claim("V-12", "Consolidated is like CPU contention, and Dom0's disk is not disturbed.",
          "Table 7; SEDF's disk rate is 54 % of Credit's", resembles_contention, contradicted=True),
    Claim("V-13", "Enhanced loses least of the four of the network under CPU stress.",
          "Figures 37 and 38; its numbers are not public", enhanced_network),
    Claim("V-14", "Enhanced: Dom0's database is as under the other Credits; the guest loses less than under Credit2.",
          "Figure 39; no number", enhanced_database),
    Claim("V-15", "Consolidated, Enhanced is ahead of Credit2 for database and network.",
          "Figure 40; no number", enhanced_consolidated),
    Claim("V-16", "With the machine otherwise idle Enhanced is behind Credit, because of context switches.",
          "Section 4.6; V-1 says the opposite", enhanced_idle, contradicted=True),
    Claim("V-17", "A slice of 30 ms favours those that compute; those that do I/O wait.",
          "Section 4.2, argued, not measured; were it so, disk and network would lose far more than the 4 to 5 and 17 %"
          " of Tables 4 and 5: a stream of 16 KB each 30 ms is 4 Mbit/s", slices, contradicted=True),
    Claim("V-18", "Enhanced does no harm to those that compute.",
          "asserted, not measured", cpu_bound),
    Claim("V-19", "The scheduler alone changes what applications achieve.",
          "overall conclusion", scheduler_matters),
)  # fmt: skip
"""All claims of the thesis."""
