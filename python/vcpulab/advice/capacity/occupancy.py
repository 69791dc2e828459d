"""The measured utilization of every station that requests pass, and the bottleneck among them.

A station is a resource that work queues for: the vCPUs of guests and driver domains, disks, links, the machines of
clients, and the limits of applications. A vCPU is occupied while it runs and while it waits for a pCPU: both keep its
work waiting. A vCPU that is never blocked is saturated. The reason is the resource it waits for: none (it has all the
CPU time that it can use), its cap or budget, or pCPUs that other domains use. The bottleneck is the station nearest to
full (the utilization law and the bottleneck of operational analysis: Denning and Buzen 1978, "The operational analysis
of queueing network models", Computing Surveys 10, pp. 225-261).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from vcpulab.advice.bounds.packets import FRAMING_BYTES
from vcpulab.advice.reservations import reservations
from vcpulab.hypervisors.settings import POOL_0
from vcpulab.results.run import Run
from vcpulab.scenario.model import Client, ClosedLoopClient, Domain, OpenLoopClient, VirtualDisk
from vcpulab.scenario.threads import HOST, host_threads, quota, quota_of

Kind = Literal[
    "driver domain",
    "guest vCPU",
    "host thread",
    "pCPUs",
    "cap",
    "quota",
    "budget",
    "disk",
    "link",
    "client machine",
    "connections",
    "backlog",
]

WAITS_MATTER = 0.1
"""The share of a vCPU's occupied time spent waiting above which another station holds the vCPU back."""
QUEUE_LONG = 3
"""The requests per worker above which no station below `NEAR_FULL` explains the queue: M/D/1 has 2.4."""
FULL = 0.9
"""The used fraction from which a station is full: nothing else limits a larger load."""
NEAR_FULL = 0.8
"""The utilization below which every station must be before the limits and queues of applications are examined."""


@dataclass(frozen=True)
class Station:
    """A resource that work queues for."""

    kind: Kind
    name: str
    used: float
    """The share of the time or of the capacity that is used, 0 to 1."""
    reason: str = ""
    """The measurements behind `used`, in words."""
    domain: str = ""
    """The domain whose vCPU the station holds back; empty: no vCPU."""
    thread: str = ""
    """The thread of a KVM host that the station holds back, with the thread's waiting time; empty: none."""
    waited: float = 0.0
    """The share of the time for which the vCPU or thread waits for a pCPU, included in `used`."""
    pcpus_busy: float = 0.0
    """The busy share of the pCPUs, by the work of all domains; 0 for stations of other kinds."""

    @property
    def fullness(self) -> float:
        """The utilization; of pCPUs that a vCPU waits for, by the work of all domains."""
        return max(self.used, self.pcpus_busy)

    def __str__(self) -> str:
        if self.domain and self.kind == "pCPUs":
            # `used` is the occupied time of the vCPU, not of the pCPUs.
            return f"{self.name} ({self.kind}): {self.reason}"
        return f"{self.name} ({self.kind}), {100 * self.used:.0f} % used" + (f": {self.reason}" if self.reason else "")

    def row(self) -> dict[str, object]:
        """As flat data."""
        return {"kind": self.kind, "station": self.name, "used_percent": 100 * self.used, "why": self.reason}


def stations(run: Run, concerned: Iterable[str] = ()) -> list[Station]:
    """The stations that the work of some domains passes, the fullest first.

    Args:
        run: the measurements; the stations have means over its replications.
        concerned: the domains; all by default. The domains that serve them are included.
    """
    host = _Host(run, set(concerned))
    passed = [*host.vcpus(), *host.pools(), *host.disks(), *host.links(), *host.machines()]
    if all(station.used < NEAR_FULL for station in passed):
        passed += host.applications()
    fullest: dict[tuple[str, str, bool], Station] = {}
    for station in sorted(passed, key=lambda station: -station.used):
        # A vCPU that waits for pCPUs is another station than the pCPUs that are full with the same domains' work.
        fullest.setdefault((station.kind, station.name, bool(station.domain)), station)
    return list(fullest.values())


def bottleneck(stations: Iterable[Station]) -> Station | None:
    """The station nearest to full."""
    return max(stations, key=lambda station: station.used, default=None)


class _Host:
    """A run, with its scenario's assignment of domains to resources."""

    def __init__(self, run: Run, concerned: set[str]) -> None:
        self.run = run
        self.scenario = run.scenario.model
        self.costs = self.scenario.host.costs
        self.domains = self.scenario.domains
        self.is_kvm = self.scenario.host.hypervisor == "kvm"
        self.threads = host_threads(self.scenario)
        self.replications = run.df_domains()["replication"].n_unique()
        self.seconds = run.scenario.duration_ns / 1e9
        self.concerned = set(with_servers(self.domains, concerned or self.domains))
        self.io = {row["domain"]: row for row in self._means(run.df_io(), "domain")}

    def _means(self, frame: pl.DataFrame, *by: str) -> list[dict[str, Any]]:
        numbers = [name for name, type_ in frame.schema.items() if type_.is_numeric() and name not in by]
        return frame.group_by(by, maintain_order=True).agg(pl.col(numbers).mean()).to_dicts()

    # ---- CPU ----

    def vcpus(self) -> Iterator[Station]:
        used: dict[str, float] = {}
        for row in self._means(self.run.df_vcpus(), "domain", "vcpu"):
            used[row["domain"]] = used.get(row["domain"], 0) + row["running_ns"] / row["elapsed_ns"]
        waits = self._waits()
        for row in self._means(self.run.df_vcpus(), "domain", "vcpu"):
            name = row["domain"]
            if name == HOST and self.threads:
                yield from self._thread(row, used, waits)
            if name not in self.concerned:
                continue
            runs, waited, withheld = (
                row[f"{state}_ns"] / row["elapsed_ns"] for state in ("running", "runnable", "offline")
            )
            station = f"vCPU {row['vcpu']:.0f} of {name}"
            kind: Kind = "driver domain" if self.domains[name].driver_domain else "guest vCPU"
            # Credit and Credit2 take a vCPU offline whose cap is used up.
            held = waited + (withheld if self.domains[name].params.get("cap") else 0)
            reason = f"runs {100 * runs:.0f} % of the time, waits {100 * held:.0f} %"
            if held > WAITS_MATTER * (runs + held):
                occupied = f"{station} {reason}"
                kind, station, reason = self._held_back(name, occupied, (used[name], runs), waits.get(name, {}))
            yield Station(kind, station, runs + held, reason, name, "", held, self._busy_of(kind, name))

    def _thread(
        self, row: Mapping[str, Any], used: Mapping[str, float], waits: Mapping[str, Mapping[str, float]]
    ) -> Iterator[Station]:
        """The station of a KVM host's thread that handles packets or disk requests of a VM, in its control group."""
        thread = self.threads[int(row["vcpu"])]
        if thread.domain not in self.concerned:
            return
        runs, waited = (row[f"{state}_ns"] / row["elapsed_ns"] for state in ("running", "runnable"))
        kind: Kind = "host thread"
        station, reason = str(thread), f"runs {100 * runs:.0f} % of the time, waits {100 * waited:.0f} %"
        held_thread = ""
        if waited > WAITS_MATTER * (runs + waited):
            held_thread = f"{thread} waits for {100 * waited:.0f} % of the time"
            kind, station, reason = self._held_back(
                thread.domain, f"{station} {reason}", (used[thread.domain], 0.0), waits.get(HOST, {})
            )
        busy = self._busy_of(kind, thread.domain)
        yield Station(kind, station, runs + waited, reason, thread.domain, held_thread, waited, busy)

    def _busy_of(self, kind: Kind, name: str) -> float:
        """The busy share of a domain's pCPUs for a station that is these pCPUs, otherwise 0."""
        return self._busy(self.domains[name].pool) if kind == "pCPUs" else 0.0

    def _held_back(
        self, name: str, occupied: str, gets: tuple[float, float], waits: Mapping[str, float]
    ) -> tuple[Kind, str, str]:
        """The kind, name and reason of the station that keeps a vCPU or thread from running: a limit or pCPUs.

        Args:
            name: the domain.
            occupied: the vCPU or thread and its occupied time, in words.
            gets: the number of pCPUs used by the domain and by the vCPU.
            waits: domain to the time for which the vCPU's domain waits for it, ns.
        """
        used, runs = gets
        cap = self.domains[name].params.get("cap", 0)
        if cap and used >= NEAR_FULL * cap / 100:
            return (
                "cap",
                f"cap of {name}",
                f"{occupied}; {name} gets {100 * used:.0f} % of a pCPU, its cap is {cap} %",
            )
        limit = quota(self.domains[name])
        if limit is not None and used >= NEAR_FULL * limit:
            limited = f"{name} gets {100 * used:.0f} % of a pCPU, its quota is {100 * limit:.0f} %"
            return "quota", f"quota of {name}", f"{occupied}; {limited}"
        of_each = quota_of(self.domains[name], "vcpu")
        if of_each is not None and runs >= NEAR_FULL * of_each:
            limited = f"the quota of each vCPU is {100 * of_each:.0f} % of a pCPU"
            return "quota", f"quota of {name}", f"{occupied}; {limited}"
        for reservation in reservations().values():
            params = self.domains[name].params
            of_vcpu = reservation.share(params)
            if of_vcpu and not reservation.gets_extra(params) and runs >= NEAR_FULL * of_vcpu:
                reserved = f"{100 * of_vcpu:.0f} % of a pCPU is reserved for each vCPU"
                return "budget", f"budget of {name}", f"{occupied}; {reserved}"
        total = sum(waits.values())
        if waits.get("idle", 0) > WAITS_MATTER * total:
            return "budget", f"budget of {name}", f"{occupied} while pCPUs idle: its scheduler gives it no more"
        most = sorted(waits, key=lambda by: -waits[by])[:2]
        share = ", ".join(f"{by} {100 * waits[by] / total:.0f} %" for by in most)
        pool = self.domains[name].pool
        busy = f"the {self._pcpus_of(pool)} are {100 * self._busy(pool):.0f} % busy"
        return "pCPUs", self._pcpus_of(pool), f"{occupied}" + (f" (for {share})" if share else "") + f"; {busy}"

    def pools(self) -> Iterator[Station]:
        """pCPUs, used by the domains concerned and the hypervisor: other domains may have to make way."""
        runs = {row["domain"]: row["running_ns"] for row in self._means(self.run.df_domains(), "domain")}
        if HOST in runs and self.threads:
            runs[HOST] = self._threads_of_unconcerned()
        for pool in sorted({self.domains[name].pool for name in self.concerned}):
            pcpus = self.run.df_pcpus().filter(pl.col("pool") == pool)
            if pcpus.is_empty():
                continue
            elapsed = float(pcpus["elapsed_ns"].sum()) / self.replications
            taken = sum(
                running
                for name, running in runs.items()
                # No scenario file lists the threads of a KVM host.
                if name not in self.concerned and (self.domains[name].pool if name in self.domains else POOL_0) == pool
            )
            busy = self._busy(pool)
            reason = f"busy {100 * busy:.0f} % of the time" + (
                f", {100 * taken / elapsed:.0f} % for others" if taken else ""
            )
            own = max(0.0, busy - taken / elapsed)
            yield Station("pCPUs", self._pcpus_of(pool), own, reason, pcpus_busy=busy)

    def _threads_of_unconcerned(self) -> float:
        """The CPU time of a KVM host's threads that serve no domain concerned, ns."""
        rows = self._means(self.run.df_vcpus().filter(pl.col("domain") == HOST), "vcpu")
        return math.fsum(
            row["running_ns"] for row in rows if self.threads[int(row["vcpu"])].domain not in self.concerned
        )

    def _pcpus_of(self, pool: str) -> str:
        """The name of a pool's pCPUs, in the words of the hypervisor."""
        return "pCPUs of the host" if self.is_kvm else f"pCPUs of {pool}"

    def _busy(self, pool: str) -> float:
        pcpus = self.run.df_pcpus().filter(pl.col("pool") == pool)
        if pcpus.is_empty():
            return 0.0
        return 1 - float(pcpus["idle_ns"].sum()) / float(pcpus["elapsed_ns"].sum())

    def _waits(self) -> dict[str, dict[str, float]]:
        """Waiting domain to running domain to the waiting time, ns."""
        waits: dict[str, dict[str, float]] = {}
        sums = self.run.df_waits().group_by("domain", "by", maintain_order=True).agg(pl.col("wait_ns").sum())
        for row in sums.to_dicts():
            waits.setdefault(row["domain"], {})[row["by"]] = row["wait_ns"]
        return waits

    # ---- devices ----

    def disks(self) -> Iterator[Station]:
        used = {
            self._disk_owner(domain.disk)
            for name, domain in self.domains.items()
            if name in self.concerned and domain.disk is not None
        }
        for name, row in self.io.items():
            if row["device_busy_ns"] is None or not (
                name in used or (None in used and name in {*self.concerned, *([HOST] if self.threads else [])})
            ):
                continue
            own = [disk for disk in self.scenario.disks.values() if disk.driver_domain in (None, name)]
            kinds = {disk.kind for disk in own}
            count = max(1, len(own))
            busy = row["device_busy_ns"] / row["elapsed_ns"] / count
            if kinds == {"ssd"}:
                busy = self._ssd_used(row["device_requests"] / count)
            many = f"{count} disks" if count > 1 else "disk"
            rate = row["device_requests"] / self.seconds
            yield Station("disk", f"{many} of {name}", busy, f"{rate:.0f} requests/s")

    def _disk_owner(self, disk: VirtualDisk) -> str | None:
        """The driver domain of the physical disk: a stub domain has a virtual disk itself."""
        owner = disk.driver_domain
        while owner is not None and (behind := self.domains[owner].disk) is not None:
            owner = behind.driver_domain
        return owner

    def _ssd_used(self, requests: float) -> float:
        """Utilization of flash memory, which serves several requests at once but transfers one after the other."""
        moved = sum((row["disk_read_bytes"] or 0) + (row["disk_written_bytes"] or 0) for row in self.io.values())
        transfers = moved / self.seconds / self.costs.ssd_bytes_per_s
        latency = requests / self.seconds * self.costs.ssd_latency_ns / 1e9 / self.costs.ssd_channels
        return float(max(transfers, latency))

    def links(self) -> Iterator[Station]:
        nics: dict[tuple[str | None, str | None], list[str]] = {}
        for name, domain in self.domains.items():
            if domain.nic is not None:
                nics.setdefault((domain.nic.driver_domain, domain.nic.device), []).append(name)
        for (owner, nic), names in nics.items():
            if not self.concerned & set(names):
                continue
            sent, received = (
                self._outside(owner, names, way) * self._link_bits(names, way) / self.seconds
                for way in ("sent", "received")
            )
            # Packets that are lost on the way in were sent all the same.
            used = min(1.0, max(sent, received) / self.costs.nic_bits_per_s)
            where = nic or (f"the NIC of {owner}" if owner else "the NIC")
            rates = f"out {sent / 1e6:.0f} Mbit/s, in {received / 1e6:.0f} Mbit/s"
            yield Station("link", f"link of {where}", used, rates)

    def _outside(self, owner: str | None, names: list[str], way: str) -> float:
        """Share of these domains' packets that crosses the link instead of staying inside the host."""
        packets = self._sum(names, f"packets_{way}")
        owner = HOST if self.is_kvm else owner
        crossed = float(self.io[owner][f"nic_{way}"]) if owner in self.io else None
        return 1.0 if crossed is None or not packets else min(1.0, crossed / packets)

    def _link_bits(self, names: list[str], way: str) -> float:
        """The bits that these domains' packets take on a link."""
        return 8 * (self._sum(names, f"bytes_{way}") + FRAMING_BYTES * self._sum(names, f"packets_{way}"))

    def _sum(self, names: Iterable[str], column: str) -> float:
        return sum(self.io[name][column] or 0 for name in names if name in self.io)

    # ---- clients and applications ----

    def _row(self, domain: str, kind: str, position: int | None = None) -> dict[str, Any] | None:
        for row in self._means(self.run.df_apps(), "domain", "app", "kind"):
            if row["domain"] == domain and row["kind"] == kind and position in (None, row["app"]):
                return row
        return None

    def _clients(self) -> Iterator[tuple[str, Client, dict[str, Any]]]:
        """The name, fields and measured row of each client of the domains concerned."""
        rows = self._means(self.run.df_apps(), "domain", "app", "kind")
        next_position = {name: sum(app.instance for app in domain.apps) for name, domain in self.domains.items()}
        for name, client in self.scenario.clients.items():
            server = client.server
            position = next_position[server]
            next_position[server] += 1
            for row in rows:
                if (row["domain"], row["app"]) == (server, position) and server in self.concerned:
                    yield name, client, row

    def machines(self) -> Iterator[Station]:
        clients: dict[str, list[tuple[Client, dict[str, Any]]]] = {}
        for _name, client, row in self._clients():
            if client.machine is not None:
                clients.setdefault(client.machine, []).append((client, row))
        for name, users in clients.items():
            machine = self.scenario.client_machines[name]
            requests_per_s = sum((row["completed"] + row["failed"]) / self.seconds for _client, row in users)
            servers = sorted({client.server for client, _row in users})
            packets = self._sum(servers, "packets_received") + self._sum(servers, "packets_sent")
            of_requests, of_packets = requests_per_s * machine.request_cpu.ns, machine.packet_cpu.ns
            busy = (of_requests + packets / self.seconds * of_packets) / 1e9 / machine.processors
            reason = f"{requests_per_s:.0f} requests/s"
            yield Station("client machine", f"processors of {name}", min(1, busy), reason)
            link = max(self._link_bits(servers, way) for way in ("sent", "received")) / self.seconds
            used = min(1.0, link / machine.bits_per_s)
            yield Station("client machine", f"link of {name}", used, f"{link / 1e6:.0f} Mbit/s")

    def _held(self, client: Client, row: Mapping[str, Any]) -> float:
        """The number of connections a client holds: one per user, or by Little's law one per outstanding request."""
        if isinstance(client, ClosedLoopClient) and client.keep_alive:
            return float(client.users)
        return float(row["throughput_per_s"] * (row["response_mean_ns"] or 0) / 1e9)

    def applications(self) -> Iterator[Station]:
        """The limits of clients and applications, and applications whose requests pile up."""
        ports: dict[str, float] = {}
        for name, client, row in self._clients():
            held = self._held(client, row)
            if isinstance(client, OpenLoopClient):
                reason = f"{held:.1f} of {client.connections_max} requests outstanding"
                used = min(1, held / client.connections_max)
                yield Station("connections", f"connections of {name}", used, reason)
            if client.machine is not None:
                ports[client.machine] = ports.get(client.machine, 0) + held
        for machine, held in ports.items():
            most = self.scenario.client_machines[machine].connections_max
            yield Station("client machine", f"ports of {machine}", min(1, held / most), f"{held:.0f} connections")
        for domain in sorted(self.concerned):
            position = 0
            for app in self.domains[domain].apps:
                served = self._row(domain, app.kind, position)
                position += app.instance
                if served is None:
                    continue
                workers = app.params.get("workers", app.params.get("threads"))
                inside = served["throughput_per_s"] * (served["response_mean_ns"] or 0) / 1e9
                if workers and inside > QUEUE_LONG * workers:
                    reason = (
                        f"{inside:.1f} requests in service or waiting, {workers} to serve them, though nothing is "
                        "near full: work comes in bursts, or the servers wait for other services"
                    )
                    yield Station("backlog", f"backlog of {domain}", 1.0, reason)
                if "connections_max" in app.params and served["failed"]:
                    reason = f"{served['failed'] / self.seconds:.1f} requests/s refused, dropped or broken off"
                    yield Station("connections", f"connections of {domain}", 1.0, reason)


def serving(domain: Domain) -> list[str]:
    """The domains that serve a domain: the driver domains of its devices, and the servers of its applications."""
    servers: list[object] = [device.driver_domain for device in (domain.nic, domain.disk) if device is not None]
    for app in domain.apps:
        servers += [app.params.get(field) for field in ("to", "database", "directory", "files")]
    return [name for name in servers if isinstance(name, str)]


def with_servers(domains: Mapping[str, Domain], names: Iterable[str]) -> list[str]:
    """Domains, followed by the domains that serve them directly or indirectly."""
    reached: dict[str, None] = {}
    left = list(names)
    while left:
        name = left.pop(0)
        if name in domains and name not in reached:
            reached[name] = None
            left += serving(domains[name])
    return list(reached)
