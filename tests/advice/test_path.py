"""The path of single requests: in the terminal, as data, in a report, in Perfetto."""

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

import vcpulab
from support import Vcpulab, packets
from vcpulab.advice.explanation import Explanation
from vcpulab.errors import RequestError
from vcpulab.results import request_path as paths
from vcpulab.results.addresses import find
from vcpulab.results.perfetto import export_perfetto
from vcpulab.show import html
from vcpulab.show.document import on_page
from vcpulab.show.request_path import LINES_MAX, beside, chart, timeline

SHOP = """
name = "a shop beside render jobs"
[run]
duration = "500ms"
warmup = "200ms"
replications = 2
[host]
profile = "generic"
pcpus = 1
scheduler = "credit"
[domain.dom0]
driver_domain = true
weight = 1024
[domain.shop]
nic.driver_domain = "dom0"
app = [{ kind = "web-server", request_cpu = "2ms" }]
[domain.render]
vcpus = 2
app = [{ kind = "hog", instance = 2 }]
[client.customers]
kind = "open-loop"
server = "shop"
rate = 300
"""
METRIC = "customers.response_p99"


@pytest.fixture(scope="module")
def found() -> Explanation:
    return vcpulab.explain(vcpulab.Scenario.from_toml(SHOP), METRIC, replications=2)


def test_the_legs_sum_to_the_response_time(found: Explanation) -> None:
    (one,) = found.explained
    slow, median = one.paths
    assert (slow.quantile, median.quantile) == (0.99, 0.5)
    run = vcpulab.run(found.scenario)
    address = find(found.scenario, METRIC)
    for path, name in ((slow, METRIC), (median, "customers.response_p50")):
        assert path.legs["begin_ns"].to_list()[1:] == path.legs["end_ns"].to_list()[:-1]
        value = run.values([find(found.scenario, name)])[name][path.replication]
        # Percentiles of a run are those of a histogram.
        assert path.response_ns / 1e6 == pytest.approx(value, rel=0.02)
    assert slow.replication == paths.typical(run, address)
    assert found.legs().columns[:5] == ["metric", "quantile", "replication", "begin_ns", "end_ns"]
    assert found.legs().height == slow.legs.height + median.legs.height


def test_who_ran_meanwhile_is_named(found: Explanation) -> None:
    slow = found.explained[0].paths[0]
    waits = slow.legs.filter(kind="waits for a pCPU")
    assert "shop waits for a pCPU, render runs" in waits["said"].to_list()
    assert (waits["state"] == "runnable").all()
    assert set(slow.legs["kind"]) <= set(paths.KINDS)
    assert slow.legs["where"].to_list()[0] == "link"


def test_a_timeline_is_short_and_leaves_nothing_out(found: Explanation) -> None:
    (one,) = found.explained
    for path in one.paths:
        lines = path.lines(LINES_MAX)
        assert len(lines) <= LINES_MAX
        assert (lines[0].begin_ms, lines[-1].end_ms) == (0, path.response_ns / 1e6)
        assert all(before.end_ms == after.begin_ms for before, after in pairwise(lines))
        assert len(timeline(path).rows) == len(lines)
        assert path.sums()["ms"].sum() == pytest.approx(path.response_ns / 1e6)
    assert beside(one.paths).headings == ["what happens", "p99, ms", "median, ms"]


def test_short_legs_share_a_line() -> None:
    legs = [(0, 10, "a"), (10, 12, "b"), (12, 13, "c"), (13, 30, "a"), (30, 31, "b"), (31, 60, "d")]
    frame = pl.DataFrame(legs, schema=["begin_ns", "end_ns", "said"], orient="row")
    path = paths.Path("c", 0.99, 0, frame)
    assert [line.text for line in path.lines(6)] == ["a", "b", "c", "a", "b", "d"]
    assert [line.text for line in path.lines(5)] == ["a", "2 short legs, mostly: b", "a", "b", "d"]
    assert [line.text for line in path.lines(2)] == ["5 short legs, mostly: a", "d"]


def test_only_clients_have_requests_to_follow() -> None:
    scenario = vcpulab.Scenario.from_toml(SHOP)
    for metric in ("render.gotten", "shop.0.response_p99", "customers.throughput"):
        (one,) = vcpulab.explain(scenario, metric, replications=2).explained
        assert one.paths == ()
        assert one.not_followed == "no single request to follow: not a percentile of a client's response times"


def test_a_chart_says_what_it_shows(found: Explanation, tmp_path: Path) -> None:
    slow = found.explained[0].paths[0]
    spec = chart(slow).to_dict()
    assert spec["description"].startswith("The request at p99 of customers: ")
    assert "shop waits for a pCPU, render runs" in spec["description"]
    html.write(tmp_path / "why.html", "Why?", on_page(found.document()))
    page = (tmp_path / "why.html").read_text()
    assert "The median request of customers" in page
    assert "Where the time goes" in page


def test_perfetto_shows_the_requests(tmp_path: Path) -> None:
    scenario = vcpulab.Scenario.from_toml(SHOP)
    vcpulab.run(scenario, trace=tmp_path / "trace")
    out = tmp_path / "shop.pftrace"
    export_perfetto(tmp_path / "trace", out, replication=1, request=METRIC)
    read = packets(out)
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in read if p.HasField("track_descriptor")}
    spans: defaultdict[str, list[int]] = defaultdict(list)
    for packet in read:
        if packet.HasField("track_event"):
            spans[tracks[packet.track_event.track_uuid]].append(packet.timestamp)
    for path in paths.paths(scenario, find(scenario, METRIC), 1):
        assert (spans[path.title][0], spans[path.title][-1]) == (path.begin_ns, path.begin_ns + path.response_ns)
        assert len(spans[path.title]) == 2 * path.legs.height
    with pytest.raises(RequestError, match="a percentile of a client's response times"):
        export_perfetto(tmp_path / "trace", out, request="render.gotten")


def test_the_command_line_shows_the_request(command: Vcpulab, tmp_path: Path) -> None:
    (tmp_path / "shop.toml").write_text(SHOP)
    told = command("explain", "shop.toml", "--slo", METRIC, "--replications", "2", "--report", "why.html")
    assert told.returncode == 0, told.stderr
    assert "The request at p99 of customers: " in told.stdout
    assert "█" in told.stdout
    assert (tmp_path / "why.html").exists()
    told = command("explain", "shop.toml", "--slo", METRIC, "--replications", "2", "--format", "json")
    data = json.loads(told.stdout)
    for path in data["explained"][0]["paths"]:
        assert sum(leg["end_ns"] - leg["begin_ns"] for leg in path["legs"]) == path["response_ns"]
