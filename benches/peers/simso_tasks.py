"""Tasks on four processors under round-robin, in SimSo: `simso_tasks.py TASKS MS`; see `peers.py`.

SimSo's tasks are periodic: each is released once in the time that it runs and sleeps, however long it waited before.
"""

import json
import sys
import time
from pathlib import Path

from simso.configuration import Configuration
from simso.core import Model, Processor, Scheduler, Timer
from simso.core.Job import Job

PROCESSORS = 4
SLICE_MS = 1
NS_PER_MS = 1_000_000


class RoundRobin(Scheduler):  # type: ignore[misc]  # SimSo has no types
    """One queue; each job in turn gets a processor for a slice, or on if nobody waits."""

    def init(self) -> None:
        """Begin without jobs."""
        self.waiting: list[Job] = []
        self.ends: dict[Processor, Timer] = {}
        self.over: set[Processor] = set()
        self.dispatches = 0
        self.wakeups = 0

    def on_activate(self, job: Job) -> None:
        """Let a job wait, and an idle processor take it."""
        self.wakeups += 1
        self.waiting.append(job)
        idle = next((cpu for cpu in self.processors if not cpu.is_running()), None)
        if idle:
            idle.resched()

    def on_terminated(self, job: Job) -> None:
        """Let the job's processor take the next."""
        job.cpu.resched()

    def end_slice(self, cpu: Processor) -> None:
        """Let the running job's turn be over."""
        self.over.add(cpu)
        cpu.resched()

    def schedule(self, cpu: Processor) -> tuple[Job | None, Processor] | None:
        """Decide what a processor runs."""
        running = cpu.running if cpu.is_running() and cpu.running.is_active() else None
        over = cpu in self.over
        self.over.discard(cpu)
        if running and not over:
            return None
        if not self.waiting:
            if running:
                self.begin_slice(cpu)
            return None
        if running:
            self.waiting.append(running)
        self.dispatches += 1
        self.begin_slice(cpu)
        return self.waiting.pop(0), cpu

    def begin_slice(self, cpu: Processor) -> None:
        """Set the end of a slice."""
        if cpu in self.ends:
            self.ends[cpu].stop()
        self.ends[cpu] = Timer(self.sim, RoundRobin.end_slice, (self, cpu), SLICE_MS, cpu=cpu, in_ms=True)
        self.ends[cpu].start()


def main(file: str, simulated_ms: str) -> None:
    """Run the tasks of a file; print what was done, and how long it took."""
    configuration = Configuration()
    configuration.cycles_per_ms = NS_PER_MS
    configuration.duration = int(simulated_ms) * NS_PER_MS
    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
        delay_ns, run_ns, sleep_ns = map(int, line.split())
        period_ms = (run_ns + sleep_ns) / NS_PER_MS
        configuration.add_task(
            name=str(number),
            identifier=number,
            period=period_ms,
            activation_date=delay_ns / NS_PER_MS,
            wcet=run_ns / NS_PER_MS,
            deadline=period_ms,
            abort_on_miss=False,
        )
    for number in range(1, PROCESSORS + 1):
        configuration.add_processor(name=str(number), identifier=number)
    configuration.scheduler_info.clas = RoundRobin
    start = time.process_time()
    model = Model(configuration)
    model.run_model()
    seconds = time.process_time() - start
    done = model.scheduler
    print(json.dumps({"dispatches": done.dispatches, "wakeups": done.wakeups, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
