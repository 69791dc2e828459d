"""Tasks on four processors under round-robin, in SimPy: `simpy_tasks.py TASKS MS`; see `peers.py`."""

import json
import sys
import time
from collections import deque
from collections.abc import Generator, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import simpy

PROCESSORS = 4
SLICE_NS = 1_000_000


class Host:
    """Processors that take waiting tasks in turn, each a process; a task that sleeps is a timeout."""

    def __init__(self, tasks: Iterable[Iterable[int]]) -> None:
        """Tasks: ns before each runs first, ns that it runs, ns that it sleeps."""
        self.env = simpy.Environment()
        self.waiting: deque[int] = deque()
        self.left: list[int] = []
        self.lengths: list[tuple[int, int]] = []
        self.idle: list[simpy.Event] = []
        self.dispatches = 0
        self.wakeups = 0
        for task, (delay_ns, run_ns, sleep_ns) in enumerate(tasks):
            self.left.append(0)
            self.lengths.append((run_ns, sleep_ns))
            self.sleep(task, delay_ns)
        for _ in range(PROCESSORS):
            self.env.process(self.processor())

    def sleep(self, task: int, ns: int) -> None:
        """Wake a task up later."""
        callbacks = self.env.timeout(ns).callbacks
        callbacks.append(partial(self.wake, task))

    def wake(self, task: int, _event: simpy.Event) -> None:
        """Let a task wait for a processor, and an idle one take it."""
        self.wakeups += 1
        self.left[task] = self.lengths[task][0]
        self.waiting.append(task)
        if self.idle:
            self.idle.pop().succeed()

    def processor(self) -> Generator[simpy.Event, Any, None]:
        """Run one waiting task after the other, each for a slice, or on if nobody waits."""
        while True:
            while not self.waiting:
                work = self.env.event()
                self.idle.append(work)
                yield work
            task = self.waiting.popleft()
            self.dispatches += 1
            while True:
                length = min(SLICE_NS, self.left[task])
                yield self.env.timeout(length)
                self.left[task] -= length
                if not self.left[task]:
                    self.sleep(task, self.lengths[task][1])
                    break
                if self.waiting:
                    self.waiting.append(task)
                    break


def main(file: str, simulated_ms: str) -> None:
    """Run the tasks of a file; print what was done, and how long it took."""
    tasks = [map(int, line.split()) for line in Path(file).read_text().splitlines()]
    start = time.process_time()
    host = Host(tasks)
    host.env.run(until=int(simulated_ms) * 1_000_000)
    seconds = time.process_time() - start
    print(json.dumps({"dispatches": host.dispatches, "wakeups": host.wakeups, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
