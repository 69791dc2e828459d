"""How much more a host can carry: decisions, the search, the bottleneck's name, and theory where it is exact."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import ROOT, TWO_HOGS
from vcpulab import Scenario, run
from vcpulab._work.budget import Budget, StoppedError
from vcpulab.advice.capacity import Capacity, bottleneck, capacity, growth, stations
from vcpulab.advice.capacity.judging import Standing, judge
from vcpulab.advice.capacity.search import Range, SearchResult, search
from vcpulab.cli.main import main
from vcpulab.errors import RequestError
from vcpulab.results.addresses import slo

SERVICE_MS = 10.0

QUEUE = """\
name = "one server"
[run]
duration = "20s"
warmup = "1s"
replications = 5
[host]
profile = "exact"
pcpus = 2
scheduler = "credit"
[domain.dom0]
driver_domain = true
[domain.web]
nic = { driver_domain = "dom0" }
app = [{ kind = "web-server", request_cpu = "10ms", connections_max = 65536, backlog = 65536 }]
"""

OPEN = QUEUE + '[client.users]\nkind = "open-loop"\nserver = "web"\nrate = 20\nfile_size = "1KB"\n'
CLOSED = QUEUE + '[client.users]\nkind = "closed-loop"\nserver = "web"\nusers = 5\nthink = "100ms"\nfile_size = "1KB"\n'


def found(text: str, grow: str, *slos: str, changes: dict[str, Any] | None = None, **where: float) -> Capacity:
    scenario = Scenario.from_toml(text).change(changes or {})
    return capacity(growth(scenario, grow, **where), [slo(scenario, one) for one in slos])


# ---- does an SLO hold? ----


@pytest.mark.parametrize(
    ("values", "standing"),
    [
        ([10, 11, 12, 11, 10], "holds"),
        ([45, 55, 48, 57, 44], "open"),
        ([60, 61, 62, 61, 60], "broken"),
        ([49.9], "open"),
        ([20, 20], "holds"),
        ([None, None], "broken"),
        ([10, 11, None, 11, 10], "open"),
    ],
)
def test_an_slo_holds_is_broken_or_open(values: list[float | None], standing: str) -> None:
    p99 = slo(Scenario.from_toml(OPEN), "web.response_p99 < 50ms")
    assert judge(p99, values).standing == standing


def test_one_failure_breaks_an_slo_of_none() -> None:
    none = slo(Scenario.from_toml(OPEN), "web.failed <= 0")
    assert judge(none, [0.0, 0.0, 0.0]).standing == "holds"
    assert judge(none, [0.0, 0.0, 1.0]).standing == "broken"


def test_an_slo_from_below() -> None:
    most = slo(Scenario.from_toml(OPEN), "web.throughput > 10")
    assert [judge(most, [x, x + 1, x]).standing for x in (20.0, 9.5, 1.0)] == ["holds", "open", "broken"]


def test_more_slos_make_it_harder_to_call_one_broken() -> None:
    p99 = slo(Scenario.from_toml(OPEN), "web.response_p99 < 50ms")
    near = [51.0, 54.0, 52.0, 55.0, 53.0]
    assert judge(p99, near).standing == "broken"
    assert judge(p99, near, slos=50).standing == "open"


# ---- the search ----


def stepped(holds_until: float, open_until: float) -> Any:
    def stands(value: float) -> Standing:
        return "holds" if value <= holds_until else "open" if value <= open_until else "broken"

    return stands


@pytest.mark.parametrize(("holds_until", "open_until"), [(1, 1), (37, 37), (63, 64), (64, 64), (65, 80), (999, 999)])
def test_borders_are_found_exactly_among_integers(holds_until: int, open_until: int) -> None:
    it = search(Range(1, 1000, whole=True), stepped(holds_until, open_until))
    assert (it.outcome, it.value, it.open_until, it.broken) == ("found", holds_until, open_until, open_until + 1)
    assert len(it.tried) < 40


def test_rates_are_found_to_one_percent() -> None:
    it = search(Range(0.5, 1e6, whole=False), stepped(777.7, 777.7))
    assert it.value is not None
    assert it.broken is not None
    assert it.value <= 777.7 < it.broken <= 1.011 * it.value


def test_no_value_and_every_value() -> None:
    nothing = search(Range(5, 100, whole=True), stepped(0, 0))
    assert (nothing.outcome, nothing.value, list(nothing.tried)) == ("none", None, [5])
    everything = search(Range(5, 100, whole=True), stepped(1000, 1000))
    assert (everything.outcome, everything.value, everything.broken) == ("all", 100, None)


def test_the_highest_allowed_value_is_looked_for_only_where_a_search_gets_there() -> None:
    loads: list[float] = []

    def allowed(value: float) -> bool:
        loads.append(value)
        return value <= 300

    assert search(Range(1, math.inf, True, allowed), stepped(5, 5)).value == 5
    assert max(loads) <= 12
    everything = search(Range(1, math.inf, True, allowed), stepped(1000, 1000))
    assert (everything.outcome, everything.value) == ("all", 300)
    assert len(loads) < 30


def test_a_hole_below_is_found_and_counts() -> None:
    it = search(Range(1, 1000, whole=True), lambda n: "broken" if 90 <= n <= 110 or n > 400 else "holds")
    assert it.value == 89
    assert it.broken == 90
    assert it.broken_below
    assert max(it.holds_above) > 200


def test_a_search_that_is_stopped_keeps_what_it_knows() -> None:
    def stands(value: float) -> Standing:
        if value > 100:
            raise StoppedError("enough")
        return "holds"

    it: SearchResult = search(Range(1, 1000, whole=True), stands)
    assert (it.outcome, it.value, it.stopped) == ("stopped", 64, "enough: stopped at 128")


# ---- theory ----


def waits_md1(rho: float, service: float, time: float) -> float:
    """P(W <= time) in an M/D/1 queue (Erlang 1909; Iversen 2010, "Teletraffic engineering", section 10.4)."""
    rate = rho / service
    whole = int(time // service)
    terms = (
        (-rate * (time - k * service)) ** k / math.factorial(k) * math.exp(rate * (time - k * service))
        for k in range(whole + 1)
    )
    return (1 - rho) * math.fsum(terms)


def rate_md1(p99_ms: float) -> float:
    """The rate at which the 99th percentile of the response time of an M/D/1 queue is this, 1/s."""
    low, high = 0.0, 1.0
    for _ in range(40):
        rho = (low + high) / 2
        if waits_md1(rho, SERVICE_MS, p99_ms - SERVICE_MS) >= 0.99:
            low = rho
        else:
            high = rho
    return low * 1000 / SERVICE_MS


def test_an_open_loop_breaks_its_slo_where_queueing_theory_says() -> None:
    answer = found(OPEN, "web.rate", "web.response_p99 < 40ms", lowest=20)
    assert answer.result.value is not None
    assert answer.result.broken is not None
    assert answer.result.value <= rate_md1(40) <= answer.result.broken
    assert answer.result.broken < 1.35 * answer.result.value


def test_a_closed_loop_ends_at_its_asymptote() -> None:
    # R >= N D - Z (Denning and Buzen 1978): a response of 500 ms is reached at N = (500 + 100) / 10 users.
    answer = found(CLOSED, "web.users", "web.response_p50 < 500ms", lowest=5)
    assert answer.result.value is not None
    assert 57 <= answer.result.value <= 60
    saturated = answer.saturated
    assert saturated is not None
    assert saturated.bottleneck is not None
    assert saturated.bottleneck.kind == "guest vCPU"


def test_the_default_slos_are_ten_times_the_lowest_response() -> None:
    answer = found(CLOSED, "web.users")
    assert [str(one) for one in answer.slos] == ["users.failed <= 0 count", "users.response_p99 <= 100 ms"]
    assert answer.by_default
    # The knee is at N* = (D + Z) / D = 11 users; beyond it each user adds D to every response.
    assert answer.result.value is not None
    assert 11 < answer.result.value < 20


def test_copies_fill_the_host() -> None:
    # 40 % of a pCPU for each copy, and 2 pCPUs: five need all there is.
    answer = found(OPEN, "copies:web", "web.response_p99 < 200ms", changes={"client.users.rate": 40})
    assert answer.result.value in (3, 4)
    assert answer.saturated is not None
    assert answer.saturated.bottleneck is not None
    assert answer.saturated.bottleneck.kind == "pCPUs"


def test_periodic_work_fills_a_pool() -> None:
    # Each copy computes 1.5 ms in 5 ms, and the pool has two pCPUs: six take 90 % of them, seven would take 105 %.
    scenario = Scenario.load(ROOT / "scenarios" / "pools.toml").change({"run.duration": "2s", "action": None})
    answer = capacity(growth(scenario, "copies:control", highest=8))
    assert (answer.result.value, answer.result.broken) == (6, 7)
    assert answer.saturated is not None
    assert answer.saturated.bottleneck is not None
    assert answer.saturated.bottleneck.name == "pCPUs of rt"


def test_copies_of_what_has_a_count_are_its_count() -> None:
    counted = Scenario.from_toml(
        'host = { profile = "exact", pcpus = 1, scheduler = "credit" }\n[domain.batch]\ncount = 3\n'
    )
    with pytest.raises(RequestError) as refused:
        growth(counted, "copies:batch")
    assert "allowed: one of batch1 to batch3" in str(refused.value)
    assert "hint: its own number grows as batch.count" in str(refused.value)


def test_copies_have_clients_machines_and_actions_of_their_own() -> None:
    scenario = Scenario.from_toml(OPEN).change(
        {
            "client_machine.desk.processors": 1,
            "client.users.machine": "desk",
            "action": [{"at": "1s", "op": "pause", "domain": "web"}],
        }
    )
    document = growth(scenario, "copies:web").at(3).to_dict()
    assert list(document["client"]) == ["users", "users-2", "users-3"]
    assert [client["machine"] for client in document["client"].values()] == ["desk", "desk-2", "desk-3"]
    assert [client["server"] for client in document["client"].values()] == ["web", "web-2", "web-3"]
    assert [action["domain"] for action in document["action"]] == ["web", "web-2", "web-3"]


def test_the_answer_is_the_same_twice() -> None:
    answers = [found(CLOSED, "web.users", "web.response_p99 < 60ms").as_data() for _ in range(2)]
    assert answers[0] == answers[1]


# ---- which bottleneck? ----

SMALL = {"run.duration": "2s", "run.replications": 2}
BUSY = {"client.users.rate": 150}

PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "guest vCPU": (OPEN, BUSY),
    "driver domain": (
        OPEN,
        {"host.costs.bridge_ns": 1_000_000, "client.users.rate": 300, "domain.web.app.0.request_cpu": "10us"},
    ),
    "cap": (OPEN, {"domain.web.cap": 30, "client.users.rate": 40}),
    "budget": (
        OPEN,
        {
            "host.scheduler": "rtds",
            "domain.web.period_us": 10_000,
            "domain.web.budget_us": 3_000,
            "domain.web.extratime": 0,
            "client.users.rate": 40,
        },
    ),
    "pCPUs": (
        OPEN,
        {
            "host.pcpus": 1,
            "domain.batch.vcpus": 4,
            "domain.batch.weight": 1024,
            "domain.batch.app": [{"kind": "hog", "instance": 4}],
            "client.users.rate": 60,
        },
    ),
    "link": (
        OPEN,
        {
            "host.costs.nic_bits_per_s": 10_000_000,
            "client.users.rate": 200,
            "client.users.file_size": "10KB",
            "domain.web.app.0.request_cpu": "10us",
            "domain.web.app.0.workers": 100,
        },
    ),
    "client machine": (
        CLOSED,
        {
            "client_machine.desk": {"processors": 1, "request_cpu": "20ms"},
            "client.users.machine": "desk",
            "client.users.users": 20,
        },
    ),
    "disk": (
        CLOSED,
        {
            "host.profile": "generic",
            "domain.web.disk": {"driver_domain": "dom0"},
            "domain.web.app": [{"kind": "nfs", "cached": 0, "threads": 8}],
            "client.users": {"kind": "closed-loop", "server": "web", "users": 20},
        },
    ),
    "backlog": (
        CLOSED,
        {
            "host.profile": "generic",
            "host.costs.ssd_latency_ns": 20_000_000,
            "disk.flash": {"driver_domain": "dom0", "kind": "ssd"},
            "domain.web.disk": {"driver_domain": "dom0", "device": "flash"},
            "domain.web.app": [{"kind": "nfs", "cached": 0, "threads": 1}],
            "client.users": {"kind": "closed-loop", "server": "web", "users": 20},
        },
    ),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_the_bottleneck_is_named(kind: str) -> None:
    text, changes = PLANTED[kind]
    busiest = bottleneck(stations(run(Scenario.from_toml(text).change({**SMALL, **changes})), ["web"]))
    assert busiest is not None
    assert busiest.kind == kind, str(busiest)
    assert busiest.used > 0.85


def test_a_neighbour_that_is_always_busy_is_no_bottleneck() -> None:
    changes = {"domain.batch.app": [{"kind": "hog"}], "host.pcpus": 4}
    busiest = bottleneck(stations(run(Scenario.from_toml(OPEN).change({**SMALL, **changes})), ["web"]))
    assert busiest is not None
    assert busiest.used < 0.5


# ---- ends ----


def test_a_guard_stops_a_run_that_takes_too_long() -> None:
    scenario = Scenario.from_toml(OPEN).change({"run.duration": "2000s", "run.replications": 1})
    with pytest.raises(StoppedError, match=r"the 0\.05 s that were given are over"):
        Budget(0.05).watch(run, scenario)


def test_an_interrupt_of_the_user_goes_through_the_guard() -> None:
    def interrupted(**_options: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Budget(60).watch(interrupted)


# ---- the command ----

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def vcpulab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """The command line, in this process: exit status, stdout, stderr with the line ends as blanks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "closed.toml").write_text(CLOSED)
    (tmp_path / "hogs.toml").write_text(TWO_HOGS)

    def said(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        output = capsys.readouterr()
        return status, output.out, " ".join(output.err.split())

    return said


def test_the_command_answers_as_json(vcpulab: Said) -> None:
    words = ["--vary", "web.users", "--slo", "web.response_p99 < 60ms", "--format", "json", "--report", "page.html"]
    status, out, err = vcpulab("capacity", "closed.toml", *words)
    assert status == 0, err
    document = json.loads(out)
    assert document["outcome"] == "found"
    assert document["first_to_break"]["metric"] == "users.response_p99"
    assert document["bottleneck"]["kind"] == "guest vCPU"
    page = Path("page.html").read_text()
    assert "users.response_p99" in page
    assert "vCPU 0 of web" in page
    assert '<table class="prose">' in page, "the sentences on stations are wrapped"
    assert re.search(r">users\.response_p99 &lt;=? 60 ?ms</th>", page), "a page has room for a whole name"
    assert '<th scope="col" class="text">measured</th>' in page, (
        "words are no column of numbers, which end to the right"
    )


def test_the_command_prints_the_answer_in_words(vcpulab: Said) -> None:
    status, out, _ = vcpulab("capacity", "closed.toml", "--vary", "web.users", "--slo", "web.response_p99 < 5ms")
    assert status == 1
    assert "at the lowest load, users.response_p99 < 5ms cannot be kept: even" in " ".join(out.split())
    words = ["--slo", "web.response_p99 < 1s", "--highest", "6"]
    status, out, _ = vcpulab("capacity", "closed.toml", "--vary", "web.users", *words)
    assert status == 0
    assert "every load tried keeps the SLOs with these settings" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("none.toml --vary web.users", "none.toml: no such file"),
        ("closed.toml", "--vary"),
        ("closed.toml --vary mail.users", "there is no `mail`"),
        (
            "closed.toml --vary web.rate",
            "`client.users.rate` is not set; allowed: a number, such as client.users.users",
        ),
        ("closed.toml --vary web.think", "is `100ms`; allowed: a number"),
        ("closed.toml --vary run.replications", "`run.replications` loads nothing"),
        ("closed.toml --vary copies:mail", "no domain `mail` to copy; allowed: one of web"),
        ("closed.toml --vary copies:dom0", "no domain `dom0` to copy"),
        ("closed.toml --vary web.users --slo web.response<5ms", "`web` has no metric `response`"),
        ("closed.toml --vary web.users --slo fast", "allowed: METRIC < VALUE"),
        ("closed.toml --vary web.users --lowest 1.5", "--lowest: found `1.5`; allowed: an integer"),
        ("closed.toml --vary web.users --highest 1000000", "makes no valid scenario"),
        ("closed.toml --vary web.users --lowest 9 --highest 3", "at least the lowest value, 9"),
        ("closed.toml --vary web.users --replications 1", "allowed: an integer from 2"),
        ("closed.toml --vary web.users --budget soon", "allowed: a time such as 90s"),
        ("hogs.toml --vary copies:a", "--slo: needed"),
    ],
)
def test_bad_input_is_refused(vcpulab: Said, arguments: str, said: str) -> None:
    status, out, err = vcpulab("capacity", *arguments.split())
    assert status == 2, out
    assert said in err


def test_a_budget_that_is_over_says_how_far_it_came(vcpulab: Said) -> None:
    words = ["--vary", "web.users", "--slo", "web.throughput > 0", "--budget", "0.3s"]
    status, out, _ = vcpulab("capacity", "closed.toml", *words)
    assert status == 1
    assert "not finished: the 0.3 s that were given are over: stopped at" in out
