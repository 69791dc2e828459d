"""The claims of the thesis, by their numbers in the notes, each above its check."""

from collections.abc import Sequence
from itertools import combinations

from vcpulab.results.statistics import Difference, holm, paired
from vcpulab_evidence.studies.claims import SIGNIFICANT, Claims, Verdict, cannot_be_tested, decide
from vcpulab_evidence.studies.devine2010 import cases as c
from vcpulab_evidence.studies.devine2010 import noise
from vcpulab_evidence.studies.devine2010.analysis import (
    WEB_CONFIGS,
    WINDOWS_CONFIGS,
    best,
    configs,
    mean_by_replication,
    mean_over,
)
from vcpulab_evidence.studies.results import Results

claim = Claims()


def _web(users: int, configs: Sequence[str] = WEB_CONFIGS) -> list[str]:
    return [c.name(c.WEB, config, users) for config in configs]


def _moss(users: int, configs: Sequence[str] = WINDOWS_CONFIGS) -> list[str]:
    return [c.name(c.MOSS, config, users) for config in configs]


def _of_kind(kind: str, configs: Sequence[str]) -> list[str]:
    return [config for config in configs if config.startswith(kind)]


def _bests(results: Results, experiment: str, loads: Sequence[int]) -> str:
    by_load = {users: best(results, experiment, users) for users in loads}
    return "; ".join(
        f"{users} users: {b.config} {b.mean:.1f}/s, no significant difference to {len(b.ties) - 1} others, "
        f"best over worst {b.range_percent:.0f} %"
        for users, b in by_load.items()
    )


@claim(
    "D-1",
    "No single configuration is best for all web loads.",
    "the winners of his table change, within its noise",
    undecided=True,
)
def no_single_best(results: Results) -> Verdict:
    by_load = [best(results, c.WEB, users) for users in c.WEB_USERS]
    everywhere = sorted(set.intersection(*(set(each.ties) for each in by_load)))
    everywhere_text = f"among the best at all loads: {', '.join(everywhere) or 'none'}; "
    his = f"; his own runs, does the order depend on the load: {noise.interaction(noise.published(c.WEB))}"
    evidence = everywhere_text + _bests(results, c.WEB, c.WEB_USERS) + his
    if everywhere and any(len(each.ties) > 1 for each in by_load):
        return cannot_be_tested(f"{evidence}; chance is not excluded")
    return decide(not everywhere, evidence)


@claim(
    "D-2",
    "High throughput goes with low response time, whatever the load (web).",
    "his tables agree; by construction up to 100 users: a closed loop without think time",
)
def trade(results: Results) -> Verdict:
    """Only configurations with significant differences in throughput and in response time have an order in both."""
    shown, with_it, against = [], 0, 0
    for users in c.WEB_USERS:
        pairs = list(combinations(_web(users), 2))
        faster, slower = (_sure_signs(results, metric, pairs) for metric in ("throughput", "response_time"))
        products = [x * r for x, r in zip(faster, slower, strict=True)]
        shown.append(f"{products.count(-1)} and {products.count(1)} at {users} users")
        with_it, against = with_it + products.count(-1), against + products.count(1)
    counted = "pairs of configurations in which more throughput surely goes with shorter and with longer response times"
    evidence = f"{counted}: {', '.join(shown)}"
    if not with_it and not against:
        return cannot_be_tested(f"{evidence}; chance is not excluded")
    return decide(not against, evidence)


def _sure_signs(results: Results, metric: str, pairs: Sequence[tuple[str, str]]) -> list[int]:
    """The sign of the significant difference of a metric in each pair; 0: not significant."""
    gaps = [results.difference(metric, a, b) for a, b in pairs]
    ps = holm([gap.p or 0.0 for gap in gaps])
    means = [gap.interval.mean for gap in gaps]
    return [(mean > 0) - (mean < 0) if p < SIGNIFICANT else 0 for mean, p in zip(means, ps, strict=True)]


@claim("D-3", "Web, 25 users: credit-256 and sedf-2.5 are best.", "his means agree, within their noise", undecided=True)
def best_at_25(results: Results) -> Verdict:
    return _are_best(results, c.WEB, 25, "credit-256", "sedf-2.5")


@claim(
    "D-4",
    "Web, 50 users: credit-2048 is best.",
    "his means agree, within their noise (two intervals do not meet its own, but 1.96 should be 2.78)",
    undecided=True,
)
def best_at_50(results: Results) -> Verdict:
    return _are_best(results, c.WEB, 50, "credit-2048")


@claim(
    "D-5",
    "Web, 100 users: credit-256 and credit-1024 are best.",
    "no configuration is separated by his intervals",
    undecided=True,
)
def best_at_100(results: Results) -> Verdict:
    return _are_best(results, c.WEB, 100, "credit-256", "credit-1024")


@claim(
    "D-6",
    "Web, 500 users: credit-2048 and sedf-250 are best.",
    "no configuration is separated by his intervals",
    undecided=True,
)
def best_at_500(results: Results) -> Verdict:
    return _are_best(results, c.WEB, 500, "credit-2048", "sedf-250")


@claim(
    "D-19",
    "MOSS with 25 users: credit-2048 is best.",
    "his mean is the highest, not significantly above credit-256 and 1024; its response time is doubtful (D-I3)",
    undecided=True,
)
def best_for_moss_at_25(results: Results) -> Verdict:
    return _are_best(results, c.MOSS, 25, "credit-2048")


def _are_best(results: Results, experiment: str, users: int, *named: str) -> Verdict:
    """The verdict on configurations that are claimed to be better than all others."""
    rest = [config for config in configs(experiment) if config not in named]
    means = ", ".join(f"{x} {results.mean(c.name(experiment, x, users), 'throughput'):.1f}" for x in named)
    evidence = f"{means}; {_bests(results, experiment, (users,))}; {noise.in_words(experiment, users)}"
    return decide(
        True, evidence, [_gap(results, experiment, users, winner, loser) for winner in named for loser in rest]
    )


def _gap(results: Results, experiment: str, users: int, first: str, second: str) -> Difference:
    """The difference of the throughputs of two configurations."""
    return results.difference("throughput", *(c.name(experiment, config, users) for config in (first, second)))


def _best_other(results: Results, experiment: str, users: int, but: Sequence[str]) -> str:
    """The configuration with the highest throughput, except some configurations."""
    candidates = [config for config in configs(experiment) if config not in but]
    return max(candidates, key=lambda config: results.mean(c.name(experiment, config, users), "throughput"))


@claim("D-7", "Web, 800 users: one configuration is best.", "its numbers were blind then")
def one_best(results: Results) -> Verdict:
    winner = best(results, c.WEB, 800).config
    gaps = [_gap(results, c.WEB, 800, winner, config) for config in WEB_CONFIGS if config != winner]
    return decide(True, _bests(results, c.WEB, (800,)), gaps)


@claim(
    "D-8",
    "The default credit-256 is best for 25 and 100 users only, and there not significantly.",
    "his means agree, within their noise: at no load is it significantly below the best",
    undecided=True,
)
def default_best(results: Results) -> Verdict:
    at = [users for users in c.WEB_USERS if "credit-256" in best(results, c.WEB, users).ties]
    table = noise.published(c.WEB)
    his = [users for users in table.loads if "credit-256" not in noise.behind(table, users)[1]]
    rivals = {
        users: _best_other(results, c.WEB, users, ["credit-256"]) for users in c.WEB_USERS if users not in (25, 100)
    }
    gaps = [_gap(results, c.WEB, users, rival, "credit-256") for users, rival in rivals.items()]
    evidence = f"credit-256 is among the best at: {at or 'no load'}; in his own runs at: {his}"
    return decide({25, 100} <= set(at), evidence, gaps)


@claim(
    "D-9",
    "sedf-20 and sedf-280 never win; at 25 users sedf-20 is far below sedf-2.5.",
    "his means agree, within their noise; sedf-280 does not favour Dom0 (D-I5)",
    undecided=True,
)
def dom0_favoured(results: Results) -> Verdict:
    wins = [users for users in c.WEB_USERS if best(results, c.WEB, users).config in ("sedf-20", "sedf-280")]
    slow, fast = _web(25, ("sedf-20", "sedf-2.5"))
    gap = results.difference("throughput", fast, slow)
    evidence = f"they win at: {wins or 'no load'}; sedf-2.5 less sedf-20 at 25 users: {gap.interval}/s"
    return decide(not wins, f"{evidence}; {noise.in_words(c.WEB, 25)}", [gap])


def _ratios(results: Results, first: int, second: int, metric: str) -> list[float]:
    pairs = zip(_web(first), _web(second), strict=True)
    return [results.mean(b, metric) / results.mean(a, metric) for a, b in pairs]


@claim(
    "D-10",
    "Response time about doubles from 25 to 50 users and again from 50 to 100.",
    "ratios 1.8 to 3.1 and 1.5 to 2.8",
)
def doubles(results: Results) -> Verdict:
    ratios = [*_ratios(results, 25, 50, "response_time"), *_ratios(results, 50, 100, "response_time")]
    return decide(min(ratios) >= 1.5 and max(ratios) <= 2.8, f"ratios {min(ratios):.2f} to {max(ratios):.2f}")


@claim(
    "D-11",
    "From 100 to 500 users response time rises far more sharply.",
    "ratios 2.5 to 4.4: less than in proportion to the users",
    contradicted=True,
)
def sharper(results: Results) -> Verdict:
    ratios, before = (_ratios(results, a, b, "response_time") for a, b in ((100, 500), (50, 100)))
    evidence = f"ratios {min(ratios):.2f} to {max(ratios):.2f} for five times the users, before {min(before):.2f} to "
    return decide(
        min(ratios) > max(before), f"{evidence}{max(before):.2f} for twice: more in ms, less than in proportion"
    )


@claim("D-12", "The spread of response times grows with load.", "280–590 ms at 25 users, 20–27 s at 500")
def spread(results: Results) -> Verdict:
    spread = [mean_over(results, "response_sd", _web(users)) for users in c.WEB_USERS]
    shown = ", ".join(f"{sd:.0f} ms at {users}" for sd, users in zip(spread, c.WEB_USERS, strict=True))
    return decide(spread[:4] == sorted(spread[:4]), f"mean standard deviation of a response: {shown}")


@claim(
    "D-13",
    "The Apache VM is bound by CPU: 90 % waiting, 1 % blocked.",
    "rests on waiting as a residual (D-I1); running and blocked are 11 to 14 of its 25 points, and the host "
    "is half idle",
    undecided=True,
)
def apache_bound(results: Results) -> Verdict:
    all_loads = [case for users in c.WEB_USERS for case in _web(users)]
    running, blocked, runnable, rest = (
        mean_over(results, f"{metric}@apache", all_loads) for metric in ("running", "blocked", "runnable", "waiting")
    )
    evidence = (
        f"of 25 points of its one vCPU: running {running:.1f}, blocked {blocked:.1f}, runnable {runnable:.1f}; his "
    )
    return decide(
        blocked < 2.5, f"{evidence}residual says waiting {rest:.0f} %, of which 75 are vCPUs it does not have"
    )


@claim(
    "D-14",
    "The NFS VM is blocked for 40 % and waits for 60 %; MySQL is similar with nearly twice the CPU.",
    "his MySQL has three to five times the CPU of NFS",
    contradicted=True,
)
def nfs_mysql(results: Results) -> Verdict:
    all_loads = [case for users in c.WEB_USERS for case in _web(users)]
    blocked, rest = (mean_over(results, f"{metric}@nfs", all_loads) for metric in ("blocked", "waiting"))
    ratio = mean_over(results, "running@mysql", all_loads) / mean_over(results, "running@nfs", all_loads)
    holds = 35 <= blocked <= 50 and 50 <= rest <= 65 and 1.5 <= ratio <= 2.5
    return decide(holds, f"NFS blocked {blocked:.0f}, residual {rest:.0f}; MySQL has {ratio:.1f} times its CPU")


@claim(
    "D-15",
    "The scheduler hardly changes how a domain's time is split.",
    "his Dom0 is blocked 21–38 % under Credit, 36–56 % under SEDF",
    contradicted=True,
)
def same_split(results: Results) -> Verdict:
    means, alike = [], True
    for metric in ("running@dom0", "blocked@dom0", "running@apache"):
        credit, sedf = (
            mean_over(results, metric, [x for users in c.WEB_USERS for x in _web(users, _of_kind(kind, WEB_CONFIGS))])
            for kind in ("credit", "sedf")
        )
        alike &= abs(credit / sedf - 1) < 0.1
        means.append(f"{metric} {credit:.1f} and {sedf:.1f}")
    return decide(alike, "Credit and SEDF: " + "; ".join(means))


@claim(
    "D-16",
    "A higher weight does not by itself help, and can hurt.",
    "his tables agree, within their noise",
    undecided=True,
)
def weight(results: Results) -> Verdict:
    gaps = {}
    for users in c.WEB_USERS:
        default, heavy = _web(users, ("credit-256", "credit-4096"))
        gaps[users] = results.difference("throughput", heavy, default)
    helps = [u for u, gap in gaps.items() if gap.interval.mean > 0.02 * results.mean(_web(u)[0], "throughput")]
    shown = "; ".join(f"{users} users {gap.interval}" for users, gap in gaps.items())
    return decide(not helps, f"credit-4096 less credit-256: {shown} (a help is 2 % or more)")


@claim(
    "D-17",
    "SEDF gives generally better performance for the web application.",
    "his column means say the opposite at three of four loads",
    contradicted=True,
)
def sedf_better(results: Results) -> Verdict:
    credit, sedf = (
        mean_by_replication(
            results, "throughput", [x for users in c.WEB_USERS for x in _web(users, _of_kind(kind, WEB_CONFIGS))]
        )
        for kind in ("credit", "sedf")
    )
    gap = paired(sedf, credit)
    assert gap is not None
    return decide(True, f"SEDF less Credit, mean over loads and configurations: {gap.interval}/s", [gap])


@claim(
    "D-18",
    "MOSS with more than 25 users: some SEDF configuration has the highest throughput.",
    "his table agrees at 50 users; more was blind then",
)
def moss_sedf(results: Results) -> Verdict:
    loads = (50, 100, 500)
    credit, sedf = (_of_kind(kind, WINDOWS_CONFIGS) for kind in ("credit", "sedf"))
    gaps = [
        _gap(results, c.MOSS, users, *(_best_other(results, c.MOSS, users, but) for but in (credit, sedf)))
        for users in loads
    ]
    return decide(True, f"{_bests(results, c.MOSS, loads)}; {noise.in_words(c.MOSS, 50)}", gaps)


@claim("D-20", "MOSS with 25 users: all Credit rows are above all SEDF rows.", "his table agrees")
def credit_above(results: Results) -> Verdict:
    credit, sedf = (
        {x: results.mean(x, "throughput") for x in _moss(25, _of_kind(kind, WINDOWS_CONFIGS))}
        for kind in ("credit", "sedf")
    )
    low, high = min(credit, key=lambda x: credit[x]), max(sedf, key=lambda x: sedf[x])
    gap = results.difference("throughput", low, high)
    return decide(True, f"lowest Credit {credit[low]:.0f}/s, highest SEDF {sedf[high]:.0f}/s", [gap])


@claim(
    "D-21",
    "The default credit-256 is not the best for MOSS above 25 users.",
    "7.1 % at 50 users; more was blind then",
)
def moss_default(results: Results) -> Verdict:
    shown, gaps = [], []
    for users in (50, 100, 500):
        highest = best(results, c.MOSS, users)
        default = results.mean(c.name(c.MOSS, "credit-256", users), "throughput")
        rival = _best_other(results, c.MOSS, users, ["credit-256"])
        gaps.append(_gap(results, c.MOSS, users, rival, "credit-256"))
        shown.append(f"{users} users: {highest.config} is better by {100 * (highest.mean / default - 1):.1f} %")
    return decide(True, f"{'; '.join(shown)}; {noise.in_words(c.MOSS, 50)}", gaps)


@claim(
    "D-22",
    "The MOSS VM is bound by CPU, MSSQL by CPU and I/O.",
    "rests on waiting as a residual (D-I1)",
    undecided=True,
)
def moss_bound(results: Results) -> Verdict:
    moss, mssql = (
        [
            mean_over(results, f"{metric}@{domain}", [x for users in c.MOSS_USERS for x in _moss(users)])
            for metric in ("running", "runnable", "blocked")
        ]
        for domain in ("moss", "mssql")
    )
    evidence = "; ".join(
        f"{name} of 50 points: running {running:.1f}, runnable {runnable:.1f}, blocked {blocked:.1f}"
        for name, (running, runnable, blocked) in (("MOSS", moss), ("MSSQL", mssql))
    )
    return decide(moss[2] < 5 and mssql[0] < 40 and mssql[2] > 5, evidence)


@claim(
    "D-23",
    "At 25 users MSSQL is blocked half the time under sedf-2 and sedf-2.8, but 11 % under sedf-200 and sedf-175.",
    "true of sedf-2.8, whose log looks like an idle domain's (D-I12); sedf-2 has 15 %",
    contradicted=True,
)
def mssql_split(results: Results) -> Verdict:
    short, long = (
        mean_over(results, "blocked@mssql", _moss(25, x)) for x in (("sedf-2", "sedf-2.8"), ("sedf-200", "sedf-175"))
    )
    return decide(
        short > 2 * long, f"MSSQL blocked at 25 users: {short:.1f} with short periods, {long:.1f} with long ones"
    )


@claim(
    "D-24",
    "MOSS response times up to 100 users are alike across configurations.",
    "at 50 users sedf-200 and sedf-20 do not overlap",
    contradicted=True,
)
def moss_alike(results: Results) -> Verdict:
    shown, alike = [], True
    for users in (25, 50, 100):
        means = [results.mean(case, "response_time") for case in _moss(users)]
        alike &= max(means) / min(means) < 1.1
        shown.append(f"{users} users: {min(means):.0f} to {max(means):.0f} ms")
    return decide(alike, "; ".join(shown) + " (alike: within 10 %)")


@claim(
    "D-25",
    "Between 100 and 500 MOSS users response time and blocked time jump: a bottleneck in the VMs.",
    "its numbers were blind then",
)
def moss_jump(results: Results) -> Verdict:
    response = [mean_over(results, "response_time", _moss(users)) for users in (50, 100, 500)]
    blocked = [mean_over(results, "blocked@moss", _moss(users)) for users in (100, 500)]
    holds = response[2] / response[1] > 5 and blocked[1] > blocked[0] + 5
    return decide(
        holds,
        f"response times {response[0]:.0f}, {response[1]:.0f}, {response[2]:.0f} ms at 50, 100, 500 users: "
        f"in proportion to the users; MOSS blocked {blocked[0]:.1f} and {blocked[1]:.1f} at 100 and 500",
    )


@claim("D-26", "Default settings carry no guarantee of performance.", "his conclusion")
def no_guarantee(results: Results) -> Verdict:
    worst: dict[str, float] = {}
    for experiment, loads in ((c.WEB, c.WEB_USERS), (c.MOSS, c.MOSS_USERS)):
        for users in loads:
            highest = best(results, experiment, users)
            for default in ("credit-256", "sedf-20"):
                mean = results.mean(c.name(experiment, default, users), "throughput")
                loss = 0.0 if default in highest.ties else 100 * (1 - mean / highest.mean)
                worst[default] = max(worst.get(default, 0.0), loss)
    shown = " and ".join(f"{default}: at most {loss:.1f} %" for default, loss in worst.items())
    return decide(
        max(worst.values()) > 5,
        f"below the best configuration (web and MOSS, significant), {shown}",
    )


@claim(
    "D-27",
    "Web throughput falls as users grow, it does not only level off.",
    "his means over the rows fall from 25 to 100 users by more than their noise, not from 100 to 500",
)
def falls(results: Results) -> Verdict:
    few, many = (mean_by_replication(results, "throughput", _web(users)) for users in (25, 100))
    gap = paired(few, many)
    assert gap is not None
    means = ", ".join(f"{mean_over(results, 'throughput', _web(users)):.1f} at {users}" for users in c.WEB_USERS)
    return decide(True, f"mean over the configurations: {means}; {noise.change(25, 100)}", [gap])
