"""The cases of the study of Benevenuto."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean, pstdev

import polars as pl

from vcpulab.scenario.model import OpenLoopClient
from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.window import Window

# ---- TCP receive (section 6.1a, Figure 6.1; section 6.2, Figures 6.4 and 6.5) ----

RECEIVE_MBIT = {500: (100, 200, 300), 1000: (100, 200, 400, 600), 1448: (100, 200, 400, 600, 800)}
"""Size of packets, bytes, to the rates that both systems manage, Mbit/s of data; rates common to all sizes first."""
STREAMS = 4
HOSTS = ("xen", "linux")

# ---- web server (section 6.1b, Figures 6.2 and 6.3) ----

WEB_RATES = (500, 1000, 1500, 2000, 2500, 2750, 3000, 4000, 6000, 8000)
"""Connections requested per second; in smaller steps where the guest reaches its limit."""
_SETTLES_SLOWLY = 2000
"""Rate from which all of the server's processes may be in use only after seconds."""
WEB_PROFILED = 1000
"""The rate at which the profile is taken: well below saturation."""

# ---- interference (section 6.4) ----

BUILDS = (1, 2, 3, 4, 5)
FILES = 80
"""Files that each build compiles."""
PERIODS_CYCLES = (10**5, 3 * 10**5, 10**6, 10**7)
"""Sampling periods of the profiler (Figure 5.2)."""

DIRECTORIES = 61
"""The number of directories, each of 36 files: 2196 files (Table 5.1)."""

_SHORT = {"run.duration": "600ms"}


def cases() -> Iterable[Case]:
    """All cases of the study."""
    yield from _receive()
    yield from _web()
    yield from _cards()
    yield from _builds()
    yield from _profiler()


# ---- receiving ----


def receive_case(host: str, size: int, mbit: int | None) -> str:
    """The key of a case; without a rate: as fast as possible."""
    return f"tcp-receive: {host} {size} B {'full speed' if mbit is None else f'{mbit} Mbit/s'}"


def gap_ns(size: int, mbit: int | None) -> int:
    """Time between two packets of a stream at that rate of all streams."""
    return 0 if mbit is None else round(STREAMS * size * 8000 / mbit)


def _receive() -> Iterable[Case]:
    for size, rates in RECEIVE_MBIT.items():
        for mbit in (*rates, None):
            for host, template, domain in zip(
                HOSTS, ("receive.toml", "receive-linux.toml"), ("guest", "linux"), strict=True
            ):
                changes = {
                    f"domain.{domain}.app.0.packet_size": f"{size}B",
                    "client.sender.packet": f"{size}B",
                    "client.sender.gap": f"{gap_ns(size, mbit)}ns",
                }
                yield Case(
                    receive_case(host, size, mbit),
                    template,
                    changes,
                    _received(size, domain),
                    main=f"{domain} 0 tcp-receiver",
                    precise=("cpu_total", "rate_mbit"),
                    fast=_SHORT,
                )


def _received(size: int, domain: str) -> Callable[[Window], Mapping[str, float]]:
    def measure(window: Window) -> dict[str, float]:
        packets = window.throughput(f"{domain} 0 tcp-receiver")
        idd = window.gotten("dom0") if domain == "guest" else 0.0
        acks = window.rate(domain, "packets_sent")
        return {
            "rate_mbit": packets * size * 8e-6,
            "data_per_s": packets,
            "acks_per_data": acks / packets,
            "packets_per_s": packets + acks,
            "cpu_idd": idd,
            "cpu_guest": window.gotten(domain),
            "cpu_total": idd + window.gotten(domain),
            "busy_idd": _busy(window, 0) if domain == "guest" else 0.0,
            "busy_guest": _busy(window, -1),
        }

    return measure


def _busy(window: Window, pcpu: int) -> float:
    """The utilization of a pCPU in the whole run, % (including the hypervisor's own work)."""
    row = window.run.df_pcpus().row(pcpu, named=True)
    return 100 * (1 - float(row["idle_ns"]) / float(row["elapsed_ns"]))


# ---- the web server ----


def web_case(host: str, rate: int) -> str:
    """The key of a case."""
    return f"web-server: {host} {rate} conn/s"


def _web() -> Iterable[Case]:
    for rate in WEB_RATES:
        for host, template in zip(HOSTS, ("web.toml", "web-linux.toml"), strict=True):
            slow = rate > _SETTLES_SLOWLY
            changes = {"client.httperf.rate": rate} | ({"run.duration": "20s"} if slow else {})
            fast = {"run.duration": "10s"} if slow else _SHORT
            yield _web_case(web_case(host, rate), template, changes, _served, fast)
    yield _web_case("web-server: content", "web.toml", {"client.httperf.rate": WEB_PROFILED}, _content)
    yield _web_case("xenoprof-example: web server", "web.toml", {"client.httperf.rate": WEB_PROFILED}, _profile)


def _web_case(
    key: str,
    template: str,
    changes: Mapping[str, object],
    measure: Callable[[Window], Mapping[str, float]],
    fast: Mapping[str, object] = _SHORT,
) -> Case:
    precise = ("throughput",) if measure is _served else ("sample_share[vmlinux]",) if measure is _profile else ()
    return Case(key, template, changes, measure, main="web 1 open-loop", precise=precise, fast=fast)


def _served(window: Window) -> dict[str, float]:
    idd = window.gotten("dom0") if "dom0" in window.run.df_domains().get_column("domain") else 0.0
    return {
        "throughput": window.throughput("web 1 open-loop"),
        "cpu_idd": idd,
        "cpu_guest": window.gotten("web"),
        "cpu_total": idd + window.gotten("web"),
        "packets_per_s": window.rate("web", "packets_received") + window.rate("web", "packets_sent"),
        "response_ms": window.response_ms("web 1 open-loop"),
        "disk_kb": _disk_kb(window),
    }


def _disk_kb(window: Window) -> float:
    """Data that the server's domain reads from its disk for each connection served, KB; over the whole run."""
    (read,) = window.run.df_io().filter(domain="web").get_column("disk_read_bytes")
    (served,) = window.run.df_apps().filter(kind="open-loop").get_column("completed")
    return float(read or 0) / 1e3 / max(1.0, float(served))


def _content(window: Window) -> dict[str, float]:
    """Table 5.1, of the files that the client chooses from: each size once in every directory."""
    client = window.run.scenario.clients["httperf"]
    assert isinstance(client, OpenLoopClient)
    sizes = sorted(ask.file_size.bytes / 1024 for ask in client.mix for _ in range(DIRECTORIES))
    weights = sum(ask.weight for ask in client.mix)
    mean_size = sum(ask.weight * ask.file_size.bytes / 1024 for ask in client.mix) / weights
    first, median, third = (sizes[len(sizes) * quarter // 4] for quarter in (1, 2, 3))
    return {
        "distinct_files": len(sizes),
        "total_size": sum(sizes) / 1024,
        "smallest_file": sizes[0],
        "largest_file": sizes[-1],
        "mean_file": fmean(sizes),
        "file_size_cv": pstdev(sizes) / fmean(sizes),
        "file_size_q1": first,
        "file_size_median": median,
        "file_size_q3": third,
        "asked_kb": mean_size,
        "sent_kb": window.rate("web", "bytes_sent") / window.throughput("web 1 open-loop") / 1024,
    }


def _profile(window: Window) -> dict[str, float]:
    """Table 5.2: shares of the time on the guest's pCPU, %; the hypervisor's own work there counts as its share."""
    rows = window.run.df_profile().filter(domain="web")
    times = dict(rows.select("layer", "exact_ns").iter_rows())
    times["hypervisor"] += window.run.df_pcpus().row(1, named=True)["overhead_ns"]
    busy = sum(times.values())
    return {
        "sample_share[vmlinux]": 100 * times["kernel"] / busy,
        "sample_share[xen]": 100 * times["hypervisor"] / busy,
        "sample_share[programs]": 100 * times["application"] / busy,
    }


# ---- one and two cards (section 6.3) ----

ONE_CARD: Mapping[str, Mapping[str, object]] = {
    "default": {},
    "NIC on CPU 2": {"nic.eth0.vcpu": 1},
    "VIF on CPU 2": {"domain.guest1.nic.driver_vcpu": 1},
    "both on CPU 2": {"nic.eth0.vcpu": 1, "domain.guest1.nic.driver_vcpu": 1},
}


def _second(driver: str) -> dict[str, object]:
    """A second guest with its own network card."""
    nic = {"driver_domain": driver, "device": "eth1", "driver_vcpu": 0, "checksum_offload": False}
    app = {"kind": "tcp-sender", "packet_size": "1448B", "streams": STREAMS}
    return {
        "nic.eth1": {"driver_domain": driver, "vcpu": 0},
        "domain.guest2": {"affinity": "3", "nic": nic, "app": [app]},
    }


_ONE_VCPU = {"domain.dom0.vcpus": 1, "domain.dom0.affinity": "0"}

TWO_CARDS: Mapping[str, Mapping[str, object]] = {
    "default": _second("dom0"),
    "NIC and VIF pairs split": _second("dom0") | {"nic.eth1.vcpu": 1, "domain.guest2.nic.driver_vcpu": 1},
    "routed, split": _second("dom0")
    | {"nic.eth1.vcpu": 1, "domain.guest2.nic.driver_vcpu": 1, "domain.dom0.forwarding": "routing"},
    "an IDD each": _ONE_VCPU | {"domain.idd2": {"driver_domain": True, "affinity": "1"}} | _second("idd2"),
}


def _cards() -> Iterable[Case]:
    for experiment, all_changes in (("one-nic", ONE_CARD), ("two-nics", TWO_CARDS)):
        guests = ("guest1",) if experiment == "one-nic" else ("guest1", "guest2")
        for name, changes in all_changes.items():
            yield Case(
                f"{experiment}: {name}",
                "cards.toml",
                changes,
                _sent(guests),
                main="guest1 0 tcp-sender",
                precise=("rate_mbit",),
                fast=_SHORT,
            )


def _sent(guests: Sequence[str]) -> Callable[[Window], Mapping[str, float]]:
    def measure(window: Window) -> dict[str, float]:
        rates = {guest: 8e-6 * 1448 * window.throughput(f"{guest} 0 tcp-sender") for guest in guests}
        drivers = _vcpus(window, ("dom0", "idd2"))
        return {
            "rate_mbit": sum(rates.values()),
            **{f"rate_mbit@{guest}": rate for guest, rate in rates.items()},
            **{f"cpu_{guest}": window.gotten(guest) for guest in guests},
            "cpu_per_mbit_guest": sum(map(window.gotten, guests)) / sum(rates.values()),
            "cpu_1": drivers[0],
            "cpu_2": drivers[1] if len(drivers) > 1 else 0.0,
            "cpu_drivers": sum(drivers),
        }

    return measure


def _vcpus(window: Window, domains: Sequence[str]) -> list[float]:
    """CPU time of each vCPU of these domains after the warm-up, % of a pCPU."""
    rows = (
        window.run.df_vcpu_samples()
        .filter(pl.col("domain").is_in(domains), pl.col("time_ns") > window.start_ns)
        .group_by("domain", "vcpu", maintain_order=True)
        .agg(pl.col("running_ns").sum())
        .sort("domain", "vcpu")
    )
    elapsed = window.run.scenario.duration_ns - window.start_ns
    return [100 * running / elapsed for running in rows.get_column("running_ns")]


# ---- kernel builds (section 6.4, Figures 6.10 and 6.11) ----


def build_case(where: str, n: int) -> str:
    """The key of a case: `linux`, `one guest` or `n guests`."""
    return f"interference: {where} n={n}"


_BUILD = {"kind": "kernel-build", "program_memory": "256KiB", "job_memory": "320KiB"}
"""Assumed: what a compiler touches in a turn of some 5 ms; see notes.md."""


def _builds() -> Iterable[Case]:
    for n in BUILDS:
        together = [{**_BUILD, "files": FILES * n, "jobs": n}]
        guest = {"affinity": "0", "disk": {"driver_domain": "dom0"}, "app": [{**_BUILD, "files": FILES}]}
        yield _build_case("linux", n, "build-linux.toml", {"domain.linux.app": together})
        yield _build_case("one guest", n, "build.toml", {"domain.guest1.app": together})
        yield _build_case("n guests", n, "build.toml", {f"domain.guest{i + 1}": guest for i in range(n)})


def _build_case(where: str, n: int, template: str, changes: Mapping[str, object]) -> Case:
    return Case(build_case(where, n), template, changes, _built, precise=("seconds",))


def _built(window: Window) -> dict[str, float]:
    domains = window.run.df_domains().filter(pl.col("domain") != "dom0")
    turns, l2, l3 = (float(domains.get_column(name).sum()) for name in ("context_switches", "l2_misses", "l3_misses"))
    return {
        "seconds": float(max(window.run.df_apps().get_column("last_completed_ns").drop_nulls())) / 1e9,
        "turns": turns,
        "l2_misses": l2,
        "l3_misses": l3,
        "l2_misses_per_turn": l2 / max(1.0, turns),
        "l3_misses_per_turn": l3 / max(1.0, turns),
    }


# ---- the profiler's own cost (section 5.2.3.2, Figure 5.2) ----


def profiler_case(cycles: int | None) -> str:
    """The key of a case; none: without a profiler."""
    return f"profiler-overhead: {'no profiler' if cycles is None else f'{cycles:.0e} cycles'.replace('e+0', 'e')}"


def _profiler() -> Iterable[Case]:
    for cycles in (None, *PERIODS_CYCLES):
        changes: dict[str, object] = {"domain.guest1.app": [{**_BUILD, "files": FILES}]}
        if cycles is not None:
            changes["run.profiler"] = {"cycles": cycles}
        yield Case(profiler_case(cycles), "build.toml", changes, _built, precise=("seconds",))
