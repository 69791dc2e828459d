"""The simulator against queueing theory, where theory is exact.

On a host without costs whose server has a pCPU to itself, a web server with one worker is a queue served in the order
of arrival; guests that take turns in short slices share a pCPU as processor sharing does. Service times follow from
what is asked for: 1 ms for each KiB.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

import vcpulab
from vcpulab import Interval
from vcpulab.advice.bounds.mva import Centre, Closed, solve

PER_BYTE_PS = 1_000_000_000 // 1024
MEAN_BYTES = 2048


def service_s(size: int) -> float:
    """What an answer of this size takes, as the simulator computes it."""
    return (1 + size * PER_BYTE_PS // 1000) * 1e-9


def exponential(count: int = 200) -> list[int]:
    """Sizes as likely as each other that stand for an exponential distribution: the mean of each of its quantiles."""
    edges = [-math.log(1 - i / count) for i in range(count)] + [math.inf]
    upper = [0.0 if math.isinf(edge) else math.exp(-edge) * (edge + 1) for edge in edges]
    return [max(1, round(MEAN_BYTES * count * (upper[i] - upper[i + 1]))) for i in range(count)]


CONSTANT = [MEAN_BYTES]
EXPONENTIAL = exponential()
UNEVEN = [200] * 9 + [18_632]
"""A tenth of all requests takes nine tenths of the time: a coefficient of variation of 2.7."""


def moments(sizes: Sequence[int]) -> tuple[float, float]:
    """Mean of the service time, s, and mean of its square."""
    times = [service_s(size) for size in sizes]
    return math.fsum(times) / len(times), math.fsum(time * time for time in times) / len(times)


def scenario(client: Mapping[str, Any], sizes: Sequence[int], **app: Any) -> vcpulab.Scenario:
    mix = [{"file_size": f"{size}B"} for size in sizes]
    server = {"kind": "web-server", "request_cpu": "0ns", "kilobyte_cpu": "1ms", "connections_max": 100_000, **app}
    return vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "60s", "warmup": "2s", "replications": 12, "sample": "0s"},
            "host": {"profile": "exact", "pcpus": 1, "scheduler": "null", "drivers": "hypervisor"},
            "domain": {"server": {"nic": {}, "app": [server]}},
            "client": {"asks": {"server": "server", "mix": mix, **client}},
        }
    )


def measured(it: vcpulab.Scenario) -> tuple[Interval, Interval]:
    """Throughput, 1/s, and mean response time, s, of the client."""
    rows = vcpulab.run(it, waits=False).df_apps().filter(pl.col("kind").str.ends_with("loop"))
    assert rows["failed"].sum() == 0
    throughput = Interval.from_values(rows["throughput_per_s"].to_list())
    response = Interval.from_values((rows["response_mean_ns"] / 1e9).to_list())
    assert throughput is not None
    assert response is not None
    return throughput, response


def agrees(simulated: Interval, theory: float, *, within: float) -> None:
    """Theory lies in the interval, and the interval is narrow enough to say something."""
    assert simulated.half_width is not None
    assert simulated.half_width <= within * theory, f"{simulated} is too wide to compare with {theory}"
    assert abs(simulated.mean - theory) <= simulated.half_width, f"{simulated}, but theory says {theory}"


def open_loop(rate: float) -> dict[str, Any]:
    return {"kind": "open-loop", "rate": rate, "connections_max": 65_536}


def test_one_server_with_exponential_service() -> None:
    """M/M/1: a mean response time of 1 / (mu - lambda) (Kleinrock 1975, "Queueing Systems" I, section 3.2)."""
    mean, _ = moments(EXPONENTIAL)
    throughput, response = measured(scenario(open_loop(0.7 / mean), EXPONENTIAL))
    agrees(throughput, 0.7 / mean, within=0.02)
    agrees(response, mean / (1 - 0.7), within=0.06)


@pytest.mark.parametrize("sizes", [CONSTANT, UNEVEN], ids=["constant", "uneven"])
def test_one_server_in_the_order_of_arrival(sizes: list[int]) -> None:
    """M/G/1: Pollaczek and Khinchine's mean (the same, section 5.7)."""
    mean, square = moments(sizes)
    rate = 0.6 / mean
    _, response = measured(scenario(open_loop(rate), sizes))
    agrees(response, mean + rate * square / (2 * (1 - 0.6)), within=0.1)


def test_one_server_that_shares_its_time() -> None:
    """M/G/1-PS: the mean response time depends on the mean service only (Kleinrock 1976, volume II, section 4.4).

    Forty domains, each asked by a fortieth of all users, take turns in short slices: so requests that meet are in
    different domains.
    """
    domains = 40
    mean = service_s(100_000)
    server = {"kind": "web-server", "request_cpu": "0ns", "kilobyte_cpu": "1ms", "connections_max": 10_000}
    names = [f"server{i}" for i in range(domains)]
    it = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "300s", "warmup": "10s", "replications": 12, "sample": "0s"},
            "host": {
                "profile": "exact",
                "pcpus": 1,
                "scheduler": "round-robin",
                "slice_ms": 1,
                "drivers": "hypervisor",
            },
            "domain": {name: {"nic": {}, "app": [server]} for name in names},
            "client": {
                f"asks-{name}": {
                    "kind": "open-loop",
                    "server": name,
                    "rate": 0.6 / mean / domains,
                    "file_size": "100000B",
                    "connections_max": 10_000,
                }
                for name in names
            },
        }
    )
    rows = vcpulab.run(it, waits=False).df_apps().filter(kind="open-loop")
    answered = (pl.col("response_mean_ns") * pl.col("completed")).sum() / pl.col("completed").sum() / 1e9
    response = Interval.from_values(rows.group_by("replication").agg(answered.alias("mean"))["mean"].to_list())
    assert response is not None
    agrees(response, mean / (1 - 0.6), within=0.05)
    # In the order of arrival it would be another, too far away to be mistaken for it.
    in_order = mean + 0.6 * mean / (2 * (1 - 0.6))
    assert response.half_width is not None
    assert response.mean - response.half_width > 1.2 * in_order


@pytest.mark.parametrize("sizes", [CONSTANT, UNEVEN], ids=["constant", "uneven"])
def test_tasks_of_a_guest_share_its_time_almost_as_evenly(sizes: list[int]) -> None:
    """Not quite M/G/1-PS: who wakes goes before a task that has computed alone until it has had as much."""
    mean, square = moments(sizes)
    rate = 0.7 / mean
    it = scenario(open_loop(rate), sizes, workers=200).change({"host.costs.task_slice_ns": 50_000})
    _, response = measured(it)
    assert response.mean == pytest.approx(mean / (1 - 0.7), rel=0.1)
    in_order = mean + rate * square / (2 * (1 - 0.7))
    assert abs(response.mean / in_order - 1) > 0.2


@pytest.mark.parametrize("users", [2, 10, 30])
def test_machine_repairman(users: int) -> None:
    """M/M/1//N, by exact mean-value analysis: so many users who think, and a server."""
    mean, _ = moments(EXPONENTIAL)
    expected = solve([Centre("server")], [Closed("users", users, {"server": mean}, think=0.02)])
    client = {"kind": "closed-loop", "users": users, "think": "20ms"}
    throughput, response = measured(scenario(client, EXPONENTIAL))
    agrees(throughput, expected.throughput["users"], within=0.02)
    agrees(response, expected.response["users"], within=0.05)
    # Little's law for the whole loop.
    assert throughput.mean * (response.mean + 0.02) == pytest.approx(users, rel=0.02)


@pytest.mark.parametrize(("machines", "pcpus"), [(12, 1), (24, 2)])
def test_machine_repairman_with_a_hypervisor_that_shares_its_time(machines: int, pcpus: int) -> None:
    """Processor sharing is exact whatever the service times are: here all are alike."""
    spin = {"kind": "spin", "threads": 1, "section": "50ms", "work": "0ns", "think": "500ms"}
    it = vcpulab.Scenario.from_dict(
        {
            "run": {"duration": "200s", "warmup": "5s", "replications": 12, "sample": "0s"},
            "host": {"profile": "exact", "pcpus": pcpus, "scheduler": "round-robin", "slice_ms": 1},
            "domain": {f"machine{i}": {"app": [spin]} for i in range(machines)},
        }
    )
    rows = vcpulab.run(it, waits=False).df_apps().group_by("replication")
    found = rows.agg(pl.col("throughput_per_s").sum(), pl.col("response_mean_ns").mean() / 1e9)
    expected = solve([Centre("pCPUs", pcpus)], [Closed("all", machines, {"pCPUs": 0.050000001}, think=0.5)])
    throughput = Interval.from_values(found["throughput_per_s"].to_list())
    response = Interval.from_values(found["response_mean_ns"].to_list())
    assert throughput is not None
    assert response is not None
    agrees(throughput, expected.throughput["all"], within=0.01)
    agrees(response, expected.response["all"], within=0.03)
