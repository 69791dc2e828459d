"""Demands of applications for each unit of work, by their parameters: CPU time, disk accesses, and other services.

The steps are the same as in `crates/guest/src/apps`. Demands are lower bounds: reads that may hit a page cache, and
writes that stay in a page cache, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vcpulab.scenario.model import App
from vcpulab.scenario.units import size_bytes, span_ns

Params = Mapping[str, Any]
"""The parameters of an application, and the number of its instances, `instance`."""

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


def application(app: App) -> Application | None:
    """The demands of an application; `None`: its units have no fixed demands.

    Examples:
        >>> application(App({"kind": "periodic", "instance": 1, "run": "1ms", "period": "10ms"})).units[""].cpu_ns
        1000000
    """
    build = _KINDS.get(app.kind)
    return None if build is None else build({"instance": app.instance, **app.params})


def copying_ps(app: Params) -> int:
    """CPU time of each copied byte, ps, truncated as in the simulator."""
    return span_ns(app["kilobyte_cpu"]) * 1000 // 1024


def _cpu(app: Params, name: str) -> int:
    return max(1, span_ns(app[name]))


def _web_server(app: Params) -> Application:
    get = Work(_cpu(app, "request_cpu"), copying_ps(app))
    return Application(
        app["workers"],
        {"get": get},
        per_connection=app["requests_max"],
        connections_max=app["connections_max"] + app["backlog"],
    )


def _php_web(app: Params) -> Application:
    parts = 4 * max(1, span_ns(app["page_cpu"]) // 4)
    misses = 1 - app["cached"] / 100
    asks = [
        Ask("database", "mysql", "query", 1, connects=True),
        Ask("database", "mysql", "query", 1, PAGE_CONTENT_BYTES, connects=True),
    ]
    if "files" in app:
        asks += [
            Ask("files", "nfs", "getattr", app["scripts"] * app["file_calls"]),
            Ask("files", "nfs", "read", app["scripts"] * misses),
        ]
    return Application(
        app["workers"],
        {"page": Work(parts, copying_ps(app), tuple(ask for ask in asks if ask.times))},
        per_connection=app["requests_max"],
        connections_max=app["workers"] + app["backlog"],
        not_modelled=("session files and scripts that its page cache lacks",),
    )


def _mysql(app: Params) -> Application:
    select = _cpu(app, "select_cpu")
    units = {"query": Work(_cpu(app, "login_cpu") + select), "select": Work(select)}
    return Application(app["connections_max"], units, not_modelled=_reads(app))


def _nfs(app: Params) -> Application:
    call = Work(_cpu(app, "call_cpu"))
    return Application(app["threads"], {"getattr": call, "read": call}, not_modelled=_reads(app))


def _active_directory(app: Params) -> Application:
    units = {"logon": Work(_cpu(app, "logon_cpu")), "lookup": Work(_cpu(app, "lookup_cpu"))}
    return Application(app["threads"], units, not_modelled=_reads(app))


def _mssql(app: Params) -> Application:
    units = {
        name: Work(_cpu(app, f"{name}_cpu"), direct=(_MSSQL_LOG[name],) if name in _MSSQL_LOG else ())
        for name in ("read", "write", "store")
    }
    return Application(app["workers"], units, not_modelled=_reads(app))


def _exchange(app: Params) -> Application:
    look = Work(_cpu(app, "read_cpu"))
    recipient = Ask("directory", "active-directory", "lookup", 1)
    send = Work(_cpu(app, "send_cpu"), asks=(recipient,), direct=(_EXCHANGE_LOG,))
    units = {"read": look, "send": send, "browse": look, "calendar": look}
    return Application(app["workers"], units, not_modelled=_reads(app))


def _moss(app: Params) -> Application:
    page = 2 * max(1, span_ns(app["page_cpu"]) // 2)
    logon = Ask("directory", "active-directory", "logon", app["logons"] / 100)
    queries = Ask("database", "mssql", "read", app["queries"])

    def unit(cpu_ns: int, *further: Ask) -> Work:
        return Work(page + cpu_ns, asks=tuple(ask for ask in (logon, queries, *further) if ask.times))

    return Application(
        app["workers"],
        {
            "browse": unit(0),
            "create-table": unit(_cpu(app, "change_cpu"), Ask("database", "mssql", "write", app["changes"])),
            "upload": unit(_cpu(app, "upload_cpu"), Ask("database", "mssql", "store", 1)),
        },
    )


def _reads(app: Params) -> tuple[str, ...]:
    return ("reads that memory lacks",) if app["cached"] < 100 else ()


def _hog(app: Params) -> Application:
    return Application(app["instance"], {"": Work(1_000_000)})


def _cpu_stress(app: Params) -> Application:
    return Application(app["threads"] * app["instance"], {"": Work(_cpu(app, "integer_cpu") + _cpu(app, "float_cpu"))})


def _periodic(app: Params) -> Application:
    return Application(app["instance"], {"": Work(span_ns(app["run"]))}, period_ns=span_ns(app["period"]))


def _kernel_build(app: Params) -> Application:
    parts = app["headers"] + 1
    file = parts * max(1, span_ns(app["file_cpu"]) // parts)
    return Application(
        app["jobs"] * app["instance"],
        {"": Work(file, page_faults=app["page_faults"])},
        not_modelled=("files read and written",),
    )


def _oltp(app: Params) -> Application:
    statements = _OLTP_STATEMENTS * _cpu(app, "statement_cpu")
    ranges = _OLTP_RANGES * span_ns(app["range_cpu"])
    return Application(
        app["threads"] * app["instance"],
        {"": Work(statements + ranges)},
        not_modelled=("pages that its buffer lacks, the log, and locks",),
    )


def _file_pieces(app: Params, size: int) -> Application:
    work = max(1, span_ns(app["call_cpu"]) + span_ns(app["kilobyte_cpu"]) * size // 1024)
    unit = Work(work, direct=(size,) if app["direct"] else ())
    not_modelled = () if app["direct"] else ("what of the file its page cache lacks or writes back",)
    return Application(app["instance"], {"": unit}, not_modelled=not_modelled)


def _dd(app: Params) -> Application:
    return _file_pieces(app, size_bytes(app["block_size"]))


def _iozone(app: Params) -> Application:
    return _file_pieces(app, min(size_bytes(app["record_size"]), size_bytes(app["file_size"])))


def _piece(app: Params, size: int, delay_ns: int, *, pushed: bool) -> Piece:
    work = span_ns(app["call_cpu"]) + delay_ns + span_ns(app["kilobyte_cpu"]) * size // 1024
    return Piece(size, pushed, max(1, work))


def _tcp_sender(app: Params) -> Application:
    piece = _piece(app, size_bytes(app["packet_size"]), span_ns(app["delay"]), pushed=True)
    return Application(app["streams"] * app["instance"], sends=piece)


def _netperf(app: Params) -> Application:
    piece = _piece(app, size_bytes(app["message_size"]), 0, pushed=False)
    return Application(app["streams"] * app["instance"], sends=piece)


def _tcp_receiver(app: Params) -> Application:
    piece = _piece(app, size_bytes(app["packet_size"]), span_ns(app["delay"]), pushed=True)
    return Application(app["streams"], receives=piece)


def _iperf(app: Params) -> Application:
    piece = _piece(app, size_bytes(app["buffer_size"]), 0, pushed=False)
    sends = app["direction"] == "send"
    return Application(app["streams"], sends=piece if sends else None, receives=None if sends else piece)


_KINDS = {
    "active-directory": _active_directory,
    "cpu-stress": _cpu_stress,
    "dd": _dd,
    "exchange": _exchange,
    "hog": _hog,
    "iozone": _iozone,
    "iperf": _iperf,
    "kernel-build": _kernel_build,
    "moss": _moss,
    "mssql": _mssql,
    "mysql": _mysql,
    "netperf": _netperf,
    "nfs": _nfs,
    "oltp": _oltp,
    "periodic": _periodic,
    "php-web": _php_web,
    "tcp-receiver": _tcp_receiver,
    "tcp-sender": _tcp_sender,
    "web-server": _web_server,
}
