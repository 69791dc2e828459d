"""The claims of the thesis, by their numbers in the notes, each above its check."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import mean

from vcpulab.results.statistics import Difference, Interval
from vcpulab_evidence.studies.claims import Claims, Verdict, decide
from vcpulab_evidence.studies.results import Results, Values
from vcpulab_evidence.studies.venkatesh2015 import estimates
from vcpulab_evidence.studies.venkatesh2015.cases import (
    SCHEDULERS,
    consolidated_case,
    cpu_bound_case,
    disk_case,
    slice_case,
)

LITTLE, HEAVY = 10.0, 25.0
"""Bounds of a small loss, and of a heavy one, %: between the 6 and the 41 of Table 4."""

NOTICEABLE = 5.0
"""Minimum loss that counts as a loss, %: a third of the losses in Table 5."""

HALF = 100.0
"""The share that Dom0's weight entitles it to beside one guest of the same weight on two cores, % of one."""

NAMES = {"credit": "Credit", "sedf": "SEDF", "credit2": "Credit2", "enhanced": "Enhanced"}

claim = Claims()


def _by_scheduler(value_of: Callable[[str], Interval], unit: str = "%", names: Sequence[str] = SCHEDULERS) -> str:
    return ", ".join(f"{NAMES[name]} {value_of(name)} {unit}" for name in names)


def _above(results: Results, *pairs: tuple[Values, Values]) -> list[Difference]:
    """The difference of the means of the first and the second values, for each pair."""
    return [results.difference_of(lambda *x: mean(x), *pair) for pair in pairs]


@claim(
    "V-1",
    "The guest's disk, Dom0 being idle, is nearly as fast as Dom0's under every scheduler.",
    "Table 4 and section 4.5: 93, 97, 94 to 99, 98 to 99 %",
)
def near_native(results: Results) -> Verdict:
    shares = {name: estimates.near_native(results, name).mean for name in SCHEDULERS}
    evidence = _by_scheduler(lambda name: estimates.near_native(results, name))
    return decide(all(share >= 90 for share in shares.values()), evidence)


@claim("V-2", "SEDF's disk rate is below Credit's although its ratio is better.", "Figures 17 and 19; no number")
def sedf_disk_absolute(results: Results) -> Verdict:
    credit, sedf = (estimates.disk(name, "idle") for name in ("credit", "sedf"))
    above = _above(results, (credit, sedf))
    evidence = (
        f"guest's disk: Credit {estimates.average(results, credit)} KB/s, SEDF {estimates.average(results, sedf)} KB/s"
    )
    return decide(True, evidence, above)


@claim(
    "V-3",
    "CPU stress in Dom0 hurts the guest's disk heavily under SEDF, little under the others.",
    "Table 4 and section 4.5: 4 to 5, 4 to 6, 2 to 4, and 41 to 45 %",
)
def disk_loss(results: Results) -> Verdict:
    losses = {name: estimates.disk_loss(results, name).mean for name in SCHEDULERS}
    little = all(losses[name] < LITTLE for name in SCHEDULERS if name != "sedf")
    evidence = "lost: " + _by_scheduler(lambda name: estimates.disk_loss(results, name))
    return decide(little and losses["sedf"] > HEAVY, evidence)


@claim(
    "V-4",
    "Credit2 handles a guest's I/O under stress better than Credit and SEDF.",
    "Table 4 has 4 to 6 % lost under Credit2, 4 to 5 % under Credit: only the rate itself can be meant",
    contradicted=True,
)
def credit2_disk(results: Results) -> Verdict:
    """The claim can only mean the rate under stress."""
    credit2, credit, sedf = (estimates.disk(name, "stress") for name in ("credit2", "credit", "sedf"))
    above = _above(results, (credit2, credit), (credit2, sedf))
    names = ("credit2", "credit", "sedf")
    evidence = _by_scheduler(lambda name: estimates.average(results, estimates.disk(name, "stress")), "KB/s", names)
    return decide(True, f"guest's disk under stress: {evidence}", above)


@claim(
    "V-5",
    "Sequential writes lose least under Enhanced, then Credit2, Credit, SEDF.",
    "Figure 36; Table 4 does not have Credit2 before Credit",
    contradicted=True,
)
def write_order(results: Results) -> Verdict:
    order = ("enhanced", "credit2", "credit", "sedf")
    cases = {name: [(disk_case(name, "write", load), "rate") for load in ("stress", "idle")] for name in order}
    evidence = "sequential writes lost: " + _by_scheduler(
        lambda name: results.combine(estimates.loss, *cases[name]), names=order
    )
    return decide(
        True,
        evidence,
        [results.difference_of(estimates.loss, cases[more], cases[less]) for less, more in pairwise(order)],
    )


def _network(results: Results, name: str, loads: Sequence[str] = ("idle", "stress", "disk")) -> str:
    return " / ".join(str(estimates.average(results, estimates.network(name, load))) for load in loads)


@claim(
    "V-6",
    "Credit: the network is slower with Dom0 under CPU stress or at its disk.",
    "Table 5: 87.85, 72.71, 71.63 Mbit/s",
)
def credit_network(results: Results) -> Verdict:
    """The loss must be significant with either load of Dom0."""
    losses = {load: estimates.network_loss(results, "credit", load) for load in ("stress", "disk")}
    idle = estimates.network("credit", "idle")
    above = _above(results, *((idle, estimates.network("credit", load)) for load in losses))
    evidence = f"{_network(results, 'credit')} Mbit/s; lost {losses['stress']} and {losses['disk']} %"
    holds = all(loss.mean >= NOTICEABLE for loss in losses.values())
    return decide(holds, f"idle / CPU stress / disk load: {evidence}", above)


@claim("V-7", "Credit2's network is faster than Credit's in each case.", "Table 5: 91.05, 79.15, 84.57 Mbit/s")
def credit2_network(results: Results) -> Verdict:
    loads = ("idle", "stress", "disk")
    above = _above(
        results, *((estimates.network("credit2", load), estimates.network("credit", load)) for load in loads)
    )
    evidence = "; ".join(f"{NAMES[name]} {_network(results, name)}" for name in ("credit2", "credit"))
    return decide(True, f"idle / CPU stress / disk load, Mbit/s: {evidence}", above)


@claim(
    "V-8",
    "SEDF does not serve the network promptly when Dom0 is under CPU stress.",
    "Table 5; SEDF blind then",
)
def sedf_network(results: Results) -> Verdict:
    """The others keep more under CPU stress."""
    sedf = estimates.network("sedf", "stress")
    above = _above(results, *((estimates.network(name, "stress"), sedf) for name in ("credit", "credit2")))
    evidence = "lost under CPU stress: " + _by_scheduler(lambda name: estimates.network_loss(results, name))
    return decide(True, evidence, above)


@claim(
    "V-9",
    "With Dom0 at its disk, Credit2's network is the best of the three.",
    "Table 5; SEDF blind then",
)
def credit2_network_disk(results: Results) -> Verdict:
    best = estimates.network("credit2", "disk")
    above = _above(results, *((best, estimates.network(name, "disk")) for name in ("credit", "sedf")))
    names = ("credit2", "credit", "sedf")
    evidence = _by_scheduler(lambda name: estimates.average(results, estimates.network(name, "disk")), "Mbit/s", names)
    return decide(True, f"Dom0 at its disk: {evidence}", above)


@claim(
    "V-10",
    "The database loses under stress of Dom0: most under SEDF, least of the three under Credit2.",
    "Figures 27 to 29; only SEDF has numbers: a fifth of Dom0's rate, and 75 % lost",
)
def database(results: Results) -> Verdict:
    """Each scheduler loses under stress, SEDF most, Credit2 least of the three."""
    shares = _by_scheduler(lambda name: estimates.database_share(results, name), "of Dom0's")
    evidence = (
        f"Dom0 idle: {shares}; lost under stress: {_by_scheduler(lambda name: estimates.database_loss(results, name))}"
    )
    lost = {name: estimates.database(name, "stress") + estimates.database(name, "idle") for name in SCHEDULERS}
    order = [(lost["sedf"], lost["credit"]), (lost["credit"], lost["credit2"])]
    loses = _above(results, (estimates.database("credit2", "idle"), estimates.database("credit2", "stress")))
    return decide(True, evidence, loses + [results.difference_of(estimates.mean_loss, *pair) for pair in order])


_COLUMNS = {
    "iozone_s_write@dom0": "KB/s",
    "netperf_tcp_stream@dom1": "Mbit/s",
    "sysbench_transactions@dom2": "transactions/s",
}


def _consolidated(results: Results, names: Sequence[str]) -> str:
    rows = (
        f"{NAMES[name]} " + " / ".join(str(results.interval(consolidated_case(name), column)) for column in _COLUMNS)
        for name in names
    )
    return f"{', '.join(_COLUMNS.values())}: {'; '.join(rows)}"


def _ahead(results: Results, first: str, second: str, columns: Sequence[str]) -> list[Difference]:
    pairs = (([(consolidated_case(first), c)], [(consolidated_case(second), c)]) for c in columns)
    return _above(results, *pairs)


@claim("V-11", "Consolidated, SEDF is behind Credit in all three columns.", "Table 7: 0.54, 0.86 and 0.68 of Credit's")
def sedf_consolidated(results: Results) -> Verdict:
    above = _ahead(results, "credit", "sedf", list(_COLUMNS))
    return decide(True, _consolidated(results, ("credit", "sedf", "credit2")), above)


@claim(
    "V-12",
    "Consolidated is like CPU contention, and Dom0's disk is not disturbed.",
    "Table 7; SEDF's disk rate is 54 % of Credit's",
    contradicted=True,
)
def resembles_contention(results: Results) -> Verdict:
    """Netperf as under CPU stress, to a fifth; Dom0's disk as when it is alone, to a tenth."""
    ratios, holds = [], True
    for name in SCHEDULERS:
        case = consolidated_case(name)
        alone = results.mean(disk_case(name, "write", "native"), "rate")
        disk = results.mean(case, "iozone_s_write@dom0") / alone
        stressed = estimates.average(results, estimates.network(name, "stress")).mean
        net = results.mean(case, "netperf_tcp_stream@dom1") / stressed
        holds &= abs(net - 1) <= 0.2 and disk >= 0.9
        ratios.append(f"{NAMES[name]} {net:.2f} and {disk:.2f}")
    return decide(holds, "netperf over that under stress, Dom0's disk over that alone: " + ", ".join(ratios))


@claim(
    "V-13",
    "Enhanced loses least of the four of the network under CPU stress.",
    "Figures 37 and 38; its numbers were blind then",
)
def enhanced_network(results: Results) -> Verdict:
    evidence = "lost under CPU stress: " + _by_scheduler(lambda name: estimates.network_loss(results, name))
    lost = {name: estimates.network(name, "stress") + estimates.network(name, "idle") for name in SCHEDULERS}
    least = lost.pop("enhanced")
    return decide(
        True,
        evidence,
        [results.difference_of(estimates.loss_of_means, scheduler_lost, least) for scheduler_lost in lost.values()],
    )


@claim(
    "V-14",
    "Enhanced: Dom0's database is as under the other Credits; the guest loses less than under Credit2.",
    "Figure 39; no number",
)
def enhanced_database(results: Results) -> Verdict:
    """Dom0's rate within 5 % of that of Credit and Credit2; the guest loses less than under Credit2."""
    rate = {name: estimates.average(results, estimates.database(name, "native")).mean for name in SCHEDULERS}
    alike = all(abs(rate["enhanced"] / rate[name] - 1) <= 0.05 for name in ("credit", "credit2"))
    pair = (estimates.database("enhanced", "stress"), estimates.database("credit2", "stress"))
    above = _above(results, pair)
    names = ("enhanced", "credit2", "credit")
    native = _by_scheduler(
        lambda name: estimates.average(results, estimates.database(name, "native")), "transactions/s", names
    )
    lost = _by_scheduler(lambda name: estimates.database_loss(results, name), names=names)
    return decide(alike, f"Dom0: {native}; lost under stress: {lost}", above)


@claim("V-15", "Consolidated, Enhanced is ahead of Credit2 for database and network.", "Figure 40; no number")
def enhanced_consolidated(results: Results) -> Verdict:
    columns = ["netperf_tcp_stream@dom1", "sysbench_transactions@dom2"]
    above = _ahead(results, "enhanced", "credit2", columns)
    return decide(True, _consolidated(results, ("enhanced", "credit2")), above)


@claim(
    "V-16",
    "With the machine otherwise idle Enhanced is behind Credit, because of context switches.",
    "Section 4.6; V-1 says the opposite",
    contradicted=True,
)
def enhanced_idle(results: Results) -> Verdict:
    pairs = [
        (cases_of("credit", "idle"), cases_of("enhanced", "idle"))
        for cases_of in (estimates.disk, estimates.network, estimates.database)
    ]
    above = _above(results, *pairs)
    evidence = "; ".join(
        f"{workload}: {estimates.average(results, credit)} and {estimates.average(results, enhanced)}"
        for workload, (credit, enhanced) in zip(("disk", "network", "database"), pairs, strict=True)
    )
    return decide(True, f"Dom0 idle, Credit and Enhanced: {evidence}", above)


@claim(
    "V-17",
    "A slice of 30 ms favours those that compute; those that do I/O wait.",
    "Section 4.2, argued, not measured; were it so, disk and network would lose far more than the 4 to 5 and "
    "17 % of Tables 4 and 5: a stream of 16 KB each 30 ms is 4 Mbit/s",
    contradicted=True,
)
def slices(results: Results) -> Verdict:
    """The guest's I/O beside CPU stress is faster with a shorter slice."""
    rate = {ms: [(slice_case("network", ms), "domU_throughput")] for ms in (1, 5, 10, 30)}
    above = _above(results, (rate[1], rate[30]))
    network = ", ".join(f"{ms} ms {estimates.average(results, values)}" for ms, values in rate.items())
    database = ", ".join(f"{ms} ms {results.interval(slice_case('database', ms), 'transactions')}" for ms in rate)
    return decide(True, f"netperf, Mbit/s: {network}; database, transactions/s: {database}", above)


@claim("V-18", "Enhanced does no harm to those that compute.", "asserted, not measured")
def cpu_bound(results: Results) -> Verdict:
    """Beside netperf CPU-bound Dom0 gets the half of the machine that its weight gives it."""
    cpu = results.interval(cpu_bound_case("enhanced"), "cpu_util@dom0")
    ratio = results.combine(
        lambda enhanced, credit: enhanced / credit,
        (cpu_bound_case("enhanced"), "stress_batches"),
        (cpu_bound_case("credit"), "stress_batches"),
    )
    evidence = f"Dom0 has {cpu} % of 200 %, entitled to 100 %; its arithmetic over that under Credit: {ratio}"
    return decide(cpu.mean >= HALF, evidence)


@claim("V-19", "The scheduler alone changes what applications achieve.", "overall conclusion")
def scheduler_matters(results: Results) -> Verdict:
    """A difference of 10 % or more between best and worst, for each workload beside CPU stress."""
    spread = {}
    for workload, cases_of in (
        ("disk", estimates.disk),
        ("network", estimates.network),
        ("database", estimates.database),
    ):
        means = [estimates.average(results, cases_of(name, "stress")).mean for name in SCHEDULERS]
        spread[workload] = 100 * (1 - min(means) / max(means))
    evidence = ", ".join(f"{workload} {value:.0f} %" for workload, value in spread.items())
    return decide(min(spread.values()) >= 10, f"worst below best, Dom0 under CPU stress: {evidence}")
