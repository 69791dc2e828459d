"""Demands of applications for each unit of work, by their parameters: CPU time, disk accesses, and other services.

The steps are the same as in `crates/guest/src/apps`. Demands are lower bounds: reads that may hit a page cache, and
writes that stay in a page cache, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import singledispatch

from vcpulab.scenario.model import (
    ActiveDirectoryApp,
    App,
    CpuStressApp,
    DdApp,
    ExchangeApp,
    HogApp,
    IozoneApp,
    IperfApp,
    KernelBuildApp,
    MossApp,
    MssqlApp,
    MysqlApp,
    NetperfApp,
    NfsApp,
    OltpApp,
    PeriodicApp,
    PhpWebApp,
    TcpReceiverApp,
    TcpSenderApp,
    WebServerApp,
)
from vcpulab.scenario.units import Duration

REQUEST_BYTES: Mapping[tuple[str, str], tuple[int, int]] = {
    ("web-server", "get"): (300, 10_000),
    ("php-web", "page"): (250, 5017),
    ("mysql", "query"): (200, 400),
    ("mysql", "select"): (120, 300),
    ("nfs", "getattr"): (140, 112),
    ("nfs", "read"): (160, 4228),
    ("active-directory", "logon"): (600, 900),
    ("active-directory", "lookup"): (300, 1200),
    ("exchange", "read"): (500, 51_200),
    ("exchange", "send"): (51_200, 300),
    ("exchange", "browse"): (500, 8000),
    ("exchange", "calendar"): (500, 8000),
    ("moss", "browse"): (600, 60_000),
    ("moss", "create-table"): (3000, 30_000),
    ("moss", "upload"): (102_400, 30_000),
    ("mssql", "read"): (500, 4000),
    ("mssql", "write"): (1000, 200),
    ("mssql", "store"): (102_400, 200),
}
"""Sizes of a request and of its answer, by kind of service and class (a test compares them with the registry's)."""

PAGE_CONTENT_BYTES = 1300
"""Size of the answer to the second query of a page of `php-web`."""
_MSSQL_LOG = {"write": 4096, "store": 102_400}
_EXCHANGE_LOG = 51_200
_OLTP_STATEMENTS, _OLTP_RANGES = 1 + 10 + 4 + 4 + 1, 4
"""Statements of a transaction: begin, selects of a row, selects of ranges, changes, commit."""


@dataclass(frozen=True)
class Ask:
    """Requests that a unit of work sends to another service."""

    parameter: str
    """The application's parameter that names the domain of the service."""
    kind: str
    name: str
    """Class of the requests."""
    times: float
    answer: int | None = None
    """Size of the answer, bytes; `None`: the size of the request's class."""
    connects: bool = False


@dataclass(frozen=True)
class Work:
    """Demands of a unit of work."""

    cpu_ns: float
    byte_ps: int = 0
    """CPU time for each byte of the answer, ps."""
    asks: tuple[Ask, ...] = ()
    direct: tuple[int, ...] = ()
    """Sizes of the disk accesses that bypass the page cache, bytes."""
    page_faults: int = 0


@dataclass(frozen=True)
class Piece:
    """A piece of a stream that a program sends or receives: its size in bytes, and its CPU time."""

    size: int
    pushed: bool
    cpu_ns: float


@dataclass(frozen=True)
class Application:
    """An application with its demands."""

    tasks: int
    """Most units of work at once."""
    units: Mapping[str, Work] = field(default_factory=dict)
    """Class of requests to the demands of a request; a program without clients has the empty class."""
    sends: Piece | None = None
    receives: Piece | None = None
    period_ns: int | None = None
    """Interval between two units of a task."""
    per_connection: int = 0
    """Requests after which the application closes a connection; 0: never."""
    connections_max: int | None = None
    not_modelled: tuple[str, ...] = ()
    """Demands that are left out, in words."""


@singledispatch
def application(app: App) -> Application | None:  # noqa: ARG001 (each kind has its own function)
    """The demands of an application; `None`: its units have no fixed demands.

    Examples:
        >>> application(PeriodicApp({"instance": 1, "run": "1ms", "period": "10ms"})).units[""].cpu_ns
        1000000
    """
    return None


def copying_ps(app: WebServerApp | PhpWebApp) -> int:
    """CPU time of each copied byte, ps, truncated as in the simulator."""
    return app.kilobyte_cpu.ns * 1000 // 1024


def _at_least_1(cpu: Duration) -> int:
    return max(1, cpu.ns)


@application.register
def _(app: WebServerApp) -> Application:
    get = Work(_at_least_1(app.request_cpu), copying_ps(app))
    return Application(
        app.workers,
        {"get": get},
        per_connection=app.requests_max,
        connections_max=app.connections_max + app.backlog,
    )


@application.register
def _(app: PhpWebApp) -> Application:
    parts = 4 * max(1, app.page_cpu.ns // 4)
    misses = 1 - app.cached / 100
    asks = [
        Ask("database", "mysql", "query", 1, connects=True),
        Ask("database", "mysql", "query", 1, PAGE_CONTENT_BYTES, connects=True),
    ]
    if app.files is not None:
        asks += [
            Ask("files", "nfs", "getattr", app.scripts * app.file_calls),
            Ask("files", "nfs", "read", app.scripts * misses),
        ]
    return Application(
        app.workers,
        {"page": Work(parts, copying_ps(app), tuple(ask for ask in asks if ask.times))},
        per_connection=app.requests_max,
        connections_max=app.workers + app.backlog,
        not_modelled=("session files and scripts that its page cache lacks",),
    )


@application.register
def _(app: MysqlApp) -> Application:
    select = _at_least_1(app.select_cpu)
    units = {"query": Work(_at_least_1(app.login_cpu) + select), "select": Work(select)}
    return Application(app.connections_max, units, not_modelled=_reads(app.cached))


@application.register
def _(app: NfsApp) -> Application:
    call = Work(_at_least_1(app.call_cpu))
    return Application(app.threads, {"getattr": call, "read": call}, not_modelled=_reads(app.cached))


@application.register
def _(app: ActiveDirectoryApp) -> Application:
    units = {"logon": Work(_at_least_1(app.logon_cpu)), "lookup": Work(_at_least_1(app.lookup_cpu))}
    return Application(app.threads, units, not_modelled=_reads(app.cached))


@application.register
def _(app: MssqlApp) -> Application:
    times = {"read": app.read_cpu, "write": app.write_cpu, "store": app.store_cpu}
    units = {
        name: Work(_at_least_1(cpu), direct=(_MSSQL_LOG[name],) if name in _MSSQL_LOG else ())
        for name, cpu in times.items()
    }
    return Application(app.workers, units, not_modelled=_reads(app.cached))


@application.register
def _(app: ExchangeApp) -> Application:
    look = Work(_at_least_1(app.read_cpu))
    recipient = Ask("directory", "active-directory", "lookup", 1)
    send = Work(_at_least_1(app.send_cpu), asks=(recipient,), direct=(_EXCHANGE_LOG,))
    units = {"read": look, "send": send, "browse": look, "calendar": look}
    return Application(app.workers, units, not_modelled=_reads(app.cached))


@application.register
def _(app: MossApp) -> Application:
    page = 2 * max(1, app.page_cpu.ns // 2)
    logon = Ask("directory", "active-directory", "logon", app.logons / 100)
    queries = Ask("database", "mssql", "read", app.queries)

    def unit(cpu_ns: int, *further: Ask) -> Work:
        return Work(page + cpu_ns, asks=tuple(ask for ask in (logon, queries, *further) if ask.times))

    return Application(
        app.workers,
        {
            "browse": unit(0),
            "create-table": unit(_at_least_1(app.change_cpu), Ask("database", "mssql", "write", app.changes)),
            "upload": unit(_at_least_1(app.upload_cpu), Ask("database", "mssql", "store", 1)),
        },
    )


def _reads(cached_percent: int) -> tuple[str, ...]:
    return ("reads that memory lacks",) if cached_percent < 100 else ()


@application.register
def _(app: HogApp) -> Application:
    return Application(app.instance, {"": Work(1_000_000)})


@application.register
def _(app: CpuStressApp) -> Application:
    return Application(
        app.threads * app.instance, {"": Work(_at_least_1(app.integer_cpu) + _at_least_1(app.float_cpu))}
    )


@application.register
def _(app: PeriodicApp) -> Application:
    return Application(app.instance, {"": Work(app.run.ns)}, period_ns=app.period.ns)


@application.register
def _(app: KernelBuildApp) -> Application:
    parts = app.headers + 1
    file = parts * max(1, app.file_cpu.ns // parts)
    return Application(
        app.jobs * app.instance,
        {"": Work(file, page_faults=app.page_faults)},
        not_modelled=("files read and written",),
    )


@application.register
def _(app: OltpApp) -> Application:
    statements = _OLTP_STATEMENTS * _at_least_1(app.statement_cpu)
    ranges = _OLTP_RANGES * app.range_cpu.ns
    return Application(
        app.threads * app.instance,
        {"": Work(statements + ranges)},
        not_modelled=("pages that its buffer lacks, the log, and locks",),
    )


def _file_pieces(app: DdApp | IozoneApp, size: int) -> Application:
    work = max(1, app.call_cpu.ns + app.kilobyte_cpu.ns * size // 1024)
    unit = Work(work, direct=(size,) if app.direct else ())
    not_modelled = () if app.direct else ("what of the file its page cache lacks or writes back",)
    return Application(app.instance, {"": unit}, not_modelled=not_modelled)


@application.register
def _(app: DdApp) -> Application:
    return _file_pieces(app, app.block_size.bytes)


@application.register
def _(app: IozoneApp) -> Application:
    return _file_pieces(app, min(app.record_size.bytes, app.file_size.bytes))


def _piece(
    app: TcpSenderApp | NetperfApp | TcpReceiverApp | IperfApp, size: int, delay_ns: int, *, pushed: bool
) -> Piece:
    work = app.call_cpu.ns + delay_ns + app.kilobyte_cpu.ns * size // 1024
    return Piece(size, pushed, max(1, work))


@application.register
def _(app: TcpSenderApp) -> Application:
    piece = _piece(app, app.packet_size.bytes, app.delay.ns, pushed=True)
    return Application(app.streams * app.instance, sends=piece)


@application.register
def _(app: NetperfApp) -> Application:
    piece = _piece(app, app.message_size.bytes, 0, pushed=False)
    return Application(app.streams * app.instance, sends=piece)


@application.register
def _(app: TcpReceiverApp) -> Application:
    piece = _piece(app, app.packet_size.bytes, app.delay.ns, pushed=True)
    return Application(app.streams, receives=piece)


@application.register
def _(app: IperfApp) -> Application:
    piece = _piece(app, app.buffer_size.bytes, 0, pushed=False)
    sends = app.direction == "send"
    return Application(app.streams, sends=piece if sends else None, receives=None if sends else piece)
