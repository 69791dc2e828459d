"""Client machines, logs as JMeter writes them, and what crosses the domains' devices."""

import csv
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

import vcpulab
from support import ROOT, Vcpulab

EXAMPLE = ROOT / "scenarios" / "closed-loop.toml"
EPOCH_MS = 946_684_800_000
COLUMNS = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect"
)


def short(**changes: object) -> vcpulab.Scenario:
    """The example, for two seconds after one of warm-up, with some changes."""
    changes = {"run.duration": "2s", "run.warmup": "1s", "run.replications": 2, **changes}
    return vcpulab.Scenario.load(EXAMPLE).change(changes)


def clients(run: vcpulab.Run) -> pl.DataFrame:
    return run.df_apps().filter(kind="closed-loop")


def read(directory: Path, replication: int = 0) -> pl.DataFrame:
    return pl.read_csv(directory / f"users-{replication}.jtl", infer_schema_length=None)


def test_a_log_has_jmeters_columns_and_every_request(tmp_path: Path) -> None:
    run = vcpulab.run(short(), jtl=vcpulab.Jtl(tmp_path / "logs", warmup=False))
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == ["users-0.jtl", "users-1.jtl"]
    for row in clients(run).iter_rows(named=True):
        log = read(tmp_path / "logs", row["replication"])
        assert ",".join(log.columns) == COLUMNS
        assert log.filter("success").height == row["completed"]
        assert log.filter(~pl.col("success")).height == row["failed"]
        assert log["elapsed"].mean() == pytest.approx(row["response_mean_ns"] / 1e6, abs=0.1)
        assert set(log["threadName"]) == {f"users 1-{user}" for user in range(1, 21)}
        assert set(log["label"]) == {"get"}
        ends = log["timeStamp"] + log["elapsed"] - EPOCH_MS
        assert 1000 <= ends.min() <= ends.max() <= 3000  # type: ignore[operator]
        assert (log["Connect"] <= log["Latency"]).all()
        assert (log["Latency"] <= log["elapsed"]).all()
        # The file's end is in order of time, and kept connections are opened once.
        assert ends.is_sorted()
        assert log.filter(pl.col("Connect") > 0).height < log.height / 10


def test_the_warm_up_is_logged_unless_told_otherwise(tmp_path: Path) -> None:
    vcpulab.run(short(), jtl=vcpulab.Jtl(tmp_path / "all"))
    vcpulab.run(short(), jtl=vcpulab.Jtl(tmp_path / "measured", warmup=False), jobs=1)
    everything, measured = read(tmp_path / "all"), read(tmp_path / "measured")
    assert everything["timeStamp"].min() < EPOCH_MS + 200  # type: ignore[operator]
    assert everything.tail(measured.height).equals(measured)
    users = everything["grpThreads"]
    assert users[0] < 5
    assert users.is_sorted()
    assert users[-1] == 20


def test_xml_says_the_same(tmp_path: Path) -> None:
    vcpulab.run(short(), jtl=vcpulab.Jtl(tmp_path / "csv"))
    vcpulab.run(short(), jtl=vcpulab.Jtl(tmp_path / "xml", format="xml"))
    tree = ElementTree.parse(tmp_path / "xml" / "users-0.jtl").getroot()
    assert (tree.tag, tree.get("version")) == ("testResults", "1.2")
    attributes = {
        "ts": "timeStamp", "t": "elapsed", "lb": "label", "rc": "responseCode", "rm": "responseMessage",
        "tn": "threadName", "dt": "dataType", "s": "success", "by": "bytes", "sby": "sentBytes", "ng": "grpThreads",
        "na": "allThreads", "lt": "Latency", "it": "IdleTime", "ct": "Connect",
    }  # fmt: skip
    with (tmp_path / "csv" / "users-0.jtl").open() as file:
        rows = list(csv.DictReader(file))
    samples = [{attributes[name]: value for name, value in sample.attrib.items()} for sample in tree]
    assert samples == [{name: row[name] for name in attributes.values()} for row in rows]
    assert [{*sample} for sample in samples] == [{*attributes.values()}] * len(samples)


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ({"client.users.timeout": "4ms"}, "java.net.SocketTimeoutException", "Read timed out"),
        ({"domain.web.app": [{"kind": "web-server", "connections_max": 3}]}, "java.net.ConnectException", "refused"),
        ({"client_machine.e2180.connections_max": 3}, "java.net.BindException", "Address already in use"),
        (
            {
                "action": [{"at": "1500ms", "op": "reboot", "domain": "web"}],
                "client.users.think": "0s",
                "domain.web.shutdown": "0s",
            },
            "java.net.SocketException",
            "Connection reset",
        ),
    ],
)
def test_what_fails_is_a_failed_sample(tmp_path: Path, changes: dict[str, object], code: str, message: str) -> None:
    run = vcpulab.run(short(**changes), jtl=vcpulab.Jtl(tmp_path, warmup=False))
    failed = read(tmp_path).filter(~pl.col("success"))
    assert failed.height == clients(run)["failed"][0] > 0
    assert set(failed["responseCode"]) == {f"Non HTTP response code: {code}"}
    assert all(message in said for said in failed["responseMessage"])
    assert failed["bytes"].sum() == 0


def test_logs_are_the_same_bytes_whatever_the_number_of_threads(tmp_path: Path) -> None:
    for jobs in (1, 2):
        vcpulab.run(short(), jobs=jobs, jtl=vcpulab.Jtl(tmp_path / str(jobs)))
    for name in ("users-0.jtl", "users-1.jtl"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_the_command_line_logs_and_keeps_what_is_not_a_log(command: Vcpulab, tmp_path: Path) -> None:
    done = command("run", str(EXAMPLE), "--replications", "1", "--jtl", "logs", "--jtl-format", "xml", "--io")
    assert done.returncode == 0, done.stderr
    assert "I/O" in done.stdout
    assert "page exchanges" in done.stdout
    assert "device" not in done.stdout, "no domain uses a disk"
    assert (tmp_path / "logs" / "users-0.jtl").read_text().endswith("</testResults>\n")
    again = command("run", str(EXAMPLE), "--replications", "1", "--jtl", "logs", "--no-jtl-warmup")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "logs" / "users-0.jtl").read_text().startswith(COLUMNS)
    (tmp_path / "logs" / "notes.txt").write_text("mine")
    refused = command("run", str(EXAMPLE), "--replications", "1", "--jtl", "logs")
    assert (refused.returncode, (tmp_path / "logs" / "notes.txt").read_text()) == (2, "mine")
    assert "holds other files than logs" in refused.stderr


def test_a_closed_loop_obeys_littles_law() -> None:
    """Requests per second times the time from one to the next is the number of users."""
    for row in clients(vcpulab.run(vcpulab.Scenario.load(EXAMPLE))).iter_rows(named=True):
        cycle_s = row["response_mean_ns"] / 1e9 + 0.050
        assert row["throughput_per_s"] * cycle_s == pytest.approx(20, rel=0.05)


def test_a_slower_client_machine_makes_longer_responses() -> None:
    medians = [
        clients(vcpulab.run(short(**{"client_machine.e2180.request_cpu": cpu})))["response_p50_ns"].mean()
        for cpu in ("0us", "2ms", "8ms")
    ]
    assert all(faster < slower for faster, slower in pairwise(medians))  # type: ignore[operator]


def test_io_counts_agree_with_each_other() -> None:
    run = vcpulab.run(short())
    rows = {row["domain"]: row for row in run.df_io().filter(replication=0).iter_rows(named=True)}
    web, dom0, beside = rows["web"], rows["dom0"], rows["beside"]
    assert all(beside[column] is None for column in beside if column not in ("replication", "domain", "elapsed_ns"))
    assert web["ring_drops"] == dom0["nic_drops"] == web["retransmissions"] == 0
    assert abs(web["packets_received"] - dom0["nic_received"]) <= 5
    assert abs(web["packets_sent"] - dom0["nic_sent"]) <= 5
    assert abs(web["page_exchanges"] - web["packets_received"]) <= 5
    assert 0 < web["events"] <= web["packets_received"] + web["packets_sent"]
    # Answers are 10 KB in 7 segments with 66 bytes of headers each.
    completed = clients(run)["completed"][0]
    assert web["bytes_sent"] / completed == pytest.approx(10_000 + 7 * 66, rel=0.05)
    assert run["web.received"].mean == pytest.approx(web["packets_received"] / 2, rel=0.2)
    with pytest.raises(KeyError):
        run["beside.received"]


def test_io_of_disks_is_counted() -> None:
    scenario = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "2s", "warmup": "100ms"},
            "host": {"profile": "generic", "pcpus": 2, "scheduler": "credit"},
            "domain": {
                "dom0": {"driver_domain": True},
                "a": {"disk": {"driver_domain": "dom0"}, "app": [{"kind": "dd", "direct": True}]},
            },
        }
    )
    rows = {row["domain"]: row for row in vcpulab.run(scenario).df_io().iter_rows(named=True)}
    guest, driver = rows["a"], rows["dom0"]
    assert guest["disk_requests"] > 0
    assert abs(guest["disk_requests"] - driver["device_requests"]) <= 64
    assert guest["disk_read_bytes"] + guest["disk_written_bytes"] > 0
    assert guest["disk_grants"] >= guest["disk_requests"]
    assert 0 < driver["device_busy_ns"] <= driver["elapsed_ns"]
