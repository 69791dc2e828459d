"""Recordings of real hosts: what is read of them, against what the host's own tools said, and what is refused."""

import bz2
import contextlib
import gzip
import json
import lzma
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import texts
from support import ROOT, Vcpulab, packets
from vcpulab import Scenario, run
from vcpulab import formats as recordings
from vcpulab.errors import RecordingError
from vcpulab.formats import jtl, xenmon, xl, xl_cfg, xl_sched
from vcpulab.formats.xl_info import read_info
from vcpulab.hypervisors import monitors
from vcpulab.results.jtl import Jtl
from vcpulab.twin import gather

REAL = ROOT / "tests" / "recordings"
FOLDERS = sorted(REAL.glob("xen*"))
PERF = ROOT / "examples" / "perf-sched.txt"
XENTRACE = REAL / "xen4.17-credit-weights" / "trace.bin.xz"
FTRACE = ROOT / "fuzz" / "seeds" / "sched_text" / "ftrace.txt"
ITERATION_NS = 10.2
"""What the guests' loop takes alone, as their description says."""


@pytest.fixture(scope="module", params=FOLDERS, ids=lambda path: path.name)
def real(request: pytest.FixtureRequest) -> tuple[Path, recordings.Recording]:
    folder: Path = request.param
    return folder, recordings.read_trace(folder / "trace.bin.xz", "xentrace")


def guests(folder: Path) -> dict[str, dict[str, float]]:
    """What each guest said of itself."""
    lines = (folder / "guests.txt").read_text().splitlines()
    return {
        line.split()[1]: {key: float(value) for key, value in re.findall(r"(\w+)=([\d.]+)", line)} for line in lines
    }


def by_name(folder: Path, recording: recordings.Recording) -> dict[str, dict[str, Any]]:
    names = {domain.number: domain.name for domain in xl.read_list(folder / "list0.txt")}
    return {names[vcpu["domain"]]: vcpu for vcpu in recording.summary["vcpus"]}


def work_of(folder: Path, name: str) -> float:
    """Iterations of one computation, from the guest's file."""
    extra = xl_cfg.read_cfg(folder / f"{name}.cfg")["extra"]
    assert isinstance(extra, str)
    found = re.search(r"wk=(\d+)", extra)
    return float(found[1]) if found else 1e6


def test_real_traces_are_read_without_a_doubt(real: tuple[Path, recordings.Recording]) -> None:
    _, recording = real
    assert recording.notes == []
    assert recording.report["clock"]["mhz"] == pytest.approx(1000, rel=2e-4)  # `xl info`: 1000.000
    span = recording.summary["span_ns"]
    assert 3.8e9 < span < 4.1e9
    for vcpu in recording.summary["vcpus"]:
        assert sum(vcpu[f"{state}_ns"] for state in ("running", "runnable", "blocked", "offline", "unknown")) == span
        assert vcpu["unknown_ns"] == 0
    unknown = [record for record in recording.report["records"] if record["name"] is None]
    assert unknown == []
    # The guests keep it busy; what is missing is spent between one and the next.
    [pcpu] = recording.summary["pcpus"]
    assert pcpu["busy_ns"] > 0.998 * span
    assert pcpu["busy_ns"] == sum(share["running_ns"] for share in pcpu["shares"])


def test_cpu_time_is_that_of_xl_list(real: tuple[Path, recordings.Recording]) -> None:
    """`xl list` was asked a little before and after the trace, and tells tenths of a second: each domain to 0.1 s."""
    folder, recording = real
    before, after = (xl.read_list(folder / f"list{n}.txt") for n in (0, 1))
    used = {first.name: last.cpu_s - first.cpu_s for first, last in zip(before, after, strict=True)}
    all_s = sum(used.values())
    assert recording.summary["span_ns"] / 1e9 <= all_s + 0.1 * len(used)
    for name, vcpu in by_name(folder, recording).items():
        share = used[name] / all_s
        assert vcpu["share"] == pytest.approx(share, abs=0.1 * (1 + share * len(used)) / all_s), name


def test_cpu_time_is_that_measured_by_xen(real: tuple[Path, recordings.Recording]) -> None:
    """Xen records how long each execution took by its own clock; together they took as long as by the counter."""
    _, recording = real
    clock = recording.report["clock"]
    assert clock["executions"] > 2000
    assert clock["by_executions_mhz"] == pytest.approx(1000, rel=1e-3)


def test_shares_are_those_the_hogs_computed(real: tuple[Path, recordings.Recording]) -> None:
    """A hog's iterations in its 10 s, at 10.2 ns each, against its share of 4 s among these."""
    folder, recording = real
    vcpus = by_name(folder, recording)
    for name, said in guests(folder).items():
        if not vcpus[name]["wakes"]:
            share = said["iters"] * work_of(folder, name) * ITERATION_NS / 10e9
            assert vcpus[name]["share"] == pytest.approx(share, abs=0.015), name


def test_those_that_sleep_compute_as_long_as_they_should(real: tuple[Path, recordings.Recording]) -> None:
    """The longer bursts hold a computation, and what the kernel adds (timer, tick, context switches)."""
    folder, recording = real
    vcpus = by_name(folder, recording)
    for name in guests(folder):
        vcpu = vcpus[name]
        if vcpu["wakes"] and name != "Domain-0":
            work_ns = work_of(folder, name) * ITERATION_NS
            assert 1.0 * work_ns < vcpu["burst"]["p90_ns"] < 1.1 * work_ns + 200_000, name


def test_events_and_perfetto(real: tuple[Path, recordings.Recording], tmp_path: Path, command: Vcpulab) -> None:
    folder, recording = real
    recordings.read_trace(folder / "trace.bin.xz", "xentrace", events=tmp_path / "events.arrow")
    events = pl.read_ipc(tmp_path / "events.arrow")
    assert events["time_ns"].is_sorted()
    switches = events.filter(kind="switch")
    assert switches.height == recording.summary["pcpus"][0]["switches"]
    for vcpu in recording.summary["vcpus"]:
        of = {"domain": vcpu["domain"], "vcpu": vcpu["vcpu"]}
        assert events.filter(kind="wake", **of).height == vcpu["wakes"]
        assert events.filter(kind="runstate", what="running", **of).height == vcpu["executions"]
    done = command("export", "perfetto", str(folder / "trace.bin.xz"), "--out", "host.pftrace")
    assert done.returncode == 0, done.stderr
    slices: Counter[str] = Counter()
    tracks: dict[int, str] = {}
    names: dict[int, str] = {}
    for packet in packets(tmp_path / "host.pftrace"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
        names.update((name.iid, name.name) for name in packet.interned_data.event_names)
        event = packet.track_event
        if event.type == event.TYPE_SLICE_BEGIN:
            slices[f"{tracks[event.track_uuid]}: {names[event.name_iid]}"] += 1
    for name, vcpu in by_name(folder, recording).items():
        assert slices[f"{name} vCPU 0: running"] == slices[f"pCPU 0: {name} vCPU 0"] == vcpu["executions"]
        assert slices[f"{name} vCPU 0: blocked"] in {vcpu["block"]["count"], vcpu["block"]["count"] + 1}


def test_show(real: tuple[Path, recordings.Recording], command: Vcpulab) -> None:
    folder, recording = real
    shown = command("import", str(folder / "trace.bin.xz"), "--show")
    assert shown.returncode == 0, shown.stderr
    assert "hogA v0" in shown.stdout
    assert f"{recording.summary['span_ns'] / 1e9:.6f} s" in shown.stdout
    files = [str(path) for path in sorted(folder.glob("*.cfg"))]
    texts = [str(folder / name) for name in ("list0.txt", "vcpus.txt", "sched.txt")]
    done = command("import", *files, *texts, "--format", "json")
    assert done.returncode == 0, done.stderr
    kinds = [read["kind"] for read in json.loads(done.stdout)]
    assert kinds == ["xl-cfg"] * len(files) + ["xl-list", "xl-vcpu-list", "xl-sched"]


# ---- texts of xl ----


def test_listings() -> None:
    folder = REAL / "xen4.17-credit-mixed"
    assert xl.read_list(folder / "list0.txt")[1] == xl.Domain("hogA", 6, 192, 1, "------", 7.8)
    assert xl.read_vcpu_list(folder / "vcpus.txt")[0] == xl.Vcpu("Domain-0", 0, 0, 0, "r--", 110.2, "all", "all")
    [pool] = xl_sched.read_sched(folder / "sched.txt")
    assert (pool.pool, pool.scheduler) == ("Pool-0", "credit")
    assert pool.parameters == {"tslice": "30ms", "ratelimit": "1000us", "migration-delay": "0us"}
    assert pool.domains[5] == {"name": "ioC", "id": 10, "weight": 1024, "cap": 0}
    assert xl_sched.read_sched(REAL / "xen4.17-credit2-mixed" / "sched.txt")[0].scheduler == "credit2"
    assert read_info(REAL / "xl-info-credit.txt").settings["cpu_mhz"] == "1000.000"


def test_rtds(tmp_path: Path) -> None:
    text = "Cpupool Pool-0: sched=RTDS\nName ID VCPU Period Budget Extratime\nvm one 1 0 10000 4000 yes\n"
    (tmp_path / "sched").write_text(text)
    [pool] = xl_sched.read_sched(tmp_path / "sched")
    assert pool.scheduler == "rtds"
    assert pool.domains == [{"name": "vm one", "id": 1, "vcpu": 0, "period": 10000, "budget": 4000, "extratime": "yes"}]


def test_cfg(tmp_path: Path) -> None:
    text = """# a guest
name = "web" ; vcpus = 2
cpus = "0-3,^1"
vif = [ 'bridge=xenbr0',
        "mac=00:16:3e:00:00:01", ]
extra = "console=hvc0 "
extra += "quiet"
cap = 0x10
"""
    (tmp_path / "web.cfg").write_text(text)
    assert xl_cfg.read_cfg(tmp_path / "web.cfg") == {
        "name": "web",
        "vcpus": 2,
        "cpus": "0-3,^1",
        "vif": ["bridge=xenbr0", "mac=00:16:3e:00:00:01"],
        "extra": "console=hvc0 quiet",
        "cap": 16,
    }


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("xl-list", "Name ID Mem VCPUs State Time(s)\nweb 1 many 1 r----- 1.0\n", ":2: found `web 1 many"),
        ("xl-list", "Name ID\n", ":1: found `Name ID`; allowed: the heading"),
        ("xl-vcpu-list", "Name ID Mem VCPUs State Time(s)\n", ":1: found"),
        ("xl-sched", "Name ID Weight Cap\n", ":1: found"),
        ("xl-sched", "Cpupool Pool-0: x\n", ":1: found `Cpupool Pool-0: x`"),
        ("xl-sched", "Cpupool Pool-0: tslice=30ms\nName ID Weight Cap\nweb 1 2 x\n", ":3: found `web 1 2 x`"),
        ("xl-sched", "", ":1: found ``"),
        ("xl-info", "host : a\n", ": found `host`"),
        ("xl-cfg", 'name = "web\n', ":1: found"),
        ("xl-cfg", "vcpus 2\n", ":1: found `2`; allowed: `=`"),
        ("xl-cfg", "vif = [ 1, \n", ": found `the end of the file`"),
        ("xl-cfg", "x = " + "[" * 100, ":1: found `[`"),
        ("xenmon", "# a b\n", ":1: found"),
        ("xenmon", f"# {' '.join(xenmon.COLUMNS)}\n1 2 3\n", ":2: found `1 2 3`"),
        ("xenmon", f"# {' '.join(xenmon.COLUMNS)}\n{'nan ' * 16}\n", ":2: found `nan"),
        ("jtl", "a,b\n", ":1: found `a,b`; allowed: a heading with timeStamp"),
        ("jtl", "timeStamp,elapsed,label,success\n1,2,x\n", ":2: found `1,2,x`; allowed: 4 values"),
        ("jtl", "timeStamp,elapsed,label,success\n1,-2,x,true\n", ":2: found `-2`; allowed: milliseconds as elapsed"),
        ("jtl", "timeStamp,elapsed,label,success\n1,2,x,yes\n", ":2: found `yes`"),
        ("jtl", "<a/>", ":1: found `<a>`; allowed: `<testResults>`"),
        ("jtl", "<testResults>\n<httpSample t='1'/></testResults>", ":2: found `<httpSample> without ts`"),
        ("jtl", "<testResults>", ":1: no XML"),
        ("jtl", '<?xml version="1.0" encoding="big5"?>\n<testResults/>', ":1: no XML that is read: multi-byte"),
        ("jtl", "<testResults>" + "<a>" * 200, ":1: found `elements in elements`; allowed: at most 100"),
        ("jtl", '<testResults>\n<a b="' + "c" * (1 << 21), ":2: found `a longer tag or comment`; allowed: at most"),
        ("jtl", "timeStamp,elapsed,label,success,elapsed\n1,2,x,true,3\n", ":1: found `timeStamp,"),
        ("xl-list", f"Name ID Mem VCPUs State Time(s)\nweb {'1' * 5000} 1 1 r----- 1.0\n", ":2: found `web 1"),
        ("xl-vcpu-list", f"{' '.join(xl.VCPU_HEADING)}\nweb {'1' * 5000} 0 0 r-- 1.0 all / all\n", ":2: found"),
        ("jtl", '<!DOCTYPE a [<!ENTITY b "c">]><testResults/>', ":1: found `<!DOCTYPE`"),
        ("sched-text", "hello\n", "none of 1 lines"),
        ("xentrace", "hello", "byte 0: found the word"),
        ("xentrace", "", "is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(kind: recordings.Kind, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(RecordingError, match=re.escape(message)) as raised:
        recordings.read(tmp_path / "file", kind)
    assert str(tmp_path / "file") in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("xl-list", f"{' '.join(xl.LIST_HEADING)}\nweb{' ' * 900_000}x\n"),
        ("xl-vcpu-list", f"{' '.join(xl.VCPU_HEADING)}\n{'1 1 1 r-- 1 ' * 70_000}\n"),
        ("xl-cfg", "x = []\n" + "x += [1]\n" * 50_000),
        (None, "\n " * 8000),
    ],
)
def test_texts_made_to_take_long_do_not(kind: recordings.Kind | None, text: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    began = time.process_time()
    with contextlib.suppress(RecordingError):
        recordings.read(tmp_path / "file", kind)
    assert time.process_time() - began < 20, "CPU time, whatever else the machine does: quadratic ones take minutes"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host : a\nxen_version : 4\ncpu_mhz : fast\n", "found `fast`; allowed: a frequency as cpu_mhz"),
        ("host : a\nxen_version : 4\ncpu_mhz : nan\n", "found `nan`; allowed: a frequency as cpu_mhz"),
    ],
)
def test_what_is_wrong_beside_a_trace_is_said(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(RecordingError, match=re.escape(message)):
        gather([XENTRACE, tmp_path / "file"])


def test_a_parameter_that_cannot_be_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "sched.txt").write_text(f"Cpupool Pool-0: tslice={'1' * 5000}ms ratelimit=1ms\n")
    sources = gather([XENTRACE, tmp_path / "sched.txt"])
    assert sources.host_params == {"ratelimit_us": 1000}
    assert [note[:22] for note in sources.notes] == ["pool Pool-0: tslice `1"]


@pytest.mark.parametrize("thread", ["1" * 5000, "0", "4294967296"])
def test_threads_that_cannot_be_are_refused(thread: str, tmp_path: Path) -> None:
    (tmp_path / "threads").write_text(f"1 web 0\n{thread} web 1\n")
    with pytest.raises(RecordingError, match=":2: found `"):
        recordings.read_threads(tmp_path / "threads")


SEEDS = [path for folder in (REAL, ROOT / "fuzz" / "seeds" / "texts") for path in sorted(folder.rglob("*"))]
TEXTS = [path for path in SEEDS if path.suffix in (".txt", ".cfg", ".csv", ".xml")]
SNIPPETS = [*map(str.encode, (*' \n\t:=["<&\0é', "/>", "9" * 5000, "-1", "nan", "1e999")), b"\xff"]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_changed_texts_are_read_or_refused(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Pieces of real files, cut out, doubled, or replaced by what readers stumble over; `make fuzz` does more of it."""
    text = data.draw(st.sampled_from(TEXTS)).read_bytes()
    place = st.integers(0, len(text))
    change = st.tuples(place, place, st.integers(0, 2), st.sampled_from(SNIPPETS) | st.binary(max_size=4))
    for begin, end, times, instead in data.draw(st.lists(change, max_size=4)):
        text = text[:begin] + text[begin:end] * times + instead + text[max(begin, end) :]
    path = tmp_path_factory.getbasetemp() / "changed"
    path.write_bytes(text)
    texts.check(path)


# ---- files as they are ----


def test_compressed_or_not_it_is_the_same(tmp_path: Path) -> None:
    folder = REAL / "xen4.17-credit-weights"
    trace = lzma.decompress((folder / "trace.bin.xz").read_bytes())
    (tmp_path / "trace.bin").write_bytes(trace)
    (tmp_path / "trace.bin.gz").write_bytes(gzip.compress(trace))
    reports = [
        recordings.read(path).holds.report
        for path in (folder / "trace.bin.xz", tmp_path / "trace.bin", tmp_path / "trace.bin.gz")
    ]
    assert reports[0] == reports[1] == reports[2]


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress, bz2.compress])
def test_damaged_compression_is_refused(compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    compressed = compress(PERF.read_bytes() * 100)
    half = len(compressed) // 2
    for name, damaged in {
        "cut": compressed[:half],
        "changed": compressed[:half] + b"damaged!" + compressed[half + 8 :],
        "begun": compressed[:12] + b"damaged!" * 10,
    }.items():
        (tmp_path / name).write_bytes(damaged)
        with pytest.raises(RecordingError, match=f"{name}: compressed, but damaged or cut off"):
            recordings.read(tmp_path / name, "sched-text")


def test_too_long_texts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"Name ID Mem VCPUs State Time(s)\n" + b"x" * (1 << 20))
    with pytest.raises(RecordingError, match="too long"):
        recordings.read(tmp_path / "list.txt")
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(b"name = 1\n" + bytes(1 << 22)))
    with pytest.raises(RecordingError, match="too long"):
        recordings.read(tmp_path / "zeros.gz")


def test_a_reading_that_is_stopped_stops() -> None:
    asked = []

    def stop(done: float) -> bool:
        asked.append(done)
        return False

    with pytest.raises(KeyboardInterrupt):
        recordings.read(REAL / "xen4.17-credit-weights" / "trace.bin.xz", progress=stop)
    assert len(asked) == 1


# ---- KVM ----


def test_vms_are_told_by_their_processes() -> None:
    read = recordings.read(PERF).holds
    assert [(v["domain"], v["vcpu"], v["running_ns"]) for v in read.summary["vcpus"]] == [
        (2345, 0, 2_000_000),
        (2345, 1, 2_000_000),
    ]
    assert read.names == {2345: "qemu-2345"}


def test_folders_are_read_and_their_other_files_passed_over(tmp_path: Path, command: Vcpulab) -> None:
    folder = tmp_path / "host"
    folder.mkdir()
    shutil.copy(FTRACE, folder)
    (folder / "threads.txt").write_text("2350 web 0\n2351 db 0\n")
    (folder / "letter.txt").write_text("dear reader\n")
    shown = command("import", "host")
    assert shown.returncode == 0, shown.stderr
    assert ("web v0" in shown.stdout, "db v0" in shown.stdout) == (True, True)
    (tmp_path / "none").mkdir()
    refused = command("import", "none")
    assert (refused.returncode, "none: no file of the folder is a recording" in refused.stderr) == (2, True)


def test_vms_can_be_told_by_a_file(tmp_path: Path, command: Vcpulab) -> None:
    (tmp_path / "vcpus.txt").write_text("# of the web server\n2350 web 0\n2351 db 0\n")
    shutil.copy(FTRACE, tmp_path)
    shown = command("import", "ftrace.txt", "--threads", "vcpus.txt", "--show")
    assert shown.returncode == 0, shown.stderr
    assert "web v0" in shown.stdout
    assert "db v0" in shown.stdout
    (tmp_path / "vcpus.txt").write_text("2350 web 0\n2351 web 0\n")
    refused = command("import", "ftrace.txt", "--threads", "vcpus.txt")
    assert refused.returncode == 2
    assert "vcpus.txt:2: found `2351 web 0`; allowed: each thread and each vCPU once" in refused.stderr


# ---- logs ----


def test_logs_that_this_program_writes_are_read(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(
        """
        [run]
        duration = "2s"
        warmup = "0s"
        replications = 1
        sample = "1s"
        [host]
        profile = "generic"
        scheduler = "credit"
        [domain.dom0]
        driver_domain = true
        [domain.web]
        nic.driver_domain = "dom0"
        app = [{ kind = "web-server" }]
        [client.c]
        kind = "open-loop"
        server = "web"
        rate = 100
        """
    )
    for written in ("csv", "xml"):
        made = run(scenario, jtl=Jtl(tmp_path / written, format=written))
        [log] = (tmp_path / written).iterdir()
        assert recordings.kind_of(log) == "jtl"
        requests = jtl.read_jtl(log)
        assert 150 < sum(request.count for request in requests) < 250
        assert all(request.failed == 0 and request.percentile_ms(50) < 100 for request in requests)
    for log in monitors.xenmon(made, tmp_path / "xenmon"):
        assert recordings.kind_of(log) == "xenmon"
        [domain] = xenmon.read_xenmon(log)
        assert domain.samples >= 2
        assert domain.running_ns + domain.blocked_ns + domain.waited_ns == pytest.approx(2e9, rel=0.01)


def test_nothing_known_is_refused(tmp_path: Path, command: Vcpulab) -> None:
    (tmp_path / "letter.txt").write_text("Dear all,\n")
    refused = command("import", "letter.txt")
    assert refused.returncode == 2
    assert "letter.txt: not known by how it begins; allowed: xentrace" in refused.stderr
    missing = command("import", "missing.bin")
    assert missing.returncode == 2
    assert "missing.bin: no such file or directory" in missing.stderr
    assert command("import").returncode == 2
    wrong = command("import", str(REAL / "xl-info-credit.txt"), "--events", "x.arrow")
    assert wrong.returncode == 2
    assert "found 0 traces; allowed: one" in wrong.stderr
