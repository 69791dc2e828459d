"""What answers say of what they do not know: threads without a price, placements that are not certain, whose value."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import vcpulab
from support import Vcpulab
from vcpulab._engine import p_text
from vcpulab.advice import core_sharing
from vcpulab.advice.capacity import Capacity, words
from vcpulab.advice.capacity.judging import judge
from vcpulab.advice.compare import Comparison, compare
from vcpulab.advice.in_short import headline, in_short
from vcpulab.advice.placing.placing import Placement, UnplaceableError, _is_beyond
from vcpulab.advice.verdicts import NotFound, Proven
from vcpulab.results.addresses import slo
from vcpulab.results.statistics import least_to_most

THREADS = """\
[run]
duration = "200ms"
replications = 2
[host]
profile = "{profile}"
scheduler = "credit2"
topology = {{ sockets = 1, cores = 2, threads = {threads} }}
[domain.web]
app = [{{ kind = "periodic", run = "1ms", period = "10ms" }}]
[domain.batch]
app = [{{ kind = "hog" }}]
"""
COMMANDS = [
    ["run"],
    ["lint", "--replications", "2"],
    ["lint", "--replications", "2", "--fix"],
    ["explain", "--replications", "2"],
    ["whatif", "--set", "web.weight=512"],
    ["tune", "--maximise", "batch.throughput", "--trials", "2", "--replications", "2"],
    ["capacity", "--vary", "copies:web", "--highest", "2"],
    ["place", "--replications", "2"],
    ["bounds"],
]


@pytest.mark.parametrize(("profile", "threads"), [("generic", 2), ("xeon-gold-6240", 2), ("generic", 1)])
def test_every_answer_has_the_caution_on_threads_without_a_price(
    profile: str, threads: int, command: Vcpulab, tmp_path: Path
) -> None:
    text = THREADS.format(profile=profile, threads=threads)
    (tmp_path / "host.toml").write_text(text)
    expected = (profile, threads) == ("generic", 2)
    (caution,) = core_sharing.cautions(vcpulab.Scenario.from_toml(text).model) or [""]
    assert bool(caution) == expected
    for name, *options in COMMANDS if expected else COMMANDS[:5]:
        shown = command(name, "host.toml", *options).stdout
        assert ("does not say what busy siblings cost each other" in " ".join(shown.split())) == expected, name
        if "--fix" in options or name in ("capacity", "place", "bounds"):
            continue
        document = json.loads(command(name, "host.toml", *options, "--format", "json").stdout)
        assert ("cautions" in document) == expected, name
        assert caution in json.dumps(document, ensure_ascii=False)


# ---- placing ----


def shops(weight: int) -> vcpulab.Scenario:
    web = {"nic": {"driver_domain": "dom0"}, "weight": weight, "app": [{"kind": "web-server", "request_cpu": "2ms"}]}
    return vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "1s", "warmup": "200ms"},
            "host": {"profile": "generic", "pcpus": 1, "scheduler": "credit2"},
            "domain": {"dom0": {"driver_domain": True}, "web": web, "batch": {"app": [{"kind": "hog"}]}},
            "client": {"http": {"kind": "open-loop", "server": "web", "rate": 250}},
        }
    )


@pytest.fixture(scope="module")
def light() -> Placement:
    """With equal weights the shop needs a host of its own."""
    return vcpulab.place([shops(256)], slo=["http.response_p99 < 30ms"])


def test_a_placement_speaks_of_the_settings_as_they_are(light: Placement) -> None:
    """With equal weights the shop needs a host of its own; with another weight it does not."""
    heavy = vcpulab.place([shops(4096)], slo=["http.response_p99 < 30ms"])
    assert (len(light.hosts), len(heavy.hosts)) == (2, 1)
    assert light.least == (
        "with these settings, no fewer hosts keep the SLOs: each placement on fewer has domains that break one together"
    )
    assert heavy.least == "with these settings, one host keeps the SLOs"
    assert all(one.certain for one in light.refused)
    assert light.proven


def test_a_difference_that_is_not_significant_proves_nothing(light: Placement) -> None:
    doubtful = replace(light, proven=False, refused=[one._replace(certain=False) for one in light.refused])
    assert doubtful.least.startswith("cannot tell whether fewer hosts keep the SLOs")
    assert "no fewer hosts" not in str(doubtful)


def test_failures_of_some_replications_only_are_not_certain() -> None:
    failed = slo(shops(256), "http.failed <= 0")
    assert not _is_beyond(judge(failed, [0.0, 0.0, 0.0, 50.0, 0.0]))
    assert _is_beyond(judge(failed, [40.0, 50.0, 60.0, 50.0, 45.0]))
    assert _is_beyond(judge(slo(shops(256), "http.response_p99 < 30ms"), [None, None]))


# ---- comparisons in short ----


def compared(before: vcpulab.Scenario, after: vcpulab.Scenario) -> tuple[list[Comparison], str]:
    old, new = vcpulab.run_many([before, after])
    found = compare(old, new)
    return found, headline(found, (before, after))


def test_cpu_time_that_becomes_free_is_an_improvement() -> None:
    host = {"hypervisor": "kvm", "scheduler": "linux-eevdf", "profile": "generic", "pcpus": 4, "halt_poll_us": 500}
    polling = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "500ms", "warmup": "100ms", "replications": 4},
            "host": host,
            "domain": {"nap": {"nic": {}, "app": [{"kind": "web-server"}]}},
            "client": {"http": {"kind": "open-loop", "server": "nap", "rate": 3000}},
        }
    )
    quiet = polling.change({"host.halt_poll_us": 0})
    assert "% of a pCPU more is free (improves), for the same work" in compared(polling, quiet)[1]
    assert "% of a pCPU more is busy (regresses), for the same work" in compared(quiet, polling)[1]
    # Less work is no gain.
    assert "of a pCPU" not in compared(polling, polling.change({"client.http.rate": 1000}))[1]


def test_a_row_of_alike_things_says_whose_value_is_largest_and_has_all_p_values() -> None:
    web = {"count": 12, "nic": {"driver_domain": "dom0"}, "app": [{"kind": "web-server", "request_cpu": "1ms"}]}
    now = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "1s", "warmup": "100ms", "replications": 5},
            "host": {"profile": "generic", "pcpus": 2, "scheduler": "credit"},
            "domain": {"dom0": {"driver_domain": True}, "web": web, "batch": {"count": 4, "app": [{"kind": "hog"}]}},
            "client": {"http": {"kind": "open-loop", "server": "web", "rate": 60}},
        }
    )
    then = now.change({f"domain.batch{number}.cap": 5 for number in range(1, 5)})
    found, said = compared(now, then)
    assert "(most: batch" in said
    table, _ = in_short([one for one in found if one.address.better], (now, then), ("now", "then"))
    (shown,) = [row for row in table.rows if row[0].startswith("batch") and row[0].endswith(".throughput")]
    batch = [one.p for one in found if one.address.name.startswith("batch") and one.address.metric.name == "throughput"]
    assert shown[6] == least_to_most([p for p in batch if p is not None], p_text)


# ---- what is claimed of loads and room ----


def at_150(pcpus: int, limit_ms: float) -> Capacity:
    limit = f"http.response_p99 < {limit_ms}ms"
    scenario = shops(256).change({"host.pcpus": pcpus})
    return vcpulab.capacity(scenario, "http.rate", lowest=150, highest=150, slo=[limit], replications=2)


def test_what_the_lowest_load_does_not_keep_is_impossible_only_with_a_proof() -> None:
    """A request takes 2 ms. On two pCPUs it waits for nobody; on one pCPU a setting may help."""
    impossible, missed = at_150(2, 1), at_150(1, 3)
    assert isinstance(impossible.verdict, Proven)
    assert isinstance(missed.verdict, NotFound)
    assert "http.response_p99 < 1ms cannot be kept" in " ".join(words.sentences(impossible))
    assert "cannot" not in " ".join(words.sentences(missed))
    assert "Not found: the load tried (client.http.rate = 150) does not keep" in " ".join(words.sentences(missed))
    (lowest,) = missed.points
    unsure = replace(lowest, standing="open", judged=[replace(judged, standing="open") for judged in lowest.judged])
    doubtful = replace(missed, points=[unsure])
    assert doubtful.verdict is None
    assert "cannot tell whether client.http.rate = 150, the lowest load, keeps" in " ".join(words.sentences(doubtful))


def test_a_domain_that_fits_nowhere_is_a_matter_of_settings_unless_proven() -> None:
    capped = shops(256).change({"domain.web.cap": 20, "host.pcpus": 2, "client.http.rate": 100})
    with pytest.raises(UnplaceableError) as late:
        vcpulab.place([capped], slo=["http.response_p99 < 30ms"], replications=2)
    assert "with these settings" in str(late.value)
    assert "vcpulab tune looks for other settings" in str(late.value)
    with pytest.raises(UnplaceableError) as proven:
        vcpulab.place([capped], slo=["http.response_p99 < 0.5ms"], replications=2)
    assert "vcpulab tune" not in str(proven.value)
    assert "no vCPU waits for a pCPU" in str(proven.value)


def test_placements_on_fewer_hosts_are_counted_where_nothing_is_proven(light: Placement) -> None:
    assert light.tried_on_fewer == 1
    assert replace(light, proven=False).least == (
        "Not found: the placement tried (on fewer than 2 hosts) does not keep the SLOs with these settings; others may"
    )
