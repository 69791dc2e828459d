"""The cases of the study of Venkatesh."""

from collections.abc import Callable, Iterable, Mapping

from vcpulab_evidence.studies.case import Case
from vcpulab_evidence.studies.window import Window

MS = 1_000_000

Reservation = Mapping[str, int]
"""Parameters of SEDF; none: a domain stays as it is created."""

_AS_CREATED: Reservation = {}
_DOM0 = {"period": 20 * MS, "slice": 15 * MS}
_GUEST = {"period": 100 * MS, "slice": 20 * MS}
_EXTRA, _NO_EXTRA = {"extratime": 1}, {"extratime": 0}
# The period only says that it is a reservation: a weight without one is a share of the extra time.
_WEIGHT = {"weight": 256, "period": 100 * MS} | _EXTRA
SEDF_READINGS: Mapping[str, tuple[Reservation, Reservation]] = {
    "best effort": (_AS_CREATED, _AS_CREATED),
    "equal weights": (_WEIGHT, _WEIGHT),
    "reservations": (_DOM0 | _EXTRA, _GUEST | _EXTRA),
    "reservations, no extra time": (_DOM0 | _NO_EXTRA, _GUEST | _NO_EXTRA),
    "only Dom0's": (_DOM0 | _EXTRA, _AS_CREATED),
    "only Dom0's, no extra time": (_DOM0 | _NO_EXTRA, _AS_CREATED),
    "Dom0's, guests by weight": (_DOM0 | _EXTRA, _WEIGHT),
    "guests by weight": (_AS_CREATED, _WEIGHT),
}
"""Readings of SEDF's defaults, which the thesis does not state: of Dom0, and of each guest."""
SEDF = "equal weights"
"""The reading that the notes argue for."""

_ENHANCED = {"boost": "qualifies", "ratelimit_us": 0}
ENHANCED_READINGS: Mapping[str, Mapping[str, object]] = {
    "boost needs the bar": {"ratelimit_us": 0},
    "boost qualifies": _ENHANCED,
    "with a rate limit": _ENHANCED | {"ratelimit_us": 1000},
    "two passes": _ENHANCED | {"passes": 2},
    "head if none": _ENHANCED | {"none": "head"},
    "first UNDER if none": _ENHANCED | {"none": "under-first"},
    "best first": _ENHANCED | {"pick": "best"},
    "bar anew at decisions": _ENHANCED | {"reset": "decision"},
    "bar never anew": _ENHANCED | {"reset": "never"},
    "bar only raised": _ENHANCED | {"bar": "max"},
    "one bar for the host": _ENHANCED | {"scope": "global"},
    "preempts": _ENHANCED | {"supersede": "preempt"},
    "only debtors move": _ENHANCED | {"move": "over-only"},
    "moves to idle pCPUs only": _ENHANCED | {"target": "idle"},
    "target always told": _ENHANCED | {"notify": "always"},
    "the last one moves too": _ENHANCED | {"last": "send-to-idle"},
    "steals as Credit": _ENHANCED | {"steal": "credit"},
    "boost needs the bar, target told": {"ratelimit_us": 0, "notify": "always"},
    "boost needs the bar, idle targets": {"ratelimit_us": 0, "target": "idle"},
    "boost needs the bar, anew": {"ratelimit_us": 0, "reset": "decision"},
}
"""Readings of the pseudo-code of Enhanced (its page says what each option is)."""
ENHANCED = "boost qualifies"
"""The reading that the notes argue for."""

SCHEDULERS = ("credit", "sedf", "credit2", "enhanced")
OPERATIONS = ("write", "read", "random-write", "random-read")
"""IOzone's operations (Table 3)."""
SIZES_MB = (1, 2, 3, 4)
"""Netperf's messages (Table 3)."""
ROWS = (1000, 10_000, 100_000, 1_000_000)
"""Rows of sysbench's table (Table 3: from the first to the last; the steps between are ours)."""
TABLE_7 = ("iozone_s_write@dom0", "netperf_tcp_stream@dom1", "sysbench_transactions@dom2")
"""The columns of that table."""
IN_DOM0 = "domain.dom0.app.2"
"""The place of Dom0's own workload in the templates: after its other applications."""
STRESS = 2
"""Assumed: one CPU-stress thread for each of Dom0's vCPUs. The thesis does not say how many."""

Measure = Callable[[Window], Mapping[str, float]]

_HEADERS = 66
_KIB_IN_RECORD = 1024

_SHORT = {"run.duration": "1500ms", "run.warmup": "200ms", "run.sample": "100ms"}


# ---- keys ----


def disk_case(scheduler: str, operation: str, load: str) -> str:
    """IOzone: in Dom0 (`native`), or in a guest beside an `idle` Dom0 or one under `stress`."""
    return f"disk-iozone: {scheduler} {operation} {load}"


def network_case(scheduler: str, size_mb: int, load: str) -> str:
    """Netperf in a guest, Dom0 being `idle`, under `stress` or at its `disk`."""
    return f"network-netperf: {scheduler} {size_mb}MB {load}"


def database_case(scheduler: str, rows: int, load: str) -> str:
    """Sysbench: in Dom0 (`native`), or in a guest beside an `idle` Dom0 or one under `stress`."""
    return f"database-sysbench: {scheduler} {rows} {load}"


def consolidated_case(scheduler: str) -> str:
    """Three domains with a workload each."""
    return f"consolidated: {scheduler}"


def reading_case(experiment: str, reading: str, workload: str, load: str) -> str:
    """A workload under an interpretation of details that the thesis leaves open."""
    return f"{experiment}: {reading}; {workload} {load}"


def slice_case(workload: str, slice_ms: int) -> str:
    """Credit with another time slice."""
    return f"slices: {workload} {slice_ms}ms"


def cpu_bound_case(scheduler: str) -> str:
    """CPU-bound Dom0 beside netperf."""
    return f"cpu-bound: {scheduler}"


# ---- cases ----


def cases() -> Iterable[Case]:
    """All cases of the study."""
    for name in SCHEDULERS:
        scheduler = scheduling(name)
        for operation in OPERATIONS:
            yield from _disk(name, scheduler, operation)
        for size in SIZES_MB:
            yield from _network(name, scheduler, size)
        for rows in ROWS:
            yield from _database(name, scheduler, rows)
        yield _consolidated(consolidated_case(name), scheduling(name, ("dom1", "dom2")), *TABLE_7)
    yield from _sedf_readings()
    yield from _enhanced_readings()
    yield from _assumptions()
    yield from _slices()
    yield from _cpu_bound()


def scheduling(
    name: str,
    guests: Iterable[str] = ("guest",),
    *,
    sedf: str = SEDF,
    enhanced: str = ENHANCED,
) -> dict[str, object]:
    """A scheduler and its parameters as changes of a scenario."""
    changes: dict[str, object] = {"host.scheduler": name}
    if name == "enhanced":
        changes |= {f"host.{option}": value for option, value in ENHANCED_READINGS[enhanced].items()}
    if name == "sedf":
        # No balancing, and xl sets every new guest's affinity, upon which xen4.4.1 puts vCPU k on pCPU k.
        changes["domain.dom0.affinity"] = ["0", "1"]
        dom0, guest_fields = SEDF_READINGS[sedf]
        for guest in guests:
            changes[f"domain.{guest}.affinity"] = "0"
            changes |= {f"domain.{guest}.{name}": value for name, value in guest_fields.items()}
        changes |= {f"domain.dom0.{name}": value for name, value in dom0.items()}
    return changes


# ---- the experiments of the thesis ----


def disk(window: Window) -> dict[str, float]:
    """IOzone's rate in the guest, KB/s of 1024 B."""
    return {"rate": _KIB_IN_RECORD * window.throughput("guest 0 iozone")}


def disk_native(window: Window) -> dict[str, float]:
    """The disk metrics in Dom0."""
    return {"rate": _KIB_IN_RECORD * window.throughput("dom0 2 iozone")}


def network(window: Window) -> dict[str, float]:
    """Netperf's rate, Mbit/s of data; how often Dom0 waited."""
    return {"domU_throughput": _goodput(window, "guest"), "dom0_waits": window.waited("dom0")}


def database(window: Window) -> dict[str, float]:
    """Sysbench's transactions a second in the guest."""
    return {"transactions": window.throughput("guest 0 oltp")}


def database_native(window: Window) -> dict[str, float]:
    """The database metrics in Dom0."""
    return {"transactions": window.throughput("dom0 2 oltp")}


def consolidated(window: Window) -> dict[str, float]:
    """The columns of Table 7."""
    return {
        "iozone_s_write@dom0": _KIB_IN_RECORD * window.throughput("dom0 2 iozone"),
        "netperf_tcp_stream@dom1": _goodput(window, "dom1"),
        "sysbench_transactions@dom2": window.throughput("dom2 0 oltp"),
    }


def _goodput(window: Window, domain: str) -> float:
    """Data that a domain sends, Mbit/s: messages are too large to be counted in a short run."""
    return 8e-6 * (window.rate(domain, "bytes_sent") - _HEADERS * window.rate(domain, "packets_sent"))


def iozone(operation: str) -> dict[str, object]:
    """The IOzone application of the templates."""
    return {"kind": "iozone", "operation": operation, "file_size": "512MiB", "record_size": "1MiB", "direct": True}


def stress(threads: int = STRESS) -> dict[str, object]:
    """CPU stress."""
    return {"kind": "cpu-stress", "threads": threads}


def _disk(name: str, scheduler: dict[str, object], operation: str) -> Iterable[Case]:
    native = {IN_DOM0: iozone(operation), "domain.guest.app": []}
    changed = {"domain.guest.app.0.operation": operation}
    busy = changed | {IN_DOM0: stress()}
    for load, changes, measure in (("native", native, disk_native), ("idle", changed, disk), ("stress", busy, disk)):
        yield _case(disk_case(name, operation, load), "disk.toml", scheduler | changes, measure, "rate")


def _network(name: str, scheduler: dict[str, object], size: int) -> Iterable[Case]:
    sized = scheduler | {"domain.guest.app.0.message_size": f"{size}MiB"}
    loads = {"idle": {}, "stress": {IN_DOM0: stress()}, "disk": {IN_DOM0: iozone("write")}}
    for load, load_changes in loads.items():
        changes = sized | load_changes
        yield _case(network_case(name, size, load), "network.toml", changes, network, "domU_throughput")


def _database(name: str, scheduler: dict[str, object], rows: int) -> Iterable[Case]:
    native = {f"{IN_DOM0}.rows": rows}
    yield _database_case(database_case(name, rows, "native"), scheduler | native, database_native, "native.toml")
    sized = scheduler | {"domain.guest.app.0.rows": rows}
    yield _database_case(database_case(name, rows, "idle"), sized)
    yield _database_case(database_case(name, rows, "stress"), sized | {IN_DOM0: stress()})


def _database_case(
    key: str, changes: Mapping[str, object], measure: Measure = database, template: str = "database.toml"
) -> Case:
    return _case(key, template, changes, measure, "transactions")


def _consolidated(key: str, changes: dict[str, object], *precise: str) -> Case:
    return _case(key, "consolidated.toml", changes, consolidated, *precise)


# ---- what the thesis leaves open ----


def _disturbed(
    experiment: str, name: str, scheduler: dict[str, object], loads: Iterable[str] = ("idle", "stress")
) -> Iterable[Case]:
    """Cases of each workload in the guest, beside an idle Dom0 and beside CPU stress."""
    for workload, measure in {"disk": disk, "network": network, "database": database}.items():
        for load in loads:
            changes = scheduler | ({IN_DOM0: stress()} if load == "stress" else {})
            yield _case(reading_case(experiment, name, workload, load), f"{workload}.toml", changes, measure)


def _sedf_readings() -> Iterable[Case]:
    for reading in SEDF_READINGS:
        yield from _disturbed("sedf-readings", reading, scheduling("sedf", sedf=reading))
        changes = scheduling("sedf", ("dom1", "dom2"), sedf=reading)
        yield _consolidated(f"sedf-readings: {reading}; consolidated", changes)


def _enhanced_readings() -> Iterable[Case]:
    for reading in ENHANCED_READINGS:
        yield from _disturbed("enhanced-readings", reading, scheduling("enhanced", enhanced=reading), ("stress",))


def _assumptions() -> Iterable[Case]:
    """Cases with one changed assumption each."""
    for name in SCHEDULERS:
        for threads in (1, 4):
            busy = scheduling(name) | {IN_DOM0: stress(threads)}
            for workload, measure in {"disk": disk, "network": network, "database": database}.items():
                key = f"assumptions: {name}, {threads} stress threads; {workload} stress"
                yield _case(key, f"{workload}.toml", busy, measure)
        changed = {
            "send buffer of 64 KiB": {"domain.guest.app.0.send_buffer": "65536B"},
            "nothing else in Dom0": {"domain.dom0.app.0.run": "1us", "domain.dom0.app.1.run": "1us"},
        }
        for assumption, changes in changed.items():
            for load, load_changes in (("idle", {}), ("stress", {IN_DOM0: stress()})):
                key = f"assumptions: {name}, {assumption}; network {load}"
                all_ = scheduling(name) | changes | load_changes
                yield _case(key, "network.toml", all_, network)
        # The processor has two threads for each core, which the thesis does not mention.
        threaded: dict[str, object] = {"host.pcpus": 4, "domain.dom0.vcpus": 4}
        if name == "sedf":
            threaded["domain.dom0.affinity"] = [str(k) for k in range(4)]
        for threads in (1, 2, 4):
            key = f"assumptions: {name}, four hardware threads, {threads} stress threads; network stress"
            all_ = scheduling(name) | threaded | {IN_DOM0: stress(threads)}
            yield _case(key, "network.toml", all_, network)
        two: dict[str, object] = {f"domain.{guest}.vcpus": 2 for guest in ("dom1", "dom2")}
        scheduler = scheduling(name, ("dom1", "dom2"))
        if name == "sedf":
            two |= {f"domain.{guest}.affinity": ["0", "1"] for guest in ("dom1", "dom2")}
        yield _consolidated(f"assumptions: {name}, two vCPUs each; consolidated", scheduler | two)


def _slices() -> Iterable[Case]:
    """Claim V-17: the guest beside CPU stress under slices of other lengths."""
    for slice_ms in (1, 5, 10, 30):
        changes = scheduling("credit") | {"host.tslice_ms": slice_ms, IN_DOM0: stress()}
        yield _case(slice_case("network", slice_ms), "network.toml", changes, network, "domU_throughput")
        yield _case(slice_case("database", slice_ms), "database.toml", changes, database, "transactions")


def _cpu_bound() -> Iterable[Case]:
    """Claim V-18: the CPU time of a CPU-bound Dom0 beside netperf."""
    for name in ("credit", "enhanced"):
        changes = scheduling(name) | {IN_DOM0: stress()}
        yield _case(cpu_bound_case(name), "network.toml", changes, cpu_bound, "stress_batches")


def cpu_bound(window: Window) -> dict[str, float]:
    """Batches of arithmetic a second in Dom0, beside netperf in the guest."""
    return {
        "cpu_util@dom0": window.gotten("dom0"),
        "stress_batches": window.throughput("dom0 2 cpu-stress"),
        "domU_throughput": _goodput(window, "guest"),
    }


def _case(key: str, template: str, changes: Mapping[str, object], measure: Measure, *precise: str) -> Case:
    return Case(key, template, changes, measure, precise=precise, fast=_SHORT)
