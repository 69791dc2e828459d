"""Executors of runs: threads of this machine, or a Dask cluster. Results do not depend on the executor."""

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import parse_qs, urlsplit

from vcpulab._extras import require
from vcpulab.errors import RequestError, VcpulabError
from vcpulab.sweeps.work import Batch, Measured, measure

if TYPE_CHECKING:
    from distributed import Client, Future, LocalCluster


class ClusterLostError(VcpulabError):
    """The cluster has no workers left, or its scheduler does not answer."""


class BatchResult(NamedTuple):
    """The result of a batch, or its failure."""

    batch: int
    measured: Measured | None
    """The results; `None`: the batch was not done."""
    error: BaseException | None = None
    """The error of the batch; `None`: its worker is gone, and the batch may be submitted again."""


class Executor(Protocol):
    """An executor of batches of runs."""

    def slots(self) -> int:
        """The number of batches that run at a time; it may change."""

    def submit(self, batch: Batch) -> None:
        """Submits a batch."""

    def gather(self, timeout_s: float) -> list[BatchResult]:
        """The results since the last call; waits at most `timeout_s` for the first result.

        Raises:
            ClusterLostError: no batch will be done.
        """

    def close(self) -> None:
        """Stops; batches in progress are abandoned."""


class Local:
    """Threads of this process; the engine runs in them without Python's lock."""

    def __init__(self, jobs: int = 0) -> None:
        """`jobs` threads; 0: one for each processor."""
        self._jobs = jobs or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._jobs)
        self._stop = threading.Event()
        self._outcomes: queue.SimpleQueue[BatchResult] = queue.SimpleQueue()

    def slots(self) -> int:
        """See `Executor`."""
        return self._jobs

    def submit(self, batch: Batch) -> None:
        """See `Executor`."""
        self._pool.submit(self._do, batch)

    def _do(self, batch: Batch) -> None:
        try:
            outcome = BatchResult(batch.number, measure(batch, lambda: not self._stop.is_set()))
        except BaseException as error:  # noqa: BLE001 - raised by the caller of `gather`
            outcome = BatchResult(batch.number, None, error)
        self._outcomes.put(outcome)

    def gather(self, timeout_s: float) -> list[BatchResult]:
        """See `Executor`."""
        return _drained(self._outcomes, timeout_s)

    def close(self) -> None:
        """See `Executor`."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)


def _drained(outcomes: "queue.SimpleQueue[BatchResult]", timeout_s: float) -> list[BatchResult]:
    drained: list[BatchResult] = []
    try:
        drained.append(outcomes.get(timeout=timeout_s))
        while True:
            drained.append(outcomes.get_nowait())
    except queue.Empty:
        return drained


PATIENCE_S = 60.0
"""Maximum time in which a cluster may have no worker."""


class Dask:
    """A Dask cluster: an existing cluster, or worker processes on this machine."""

    def __init__(self, scheduler: str | None, *, workers: int = 0, patience_s: float = PATIENCE_S) -> None:
        """Joins a cluster.

        Args:
            scheduler: the address of its scheduler, HOST:PORT; `None`: a new cluster on this machine.
            workers: processes of a new cluster; 0: one for each processor.
            patience_s: maximum time without any worker.

        Raises:
            MissingExtraError: `distributed` is not installed.
            ClusterLostError: the scheduler does not answer.
        """
        distributed = require("distributed", "dask")
        # Failures of the cluster are reported here, so Dask's own stack traces are turned off.
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        self._where = scheduler or "the local cluster"
        self._patience_s = patience_s
        self._cluster: LocalCluster | None = None
        if scheduler is None:
            self._cluster = distributed.LocalCluster(
                n_workers=workers or os.cpu_count() or 1,
                threads_per_worker=1,
                dashboard_address=None,
                # Without a dashboard the scheduler still has a web port; another cluster may use the default port.
                scheduler_kwargs={"dashboard_address": ":0"},
                silence_logs=logging.CRITICAL,
            )
        try:
            self._client: Client = distributed.Client(
                self._cluster or f"tcp://{scheduler}", timeout=min(patience_s, 10), set_as_default=False
            )
        except (OSError, ValueError) as error:
            raise ClusterLostError(f"no scheduler answers at {self._where}\n  hint: dask scheduler") from error
        self._futures: dict[int, Future[Measured]] = {}
        self._outcomes: queue.SimpleQueue[BatchResult] = queue.SimpleQueue()
        self._slots = 0
        self._polled_at = -1.0
        self._deserted_at: float | None = None

    def slots(self) -> int:
        """See `Executor`."""
        now = time.monotonic()
        if now - self._polled_at > 1.0:
            self._polled_at = now
            self._slots = self._threads()
        if self._slots:
            self._deserted_at = None
        elif self._deserted_at is None:
            self._deserted_at = now
        elif now - self._deserted_at > self._patience_s:
            raise ClusterLostError(
                f"{self._where} has had no worker for {self._patience_s:g} s\n"
                "  hint: workers without vcpulab end as soon as they are given work; their logs say so"
            )
        return self._slots

    def _threads(self) -> int:
        try:
            threads: dict[str, int] = self._client.nthreads()
        except (OSError, TimeoutError, AttributeError, RuntimeError):
            # The scheduler may come back; the results of the batches show whether it is gone.
            self._check()
            return self._slots
        return sum(threads.values())

    def _check(self) -> None:
        if self._client.status != "running":
            raise ClusterLostError(f"the scheduler at {self._where} does not answer any more")

    def submit(self, batch: Batch) -> None:
        """See `Executor`."""
        # Dask itself gives the batches of a dead worker to another worker, four times at most.
        try:
            future = self._client.submit(measure, batch, pure=False)
        except RuntimeError:
            self._check()
            raise
        self._futures[batch.number] = future
        future.add_done_callback(lambda done: self._outcomes.put(self._outcome(batch.number, done)))

    def _outcome(self, batch: int, future: "Future[Measured]") -> BatchResult:
        from distributed.scheduler import KilledWorker

        self._futures.pop(batch, None)
        try:
            return BatchResult(batch, future.result(timeout=60))
        except (KilledWorker, CancelledError, OSError, TimeoutError):
            return BatchResult(batch, None)
        except Exception as error:  # noqa: BLE001 - whatever the worker raised
            return BatchResult(batch, None, error)

    def gather(self, timeout_s: float) -> list[BatchResult]:
        """See `Executor`."""
        outcomes = _drained(self._outcomes, timeout_s)
        if self._client.status != "running":
            # Results that have arrived count; submitting the other batches again would fail.
            outcomes = [outcome for outcome in outcomes if outcome.measured is not None]
            if not outcomes:
                self._check()
        return outcomes

    def close(self) -> None:
        """See `Executor`."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()), force=True)
        self._client.close(timeout=2)
        if self._cluster is not None:
            self._cluster.close(timeout=5)


def executor(text: str, jobs: int = 0) -> Executor:
    """The executor for `local`, `dask://HOST:PORT` or `dask://local?workers=N`.

    Raises:
        RequestError: the text names no executor.
        MissingExtraError: a package is not installed.
        ClusterLostError: the scheduler does not answer.
    """
    if text == "local":
        return Local(jobs)
    url = urlsplit(text)
    parameters = parse_qs(url.query, keep_blank_values=True)
    allowed = "local, dask://HOST:PORT or dask://local?workers=N (and ?patience=SECONDS)"
    wrong = RequestError(field="executor", found=text, allowed=allowed)
    if url.scheme != "dask" or url.path or url.fragment or not parameters.keys() <= {"workers", "patience"}:
        raise wrong
    if jobs:
        raise RequestError(field="jobs", allowed=f"only with the executor `local`; `{text}` has its own workers")
    try:
        workers, patience_s = (
            int(_single(parameters, "workers", "0")),
            float(_single(parameters, "patience", str(PATIENCE_S))),
        )
        port = url.port
    except ValueError:
        raise wrong from None
    if not 0 <= workers <= 1024 or not 0 < patience_s <= 86_400:
        raise wrong
    if url.netloc == "local":
        return Dask(None, workers=workers, patience_s=patience_s)
    if url.hostname is None or port is None or workers:
        raise wrong
    return Dask(url.netloc, patience_s=patience_s)


def _single(parameters: dict[str, list[str]], name: str, default: str) -> str:
    values: Sequence[str] = parameters.get(name, [default])
    if len(values) != 1:
        raise ValueError(name)
    return values[0]
