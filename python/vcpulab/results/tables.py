"""The result tables of a run, and the meaning of their columns."""

import os
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from vcpulab import _engine
from vcpulab.errors import EngineError
from vcpulab.results.addresses import App, apps
from vcpulab.scenario.scenario import Scenario

TABLES = (
    "domains",
    "vcpus",
    "pcpus",
    "apps",
    "io",
    "threads",
    "vms",
    "waits",
    "wakeups",
    "wakeup_buckets",
    "samples",
    "vcpu_samples",
    "pcpu_samples",
    "app_samples",
    "profile",
    "decisions",
)


class _Threads:
    """A check of Polars' threads: a process forked after they started has none, and would wait forever."""

    def __init__(self) -> None:
        self._used = self._lost = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self._lost = self._used

    def check(self) -> None:
        """Must be called before Polars' threads are used.

        Raises:
            EngineError: this process does not have the threads.
        """
        if self._lost:
            raise EngineError(
                "this process was forked from one that had tables of results already, and has not the threads for its "
                'own\n  hint: multiprocessing.get_context("spawn"), or run_many, which uses every processor'
            )
        self._used = True


_threads = _Threads()


class EngineTables(Mapping[str, pl.DataFrame]):
    """The tables of the engine's results, each made a frame at its first use: most runs use few of them."""

    def __init__(self, results: _engine.Results) -> None:
        self._results = results
        self._frames: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        _threads.check()
        if name not in self._frames:
            self._frames[name] = pl.DataFrame(self._table(name))
        return self._frames[name]

    def _table(self, name: str) -> _engine.Table:
        if name not in TABLES:
            raise KeyError(name)
        table: _engine.Table = getattr(self._results, "trace" if name == "decisions" else name)()
        return table

    def parts(self, name: str) -> Iterator[pl.DataFrame]:
        """A table in parts, one or more; only the current part takes memory."""
        _threads.check()
        return map(pl.DataFrame, [self._frames[name]] if name in self._frames else self._table(name).parts())

    def __iter__(self) -> Iterator[str]:
        return iter(TABLES)

    def __len__(self) -> int:
        return len(TABLES)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled as frames: the engine's results cannot leave this process."""
        return dict, (dict(self),)


def named(table: pl.DataFrame, listed: Sequence[App]) -> pl.DataFrame:
    """The table of applications, with a column for their names in addresses."""
    names = {(app.domain, app.position): app.name for app in listed}
    return table.with_columns(
        name=pl.Series([names[row] for row in table.select("domain", "app").iter_rows()], dtype=pl.String)
    )


class ResultTables:
    """The tables of a run, a method for each. Times are in ns of simulated time."""

    def __init__(self, scenario: Scenario, tables: Mapping[str, pl.DataFrame]) -> None:
        self.scenario = scenario
        """The scenario that was run."""
        self._tables = tables
        self._named_apps: pl.DataFrame | None = None

    def tables(self) -> dict[str, pl.DataFrame]:
        """All result tables by name, as they are saved; `df_apps` also has the names of applications."""
        return dict(self._tables)

    def in_parts(self) -> Iterator[tuple[str, Iterator[pl.DataFrame]]]:
        """All result tables by name, in parts: a long run keeps samples and decisions in a temporary file."""
        for name in self._tables:
            parts = self._tables.parts(name) if isinstance(self._tables, EngineTables) else iter([self._tables[name]])
            yield name, parts

    def df_domains(self) -> pl.DataFrame:
        """The CPU time, waits and scheduling events of each domain.

        Columns:
            replication: from 0.
            domain: the domain's name.
            number: the domain's number (0: Dom0).
            pool: the CPU pool it is in at the end, or was in last.
            state: what it does at the end, in the letters of `xl list`; null: it is not on the host.
            vcpus: how many vCPUs it has.
            elapsed_ns: time measured; the four runstates sum to it times the number of vCPUs.
            running_ns: time its vCPUs were running (XenMon: gotten).
            work_ns: what that would have taken alone on a core, at the profile's clock rate, with near memory.
            slowed_threads_ns: time lost to busy threads of the same core.
            slowed_memory_ns: time lost to memory on other nodes, or crowded.
            slowed_frequency_ns: time lost to low clock rates; below 0: won by high ones.
            runnable_ns: time its vCPUs were runnable but waited for a pCPU (XenMon: waited; steal; CPU ready).
            blocked_ns: time its vCPUs were blocked.
            offline_ns: time its vCPUs were paused, unplugged or not on the host.
            executions: times a vCPU of it was switched in.
            wakeups: times a vCPU of it became runnable after a block.
            context_switches: times a vCPU of it was switched out.
            preemptions: times a vCPU of it was switched out although it could have gone on.
            migrations: times a vCPU of it was assigned to another pCPU.
            io_count: packets and requests it moved, once for each side of a ring (XenMon's I/O count).
            entitlement: pCPUs that the scheduler's weights, reservations or timetable promise it when everybody wants
                all they can get; null where these do not decide.
            wait_p50_ns: median wait for a pCPU, one wait for each execution.
            wait_p95_ns: 95th percentile of the wait.
            wait_p99_ns: 99th percentile of the wait.
            wait_max_ns: longest wait.
            wake_p50_ns: median wait after waking up; null where waits are not told apart (`waits=True` does).
            wake_p90_ns: 90th percentile of the same.
            l2_misses: lines brought into an L2 cache again because others had run in between.
            l3_misses: those of them that came from memory; without an L3 cache all of them.
            refill_ns: time that took, overhead of the pCPUs.
        """
        return self._tables["domains"]

    def df_vcpus(self) -> pl.DataFrame:
        """The CPU time, waits and scheduling events of each vCPU.

        Columns:
            replication: from 0.
            domain: the domain's name.
            number: the domain's number (0: Dom0).
            vcpu: the vCPU's number in its domain.
            elapsed_ns: time measured; the four runstates sum to it.
            running_ns: time running.
            work_ns: what that would have taken alone on a core, at the profile's clock rate, with near memory.
            slowed_threads_ns: time lost to busy threads of the same core.
            slowed_memory_ns: time lost to memory on other nodes, or crowded.
            slowed_frequency_ns: time lost to low clock rates; below 0: won by high ones.
            runnable_ns: time runnable but waiting for a pCPU (steal, CPU ready).
            blocked_ns: time blocked.
            offline_ns: time paused.
            executions: times it was switched in.
            wakeups: times it became runnable after a block.
            context_switches: times it was switched out.
            preemptions: times it was switched out although it could have gone on.
            migrations: times it was assigned to another pCPU.
            wait_max_ns: longest wait for a pCPU.
            l2_misses: lines brought into an L2 cache again because others had run in between.
            l3_misses: those of them that came from memory; without an L3 cache all of them.
            refill_ns: time that took, overhead of the pCPUs.
        """
        return self._tables["vcpus"]

    def df_pcpus(self) -> pl.DataFrame:
        """The time and the decisions of each pCPU.

        Columns:
            replication: from 0.
            pcpu: the pCPU's number.
            pool: the CPU pool it is in.
            elapsed_ns: time measured; run, idle and overhead sum to it.
            run_ns: time in which vCPUs made progress.
            idle_ns: time idle.
            overhead_ns: time taken by decisions, context switches, interrupts and cold caches.
            decisions: decisions taken.
            switches: decisions that changed what it runs.
        """
        return self._tables["pcpus"]

    def df_apps(self) -> pl.DataFrame:
        """The completed work and the response times of each application and client.

        Columns:
            replication: from 0.
            domain: the domain's name.
            app: the application's position in its domain, from 0.
            kind: what it is, in the scenario's words.
            completed: units of work completed: requests, jobs, loops; for a CPU hog the milliseconds of CPU time.
            failed: units of work refused, dropped or late past their deadline.
            throughput_per_s: units of work completed per second.
            last_completed_ns: when the last unit was completed, since the host started; null if none was. For a program
                that ends, the time at which it did.
            response_p50_ns: median response time; null where there is none.
            response_p95_ns: 95th percentile of the response time.
            response_p99_ns: 99th percentile of the response time.
            response_max_ns: longest response time.
            response_mean_ns: mean response time.
            response_sd_ns: standard deviation of the response times.
            name: what it is called in addresses, such as `http` or `web.0`.
        """
        if self._named_apps is None:
            self._named_apps = named(self._tables["apps"], apps(self.scenario))
        return self._named_apps

    def df_io(self) -> pl.DataFrame:
        """The traffic of the devices of each domain; null for devices that it does not have.

        Columns:
            replication: from 0.
            domain: the domain's name.
            elapsed_ns: time measured.
            packets_received: packets that it took from its network interface.
            packets_sent: packets that it sent through it.
            bytes_received: what it received, on the line.
            bytes_sent: what it sent, on the line.
            page_exchanges: pages that changed owner, one for each packet handed to it.
            page_grants: pages that it granted to its driver domain with packets sent.
            events: events sent to its network interface.
            ring_drops: packets for it that found its ring full and were lost.
            retransmissions: packets to it or from it that were lost and sent again.
            nic_received: packets that it took from the network cards that it owns.
            nic_sent: packets that it put on their lines.
            nic_interrupts: interrupts that they raised.
            nic_drops: packets that found a card's queue full and were lost.
            disk_requests: requests that it made to its virtual disk.
            disk_read_bytes: what it read.
            disk_written_bytes: what it wrote.
            disk_grants: pages that it granted to the back end.
            disk_events: events sent to its virtual disk.
            device_requests: requests to the disks that it owns.
            device_merges: those that joined one that waited already.
            device_seeks: movements of their heads.
            device_interrupts: interrupts that they raised.
            device_busy_ns: time in which they had something to serve, together.
        """
        return self._tables["io"]

    def df_threads(self) -> pl.DataFrame:
        """Threads of a KVM host that serve its VMs, each a vCPU of the domain `host`; no rows on a host of Xen.

        Columns:
            replication: from 0.
            thread: the thread's name: its kind and the VM's name.
            domain: the VM that it serves.
            kind: what it does: `vhost` (packets), `emulator` (emulated devices, and disks without an I/O thread),
                `iothread` (the disk).
            vcpu: its number among the vCPUs of the domain `host`.
            elapsed_ns: time measured.
            running_ns: time it was running: what the VM costs besides its vCPUs.
            runnable_ns: time it was runnable but waited for a pCPU.
            executions: times it was switched in.
            wakeups: times it became runnable after a block.
            migrations: times it was assigned to another pCPU.
        """
        return self._tables["threads"]

    def df_vms(self) -> pl.DataFrame:
        """The CPU time of VMs and daemons of a KVM host, and their throttling by limits; no rows on a host of Xen.

        Columns:
            replication: from 0.
            domain: the domain's name.
            elapsed_ns: time measured.
            vcpus_ns: time its vCPUs were running, halt polling included; of a daemon, its threads.
            threads_ns: time the threads that serve it were running: see `df_threads`.
            steal_ns: time its vCPUs were runnable but not running: what its guest sees as steal; limits count in.
            periods: periods of its limits that have ended in which it ran (`nr_periods` of its groups together).
            throttled_periods: those of them at whose end a limit was exhausted (`nr_throttled`).
            throttled_ns: time for which its limits were exhausted, summed up over pCPUs (`throttled_usec`).
        """
        return self._tables["vms"]

    def df_waits(self) -> pl.DataFrame:
        """The waits of each domain by cause: by the domain on the pCPUs that the waiting vCPU could have used.

        Columns:
            replication: from 0.
            domain: the domain that waited.
            by: what it waited for: a domain; `idle`: the pCPU idled; `hypervisor`: its own work and cold caches.
            by_domain: is `by` a domain?
            wait_ns: time waited; over all rows of a domain it sums to its time runnable. Rows of 0 are left out.
        """
        return self._tables["waits"]

    def df_wakeups(self) -> pl.DataFrame:
        """The waits of vCPUs for a pCPU after waking up, by cause of the wake-up.

        Columns:
            replication: from 0.
            domain: the domain's name.
            cause: why: `start`, `timer`, `interrupt`, `event`, `event from NAME`, `unpause`.
            count: wake-ups that led to an execution.
            mean_ns: mean time from the wake-up until it was switched in.
            p50_ns: median.
            p90_ns: 90th percentile.
            p95_ns: 95th percentile.
            p99_ns: 99th percentile.
            max_ns: longest.
        """
        return self._tables["wakeups"]

    def df_wakeup_buckets(self) -> pl.DataFrame:
        """Histograms of the waits after waking up, in steps of a quarter of an octave.

        Columns:
            replication: from 0.
            domain: the domain's name.
            cause: why, as in `df_wakeups`.
            from_ns: waits from this long.
            below_ns: waits shorter than this.
            count: how many.
        """
        return self._tables["wakeup_buckets"]

    def df_samples(self) -> pl.DataFrame:
        """The activity of each domain between samples; no rows if none were taken (`run.sample`).

        Columns:
            replication: from 0.
            time_ns: when the sample was taken, since the host started.
            domain: the domain's name.
            number: the domain's number (0: Dom0).
            state: what it does just then, in the letters of `xl list`; null: it is not on the host.
            vcpus: how many vCPUs it has.
            elapsed_ns: time since the sample before; the four runstates sum to it times the number of vCPUs.
            running_ns: time its vCPUs were running (XenMon: gotten).
            work_ns: what that would have taken alone on a core, at the profile's clock rate, with near memory.
            runnable_ns: time its vCPUs were runnable but waited for a pCPU (XenMon: waited).
            blocked_ns: time its vCPUs were blocked.
            offline_ns: time its vCPUs were paused, unplugged or not on the host.
            allocated_ns: CPU time that decisions gave it when they switched it in; those without an end do not count.
            executions: times a vCPU of it was switched in.
            wakeups: times a vCPU of it became runnable after a block.
            context_switches: times a vCPU of it was switched out.
            preemptions: times a vCPU of it was switched out although it could have gone on.
            migrations: times a vCPU of it was assigned to another pCPU.
            l2_misses: lines brought into an L2 cache again because others had run in between.
            l3_misses: those of them that came from memory; without an L3 cache all of them.
            refill_ns: time that took, overhead of the pCPUs.
            io_count: packets and requests it moved, once for each side of a ring (XenMon's I/O count).
            packets_received: packets it received through its network interface; null: it has none.
            packets_sent: packets it sent.
            packets_dropped: packets for it that found its ring full.
            bytes_received: what it received, on the line.
            bytes_sent: what it sent, on the line.
            page_exchanges: pages that changed owner, one for each packet handed to it.
            events: events sent to its network interface.
            disk_reads: reads that it asked of its virtual disk; null: it has none.
            disk_writes: writes.
            disk_read_bytes: what it read.
            disk_written_bytes: what it wrote.
        """
        return self._tables["samples"]

    def df_vcpu_samples(self) -> pl.DataFrame:
        """The CPU time of each vCPU between samples.

        Columns:
            replication: from 0.
            time_ns: when the sample was taken, since the host started.
            domain: the domain's name.
            vcpu: the vCPU's number in its domain.
            running_ns: time it was running since the sample before.
        """
        return self._tables["vcpu_samples"]

    def df_pcpu_samples(self) -> pl.DataFrame:
        """The activity of each domain on each of its pCPUs between samples: the rows of XenMon.

        A vCPU that does not run counts where it is assigned.

        Columns:
            replication: from 0.
            time_ns: when the sample was taken, since the host started.
            domain: the domain's name.
            number: the domain's number (0: Dom0).
            pcpu: the pCPU.
            running_ns: time its vCPUs ran there; more than 0.
            runnable_ns: time its vCPUs waited to run there.
            blocked_ns: time its vCPUs assigned to it were blocked.
            allocated_ns: CPU time that decisions there gave it when they switched it in; those without an end do not
                count.
            executions: times a vCPU of it was switched in there.
        """
        return self._tables["pcpu_samples"]

    def df_app_samples(self) -> pl.DataFrame:
        """The work of each application and client between samples; `df_apps` has the totals.

        Columns:
            replication: from 0.
            time_ns: when the sample was taken, since the host started.
            domain: the domain's name.
            app: the application's position in its domain, from 0.
            kind: what it is, in the scenario's words.
            elapsed_ns: time since the sample before.
            completed: units of work completed.
            failed: units of work refused, dropped or late past their deadline.
            response_sum_ns: sum of the response times of those completed; null: none was completed, or they have no
                response time.
        """
        return self._tables["app_samples"]

    def df_profile(self) -> pl.DataFrame:
        """Busy time by layer: exact, and estimated from the profiler's samples (`run.profiler`).

        Columns:
            replication: from 0.
            domain: the domain's name; null: nobody's, the hypervisor's own.
            layer: of a domain `application`, `kernel`, `hypervisor` (on its behalf); of the hypervisor itself
                `overhead` (decisions, switches, interrupts), `refill` (cold caches), `profiler` (the samples).
            samples: samples that found it at work; null: there was no profiler, or it does not see this.
            estimated_ns: busy time estimated from them: samples times period.
            exact_ns: busy time in truth.
        """
        return self._tables["profile"]

    def df_decisions(self) -> pl.DataFrame:
        """All decisions after the warm-up that changed the vCPU on a pCPU; no rows unless they were kept.

        Columns:
            replication: from 0.
            time_ns: when, since the host started.
            pcpu: where.
            from_domain: number of the domain that ran until now (-1: idle).
            from_vcpu: its vCPU (for idle: the pCPU's number).
            to_domain: number of the domain that runs from now on (-1: idle).
            to_vcpu: its vCPU (for idle: the pCPU's number).
            waited_ns: how long the incoming vCPU had waited for a pCPU.
        """
        return self._tables["decisions"]
