"""Means, intervals and how they are written."""

import math
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vcpulab
from support import ROOT
from vcpulab.results.addresses import AddressError, addresses, find_all
from vcpulab.results.metrics import APP, DOMAIN, HOST, METRICS, PCPU, markdown
from vcpulab.results.statistics import Interval, number
from vcpulab.results.store import describe

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("n", "t"),
    # Quantiles of Student's t at 0.975 as any table of it has them.
    [(2, 12.706), (3, 4.303), (5, 2.776), (10, 2.262), (30, 2.045), (121, 1.980)],
)
def test_interval_is_students(n: int, t: float) -> None:
    interval = Interval.from_values([float(value) for value in range(n)])
    assert interval is not None
    assert interval.mean == (n - 1) / 2
    deviation = math.sqrt(n * (n + 1) / 12)
    assert interval.half_width == pytest.approx(t * deviation / math.sqrt(n), rel=3e-4)


def test_what_is_missing_does_not_count() -> None:
    assert Interval.from_values([]) is None
    assert Interval.from_values([None, None]) is None
    assert Interval.from_values([None, 3.0]) == Interval(3.0, None, 1)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=20), st.floats(-1e6, 1e6), st.floats(0.001, 1000))
def test_interval_moves_and_stretches_with_its_values(values: list[float], shift: float, scale: float) -> None:
    one, other = Interval.from_values(values), Interval.from_values([shift + scale * value for value in values])
    assert one is not None
    assert other is not None
    assert other.mean == pytest.approx(shift + scale * one.mean, rel=1e-6, abs=1e-3)
    assert one.half_width is not None
    assert other.half_width == pytest.approx(scale * one.half_width, rel=1e-6, abs=1e-2)


@given(st.floats(-1e12, 1e12))
def test_a_number_is_written_close_to_what_it_is(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=0.005, abs=5.1e-7)


@given(st.floats(-1e12, 1e12), st.integers(2, 30))
def test_equal_values_have_no_width(value: float, n: int) -> None:
    assert Interval.from_values([value] * n) == Interval(value, 0.0, n, 0.0)


def test_intervals_are_written_to_two_digits_of_their_width() -> None:
    assert str(Interval(934.27, 12.34, 5)) == "934 ± 12"
    assert str(Interval(33.2712, 0.0812, 5)) == "33.271 ± 0.081"
    assert str(Interval(5.0, 0.0, 3)) == "5.00 ± 0"
    assert str(Interval(1003.519, 1e-7, 3)) == "1003.5 ± 0.0"
    assert str(Interval(5.0, None, 1)) == "5.00"


def test_domain_shares_sum_to_the_elapsed_time(hogs: vcpulab.Run) -> None:
    for domain in ("a", "b"):
        shares = [hogs[f"{domain}.{metric}"] for metric in ("gotten", "blocked", "waited")]
        assert sum(share.mean for share in shares) == pytest.approx(100)


def test_allocation_is_compared_with_entitlement(hogs: vcpulab.Run) -> None:
    entitled = hogs.df_domains().group_by("domain").agg(pl.col("entitlement").first())
    assert dict(entitled.iter_rows()) == {"a": 0.25, "b": 0.75}
    got, of_entitlement = hogs["b.gotten"], hogs["b.of_entitlement"]
    assert of_entitlement.mean == pytest.approx(got.mean / 0.75)


def test_summary_has_every_metric_of_every_thing(hogs: vcpulab.Run) -> None:
    counts = dict(hogs.summary().group_by("of").len().iter_rows())
    assert counts == {
        "domain": 2 * len(DOMAIN),
        "app": 2 * len(APP),
        "pcpu": len(PCPU),
        "host": len(HOST),
    }


def test_every_address_of_a_table_is_valid(hogs: vcpulab.Run) -> None:
    """Where several clients share a domain, too."""
    client = {"kind": "open-loop", "server": "web", "rate": 20}
    shared = vcpulab.Scenario.starter().change(
        {"client.more": client, "client.web": client, "run.duration": "50ms", "run.replications": 2}
    )
    for run in (hogs, vcpulab.run(shared)):
        listed = [address.name for address in addresses(run.scenario)]
        summary = run.summary()
        assert set(summary["address"]) <= set(listed)
        assert len(listed) == len(set(listed))
        for row in summary.iter_rows(named=True):
            found = run.get(row["address"])
            assert (found[:3] if found else (None, None, 0)) == (row["mean"], row["half_width"], row["n"])
        assert set(run.metrics()["address"]) == set(listed)
    assert set(run.df_apps()["name"]) == {"web.0", "http", "more", "web.3", "batch"}


def test_a_wrong_address_is_told_what_is_allowed(hogs: vcpulab.Run) -> None:
    with pytest.raises(
        KeyError, match=r"`a` has no metric `gottn`; allowed: throughput, .*\n  hint: did you mean `gotten`"
    ):
        hogs["a.gottn"]
    with pytest.raises(vcpulab.RequestError, match="there is no `c`; allowed: a, b, host"):
        hogs.get("c.gotten")
    assert hogs.get("a.response_p99") is None
    with pytest.raises(AddressError, match="not defined in any replication: nothing was completed"):
        hogs["a.response_p99"]


def test_a_pattern_means_every_address_that_matches(hogs: vcpulab.Run) -> None:
    found = find_all(hogs.scenario, ["[ab].gotten", "a.gotten", "host.idle"])
    assert [address.name for address in found] == ["a.gotten", "b.gotten", "host.idle"]
    assert len(find_all(hogs.scenario, ["a.wait*"])) > 2
    with pytest.raises(AddressError, match=r"nothing matches `c\*`; allowed: a, b, host"):
        find_all(hogs.scenario, ["c*.gotten"])
    with pytest.raises(AddressError, match=r"`\*` has no metric `gottn`; allowed: .*\n  hint: did you mean `gotten`"):
        find_all(hogs.scenario, ["*.gottn"])


def test_every_metric_is_in_the_documentation() -> None:
    assert markdown() in (ROOT / "docs/reference/metrics.md").read_text()
    for metrics in METRICS.values():
        names = [metric.name for metric in metrics]
        assert len(names) == len(set(names))
        assert all(metric.doc and metric.undefined_is for metric in metrics)
        assert all(metric.bounds[0] < metric.bounds[1] for metric in metrics)


def test_the_registry_alone_decides_what_a_unit_means() -> None:
    guess = re.compile(r"(?:metric|address|one|found)\.unit(?:\.text)?(?: == |\.startswith|\.endswith)")
    for file in [*(ROOT / "python/vcpulab").rglob("*.py"), *(ROOT / "evidence").rglob("*.py")]:
        assert not guess.findall(file.read_text()), file


def test_the_wait_of_what_never_ran_is_undefined_and_of_what_never_waited_0() -> None:
    hog = 'app = [{ kind = "hog" }]'
    text = f'[host]\npcpus = 2\nscheduler = "null"\n[domain.dom0]\n[domain.a]\n{hog}\n[domain.b]\n{hog}'
    run = vcpulab.run(vcpulab.Scenario.from_toml(text).change({"run.duration": "50ms", "run.replications": 2}))
    assert run["b.waited"].mean == 100
    assert run.get("b.wait_p50") is run.get("b.wait_p99") is None
    assert run["a.wait_p99"].mean == run["dom0.wait_p99"].mean == 0
    with pytest.raises(AddressError, match="it waited and was never switched in"):
        run["b.wait_p99"]
    rows = {row["address"]: row for row in describe(run)["metrics"]}
    assert rows["b.wait_p99"]["undefined"] == "it waited and was never switched in"
    assert rows["a.wait_p99"]["undefined"] is None
