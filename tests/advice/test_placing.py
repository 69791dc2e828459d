"""Domains on as few hosts as keep SLOs: taking scenarios apart, packing, and the simulation that judges."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import TWO_HOGS
from vcpulab import Scenario
from vcpulab._work.budget import StoppedError
from vcpulab.advice.placing.energy import Power
from vcpulab.advice.placing.fleet import Fleet, fleet
from vcpulab.advice.placing.packing import Problem, pack
from vcpulab.advice.placing.placing import Placement, UnplaceableError, place
from vcpulab.cli.main import main
from vcpulab.errors import MissingExtraError

HOST = """\
name = "a fleet"
[run]
duration = "2s"
warmup = "200ms"
replications = 3
[host]
profile = "exact"
pcpus = 1
scheduler = "credit"
[domain.dom0]
driver_domain = true
"""


def jobs(**milliseconds: int) -> str:
    """Domains that compute for so long in every 100 ms."""
    return HOST + "".join(
        f'[domain.{name}]\napp = [{{ kind = "periodic", run = "{ms}ms", period = "100ms" }}]\n'
        for name, ms in milliseconds.items()
    )


def webs(*names: str, rate: int = 40, cpu: str = "5ms") -> str:
    return HOST + "".join(
        f'[domain.{name}]\nnic = {{ driver_domain = "dom0" }}\n'
        f'app = [{{ kind = "web-server", request_cpu = "{cpu}" }}]\n'
        f'[client.{name}-users]\nkind = "open-loop"\nserver = "{name}"\nrate = {rate}\n'
        for name in names
    )


def of(text: str, **options: Any) -> Fleet:
    return fleet({"file": Scenario.from_toml(text)}, **options)


def groups(placed: Placement) -> list[list[str]]:
    return sorted(host.domains for host in placed.hosts)


# ---- taking apart ----


def test_domains_that_use_each_other_stay_together() -> None:
    text = HOST + (
        '[domain.db]\nnic = { driver_domain = "dom0" }\napp = [{ kind = "mysql" }]\n'
        '[domain.alone]\napp = [{ kind = "hog" }]\n'
        '[domain.shop]\nnic = { driver_domain = "dom0" }\ndisk = { driver_domain = "dom0" }\n'
        'app = [{ kind = "php-web", database = "db", scripts = 0 }]\n'
        '[client.people]\nkind = "closed-loop"\nserver = "shop"\nusers = 2\nthink = "100ms"\n'
    )
    taken = of(text)
    assert [item.name for item in taken.items] == ["db+shop", "alone"]
    assert taken.common == {"dom0"}
    assert list(taken.scenario(taken.items[:1]).to_dict()["client"]) == ["people"]


def test_domains_of_several_files_get_names_of_their_own() -> None:
    scenario = Scenario.from_toml(webs("web"))
    taken = fleet({"one": scenario, "two": scenario})
    assert [item.name for item in taken.items] == ["web", "two-web"]
    assert taken.items[0].kind == taken.items[1].kind
    assert "two: domain `web` is called `two-web`" in taken.notes
    both = taken.scenario(taken.items).to_dict()
    assert {name: client["server"] for name, client in both["client"].items()} == {
        "web-users": "web",
        "two-web-users": "two-web",
    }


def test_parameters_of_another_scheduler_are_left_out_and_named() -> None:
    first = Scenario.from_toml(jobs(a=10))
    second = Scenario.from_toml(jobs(b=10)).change({"host.scheduler": "rtds", "domain.b.budget_us": 2000})
    taken = fleet({"first": first, "second": second})
    assert any("domain.b.budget_us is left out" in note for note in taken.notes)
    assert taken.scenario(taken.items).to_dict()["host"]["scheduler"] == "credit"


# ---- packing ----


def test_a_planted_packing_is_found() -> None:
    needs = [{"cpu": need} for need in (0.5, 0.3, 0.2)]
    packed, certain = pack(Problem([3, 3, 3], needs, needs), 3)
    assert packed == [{0: 1, 1: 1, 2: 1}] * 3
    assert certain
    assert pack(Problem([3, 3, 3], needs, needs), 2) == (None, True)


def test_every_resource_counts() -> None:
    needs = [{"cpu": 0.1, "disk": 0.6}, {"cpu": 0.1, "link": 0.6}]
    assert pack(Problem([2, 2], needs, needs), 2)[0] == [{0: 1, 1: 1}] * 2
    assert pack(Problem([3, 1], needs, needs), 2)[0] is None


def test_what_was_refused_is_on_no_host_nor_is_more_of_it() -> None:
    needs = [{"cpu": 0.1}]
    assert pack(Problem([4], needs, needs, refused=[{0: 3}]), 1)[0] is None
    assert pack(Problem([4], needs, needs, refused=[{0: 3}]), 2)[0] == [{0: 2}, {0: 2}]


def test_kinds_that_are_apart() -> None:
    needs = [{"cpu": 0.1}, {"cpu": 0.1}]
    assert pack(Problem([1, 1], needs, needs, apart=[(0, 1)]), 1)[0] is None
    assert pack(Problem([1, 1], needs, needs, apart=[(0, 1)]), 2)[0] is not None


# ---- placing ----


def test_the_planted_optimum_is_found_and_proven() -> None:
    placed = place(of(jobs(a=50, b=50, c=30, d=30, e=15, f=15)), ["throughput > 9.5"])
    assert len(placed.hosts) == 2
    assert all(
        len(set(host.domains) & pair) == 1 for host in placed.hosts for pair in ({"a", "b"}, {"c", "d"}, {"e", "f"})
    )
    assert placed.proven
    assert all(judged.standing == "holds" for host in placed.hosts for judged in host.judged)
    assert len(placed.alone) == 6
    assert all(0.9 < host.used < 1 for host in placed.hosts)


def test_guests_whose_cpu_time_fits_but_whose_disk_does_not() -> None:
    text = HOST.replace("exact", "generic") + "".join(
        f'[domain.{name}]\nnic = {{ driver_domain = "dom0" }}\ndisk = {{ driver_domain = "dom0" }}\n'
        f'app = [{{ kind = "nfs", cached = 0 }}]\n'
        f'[client.{name}-users]\nkind = "open-loop"\nserver = "{name}"\nrate = 50\n'
        for name in ("a", "b")
    )
    placed = place(of(text), ["response_p99 < 25ms"])
    assert placed.needs["pCPUs of Pool-0"] < 0.2
    assert placed.needs["disk of dom0"] < 1, "by needs alone both fit on one host"
    assert groups(placed) == [["a"], ["b"]]
    assert [refused.names for refused in placed.refused] == [["a", "b"]]
    assert "response_p99 < 25ms" in placed.refused[0].reason


def test_fewest_of_what_breaks_is_refused() -> None:
    # Three fit by their needs, two break the SLO already: then no host has two, in whichever company.
    placed = place(of(webs("a", "b", "c")), ["response_p99 < 17ms"])
    assert len(placed.hosts) == 3
    assert [refused.names for refused in placed.refused] == [["a", "b"]]


def test_apart_and_together() -> None:
    text = jobs(a=10, b=10, c=10)
    assert groups(place(of(text), ["throughput > 9"])) == [["a", "b", "c"]]
    apart = place(of(text), ["throughput > 9"], apart=[["a", "b"]])
    assert len(apart.hosts) == 2
    assert all(not {"a", "b"} <= set(host.domains) for host in apart.hosts)
    both = place(of(text, together=[["a", "c"]]), ["throughput > 9"], apart=[["a", "b"]])
    assert groups(both) == [["a", "c"], ["b"]]


def test_a_domain_that_takes_what_it_gets_needs_what_its_slo_asks_for() -> None:
    text = HOST + "".join(f'[domain.{name}]\napp = [{{ kind = "hog" }}]\n' for name in "abc")
    placed = place(of(text), ["throughput > 300"])
    assert groups(placed) == [["a", "b", "c"]]
    assert len(place(of(text), ["throughput > 400"]).hosts) == 2


def test_a_domain_without_slos_gets_what_is_left() -> None:
    text = webs("web") + '[domain.batch]\napp = [{ kind = "hog" }]\n'
    placed = place(of(text), ["web.response_p99 < 500ms"])
    assert groups(placed) == [["web", "batch"]]
    assert placed.without_slos == ["batch"]


def test_requests_that_fail_are_not_served() -> None:
    # Without a queue, whoever comes while another is served is refused.
    scenario = Scenario.from_toml(webs("a", "b")).change(
        {f"client.{name}-users.connections_max": 2 for name in ("a", "b")}
    )
    with pytest.raises(UnplaceableError, match=r"a-users\.failed <= 0"):
        place(fleet({"file": scenario}), ["response_p99 < 1s"])
    assert len(place(fleet({"file": scenario}), ["response_p99 < 1s", "failed < 1e6"]).hosts) == 1


def test_memory_and_margin() -> None:
    text = jobs(a=30, b=30)
    scenario = Scenario.from_toml(text).change({f"domain.{name}.memory": "4GiB" for name in ("dom0", "a", "b")})
    taken = fleet({"file": scenario})
    assert len(place(taken, ["throughput > 9"], memory=12 * 2**30).hosts) == 1
    assert len(place(taken, ["throughput > 9"], memory=11 * 2**30).hosts) == 2
    assert len(place(of(text), ["throughput > 9"], margin=0.5).hosts) == 2
    with pytest.raises(UnplaceableError, match=r"a: needs .* the memory"):
        place(taken, ["throughput > 9"], memory=6 * 2**30)


def test_a_domain_that_fits_nowhere_is_named() -> None:
    text = webs("small") + webs("large", rate=300).removeprefix(HOST)
    with pytest.raises(UnplaceableError, match=r"large: alone on a host it breaks an SLO.*\n  large-users"):
        place(of(text), ["response_p99 < 100ms"])


def test_a_search_that_is_stopped_keeps_what_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_arguments: object) -> None:
        raise StoppedError("enough")

    monkeypatch.setattr("vcpulab.advice.placing.placing._Placing._pack", stopped)
    placed = place(of(webs("a", "b", "c")), ["response_p99 < 17ms"])
    assert len(placed.hosts) == 3
    assert (placed.proven, placed.stopped) == (False, "enough")


def test_without_the_solver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(MissingExtraError, match=r"vcpulab\[place\]"):
        pack(Problem([1], [{"cpu": 0.1}], [{"cpu": 0.1}]), 1)


def test_placing_is_deterministic() -> None:
    documents = [place(of(webs("a", "b", "c", rate=30))).as_data(Power()) for _ in range(2)]
    assert documents[0] == documents[1]


def test_energy_is_a_straight_line() -> None:
    placed = place(of(jobs(a=20, b=30)), ["throughput > 9"])
    watts = placed.watts(Power(100, 200))
    assert watts["placed"] == pytest.approx(100 + 100 * 0.5, rel=0.02)
    assert watts["alone"] == pytest.approx(2 * 100 + 100 * 0.5, rel=0.02)
    assert placed.saved_kwh_per_year(Power(100, 200)) == pytest.approx(100 * 8.766, rel=0.02)


# ---- the command ----


@pytest.fixture
def vcpulab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The command line, in this process: exit status, stdout, stderr with the line ends as blanks."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.toml").write_text(jobs(a=10, b=10))
    Path("hogs.toml").write_text(TWO_HOGS)

    def said(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        output = capsys.readouterr()
        return status, output.out, " ".join(output.err.split())

    return said


def test_the_command_writes_a_scenario_for_each_host(vcpulab: Callable[..., Any]) -> None:
    words = ["--slo", "throughput > 9", "--apart", "a,b"]
    status, out, err = vcpulab("place", "jobs.toml", *words, "--out", "hosts")
    assert status == 0, err
    assert "2 domains on 2 hosts" in out
    written = [Scenario.load(path).to_dict()["domain"] for path in sorted(Path("hosts").iterdir())]
    assert [list(domains) for domains in written] == [["dom0", "a"], ["dom0", "b"]]
    assert vcpulab("place", "jobs.toml", *words, "--out", "hosts")[0] == 0, "what it has written it replaces"
    status, out, _ = vcpulab("place", "jobs.toml", *words, "--format", "json", "--host", "generic")
    assert len(json.loads(out)["hosts"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("none.toml", "none.toml: no such file"),
        ("jobs.toml --slo c.throughput>1", "there is no `c`; allowed: a, b, dom0, host"),
        ("jobs.toml --slo throughput>fast", "--slo: found"),
        ("jobs.toml --slo a.speed>1", "`a` has no metric `speed`"),
        ("jobs.toml --apart a", "allowed: two or more names of domains"),
        ("jobs.toml --apart a,c", "--apart: there is no domain `c` to place; allowed: a, b"),
        ("jobs.toml --together a,dom0", "--together: there is no domain `dom0` to place"),
        ("jobs.toml --together a,b --apart a,b", "`a` and `b` are both apart and together"),
        ("jobs.toml --margin 100", "--margin: found `100`; allowed: 0 to less than 100"),
        ("jobs.toml --memory lots", "--memory: found `lots`; allowed: a size such as 64GiB"),
        ("jobs.toml --idle-watts 300 --busy-watts 200", "allowed: from 0, and idle is at most busy"),
        ("jobs.toml --host cray", "--host: found `cray`; allowed: a scenario file"),
        ("jobs.toml --out .", "there is something else"),
        ("hogs.toml", "--slo: needed"),
    ],
)
def test_bad_input_is_refused(vcpulab: Callable[..., Any], arguments: str, said: str) -> None:
    status, out, err = vcpulab("place", *arguments.split())
    assert status == 2, out + err
    assert said in err


def test_what_fits_nowhere_is_a_failure(vcpulab: Callable[..., Any]) -> None:
    status, _, err = vcpulab("place", "jobs.toml", "--slo", "throughput > 11")
    assert status == 1
    assert "a: alone on a host it breaks an SLO, with these settings" in err
