"""XenMon, xentop, xencpu and Xenoprof: what they show of a run, and how far that is from the truth."""

import asyncio
import math
from pathlib import Path

import polars as pl
import pytest
from textual.widgets import Static

import vcpulab
from support import Vcpulab
from vcpulab import Run, Scenario
from vcpulab.cli.top import Top
from vcpulab.formats.xenmon import COLUMNS
from vcpulab.hypervisors import monitors, xentop
from vcpulab.hypervisors.monitors import NotRecordedError

SEVERAL = {
    "name": "several",
    "run": {"duration": "4s", "warmup": "500ms", "replications": 2, "profiler": {"cycles": 50_000}},
    "host": {"scheduler": "credit", "profile": "lp200r", "pcpus": 2},
    "domain": {
        "dom0": {"driver_domain": True},
        "web": {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server"}], "vcpus": 2},
        "sink": {"nic": {"driver_domain": "dom0"}, "app": [{"kind": "tcp-receiver", "streams": 2}]},
        "hog": {"app": [{"kind": "hog"}], "disk": {"driver_domain": "dom0"}},
    },
    "client": {
        "users": {"kind": "open-loop", "server": "web", "rate": 150},
        "streams": {"kind": "stream", "server": "sink", "streams": 2, "packet": "1KiB", "gap": "2ms"},
    },
}


SEVERAL_DOMAINS = ("dom0", "web", "sink", "hog")


@pytest.fixture(scope="module")
def several() -> Run:
    """A web server, a receiver of streams and a hog beside the driver domain, profiled."""
    return vcpulab.run(Scenario.from_dict(SEVERAL))


def summed(run: Run, domain: str, column: str) -> int:
    return int(run.df_domains().filter(domain=domain, replication=0)[column].sum())


def with_samples(rows: list[tuple[str, int, int, int]]) -> Run:
    """A run of which one sample of a minute is known: domain, number, running_ns and page exchanges."""
    run = vcpulab.run(Scenario.from_dict(SEVERAL).change({"run.duration": "10ms", "run.profiler": None}))
    samples = run.df_samples().head(len(rows))
    known = pl.DataFrame(rows, schema=["domain", "number", "running_ns", "page_exchanges"], orient="row")
    made = samples.with_columns(pl.lit(60_000_000_000).alias("elapsed_ns"), *known)
    return Run(run.scenario, run.tables() | {"samples": made}, has_decisions=False)


def test_xenmon_logs_are_in_its_columns(several: Run, tmp_path: Path) -> None:
    written = monitors.xenmon(several, tmp_path / "logs", replication=0)
    assert [path.name for path in written] == [f"log-dom{number}.log" for number in range(4)]
    for domain, path in zip(["dom0", "web", "sink", "hog"], written, strict=True):
        heading, *lines = path.read_text().splitlines()
        assert heading.split()[1:] == COLUMNS
        rows = [[float(cell) for cell in line.split()] for line in lines]
        assert {len(row) for row in rows} == {16}
        times = [(row[0], row[1]) for row in rows]
        assert times == sorted(set(times)), "a row for each second and pCPU"
        assert {time for time, _ in times} == {1000.0, 2000.0, 3000.0, 4000.0}
        assert {cpu for _, cpu in times} == {0.0, 1.0}, "unpinned, a domain is now here, now there"
        assert all(row[3] > 0 for row in rows), "XenMon leaves out a pCPU that it did not run on"
        # The columns that published analyses of such logs read, counted from 1: 4 CPU time, 8 time blocked, ns.
        assert sum(row[3] for row in rows) == pytest.approx(summed(several, domain, "running_ns"), abs=1)
        # What it waited or was blocked where it did not run in that second is in no row.
        assert 0.9 < sum(row[10] for row in rows) / summed(several, domain, "runnable_ns") <= 1
        assert sum(row[7] for row in rows) <= summed(several, domain, "blocked_ns")
        assert sum(row[13] for row in rows) == pytest.approx(summed(several, domain, "executions"), rel=0.001)
        assert sum(row[14] for row in rows) == pytest.approx(summed(several, domain, "io_count"), abs=1)
        assert all(0 < row[6] <= 30e6 for row in rows), "Credit allocates at most 30 ms"
        assert all(row[4] == pytest.approx(row[3] / 1e7, abs=0.001) for row in rows)


def test_xenmon_rows_of_a_pcpu_add_up_to_what_it_ran(several: Run, tmp_path: Path) -> None:
    logs = [path.read_text().splitlines()[1:] for path in monitors.xenmon(several, tmp_path, replication=1)]
    rows = [line.split() for lines in logs for line in lines]
    for pcpu in range(2):
        ran = sum(float(row[3]) for row in rows if row[1] == str(pcpu))
        times = several.df_pcpus().filter(replication=1, pcpu=pcpu).row(0, named=True)
        # A vCPU counts as running also while the hypervisor works on its pCPU.
        assert times["run_ns"] < ran <= times["run_ns"] + times["overhead_ns"] + 1


def test_xencpu_repeats_the_worked_example() -> None:
    """One VM with 30 s, 18 s of Dom0 for it, in 60 s: it uses 0.8 CPUs, and the machine no more."""
    rows = [("dom0", 0, 18_000_000_000, 0), ("web", 1, 30_000_000_000, 90_000), ("sink", 2, 0, 0), ("hog", 3, 0, 0)]
    used = monitors.xencpu(with_samples(rows))
    by_domain = {row["domain"]: row for row in used.iter_rows(named=True)}
    assert by_domain["web"]["utilisation"] == pytest.approx(0.8)
    assert by_domain["web"]["attributed_s"] == pytest.approx(18)
    assert used["utilisation"].sum() == pytest.approx(0.8)


def test_xencpu_shares_the_driver_domain_by_page_exchanges() -> None:
    rows = [("dom0", 0, 12_000_000_000, 0), ("web", 1, 6_000_000_000, 3000), ("sink", 2, 6_000_000_000, 1000)]
    used = monitors.xencpu(with_samples([*rows, ("hog", 3, 30_000_000_000, 0)]))
    attributed = dict(used.select("domain", "attributed_s").iter_rows())
    assert attributed == pytest.approx({"dom0": -12, "web": 9, "sink": 3, "hog": 0})
    assert used["utilisation"].sum() == pytest.approx(54 / 60)


def test_the_sampling_technique_finds_what_the_engine_knows(several: Run) -> None:
    """Within four standard deviations of the count of as many independent samples."""
    profile = several.df_profile()
    busy, taken = int(profile["exact_ns"].sum()), int(profile["samples"].sum())
    for domain in SEVERAL_DOMAINS:
        rows = profile.filter(domain=domain)
        exact, sampled = int(rows["exact_ns"].sum()), int(rows["estimated_ns"].sum())
        share = exact / busy
        error = 4 * math.sqrt(share * (1 - share) / taken) * busy
        assert abs(sampled - exact) <= error, domain
        assert error <= 0.1 * exact, f"{domain}: an error that would hide anything"


def test_the_centralised_technique_finds_what_the_engine_knows() -> None:
    """CPU time, less the cold caches that are in it, is progress up to the hypervisor's overhead.

    The shares of the driver domain are its packets': its own time is known by layers too.
    """
    run = vcpulab.run(Scenario.from_dict(SEVERAL).change({"run.profiler": None, "run.replications": 1}))
    profile = run.df_profile()
    overhead = int(profile.filter(layer="overhead")["exact_ns"].item())
    assert overhead < 0.01 * 2 * 4e9
    used = monitors.xencpu(run)
    for domain, busy_s in used.select("domain", "busy_s").iter_rows():
        exact = int(profile.filter(domain=domain)["exact_ns"].sum())
        assert 0 <= busy_s * 1e9 - exact - summed(run, domain, "refill_ns") <= overhead, domain
    ran = sum(summed(run, domain, "running_ns") for domain in SEVERAL_DOMAINS)
    assert used["utilisation"].sum() == pytest.approx(ran / 4e9)


def test_the_profilers_overhead_grows_with_its_rate() -> None:
    def overhead(cycles: int) -> float:
        run = vcpulab.run(Scenario.from_dict(SEVERAL).change({"run.profiler.cycles": cycles, "run.replications": 1}))
        profile = monitors.xenoprof(run)
        return float(profile.filter(layer="profiler")["exact"].item())

    often, seldom = overhead(250_000), overhead(1_000_000)
    assert often / seldom == pytest.approx(4, rel=0.02)
    assert seldom == pytest.approx(100 * 22_500 / 1_000_000, rel=0.02), "what a sample costs on this machine"


def test_without_samples_monitors_say_what_to_do(several: Run, tmp_path: Path) -> None:
    run = vcpulab.run(Scenario.from_dict(SEVERAL).change({"run.sample": "0s", "run.duration": "10ms"}))
    for read in (monitors.xencpu, lambda run: next(xentop.updates(run, delay_s=1))):
        with pytest.raises(NotRecordedError, match=r"(?s)no samples.*run"):
            read(run)
    with pytest.raises(NotRecordedError, match="allowed: an integer from 0 to 1"):
        monitors.xenmon(several, tmp_path, replication=5)


def test_xentop_counts_from_the_first_sample_on(several: Run) -> None:
    updates = list(xentop.updates(several, delay_s=2))
    assert [update.time_s for update in updates] == [2.5, 4.5]
    for domain in updates[-1].domains:
        assert domain.cpu_s == pytest.approx(summed(several, domain.name, "running_ns") / 1e9)
        assert sum(domain.vcpus_s) == domain.cpu_s
        grown = domain.cpu_s - next(before.cpu_s for before in updates[0].domains if before.name == domain.name)
        assert domain.cpu_percent == pytest.approx(100 * grown / 2)
    web = updates[-1].domains[1]
    assert web.network is not None
    samples = several.df_samples().filter(domain="web", replication=0)
    assert web.network.bytes_sent == samples["bytes_sent"].sum() > 0
    hog = updates[-1].domains[3]
    assert (hog.network, hog.state) in [(None, "-----r"), (None, "------")]


def test_samples_tell_of_a_part_of_a_run(several: Run, tmp_path: Path) -> None:
    several.save(tmp_path / "run")
    samples = Run.load(tmp_path / "run").df_app_samples()
    key = ["replication", "domain", "app", "kind"]
    sums = samples.group_by(key, maintain_order=True).agg(pl.col("completed", "failed", "response_sum_ns").sum())
    apps = several.df_apps()
    assert sums.select(*key, "completed", "failed").equals(apps.select(*key, "completed", "failed"))
    responses = sums.filter(kind="open-loop").select(pl.col("response_sum_ns") / pl.col("completed")).to_series()
    assert responses.to_list() == apps.filter(kind="open-loop")["response_mean_ns"].to_list()
    later = samples.filter(pl.col("time_ns") > 2_500_000_000, kind="open-loop", replication=0)
    assert later["time_ns"].to_list() == [3_500_000_000, 4_500_000_000]
    assert 200 < later["completed"].sum() < 400, "of two seconds at 150 a second"


def test_top_prints_batches(command: Vcpulab, several: Run, tmp_path: Path) -> None:
    several.save(tmp_path / "run")
    result = command("top", "run", "-b", "-i", "2", "-n", "-v", "-x")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].split() == [column.heading for column in xentop.COLUMNS]
    assert sum(line.split()[0] == "NAME" for line in lines) == 2
    assert sum(line.startswith("Net0 RX:") for line in lines) == 4, "web and sink, twice"
    assert sum(line.startswith("VCPUs(sec):   0:") for line in lines) == 8
    rows = [line.split() for line in lines if line.split()[0] == "dom0"]
    assert [len(row) for row in rows] == [len(xentop.COLUMNS)] * 2
    assert rows[0][2:4] == ["0", rows[0][3]]
    assert 0 < float(rows[0][3]) <= 100


def test_monitor_commands(command: Vcpulab, several: Run, tmp_path: Path) -> None:
    several.save(tmp_path / "run")
    logs = command("monitor", "xenmon", "run", "--out", "logs", "--prefix", "x")
    assert logs.returncode == 0, logs.stderr
    assert sorted(path.name for path in (tmp_path / "logs").iterdir()) == [f"x-dom{number}.log" for number in range(4)]
    used = command("monitor", "xencpu", "run")
    assert "page exchanges" in used.stdout
    assert "±" in used.stdout
    profile = command("monitor", "xenoprof", "run", "--format", "csv")
    assert profile.stdout.startswith("domain,layer,samples,")
    assert command("monitor", "xenoprof", "hogs.toml").returncode == 0, "a scenario is run"
    for wrong in (["monitor", "xencpu", "logs"], ["top", "run", "-b", "-d", "0"], ["top", "run", "-b", "-i", "0"]):
        assert command(*wrong).returncode == 2
    assert command("top", "run", "-b", "--replication", "7").returncode == 2


def test_the_terminal_plays_a_run_and_obeys_xentops_keys(several: Run) -> None:
    def text(app: Top) -> str:
        return str(app.query_one("#table", Static).content)

    async def play() -> None:
        app = Top(several, delay_s=0.5)
        async with app.run_test(size=(200, 40)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert text(app).splitlines()[0].split()[0] == "NAME"
            await pilot.press("space", "g")  # stands still, at the first, however long it took to come here
            assert "1.500 s" in str(app.query_one("#summary", Static).content), "the first sample"
            for key, shown in [("n", "Net0 RX:"), ("V", "VCPUs(sec):"), ("b", "VBD 0 OO:")]:
                assert shown not in text(app)
                await pilot.press(key)
                assert shown in text(app)
                await pilot.press(key)
                assert shown not in text(app)
            await pilot.press("r")
            assert text(app).count("NAME") == 4
            await pilot.press("r", "s", "s", "s")
            assert app.options.sort == "CPU(sec)"
            first = text(app).splitlines()[1].split()[0]
            domains = next(xentop.updates(several, delay_s=0.5)).domains
            assert first == max(domains, key=lambda domain: domain.cpu_s).name
            await pilot.press("d", *"much", "enter")
            assert app.delay_s == 0.5, "that is no time"
            await pilot.press("escape", "d", *"0.02", "enter")
            assert app.delay_s == 0.02
            await pilot.press("space")
            while not app.finished:
                await pilot.pause(0.02)
            assert "4.500 s" in str(app.query_one("#summary", Static).content)
            await pilot.press("q")
        assert app.return_code == 0

    asyncio.run(play())


def test_the_terminal_runs_a_scenario_and_tells_of_a_failure() -> None:
    scenario = Scenario.from_dict(SEVERAL).change({"run.duration": "1s", "run.sample": "0s"})

    async def play(app: Top) -> None:
        async with app.run_test() as pilot:
            while app.failed is None:
                await pilot.pause(0.01)

    app = Top(scenario)
    asyncio.run(play(app))
    assert isinstance(app.failed, NotRecordedError)


def test_the_terminal_shows_a_run_while_it_goes_on() -> None:
    # Long enough that it is not done before the terminal has shown something.
    scenario = Scenario.from_dict(SEVERAL).change({"run.duration": "300min", "run.sample": "1s", "run.replications": 1})

    async def watch() -> None:
        app = Top(scenario, delay_s=1)
        async with app.run_test(size=(220, 40)) as pilot:

            def summary() -> str:
                return str(app.query_one("#summary", Static).content)

            while "domains:" not in summary():
                await pilot.pause(0.01)
            assert app.fraction < 1
            assert "running: " in summary()
            await pilot.press("space", "g")
            assert "at 1.500 s" in summary(), "from the first sample on"
            assert "paused" in summary()
            await pilot.press(".", ".")
            assert "at 3.500 s" in summary()
            await pilot.press(",")
            assert "at 2.500 s" in summary()
            await pilot.press("G")
            newest = float(summary().split(" at ")[1].split()[0])
            assert newest > 3.5
            before, seen = app.fraction, newest
            # A fraction is told less often than a sample.
            while seen <= newest or not app.fraction:
                await pilot.pause(0.02)
                await pilot.press("G")
                seen = float(summary().split(" at ")[1].split()[0])
            assert before <= app.fraction < 1, "the run goes on while the screen stands still"
            await pilot.press("g")
            assert "at 1.500 s" in summary()
            await pilot.press("q")
        assert app.return_code == 0

    asyncio.run(watch())


def test_what_the_terminal_showed_of_a_run_is_what_it_left() -> None:
    scenario = Scenario.from_dict(SEVERAL).change({"run.replications": 3})

    async def watch() -> None:
        app = Top(scenario, delay_s=0.01, replication=2)
        async with app.run_test(size=(200, 40)) as pilot:
            while not app.finished:
                await pilot.pause(0.01)
            shown = str(app.query_one("#table", Static).content).splitlines()
            *_, last = xentop.updates(vcpulab.run(scenario), delay_s=0.01, replication=2)
            assert shown == xentop.table(last, xentop.Options())

    asyncio.run(watch())
