"""Who made whom wait, why vCPUs woke, traces, and what Perfetto reads in them."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import vcpulab
from support import ROOT, Vcpulab, packets
from vcpulab.hypervisors import counters as names
from vcpulab.results.pcpu_groups import groups
from vcpulab.results.perfetto import export_perfetto

HOST = {"profile": "generic", "pcpus": 2, "scheduler": "credit"}


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> tuple[vcpulab.Run, Path]:
    """The starter's driver domain, web server and batch job, with its trace."""
    directory = tmp_path_factory.mktemp("trace")
    scenario = vcpulab.Scenario.starter().change(
        {"run.duration": "300ms", "run.replications": 2, "domain.web.weight": 512}
    )
    return vcpulab.run(scenario, trace=directory), directory


def running(run: vcpulab.Run, replication: int) -> dict[str, int]:
    """Time each vCPU ran, by the name that Perfetto shows."""
    rows = run.df_vcpus().filter(replication=replication)
    return {f"{row['domain']} vCPU {row['vcpu']}": row["running_ns"] for row in rows.iter_rows(named=True)}


def test_waits_sum_to_the_time_runnable(web: tuple[vcpulab.Run, Path]) -> None:
    run, _ = web
    waits = run.df_waits().group_by("replication", "domain").agg(pl.col("wait_ns").sum())
    both = (
        run.df_domains()
        .join(waits, on=["replication", "domain"], how="left")
        .with_columns(pl.col("wait_ns").fill_null(0))
    )
    assert both["wait_ns"].to_list() == both["runnable_ns"].to_list()


def test_waits_name_the_offender() -> None:
    """Two hogs bound to one pCPU wait for each other; the one on the other pCPU waits for nobody."""
    scenario = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "1s"},
            "host": {"profile": "exact", "pcpus": 2, "scheduler": "credit"},
            "domain": {
                "noisy": {"app": [{"kind": "hog"}], "affinity": "0"},
                "victim": {"app": [{"kind": "hog"}], "affinity": "0"},
                "far": {"app": [{"kind": "hog"}], "affinity": "1"},
            },
        }
    )
    rows = {(domain, by): share for domain, by, share, *_ in vcpulab.run(scenario).df_wait_shares().iter_rows()}
    assert rows.keys() == {("noisy", "victim"), ("victim", "noisy")}
    assert rows["victim", "noisy"] == pytest.approx(50, abs=5)


def test_wakeups_have_causes(web: tuple[vcpulab.Run, Path]) -> None:
    run, _ = web
    causes = {(row["domain"], row["cause"]) for row in run.df_wakeups().iter_rows(named=True)}
    assert ("dom0", "interrupt") in causes
    assert ("web", "event from dom0") in causes
    buckets = run.df_wakeup_buckets().group_by("replication", "domain", "cause").agg(pl.col("count").sum().alias("sum"))
    both = run.df_wakeups().join(buckets, on=["replication", "domain", "cause"])
    assert both.height == run.df_wakeups().height
    assert both["count"].to_list() == both["sum"].to_list()


def test_a_trace_changes_nothing_and_agrees_with_the_counters(web: tuple[vcpulab.Run, Path]) -> None:
    run, directory = web
    untraced = vcpulab.run(run.scenario)
    for name, table in untraced.tables().items():
        assert table.equals(run.tables()[name]), name
    trace = vcpulab.Trace.load(directory)
    for replication in range(trace.replications):
        events = trace.events(replication)
        assert events["time_ns"].is_sorted()
        assert events["kind"].to_list()[-1] == "end"
        counted = Counter(events["kind"].to_list())
        totals = run.df_domains().filter(replication=replication)
        pcpus = run.df_pcpus().filter(replication=replication)
        assert counted["wake"] == totals["wakeups"].sum()
        assert counted["decision"] == pcpus["decisions"].sum()
        # Each pCPU begins with what it runs.
        assert counted["switch"] == pcpus["switches"].sum() + pcpus.height
        steps = Counter(events.filter(kind="io")["what"].to_list())
        assert steps["interrupt"] > 0 < steps["event-sent"]
        assert counted["state"] > 0, "credit reports its credits"


def test_what_enters_a_ring_leaves_it_in_time(web: tuple[vcpulab.Run, Path]) -> None:
    steps = vcpulab.Trace.load(web[1]).events(0).filter(pl.col("kind") == "io")
    rings = steps.filter(pl.col("what").is_in(["enter-ring", "leave-ring"])).with_columns(
        change=pl.when(pl.col("what") == "enter-ring").then(1).otherwise(-1)
    )
    assert rings.height > 1000
    # A ring has two directions of 256 slots; a vCPU may be at what has left it.
    filled = rings.with_columns(level=pl.col("change").cum_sum().over("domain", "id")).get_column("level")
    assert int(filled.to_numpy().min()) >= -1
    assert int(filled.to_numpy().max()) <= 512
    told = steps.filter(pl.col("what") == "event-sent").get_column("domain").unique()
    assert told.len() > 1, "guests and their driver domain tell each other"


def test_a_trace_replaces_nothing_but_a_trace(web: tuple[vcpulab.Run, Path], tmp_path: Path) -> None:
    run, _ = web
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileExistsError, match="holds other files"):
        vcpulab.run(run.scenario, trace=tmp_path)
    with pytest.raises(FileNotFoundError, match="does not hold a trace"):
        vcpulab.Trace.load(tmp_path)


def test_perfetto_classes_read_what_was_counted(web: tuple[vcpulab.Run, Path], tmp_path: Path) -> None:
    run, directory = web
    out = tmp_path / "web.pftrace"
    export_perfetto(directory, out, replication=1)
    read = packets(out)
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in read if p.HasField("track_descriptor")}
    interned = {n.iid: n.name for p in read for n in p.interned_data.event_names}
    ran: Counter[str] = Counter()
    since: dict[int, tuple[str, int]] = {}
    flows: dict[int, list[str]] = {}
    for packet in read:
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        track = tracks[event.track_uuid]
        if event.type == event.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in since, "slices of a track do not overlap"
            since[event.track_uuid] = (interned[event.name_iid], packet.timestamp)
        elif event.type == event.TYPE_SLICE_END:
            name, start = since.pop(event.track_uuid)
            ran[track.name] += packet.timestamp - start if name == "running" else 0
            if track.name.startswith("pCPU"):
                ran[f"{name} on pCPUs"] += packet.timestamp - start
        for flow in (*event.flow_ids, *event.terminating_flow_ids):
            flows.setdefault(flow, []).append(track.name)
    assert not since, "every slice ends"
    for vcpu, ns in running(run, 1).items():
        assert ran[vcpu] == ns
        assert ran[f"{vcpu} on pCPUs"] == ns
    assert any(path[0].startswith("dom0") and path[-1].startswith("web") for path in flows.values())
    counters = {track.name for track in tracks.values() if track.HasField("counter")}
    assert {"vCPUs that wait", "credit"} <= counters


def trace_processor() -> str:
    """Perfetto's trace processor: the machine's, or the one that its Python package downloads; skips if it cannot."""
    from perfetto.prebuilts.manifests.trace_processor_shell import TRACE_PROCESSOR_SHELL_MANIFEST
    from perfetto.prebuilts.perfetto_prebuilts import get_perfetto_prebuilt

    shell = shutil.which("trace_processor_shell")
    if shell is not None:
        return shell
    try:
        downloaded: str | None = get_perfetto_prebuilt(TRACE_PROCESSOR_SHELL_MANIFEST, soft_fail=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the trace processor cannot be downloaded: {error}")
    if downloaded is None:
        pytest.skip("there is no trace processor for this platform")
    return downloaded


def test_perfetto_sql_agrees_with_the_tables(web: tuple[vcpulab.Run, Path], tmp_path: Path) -> None:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    shell = trace_processor()
    run, directory = web
    out = tmp_path / "web.pftrace"
    export_perfetto(directory, out)
    processor = TraceProcessor(trace=str(out), config=TraceProcessorConfig(bin_path=shell))
    with processor:
        query = (
            "select track.name as name, sum(slice.dur) as ns from slice join track on slice.track_id = track.id "
            "where slice.name = 'running' group by track.name"
        )
        assert {row.name: row.ns for row in processor.query(query)} == {
            vcpu: ns for vcpu, ns in running(run, 0).items() if ns
        }
        (row,) = processor.query("select count(*) as n from flow")
        assert row.n > 0


def test_who_made_whom_wait_need_not_be_asked() -> None:
    scenario = vcpulab.Scenario.starter().change({"run.duration": "50ms", "run.replications": 2})
    asked, unasked = vcpulab.run(scenario), vcpulab.run(scenario, waits=False)
    assert asked.not_attributed is None
    assert unasked.not_attributed == "the run was not asked to attribute waits"
    observed = {"waits", "wakeups", "wakeup_buckets"}
    asked_for = {"domains": ["wake_p50_ns", "wake_p90_ns"]}
    for name, table in unasked.tables().items():
        columns = asked_for.get(name, [])
        assert all(table[column].is_null().all() for column in columns)
        same = table.drop(columns).equals(asked.tables()[name].drop(columns))
        assert table.is_empty() if name in observed else same, name


def test_a_saved_run_can_be_exported(hogs: vcpulab.Run, tmp_path: Path) -> None:
    hogs.save(tmp_path / "run")
    export_perfetto(tmp_path / "run", tmp_path / "run.pftrace")
    begins = [p for p in packets(tmp_path / "run.pftrace") if p.track_event.type == 1]
    assert begins
    with pytest.raises(ValueError, match="no replication 3"):
        export_perfetto(tmp_path / "run", tmp_path / "run.pftrace", replication=3)


def test_a_saved_run_is_exported_without_charts(hogs: vcpulab.Run, tmp_path: Path) -> None:
    """It needed Altair, which only draws."""
    hogs.save(tmp_path / "run")
    code = (
        "import sys; sys.modules['altair'] = None\n"
        "from vcpulab.results.perfetto import export_perfetto\n"
        "export_perfetto('run', 'run.pftrace')"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert (tmp_path / "run.pftrace").stat().st_size > 0


def test_command_line_traces_and_exports(command: Vcpulab, tmp_path: Path) -> None:
    result = command("run", "hogs.toml", "--trace", "t", "--replications", "1")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "t/trace.json").read_text())["domains"] == {"1": "a", "2": "b"}
    assert command("run", "hogs.toml", "--trace", "t", "--replications", "1").returncode == 0, "a trace is replaced"
    result = command("export", "perfetto", "t", "--out", "hogs.pftrace")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "hogs.pftrace").stat().st_size > 0
    for arguments, said in [
        (["t", "--replication", "7"], "allowed: 0 to 0"),
        (["nowhere"], "does not hold a run"),
    ]:
        refused = command("export", "perfetto", *arguments, "--out", "x.pftrace")
        assert refused.returncode == 2
        assert said in refused.stderr


def test_names_of_other_tools(command: Vcpulab, hogs: vcpulab.Run) -> None:
    result = command("run", "hogs.toml", "--counters", "esx")
    assert "cpu.ready.summation" in result.stdout
    assert "%RDY" in result.stdout
    one = names.counted(hogs).filter(domain="a", replication=0)
    ready = {
        tool: {c.name: one.select(c.expression).item() for c in counters} for tool, counters in names.COUNTERS.items()
    }
    row = one.row(0, named=True)
    share = row["runnable_ns"] / row["elapsed_ns"]
    assert ready["esx"]["cpu.ready.summation"] == pytest.approx(20_000 * share)
    assert ready["esx"]["cpu.ready.summation"] / 200 == pytest.approx(ready["esx"]["%RDY"])
    assert ready["kvm"]["steal"] == pytest.approx(100 * share)
    assert ready["kvm"]["nr_throttled"] == 0, "nothing limits it"
    assert ready["xapi"]["runstate_full_contention"] == pytest.approx(share)
    assert ready["hyperv"]["CPU Wait Time Per Dispatch"] == pytest.approx(row["runnable_ns"] / row["executions"])


def test_documented_names_are_the_names() -> None:
    assert names.markdown() in (ROOT / "docs/guides/reading-the-metrics.md").read_text()


def test_charts_of_waits(web: tuple[vcpulab.Run, Path]) -> None:
    run, _ = web
    for chart in (run.plot.waits(), run.plot.wakeups()):
        spec = chart.to_dict()
        assert spec["description"]
        json.dumps(spec)


def test_cells_of_the_map_of_waits_can_be_read(web: tuple[vcpulab.Run, Path]) -> None:
    run, _ = web
    spec = run.plot.waits().to_dict()
    [rows] = spec["datasets"].values()
    labels = {row["said"] for row in rows}
    assert labels
    assert all(re.fullmatch(r"< 0\.01|\d\.\d\d|\d\d+\.\d", label) for label in labels), labels
    colour = spec["layer"][1]["encoding"]["color"]
    assert (colour["condition"]["value"], colour["value"]) == ("white", "black")


def test_a_service_is_charted_as_its_clients(web: tuple[vcpulab.Run, Path]) -> None:
    run, _ = web
    [rows] = run.plot.apps().to_dict()["datasets"].values()
    charted = {row["group"] for row in rows}
    assert "http" in charted
    assert "web.0" not in charted


def test_many_domains_are_not_attributed(command: Vcpulab, tmp_path: Path) -> None:
    hogs = "".join(f'[domain.d{i}]\napp = [{{ kind = "hog" }}]\n' for i in range(65))
    (tmp_path / "many.toml").write_text(f'[run]\nduration = "50ms"\n[host]\nscheduler = "credit"\n{hogs}')
    result = command("run", "many.toml", "--waits")
    assert result.returncode == 0, result.stderr
    assert "who made whom wait is not known: the host has 65 domains" in result.stderr


_PLACED = """
[host]
scheduler = "credit2"
topology = { sockets = 2, cores = 2, threads = 2, nodes = 2, numbering = "spread" }
[domain.hog]
vcpus = 8
app = [{ kind = "hog" }]
[run]
duration = "20ms"
warmup = "0s"
"""


def test_traces_group_pcpus_by_where_they_are(tmp_path: Path) -> None:
    run = vcpulab.run(vcpulab.Scenario.from_toml(_PLACED), trace=tmp_path / "t", decisions=True)
    run.save(tmp_path / "run")
    for source in (tmp_path / "t", tmp_path / "run"):
        export_perfetto(source, tmp_path / "t.pftrace")
        read = [p.track_descriptor for p in packets(tmp_path / "t.pftrace") if p.HasField("track_descriptor")]
        tracks = {track.uuid: track for track in read}
        pcpus = sorted(_ranked(tracks, track.uuid) for track in read if track.name.startswith("pCPU "))
        assert [" / ".join(name for _, name in steps[1:]) for steps in pcpus] == [
            f"node {core // 2} / core {core} / pCPU {pcpu}" for core in range(4) for pcpu in (core, core + 4)
        ]
    rows = run.plot.timeline(window_ms=10).to_dict()["encoding"]["y"]
    assert rows["sort"][:3] == [f"node 0 / core {core} / pCPU {pcpu}" for core, pcpu in ((0, 0), (0, 4), (1, 1))]


def _ranked(tracks: Mapping[int, Any], uuid: int) -> list[tuple[int, str]]:
    """The tracks down to this one, by rank among their siblings and name; those above order their children by rank."""
    track = tracks[uuid]
    above = _ranked(tracks, track.parent_uuid) if track.parent_uuid else []
    assert not above or tracks[track.parent_uuid].child_ordering == track.EXPLICIT
    return [*above, (track.sibling_order_rank, track.name)]


def test_the_groups_of_pcpus_are_those_that_tell_them_apart() -> None:
    def groups_of(**topology: object) -> list[str]:
        scenario = vcpulab.Scenario.from_toml(_PLACED).change({"host.topology": topology, "domain.hog.vcpus": 1})
        return [" / ".join(path) for path in groups(scenario)]

    assert groups_of(sockets=1, cores=4, threads=1, nodes=1) == []
    assert groups_of(sockets=1, cores=2, threads=2, nodes=1) == ["core 0", "core 0", "core 1", "core 1"]
    assert groups_of(sockets=2, cores=2, threads=1, nodes=1) == ["socket 0", "socket 0", "socket 1", "socket 1"]
    of_four = groups_of(sockets=2, cores=2, threads=1, nodes=4)
    assert of_four == [f"socket {node // 2} / node {node}" for node in range(4)]
    of_half = groups_of(sockets=4, cores=1, threads=2, nodes=2)
    assert of_half[2] == "node 0 / socket 1 / core 1"
    assert groups(vcpulab.Scenario.starter()) == []
