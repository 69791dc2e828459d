"""Stations and service demands of a scenario: the least demand of each load's unit of work at each station."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from vcpulab.advice import core_sharing
from vcpulab.advice.bounds.applications import REQUEST_BYTES, Application, Piece, Work, application
from vcpulab.advice.bounds.host import Host, NotModelledError, Party, Stage
from vcpulab.advice.bounds.kvm import KvmHost
from vcpulab.advice.bounds.model import Load, Model
from vcpulab.advice.bounds.packets import EMPTY, Exchange, Packet, exchange, last, stream
from vcpulab.scenario.model import App, Client, ClosedLoopClient, IperfApp, NetperfApp, StreamClient, TcpSenderApp
from vcpulab.scenario.scenario import Scenario

_WINDOW_BYTES = 65_535
"""Most unacknowledged data of a stream."""
_SOCKET_BYTES = 65_536
"""Data that a sender's socket buffers ahead of the network by default."""
_CPUS = ("domain", "vcpu", "in turn", "pool", "pcpus", "tasks", "thread")
"""Kinds of stations with the speed of a CPU."""
_READ_BYTES_MAX = _WINDOW_BYTES // 2
"""Most data that a receiver takes at once."""


def model(scenario: Scenario) -> Model:
    """The scenario as a queueing network.

    Examples:
        >>> web = model(Scenario.starter()).loads[0]
        >>> web.name, web.customers
        ('http', 64)
    """
    builder = _Builder(_host_of(scenario))
    loads = tuple(builder.loads())
    network = Model(scenario.name, builder.host.stations, loads, tuple(dict.fromkeys(builder.not_modelled)))
    return _at_its_fastest(network, core_sharing.fastest(scenario.model))


def _host_of(scenario: Scenario) -> Host:
    return KvmHost(scenario) if scenario.host.hypervisor == "kvm" else Host(scenario)


def _at_its_fastest(network: Model, times: float) -> Model:
    """The network with CPUs `times` as fast: at the highest clock rate, for any load of the other CPUs."""
    if times == 1:
        return network
    stations = {
        name: replace(station, servers=times * station.servers) if station.kind in _CPUS else station
        for name, station in network.stations.items()
    }
    return replace(
        network, stations=stations, loads=tuple(replace(load, alone=load.alone / times) for load in network.loads)
    )


class _Ledger:
    """Demands of a unit of work, and its least time."""

    def __init__(self) -> None:
        self.demands: defaultdict[str, float] = defaultdict(float)
        self.alone_ns = 0.0

    def take(self, stages: Iterable[Stage], times: float = 1.0, *, waits: float = 0.0) -> None:
        """Adds `times` these stages to the demands, and to the least time those that the unit waits for, `waits`."""
        for stage in stages:
            for station in stage.stations:
                self.demands[station] += times * stage.ns * 1e-9
            self.alone_ns += waits * stage.ns


class _Builder:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.not_modelled: list[str] = []

    def loads(self) -> Iterator[Load]:
        for domain, table in self.host.domains.items():
            position = 0
            for app in table.apps:
                rows = tuple((domain, position + i) for i in range(app.instance))
                yield from self._modelled(f"{domain}.{position}", self._program(domain, app, rows))
                position += app.instance
            for name, client in self.host.scenario.clients.items():
                if client.server == domain:
                    yield from self._modelled(name, self._client(name, client, (domain, position)))
                    position += 1

    def _modelled(self, name: str, loads: Iterator[Load]) -> Iterator[Load]:
        try:
            yield from loads
        except NotModelledError as error:
            self.not_modelled.append(f"{name}: {error}")

    def _application(self, domain: str, app: App) -> Application:
        demands = application(app)
        if demands is None:
            raise NotModelledError(f"`{app.kind}`, whose units have no fixed demands")
        self.not_modelled += [f"{domain}: {app.kind}: {omission}" for omission in demands.not_modelled]
        return demands

    def _service(self, domain: str, kind: str) -> tuple[App, Application]:
        app = next(app for app in self.host.domains[domain].apps if app.kind == kind)
        return app, self._application(domain, app)

    # ---- clients ----

    def _client(self, name: str, client: Client, row: tuple[str, int]) -> Iterator[Load]:
        if isinstance(client, StreamClient):
            yield self._stream_client(name, client, row)
            return
        ledger = _Ledger()
        domain, machine = client.server, client.machine
        app, service = self._service(domain, client.app)
        total = sum(ask.weight for ask in client.mix)
        connects = not (isinstance(client, ClosedLoopClient) and client.keep_alive)
        for ask in client.mix:
            share = ask.weight / total
            request, _ = REQUEST_BYTES[app.kind, ask.class_]
            self._visit(
                ledger,
                (Party(machine=machine), Party(domain=domain)),
                (request, ask.file_size.bytes, connects, service.per_connection),
                (app, service, service.units[ask.class_]),
                (share, share),
            )
            ledger.take(self.host.request_made(machine), share, waits=share)
        if isinstance(client, ClosedLoopClient):
            customers, rate, think_ns = client.users, None, client.think.ns
            randomly = think_ns > 0
        else:
            customers, rate, think_ns = client.connections_max, float(client.rate), 0
            randomly = not client.regular
        yield Load(
            name,
            (row,),
            dict(ledger.demands),
            ledger.alone_ns * 1e-9,
            rate,
            customers,
            think_ns * 1e-9,
            customers if rate is None else min(customers, rate * self.host.warmup_s + 1),
            float(randomly),
            self._variation([(ask.weight, ask.file_size.bytes) for ask in client.mix]),
            has_response=True,
        )

    def _visit(
        self,
        ledger: _Ledger,
        parties: tuple[Party, Party],
        sizes: tuple[int, int, bool, int],
        served: tuple[App, Application, Work],
        times: tuple[float, float],
    ) -> None:
        """Adds a request from one party to another, its answer, and the work between.

        Args:
            ledger: the demands to add to.
            parties: the caller and the called party.
            sizes: request, answer, does it set up a connection, requests per connection.
            served: the application that answers, and its work.
            times: number of requests, and number of requests that the unit waits for.
        """
        caller, called = parties
        request, answer, connects, per_connection = sizes
        segments_max = (self.host.segments_max(caller.domain), self.host.segments_max(called.domain))
        packets = exchange(request, answer, connects=connects, segments_max=segments_max, per_connection=per_connection)
        self._send(ledger, parties, packets, times[0])
        # The caller waits for the set-up, for the request's last packet, and for the answer's.
        waited = [last(request, segments_max[0])], [last(answer, segments_max[1])]
        if connects:
            waited[0].append(EMPTY)
            waited[1].append(EMPTY)
        for sender, receiver, waited_for in ((caller, called, waited[0]), (called, caller, waited[1])):
            for packet in waited_for:
                ledger.take(self.host.path(sender, receiver, packet), 0.0, waits=times[1])
        self._work(ledger, str(called.domain), served, answer, times)

    def _send(self, ledger: _Ledger, parties: tuple[Party, Party], packets: Exchange, times: float) -> None:
        caller, called = parties
        for sender, receiver, counted in ((caller, called, packets.forward), (called, caller, packets.back)):
            for packet, count in counted.items():
                ledger.take(self.host.path(sender, receiver, packet), times * count)

    def _work(
        self,
        ledger: _Ledger,
        domain: str,
        served: tuple[App, Application, Work],
        answer_bytes: int,
        times: tuple[float, float],
    ) -> None:
        """Adds the work of an application for a unit of work."""
        app, doing, work = served
        tasks = self.host.tasks(domain, app.kind, doing.tasks)
        ns = work.cpu_ns + answer_bytes * work.byte_ps / 1000 + self.host.page_faults(work.page_faults)
        ledger.take([self.host.compute(domain, ns, tasks)], times[0], waits=times[1])
        for size in work.direct:
            try:
                stages = list(self.host.disk_access(domain, size, tasks))
            except NotModelledError as error:
                self.not_modelled.append(f"{domain}: {app.kind}: {error}")
                continue
            for stage, waited in stages:
                ledger.take([stage], times[0], waits=times[1] * waited)
        for ask in work.asks:
            target = str(app.params[ask.parameter])
            target_app, service = self._service(target, ask.kind)
            request, answer = REQUEST_BYTES[ask.kind, ask.name]
            self._visit(
                ledger,
                (Party(domain=domain), Party(domain=target)),
                (request, ask.answer or answer, ask.connects, service.per_connection),
                (target_app, service, service.units[ask.name]),
                (times[0] * ask.times, times[1] * ask.times),
            )

    def _variation(self, sizes: list[tuple[int, int]]) -> float:
        """Coefficient of variation of a unit's demands, from evenly spread costs and the sizes of answers."""
        spread = self.host.costs.cost_spread_percent / 100 / math.sqrt(3)
        total = sum(weight for weight, _ in sizes)
        mean = sum(weight * size for weight, size in sizes) / max(total, 1)
        if mean == 0:
            return spread
        square = sum(weight * size * size for weight, size in sizes) / total
        return math.hypot(spread, math.sqrt(max(0.0, square / mean**2 - 1)))

    # ---- streams ----

    def _stream_client(self, name: str, client: StreamClient, row: tuple[str, int]) -> Load:
        ledger = _Ledger()
        domain, size = client.server, client.packet.bytes
        _, service = self._service(domain, client.app)
        on_line = stream(size, pushed=True)
        path = self.host.path(Party(machine=client.machine), Party(domain=domain), on_line.packet)
        ledger.take(path, on_line.packets, waits=1.0)
        self._received(ledger, domain, client.app, service, size)
        streams, gap = client.streams, client.gap.ns
        return Load(
            name,
            (row,),
            dict(ledger.demands),
            ledger.alone_ns * 1e-9,
            streams * 1e9 / gap if gap else None,
            streams * max(1, _WINDOW_BYTES // size),
            0.0,
            streams * (_SOCKET_BYTES // size + 2),
            0.0,
            self._variation([]),
            has_response=False,
        )

    def _received(self, ledger: _Ledger, domain: str, kind: str, service: Application, size: int) -> None:
        """Adds the receiver's work at this many bytes of a stream."""
        piece = service.receives
        if piece is None:
            raise NotModelledError(f"streams to `{kind}`")
        tasks = self.host.tasks(domain, kind, service.tasks)
        pieces = size / min(piece.size, _READ_BYTES_MAX)
        ledger.take([self.host.compute(domain, piece.cpu_ns, tasks)], pieces)

    def _sender(self, ledger: _Ledger, domain: str, app: App, doing: Application, piece: Piece) -> None:
        tasks = self.host.tasks(domain, app.kind, doing.tasks)
        ledger.take([self.host.compute(domain, piece.cpu_ns, tasks)], waits=1.0)
        on_line = stream(piece.size, pushed=piece.pushed, segments_max=self.host.segments_max(domain))
        to = app.to if isinstance(app, TcpSenderApp | NetperfApp | IperfApp) else None
        receiver = Party(domain=to)
        ledger.take(self.host.path(Party(domain=domain), receiver, on_line.packet), on_line.packets)
        if to is None:
            acknowledgement: Packet = EMPTY
            ledger.take(self.host.path(receiver, Party(domain=domain), acknowledgement), on_line.acknowledgements)
            return
        for kind in ("tcp-receiver", "iperf"):
            if any(receiver_app.kind == kind for receiver_app in self.host.domains[to].apps):
                self._received(ledger, to, kind, self._service(to, kind)[1], piece.size)
                return

    # ---- programs ----

    def _program(self, domain: str, app: App, rows: tuple[tuple[str, int], ...]) -> Iterator[Load]:
        doing = self._application(domain, app)
        ledger = _Ledger()
        ahead: float = doing.tasks
        if doing.sends is not None:
            self._sender(ledger, domain, app, doing, doing.sends)
            socket = app.send_buffer.bytes if isinstance(app, NetperfApp) else _SOCKET_BYTES
            ahead *= socket // doing.sends.size + 2
        elif "" in doing.units:
            self._work(ledger, domain, (app, doing, doing.units[""]), 0, (1.0, 1.0))
        else:
            return  # The application works for clients only.
        rate = None if doing.period_ns is None else doing.tasks * 1e9 / doing.period_ns
        if rate is not None:
            ahead += rate * self.host.warmup_s
        if app.kind == "hog":
            # Milliseconds of a hog are counted at the end of a piece of work, which is a time slice at most.
            ahead *= self.host.costs.task_slice_ns / 1e6 + 1
        yield Load(
            f"{domain}.{rows[0][1]}",
            rows,
            dict(ledger.demands),
            ledger.alone_ns * 1e-9,
            rate,
            doing.tasks if doing.sends is None else doing.tasks * max(1, math.ceil(_WINDOW_BYTES / doing.sends.size)),
            0.0,
            ahead,
            0.0,
            self._variation([]),
            has_response=doing.sends is None and app.kind != "hog",
        )
